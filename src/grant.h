/*-------------------------------------------------------------------------
 *
 * grant.h
 *	  The grant: the worker ID that this server makes IDs with, up to a tick.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/grant.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GRANT_H
#define SNOWFLAKE_GRANT_H

#include "state.h"

/* A call of the registry. */
typedef struct GrantCall
{
	int			worker_id;		/* held by this server, or -1 */
	int			ntokens;		/* any could be the current one */
	pg_uuid_t	tokens[SNOWFLAKE_MAX_TOKENS];
	pg_uuid_t	new_token;		/* current after the call */
} GrantCall;

extern void snowflake_keep_grant(void);
extern void snowflake_init_grant(Grant *grant);

/* For the worker that calls the registry (grant_worker.c). */
extern void snowflake_begin_call(GrantCall *call);
extern bool snowflake_install_grant(const GrantCall *call, int worker_id,
									int64 from, int64 until);
extern bool snowflake_extend_grant(const GrantCall *call, int64 until);
extern int64 snowflake_seal_grant(GrantCall *call);
extern void snowflake_forget_tokens(void);
extern bool snowflake_note_answer(const char *error);

/* For those who make IDs. */
extern void snowflake_wait_for_grant(int64 next, int64 *since);
extern void snowflake_wake_grant_worker(void);

/* For those who set the mark, with the reserve lock held. */
extern void snowflake_drop_grant(void);

/* The first tick that may not be entered. */
static inline int64
granted_until(void)
{
	return (int64) pg_atomic_read_u64(&snowflake_state->grant.until);
}

#endif							/* SNOWFLAKE_GRANT_H */
