/*-------------------------------------------------------------------------
 *
 * swap_statements.h
 *	  The statements that swap the columns of a table.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/swap_statements.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_SWAP_STATEMENTS_H
#define SNOWFLAKE_ONLINE_SWAP_STATEMENTS_H

#include "convert/catalog/queries.h"

extern void snowflake_online_swap_statements(const SnowflakeConversion *conversion,
											 Oid relid, List **before_drop,
											 List **after_drop);
extern void snowflake_online_check_drop(Oid relid, const List *trees);
extern char *snowflake_online_swap_names(const List *relids);
extern char *snowflake_online_swap_privileges(char *names);
extern void snowflake_online_check_privileges(Oid relid, char *names,
											  const char *privileges);
extern void snowflake_online_check_swap(const SnowflakeConversion *conversion,
										Oid relid, const List *obstacles);

#endif							/* SNOWFLAKE_ONLINE_SWAP_STATEMENTS_H */
