/*-------------------------------------------------------------------------
 *
 * preload_hint.c
 *	  The hint for servers that did not preload the library.
 *
 * Hints are often copied literally.  A hint with snowflake alone would remove
 * the other libraries from the list: without Citus, for example, its tables
 * appear empty.  So the hint contains the whole list.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/preload_hint.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"

#include "base/preload_hint.h"

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
 * A hint for ereport.  It contains the list only for roles that may see it.
 */
int
snowflake_errhint_preload(void)
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
