/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  The view snowflake_stat.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/server/stat.c
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

#include "generator/durable.h"
#include "generator/grant.h"
#include "generator/loaded.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "shared/compat.h"

/*
 * Columns of the newest version of the extension.  New ones are added at the end, as
 * CREATE OR REPLACE VIEW requires, so the SQL objects of an older version get the first
 * ones until ALTER EXTENSION UPDATE.
 */
#define STAT_NCOLUMNS		29

/* A row of snowflake_stat, to which columns are added in their order. */
typedef struct Row
{
	int			ncolumns;
	Datum		values[STAT_NCOLUMNS];
	bool		nulls[STAT_NCOLUMNS];
} Row;

PG_FUNCTION_INFO_V1(snowflake_stat);
PG_FUNCTION_INFO_V1(snowflake_stat_reset);

/*
 * The number of IDs generated since server start, and the word at that time.
 * Takes no lock, so that nobody waits for it.
 */
static uint64
count_ids(uint64 *word)
{
	SnowflakeGenerator *state = snowflake_state;

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
			return before + snowflake_numbers_used(&snowflake_layout, *word);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
put(Row *row, Datum value, bool isnull)
{
	Assert(row->ncolumns < STAT_NCOLUMNS);
	row->values[row->ncolumns] = value;
	row->nulls[row->ncolumns] = isnull;
	row->ncolumns++;
}

/*
 * A time; 0 means that there is none.
 */
static void
put_time(Row *row, TimestampTz time)
{
	put(row, TimestampTzGetDatum(time), time == 0);
}

/*
 * A duration in microseconds, as milliseconds.
 */
static void
put_ms(Row *row, int64 us)
{
	put(row, Float8GetDatum(us / 1000.0), false);
}

static bool
is_duration(SnowflakeCounter counter)
{
	switch (counter)
	{
		case SNOWFLAKE_SEQUENCE_WAIT_US:
		case SNOWFLAKE_CLOCK_WAIT_US:
		case SNOWFLAKE_RESERVE_WAIT_US:
		case SNOWFLAKE_GRANT_WAIT_US:
		case SNOWFLAKE_MAX_BACKWARD_US:
			return true;
		default:
			return false;
	}
}

/*
 * Which IDs this server generates: scheme, datacenter_id, worker_id,
 * worker_id_set.
 */
static void
put_identity(Row *row)
{
	const SnowflakeScheme *scheme = &snowflake_layout.scheme;
	SnowflakeGrant *grant = &snowflake_state->grant;
	bool		no_worker = scheme->width[SNOWFLAKE_WORKER] == 0;
	int			worker_id = grant->worker_id;

	put(row, CStringGetTextDatum(snowflake_scheme), false);
	put(row, Int32GetDatum(snowflake_datacenter_id),
		scheme->width[SNOWFLAKE_DATACENTER] == 0);
	put(row, Int32GetDatum(worker_id), no_worker || worker_id < 0);
	put(row, BoolGetDatum(snowflake_worker_id >= 0 || grant->registry),
		no_worker);
}

/*
 * How far it is: last_timestamp, mark, mark_timestamp, expires_at, lead_ms,
 * follows_clock, ids.
 */
static void
put_position(Row *row)
{
	const SnowflakeLayout *layout = &snowflake_layout;
	int			shift = layout->scheme.shift[SNOWFLAKE_TIMESTAMP];
	SnowflakeGenerator *state = snowflake_state;
	uint64		word;
	uint64		ids = count_ids(&word) - pg_atomic_read_u64(&state->ids_reset);
	uint64		mark = snowflake_mark_read();
	TimestampTz last = 0;
	TimestampTz mark_time = 0;
	TimestampTz ahead;

	if (pg_atomic_read_u64(&state->reserved) > 0 &&
		snowflake_word_tick(layout, word) >= state->first_tick)
		last = snowflake_tick_start(layout, snowflake_word_tick(layout, word));
	if (mark > 0 && (int64) (mark >> shift) <= layout->last_tick + 1)
		mark_time = snowflake_tick_start(layout, (int64) (mark >> shift));

	put_time(row, last);
	/* At the end of time, the mark is greater than any bigint. */
	put(row, Int64GetDatum((int64) Min(mark, (uint64) PG_INT64_MAX)),
		mark == 0);
	put_time(row, mark_time);
	put_time(row, snowflake_tick_start(layout, layout->last_tick + 1));
	/* How far the last ID is ahead, or the next one must be. */
	ahead = last != 0 ? last : mark_time;
	put_ms(row, ahead != 0 ? Max(ahead - GetCurrentTimestamp(), 0) : 0);
	put(row, BoolGetDatum(pg_atomic_read_u32(&state->not_followed) == 0), false);
	put(row, Int64GetDatum((int64) ids), false);
}

/*
 * The registry: granted_until, registry_contact, registry_error,
 * registry_error_since.
 */
static void
put_registry(Row *row)
{
	int64		until = snowflake_granted_until();
	SnowflakeRegistryStatus status;

	snowflake_get_registry_status(&status);
	put_time(row, snowflake_state->grant.registry && until > 0 ?
			 snowflake_tick_start(&snowflake_layout, until) : 0);
	put_time(row, status.contact);
	put(row, CStringGetTextDatum(status.error), status.error_since == 0);
	put_time(row, status.error_since);
}

/*
 * The counters since stats_reset, and that.
 */
static void
put_counters(Row *row)
{
	SnowflakeGenerator *state = snowflake_state;

	for (int i = 0; i < SNOWFLAKE_COUNTERS; i++)
	{
		int64		count = (int64) pg_atomic_read_u64(&state->counters[i]);

		if (is_duration(i))
			put_ms(row, count);
		else
			put(row, Int64GetDatum(count), false);
	}
	put_time(row, (TimestampTz) pg_atomic_read_u64(&state->stats_reset));
}

/*
 * _snowflake_stat() returns record
 */
Datum
snowflake_stat(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	Row			row = {0};

	snowflake_check_loaded();
	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("function returning record called in context that cannot accept type record")));
	if (tupdesc->natts > STAT_NCOLUMNS)
		elog(ERROR, "return type must not have more than %d columns", STAT_NCOLUMNS);
	put_identity(&row);
	put_position(&row);
	put_registry(&row);
	put_counters(&row);
	Assert(row.ncolumns == STAT_NCOLUMNS);

	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
											 row.values, row.nulls));
}

/*
 * snowflake_stat_reset() returns void
 */
Datum
snowflake_stat_reset(PG_FUNCTION_ARGS)
{
	SnowflakeGenerator *state = snowflake_state;
	uint64		word;

	snowflake_check_loaded();
	pg_atomic_write_u64(&state->ids_reset, count_ids(&word));
	for (int i = 0; i < SNOWFLAKE_COUNTERS; i++)
		pg_atomic_write_u64(&state->counters[i], 0);
	pg_atomic_write_u64(&state->stats_reset, GetCurrentTimestamp());
	PG_RETURN_VOID();
}
