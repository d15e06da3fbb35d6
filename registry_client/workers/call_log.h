/*-------------------------------------------------------------------------
 *
 * call_log.h
 *	  What is logged of the calls of the registry.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/call_log.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CALL_LOG_H
#define SNOWFLAKE_CALL_LOG_H

#include "lib/stringinfo.h"

#include "registry_client/workers/range_needs.h"

extern void snowflake_log_place(bool is_this_server);
extern void snowflake_log_grant(int worker_id, int64 until);
extern void snowflake_log_namesake(const char *reason);
extern void snowflake_log_not_held(int worker_id);
extern void snowflake_log_answer(int worker_id, StringInfo error);
extern void snowflake_log_end(bool ended);
extern void snowflake_log_not_returned(int worker_id, StringInfo error);
extern void snowflake_log_range_call(StringInfo error);
extern void snowflake_log_superseded(void);
extern void snowflake_log_ranges_not_returned(StringInfo error);
extern void snowflake_log_range_problem(const RangeRequest *request,
										const RangeAnswer *answer);

#endif							/* SNOWFLAKE_CALL_LOG_H */
