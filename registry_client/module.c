/*-------------------------------------------------------------------------
 *
 * module.c
 *	  The library with which a server calls the registry.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/module.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "base/worker.h"
#include "registry_client/workers/chain.h"
#include "shared/compat.h"

SNOWFLAKE_MODULE_MAGIC("snowflake_registry_client");

/* So that a test finds it in the file. */
#define VERSION_PREFIX	"snowflake_registry_client "

static const char version[] = VERSION_PREFIX SNOWFLAKE_VERSION;

extern PGDLLEXPORT void _PG_init(void);

/*
 * Functions and structs of another version of the core can be other ones.
 */
void
_PG_init(void)
{
	const char *own = version + strlen(VERSION_PREFIX);

	if (strcmp(own, snowflake_library_version) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("library \"snowflake_registry_client\" is of version %s, and \"snowflake\" of version %s",
						own, snowflake_library_version)));
	snowflake_keep_chain();
}
