/*-------------------------------------------------------------------------
 *
 * top_level.c
 *	  Statements that cannot run in a transaction, such as CREATE INDEX
 *	  CONCURRENTLY, from within a procedure.
 *
 * A procedure that is the outermost statement of a session may commit.  Then
 * nothing distinguishes its state from that of a session without a
 * transaction block, if care is taken of:
 *
 * - Snapshots.  The statement gets the one of the portal, as a statement from
 *	 a client does.  What has an internal commit takes it away, and pushes
 *	 another one; event triggers look for it.  So it is set by
 *	 EnsurePortalSnapshotExists(), and afterwards it is popped where it is
 *	 still there.
 * - Users.  The owner of the table runs the statement, as the other statements
 *	 of a conversion.  It evaluates code of the owner, in a security-restricted
 *	 operation until its first commit, and then in those of its own; and it finds
 *	 its table by a name, which another one may have got meanwhile.  The user ID
 *	 remains set across its internal commits, so after an error in a later
 *	 transaction, the session would go on as the owner: a callback at the end of
 *	 that transaction switches back.
 * - Settings.  search_path is set until the first commit, which is after all
 *	 names were looked up.  So is default_tablespace, because the definition
 *	 of an index does not contain its tablespace.
 * - Memory.  What the statement needs is in a context of the caller, because
 *	 its own transactions end.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/top_level.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "parser/analyze.h"
#include "storage/proc.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "convert/catalog/subtransaction.h"
#include "convert/online/top_level.h"
#include "shared/table_owner.h"

/* Between two looks for a deadlock. */
#define CHECK_MS	50

/* Who runs the session, and whether an error would leave it to the owner. */
static SnowflakeCaller caller;
static bool in_danger = false;

static void
become_caller(void)
{
	SetUserIdAndSecContext(caller.user, caller.sec_context);
}

/*
 * XactCallback.  A restricted operation does not outlive its transaction; what
 * evaluates code of the owner later begins one by itself.  After an abort, the
 * user ID is what it was at the beginning of the transaction.
 */
static void
at_end_of_transaction(XactEvent event, void *argument)
{
	Oid			user;
	int			sec_context;

	if (!in_danger)
		return;
	if (event == XACT_EVENT_COMMIT)
	{
		GetUserIdAndSecContext(&user, &sec_context);
		SetUserIdAndSecContext(user, caller.sec_context);
	}
	else if (event == XACT_EVENT_ABORT)
	{
		become_caller();
		in_danger = false;
	}
}

/*
 * Become the owner of the table, across transactions.
 */
static void
become_owner(Oid owner)
{
	static bool is_registered = false;

	if (!is_registered)
		RegisterXactCallback(at_end_of_transaction, NULL);
	is_registered = true;
	GetUserIdAndSecContext(&caller.user, &caller.sec_context);
	in_danger = true;
	SetUserIdAndSecContext(owner,
						   caller.sec_context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
}

/*
 * Parse a utility statement, and execute it.
 */
static void
process(const char *statement)
{
	RawStmt    *raw = linitial_node(RawStmt, pg_parse_query(statement));
	Query	   *query = parse_analyze_fixedparams(raw, statement, NULL, 0, NULL);
	PlannedStmt *planned = makeNode(PlannedStmt);

	if (query->commandType != CMD_UTILITY)
		elog(ERROR, "not a utility statement: %s", statement);
	planned->commandType = CMD_UTILITY;
	planned->canSetTag = true;
	planned->utilityStmt = query->utilityStmt;
	planned->queryId = query->queryId;
	ProcessUtility(planned, statement, false, PROCESS_UTILITY_TOPLEVEL, NULL,
				   NULL, None_Receiver, NULL);
}

/*
 * End the transaction that the statement has left open, as the session's main
 * loop would.
 */
static void
finish(MemoryContext context)
{
	if (ActivePortal->portalSnapshot != NULL && ActiveSnapshotSet())
		PopActiveSnapshot();
	ActivePortal->portalSnapshot = NULL;
	MemoryContextSwitchTo(context);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	SPI_finish();
}

/* Settings of the session that a statement does not have. */
typedef struct OwnSettings
{
	int			deadlock_timeout;
	int			lock_timeout;
	bool		log_lock_waits;
} OwnSettings;

static TimeoutId deadlock_checks;

/*
 * Until stop_checking(), look for a deadlock at once when this session waits for a
 * lock, and again and again.
 *
 * What waits for snapshots, such as CREATE INDEX CONCURRENTLY, has a lock on its
 * table meanwhile.  Who has a snapshot, or has changed the table, and then requests
 * a lock on it, waits for this session, which waits for them.  The server has the
 * one fail that finds out first.  That must be this session, and the others look
 * once, after deadlock_timeout.
 *
 * The statement may wait for longer than lock_wait, because nobody waits for it.
 */
static void
start_checking(OwnSettings *settings)
{
	static bool is_registered = false;

	if (!is_registered)
		deadlock_checks = RegisterTimeout(USER_TIMEOUT, CheckDeadLockAlert);
	is_registered = true;
	settings->deadlock_timeout = DeadlockTimeout;
	settings->lock_timeout = LockTimeout;
	settings->log_lock_waits = log_lock_waits;
	DeadlockTimeout = 1;
	LockTimeout = 0;
	/* Each check would be logged. */
	log_lock_waits = false;
	enable_timeout_every(deadlock_checks,
						 TimestampTzPlusMilliseconds(GetCurrentTimestamp(), CHECK_MS), CHECK_MS);
}

static void
stop_checking(const OwnSettings *settings)
{
	disable_timeout(deadlock_checks, false);
	DeadlockTimeout = settings->deadlock_timeout;
	LockTimeout = settings->lock_timeout;
	log_lock_waits = settings->log_lock_waits;
}

/*
 * End the transaction in which the statement has failed, as ROLLBACK in a procedure
 * would.  Session-level locks are released, too.
 */
static void
abandon(MemoryContext context)
{
	ActivePortal->portalSnapshot = NULL;
	AbortCurrentTransaction();
	StartTransactionCommand();
	MemoryContextSwitchTo(context);
}

/*
 * Run a statement as the owner of its table, with no transaction of the caller
 * and no connection to SPI.  Returns false if it was given up because it was part
 * of a deadlock.
 */
bool
snowflake_online_run_top_level(MemoryContext context, Oid owner,
							   const char *statement, const char *tablespace)
{
	MemoryContext old = CurrentMemoryContext;
	MemoryContext own = AllocSetContextCreate(context, "top-level statement",
											  ALLOCSET_DEFAULT_SIZES);
	OwnSettings settings;
	volatile bool done = true;

	MemoryContextSwitchTo(own);
	EnsurePortalSnapshotExists();
	(void) NewGUCNestLevel();
	snowflake_use_safe_settings();
	if (tablespace != NULL)
		(void) set_config_option("default_tablespace", tablespace,
								 PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	become_owner(owner);
	start_checking(&settings);
	PG_TRY();
	{
		process(pstrdup(statement));
		stop_checking(&settings);
		become_caller();
		finish(own);
		in_danger = false;
	}
	PG_CATCH();
	{
		stop_checking(&settings);
		MemoryContextSwitchTo(own);
		if (!snowflake_convert_is_of_others(CopyErrorData()))
			PG_RE_THROW();
		FlushErrorState();
		abandon(own);
		done = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(own);
	return done;
}
