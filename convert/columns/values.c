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

#include "catalog/pg_inherits.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "convert/catalog/queries.h"
#include "convert/catalog/subtransaction.h"
#include "convert/columns/values.h"
#include "shared/table_owner.h"

/* Values of a column that are looked for in the keys. */
#define MAX_VALUES	100

static int
compare(const void *a, const void *b)
{
	int32		x = *(const int32 *) a;
	int32		y = *(const int32 *) b;

	return (x > y) - (x < y);
}

/*
 * The elements of the text of an array of integers, which may be NULL.
 */
static int32 *
elements(const char *array, int *count)
{
	int32	   *result;
	char	   *end;

	*count = 0;
	if (array == NULL || strcmp(array, "{}") == 0)
		return NULL;
	result = palloc_array(int32, strlen(array));
	do
	{
		result[(*count)++] = (int32) strtol(array + 1, &end, 10);
		array = end;
	} while (*end == ',');
	return result;
}

/*
 * Take the values of a column: if there are many, some at the same distance,
 * among them the least and the greatest.
 */
static void
take_values(SnowflakeValues *column, const char *array)
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
 * Lock a table, and its partitions and children, without waiting.
 */
static bool
lock_if_free(Oid relid)
{
	ListCell   *cell;

	foreach(cell, find_all_inheritors(relid, NoLock, NULL))
	{
		if (!ConditionalLockRelationOid(lfirst_oid(cell), AccessShareLock))
			return false;
	}
	return true;
}

/*
 * Lock the tables of the columns, those that are free if others are not waited for.  Returns
 * the parameters of queries: those that the current user owns, and the columns, as arrays.
 */
static List *
lock_tables(const List *columns, bool wait)
{
	List	   *relids = NIL;
	List	   *attnums = NIL;
	ListCell   *cell;

	foreach(cell, columns)
	{
		const SnowflakeValues *column = lfirst(cell);

		if (wait)
			LockRelationOid(column->relid, AccessShareLock);
		else if (!lock_if_free(column->relid))
			continue;
		if (snowflake_table_owner(column->relid) != GetUserId())
			continue;
		relids = lappend_oid(relids, column->relid);
		attnums = lappend_oid(attnums, column->attnum);
	}
	return list_concat(snowflake_convert_oids_parameter(relids),
					   snowflake_convert_oids_parameter(attnums));
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

/* Columns whose values are read. */
typedef struct Reading
{
	List	   *columns;
	bool		wait;
} Reading;

static bool
read_values(void *argument)
{
	Reading    *reading = argument;
	List	   *columns = reading->columns;
	ListCell   *cell;

	foreach(cell, snowflake_convert_ask_with(lock_tables(columns, reading->wait), sql_samples))
	{
		Oid			relid = snowflake_convert_oid(lfirst(cell), "relid");
		const char *statement = snowflake_convert_text(lfirst(cell), "statement");
		ListCell   *found;

		foreach(found, snowflake_convert_run(statement, NIL))
		{
			const SnowflakeRow *row = lfirst(found);
			AttrNumber	attnum = (AttrNumber) snowflake_convert_number(row, "attnum");

			take_values(find_column(columns, relid, attnum),
						snowflake_convert_text(row, "numbers"));
		}
	}
	return false;
}

/*
 * Read values of columns.  If others are not waited for, nor do they wait longer than for
 * one table, whose locks are released before the next one: columns are in the order of
 * their tables.
 */
void
snowflake_convert_read_values(List *columns, bool wait)
{
	Reading		reading = {.wait = wait};
	ListCell   *cell;

	if (wait)
	{
		reading.columns = columns;
		(void) read_values(&reading);
		return;
	}
	foreach(cell, columns)
	{
		SnowflakeValues *column = lfirst(cell);
		ListCell   *next = lnext(columns, cell);

		reading.columns = lappend(reading.columns, column);
		if (next != NULL && ((SnowflakeValues *) lfirst(next))->relid == column->relid)
			continue;
		CHECK_FOR_INTERRUPTS();
		(void) snowflake_convert_do(read_values, &reading, NULL);
		reading.columns = NIL;
	}
}

/*
 * All values of the columns as the text of an array.
 */
static char *
all_values(const List *columns)
{
	StringInfoData array;
	ListCell   *cell;

	initStringInfo(&array);
	foreach(cell, columns)
	{
		const SnowflakeValues *column = lfirst(cell);

		for (int i = 0; i < column->count; i++)
			appendStringInfo(&array, "%c%d", array.len > 0 ? ',' : '{', column->values[i]);
	}
	appendStringInfoString(&array, array.len > 0 ? "}" : "{}");
	return array.data;
}

/* Which values a key has, and how many rows, up to 100. */
typedef struct Present
{
	int32	   *values;
	int			count;
	int			nrows;
} Present;

/*
 * Find out which of the values are in the keys.
 */
static Present *
find_in_keys(const List *keys, char *values)
{
	Present    *present = palloc0_array(Present, list_length(keys));
	List	   *columns = NIL;
	ListCell   *cell;

	for (int k = 0; k < list_length(keys); k++)
		present[k].nrows = -1;
	foreach(cell, keys)
	{
		SnowflakeValues *column = palloc0_object(SnowflakeValues);

		column->relid = ((SnowflakeKey *) lfirst(cell))->relid;
		column->attnum = ((SnowflakeKey *) lfirst(cell))->attnum;
		columns = lappend(columns, column);
	}
	foreach(cell, snowflake_convert_ask_with(lock_tables(columns, true), sql_lookups))
	{
		const SnowflakeRow *row = lfirst(cell);
		Present    *key = &present[snowflake_convert_number(row, "number") - 1];
		int			nest_level = NewGUCNestLevel();

		/* The planner may think that there are few rows. */
		if (snowflake_convert_flag(row, "is_big"))
			(void) set_config_option("enable_seqscan", "off", PGC_USERSET, PGC_S_SESSION,
									 GUC_ACTION_SAVE, true, 0, false);
		row = linitial(snowflake_convert_run(snowflake_convert_text(row, "statement"),
											 list_make1(values)));
		AtEOXact_GUC(false, nest_level);
		key->values = elements(snowflake_convert_text(row, "present"), &key->count);
		key->nrows = snowflake_convert_number(row, "nrows");
	}
	return present;
}

/*
 * Count which values of the columns are in the keys, whose tables are locked.  Returns
 * how many rows each key has, up to 100; -1 for one that was not read.
 */
int *
snowflake_convert_look_up(const List *keys, List *columns)
{
	int			nkeys = list_length(keys);
	Present    *present = find_in_keys(keys, all_values(columns));
	int		   *nrows = palloc_array(int, nkeys);
	ListCell   *cell;

	for (int k = 0; k < nkeys; k++)
		nrows[k] = present[k].nrows;
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
	return nrows;
}
