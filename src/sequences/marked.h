/*-------------------------------------------------------------------------
 *
 * marked.h
 *	  Calls of nextval() that give identity columns their values.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/marked.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_MARKED_H
#define SNOWFLAKE_MARKED_H

#include "nodes/primnodes.h"

extern FuncExpr *snowflake_marked_call(Oid function, Oid sequence);
extern bool snowflake_is_marked(const Node *call);
extern void snowflake_unmark_call(FuncExpr *call);

#endif							/* SNOWFLAKE_MARKED_H */
