/*-------------------------------------------------------------------------
 *
 * registry.c
 *	  Calls of the registry, a database that grants worker IDs.
 *
 * Each call uses its own connection.  A server calls every few minutes, so an
 * idle connection would only be one more thing that can break; and a registry
 * of a thousand servers needs few connections.
 *
 * Everything is asynchronous, so that the process can be stopped at any time,
 * and has a timeout.  If the connection string has several hosts, each is
 * tried separately with its own timeout: libpq has one per host only if it may
 * block.
 *
 * An answer counts only if the registry committed it durably.  libpq completes
 * a result when the commit is done, and a commit that did not wait for its
 * synchronous standby gives a warning.  So a warning means that there is no
 * answer.
 *
 * This is the only file that uses libpq.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/registry.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "libpq-fe.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "registry.h"

/* Timeout for one host, unless the connection string has connect_timeout. */
#define CONNECT_TIMEOUT_MS	2000

/* Does a shutdown request end the current call? */
static bool ends_at_shutdown;

/*
 * The error in a connection string, or NULL.
 */
const char *
snowflake_check_conninfo(const char *conninfo)
{
	char	   *error = NULL;
	const char *result = NULL;

	PQconninfoFree(PQconninfoParse(conninfo, &error));
	if (error != NULL)
		result = pnstrdup(error, strcspn(error, "\n"));
	PQfreemem(error);
	return result;
}

/*
 * Append a message as a single line, in characters that are in any encoding.
 */
static void
append_message(StringInfo error, const char *message)
{
	for (; *message != '\0'; message++)
	{
		unsigned char c = (unsigned char) *message;

		if (c == '\n' && message[1] != '\0')
			appendStringInfoString(error, message[1] == '\t' ? ";" : "; ");
		else if (isspace(c))
			appendStringInfoString(error, c == '\n' ? "" : " ");
		else
			appendStringInfoChar(error, c > 32 && c < 127 ? c : '?');
	}
}

/*
 * Wait until the connection is readable or writable.  Returns false if that
 * takes too long, or the process must stop.
 */
static bool
wait_for_connection(PGconn *conn, int events, int64 end, StringInfo error)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = snowflake_wait_event("SnowflakeRegistry");
	for (;;)
	{
		int64		left = (end - snowflake_steady_clock()) / 1000;
		int			rc;

		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending && ends_at_shutdown)
		{
			appendStringInfoString(error, "server is shutting down");
			return false;
		}
		if (left <= 0)
		{
			appendStringInfoString(error, "no answer in time");
			return false;
		}
		rc = WaitLatchOrSocket(MyLatch,
							   events | WL_LATCH_SET | WL_TIMEOUT |
							   WL_EXIT_ON_PM_DEATH,
							   PQsocket(conn), left, wait_event);
		if (rc & WL_LATCH_SET)
			ResetLatch(MyLatch);
		if (rc & events)
			return true;
	}
}

/*
 * The nth item of a comma-separated list, or the only one.
 */
static char *
list_item(const char *list, int n)
{
	const char *end;

	if (list == NULL || strchr(list, ',') == NULL)
		return list == NULL ? NULL : pstrdup(list);
	while (n-- > 0 && (end = strchr(list, ',')) != NULL)
		list = end + 1;
	return pnstrdup(list, strcspn(list, ","));
}

static int
list_length(const char *list)
{
	int			length = 1;

	for (; list != NULL && *list != '\0'; list++)
		length += *list == ',';
	return length;
}

/*
 * Connect to one of the hosts, or return NULL.
 */
static PGconn *
connect_to_host(const PQconninfoOption *options, int host, int64 end,
				StringInfo error)
{
	const char *keywords[64];
	const char *values[64];
	int			n = 0;
	int			timeout_ms = CONNECT_TIMEOUT_MS;
	PGconn	   *conn;
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	/* The last value of a keyword counts. */
	keywords[n] = "target_session_attrs";
	values[n++] = "read-write";
	keywords[n] = "fallback_application_name";
	values[n++] = "snowflake";
	for (const PQconninfoOption *option = options;
		 option->keyword != NULL && n < (int) lengthof(keywords) - 1; option++)
	{
		const char *value = option->val;

		if (value == NULL)
			continue;
		if (strcmp(option->keyword, "host") == 0 ||
			strcmp(option->keyword, "hostaddr") == 0 ||
			strcmp(option->keyword, "port") == 0)
			value = list_item(value, host);
		else if (strcmp(option->keyword, "connect_timeout") == 0)
		{
			long		seconds = strtol(value, NULL, 10);

			if (seconds > 0)
				timeout_ms = (int) Min(seconds, SECS_PER_HOUR) * 1000;
		}
		keywords[n] = option->keyword;
		values[n++] = value;
	}
	keywords[n] = NULL;
	values[n] = NULL;

	end = Min(end, snowflake_steady_clock() + (int64) timeout_ms * 1000);
	conn = PQconnectStartParams(keywords, values, false);
	if (conn == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	while (PQstatus(conn) != CONNECTION_BAD && status != PGRES_POLLING_OK &&
		   status != PGRES_POLLING_FAILED)
	{
		int			events = status == PGRES_POLLING_READING ?
			WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;

		if (!wait_for_connection(conn, events, end, error))
		{
			const char *name = PQhost(conn);

			appendStringInfo(error, " from host \"%s\"",
							 name != NULL ? name : "");
			PQfinish(conn);
			return NULL;
		}
		status = PQconnectPoll(conn);
	}
	if (PQstatus(conn) == CONNECTION_OK)
		return conn;
	append_message(error, PQerrorMessage(conn));
	PQfinish(conn);
	return NULL;
}

/*
 * Connect to the first host that accepts writes.
 */
static PGconn *
connect_to_registry(const char *conninfo, int64 end, StringInfo error)
{
	char	   *message = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo, &message);
	const char *hosts = NULL;
	int			nhosts;
	PGconn	   *conn = NULL;

	if (options == NULL)
	{
		append_message(error, message != NULL ? message : "out of memory");
		PQfreemem(message);
		return NULL;
	}
	for (PQconninfoOption *option = options; option->keyword != NULL; option++)
	{
		if (option->val != NULL && (strcmp(option->keyword, "hostaddr") == 0 ||
									(strcmp(option->keyword, "host") == 0 && hosts == NULL)))
			hosts = option->val;
	}
	nhosts = list_length(hosts);
	for (int i = 0; i < nhosts && conn == NULL; i++)
	{
		if (error->len > 0)
			appendStringInfoString(error, "; ");
		conn = connect_to_host(options, i, end, error);
	}
	PQconninfoFree(options);
	return conn;
}

/*
 * Keep warnings from the registry.
 */
static void
receive_notice(void *arg, const PGresult *result)
{
	StringInfo	warning = arg;
	const char *severity =
		PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *message =
		PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (severity != NULL && message != NULL &&
		strcmp(severity, "WARNING") == 0)
		append_message(warning, message);
}

/*
 * Append the error of a query as a single line.  If the functions do not
 * exist, add the most likely reason.
 */
static void
append_error(StringInfo error, PGconn *conn, const PGresult *result)
{
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);

	if (message == NULL)
	{
		append_message(error, PQerrorMessage(conn));
		return;
	}
	if (sqlstate != NULL && strcmp(sqlstate, "42883") == 0)
		appendStringInfo(error, "the extension snowflake is not installed in database \"%s\", or not in a schema of \"search_path\": ",
						 PQdb(conn));
	append_message(error, message);
	if (detail != NULL)
	{
		appendStringInfoString(error, "; ");
		append_message(error, detail);
	}
	if (hint != NULL)
	{
		appendStringInfoString(error, "; ");
		append_message(error, hint);
	}
}

/*
 * Run a query and return its last result, or NULL.
 */
static PGresult *
run_query(PGconn *conn, int64 end, const char *query, int nparams,
		  const char *const *params, StringInfo error)
{
	PGresult   *last = NULL;

	if (!PQsendQueryParams(conn, query, nparams, NULL, params, NULL, NULL, 0))
	{
		append_message(error, PQerrorMessage(conn));
		return NULL;
	}
	for (;;)
	{
		PGresult   *result;

		while (PQisBusy(conn))
		{
			if (!wait_for_connection(conn, WL_SOCKET_READABLE, end, error))
			{
				PQclear(last);
				return NULL;
			}
			if (!PQconsumeInput(conn))
			{
				append_message(error, PQerrorMessage(conn));
				PQclear(last);
				return NULL;
			}
		}
		result = PQgetResult(conn);
		if (result == NULL)
			return last;
		PQclear(last);
		last = result;
	}
}

/*
 * Get an answer from the registry, or the error.
 */
static RegistryResult
ask(PGconn *conn, int64 end, int timeout_ms, const char *query, int nparams,
	const char *const *params, int64 *answer, StringInfo error)
{
	RegistryResult outcome = SNOWFLAKE_REGISTRY_FAILED;
	StringInfoData warning;
	const char *timeout = psprintf("%d", timeout_ms);
	PGresult   *result;

	initStringInfo(&warning);
	PQsetNoticeReceiver(conn, receive_notice, &warning);

	/* When we stop waiting, the registry should cancel the query. */
	result = run_query(conn, end,
					   "SELECT pg_catalog.set_config('statement_timeout', $1, false)",
					   1, &timeout, error);
	if (result == NULL)
		return SNOWFLAKE_REGISTRY_FAILED;
	PQclear(result);

	result = run_query(conn, end, query, nparams, params, error);
	if (result == NULL)
		return SNOWFLAKE_REGISTRY_FAILED;
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		append_error(error, conn, result);
	else if (warning.len > 0)
		appendStringInfo(error, "the registry did not commit durably: %s",
						 warning.data);
	else if (PQntuples(result) == 0 || PQgetisnull(result, 0, 0))
		outcome = SNOWFLAKE_REGISTRY_NO_ROW;
	else
	{
		for (int i = 0; i < Min(PQnfields(result), SNOWFLAKE_ANSWER_COLUMNS); i++)
			answer[i] = strtoi64(PQgetvalue(result, 0, i), NULL, 10);
		outcome = SNOWFLAKE_REGISTRY_ROW;
	}
	PQclear(result);
	return outcome;
}

/*
 * Call a function of the registry, whose columns are integers.  A shutdown
 * request does not end the last call of a process.
 */
RegistryResult
snowflake_call_registry(const char *conninfo, int timeout_ms, bool is_last,
						const char *query, int nparams,
						const char *const *params,
						int64 *answer, StringInfo error)
{
	int64		end =
		snowflake_steady_clock() + (int64) timeout_ms * 1000;
	RegistryResult outcome = SNOWFLAKE_REGISTRY_FAILED;
	PGconn	   *conn;

	ends_at_shutdown = !is_last;
	if (!AcquireExternalFD())
	{
		appendStringInfoString(error, "too many open files");
		return SNOWFLAKE_REGISTRY_FAILED;
	}
	conn = connect_to_registry(conninfo, end, error);
	if (conn != NULL)
	{
		resetStringInfo(error);
		outcome = ask(conn, end, timeout_ms, query, nparams, params, answer,
					  error);
		PQfinish(conn);
	}
	ReleaseExternalFD();
	return outcome;
}
