/*-------------------------------------------------------------------------
 *
 * backfill.c
 *	  Copies the old columns of a table to the new ones, a batch of pages in
 *	  each transaction.
 *
 * Rows that were inserted or updated since the trigger exists are filled
 * already, and so are those that a batch has filled.  So the pages that the
 * table has when the backfill begins are all that has to be looked at, and an
 * interrupted backfill begins at the first page again.  So it does if somebody
 * has rewritten the table, for example with VACUUM FULL: rows may have moved to
 * pages that were looked at before.  The CHECK constraint is not valid then.
 *
 * Who copies the table by itself, as pg_repack does, logs by a trigger what is
 * changed meanwhile, and so misses what is filled without triggers.  The copy would
 * take the place of a table that is validated.  So neither a backfill nor the
 * validation begins while rows of the table are kept elsewhere by its row type, as
 * such a log does; and who begins later copies rows that are filled.
 *
 * A batch waits for no row: it skips those that are locked, which are filled
 * in a later pass, and what clients move to another partition.  Triggers and
 * foreign keys of the application are not fired (online/silent_update.c),
 * because nothing that they see changes.  It commits asynchronously: what a
 * crash takes away is filled again.
 *
 * The number of pages is chosen so that a batch takes batch_time, and the
 * pause after it so that the work takes work_share of the time.  VACUUM makes
 * the space of the old row versions available to the next batches.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/backfill.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/block.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "tcop/pquery.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/subtransaction.h"
#include "convert/online/backfill.h"
#include "convert/online/locks.h"
#include "convert/online/silent_update.h"
#include "convert/online/steps.h"
#include "convert/online/top_level.h"
#include "convert/online/transaction.h"
#include "shared/clock.h"

/* Pages of the first batch, and of the largest one. */
#define FIRST_PAGES		8
#define MAX_PAGES		4096

/* VACUUM after so many parts of the table, if it has so many pages. */
#define VACUUM_PARTS	10
#define VACUUM_PAGES	100

/* How often progress is reported, and standbys are looked at. */
#define REPORT_US		INT64CONST(5000000)
#define LAG_US			INT64CONST(1000000)

/* Between two passes over rows that were locked. */
#define PASS_MS			200

/* Before it is looked again whether somebody copies the table. */
#define COPIED_MS		1000

/* Pages with rows that were locked. */
typedef struct Range
{
	BlockNumber from;
	BlockNumber to;
} Range;

typedef struct Backfill
{
	SnowflakeOnline *online;
	Oid			relid;
	char	   *table;
	char	   *what;			/* is waited for, in messages */
	char	   *assignments;	/* of the UPDATE */
	char	   *condition;		/* is a row not filled? */
	BlockNumber npages;
	BlockNumber next_vacuum;
	int64		nrows;			/* filled so far */
	bool		found;			/* were there any in this pass? */
	bool		validated;		/* is that proved? */
	double		pages;			/* of the next batch */
	List	   *locked;			/* of Range */
	int64		start;			/* by the steady clock, as the next two */
	int64		told;			/* when progress was reported */
	int64		looked;			/* when standbys were looked at */
} Backfill;

/* A transaction with a lock on the table. */
typedef struct LockedTable
{
	Backfill   *backfill;
	LOCKMODE	mode;
	void		(*work) (Backfill *backfill, SnowflakeConversion *part);
	char	   *obstacle;		/* what has to end before */
} LockedTable;

/*
 * SnowflakeOnlineWork: lock the table, and work on its part of the conversion, if
 * nobody keeps rows of it elsewhere.
 */
static void
work_on_table(SnowflakeOnline *online, void *argument)
{
	LockedTable *locked = argument;
	SnowflakeConversion part;
	List	   *obstacles = NIL;

	snowflake_online_lock(online, list_make1_oid(locked->backfill->relid), locked->mode);
	part = snowflake_convert_part(&online->transaction.conversion, locked->backfill->relid);
	(void) snowflake_convert_ask_obstacles(&part, sql_type_obstacles, &obstacles);
	if (obstacles == NIL)
		locked->work(locked->backfill, &part);
	else
		locked->obstacle = MemoryContextStrdup(online->context,
											   ((SnowflakeFinding *) linitial(obstacles))->line);
}

/*
 * Work in a transaction with a lock on the table, when that is possible.
 */
static void
work_with_lock(Backfill *backfill, LOCKMODE mode,
			   void (*work) (Backfill *backfill, SnowflakeConversion *part))
{
	SnowflakeOnline *online = backfill->online;
	LockedTable locked = {.backfill = backfill,.mode = mode,.work = work};

	while (!snowflake_online_try(online, work_on_table, &locked) || locked.obstacle != NULL)
	{
		if (locked.obstacle != NULL)
			snowflake_online_report_wait(online, backfill->what, locked.obstacle);
		locked.obstacle = NULL;
		snowflake_online_nap_about(COPIED_MS);
	}
	snowflake_online_end_wait(online);
}

/*
 * Find out what to fill, and how much there is.  A table that does not belong to the
 * conversion any more has no columns.
 */
static void
begin_backfill(Backfill *backfill, SnowflakeConversion *part)
{
	MemoryContext context = backfill->online->context;
	const SnowflakeRow *row;
	char	   *assignments;

	row = linitial(snowflake_convert_ask_of(part, backfill->relid, sql_copied_columns));
	assignments = snowflake_convert_text(row, "assignments");
	backfill->assignments = NULL;
	if (assignments == NULL || snowflake_convert_text(row, "pages") == NULL)
		return;
	backfill->assignments = MemoryContextStrdup(context, assignments);
	backfill->condition = MemoryContextStrdup(context, snowflake_convert_text(row, "condition"));
	backfill->npages = (BlockNumber) snowflake_convert_number(row, "pages");
	backfill->next_vacuum = backfill->npages < VACUUM_PAGES ? InvalidBlockNumber :
		backfill->npages / VACUUM_PARTS;
}

/*
 * Run the UPDATE of a partition.  Clients may move its rows to other partitions
 * (by an UPDATE of the partition key), where the trigger fills them.  A row that
 * was moved between the snapshot and the attempt to lock it is an error, also
 * with SKIP LOCKED.  Then the batch has filled nothing, and its pages are looked
 * at again later.
 */
static void
update_partition(SnowflakeSilentUpdate *update)
{
	ErrorData  *error;

	if (!snowflake_convert_do(snowflake_online_update_silently, update, &error) &&
		!snowflake_convert_raised_in(error, ERRCODE_T_R_SERIALIZATION_FAILURE,
									 "heapam_tuple_lock"))
		ReThrowError(error);
}

/*
 * Begin a transaction with a lock on the table alone, when that is possible.
 */
static void
begin_to_fill(Backfill *backfill)
{
	SnowflakeOnline *online = backfill->online;

	snowflake_online_begin();
	while (!ConditionalLockRelationOid(backfill->relid, RowExclusiveLock))
	{
		snowflake_online_report_wait(online, backfill->what,
									 snowflake_online_find_holder(backfill->relid,
																  RowExclusiveLock));
		snowflake_online_commit();
		snowflake_online_nap_about(SNOWFLAKE_RETRY_MS);
		snowflake_online_begin();
	}
	snowflake_online_end_wait(online);
}

/*
 * Fill the rows of some pages that are not locked, in a transaction.  Returns
 * how many were filled.
 */
static int64
fill_pages(Backfill *backfill, const Range *range)
{
	SnowflakeOnline *online = backfill->online;
	MemoryContext old;
	SnowflakeSilentUpdate update = {0};
	char	   *table;
	char	   *condition;

	begin_to_fill(backfill);
	online->transaction.owner = snowflake_lock_table(backfill->relid, RowExclusiveLock);
	snowflake_become_owner(online->transaction.owner, &online->transaction.caller);
	/* There is no other lock, and that to extend the table may take its time. */
	(void) set_config_option("lock_timeout", "0", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);

	table = snowflake_relation_name(backfill->relid);
	condition = psprintf("ctid >= '(%u,0)' AND ctid < '(%u,0)' AND (%s)",
						 range->from, range->to, backfill->condition);
	update.statement = psprintf("UPDATE ONLY %s SET %s WHERE ctid = ANY (ARRAY("
								"SELECT ctid FROM ONLY %s WHERE %s FOR NO KEY UPDATE SKIP LOCKED))",
								table, backfill->assignments, table, condition);
	if (get_rel_relispartition(backfill->relid))
		update_partition(&update);
	else
		(void) snowflake_online_update_silently(&update);
	if (snowflake_convert_run(psprintf("SELECT FROM ONLY %s WHERE %s LIMIT 1",
									   table, condition), NIL) != NIL)
	{
		Range	   *locked;

		old = MemoryContextSwitchTo(online->context);
		locked = palloc_object(Range);
		*locked = *range;
		backfill->locked = lappend(backfill->locked, locked);
		MemoryContextSwitchTo(old);
	}
	snowflake_become_caller(&online->transaction.caller);
	/* It need not be durable at once. */
	(void) set_config_option("synchronous_commit", "off", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
	snowflake_online_commit();
	return update.nrows;
}

/*
 * Report progress every few seconds.
 */
static void
report_progress(Backfill *backfill, BlockNumber page)
{
	int64		now = snowflake_steady_clock();
	double		seconds = (now - backfill->start) / 1e6;
	int			left;

	if (now - backfill->told < REPORT_US)
		return;
	backfill->told = now;
	left = page == 0 ? 0 :
		(int) Min(seconds * (backfill->npages - page) / page, PG_INT32_MAX);
	ereport(NOTICE,
			(errmsg("%s: %d %%, " INT64_FORMAT " rows, %.0f rows/s, %d:%02d left",
					backfill->table,
					(int) (100.0 * page / Max(backfill->npages, 1)),
					backfill->nrows, backfill->nrows / Max(seconds, 0.001),
					left / 60, left % 60)));
}

/*
 * Is no standby or subscriber more than max_lag behind?
 *
 * What has not replied since WAL was sent to it, for example a subscriber in the
 * middle of a large transaction, is behind for at least as long.  What never
 * replays anything, such as pg_receivewal, is not waited for, although its
 * replay_lag increases all the time.
 */
static bool
are_standbys_near(Backfill *backfill)
{
	SnowflakeOnline *online = backfill->online;
	char	   *max_lag = psprintf(INT64_FORMAT, online->options.max_lag_us);
	char	   *behind;

	snowflake_online_begin();
	behind = snowflake_convert_first(snowflake_convert_ask_server(list_make1(max_lag),
																  sql_standby_behind));
	if (behind != NULL)
		snowflake_online_report_wait(online, backfill->what, behind);
	snowflake_online_commit();
	backfill->looked = snowflake_steady_clock();
	return behind == NULL;
}

/*
 * Wait for them, and look at most once a second.
 */
static void
wait_for_standbys(Backfill *backfill)
{
	if (backfill->online->options.max_lag_us == 0 ||
		snowflake_steady_clock() - backfill->looked < LAG_US)
		return;
	while (!are_standbys_near(backfill))
		snowflake_online_nap_about(LAG_US / 1000);
	snowflake_online_end_wait(backfill->online);
}

/*
 * One batch: fill the pages, choose the size of the next one, and pause.
 */
static void
run_batch(Backfill *backfill, const Range *range)
{
	const SnowflakeOnlineOptions *options = &backfill->online->options;
	int64		start = snowflake_steady_clock();
	int64		nrows = fill_pages(backfill, range);
	double		us = Max(snowflake_steady_clock() - start, 100);
	double		factor = options->batch_us / us;

	backfill->nrows += nrows;
	backfill->pages *= Min(2.0, Max(0.3, factor));
	backfill->pages = Min(MAX_PAGES, Max(1, backfill->pages));
	if (nrows > 0)
		snowflake_online_nap(us / 1000 * (1 / options->work_share - 1));
	wait_for_standbys(backfill);
}

/*
 * All pages once.
 */
static void
first_pass(Backfill *backfill)
{
	SnowflakeOnline *online = backfill->online;
	Range		range = {0, 0};

	while (range.to < backfill->npages)
	{
		int64		before = backfill->nrows;

		range.from = range.to;
		range.to += Min((BlockNumber) backfill->pages, backfill->npages - range.from);
		run_batch(backfill, &range);
		report_progress(backfill, range.to);
		if (range.to >= backfill->next_vacuum && backfill->nrows > before)
		{
			/* Truncating the table would lock it. */
			(void) snowflake_online_run_top_level(online->context, online->transaction.owner,
												  psprintf("VACUUM (SKIP_LOCKED, TRUNCATE false) %s",
														   backfill->table), NULL);
			backfill->next_vacuum = range.to + backfill->npages / VACUUM_PARTS;
		}
	}
}

/*
 * Look again at the pages whose rows were locked.  Is nothing left of them?
 */
static bool
fill_locked(Backfill *backfill)
{
	List	   *ranges = backfill->locked;
	ListCell   *cell;

	backfill->locked = NIL;
	foreach(cell, ranges)
	{
		Range	   *range = lfirst(cell);

		for (BlockNumber page = range->from; page < range->to; page++)
		{
			Range		one = {page, page + 1};

			backfill->nrows += fill_pages(backfill, &one);
		}
	}
	list_free_deep(ranges);
	if (backfill->locked == NIL)
		return true;
	snowflake_online_report_wait(backfill->online,
								 psprintf("copy locked rows of table %s", backfill->table),
								 NULL);
	return false;
}

static bool
run_all(void *statements)
{
	snowflake_convert_run_statements(statements);
	return true;
}

/*
 * Have the CHECK constraint prove that all rows are filled, unless there are rows to
 * fill.  If all pages were looked at without finding any, it fails.  A table that was
 * detached meanwhile is left as it is.
 */
static void
validate(Backfill *backfill, SnowflakeConversion *part)
{
	List	   *rows = snowflake_convert_ask_of(part, backfill->relid, sql_validation);
	ErrorData  *error;

	backfill->validated = snowflake_convert_do(run_all, snowflake_convert_texts(rows), &error);
	backfill->online->transaction.only_looked = !backfill->validated;
	if (!backfill->validated &&
		!(backfill->found &&
		  snowflake_convert_raised_in(error, ERRCODE_CHECK_VIOLATION, "ATRewriteTable")))
		ReThrowError(error);
}

/*
 * Fill the new columns, until that is proved.
 */
void
snowflake_online_backfill(SnowflakeOnline *online, const SnowflakeOnlineStep *step)
{
	Backfill	backfill = {
		.online = online,
		.relid = step->relid,
		.table = step->table,
		.what = psprintf("copy the columns of table %s", step->table),
		.pages = FIRST_PAGES,
	};

	backfill.start = backfill.told = snowflake_steady_clock();
	for (;;)
	{
		int64		before = backfill.nrows;

		work_with_lock(&backfill, AccessShareLock, begin_backfill);
		if (backfill.assignments == NULL)
			return;
		wait_for_standbys(&backfill);
		first_pass(&backfill);
		while (!fill_locked(&backfill))
			snowflake_online_nap_about(PASS_MS);
		snowflake_online_end_wait(online);
		backfill.found = backfill.nrows > before;
		work_with_lock(&backfill, ShareUpdateExclusiveLock, validate);
		if (backfill.validated)
			break;
		ereport(NOTICE,
				(errmsg("%s: rows were moved before they were copied; looking at all of them again",
						step->table)));
	}
	ereport(NOTICE,
			(errmsg("%s: copied " INT64_FORMAT " rows in %.1f s", step->table,
					backfill.nrows,
					(snowflake_steady_clock() - backfill.start) / 1e6)));
}

/*
 * How much of a table is filled, by a sample.
 */
int
snowflake_online_backfill_percent(const SnowflakeConversion *conversion,
								  const SnowflakeOnlineStep *step)
{
	List	   *rows = snowflake_convert_ask_of(conversion, step->relid, sql_copied_columns);
	char	   *condition = snowflake_convert_text(linitial(rows), "condition");
	char	   *table = snowflake_relation_name(step->relid);
	char	   *percent;

	percent = snowflake_convert_value(psprintf("SELECT (100 * (1 - avg((%s)::int)))::int FROM ONLY %s TABLESAMPLE SYSTEM"
											   " (least(100, 100 * 200.0 / greatest(1, pg_relation_size(%u) / current_setting('block_size')::int)))",
											   condition, table, step->relid));
	return percent == NULL ? 100 : pg_strtoint32(percent);
}
