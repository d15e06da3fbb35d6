/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  The rows of a query's result.
 *
 * A row is an array of texts, NULL for a null.  It is in the memory context that
 * is current when the query has run.  The names of its columns, which are before
 * the array, are known until SPI_finish().
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/rows.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/builtins.h"

#include "convert/catalog/rows.h"

/* A row, of which others see the values. */
typedef struct Row
{
	TupleDesc	desc;
	char	   *values[FLEXIBLE_ARRAY_MEMBER];
} Row;

/*
 * The rows of the query that was run last.
 */
List *
snowflake_convert_rows(void)
{
	TupleDesc	desc = SPI_tuptable->tupdesc;
	List	   *rows = NIL;

	for (uint64 i = 0; i < SPI_processed; i++)
	{
		Row		   *row = palloc(offsetof(Row, values) + desc->natts * sizeof(char *));

		row->desc = desc;
		for (int j = 0; j < desc->natts; j++)
			row->values[j] = SPI_getvalue(SPI_tuptable->vals[i], desc, j + 1);
		rows = lappend(rows, row->values);
	}
	return rows;
}

char *
snowflake_convert_text(char **row, const char *column)
{
	TupleDesc	desc = ((Row *) ((char *) row - offsetof(Row, values)))->desc;
	int			number = SPI_fnumber(desc, column);

	if (number <= 0)
		elog(ERROR, "the result of a query has no column \"%s\"", column);
	return row[number - 1];
}

/*
 * The value of a column that has an OID, a number, or 1 for true; for a null it
 * is InvalidOid, 0, or false.
 */
Oid
snowflake_convert_oid(char **row, const char *column)
{
	char	   *text = snowflake_convert_text(row, column);

	return text == NULL ? InvalidOid : atooid(text);
}

int64
snowflake_convert_number(char **row, const char *column)
{
	char	   *text = snowflake_convert_text(row, column);

	return text == NULL ? 0 : pg_strtoint64(text);
}

bool
snowflake_convert_flag(char **row, const char *column)
{
	return snowflake_convert_number(row, column) == 1;
}

/*
 * The first value of the first row.  NULL if there is no row.
 */
char *
snowflake_convert_first(const List *rows)
{
	return rows == NIL ? NULL : ((char **) linitial(rows))[0];
}

/*
 * The first value of each row.
 */
List *
snowflake_convert_texts(const List *rows)
{
	List	   *texts = NIL;
	ListCell   *cell;

	foreach(cell, rows)
		texts = lappend(texts, ((char **) lfirst(cell))[0]);
	return texts;
}

/*
 * The same, as OIDs.
 */
List *
snowflake_convert_oids(const List *rows)
{
	List	   *oids = NIL;
	ListCell   *cell;

	foreach(cell, rows)
		oids = lappend_oid(oids, atooid(((char **) lfirst(cell))[0]));
	return oids;
}
