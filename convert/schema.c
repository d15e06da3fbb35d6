/*-------------------------------------------------------------------------
 *
 * schema.c
 *	  Which keys of a schema are converted, and which are left as they are.
 *
 * A key is the primary key, if that is a single column, or a column that has
 * its values from a sequence or a generator: without a primary key, in it, or
 * referenced by a foreign key.  It is converted if the database generates its
 * values.  Those that the application supplies are left, because a default
 * would not be used, and so are keys that are foreign keys, because their values
 * come from another table.  Partitions and children follow their parents.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/schema.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "convert/convert.h"

/*
 * The keys of schema $1: table, column, kind, and description.
 */
static const char keys_query[] =
"WITH candidate AS ("
"  SELECT r.oid AS relid, a.attnum, a.attname, a.attidentity, f.oid AS default_oid,"
"    pg_get_expr(f.adbin, f.adrelid) AS expression, i.indrelid IS NOT NULL AS has_key,"
"    coalesce(a.attnum = ANY (i.indkey), false) AS in_key, i.indnkeyatts = 1 AS alone"
"  FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid"
"    LEFT JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (a.attrelid, a.attnum)"
"    LEFT JOIN pg_index i ON i.indrelid = r.oid AND i.indisprimary"
"  WHERE r.relnamespace = $1 AND r.relkind IN ('r', 'p')"
"  AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0 AND a.attgenerated = ''"
"  AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)"
"  AND NOT EXISTS (SELECT FROM pg_depend e"
"                  WHERE (e.classid, e.objid, e.deptype) = ('pg_class'::regclass, r.oid, 'e'))),"
" key AS ("
"  SELECT c.*, c.attidentity <> '' OR coalesce(c.expression ~* 'nextval[(]', false) OR EXISTS ("
"      SELECT FROM pg_depend d JOIN pg_proc p ON p.oid = d.refobjid"
"      WHERE (d.classid, d.objid) = ('pg_attrdef'::regclass, c.default_oid)"
"      AND d.refclassid = 'pg_proc'::regclass"
"      AND p.pronargs = 0 AND p.prorettype = 'int8'::regtype) AS generated,"
"    EXISTS (SELECT FROM pg_constraint x WHERE x.contype = 'f' AND x.conrelid = c.relid"
"            AND c.attnum = ANY (x.conkey)) AS referencing,"
"    EXISTS (SELECT FROM pg_constraint x WHERE x.contype = 'f' AND x.confrelid = c.relid"
"            AND c.attnum = ANY (x.confkey)) AS referenced"
"  FROM candidate c) "
"SELECT relid, attname, CASE WHEN referencing THEN 'r' WHEN NOT generated THEN 's'"
"    WHEN in_key OR referenced OR NOT has_key THEN 'k' ELSE 'c' END,"
"  format('column %I of table %s', attname, relid::regclass)"
" FROM key WHERE in_key AND alone OR generated"
" ORDER BY relid, attnum";

/*
 * Does an array have an OID?
 */
static bool
contains(ArrayType *array, Oid oid)
{
	Oid		   *oids = (Oid *) ARR_DATA_PTR(array);

	for (int i = 0; i < ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)); i++)
	{
		if (oids[i] == oid)
			return true;
	}
	return false;
}

static SnowflakeKeyKind
kind_of(char letter, Oid relid, ArrayType *exclude)
{
	switch (letter)
	{
		case 'r':
			return SNOWFLAKE_KEY_REFERENCING;
		case 's':
			return SNOWFLAKE_KEY_SUPPLIED;
		case 'c':
			return SNOWFLAKE_KEY_COUNTER;
		default:
			return contains(exclude, relid) ?
				SNOWFLAKE_KEY_EXCLUDED : SNOWFLAKE_KEY_CONVERTED;
	}
}

/*
 * Find the keys of the schema, and lock their tables in the order of their
 * OIDs.  Those that are left are the result.  If the tables have several
 * owners, one of them is returned, and the others will be obstacles.
 */
List *
snowflake_find_keys(SnowflakeConversion *conversion, ArrayType *exclude,
					Oid generator, Oid *owner)
{
	List	   *left = NIL;
	ListCell   *cell;

	if (get_namespace_name(conversion->schema) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("schema with OID %u does not exist",
						conversion->schema)));
	if (array_contains_nulls(exclude))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array of tables must not contain nulls")));

	*owner = GetUserId();
	foreach(cell, snowflake_ask_about(conversion->schema, keys_query))
	{
		char	  **row = lfirst(cell);
		Oid			relid = atooid(row[0]);
		SnowflakeKeyKind kind = kind_of(row[2][0], relid, exclude);

		if (kind == SNOWFLAKE_KEY_CONVERTED)
		{
			SnowflakeKey *key;
			Oid			owner_of = snowflake_lock_to_convert(relid, conversion->dry_run);

			if (conversion->keys == NIL)
				*owner = owner_of;
			key = snowflake_find_key(relid, row[1], false);
			snowflake_choose_generator(key, generator);
			conversion->keys = lappend(conversion->keys, key);
		}
		else
		{
			SnowflakeLeftKey *key = palloc(sizeof(SnowflakeLeftKey));

			key->kind = kind;
			key->object = row[3];
			left = lappend(left, key);
		}
	}
	return left;
}
