/*-------------------------------------------------------------------------
 *
 * preload.c
 *	  What to say where the library was not loaded at the server's start.
 *
 * A hint is often copied as it is.  One that has snowflake alone would drop the
 * other libraries from the list: without Citus, for instance, its tables read
 * as empty.  So it has the whole list.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/preload.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"

#include "preload.h"

/*
 * The value to set, as it stands between quotes in postgresql.conf: the list
 * that is there, with snowflake appended.
 */
static char *
preload_list(void)
{
	const char *list = shared_preload_libraries_string;
	StringInfoData value;

	initStringInfo(&value);
	if (list != NULL && list[strspn(list, " \t\r\n\f\v")] != '\0')
	{
		/* Quotes and backslashes are doubled there. */
		for (; *list != '\0'; list++)
		{
			if (SQL_STR_DOUBLE(*list, true))
				appendStringInfoChar(&value, *list);
			appendStringInfoChar(&value, *list);
		}
		appendStringInfoString(&value, ", ");
	}
	appendStringInfoString(&value, "snowflake");
	return value.data;
}

/*
 * A hint for ereport.  Only those who may see the list are told it.
 */
int
snowflake_errhint_preload(void)
{
	/*
	 * CREATE EXTENSION by a role that may create a trusted one runs as a
	 * superuser, but it is the role that reads the hint.
	 */
	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS) &&
		has_privs_of_role(GetOuterUserId(), ROLE_PG_READ_ALL_SETTINGS))
		return errhint("Set this in postgresql.conf and restart the server: shared_preload_libraries = '%s'",
					   preload_list());
	return errhint("Append snowflake to \"shared_preload_libraries\" in postgresql.conf and restart the server.");
}
