/*-------------------------------------------------------------------------
 *
 * chain.c
 *	  The tokens by which the registry knows the holder of ranges.
 *
 * Ranges are in shared memory, and live as long as that does.  A client is one
 * such life: a random identifier, and a chain of random tokens, of which each
 * call adds one.  The registry stores the token of the last call that it
 * committed.  A call names the token of the last answer that arrived, which is
 * the confirmed one, and those of the calls since then, whose answers did not:
 *
 * - If the registry has the confirmed token, this server has all that it was
 *	 granted, and is granted more.
 * - If it has an unconfirmed one, the answer to that call did not arrive, and
 *	 is given again.  So an answer must be confirmed here before anything of it
 *	 is used; otherwise, a worker that ends in between gets the same ranges for
 *	 the second time.
 * - If it has another one, somebody else has called as this client: the machine
 *	 was resumed twice from a snapshot of its memory.  Or more answers in
 *	 succession were lost than there is room for tokens here.  This server then
 *	 gives up its ranges, and is another client.
 *
 * The token of a call is in no list of that call.  Otherwise, of two machines
 * that were resumed when it was drawn but not sent, the second would get the
 * answer to the first.
 *
 * A token is removed if the registry has certainly rolled its call back, and is
 * drawn only when the call can be sent.  A call that arrives late, after a later
 * one, names no token that is stored then, and changes nothing.
 *
 * A server that was killed has ended its client without a word.  So each call says
 * which life it is (ServerLife): the registry then knows that those of the same
 * data directory before it have ended.
 *
 * Only the worker that calls the registry uses what is here, so there is no lock.
 * It is in shared memory for the worker that follows when this one ends.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/chain.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>

#include "access/xlog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"

#include "generator/grant.h"
#include "registry_client/workers/chain.h"
#include "shared/clock.h"

/* Where Linux has the identifier of its start. */
#define BOOT_FILE	"/proc/sys/kernel/random/boot_id"

typedef struct ChainState
{
	bool		has_client;
	RangeChain	chain;			/* without new_token */
	bool		names_known;	/* were the names of the life before asked
								 * for? */
	int64		started;		/* when this memory was initialized */
} ChainState;

static ChainState *shared = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(sizeof(ChainState));
}

static void
startup_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("snowflake range worker", sizeof(ChainState), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(ChainState));
		shared->started = snowflake_steady_clock();
	}
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Have this memory when the server is started.
 */
void
snowflake_keep_chain(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}

/*
 * May the registry know this server as a holder of ranges?
 */
bool
snowflake_has_client(void)
{
	return shared->chain.nconfirmed > 0 || shared->chain.nunconfirmed > 0;
}

/*
 * What identifies this server now.
 */
void
snowflake_get_chain(RangeChain *chain)
{
	if (!shared->has_client)
	{
		snowflake_draw_token(&shared->chain.client);
		shared->has_client = true;
	}
	*chain = shared->chain;
}

/*
 * Prepare a call, right before it is sent: draw its token, which can be the
 * stored one from now on.  If there is no room, the oldest one that is not
 * confirmed is dropped.
 */
void
snowflake_extend_chain(RangeChain *chain)
{
	RangeChain *kept = &shared->chain;

	snowflake_get_chain(chain);
	snowflake_draw_token(&chain->new_token);

	if (kept->nunconfirmed == SNOWFLAKE_MAX_UNCONFIRMED)
	{
		kept->nunconfirmed--;
		memmove(&kept->unconfirmed[0], &kept->unconfirmed[1],
				kept->nunconfirmed * sizeof(pg_uuid_t));
	}
	kept->unconfirmed[kept->nunconfirmed] = chain->new_token;
	kept->nunconfirmed++;
}

/*
 * The registry refused the call and rolled it back: its token is not stored.
 */
void
snowflake_shorten_chain(const RangeChain *chain)
{
	RangeChain *kept = &shared->chain;

	if (kept->nunconfirmed > 0 &&
		memcmp(&kept->unconfirmed[kept->nunconfirmed - 1], &chain->new_token,
			   UUID_LEN) == 0)
		kept->nunconfirmed--;
}

/*
 * The answer to the call has arrived.
 */
void
snowflake_confirm_chain(const RangeChain *chain)
{
	RangeChain *kept = &shared->chain;

	kept->nunconfirmed = 0;
	kept->confirmed = chain->new_token;
	kept->nconfirmed = 1;
}

/*
 * From now on, this server is another client.  It has no ranges.
 */
void
snowflake_begin_chain(void)
{
	memset(&shared->chain, 0, sizeof(RangeChain));
	shared->has_client = shared->names_known = false;
}

/*
 * Are the names known of which this server was granted numbers before?
 */
bool
snowflake_names_are_known(void)
{
	return shared->names_known;
}

void
snowflake_note_names_known(void)
{
	shared->names_known = true;
}

/*
 * Read the identifier of the machine's start.
 */
static bool
read_boot(pg_uuid_t *boot)
{
	FILE	   *file = AllocateFile(BOOT_FILE, "r");
	char		line[64] = "";
	bool		is_read;

	if (file == NULL)
		return false;
	is_read = fgets(line, sizeof(line), file) != NULL &&
		strspn(line, "0123456789abcdef-") == 36 && line[36] == '\n';
	FreeFile(file);
	if (!is_read)
		return false;
	line[36] = '\0';
	*boot = *DatumGetUUIDP(DirectFunctionCall1(uuid_in, CStringGetDatum(line)));
	return true;
}

/*
 * What tells this life of the server from those before.  A copy of the data
 * directory has the system identifier, but another file number, or device, as long
 * as both exist; a copy of the whole machine has another start.
 */
const ServerLife *
snowflake_this_life(void)
{
	static ServerLife life;
	struct stat directory;
	uint64		parts[3];
	uint64		hash[2];

	if (life.started != 0)
		return &life;
	life.boot_is_known = read_boot(&life.boot);
	/* It can be renamed while the server runs, which is where it was started. */
	if (stat(".", &directory) != 0)
		elog(ERROR, "could not stat directory \"%s\": %m", DataDir);
	parts[0] = GetSystemIdentifier();
	parts[1] = directory.st_dev;
	parts[2] = directory.st_ino;
	for (int i = 0; i < 2; i++)
		hash[i] = hash_bytes_extended((unsigned char *) parts, sizeof(parts), i);
	StaticAssertStmt(sizeof(hash) == UUID_LEN, "a hash is as long as a UUID");
	memcpy(life.directory.data, hash, UUID_LEN);
	life.started = shared->started;
	return &life;
}
