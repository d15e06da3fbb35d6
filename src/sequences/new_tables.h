/*-------------------------------------------------------------------------
 *
 * new_tables.h
 *	  Serial and identity columns of new tables.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/new_tables.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_NEW_TABLES_H
#define SNOWFLAKE_NEW_TABLES_H

#include "nodes/plannodes.h"

#include "sequences/columns.h"

extern SnowflakeNewTable *snowflake_prepare_table(PlannedStmt **planned,
												  const char *query);
extern void snowflake_finish_table(SnowflakeNewTable *table);

#endif							/* SNOWFLAKE_NEW_TABLES_H */
