/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  Background workers of the extension.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/worker.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_WORKER_H
#define SNOWFLAKE_WORKER_H

#include "postmaster/bgworker.h"

#include "shared/compat.h"

/* The libraries that workers are in. */
#define SNOWFLAKE_LIBRARY			"snowflake"
#define SNOWFLAKE_CLIENT_LIBRARY	"snowflake_registry_client"

extern PGDLLEXPORT const char snowflake_library_version[];

extern PGDLLEXPORT void snowflake_describe_worker(BackgroundWorker *worker, const char *name,
												  const char *library, const char *function);

#endif							/* SNOWFLAKE_WORKER_H */
