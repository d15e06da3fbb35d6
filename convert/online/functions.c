/*-------------------------------------------------------------------------
 *
 * functions.c
 *	  snowflake_convert_online(): change an integer key, and all columns that
 *	  reference it, to bigint while clients read and write the tables;
 *	  snowflake_convert_plan(): the steps of that, with their statements, which can
 *	  be run by hand; and snowflake_convert_undo(): take them back, before the first
 *	  swap.
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
 * Nobody waits behind a request for longer than lock_wait, and of a deadlock the
 * conversion is the victim, which tries again; see online/locks.c, and
 * online/top_level.c for what waits longer.  A lock of the session keeps
 * conversions of a database apart.
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
 * convert/online/functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "nodes/parsenodes.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "convert/catalog/queries.h"
#include "convert/catalog/subtransaction.h"
#include "convert/columns/keys.h"
#include "convert/direct/conversion.h"
#include "convert/online/backfill.h"
#include "convert/online/begin.h"
#include "convert/online/locks.h"
#include "convert/online/obstacles.h"
#include "convert/online/run.h"
#include "convert/online/sessions.h"
#include "convert/online/steps.h"
#include "convert/online/swap.h"
#include "convert/online/transaction.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert_online);
PG_FUNCTION_INFO_V1(snowflake_convert_plan);
PG_FUNCTION_INFO_V1(snowflake_convert_undo);

/* How long snowflake_convert_undo() waits, or lock_timeout. */
#define UNDO_GIVE_UP_US	(60 * USECS_PER_SEC)

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
	snowflake_convert_refuse_old_snapshot();
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
static SnowflakeOnlinePhase
find_phase(const char *name)
{
	for (SnowflakeOnlinePhase phase = SNOWFLAKE_PHASE_PREPARE;
		 phase <= SNOWFLAKE_PHASE_DEFAULT; phase++)
	{
		if (strcmp(name, snowflake_online_phase_name(phase)) == 0)
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
 * snowflake_convert_online(relation regclass, column_name name,
 *							generator regprocedure, until text,
 *							batch_time interval, work_share float8,
 *							lock_wait interval, max_lag interval,
 *							give_up_after interval, subscribers_ready boolean,
 *							kind text)
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
	snowflake_online_get_kind(fcinfo, 10, online);
	online->namespace = get_func_namespace(fcinfo->flinfo->fn_oid);
	if (!PG_ARGISNULL(2))
		snowflake_convert_check_generator(online->generator);
	get_options(fcinfo, &online->options);
	snowflake_convert_keep_plans(context);
	(void) snowflake_lock_table(online->relid, AccessShareLock);

	/*
	 * statement_timeout would count for all transactions together.  lock_wait
	 * takes the place of lock_timeout.
	 */
	disable_timeout(STATEMENT_TIMEOUT, false);
	snowflake_online_lock_conversions(false);
	lock_timeout = LockTimeout;
	PG_TRY();
	{
		LockTimeout = online->options.lock_ms;
		snowflake_online_examine(online);
		snowflake_online_run_steps(online);
	}
	PG_FINALLY();
	{
		LockTimeout = lock_timeout;
		snowflake_online_unlock_conversions();
	}
	PG_END_TRY();

	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	PG_RETURN_VOID();
}

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

static char *
step_text(const SnowflakeOnline *online, const SnowflakeOnlineStep *step)
{
	switch (step->kind)
	{
		case SNOWFLAKE_STEP_SWAP:
			return snowflake_online_swap_script(online, step->relid);
		case SNOWFLAKE_STEP_DEFAULT:
			return snowflake_online_default_statement(online);
		case SNOWFLAKE_STEP_PREPARE:
			return psprintf("BEGIN;\n%s;\nCOMMIT", step->statement);
		default:
			return snowflake_online_step_statement(&online->transaction.conversion, step);
	}
}

/*
 * The steps as rows.
 */
static void
put_plan(SnowflakeOnline *online, const List *steps, ReturnSetInfo *rsinfo)
{
	const SnowflakeConversion *conversion = &online->transaction.conversion;
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
				snowflake_online_find_old_snapshot(online, step->relid) :
				snowflake_online_find_old_sessions(online);

			if (who != NULL)
				state = psprintf("to do, and has to wait: %s", who);
		}
		if (is_next && step->kind == SNOWFLAKE_STEP_BACKFILL)
			state = psprintf("next, about %d %% are copied",
							 snowflake_online_backfill_percent(conversion, step));
		found |= !step->done;
		values[0] = Int32GetDatum(foreach_current_index(cell) + 1);
		values[1] = CStringGetTextDatum(snowflake_online_phase_name(step->phase));
		values[2] = CStringGetTextDatum(step->table);
		values[3] = CStringGetTextDatum(snowflake_online_needs_access_exclusive(step) ?
										"ACCESS EXCLUSIVE" : lock_names[step->kind]);
		nulls[4] = step->done && step->statement == NULL;
		values[4] = nulls[4] ? (Datum) 0 : CStringGetTextDatum(step_text(online, step));
		values[5] = CStringGetTextDatum(state);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

/*
 * snowflake_convert_plan(relation regclass, column_name name,
 *						  subscribers_ready boolean, kind text) returns table
 */
Datum
snowflake_convert_plan(PG_FUNCTION_ARGS)
{
	SnowflakeOnline online = {0};
	SnowflakeConversion *conversion = &online.transaction.conversion;
	List	   *findings = NIL;
	List	   *steps;
	char	   *changer;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	snowflake_online_get_kind(fcinfo, 3, &online);
	snowflake_online_begin_function(fcinfo, &online);
	snowflake_online_open(&online);
	online.options.subscribers_ready = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	steps = snowflake_online_list_steps(conversion);
	if (!snowflake_online_check_obstacles(&online, steps, &findings, &changer))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("cannot look for obstacles of table %s now",
						snowflake_relation_name(online.relid)),
				 errdetail_internal("%s", changer != NULL ? changer :
									"Somebody changes privileges."),
				 errhint("Try again when it has ended.")));
	snowflake_online_give_notices(conversion, steps, findings);
	put_plan(&online, steps, (ReturnSetInfo *) fcinfo->resultinfo);
	SPI_finish();
	snowflake_become_caller(&online.transaction.caller);
	return (Datum) 0;
}

/* What is to be done. */
typedef struct Undo
{
	SnowflakeOnline *online;
	List	   *tables;			/* to lock */
	List	   *statements;
} Undo;

/* SnowflakeOnlineWork: execute the statements. */
static void
execute_statements(SnowflakeOnline *online, void *argument)
{
	snowflake_convert_run_statements(((Undo *) argument)->statements);
}

/*
 * Find the statements, lock the tables, and execute them.
 */
static bool
undo_once(void *argument)
{
	Undo	   *undo = argument;
	SnowflakeOnline *online = undo->online;

	snowflake_online_open(online);
	undo->statements = snowflake_online_undo_statements(&online->transaction.conversion,
														&undo->tables);
	if (undo->statements != NIL &&
		!snowflake_online_with_locks(online, undo->tables, AccessExclusiveLock,
									 execute_statements, undo))
		return false;
	snowflake_become_caller(&online->transaction.caller);
	return true;
}

/*
 * snowflake_convert_undo(relation regclass, column_name name)
 */
Datum
snowflake_convert_undo(PG_FUNCTION_ARGS)
{
	SnowflakeOnline online = {0};
	Undo		undo = {.online = &online};
	List	   *table;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the table must not be null")));
	snowflake_online_lock_conversions(true);
	snowflake_online_begin_function(fcinfo, &online);

	/* The name of the table is enough, also of one that references the key. */
	table = snowflake_convert_oid_parameter(online.relid);
	if (online.column == NULL)
		online.column =
			snowflake_convert_first(snowflake_convert_ask_server(table, sql_copied_column));
	online.options.undo = true;
	online.options.give_up_us = LockTimeout == 0 ? UNDO_GIVE_UP_US :
		Min(UNDO_GIVE_UP_US, LockTimeout * INT64CONST(1000));

	/*
	 * Of an attempt that fails no lock is left, behind which a client would
	 * wait until the next.
	 */
	while (!snowflake_convert_do(undo_once, &undo, NULL))
		snowflake_online_nap_about(SNOWFLAKE_RETRY_MS);
	if (undo.statements == NIL)
		ereport(NOTICE,
				(errmsg("no conversion of table %s has begun",
						snowflake_relation_name(online.relid)),
				 errhint("If the key has kept its sequence, snowflake_convert() with kind => 'local' has that be local again.")));
	SPI_finish();
	PG_RETURN_VOID();
}
