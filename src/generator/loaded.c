/*-------------------------------------------------------------------------
 *
 * loaded.c
 *	  Whether this server has a generator, or why a call fails without one.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/loaded.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"

#include "generator/loaded.h"
#include "generator/state.h"
#include "shared/compat.h"

static inline void
check_loaded(bool scheme_suffices)
{
	if (unlikely(snowflake_state == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("snowflake must be loaded via \"shared_preload_libraries\""),
				 scheme_suffices ?
				 errdetail("A function that is given a scheme does not need that: snowflake_parse(id, 'shardingsphere') uses the default scheme.") : 0,
				 errhint("Append snowflake to \"shared_preload_libraries\" in postgresql.conf and restart the server.")));
}

/*
 * Fail if this server has no generator.
 */
void
snowflake_check_loaded(void)
{
	check_loaded(false);
}

/*
 * Fail if this server has no generator, or is a standby.
 */
void
snowflake_check_primary(const char *action)
{
	snowflake_check_loaded();
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot %s during recovery", action),
				 errhint("Use the primary server.")));
}

/*
 * The scheme that this server generates IDs with.
 */
const SnowflakeScheme *
snowflake_server_scheme(void)
{
	check_loaded(true);
	return &snowflake_layout.scheme;
}
