/*-------------------------------------------------------------------------
 *
 * registry_sql.c
 *	  What precedes each call of a registry, wherever it is.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/calls/registry_sql.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "registry_client/calls/answer.h"
#include "registry_client/calls/registry_sql.h"

/*
 * Settings of the session, for what the defaults of a role, a database, or the
 * server may have set otherwise:
 *
 * - Names are those of the server, and strings have the syntax of the standard.
 * - A warning about a commit that is not durable arrives.
 * - The functions need READ COMMITTED, and write.  A session elsewhere that is
 *	 read-only takes no calls; but a server may always extend its own grant.
 * - Only this server decides how long it waits.
 */
const SessionSetting snowflake_session_settings[] = {
	{"search_path", "pg_catalog, pg_temp"},
	{"standard_conforming_strings", "on"},
	{"client_min_messages", "warning"},
	{"default_transaction_isolation", "read committed"},
	{"default_transaction_read_only", "off"},
	{"lock_timeout", "0"},
	{"transaction_timeout", "0"},
	{NULL, NULL}
};

/*
 * What keeps the functions there from being called, and who owns their schema.
 *
 * Another role could have created a schema with this name before the extension,
 * or could own it now, with functions that run with the rights of who calls
 * them, or grant what others were granted.  Who owns a table of the registry
 * could have code executed by its functions, as a superuser, and who owns the
 * extension could take the table out of it.  The search_path is pg_catalog.
 */
const char	snowflake_check_registry[] =
"("
#include "calls/problem.sql.h"
"), (SELECT pg_get_userbyid(nspowner) FROM pg_namespace"
" WHERE nspname = 'snowflake_registry')";

/*
 * Append what such a problem in a database is.  Returns false if there is none
 * of this name.
 */
bool
snowflake_append_problem(StringInfo string, const char *problem,
						 const char *owner, const char *dbname)
{
	StringInfoData name;

	initStringInfo(&name);
	snowflake_append_message(&name, owner != NULL ? owner : "");
	if (strcmp(problem, "no schema") == 0 ||
		strcmp(problem, "no extension") == 0)
		appendStringInfo(string, SNOWFLAKE_NO_REGISTRY "schema \"snowflake_registry\" %s",
						 dbname, strcmp(problem, "no schema") == 0 ?
						 "does not exist" : "has other objects");
	else if (strcmp(problem, "schema") == 0)
		appendStringInfo(string, "schema \"snowflake_registry\" in database \"%s\" does not belong to a superuser; "
						 "Its owner, role \"%s\", could replace the functions of the registry; "
						 "Check what it contains, and drop it or give it to a superuser",
						 dbname, name.data);
	else if (strcmp(problem, "objects") == 0)
		appendStringInfo(string, "objects of the registry in database \"%s\" do not belong to its extension, or not to a superuser; "
						 "Check what the schema contains, and give what is of the extension to a superuser (REASSIGN OWNED), "
						 "but drop triggers, rules, policies, and constraints of others on its tables first",
						 dbname);
	else
		return false;
	return true;
}
