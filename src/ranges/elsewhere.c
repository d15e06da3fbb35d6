/*-------------------------------------------------------------------------
 *
 * elsewhere.c
 *	  Names of which other servers are granted numbers.
 *
 * A sequence that is local here, and of kind range on other servers, returns their numbers.
 * The worker asks the registry for the names now and then, and keeps a hash of each
 * in shared memory: as many as there is room for.  Nobody locks it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/ranges/elsewhere.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/lsyscache.h"

#include "generator/settings.h"
#include "ranges/elsewhere.h"
#include "ranges/slots.h"

/* How far a hash can be from its place. */
#define MAX_DISTANCE	16

/* The lowest bit of a hash says that it was logged. */
#define LOGGED			UINT64CONST(1)

static pg_atomic_uint64 *elsewhere = NULL;

/*
 * The hash of a name in a database, which is never 0, and not logged.
 */
static uint64
hash_name(const char *database, const char *name)
{
	uint64		hash = hash_bytes_extended((const unsigned char *) database, strlen(database), 0);

	hash = hash_bytes_extended((const unsigned char *) name, strlen(name), hash);
	return Max(hash & ~LOGGED, 2);
}

static int
place_of(uint64 hash, int distance)
{
	return (int) ((hash / 2 + distance) % SNOWFLAKE_ELSEWHERE);
}

/*
 * Add a name to a set, if it has room.
 */
void
snowflake_add_elsewhere(uint64 *set, const char *database, const char *name)
{
	uint64		hash = hash_name(database, name);

	for (int i = 0; i < MAX_DISTANCE; i++)
	{
		uint64	   *place = &set[place_of(hash, i)];

		if (*place == 0 || *place == hash)
		{
			*place = hash;
			return;
		}
	}
}

/*
 * Where sessions know a hash, or NULL.
 */
static pg_atomic_uint64 *
find_hash(uint64 hash)
{
	for (int i = 0; i < MAX_DISTANCE; i++)
	{
		pg_atomic_uint64 *place = &elsewhere[place_of(hash, i)];

		if ((pg_atomic_read_u64(place) & ~LOGGED) == hash)
			return place;
	}
	return NULL;
}

/*
 * Have all sessions know this set.  What was logged is not logged again.
 */
void
snowflake_set_elsewhere(uint64 *set)
{
	for (int i = 0; i < SNOWFLAKE_ELSEWHERE; i++)
	{
		pg_atomic_uint64 *place = set[i] != 0 ? find_hash(set[i]) : NULL;

		if (place != NULL)
			set[i] = pg_atomic_read_u64(place);
	}
	for (int i = 0; i < SNOWFLAKE_ELSEWHERE; i++)
		pg_atomic_write_u64(&elsewhere[i], set[i]);
}

/*
 * Are other servers granted numbers of a name in this database?  It is to be logged once,
 * which is now if the caller does so.
 */
bool
snowflake_is_elsewhere(const char *name, bool *first)
{
	pg_atomic_uint64 *place;

	name = elsewhere != NULL ? snowflake_utf8_name(name) : NULL;
	if (name == NULL)
		return false;
	place = find_hash(hash_name(get_database_name(MyDatabaseId), name));
	if (place != NULL && first != NULL)
		*first = (pg_atomic_fetch_or_u64(place, LOGGED) & LOGGED) == 0;
	return place != NULL;
}

void
snowflake_request_elsewhere(void)
{
	if (snowflake_has_registry)
		RequestAddinShmemSpace(SNOWFLAKE_ELSEWHERE * sizeof(pg_atomic_uint64));
}

void
snowflake_attach_elsewhere(void)
{
	bool		found;

	if (!snowflake_has_registry)
		return;
	elsewhere = ShmemInitStruct("snowflake names elsewhere",
								SNOWFLAKE_ELSEWHERE * sizeof(pg_atomic_uint64), &found);
	for (int i = 0; i < SNOWFLAKE_ELSEWHERE && !found; i++)
		pg_atomic_init_u64(&elsewhere[i], 0);
}
