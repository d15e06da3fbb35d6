/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  Which columns that hold a key without a foreign key are widened.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert/columns.h"
#include "convert/queries.h"

/*
 * Fail if the argument widen is none that is known.
 */
void
snowflake_convert_check_widen(const char *widen)
{
	if (strcmp(widen, "none") != 0 && strcmp(widen, "names") != 0 &&
		strcmp(widen, "keys") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown value \"%s\" of widen", widen),
				 errhint("It is none, names, or keys.")));
}

/*
 * Find the columns of the schema that are widened beside those that reference keys.
 */
void
snowflake_convert_choose_columns(SnowflakeConversion *conversion, const char *widen)
{
	if (strcmp(widen, "names") == 0)
		snowflake_convert_find_narrow_columns(conversion);
}
