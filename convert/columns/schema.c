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
 * convert/columns/schema.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "convert/catalog/queries.h"
#include "convert/columns/keys.h"
#include "convert/columns/schema.h"

/*
 * Does an array have an OID?
 */
bool
snowflake_convert_contains(ArrayType *array, Oid oid)
{
	Oid		   *oids = (Oid *) ARR_DATA_PTR(array);

	for (int i = 0; i < ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)); i++)
	{
		if (oids[i] == oid)
			return true;
	}
	return false;
}

/*
 * What becomes of a key of a table, by the name that the query has for it.
 */
static SnowflakeKeyKind
kind_of(const char *name, Oid relid, ArrayType *exclude)
{
	static const char *const names[SNOWFLAKE_KEY_KINDS] = {
		[SNOWFLAKE_KEY_CONVERTED] = "converted",
		[SNOWFLAKE_KEY_EXCLUDED] = "excluded",
		[SNOWFLAKE_KEY_REFERENCING] = "referencing",
		[SNOWFLAKE_KEY_SUPPLIED] = "supplied",
		[SNOWFLAKE_KEY_COUNTER] = "counter",
	};
	int			kind = 0;

	while (strcmp(names[kind], name) != 0)
		kind++;
	if (kind == SNOWFLAKE_KEY_CONVERTED && snowflake_convert_contains(exclude, relid))
		return SNOWFLAKE_KEY_EXCLUDED;
	return kind;
}

/*
 * Fail if there is no such schema, or an excluded table is null.
 */
void
snowflake_convert_check_schema(Oid schema, ArrayType *exclude)
{
	if (get_namespace_name(schema) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("schema with OID %u does not exist", schema)));
	if (array_contains_nulls(exclude))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array of tables must not contain nulls")));
}

/*
 * Find the keys of the schema, and lock their tables in the order of their
 * OIDs.  Those that are left are the result.  If the tables have several
 * owners, one of them is returned, and the others will be obstacles.
 */
List *
snowflake_convert_find_keys(SnowflakeConversion *conversion, ArrayType *exclude,
							Oid generator, Oid *owner)
{
	List	   *left = NIL;
	ListCell   *cell;

	snowflake_convert_check_schema(conversion->schema, exclude);
	*owner = GetUserId();
	foreach(cell, snowflake_convert_ask(conversion, sql_keys))
	{
		const SnowflakeRow *row = lfirst(cell);
		Oid			relid = snowflake_convert_oid(row, "relid");
		SnowflakeKeyKind kind = kind_of(snowflake_convert_text(row, "kind"), relid, exclude);

		if (kind == SNOWFLAKE_KEY_CONVERTED)
		{
			Oid			owner_of = snowflake_convert_lock(relid, conversion->lock);

			if (conversion->keys == NIL)
				*owner = owner_of;
			snowflake_convert_add_key(conversion, relid, snowflake_convert_text(row, "attname"),
									  generator, false);
		}
		else
		{
			SnowflakeLeftKey *key = palloc(sizeof(SnowflakeLeftKey));

			key->kind = kind;
			key->object = snowflake_convert_text(row, "object");
			left = lappend(left, key);
		}
	}
	return left;
}
