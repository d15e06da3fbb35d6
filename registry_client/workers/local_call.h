/*-------------------------------------------------------------------------
 *
 * local_call.h
 *	  Calls of a registry that is in a database of this server.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/local_call.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LOCAL_CALL_H
#define SNOWFLAKE_LOCAL_CALL_H

#include "registry_client/calls/client.h"

extern void snowflake_set_local_session(void);
extern void snowflake_roll_back(MemoryContext context, RegistryAnswer *answer);
extern bool snowflake_ask_local(const char *dbname, RegistryCall *call,
								const WaitLimit *limit, StringInfo error);
extern bool snowflake_wait_for_local_commit(const WaitLimit *limit,
											StringInfo error);

#endif							/* SNOWFLAKE_LOCAL_CALL_H */
