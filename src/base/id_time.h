/*-------------------------------------------------------------------------
 *
 * id_time.h
 *	  The time of an ID, and the IDs of a time, in any scheme.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/id_time.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ID_TIME_H
#define SNOWFLAKE_ID_TIME_H

#include "datatype/timestamp.h"
#include "nodes/nodes.h"

#include "base/scheme.h"

extern bool snowflake_tick_timestamp(const SnowflakeScheme *scheme, int64 tick,
									 TimestampTz *result);
extern bool snowflake_timestamp_tick(const SnowflakeScheme *scheme,
									 TimestampTz timestamp, bool round_up,
									 int64 *tick, Node *escontext);
extern bool snowflake_check_id_fits(const SnowflakeScheme *scheme, int64 id,
									Node *escontext);
extern TimestampTz snowflake_id_timestamp(const SnowflakeScheme *scheme,
										  int64 id, Node *escontext);
extern bool snowflake_check_sorts(const SnowflakeScheme *scheme,
								  Node *escontext);
extern int64 snowflake_time_lower_bound(const SnowflakeScheme *scheme,
										TimestampTz timestamp,
										Node *escontext);

#endif							/* SNOWFLAKE_ID_TIME_H */
