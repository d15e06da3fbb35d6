/*-------------------------------------------------------------------------
 *
 * grant.h
 *	  The grant: the worker ID that this server generates IDs with, up to a tick.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/grant.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GRANT_H
#define SNOWFLAKE_GRANT_H

#include "datatype/timestamp.h"
#include "storage/latch.h"
#include "utils/uuid.h"

#include "shared/compat.h"

/* Room for the error of a call of the registry. */
#define SNOWFLAKE_REGISTRY_ERROR_SIZE	1024

/* Maximum number of tokens that might be the current one. */
#define SNOWFLAKE_MAX_TOKENS	16

/* A call of the registry. */
typedef struct SnowflakeGrantCall
{
	int			worker_id;		/* held by this server, or -1 */
	int			ntokens;		/* any could be the current one */
	pg_uuid_t	tokens[SNOWFLAKE_MAX_TOKENS];
	pg_uuid_t	new_token;		/* current after the call */
} SnowflakeGrantCall;

/* The results of the last calls. */
typedef struct SnowflakeRegistryStatus
{
	TimestampTz contact;		/* the registry's last answer, or 0 */
	TimestampTz error_since;	/* 0: there is no error */
	char		error[SNOWFLAKE_REGISTRY_ERROR_SIZE];
	bool		worker_runs;
	bool		worker_responds;	/* if it should call, does it? */
} SnowflakeRegistryStatus;

extern void snowflake_keep_grant(void);
extern void snowflake_request_grant(void);
extern void snowflake_attach_grant(bool is_new);

/* For the worker that calls the registry (registry_client/). */
extern PGDLLEXPORT void snowflake_set_worker_latch(Latch *latch);
extern PGDLLEXPORT bool snowflake_note_connecting(bool connecting);
extern PGDLLEXPORT void snowflake_note_calling(bool calling);
extern PGDLLEXPORT bool snowflake_call_is_wanted(void);
extern PGDLLEXPORT int snowflake_held_worker_id(void);
extern PGDLLEXPORT void snowflake_begin_call(SnowflakeGrantCall *call);
extern PGDLLEXPORT void snowflake_cancel_call(const SnowflakeGrantCall *call);
extern PGDLLEXPORT bool snowflake_install_grant(const SnowflakeGrantCall *call, int worker_id,
												int64 from, int64 until);
extern PGDLLEXPORT bool snowflake_extend_grant(const SnowflakeGrantCall *call, int64 until);
extern PGDLLEXPORT int64 snowflake_seal_grant(SnowflakeGrantCall *call);
extern PGDLLEXPORT void snowflake_forget_tokens(void);
extern PGDLLEXPORT bool snowflake_note_answer(const char *error);
extern PGDLLEXPORT void snowflake_draw_token(pg_uuid_t *token);
extern PGDLLEXPORT bool snowflake_errors_differ(const char *one, const char *other);

/* For those who generate IDs. */
extern void snowflake_wait_for_grant(int64 next, int64 *since);
extern void snowflake_wake_grant_worker(void);

/* For those who look at it. */
extern void snowflake_get_registry_status(SnowflakeRegistryStatus *status);
extern const char *snowflake_no_answer(const char *worker, bool runs, TimestampTz failed_since,
									   const char *error);

/* For those who lower the mark, with the reserve lock held. */
extern void snowflake_drop_grant(void);

#endif							/* SNOWFLAKE_GRANT_H */
