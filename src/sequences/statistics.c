/*-------------------------------------------------------------------------
 *
 * statistics.c
 *	  What this server knows of the numbers of a range sequence, for the view
 *	  snowflake_sequences.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/statistics.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "generator/state.h"
#include "ranges/elsewhere.h"
#include "ranges/slots.h"
#include "sequences/exhaust.h"
#include "shared/compat.h"

#define STATISTICS_COLUMNS	3

PG_FUNCTION_INFO_V1(snowflake_range_statistics);

static void
fill_values(const RangeStatistics *statistics, Datum *values, bool *nulls)
{
	values[0] = Int64GetDatum(statistics->granted);
	values[1] = Int64GetDatum(statistics->held);
	values[2] = CStringGetTextDatum(statistics->problem);
	nulls[0] = statistics->granted == 0;
	nulls[1] = false;
	nulls[2] = statistics->problem[0] == '\0';
}

/*
 * May the user know of a sequence?  Not if somebody has dropped it since the view read it.
 */
static bool
may_use(Oid relid)
{
	bool		is_missing = false;

	return pg_class_aclcheck_ext(relid, GetUserId(), ACL_SELECT | ACL_USAGE,
								 &is_missing) == ACLCHECK_OK;
}

/*
 * _snowflake_range_statistics(regclass) returns record
 */
Datum
snowflake_range_statistics(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	SequenceLabel label = snowflake_sequence_label(relid);
	RangeStatistics statistics;
	TupleDesc	tupdesc;
	Datum		values[STATISTICS_COLUMNS];
	bool		nulls[STATISTICS_COLUMNS];

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	memset(nulls, true, sizeof(nulls));
	if (label.kind == SNOWFLAKE_KIND_LOCAL)
	{
		nulls[2] = !may_use(relid) || !snowflake_is_elsewhere(snowflake_range_name(relid), NULL);
		values[2] = CStringGetTextDatum("local, but other servers are granted its numbers: call snowflake_set_sequence_kind()");
	}
	else if (snowflake_state == NULL)
	{
		values[2] = CStringGetTextDatum("not preloaded: add snowflake to shared_preload_libraries, and restart");
		nulls[2] = false;
	}
	else if (may_use(relid) && snowflake_get_range_statistics(label.name, &statistics))
		fill_values(&statistics, values, nulls);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
