/*-------------------------------------------------------------------------
 *
 * key_functions.c
 *	  Functions that hold keys in integers, of tables in use.
 *
 * They change as by snowflake_convert(), in a step of their own before the first
 * swap.  With bigint they work with columns of either type, because an integer
 * becomes a bigint wherever it is assigned, compared or passed.  With integer they
 * would not: f(integer) does not take a bigint, which a column is after its swap.
 * What works with one of both only is an obstacle: a result that is returned by
 * RETURN QUERY, whose types must be those of the query.
 *
 * No client waits for that.  Who has planned a call of a function that is created
 * again plans it once more.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/key_functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"

#include "convert/conversion.h"
#include "convert/functions.h"
#include "convert/online/key_functions.h"
#include "convert/queries.h"
#include "online/queries/key_functions.sql.h"

/*
 * The same conversion with the functions that change.  Without their statements,
 * which are those of a step.
 */
SnowflakeConversion
snowflake_online_with_functions(const SnowflakeConversion *conversion)
{
	SnowflakeConversion result = *conversion;

	snowflake_convert_find_functions(&result);
	result.functions[3] = (Datum) 0;
	return result;
}

static List *
find_statements(SnowflakeConversion *conversion)
{
	List	   *statements = NIL;
	Datum	   *texts;
	int			count;

	snowflake_convert_find_functions(conversion);
	deconstruct_array(DatumGetArrayTypeP(conversion->functions[3]), TEXTOID, -1, false,
					  TYPALIGN_INT, &texts, NULL, &count);
	for (int i = 0; i < count; i++)
		statements = lappend(statements, TextDatumGetCString(texts[i]));
	return statements;
}

/*
 * What changes them, or NULL if there is nothing to change.  As in
 * snowflake_convert_run_statements(), a function may come before what it uses.
 */
char *
snowflake_online_function_statements(const SnowflakeConversion *conversion)
{
	SnowflakeConversion copy = *conversion;
	List	   *statements = find_statements(&copy);
	StringInfoData script;
	ListCell   *cell;

	initStringInfo(&script);
	appendStringInfoString(&script, "SET LOCAL check_function_bodies = off");
	foreach(cell, statements)
		appendStringInfo(&script, ";\n%s", (char *) lfirst(cell));
	return statements == NIL ? NULL : script.data;
}

/*
 * Change them.  Their rows are locked before what they have is read for the last
 * time, so that what others commit meanwhile is not taken back.
 */
void
snowflake_online_change_functions(const SnowflakeConversion *conversion)
{
	SnowflakeConversion copy = *conversion;
	char	   *oids;

	(void) find_statements(&copy);
	oids = OidOutputFunctionCall(F_ARRAY_OUT, copy.functions[1]);
	(void) snowflake_convert_ask_server(list_make1(oids), sql_lock_key_functions);
	AcceptInvalidationMessages();
	copy = *conversion;
	snowflake_convert_run_statements(find_statements(&copy));
}
