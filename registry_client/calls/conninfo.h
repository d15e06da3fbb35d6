/*-------------------------------------------------------------------------
 *
 * conninfo.h
 *	  Connection strings of a registry.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/conninfo.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONNINFO_H
#define SNOWFLAKE_CONNINFO_H

#include "lib/stringinfo.h"

/*
 * Options of a connection string, and where those that it does not have come
 * from: a service, the environment, or libpq's defaults.
 */
typedef struct RegistryOptions
{
	struct _PQconninfoOption *given;
	struct _PQconninfoOption *defaults;
} RegistryOptions;

extern bool snowflake_read_options(RegistryOptions *options,
								   const char *conninfo, StringInfo error);
extern const char *snowflake_get_option(const RegistryOptions *options,
										const char *keyword);
extern void snowflake_free_options(RegistryOptions *options);
extern char *snowflake_list_item(const char *list, int n);
extern int	snowflake_count_items(const char *list);
extern bool snowflake_local_registry(const char *conninfo,
									 char **dbname, char **user);

#endif							/* SNOWFLAKE_CONNINFO_H */
