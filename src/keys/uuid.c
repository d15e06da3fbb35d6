/*-------------------------------------------------------------------------
 *
 * uuid.c
 *	  UUIDs of RFC 9562: random (version 4), time-ordered (version 7), and the
 *	  time of a UUID.
 *
 * Most of the cost of a random UUID is getting random bytes: a system call or
 * a call of OpenSSL's generator, the same for 16 bytes as for 4096.  So each
 * process gets many at once and keeps them in a pool.  Each byte is used once,
 * and erased when it is used, so that no memory reveals a UUID that was handed
 * out before.  A forked process fills its own pool.
 *
 * A UUID of version 7 has 48 bits of Unix milliseconds and 74 bits that the
 * implementation chooses.  Here it is made from a snowflake ID: the start of
 * the ID's tick, followed by its sequence.  A tick has at least a millisecond,
 * so a later tick has a later millisecond.  IDs of a server are strictly
 * increasing across all backends, whatever happens, and therefore these UUIDs
 * are, too, as long as the scheme is the same.  (That is the fixed-length
 * counter of RFC 9562, section 6.2.)  The remaining bits are random.  The worker
 * ID is not included: the random bits distinguish UUIDs of different servers.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/keys/uuid.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "base/scheme.h"
#include "generator/generator.h"
#include "generator/loaded.h"
#include "shared/compat.h"

#define POOL_SIZE	4096

/* Widths of version 7. */
#define MS_BITS		48
#define A_BITS		12			/* rand_a, below the version */
#define B_BITS		62			/* rand_b, below the variant */

/* Version and variant, in the upper and the lower half of a UUID. */
#define VERSION_7	UINT64CONST(0x7000)
#define VARIANT		UINT64CONST(0x8000000000000000)

/* Versions 1 and 6 count from the Gregorian calendar's first day. */
#define GREGORIAN_EPOCH_JDATE	2299161 /* 1582-10-15 */

static uint8 pool[POOL_SIZE];
static int	pool_used = POOL_SIZE;
static int	pool_pid = 0;

PG_FUNCTION_INFO_V1(uuid_v4);
PG_FUNCTION_INFO_V1(uuid_v7);
PG_FUNCTION_INFO_V1(uuid_v7_at);
PG_FUNCTION_INFO_V1(uuid_timestamp);
PG_FUNCTION_INFO_V1(uuid_lower_bound);

/*
 * Take bytes from the pool.
 */
static void
take_random(void *bytes, int length)
{
	if (pool_used > POOL_SIZE - length || pool_pid != MyProcPid)
	{
		pool_used = POOL_SIZE;	/* in case of an error */
		if (!pg_strong_random(pool, POOL_SIZE))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate random values")));
		pool_used = 0;
		pool_pid = MyProcPid;
	}

	memcpy(bytes, &pool[pool_used], length);
	explicit_bzero(&pool[pool_used], length);
	pool_used += length;
}

/*
 * Fail if Unix milliseconds do not fit version 7.
 */
static uint64
check_ms(int64 ms)
{
	if (unlikely(ms >> MS_BITS != 0))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time is out of range for version 7 UUIDs"),
				 errdetail("The timestamp of such a UUID is between the years 1970 and 10889.")));
	return (uint64) ms;
}

/*
 * The Unix microseconds of a time, which must not be before 1970.
 */
static int64
unix_us(TimestampTz timestamp)
{
	int64		us;

	if (pg_add_s64_overflow(timestamp,
							(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY,
							&us) || us < 0)
		check_ms(-1);
	return us;
}

/*
 * The Unix milliseconds in which the tick of an ID starts.
 *
 * The generator's ticks are not before 2000, whatever the epoch, so this is
 * never before 1970.
 */
static uint64
tick_ms(const SnowflakeScheme *scheme, int64 id)
{
	int64		tick = snowflake_field_get(scheme, SNOWFLAKE_TIMESTAMP, id);
	int64		tick_us = scheme->tick_us;

	/* In two steps, as a tick need not be whole milliseconds. */
	int64		ms = scheme->epoch_ms + tick * (tick_us / 1000) +
		tick * (tick_us % 1000) / 1000;

	return check_ms(ms);
}

/*
 * Write a UUID of version 7: the milliseconds, and the bits of rand_a and
 * rand_b.
 */
static void
write_version_7(pg_uuid_t *uuid, uint64 ms, uint64 a, uint64 b)
{
	uint64		half = pg_hton64(ms << (64 - MS_BITS) | VERSION_7 | a);

	memcpy(uuid->data, &half, sizeof(half));
	half = pg_hton64(VARIANT | b);
	memcpy(&uuid->data[sizeof(half)], &half, sizeof(half));
}

/*
 * uuid_v4() returns uuid
 */
Datum
uuid_v4(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	take_random(uuid->data, UUID_LEN);
	uuid->data[6] = (uuid->data[6] & 0x0f) | 0x40;	/* version 4 */
	uuid->data[8] = (uuid->data[8] & 0x3f) | 0x80;	/* variant of RFC 9562 */

	PG_RETURN_UUID_P(uuid);
}

/*
 * uuid_v7() returns uuid
 */
Datum
uuid_v7(PG_FUNCTION_ARGS)
{
	const SnowflakeScheme *scheme = snowflake_server_scheme();
	int64		id = snowflake_generate();
	uint64		ms = tick_ms(scheme, id);
	uint64		sequence = snowflake_field_get(scheme, SNOWFLAKE_SEQUENCE, id);
	int			width = scheme->width[SNOWFLAKE_SEQUENCE];
	int			in_a = Min(width, A_BITS);
	int			in_b = width - in_a;
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));
	uint16		random_a;
	uint64		random_b;

	take_random(&uuid->data[6], UUID_LEN - 6);
	memcpy(&random_a, &uuid->data[6], sizeof(random_a));
	memcpy(&random_b, &uuid->data[8], sizeof(random_b));

	write_version_7(uuid, ms,
					sequence >> in_b << (A_BITS - in_a) |
					(random_a & ((1 << (A_BITS - in_a)) - 1)),
					(sequence & ((UINT64CONST(1) << in_b) - 1)) << (B_BITS - in_b) |
					(random_b & ((UINT64CONST(1) << (B_BITS - in_b)) - 1)));

	PG_RETURN_UUID_P(uuid);
}

/*
 * uuid_v7(timestamptz) returns uuid
 *
 * For rows of the past.  What is left of the time below a millisecond is in
 * rand_a (RFC 9562, section 6.2, method 3), so that they sort by microseconds.
 */
Datum
uuid_v7_at(PG_FUNCTION_ARGS)
{
	int64		us = unix_us(PG_GETARG_TIMESTAMPTZ(0));
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));
	uint64		random;

	take_random(&random, sizeof(random));
	write_version_7(uuid, check_ms(us / 1000), (us % 1000 << A_BITS) / 1000,
					random >> (64 - B_BITS));

	PG_RETURN_UUID_P(uuid);
}

/*
 * uuid_timestamp(uuid) returns timestamptz
 *
 * Versions 1 and 6 have the same 60 bits, in steps of 100 ns, in another
 * order.
 */
Datum
uuid_timestamp(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *uuid = PG_GETARG_UUID_P(0);
	uint64		half;
	uint64		steps;

	/* Other variants do not have these versions. */
	if ((uuid->data[8] & 0xc0) != 0x80)
		PG_RETURN_NULL();

	memcpy(&half, uuid->data, sizeof(half));
	half = pg_ntoh64(half);
	switch (uuid->data[6] >> 4)
	{
		case 1:
			steps = (half & 0xfff) << 48 | (half & 0xffff0000) << 16 | half >> 32;
			break;
		case 6:
			steps = half >> 16 << 12 | (half & 0xfff);
			break;
		case 7:
			PG_RETURN_TIMESTAMPTZ((int64) (half >> (64 - MS_BITS)) * 1000 -
								  (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) *
								  USECS_PER_DAY);
		default:
			PG_RETURN_NULL();
	}
	PG_RETURN_TIMESTAMPTZ((int64) (steps / 10) -
						  (POSTGRES_EPOCH_JDATE - GREGORIAN_EPOCH_JDATE) *
						  USECS_PER_DAY);
}

/*
 * uuid_lower_bound(timestamptz) returns uuid
 *
 * The smallest UUID of version 7 in the first millisecond that does not start
 * before the time.
 */
Datum
uuid_lower_bound(PG_FUNCTION_ARGS)
{
	int64		us = unix_us(PG_GETARG_TIMESTAMPTZ(0));
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	write_version_7(uuid, check_ms(us / 1000 + (us % 1000 != 0 ? 1 : 0)), 0, 0);
	PG_RETURN_UUID_P(uuid);
}
