/*-------------------------------------------------------------------------
 *
 * uuid.c
 *	  Random UUIDs, version 4 of RFC 9562.
 *
 * Most of the cost of a random UUID is that of asking for random bytes: a
 * system call or a run of OpenSSL's generator, for 16 bytes as for 4096.  So
 * each process asks for many at once and keeps them in a pool.  Every byte is
 * used once, and wiped as it is used, so that no memory tells a UUID that was
 * handed out before.  A process that was forked off one with a pool fills its
 * own.
 *
 * src/uuid.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/uuid.h"

/* A multiple of UUID_LEN. */
#define POOL_SIZE	4096

static uint8 pool[POOL_SIZE];
static int	pool_used = POOL_SIZE;
static int	pool_pid = 0;

PG_FUNCTION_INFO_V1(uuid_v4);

Datum
uuid_v4(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	if (pool_used == POOL_SIZE || pool_pid != MyProcPid)
	{
		pool_used = POOL_SIZE;	/* in case of an error */
		if (!pg_strong_random(pool, POOL_SIZE))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate random values")));
		pool_used = 0;
		pool_pid = MyProcPid;
	}

	memcpy(uuid->data, &pool[pool_used], UUID_LEN);
	explicit_bzero(&pool[pool_used], UUID_LEN);
	pool_used += UUID_LEN;

	uuid->data[6] = (uuid->data[6] & 0x0f) | 0x40;	/* version 4 */
	uuid->data[8] = (uuid->data[8] & 0x3f) | 0x80;	/* variant of RFC 9562 */

	PG_RETURN_UUID_P(uuid);
}
