/*-------------------------------------------------------------------------
 *
 * snowflake_example.c
 *	  IDs of its own by the C interface of snowflake.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/api/snowflake_example.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "extension/snowflake/snowflake_api.h"

PG_MODULE_MAGIC;

/* What the bits below the timestamp are mixed with. */
#define KEY		UINT64CONST(0x5bd1e9955bd1e995)

PG_FUNCTION_INFO_V1(example_id);
PG_FUNCTION_INFO_V1(example_snowflake_id);
PG_FUNCTION_INFO_V1(example_order_number);
PG_FUNCTION_INFO_V1(example_block);
PG_FUNCTION_INFO_V1(example_parts);
PG_FUNCTION_INFO_V1(example_scheme);
PG_FUNCTION_INFO_V1(example_version);

/*
 * Mix the bits below the timestamp, or undo that: no two IDs become the same.
 */
static int64
mix(int64 id)
{
	int			shift = snowflake_get_api(1)->get_scheme()->timestamp.shift;

	return id ^ (int64) (KEY & ((UINT64CONST(1) << shift) - 1));
}

Datum
example_id(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(mix(snowflake_get_api(1)->generate()));
}

Datum
example_snowflake_id(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(mix(PG_GETARG_INT64(0)));
}

Datum
example_order_number(PG_FUNCTION_ARGS)
{
	const SnowflakeApi *api = snowflake_get_api(1);
	const SnowflakeApiScheme *scheme = api->get_scheme();
	SnowflakeApiParts parts;
	int64		id = api->generate();
	int64		below = id & ((INT64CONST(1) << scheme->timestamp.shift) - 1);

	api->parse(id, &parts);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%d-" INT64_FORMAT "-" INT64_FORMAT,
											  parts.worker_id, parts.tick, below)));
}

Datum
example_block(PG_FUNCTION_ARGS)
{
	int			count = PG_GETARG_INT32(0);
	Datum	   *ids = palloc(Max(count, 1) * sizeof(Datum));
	int			n = 0;

	do
	{
		int64		id;
		int64		step;
		int			taken = snowflake_get_api(1)->generate_block(count - n, &id, &step);

		for (; taken > 0; taken--, id += step)
			ids[n++] = Int64GetDatum(id);
	} while (n < count);
	PG_RETURN_ARRAYTYPE_P(construct_array(ids, n, INT8OID, sizeof(int64),
										  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * A row of the function's result type.
 */
static Datum
make_row(FunctionCallInfo fcinfo, Datum *values)
{
	bool		nulls[5] = {false};
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE ||
		tupdesc->natts != lengthof(nulls))
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values,
											 nulls));
}

Datum
example_parts(PG_FUNCTION_ARGS)
{
	SnowflakeApiParts parts;
	Datum		values[5];

	snowflake_get_api(1)->parse(PG_GETARG_INT64(0), &parts);
	values[0] = TimestampTzGetDatum(parts.timestamp);
	values[1] = Int64GetDatum(parts.tick);
	values[2] = Int32GetDatum(parts.datacenter_id);
	values[3] = Int32GetDatum(parts.worker_id);
	values[4] = Int64GetDatum(parts.sequence);
	return make_row(fcinfo, values);
}

Datum
example_scheme(PG_FUNCTION_ARGS)
{
	const SnowflakeApiScheme *scheme = snowflake_get_api(1)->get_scheme();
	SnowflakeApiField fields[4];
	Datum		widths[4];
	Datum		shifts[4];
	Datum		values[5];

	fields[0] = scheme->timestamp;
	fields[1] = scheme->datacenter;
	fields[2] = scheme->worker;
	fields[3] = scheme->sequence;
	for (int i = 0; i < 4; i++)
	{
		widths[i] = Int32GetDatum(fields[i].width);
		shifts[i] = Int32GetDatum(fields[i].shift);
	}
	values[0] = CStringGetTextDatum(scheme->text);
	values[1] = TimestampTzGetDatum(scheme->epoch);
	values[2] = Int64GetDatum(scheme->tick_us);
	values[3] = PointerGetDatum(construct_array(widths, 4, INT4OID, sizeof(int32),
												true, TYPALIGN_INT));
	values[4] = PointerGetDatum(construct_array(shifts, 4, INT4OID, sizeof(int32),
												true, TYPALIGN_INT));
	return make_row(fcinfo, values);
}

Datum
example_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(snowflake_get_api(PG_GETARG_INT32(0))->version);
}
