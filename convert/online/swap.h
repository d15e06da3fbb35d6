/*-------------------------------------------------------------------------
 *
 * swap.h
 *	  Swaps the columns of a table.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/swap.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_SWAP_H
#define SNOWFLAKE_ONLINE_SWAP_H

#include "convert/online/steps.h"
#include "convert/online/transaction.h"

extern bool snowflake_online_swap_table(SnowflakeOnline *online,
										const SnowflakeOnlineStep *step);
extern void snowflake_online_swap_statements(const SnowflakeConversion *conversion,
											 Oid relid, List **before_drop,
											 List **after_drop);
extern char *snowflake_online_swap_script(const SnowflakeOnline *online, Oid relid);

#endif							/* SNOWFLAKE_ONLINE_SWAP_H */
