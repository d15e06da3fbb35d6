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

#include <ctype.h>
#include <time.h>

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "shared/compat.h"
#include "shared/shown_text.h"

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
PG_FUNCTION_INFO_V1(objectid_to_text);
PG_FUNCTION_INFO_V1(objectid_from_text);

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
 * The bytes of an ObjectId that is given as bytea.
 */
static const uint8 *
get_objectid_argument(FunctionCallInfo fcinfo, int argument)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(argument);

	if (VARSIZE_ANY_EXHDR(bytes) != OBJECTID_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid ObjectId"),
				 errdetail("An ObjectId has %d bytes, but this value has %d.",
						   OBJECTID_LEN, (int) VARSIZE_ANY_EXHDR(bytes))));
	return (const uint8 *) VARDATA_ANY(bytes);
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
	const uint8 *bytes = get_objectid_argument(fcinfo, 0);
	uint32		seconds = (uint32) bytes[0] << 24 | bytes[1] << 16 |
		bytes[2] << 8 | bytes[3];
	int64		postgres_epoch = (int64) SECS_PER_DAY *
		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE);

	PG_RETURN_TIMESTAMPTZ((seconds - postgres_epoch) * USECS_PER_SEC);
}

/*
 * objectid_to_text(id bytea) returns text
 */
Datum
objectid_to_text(PG_FUNCTION_ARGS)
{
	const uint8 *bytes = get_objectid_argument(fcinfo, 0);
	char		digits[2 * OBJECTID_LEN];

	hex_encode((const char *) bytes, OBJECTID_LEN, digits);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(digits, sizeof(digits)));
}

/*
 * objectid_from_text(digits text) returns bytea
 */
Datum
objectid_from_text(PG_FUNCTION_ARGS)
{
	text	   *digits = PG_GETARG_TEXT_PP(0);
	const char *data = VARDATA_ANY(digits);
	int			size = VARSIZE_ANY_EXHDR(digits);
	int			length = pg_mbstrlen_with_len(data, size);
	bytea	   *result;

	if (length != 2 * OBJECTID_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid ObjectId: \"%s\"",
						snowflake_shown_text(digits)),
				 errdetail("An ObjectId has %d hexadecimal digits, but this text has %d characters.",
						   2 * OBJECTID_LEN, length)));
	for (int i = 0; i < size; i++)
	{
		if (!isxdigit((unsigned char) data[i]))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("invalid ObjectId: \"%s\"",
							snowflake_shown_text(digits)),
					 errdetail("Character %d is not a hexadecimal digit.",
							   i + 1)));
	}

	result = palloc(VARHDRSZ + OBJECTID_LEN);
	SET_VARSIZE(result, VARHDRSZ + OBJECTID_LEN);
	hex_decode(data, size, VARDATA(result));
	PG_RETURN_BYTEA_P(result);
}
