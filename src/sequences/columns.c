/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  Columns of a statement that creates or alters a table, as they were parsed.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/columns.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "utils/lsyscache.h"

#include "sequences/columns.h"

/*
 * The type that a serial column has, or InvalidOid if it is none.
 */
Oid
snowflake_serial_type(const TypeName * type)
{
	static const struct
	{
		const char *name;
		Oid			type;
	}			serials[] = {
		{"serial", INT4OID}, {"serial4", INT4OID},
		{"bigserial", INT8OID}, {"serial8", INT8OID},
		{"smallserial", INT2OID}, {"serial2", INT2OID},
	};

	if (type == NULL || list_length(type->names) != 1 || type->pct_type ||
		type->setof || type->arrayBounds != NIL)
		return InvalidOid;
	for (size_t i = 0; i < lengthof(serials); i++)
	{
		if (strcmp(strVal(linitial(type->names)), serials[i].name) == 0)
			return serials[i].type;
	}
	return InvalidOid;
}

/*
 * The type of a column that exists, or InvalidOid.
 */
Oid
snowflake_existing_type(Oid relid, const char *column)
{
	AttrNumber	attnum = OidIsValid(relid) ? get_attnum(relid, column) : InvalidAttrNumber;

	return attnum > 0 ? get_atttype(relid, attnum) : InvalidOid;
}

/*
 * The type of a column of the statement, or InvalidOid if there is no such type.
 */
Oid
snowflake_column_type(const SnowflakeNewTable *table, const ColumnDef * column)
{
	Oid			type = snowflake_serial_type(column->typeName);

	if (OidIsValid(type))
		return type;
	if (column->typeName == NULL)
		return snowflake_existing_type(table->template, column->colname);
	return LookupTypeNameOid(NULL, column->typeName, true);
}

/*
 * A column of the statement, or NULL.
 */
ColumnDef *
snowflake_find_column(const SnowflakeNewTable *table, const char *name)
{
	ListCell   *cell;

	foreach(cell, table->columns)
	{
		ColumnDef  *column = lfirst_node(ColumnDef, cell);

		if (strcmp(column->colname, name) == 0)
			return column;
	}
	return NULL;
}

/*
 * The first constraint of a type, or NULL.
 */
Constraint *
snowflake_find_constraint(const List *constraints, ConstrType type)
{
	ListCell   *cell;

	foreach(cell, constraints)
	{
		Constraint *constraint = lfirst_node(Constraint, cell);

		if (constraint->contype == type)
			return constraint;
	}
	return NULL;
}

/*
 * Have a column of the statement be of a type, unless it gets that from elsewhere.
 */
bool
snowflake_set_type(ColumnDef * column, Oid type)
{
	if (column->typeName == NULL)
		return false;
	column->typeName = makeTypeNameFromOid(type, -1);
	return true;
}
