/*-------------------------------------------------------------------------
 *
 * grant_local.c
 *	  Calls of a registry that is in a database of this server.
 *
 * The worker is connected to that database itself, as a background worker, and
 * calls the functions by SPI.  So it takes none of max_connections, needs no
 * entry in pg_hba.conf, and can still call at a shutdown, when clients cannot
 * connect anymore.
 *
 * The commit waits for no synchronous standby: that wait would hold up a
 * shutdown if the standby is down.  The worker waits separately, and an answer
 * counts only when the standbys have the commit.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/server/grant_local.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"

#include "base/one_line.h"
#include "generator/standby.h"
#include "server/grant_local.h"
#include "shared/clock.h"

/* How often to check whether the standbys have a commit. */
#define STANDBY_CHECK_MS	10

/*
 * Set what the defaults of the role, the database, or the server may have set
 * otherwise.  A server may always extend its own grant, even if its sessions
 * are read-only by default.
 */
void
snowflake_set_local_session(void)
{
	static const char *const settings[][2] = {
		{"search_path", "pg_catalog, pg_temp"},
		{"standard_conforming_strings", "on"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"lock_timeout", "0"},
		{"transaction_timeout", "0"}
	};

	for (size_t i = 0; i < lengthof(settings); i++)
	{
		/* Not all versions have each of them. */
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0], settings[i][1], PGC_USERSET,
							PGC_S_SESSION);
	}
}

/*
 * Fail if what would be called is not the registry: this process may have the
 * rights of a superuser.
 */
static void
check_registry(void)
{
	char	   *reason;
	int			rc = SPI_execute(SNOWFLAKE_CHECK_REGISTRY, true, 1);

	if (rc != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "unexpected result of a query of the catalogs: %d", rc);
	reason = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg_internal("%s", reason)));
}

/*
 * Run the query, and copy its answer.  A transaction is in progress.
 */
static RegistryResult
run_query(RegistryCall *call)
{
	RegistryResult outcome = SNOWFLAKE_REGISTRY_NO_ROW;
	Oid			types[SNOWFLAKE_CALL_PARAMS];
	Datum		values[SNOWFLAKE_CALL_PARAMS];
	int			rc;

	for (int i = 0; i < call->nparams; i++)
	{
		types[i] = TEXTOID;
		values[i] = CStringGetTextDatum(call->params[i]);
	}

	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	check_registry();
	rc = SPI_execute_with_args(call->query, call->nparams, types, values,
							   NULL, false, 1);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "unexpected result of \"%s\": %d", call->query, rc);
	if (SPI_processed > 0)
	{
		HeapTuple	tuple = SPI_tuptable->vals[0];
		TupleDesc	desc = SPI_tuptable->tupdesc;

		for (int i = 0; i < Min(desc->natts, SNOWFLAKE_ANSWER_COLUMNS); i++)
		{
			char	   *value = SPI_getvalue(tuple, desc, i + 1);

			if (value == NULL)
				break;
			call->answer[i] = strtoi64(value, NULL, 10);
			outcome = SNOWFLAKE_REGISTRY_ROW;
		}
	}
	SPI_finish();
	PopActiveSnapshot();
	return outcome;
}

/*
 * Roll back after an error, and append it as a single line.
 */
static void
roll_back(MemoryContext context, const char *dbname, StringInfo error)
{
	ErrorData  *edata;

	MemoryContextSwitchTo(context);
	edata = CopyErrorData();
	FlushErrorState();
	AbortCurrentTransaction();
	MemoryContextSwitchTo(context);

	if (ShutdownRequestPending && edata->sqlerrcode == ERRCODE_QUERY_CANCELED)
		appendStringInfoString(error, "server is shutting down");
	else
	{
		if (edata->sqlerrcode == ERRCODE_UNDEFINED_SCHEMA ||
			edata->sqlerrcode == ERRCODE_UNDEFINED_FUNCTION)
			appendStringInfo(error, SNOWFLAKE_NO_REGISTRY,
							 dbname);
		snowflake_append_message(error, edata->message);
	}
	if (edata->detail != NULL)
	{
		appendStringInfoString(error, "; ");
		snowflake_append_message(error, edata->detail);
	}
	if (edata->hint != NULL)
	{
		appendStringInfoString(error, "; ");
		snowflake_append_message(error, edata->hint);
	}
	FreeErrorData(edata);
}

/*
 * Make a call in the database that this process is connected to.  If it
 * succeeds, it is committed, but perhaps not on the standbys.
 */
RegistryResult
snowflake_ask_local(const char *dbname, RegistryCall *call,
					const WaitLimit *limit, StringInfo error)
{
	volatile RegistryResult outcome = SNOWFLAKE_REGISTRY_FAILED;
	MemoryContext context = CurrentMemoryContext;
	int64		left_ms =
		(limit->end - snowflake_steady_clock()) / 1000;

	call->refused = false;
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PG_TRY();
	{
		pgstat_report_activity(STATE_RUNNING, call->query);
		enable_timeout_after(STATEMENT_TIMEOUT, (int) Max(left_ms, 1));
		outcome = run_query(call);
		disable_timeout(STATEMENT_TIMEOUT, false);
		(void) set_config_option("synchronous_commit", "local", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
								 false);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		disable_timeout(STATEMENT_TIMEOUT, false);
		QueryCancelPending = false;
		roll_back(context, dbname, error);
		call->refused = true;
		outcome = SNOWFLAKE_REGISTRY_FAILED;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
	return outcome;
}

/*
 * Wait until the synchronous standbys have the last commit, if there are any.
 */
bool
snowflake_wait_for_local_commit(const WaitLimit *limit, StringInfo error)
{
	XLogRecPtr	commit = XactLastCommitEnd;
	StringInfoData reason;

	initStringInfo(&reason);
	while (!snowflake_standbys_have(commit))
	{
		if (!snowflake_limited_wait(limit, PGINVALID_SOCKET, 0,
									STANDBY_CHECK_MS, SNOWFLAKE_EVENT_STANDBY,
									&reason))
		{
			appendStringInfo(error, "the registry did not commit durably: synchronous standbys: %s",
							 reason.data);
			return false;
		}
	}
	return true;
}
