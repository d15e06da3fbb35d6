/*-------------------------------------------------------------------------
 *
 * transaction.h
 *	  The transactions of a conversion.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/transaction.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_TRANSACTION_H
#define SNOWFLAKE_ONLINE_TRANSACTION_H

#include "nodes/pg_list.h"

#include "convert/online/online.h"

extern void snowflake_online_open(SnowflakeOnline *online);
extern void snowflake_online_begin(SnowflakeOnline *online);
extern void snowflake_online_commit(SnowflakeOnline *online);
extern void snowflake_online_commit_soon(SnowflakeOnline *online);
extern void snowflake_online_run_statement(const char *statement);
extern void snowflake_online_run_statements(List *statements);

#endif							/* SNOWFLAKE_ONLINE_TRANSACTION_H */
