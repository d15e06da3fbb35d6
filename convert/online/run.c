/*-------------------------------------------------------------------------
 *
 * run.c
 *	  Runs the steps that are not done, each in a transaction of its own, or as a
 *	  statement outside of one.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/run.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/subtransaction.h"
#include "convert/direct/conversion.h"
#include "convert/online/backfill.h"
#include "convert/online/locks.h"
#include "convert/online/run.h"
#include "convert/online/sessions.h"
#include "convert/online/steps.h"
#include "convert/online/swap.h"
#include "convert/online/top_level.h"
#include "convert/online/transaction.h"
#include "shared/clock.h"
#include "shared/table_owner.h"

/*
 * Of the time of a call, at most the tenth part goes to reading which steps are
 * done, which takes longer the more partitions there are.
 */
#define READ_SHARE	10

/* Steps of a call, across transactions, and the present one. */
typedef struct Progress
{
	SnowflakeOnline *online;
	List	   *analyzed;		/* tables */
	MemoryContext context;		/* of the list of them */
	List	   *pending;		/* steps that were not done when they were
								 * read */
	int			next;			/* of these */
	int64		until;			/* by the steady clock: when they are read
								 * again */
	SnowflakeOnlineStep *step;	/* the next one, NULL if there is none */
	bool		done;
	char	   *statement;		/* to run outside of a transaction */
	int64		start;			/* when the step was begun first */
	Oid			defined;		/* an object, whose statement is known */
	char	   *definition;
	char	   *definitions;	/* of its table, when that was found */
} Progress;

/*
 * Does a foreign key of a partitioned table need a stronger lock?  It takes over
 * those of the partitions, and removes triggers of the other table, for which the
 * server locks that with ACCESS EXCLUSIVE.  If that were requested only there, a
 * client that waits for us and has the table open would be a deadlock.
 */
bool
snowflake_online_needs_access_exclusive(const SnowflakeOnlineStep *step)
{
	return step->kind == SNOWFLAKE_STEP_FOREIGN_KEY &&
		get_rel_relkind(step->relid) == RELKIND_PARTITIONED_TABLE;
}

/* SnowflakeOnlineWork: the statement of a step. */
static void
execute_step(SnowflakeOnline *online, void *argument)
{
	const SnowflakeOnlineStep *step = argument;

	(void) snowflake_convert_run(step->statement, NIL);
}

/*
 * A step that was read before, as it is now, or NULL if it is not to be done any more.
 */
static const SnowflakeOnlineStep *
read_step(const SnowflakeConversion *conversion, const SnowflakeOnlineStep *step)
{
	ListCell   *cell;

	foreach(cell, snowflake_online_list_steps(conversion))
	{
		const SnowflakeOnlineStep *now = lfirst(cell);

		if (now->kind == step->kind && now->phase == step->phase &&
			now->relid == step->relid && now->object == step->object)
			return now->done ? NULL : now;
	}
	return NULL;
}

/*
 * SnowflakeOnlineWork: is the step still as it was read?  A partition that was detached
 * meanwhile has the columns, without the trigger.  The table is locked against changes,
 * but not against clients.
 */
static void
check_table(SnowflakeOnline *online, void *argument)
{
	const SnowflakeOnlineStep *step = argument;
	SnowflakeConversion *conversion = &online->transaction.conversion;
	const SnowflakeOnlineStep *now;
	List	   *obstacles = NIL;

	snowflake_convert_find_targets(conversion);
	now = read_step(conversion, step);
	if (now == NULL || strcmp(now->statement, step->statement) != 0)
		snowflake_convert_give_way("a table was changed");
	(void) snowflake_convert_ask_obstacles(conversion, sql_online_obstacles, &obstacles);
	snowflake_convert_report_obstacles(conversion, obstacles);
}

/*
 * SnowflakeOnlineWork: create new columns, with the privileges that the old ones have.
 * Rows that are stored elsewhere, by the row type, would not have them.
 */
static void
prepare_table(SnowflakeOnline *online, void *argument)
{
	const SnowflakeOnlineStep *step = argument;
	const SnowflakeConversion *conversion = &online->transaction.conversion;
	List	   *obstacles = NIL;

	(void) snowflake_convert_ask_obstacles(conversion, sql_type_obstacles, &obstacles);
	snowflake_convert_report_obstacles(conversion, obstacles);
	execute_step(online, argument);
	if (snowflake_convert_ask_of(conversion, step->relid, sql_other_privileges) != NIL)
		snowflake_convert_give_way("privileges were changed");
}

/*
 * SnowflakeOnlineWork: create a foreign key.  All partitions must have the one that is to
 * become that of their table: one that is new would be read under the lock.
 */
static void
create_foreign_key(SnowflakeOnline *online, void *argument)
{
	const SnowflakeOnlineStep *step = argument;
	SnowflakeConversion *conversion = &online->transaction.conversion;

	if (get_rel_relkind(step->relid) == RELKIND_PARTITIONED_TABLE)
	{
		snowflake_convert_find_targets(conversion);
		if (snowflake_convert_ask_of(conversion, step->object, sql_partitions_without) != NIL)
			snowflake_convert_give_way("a partition was added");
	}
	execute_step(online, argument);
}

/*
 * What find_default() and set_default() do, as statements.  All arguments have types, as
 * those of each statement that is shown or executed, because another role might have
 * created a function for texts, which would be called instead.
 */
char *
snowflake_online_default_statement(const SnowflakeOnline *online)
{
	const SnowflakeKey *key = linitial(online->transaction.conversion.keys);
	char	   *drop = snowflake_online_drop_sessions(online);
	StringInfoData statement;

	initStringInfo(&statement);
	if (drop != NULL)
		appendStringInfo(&statement, "%s;\n", drop);
	appendStringInfo(&statement, "SELECT %s.snowflake_convert(%s::regclass, %s::name",
					 quote_identifier(get_namespace_name(online->namespace)),
					 quote_literal_cstr(key->table),
					 quote_literal_cstr(key->column));
	if (OidIsValid(online->generator))
		appendStringInfo(&statement, ", generator => '%u'::regprocedure", online->generator);
	if (online->blank.kind != SNOWFLAKE_CONVERT_GENERATOR)
		appendStringInfo(&statement, ", kind => %s::text",
						 quote_literal_cstr(snowflake_convert_kind_name(online->blank.kind)));
	appendStringInfoChar(&statement, ')');
	return statement.data;
}

/* A default, once its statements are known. */
typedef struct DefaultWork
{
	char	   *drop;			/* that of the list of sessions, or NULL */
	List	   *statements;
} DefaultWork;

/*
 * SnowflakeOnlineWork: find the statements that set the default, if there are no
 * obstacles, and no column is left that would be rewritten.  The table is locked
 * against changes until they are executed, but not against clients.
 */
static void
find_default(SnowflakeOnline *online, void *argument)
{
	DefaultWork *work = argument;
	SnowflakeConversion *conversion = &online->transaction.conversion;
	List	   *findings = NIL;

	snowflake_convert_find_targets(conversion);
	if (snowflake_convert_ask(conversion, sql_narrow_targets) != NIL)
		snowflake_convert_give_way("a foreign key was added");
	if (snowflake_convert_ask(conversion, sql_new_sequences) != NIL)
		snowflake_convert_give_way("a sequence was added");
	conversion->dry_run = false;
	conversion->lock = ShareUpdateExclusiveLock;
	if (!snowflake_convert_prepare(conversion, online->transaction.owner))
		snowflake_convert_give_way("a column became an integer");
	(void) snowflake_convert_list_obstacles(conversion, &findings);
	snowflake_convert_report_obstacles(conversion, findings);
	work->drop = snowflake_online_drop_sessions(online);
	work->statements = snowflake_convert_find_statements(conversion);
}

/*
 * The lock on the table of a key that they need: none that is stronger if only sequences
 * get another kind.
 */
static LOCKMODE
default_lock(const SnowflakeOnline *online, const DefaultWork *work)
{
	return work->drop == NULL && online->transaction.conversion.altered == NIL ?
		ShareUpdateExclusiveLock : AccessExclusiveLock;
}

/*
 * SnowflakeOnlineWork: execute them.
 */
static void
set_default(SnowflakeOnline *online, void *argument)
{
	const DefaultWork *work = argument;

	if (work->drop != NULL)
		(void) snowflake_convert_run(work->drop, NIL);
	snowflake_convert_execute(&online->transaction.conversion, work->statements);
}

/*
 * The statement of a step.  That which creates an object again is found in a
 * transaction of its own, which is rolled back; in that, the result is NULL.
 */
static const char *
find_statement(SnowflakeOnline *online, Progress *progress)
{
	const SnowflakeOnlineStep *step = progress->step;
	char	   *definitions;
	char	   *statement;

	if (step->statement != NULL)
		return step->statement;
	definitions = snowflake_online_definitions(list_make1_oid(step->relid));
	if (progress->defined == step->object && strcmp(progress->definitions, definitions) == 0)
		return progress->definition;
	statement = snowflake_online_step_statement(&online->transaction.conversion, step);
	progress->defined = step->object;
	progress->definition = MemoryContextStrdup(online->context, statement);
	progress->definitions = MemoryContextStrdup(online->context, definitions);
	online->transaction.only_looked = true;
	online->transaction.prepared = true;
	return NULL;
}

/* SnowflakeOnlineWork: that statement. */
static void
execute_statement(SnowflakeOnline *online, void *argument)
{
	const char *statement = find_statement(online, argument);

	if (statement == NULL)
		snowflake_convert_give_way("an index, constraint, or statistics object was changed");
	(void) snowflake_convert_run(statement, NIL);
}

/*
 * A step that locks tables.  Returns false if it has to be tried again.
 */
static bool
run_locking(SnowflakeOnline *online, Progress *progress)
{
	SnowflakeOnlineStep *step = progress->step;
	List	   *relids = list_make1_oid(step->relid);

	switch (step->kind)
	{
		case SNOWFLAKE_STEP_SWAP:
			return snowflake_online_swap_table(online, step);
		case SNOWFLAKE_STEP_DEFAULT:
			{
				DefaultWork work = {0};
				char	   *sessions = snowflake_online_find_old_sessions(online);

				if (sessions != NULL)
				{
					snowflake_online_report_wait(online, "set the default", sessions);
					return false;
				}
				/* not with the lock, because it may take long */
				snowflake_convert_find_sequence_names(&online->transaction.conversion);
				return snowflake_online_with_locks(online, relids, ShareUpdateExclusiveLock,
												   find_default, &work) &&
					snowflake_online_with_locks(online, relids, default_lock(online, &work),
												set_default, &work);
			}
		case SNOWFLAKE_STEP_FOREIGN_KEY:
			if (step->other != step->relid)
				relids = lcons_oid(step->other, relids);
			return snowflake_online_with_locks(online, relids,
											   snowflake_online_needs_access_exclusive(step) ?
											   AccessExclusiveLock : ShareRowExclusiveLock,
											   create_foreign_key, step);
		case SNOWFLAKE_STEP_PREPARE:
			return snowflake_online_with_locks(online, relids, ShareUpdateExclusiveLock,
											   check_table, step) &&
				snowflake_online_with_locks(online, relids, AccessExclusiveLock,
											prepare_table, step);
		default:
			return find_statement(online, progress) != NULL &&
				snowflake_online_with_locks(online, relids, AccessExclusiveLock,
											execute_statement, progress);
	}
}

/*
 * Lock the table of an index for the session, if the statement is known.
 *
 * CREATE INDEX CONCURRENTLY waits for that lock with a snapshot, for which another
 * one, or REINDEX, of the table would wait in progress.  So it has it before.
 */
static void
prepare_index(SnowflakeOnline *online, Progress *progress)
{
	const SnowflakeOnlineStep *step = progress->step;
	LockRelId	relation = {.relId = step->relid,.dbId = MyDatabaseId};
	const char *statement;

	snowflake_online_lock(online, list_make1_oid(step->relid), ShareUpdateExclusiveLock);
	statement = find_statement(online, progress);
	if (statement == NULL)
		return;
	progress->statement = MemoryContextStrdup(online->context, statement);
	snowflake_online_report_transactions(online,
										 psprintf("create index %s", step->new_name));
	LockRelationIdForSession(&relation, ShareUpdateExclusiveLock);
}

/*
 * Run the statement, outside of a transaction.  Returns false if that has to be
 * tried again, and then the lock is released.
 */
static bool
create_index(SnowflakeOnline *online, const SnowflakeOnlineStep *step, const char *statement)
{
	LockRelId	relation = {.relId = step->relid,.dbId = MyDatabaseId};

	if (!snowflake_online_run_top_level(online->context, online->transaction.owner,
										statement, step->tablespace))
	{
		snowflake_online_report_wait(online, psprintf("create index %s", step->new_name),
									 "Another session waits for the lock on its table, and must not fail.");
		return false;
	}
	UnlockRelationIdForSession(&relation, ShareUpdateExclusiveLock);
	return true;
}

/*
 * Copy a step to the current context.
 */
static SnowflakeOnlineStep *
copy_step(const SnowflakeOnlineStep *step)
{
	SnowflakeOnlineStep *result = palloc_object(SnowflakeOnlineStep);

#define COPY(field) \
	(result->field = step->field == NULL ? NULL : pstrdup(step->field))

	*result = *step;
	COPY(table);
	COPY(new_name);
	COPY(tablespace);
	COPY(statement);
	return result;
}

/*
 * Read which steps of the next phase are not done.
 */
static void
read_pending(Progress *progress)
{
	int64		start = snowflake_steady_clock();
	List	   *steps = snowflake_online_list_steps(&progress->online->transaction.conversion);
	MemoryContext old;
	ListCell   *cell;

	MemoryContextReset(progress->context);
	old = MemoryContextSwitchTo(progress->context);
	progress->pending = NIL;
	progress->next = 0;
	foreach(cell, steps)
	{
		const SnowflakeOnlineStep *step = lfirst(cell);

		if (step->done ||
			(step->kind == SNOWFLAKE_STEP_ANALYZE &&
			 list_member_oid(progress->analyzed, step->relid)))
			continue;
		if (progress->pending != NIL &&
			step->phase != ((SnowflakeOnlineStep *) linitial(progress->pending))->phase)
			break;
		progress->pending = lappend(progress->pending, copy_step(step));
	}
	MemoryContextSwitchTo(old);
	progress->until = start + (READ_SHARE + 1) * (snowflake_steady_clock() - start);
}

/*
 * Say what was done.
 */
static void
report_step(Progress *progress, const SnowflakeOnlineStep *step)
{
	int64		now = snowflake_steady_clock();
	StringInfoData message;

	if (step->kind == SNOWFLAKE_STEP_ANALYZE)
	{
		MemoryContext old = MemoryContextSwitchTo(progress->online->context);

		progress->analyzed = lappend_oid(progress->analyzed, step->relid);
		MemoryContextSwitchTo(old);
	}
	initStringInfo(&message);
	appendStringInfo(&message, "%s: phase \"%s\"", step->table,
					 snowflake_online_phase_name(step->phase));
	if (step->new_name != NULL)
		appendStringInfo(&message, ", %s", step->new_name);
	appendStringInfo(&message, ": %.3f s", (now - progress->start) / 1e6);
	if (progress->online->transaction.locked_since != 0)
		appendStringInfo(&message, ", %.3f s with the lock",
						 (now - progress->online->transaction.locked_since) / 1e6);
	ereport(NOTICE, (errmsg_internal("%s", message.data)));
	pfree(message.data);
}

/*
 * Fail if tables of other owners came to the conversion after the obstacles were
 * listed: who may reference the key can create a foreign key at any time, and
 * the steps run as the owner of the key.
 */
static void
check_owners(const SnowflakeOnline *online, const SnowflakeConversion *conversion)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	List	   *rows;

	rows = snowflake_convert_ask_of(conversion, online->transaction.owner, sql_table_of_other);
	if (rows != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("table %s was changed during the conversion", key->table),
				 errdetail("Table %s is linked to it by a foreign key, and belongs to another role.",
						   snowflake_convert_first(rows)),
				 errhint("Drop the foreign key, or change the owner, and call snowflake_convert_online() again.")));
}

/*
 * The next step of the list, if that still counts, and the step is still to be
 * done.
 */
static const SnowflakeOnlineStep *
listed_step(Progress *progress)
{
	const SnowflakeOnline *online = progress->online;
	const SnowflakeOnlineStep *step;
	SnowflakeConversion part;

	if (progress->next == list_length(progress->pending) ||
		snowflake_steady_clock() >= progress->until)
		return NULL;
	step = list_nth(progress->pending, progress->next++);
	if (step->kind != SNOWFLAKE_STEP_BACKFILL && step->phase != SNOWFLAKE_PHASE_INDEXES)
		return NULL;
	part = snowflake_convert_part(&online->transaction.conversion, step->relid);
	check_owners(online, &part);
	return read_step(&part, step);
}

/*
 * The first step that is not done, or NULL.
 *
 * The backfills and indexes of partitions are many, and each is about one table.
 * So the list of them is used for a while, and what has changed in between is known
 * when it is read again, at the latest in the next phase.
 */
static SnowflakeOnlineStep *
next_step(Progress *progress)
{
	const SnowflakeOnlineStep *step = listed_step(progress);
	SnowflakeOnlineStep *kept;
	MemoryContext old;

	if (step == NULL)
	{
		check_owners(progress->online, &progress->online->transaction.conversion);
		read_pending(progress);
		if (progress->pending == NIL)
			return NULL;
		step = list_nth(progress->pending, progress->next++);
	}
	old = MemoryContextSwitchTo(progress->context);
	kept = copy_step(step);
	MemoryContextSwitchTo(old);
	return kept;
}

/*
 * SnowflakeOnlineWork: run the next step, as far as it is one transaction.
 */
static void
take_turn(SnowflakeOnline *online, void *argument)
{
	Progress   *progress = argument;
	SnowflakeOnlineStep *step = next_step(progress);
	const char *statement;

	progress->step = step;
	progress->done = false;
	progress->statement = NULL;
	if (step == NULL || step->phase > online->options.until)
		return;
	if (progress->start == 0)
		progress->start = snowflake_steady_clock();
	switch (step->kind)
	{
		case SNOWFLAKE_STEP_BACKFILL:
			break;
		case SNOWFLAKE_STEP_INDEX:
			prepare_index(online, progress);
			break;
		case SNOWFLAKE_STEP_STATISTICS:
		case SNOWFLAKE_STEP_ANALYZE:
		case SNOWFLAKE_STEP_VALIDATE:
			snowflake_online_lock(online, list_make1_oid(step->relid), ShareUpdateExclusiveLock);
			statement = find_statement(online, progress);
			if (statement != NULL)
				(void) snowflake_convert_run(statement, NIL);
			progress->done = statement != NULL;
			break;
		default:
			progress->done = run_locking(online, progress);
	}
}

/*
 * Run the rest of the step, which has transactions of its own.
 */
static void
finish_turn(SnowflakeOnline *online, Progress *progress)
{
	if (progress->step->kind == SNOWFLAKE_STEP_BACKFILL)
	{
		snowflake_online_backfill(online, progress->step);
		progress->done = true;
	}
	else if (progress->statement != NULL)
	{
		progress->done = create_index(online, progress->step, progress->statement);
		pfree(progress->statement);
	}
}

/*
 * Run the steps that are not done.
 */
void
snowflake_online_run_steps(SnowflakeOnline *online)
{
	Progress	progress = {.online = online};

	progress.context = AllocSetContextCreate(online->context, "steps of a conversion",
											 ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		SnowflakeOnlineStep *step;
		bool		has_begun = snowflake_online_try(online, take_turn, &progress);

		step = progress.step;
		if (has_begun && step == NULL)
			return;
		if (has_begun && online->transaction.prepared)
		{
			/* The same step is the next one again. */
			progress.next--;
			continue;
		}
		if (has_begun && step->phase > online->options.until)
		{
			ereport(NOTICE,
					(errmsg("%s: the next phase is \"%s\"", step->table,
							snowflake_online_phase_name(step->phase)),
					 errhint("Call snowflake_convert_online() again to continue, or snowflake_convert_undo() before the first swap.")));
			return;
		}
		if (has_begun)
			finish_turn(online, &progress);
		if (has_begun && progress.done)
		{
			snowflake_online_end_wait(online);
			report_step(&progress, step);
			progress.start = 0;
		}
		else
			snowflake_online_nap_about(SNOWFLAKE_RETRY_MS);

		/* An index that was invalid, and is dropped, has to be created yet. */
		if (!has_begun || !progress.done ||
			(step->kind == SNOWFLAKE_STEP_INDEX && step->statement != NULL))
			progress.until = 0;
	}
}
