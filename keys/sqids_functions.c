/*-------------------------------------------------------------------------
 *
 * sqids_functions.c
 *	  The SQL functions on Sqids: arguments in, Datum out.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/sqids_functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "keys/numbers.h"
#include "keys/sqids.h"
#include "keys/sqids_blocklist.h"
#include "shared/compat.h"
#include "shared/shown_text.h"

PG_FUNCTION_INFO_V1(sqids_encode);
PG_FUNCTION_INFO_V1(sqids_encode_array);
PG_FUNCTION_INFO_V1(sqids_decode);

/*
 * The words of an array.
 */
static SnowflakeSqidsWord *
words_of_array(ArrayType *array, int *nwords)
{
	SnowflakeSqidsWord *words;
	Datum	   *texts;

	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("blocklist must not contain nulls")));
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &texts, NULL,
					  nwords);
	words = palloc(Max(*nwords, 1) * sizeof(SnowflakeSqidsWord));
	for (int i = 0; i < *nwords; i++)
	{
		words[i].text = TextDatumGetCString(texts[i]);
		words[i].length = (int) strlen(words[i].text);
	}
	return words;
}

/*
 * Prepare the state for the arguments, or fail.
 */
static void
prepare(void *sqids, int min_length, text *alphabet, struct varlena *blocklist)
{
	SnowflakeSqidsWord *words;
	int			nwords;
	char		error[SNOWFLAKE_SQIDS_ERROR_SIZE];

	if (min_length < 0 || min_length > SNOWFLAKE_SQIDS_MAX_MIN_LENGTH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("min_length must be between 0 and %d",
						SNOWFLAKE_SQIDS_MAX_MIN_LENGTH)));
	if (!snowflake_sqids_prepare(sqids, min_length,
								 alphabet == NULL ?
								 SNOWFLAKE_SQIDS_ALPHABET :
								 text_to_cstring(alphabet), error))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid alphabet for Sqids"),
				 errdetail("%s", error)));

	if (blocklist == NULL)
		blocklist = (struct varlena *)
			DatumGetPointer(DirectFunctionCall2Coll(text_to_array, C_COLLATION_OID,
													CStringGetTextDatum(SNOWFLAKE_SQIDS_BLOCKLIST),
													CStringGetTextDatum(" ")));
	words = words_of_array((ArrayType *) blocklist, &nwords);
	snowflake_sqids_block(sqids, words, nwords);
}

/*
 * The text of numbers, for the second to the fourth argument of a function.
 */
static text *
encode(FunctionCallInfo fcinfo, const int64 *numbers, int n)
{
	const SnowflakeSqids *sqids;
	text	   *result;
	int			length;

	sqids = snowflake_prepared_state(fcinfo, sizeof(SnowflakeSqids), PG_GETARG_INT32(1),
									 PG_ARGISNULL(2) ? NULL : PG_GETARG_TEXT_PP(2),
									 PG_ARGISNULL(3) ? NULL : PG_GETARG_ARRAYTYPE_P(3), prepare);
	snowflake_check_numbers(numbers, n);
	result = palloc(VARHDRSZ + SNOWFLAKE_SQIDS_ROOM(n, sqids->min_length));
	length = snowflake_sqids_encode(sqids, numbers, n, VARDATA(result));
	if (length < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("blocklist leaves no Sqid for these numbers"),
				 errdetail("They have %d Sqids with this alphabet, each of which contains a word of the blocklist.",
						   sqids->n)));
	SET_VARSIZE(result, VARHDRSZ + length);
	return result;
}

/*
 * sqids_encode(number bigint, min_length integer, alphabet text,
 *				blocklist text[]) returns text
 */
Datum
sqids_encode(PG_FUNCTION_ARGS)
{
	int64		number;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	number = PG_GETARG_INT64(0);
	PG_RETURN_TEXT_P(encode(fcinfo, &number, 1));
}

/*
 * sqids_encode_array(numbers bigint[], min_length integer, alphabet text,
 *					  blocklist text[]) returns text
 */
Datum
sqids_encode_array(PG_FUNCTION_ARGS)
{
	const int64 *numbers;
	int			n;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	numbers = snowflake_numbers_of_array(PG_GETARG_ARRAYTYPE_P(0), &n,
										 SNOWFLAKE_SQIDS_MAX_NUMBERS, "Sqid");
	PG_RETURN_TEXT_P(encode(fcinfo, numbers, n));
}

/*
 * Fail for a text that is not a Sqid.
 */
snowflake_noreturn static void
invalid_text(const text *string, SnowflakeSqidsResult why, int place)
{
	char	   *shown = snowflake_shown_text(string);

	if (why == SNOWFLAKE_SQIDS_RANGE)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("number in Sqid \"%s\" is out of range for type bigint",
						shown)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid Sqid: \"%s\"", shown),
			 why == SNOWFLAKE_SQIDS_CHARACTER ?
			 errdetail("Character %d is not in the alphabet.", place) :
			 errdetail("No numbers produce this text with this alphabet.")));
}

/*
 * sqids_decode(sqid text, alphabet text) returns bigint[]
 */
Datum
sqids_decode(PG_FUNCTION_ARGS)
{
	const SnowflakeSqids *sqids;
	text	   *string;
	int			length;
	int			n;
	int64	   *numbers;
	SnowflakeSqidsResult result;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	string = PG_GETARG_TEXT_PP(0);
	length = VARSIZE_ANY_EXHDR(string);
	if (length > SNOWFLAKE_SQIDS_ROOM(SNOWFLAKE_SQIDS_MAX_NUMBERS, 0))
		invalid_text(string, SNOWFLAKE_SQIDS_BAD, 0);

	/* Neither a minimum length nor a blocklist matters here. */
	sqids = snowflake_prepared_state(fcinfo, sizeof(SnowflakeSqids), 0,
									 PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1),
									 construct_empty_array(TEXTOID), prepare);
	numbers = palloc(Max(SNOWFLAKE_SQIDS_COUNT(length), 1) * sizeof(int64));
	result = snowflake_sqids_decode(sqids, VARDATA_ANY(string), length,
									numbers, &n, palloc(length + 1));
	if (result == SNOWFLAKE_SQIDS_GOOD && n > SNOWFLAKE_SQIDS_MAX_NUMBERS)
		result = SNOWFLAKE_SQIDS_BAD;
	if (result != SNOWFLAKE_SQIDS_GOOD)
		invalid_text(string, result, n);
	PG_RETURN_ARRAYTYPE_P(snowflake_array_of_numbers(numbers, n));
}
