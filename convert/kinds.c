/*-------------------------------------------------------------------------
 *
 * kinds.c
 *	  The kind that the sequences of converted keys get.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/kinds.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "convert/kinds.h"
#include "convert/queries.h"

/*
 * The kind that an argument names, or that it is without one.
 */
SnowflakeConvertKind
snowflake_convert_get_kind(FunctionCallInfo fcinfo, int argument, Oid generator)
{
	static const char *const names[] = {
		[SNOWFLAKE_CONVERT_SNOWFLAKE] = "snowflake",
		[SNOWFLAKE_CONVERT_RANGE] = "range",
		[SNOWFLAKE_CONVERT_LOCAL] = "local",
	};
	const char *kind;

	if (PG_ARGISNULL(argument))
		return SNOWFLAKE_CONVERT_GENERATOR;
	if (OidIsValid(generator))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("kind and generator cannot be specified together")));
	kind = text_to_cstring(PG_GETARG_TEXT_PP(argument));
	for (size_t i = SNOWFLAKE_CONVERT_SNOWFLAKE; i < lengthof(names); i++)
	{
		if (strcmp(kind, names[i]) == 0)
			elog(ERROR, "kind \"%s\" is not available yet", kind);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown kind \"%s\"", kind),
			 errhint("Kinds are snowflake, range, and local.")));
}
