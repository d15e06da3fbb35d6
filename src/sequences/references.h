/*-------------------------------------------------------------------------
 *
 * references.h
 *	  Columns that reference keys.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/references.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_REFERENCES_H
#define SNOWFLAKE_REFERENCES_H

#include "sequences/columns.h"

extern void snowflake_run_statement(Node *statement, const char *query);
extern RangeVar *snowflake_range_of(Oid relid);
extern bool snowflake_has_own_type(Oid relid, const char *column);
extern void snowflake_widen_column(Oid relid, const char *column,
								   const char *query);
extern void snowflake_widen_references_of(const SnowflakeNewTable *table);
extern bool snowflake_is_own_table(Oid relid);
extern void snowflake_check_narrowing(const AlterTableStmt *statement);

#endif							/* SNOWFLAKE_REFERENCES_H */
