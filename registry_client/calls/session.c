/*-------------------------------------------------------------------------
 *
 * session.c
 *	  The process that is connected to a registry, by libpq.
 *
 * It is a child of the worker (child.c), because what answers at the address of
 * a registry need not be one.  It connects, sets the session up, and makes the
 * calls that it is sent, until one is the last, or its parent closes the socket.
 * To each, it answers by what it received, in a struct of fixed size and as many
 * rows as the call has room for.  What that is worth, its parent finds out
 * (answer.c).  It waits for as long as its parent lets it.
 *
 * An answer counts only if the registry committed it durably.  A commit that
 * did not wait for its synchronous standby gives a warning.  The registry sends
 * the result before it commits, then the warning, and then that it is ready for
 * another query; and only that ends take_results().  So at its end, it has each
 * warning of the call, and none of the next one.  Other warnings, of whatever is
 * loaded there, say nothing about the commit.
 *
 * Rows are taken one by one, so that those of an answer that has no end are not
 * collected.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/session.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <poll.h>
#include <unistd.h>

#include "libpq-fe.h"

#include "registry_client/calls/child.h"
#include "registry_client/calls/session.h"

/* duplicate_object */
#define NAMESAKE_SQLSTATE	"42710"

/*
 * Keep warnings that a commit is not durable.  Messages are translated, and
 * these have no SQLSTATE of their own, so they are recognized by the function
 * that gives them.  A registry that does not send its name is not trusted.  The
 * registry's own warning, of another server of this name, has a SQLSTATE.
 */
static void
receive_notice(void *arg, const PGresult *result)
{
	RegistryAnswer *answer = arg;
	const char *severity =
		PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *function =
		PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message =
		PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (severity == NULL || message == NULL || strcmp(severity, "WARNING") != 0)
		return;
	if (function == NULL || strcmp(function, "SyncRepWaitForLSN") == 0)
		snowflake_keep_text(answer->warning, message);
	else if (sqlstate != NULL && strcmp(sqlstate, NAMESAKE_SQLSTATE) == 0)
		snowflake_keep_text(answer->namesake,
							PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
}

/*
 * Make an answer empty, with room for so many rows.
 */
static void
empty_answer(RegistryAnswer *answer, int max_rows)
{
	size_t		size = max_rows * sizeof(AnswerRow);
	AnswerRow  *rows = realloc(answer->rows, Max(size, 1));

	if (rows == NULL)
		_exit(1);
	memset(rows, 0, size);
	memset(answer, 0, sizeof(*answer));
	answer->max_rows = max_rows;
	answer->rows = rows;
}

/*
 * Send an answer.  If it is an error, that is the end.
 */
static void
send_answer(int socket, const RegistryAnswer *answer)
{
	snowflake_write_to_parent(socket, answer, sizeof(*answer));
	if (answer->failed)
		_exit(0);
	snowflake_write_to_parent(socket, answer->rows,
							  Min(answer->nrows, answer->max_rows) * sizeof(AnswerRow));
}

/*
 * The connection has failed, or the process has no memory for it.
 */
static void
keep_connection_error(RegistryAnswer *answer, const PGconn *conn)
{
	const char *message = PQerrorMessage(conn);

	answer->failed = true;
	answer->error.rolled_back = false;
	snowflake_keep_error(&answer->error, NULL,
						 message[0] != '\0' ? message : "out of memory",
						 NULL, NULL);
}

/*
 * Connect.  The function that does it at once would take notices before there is
 * somebody to receive them.
 */
static PGconn *
connect_to(const SessionTarget *target, RegistryAnswer *answer)
{
	PGconn	   *conn =
		PQconnectStartParams(target->keywords, target->values, false);
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	if (conn == NULL)
		_exit(1);
	PQsetNoticeReceiver(conn, receive_notice, answer);
	while (PQstatus(conn) != CONNECTION_BAD &&
		   status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED)
	{
		struct pollfd socket = {0};

		socket.fd = PQsocket(conn);
		socket.events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
		if (poll(&socket, 1, -1) >= 0 || errno != EINTR)
			status = PQconnectPoll(conn);
	}
	if (PQstatus(conn) != CONNECTION_OK)
		keep_connection_error(answer, conn);
	return conn;
}

/*
 * Take a part of the answer: a row, the end of a set of rows, or an error.
 */
static void
take_result(RegistryAnswer *answer, const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	const char *severity =
		PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (status == PGRES_TUPLES_OK || status == PGRES_SINGLE_TUPLE)
	{
		if (answer->nrows < answer->max_rows && PQntuples(result) > 0)
		{
			for (int i = 0; i < PQnfields(result); i++)
				snowflake_keep_value(answer, answer->nrows, i,
									 PQgetisnull(result, 0, i) ? NULL :
									 PQgetvalue(result, 0, i),
									 PQgetlength(result, 0, i));
		}
		answer->ncolumns = PQnfields(result);
		answer->nrows = Min(answer->nrows + PQntuples(result),
							answer->max_rows + 1);
		answer->nsets += status == PGRES_TUPLES_OK;
	}
	else if (status == PGRES_FATAL_ERROR)
	{
		const char *message =
			PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

		/* Those of libpq have no fields. */
		answer->failed = true;
		answer->error.rolled_back =
			severity != NULL && strcmp(severity, "ERROR") == 0;
		snowflake_keep_error(&answer->error,
							 PQresultErrorField(result, PG_DIAG_SQLSTATE),
							 message != NULL ? message : PQresultErrorMessage(result),
							 PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL),
							 PQresultErrorField(result, PG_DIAG_MESSAGE_HINT));
	}
	else if (status != PGRES_COMMAND_OK)
	{
		/* No query here begins a COPY, which would have no end. */
		answer->failed = true;
		snowflake_keep_error(&answer->error, NULL, "unexpected answer", NULL, NULL);
	}
}

/*
 * Take the whole answer to a query that was sent, or what of it says already
 * that it is none.
 */
static void
take_results(PGconn *conn, int sent, int max_rows, RegistryAnswer *answer)
{
	PGresult   *result = NULL;

	empty_answer(answer, max_rows);
	if (!sent || !PQsetSingleRowMode(conn))
	{
		keep_connection_error(answer, conn);
		return;
	}
	while (answer->nrows <= max_rows && answer->nsets < 2 &&
		   (result = PQgetResult(conn)) != NULL)
	{
		ExecStatusType status = PQresultStatus(result);

		take_result(answer, result);
		PQclear(result);
		if (answer->failed && status != PGRES_FATAL_ERROR)
			return;
		if (PQstatus(conn) == CONNECTION_BAD)
			break;
	}
	if (PQstatus(conn) == CONNECTION_BAD && answer->error.message[0] == '\0')
		keep_connection_error(answer, conn);
}

/*
 * Receive the texts of a call, send it to the registry, and take the answer.
 */
static void
make_call(int socket, PGconn *conn, const SessionCall *call,
		  RegistryAnswer *answer)
{
	const char *texts[1 + SNOWFLAKE_CALL_PARAMS] = {0};
	char	   *buffer = malloc(call->size);
	char	   *text = buffer;
	int			sent;

	if (buffer == NULL ||
		!snowflake_read_from_parent(socket, buffer, call->size))
		_exit(1);
	for (int i = 0; i <= call->nparams; i++)
	{
		texts[i] = text;
		text	  +=strlen(text) + 1;
	}
	sent = PQsendQueryParams(conn, texts[0], call->nparams, NULL, &texts[1],
							 NULL, NULL, 0);
	take_results(conn, sent, call->max_rows, answer);
	free(buffer);
}

/*
 * Main function of the process.  What it allocates ends with it.
 */
void
snowflake_session_main(int socket, const void *target)
{
	const SessionTarget *to = target;
	RegistryAnswer answer = {0};
	PGconn	   *conn = connect_to(to, &answer);
	SessionCall call = {0};

	send_answer(socket, &answer);

	take_results(conn, PQsendQuery(conn, to->set_up), 1, &answer);
	send_answer(socket, &answer);

	while (!call.is_last &&
		   snowflake_read_from_parent(socket, &call, sizeof(call)))
	{
		make_call(socket, conn, &call, &answer);
		if (call.is_last)
			PQfinish(conn);
		send_answer(socket, &answer);
	}
	if (!call.is_last)
		PQfinish(conn);
}
