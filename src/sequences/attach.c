/*-------------------------------------------------------------------------
 *
 * attach.c
 *	  nextval() and its like know the kinds of sequences.
 *
 * A planner support function replaces calls of the server's functions by calls
 * of ours, wherever an expression is planned.  It is attached to them by their
 * OIDs, in one database.  Ours have their names and arguments, and are in the
 * schema of the support function, which is how they are found: nobody can
 * create another with the same name and arguments there.
 *
 * The first label of a sequence attaches it, also in pg_upgrade, or CREATE EXTENSION
 * where sequences have labels already.  So a database without any is as without the
 * extension: Citus looks for nextval() in INSERT .. SELECT, and sends calls of ours
 * to worker nodes, which have no integers.  With a support function of another
 * extension, no sequence can have a label.
 *
 * A call stays as it is if not everybody may execute the function that would
 * replace it: REVOKE EXECUTE ON ALL FUNCTIONS must not stop nextval() of local
 * sequences.  Those of another kind then fail, because they are exhausted.  The
 * server's setval() would end that, so it does not stay as long as there are some.
 *
 * The server's functions depend on the support function, so that nothing else can
 * drop what nextval() needs.  Before a statement that reaches the extension, it
 * is taken away, and put back after it if the extension and labels remain.
 *
 * One lock in each database orders all that, until the end of the transaction:
 *
 * - ROW EXCLUSIVE: who begins to execute the server's setval().  It will reset the
 *	 position of a sequence, perhaps later, by a cursor.
 * - SHARE: who sets a label.  No setval() of the server that began before continues
 *	 after it, and one that begins later sees the label.
 * - ACCESS EXCLUSIVE: who attaches, or takes away.
 *
 * It is locked before the sequence, but SECURITY LABEL has locked that already.  So the
 * first label can be in a deadlock with another one, as can who has begun setval() and
 * then attaches, in one transaction, with another one that does the same.  The server
 * resolves it.  A role that keeps a transaction open in which it called
 * setval() makes the first label wait, and all setval() behind that.  In an
 * attached database setval() is ours, which takes no lock of these.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/attach.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/supportnodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "sequences/attach.h"
#include "sequences/copy.h"
#include "sequences/copy_identity.h"
#include "sequences/label.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

#define EXTENSION_NAME	"snowflake"
#define SUPPORT_NAME	"_snowflake_sequence_support"

/* What the lock has in place of a column: the server locks functions without one. */
#define LOCK_SUBID		1

/* The server's functions, and the arguments that ours have, too. */
static const struct
{
	const char *ours;
	Oid			server;
	int			nargs;
}			functions[] = {
	{"_snowflake_nextval", F_NEXTVAL, 1},
	{"_snowflake_currval", F_CURRVAL, 1},
	{"_snowflake_lastval", F_LASTVAL, 0},
	{"_snowflake_setval", F_SETVAL_REGCLASS_INT8, 2},
	{"_snowflake_setval", F_SETVAL_REGCLASS_INT8_BOOL, 3},
};

static object_access_hook_type prev_object_access_hook = NULL;

/* Has this session planned calls that stay as they are? */
static bool keeps_calls = false;

PG_FUNCTION_INFO_V1(snowflake_sequence_support);
PG_FUNCTION_INFO_V1(snowflake_attach);

/*
 * Our function in place of one of the server's, or InvalidOid.
 */
static Oid
find_ours(Oid schema, Oid server)
{
	static const Oid types[] = {REGCLASSOID, INT8OID, BOOLOID};

	for (size_t i = 0; i < lengthof(functions); i++)
	{
		if (functions[i].server == server)
			return snowflake_look_up_function(schema, functions[i].ours, types,
											  functions[i].nargs);
	}
	return InvalidOid;
}

/*
 * May everybody execute a function?
 */
static bool
is_public(Oid function)
{
	return snowflake_function_aclcheck(function, ACL_ID_PUBLIC) == ACLCHECK_OK;
}

/*
 * Functions have changed: calls that stayed as they were may have to be replaced.
 */
static void
plan_again(Datum arg, int cache, uint32 hash)
{
	if (keeps_calls)
		ResetPlanCache();
	keeps_calls = false;
}

/*
 * Note that a call stays as it is.  Its plan does not depend on our function.
 */
static void
keep_call(void)
{
	static bool is_watching = false;

	if (!is_watching)
		CacheRegisterSyscacheCallback(PROCOID, plan_again, 0);
	is_watching = true;
	keeps_calls = true;
}

static bool
is_setval(Oid server)
{
	return server == F_SETVAL_REGCLASS_INT8 || server == F_SETVAL_REGCLASS_INT8_BOOL;
}

/*
 * Would one of the server's functions set the position of a sequence that is
 * exhausted?
 */
static bool
is_harmful(Oid server)
{
	return is_setval(server) && OidIsValid(snowflake_find_nonlocal_sequence());
}

/*
 * The call that replaces one of the server's functions, or NULL.
 */
static Node *
replace_call(Oid support, const FuncExpr *call)
{
	Oid			ours = find_ours(get_func_namespace(support), call->funcid);
	FuncExpr   *replacement;
	Node	   *in_copy = NULL;

	if (!OidIsValid(ours))
		return NULL;
	if (!is_public(ours) && !is_harmful(call->funcid))
	{
		keep_call();
		return NULL;
	}
	replacement = makeFuncExpr(ours, call->funcresulttype, call->args,
							   call->funccollid, call->inputcollid,
							   call->funcformat);
	replacement->location = call->location;
	if (snowflake_is_marked((const Node *) call) && !snowflake_end_identity(call))
		snowflake_unmark_call(replacement);

	/* COPY exempts the server's nextval(), and only that. */
	if (call->funcid == F_NEXTVAL)
		in_copy = snowflake_copy_substitute(replacement);
	return in_copy != NULL ? in_copy : (Node *) replacement;
}

/*
 * _snowflake_sequence_support(internal) returns internal
 */
Datum
snowflake_sequence_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	Node	   *result = NULL;

	if (IsA(request, SupportRequestSimplify))
		result = replace_call(fcinfo->flinfo->fn_oid,
							  ((SupportRequestSimplify *) request)->fcall);
	PG_RETURN_POINTER(result);
}

/*
 * Is a function the support function, of whichever schema?
 */
static bool
is_support(Oid function)
{
	char	   *name = OidIsValid(function) ? get_func_name(function) : NULL;

	return name != NULL && strcmp(name, SUPPORT_NAME) == 0;
}

static bool
is_attached(void)
{
	return is_support(get_func_support(F_NEXTVAL));
}

/*
 * The extension in this database.  Returns false if there is none.
 */
static bool
find_extension(FormData_pg_extension *extension)
{
	Relation	extensions = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum(EXTENSION_NAME));
	scan = systable_beginscan(extensions, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		memcpy(extension, GETSTRUCT(tuple), sizeof(FormData_pg_extension));
	systable_endscan(scan);
	table_close(extensions, AccessShareLock);
	return HeapTupleIsValid(tuple);
}

/*
 * Lock until the end of the transaction, whatever subtransaction this is.
 */
static void
lock_attachment(LOCKMODE mode)
{
	ResourceOwner owner = CurrentResourceOwner;

	CurrentResourceOwner = TopTransactionResourceOwner;
	LockDatabaseObject(ProcedureRelationId, F_NEXTVAL, LOCK_SUBID, mode);
	CurrentResourceOwner = owner;
}

/*
 * Before a function is executed: fail if it is the server's setval() and would end
 * that a sequence is exhausted.  It is not in a plan, or in one that kept it.  Who calls
 * it in C does not pass here.
 */
static void
check_call(Oid function)
{
	Oid			sequence;

	if (likely(!is_setval(function)))
		return;
	lock_attachment(RowExclusiveLock);
	sequence = snowflake_find_nonlocal_sequence();
	if (OidIsValid(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("setval() of PostgreSQL cannot be called while sequence \"%s\" is not local",
						get_rel_name(sequence)),
				 errdetail("It would have nextval() return small numbers, also those that rows have."),
				 errhint("Call setval() in a query, and not by the fast-path protocol.")));
}

static void
access_object(ObjectAccessType access, Oid class, Oid object, int column, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, class, object, column, arg);
	if (access == OAT_FUNCTION_EXECUTE)
		check_call(object);
}

void
snowflake_watch_calls(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = access_object;
}

/*
 * Our nextval(), or InvalidOid if this database has no use for it, or not everybody may
 * execute it.
 */
Oid
snowflake_find_nextval(void)
{
	Oid			support = get_func_support(F_NEXTVAL);
	Oid			ours;

	if (!is_support(support))
		return InvalidOid;
	ours = find_ours(get_func_namespace(support), F_NEXTVAL);
	if (OidIsValid(ours) && is_public(ours))
		return ours;
	keep_call();
	return InvalidOid;
}

/*
 * Set the support function of one of the server's functions; InvalidOid removes it.
 */
static void
set_support(Relation procedures, Oid function, Oid support)
{
	HeapTuple	tuple = SearchSysCacheCopy1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	ObjectAddress depender;
	ObjectAddress referenced;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (OidIsValid(form->prosupport) && !is_support(form->prosupport))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("function %s has a support function of another extension already",
						format_procedure(function)),
				 errdetail("Only one is possible, so sequences of this database can only be local."),
				 errhint("Drop the other extension. Then sequences can have another kind.")));
	if (OidIsValid(form->prosupport))
		deleteDependencyRecordsForSpecific(ProcedureRelationId, function,
										   DEPENDENCY_NORMAL,
										   ProcedureRelationId, form->prosupport);
	form->prosupport = support;
	CatalogTupleUpdate(procedures, &tuple->t_self, tuple);
	if (OidIsValid(support))
	{
		ObjectAddressSet(depender, ProcedureRelationId, function);
		ObjectAddressSet(referenced, ProcedureRelationId, support);
		recordDependencyOn(&depender, &referenced, DEPENDENCY_NORMAL);
	}
	heap_freetuple(tuple);
}

/*
 * Make all sessions plan their queries again: plans do not depend on the
 * server's functions, but all of them do on schemas.
 */
static void
reset_plans(void)
{
	Relation	schemas = table_open(NamespaceRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(NAMESPACEOID,
											ObjectIdGetDatum(PG_CATALOG_NAMESPACE));

	CacheInvalidateHeapTuple(schemas, tuple, NULL);
	heap_freetuple(tuple);
	table_close(schemas, RowExclusiveLock);
}

static void
set_all_supports(Oid support)
{
	Relation	procedures = table_open(ProcedureRelationId, RowExclusiveLock);

	for (size_t i = 0; i < lengthof(functions); i++)
		set_support(procedures, functions[i].server, support);
	table_close(procedures, RowExclusiveLock);
	reset_plans();
	CommandCounterIncrement();
}

/*
 * Attach, unless that was done, or there is no extension.  The caller has the lock.
 */
static void
attach(void)
{
	static const Oid types[] = {INTERNALOID};
	FormData_pg_extension extension;
	Oid			support;

	if (is_attached() || !find_extension(&extension))
		return;
	support = snowflake_look_up_function(extension.extnamespace, SUPPORT_NAME, types, 1);
	if (!OidIsValid(support))
		elog(ERROR, "could not find " SUPPORT_NAME "()");
	set_all_supports(support);
}

/*
 * Attach, if a sequence has a label.
 */
static void
attach_to_labelled(void)
{
	if (!OidIsValid(snowflake_find_nonlocal_sequence()))
		return;
	lock_attachment(AccessExclusiveLock);
	attach();
}

/*
 * snowflake_attach() returns void
 *
 * Called at the end of the extension's script, which then drops it.  A script shows
 * no NOTICE.
 */
Datum
snowflake_attach(PG_FUNCTION_ARGS)
{
	attach_to_labelled();
	PG_RETURN_VOID();
}

/*
 * Before a sequence gets a label: attach if that was not done, or fail if it cannot
 * be.  There is no check of privileges, because whoever owns a sequence may set its
 * label.  In a read-only transaction, the caller fails later.
 *
 * ROLLBACK TO SAVEPOINT does not release the lock, so in a database without the
 * extension nobody gets it: setval() of others would wait.
 */
void
snowflake_attach_for_label(void)
{
	FormData_pg_extension extension;

	if (XactReadOnly)
		return;
	if (find_extension(&extension))
	{
		lock_attachment(is_attached() ? ShareLock : AccessExclusiveLock);
		if (!is_attached())
			lock_attachment(AccessExclusiveLock);
		attach();
	}
	if (is_attached())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("extension \"snowflake\" does not exist in this database"),
			 errdetail("Without it, nextval() does not know kinds of sequences."),
			 errhint("CREATE EXTENSION snowflake first, or leave the sequence local.")));
}

static Oid
schema_owner(Oid schema)
{
	HeapTuple	tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for schema %u", schema);
	owner = ((Form_pg_namespace) GETSTRUCT(tuple))->nspowner;
	ReleaseSysCache(tuple);
	return owner;
}

static bool
names_object(const List *objects, const char *name)
{
	ListCell   *cell;

	foreach(cell, objects)
	{
		if (strcmp(strVal(lfirst(cell)), name) == 0)
			return true;
	}
	return false;
}

static bool
names_role(const List *roles, Oid role)
{
	ListCell   *cell;

	foreach(cell, roles)
	{
		if (get_rolespec_oid(lfirst_node(RoleSpec, cell), true) == role)
			return true;
	}
	return false;
}

/*
 * Can a statement drop an extension, by its name, its schema, or an owner of these?
 */
static bool
can_drop(const Node *statement, const FormData_pg_extension *extension)
{
	const DropStmt *drop = (const DropStmt *) statement;

	if (IsA(statement, DropOwnedStmt))
	{
		const List *roles = ((const DropOwnedStmt *) statement)->roles;

		return names_role(roles, extension->extowner) ||
			names_role(roles, schema_owner(extension->extnamespace));
	}
	if (drop->removeType == OBJECT_EXTENSION)
		return names_object(drop->objects, EXTENSION_NAME);
	return names_object(drop->objects, get_namespace_name(extension->extnamespace));
}

/*
 * Could a statement drop the extension?  Who may not do that, as on a standby, gets
 * the server's error, and no lock.
 */
static bool
reaches_extension(const Node *statement)
{
	FormData_pg_extension extension;

	if (XactReadOnly)
		return false;
	if (!IsA(statement, DropOwnedStmt) &&
		(!IsA(statement, DropStmt) ||
		 (((const DropStmt *) statement)->removeType != OBJECT_EXTENSION &&
		  ((const DropStmt *) statement)->removeType != OBJECT_SCHEMA)))
		return false;
	return find_extension(&extension) && can_drop(statement, &extension) &&
		(has_privs_of_role(GetUserId(), extension.extowner) ||
		 has_privs_of_role(GetUserId(), schema_owner(extension.extnamespace)));
}

/*
 * Before a statement that can drop the extension, have the server's functions not
 * depend on it.  Returns whether snowflake_finish_drop() is to follow.
 */
bool
snowflake_prepare_drop(const Node *statement)
{
	if (!reaches_extension(statement))
		return false;
	lock_attachment(AccessExclusiveLock);
	if (is_attached())
		set_all_supports(InvalidOid);
	return true;
}

/*
 * After it: attach again if the extension and labels remain, or fail if a sequence has a
 * label that nothing knows any more.
 */
void
snowflake_finish_drop(void)
{
	FormData_pg_extension extension;
	Oid			sequence;

	CommandCounterIncrement();
	if (find_extension(&extension))
	{
		attach_to_labelled();
		return;
	}
	sequence = snowflake_find_nonlocal_sequence();
	if (OidIsValid(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot drop extension snowflake because sequences use it"),
				 errdetail("Sequence \"%s\" is not local.", get_rel_name(sequence)),
				 errhint("Call snowflake_set_sequence_kind(sequence, 'local') for each that the view snowflake_sequences reports so.")));
}
