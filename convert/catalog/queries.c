/*-------------------------------------------------------------------------
 *
 * queries.c
 *	  Queries of the catalogs for snowflake_convert(), and the one that finds
 *	  the columns that must be converted together.
 *
 * The catalogs are queried with SQL, because a question such as "which columns
 * reference this one, through which others" is a join.  Names in the queries
 * are looked up in pg_catalog only.  The queries are not in functions of the
 * extension, because the owner of the table might not have the privilege to
 * call them.
 *
 * Planning these joins takes several times as long as running them, and an
 * online conversion asks some of them for each partition, and others each time
 * that it looks whether it can continue, some while it has tables locked.  So that
 * these have one text, what they are about is a parameter, and their plans are
 * kept until the call ends.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/queries.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "catalog/queries/queries.sql.h"
#include "convert/catalog/queries.h"
#include "convert/catalog/rows.h"

/*
 * What is the source of IDs, as users specify it.
 */
const char *
snowflake_convert_kind_name(SnowflakeConvertKind kind)
{
	static const char *const names[SNOWFLAKE_CONVERT_KINDS] = {
		[SNOWFLAKE_CONVERT_GENERATOR] = "generator",
		[SNOWFLAKE_CONVERT_SNOWFLAKE] = "snowflake",
		[SNOWFLAKE_CONVERT_RANGE] = "range",
		[SNOWFLAKE_CONVERT_LOCAL] = "local",
	};

	return names[kind];
}

static Datum
array_of_keys(const SnowflakeConversion *conversion, Oid type,
			  Datum (*value_of) (const SnowflakeKey *key))
{
	int			n = list_length(conversion->keys);
	Datum	   *values = palloc_array(Datum, n);
	int16		length;
	bool		by_value;
	char		align;

	for (int i = 0; i < n; i++)
		values[i] = value_of(list_nth(conversion->keys, i));
	get_typlenbyvalalign(type, &length, &by_value, &align);
	return PointerGetDatum(construct_array(values, n, type, length, by_value,
										   align));
}

static Datum
relid_of(const SnowflakeKey *key)
{
	return ObjectIdGetDatum(key->relid);
}

static Datum
attnum_of(const SnowflakeKey *key)
{
	return Int16GetDatum(key->attnum);
}

static Datum
generator_of(const SnowflakeKey *key)
{
	return ObjectIdGetDatum(key->generator);
}

static Datum
set_default_of(const SnowflakeKey *key)
{
	return BoolGetDatum(key->set_default);
}

static Datum
keeps_sequences_of(const SnowflakeKey *key)
{
	return BoolGetDatum(key->keeps_sequences);
}

/*
 * OIDs, for a parameter of queries.
 */
Datum
snowflake_convert_array_of_oids(const List *oids)
{
	int			n = list_length(oids);
	Datum	   *values = palloc_array(Datum, n);

	for (int i = 0; i < n; i++)
		values[i] = ObjectIdGetDatum(list_nth_oid(oids, i));
	return PointerGetDatum(construct_array(values, n, OIDOID, sizeof(Oid), true,
										   TYPALIGN_INT));
}

/* A query whose plan is kept. */
typedef struct KeptPlan
{
	const char *query;
	SPIPlanPtr	plan;
} KeptPlan;

/* There are some dozens of them.  The context is NULL if plans are not kept. */
static List *kept_plans;
static MemoryContext plans_context;

/*
 * MemoryContextCallbackFunction: forget the plans.
 */
static void
free_plans(void *argument)
{
	ListCell   *cell;

	foreach(cell, kept_plans)
		SPI_freeplan(((KeptPlan *) lfirst(cell))->plan);
	kept_plans = NIL;
	plans_context = NULL;
}

/*
 * Keep the plans of queries until a memory context is reset or deleted.  A
 * session has one online conversion at a time (check_outermost() in
 * online/procedure.c).
 */
void
snowflake_convert_keep_plans(MemoryContext context)
{
	MemoryContextCallback *callback = MemoryContextAllocZero(context, sizeof(*callback));

	Assert(plans_context == NULL);
	callback->func = free_plans;
	MemoryContextRegisterResetCallback(context, callback);
	plans_context = context;
}

/*
 * The plan of a query, for all values of its parameters.  The server makes it
 * again if something changed on which it depends.
 */
static SPIPlanPtr
plan_of(const char *query, int ntypes, Oid *types)
{
	KeptPlan   *kept;
	SPIPlanPtr	plan;
	MemoryContext old;
	ListCell   *cell;

	foreach(cell, kept_plans)
	{
		kept = lfirst(cell);
		if (strcmp(kept->query, query) == 0)
			return kept->plan;
	}

	plan = SPI_prepare_cursor(query, ntypes, types, CURSOR_OPT_GENERIC_PLAN);
	if (plan == NULL)
		elog(ERROR, "query cannot be prepared: %s", query);
	SPI_keepplan(plan);
	old = MemoryContextSwitchTo(plans_context);
	kept = palloc_object(KeptPlan);
	kept->query = pstrdup(query);
	kept->plan = plan;
	kept_plans = lappend(kept_plans, kept);
	MemoryContextSwitchTo(old);
	return plan;
}

/*
 * Run a query, by the plan that is kept of it, if plans are kept.  Its text must be one of
 * few.
 */
static void
run_planned(const char *query, int ntypes, Oid *types, Datum *values,
			const char *nulls)
{
	int			rc;

	if (plans_context != NULL)
		rc = SPI_execute_plan(plan_of(query, ntypes, types), values, nulls, false, 0);
	else
		rc = SPI_execute_with_args(query, ntypes, types, values, nulls, false, 0);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", query);
}

/*
 * Run a query about a conversion.  The parameters are arrays: of the keys, $1 their tables, $2
 * their columns, $3 their generators, $4 whether these must become the
 * default; $5 to $8 the columns that snowflake_convert_find_targets() found; and $9 and
 * $10 the other columns to widen.  $11 is the schema, and $12 the object that
 * the query is about.  $13 to $15 are what snowflake_convert_find_sequence_names() found.
 * $16 are the sequences that get another kind, $17 that kind, $18 the search_path of the
 * caller, $19 the greatest INCREMENT, $20 whether each key keeps its sequences, $21 whether
 * the tables are in use, and $22 to $25 what snowflake_convert_choose_columns() found.
 */
static void
run_query(const SnowflakeConversion *conversion, Oid object, const char *query)
{
	const char *kind = snowflake_convert_kind_name(conversion->kind);
	const char *path = conversion->search_path;
	Oid			types[] = {OIDARRAYOID, INT2ARRAYOID, OIDARRAYOID, BOOLARRAYOID,
		OIDARRAYOID, INT2ARRAYOID, BOOLARRAYOID, INT4ARRAYOID, OIDARRAYOID,
		INT2ARRAYOID, OIDOID, OIDOID, OIDARRAYOID, OIDARRAYOID, TEXTARRAYOID,
		OIDARRAYOID, TEXTOID, TEXTOID, INT8OID, BOOLARRAYOID, BOOLOID, OIDARRAYOID,
	INT2ARRAYOID, TEXTARRAYOID, TEXTARRAYOID};
	Datum		values[lengthof(types)];
	char		nulls[lengthof(types)];

	values[0] = array_of_keys(conversion, OIDOID, relid_of);
	values[1] = array_of_keys(conversion, INT2OID, attnum_of);
	values[2] = array_of_keys(conversion, OIDOID, generator_of);
	values[3] = array_of_keys(conversion, BOOLOID, set_default_of);
	memcpy(&values[4], conversion->targets, sizeof(conversion->targets));
	memcpy(&values[8], conversion->others, sizeof(conversion->others));
	values[10] = ObjectIdGetDatum(conversion->schema);
	values[11] = ObjectIdGetDatum(object);
	memcpy(&values[12], conversion->names, sizeof(conversion->names));
	values[15] = snowflake_convert_array_of_oids(conversion->sequences);
	values[16] = CStringGetTextDatum(kind);
	values[17] = CStringGetTextDatum(path != NULL ? path : "");
	values[18] = Int64GetDatum(conversion->max_increment);
	values[19] = array_of_keys(conversion, BOOLOID, keeps_sequences_of);
	values[20] = BoolGetDatum(conversion->online);
	memcpy(&values[21], conversion->found, sizeof(conversion->found));

	/* What was not found yet is null; InvalidOid, 0, and false are values. */
	for (size_t i = 0; i < lengthof(types); i++)
		nulls[i] = values[i] == (Datum) 0 && types[i] != OIDOID && types[i] != INT8OID &&
			types[i] != BOOLOID ? 'n' : ' ';
	run_planned(query, lengthof(types), types, values, nulls);
}

/*
 * Take the arrays that a query returned, which are kept until SPI_finish().
 */
static void
take_arrays(Datum *arrays, int count)
{
	for (int i = 0; i < count; i++)
	{
		bool		isnull;
		Datum		value = SPI_getbinval(SPI_tuptable->vals[0],
										  SPI_tuptable->tupdesc, i + 1,
										  &isnull);

		arrays[i] = isnull ? (Datum) 0 : value;
	}
}

/*
 * Find the columns that must be converted together.
 */
void
snowflake_convert_find_targets(SnowflakeConversion *conversion)
{
	run_query(conversion, InvalidOid, sql_walk);
	take_arrays(conversion->targets, SNOWFLAKE_TARGET_ARRAYS);
}

/*
 * Find the sequences of the keys, and what has their names.  This takes longer
 * the more functions there are, so it is done once.
 */
void
snowflake_convert_find_sequence_names(SnowflakeConversion *conversion)
{
	run_query(conversion, InvalidOid, sql_sequence_names);
	take_arrays(conversion->names, SNOWFLAKE_NAME_ARRAYS);
}

/*
 * Are there sequences of the keys that were not there then?
 */
bool
snowflake_convert_has_new_sequences(const SnowflakeConversion *conversion)
{
	return snowflake_convert_ask(conversion, sql_new_sequences) != NIL;
}

/*
 * The part of a conversion that is about one table, for queries that need not
 * know the others.
 */
SnowflakeConversion
snowflake_convert_part(const SnowflakeConversion *conversion, Oid relid)
{
	SnowflakeConversion part = *conversion;

	run_query(conversion, relid, sql_part);
	take_arrays(part.targets, SNOWFLAKE_TARGET_ARRAYS);
	return part;
}

/*
 * Run a query about a conversion that returns an array of names.
 */
Datum
snowflake_convert_get_names(const SnowflakeConversion *conversion, const char *query)
{
	Datum		names;

	run_query(conversion, InvalidOid, query);
	take_arrays(&names, 1);
	return names;
}

List *
snowflake_convert_ask(const SnowflakeConversion *conversion, const char *query)
{
	return snowflake_convert_ask_of(conversion, InvalidOid, query);
}

/*
 * Run a query about an object of a conversion, which is $12.
 */
List *
snowflake_convert_ask_of(const SnowflakeConversion *conversion, Oid object,
						 const char *query)
{
	run_query(conversion, object, query);
	return snowflake_convert_rows();
}

/*
 * Run a query about an object, which is $1.
 */
List *
snowflake_convert_ask_about(Oid object, const char *query)
{
	Oid			type = OIDOID;
	Datum		value = ObjectIdGetDatum(object);

	run_planned(query, 1, &type, &value, NULL);
	return snowflake_convert_rows();
}

/*
 * Run a query with a list of texts as its parameters.
 */
List *
snowflake_convert_ask_with(List *parameters, const char *query)
{
	int			n = list_length(parameters);
	Oid		   *types = palloc_array(Oid, n);
	Datum	   *values = palloc_array(Datum, n);

	for (int i = 0; i < n; i++)
	{
		types[i] = TEXTOID;
		values[i] = CStringGetTextDatum(list_nth(parameters, i));
	}
	run_planned(query, n, types, values, NULL);
	return snowflake_convert_rows();
}

/*
 * Run a query that is not one of the sources.
 */
List *
snowflake_convert_ask_once(const char *query)
{
	if (SPI_execute(query, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", query);
	return snowflake_convert_rows();
}

/*
 * Run a query with a list of texts, with all rows of system views visible.
 */
List *
snowflake_convert_ask_server(List *parameters, const char *query)
{
	Oid			user;
	int			sec_context;
	int			nest_level = NewGUCNestLevel();
	List	   *rows;

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   sec_context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	rows = snowflake_convert_ask_with(parameters, query);
	SetUserIdAndSecContext(user, sec_context);
	AtEOXact_GUC(false, nest_level);
	return rows;
}

/*
 * OIDs as the text of an array, and as the parameters of a query.
 */
static char *
array_of_oids(const List *oids)
{
	StringInfoData array;
	ListCell   *cell;

	initStringInfo(&array);
	foreach(cell, oids)
		appendStringInfo(&array, "%c%u", array.len > 0 ? ',' : '{', lfirst_oid(cell));
	appendStringInfoString(&array, array.len > 0 ? "}" : "{}");
	return array.data;
}

List *
snowflake_convert_oid_parameter(Oid oid)
{
	return list_make1(psprintf("%u", oid));
}

List *
snowflake_convert_oids_parameter(const List *oids)
{
	return list_make1(array_of_oids(oids));
}

/*
 * Run a query that returns a single value, as text, or NULL.
 */
char *
snowflake_convert_get_value(const char *query)
{
	if (SPI_execute(query, false, 1) < 0 || SPI_processed != 1)
		elog(ERROR, "query failed: %s", query);
	return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}
