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

#include "base/preload_hint.h"
#include "generator/loaded.h"
#include "generator/state.h"
#include "shared/compat.h"

/*
 * Fail because this server has no generator.
 */
static void
fail_not_loaded(bool scheme_suffices)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("snowflake must be loaded via \"shared_preload_libraries\""),
			 scheme_suffices ?
			 errdetail("A function that is given a scheme does not need that, for example snowflake_parse(id, 'shardingsphere') with the default scheme.") : 0,
			 snowflake_errhint_preload()));
}

/*
 * Fail if this server has no generator.
 */
void
snowflake_check_loaded(void)
{
	if (unlikely(snowflake_state == NULL))
		fail_not_loaded(false);
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
	snowflake_check_loaded();
	return &snowflake_layout.scheme;
}

/*
 * That scheme, for a function to which the caller could give one.
 */
const SnowflakeScheme *
snowflake_default_scheme(void)
{
	if (unlikely(snowflake_state == NULL))
		fail_not_loaded(true);
	return &snowflake_layout.scheme;
}
