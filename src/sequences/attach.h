/*-------------------------------------------------------------------------
 *
 * attach.h
 *	  Whether nextval() of this database knows the kinds of sequences.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/attach.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ATTACH_H
#define SNOWFLAKE_ATTACH_H

#include "nodes/nodes.h"

extern bool snowflake_is_attached(void);
extern Oid	snowflake_find_nextval(void);
extern void snowflake_check_call(Oid function);
extern void snowflake_check_drop(const Node *statement);

#endif							/* SNOWFLAKE_ATTACH_H */
