/*-------------------------------------------------------------------------
 *
 * ledger.c
 *	  The ledger of script/torture: all IDs that any client received.
 *
 * IDs are kept as runs: a first ID, how many follow each other from there on,
 * and the life-line of a server that made them.  A run is inside of one tick of
 * one worker ID, so that it tells who used that.  IDs come in batches, which
 * are sorted and merged into the runs.  As the numbers of a tick are handed out
 * one after another, whoever receives them, most ticks are one run of 16 bytes.
 *
 * It is bounded: a batch has room for so many runs, and what is in the ledger can
 * be forgotten where all IDs to come have to be above it: an ID that is not is
 * a fall then, which a duplicate would be as well.
 *
 * A life-line is what one server makes from one point on, as far as its IDs
 * have to rise.  Those of a client have to be above the ones that it received
 * before, and above all that any client of the life-line received before
 * that client began.
 *
 * Commands come on standard input, one a line, and each is answered by one line:
 *
 *	begin SHIFT BITS FIRST LAST		forget everything; the worker ID's place in
 *									IDs, and which there may be (0 0: any)
 *	line L LAST						a new life-line, whose IDs are above LAST
 *	client C L FILE					a client of L, that writes IDs into a file
 *	close C							read the rest of its file, and forget it
 *	id L ID							one more ID of L
 *	take							read on in all files, and tell how it stands:
 *									ids duplicates falls shared foreign workers runs
 *	last L							the greatest ID of L
 *	forget							all IDs to come are above those so far
 *
 * Lines that begin with "!" come before the answer and tell what is wrong, a
 * few of each kind.
 *
 *	duplicates	IDs received twice
 *	falls		IDs that did not rise
 *	shared		IDs in a tick of a worker ID that another life-line used: not a
 *				duplicate yet, but it could have been one
 *	foreign		IDs of a worker ID that there may not be
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * test/ledger.c
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINES		65536
#define MAX_CLIENTS		4096
#define MAX_WORKERS		65536
#define BATCH_IDS		(4 * 1024 * 1024)
#define TOLD_OF_EACH	5

typedef struct Run
{
	uint64_t	first;
	uint32_t	count;
	uint32_t	line;
} Run;

typedef struct Client
{
	bool		open;
	int			line;
	uint64_t	last;
	long		offset;
	char		file[1024];
} Client;

static Run *runs;
static size_t nruns;
static Run *batch;
static size_t nbatch;
static Run *merged;
static size_t merged_room;

static Client clients[MAX_CLIENTS];
static uint64_t last_of[MAX_LINES];
static bool used[MAX_WORKERS];

static int	shift;
static int	bits;
static int	first_worker;
static int	last_worker;
static uint64_t forgotten;		/* runs below this are not here any more */

static uint64_t ids;
static uint64_t duplicates;
static uint64_t falls;
static uint64_t shared;
static uint64_t foreign;
static int	workers;

static void
fail(const char *what)
{
	perror(what);
	exit(2);
}

static void *
get_memory(void *old, size_t count)
{
	void	   *memory = realloc(old, (count > 0 ? count : 1) * sizeof(Run));

	if (memory == NULL)
		fail("realloc");
	return memory;
}

static uint64_t
worker_of(uint64_t id)
{
	return (id >> shift) & ((UINT64_C(1) << bits) - 1);
}

static void
__attribute__((format(printf, 2, 3)))
tell(uint64_t n, const char *format,...)
{
	va_list		args;

	if (n > TOLD_OF_EACH)
		return;
	va_start(args, format);
	printf("! ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

static int
compare_runs(const void *a, const void *b)
{
	const Run  *x = a;
	const Run  *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/*
 * Put a run at the end of those that are merged so far; it does not begin below
 * the last one.
 */
static void
append_run(Run run)
{
	Run		   *last = nruns > 0 ? &merged[nruns - 1] : NULL;
	bool		same_tick;
	uint64_t	end;

	if (last == NULL)
	{
		merged[nruns++] = run;
		return;
	}
	same_tick = last->first >> shift == run.first >> shift;
	if (same_tick && last->line != run.line)
		tell(++shared, "shared: worker ID %" PRIu64 ", tick %" PRIu64 ", by life-lines %u (from %" PRIu64 " on) and %u (from %" PRIu64 " on)",
			 worker_of(run.first), run.first >> (shift + bits), last->line,
			 last->first, run.line, run.first);
	end = last->first + last->count;
	if (run.first < end)
	{
		uint64_t	again = end - run.first;

		if (again > run.count)
			again = run.count;
		duplicates += again;
		tell(duplicates - again + 1, "duplicate: ID %" PRIu64 " and the %" PRIu64 " after it, worker ID %" PRIu64 ", tick %" PRIu64 ", by life-lines %u and %u",
			 run.first, again - 1, worker_of(run.first),
			 run.first >> (shift + bits), last->line, run.line);
		run.first += again;
		run.count -= again;
		if (run.count == 0)
			return;
	}
	if (same_tick && last->line == run.line && run.first == end)
		last->count += run.count;
	else
		merged[nruns++] = run;
}

/*
 * Merge the batch into the runs.
 */
static void
take_batch(void)
{
	size_t		nold = nruns;
	size_t		i = 0;
	size_t		j = 0;
	Run		   *taken;

	if (nbatch == 0)
		return;
	qsort(batch, nbatch, sizeof(Run), compare_runs);
	if (nold + nbatch > merged_room)
	{
		merged_room = nold + nbatch + BATCH_IDS;
		merged = get_memory(merged, merged_room);
	}
	nruns = 0;
	while (i < nold || j < nbatch)
	{
		if (j == nbatch || (i < nold && runs[i].first <= batch[j].first))
			append_run(runs[i++]);
		else
			append_run(batch[j++]);
	}
	nbatch = 0;

	/* What was merged is what there is now. */
	taken = merged;
	merged = get_memory(runs, merged_room);
	runs = taken;
}

static void
add_id(int line, uint64_t id)
{
	uint64_t	worker = worker_of(id);
	Run		   *last = nbatch > 0 ? &batch[nbatch - 1] : NULL;

	ids++;
	if (!used[worker])
	{
		used[worker] = true;
		workers++;
	}
	if (last_worker > 0 &&
		(worker < (uint64_t) first_worker || worker > (uint64_t) last_worker))
		tell(++foreign, "foreign: ID %" PRIu64 " has worker ID %" PRIu64 ", by life-line %d",
			 id, worker, line);
	if (id < forgotten)
	{
		tell(++falls, "fall: ID %" PRIu64 " of life-line %d is of long ago", id,
			 line);
		return;
	}
	if (last != NULL && (int) last->line == line &&
		last->first + last->count == id && last->first >> shift == id >> shift)
	{
		last->count++;
		return;
	}
	if (nbatch == BATCH_IDS)
		take_batch();
	last = &batch[nbatch++];
	last->first = id;
	last->count = 1;
	last->line = (uint32_t) line;
}

/*
 * Read the lines that a client's file has by now.
 */
static void
read_client(Client *client)
{
	FILE	   *file = fopen(client->file, "r");
	char		line[256];

	if (file == NULL)
		return;
	if (fseek(file, client->offset, SEEK_SET) != 0)
		fail(client->file);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		size_t		length = strlen(line);
		uint64_t	id;

		/* The last one may be cut off in the middle. */
		if (line[length - 1] != '\n')
			break;
		client->offset += (long) length;
		if (line[0] < '0' || line[0] > '9')
			continue;
		id = strtoull(line, NULL, 10);
		if (id <= client->last)
			tell(++falls, "fall: ID %" PRIu64 " after %" PRIu64 " of life-line %d, in %s",
				 id, client->last, client->line, client->file);
		client->last = id;
		add_id(client->line, id);
	}
	fclose(file);
}

/*
 * Whoever begins from now on receives IDs above these.
 */
static void
note_last(const Client *client)
{
	if (client->last > last_of[client->line])
		last_of[client->line] = client->last;
}

static void
take(void)
{
	for (int c = 0; c < MAX_CLIENTS; c++)
	{
		if (clients[c].open)
		{
			read_client(&clients[c]);
			note_last(&clients[c]);
		}
	}
	take_batch();
}

static void
begin(void)
{
	nruns = nbatch = 0;
	ids = duplicates = falls = shared = foreign = forgotten = 0;
	workers = 0;
	memset(used, 0, sizeof(used));
	memset(last_of, 0, sizeof(last_of));
	for (int c = 0; c < MAX_CLIENTS; c++)
		clients[c].open = false;
}

/*
 * Carry out a command.  Returns false if it is none.
 */
static bool
carry_out(const char *command)
{
	int			c;
	int			l;
	uint64_t	id;
	char		file[1024];

	if (sscanf(command, "begin %d %d %d %d", &shift, &bits, &first_worker, &last_worker) == 4 &&
		shift >= 0 && bits >= 0 && bits <= 16)
		begin();
	else if (sscanf(command, "line %d %" SCNu64, &l, &id) == 2 &&
			 l >= 0 && l < MAX_LINES)
		last_of[l] = id;
	else if (sscanf(command, "client %d %d %1023s", &c, &l, file) == 3 &&
			 c >= 0 && c < MAX_CLIENTS && l >= 0 && l < MAX_LINES)
	{
		clients[c].open = true;
		clients[c].line = l;
		clients[c].last = last_of[l];
		clients[c].offset = 0;
		strcpy(clients[c].file, file);
	}
	else if (sscanf(command, "close %d", &c) == 1 &&
			 c >= 0 && c < MAX_CLIENTS && clients[c].open)
	{
		read_client(&clients[c]);
		note_last(&clients[c]);
		clients[c].open = false;
	}
	else if (sscanf(command, "id %d %" SCNu64, &l, &id) == 2 &&
			 l >= 0 && l < MAX_LINES)
	{
		if (id <= last_of[l])
			tell(++falls, "fall: ID %" PRIu64 " after %" PRIu64 " of life-line %d",
				 id, last_of[l], l);
		else
			last_of[l] = id;
		add_id(l, id);
	}
	else if (sscanf(command, "last %d", &l) == 1 && l >= 0 && l < MAX_LINES)
	{
		printf("%" PRIu64 "\n", last_of[l]);
		return true;
	}
	else if (strncmp(command, "take", 4) == 0)
		take();
	else if (strncmp(command, "forget", 6) == 0)
	{
		take();
		if (nruns > 0)
			forgotten = runs[nruns - 1].first + runs[nruns - 1].count;
		nruns = 0;
	}
	else
		return false;
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %zu\n",
		   ids, duplicates, falls, shared, foreign, workers, nruns);
	return true;
}

int
main(void)
{
	char		command[2048];

	batch = get_memory(NULL, BATCH_IDS);
	runs = get_memory(NULL, 0);
	while (fgets(command, sizeof(command), stdin) != NULL)
	{
		if (!carry_out(command))
		{
			fprintf(stderr, "no command: %s", command);
			return 2;
		}
		fflush(stdout);
	}
	return 0;
}
