/*-------------------------------------------------------------------------
 *
 * session.h
 *	  The process that is connected to a registry, by libpq.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/session.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_SESSION_H
#define SNOWFLAKE_SESSION_H

#include "registry_client/calls/answer.h"

/* What a session connects to, and what it sends then. */
typedef struct SessionTarget
{
	const char *const *keywords;	/* of libpq, with their values */
	const char *const *values;
	const char *set_up;			/* statements, the last of which returns rows */
} SessionTarget;

/* The maximum number of a call's parameters. */
#define SNOWFLAKE_CALL_PARAMS	16

/*
 * A call, which is sent as its size and the texts of its query and parameters,
 * each with the zero byte at its end.
 */
typedef struct SessionCall
{
	int			size;			/* of the texts together */
	int			nparams;
	int			max_rows;		/* of the answer */
	bool		is_last;		/* then the connection is closed */
} SessionCall;

extern void snowflake_session_main(int socket, const void *target);

#endif							/* SNOWFLAKE_SESSION_H */
