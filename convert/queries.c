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
 * online conversion asks some of them for each partition.  So that these have
 * one text, what they are about is a parameter, and their plans are kept until
 * the call ends.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/queries.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "convert/convert.h"
#include "convert/queries.h"
#include "convert/rows.h"
#include "queries/queries.sql.h"

/*
 * The beginning of all queries: the types that hold any ID, which are bigint,
 * uuid, and domains over them, or over such a domain.  A column references a
 * key of another type only if both are integers.
 */
#define WIDE_TYPES \
"WITH RECURSIVE wide(typid) AS (" \
"  SELECT unnest(ARRAY['int8'::regtype::oid, 'uuid'::regtype::oid])" \
"  UNION ALL" \
"  SELECT y.oid FROM wide w JOIN pg_type y ON y.typbasetype = w.typid AND y.typtype = 'd')"

/*
 * The beginning of all other queries: the columns that were found.  is_root is
 * true for the keys without their partitions and children.  set_default is
 * true if the generator is not the default yet, and generator is that of the
 * key.  change says what to do: widen a smallint or integer, keep a bigint or uuid, or
 * that the column cannot be converted because it has another type.
 */
static const char target_query[] =
WIDE_TYPES
", target AS ("
"  SELECT w.relid, w.attnum, w.is_key, w.key, a.attname, a.atttypid AS typid, a.attinhcount,"
"    coalesce((w.relid, w.attnum) = ($1[w.key], $2[w.key]), false) AS is_root,"
"    $3[w.key] AS generator, coalesce($4[w.key], false) AS set_default,"
"    CASE WHEN a.atttypid IN ('int2'::regtype, 'int4'::regtype) THEN 'widen'"
"      WHEN a.atttypid IN (SELECT typid FROM wide) THEN 'keep'"
"      ELSE 'cannot' END AS change,"
"    format('table %s', w.relid::regclass) AS table_name,"
"    format('column %I of table %s', a.attname, w.relid::regclass) AS column_name"
"  FROM unnest($5, $6, $7, $8) w(relid, attnum, is_key, key)"
"    JOIN pg_attribute a ON (a.attrelid, a.attnum) = (w.relid, w.attnum)) ";

/*
 * A further CTE: the tables that are altered, and those at the other end of a
 * foreign key that is created again.
 */
const char	snowflake_changed_tables[] =
", changed(relid) AS ("
"  SELECT relid FROM target WHERE is_key AND set_default OR change = 'widen'"
"  UNION"
"  SELECT unnest(ARRAY[c.conrelid, c.confrelid])"
"  FROM target t JOIN pg_constraint c ON c.contype = 'f'"
"    AND (c.confrelid = t.relid AND t.attnum = ANY (c.confkey)"
"         OR c.conrelid = t.relid AND t.attnum = ANY (c.conkey))"
"  WHERE t.change = 'widen')";

/*
 * An array of the values of a conversion's keys.
 */
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

/* A query whose plan is kept. */
typedef struct KeptPlan
{
	const char *query;
	SPIPlanPtr	plan;
} KeptPlan;

/* There are few of them.  The context is NULL if plans are not kept. */
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
 * Keep the plans of queries that are run often, until a memory context is reset
 * or deleted.  A session has one online conversion at a time
 * (check_outermost() in online/procedure.c).
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
 * Run a query.  The parameters are arrays: of the keys, $1 their tables, $2
 * their columns, $3 their generators, $4 whether these must become the
 * default; $5 to $8 the columns that snowflake_convert_find_targets() found; and $9 and
 * $10 the other columns to widen.  $11 is the schema, and $12 the object that
 * the query is about.  $13 to $15 are what snowflake_convert_find_sequence_names() found.
 */
static void
run_query(const SnowflakeConversion *conversion, Oid object, const char *query,
		  bool often)
{
	Oid			types[] = {OIDARRAYOID, INT2ARRAYOID, OIDARRAYOID, BOOLARRAYOID,
		OIDARRAYOID, INT2ARRAYOID, BOOLARRAYOID, INT4ARRAYOID, OIDARRAYOID,
	INT2ARRAYOID, OIDOID, OIDOID, OIDARRAYOID, OIDARRAYOID, TEXTARRAYOID};
	Datum		values[lengthof(types)];
	char		nulls[lengthof(types)];
	int			rc;

	values[0] = array_of_keys(conversion, OIDOID, relid_of);
	values[1] = array_of_keys(conversion, INT2OID, attnum_of);
	values[2] = array_of_keys(conversion, OIDOID, generator_of);
	values[3] = array_of_keys(conversion, BOOLOID, set_default_of);
	memset(nulls, ' ', sizeof(nulls));
	for (int i = 0; i < SNOWFLAKE_TARGET_ARRAYS; i++)
	{
		values[4 + i] = conversion->targets[i];
		nulls[4 + i] = conversion->targets[i] == (Datum) 0 ? 'n' : ' ';
	}
	for (int i = 0; i < SNOWFLAKE_OTHER_ARRAYS; i++)
	{
		values[8 + i] = conversion->others[i];
		nulls[8 + i] = conversion->others[i] == (Datum) 0 ? 'n' : ' ';
	}
	values[10] = ObjectIdGetDatum(conversion->schema);
	values[11] = ObjectIdGetDatum(object);
	for (int i = 0; i < SNOWFLAKE_NAME_ARRAYS; i++)
	{
		values[12 + i] = conversion->names[i];
		nulls[12 + i] = conversion->names[i] == (Datum) 0 ? 'n' : ' ';
	}
	if (often && plans_context != NULL)
		rc = SPI_execute_plan(plan_of(query, lengthof(types), types), values,
							  nulls, false, 0);
	else
		rc = SPI_execute_with_args(query, lengthof(types), types, values, nulls,
								   false, 0);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", query);
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
	run_query(conversion, InvalidOid, sql_walk, true);
	take_arrays(conversion->targets, SNOWFLAKE_TARGET_ARRAYS);
}

/*
 * Find the sequences of the keys, and what has their names.  This takes longer
 * the more functions there are, so it is done once.
 */
void
snowflake_convert_find_sequence_names(SnowflakeConversion *conversion)
{
	run_query(conversion, InvalidOid, sql_sequence_names, false);
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

	run_query(conversion, relid, sql_part, true);
	take_arrays(part.targets, SNOWFLAKE_TARGET_ARRAYS);
	return part;
}

/*
 * Have the columns of the schema that might hold a key widened, too.
 */
void
snowflake_convert_find_narrow_columns(SnowflakeConversion *conversion)
{
	snowflake_convert_find_targets(conversion);
	run_query(conversion, InvalidOid, sql_narrow_columns, false);
	take_arrays(conversion->others, SNOWFLAKE_OTHER_ARRAYS);
}

/*
 * Run a query about the columns.
 */
List *
snowflake_convert_ask(const SnowflakeConversion *conversion, const char *query)
{
	run_query(conversion, InvalidOid, query, false);
	return snowflake_convert_rows();
}

/*
 * Run a query that is asked often, about an object, $12.  Its plan is kept.
 */
List *
snowflake_convert_ask_often(const SnowflakeConversion *conversion, Oid object,
							const char *query)
{
	run_query(conversion, object, query, true);
	return snowflake_convert_rows();
}

/*
 * Run a query about the columns, which begins after the CTEs.
 */
List *
snowflake_ask(const SnowflakeConversion *conversion, const char *query)
{
	run_query(conversion, InvalidOid, psprintf("%s%s", target_query, query), false);
	return snowflake_convert_rows();
}

/*
 * Run a query that is asked often, about an object, $12.  Its plan is kept, so
 * what else differs must not be in the text.
 */
List *
snowflake_ask_often(const SnowflakeConversion *conversion, Oid object,
					const char *query)
{
	run_query(conversion, object, psprintf("%s%s", target_query, query), true);
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

	if (SPI_execute_with_args(query, 1, &type, &value, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", query);
	return snowflake_convert_rows();
}

/*
 * Query system views about an object, which is $1, with all rows visible.  What is in the
 * query is this module's own, a number, or quoted.
 */
List *
snowflake_convert_ask_server(Oid object, const char *query)
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
	rows = snowflake_convert_ask_about(object, query);
	SetUserIdAndSecContext(user, sec_context);
	AtEOXact_GUC(false, nest_level);
	return rows;
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
