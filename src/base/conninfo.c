/*-------------------------------------------------------------------------
 *
 * conninfo.c
 *	  The check of a registry's connection string.
 *
 * It is made when the setting is set, also if this server has no registry yet.
 * Only this file of the library needs libpq.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/base/conninfo.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "libpq-fe.h"

#include "base/conninfo.h"

/*
 * The error in a connection string, or NULL.
 */
const char *
snowflake_check_conninfo(const char *conninfo)
{
	char	   *error = NULL;
	const char *result = NULL;

	PQconninfoFree(PQconninfoParse(conninfo, &error));
	if (error != NULL)
		result = pnstrdup(error, strcspn(error, "\n"));
	PQfreemem(error);
	return result;
}
