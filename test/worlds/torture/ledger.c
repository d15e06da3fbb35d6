/*-------------------------------------------------------------------------
 *
 * ledger.c
 *	  The ledger of script/tests/torture: all IDs that any client received.
 *
 * IDs are kept as runs: a first ID, how many follow each other from there on,
 * and the life-line of a server that made them.  A run is inside of one tick of
 * one worker ID, so that it tells who used that.  IDs come in batches, which
 * are sorted and merged into the runs.  As the numbers of a tick are handed out
 * one after another, whoever receives them, most ticks are one run of 16 bytes.
 *
 * Memory is bounded: a batch has room for BATCH_RUNS, and the ledger for MAX_RUNS;
 * more than that ends the program with an error.  Runs can be forgotten where all
 * IDs to come have to be above them: an ID that is not is a fall then.  The
 * greatest KEPT_RUNS of them stay, so that such an ID is found to be a duplicate,
 * too, if it is one of these.
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
 *	client C L FILE					a client of L, that writes IDs into a file: a
 *									line is an ID, or the first one and the count
 *									of IDs that follow each other
 *	close C							read the rest of its file, and forget it
 *	id L ID							one more ID of L
 *	take							read on in all files, and tell how it stands:
 *									ids duplicates falls shared foreign workers runs
 *									most
 *	first L							the least ID of L that a client received, or 0
 *	last L							the greatest ID of L, as far as it was taken
 *	forget							all IDs to come are above those so far
 *
 * With the argument "pack" the program is a filter instead: it reads IDs, one a
 * line, and writes them as runs.  What it has read is always written before it
 * waits for more.
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
 * test/worlds/torture/ledger.c
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINES		65536
#define MAX_CLIENTS		4096
#define MAX_WORKERS		65536
#define BATCH_RUNS		((size_t) 4 * 1024 * 1024)
#define MAX_RUNS		((size_t) 32 * 1024 * 1024)
#define KEPT_RUNS		((size_t) 1024 * 1024)
#define FILE_NAME		1024
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
	char		file[FILE_NAME];
} Client;

static Run *runs;
static size_t nruns;
static Run	batch[BATCH_RUNS];
static size_t nbatch;
static Run *merged;
static size_t merged_room;
static size_t runs_room;
static size_t most_runs;

static Client clients[MAX_CLIENTS];
static uint64_t first_of[MAX_LINES];
static uint64_t last_of[MAX_LINES];
static bool used[MAX_WORKERS];

static int	shift;
static int	bits;
static int	first_worker;
static int	last_worker;
static uint64_t forgotten;		/* all IDs to come are at or above this */

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
	Run		   *last;
	bool		same_tick;
	uint64_t	end;

	if (nruns == 0)
	{
		merged[nruns++] = run;
		return;
	}
	last = &merged[nruns - 1];
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
	size_t		room;
	Run		   *taken;

	if (nbatch == 0)
		return;
	qsort(batch, nbatch, sizeof(Run), compare_runs);
	if (nold + nbatch > merged_room)
	{
		merged_room = nold + nbatch + BATCH_RUNS;
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
	merged = runs;
	runs = taken;
	room = merged_room;
	merged_room = runs_room;
	runs_room = room;

	if (nruns > most_runs)
		most_runs = nruns;
	if (nruns > MAX_RUNS)
	{
		(void) fprintf(stderr, "more than %zu runs\n", MAX_RUNS);
		exit(2);
	}
}

/*
 * Take up the part of a run that is in one tick.
 */
static void
add_to_batch(int line, uint64_t first, uint32_t count)
{
	uint64_t	worker = worker_of(first);
	Run		   *last = nbatch > 0 ? &batch[nbatch - 1] : NULL;

	if (!used[worker])
	{
		used[worker] = true;
		workers++;
	}
	if (last_worker > 0 &&
		(worker < (uint64_t) first_worker || worker > (uint64_t) last_worker))
	{
		foreign += count;
		tell(foreign - count + 1, "foreign: ID %" PRIu64 " has worker ID %" PRIu64 ", by life-line %d",
			 first, worker, line);
	}
	if (first < forgotten)
	{
		falls += count;
		tell(falls - count + 1, "fall: ID %" PRIu64 " of life-line %d is of long ago",
			 first, line);
		if (nruns == 0 || first < runs[0].first)
			return;
	}
	if (last != NULL && (int) last->line == line &&
		last->first + last->count == first &&
		last->first >> shift == first >> shift)
	{
		last->count += count;
		return;
	}
	if (nbatch == BATCH_RUNS)
		take_batch();
	last = &batch[nbatch++];
	last->first = first;
	last->count = count;
	last->line = (uint32_t) line;
}

static void
add_run(int line, uint64_t first, uint64_t count)
{
	ids += count;
	if (first_of[line] == 0 || first < first_of[line])
		first_of[line] = first;
	while (count > 0)
	{
		uint64_t	left = (UINT64_C(1) << shift) -
			(first & ((UINT64_C(1) << shift) - 1));
		uint32_t	part = (uint32_t) (count < left ? count : left);

		add_to_batch(line, first, part);
		first += part;
		count -= part;
	}
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
		uint64_t	count;
		char	   *rest;

		/* The last one may be cut off in the middle. */
		if (line[length - 1] != '\n')
			break;
		client->offset += (long) length;
		if (line[0] < '0' || line[0] > '9')
			continue;
		id = strtoull(line, &rest, 10);
		count = *rest == ' ' ? strtoull(rest, NULL, 10) : 1;
		if (count == 0)
			continue;
		if (id <= client->last && id >= forgotten)
			tell(++falls, "fall: ID %" PRIu64 " after %" PRIu64 " of life-line %d, in %s",
				 id, client->last, client->line, client->file);
		client->last = id + count - 1;
		add_run(client->line, id, count);
	}
	(void) fclose(file);
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
	ids = duplicates = falls = shared = foreign = forgotten = most_runs = 0;
	workers = 0;
	memset(used, 0, sizeof(used));
	memset(first_of, 0, sizeof(first_of));
	memset(last_of, 0, sizeof(last_of));
	for (int c = 0; c < MAX_CLIENTS; c++)
		clients[c].open = false;
}

/*
 * Is this command of that name, with so many numbers after it?  A file may come
 * last.
 */
static bool
is_command(const char *command, const char *name, int n, uint64_t numbers[],
		   char *file)
{
	size_t		length = strlen(name);
	char	   *rest;

	if (strncmp(command, name, length) != 0)
		return false;
	command += length;
	for (int i = 0; i < n; i++)
	{
		if (command[0] != ' ' || command[1] < '0' || command[1] > '9')
			return false;
		numbers[i] = strtoull(command, &rest, 10);
		command = rest;
	}
	if (file != NULL)
	{
		size_t		end = strcspn(command, "\n");

		if (command[0] != ' ' || end < 2 || end > FILE_NAME)
			return false;
		memcpy(file, command + 1, end - 1);
		file[end - 1] = '\0';
		command += end;
	}
	return command[0] == '\n';
}

/*
 * Carry out a command.  Returns false if it is none.
 */
static bool
carry_out(const char *command)
{
	uint64_t	n[4];
	char		file[FILE_NAME];

	if (is_command(command, "begin", 4, n, NULL) &&
		n[0] < 64 && n[1] <= 16 && n[2] <= n[3] && n[3] < MAX_WORKERS)
	{
		shift = (int) n[0];
		bits = (int) n[1];
		first_worker = (int) n[2];
		last_worker = (int) n[3];
		begin();
	}
	else if (is_command(command, "line", 2, n, NULL) && n[0] < MAX_LINES)
		last_of[n[0]] = n[1];
	else if (is_command(command, "client", 2, n, file) &&
			 n[0] < MAX_CLIENTS && n[1] < MAX_LINES)
	{
		Client	   *client = &clients[n[0]];

		client->open = true;
		client->line = (int) n[1];
		client->last = last_of[n[1]];
		client->offset = 0;
		memcpy(client->file, file, sizeof(file));
	}
	else if (is_command(command, "close", 1, n, NULL) &&
			 n[0] < MAX_CLIENTS && clients[n[0]].open)
	{
		read_client(&clients[n[0]]);
		note_last(&clients[n[0]]);
		clients[n[0]].open = false;
	}
	else if (is_command(command, "id", 2, n, NULL) && n[0] < MAX_LINES)
	{
		uint64_t	line = n[0];
		uint64_t	id = n[1];

		if (id <= last_of[line] && id >= forgotten)
			tell(++falls, "fall: ID %" PRIu64 " after %" PRIu64 " of life-line %" PRIu64,
				 id, last_of[line], line);
		if (id > last_of[line])
			last_of[line] = id;
		add_run((int) line, id, 1);
	}
	else if (is_command(command, "first", 1, n, NULL) && n[0] < MAX_LINES)
	{
		printf("%" PRIu64 "\n", first_of[n[0]]);
		return true;
	}
	else if (is_command(command, "last", 1, n, NULL) && n[0] < MAX_LINES)
	{
		printf("%" PRIu64 "\n", last_of[n[0]]);
		return true;
	}
	else if (is_command(command, "take", 0, n, NULL))
		take();
	else if (is_command(command, "forget", 0, n, NULL))
	{
		take();
		if (nruns > 0)
			forgotten = runs[nruns - 1].first + runs[nruns - 1].count;
		if (nruns > KEPT_RUNS)
		{
			memmove(runs, runs + nruns - KEPT_RUNS, KEPT_RUNS * sizeof(Run));
			nruns = KEPT_RUNS;
		}
	}
	else
		return false;
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %zu %zu\n",
		   ids, duplicates, falls, shared, foreign, workers, nruns, most_runs);
	return true;
}

/*
 * The filter.
 */
static char packed[1 << 20];
static size_t npacked;

static void
write_packed(void)
{
	size_t		done = 0;

	while (done < npacked)
	{
		ssize_t		n = write(STDOUT_FILENO, packed + done, npacked - done);

		if (n < 0)
			fail("write");
		done += (size_t) n;
	}
	npacked = 0;
}

static void
pack_run(uint64_t first, uint64_t count)
{
	if (count == 0)
		return;
	if (npacked + 64 > sizeof(packed))
		write_packed();
	npacked += (size_t) snprintf(packed + npacked, 64, "%" PRIu64 " %" PRIu64 "\n", first, count);
}

static int
pack(void)
{
	static char buffer[1 << 18];
	uint64_t	first = 0;
	uint64_t	count = 0;
	uint64_t	id = 0;
	bool		digits = false;
	ssize_t		n;

	while ((n = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0)
	{
		for (ssize_t i = 0; i < n; i++)
		{
			if (buffer[i] >= '0' && buffer[i] <= '9')
			{
				id = 10 * id + (uint64_t) (buffer[i] - '0');
				digits = true;
			}
			else if (digits)
			{
				if (count > 0 && id == first + count)
					count++;
				else
				{
					pack_run(first, count);
					first = id;
					count = 1;
				}
				id = 0;
				digits = false;
			}
		}
		pack_run(first, count);
		count = 0;
		write_packed();
	}
	return n < 0;
}

int
main(int argc, char **argv)
{
	char		command[2048];

	if (argc == 2 && strcmp(argv[1], "pack") == 0)
		return pack();

	runs = get_memory(NULL, 0);
	while (fgets(command, sizeof(command), stdin) != NULL)
	{
		if (!carry_out(command))
		{
			(void) fprintf(stderr, "no command: %s", command);
			return 2;
		}
		(void) fflush(stdout);
	}
	return 0;
}
