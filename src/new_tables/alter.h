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

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

#include "sequences/exhaust.h"

extern void snowflake_prepare_alter(const Node *statement);
extern SnowflakeReset snowflake_resets_sequences(const Node *statement);
extern List *snowflake_granted_before(Node *statement, SnowflakeReset reset);
extern void snowflake_keep_granted(const List *before, LOCKMODE mode);

#endif							/* SNOWFLAKE_ALTER_H */
