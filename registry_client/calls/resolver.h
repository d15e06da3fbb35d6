/*-------------------------------------------------------------------------
 *
 * resolver.h
 *	  The addresses of a host name, found by a process that can be given up.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/resolver.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_RESOLVER_H
#define SNOWFLAKE_RESOLVER_H

#include "nodes/pg_list.h"

#include "registry_client/calls/limited_wait.h"

/* Room for an address as text. */
#define SNOWFLAKE_ADDRESS_SIZE	64

extern bool snowflake_is_host_name(const char *host);
extern List *snowflake_resolve(const char *host, const WaitLimit *limit,
							   StringInfo error);

#endif							/* SNOWFLAKE_RESOLVER_H */
