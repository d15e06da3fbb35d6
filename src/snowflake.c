/*-------------------------------------------------------------------------
 *
 * snowflake.c
 *	  Start of the module: settings, hooks, workers, and shared memory of each
 *	  part.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/snowflake.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker_internals.h"
#include "replication/origin.h"
#include "replication/slot.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "tcop/utility.h"

#include "base/worker.h"
#include "generator/grant.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "ids/ids.h"
#include "new_tables/alter.h"
#include "new_tables/new_tables.h"
#include "ranges/elsewhere.h"
#include "ranges/slots.h"
#include "sequences/attach.h"
#include "sequences/copy.h"
#include "sequences/copy_identity.h"
#include "sequences/exhaust.h"
#include "sequences/identity.h"
#include "sequences/kind.h"
#include "sequences/suitable.h"
#include "sequences/unused.h"
#include "sequences/values.h"
#include "server/api.h"
#include "shared/compat.h"

SNOWFLAKE_MODULE_MAGIC("snowflake");

PGDLLEXPORT void _PG_init(void);

static ProcessUtility_hook_type prev_process_utility = NULL;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/*
 * After DISCARD ALL, which connection poolers use to clear a session for the
 * next client, and DISCARD SEQUENCES, snowflake_currval() must not return the
 * ID of the previous client.
 */
static bool
forgets_currval(const Node *statement)
{
	DiscardMode target;

	if (!IsA(statement, DiscardStmt))
		return false;
	target = ((const DiscardStmt *) statement)->target;
	return target == DISCARD_ALL || target == DISCARD_SEQUENCES;
}

/*
 * Execute a utility statement, as the next hook or the server does it.
 */
static void
execute_utility(PlannedStmt *pstmt, const char *queryString,
				bool readOnlyTree, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *queryEnv,
				DestReceiver *dest, QueryCompletion *qc)
{
	SnowflakeCopiedTable *copied = snowflake_prepare_copy(pstmt->utilityStmt);
	MemoryContext outer = snowflake_begin_statement(pstmt->utilityStmt);
	const bool	resets = snowflake_resets_sequences(pstmt->utilityStmt);
	const bool	alters_table = IsA(pstmt->utilityStmt, AlterTableStmt);

	if (resets)
		snowflake_begin_resets();
	if (alters_table)
		snowflake_begin_alter_table();
	PG_TRY();
	{
		if (prev_process_utility)
			prev_process_utility(pstmt, queryString, readOnlyTree, context,
								 params, queryEnv, dest, qc);
		else
			standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
									params, queryEnv, dest, qc);
	}
	PG_FINALLY();
	{
		if (resets)
			snowflake_end_resets();
		if (alters_table)
			snowflake_end_alter_table();
		snowflake_end_statement(outer);
		snowflake_end_identities(copied);
	}
	PG_END_TRY();
	snowflake_close_identities(copied);
}

/*
 * Do what belongs to a utility statement before it, and after it.
 */
static void
process_utility(PlannedStmt *pstmt, const char *queryString,
				bool readOnlyTree, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *queryEnv,
				DestReceiver *dest, QueryCompletion *qc)
{
	/* Look at the statement first, because it may free the tree. */
	bool		discards = forgets_currval(pstmt->utilityStmt);
	bool		resets = snowflake_resets_sequences(pstmt->utilityStmt);
	bool		alters = IsA(pstmt->utilityStmt, AlterSeqStmt);
	bool		drops = snowflake_prepare_drop(pstmt->utilityStmt);
	SnowflakeDefinition definition;

	if (resets)
		pstmt = snowflake_prepare_alter(pstmt);
	snowflake_begin_definition(&definition, pstmt->utilityStmt, context);
	execute_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv,
					dest, qc);

	if (discards)
	{
		snowflake_forget_currval();
		snowflake_forget_sequence_values();
	}
	if (resets)
		snowflake_exhaust_reset(alters);
	snowflake_end_definition(&definition);
	if (drops)
		snowflake_finish_drop();
}

/*
 * Register a background worker.  Return false if there was no slot for it: the
 * server merely logs that, and not with the name.
 */
static bool
register_worker(const char *name, const char *library, const char *function)
{
	BackgroundWorker worker;

	snowflake_describe_worker(&worker, name, library, function);
	RegisterBackgroundWorker(&worker);

	/* A child process that has no postmaster's memory registers nothing. */
	return IsUnderPostmaster ||
		(!snowflake_no_workers() &&
		 strcmp(snowflake_last_worker()->rw_worker.bgw_name, name) == 0);
}

/*
 * Register the workers that call the registry.  Their library is loaded before
 * they are, so that one that starts after an upgrade of the package still runs
 * with the library that this server was started with.
 */
static void
register_client(void)
{
	load_file(SNOWFLAKE_CLIENT_LIBRARY, false);
	if (!register_worker("snowflake grant", SNOWFLAKE_CLIENT_LIBRARY,
						 "snowflake_grant_main") ||
		!register_worker("snowflake ranges", SNOWFLAKE_CLIENT_LIBRARY,
						 "snowflake_ranges_main"))
		ereport(FATAL,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("out of background worker slots for \"snowflake.registry\""),
				 errhint("Increase \"max_worker_processes\", which is %d.",
						 max_worker_processes)));
}

static void
register_workers(void)
{
	if (snowflake_has_registry)
		register_client();
	if (max_wal_senders > 0 &&
		!register_worker("snowflake standbys", SNOWFLAKE_LIBRARY,
						 "snowflake_standbys_main"))
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("out of background worker slots for \"snowflake standbys\""),
				 errdetail("A query that runs while \"synchronous_standby_names\" changes waits for as many standbys as when it began."),
				 errhint("Increase \"max_worker_processes\", which is %d.",
						 max_worker_processes)));

	/*
	 * It ends with 0, and then for good.  One that is never restarted would
	 * be forgotten when a backend of a standby crashes.
	 */
	(void) register_worker("snowflake startup", SNOWFLAKE_LIBRARY,
						   "snowflake_startup_main");
}

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	snowflake_request_state();
	snowflake_request_grant();
	snowflake_request_slots();
	snowflake_request_elsewhere();
	snowflake_request_unused();
}

static void
startup_shmem(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	snowflake_attach_grant(snowflake_attach_state());
	snowflake_attach_slots();
	snowflake_attach_elsewhere();
	snowflake_attach_unused();
	LWLockRelease(AddinShmemInitLock);
}

void
_PG_init(void)
{
	snowflake_publish_api();
	snowflake_register_kinds();
	snowflake_watch_sequences();

	/*
	 * If a session loads the module, there is no shared memory, and therefore
	 * no generator; functions that need none still work.
	 */
	if (!process_shared_preload_libraries_in_progress)
		return;

	snowflake_configure_state(snowflake_define_settings());
	if (snowflake_max_origins == 0)
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("snowflake requires a replication origin, but \"%s\" is 0",
						SNOWFLAKE_ORIGINS_SETTING),
				 errdetail("A primary cannot generate IDs, and a standby stops when its primary generates the first ID."),
				 errhint("Set \"%s\" to at least 1.",
						 SNOWFLAKE_ORIGINS_SETTING)));
	if (snowflake_has_registry)
		snowflake_keep_grant();

	/*
	 * pg_upgrade starts servers that generate no IDs, and wants them quiet;
	 * in single-user mode there are no workers.
	 */
	if (!IsBinaryUpgrade && IsPostmasterEnvironment)
		register_workers();

	snowflake_watch_identities();
	snowflake_watch_resets();
	snowflake_watch_calls();
	prev_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}
