/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  The view snowflake_stat.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/stat.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "grant.h"
#include "mark.h"
#include "snowflake.h"
#include "state.h"

/*
 * Columns of snowflake_stat() by the version of the extension.
 *
 * After an upgrade, the library is used with the SQL objects of an older
 * version until ALTER EXTENSION UPDATE.  So each version that changes the
 * columns has its own C function, which is never removed.  New columns are
 * added at the end, as CREATE OR REPLACE VIEW requires: the columns of a
 * version are the first ones of the newest.
 */
#define STAT_NCOLUMNS_1_0	27
#define STAT_NCOLUMNS		STAT_NCOLUMNS_1_0

/* The values of snowflake_stat; counters since stats_reset. */
typedef struct SnowflakeStat
{
	const SnowflakeScheme *scheme;
	int			datacenter_id;
	int			worker_id;		/* -1: none is granted */
	TimestampTz last_timestamp; /* of the last ID; 0: there is none */
	uint64		mark;			/* 0: there never was one */
	TimestampTz mark_timestamp; /* 0: it is no ID of the scheme */
	TimestampTz expires_at;		/* end of the timestamp field */
	int64		lead_us;		/* of the last ID, or of the mark */
	uint64		ids;
	uint64		sequence_waits;
	uint64		sequence_wait_us;
	uint64		clock_waits;
	uint64		clock_wait_us;
	uint64		reserve_waits;
	uint64		reserve_wait_us;
	uint64		grant_waits;
	uint64		grant_wait_us;
	uint64		clock_errors;
	uint64		clock_steps;
	uint64		max_backward_us;
	uint64		reserves;
	TimestampTz stats_reset;
	TimestampTz granted_until;	/* 0: no grant of a registry */
	TimestampTz registry_contact;	/* last answer, or 0 */
	TimestampTz registry_error_since;	/* 0: there is no error */
	char		registry_error[SNOWFLAKE_REGISTRY_ERROR_SIZE];
} SnowflakeStat;

PG_FUNCTION_INFO_V1(snowflake_stat_1_0);
PG_FUNCTION_INFO_V1(snowflake_stat_reset);

/*
 * The number of IDs made since server start, and the word at that moment.
 * Takes no lock, so that nobody waits for it.
 */
static uint64
count_ids(uint64 *word)
{
	Generator  *state = snowflake_state;

	for (;;)
	{
		uint64		changes = pg_atomic_read_u64(&state->changes);
		uint64		before;

		pg_read_barrier();
		before = pg_atomic_read_u64(&state->ids_before);
		*word = pg_atomic_read_u64(&state->word);
		pg_read_barrier();
		if (changes % 2 == 0 &&
			changes == pg_atomic_read_u64(&state->changes))
			return before + numbers_used(&snowflake_layout, *word);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
get_wait_counter(WaitCounter *counter, uint64 *waits, uint64 *wait_us)
{
	*waits = pg_atomic_read_u64(&counter->waits);
	*wait_us = pg_atomic_read_u64(&counter->wait_us);
}

static void
reset_wait_counter(WaitCounter *counter)
{
	pg_atomic_write_u64(&counter->waits, 0);
	pg_atomic_write_u64(&counter->wait_us, 0);
}

/*
 * The worker ID, the end of its grant, and the last answer of the registry.
 */
static void
get_grant_stat(SnowflakeStat *stat)
{
	Grant	   *grant = &snowflake_state->grant;
	int64		until = granted_until();

	stat->worker_id = grant->worker_id;
	stat->granted_until = 0;
	if (grant->registry && until > 0)
		stat->granted_until = tick_start(&snowflake_layout, until);

	SpinLockAcquire(&grant->mutex);
	stat->registry_contact = grant->contact;
	stat->registry_error_since = grant->error_since;
	strlcpy(stat->registry_error, grant->error,
			sizeof(stat->registry_error));
	SpinLockRelease(&grant->mutex);
}

/*
 * Get the state and counters of the generator.
 */
static void
get_stat(SnowflakeStat *stat)
{
	const SnowflakeLayout *layout = &snowflake_layout;
	int			shift = layout->scheme.shift[SNOWFLAKE_TIMESTAMP];
	Generator  *state = snowflake_state;
	TimestampTz last;
	uint64		word;

	snowflake_check_loaded();
	stat->scheme = &layout->scheme;
	stat->datacenter_id = snowflake_datacenter_id;
	get_grant_stat(stat);

	stat->ids = count_ids(&word) - pg_atomic_read_u64(&state->ids_reset);
	stat->last_timestamp = 0;
	if (pg_atomic_read_u64(&state->reserved) > 0 &&
		word_tick(layout, word) >= state->first_tick)
		stat->last_timestamp = tick_start(layout, word_tick(layout, word));

	stat->mark = snowflake_mark_read();
	stat->mark_timestamp = 0;
	if (stat->mark > 0 && (int64) (stat->mark >> shift) <= layout->last_tick + 1)
		stat->mark_timestamp =
			tick_start(layout, (int64) (stat->mark >> shift));
	stat->expires_at = tick_start(layout, layout->last_tick + 1);

	/* How far the last ID is ahead, or the next one must be. */
	last = stat->last_timestamp != 0 ?
		stat->last_timestamp : stat->mark_timestamp;
	stat->lead_us = last != 0 ? Max(last - GetCurrentTimestamp(), 0) : 0;

	get_wait_counter(&state->sequence_waits,
					 &stat->sequence_waits, &stat->sequence_wait_us);
	get_wait_counter(&state->clock_waits,
					 &stat->clock_waits, &stat->clock_wait_us);
	get_wait_counter(&state->reserve_waits,
					 &stat->reserve_waits, &stat->reserve_wait_us);
	get_wait_counter(&state->grant_waits,
					 &stat->grant_waits, &stat->grant_wait_us);
	stat->clock_errors = pg_atomic_read_u64(&state->clock_errors);
	stat->clock_steps = pg_atomic_read_u64(&state->clock_steps);
	stat->max_backward_us = pg_atomic_read_u64(&state->max_backward_us);
	stat->reserves = pg_atomic_read_u64(&state->reserves);
	stat->stats_reset = (TimestampTz) pg_atomic_read_u64(&state->stats_reset);
}

/*
 * Reset the counters.
 */
static void
reset_stat(void)
{
	Generator  *state = snowflake_state;
	uint64		word;

	snowflake_check_loaded();
	pg_atomic_write_u64(&state->ids_reset, count_ids(&word));
	reset_wait_counter(&state->sequence_waits);
	reset_wait_counter(&state->clock_waits);
	reset_wait_counter(&state->reserve_waits);
	reset_wait_counter(&state->grant_waits);
	pg_atomic_write_u64(&state->clock_errors, 0);
	pg_atomic_write_u64(&state->clock_steps, 0);
	pg_atomic_write_u64(&state->max_backward_us, 0);
	pg_atomic_write_u64(&state->reserves, 0);
	pg_atomic_write_u64(&state->stats_reset, GetCurrentTimestamp());
}

/*
 * Set the next column of a row.
 */
static void
put_column(Datum **value, bool **isnull, Datum datum, bool null)
{
	*(*value)++ = datum;
	*(*isnull)++ = null;
}

/*
 * Return the row, with the columns of a version.
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

	get_stat(&stat);

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
	/* At the end of time, the mark is greater than any bigint. */
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
	reset_stat();
	PG_RETURN_VOID();
}
