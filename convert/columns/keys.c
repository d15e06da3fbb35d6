/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  The key of a table, and what generates its values; and those of a schema,
 *	  of which some are left as they are.
 *
 * A key of a schema is the primary key, if that is a single column, or a column that
 * has its values from a sequence or a generator: without a primary key, in it, or
 * referenced by a foreign key.  It is converted if the database generates its
 * values.  Those that the application supplies are left, because a default
 * would not be used, and so are keys that are foreign keys, because their values
 * come from another table.  Partitions and children follow their parents.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/keys.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/catalog.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "rewrite/rewriteHandler.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "convert/catalog/findings.h"
#include "convert/catalog/queries.h"
#include "convert/columns/keys.h"
#include "shared/table_owner.h"

/*
 * Lock a table to convert, or to see what that would do, and return its owner.
 */
Oid
snowflake_convert_lock(Oid relid, LOCKMODE mode)
{
	Oid			owner = snowflake_lock_table(relid, mode);

	if (IsCatalogRelationOid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s is a system catalog", snowflake_relation_name(relid))));
	return owner;
}

/*
 * Fail if the generator is not a function without arguments that returns a
 * bigint or a uuid.
 */
void
snowflake_convert_check_generator(Oid generator)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(generator));
	Form_pg_proc form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("function with OID %u does not exist", generator)));
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prokind != PROKIND_FUNCTION || form->pronargs != 0 ||
		(form->prorettype != INT8OID && form->prorettype != UUIDOID) ||
		form->proretset)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("function %s cannot be used as a generator of IDs",
						format_procedure(generator)),
				 errdetail("A generator must be a function without arguments that returns a single bigint, or a single uuid for a column of that type.")));
	ReleaseSysCache(tuple);
}

/*
 * Find the number of a column by its name, or that of the primary key.
 */
AttrNumber
snowflake_convert_find_column(Oid relid, const char *table, const char *name)
{
	AttrNumber	attnum;
	Bitmapset  *attnums;
	Oid			constraint;

	if (name != NULL)
	{
		attnum = get_attnum(relid, name);
		if (attnum <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of table %s does not exist",
							name, table)));
		return attnum;
	}

	attnums = get_primary_key_attnos(relid, true, &constraint);
	if (bms_membership(attnums) != BMS_SINGLETON)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("table %s has no single-column primary key", table),
				 errhint("Specify the column to convert.")));
	return bms_singleton_member(attnums) + FirstLowInvalidHeapAttributeNumber;
}

/*
 * The key of a table, which is locked: a column by its name, or the primary key
 * if that is NULL.  Fails if it is not an integer, or a uuid where the caller
 * names the generator: there is no telling which one a uuid should have.
 */
static SnowflakeKey *
find_key(Oid relid, const char *column, bool uuid_allowed)
{
	SnowflakeKey *key = palloc0(sizeof(SnowflakeKey));
	Oid			type;

	key->relid = relid;
	key->table = snowflake_relation_name(relid);
	key->attnum = snowflake_convert_find_column(relid, key->table, column);
	key->column = get_attname(relid, key->attnum, false);

	type = get_atttype(relid, key->attnum);
	key->type = type == UUIDOID ? UUIDOID : INT8OID;
	if (type != INT2OID && type != INT4OID && type != INT8OID &&
		(type != UUIDOID || !uuid_allowed))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table %s is not of an integer type",
						key->column, key->table),
				 errdetail("Its type is %s.", format_type_be(type)),
				 type == UUIDOID ?
				 errhint("To give it another default, specify the generator, such as generator => 'uuid_v7()'.") : 0));
	return key;
}

/*
 * The function that a default calls without arguments for a value of a type, if
 * that is all that the default is; otherwise InvalidOid.
 */
Oid
snowflake_convert_default_function(Oid relid, AttrNumber attnum, Oid type)
{
	Relation	table = try_relation_open(relid, AccessShareLock);
	Node	   *expression;
	Oid			result = InvalidOid;

	if (table == NULL)
		return InvalidOid;
	expression = build_column_default(table, attnum);
	if (expression != NULL)
		expression = strip_implicit_coercions(expression);
	if (expression != NULL && IsA(expression, FuncExpr))
	{
		FuncExpr   *call = (FuncExpr *) expression;

		if (call->args == NIL && call->funcresulttype == type)
			result = call->funcid;
	}
	relation_close(table, NoLock);
	return result;
}

/*
 * A function without arguments of the extension snowflake, which can have another
 * schema than this one.
 */
static Oid
find_generator(const char *name)
{
	List	   *schema = snowflake_convert_ask_with(NIL, sql_generators_schema);

	return snowflake_find_function(linitial_oid(snowflake_convert_oids(schema)), name);
}

/*
 * The generator is the one that the caller names.  Otherwise it is the one that
 * the column has, because somebody has chosen it, or snowflake_nextval().
 */
static void
choose_generator(SnowflakeKey *key, Oid named)
{
	Oid			nextval = find_generator("snowflake_nextval");
	Oid			present = snowflake_convert_default_function(key->relid, key->attnum, key->type);

	key->has_generator = OidIsValid(present) && !OidIsValid(named);
	if (OidIsValid(named))
		key->generator = named;
	else if (OidIsValid(present))
		key->generator = present;
	else
		key->generator = nextval;

	if (get_func_rettype(key->generator) != key->type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("function %s cannot be used as a generator of IDs for column \"%s\" of table %s",
						format_procedure(key->generator), key->column,
						key->table),
				 errdetail("It returns a %s, but new values of the column are of type %s.",
						   format_type_be(get_func_rettype(key->generator)),
						   format_type_be(key->type))));

	key->snowflakes = key->generator == nextval ||
		key->generator == find_generator("snowflake_id");
}

/*
 * Add the key of a table, which is locked, to a conversion.
 */
void
snowflake_convert_add_key(SnowflakeConversion *conversion, Oid relid, const char *column,
						  Oid generator, bool uuid_allowed)
{
	SnowflakeKey *key = find_key(relid, column, uuid_allowed);

	choose_generator(key, generator);
	conversion->keys = lappend(conversion->keys, key);
}

/*
 * Say that a generator other than the extension's own is kept, if it is.
 */
void
snowflake_convert_find_kept_default(const SnowflakeKey *key, List **findings)
{
	if (key->has_generator && !key->snowflakes)
		(void) snowflake_convert_add_finding(findings, SNOWFLAKE_INFO, NULL,
											 psprintf("table %s", key->table),
											 psprintf("column \"%s\" of table %s keeps its default %s",
													  key->column, key->table,
													  format_procedure(key->generator)),
											 psprintf("To replace it, specify generator => '%s'.",
													  format_procedure(find_generator("snowflake_nextval"))));
}

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
 * OIDs.  Those that are left are the result, as findings.  If the tables have several
 * owners, one of them is returned, and the others will be obstacles.
 */
List *
snowflake_convert_find_keys(SnowflakeConversion *conversion, ArrayType *exclude,
							Oid generator, Oid *owner)
{
	List	   *left = NIL;
	ListCell   *cell;

	*owner = GetUserId();
	foreach(cell, snowflake_convert_ask(conversion, sql_keys))
	{
		const SnowflakeRow *row = lfirst(cell);
		Oid			relid = snowflake_convert_oid(row, "relid");
		const char *object = snowflake_convert_text(row, "object");
		const char *title = snowflake_convert_text(row, "title");

		if (title != NULL)
			(void) snowflake_convert_add_finding(&left, SNOWFLAKE_INFO, title, object,
												 snowflake_convert_text(row, "finding"),
												 snowflake_convert_text(row, "what_to_do"));
		else if (snowflake_convert_contains(exclude, relid))
			(void) snowflake_convert_add_finding(&left, SNOWFLAKE_INFO,
												 "keys that are excluded stay as they are", object,
												 "it is excluded", NULL);
		else
		{
			Oid			owner_of = snowflake_convert_lock(relid, conversion->lock);

			if (conversion->keys == NIL)
				*owner = owner_of;
			snowflake_convert_add_key(conversion, relid, snowflake_convert_text(row, "attname"),
									  generator, false);
		}
	}
	return left;
}
