/*-------------------------------------------------------------------------
 *
 * administration.c
 *	  Administration of the mark and the clock: snowflake_raise_mark(),
 *	  snowflake_set_mark() and snowflake_accept_clock().
 *
 * Raising the mark causes no harm except a lead.  Lowering it can: IDs between
 * the new and the old mark were handed out before, and may be stored.  So
 * snowflake_raise_mark() never lowers it, and snowflake_set_mark() requires the
 * tables to check, which must not have an ID at or above the new mark, or the
 * caller's confirmation that there is none.
 *
 * A check is worth nothing if a row can be added after it.  So all tables and
 * their partitions are locked first, and read with a snapshot that is newer
 * than the locks, also where the transaction has an older one.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/server/administration.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "base/id_time.h"
#include "generator/durable.h"
#include "generator/grant.h"
#include "generator/loaded.h"
#include "generator/reserve.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "shared/clock.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_raise_mark);
PG_FUNCTION_INFO_V1(snowflake_set_mark);
PG_FUNCTION_INFO_V1(snowflake_accept_clock);

/*
 * The columns of a table ($1) that may have snowflake IDs, if their type is
 * bigint or a domain over it: those whose default calls snowflake_nextval()
 * ($2) or snowflake_id() ($3), and those of the primary key.
 */
static const char column_query[] =
"SELECT quote_ident(a.attname), a.atttypid"
" FROM pg_attribute a"
" WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped"
" AND (EXISTS (SELECT FROM pg_index i"
"              WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey))"
"      OR EXISTS (SELECT FROM pg_attrdef f JOIN pg_depend d"
"                 ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid"
"                 AND d.refclassid = 'pg_proc'::regclass AND d.refobjid IN ($2, $3)"
"                 WHERE f.adrelid = a.attrelid AND f.adnum = a.attnum))"
" ORDER BY a.attnum";

/*
 * Names of the columns of a table that may have snowflake IDs.
 */
static List *
id_columns(Oid relid, Oid namespace)
{
	Oid			types[] = {OIDOID, OIDOID, OIDOID};
	Datum		values[lengthof(types)];
	List	   *columns = NIL;

	values[0] = ObjectIdGetDatum(relid);
	values[1] = ObjectIdGetDatum(snowflake_find_function(namespace,
														 "snowflake_nextval"));
	values[2] = ObjectIdGetDatum(snowflake_find_function(namespace,
														 "snowflake_id"));
	if (SPI_execute_with_args(column_query, lengthof(types), types, values,
							  NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", column_query);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	tupdesc = SPI_tuptable->tupdesc;
		bool		isnull;
		Oid			type = DatumGetObjectId(SPI_getbinval(row, tupdesc, 2,
														  &isnull));

		if (getBaseType(type) == INT8OID)
			columns = lappend(columns, SPI_getvalue(row, tupdesc, 1));
	}
	return columns;
}

/*
 * Fail if a column has a value at or above the new mark.
 */
static void
check_column(const char *table, const char *column, int64 mark)
{
	char	   *query = psprintf("SELECT max(%s) FROM %s", column, table);
	Datum		greatest;
	bool		isnull;

	if (SPI_execute(query, true, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "query failed: %s", query);
	greatest = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	if (!isnull && DatumGetInt64(greatest) >= mark)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("column %s of table %s has IDs at or above the new mark",
						column, table),
				 errdetail("The greatest ID is " INT64_FORMAT ". It could be handed out again.",
						   DatumGetInt64(greatest)),
				 errhint("Set the mark above this ID, or assign other IDs to such rows first.")));
}

/*
 * Fail if a table has an ID at or above the new mark.  The queries see what
 * the active snapshot does.
 */
static void
check_table(Oid relid, Oid namespace, int64 mark)
{
	char	   *name = snowflake_relation_name(relid);
	SnowflakeCaller caller;
	List	   *columns;
	ListCell   *column;

	snowflake_become_owner(snowflake_table_owner(relid), &caller);
	SPI_connect();
	columns = id_columns(relid, namespace);
	if (columns == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("table %s has no column of snowflake IDs", name),
				 errdetail("Such a column is of type bigint, and is in the primary key or has the default snowflake_nextval() or snowflake_id().")));
	foreach(column, columns)
		check_column(name, lfirst(column), mark);
	SPI_finish();
	snowflake_become_caller(&caller);
}

/*
 * Lock tables, and the partitions or children of each, so that nobody can add
 * an ID until the end of the transaction.  Tables are locked in the order of
 * their OIDs, each before its partitions, as other commands do.
 */
static List *
lock_tables(ArrayType *array)
{
	Datum	   *relids;
	int			n;
	List	   *tables = NIL;
	ListCell   *cell;

	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array of tables must not contain nulls"),
				 errdetail("A null is not checked for IDs above the new mark.")));
	deconstruct_array(array, REGCLASSOID, sizeof(Oid), true, TYPALIGN_INT,
					  &relids, NULL, &n);
	for (int i = 0; i < n; i++)
		tables = lappend_oid(tables, DatumGetObjectId(relids[i]));
	list_sort(tables, list_oid_cmp);
	foreach(cell, tables)
	{
		(void) snowflake_lock_table(lfirst_oid(cell), ShareLock);
		(void) find_all_inheritors(lfirst_oid(cell), ShareLock, NULL);
	}
	return tables;
}

/*
 * Fail if one of the tables has an ID at or above the new mark.
 */
static void
check_tables(const List *tables, Oid namespace, int64 mark)
{
	ListCell   *cell;

	/* Changes of this command count as well. */
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	foreach(cell, tables)
		check_table(lfirst_oid(cell), namespace, mark);
	PopActiveSnapshot();
}

static TimestampTz
mark_time(int64 mark)
{
	return snowflake_mark_time(&snowflake_layout, mark);
}

/*
 * Is a mark so far ahead of the clock that calls would fail after a start?
 */
static bool
is_far_ahead(int64 mark)
{
	return mark_time(mark) - GetCurrentTimestamp() >
		(int64) snowflake_max_clock_forward * USECS_PER_SEC;
}

/*
 * Can the word be lifted to a mark?  Then IDs have been generated since the
 * start, or since the mark was lowered, so that its time and pace are known.  A
 * call that would fail because the clock is behind waits after a start.  The
 * reserve lock is held.
 */
static bool
can_lift_word(int64 mark)
{
	SnowflakeGenerator *state = snowflake_state;
	uint64		word = pg_atomic_read_u64(&state->word);

	if (pg_atomic_read_u64(&state->reserved) == 0 ||
		snowflake_word_tick(&snowflake_layout, word) < state->first_tick)
		return false;
	return snowflake_clock_backward == SNOWFLAKE_CLOCK_CONTINUE ||
		mark_time(mark) - GetCurrentTimestamp() <= (int64) snowflake_max_clock_backward * 1000 ||
		is_far_ahead(mark);
}

/*
 * Exhaust the word up to a durable mark, so that no ID is generated below it.  IDs
 * continue at their pace, so when the clock gets there, but after reserve_time
 * at the latest.  Whether they follow the clock does not change.  The reserve
 * lock is held.
 */
static void
lift_word(int64 mark)
{
	SnowflakeGenerator *state = snowflake_state;
	int64		first = snowflake_mark_tick(&snowflake_layout, mark);
	int64		latest = snowflake_steady_clock() +
		(snowflake_reserve_ticks() - 1) * snowflake_layout.tick_us;
	uint64		word;
	int64		skipped;

	LWLockAcquire(state->lock, LW_EXCLUSIVE);
	word = pg_atomic_read_u64(&state->word);
	if (snowflake_word_next_tick(&snowflake_layout, word) < first)
	{
		skipped = (first - 1 - snowflake_word_tick(&snowflake_layout, word)) *
			snowflake_layout.tick_us;
		snowflake_exhaust_word(first - 1,
							   Min((int64) pg_atomic_read_u64(&state->entered) + skipped,
								   latest));
	}
	LWLockRelease(state->lock);
}

/*
 * Does the mark say what time it was?  Not if there is none, or it was reset.  The
 * reserve lock is held.
 */
static bool
mark_is_time(uint64 mark)
{
	SnowflakeGenerator *state = snowflake_state;

	return pg_atomic_read_u64(&state->reserved) != 0 ? state->has_mark : mark > 0;
}

/*
 * Set the mark to any value.  Lower it only if allowed; otherwise return false
 * and change nothing.  If it is lower or far ahead, or the word cannot be lifted,
 * continue from there as after a start.  The new mark says as much about the time
 * as the one before, unless this is one that may be lowered.
 */
static bool
set_mark(int64 mark, bool may_lower)
{
	SnowflakeGenerator *state = snowflake_state;
	uint64		before;
	bool		lowers;

	snowflake_check_primary("set the mark of snowflake IDs");
	snowflake_lock_reserve();
	before = snowflake_mark_read();
	lowers = (uint64) mark < before;
	if (lowers && !may_lower)
	{
		snowflake_unlock_reserve();
		return false;
	}

	if (lowers)
	{
		snowflake_forget_reserve();
		LWLockAcquire(state->lock, LW_EXCLUSIVE);
		snowflake_reset_word();
		LWLockRelease(state->lock);
		snowflake_drop_grant();
		(void) snowflake_mark_set(mark);
		(void) snowflake_recover_mark(true);
	}
	else if (can_lift_word(mark) && !is_far_ahead(mark))
	{
		(void) snowflake_mark_raise(mark);
		lift_word(mark);
	}
	else
	{
		bool		was_time = mark_is_time(before);

		snowflake_forget_reserve();
		(void) snowflake_mark_raise(mark);
		(void) snowflake_recover_mark(may_lower || !was_time);
	}
	snowflake_unlock_reserve();

	ereport(lowers ? WARNING : LOG,
			(errcode(lowers ? ERRCODE_WARNING : ERRCODE_SUCCESSFUL_COMPLETION),
			 errmsg("mark of snowflake IDs was set from " UINT64_FORMAT " to " INT64_FORMAT,
					before, mark),
			 lowers ?
			 errdetail("IDs at or above the new mark that were handed out before can be handed out again.") : 0));
	return true;
}

/*
 * Generate no ID below a mark that is below the durable one: part of what is
 * reserved may be, even if nothing of it has been used.  Return false if the
 * durable one is lower.
 */
static bool
skip_to_mark(int64 mark)
{
	SnowflakeGenerator *state = snowflake_state;
	uint64		word;
	bool		durable;

	snowflake_lock_reserve();
	durable = snowflake_mark_read() >= (uint64) mark;
	word = pg_atomic_read_u64(&state->word);
	if (!durable ||
		snowflake_word_next_tick(&snowflake_layout, word) >=
		snowflake_mark_tick(&snowflake_layout, mark))
		 /* nothing to skip */ ;
	else if (can_lift_word(mark))
		lift_word(mark);
	else if (pg_atomic_read_u64(&state->reserved) != 0)
	{
		snowflake_forget_reserve();
		(void) snowflake_recover_mark(!state->has_mark);
	}
	snowflake_unlock_reserve();
	return durable;
}

/*
 * Fail if no ID could be generated above a new mark, because it is too far
 * ahead of the clock: a number with a wrong digit, or of another scheme.
 */
static void
check_mark_time(int64 mark)
{
	if ((uint64) mark > snowflake_mark_read() && is_far_ahead(mark))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("new mark of snowflake IDs is too far ahead of the clock"),
				 errdetail("The time of the new mark is %s in this scheme, and the clock reads %s. \"snowflake.max_clock_forward\" is %d s.",
						   pstrdup(timestamptz_to_str(mark_time(mark))),
						   pstrdup(timestamptz_to_str(GetCurrentTimestamp())),
						   snowflake_max_clock_forward),
				 errhint("Check the number, the server's clock, and that \"snowflake.scheme\" is that of the server that the mark was copied from.")));
}

/*
 * snowflake_raise_mark(mark bigint) returns bigint
 */
Datum
snowflake_raise_mark(PG_FUNCTION_ARGS)
{
	int64		mark = PG_GETARG_INT64(0);
	int			sleeps = 0;

	snowflake_check_primary("set the mark of snowflake IDs");
	(void) snowflake_check_id_fits(snowflake_server_scheme(), mark, NULL);
	check_mark_time(mark);

	/* If it is lower than the durable one now, then that is meanwhile. */
	while (!skip_to_mark(mark))
		(void) set_mark(mark, false);

	/* If a standby is promoted now, its IDs have to be above the mark, too. */
	snowflake_wait_for_standbys(GetFlushRecPtr(NULL), &sleeps);

	/* At the end of time, the mark is greater than any bigint. */
	PG_RETURN_INT64((int64) Min(snowflake_mark_read(),
								(uint64) PG_INT64_MAX));
}

/*
 * snowflake_set_mark(mark bigint, tables regclass[], force boolean) returns void
 */
Datum
snowflake_set_mark(PG_FUNCTION_ARGS)
{
	int64		mark = PG_GETARG_INT64(0);
	bool		force = PG_GETARG_BOOL(2);
	List	   *tables;

	(void) snowflake_check_id_fits(snowflake_server_scheme(), mark, NULL);
	snowflake_check_primary("set the mark of snowflake IDs");
	if (!force)
		check_mark_time(mark);
	tables = lock_tables(PG_GETARG_ARRAYTYPE_P(1));
	if (tables != NIL)
		check_tables(tables, get_func_namespace(fcinfo->flinfo->fn_oid), mark);
	if (!set_mark(mark, tables != NIL || force))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot lower the mark of snowflake IDs without checking tables for IDs above it"),
				 errdetail("The mark is " UINT64_FORMAT ", which is above " INT64_FORMAT ".",
						   snowflake_mark_read(), mark),
				 errhint("Use snowflake_raise_mark() for a mark that was copied from another server. To lower the mark, specify all tables that have IDs of this server.")));
	PG_RETURN_VOID();
}

/*
 * Fail because the registry has not granted IDs of a clock's time.
 */
snowflake_noreturn static void
fail_not_granted(TimestampTz now)
{
	const char *clock_time = pstrdup(timestamptz_to_str(now));
	int64		until = snowflake_granted_until();

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("cannot accept a clock that is ahead of what the registry has granted"),
			 until == 0 ?
			 errdetail("The clock reads %s, and no worker ID is granted to this server.",
					   clock_time) :
			 errdetail("The clock reads %s, and the grant ends at %s.",
					   clock_time,
					   timestamptz_to_str(snowflake_tick_start(&snowflake_layout, until))),
			 errhint("Check the clocks of the server and the registry. If both are right, the registry grants IDs of this time.")));
}

/*
 * snowflake_accept_clock() returns timestamptz
 *
 * Accept the clock although it is far ahead of the mark, or of the time
 * elapsed since the last ID: raise the mark to it, and continue from there.  Any
 * other clock needs nothing, and to continue as after a start would do harm: IDs
 * that are ahead of the clock would be refused, and others wait.  Nor is the mark
 * raised past the end of a grant: if the clock were corrected then, no registry
 * would grant anything until it gets there.
 */
Datum
snowflake_accept_clock(PG_FUNCTION_ARGS)
{
	TimestampTz now;
	int64		tick;
	SnowflakeRules rules = snowflake_rules();
	SnowflakeSnapshot snapshot;
	SnowflakeStep step;
	uint64		before;
	bool		refused;
	bool		granted;

	snowflake_check_primary("accept the clock");
	now = GetCurrentTimestamp();
	tick = snowflake_time_tick(&snowflake_layout, now);
	if (now < snowflake_tick_start(&snowflake_layout, snowflake_layout.base_tick) ||
		tick > snowflake_layout.last_tick)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("clock is out of range for the snowflake scheme"),
				 errdetail("The clock reads %s.", timestamptz_to_str(now))));

	snowflake_recover();
	snowflake_lock_reserve();
	before = snowflake_mark_read();
	snowflake_take_snapshot(&snapshot);
	snowflake_plan(&snowflake_layout, &rules, &snapshot, &step);
	refused = !step.followed || step.plan == SNOWFLAKE_CLOCK_AHEAD;
	granted = !snowflake_state->grant.registry || tick < snowflake_granted_until();
	if (refused && granted)
	{
		snowflake_forget_reserve();
		(void) snowflake_mark_raise(snowflake_tick_mark(&snowflake_layout, tick));
		(void) snowflake_recover_mark(false);
	}
	snowflake_unlock_reserve();

	if (refused && !granted)
		fail_not_granted(now);
	if (refused)
		ereport(LOG,
				(errmsg("clock was accepted by snowflake_accept_clock()"),
				 errdetail("The clock reads %s, and the mark of snowflake IDs was " UINT64_FORMAT ".",
						   timestamptz_to_str(now), before)));
	else
		ereport(NOTICE,
				(errmsg("clock is not too far ahead of snowflake IDs"),
				 errdetail("The clock reads %s.", timestamptz_to_str(now))));
	PG_RETURN_TIMESTAMPTZ(now);
}
