/*-------------------------------------------------------------------------
 *
 * objectid.c
 *	  ObjectIds, the keys of MongoDB.
 *
 * An ObjectId has 12 bytes: the Unix time in seconds (4 bytes, big-endian,
 * unsigned, so until 2106), 5 random bytes, and a counter of 3 bytes, which
 * starts at a random number.
 *
 * Each process draws the 5 bytes and the start of the counter itself, when it
 * generates its first ObjectId.  So nothing is shared, nothing must survive a
 * restart, and a forked process, recognized by its process ID, starts anew.
 *
 * No process generates an ObjectId twice, whatever the clock does: with the same 5
 * random bytes, each value of the counter is used only once.  After 2^24
 * ObjectIds, when the counter has had all its values, the process draws
 * another 5 bytes.  So uniqueness does not depend on the time: a clock that
 * stops or is set back, or more than 2^24 ObjectIds in a second, cause no
 * duplicates.
 *
 * Two processes, of this or another server, can generate the same ObjectId only if
 * they drew the same 5 bytes, with a probability of 2^-40 for any two, and
 * their counters then coincide within the same second.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/objectid.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "shared/compat.h"

#define OBJECTID_LEN	12
#define TIME_LEN		4
#define RANDOM_LEN		5
#define COUNTER_LEN		3

#define NCOUNTERS		(1 << (COUNTER_LEN * BITS_PER_BYTE))

/* The random bytes of this process. */
static uint8 process_random[RANDOM_LEN];
static int	process_pid = 0;

/* The next counter value, and how many are left with these random bytes. */
static uint32 counter;
static int	counters_left = 0;

PG_FUNCTION_INFO_V1(objectid);
PG_FUNCTION_INFO_V1(objectid_timestamp);

/*
 * Draw the random bytes and the start of the counter.
 */
static void
draw_random(void)
{
	uint8		drawn[RANDOM_LEN + COUNTER_LEN];

	counters_left = 0;			/* in case of an error */
	if (!pg_strong_random(drawn, sizeof(drawn)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	memcpy(process_random, drawn, RANDOM_LEN);
	counter = drawn[5] << 16 | drawn[6] << 8 | drawn[7];
	counters_left = NCOUNTERS;
	process_pid = MyProcPid;
}

/*
 * objectid() returns bytea
 */
Datum
objectid(PG_FUNCTION_ARGS)
{
	bytea	   *result = palloc(VARHDRSZ + OBJECTID_LEN);
	uint8	   *bytes = (uint8 *) VARDATA(result);
	int64		now = (int64) time(NULL);

	if (now < 0 || now > PG_UINT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("current time is out of range for ObjectIds"),
				 errdetail("An ObjectId stores the Unix time in seconds in %d bytes, which covers the years 1970 to 2106.",
						   TIME_LEN)));
	if (counters_left == 0 || process_pid != MyProcPid)
		draw_random();

	SET_VARSIZE(result, VARHDRSZ + OBJECTID_LEN);
	bytes[0] = (uint8) (now >> 24);
	bytes[1] = (uint8) (now >> 16);
	bytes[2] = (uint8) (now >> 8);
	bytes[3] = (uint8) now;
	memcpy(&bytes[TIME_LEN], process_random, RANDOM_LEN);
	bytes[9] = (uint8) (counter >> 16);
	bytes[10] = (uint8) (counter >> 8);
	bytes[11] = (uint8) counter;
	counter = (counter + 1) % NCOUNTERS;
	counters_left--;

	PG_RETURN_BYTEA_P(result);
}

/*
 * objectid_timestamp(id bytea) returns timestamptz
 */
Datum
objectid_timestamp(PG_FUNCTION_ARGS)
{
	bytea	   *id = PG_GETARG_BYTEA_PP(0);
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(id);
	int64		postgres_epoch = (int64) SECS_PER_DAY *
		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE);
	uint32		seconds;

	if (VARSIZE_ANY_EXHDR(id) != OBJECTID_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid ObjectId"),
				 errdetail("An ObjectId has %d bytes, but this value has %d.",
						   OBJECTID_LEN, (int) VARSIZE_ANY_EXHDR(id))));
	seconds = (uint32) bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
	PG_RETURN_TIMESTAMPTZ((seconds - postgres_epoch) * USECS_PER_SEC);
}
