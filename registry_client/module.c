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

#include "shared/compat.h"

SNOWFLAKE_MODULE_MAGIC("snowflake_registry_client");
