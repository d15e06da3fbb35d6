/*-------------------------------------------------------------------------
 *
 * registry_sql.h
 *	  What precedes each call of a registry, wherever it is.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/registry_sql.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_REGISTRY_SQL_H
#define SNOWFLAKE_REGISTRY_SQL_H

#include "lib/stringinfo.h"

typedef struct SessionSetting
{
	const char *name;			/* not all versions have each of them */
	const char *value;
} SessionSetting;

/* Ends with one that has no name. */
extern const SessionSetting snowflake_session_settings[];

/* A target list: why nothing may be called there, or NULL, and whose it is. */
extern const char snowflake_check_registry[];

extern bool snowflake_append_problem(StringInfo string, const char *problem,
									 const char *owner, const char *dbname);

#endif							/* SNOWFLAKE_REGISTRY_SQL_H */
