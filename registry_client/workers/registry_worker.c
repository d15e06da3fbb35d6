/*-------------------------------------------------------------------------
 *
 * registry_worker.c
 *	  What background workers that call the registry have in common.
 *
 * If the registry is in this server, the worker is connected to that database
 * from its start on (local_call.c); otherwise it connects when it calls
 * (client.c).
 *
 * The end.  A worker is stopped by SIGTERM, which also reaches it through
 * pg_terminate_backend().  Only a shutdown of the server returns what was
 * granted: if the worker alone is terminated, it is started again after a
 * second, and what was granted is still used.  The postmaster says which of the
 * two it is in the last line of postmaster.pid, which it changes to "stopping"
 * before it signals its children.  If that cannot be read, nothing is returned.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/registry_worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pidfile.h"
#include "utils/timestamp.h"

#include "generator/grant.h"
#include "generator/settings.h"
#include "registry_client/calls/conninfo.h"
#include "registry_client/workers/local_call.h"
#include "registry_client/workers/registry_worker.h"
#include "shared/clock.h"

/* How soon to connect to a local database again if that failed. */
#define CONNECT_RETRY_MS	5000

/* Time for a call of a local registry, and for the last one, at a shutdown. */
#define LOCAL_CALL_TIMEOUT_MS	5000
#define LAST_CALL_TIMEOUT_MS	2000

/* Can a local call be cancelled by SIGTERM?  For the signal handler. */
static volatile sig_atomic_t cancel_at_sigterm = false;

/* The hook of another module, while note_fatal() is in its place. */
static emit_log_hook_type previous_log_hook = NULL;

/* Who notes a reason then. */
static void (*note_error) (const char *error);

static void
handle_sigterm(SIGNAL_ARGS)
{
	int			save_errno = errno;

	ShutdownRequestPending = true;
	if (cancel_at_sigterm)
	{
		InterruptPending = true;
		QueryCancelPending = true;
	}
	SetLatch(MyLatch);
	errno = save_errno;
}

/*
 * While the worker connects to a database, keep the reason why it cannot, which
 * is FATAL.
 */
static void
note_fatal(ErrorData *edata)
{
	StringInfoData error;

	if (previous_log_hook != NULL)
		previous_log_hook(edata);
	if (edata->elevel != FATAL || edata->message == NULL ||
		edata->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN)
		return;
	initStringInfo(&error);
	snowflake_append_message(&error, edata->message);
	note_error(error.data);
}

/*
 * Connect this process to the database of a local registry.  If that fails, the
 * process ends, and the next one waits before it tries again.
 */
static void
connect_locally(const Registry *registry, const RegistryWorker *worker)
{
	if (worker->note_connecting(true))
	{
		WaitLimit	limit = snowflake_limit_wait(CONNECT_RETRY_MS, true);
		StringInfoData ignored;

		initStringInfo(&ignored);
		(void) snowflake_limited_wait(&limit, PGINVALID_SOCKET, 0,
									  worker->pause, &ignored);
	}
	note_error = worker->note_error;
	previous_log_hook = emit_log_hook;
	emit_log_hook = note_fatal;
	BackgroundWorkerInitializeConnection(registry->dbname, registry->user, 0);
	emit_log_hook = previous_log_hook;
	(void) worker->note_connecting(false);
	snowflake_set_local_session();
}

/*
 * Find out where the registry is.
 */
static void
locate_registry(Registry *registry)
{
	memset(registry, 0, sizeof(*registry));
	registry->is_new = true;
	registry->local = snowflake_local_registry(snowflake_registry,
											   &registry->dbname,
											   &registry->user);
}

/*
 * What the main function of such a worker begins with.
 */
void
snowflake_begin_registry_worker(Registry *registry,
								const RegistryWorker *worker)
{
	/* Nothing is to be returned until the worker is connected. */
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();

	/* A reload may have been before the handler. */
	ConfigReloadPending = true;

	locate_registry(registry);
	registry->context = AllocSetContextCreate(TopMemoryContext,
											  "snowflake registry",
											  ALLOCSET_DEFAULT_SIZES);
	if (registry->local)
		connect_locally(registry, worker);
	else
	{
		/* This makes the worker visible in pg_stat_activity. */
		BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	}
	pqsignal(SIGTERM, handle_sigterm);
}

/*
 * Read the configuration again.  A process can connect to one database only, so
 * if the registry is in another one now, another process has to.
 */
void
snowflake_reload_registry_worker(const Registry *registry)
{
	Registry	new;

	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	locate_registry(&new);
	if (new.local == registry->local &&
		(!new.local || (strcmp(new.dbname, registry->dbname) == 0 &&
						strcmp(new.user, registry->user) == 0)))
		return;
	ereport(LOG,
			(errmsg("background worker \"%s\" restarts because \"%s\" was changed",
					MyBgworkerEntry->bgw_name, "snowflake.registry")));
	proc_exit(1);
}

/*
 * Is the whole server being shut down, and not only this process?
 */
static bool
server_is_stopping(void)
{
	FILE	   *file = AllocateFile("postmaster.pid", "r");
	char		line[MAXPGPATH];
	bool		stopping = false;

	if (file == NULL)
		return false;
	for (int i = 1; fgets(line, sizeof(line), file) != NULL; i++)
	{
		if (i == LOCK_FILE_LINE_PM_STATUS)
			stopping = strncmp(line, PM_STATUS_STOPPING,
							   strlen(PM_STATUS_STOPPING)) == 0;
	}
	FreeFile(file);
	return stopping;
}

/*
 * The worker must stop: return if the server stops, too.
 */
void
snowflake_check_registry_shutdown(void)
{
	if (!server_is_stopping())
		ereport(FATAL,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("terminating background worker \"%s\" due to administrator command",
						MyBgworkerEntry->bgw_name)));
}

/*
 * Make a call of a local registry.  If it succeeds, it is committed, and if it is to be
 * durable, the standbys have it.
 */
static bool
ask_locally(const Registry *registry, RegistryRequest *request,
			const WaitLimit *limit, StringInfo error)
{
	bool		answered = false;

	cancel_at_sigterm = limit->ends_at_shutdown;

	/* From here on a signal cancels the call; has it come before? */
	if (cancel_at_sigterm && ShutdownRequestPending)
	{
		appendStringInfoString(error, "server is shutting down");
		snowflake_empty_answer(&request->call.answer);
		request->call.answer.rolled_back = true;
	}
	else
		answered = snowflake_ask_local(registry->dbname, &request->call, limit, error);
	cancel_at_sigterm = false;
	QueryCancelPending = false;
	return answered &&
		(!request->durable || snowflake_wait_for_local_commit(limit, error));
}

/*
 * Make the call of a request where the registry is: in this server, or where its round
 * is connected to.
 */
static RegistryOutcome
make_call(Registry *registry, RegistryRequest *request, const WaitLimit *limit,
		  StringInfo error)
{
	RegistryOutcome outcome;
	StringInfoData reason;

	request->prepare(request);
	if (!(registry->local ? ask_locally(registry, request, limit, error) :
		  snowflake_ask_registry(registry->round, &request->call)))
	{
		if (request->call.answer.rolled_back && request->cancel != NULL)
			request->cancel(request);
		return REGISTRY_FAILED;
	}
	if (registry->local)
		return request->read(request, error);
	initStringInfo(&reason);
	outcome = request->read(request, &reason);
	if (outcome >= request->enough)
		snowflake_accept_answer(registry->round);
	else
		snowflake_reject_answer(registry->round, reason.data);
	return outcome;
}

/*
 * Begin a round, and make the call of each host until one has answered enough.  If it
 * has, its connection is kept.
 */
static RegistryOutcome
call_hosts(Registry *registry, RegistryRequest *request, const WaitLimit *limit,
		   StringInfo error)
{
	RegistryOutcome best = REGISTRY_FAILED;
	MemoryContext outer = MemoryContextSwitchTo(registry->context);

	registry->round = snowflake_begin_round(snowflake_registry, &registry->start,
											limit, error);
	while (registry->round != NULL && best < request->enough &&
		   snowflake_connect_next(registry->round))
	{
		RegistryOutcome outcome;

		registry->opened = snowflake_steady_clock();
		registry->is_new = true;
		MemoryContextSwitchTo(outer);
		outcome = make_call(registry, request, limit, error);
		best = Max(best, outcome);
		MemoryContextSwitchTo(registry->context);
	}
	MemoryContextSwitchTo(outer);
	if (best < request->enough)
		snowflake_close_registry(registry);
	return best;
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
 * Make the call of a request, over the connection that is there, or a new one.
 */
RegistryOutcome
snowflake_call_registry(Registry *registry, RegistryRequest *request, StringInfo error)
{
	WaitLimit	limit =
		snowflake_limit_wait(request->is_last ? LAST_CALL_TIMEOUT_MS :
							 registry->local ? LOCAL_CALL_TIMEOUT_MS :
							 SNOWFLAKE_NO_LIMIT_MS, !request->is_last);
	RegistryOutcome outcome = REGISTRY_FAILED;

	if (registry->round != NULL)
		snowflake_continue_round(registry->round, &limit, error);
	if (registry->local || registry->round != NULL)
		outcome = make_call(registry, request, &limit, error);
	if (!registry->local && outcome < request->enough)
	{
		snowflake_close_registry(registry);
		resetStringInfo(error);
		outcome = call_hosts(registry, request, &limit, error);
	}
	cut_error(error);
	return outcome;
}

void
snowflake_close_registry(Registry *registry)
{
	if (registry->round != NULL)
		snowflake_end_round(registry->round);
	registry->round = NULL;
	MemoryContextReset(registry->context);
}

/*
 * Read the answer to a report, or to the return of what was granted: 1, or 0 if the
 * registry does not know this server as the holder.
 */
RegistryOutcome
snowflake_read_taken(RegistryRequest *request, StringInfo error)
{
	const RegistryAnswer *answer = &request->call.answer;
	int64		taken;

	if (snowflake_has_rows(answer, 1, 1) && snowflake_read_integer(answer, 0, &taken) &&
		(taken == 0 || taken == 1))
		return taken == 1 ? REGISTRY_ANSWERED : REGISTRY_NOT_HELD;
	snowflake_append_answer(error, answer);
	return REGISTRY_FAILED;
}

/*
 * The name of this server in the registry.
 */
const char *
snowflake_name_in_registry(void)
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

/*
 * A token, and an array of them, as SQL has them.
 */
char *
snowflake_token_text(const pg_uuid_t *token)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(token)));
}

char *
snowflake_token_array(const pg_uuid_t *tokens, int count)
{
	StringInfoData array;

	initStringInfo(&array);
	for (int i = 0; i < count; i++)
		appendStringInfo(&array, "%c%s", i == 0 ? '{' : ',',
						 snowflake_token_text(&tokens[i]));
	appendStringInfoString(&array, count == 0 ? "{}" : "}");
	return array.data;
}
