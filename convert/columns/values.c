/*-------------------------------------------------------------------------
 *
 * values.c
 *	  Values of columns, and which of them are in keys.
 *
 * No table is read as a whole unless it is small: columns by a sample of its
 * pages, and keys by their indexes.  What ANALYZE has found is not used, so it
 * changes nothing, and the same table has the same sample.
 *
 * Tables are locked by their OIDs, and read as their owner: convert.c says why.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/values.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "convert/catalog/queries.h"
#include "convert/catalog/rows.h"
#include "convert/columns/values.h"
#include "shared/table_owner.h"

/* Values of a column that are looked for in the keys. */
#define MAX_VALUES	100

/* A key is told from a small list of codes by having as many rows. */
#define MANY_ROWS	20

static int
compare(const void *a, const void *b)
{
	int32		x = *(const int32 *) a;
	int32		y = *(const int32 *) b;

	return (x > y) - (x < y);
}

/*
 * The value of a column of the row; NULL, or 0, for a null.
 */
static Datum
value_of(uint64 row, int column)
{
	bool		isnull;
	Datum		value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
									  column, &isnull);

	return isnull ? (Datum) 0 : value;
}

/*
 * The elements of an array of integers, which may be NULL.
 */
static int32 *
elements(Datum array, int *count)
{
	ArrayType  *integers;

	*count = 0;
	if (array == (Datum) 0)
		return NULL;
	integers = DatumGetArrayTypePCopy(array);
	*count = ArrayGetNItems(ARR_NDIM(integers), ARR_DIMS(integers));
	return (int32 *) ARR_DATA_PTR(integers);
}

/*
 * Take the values of a column: if there are many, some at the same distance,
 * among them the least and the greatest.
 */
static void
take_values(SnowflakeValues *column, Datum array)
{
	int			count;
	int32	   *all = elements(array, &count);

	column->is_read = true;
	column->count = Min(count, MAX_VALUES);
	column->values = all;
	if (count <= MAX_VALUES)
		return;
	column->values = palloc_array(int32, MAX_VALUES);
	for (int i = 0; i < MAX_VALUES; i++)
		column->values[i] = all[(int64) i * (count - 1) / (MAX_VALUES - 1)];
}

/*
 * Lock the tables of the columns.  Returns the parameters of queries: those that the
 * current user owns, and the columns, as arrays.
 */
static List *
lock_tables(const List *columns)
{
	StringInfoData relids;
	StringInfoData attnums;
	const char *separator = "{";
	ListCell   *cell;

	initStringInfo(&relids);
	initStringInfo(&attnums);
	foreach(cell, columns)
	{
		const SnowflakeValues *column = lfirst(cell);

		LockRelationOid(column->relid, AccessShareLock);
		if (snowflake_table_owner(column->relid) != GetUserId())
			continue;
		appendStringInfo(&relids, "%s%u", separator, column->relid);
		appendStringInfo(&attnums, "%s%d", separator, column->attnum);
		separator = ",";
	}
	appendStringInfoString(&relids, relids.len > 0 ? "}" : "{}");
	appendStringInfoString(&attnums, attnums.len > 0 ? "}" : "{}");
	return list_make2(relids.data, attnums.data);
}

/*
 * Run a statement with an array as its parameter.
 */
static void
run(const char *statement, Oid type, Datum array)
{
	if (SPI_execute_with_args(statement, 1, &type, &array, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "query failed: %s", statement);
}

static SnowflakeValues *
find_column(const List *columns, Oid relid, AttrNumber attnum)
{
	ListCell   *cell;

	foreach(cell, columns)
	{
		SnowflakeValues *column = lfirst(cell);

		if (column->relid == relid && column->attnum == attnum)
			return column;
	}
	return NULL;
}

static SnowflakeKeyText *
make_text(Oid relid, AttrNumber attnum, Datum example)
{
	SnowflakeKeyText *result = palloc_object(SnowflakeKeyText);

	result->relid = relid;
	result->attnum = attnum;
	result->example = TextDatumGetCString(example);
	return result;
}

/*
 * Read values of columns, and return the columns of their tables with texts that have
 * the name of a table, and a number.
 */
List *
snowflake_convert_read_values(List *columns, Datum names)
{
	List	   *texts = NIL;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask_with(lock_tables(columns), sql_samples))
	{
		char	  **row = lfirst(cell);
		Oid			relid = snowflake_convert_oid(row, "relid");

		run(snowflake_convert_text(row, "statement"), TEXTARRAYOID, names);
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			AttrNumber	attnum = DatumGetInt32(value_of(i, 1));
			SnowflakeValues *column = find_column(columns, relid, attnum);

			if (column != NULL)
				take_values(column, value_of(i, 2));
			else if (DatumGetInt64(value_of(i, 4)) * 2 > DatumGetInt64(value_of(i, 3)))
				texts = lappend(texts, make_text(relid, attnum, value_of(i, 5)));
		}
	}
	return texts;
}

/*
 * All values of the columns, each once, as an array.
 */
static Datum
all_values(const List *columns)
{
	int			count = 0;
	int			n = 0;
	int32	   *values;
	Datum	   *elems;
	ListCell   *cell;

	foreach(cell, columns)
		count += ((SnowflakeValues *) lfirst(cell))->count;
	values = palloc_array(int32, count + 1);
	foreach(cell, columns)
	{
		const SnowflakeValues *column = lfirst(cell);

		if (column->count > 0)
			memcpy(values + n, column->values, column->count * sizeof(int32));
		n += column->count;
	}
	qsort(values, count, sizeof(int32), compare);
	elems = palloc_array(Datum, count + 1);
	n = 0;
	for (int i = 0; i < count; i++)
	{
		if (i == 0 || values[i] != values[i - 1])
			elems[n++] = Int32GetDatum(values[i]);
	}
	return PointerGetDatum(construct_array(elems, n, INT4OID, sizeof(int32), true,
										   TYPALIGN_INT));
}

/* Which values a key has, and whether it has many rows. */
typedef struct Present
{
	int32	   *values;
	int			count;
	bool		many;
} Present;

/*
 * Find out which of the values are in the keys.
 */
static Present *
find_in_keys(const List *keys, Datum values)
{
	Present    *present = palloc0_array(Present, list_length(keys));
	List	   *columns = NIL;
	ListCell   *cell;

	foreach(cell, keys)
	{
		SnowflakeValues *column = palloc0_object(SnowflakeValues);

		column->relid = ((SnowflakeKey *) lfirst(cell))->relid;
		column->attnum = ((SnowflakeKey *) lfirst(cell))->attnum;
		columns = lappend(columns, column);
	}
	foreach(cell, snowflake_convert_ask_with(lock_tables(columns), sql_lookups))
	{
		char	  **row = lfirst(cell);
		Present    *key = &present[snowflake_convert_number(row, "number") - 1];
		int			nest_level = NewGUCNestLevel();

		/* The planner may think that there are few rows. */
		if (snowflake_convert_flag(row, "is_big"))
			(void) set_config_option("enable_seqscan", "off", PGC_USERSET, PGC_S_SESSION,
									 GUC_ACTION_SAVE, true, 0, false);
		run(snowflake_convert_text(row, "statement"), INT4ARRAYOID, values);
		AtEOXact_GUC(false, nest_level);
		key->values = elements(value_of(0, 1), &key->count);
		key->many = DatumGetInt64(value_of(0, 2)) >= MANY_ROWS;
	}
	return present;
}

/*
 * Count which values of the columns are in the keys, whose tables are locked.  Returns
 * which keys have many rows.
 */
bool *
snowflake_convert_look_up(const List *keys, List *columns)
{
	int			nkeys = list_length(keys);
	Present    *present = find_in_keys(keys, all_values(columns));
	bool	   *many = palloc_array(bool, nkeys);
	ListCell   *cell;

	for (int k = 0; k < nkeys; k++)
		many[k] = present[k].many;
	foreach(cell, columns)
	{
		SnowflakeValues *column = lfirst(cell);

		column->in_key = palloc0_array(int, nkeys);
		for (int i = 0; i < column->count; i++)
		{
			bool		known = false;

			for (int k = 0; k < nkeys; k++)
			{
				if (present[k].count == 0 ||
					bsearch(&column->values[i], present[k].values, present[k].count,
							sizeof(int32), compare) == NULL)
					continue;
				column->in_key[k]++;
				known = true;
			}
			column->known += known;
		}
		CHECK_FOR_INTERRUPTS();
	}
	return many;
}
