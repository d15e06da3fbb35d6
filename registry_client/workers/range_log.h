/*-------------------------------------------------------------------------
 *
 * range_log.h
 *	  What is logged of the calls for ranges.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_log.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RANGE_LOG_H
#define SNOWFLAKE_RANGE_LOG_H

#include "lib/stringinfo.h"
#include "ranges/needs.h"

extern void snowflake_log_range_call(StringInfo error);
extern void snowflake_log_superseded(void);
extern void snowflake_log_ranges_not_returned(StringInfo error);
extern void snowflake_log_range_problem(const RangeRequest *request,
										const RangeAnswer *answer);

#endif							/* SNOWFLAKE_RANGE_LOG_H */
