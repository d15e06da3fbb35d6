/*-------------------------------------------------------------------------
 *
 * range.c
 *	  The range of snowflake IDs that belongs to a range of times.
 *
 * In contrast to snowflake_lower_bound(), times that the scheme does not have
 * are no error: a range may begin before the epoch, or have no end.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ids/range.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "fmgr.h"
#include "utils/rangetypes.h"
#include "utils/timestamp.h"

#include "base/id_time.h"
#include "generator/loaded.h"
#include "shared/compat.h"

/* One more than the greatest bigint. */
#define END_OF_BIGINT	(UINT64CONST(1) << 63)

PG_FUNCTION_INFO_V1(snowflake_first_id);
PG_FUNCTION_INFO_V1(snowflake_last_id);

/*
 * The number of ticks of a scheme.
 */
static uint64
count_ticks(const SnowflakeScheme *scheme)
{
	return (uint64) snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP) + 1;
}

/*
 * The first ID of a tick, at most END_OF_BIGINT.
 */
static uint64
first_id_of_tick(const SnowflakeScheme *scheme, uint64 tick)
{
	uint64		ids_per_tick = (uint64) snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP, 1);

	return tick > END_OF_BIGINT / ids_per_tick ? END_OF_BIGINT : tick * ids_per_tick;
}

/*
 * The first ID at or after a bound of a range, and with "after" that of the
 * next microsecond; END_OF_BIGINT or the end of the scheme if there is none.
 */
static uint64
first_id_at(const SnowflakeScheme *scheme, const RangeBound *bound, bool after)
{
	uint64		tick = count_ticks(scheme);
	TimestampTz time;
	TimestampTz epoch;
	int64		since_epoch;

	/* Any epoch is in range for timestamptz. */
	(void) snowflake_tick_timestamp(scheme, 0, &epoch);
	if (bound->infinite)
		return bound->lower ? 0 : END_OF_BIGINT;
	time = DatumGetTimestampTz(bound->val);
	if (time < epoch)
		return 0;
	if (!TIMESTAMP_NOT_FINITE(time) &&
		!pg_sub_s64_overflow(time, epoch, &since_epoch))
	{
		uint64		us = (uint64) since_epoch + (after ? 1 : 0);

		tick = Min(tick, us / scheme->tick_us + (us % scheme->tick_us != 0 ? 1 : 0));
	}
	return first_id_of_tick(scheme, tick);
}

/*
 * The first and the last ID of a range of times; 0 and -1 if it has none.
 */
static void
get_ids(FunctionCallInfo fcinfo, int64 *first, int64 *last)
{
	const SnowflakeScheme *scheme = snowflake_server_scheme();
	RangeType  *range = PG_GETARG_RANGE_P(0);
	RangeBound	lower;
	RangeBound	upper;
	bool		empty;
	uint64		from;
	uint64		until;

	*first = 0;
	*last = -1;
	if (!snowflake_check_sorts(scheme, fcinfo->context))
		return;
	range_deserialize(range_get_typcache(fcinfo, RangeTypeGetOid(range)),
					  range, &lower, &upper, &empty);
	if (empty)
		return;
	from = first_id_at(scheme, &lower, !lower.inclusive);
	until = first_id_at(scheme, &upper, upper.inclusive);

	/* One without an end may begin after the scheme. */
	if (from < until && from < first_id_of_tick(scheme, count_ticks(scheme)))
	{
		*first = (int64) from;
		*last = (int64) (until - 1);
	}
}

/*
 * _snowflake_first_id(times tstzrange) returns bigint
 */
Datum
snowflake_first_id(PG_FUNCTION_ARGS)
{
	int64		first;
	int64		last;

	get_ids(fcinfo, &first, &last);
	PG_RETURN_INT64(first);
}

/*
 * _snowflake_last_id(times tstzrange) returns bigint
 */
Datum
snowflake_last_id(PG_FUNCTION_ARGS)
{
	int64		first;
	int64		last;

	get_ids(fcinfo, &first, &last);
	PG_RETURN_INT64(last);
}
