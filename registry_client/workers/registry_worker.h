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
	MemoryContext context;		/* of the round */
	RegistryRound *round;		/* with a connection, or NULL */
	int64		opened;			/* when that was, by the steady clock */
	bool		is_new;			/* until that is noted by who calls */
} Registry;

/* What a request comes to; if hosts answer differently, the last of these. */
typedef enum RegistryOutcome
{
	REGISTRY_FAILED,			/* an error says why */
	REGISTRY_AGAIN,				/* the registry noticed that it lost grants */
	REGISTRY_NOT_HELD,			/* it does not know the server as the holder */
	REGISTRY_ANSWERED
} RegistryOutcome;

/* A request, a part of what the functions know more of. */
typedef struct RegistryRequest
{
	/* Fills in the call, right before it is sent. */
	void		(*prepare) (struct RegistryRequest *request);
	/* Takes the answer apart, which is committed. */
	RegistryOutcome (*read) (struct RegistryRequest *request, StringInfo error);
	/* The registry has certainly rolled the call back; or NULL. */
	void		(*cancel) (struct RegistryRequest *request);
	RegistryOutcome enough;		/* with this or more, no other host is asked */
	bool		durable;		/* on standbys, too, if the registry is local */
	bool		is_last;		/* at a shutdown */
	RegistryCall call;
} RegistryRequest;

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
extern RegistryOutcome snowflake_call_registry(Registry *registry,
											   RegistryRequest *request,
											   StringInfo error);
extern void snowflake_close_registry(Registry *registry);
extern RegistryOutcome snowflake_read_taken(RegistryRequest *request, StringInfo error);
extern const char *snowflake_name_in_registry(void);
extern char *snowflake_token_text(const pg_uuid_t *token);
extern char *snowflake_token_array(const pg_uuid_t *tokens, int count);

#endif							/* SNOWFLAKE_REGISTRY_WORKER_H */
