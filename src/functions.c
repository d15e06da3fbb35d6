/*-------------------------------------------------------------------------
 *
 * functions.c
 *	  The SQL functions on snowflake IDs: arguments in, Datum out.
 *
 * src/functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/int.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "generator.h"
#include "scheme.h"

/* Columns of snowflake_parse(). */
#define PARSE_NCOLUMNS	4

/* What the calls of snowflake_parse() in one place of a query share. */
typedef struct ParseCache
{
	TupleDesc	tupdesc;
	text	   *scheme_text;	/* NULL: none was read */
	SnowflakeScheme scheme;		/* read from scheme_text */
} ParseCache;

PG_FUNCTION_INFO_V1(snowflake_nextval);
PG_FUNCTION_INFO_V1(snowflake_parse);
PG_FUNCTION_INFO_V1(snowflake_parse_scheme);
PG_FUNCTION_INFO_V1(snowflake_reset);

/*
 * Read a scheme given as an argument.
 */
static void
read_scheme_argument(text *scheme_text, SnowflakeScheme *scheme)
{
	char	   *string = text_to_cstring(scheme_text);
	char		error[SNOWFLAKE_SCHEME_ERROR_SIZE];

	if (!snowflake_scheme_read(string, scheme, error))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid snowflake scheme"),
				 errdetail("%s", error),
				 errhint("A scheme is written like this: %s",
						 SNOWFLAKE_DEFAULT_SCHEME)));
	pfree(string);
}

/*
 * The start of an ID's tick.
 */
static TimestampTz
id_timestamp(const SnowflakeScheme *scheme, int64 id)
{
	const int64 postgres_epoch_ms =
		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * (USECS_PER_DAY / 1000);
	int64		tick = snowflake_field_get(scheme, SNOWFLAKE_TIMESTAMP, id);
	TimestampTz result;

	if (pg_mul_s64_overflow(tick, scheme->tick_ms, &result) ||
		pg_add_s64_overflow(result, scheme->epoch_ms - postgres_epoch_ms,
							&result) ||
		pg_mul_s64_overflow(result, 1000, &result) ||
		!IS_VALID_TIMESTAMP(result))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp of snowflake ID " INT64_FORMAT " is out of range",
						id)));
	return result;
}

/*
 * Fail if an ID cannot be one of the scheme.
 */
static void
check_id_fits(const SnowflakeScheme *scheme, int64 id)
{
	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("snowflake ID " INT64_FORMAT " is negative", id)));
	if (!snowflake_scheme_holds(scheme, id))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("snowflake ID " INT64_FORMAT " is wider than its scheme",
						id),
				 errdetail("The fields of the scheme have %d bits together.",
						   scheme->bits)));
}

/*
 * One of the small fields as a column: NULL if the scheme does not have it.
 */
static void
put_field(const SnowflakeScheme *scheme, SnowflakeField field, int64 id,
		  Datum *value, bool *isnull)
{
	*value = Int32GetDatum((int32) snowflake_field_get(scheme, field, id));
	*isnull = scheme->width[field] == 0;
}

/*
 * Find, or make, what the calls from this place share.
 */
static ParseCache *
get_parse_cache(FunctionCallInfo fcinfo)
{
	ParseCache *cache = fcinfo->flinfo->fn_extra;
	TupleDesc	tupdesc;
	MemoryContext oldcontext;

	if (cache != NULL)
		return cache;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (tupdesc->natts != PARSE_NCOLUMNS)
		elog(ERROR, "return type must have %d columns", PARSE_NCOLUMNS);

	oldcontext = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
	cache = palloc0(sizeof(ParseCache));
	cache->tupdesc = BlessTupleDesc(CreateTupleDescCopy(tupdesc));
	MemoryContextSwitchTo(oldcontext);

	fcinfo->flinfo->fn_extra = cache;
	return cache;
}

static Datum
parse_id(const ParseCache *cache, const SnowflakeScheme *scheme, int64 id)
{
	Datum		values[PARSE_NCOLUMNS];
	bool		nulls[PARSE_NCOLUMNS] = {false};

	check_id_fits(scheme, id);
	values[0] = TimestampTzGetDatum(id_timestamp(scheme, id));
	put_field(scheme, SNOWFLAKE_DATACENTER, id, &values[1], &nulls[1]);
	put_field(scheme, SNOWFLAKE_WORKER, id, &values[2], &nulls[2]);
	put_field(scheme, SNOWFLAKE_SEQUENCE, id, &values[3], &nulls[3]);

	return HeapTupleGetDatum(heap_form_tuple(cache->tupdesc, values, nulls));
}

/*
 * snowflake_nextval() returns bigint
 */
Datum
snowflake_nextval(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(snowflake_generate());
}

/*
 * snowflake_parse(id bigint) returns record
 */
Datum
snowflake_parse(PG_FUNCTION_ARGS)
{
	return parse_id(get_parse_cache(fcinfo), snowflake_server_scheme(),
					PG_GETARG_INT64(0));
}

/*
 * snowflake_parse(id bigint, scheme text) returns record
 */
Datum
snowflake_parse_scheme(PG_FUNCTION_ARGS)
{
	ParseCache *cache = get_parse_cache(fcinfo);
	text	   *scheme_text = PG_GETARG_TEXT_PP(1);
	Size		size = VARSIZE_ANY(scheme_text);

	/* Nearly always it is the text of the call before. */
	if (cache->scheme_text == NULL ||
		VARSIZE_ANY(cache->scheme_text) != size ||
		memcmp(cache->scheme_text, scheme_text, size) != 0)
	{
		if (cache->scheme_text != NULL)
			pfree(cache->scheme_text);
		cache->scheme_text = NULL;
		read_scheme_argument(scheme_text, &cache->scheme);
		cache->scheme_text = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, size);
		memcpy(cache->scheme_text, scheme_text, size);
	}

	return parse_id(cache, &cache->scheme, PG_GETARG_INT64(0));
}

/*
 * snowflake_reset(mark bigint) returns void
 */
Datum
snowflake_reset(PG_FUNCTION_ARGS)
{
	int64		mark = PG_GETARG_INT64(0);

	check_id_fits(snowflake_server_scheme(), mark);
	snowflake_set_mark(mark);
	PG_RETURN_VOID();
}
