/*-------------------------------------------------------------------------
 *
 * snowflake_bench.c
 *	  What the benchmark measures with: the floor, and calls in a C loop.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * bench/module/snowflake_bench.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sched.h>

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

/* Calls between two looks at the clock. */
#define CALLS_AT_ONCE	256

/* Latencies by 1/16 of a power of two, of 60 powers. */
#define NBUCKETS		960

/* Counters, each in cache lines of its own; the first one is everybody's. */
#define NCOUNTERS		65
#define COUNTER_SIZE	((Size) 2 * PG_CACHE_LINE_SIZE)

static char *counters = NULL;

/* That of this backend. */
static pg_atomic_uint64 *own_counter = NULL;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

PG_FUNCTION_INFO_V1(bench_empty);
PG_FUNCTION_INFO_V1(bench_floor);
PG_FUNCTION_INFO_V1(bench_own_floor);
PG_FUNCTION_INFO_V1(bench_own_add);
PG_FUNCTION_INFO_V1(bench_counter);
PG_FUNCTION_INFO_V1(bench_use_counter);
PG_FUNCTION_INFO_V1(bench_handover);
PG_FUNCTION_INFO_V1(bench_pin);
PG_FUNCTION_INFO_V1(bench_count);
PG_FUNCTION_INFO_V1(bench_latency);

static pg_atomic_uint64 *
get_counter(int number)
{
	if (number < 0 || number >= NCOUNTERS)
		elog(ERROR, "there is no counter %d", number);
	return (pg_atomic_uint64 *) (counters + number * COUNTER_SIZE);
}

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(NCOUNTERS * COUNTER_SIZE);
}

static void
startup_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	counters = ShmemInitStruct("snowflake bench", NCOUNTERS * COUNTER_SIZE,
							   &found);
	for (int i = 0; !found && i < NCOUNTERS; i++)
		pg_atomic_init_u64(get_counter(i), 0);
	own_counter = get_counter(0);
	LWLockRelease(AddinShmemInitLock);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}

static int64
ns_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return (int64) (INSTR_TIME_GET_DOUBLE(now) * 1e9);
}

Datum
bench_empty(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(1);
}

Datum
bench_floor(PG_FUNCTION_ARGS)
{
	int64		now = GetCurrentTimestamp();

	PG_RETURN_INT64(now + pg_atomic_fetch_add_u64((pg_atomic_uint64 *) counters, 1));
}

/*
 * The same on a counter that no other backend writes to.
 */
Datum
bench_own_floor(PG_FUNCTION_ARGS)
{
	int64		now = GetCurrentTimestamp();

	PG_RETURN_INT64(now + pg_atomic_fetch_add_u64(own_counter, 1));
}

/*
 * And without a reading of the clock.
 */
Datum
bench_own_add(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(pg_atomic_fetch_add_u64(own_counter, 1));
}

Datum
bench_use_counter(PG_FUNCTION_ARGS)
{
	own_counter = get_counter(PG_GETARG_INT32(0));
	PG_RETURN_VOID();
}

Datum
bench_counter(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(pg_atomic_read_u64(get_counter(PG_GETARG_INT32(0))));
}

/*
 * Have this backend run on one processor only.
 */
Datum
bench_pin(PG_FUNCTION_ARGS)
{
	cpu_set_t	set;

	CPU_ZERO(&set);
	CPU_SET(PG_GETARG_INT32(0), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		elog(ERROR, "could not choose processor %d: %m", PG_GETARG_INT32(0));
	PG_RETURN_VOID();
}

/*
 * Two backends, 0 and 1, take turns at this backend's counter: the word's cache
 * line goes from one core to the other each time, if they have two.
 */
Datum
bench_handover(PG_FUNCTION_ARGS)
{
	uint64		turn = (uint64) PG_GETARG_INT32(0);
	int64		wanted = (int64) (PG_GETARG_FLOAT8(1) * 1e9);
	instr_time	start;
	int64		turns = 0;
	uint64		looks = 0;

	INSTR_TIME_SET_CURRENT(start);
	do
	{
		uint64		seen = pg_atomic_read_u64(own_counter);

		if (seen % 2 == turn)
		{
			pg_atomic_write_u64(own_counter, seen + 1);
			turns++;
		}
		CHECK_FOR_INTERRUPTS();
	} while (++looks % 1024 != 0 || ns_since(start) < wanted);
	PG_RETURN_INT64(turns);
}

/* A function with at most one argument, ready to be called again and again. */
typedef struct Callee
{
	FmgrInfo	flinfo;
	FunctionCallInfo fcinfo;
} Callee;

static void
prepare_call(Callee *callee, FunctionCallInfo fcinfo)
{
	fmgr_info(PG_GETARG_OID(0), &callee->flinfo);
	callee->fcinfo = palloc(SizeForFunctionCallInfo(1));
	InitFunctionCallInfoData(*callee->fcinfo, &callee->flinfo,
							 callee->flinfo.fn_nargs, InvalidOid, NULL, NULL);
	callee->fcinfo->args[0].value = Int64GetDatum(PG_GETARG_INT64(1));
	callee->fcinfo->args[0].isnull = false;
}

static Datum
return_pair(FunctionCallInfo fcinfo, int64 a, int64 b)
{
	TupleDesc	tupdesc;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	values[0] = Int64GetDatum(a);
	values[1] = Int64GetDatum(b);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
											 values, nulls));
}

Datum
bench_count(PG_FUNCTION_ARGS)
{
	int64		wanted = (int64) (PG_GETARG_FLOAT8(2) * 1e9);
	Callee		callee;
	instr_time	start;
	int64		calls = 0;
	int64		ns;

	prepare_call(&callee, fcinfo);
	INSTR_TIME_SET_CURRENT(start);
	do
	{
		for (int i = 0; i < CALLS_AT_ONCE; i++)
			(void) FunctionCallInvoke(callee.fcinfo);
		calls += CALLS_AT_ONCE;
		CHECK_FOR_INTERRUPTS();
	} while ((ns = ns_since(start)) < wanted);

	return return_pair(fcinfo, calls, ns);
}

/* The bucket of a latency, and the highest latency of a bucket. */
static int
bucket_of(int64 ns)
{
	int			power = 0;

	while (power < 58 && (ns >> power) >= 32)
		power++;
	return power * 16 + (int) (ns >> power);
}

static int64
bucket_end(int bucket)
{
	int			power = bucket < 32 ? 0 : bucket / 16 - 1;

	return ((int64) (bucket - power * 16) + 1) << power;
}

Datum
bench_latency(PG_FUNCTION_ARGS)
{
	int64		wanted = (int64) (PG_GETARG_FLOAT8(2) * 1e9);
	int64	   *buckets = palloc0(NBUCKETS * sizeof(int64));
	Callee		callee;
	instr_time	start;
	int64		before = 0;
	int64		calls = 0;
	int64		longest = 0;
	int64		above;
	int			bucket;

	prepare_call(&callee, fcinfo);
	INSTR_TIME_SET_CURRENT(start);
	do
	{
		int64		after;

		(void) FunctionCallInvoke(callee.fcinfo);
		after = ns_since(start);
		buckets[bucket_of(after - before)]++;
		longest = Max(longest, after - before);
		before = after;
		calls++;
		CHECK_FOR_INTERRUPTS();
	} while (before < wanted);

	above = calls / 1000;
	for (bucket = NBUCKETS - 1; bucket > 0; bucket--)
	{
		above -= buckets[bucket];
		if (above < 0)
			break;
	}
	return return_pair(fcinfo, Min(bucket_end(bucket), longest), longest);
}
