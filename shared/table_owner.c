/*-------------------------------------------------------------------------
 *
 * table_owner.c
 *	  Access to tables of other owners.
 *
 * A query of a table evaluates code of its owner, if only during planning:
 * expressions of indexes, statistics, and constraints, and the functions that
 * they call.  The caller may be a superuser, and the owner anybody.  So, like
 * in REINDEX, CLUSTER, and REFRESH MATERIALIZED VIEW, a table is locked by its
 * OID, and read as its owner, in a security-restricted operation, with
 * settings of its own.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * shared/table_owner.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "shared/table_owner.h"

/*
 * The qualified name of a relation.  Fails if it was dropped, which is possible as
 * long as it is not locked.
 */
char *
snowflake_relation_name(Oid relid)
{
	char	   *schema = get_namespace_name(get_rel_namespace(relid));
	char	   *name = get_rel_name(relid);

	if (schema == NULL || name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	return quote_qualified_identifier(schema, name);
}

/*
 * A function of a schema, or InvalidOid.
 */
Oid
snowflake_look_up_function(Oid namespace, const char *name, const Oid *types, int nargs)
{
	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum(name),
						   PointerGetDatum(buildoidvector(types, nargs)),
						   ObjectIdGetDatum(namespace));
}

/*
 * Find a function without arguments in the schema of the extension.
 */
Oid
snowflake_find_function(Oid namespace, const char *name)
{
	Oid			result = snowflake_look_up_function(namespace, name, NULL, 0);

	if (!OidIsValid(result))
		elog(ERROR, "could not find %s()", name);
	return result;
}

/*
 * The owner of a relation; InvalidOid if there is no such relation.
 */
Oid
snowflake_table_owner(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/*
 * Fail if an OID is not that of a table whose owner's privileges the caller
 * has.
 */
static Oid
check_table(Oid relid)
{
	Oid			owner = snowflake_table_owner(relid);
	char		relkind;

	if (!OidIsValid(owner))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	relkind = get_rel_relkind(relid);
	if (relkind != RELKIND_RELATION && relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s is not a table", snowflake_relation_name(relid))));
	if (!has_privs_of_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of table %s", snowflake_relation_name(relid))));
	return owner;
}

/*
 * Lock the table, and return its owner.  Privileges are checked first, so that
 * nobody can lock a table of another owner, and again with the lock, because
 * the table may have been dropped, or its owner changed, while waiting for it.
 */
Oid
snowflake_lock_table(Oid relid, LOCKMODE mode)
{
	(void) check_table(relid);
	LockRelationOid(relid, mode);
	return check_table(relid);
}

/*
 * Set what makes queries and statements mean the same in each session, until the
 * end of the GUC nest level.
 */
void
snowflake_use_safe_settings(void)
{
	static const char *const settings[][2] = {
		{"search_path", "pg_catalog, pg_temp"},
		/* An error is better than missing rows. */
		{"row_security", "off"},
		/* Definitions of objects are compared with their names. */
		{"quote_all_identifiers", "off"},
		/* Definitions that are written and read again stay as they are. */
		{"DateStyle", "ISO"},
		{"IntervalStyle", "postgres"},
		{"extra_float_digits", "3"},
		{"array_nulls", "on"},
		{"transform_null_equals", "off"},
		{"xmloption", "content"},
		{"default_tablespace", ""},
		/* Keys get the defaults that they shall have. */
		{"snowflake.default_sequence_kind", "local"},
		/* Queries of the catalogs run once. */
		{"jit", "off"},
	};

	for (size_t i = 0; i < lengthof(settings); i++)
		(void) set_config_option(settings[i][0], settings[i][1],
								 PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Switch to the owner of the table, with safe settings, in a
 * security-restricted operation, so that code of the owner cannot affect the
 * rest of the session.  snowflake_become_caller() switches back; so does an
 * error.
 */
void
snowflake_become_owner(Oid owner, SnowflakeCaller *caller)
{
	GetUserIdAndSecContext(&caller->user, &caller->sec_context);
	SetUserIdAndSecContext(owner, caller->sec_context |
						   SECURITY_RESTRICTED_OPERATION);
	caller->nest_level = NewGUCNestLevel();
	snowflake_use_safe_settings();
}

void
snowflake_become_caller(const SnowflakeCaller *caller)
{
	AtEOXact_GUC(false, caller->nest_level);
	SetUserIdAndSecContext(caller->user, caller->sec_context);
}
