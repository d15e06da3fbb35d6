/*-------------------------------------------------------------------------
 *
 * grant_worker.c
 *	  The background worker that gets a grant from the registry, extends it,
 *	  and returns it.
 *
 * It starts at the end of recovery, as a standby makes no IDs.  It gets a
 * worker ID, extends the grant when about half of it is left, and returns the
 * worker ID when the server is shut down, so that others can use it at once.
 * Calls wait for it only if there is no grant: as long as the grant lasts, the
 * registry may be down.
 *
 * If the registry no longer knows the server as the holder (it lost commits in
 * a failover, an administrator freed the worker ID, or the machine was
 * restored from a snapshot), the worker gets another grant.  Meanwhile, the
 * old grant is used to its end: no other server was granted it.
 *
 * No lock is held during calls of the registry.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/grant_worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compat.h"
#include "grant.h"
#include "registry.h"
#include "reserve.h"
#include "snowflake.h"

PGDLLEXPORT void snowflake_grant_main(Datum main_arg);

/* Timeout of calls of the registry, and of the one at shutdown. */
#define CALL_TIMEOUT_MS		10000
#define LAST_CALL_TIMEOUT_MS	2000

/* How soon to call again after a failure: without a grant, and with one. */
#define URGENT_RETRY_US		INT64CONST(1000000)
#define RETRY_US			INT64CONST(5000000)

static const char get_query[] =
"SELECT worker_id, until, grant_time_ms"
" FROM snowflake_get_grant($1, $2, $3, $4, $5, $6, $7)";

static const char extend_query[] =
"SELECT $3::integer, until, grant_time_ms"
" FROM snowflake_extend_grant($1, $2, $3, $4, $5, $6, $7)";

static const char return_query[] =
"SELECT snowflake_return_grant($1, $2, $3, $5, $4)::integer";

/*
 * The name of this server in the registry.
 */
static const char *
server_name(void)
{
	static char host[256];

	if (snowflake_server_name[0] != '\0')
		return snowflake_server_name;
	if (cluster_name[0] != '\0')
		return cluster_name;
	if (gethostname(host, sizeof(host) - 1) != 0)
		strlcpy(host, "?", sizeof(host));
	return host;
}

static char *
uuid_text(const pg_uuid_t *uuid)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(uuid)));
}

static char *
token_array(const GrantCall *call)
{
	StringInfoData array;

	initStringInfo(&array);
	for (int i = 0; i < call->ntokens; i++)
		appendStringInfo(&array, "%c%s", i == 0 ? '{' : ',',
						 uuid_text(&call->tokens[i]));
	appendStringInfoString(&array, call->ntokens == 0 ? "{}" : "}");
	return array.data;
}

/*
 * Call the registry about a worker ID and a tick.
 */
static RegistryResult
call_registry(const char *query, const GrantCall *call, int worker_id,
			  int64 tick, int64 *answer, StringInfo error)
{
	int			shift = snowflake_layout.scheme.shift[SNOWFLAKE_TIMESTAMP];
	bool		last = query == return_query;
	const char *params[] = {
		snowflake_scheme,
		psprintf("%d", snowflake_datacenter_id),
		psprintf("%d", worker_id),
		psprintf(INT64_FORMAT, tick << shift),
		token_array(call),
		uuid_text(&call->new_token),
		server_name()
	};

	return snowflake_call_registry(snowflake_registry,
								   last ? LAST_CALL_TIMEOUT_MS : CALL_TIMEOUT_MS,
								   last, query,
								   lengthof(params) - (last ? 2 : 0), params,
								   answer, error);
}

/*
 * Check the values that the registry returned.
 */
static bool
check_answer(const int64 *answer, int64 next, StringInfo error)
{
	const SnowflakeScheme *scheme = &snowflake_layout.scheme;
	int64		until = answer[1] >> scheme->shift[SNOWFLAKE_TIMESTAMP];

	if (answer[0] < 1 ||
		answer[0] > snowflake_field_max(scheme, SNOWFLAKE_WORKER) ||
		until <= next)
		appendStringInfo(error, "the registry granted an invalid range: worker ID " INT64_FORMAT ", until " INT64_FORMAT,
						 answer[0], answer[1]);
	else if (answer[2] < snowflake_reserve_time)
		appendStringInfo(error, "grant_time of the registry (" INT64_FORMAT " ms) is less than \"snowflake.reserve_time\" (%d ms)",
						 answer[2], snowflake_reserve_time);
	return error->len == 0;
}

static void
log_grant(int worker_id, int64 until)
{
	ereport(LOG,
			(errmsg("snowflake IDs are made with worker ID %d", worker_id),
			 errdetail("The registry granted it until %s.",
					   timestamptz_to_str(tick_start(&snowflake_layout, until)))));
}

/*
 * Log an error once, and when it is over.
 */
static void
note_answer(const GrantCall *call, const char *error)
{
	bool		changed = snowflake_note_answer(error);

	if (!changed)
		return;
	if (error == NULL)
		ereport(LOG,
				(errmsg("the registry of snowflake worker IDs is available again")));
	else if (call->worker_id < 0)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("could not get a snowflake worker ID from the registry"),
				 errdetail_internal("%s", error)));
	else
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("could not extend the grant of snowflake worker ID %d",
						call->worker_id),
				 errdetail_internal("%s", error)));
}

/*
 * Get a grant, or extend the existing one.  Returns the time until the next
 * call, in microseconds.
 */
static int64
get_or_extend(void)
{
	GrantCall	call;
	RegistryResult outcome;
	StringInfoData error;
	int64		next = snowflake_next_tick();
	int64		answer[SNOWFLAKE_ANSWER_COLUMNS] = {0};
	int64		until;
	int64		left;

	if (next > snowflake_layout.last_tick)
	{
		(void) snowflake_note_answer("timestamp field of the snowflake scheme is exhausted");
		return RETRY_US;
	}

	initStringInfo(&error);
	snowflake_begin_call(&call);
	if (call.worker_id < 0)
		outcome = call_registry(get_query, &call, snowflake_worker_id, next,
								answer, &error);
	else
		outcome = call_registry(extend_query, &call, call.worker_id, next,
								answer, &error);
	if (ShutdownRequestPending)
		return 0;

	if (outcome == SNOWFLAKE_REGISTRY_NO_ROW && call.worker_id < 0)
	{
		/* It detected lost grants, and had to commit that first. */
		return URGENT_RETRY_US;
	}
	if (outcome == SNOWFLAKE_REGISTRY_NO_ROW)
	{
		ereport(LOG,
				(errmsg("the registry does not extend the grant of snowflake worker ID %d",
						call.worker_id),
				 errdetail("The registry does not know this server as the holder. The server requests another worker ID.")));
		snowflake_forget_tokens();
		return 0;
	}
	if (outcome != SNOWFLAKE_REGISTRY_ROW || !check_answer(answer, next, &error))
	{
		note_answer(&call, error.data);
		return granted_until() > next ? RETRY_US : URGENT_RETRY_US;
	}

	until = answer[1] >> snowflake_layout.scheme.shift[SNOWFLAKE_TIMESTAMP];
	if (call.worker_id >= 0)
	{
		if (!snowflake_extend_grant(&call, until))
			return 0;
	}
	else
	{
		if (!snowflake_install_grant(&call, (int) answer[0], next, until))
			return 0;
		log_grant((int) answer[0], until);
	}
	note_answer(&call, NULL);

	/* At about half of it, but not at the same time on all servers. */
	left = Min(answer[2] * 1000, (until - next) * snowflake_layout.tick_us);
	return (int64) (left * (0.4 + 0.1 * pg_prng_double(&pg_global_prng_state)));
}

/*
 * Return the grant, so that another server can have the worker ID at once.
 */
static void
give_back(void)
{
	GrantCall	call = {0};
	StringInfoData error;
	int64		answer[SNOWFLAKE_ANSWER_COLUMNS];
	int64		end;

	/* After a crash, this reads the mark if nobody did. */
	(void) snowflake_next_tick();
	end = snowflake_seal_grant(&call);
	if (call.worker_id < 0)
		return;
	initStringInfo(&error);
	if (call_registry(return_query, &call, call.worker_id, end, answer,
					  &error) == SNOWFLAKE_REGISTRY_FAILED)
		ereport(LOG,
				(errmsg("could not return snowflake worker ID %d to the registry",
						call.worker_id),
				 errdetail_internal("%s", error.data)));
}

static void
set_worker_latch(Latch *latch)
{
	Grant	   *grant = &snowflake_state->grant;

	SpinLockAcquire(&grant->mutex);
	grant->worker_latch = latch;
	SpinLockRelease(&grant->mutex);
}

static void
clear_worker_latch(int code, Datum arg)
{
	set_worker_latch(NULL);
}

/*
 * Main function of the background worker.
 */
void
snowflake_grant_main(Datum main_arg)
{
	MemoryContext context;
	uint32		wait_event;
	int64		called = 0;
	int64		due = 0;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	/* This makes the worker visible in pg_stat_activity. */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	wait_event = snowflake_wait_event("SnowflakeGrantMain");
	set_worker_latch(MyLatch);
	before_shmem_exit(clear_worker_latch, 0);
	context = AllocSetContextCreate(TopMemoryContext, "snowflake grant",
									ALLOCSET_DEFAULT_SIZES);

	while (!ShutdownRequestPending)
	{
		int64		now = snowflake_steady_clock();

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (now >= due)
		{
			MemoryContextSwitchTo(context);
			due = get_or_extend();
			MemoryContextReset(context);
			called = now;
			due += snowflake_steady_clock();
		}
		else if (WaitLatch(MyLatch,
						   WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						   (due - now) / 1000 + 1, wait_event) & WL_LATCH_SET)
		{
			/* A call waits, or the configuration has changed. */
			ResetLatch(MyLatch);
			due = Min(due, called + URGENT_RETRY_US);
		}
	}

	MemoryContextSwitchTo(context);
	give_back();

	/* If the server keeps running, it restarts the worker. */
	proc_exit(1);
}
