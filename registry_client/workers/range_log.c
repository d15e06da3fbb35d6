/*-------------------------------------------------------------------------
 *
 * range_log.c
 *	  What is logged of the calls for ranges.
 *
 * The rules are those of grant_log.c: an error is logged once, until another one
 * comes or it is over, and so is the problem of each sequence; errors that differ
 * only in numbers are the same; all messages together have a limit.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_log.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/hsearch.h"

#include "generator/grant.h"
#include "registry_client/workers/range_log.h"
#include "registry_client/workers/registry_worker.h"

/* The problem of a sequence that has one. */
typedef struct LoggedProblem
{
	int			slot;			/* the key */
	uint32		version;
	char		problem[SNOWFLAKE_RANGE_TEXT_SIZE];
} LoggedProblem;

/*
 * A call has succeeded, or failed with this error.
 */
void
snowflake_log_range_call(StringInfo error)
{
	static char last[SNOWFLAKE_REGISTRY_ERROR_SIZE] = "";
	static bool due = false;

	if (error != NULL)
		snowflake_cut_error(error);
	due |= snowflake_errors_differ(last, error != NULL ? error->data : "");
	strlcpy(last, error != NULL ? error->data : "", sizeof(last));
	if (!due || !snowflake_may_log_call())
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
	if (!snowflake_may_log_call())
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
	snowflake_cut_error(error);
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
 * A sequence has a problem, or none.
 */
void
snowflake_log_range_problem(const RangeRequest *request, const RangeAnswer *answer)
{
	LoggedProblem *logged;
	bool		found;

	if (request->slot == NO_SLOT)
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
	if (!snowflake_may_log_call())
		return;
	strlcpy(logged->problem, answer->problem, sizeof(logged->problem));
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("the registry grants no numbers for sequence %s in database \"%s\"",
					request->name, request->database),
			 errdetail_internal("%s", answer->problem)));
}
