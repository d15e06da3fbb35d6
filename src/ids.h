/*-------------------------------------------------------------------------
 *
 * ids.h
 *	  Functions on snowflake IDs that other files need.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ids.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_IDS_H
#define SNOWFLAKE_IDS_H

#include "fmgr.h"
#include "scheme.h"

extern PGDLLEXPORT Datum snowflake_timestamp(PG_FUNCTION_ARGS);
extern void snowflake_forget_currval(void);
extern void snowflake_check_id_fits(const SnowflakeScheme *scheme, int64 id);

#endif							/* SNOWFLAKE_IDS_H */
