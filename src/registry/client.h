/*-------------------------------------------------------------------------
 *
 * client.h
 *	  Calls of a registry, a database that grants worker IDs, by libpq.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/registry/client.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_REGISTRY_CLIENT_H
#define SNOWFLAKE_REGISTRY_CLIENT_H

#include "registry/limited_wait.h"

/* The maximum number of a call's parameters, and of columns of its answer. */
#define SNOWFLAKE_CALL_PARAMS		7
#define SNOWFLAKE_ANSWER_COLUMNS	3

/* What precedes the error if a function does not exist in a database. */
#define SNOWFLAKE_NO_REGISTRY \
	"the extension snowflake_registry is not installed in database \"%s\": "

/*
 * A query for why nothing may be called in a database, or NULL; search_path is
 * pg_catalog.  Another role could have created a schema with this name before
 * the extension, or could own it now, with functions that run with the rights
 * of who calls them, or grant what others were granted.  Who owns a table of the
 * registry could have code executed by its functions, as a superuser, and who
 * owns the extension could take the table out of it.
 */
#define SNOWFLAKE_CHECK_REGISTRY \
	"SELECT CASE" \
	" WHEN n.oid IS NULL OR o.rolsuper AND NOT EXISTS (SELECT FROM pg_extension" \
	" WHERE extname = 'snowflake_registry' AND extnamespace = n.oid) THEN" \
	" format('the extension snowflake_registry is not installed in database \"%s\": schema \"snowflake_registry\" %s'," \
	" current_database(), CASE WHEN n.oid IS NULL THEN 'does not exist' ELSE 'has other objects' END)" \
	" WHEN NOT o.rolsuper THEN" \
	" format('schema \"snowflake_registry\" in database \"%s\" does not belong to a superuser; " \
	"Its owner, role \"%s\", could replace the functions of the registry; " \
	"Check what it contains, and drop it or give it to a superuser', current_database(), o.rolname)" \
	" WHEN (SELECT count(*) FROM pg_extension e" \
	" JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid" \
	" AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'" \
	" JOIN pg_proc p ON p.oid = d.objid AND p.pronamespace = n.oid" \
	" WHERE e.extname = 'snowflake_registry'" \
	" AND p.proname IN ('get_grant', 'extend_grant', 'return_grant')) < 3" \
	" OR EXISTS (SELECT FROM pg_extension e" \
	" JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'" \
	" LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid" \
	" LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid" \
	" JOIN pg_roles f ON f.oid IN (e.extowner, p.proowner, c.relowner) AND NOT f.rolsuper" \
	" WHERE e.extname = 'snowflake_registry') THEN" \
	" format('objects of the registry in database \"%s\" do not belong to its extension, or not to a superuser; " \
	"Check what the schema contains, and give what is of the extension to a superuser (REASSIGN OWNED), " \
	"but drop triggers, rules, policies, and constraints of others on its tables first', current_database())" \
	" END" \
	" FROM (SELECT) here LEFT JOIN pg_namespace n ON n.nspname = 'snowflake_registry'" \
	" LEFT JOIN pg_roles o ON o.oid = n.nspowner"

typedef enum RegistryResult
{
	SNOWFLAKE_REGISTRY_FAILED,	/* an error says why */
	SNOWFLAKE_REGISTRY_NO_ROW,
	SNOWFLAKE_REGISTRY_ROW
} RegistryResult;

/* A call of a registry's function. */
typedef struct RegistryCall
{
	const char *query;			/* returns integers, in one row or none */
	int			nparams;
	const char *params[SNOWFLAKE_CALL_PARAMS];	/* as text */

	int64		answer[SNOWFLAKE_ANSWER_COLUMNS];
	bool		refused;		/* if it failed: was it rolled back? */
} RegistryCall;

/* The host and address that answered last, where the next round begins. */
typedef struct RegistryStart
{
	int			host;
	char		address[64];
} RegistryStart;

/* One attempt to reach any host of a registry. */
typedef struct RegistryRound RegistryRound;

extern RegistryRound *snowflake_begin_round(const char *conninfo,
											RegistryStart *start,
											const WaitLimit *limit,
											StringInfo errors);
extern bool snowflake_connect_next(RegistryRound *round);
extern bool snowflake_is_this_server(const RegistryRound *round);
extern RegistryResult snowflake_ask_registry(RegistryRound *round,
											 RegistryCall *call);
extern void snowflake_end_round(RegistryRound *round);

#endif							/* SNOWFLAKE_REGISTRY_CLIENT_H */
