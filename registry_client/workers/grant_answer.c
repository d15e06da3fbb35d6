/*-------------------------------------------------------------------------
 *
 * grant_answer.c
 *	  What a registry grants: its answers to this server's requests.
 *
 * An answer counts only if it is what the registry's functions return, with
 * values that they can return.  Everything else is an error of the host that
 * gave it (see answer.c), and other hosts are asked.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/grant_answer.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "generator/settings.h"
#include "generator/state.h"
#include "registry_client/workers/grant_answer.h"

/*
 * Can a registry grant this to a server that holds this worker ID, or none (-1),
 * and whose next ID is in this tick?
 */
static bool
check_grant(const int64 *values, int held_worker_id, int64 next_tick,
			StringInfo error)
{
	const SnowflakeScheme *scheme = &snowflake_layout.scheme;
	int64		until = values[1] >> scheme->shift[SNOWFLAKE_TIMESTAMP];

	if (values[0] < 1 ||
		values[0] > snowflake_field_max(scheme, SNOWFLAKE_WORKER) ||
		(held_worker_id >= 0 && values[0] != held_worker_id) ||
		until <= next_tick ||
		until > snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP) + 1)
		appendStringInfo(error, "the registry granted an invalid range: worker ID " INT64_FORMAT ", until " INT64_FORMAT,
						 values[0], values[1]);
	else if (values[2] < snowflake_reserve_time)
		appendStringInfo(error, "grant_time of the registry (" INT64_FORMAT " ms) is less than \"snowflake.reserve_time\" (%d ms)",
						 values[2], snowflake_reserve_time);
	else if (values[2] > SNOWFLAKE_MAX_GRANT_TIME_MS)
		appendStringInfo(error, "grant_time of the registry (" INT64_FORMAT " ms) is longer than a year",
						 values[2]);
	else
		return true;
	return false;
}

/*
 * Has the only row nothing but NULL?
 */
static bool
has_row_of_nulls(const RegistryAnswer *answer, int ncolumns)
{
	if (!snowflake_has_row(answer, ncolumns))
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		if (!answer->rows[0].values[i].is_null)
			return false;
	}
	return true;
}

/*
 * Read the answer to a request for a grant, or for the extension of that of a
 * worker ID.
 */
GrantOutcome
snowflake_read_grant(const RegistryAnswer *answer, int held_worker_id,
					 int64 next_tick, GrantAnswer *grant, StringInfo error)
{
	int64		values[3];

	if (held_worker_id >= 0 && snowflake_has_no_row(answer, 3))
	{
		appendStringInfo(error, "the registry does not know this server as the holder of worker ID %d",
						 held_worker_id);
		return SNOWFLAKE_REQUEST_NOT_HELD;
	}
	if (held_worker_id < 0 && has_row_of_nulls(answer, 3))
	{
		/* It had to commit that first. */
		appendStringInfoString(error, "the registry detected that it may have lost grants, and is called again");
		return SNOWFLAKE_REQUEST_AGAIN;
	}
	if (!snowflake_has_row(answer, 3) ||
		!snowflake_read_integer(answer, 0, &values[0]) ||
		!snowflake_read_integer(answer, 1, &values[1]) ||
		!snowflake_read_integer(answer, 2, &values[2]))
	{
		snowflake_append_answer(error, answer);
		return SNOWFLAKE_REQUEST_FAILED;
	}
	if (!check_grant(values, held_worker_id, next_tick, error))
		return SNOWFLAKE_REQUEST_FAILED;
	grant->worker_id = (int) values[0];
	grant->until =
		Min(values[1] >> snowflake_layout.scheme.shift[SNOWFLAKE_TIMESTAMP],
			snowflake_layout.last_tick + 1);
	grant->grant_time_ms = values[2];
	return SNOWFLAKE_REQUEST_GRANTED;
}

/*
 * Read the answer to the return of a grant: 1, or 0 if the server is not the
 * holder.
 */
GrantOutcome
snowflake_read_return(const RegistryAnswer *answer, StringInfo error)
{
	int64		returned;

	if (!snowflake_has_row(answer, 1) ||
		!snowflake_read_integer(answer, 0, &returned) ||
		returned < 0 || returned > 1)
	{
		snowflake_append_answer(error, answer);
		return SNOWFLAKE_REQUEST_FAILED;
	}
	if (returned == 1)
		return SNOWFLAKE_REQUEST_GRANTED;
	appendStringInfoString(error, "the registry does not know this server as the holder");
	return SNOWFLAKE_REQUEST_NOT_HELD;
}
