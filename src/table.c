/*-------------------------------------------------------------------------
 *
 * table.c
 *	  Looking at other people's tables.
 *
 * A query of a table evaluates code of whoever owns it, if only while it is
 * planned: expressions of indexes, statistics and constraints, and functions
 * behind them.  The caller may be a superuser, and the owner anybody.  So, as
 * REINDEX, CLUSTER and REFRESH MATERIALIZED VIEW do it, a table is locked by its
 * OID, and looked at as its owner, in a security-restricted operation, with
 * settings of its own.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/table.c
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

#include "table.h"

/*
 * The qualified name of a relation.
 */
char	   *
snowflake_relation_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/*
 * Find a function without arguments beside a function of the extension.
 */
Oid
snowflake_find_function(Oid namespace, const char *name)
{
	oidvector  *no_arguments = buildoidvector(NULL, 0);
	Oid			result;

	result = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
							 CStringGetDatum(name),
							 PointerGetDatum(no_arguments),
							 ObjectIdGetDatum(namespace));
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
 * Fail if an OID is not that of a table whose owner's rights the caller has.
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
 * Lock the table, and return its owner.  As the rights to it are checked
 * first, nobody can lock a table of somebody else; it may become another
 * one's, or nothing, during the wait for the lock.
 */
Oid
snowflake_lock_table(Oid relid, LOCKMODE mode)
{
	(void) check_table(relid);
	LockRelationOid(relid, mode);
	return check_table(relid);
}

/*
 * From here on be the owner of the table, who can do nothing that outlasts
 * the function of ours but what that does, with settings that nobody else made.
 * snowflake_become_caller() returns to what was before; so does an error.
 */
void
snowflake_become_owner(Oid owner, SnowflakeCaller *caller)
{
	static const char *const settings[][2] = {
		{"search_path", "pg_catalog, pg_temp"},
		/* An error is better than rows that the owner does not see. */
		{"row_security", "off"},
		{"enable_partition_pruning", "on"},
	};

	GetUserIdAndSecContext(&caller->user, &caller->sec_context);
	SetUserIdAndSecContext(owner, caller->sec_context |
						   SECURITY_RESTRICTED_OPERATION);
	caller->nest_level = NewGUCNestLevel();
	for (size_t i = 0; i < lengthof(settings); i++)
		(void) set_config_option(settings[i][0], settings[i][1],
								 PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

void
snowflake_become_caller(const SnowflakeCaller *caller)
{
	AtEOXact_GUC(false, caller->nest_level);
	SetUserIdAndSecContext(caller->user, caller->sec_context);
}
