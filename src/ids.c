/*-------------------------------------------------------------------------
 *
 * ids.c
 *	  The SQL functions on snowflake IDs: arguments in, Datum out.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ids.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/int.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "generator.h"
#include "ids.h"
#include "reserve.h"
#include "scheme.h"

/*
 * Columns of snowflake_parse(), snowflake_schemes() and
 * snowflake_read_scheme().
 */
#define PARSE_NCOLUMNS	4
#define SCHEMES_NCOLUMNS	6
#define READ_NCOLUMNS	4

/* State shared by the calls of a function from the same place of a query. */
typedef struct CallCache
{
	TupleDesc	tupdesc;		/* NULL: not looked up yet */
	text	   *scheme_text;	/* NULL: none was read */
	SnowflakeScheme scheme;		/* read from scheme_text */
} CallCache;

/* A block of IDs that snowflake_nextval(count) returns. */
typedef struct Block
{
	int			wanted;			/* IDs not taken from the generator yet */
	int			left;			/* IDs taken, but not returned yet */
	int64		next;			/* the first of these */
	int64		step;			/* difference between them */
} Block;

/* The last ID made by this session, or -1. */
static int64 last_id = -1;

PG_FUNCTION_INFO_V1(snowflake_nextval);
PG_FUNCTION_INFO_V1(snowflake_nextval_block);
PG_FUNCTION_INFO_V1(snowflake_currval);
PG_FUNCTION_INFO_V1(snowflake_parse);
PG_FUNCTION_INFO_V1(snowflake_parse_scheme);
PG_FUNCTION_INFO_V1(snowflake_timestamp);
PG_FUNCTION_INFO_V1(snowflake_timestamp_scheme);
PG_FUNCTION_INFO_V1(snowflake_lower_bound);
PG_FUNCTION_INFO_V1(snowflake_lower_bound_scheme);
PG_FUNCTION_INFO_V1(snowflake_make);
PG_FUNCTION_INFO_V1(snowflake_schemes);
PG_FUNCTION_INFO_V1(snowflake_read_scheme);
PG_FUNCTION_INFO_V1(snowflake_accept_clock);

/*
 * Read a scheme from text, or fail.
 */
static void
read_scheme(const char *string, SnowflakeScheme *scheme)
{
	char		error[SNOWFLAKE_SCHEME_ERROR_SIZE];

	if (!snowflake_scheme_read(string, scheme, error))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid snowflake scheme"),
				 errdetail("%s", error),
				 errhint("A valid scheme is, for example, \"%s\".",
						 SNOWFLAKE_DEFAULT_SCHEME)));
}

/*
 * Find or create the state shared by the calls from this place.
 */
static CallCache *
get_call_cache(FunctionCallInfo fcinfo)
{
	if (fcinfo->flinfo->fn_extra == NULL)
		fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(CallCache));
	return fcinfo->flinfo->fn_extra;
}

/*
 * The scheme given as text by an argument.
 */
static const SnowflakeScheme *
get_scheme_argument(FunctionCallInfo fcinfo, int argument)
{
	CallCache  *cache = get_call_cache(fcinfo);
	text	   *scheme_text = PG_GETARG_TEXT_PP(argument);
	Size		size = VARSIZE_ANY(scheme_text);

	/* Nearly always, it is the text of the previous call. */
	if (cache->scheme_text == NULL ||
		VARSIZE_ANY(cache->scheme_text) != size ||
		memcmp(cache->scheme_text, scheme_text, size) != 0)
	{
		char	   *string = text_to_cstring(scheme_text);

		if (cache->scheme_text != NULL)
			pfree(cache->scheme_text);
		cache->scheme_text = NULL;
		read_scheme(string, &cache->scheme);
		cache->scheme_text = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, size);
		memcpy(cache->scheme_text, scheme_text, size);
		pfree(string);
	}
	return &cache->scheme;
}

/*
 * The start of a tick; false if it is out of range for timestamptz.
 */
static bool
tick_timestamp(const SnowflakeScheme *scheme, int64 tick, TimestampTz *result)
{
	const int64 postgres_epoch_ms =
		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * (USECS_PER_DAY / 1000);
	TimestampTz epoch = (scheme->epoch_ms - postgres_epoch_ms) * 1000;

	return !pg_mul_s64_overflow(tick, scheme->tick_us, result) &&
		!pg_add_s64_overflow(*result, epoch, result) &&
		IS_VALID_TIMESTAMP(*result);
}

/*
 * The tick that contains a time; with round_up, the next one if the time is
 * not the start of the tick.  Fails if the scheme does not have the tick.
 */
static int64
timestamp_tick(const SnowflakeScheme *scheme, TimestampTz timestamp,
			   bool round_up)
{
	TimestampTz epoch;
	int64		since_epoch;

	/* Any epoch is in range for timestamptz. */
	(void) tick_timestamp(scheme, 0, &epoch);
	if (!TIMESTAMP_NOT_FINITE(timestamp) && timestamp >= epoch &&
		!pg_sub_s64_overflow(timestamp, epoch, &since_epoch))
	{
		int64		tick = since_epoch / scheme->tick_us;

		if (round_up && since_epoch % scheme->tick_us != 0)
			tick++;
		if (tick <= snowflake_field_max(scheme, SNOWFLAKE_TIMESTAMP))
			return tick;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("timestamp is out of range for the snowflake scheme"),
			 errdetail("The scheme starts at %s, and its timestamp field has %d bits.",
					   timestamptz_to_str(epoch),
					   scheme->width[SNOWFLAKE_TIMESTAMP])));
}

/*
 * Fail if an ID does not fit the scheme.
 */
void
snowflake_check_id_fits(const SnowflakeScheme *scheme, int64 id)
{
	if (snowflake_scheme_holds(scheme, id))
		return;
	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("snowflake ID " INT64_FORMAT " is negative", id)));
	else
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("snowflake ID " INT64_FORMAT " has more bits than the scheme",
						id),
				 errdetail("The scheme has %d bits.",
						   scheme->bits)));
}

/*
 * The start of an ID's tick.
 */
static TimestampTz
id_timestamp(const SnowflakeScheme *scheme, int64 id)
{
	TimestampTz result;

	snowflake_check_id_fits(scheme, id);
	if (!tick_timestamp(scheme,
						snowflake_field_get(scheme, SNOWFLAKE_TIMESTAMP, id),
						&result))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp of snowflake ID " INT64_FORMAT " is out of range",
						id)));
	return result;
}

/*
 * The smallest ID at or after a time.
 */
static int64
lower_bound(const SnowflakeScheme *scheme, TimestampTz timestamp)
{
	int64		id;

	if (!snowflake_scheme_sorts(scheme))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("snowflake IDs of this scheme do not sort by time"),
				 errdetail("The timestamp is not the first field of the scheme.")));

	id = snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP,
							 timestamp_tick(scheme, timestamp, true));
	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp is out of range for the snowflake scheme"),
				 errdetail("IDs with this timestamp have the highest of 64 bits set and, as bigint, sort below all others.")));
	return id;
}

/*
 * Datacenter or worker as a column: NULL if the scheme does not have it.
 */
static void
get_field(const SnowflakeScheme *scheme, SnowflakeField field, int64 id,
		  Datum *value, bool *isnull)
{
	*value = Int32GetDatum((int32) snowflake_field_get(scheme, field, id));
	*isnull = scheme->width[field] == 0;
}

/*
 * The value of an argument, at its field's place in an ID.
 */
static int64
put_field(const SnowflakeScheme *scheme, SnowflakeField field,
		  const char *name, int64 value)
{
	int64		max = snowflake_field_max(scheme, field);

	if (value < 0 || value > max)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("%s " INT64_FORMAT " is out of range", name, value),
				 errdetail("The scheme has %d bits for it, for values from 0 to " INT64_FORMAT ".",
						   scheme->width[field], max)));
	return snowflake_field_put(scheme, field, value);
}

/*
 * Datacenter or worker from an argument, at its place in an ID.
 */
static int64
put_argument(FunctionCallInfo fcinfo, int argument, const char *name,
			 const SnowflakeScheme *scheme, SnowflakeField field)
{
	if (!PG_ARGISNULL(argument))
		return put_field(scheme, field, name, PG_GETARG_INT32(argument));
	if (scheme->width[field] > 0)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null because the scheme has this field",
						name)));
	return 0;
}

static Datum
parse_id(FunctionCallInfo fcinfo, const SnowflakeScheme *scheme, int64 id)
{
	CallCache  *cache = get_call_cache(fcinfo);
	Datum		values[PARSE_NCOLUMNS];
	bool		nulls[PARSE_NCOLUMNS] = {false};

	if (cache->tupdesc == NULL)
	{
		MemoryContext oldcontext;
		TupleDesc	tupdesc;

		if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE ||
			tupdesc->natts != PARSE_NCOLUMNS)
			elog(ERROR, "return type must be a row type of %d columns",
				 PARSE_NCOLUMNS);
		oldcontext = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		cache->tupdesc = BlessTupleDesc(CreateTupleDescCopy(tupdesc));
		MemoryContextSwitchTo(oldcontext);
	}

	values[0] = TimestampTzGetDatum(id_timestamp(scheme, id));
	get_field(scheme, SNOWFLAKE_DATACENTER, id, &values[1], &nulls[1]);
	get_field(scheme, SNOWFLAKE_WORKER, id, &values[2], &nulls[2]);
	values[3] = Int64GetDatum(snowflake_field_get(scheme, SNOWFLAKE_SEQUENCE, id));
	nulls[3] = scheme->width[SNOWFLAKE_SEQUENCE] == 0;

	return HeapTupleGetDatum(heap_form_tuple(cache->tupdesc, values, nulls));
}

Datum
snowflake_nextval(PG_FUNCTION_ARGS)
{
	last_id = snowflake_generate();
	PG_RETURN_INT64(last_id);
}

/*
 * The IDs are taken from the generator a tick's worth at a time, and returned
 * one by one.
 */
Datum
snowflake_nextval_block(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	Block	   *block;

	if (SRF_IS_FIRSTCALL())
	{
		int32		count = PG_GETARG_INT32(0);

		if (count < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("count of snowflake IDs must be at least 1")));
		context = SRF_FIRSTCALL_INIT();
		block = MemoryContextAllocZero(context->multi_call_memory_ctx,
									   sizeof(Block));
		block->wanted = count;
		context->user_fctx = block;
	}

	context = SRF_PERCALL_SETUP();
	block = context->user_fctx;
	if (block->left == 0)
	{
		if (block->wanted == 0)
			SRF_RETURN_DONE(context);
		block->left = snowflake_generate_block(block->wanted, &block->next,
											   &block->step);
		block->wanted -= block->left;
	}

	last_id = block->next;
	block->next += block->step;
	block->left--;
	SRF_RETURN_NEXT(context, Int64GetDatum(last_id));
}

/*
 * Forget the last ID of this session, as DISCARD does for currval().
 */
void
snowflake_forget_currval(void)
{
	last_id = -1;
}

Datum
snowflake_currval(PG_FUNCTION_ARGS)
{
	if (last_id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("current snowflake ID is not yet defined in this session"),
				 errhint("Call snowflake_nextval() first.")));
	PG_RETURN_INT64(last_id);
}

Datum
snowflake_parse(PG_FUNCTION_ARGS)
{
	return parse_id(fcinfo, snowflake_server_scheme(), PG_GETARG_INT64(0));
}

Datum
snowflake_parse_scheme(PG_FUNCTION_ARGS)
{
	return parse_id(fcinfo, get_scheme_argument(fcinfo, 1),
					PG_GETARG_INT64(0));
}

Datum
snowflake_timestamp(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(id_timestamp(snowflake_server_scheme(),
									   PG_GETARG_INT64(0)));
}

Datum
snowflake_timestamp_scheme(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(id_timestamp(get_scheme_argument(fcinfo, 1),
									   PG_GETARG_INT64(0)));
}

Datum
snowflake_lower_bound(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(lower_bound(snowflake_server_scheme(),
								PG_GETARG_TIMESTAMPTZ(0)));
}

Datum
snowflake_lower_bound_scheme(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(lower_bound(get_scheme_argument(fcinfo, 1),
								PG_GETARG_TIMESTAMPTZ(0)));
}

/*
 * snowflake_make(ts timestamptz, worker_id integer, sequence bigint,
 *				  datacenter_id integer, scheme text) returns bigint
 */
Datum
snowflake_make(PG_FUNCTION_ARGS)
{
	const SnowflakeScheme *scheme;
	int64		id;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	scheme = PG_ARGISNULL(4) ? snowflake_server_scheme() :
		get_scheme_argument(fcinfo, 4);
	if (PG_ARGISNULL(2) && scheme->width[SNOWFLAKE_SEQUENCE] > 0)
		PG_RETURN_NULL();

	id = put_argument(fcinfo, 1, "worker_id", scheme, SNOWFLAKE_WORKER) |
		put_argument(fcinfo, 3, "datacenter_id", scheme, SNOWFLAKE_DATACENTER) |
		snowflake_field_put(scheme, SNOWFLAKE_TIMESTAMP,
							timestamp_tick(scheme, PG_GETARG_TIMESTAMPTZ(0),
										   false));
	if (!PG_ARGISNULL(2))
		id |= put_field(scheme, SNOWFLAKE_SEQUENCE, "sequence",
						PG_GETARG_INT64(2));
	PG_RETURN_INT64(id);
}

Datum
snowflake_schemes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const char *name;
	const char *scheme_text;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0;
		 (name = snowflake_named_scheme(i, &scheme_text)) != NULL;
		 i++)
	{
		Datum		values[SCHEMES_NCOLUMNS];
		bool		nulls[SCHEMES_NCOLUMNS] = {false};
		SnowflakeScheme scheme;
		TimestampTz first;
		TimestampTz last;

		read_scheme(scheme_text, &scheme);
		(void) tick_timestamp(&scheme, 0, &first);
		(void) tick_timestamp(&scheme,
							  snowflake_field_max(&scheme, SNOWFLAKE_TIMESTAMP),
							  &last);
		values[0] = CStringGetTextDatum(name);
		values[1] = CStringGetTextDatum(scheme_text);
		values[2] = TimestampTzGetDatum(first);
		values[3] = TimestampTzGetDatum(last);
		values[4] = Int64GetDatum((snowflake_field_max(&scheme, SNOWFLAKE_SEQUENCE) + 1) *
								  USECS_PER_SEC / scheme.tick_us);
		values[5] = Int64GetDatum(INT64CONST(1) <<
								  (scheme.width[SNOWFLAKE_DATACENTER] +
								   scheme.width[SNOWFLAKE_WORKER]));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * What the registry, which is written in SQL, needs to know about a scheme.
 */
Datum
snowflake_read_scheme(PG_FUNCTION_ARGS)
{
	const SnowflakeScheme *scheme;
	TupleDesc	tupdesc;
	Datum		values[READ_NCOLUMNS];
	bool		nulls[READ_NCOLUMNS] = {false};
	Interval   *tick = palloc0(sizeof(Interval));
	char		canonical[SNOWFLAKE_MAX_SCHEME_LENGTH + 1];
	char		error[SNOWFLAKE_SCHEME_ERROR_SIZE];

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE ||
		tupdesc->natts != READ_NCOLUMNS)
		elog(ERROR, "return type must be a row type of %d columns",
			 READ_NCOLUMNS);

	scheme = PG_ARGISNULL(0) ? snowflake_server_scheme() :
		get_scheme_argument(fcinfo, 0);
	if (!snowflake_scheme_makes(scheme, error))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("snowflake IDs cannot be made with this scheme"),
				 errdetail("%s", error)));

	snowflake_scheme_write(scheme, canonical);
	tick->time = scheme->tick_us;
	values[0] = CStringGetTextDatum(canonical);
	values[1] = IntervalPGetDatum(tick);
	values[2] = Int32GetDatum((int32) snowflake_field_max(scheme, SNOWFLAKE_DATACENTER));
	values[3] = Int32GetDatum((int32) snowflake_field_max(scheme, SNOWFLAKE_WORKER));
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values,
											 nulls));
}

Datum
snowflake_accept_clock(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(snowflake_accept_clock_now());
}
