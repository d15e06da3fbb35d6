/*-------------------------------------------------------------------------
 *
 * local_call.c
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
 * registry_client/workers/local_call.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
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

#include "generator/standby.h"
#include "registry_client/calls/registry_sql.h"
#include "registry_client/workers/local_call.h"
#include "shared/clock.h"

/* How often to check whether the standbys have a commit. */
#define STANDBY_CHECK_MS	10

void
snowflake_set_local_session(void)
{
	for (const SessionSetting *s = snowflake_session_settings; s->name != NULL; s++)
	{
		if (GetConfigOption(s->name, true, false) != NULL)
			SetConfigOption(s->name, s->value, PGC_USERSET, PGC_S_SESSION);
	}
}

/*
 * Fail if what would be called is not the registry: this process may have the
 * rights of a superuser.
 */
static void
check_registry(const char *dbname)
{
	const char *query = psprintf("SELECT %s", snowflake_check_registry);
	int			rc = SPI_execute(query, true, 1);
	char	   *problem;
	StringInfoData reason;

	if (rc != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "unexpected result of a query of the catalogs: %d", rc);
	problem = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (problem == NULL)
		return;
	initStringInfo(&reason);
	(void) snowflake_append_problem(&reason, problem,
									SPI_getvalue(SPI_tuptable->vals[0],
												 SPI_tuptable->tupdesc, 2),
									dbname);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg_internal("%s", reason.data)));
}

/*
 * Keep the answer of the query that was executed.
 */
static void
keep_answer(RegistryAnswer *answer, MemoryContext context)
{
	TupleDesc	desc = SPI_tuptable->tupdesc;
	MemoryContext spi = MemoryContextSwitchTo(context);

	answer->ncolumns = desc->natts;
	for (uint64 row = 0; row < SPI_processed; row++)
	{
		char	  **values = palloc_array(char *, desc->natts);

		for (int i = 0; i < desc->natts; i++)
			values[i] = SPI_getvalue(SPI_tuptable->vals[row], desc, i + 1);
		answer->rows = lappend(answer->rows, values);
	}
	MemoryContextSwitchTo(spi);
}

/*
 * Run the query, and keep its answer in this memory.  A transaction is in progress.
 */
static void
run_query(const char *dbname, RegistryCall *call, MemoryContext context)
{
	Oid			types[SNOWFLAKE_CALL_PARAMS];
	Datum		values[SNOWFLAKE_CALL_PARAMS];
	int			rc;

	for (int i = 0; i < call->nparams; i++)
	{
		/* What comes from another database can have another encoding. */
		(void) pg_verifymbstr(call->params[i], strlen(call->params[i]), false);
		types[i] = TEXTOID;
		values[i] = CStringGetTextDatum(call->params[i]);
	}

	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	check_registry(dbname);
	rc = SPI_execute_with_args(call->query, call->nparams, types, values,
							   NULL, false, call->max_rows + 1);
	if (rc != SPI_OK_SELECT || SPI_processed > (uint64) call->max_rows)
		elog(ERROR, "unexpected result of \"%s\": %d", call->query, rc);
	keep_answer(&call->answer, context);
	SPI_finish();
	PopActiveSnapshot();
}

/*
 * Roll back after an error, and keep it.
 */
void
snowflake_roll_back(MemoryContext context, RegistryAnswer *answer)
{
	ErrorData  *edata;

	MemoryContextSwitchTo(context);
	edata = CopyErrorData();
	FlushErrorState();
	AbortCurrentTransaction();
	MemoryContextSwitchTo(context);

	answer->rolled_back = true;
	snowflake_keep_error(answer,
						 unpack_sql_state(edata->sqlerrcode),
						 ShutdownRequestPending &&
						 edata->sqlerrcode == ERRCODE_QUERY_CANCELED ?
						 "server is shutting down" : edata->message,
						 edata->detail, edata->hint);
	FreeErrorData(edata);
}

/*
 * Make a call in the database that this process is connected to.  If it
 * succeeds, it is committed, but perhaps not on the standbys.
 */
bool
snowflake_ask_local(const char *dbname, RegistryCall *call,
					const WaitLimit *limit, StringInfo error)
{
	MemoryContext context = CurrentMemoryContext;
	RegistryAnswer *answer = &call->answer;
	int64		left_ms =
		(limit->end - snowflake_steady_clock()) / 1000;

	snowflake_empty_answer(answer);
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PG_TRY();
	{
		pgstat_report_activity(STATE_RUNNING, call->query);
		enable_timeout_after(STATEMENT_TIMEOUT, (int) Max(left_ms, 1));
		run_query(dbname, call, context);
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
		snowflake_roll_back(context, answer);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
	if (answer->error != NULL)
		snowflake_append_error(error, answer, dbname);
	return answer->error == NULL;
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
		WaitLimit	soon = snowflake_shorten_wait(limit, STANDBY_CHECK_MS);

		if (snowflake_wait_is_over(limit, &reason))
		{
			appendStringInfo(error, "the registry did not commit durably: synchronous standbys: %s",
							 reason.data);
			return false;
		}
		(void) snowflake_limited_wait(&soon, PGINVALID_SOCKET, 0,
									  SNOWFLAKE_EVENT_STANDBY, &reason);
		resetStringInfo(&reason);
	}
	return true;
}
