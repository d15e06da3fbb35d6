/*-------------------------------------------------------------------------
 *
 * grant_answer.h
 *	  What a registry grants: its answers to this server's requests.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/grant_answer.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_GRANT_ANSWER_H
#define SNOWFLAKE_GRANT_ANSWER_H

#include "registry_client/calls/answer.h"

/* What a request comes to; if hosts answer differently, the last of these. */
typedef enum GrantOutcome
{
	SNOWFLAKE_REQUEST_FAILED,	/* an error says why */
	SNOWFLAKE_REQUEST_AGAIN,	/* the registry noticed that it lost grants */
	SNOWFLAKE_REQUEST_NOT_HELD, /* it does not know the server as the holder */
	SNOWFLAKE_REQUEST_GRANTED	/* or returned */
} GrantOutcome;

/* What is granted. */
typedef struct GrantAnswer
{
	int			worker_id;
	int64		until;			/* the first tick that is not */
	int64		grant_time_ms;
} GrantAnswer;

extern GrantOutcome snowflake_read_grant(const RegistryAnswer *answer,
										 int held_worker_id, int64 next_tick,
										 GrantAnswer *grant, StringInfo error);
extern GrantOutcome snowflake_read_return(const RegistryAnswer *answer,
										  StringInfo error);

#endif							/* SNOWFLAKE_GRANT_ANSWER_H */
