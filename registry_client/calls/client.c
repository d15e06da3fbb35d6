/*-------------------------------------------------------------------------
 *
 * client.c
 *	  Calls of a registry, a database that grants worker IDs, by libpq.
 *
 * A call for a grant uses its own connection.  A server makes one every few
 * minutes, so an idle connection would only be one more thing that can break;
 * and a registry of a thousand servers needs few connections.  Who calls each
 * second keeps the round, with the connection that gave the last answer.
 *
 * Rounds.  A registry can have several hosts, and a host name several
 * addresses.  In a round, each is tried in turn until one grants what is asked
 * for: a host that accepts connections but does not answer, or only with an
 * error or something else, hides none of the others.  Each address has its own
 * time: connect_timeout to accept the connection, and after that some time to
 * answer.  The next round begins with what granted last, so a host that failed
 * comes last.
 *
 * libpq never waits: this process waits for its socket, within these times, and
 * until a shutdown (limited_wait.c).  For the time of each address, host names are
 * looked up before, which takes as long as the C library waits for a name server.
 *
 * An answer counts only if the registry committed it durably.  A commit that
 * did not wait for its synchronous standby gives a warning.  The registry sends
 * the result before it commits, then the warning, and then that it is ready for
 * another query; and only that ends an answer.  So at its end, it has each warning
 * of the call, and none of the next one.  Other warnings, of whatever is loaded
 * there, say nothing about the commit.
 *
 * Rows are taken one by one, so that those of an answer that has no end are not
 * collected.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/client.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netdb.h>
#include <sys/socket.h>

#include "libpq-fe.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/latch.h"

#include "registry_client/calls/client.h"
#include "registry_client/calls/conninfo.h"
#include "registry_client/calls/registry_sql.h"

/* Time for an address to connect, unless there is a connect_timeout. */
#define CONNECT_TIMEOUT_MS	2000

/* Time for it to answer. */
#define ANSWER_TIMEOUT_MS	5000

/* duplicate_object */
#define NAMESAKE_SQLSTATE	"42710"

struct RegistryRound
{
	RegistryOptions options;
	RegistryStart *start;
	WaitLimit	limit;			/* of all hosts together */
	StringInfo	errors;			/* of the hosts that failed */
	StringInfoData error;		/* of the current one */

	int			nhosts;
	int			tried;			/* hosts, with the current one */
	int			host;			/* the current one */
	char	   *host_name;		/* or NULL: libpq's default */
	List	   *addresses;		/* of the host; "": none is needed */
	int			address;		/* the current one */

	PGconn	   *conn;			/* to the address, or NULL */
};

/*
 * Begin a round: from what answered last, each host is tried once.  Returns
 * NULL if that is not possible.  Errors of this and all hosts are appended.
 */
RegistryRound *
snowflake_begin_round(const char *conninfo, RegistryStart *start,
					  const WaitLimit *limit, StringInfo errors)
{
	RegistryRound *round = palloc0(sizeof(RegistryRound));
	const char *hosts;

	if (!AcquireExternalFD())
	{
		appendStringInfoString(errors, "too many open files");
		return NULL;
	}
	if (!snowflake_read_options(&round->options, conninfo, errors))
	{
		ReleaseExternalFD();
		return NULL;
	}
	hosts = snowflake_get_option(&round->options, "hostaddr");
	if (hosts == NULL)
		hosts = snowflake_get_option(&round->options, "host");
	round->nhosts = snowflake_count_items(hosts);
	round->start = start;
	round->limit = *limit;
	round->errors = errors;
	initStringInfo(&round->error);
	return round;
}

/*
 * The current host or address has failed: keep its error, and disconnect.
 */
static void
fail_host(RegistryRound *round)
{
	if (round->errors->len > 0)
		appendStringInfoString(round->errors, "; ");
	appendStringInfoString(round->errors, round->error.data);
	resetStringInfo(&round->error);
	PQfinish(round->conn);
	round->conn = NULL;
}

/*
 * The time to connect to an address, in ms.
 */
static int64
connect_timeout_ms(const RegistryRound *round)
{
	const char *value = snowflake_get_option(&round->options, "connect_timeout");
	long		seconds = value != NULL ? strtol(value, NULL, 10) : 0;

	return seconds > 0 ?
		Min(seconds, SECS_PER_HOUR) * 1000 : CONNECT_TIMEOUT_MS;
}

/*
 * The addresses of a host, as a list of strings.  If there is none, append why.
 */
static List *
look_up(const char *host, StringInfo error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int			rc = getaddrinfo(host, NULL, &hints, &found);
	List	   *addresses = NIL;

	for (struct addrinfo *one = found; one != NULL; one = one->ai_next)
	{
		char		address[SNOWFLAKE_ADDRESS_SIZE];

		if (getnameinfo(one->ai_addr, one->ai_addrlen, address, sizeof(address),
						NULL, 0, NI_NUMERICHOST) == 0)
			addresses = lappend(addresses, pstrdup(address));
	}
	if (found != NULL)
		freeaddrinfo(found);
	if (addresses == NIL)
	{
		StringInfoData reason;

		initStringInfo(&reason);
		appendStringInfo(&reason, "could not translate host name \"%s\" to address: %s",
						 host, rc != 0 ? gai_strerror(rc) : "it has none");
		snowflake_append_message(error, reason.data);
	}
	return addresses;
}

/*
 * Let the list of addresses begin with the one that answered last.
 */
static void
rotate_addresses(RegistryRound *round)
{
	for (int i = list_length(round->addresses); i > 0; i--)
	{
		char	   *address = linitial(round->addresses);

		if (strcmp(address, round->start->address) == 0)
			return;
		round->addresses =
			lappend(list_delete_first(round->addresses), address);
	}
}

/*
 * Go on to the next host, and find its addresses.
 */
static void
next_host(RegistryRound *round)
{
	const char *hosts = snowflake_get_option(&round->options, "host");
	const char *addresses = snowflake_get_option(&round->options, "hostaddr");
	char	   *address;

	round->host = (round->start->host + round->tried++) % round->nhosts;
	round->host_name = snowflake_list_item(hosts, round->host);
	if (round->host_name == NULL && hosts != NULL)
		round->host_name = pstrdup(DEFAULT_PGSOCKET_DIR);
	address = snowflake_list_item(addresses, round->host);
	round->address = -1;
	if (address != NULL)
		round->addresses = list_make1(address);
	else if (round->host_name == NULL || strchr("/@", round->host_name[0]) != NULL)
		round->addresses = list_make1(pstrdup(""));
	else if ((round->addresses = look_up(round->host_name, &round->error)) == NIL)
		fail_host(round);
	else if (round->host == round->start->host)
		rotate_addresses(round);
}

/*
 * The name of the host that is tried, or its address.
 */
static const char *
shown_host(const RegistryRound *round)
{
	const char *address = list_nth(round->addresses, round->address);

	if (round->host_name != NULL)
		return round->host_name;
	return address[0] != '\0' ? address : DEFAULT_PGSOCKET_DIR;
}

/*
 * If there are several hosts, let an error begin with the current one.
 */
static void
append_host_prefix(RegistryRound *round)
{
	if (round->nhosts > 1)
		appendStringInfo(&round->error, "host \"%s\": ", shown_host(round));
}

/*
 * The database that is connected to, as libpq chooses it.
 */
static const char *
database_name(const RegistryRound *round)
{
	const char *name = snowflake_get_option(&round->options, "dbname");

	if (name == NULL)
		name = snowflake_get_option(&round->options, "user");
	return name != NULL ? name : "";
}

/*
 * Wait until the socket is ready, which libpq can replace between two waits.
 */
static bool
wait_for_socket(RegistryRound *round, const WaitLimit *limit, int events)
{
	if (snowflake_limited_wait(limit, PQsocket(round->conn), events,
							   SNOWFLAKE_EVENT_REGISTRY, &round->error))
		return true;
	appendStringInfo(&round->error, " from host \"%s\"", shown_host(round));
	return false;
}

/*
 * The connection has failed, for a reason that names the host.
 */
static bool
fail_connection(RegistryRound *round)
{
	const char *message = PQerrorMessage(round->conn);

	snowflake_append_message(&round->error,
							 message[0] != '\0' ? message : "out of memory");
	return false;
}

/*
 * Keep warnings that a commit is not durable.  Messages are translated, and
 * these have no SQLSTATE of their own, so they are recognized by the function
 * that gives them.  A registry that does not send its name is not trusted.  The
 * registry's own warning, of another server of this name, has a SQLSTATE.
 *
 * libpq calls this, so it raises no error, and allocates nothing.
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
	const char *detail =
		PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

	/* Those of the connection are no answer's. */
	if (answer == NULL || severity == NULL || message == NULL ||
		strcmp(severity, "WARNING") != 0)
		return;
	if (function == NULL || strcmp(function, "SyncRepWaitForLSN") == 0)
		strlcpy(answer->warning, message, sizeof(answer->warning));
	else if (sqlstate != NULL && strcmp(sqlstate, NAMESAKE_SQLSTATE) == 0)
		strlcpy(answer->namesake, detail != NULL ? detail : "",
				sizeof(answer->namesake));
}

/*
 * Take a part of the answer: a row, the end of a set of rows, or an error.
 * Returns false if that, whatever follows, is no answer.
 */
static bool
take_result(RegistryAnswer *answer, const PGresult *result, int max_rows)
{
	ExecStatusType status = PQresultStatus(result);
	const char *severity =
		PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *message =
		PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	/* After the end of a set, rows can have another number of columns. */
	if (status == PGRES_SINGLE_TUPLE && answer->ncolumns < 0 &&
		list_length(answer->rows) < max_rows)
	{
		char	  **values = palloc_array(char *, PQnfields(result));

		for (int i = 0; i < PQnfields(result); i++)
			values[i] = PQgetisnull(result, 0, i) ? NULL :
				pstrdup(PQgetvalue(result, 0, i));
		answer->rows = lappend(answer->rows, values);
	}
	else if (status == PGRES_TUPLES_OK && answer->ncolumns < 0)
		answer->ncolumns = PQnfields(result);
	else if (status == PGRES_FATAL_ERROR)
	{
		/* Those of libpq have no fields. */
		answer->rolled_back = severity != NULL && strcmp(severity, "ERROR") == 0;
		snowflake_keep_error(answer,
							 PQresultErrorField(result, PG_DIAG_SQLSTATE),
							 message != NULL ? message : PQresultErrorMessage(result),
							 PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL),
							 PQresultErrorField(result, PG_DIAG_MESSAGE_HINT));
	}
	else if (status != PGRES_COMMAND_OK)
	{
		/* More rows, or a COPY, which can have no end. */
		snowflake_keep_error(answer, NULL, "unexpected answer", NULL, NULL);
	}
	return answer->error == NULL;
}

/*
 * Send what is not sent yet of a query, and wait for the next part of its answer.
 */
static bool
wait_for_result(RegistryRound *round, const WaitLimit *limit)
{
	for (;;)
	{
		bool		is_sent = PQflush(round->conn) <= 0;

		if (is_sent && !PQisBusy(round->conn))
			return true;
		if (!wait_for_socket(round, limit,
							 is_sent ? WL_SOCKET_READABLE :
							 WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE))
			return false;
		if (!PQconsumeInput(round->conn))
			return fail_connection(round);
	}
}

/*
 * Receive the answer to a query that was sent.  Returns false if there is none, or
 * if it is an error.
 */
static bool
receive_answer(RegistryRound *round, bool sent, int max_rows,
			   RegistryAnswer *answer)
{
	WaitLimit	limit = snowflake_shorten_wait(&round->limit, ANSWER_TIMEOUT_MS);
	PGresult   *result = NULL;
	bool		more = true;

	snowflake_empty_answer(answer);
	if (!sent || !PQsetSingleRowMode(round->conn))
		return fail_connection(round);
	PQsetNoticeReceiver(round->conn, receive_notice, answer);
	while (more)
	{
		if (!wait_for_result(round, &limit))
			return false;
		result = PQgetResult(round->conn);
		more = result != NULL && take_result(answer, result, max_rows);
		PQclear(result);
	}
	if (answer->error == NULL)
		return true;

	/* The errors of libpq name the host. */
	if (answer->sqlstate[0] != '\0')
		append_host_prefix(round);
	snowflake_append_error(&round->error, answer, database_name(round));
	return false;
}

/*
 * The statements that set the session up.  Names are looked up in pg_catalog
 * from the second on.
 *
 * When this process stops waiting, the registry has cancelled the call, and
 * said so; unless it is in its commit.  The row that is returned says why the
 * functions may not be called.
 */
static char *
set_up_statements(void)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SET search_path = pg_catalog, pg_temp;"
					 "SET statement_timeout = %d;"
					 "SELECT %s, (SELECT count(set_config(s.name, s.value, false))"
					 " FROM pg_settings t JOIN (VALUES",
					 ANSWER_TIMEOUT_MS - ANSWER_TIMEOUT_MS / 10,
					 snowflake_check_registry);
	for (const SessionSetting *s = snowflake_session_settings; s->name != NULL; s++)
		appendStringInfo(&sql, "%s ('%s', '%s')",
						 s == snowflake_session_settings ? "" : ",",
						 s->name, s->value);
	appendStringInfoString(&sql, ") s(name, value) ON s.name = t.name)");
	return sql.data;
}

/*
 * Begin to connect to the current address.
 *
 * A session that is read-only, even by a setting, takes no calls: an
 * administrator has set it, or it is a standby.
 */
static PGconn *
begin_connection(const RegistryRound *round)
{
	const PQconninfoOption *option = round->options.given;
	int			n = 0;
	int			noptions = 0;
	const char **keywords;
	const char **values;

	while (option[noptions].keyword != NULL)
		noptions++;
	keywords = palloc0((noptions + 7) * sizeof(char *));
	values = palloc0((noptions + 7) * sizeof(char *));

	/* The last value of a keyword counts. */
	keywords[n] = "target_session_attrs";
	values[n++] = "read-write";
	keywords[n] = "fallback_application_name";
	values[n++] = "snowflake";
	keywords[n] = "gssencmode";
	values[n++] = "disable";
	for (; option->keyword != NULL; option++)
	{
		if (option->val == NULL || strcmp(option->keyword, "host") == 0 ||
			strcmp(option->keyword, "hostaddr") == 0 ||
			strcmp(option->keyword, "port") == 0)
			continue;
		keywords[n] = option->keyword;
		values[n++] = option->val;
	}
	keywords[n] = "port";
	values[n++] = snowflake_list_item(snowflake_get_option(&round->options, "port"),
									  round->host);
	keywords[n] = "host";
	values[n++] = round->host_name;
	keywords[n] = "hostaddr";
	values[n++] = list_nth(round->addresses, round->address);

	return PQconnectStartParams(keywords, values, false);
}

/*
 * Connect to the current address.  Without memory for it, there is no connection.
 */
static bool
connect_to_address(RegistryRound *round)
{
	WaitLimit	limit =
		snowflake_shorten_wait(&round->limit, connect_timeout_ms(round));
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	round->conn = begin_connection(round);
	PQsetNoticeReceiver(round->conn, receive_notice, NULL);
	while (PQstatus(round->conn) != CONNECTION_BAD && status != PGRES_POLLING_OK)
	{
		if (!wait_for_socket(round, &limit,
							 status == PGRES_POLLING_READING ?
							 WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE))
			return false;
		status = PQconnectPoll(round->conn);
	}

	/* Neither waits for the other side to read. */
	if (PQstatus(round->conn) == CONNECTION_OK &&
		PQsetnonblocking(round->conn, 1) == 0)
		return true;
	return fail_connection(round);
}

/*
 * Set the session up, and find out whether it may be used.
 */
static bool
check_session(RegistryRound *round)
{
	RegistryAnswer answer;
	char	  **values;

	if (!receive_answer(round, PQsendQuery(round->conn, set_up_statements()), 1,
						&answer))
		return false;
	append_host_prefix(round);
	values = snowflake_has_rows(&answer, 1, 3) ? linitial(answer.rows) : NULL;
	if (values == NULL ||
		(values[0] != NULL &&
		 !snowflake_append_problem(&round->error, values[0], values[1],
								   database_name(round))))
		snowflake_append_answer(&round->error, &answer);
	if (values == NULL || values[0] != NULL)
		return false;
	resetStringInfo(&round->error);
	return true;
}

/*
 * Connect to the next host or address that accepts writes.  Returns false if
 * there is none, or the round has come to its end.
 */
bool
snowflake_connect_next(RegistryRound *round)
{
	while (!snowflake_wait_is_over(&round->limit, &round->error))
	{
		/*
		 * Other hosts may be the right ones now.  At a shutdown, the grant is
		 * returned to those that made it.
		 */
		if (ConfigReloadPending && round->tried > 0 &&
			round->limit.ends_at_shutdown)
			return false;

		if (round->address + 1 < list_length(round->addresses))
		{
			round->address++;
			if (connect_to_address(round) && check_session(round))
				return true;
			fail_host(round);
		}
		else if (round->tried < round->nhosts)
			next_host(round);
		else
			return false;
	}

	/* If a host has failed, its error says more. */
	if (round->errors->len == 0)
		appendStringInfoString(round->errors, round->error.data);
	return false;
}

/*
 * Make a call, where snowflake_connect_next() has connected to.  Returns true if
 * it was committed durably; the answer can be anything nevertheless, so it is to
 * be accepted or rejected.  Otherwise, the next host can be connected to.
 */
bool
snowflake_ask_registry(RegistryRound *round, RegistryCall *call)
{
	RegistryAnswer *answer = &call->answer;

	if (receive_answer(round,
					   PQsendQueryParams(round->conn, call->query, call->nparams, NULL,
										 call->params, NULL, NULL, 0),
					   call->max_rows, answer))
	{
		if (answer->warning[0] == '\0')
			return true;
		appendStringInfoString(&round->error,
							   "the registry did not commit durably: ");
		snowflake_append_message(&round->error, answer->warning);
	}
	fail_host(round);
	return false;
}

/*
 * The answer is what was asked for: the next round begins with this host.
 */
void
snowflake_accept_answer(RegistryRound *round)
{
	round->start->host = round->host;
	strlcpy(round->start->address,
			list_nth(round->addresses, round->address),
			sizeof(round->start->address));
}

/*
 * The answer is not, for this reason: another host may have a better one.
 */
void
snowflake_reject_answer(RegistryRound *round, const char *reason)
{
	append_host_prefix(round);
	appendStringInfoString(&round->error, reason);
	fail_host(round);
}

/*
 * Make another call in a round, with the connection that gave the last answer:
 * this is its limit, and the errors are appended there.
 */
void
snowflake_continue_round(RegistryRound *round, const WaitLimit *limit,
						 StringInfo errors)
{
	round->limit = *limit;
	round->errors = errors;
}

/*
 * The end, which closes the connection.
 */
void
snowflake_end_round(RegistryRound *round)
{
	PQfinish(round->conn);
	snowflake_free_options(&round->options);
	ReleaseExternalFD();
}
