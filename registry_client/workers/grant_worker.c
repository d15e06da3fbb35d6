/*-------------------------------------------------------------------------
 *
 * grant_worker.c
 *	  The background worker that gets a grant from the registry, extends it,
 *	  and returns it.
 *
 * It starts at the end of recovery, because a standby generates no IDs.  It
 * gets a worker ID, extends the grant when about half of it is left, and
 * returns the worker ID when the server is shut down, so that others can use it
 * at once.  Calls wait for it only if there is no grant: as long as the grant
 * lasts, the registry may be down.
 *
 * If the registry no longer knows the server as the holder (it lost commits in
 * a failover, an administrator freed the worker ID, or the machine was
 * restored from a snapshot), the worker gets another grant.  Meanwhile, the
 * old grant is used to its end: no other server was granted it.
 *
 * If the registry is in this server (snowflake.registry names one of its socket
 * directories), the worker connects to that database itself
 * (local_call.c), otherwise by libpq (client.c).
 *
 * No lock is held during calls of the registry.
 *
 * An answer counts only if it is what the registry's functions return, with values that
 * they can return.  Everything else is an error of the host that gave it (see answer.c),
 * and other hosts are asked.
 *
 * The end.  Only a shutdown of the server returns the grant, and not the end of
 * this process alone (registry_worker.c).  If it is not returned, that costs no
 * more than a worker ID that is reserved until the end of the grant.  And the
 * generator is stopped (sealed) only when the registry was reached.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/grant_worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "generator/grant.h"
#include "generator/reserve.h"
#include "generator/settings.h"
#include "generator/state.h"
#include "registry_client/workers/registry_worker.h"
#include "shared/clock.h"
#include "shared/compat.h"

PGDLLEXPORT void snowflake_grant_main(Datum main_arg);

/* How soon to call again after a failure: without a grant, and with one. */
#define URGENT_RETRY_US		INT64CONST(1000000)
#define RETRY_US			INT64CONST(5000000)

/* How soon at most, whatever the registry grants. */
#define MIN_RETRY_US		INT64CONST(100000)

/*
 * Names are qualified and parameters have exactly the types of the functions,
 * so that nobody's objects are called instead, which might be in a schema
 * named like the role, or be a better match for parameters without a type.
 * The parameters are in the same order in each call.
 */
static const char get_query[] =
"SELECT worker_id, until, grant_time_ms"
" FROM snowflake_registry.get_grant($1::pg_catalog.text,"
" $2::pg_catalog.int4, $3::pg_catalog.int4, $4::pg_catalog.int8,"
" $5::pg_catalog.uuid[], $6::pg_catalog.uuid, $7::pg_catalog.text)";

static const char extend_query[] =
"SELECT $3::pg_catalog.int4, until, grant_time_ms"
" FROM snowflake_registry.extend_grant($1::pg_catalog.text,"
" $2::pg_catalog.int4, $3::pg_catalog.int4, $4::pg_catalog.int8,"
" $5::pg_catalog.uuid[], $6::pg_catalog.uuid, $7::pg_catalog.text)";

static const char return_query[] =
"SELECT snowflake_registry.return_grant($1::pg_catalog.text,"
" $2::pg_catalog.int4, $3::pg_catalog.int4,"
" $5::pg_catalog.uuid[], $4::pg_catalog.int8)::pg_catalog.int4";

/* What is granted. */
typedef struct GrantAnswer
{
	int			worker_id;
	int64		until;			/* the first tick that is not */
	int64		grant_time_ms;
} GrantAnswer;

typedef struct GrantRequest
{
	RegistryRequest base;
	SnowflakeGrantCall grant;	/* by what the registry identifies the server */
	int64		tick;			/* the next one; at the end: the last one + 1 */
	bool		sealed;			/* at the end: is the generator stopped? */
	GrantAnswer answer;			/* if it is granted */
} GrantRequest;

/*
 * Fill in the call of a request about a worker ID.
 */
static void
fill_call(GrantRequest *request, const char *query, int nparams, int worker_id)
{
	RegistryCall *call = &request->base.call;
	int			shift = snowflake_layout.scheme.shift[SNOWFLAKE_TIMESTAMP];

	call->query = query;
	call->nparams = nparams;
	call->max_rows = 1;
	call->params[0] = snowflake_scheme;
	call->params[1] = psprintf("%d", snowflake_datacenter_id);
	call->params[2] = psprintf("%d", worker_id);
	call->params[3] = psprintf(INT64_FORMAT, request->tick << shift);
	call->params[4] = snowflake_token_array(request->grant.tokens,
											request->grant.ntokens);
	call->params[5] = snowflake_token_text(&request->grant.new_token);
	call->params[6] = snowflake_name_in_registry();
}

/*
 * Ask for a grant, or for the extension of the existing one.
 */
static void
prepare_grant(RegistryRequest *base)
{
	GrantRequest *request = (GrantRequest *) base;

	request->tick = snowflake_next_tick();
	snowflake_begin_call(&request->grant);
	if (request->grant.worker_id < 0)
		fill_call(request, get_query, 7, snowflake_worker_id);
	else
		fill_call(request, extend_query, 7, request->grant.worker_id);
}

/*
 * Stop the generator, and return the grant.
 */
static void
prepare_return(RegistryRequest *base)
{
	GrantRequest *request = (GrantRequest *) base;

	if (!request->sealed)
	{
		/* After a crash, perhaps nobody has read the mark. */
		snowflake_recover();
		request->tick = snowflake_seal_grant(&request->grant);
		request->sealed = true;
	}
	fill_call(request, return_query, 5, request->grant.worker_id);
}

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
	char	  **values;

	if (!snowflake_has_rows(answer, 1, ncolumns))
		return false;
	values = linitial(answer->rows);
	for (int i = 0; i < ncolumns; i++)
	{
		if (values[i] != NULL)
			return false;
	}
	return true;
}

/*
 * Read the answer to a request for a grant, or for the extension of that of a
 * worker ID.
 */
static RegistryOutcome
read_grant(RegistryRequest *base, StringInfo error)
{
	GrantRequest *request = (GrantRequest *) base;
	const RegistryAnswer *answer = &base->call.answer;
	int			held_worker_id = request->grant.worker_id;
	GrantAnswer *grant = &request->answer;
	int64		values[3];

	if (held_worker_id >= 0 && snowflake_has_rows(answer, 0, 3))
		return REGISTRY_NOT_HELD;
	if (held_worker_id < 0 && has_row_of_nulls(answer, 3))
	{
		/* It had to commit that first. */
		appendStringInfoString(error, "the registry detected that it may have lost grants, and is called again");
		return REGISTRY_AGAIN;
	}
	if (!snowflake_has_rows(answer, 1, 3) ||
		!snowflake_read_integer(answer, 0, &values[0]) ||
		!snowflake_read_integer(answer, 1, &values[1]) ||
		!snowflake_read_integer(answer, 2, &values[2]))
	{
		snowflake_append_answer(error, answer);
		return REGISTRY_FAILED;
	}
	if (!check_grant(values, held_worker_id, request->tick, error))
		return REGISTRY_FAILED;
	grant->worker_id = (int) values[0];
	grant->until =
		Min(values[1] >> snowflake_layout.scheme.shift[SNOWFLAKE_TIMESTAMP],
			snowflake_layout.last_tick + 1);
	grant->grant_time_ms = values[2];
	return REGISTRY_ANSWERED;
}

/*
 * The registry has certainly rolled a call back: its token is none.
 */
static void
cancel_grant(RegistryRequest *base)
{
	snowflake_cancel_call(&((GrantRequest *) base)->grant);
}

/*
 * A worker ID was granted.
 */
static void
log_grant(int worker_id, int64 until)
{
	const char *end = timestamptz_to_str(snowflake_tick_start(&snowflake_layout, until));

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
static void
log_namesake(const char *reason)
{
	static char noted[SNOWFLAKE_TEXT_SIZE] = "";
	StringInfoData detail;

	if (strcmp(reason, noted) == 0)
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
static void
log_not_held(int worker_id)
{
	ereport(LOG,
			(errmsg("the registry does not extend the grant of snowflake worker ID %d",
					worker_id),
			 errdetail("The registry does not know this server as the holder. The server requests another worker ID.")));
}

/*
 * A call for a grant has succeeded, or failed with this error, while this worker ID was
 * held (-1: none).  An error is logged once, and when it is over.
 */
static void
log_answer(int worker_id, StringInfo error)
{
	if (!snowflake_note_answer(error != NULL ? error->data : NULL))
		return;
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
static void
log_end(bool ended)
{
	static bool noted = false;
	int			worker_id = snowflake_state->grant.worker_id;

	if (!ended)
		noted = false;
	if (!ended || noted || worker_id < 0)
		return;
	noted = true;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("the grant of snowflake worker ID %d has ended", worker_id),
			 errdetail("No ID can be generated until the registry grants a worker ID.")));
}

/*
 * Make a call, over a connection of its own.
 */
static RegistryOutcome
call_registry(Registry *registry, GrantRequest *request, StringInfo error)
{
	RegistryOutcome outcome = snowflake_call_registry(registry, &request->base, error);

	snowflake_close_registry(registry);
	return outcome;
}

/*
 * Use what is granted.  Returns the time until the next call, in microseconds.
 */
static int64
use_grant(const GrantRequest *request)
{
	const SnowflakeGrantCall *call = &request->grant;
	const GrantAnswer *answer = &request->answer;
	int64		left = Min(answer->grant_time_ms * 1000,
						   (answer->until - request->tick) * snowflake_layout.tick_us);

	if (call->worker_id >= 0)
	{
		if (!snowflake_extend_grant(call, answer->until))
			return 0;
	}
	else
	{
		if (!snowflake_install_grant(call, answer->worker_id, request->tick,
									 answer->until))
			return 0;
		log_grant(answer->worker_id, answer->until);
	}
	log_answer(call->worker_id, NULL);
	log_namesake(request->base.call.answer.namesake);
	log_end(false);

	/* At about half of it, but not at the same time on all servers. */
	return (int64) (left * (0.4 + 0.1 * pg_prng_double(&pg_global_prng_state)));
}

/*
 * Get a grant, or extend the existing one.  Returns the time until the next
 * call, in microseconds.
 */
static int64
get_or_extend(Registry *registry)
{
	GrantRequest request = {
		.base = {
			.prepare = prepare_grant,
			.read = read_grant,
			.cancel = cancel_grant,
			.enough = REGISTRY_ANSWERED,
			.durable = true
		}
	};
	int			worker_id = snowflake_held_worker_id();
	RegistryOutcome outcome;
	StringInfoData error;
	bool		ended;

	if (snowflake_next_tick() > snowflake_layout.last_tick)
	{
		(void) snowflake_note_answer("timestamp field of the snowflake scheme is exhausted");
		return RETRY_US;
	}

	initStringInfo(&error);
	outcome = call_registry(registry, &request, &error);
	if (ShutdownRequestPending)
		return 0;
	if (outcome == REGISTRY_ANSWERED)
		return use_grant(&request);

	/*
	 * The new configuration may have other hosts, and a reload ends a round:
	 * a host that was not asked may know this server.
	 */
	if (ConfigReloadPending)
		return 0;
	if (outcome == REGISTRY_NOT_HELD)
	{
		log_not_held(worker_id);
		snowflake_forget_tokens();
		return 0;
	}

	ended = snowflake_granted_until() <= snowflake_next_tick();
	log_end(ended);

	/* If no host is reached, this says what could not be done. */
	log_answer(worker_id, &error);
	return ended || outcome == REGISTRY_AGAIN ?
		URGENT_RETRY_US : RETRY_US;
}

/*
 * Return the grant, so that another server can have the worker ID at once.
 */
static void
give_back(Registry *registry)
{
	/* If a return is lost, the worker ID is merely reserved for longer. */
	GrantRequest request = {
		.base = {
			.prepare = prepare_return,
			.read = snowflake_read_taken,
			.cancel = cancel_grant,
			.enough = REGISTRY_ANSWERED,
			.is_last = true
		}
	};
	StringInfoData error;
	int			worker_id = snowflake_held_worker_id();

	if (worker_id < 0)
		return;
	initStringInfo(&error);
	if (call_registry(registry, &request, &error) == REGISTRY_FAILED)
		ereport(LOG,
				(errmsg("could not return snowflake worker ID %d to the registry",
						worker_id),
				 errdetail_internal("%s", error.data)));
}

static void
clear_worker_latch(int code, Datum arg)
{
	snowflake_set_worker_latch(NULL);
	snowflake_note_calling(false);
}

static void
note_error(const char *error)
{
	(void) snowflake_note_answer(error);
}

/*
 * Call the registry whenever it is time, until the process must stop.
 */
static void
serve(Registry *registry)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext,
												  "snowflake grant",
												  ALLOCSET_DEFAULT_SIZES);
	int64		called = 0;
	int64		due = 0;

	MemoryContextSwitchTo(context);
	while (!ShutdownRequestPending)
	{
		int64		now = snowflake_steady_clock();
		bool		wanted = snowflake_call_is_wanted();

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			snowflake_reload_registry_worker(registry);
			wanted = true;
		}
		if (wanted)
			due = Min(due, called + URGENT_RETRY_US);
		if (now >= due)
		{
			int64		pause;

			called = now;
			snowflake_note_calling(true);
			pause = get_or_extend(registry);
			snowflake_note_calling(false);
			due = snowflake_steady_clock() + Max(pause, MIN_RETRY_US);
		}
		else
		{
			(void) WaitLatch(MyLatch,
							 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 Min((due - now) / 1000 + 1, PG_INT32_MAX),
							 snowflake_wait_event(SNOWFLAKE_EVENT_GRANT_MAIN));
			ResetLatch(MyLatch);
		}
		MemoryContextReset(context);
	}
}

/*
 * Main function of the background worker.
 */
void
snowflake_grant_main(Datum main_arg)
{
	static const RegistryWorker worker = {
		.note_connecting = snowflake_note_connecting,
		.note_error = note_error,
		.pause = SNOWFLAKE_EVENT_GRANT_MAIN
	};
	Registry	registry;

	snowflake_begin_registry_worker(&registry, &worker);
	snowflake_set_worker_latch(MyLatch);
	before_shmem_exit(clear_worker_latch, 0);
	serve(&registry);

	snowflake_check_registry_shutdown();
	give_back(&registry);

	/* If the shutdown waits for sessions, the worker is started again. */
	proc_exit(1);
}
