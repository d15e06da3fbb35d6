/*-------------------------------------------------------------------------
 *
 * loaded.h
 *	  Whether this server has a generator.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/loaded.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_LOADED_H
#define SNOWFLAKE_LOADED_H

#include "base/scheme.h"

extern void snowflake_check_loaded(void);
extern void snowflake_check_primary(const char *action);
extern const SnowflakeScheme *snowflake_server_scheme(void);

#endif							/* SNOWFLAKE_LOADED_H */
