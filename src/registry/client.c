/*-------------------------------------------------------------------------
 *
 * client.c
 *	  Calls of a registry, a database that grants worker IDs, by libpq.
 *
 * Each call uses its own connection.  A server calls every few minutes, so an
 * idle connection would only be one more thing that can break; and a registry
 * of a thousand servers needs few connections.
 *
 * Rounds.  A registry can have several hosts, and a host name several
 * addresses.  In a round, each is tried in turn until one answers: a host that
 * accepts connections but does not answer, or only with an error, hides none of
 * the others.  Each address has its own time: connect_timeout to accept the
 * connection, and after that some time to answer.  The next round begins with
 * what answered last, so a host that failed comes last.
 *
 * Everything is asynchronous, so that the process can be stopped at any time.
 * In two cases libpq could block, and is kept from it: it looks up host names
 * when a connection starts, so here they are looked up before (resolver.c); and
 * Kerberos, which talks to its servers, is not used to encrypt connections
 * unless the connection string says so.
 *
 * An answer counts only if the registry committed it durably.  A commit that
 * did not wait for its synchronous standby gives a warning.  The registry sends
 * the result before it commits, then the warning, and then that it is ready for
 * another query; and only that ends get_result().  So at its end, it has each
 * warning of the call, and none of the next one.  Other warnings, of whatever is
 * loaded there, say nothing about the commit.
 *
 * Besides conninfo.c, this is the only file that uses libpq.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/registry/client.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "libpq-fe.h"
#include "nodes/pg_list.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "base/one_line.h"
#include "registry/client.h"
#include "registry/conninfo.h"
#include "registry/resolver.h"

/* Time for an address to connect, unless there is a connect_timeout. */
#define CONNECT_TIMEOUT_MS	2000

/* Time to answer: if there are others to ask, and if there is none. */
#define ANSWER_TIMEOUT_MS		4000
#define LAST_ANSWER_TIMEOUT_MS	10000

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

	PGconn	   *conn;			/* or NULL */
	int64		answer_ms;		/* time for it to answer */
	bool		is_this_server;
	StringInfoData warning;		/* of the current call */
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

	/* For a connection, or the pipe of the resolver. */
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
	initStringInfo(&round->warning);
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
 * Append the name of the current host to the error of a wait.
 */
static void
append_host(RegistryRound *round)
{
	const char *host = PQhost(round->conn);

	appendStringInfo(&round->error, " from host \"%s\"",
					 host != NULL ? host : "");
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
	else if (round->host_name == NULL ||
			 !snowflake_is_host_name(round->host_name))
		round->addresses = list_make1(pstrdup(""));
	else
	{
		WaitLimit	limit = snowflake_shorten_wait(&round->limit,
												   connect_timeout_ms(round));
		StringInfoData reason;

		initStringInfo(&reason);
		round->addresses = snowflake_resolve(round->host_name, &limit,
											 &reason);
		if (round->addresses == NIL)
		{
			snowflake_append_message(&round->error, reason.data);
			fail_host(round);
		}
		else if (round->host == round->start->host)
			rotate_addresses(round);
	}
}

/*
 * Keep warnings that a commit is not durable.  Messages are translated, and
 * these have no SQLSTATE of their own, so they are recognized by the function
 * that gives them.  A registry that does not send its name is not trusted.
 */
static void
receive_notice(void *arg, const PGresult *result)
{
	RegistryRound *round = arg;
	const char *severity =
		PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *function =
		PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
	const char *message =
		PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (severity != NULL && message != NULL &&
		strcmp(severity, "WARNING") == 0 &&
		(function == NULL || strcmp(function, "SyncRepWaitForLSN") == 0))
		snowflake_append_message(&round->warning, message);
}

/*
 * Start a connection to the current address.
 *
 * A session that is read-only, even by a setting, takes no calls: an
 * administrator has set it, or it is a standby.
 */
static PGconn *
start_connection(RegistryRound *round)
{
	const char *address = list_nth(round->addresses, round->address);
	int			n = 0;
	int			noptions = 0;
	const char **keywords;
	const char **values;
	PGconn	   *conn;

	while (round->options.given[noptions].keyword != NULL)
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
	for (int i = 0; i < noptions; i++)
	{
		const PQconninfoOption *option = &round->options.given[i];

		if (option->val == NULL || strcmp(option->keyword, "host") == 0 ||
			strcmp(option->keyword, "hostaddr") == 0 ||
			strcmp(option->keyword, "port") == 0)
			continue;
		keywords[n] = option->keyword;
		values[n++] = option->val;
	}
	keywords[n] = "port";
	values[n++] = snowflake_list_item(snowflake_get_option(&round->options, "port"), round->host);
	keywords[n] = "host";
	values[n++] = round->host_name;
	keywords[n] = "hostaddr";
	values[n++] = address;

	conn = PQconnectStartParams(keywords, values, false);
	if (conn == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	PQsetNoticeReceiver(conn, receive_notice, round);
	return conn;
}

/*
 * Connect to the current address.
 */
static bool
connect_to_address(RegistryRound *round)
{
	WaitLimit	limit = snowflake_shorten_wait(&round->limit,
											   connect_timeout_ms(round));
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	round->conn = start_connection(round);
	while (PQstatus(round->conn) != CONNECTION_BAD &&
		   status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED)
	{
		int			events = status == PGRES_POLLING_READING ?
			WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;

		if (!snowflake_limited_wait(&limit, PQsocket(round->conn), events,
									SNOWFLAKE_NO_LIMIT_MS,
									SNOWFLAKE_EVENT_REGISTRY, &round->error))
		{
			append_host(round);
			return false;
		}
		status = PQconnectPoll(round->conn);
	}
	if (PQstatus(round->conn) == CONNECTION_OK &&
		PQsetnonblocking(round->conn, 1) == 0)
		return true;
	snowflake_append_message(&round->error, PQerrorMessage(round->conn));
	return false;
}

/*
 * Does a result begin a COPY?  No query here does, and it would have no end.
 */
static bool
begins_copy(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
		status == PGRES_COPY_BOTH;
}

/*
 * Wait for the last result of the query that was sent.  Returns NULL if there
 * is none, with the error.
 */
static PGresult *
get_result(RegistryRound *round)
{
	PGconn	   *conn = round->conn;
	WaitLimit	limit =
		snowflake_shorten_wait(&round->limit, round->answer_ms);
	PGresult   *last = NULL;

	for (;;)
	{
		int			events = WL_SOCKET_READABLE;

		while (!PQisBusy(conn))
		{
			PGresult   *result = PQgetResult(conn);

			if (result == NULL)
				return last;
			PQclear(last);
			last = result;
			if (begins_copy(result))
			{
				appendStringInfoString(&round->error, "unexpected answer");
				append_host(round);
				PQclear(last);
				return NULL;
			}
		}
		if (PQflush(conn) > 0)
			events |= WL_SOCKET_WRITEABLE;
		if (!snowflake_limited_wait(&limit, PQsocket(conn), events,
									SNOWFLAKE_NO_LIMIT_MS,
									SNOWFLAKE_EVENT_REGISTRY, &round->error))
		{
			append_host(round);
			break;
		}
		if (!PQconsumeInput(conn))
		{
			snowflake_append_message(&round->error, PQerrorMessage(conn));
			break;
		}
	}
	PQclear(last);
	return NULL;
}

/*
 * If there are several hosts, let an error begin with the current one.
 */
static void
append_host_prefix(RegistryRound *round)
{
	if (round->nhosts > 1)
		appendStringInfo(&round->error, "host \"%s\": ", PQhost(round->conn));
}

/*
 * Append the error of a query as a single line.  If the functions do not
 * exist, add the most likely reason.
 */
static void
append_error(RegistryRound *round, const PGresult *result)
{
	StringInfo	error = &round->error;
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);

	if (message == NULL)
	{
		snowflake_append_message(error, PQerrorMessage(round->conn));
		return;
	}
	append_host_prefix(round);
	if (sqlstate != NULL && (strcmp(sqlstate, "3F000") == 0 ||
							 strcmp(sqlstate, "42883") == 0))
		appendStringInfo(error, SNOWFLAKE_NO_REGISTRY, PQdb(round->conn));
	snowflake_append_message(error, message);
	if (detail != NULL)
	{
		appendStringInfoString(error, "; ");
		snowflake_append_message(error, detail);
	}
	if (hint != NULL)
	{
		appendStringInfoString(error, "; ");
		snowflake_append_message(error, hint);
	}
}

/*
 * Set in the session what the defaults of a role, a database, or the server
 * may have set otherwise:
 *
 * - Names are those of the server, and strings have the syntax of the standard.
 * - A warning about a commit that is not durable arrives.
 * - The functions need READ COMMITTED.
 * - When this process stops waiting, the registry has cancelled the call, and
 *	 said so; unless it is in its commit.
 *
 * The query also returns why the functions there may not be called, and when the
 * server was started, so that this server recognizes itself.
 */
static bool
set_session(RegistryRound *round)
{
	char	   *query = psprintf("SET search_path = pg_catalog, pg_temp;"
								 "SET standard_conforming_strings = on;"
								 "SET client_min_messages = warning;"
								 "SET default_transaction_isolation = 'read committed';"
								 "SET lock_timeout = 0;"
								 "%s"
								 "SET statement_timeout = " INT64_FORMAT ";"
								 "SELECT date_part('epoch', pg_postmaster_start_time()), (%s)",
								 PQserverVersion(round->conn) >= 170000 ?
								 "SET transaction_timeout = 0;" : "",
								 round->answer_ms - round->answer_ms / 10,
								 SNOWFLAKE_CHECK_REGISTRY);
	PGresult   *result = NULL;
	bool		done = false;

	if (!PQsendQuery(round->conn, query))
		snowflake_append_message(&round->error, PQerrorMessage(round->conn));
	else
		result = get_result(round);
	if (result != NULL && PQresultStatus(result) != PGRES_TUPLES_OK)
		append_error(round, result);
	else if (result != NULL && !PQgetisnull(result, 0, 1))
	{
		append_host_prefix(round);
		snowflake_append_message(&round->error, PQgetvalue(result, 0, 1));
	}
	else if (result != NULL)
	{
		double		started = strtod(PQgetvalue(result, 0, 0), NULL);
		double		own = (double) PgStartTime / USECS_PER_SEC +
			(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * (double) SECS_PER_DAY;

		round->is_this_server = fabs(started - own) < 1e-5;
		done = true;
	}
	PQclear(result);
	return done;
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
			bool		is_last;

			round->address++;
			is_last = round->tried == round->nhosts &&
				round->address + 1 == list_length(round->addresses);
			round->answer_ms =
				is_last ? LAST_ANSWER_TIMEOUT_MS : ANSWER_TIMEOUT_MS;
			if (connect_to_address(round) && set_session(round))
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
 * Is the registry that was connected to in this server?
 */
bool
snowflake_is_this_server(const RegistryRound *round)
{
	return round->is_this_server;
}

/*
 * Read the answer to a call.
 */
static RegistryResult
read_answer(RegistryRound *round, const PGresult *result, RegistryCall *call)
{
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		const char *severity =
			PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

		call->refused = severity != NULL && strcmp(severity, "ERROR") == 0;
		append_error(round, result);
		return SNOWFLAKE_REGISTRY_FAILED;
	}
	if (round->warning.len > 0)
	{
		appendStringInfo(&round->error, "the registry did not commit durably: %s",
						 round->warning.data);
		return SNOWFLAKE_REGISTRY_FAILED;
	}
	if (PQntuples(result) == 0 || PQgetisnull(result, 0, 0))
		return SNOWFLAKE_REGISTRY_NO_ROW;
	for (int i = 0; i < Min(PQnfields(result), SNOWFLAKE_ANSWER_COLUMNS); i++)
		call->answer[i] = strtoi64(PQgetvalue(result, 0, i), NULL, 10);
	return SNOWFLAKE_REGISTRY_ROW;
}

/*
 * Make a call, where snowflake_connect_next() has connected to.  If there is
 * an answer, the next round begins there.
 */
RegistryResult
snowflake_ask_registry(RegistryRound *round, RegistryCall *call)
{
	RegistryResult outcome = SNOWFLAKE_REGISTRY_FAILED;
	PGresult   *result = NULL;

	Assert(round->conn != NULL);
	resetStringInfo(&round->warning);
	call->refused = false;
	if (!PQsendQueryParams(round->conn, call->query, call->nparams, NULL,
						   call->params, NULL, NULL, 0))
		snowflake_append_message(&round->error, PQerrorMessage(round->conn));
	else
		result = get_result(round);
	if (result != NULL)
		outcome = read_answer(round, result, call);
	PQclear(result);

	if (outcome == SNOWFLAKE_REGISTRY_FAILED)
		fail_host(round);
	else
	{
		round->start->host = round->host;
		strlcpy(round->start->address,
				list_nth(round->addresses, round->address),
				sizeof(round->start->address));
	}
	return outcome;
}

void
snowflake_end_round(RegistryRound *round)
{
	PQfinish(round->conn);
	snowflake_free_options(&round->options);
	ReleaseExternalFD();
}
