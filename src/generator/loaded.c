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
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"

#include "generator/loaded.h"
#include "generator/state.h"
#include "shared/compat.h"

/*
 * The value to set, as it is written between quotes in postgresql.conf: the
 * current list with snowflake appended.
 */
static char *
preload_list(void)
{
	const char *list = shared_preload_libraries_string;
	StringInfoData value;

	initStringInfo(&value);
	if (list != NULL && list[strspn(list, " \t\r\n\f\v")] != '\0')
	{
		char	   *escaped = escape_single_quotes_ascii(list);

		if (escaped == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory")));
		appendStringInfo(&value, "%s, ", escaped);
		free(escaped);
	}
	appendStringInfoString(&value, "snowflake");
	return value.data;
}

/*
 * The hint for servers that did not preload the library.  Hints are often copied
 * literally.  One with snowflake alone would remove the other libraries from the list:
 * without Citus, for example, its tables appear empty.  So it contains the whole list,
 * but only for roles that may see it.
 */
static int
errhint_preload(void)
{
	/*
	 * The script of a trusted extension runs as a superuser, but the hint is
	 * shown to the role that created the extension.
	 */
	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS) &&
		has_privs_of_role(GetOuterUserId(), ROLE_PG_READ_ALL_SETTINGS))
		return errhint("Set this in postgresql.conf and restart the server: shared_preload_libraries = '%s'",
					   preload_list());
	return errhint("Append snowflake to \"shared_preload_libraries\" in postgresql.conf and restart the server.");
}

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
			 errdetail("A function that is given a scheme does not need that: snowflake_parse(id, 'shardingsphere') uses the default scheme.") : 0,
			 errhint_preload()));
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
