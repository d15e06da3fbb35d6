/*-------------------------------------------------------------------------
 *
 * text_functions.c
 *	  The SQL functions on IDs as short texts: arguments in, Datum out.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/keys/text_functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "keys/text.h"
#include "shared/compat.h"
#include "shared/shown_text.h"

PG_FUNCTION_INFO_V1(snowflake_encode);
PG_FUNCTION_INFO_V1(snowflake_decode);

/*
 * The format that an argument names.
 */
static SnowflakeTextFormat
get_format(text *name)
{
	SnowflakeTextFormat format;

	if (!snowflake_text_format(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name),
							   &format))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized text format of snowflake IDs: \"%s\"",
						snowflake_shown_text(name)),
				 errhint("Valid formats are \"base32\", \"base62\", and \"hex\".")));
	return format;
}

/*
 * Fail for a text that is not an ID.
 */
snowflake_noreturn static void
fail_at_text(SnowflakeTextFormat format, SnowflakeTextResult result,
			 const text *encoded, int place)
{
	const char *name = snowflake_text_format_name(format);
	const char *shown = snowflake_shown_text(encoded);
	const char *string = VARDATA_ANY(encoded);
	int			length = (int) VARSIZE_ANY_EXHDR(encoded);

	if (result == SNOWFLAKE_TEXT_TOO_GREAT)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("snowflake ID \"%s\" in %s is out of range",
						shown, name),
				 errdetail("The number has more than 64 bits.")));
	else if (result == SNOWFLAKE_TEXT_WRONG_LENGTH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid snowflake ID in %s: \"%s\"", name, shown),
				 errdetail("The text has %d characters, but an ID in %s has %d.",
						   pg_mbstrlen_with_len(string, length), name,
						   snowflake_text_length(format))));
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid snowflake ID in %s: \"%s\"", name, shown),
				 errdetail("Character %d, \"%.*s\", is not a digit of %s.",
						   place + 1,
						   Min(pg_mblen(string + place), length - place),
						   string + place, name)));
}

/*
 * snowflake_encode(id bigint, format text) returns text
 */
Datum
snowflake_encode(PG_FUNCTION_ARGS)
{
	SnowflakeTextFormat format = get_format(PG_GETARG_TEXT_PP(1));
	int			size = VARHDRSZ + snowflake_text_length(format);
	text	   *result = palloc(size);

	SET_VARSIZE(result, size);
	snowflake_text_write(format, PG_GETARG_INT64(0), VARDATA(result));
	PG_RETURN_TEXT_P(result);
}

/*
 * snowflake_decode(encoded text, format text) returns bigint
 */
Datum
snowflake_decode(PG_FUNCTION_ARGS)
{
	text	   *encoded = PG_GETARG_TEXT_PP(0);
	SnowflakeTextFormat format = get_format(PG_GETARG_TEXT_PP(1));
	SnowflakeTextResult result;
	int64		id = 0;
	size_t		place = 0;

	result = snowflake_text_read(format, VARDATA_ANY(encoded),
								 VARSIZE_ANY_EXHDR(encoded), &id, &place);
	if (result != SNOWFLAKE_TEXT_GOOD)
		fail_at_text(format, result, encoded, (int) place);
	PG_RETURN_INT64(id);
}
