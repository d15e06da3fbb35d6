/*-------------------------------------------------------------------------
 *
 * startup.c
 *	  The background worker that runs once, when the server can generate IDs.
 *
 * It runs at the end of recovery: at server start, or at promotion.  Loading
 * the library is too early, because catalogs cannot be read then, and the log
 * collector does not run.
 *
 * The worker takes one of max_worker_processes and releases it at once, also
 * if it fails: an error would be the same a second later.  If there is no slot, or
 * if it fails, its messages are missing, and an old mark is not raised: see
 * snowflake_begin_reserving().
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/server/startup.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_subscription.h"
#include "lib/stringinfo.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

#include "generator/clock_messages.h"
#include "generator/loaded.h"
#include "generator/reserve.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "shared/compat.h"

PGDLLEXPORT void snowflake_startup_main(Datum main_arg);

/*
 * Is there a subscription, in any database?
 */
static bool
has_subscriptions(void)
{
	Relation	relation;
	SysScanDesc scan;
	bool		found;

	StartTransactionCommand();
	relation = table_open(SubscriptionRelationId, AccessShareLock);
	scan = systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	found = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	CommitTransactionCommand();
	return found;
}

/*
 * Log the scheme, datacenter ID, and worker ID.
 */
static void
log_ids(const SnowflakeScheme *scheme)
{
	StringInfoData ids;

	initStringInfo(&ids);
	if (scheme->width[SNOWFLAKE_DATACENTER] > 0)
		appendStringInfo(&ids, ", datacenter ID %d", snowflake_datacenter_id);
	if (snowflake_state->grant.registry)
		appendStringInfoString(&ids, ", worker ID granted by the registry");
	else if (scheme->width[SNOWFLAKE_WORKER] > 0)
		appendStringInfo(&ids, ", worker ID %d", Max(snowflake_worker_id, 0));
	ereport(LOG,
			(errmsg("snowflake IDs have scheme \"%s\"%s",
					snowflake_scheme, ids.data)));
	pfree(ids.data);
}

/*
 * Warn if there are two sources of the worker ID.
 */
static void
warn_of_two_worker_ids(void)
{
	if (snowflake_state->grant.registry && snowflake_worker_id >= 0)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("\"snowflake.worker_id\" is set, although a registry grants worker IDs"),
				 errdetail("If \"snowflake.registry\" is ever missing at a server start, this server generates IDs with worker ID %d, which the registry can grant to another server.",
						   snowflake_worker_id),
				 errhint("Remove \"snowflake.worker_id\". A server gets the worker ID that it held last if it is free.")));
}

/*
 * Report that the worker ID was never set, as a warning if tables have IDs of several
 * servers: rows are replicated from others, or Citus is loaded.
 */
static void
report_unset_worker_id(const SnowflakeScheme *scheme)
{
	bool		has_others;

	if (snowflake_worker_id >= 0 || snowflake_state->grant.registry ||
		scheme->width[SNOWFLAKE_WORKER] == 0)
		return;

	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	has_others = has_subscriptions() || GetConfigOption("citus.version", true, false) != NULL;
	ereport(has_others ? WARNING : LOG,
			(errcode(has_others ? ERRCODE_WARNING : ERRCODE_SUCCESSFUL_COMPLETION),
			 errmsg("\"snowflake.worker_id\" is not set, so snowflake IDs are generated with worker ID 0"),
			 has_others ?
			 errdetail("The server has subscriptions, or Citus. Another server with worker ID 0 can generate the same IDs, which stop replication, or are stored twice.") : 0,
			 errhint("If IDs of several servers can be stored in the same table, set a different \"snowflake.worker_id\" on each server.")));
}

/*
 * Main function of the background worker.  An error ends it with 0, too, so that it is not
 * restarted: it would be the same a second later.
 *
 * The default handler of signals, bgworker_die(), raises an error at once,
 * which is a PANIC in the critical section of a flush.
 */
void
snowflake_startup_main(Datum main_arg)
{
	const SnowflakeScheme *scheme = snowflake_server_scheme();

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	PG_TRY();
	{
		log_ids(scheme);
		warn_of_two_worker_ids();
		report_unset_worker_id(scheme);
		snowflake_begin_reserving();
		snowflake_warn_at_start();
	}
	PG_CATCH();
	{
		HOLD_INTERRUPTS();
		EmitErrorReport();
	}
	PG_END_TRY();
	proc_exit(0);
}
