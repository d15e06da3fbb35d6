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
 * The connection is that of another process (session.c), which is killed when
 * its time has come, or this process must stop.  So libpq may wait, compute,
 * and take memory for as long as it likes.  Only for the time of each address,
 * host names are looked up before (resolver.c).
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/client.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "libpq-fe.h"
#include "nodes/pg_list.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#include "registry_client/calls/child.h"
#include "registry_client/calls/client.h"
#include "registry_client/calls/conninfo.h"
#include "registry_client/calls/registry_sql.h"

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

	Child	   *session;		/* connected to the address, or NULL */
	int64		answer_ms;		/* time for it to answer */
	int64		max_answer_ms;	/* the same for each, or 0 */
	bool		is_this_server;
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
	if (round->session != NULL)
		snowflake_end_child(round->session);
	round->session = NULL;
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
 * Read an answer of the session, into one that is empty and has room.
 */
static bool
read_answer(RegistryRound *round, const WaitLimit *limit,
			RegistryAnswer *answer)
{
	RegistryAnswer read;
	size_t		size;

	if (!snowflake_read_from_child(round->session, &read, sizeof(read), limit,
								   SNOWFLAKE_EVENT_REGISTRY, &round->error))
		return false;
	read.max_rows = answer->max_rows;
	read.rows = answer->rows;
	*answer = read;
	if (answer->failed)
		return true;
	size = Max(Min(answer->nrows, answer->max_rows), 0) * sizeof(AnswerRow);
	return snowflake_read_from_child(round->session, answer->rows, size, limit,
									 SNOWFLAKE_EVENT_REGISTRY, &round->error);
}

/*
 * Wait for an answer of the session.  Returns false if there is none, or if it is
 * an error.
 */
static bool
receive_answer(RegistryRound *round, int64 ms, RegistryAnswer *answer)
{
	WaitLimit	limit = snowflake_shorten_wait(&round->limit, ms);

	if (!read_answer(round, &limit, answer))
	{
		answer->failed = true;
		answer->error.rolled_back = false;
		appendStringInfo(&round->error, " from host \"%s\"",
						 shown_host(round));
		return false;
	}
	if (!answer->failed)
		return true;

	/* The errors of libpq name the host that it cannot connect to. */
	if (answer->error.sqlstate[0] != '\0')
		append_host_prefix(round);
	snowflake_append_error(&round->error, &answer->error,
						   database_name(round));
	return false;
}

/*
 * The statements that set the session up.  Names are looked up in pg_catalog
 * from the second on.
 *
 * When this process stops waiting, the registry has cancelled the call, and
 * said so; unless it is in its commit.  The row that is returned says when the
 * server there was started, so that this server recognizes itself, and why the
 * functions may not be called.
 */
static char *
set_up_statements(const RegistryRound *round)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SET search_path = pg_catalog, pg_temp;"
					 "SET statement_timeout = " INT64_FORMAT ";"
					 "SELECT round(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8,"
					 " %s, (SELECT count(set_config(s.name, s.value, false))"
					 " FROM pg_settings t JOIN (VALUES",
					 round->answer_ms - round->answer_ms / 10,
					 snowflake_check_registry);
	for (const SessionSetting *s = snowflake_session_settings; s->name != NULL; s++)
		appendStringInfo(&sql, "%s ('%s', '%s')",
						 s == snowflake_session_settings ? "" : ",",
						 s->name, s->value);
	appendStringInfoString(&sql, ") s(name, value) ON s.name = t.name)");
	return sql.data;
}

/*
 * What to connect to, and how.
 *
 * A session that is read-only, even by a setting, takes no calls: an
 * administrator has set it, or it is a standby.
 */
static void
set_target(const RegistryRound *round, SessionTarget *target)
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

	target->keywords = keywords;
	target->values = values;
	target->set_up = set_up_statements(round);
}

/*
 * Start a session with the current address, and wait until it is connected.
 */
static bool
connect_to_address(RegistryRound *round)
{
	RegistryAnswer answer;
	SessionTarget target;

	snowflake_empty_answer(&answer, 0);
	set_target(round, &target);
	round->session = snowflake_start_child(snowflake_session_main, &target,
										   &round->error);
	return round->session != NULL &&
		receive_answer(round, connect_timeout_ms(round), &answer);
}

/*
 * Wait until the session is set up, and find out whether it may be used.
 */
static bool
check_session(RegistryRound *round)
{
	int64		own = PgStartTime +
		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
	int64		started;
	RegistryAnswer answer;
	const AnswerValue *values;

	snowflake_empty_answer(&answer, 1);
	values = answer.rows[0].values;
	if (!receive_answer(round, round->answer_ms, &answer))
		return false;
	append_host_prefix(round);
	if (!snowflake_has_row(&answer, 4) ||
		!snowflake_read_integer(&answer, 0, &started) ||
		(!values[1].is_null &&
		 !snowflake_append_problem(&round->error, values[1].string,
								   values[2].string,
								   database_name(round))))
	{
		snowflake_append_answer(&round->error, &answer);
		return false;
	}
	if (!values[1].is_null)
		return false;
	resetStringInfo(&round->error);
	round->is_this_server = started == own;
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
			bool		is_last;

			round->address++;
			is_last = round->tried == round->nhosts &&
				round->address + 1 == list_length(round->addresses);
			round->answer_ms =
				round->max_answer_ms > 0 ? round->max_answer_ms :
				is_last ? LAST_ANSWER_TIMEOUT_MS : ANSWER_TIMEOUT_MS;
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
 * Is the registry that was connected to in this server?
 */
bool
snowflake_is_this_server(const RegistryRound *round)
{
	return round->is_this_server;
}

/*
 * Send a call to the session.
 */
static bool
send_call(RegistryRound *round, const RegistryCall *call)
{
	SessionCall header;
	StringInfoData texts;
	StringInfoData data;
	WaitLimit	limit = snowflake_shorten_wait(&round->limit, round->answer_ms);

	initStringInfo(&texts);
	appendBinaryStringInfo(&texts, call->query, strlen(call->query) + 1);
	for (int i = 0; i < call->nparams; i++)
		appendBinaryStringInfo(&texts, call->params[i],
							   strlen(call->params[i]) + 1);
	memset(&header, 0, sizeof(header));
	header.size = texts.len;
	header.nparams = call->nparams;
	header.max_rows = call->max_rows;
	header.is_last = call->is_last;

	initStringInfo(&data);
	appendBinaryStringInfo(&data, (char *) &header, sizeof(header));
	appendBinaryStringInfo(&data, texts.data, texts.len);
	return snowflake_write_to_child(round->session, &data, &limit,
									SNOWFLAKE_EVENT_REGISTRY, &round->error);
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

	Assert(round->session != NULL);
	snowflake_empty_answer(answer, call->max_rows);
	if (send_call(round, call) &&
		receive_answer(round, round->answer_ms, answer))
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
 * Let each address have this time to answer.  For who calls again soon.
 */
void
snowflake_limit_answers(RegistryRound *round, int64 ms)
{
	round->max_answer_ms = ms;
}

/*
 * Make another call in a round, with the connection that gave the last answer:
 * this is its limit, and the errors are appended there.
 */
void
snowflake_continue_round(RegistryRound *round, const WaitLimit *limit,
						 StringInfo errors)
{
	Assert(round->session != NULL);
	round->limit = *limit;
	round->errors = errors;
}

/*
 * The end.  A session that is idle closes its connection.
 */
void
snowflake_end_round(RegistryRound *round)
{
	if (round->session != NULL)
		snowflake_dismiss_child(round->session);
	snowflake_free_options(&round->options);
	ReleaseExternalFD();
}
