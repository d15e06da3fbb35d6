/*-------------------------------------------------------------------------
 *
 * copy.h
 *	  Defaults with which COPY FROM keeps its multi-insert.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/copy.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_COPY_H
#define SNOWFLAKE_COPY_H

#include "nodes/primnodes.h"

extern MemoryContext snowflake_begin_statement(const Node *statement);
extern void snowflake_end_statement(MemoryContext outer);
extern Node *snowflake_copy_substitute(const FuncExpr *call);

#endif							/* SNOWFLAKE_COPY_H */
