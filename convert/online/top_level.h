/*-------------------------------------------------------------------------
 *
 * top_level.h
 *	  Statements outside of a transaction.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/top_level.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_TOP_LEVEL_H
#define SNOWFLAKE_ONLINE_TOP_LEVEL_H

extern bool snowflake_online_run_top_level(MemoryContext context, Oid owner,
										   const char *statement,
										   const char *tablespace);

#endif							/* SNOWFLAKE_ONLINE_TOP_LEVEL_H */
