/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  Background workers of the extension.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/worker.h"

/* That of this build. */
const char	snowflake_library_version[] = SNOWFLAKE_VERSION;

/*
 * Describe a background worker that starts at the end of recovery, because a
 * standby generates no IDs.
 */
void
snowflake_describe_worker(BackgroundWorker *worker, const char *name,
						  const char *library, const char *function)
{
	memset(worker, 0, sizeof(BackgroundWorker));
	strlcpy(worker->bgw_name, name, BGW_MAXLEN);
	strlcpy(worker->bgw_type, name, BGW_MAXLEN);
	strlcpy(worker->bgw_library_name, library, BGW_MAXLEN);
	strlcpy(worker->bgw_function_name, function, BGW_MAXLEN);
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = 1;
}
