/*-------------------------------------------------------------------------
 *
 * client.h
 *	  Calls of a registry, a database that grants worker IDs, by libpq.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/client.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_REGISTRY_CLIENT_H
#define SNOWFLAKE_REGISTRY_CLIENT_H

#include "registry_client/calls/answer.h"
#include "registry_client/calls/limited_wait.h"

/* The maximum number of a call's parameters. */
#define SNOWFLAKE_CALL_PARAMS	16

/* Room for an address as text. */
#define SNOWFLAKE_ADDRESS_SIZE	64

/* A call of a registry's function. */
typedef struct RegistryCall
{
	const char *query;
	int			nparams;
	const char *params[SNOWFLAKE_CALL_PARAMS];	/* as text */
	int			max_rows;		/* of the answer */
	RegistryAnswer answer;
} RegistryCall;

/* The host and address that granted something last, where a round begins. */
typedef struct RegistryStart
{
	int			host;
	char		address[SNOWFLAKE_ADDRESS_SIZE];
} RegistryStart;

/* One attempt to get something from any host of a registry. */
typedef struct RegistryRound RegistryRound;

extern RegistryRound *snowflake_begin_round(const char *conninfo,
											RegistryStart *start,
											const WaitLimit *limit,
											StringInfo errors);
extern bool snowflake_connect_next(RegistryRound *round);
extern bool snowflake_ask_registry(RegistryRound *round, RegistryCall *call);
extern void snowflake_accept_answer(RegistryRound *round);
extern void snowflake_reject_answer(RegistryRound *round, const char *reason);
extern void snowflake_continue_round(RegistryRound *round,
									 const WaitLimit *limit,
									 StringInfo errors);
extern void snowflake_end_round(RegistryRound *round);

#endif							/* SNOWFLAKE_REGISTRY_CLIENT_H */
