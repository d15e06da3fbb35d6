/*-------------------------------------------------------------------------
 *
 * registry_worker.h
 *	  What background workers that call the registry have in common.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/registry_worker.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_REGISTRY_WORKER_H
#define SNOWFLAKE_REGISTRY_WORKER_H

#include "utils/uuid.h"

#include "registry_client/calls/client.h"

/* Where the registry is. */
typedef struct Registry
{
	bool		local;			/* is this process connected to it? */
	char	   *dbname;			/* if so, to this database */
	char	   *user;			/* as this role */

	RegistryStart start;		/* if not: the host that granted last */
} Registry;

/* What a worker does while it connects to a local registry. */
typedef struct RegistryWorker
{
	/* Notes whether it is connecting; returns what was noted before. */
	bool		(*note_connecting) (bool connecting);
	/* Notes why it cannot. */
	void		(*note_error) (const char *error);
	/* Waits for this before it tries again. */
	SnowflakeWaitEvent pause;
} RegistryWorker;

extern void snowflake_begin_registry_worker(Registry *registry,
											const RegistryWorker *worker);
extern void snowflake_reload_registry_worker(const Registry *registry);
extern void snowflake_check_registry_shutdown(void);
extern bool snowflake_call_locally(const Registry *registry,
								   RegistryCall *call, bool durable,
								   const WaitLimit *limit, StringInfo error);
extern const char *snowflake_name_in_registry(void);
extern char *snowflake_token_text(const pg_uuid_t *token);
extern char *snowflake_token_array(const pg_uuid_t *tokens, int count);

#endif							/* SNOWFLAKE_REGISTRY_WORKER_H */
