/*-------------------------------------------------------------------------
 *
 * hashids_functions.c
 *	  The SQL functions on Hashids: arguments in, Datum out.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/hashids_functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "keys/hashids.h"
#include "keys/numbers.h"
#include "shared/compat.h"
#include "shared/shown_text.h"

PG_FUNCTION_INFO_V1(hashids_encode);
PG_FUNCTION_INFO_V1(hashids_encode_array);
PG_FUNCTION_INFO_V1(hashids_decode);

/*
 * Prepare the state for the arguments, or fail.
 */
static void
prepare(void *hashids, int min_length, text *salt, text *alphabet)
{
	char	   *salt_utf8 = text_to_cstring(salt);
	pg_wchar   *code_points;
	int			ncode_points;
	char		error[SNOWFLAKE_HASHIDS_ERROR_SIZE];

	if (min_length < 0 || min_length > SNOWFLAKE_HASHIDS_MAX_MIN_LENGTH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("min_length must be between 0 and %d",
						SNOWFLAKE_HASHIDS_MAX_MIN_LENGTH)));

	/* The libraries use Unicode, whatever the encoding of the database. */
	salt_utf8 = pg_server_to_any(salt_utf8, strlen(salt_utf8), PG_UTF8);
	code_points = palloc((strlen(salt_utf8) + 1) * sizeof(pg_wchar));
	ncode_points = pg_encoding_mb2wchar_with_len(PG_UTF8, salt_utf8,
												 code_points,
												 strlen(salt_utf8));
	if (!snowflake_hashids_prepare(hashids, code_points, ncode_points,
								   min_length,
								   alphabet == NULL ?
								   SNOWFLAKE_HASHIDS_ALPHABET :
								   text_to_cstring(alphabet), error))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid alphabet for Hashids"),
				 errdetail("%s", error)));
}

/*
 * The state for salt, min_length, and alphabet, which are the second to the
 * fourth argument of each function.
 */
static SnowflakeHashids *
get_hashids(FunctionCallInfo fcinfo)
{
	return snowflake_prepared_state(fcinfo, sizeof(SnowflakeHashids), PG_GETARG_INT32(2),
									PG_GETARG_TEXT_PP(1),
									PG_ARGISNULL(3) ? NULL : PG_GETARG_TEXT_PP(3), prepare);
}

/*
 * The text of numbers.
 */
static text *
encode(SnowflakeHashids *hashids, const int64 *numbers, int n)
{
	text	   *result;

	snowflake_check_numbers(numbers, n);
	result = palloc(VARHDRSZ +
					SNOWFLAKE_HASHIDS_ROOM(n, hashids->min_length));
	SET_VARSIZE(result, VARHDRSZ +
				snowflake_hashids_encode(hashids, numbers, n,
										 VARDATA(result)));
	return result;
}

/*
 * hashids_encode(number bigint, salt text, min_length integer, alphabet text)
 * returns text
 */
Datum
hashids_encode(PG_FUNCTION_ARGS)
{
	int64		number;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	number = PG_GETARG_INT64(0);
	PG_RETURN_TEXT_P(encode(get_hashids(fcinfo), &number, 1));
}

/*
 * hashids_encode_array(numbers bigint[], salt text, min_length integer,
 *						alphabet text) returns text
 */
Datum
hashids_encode_array(PG_FUNCTION_ARGS)
{
	const int64 *numbers;
	int			n;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	numbers = snowflake_numbers_of_array(PG_GETARG_ARRAYTYPE_P(0), &n,
										 SNOWFLAKE_HASHIDS_MAX_NUMBERS,
										 "Hashid");
	PG_RETURN_TEXT_P(encode(get_hashids(fcinfo), numbers, n));
}

/*
 * Fail for a text that is not a Hashid.
 */
snowflake_noreturn static void
invalid_text(const text *string, SnowflakeHashidsResult why, int place)
{
	char	   *shown = snowflake_shown_text(string);

	if (why == SNOWFLAKE_HASHIDS_RANGE)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("number in Hashid \"%s\" is out of range for type bigint",
						shown)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid Hashid: \"%s\"", shown),
			 why == SNOWFLAKE_HASHIDS_CHARACTER ?
			 errdetail("Character %d is not in the alphabet.", place) :
			 errdetail("No numbers produce this text with this salt, min_length, and alphabet.")));
}

/*
 * hashids_decode(hashid text, salt text, min_length integer, alphabet text)
 * returns bigint[]
 */
Datum
hashids_decode(PG_FUNCTION_ARGS)
{
	SnowflakeHashids *hashids;
	text	   *string;
	int			length;
	int			n;
	int64	   *numbers;
	char	   *room;
	SnowflakeHashidsResult result;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();

	hashids = get_hashids(fcinfo);
	string = PG_GETARG_TEXT_PP(0);
	length = VARSIZE_ANY_EXHDR(string);
	n = snowflake_hashids_count(hashids, VARDATA_ANY(string), length);
	if (n > SNOWFLAKE_HASHIDS_MAX_NUMBERS)
		invalid_text(string, SNOWFLAKE_HASHIDS_BAD, 0);
	numbers = palloc(n * sizeof(int64));
	room = palloc(SNOWFLAKE_HASHIDS_ROOM(n, hashids->min_length));
	result = snowflake_hashids_decode(hashids, VARDATA_ANY(string), length,
									  numbers, &n, room);
	if (result != SNOWFLAKE_HASHIDS_GOOD)
		invalid_text(string, result, n);

	PG_RETURN_ARRAYTYPE_P(snowflake_array_of_numbers(numbers, n));
}
