/*-------------------------------------------------------------------------
 *
 * call_log.c
 *	  What is logged of the calls of the registry.
 *
 * The worker calls each second while it has no grant, and what answers need not
 * be a registry.  So an error is logged once, until another one comes or it is
 * over: errors that differ only in numbers, such as times, are the same.  It is
 * cut.  And all messages together are limited to some at once, and then one a
 * minute, even if each differs from the one before.  What lasts is logged when
 * the limit allows it.  snowflake_stat always has the last error.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/call_log.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/timestamp.h"

#include "generator/grant.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "registry_client/calls/answer.h"
#include "registry_client/workers/call_log.h"
#include "registry_client/workers/registry_worker.h"
#include "shared/clock.h"

/* How many messages can be logged at once, and how soon one more. */
#define MAX_MESSAGES	20
#define MESSAGE_US		USECS_PER_MINUTE

/* The problem of a sequence that has one. */
typedef struct LoggedProblem
{
	int			slot;			/* the key */
	uint32		version;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
} LoggedProblem;

/*
 * May a message be logged?  Each of them takes its share of a time that passes
 * anyway.
 */
static bool
may_log(void)
{
	static int64 used_until = 0;
	int64		now = snowflake_steady_clock();

	if (used_until > now + (MAX_MESSAGES - 1) * MESSAGE_US)
		return false;
	used_until = Max(used_until, now) + MESSAGE_US;
	return true;
}

/*
 * Cut an error to what there is room for where it is kept.
 */
static void
cut_error(StringInfo error)
{
	const int	length = SNOWFLAKE_REGISTRY_ERROR_SIZE - 1;

	if (error->len <= length)
		return;
	error->len = length - 3;
	error->data[error->len] = '\0';
	appendStringInfoString(error, "...");
}

/*
 * Note whether a registry that is called by libpq is in this server, and say
 * what to do.
 */
void
snowflake_log_place(bool is_this_server)
{
	static bool noted = false;

	if (is_this_server && !noted && may_log())
		ereport(LOG,
				(errmsg("the registry of snowflake worker IDs is in this server, but not called through its socket directory"),
				 errdetail("The worker ID cannot be returned when the server is shut down, and no grant can be extended while all connections are in use."),
				 errhint("In \"snowflake.registry\", set \"host\" to a directory in \"unix_socket_directories\", and \"port\" to the port of this server.")));
	noted = is_this_server;
}

/*
 * A worker ID was granted.
 */
void
snowflake_log_grant(int worker_id, int64 until)
{
	const char *end = timestamptz_to_str(snowflake_tick_start(&snowflake_layout, until));

	if (!may_log())
		return;
	ereport(LOG,
			(errmsg("snowflake IDs are generated with worker ID %d", worker_id),
			 snowflake_worker_id >= 0 && worker_id != snowflake_worker_id ?
			 errdetail("The registry granted it until %s. It could not grant worker ID %d, the value of \"snowflake.worker_id\".",
					   end, snowflake_worker_id) :
			 errdetail("The registry granted it until %s.", end)));
}

/*
 * What the registry says of another server that has the name of this one, or an
 * empty text.  It is logged once, unless it changes.
 */
void
snowflake_log_namesake(const char *reason)
{
	static char noted[SNOWFLAKE_TEXT_SIZE] = "";
	StringInfoData detail;

	if (strcmp(reason, noted) == 0 || (*reason != '\0' && !may_log()))
		return;
	strlcpy(noted, reason, sizeof(noted));
	if (*reason == '\0')
		return;
	initStringInfo(&detail);
	snowflake_append_message(&detail, reason);
	ereport(WARNING,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("another server calls itself \"%s\"", snowflake_name_in_registry()),
			 errdetail_internal("%s", detail.data),
			 errhint("If one of them is a copy, shut it down. Otherwise, set \"snowflake.server_name\" on each.")));
}

/*
 * The registry does not know this server as the holder of its worker ID.
 */
void
snowflake_log_not_held(int worker_id)
{
	if (!may_log())
		return;
	ereport(LOG,
			(errmsg("the registry does not extend the grant of snowflake worker ID %d",
					worker_id),
			 errdetail("The registry does not know this server as the holder. The server requests another worker ID.")));
}

/*
 * A call for a grant has succeeded, or failed with this error, while this worker ID was
 * held (-1: none).  An error is logged once, and when it is over.
 */
void
snowflake_log_answer(int worker_id, StringInfo error)
{
	static bool due = false;

	if (error != NULL)
		cut_error(error);
	due |= snowflake_note_answer(error != NULL ? error->data : NULL);
	if (!due || !may_log())
		return;
	due = false;
	if (error == NULL)
		ereport(LOG,
				(errmsg("the registry of snowflake worker IDs is available again")));
	else if (worker_id < 0)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("could not get a snowflake worker ID from the registry"),
				 errdetail_internal("%s", error->data)));
	else
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("could not extend the grant of snowflake worker ID %d",
						worker_id),
				 errdetail_internal("%s", error->data)));
}

/*
 * Log once that a grant has ended, although no call may have noticed it.
 */
void
snowflake_log_end(bool ended)
{
	static bool noted = false;
	int			worker_id = snowflake_state->grant.worker_id;

	if (!ended)
		noted = false;
	if (!ended || noted || worker_id < 0 || !may_log())
		return;
	noted = true;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("the grant of snowflake worker ID %d has ended", worker_id),
			 errdetail("No ID can be generated until the registry grants a worker ID.")));
}

/*
 * At a shutdown, the worker ID could not be returned.
 */
void
snowflake_log_not_returned(int worker_id, StringInfo error)
{
	cut_error(error);
	ereport(LOG,
			(errmsg("could not return snowflake worker ID %d to the registry",
					worker_id),
			 errdetail_internal("%s", error->data)));
}

/*
 * A call for ranges has succeeded, or failed with this error.
 */
void
snowflake_log_range_call(StringInfo error)
{
	static char last[SNOWFLAKE_REGISTRY_ERROR_SIZE] = "";
	static bool due = false;

	if (error != NULL)
		cut_error(error);
	due |= snowflake_errors_differ(last, error != NULL ? error->data : "");
	strlcpy(last, error != NULL ? error->data : "", sizeof(last));
	if (!due || !may_log())
		return;
	due = false;
	if (error == NULL)
		ereport(LOG,
				(errmsg("the registry of sequence ranges is available again")));
	else
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("could not call the registry of sequence ranges"),
				 errdetail_internal("%s", error->data)));
}

/*
 * The registry does not know this server as the holder of its ranges.
 */
void
snowflake_log_superseded(void)
{
	if (!may_log())
		return;
	ereport(LOG,
			(errmsg("the registry does not know this server as the holder of its sequence ranges"),
			 errdetail("The server does not use the rest of them, and requests others.")));
}

/*
 * At a shutdown, the ranges could not be returned.
 */
void
snowflake_log_ranges_not_returned(StringInfo error)
{
	cut_error(error);
	ereport(LOG,
			(errmsg("could not return sequence ranges to the registry"),
			 errdetail_internal("%s", error->data)));
}

static HTAB *
logged_problems(void)
{
	static HTAB *table = NULL;
	HASHCTL		control = {0};

	if (table != NULL)
		return table;
	control.keysize = sizeof(int);
	control.entrysize = sizeof(LoggedProblem);
	table = hash_create("snowflake problems of ranges", 16, &control,
						HASH_ELEM | HASH_BLOBS);
	return table;
}

/*
 * A sequence has a problem, or none.  One that the registry does not know yet has none:
 * the session that uses it says what it continues above.
 */
void
snowflake_log_range_problem(const RangeRequest *request, const RangeAnswer *answer)
{
	LoggedProblem *logged;
	bool		found;

	if (request->slot == NO_SLOT || answer->problem_kind == PROBLEM_UNKNOWN)
		return;
	if (answer->problem_kind == PROBLEM_NONE)
	{
		(void) hash_search(logged_problems(), &request->slot, HASH_REMOVE, NULL);
		return;
	}
	logged = hash_search(logged_problems(), &request->slot, HASH_ENTER, &found);
	if (found && logged->version == request->version &&
		!snowflake_errors_differ(logged->problem, answer->problem))
		return;
	logged->version = request->version;
	logged->problem[0] = '\0';
	if (!may_log())
		return;
	strlcpy(logged->problem, answer->problem, sizeof(logged->problem));
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("the registry grants no numbers for sequence %s in database \"%s\"",
					request->name, request->database),
			 errdetail_internal("%s", answer->problem)));
}
