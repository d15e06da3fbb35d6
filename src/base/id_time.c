/*-------------------------------------------------------------------------
 *
 * id_time.c
 *	  The time of an ID, and the IDs of a time, in any scheme.
 *
 * Errors are soft: with an ErrorSaveContext, which the planner gives, they are
 * noted there, and the result has no meaning; without one they are raised.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/id_time.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "utils/timestamp.h"

#include "base/id_time.h"
#include "shared/compat.h"

/*
 * The start of a tick; false if it is out of range for timestamptz.
 */
bool
snowflake_tick_timestamp(const SnowflakeScheme *scheme, int64 tick, TimestampTz *result)
{
	const int64 postgres_epoch_ms =
		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * (USECS_PER_DAY / 1000);
	TimestampTz epoch = (scheme->epoch_ms - postgres_epoch_ms) * 1000;

	return !pg_mul_s64_overflow(tick, scheme->tick_us, result) &&
		!pg_add_s64_overflow(*result, epoch, result) &&
		IS_VALID_TIMESTAMP(*result);
}

/*
 * The tick that contains a time; with round_up, the next one if the time is
 * not the start of the tick.  Fails if the scheme does not have the tick.
 */
bool
snowflake_timestamp_tick(const SnowflakeScheme *scheme, TimestampTz timestamp,
						 bool round_up, int64 *tick, Node *escontext)
{
	TimestampTz epoch;
	TimestampTz last;
	int64		since_epoch;

	/* Any epoch is in range for timestamptz. */
	(void) snowflake_tick_timestamp(scheme, 0, &epoch);
	if (!TIMESTAMP_NOT_FINITE(timestamp) && timestamp >= epoch &&
		!pg_sub_s64_overflow(timestamp, epoch, &since_epoch))
	{
		*tick = since_epoch / scheme->tick_us;
		if (round_up && since_epoch % scheme->tick_us != 0)
			(*tick)++;
		if (*tick <= snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP))
			return true;
	}
	if (!snowflake_tick_timestamp(scheme, snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP), &last))
		last = END_TIMESTAMP - 1;
	ereturn(escontext, false,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("timestamp is out of range for the snowflake scheme"),
			 errdetail("The timestamp is %s, and the scheme has those from %s to %s.",
					   pstrdup(timestamptz_to_str(timestamp)),
					   pstrdup(timestamptz_to_str(epoch)),
					   pstrdup(timestamptz_to_str(last))),
			 TIMESTAMP_NOT_FINITE(timestamp) ?
			 errhint("For a range without an end, use snowflake_within().") : 0));
}

/*
 * Fail if an ID does not fit the scheme.
 */
bool
snowflake_check_id_fits(const SnowflakeScheme *scheme, int64 id,
						Node *escontext)
{
	if (snowflake_scheme_holds(scheme, id))
		return true;
	if (id < 0)
		ereturn(escontext, false,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("snowflake ID " INT64_FORMAT " is negative", id)));
	else
		ereturn(escontext, false,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("snowflake ID " INT64_FORMAT " has more bits than the scheme",
						id),
				 errdetail("The scheme has %d bits.",
						   scheme->bits)));
}

/*
 * The start of an ID's tick.
 */
TimestampTz
snowflake_id_timestamp(const SnowflakeScheme *scheme, int64 id,
					   Node *escontext)
{
	TimestampTz result;

	if (!snowflake_check_id_fits(scheme, id, escontext))
		return 0;
	if (!snowflake_tick_timestamp(scheme,
								  snowflake_field_get(scheme, SNOWFLAKE_TIMESTAMP, id),
								  &result))
		ereturn(escontext, 0,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp of snowflake ID " INT64_FORMAT " is out of range",
						id)));
	return result;
}

/*
 * Fail if the IDs of a scheme do not sort by time.
 */
bool
snowflake_check_sorts(const SnowflakeScheme *scheme, Node *escontext)
{
	if (!snowflake_scheme_sorts(scheme))
		ereturn(escontext, false,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("snowflake IDs of this scheme do not sort by time"),
				 errdetail("The timestamp is not the first field of the scheme.")));
	return true;
}

/*
 * The smallest ID at or after a time.
 */
int64
snowflake_time_lower_bound(const SnowflakeScheme *scheme, TimestampTz timestamp,
						   Node *escontext)
{
	int64		tick;
	int64		id;

	if (!snowflake_check_sorts(scheme, escontext) ||
		!snowflake_timestamp_tick(scheme, timestamp, true, &tick, escontext))
		return 0;
	id = snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP, tick);
	if (id < 0)
		ereturn(escontext, 0,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp is out of range for the snowflake scheme"),
				 errdetail("IDs with this timestamp have the highest of 64 bits set and, as bigint, sort below all others.")));
	return id;
}
