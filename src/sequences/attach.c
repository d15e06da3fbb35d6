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
 * A call stays as it is if not everybody may execute the function that would
 * replace it: REVOKE EXECUTE ON ALL FUNCTIONS must not stop nextval() of local
 * sequences.  Those of another kind then fail, because they are exhausted.  The
 * server's setval() would end that, so it does not stay as long as there are some.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/attach.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/supportnodes.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "sequences/attach.h"
#include "sequences/copy.h"
#include "sequences/copy_identity.h"
#include "sequences/kind.h"
#include "sequences/labelled.h"
#include "sequences/marked.h"
#include "shared/compat.h"

#define SUPPORT_NAME	"snowflake_sequence_support"

/* The server's functions, and the arguments that ours have, too. */
static const struct
{
	const char *ours;
	Oid			server;
	int			nargs;
}			functions[] = {
	{"snowflake_sequence_nextval", F_NEXTVAL, 1},
	{"snowflake_sequence_currval", F_CURRVAL, 1},
	{"snowflake_sequence_lastval", F_LASTVAL, 0},
	{"snowflake_sequence_setval", F_SETVAL_REGCLASS_INT8, 2},
	{"snowflake_sequence_setval", F_SETVAL_REGCLASS_INT8_BOOL, 3},
};

/* Has this session planned calls that stay as they are? */
static bool keeps_calls = false;

PG_FUNCTION_INFO_V1(snowflake_sequence_support);
PG_FUNCTION_INFO_V1(snowflake_attach_sequences);
PG_FUNCTION_INFO_V1(snowflake_detach_sequences);
PG_FUNCTION_INFO_V1(snowflake_set_sequence_kind);
PG_FUNCTION_INFO_V1(snowflake_set_sequence_kinds);
PG_FUNCTION_INFO_V1(snowflake_prepare_range_sequences);

static Oid
find_function(Oid schema, const char *name, const Oid *types, int nargs)
{
	oidvector  *arguments = buildoidvector(types, nargs);

	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum(name), PointerGetDatum(arguments),
						   ObjectIdGetDatum(schema));
}

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
			return find_function(schema, functions[i].ours, types,
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
	if (snowflake_is_marked((const Node *) call))
		snowflake_end_identity(call);

	/* COPY exempts the server's nextval(), and only that. */
	if (call->funcid == F_NEXTVAL)
		in_copy = snowflake_copy_substitute(replacement);
	return in_copy != NULL ? in_copy : (Node *) replacement;
}

/*
 * snowflake_sequence_support(internal) returns internal
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

/*
 * Does nextval() of this database know the kinds of sequences?
 */
bool
snowflake_is_attached(void)
{
	return is_support(get_func_support(F_NEXTVAL));
}

/*
 * Before a function is executed: fail if it is the server's setval() and would end
 * that a sequence is exhausted.  It is not in a plan, or in one that kept it.  Who calls
 * it in C does not pass here.
 */
void
snowflake_check_call(Oid function)
{
	Oid			sequence;

	if (likely(!is_setval(function)) || !snowflake_is_attached())
		return;
	sequence = snowflake_find_nonlocal_sequence();
	if (OidIsValid(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("setval() of PostgreSQL cannot be called while sequence \"%s\" is not local",
						get_rel_name(sequence)),
				 errdetail("It would have nextval() return small numbers, also those that rows have."),
				 errhint("Call setval() in a query, and not by the fast-path protocol.")));
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

static void
check_superuser(void)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to attach or detach sequences")));
}

/*
 * Set the support function of one of the server's functions; InvalidOid
 * removes it.
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
	if (OidIsValid(form->prosupport))
	{
		if (!is_support(form->prosupport))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("function %s has a support function of another extension already",
							format_procedure(function))));
		deleteDependencyRecordsForSpecific(ProcedureRelationId, function,
										   DEPENDENCY_NORMAL,
										   ProcedureRelationId, form->prosupport);
	}
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
 * Have all sessions plan their queries again: plans do not depend on the
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
 * snowflake_attach_sequences() returns void
 */
Datum
snowflake_attach_sequences(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {INTERNALOID};
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	Oid			support = find_function(schema, SUPPORT_NAME, types, 1);

	check_superuser();
	if (!OidIsValid(support))
		elog(ERROR, "could not find " SUPPORT_NAME "()");
	for (size_t i = 0; i < lengthof(functions); i++)
	{
		Oid			ours = find_ours(schema, functions[i].server);

		if (!OidIsValid(ours) || !is_public(ours))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("not everybody may execute function %s",
							functions[i].ours),
					 errhint("GRANT EXECUTE on it TO PUBLIC. It checks the same privileges as the function of PostgreSQL.")));
	}
	set_all_supports(support);
	snowflake_keep_all_granted();
	PG_RETURN_VOID();
}

/*
 * snowflake_detach_sequences() returns void
 */
Datum
snowflake_detach_sequences(PG_FUNCTION_ARGS)
{
	Oid			sequence;

	check_superuser();
	sequence = snowflake_find_nonlocal_sequence();
	if (OidIsValid(sequence))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("sequence \"%s\" is not local",
						get_rel_name(sequence)),
				 errhint("Call snowflake_set_sequence_kind(sequence, 'local') for all that the view snowflake_sequences reports.")));
	set_all_supports(InvalidOid);
	PG_RETURN_VOID();
}

/*
 * The kind that an argument names.  Fails if nextval() would not know it.
 */
static SnowflakeSequenceKind
find_kind(char *word)
{
	SnowflakeSequenceKind kind;

	if (!snowflake_find_kind(word, &kind))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid kind of sequence: \"%s\"", word),
				 errhint("Kinds are \"snowflake\", \"range\" and \"local\".")));
	if (kind != SNOWFLAKE_KIND_LOCAL && !snowflake_is_attached())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this database does not know kinds of sequences"),
				 errhint("Have a superuser call snowflake_attach_sequences().")));
	return kind;
}

/*
 * snowflake_set_sequence_kind(sequence regclass, kind text, name text) returns void
 */
Datum
snowflake_set_sequence_kind(PG_FUNCTION_ARGS)
{
	char	   *name = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));
	SnowflakeSequenceKind kind;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	kind = find_kind(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	if (name != NULL && kind != SNOWFLAKE_KIND_RANGE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("only range sequences have a name in the registry")));
	if (name != NULL && *name == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("name of a range sequence must not be empty")));
	snowflake_set_kind(PG_GETARG_OID(0), kind, name);
	PG_RETURN_VOID();
}

/*
 * The OIDs in an array.
 */
static List *
read_oids(ArrayType *array)
{
	Datum	   *values;
	bool	   *nulls;
	int			n;
	List	   *oids = NIL;

	deconstruct_array(array, REGCLASSOID, sizeof(Oid), true, TYPALIGN_INT,
					  &values, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		if (!nulls[i])
			oids = list_append_unique_oid(oids, DatumGetObjectId(values[i]));
	}
	return oids;
}

/*
 * snowflake_set_sequence_kinds(sequences regclass[], kind text) returns void
 */
Datum
snowflake_set_sequence_kinds(PG_FUNCTION_ARGS)
{
	SnowflakeSequenceKind kind = find_kind(text_to_cstring(PG_GETARG_TEXT_PP(1)));

	snowflake_set_kinds(read_oids(PG_GETARG_ARRAYTYPE_P(0)), kind);
	PG_RETURN_VOID();
}

/*
 * snowflake_prepare_ranges(sequences regclass[]) returns void
 */
Datum
snowflake_prepare_range_sequences(PG_FUNCTION_ARGS)
{
	snowflake_prepare_ranges(read_oids(PG_GETARG_ARRAYTYPE_P(0)));
	PG_RETURN_VOID();
}

/*
 * Before DROP EXTENSION: say what to do where the server would merely name its
 * own function.
 */
void
snowflake_check_drop(const Node *statement)
{
	const DropStmt *drop = (const DropStmt *) statement;
	ListCell   *cell;

	if (!IsA(statement, DropStmt) || drop->removeType != OBJECT_EXTENSION)
		return;
	foreach(cell, drop->objects)
	{
		if (strcmp(strVal(lfirst(cell)), "snowflake") == 0 &&
			snowflake_is_attached())
			ereport(ERROR,
					(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
					 errmsg("cannot drop extension snowflake because the sequences of this database use it"),
					 errhint("Have a superuser call snowflake_detach_sequences() first.")));
	}
}
