/*-------------------------------------------------------------------------
 *
 * unused.c
 *	  Which sequences that got their kind by the setting nobody has used.
 *
 * Nothing of a sequence that is not local says whether it was used, as its values come
 * from elsewhere.  So new ones are noted in shared memory until a session is about to
 * use them, which has locked them like a change of kind does.  There is room for some: one that
 * is not noted, as after a restart, counts as used.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/unused.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "sequences/unused.h"

#define MAX_UNUSED	512

/* A sequence and its database, in the place of its OID; the last one that came there. */
static pg_atomic_uint64 *unused = NULL;

static uint64
key_of(Oid relid)
{
	return (uint64) MyDatabaseId << 32 | relid;
}

void
snowflake_note_unused(Oid relid)
{
	if (unused != NULL)
		pg_atomic_write_u64(&unused[relid % MAX_UNUSED], key_of(relid));
}

/*
 * The caller is about to use a sequence.
 */
void
snowflake_note_used(Oid relid)
{
	uint64		key = key_of(relid);

	if (unused != NULL)
		(void) pg_atomic_compare_exchange_u64(&unused[relid % MAX_UNUSED], &key, 0);
}

/*
 * Has nobody used a sequence?  If the caller has not locked it, somebody can do so now.
 */
bool
snowflake_is_noted_unused(Oid relid)
{
	return unused != NULL &&
		pg_atomic_read_u64(&unused[relid % MAX_UNUSED]) == key_of(relid);
}

void
snowflake_request_unused(void)
{
	RequestAddinShmemSpace(MAX_UNUSED * sizeof(pg_atomic_uint64));
}

void
snowflake_attach_unused(void)
{
	bool		found;

	unused = ShmemInitStruct("snowflake unused sequences",
							 MAX_UNUSED * sizeof(pg_atomic_uint64), &found);
	for (int i = 0; i < MAX_UNUSED && !found; i++)
		pg_atomic_init_u64(&unused[i], 0);
}
