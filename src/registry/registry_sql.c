/*-------------------------------------------------------------------------
 *
 * registry_sql.c
 *	  What precedes each call of a registry, wherever it is.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/registry/registry_sql.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "registry/registry_sql.h"

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
 * Another role could have created a schema with this name before the extension,
 * or could own it now, with functions that run with the rights of who calls
 * them, or grant what others were granted.  Who owns a table of the registry
 * could have code executed by its functions, as a superuser, and who owns the
 * extension could take the table out of it.  The search_path is pg_catalog.
 */
const char	snowflake_check_registry[] =
"SELECT CASE"
" WHEN n.oid IS NULL OR o.rolsuper AND NOT EXISTS (SELECT FROM pg_extension"
" WHERE extname = 'snowflake_registry' AND extnamespace = n.oid) THEN"
" format('the extension snowflake_registry is not installed in database \"%s\": schema \"snowflake_registry\" %s',"
" current_database(), CASE WHEN n.oid IS NULL THEN 'does not exist' ELSE 'has other objects' END)"
" WHEN NOT o.rolsuper THEN"
" format('schema \"snowflake_registry\" in database \"%s\" does not belong to a superuser; "
"Its owner, role \"%s\", could replace the functions of the registry; "
"Check what it contains, and drop it or give it to a superuser', current_database(), o.rolname)"
" WHEN (SELECT count(*) FROM pg_extension e"
" JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid"
" AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'"
" JOIN pg_proc p ON p.oid = d.objid AND p.pronamespace = n.oid"
" WHERE e.extname = 'snowflake_registry'"
" AND p.proname IN ('get_grant', 'extend_grant', 'return_grant')) < 3"
" OR EXISTS (SELECT FROM pg_extension e"
" JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'"
" LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid"
" LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid"
" JOIN pg_roles f ON f.oid IN (e.extowner, p.proowner, c.relowner) AND NOT f.rolsuper"
" WHERE e.extname = 'snowflake_registry') THEN"
" format('objects of the registry in database \"%s\" do not belong to its extension, or not to a superuser; "
"Check what the schema contains, and give what is of the extension to a superuser (REASSIGN OWNED), "
"but drop triggers, rules, policies, and constraints of others on its tables first', current_database())"
" END"
" FROM (SELECT) here LEFT JOIN pg_namespace n ON n.nspname = 'snowflake_registry'"
" LEFT JOIN pg_roles o ON o.oid = n.nspowner";
