/*-------------------------------------------------------------------------
 *
 * alter.h
 *	  ALTER SEQUENCE and TRUNCATE, for sequences that are not local.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/alter.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ALTER_H
#define SNOWFLAKE_ALTER_H

#include "nodes/plannodes.h"

extern PlannedStmt *snowflake_prepare_alter(PlannedStmt *planned);
extern bool snowflake_resets_sequences(const Node *statement);

#endif							/* SNOWFLAKE_ALTER_H */
