/*-------------------------------------------------------------------------
 *
 * registry_client.h
 *	  Calls of a registry, a database that grants worker IDs, by libpq.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/registry_client.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_REGISTRY_CLIENT_H
#define SNOWFLAKE_REGISTRY_CLIENT_H

#include "limited_wait.h"

/* The maximum number of a call's parameters, and of columns of its answer. */
#define SNOWFLAKE_CALL_PARAMS		7
#define SNOWFLAKE_ANSWER_COLUMNS	3

/* What precedes the error if a function does not exist in a database. */
#define SNOWFLAKE_NO_REGISTRY \
	"the extension snowflake_registry is not installed in database \"%s\": "

typedef enum RegistryResult
{
	SNOWFLAKE_REGISTRY_FAILED,	/* an error says why */
	SNOWFLAKE_REGISTRY_NO_ROW,
	SNOWFLAKE_REGISTRY_ROW
} RegistryResult;

/* A call of a registry's function. */
typedef struct RegistryCall
{
	const char *query;			/* returns integers, in one row or none */
	int			nparams;
	const char *params[SNOWFLAKE_CALL_PARAMS];	/* as text */

	int64		answer[SNOWFLAKE_ANSWER_COLUMNS];
	bool		refused;		/* if it failed: was it rolled back? */
} RegistryCall;

/* The host and address that answered last, where the next round begins. */
typedef struct RegistryStart
{
	int			host;
	char		address[64];
} RegistryStart;

/* One attempt to reach any host of a registry. */
typedef struct RegistryRound RegistryRound;

extern void snowflake_append_message(StringInfo error, const char *message);
extern const char *snowflake_check_conninfo(const char *conninfo);
extern bool snowflake_local_registry(const char *conninfo,
									 char **dbname, char **user);
extern RegistryRound *snowflake_begin_round(const char *conninfo,
											RegistryStart *start,
											const WaitLimit *limit,
											StringInfo errors);
extern bool snowflake_connect_next(RegistryRound *round);
extern bool snowflake_is_this_server(const RegistryRound *round);
extern RegistryResult snowflake_ask_registry(RegistryRound *round,
											 RegistryCall *call);
extern void snowflake_end_round(RegistryRound *round);

#endif							/* SNOWFLAKE_REGISTRY_CLIENT_H */
