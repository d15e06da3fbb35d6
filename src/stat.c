/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  The view snowflake_stat.
 *
 * src/stat.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "generator.h"
#include "snowflake.h"
#include "state.h"

/*
 * Columns of snowflake_stat() by the version of the extension.
 *
 * A library that was upgraded is used with the SQL objects of an older version
 * until ALTER EXTENSION UPDATE.  So each version that changes the columns has a
 * C function of its own, which stays for good.  New columns come at the end, as
 * CREATE OR REPLACE VIEW wants it: a version has the first ones of the newest.
 */
#define STAT_NCOLUMNS_1_0	27
#define STAT_NCOLUMNS		STAT_NCOLUMNS_1_0

PG_FUNCTION_INFO_V1(snowflake_stat_1_0);
PG_FUNCTION_INFO_V1(snowflake_stat_reset);

/*
 * The next column of a row.
 */
static void
put_column(Datum **value, bool **isnull, Datum datum, bool null)
{
	*(*value)++ = datum;
	*(*isnull)++ = null;
}

/*
 * The row, with as many columns as a version has.
 */
static Datum
stat_row(FunctionCallInfo fcinfo, int ncolumns)
{
	TupleDesc	tupdesc;
	Datum		values[STAT_NCOLUMNS];
	bool		nulls[STAT_NCOLUMNS];
	Datum	   *value = values;
	bool	   *null = nulls;
	SnowflakeStat stat;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE ||
		tupdesc->natts != ncolumns)
		elog(ERROR, "return type must be a row type of %d columns", ncolumns);

	snowflake_get_stat(&stat);

	put_column(&value, &null,
			   CStringGetTextDatum(snowflake_scheme), false);
	put_column(&value, &null, Int32GetDatum(stat.datacenter_id),
			   stat.scheme->width[SNOWFLAKE_DATACENTER] == 0);
	put_column(&value, &null, Int32GetDatum(stat.worker_id),
			   stat.scheme->width[SNOWFLAKE_WORKER] == 0 || stat.worker_id < 0);
	put_column(&value, &null,
			   BoolGetDatum(snowflake_worker_id >= 0 ||
							snowflake_state->grant.registry),
			   stat.scheme->width[SNOWFLAKE_WORKER] == 0);
	put_column(&value, &null, TimestampTzGetDatum(stat.last_timestamp),
			   stat.last_timestamp == 0);
	/* At the end of time the mark is one more than a bigint has. */
	put_column(&value, &null,
			   Int64GetDatum(Min(stat.mark, (uint64) PG_INT64_MAX)),
			   stat.mark == 0);
	put_column(&value, &null, TimestampTzGetDatum(stat.mark_timestamp),
			   stat.mark_timestamp == 0);
	put_column(&value, &null, TimestampTzGetDatum(stat.expires_at), false);
	put_column(&value, &null, Float8GetDatum(stat.lead_us / 1000.0), false);
	put_column(&value, &null, Int64GetDatum(stat.ids), false);
	put_column(&value, &null, Int64GetDatum(stat.sequence_waits), false);
	put_column(&value, &null,
			   Float8GetDatum(stat.sequence_wait_us / 1000.0), false);
	put_column(&value, &null, Int64GetDatum(stat.clock_waits), false);
	put_column(&value, &null,
			   Float8GetDatum(stat.clock_wait_us / 1000.0), false);
	put_column(&value, &null, Int64GetDatum(stat.reserve_waits), false);
	put_column(&value, &null,
			   Float8GetDatum(stat.reserve_wait_us / 1000.0), false);
	put_column(&value, &null, Int64GetDatum(stat.clock_errors), false);
	put_column(&value, &null, Int64GetDatum(stat.clock_steps), false);
	put_column(&value, &null,
			   Float8GetDatum(stat.max_backward_us / 1000.0), false);
	put_column(&value, &null, Int64GetDatum(stat.reserves), false);
	put_column(&value, &null, TimestampTzGetDatum(stat.stats_reset), false);
	put_column(&value, &null, Int64GetDatum(stat.grant_waits), false);
	put_column(&value, &null,
			   Float8GetDatum(stat.grant_wait_us / 1000.0), false);
	put_column(&value, &null, TimestampTzGetDatum(stat.granted_until),
			   stat.granted_until == 0);
	put_column(&value, &null, TimestampTzGetDatum(stat.registry_contact),
			   stat.registry_contact == 0);
	put_column(&value, &null, CStringGetTextDatum(stat.registry_error),
			   stat.registry_error_since == 0);
	put_column(&value, &null, TimestampTzGetDatum(stat.registry_error_since),
			   stat.registry_error_since == 0);

	Assert(value == values + STAT_NCOLUMNS);

	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
											 values, nulls));
}

/*
 * snowflake_stat() returns record
 */
Datum
snowflake_stat_1_0(PG_FUNCTION_ARGS)
{
	return stat_row(fcinfo, STAT_NCOLUMNS_1_0);
}

/*
 * snowflake_stat_reset() returns void
 */
Datum
snowflake_stat_reset(PG_FUNCTION_ARGS)
{
	snowflake_reset_stat();
	PG_RETURN_VOID();
}
