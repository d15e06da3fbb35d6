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

extern void snowflake_watch_calls(void);
extern Oid	snowflake_find_nextval(void);
extern void snowflake_attach_for_label(void);
extern bool snowflake_prepare_drop(const Node *statement);
extern void snowflake_finish_drop(void);

#endif							/* SNOWFLAKE_ATTACH_H */
