/*-------------------------------------------------------------------------
 *
 * online.c
 *	  snowflake_convert_online(): change an integer key, and all columns that
 *	  reference it, to bigint while clients read and write the tables.
 *
 * Each column gets a second one beside it, of type bigint, which a trigger
 * keeps equal to it.  Once the rows are copied, and indexes and foreign keys
 * exist for the new columns, the two are swapped, one table at a time.
 *
 * phase			what is done, with which lock on the table
 *
 * prepare			new column, trigger, CHECK (new = old) NOT VALID in one
 *					transaction: ACCESS EXCLUSIVE, for milliseconds
 * backfill			rows are copied in batches; then the CHECK constraint is
 *					validated, which proves that all are copied and equal
 * indexes			CREATE INDEX CONCURRENTLY, CHECK constraints, statistics,
 *					ANALYZE: SHARE UPDATE EXCLUSIVE, which blocks no client.
 *					Unique indexes come last, because INSERT ... ON CONFLICT
 *					expects one unique index for a key
 * foreign keys		ADD ... NOT VALID: SHARE ROW EXCLUSIVE on both tables, or
 *					ACCESS EXCLUSIVE if the referencing one is partitioned, for
 *					milliseconds; then VALIDATE
 * swap				for each table: ACCESS EXCLUSIVE on it, its partitions, the
 *					tables that it references, and its views, for tens of
 *					milliseconds, and some for each partition
 * default			as in snowflake_convert(), the default of the key is set, and
 *					its sequence is dropped: ACCESS EXCLUSIVE, for tens of
 *					milliseconds
 *
 * Partitions
 *
 * A partitioned table is a tree, whose root has the key.  Its column, trigger,
 * and CHECK constraints are created at the root, and so in all partitions,
 * those that are created later, too; a table cannot be attached without them.
 * Partitions are filled, and get their indexes and foreign keys, one at a
 * time, as if they were tables.  Then all of the tree is swapped in one
 * transaction, with locks on all partitions, because a column has one name in
 * all of them:
 *
 * - Columns and inherited constraints are dropped and renamed at the root.
 * - Indexes of partitioned tables have no rows.  They are created in the swap,
 *	 as pg_dump does it: ON ONLY the table, and then those of the partitions are
 *	 attached.  Nothing is built under a lock, whatever the partitions have.
 * - A foreign key of a partitioned table is created before the swap, when each
 *	 partition has one that is validated: it takes them over, without looking at
 *	 rows.  So it need not be NOT VALID, which was not possible before 18.
 * - A foreign key that references a partitioned table needs a unique index of
 *	 it, which cannot become that of the primary key (there is no USING INDEX
 *	 for these).  So both tables are swapped together, with the old foreign key,
 *	 and the new one is created then, as NOT VALID, which is enforced from there
 *	 on.  The rows that exist satisfy it: their columns are equal to the old
 *	 ones.  VALIDATE, after the swap, says so; which constraints are left is in
 *	 a trigger that is never fired.
 *
 * If a partition is created or attached meanwhile, it has steps that are not
 * done.  If that is at the last moment, the swap fails, and the call continues
 * with these steps.  One that is detached keeps the new column and the CHECK
 * constraint, without the trigger, so that INSERTs into it fail until it is
 * attached again.  If it is still among the tables to convert, because of a
 * foreign key, it is an obstacle.  A row that a client moves to another partition
 * is filled there, by the trigger for INSERT.
 *
 * State
 *
 * There is none but the catalogs.  Before each step, its effects are looked
 * for by names that are derived from those of the old objects: see
 * online/steps.c.  The first step of which they are missing is the
 * next.  A step is one transaction, or a statement such as CREATE INDEX
 * CONCURRENTLY that leaves something invalid behind if it fails, which is
 * dropped first then, or a backfill, which may begin again at any time.  So the
 * same call continues after an error or a crash, wherever that was.
 *
 * Why no row is lost or wrong
 *
 * - The trigger is created in the transaction that adds the column, under a
 *	 lock that waits for all writers.  From then on each row that is inserted or
 *	 updated has equal columns; it fails otherwise, because of the CHECK
 *	 constraint.  Rows from before are filled by the backfill, which locks each
 *	 row and copies what the latest version has.  VALIDATE CONSTRAINT reads all
 *	 rows afterwards, and the constraint stays until the swap.  A copy of the table
 *	 that takes its place later, as that of pg_repack, has rows from after that.
 * - A referencing table is swapped before the one that it references.  Until
 *	 its own swap, it has both foreign keys: the new one alone would act on the
 *	 new column, which the trigger would then overwrite with the old one.  After
 *	 its swap, it references the new column of the other table, which has the
 *	 trigger still.  So a foreign key is enforced at any moment.
 * - A snapshot that is older than the copies sees NULL in the new columns.  So
 *	 a swap waits until nobody has one.
 * - Before a swap, all that belongs to the old columns must have a counterpart,
 *	 as the one that would be created now.  That is looked for while the table is
 *	 locked against changes, but not against clients; then it is locked
 *	 exclusively, and a last look is for what else would be dropped with the
 *	 columns.
 * - The default is last, because prepared INSERTs of sessions that are older
 *	 than the swap have parameters of the old type, which cannot hold an ID.
 *	 So it waits for these sessions to end.  Which they are is in a trigger that
 *	 is never fired, until the default is set: a time would mean something else
 *	 after a step of the clock.  The columns of a table share one list, that of
 *	 the last swap: whoever is older than an earlier one is in it, too.
 *
 * Locks
 *
 * Nobody waits behind a request for longer than lock_wait; see
 * online/locks.c.  An advisory lock of the session keeps conversions of
 * a database apart.
 *
 * Security
 *
 * As in snowflake_convert(), what evaluates code of the owner runs as the
 * owner, in a security-restricted operation.  The user ID is switched back
 * before each commit, because it would outlive an error in the next
 * transaction.
 *
 * Transactions
 *
 * The procedure commits, so it must be the only statement of a transaction, and
 * outside of a function: in DO or a procedure of PL/pgSQL, there are snapshots
 * and memory of others that its commits would take away.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/online.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "convert/online/online.h"
#include "shared/clock.h"

PG_FUNCTION_INFO_V1(snowflake_convert_online);
PG_FUNCTION_INFO_V1(snowflake_convert_plan);
PG_FUNCTION_INFO_V1(snowflake_convert_undo);

/* The advisory lock of conversions. */
#define ADVISORY_CLASS	0x736e6f77
#define ADVISORY_OBJECT	1

/* Before a lock is requested again. */
#define RETRY_MS		200
#define RETRY_MORE_MS	400

/* What snowflake_convert_undo() has. */
#define DEFAULT_LOCK_MS	100
#define UNDO_GIVE_UP_US	(60 * USECS_PER_SEC)	/* or lock_timeout */

/* What the plan says about locks. */
static const char *const lock_names[] = {
	[SNOWFLAKE_STEP_PREPARE] = "ACCESS EXCLUSIVE",
	[SNOWFLAKE_STEP_BACKFILL] = "ROW EXCLUSIVE",
	[SNOWFLAKE_STEP_INDEX] = "SHARE UPDATE EXCLUSIVE",
	[SNOWFLAKE_STEP_CHECK] = "ACCESS EXCLUSIVE",
	[SNOWFLAKE_STEP_STATISTICS] = "SHARE UPDATE EXCLUSIVE",
	[SNOWFLAKE_STEP_ANALYZE] = "SHARE UPDATE EXCLUSIVE",
	[SNOWFLAKE_STEP_FOREIGN_KEY] = "SHARE ROW EXCLUSIVE",
	[SNOWFLAKE_STEP_VALIDATE] = "SHARE UPDATE EXCLUSIVE",
	[SNOWFLAKE_STEP_SWAP] = "ACCESS EXCLUSIVE",
	[SNOWFLAKE_STEP_DEFAULT] = "ACCESS EXCLUSIVE",
};

/*
 * Does a foreign key of a partitioned table need a stronger lock?  It takes over
 * those of the partitions, and removes triggers of the other table, for which the
 * server locks that with ACCESS EXCLUSIVE.  If that were requested only there, a
 * client that waits for us and has the table open would be a deadlock.
 */
static bool
needs_access_exclusive(const SnowflakeOnlineStep *step)
{
	return step->kind == SNOWFLAKE_STEP_FOREIGN_KEY &&
		get_rel_relkind(step->relid) == RELKIND_PARTITIONED_TABLE;
}

/*
 * Of the time of a call, at most the tenth part goes to reading which steps are
 * done, which takes longer the more partitions there are.
 */
#define READ_SHARE	10

/* Steps of a call, across transactions. */
typedef struct Progress
{
	SnowflakeOnline *online;
	List	   *analyzed;		/* tables */
	MemoryContext context;		/* of the list of steps */
	List	   *steps;			/* that were not done when they were read */
	int			next;			/* of these */
	int64		until;			/* by the steady clock: when they are read
								 * again */
} Progress;

/*
 * Fail unless the procedure may commit.
 */
static void
check_outermost(FunctionCallInfo fcinfo)
{
	CallContext *context = (CallContext *) fcinfo->context;

	if (context == NULL || !IsA(context, CallContext) || context->atomic ||
		SPI_inside_nonatomic_context())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("a table in use must be converted outside of a transaction block, function, or DO"),
				 errhint("Run CALL as a statement of its own, in autocommit mode.")));
	PreventInTransactionBlock(true, "CALL snowflake_convert_online");
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot convert a table with isolation level %s",
						XactIsoLevel == XACT_SERIALIZABLE ? "SERIALIZABLE" : "REPEATABLE READ"),
				 errhint("Run SET default_transaction_isolation = 'read committed'.")));
}

/*
 * An interval as microseconds; 0 for null.
 */
static int64
interval_us(FunctionCallInfo fcinfo, int argument, const char *name)
{
	Interval   *interval;
	int64		us;

	if (PG_ARGISNULL(argument))
		return 0;
	interval = PG_GETARG_INTERVAL_P(argument);
	/* Centuries, and infinity, are no different from a hundred years. */
	us = (int64) Max(0.0, Min(36525.0 * USECS_PER_DAY,
							  interval->time + interval->day * (double) USECS_PER_DAY +
							  interval->month * (double) (DAYS_PER_MONTH * USECS_PER_DAY)));
	if (us < 1000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be at least 1 ms", name)));
	return us;
}

/*
 * The phase that until names.
 */
static SnowflakePhase
find_phase(const char *name)
{
	for (SnowflakePhase phase = SNOWFLAKE_PHASE_PREPARE; phase <= SNOWFLAKE_PHASE_DEFAULT; phase++)
	{
		if (strcmp(name, snowflake_phase_name(phase)) == 0)
			return phase;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown phase \"%s\"", name),
			 errhint("Phases are prepare, backfill, indexes, foreign keys, swap, and default.")));
}

/*
 * The arguments after relation, column_name, and generator.
 */
static void
get_options(FunctionCallInfo fcinfo, SnowflakeOnlineOptions *options)
{
	int64		lock_us = interval_us(fcinfo, 6, "lock_wait");

	options->until = PG_ARGISNULL(3) ? SNOWFLAKE_PHASE_DEFAULT :
		find_phase(text_to_cstring(PG_GETARG_TEXT_PP(3)));
	options->batch_us = interval_us(fcinfo, 4, "batch_time");
	options->work_share = PG_ARGISNULL(5) ? 1 : PG_GETARG_FLOAT8(5);
	options->max_lag_us = interval_us(fcinfo, 7, "max_lag");
	options->give_up_us = interval_us(fcinfo, 8, "give_up_after");
	options->subscribers_ready = !PG_ARGISNULL(9) && PG_GETARG_BOOL(9);

	if (options->batch_us == 0 || options->batch_us > 10 * USECS_PER_SEC)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("batch_time must be between 1 ms and 10 s")));
	if (!(options->work_share >= 0.01 && options->work_share <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("work_share must be between 0.01 and 1")));

	/* Others wait as long, and a deadlock is not to be waited for. */
	if (lock_us == 0 || lock_us >= DeadlockTimeout * INT64CONST(1000))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("lock_wait must be at least 1 ms and less than deadlock_timeout")));
	options->lock_ms = lock_us / 1000;
}

/*
 * Who has the advisory lock, or NULL if nobody has it anymore.
 */
static char *
find_converter(void)
{
	List	   *rows;

	SPI_connect();
	rows = snowflake_ask_server(psprintf("SELECT " SNOWFLAKE_PROCESS("Process") " || ' has the advisory lock of conversions.'"
										 " FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
										 " WHERE l.locktype = 'advisory' AND l.granted"
										 " AND (l.classid, l.objid, l.objsubid) = (%d, %d, 2)"
										 " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())",
										 ADVISORY_CLASS, ADVISORY_OBJECT));
	return rows == NIL ? NULL : ((char **) linitial(rows))[0];
}

/*
 * The advisory lock, which the session has until it is released.
 */
static void
lock_conversions(bool until_commit)
{
	PGFunction	function = until_commit ? pg_try_advisory_xact_lock_int4 : pg_try_advisory_lock_int4;
	char	   *converter;

	if (DatumGetBool(DirectFunctionCall2(function,
										 Int32GetDatum(ADVISORY_CLASS),
										 Int32GetDatum(ADVISORY_OBJECT))))
		return;
	converter = find_converter();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("another session converts a table of this database"),
			 converter != NULL ? errdetail_internal("%s", converter) : 0,
			 errhint("snowflake_convert_plan() shows how far it is.")));
}

static void
unlock_conversions(void)
{
	(void) DirectFunctionCall2(pg_advisory_unlock_int4,
							   Int32GetDatum(ADVISORY_CLASS),
							   Int32GetDatum(ADVISORY_OBJECT));
}

/*
 * Fail if there are obstacles.  Returns false if they are not known now.
 */
static bool
check_obstacles(SnowflakeOnline *online)
{
	SnowflakeConversion *conversion = &online->conversion;
	bool		known;
	List	   *obstacles;

	snowflake_find_sequence_names(conversion);
	obstacles = snowflake_list_online_obstacles(conversion, &online->options, &known);
	if (known)
		snowflake_report_obstacles(conversion, obstacles);
	return known;
}

/*
 * Execute statements of a transaction.
 */
static void
execute_all(List *statements)
{
	ListCell   *cell;

	foreach(cell, statements)
		snowflake_run_statement(lfirst(cell));
}

/* SnowflakeWork: the statement of a step. */
static void
execute_step(SnowflakeOnline *online, void *argument)
{
	const SnowflakeOnlineStep *step = argument;

	snowflake_run_statement(step->statement);
}

/*
 * SnowflakeWork: create new columns, with the privileges that the old ones have.
 * Rows that are stored elsewhere, by the row type, would not have them.
 */
static void
prepare_table(SnowflakeOnline *online, void *argument)
{
	const SnowflakeOnlineStep *step = argument;
	List	   *obstacles = NIL;

	snowflake_find_type_obstacles(&online->conversion, &obstacles);
	snowflake_report_obstacles(&online->conversion, obstacles);
	execute_step(online, argument);
	if (snowflake_ask_often(&online->conversion, step->relid,
							psprintf("%s SELECT FROM col JOIN top USING (relid)"
									 "  JOIN pg_attribute n ON (n.attrelid, n.attnum) = (col.relid, col.newnum)"
									 " WHERE top.root = $12"
									 " AND ARRAY(SELECT (e.grantee, e.privilege_type, e.is_grantable)::text FROM aclexplode(col.attacl) e ORDER BY 1)"
									 "  <> ARRAY(SELECT (e.grantee, e.privilege_type, e.is_grantable)::text FROM aclexplode(n.attacl) e ORDER BY 1)",
									 snowflake_online_tables)) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg_internal("privileges were changed")));
}

/*
 * Do all partitions have the foreign key that is to become that of their
 * table?  One that is new would be read under the lock.
 */
static void
require_foreign_keys(SnowflakeOnline *online, const SnowflakeOnlineStep *step)
{
	SnowflakeConversion *conversion = &online->conversion;

	if (get_rel_relkind(step->relid) != RELKIND_PARTITIONED_TABLE)
		return;
	snowflake_find_targets(conversion);
	if (snowflake_ask_often(conversion, step->object,
							psprintf("%s SELECT FROM fkey WHERE top = $12 AND relkind <> 'p' AND NOT internal"
									 " AND (newoid IS NULL OR convalidated AND NOT newvalid)",
									 snowflake_online_tables)) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg_internal("a partition was added")));
}

/*
 * SnowflakeWork: create a foreign key.
 *
 * Until the swap, the old and the new one both act on a referencing row, in the
 * order of the names of their triggers, which contain OIDs as text.  If the new
 * one is first, what it sets is undone by the trigger that copies columns, and
 * then the old one sets both.  Only SET DEFAULT would fail, because it looks
 * for referencing rows once more.
 */
static void
create_foreign_key(SnowflakeOnline *online, void *argument)
{
	const SnowflakeOnlineStep *step = argument;

	require_foreign_keys(online, step);
	execute_step(online, argument);
	if (snowflake_ask_often(&online->conversion, step->object,
							psprintf("%s SELECT FROM fkey JOIN pg_trigger o ON o.tgconstraint = fkey.oid AND o.tgrelid = confrelid"
									 "  JOIN pg_trigger n ON n.tgconstraint = fkey.newoid AND n.tgrelid = confrelid"
									 " WHERE fkey.oid = $12 AND 'd' IN (confdeltype, confupdtype)"
									 " AND n.tgname::text COLLATE \"C\" < o.tgname::text COLLATE \"C\" AND n.tgfoid = o.tgfoid",
									 snowflake_online_tables)) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("foreign key \"%s\" of table %s would act before the one that it replaces",
						step->new_name, step->table),
				 errdetail("With SET DEFAULT, statements of clients would fail."),
				 errhint("Drop the old foreign key and create it again, as NOT VALID, validate it, and call snowflake_convert_online() again.")));
}

/* A swap, once its statements are known. */
typedef struct Swap
{
	Oid			relid;
	List	   *locked;			/* relations */
	List	   *trees;			/* tables without their partitions */
	List	   *names;			/* of relations whose privileges are kept */
	char	   *privileges;
	char	   *comments;
	List	   *before_drop;
	List	   *after_drop;
} Swap;

/*
 * SnowflakeWork: find the statements of a swap.  What they depend on cannot
 * change any more, except for comments.
 */
static void
find_statements(SnowflakeOnline *online, void *argument)
{
	Swap	   *swap = argument;
	SnowflakeConversion *conversion = &online->conversion;
	List	   *relids;
	List	   *obstacles;

	snowflake_find_targets(conversion);
	if (list_difference_oid(snowflake_swap_locks(conversion, swap->relid), swap->locked) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg_internal("a view, sequence, or foreign key was added")));
	relids = snowflake_with_partitions(swap->locked);
	snowflake_lock_functions(relids);
	swap->names = snowflake_swap_names(relids);
	swap->privileges = snowflake_swap_privileges(swap->names);
	swap->comments = snowflake_swap_comments(relids);
	obstacles = snowflake_list_object_obstacles(conversion,
												snowflake_swap_scope(conversion, swap->relid));
	snowflake_find_type_obstacles(conversion, &obstacles);
	snowflake_check_swap(conversion, swap->relid, obstacles);
	swap->trees = snowflake_swap_trees(conversion, swap->relid);
	snowflake_swap_statements(conversion, swap->relid, &swap->before_drop,
							  &swap->after_drop);
}

/*
 * The statements that keep which sessions there are when the key is swapped.
 * Process IDs mean something until the server is started again only.
 */
static List *
session_statements(const SnowflakeOnline *online)
{
	char	   *table = snowflake_relation_name(online->relid);
	char	  **row;

	/* What the list was earlier in this transaction would be repeated. */
	pgstat_clear_snapshot();
	row = linitial(snowflake_ask_server("SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),"
										"  string_agg(pid::text, ' ' ORDER BY pid))"
										" FROM pg_stat_activity"
										" WHERE datname = current_database() AND backend_type = 'client backend'"));
	return list_make2(psprintf("CREATE OR REPLACE TRIGGER \"" SNOWFLAKE_SWAP_TRIGGER "\" BEFORE INSERT ON %s"
							   " FOR EACH ROW EXECUTE FUNCTION %s.snowflake_convert_copy(%s)",
							   table, quote_identifier(get_namespace_name(online->namespace)),
							   quote_literal_cstr(row[0])),
					  psprintf("ALTER TABLE %s DISABLE TRIGGER \"" SNOWFLAKE_SWAP_TRIGGER "\"", table));
}

/*
 * SnowflakeWork: execute them.
 */
static void
swap_columns(SnowflakeOnline *online, void *argument)
{
	const Swap *swap = argument;
	char	   *comments = snowflake_swap_comments(snowflake_with_partitions(swap->locked));

	if (comments == NULL ? swap->comments != NULL :
		swap->comments == NULL || strcmp(comments, swap->comments) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg_internal("a comment was changed")));
	execute_all(swap->before_drop);
	snowflake_check_drop(swap->relid, swap->trees);
	execute_all(swap->after_drop);
	snowflake_check_privileges(swap->relid, swap->names, swap->privileges);
	if (list_member_oid(swap->trees, online->relid))
		execute_all(session_statements(online));
}

/*
 * Who has a snapshot that may be older than the copies of the columns?  The
 * argument is a transaction ID as old as those.  The last column says whether a
 * session can import the snapshot of another one.
 *
 * A snapshot is not older because it has an older xmin: any transaction of the
 * server that is open for long holds that back.  So of sessions, those are waited
 * for that were there at the first look, and any that may have imported a
 * snapshot since then, because one was exported at this look or the one before,
 * or because no transaction is open that would explain the xmin.  Of a standby
 * nothing else is known.
 */
#define OLD_SNAPSHOTS \
"SELECT key, format(CASE WHEN holder IS NULL THEN '%%s has a snapshot that is older than the copy of the columns.'" \
"    ELSE '%%s may have a snapshot that is older than the copy of the columns, until %%s has ended.' END, who, holder)," \
"  EXISTS (SELECT FROM pg_ls_dir('pg_snapshots'))::int," \
"  (age(xmin) > ALL (SELECT age(backend_xid) FROM pg_stat_activity WHERE backend_xid IS NOT NULL" \
"                    UNION ALL SELECT age(transaction) FROM pg_prepared_xacts))::int" \
" FROM (SELECT format('%%s %%s', pid, extract(epoch FROM xact_start)), " SNOWFLAKE_PROCESS("Process") ", backend_xmin" \
"       FROM pg_stat_activity" \
"       WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'" \
"       AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)" \
"       UNION ALL" \
"       SELECT NULL, " SNOWFLAKE_PROCESS("Process") ", backend_xmin FROM pg_stat_activity WHERE datname IS NULL AND backend_type = 'walsender'" \
"       UNION ALL" \
"       SELECT NULL, format('Replication slot \"%%s\"', slot_name), xmin FROM pg_replication_slots" \
"       WHERE coalesce(database = current_database(), true)) s(key, who, xmin)" \
"  LEFT JOIN LATERAL (" \
"    SELECT " SNOWFLAKE_PROCESS("process") " FROM pg_stat_activity WHERE backend_xid = s.xmin" \
"    UNION ALL" \
"    SELECT format('prepared transaction %%L of %%s', gid, owner) FROM pg_prepared_xacts WHERE transaction = s.xmin) h(holder)" \
"    ON key IS NULL" \
" WHERE age(xmin) >= age('%s'::xid) ORDER BY age(xmin) DESC, key"

/*
 * Does somebody have a snapshot that is older than the copies of the columns?  In
 * the new columns it would see NULL.  Returns who.
 *
 * Whoever has accessed the table holds a lock on it.  CREATE INDEX CONCURRENTLY
 * has waited for the others, but for none on a standby, and for none if a foreign
 * key was created later.  A standby says how old its snapshots are if it has
 * hot_standby_feedback.
 */
static char *
find_old_snapshot(SnowflakeOnline *online, Oid relid)
{
	bool		is_first = online->waits_for != relid;
	bool		may_import = is_first || online->exported;
	char	   *result = NULL;
	MemoryContext old;
	List	   *rows;
	ListCell   *cell;

	rows = snowflake_ask(&online->conversion,
						 psprintf("%s SELECT k.xmin FROM pg_constraint k JOIN tab ON relid = conrelid"
								  " WHERE k.contype = 'c' AND k.convalidated"
								  " AND k.conname IN (" SNOWFLAKE_COPY_CHECKS ")"
								  " ORDER BY age(k.xmin) LIMIT 1",
								  snowflake_online_tables));
	if (rows == NIL)
		return NULL;
	rows = snowflake_ask_server(psprintf(OLD_SNAPSHOTS, ((char **) linitial(rows))[0]));

	old = MemoryContextSwitchTo(online->context);
	if (is_first)
		online->old_sessions = NIL;
	online->waits_for = relid;
	online->exported = rows != NIL && ((char **) linitial(rows))[2][0] == '1';
	may_import |= online->exported;
	foreach(cell, rows)
	{
		char	  **row = lfirst(cell);
		String	   *key = row[0] == NULL ? NULL : makeString(pstrdup(row[0]));

		if (key != NULL && (may_import || row[3][0] == '1'))
			online->old_sessions = lappend(online->old_sessions, key);
		if (result == NULL && (key == NULL || list_member(online->old_sessions, key)))
			result = row[1];
	}
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * Swap the columns of a table.  To find the statements takes longer than to
 * execute them, so it is done with a lock that blocks no client, but everybody
 * who would change the table or its views.
 */
static bool
swap_table(SnowflakeOnline *online, const SnowflakeOnlineStep *step)
{
	Swap		swap = {.relid = step->relid};
	List	   *indexes;
	char	   *snapshot = find_old_snapshot(online, step->relid);

	if (snapshot != NULL)
	{
		snowflake_report_wait(online, psprintf("swap the columns of table %s", step->table),
							  snapshot);
		return false;
	}
	swap.locked = snowflake_swap_locks(&online->conversion, step->relid);
	indexes = snowflake_swap_indexes(&online->conversion, step->relid);
	return snowflake_with_locks(online, list_concat(indexes, swap.locked),
								ShareUpdateExclusiveLock, find_statements, &swap) &&
		snowflake_with_locks(online, swap.locked, AccessExclusiveLock,
							 swap_columns, &swap);
}

/*
 * The statement that drops the list of sessions; NULL if there is none.
 */
static char *
drop_sessions(const SnowflakeOnline *online)
{
	const SnowflakeConversion *conversion = &online->conversion;
	const SnowflakeKey *key = linitial(conversion->keys);

	if (snowflake_ask(conversion, psprintf("%s SELECT FROM swapped", snowflake_online_tables)) == NIL)
		return NULL;
	return psprintf("DROP TRIGGER \"" SNOWFLAKE_SWAP_TRIGGER "\" ON %s", key->table);
}

/*
 * What set_default() does, as statements.
 */
static char *
default_statement(const SnowflakeOnline *online)
{
	const SnowflakeKey *key = linitial(online->conversion.keys);
	char	   *drop = drop_sessions(online);
	StringInfoData statement;

	initStringInfo(&statement);
	if (drop != NULL)
		appendStringInfo(&statement, "%s;\n", drop);
	appendStringInfo(&statement, "SELECT %s.snowflake_convert(%s, %s",
					 quote_identifier(get_namespace_name(online->namespace)),
					 quote_literal_cstr(key->table),
					 quote_literal_cstr(key->column));
	if (OidIsValid(online->generator))
		appendStringInfo(&statement, ", generator => '%u'", online->generator);
	appendStringInfoChar(&statement, ')');
	return statement.data;
}

/*
 * SnowflakeWork: set the default, if no column is left that would be rewritten.
 */
static void
set_default(SnowflakeOnline *online, void *argument)
{
	SnowflakeConversion *conversion = &online->conversion;
	char	   *drop;

	snowflake_find_targets(conversion);
	if (snowflake_ask(conversion, "SELECT FROM target WHERE change = 'widen'") != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg_internal("a foreign key was added")));
	if (snowflake_has_new_sequences(conversion))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg_internal("a sequence was added")));
	drop = drop_sessions(online);
	if (drop != NULL)
		snowflake_run_statement(drop);
	conversion->dry_run = false;
	if (!OidIsValid(online->generator))
		snowflake_report_kept_default(linitial(conversion->keys));
	snowflake_prepare(conversion, online->owner);
	snowflake_report_obstacles(conversion, snowflake_list_obstacles(conversion));
	(void) snowflake_execute(conversion);
}

/*
 * Are there sessions that are older than the swap?  Returns which.
 */
static char *
find_old_sessions(const SnowflakeOnline *online)
{
	List	   *rows = snowflake_ask(&online->conversion,
									 psprintf("%s SELECT sessions FROM swapped",
											  snowflake_online_tables));
	char	   *sessions;

	if (rows == NIL)
		return NULL;
	sessions = quote_literal_cstr(((char **) linitial(rows))[0]);
	rows = snowflake_ask_server(psprintf("SELECT format('%%s sessions are older than the swap, and may have prepared statements: %%s.',"
										 "  count(*), string_agg(format('process %%s (%%s, %%s)', pid, usename,"
										 "    coalesce(nullif(application_name, ''), backend_type)), ', ' ORDER BY pid))"
										 " FROM pg_stat_activity"
										 " WHERE datname = current_database() AND pid <> pg_backend_pid()"
										 " AND backend_type = 'client backend'"
										 " AND pid::text = ANY (string_to_array(%s, ' '))"
										 " AND starts_with(%s, extract(epoch FROM pg_postmaster_start_time())::text)"
										 " HAVING count(*) > 0",
										 sessions, sessions));
	return rows == NIL ? NULL : ((char **) linitial(rows))[0];
}

/*
 * A step that locks tables.  Returns false if it has to be tried again.
 */
static bool
run_locking(SnowflakeOnline *online, SnowflakeOnlineStep *step)
{
	List	   *relids = list_make1_oid(step->relid);

	switch (step->kind)
	{
		case SNOWFLAKE_STEP_SWAP:
			return swap_table(online, step);
		case SNOWFLAKE_STEP_DEFAULT:
			{
				char	   *sessions = find_old_sessions(online);

				if (sessions != NULL)
				{
					snowflake_report_wait(online, "set the default", sessions);
					return false;
				}
				/* not with the lock, because it may take long */
				snowflake_find_sequence_names(&online->conversion);
				return snowflake_with_locks(online, relids, AccessExclusiveLock,
											set_default, step);
			}
		case SNOWFLAKE_STEP_FOREIGN_KEY:
			if (step->other != step->relid)
				relids = lcons_oid(step->other, relids);
			return snowflake_with_locks(online, relids,
										needs_access_exclusive(step) ?
										AccessExclusiveLock : ShareRowExclusiveLock,
										create_foreign_key, step);
		default:
			step->statement = snowflake_step_statement(&online->conversion, step);
			return snowflake_with_locks(online, relids, AccessExclusiveLock,
										step->kind == SNOWFLAKE_STEP_PREPARE ? prepare_table : execute_step,
										step);
	}
}

/*
 * Run a step.  A transaction is open, and none afterwards.  Returns false if
 * the step has to be tried again.
 */
static bool
run_step(SnowflakeOnline *online, SnowflakeOnlineStep *step)
{
	bool		done = true;
	char	   *statement;

	switch (step->kind)
	{
		case SNOWFLAKE_STEP_BACKFILL:
			snowflake_commit(online);
			snowflake_backfill(online, step);
			break;
		case SNOWFLAKE_STEP_INDEX:
			statement = MemoryContextStrdup(online->context,
											snowflake_step_statement(&online->conversion, step));
			snowflake_report_transactions(online, psprintf("create index %s", step->new_name));
			snowflake_commit(online);
			snowflake_run_top_level(online->context, online->owner, statement,
									step->tablespace);
			pfree(statement);
			break;
		case SNOWFLAKE_STEP_STATISTICS:
		case SNOWFLAKE_STEP_ANALYZE:
		case SNOWFLAKE_STEP_VALIDATE:
			snowflake_run_statement(snowflake_step_statement(&online->conversion, step));
			snowflake_commit(online);
			break;
		default:
			done = run_locking(online, step);
			snowflake_commit(online);
			if (!done)
				snowflake_nap(RETRY_MS + RETRY_MORE_MS * pg_prng_double(&pg_global_prng_state));
	}
	return done;
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
	COPY(schema);
	COPY(tablespace);
	COPY(statement);
	return result;
}

/*
 * Read which steps of the next phase are not done.
 */
static void
read_steps(Progress *progress)
{
	int64		start = snowflake_steady_clock();
	List	   *steps = snowflake_steps(&progress->online->conversion);
	MemoryContext old;
	ListCell   *cell;

	MemoryContextReset(progress->context);
	old = MemoryContextSwitchTo(progress->context);
	progress->steps = NIL;
	progress->next = 0;
	foreach(cell, steps)
	{
		const SnowflakeOnlineStep *step = lfirst(cell);

		if (step->done ||
			(step->kind == SNOWFLAKE_STEP_ANALYZE && list_member_oid(progress->analyzed, step->relid)))
			continue;
		if (progress->steps != NIL &&
			step->phase != ((SnowflakeOnlineStep *) linitial(progress->steps))->phase)
			break;
		progress->steps = lappend(progress->steps, copy_step(step));
	}
	MemoryContextSwitchTo(old);
	progress->until = start + (READ_SHARE + 1) * (snowflake_steady_clock() - start);
}

/*
 * A step that was read in an earlier transaction, as it is now, or NULL if it is not
 * to be done any more.  Only its table is looked at.
 */
static const SnowflakeOnlineStep *
read_again(const SnowflakeConversion *part, const SnowflakeOnlineStep *step)
{
	ListCell   *cell;

	foreach(cell, snowflake_steps(part))
	{
		const SnowflakeOnlineStep *now = lfirst(cell);

		if (now->kind == step->kind && now->phase == step->phase &&
			now->relid == step->relid && now->object == step->object)
			return now->done ? NULL : now;
	}
	return NULL;
}

/*
 * Say what was done.
 */
static void
report_step(Progress *progress, const SnowflakeOnlineStep *step, int64 start)
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
					 snowflake_phase_name(step->phase));
	if (step->new_name != NULL)
		appendStringInfo(&message, ", %s", step->new_name);
	appendStringInfo(&message, ": %.3f s", (now - start) / 1e6);
	if (progress->online->locked_since != 0)
		appendStringInfo(&message, ", %.3f s with the lock",
						 (now - progress->online->locked_since) / 1e6);
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

	rows = snowflake_ask_often(conversion, online->owner,
							   psprintf("%s SELECT r.oid::regclass FROM changed JOIN pg_class r ON r.oid = changed.relid"
										" WHERE r.relowner <> $12 LIMIT 1",
										snowflake_changed_tables));
	if (rows != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("table %s was changed during the conversion", key->table),
				 errdetail("Table %s is linked to it by a foreign key, and belongs to another role.",
						   ((char **) linitial(rows))[0]),
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

	if (progress->next == list_length(progress->steps) ||
		snowflake_steady_clock() >= progress->until)
		return NULL;
	step = list_nth(progress->steps, progress->next++);
	if (step->kind != SNOWFLAKE_STEP_BACKFILL && step->phase != SNOWFLAKE_PHASE_INDEXES)
		return NULL;
	part = snowflake_part(&online->conversion, step->relid);
	check_owners(online, &part);
	return read_again(&part, step);
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
		check_owners(progress->online, &progress->online->conversion);
		read_steps(progress);
		if (progress->steps == NIL)
			return NULL;
		step = list_nth(progress->steps, progress->next++);
	}
	old = MemoryContextSwitchTo(progress->context);
	kept = copy_step(step);
	MemoryContextSwitchTo(old);
	return kept;
}

/*
 * Name tables that are prepared for a conversion, at the end of one.  It does not
 * know those of its tables whose foreign key was dropped meanwhile.
 */
static void
report_left_tables(const SnowflakeOnline *online)
{
	ListCell   *cell;

	foreach(cell, snowflake_ask_server(psprintf("SELECT format('%%s.%%I', c.relnamespace::regnamespace, c.relname)"
												" FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid"
												" WHERE g.tgname = '" SNOWFLAKE_COPY_TRIGGER "' AND g.tgparentid = 0"
												" AND c.relowner = %u ORDER BY 1", online->owner)))
	{
		char	   *table = ((char **) lfirst(cell))[0];

		ereport(NOTICE,
				(errmsg("table %s has the trigger of a conversion that is not complete", table),
				 errhint("If it is left from this one, because a foreign key or its column was dropped, call snowflake_convert_undo(%s).",
						 quote_literal_cstr(table))));
	}
}

/*
 * Run the steps that are not done.
 */
static void
run_steps(SnowflakeOnline *online)
{
	Progress	progress = {.online = online};
	int64		start = 0;

	progress.context = AllocSetContextCreate(online->context, "steps of a conversion",
											 ALLOCSET_DEFAULT_SIZES);
	for (;;)
	{
		SnowflakeOnlineStep *step;
		bool		done;

		snowflake_begin(online);
		step = next_step(&progress);
		if (step == NULL || step->phase > online->options.until)
		{
			if (step == NULL)
				report_left_tables(online);
			snowflake_commit(online);
			if (step != NULL)
				ereport(NOTICE,
						(errmsg("%s: the next phase is \"%s\"", step->table,
								snowflake_phase_name(step->phase)),
						 errhint("Call snowflake_convert_online() again to continue, or snowflake_convert_undo() before the first swap.")));
			return;
		}
		if (start == 0)
			start = snowflake_steady_clock();
		online->locked_since = 0;
		done = run_step(online, step);
		if (done)
		{
			online->wait_start = online->wait_told = 0;
			report_step(&progress, step, start);
			start = 0;
		}
		/* An index that was invalid, and is dropped, has to be created yet. */
		if (!done || (step->kind == SNOWFLAKE_STEP_INDEX && step->statement != NULL))
			progress.until = 0;
	}
}

/*
 * Has somebody changed what the swaps are about, in a transaction that is open?
 * Returns who.  To rehearse them would wait for it, and then fail.
 */
static char *
find_changer_of_swaps(const SnowflakeOnline *online)
{
	List	   *relids = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_steps(&online->conversion))
	{
		const SnowflakeOnlineStep *step = lfirst(cell);

		if (step->kind == SNOWFLAKE_STEP_SWAP && !step->done)
			relids = list_concat_unique_oid(relids,
											snowflake_swap_locks(&online->conversion, step->relid));
	}
	return snowflake_find_changer(snowflake_with_partitions(relids));
}

/*
 * Begin the first transaction.
 */
static void
begin_examination(SnowflakeOnline *online)
{
	for (;;)
	{
		char	   *changer;

		snowflake_begin(online);
		changer = find_changer_of_swaps(online);
		if (changer == NULL)
			break;
		snowflake_report_wait(online, "look for obstacles", changer);
		snowflake_commit(online);
		snowflake_nap(RETRY_MS);
	}
}

/*
 * The first transaction: find the column and the obstacles, and try whether
 * what is to be created has a definition.
 */
static void
examine(SnowflakeOnline *online)
{
	SnowflakeConversion *conversion = &online->conversion;
	ListCell   *cell;

	for (;;)
	{
		begin_examination(online);
		if (check_obstacles(online))
			break;
		snowflake_report_wait(online, "look for obstacles", NULL);
		snowflake_commit(online);
		snowflake_nap(RETRY_MS);
	}
	online->wait_start = online->wait_told = 0;
	online->column = MemoryContextStrdup(online->context,
										 ((SnowflakeKey *) linitial(conversion->keys))->column);
	foreach(cell, snowflake_steps(conversion))
	{
		SnowflakeOnlineStep *step = lfirst(cell);

		if (!step->done && step->statement == NULL &&
			step->kind != SNOWFLAKE_STEP_SWAP && step->kind != SNOWFLAKE_STEP_DEFAULT)
			(void) snowflake_step_statement(conversion, step);
	}
	snowflake_give_online_notices(conversion);
	snowflake_commit(online);
}

/*
 * snowflake_convert_online(relation regclass, column_name name,
 *							generator regprocedure, until text,
 *							batch_time interval, work_share float8,
 *							lock_wait interval, max_lag interval,
 *							give_up_after interval, subscribers_ready boolean)
 */
Datum
snowflake_convert_online(PG_FUNCTION_ARGS)
{
	SnowflakeOnline *online;
	MemoryContext context;
	MemoryContext old;
	int			lock_timeout;

	check_outermost(fcinfo);
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the table must not be null")));

	context = AllocSetContextCreate(PortalContext, "snowflake_convert_online",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	online = palloc0_object(SnowflakeOnline);
	online->context = context;
	online->relid = PG_GETARG_OID(0);
	online->column = PG_ARGISNULL(1) ? NULL : pstrdup(NameStr(*PG_GETARG_NAME(1)));
	online->generator = PG_ARGISNULL(2) ? InvalidOid : PG_GETARG_OID(2);
	online->namespace = get_func_namespace(fcinfo->flinfo->fn_oid);
	if (!PG_ARGISNULL(2))
		snowflake_check_generator(online->generator);
	get_options(fcinfo, &online->options);
	snowflake_keep_plans(context);
	(void) snowflake_lock_table(online->relid, AccessShareLock);

	/*
	 * statement_timeout would count for all transactions together.  lock_wait
	 * takes the place of lock_timeout: a lock that others would wait behind
	 * is requested for no longer than that, and any other may take its time.
	 */
	disable_timeout(STATEMENT_TIMEOUT, false);
	lock_conversions(false);
	lock_timeout = LockTimeout;
	PG_TRY();
	{
		LockTimeout = 0;
		examine(online);
		run_steps(online);
	}
	PG_FINALLY();
	{
		LockTimeout = lock_timeout;
		unlock_conversions();
	}
	PG_END_TRY();

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	PG_RETURN_VOID();
}

/*
 * The statements of a swap, as a transaction.
 */
static char *
swap_script(const SnowflakeOnline *online, Oid relid)
{
	const SnowflakeConversion *conversion = &online->conversion;
	StringInfoData script;
	List	   *before_drop;
	List	   *after_drop;
	ListCell   *cell;

	initStringInfo(&script);
	appendStringInfoString(&script, "BEGIN;\n");
	foreach(cell, snowflake_swap_locks(conversion, relid))
	{
		/* LOCK TABLE does not lock a sequence. */
		if (get_rel_relkind(lfirst_oid(cell)) != RELKIND_SEQUENCE)
			appendStringInfo(&script, "LOCK TABLE %s IN ACCESS EXCLUSIVE MODE;\n",
							 snowflake_relation_name(lfirst_oid(cell)));
	}
	snowflake_swap_statements(conversion, relid, &before_drop, &after_drop);
	if (list_member_oid(snowflake_swap_trees(conversion, relid), online->relid))
		after_drop = list_concat(after_drop, session_statements(online));
	foreach(cell, list_concat(before_drop, after_drop))
		appendStringInfo(&script, "%s;\n", (char *) lfirst(cell));
	appendStringInfoString(&script, "COMMIT");
	return script.data;
}

/*
 * The text of a step.
 */
static char *
step_text(const SnowflakeOnline *online, const SnowflakeOnlineStep *step)
{
	switch (step->kind)
	{
		case SNOWFLAKE_STEP_SWAP:
			return swap_script(online, step->relid);
		case SNOWFLAKE_STEP_DEFAULT:
			return default_statement(online);
		case SNOWFLAKE_STEP_PREPARE:
			return psprintf("BEGIN;\n%s;\nCOMMIT", step->statement);
		default:
			return snowflake_step_statement(&online->conversion, step);
	}
}

/*
 * The steps as rows.
 */
static void
put_plan(SnowflakeOnline *online, ReturnSetInfo *rsinfo)
{
	List	   *steps = snowflake_steps(&online->conversion);
	bool		found = false;
	ListCell   *cell;

	foreach(cell, steps)
	{
		SnowflakeOnlineStep *step = lfirst(cell);
		bool		is_next = !step->done && !found;
		Datum		values[6];
		bool		nulls[6] = {false};
		const char *state = step->done ? "done" : is_next ? "next" : "to do";

		if (is_next &&
			(step->kind == SNOWFLAKE_STEP_SWAP || step->kind == SNOWFLAKE_STEP_DEFAULT))
		{
			char	   *who = step->kind == SNOWFLAKE_STEP_SWAP ?
				find_old_snapshot(online, step->relid) : find_old_sessions(online);

			if (who != NULL)
				state = psprintf("to do, and has to wait: %s", who);
		}
		if (is_next && step->kind == SNOWFLAKE_STEP_BACKFILL)
			state = psprintf("next, about %d %% are copied",
							 snowflake_backfill_percent(&online->conversion, step));
		found |= !step->done;
		values[0] = Int32GetDatum(foreach_current_index(cell) + 1);
		values[1] = CStringGetTextDatum(snowflake_phase_name(step->phase));
		values[2] = CStringGetTextDatum(step->table);
		values[3] = CStringGetTextDatum(needs_access_exclusive(step) ?
										"ACCESS EXCLUSIVE" : lock_names[step->kind]);
		nulls[4] = step->done && step->statement == NULL;
		values[4] = nulls[4] ? (Datum) 0 : CStringGetTextDatum(step_text(online, step));
		values[5] = CStringGetTextDatum(state);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

/*
 * Begin a function, in the caller's transaction.
 */
static void
begin_function(FunctionCallInfo fcinfo, SnowflakeOnline *online)
{
	online->relid = PG_GETARG_OID(0);
	online->column = PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1));
	online->namespace = get_func_namespace(fcinfo->flinfo->fn_oid);
	online->context = CurrentMemoryContext;
	online->options.lock_ms = DEFAULT_LOCK_MS;
	snowflake_refuse_old_snapshot();
	SPI_connect();
}

static void
end_function(SnowflakeOnline *online)
{
	SPI_finish();
	snowflake_become_caller(&online->caller);
}

/*
 * snowflake_convert_plan(relation regclass, column_name name,
 *						  subscribers_ready boolean) returns table
 */
Datum
snowflake_convert_plan(PG_FUNCTION_ARGS)
{
	SnowflakeOnline online = {0};
	char	   *changer;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	begin_function(fcinfo, &online);
	snowflake_open(&online);
	online.options.subscribers_ready = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	online.options.by_hand = true;
	changer = find_changer_of_swaps(&online);
	if (changer != NULL || !check_obstacles(&online))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("cannot look for obstacles of table %s now",
						snowflake_relation_name(online.relid)),
				 errdetail_internal("%s", changer != NULL ? changer : "Somebody changes privileges."),
				 errhint("Try again when it has ended.")));
	snowflake_give_online_notices(&online.conversion);
	put_plan(&online, (ReturnSetInfo *) fcinfo->resultinfo);
	end_function(&online);
	return (Datum) 0;
}

/* SnowflakeWork: a list of statements. */
static void
execute_list(SnowflakeOnline *online, void *argument)
{
	execute_all(argument);
}

/*
 * A column of a table that is copied, if possible the primary key, or NULL if
 * there is none.  So undo needs only the name of the table, also of one that
 * references the key.
 */
static char *
find_copied_column(Oid relid)
{
	List	   *rows = snowflake_ask_server(psprintf("SELECT a.attname FROM pg_trigger g"
													 "  CROSS JOIN LATERAL string_to_table(encode(g.tgargs, 'escape'), E'\\\\000') WITH ORDINALITY arg(name, number)"
													 "  JOIN pg_attribute a ON a.attrelid = g.tgrelid AND NOT a.attisdropped"
													 "    AND encode(convert_to(a.attname::text, getdatabaseencoding()), 'escape') = arg.name"
													 "  LEFT JOIN pg_index i ON i.indrelid = g.tgrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)"
													 " WHERE g.tgrelid = %u AND g.tgname = '" SNOWFLAKE_COPY_TRIGGER "'"
													 " ORDER BY i.indexrelid IS NULL, number %% 2 = 0, number LIMIT 1",
													 relid));

	return rows == NIL ? NULL : ((char **) linitial(rows))[0];
}

/*
 * snowflake_convert_undo(relation regclass, column_name name)
 */
Datum
snowflake_convert_undo(PG_FUNCTION_ARGS)
{
	SnowflakeOnline online = {0};
	List	   *tables;
	List	   *statements;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the table must not be null")));
	lock_conversions(true);
	begin_function(fcinfo, &online);
	if (online.column == NULL)
		online.column = find_copied_column(online.relid);
	snowflake_open(&online);
	online.options.undo = true;
	online.options.give_up_us = LockTimeout == 0 ? UNDO_GIVE_UP_US :
		Min(UNDO_GIVE_UP_US, LockTimeout * INT64CONST(1000));
	statements = snowflake_undo_statements(&online.conversion, &tables);
	if (statements == NIL)
		ereport(NOTICE,
				(errmsg("no conversion of table %s has begun",
						snowflake_relation_name(online.relid)),
				 errhint("The way back from a conversion that is complete is snowflake_undo.sql.")));
	else
	{
		while (!snowflake_with_locks(&online, tables, AccessExclusiveLock,
									 execute_list, statements))
			snowflake_nap(RETRY_MS + RETRY_MORE_MS * pg_prng_double(&pg_global_prng_state));
	}
	end_function(&online);
	PG_RETURN_VOID();
}
