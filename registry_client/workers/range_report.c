/*-------------------------------------------------------------------------
 *
 * range_report.c
 *	  What this server was granted, for a registry that needs to know.
 *
 * A registry that has lost commits, or that this server was not granted numbers by,
 * does not know which numbers are in use here.  Two know that:
 *
 * - shared memory, of all that was granted in this life of it, but for slots given up;
 * - all databases, by what their sequences would continue above.  A process can read one of
 *	 them, so this one starts another one for each in turn (report_worker.c), which sends
 *	 what it finds through a queue.
 *
 * That can be less than what was granted if no column has the keys.  The report says so,
 * or that the number is exact.  It also says how many sequences have keys that could not be
 * read, as a table was locked, perhaps: a registry that grants ranges waits for these, one
 * that is stopped does not, or somebody could lock a table for ever.  If a database cannot
 * be read, the report is not complete, and the log says why.  Then, or if the registry still
 * wants one, it is made again after a while.
 *
 * It goes on whenever the worker that makes the calls looks for it, and waits for nothing.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/range_report.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "base/worker.h"
#include "registry_client/workers/range_report.h"
#include "shared/clock.h"
#include "shared/compat.h"

/* How soon a report is made again, unless the registry says that it needs none. */
#define AGAIN_US	USECS_PER_MINUTE

#define QUEUE_SIZE			65536

/* A database that is to be read. */
typedef struct Database
{
	Oid			oid;
	char		name[NAMEDATALEN];
} Database;

/* The process that reads one. */
typedef struct Visit
{
	dsm_segment *segment;		/* or NULL: there is none */
	shm_mq_handle *queue;
	BackgroundWorkerHandle *process;
	bool		is_done;		/* did it send all? */
} Visit;

static bool wanted = false;
static int64 not_before = 0;

/* The report that is made, or NULL. */
static MemoryContext context = NULL;
static List *databases;			/* those that were not read yet */
static Visit visit;
static HTAB *found;				/* of RangeReport, by database and name */
static bool is_complete;

/* When all is found. */
static RangeReport *reports;
static int	nreports;
static int	nreported;
static int	nunread;

/*
 * Does the registry need to know what this server was granted?
 */
void
snowflake_want_report(bool is_wanted)
{
	wanted = is_wanted;
	if (!wanted)
		not_before = 0;
}

/*
 * The registry may be another one, or may have lost the report.
 */
void
snowflake_repeat_report(void)
{
	not_before = Min(not_before, snowflake_steady_clock() + USECS_PER_SEC);
}

/*
 * The databases of this server, also those that take no connections now.
 */
static List *
list_databases(void)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *list = NIL;
	Relation	relation;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	relation = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(relation, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		Database   *database;

		/* Nobody can connect to one of which DROP DATABASE was interrupted. */
		if (form->datconnlimit < -1)
			continue;
		database = MemoryContextAlloc(context, sizeof(Database));
		database->oid = form->oid;
		strlcpy(database->name, NameStr(form->datname), NAMEDATALEN);
		MemoryContextSwitchTo(context);
		list = lappend(list, database);
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	return list;
}

static void
begin_report(void)
{
	HASHCTL		control = {
		.keysize = offsetof(RangeReport, last),
		.entrysize = sizeof(RangeReport)
	};

	context = AllocSetContextCreate(TopMemoryContext, "snowflake report",
									ALLOCSET_DEFAULT_SIZES);
	control.hcxt = context;
	found = hash_create("snowflake report", 128, &control,
						HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	databases = list_databases();
	is_complete = true;
	reports = NULL;
	nreports = nreported = nunread = 0;
}

/*
 * Note what is known of a sequence.  Of several with one name, the greatest number counts.
 */
static void
note_report(const RangeReport *report)
{
	bool		exists;
	RangeReport *entry = hash_search(found, report, HASH_ENTER, &exists);

	if (!exists)
		*entry = *report;
	else
	{
		entry->last = Max(entry->last, report->last);
		entry->granted = Max(entry->granted, report->granted);
		entry->is_exact &= report->is_exact;
		entry->is_unread |= report->is_unread;
	}
}

/*
 * Start the process that reads a database.  Returns false if that is not possible.
 */
static bool
begin_visit(const Database *database)
{
	ResourceOwner owner = CurrentResourceOwner;
	BackgroundWorker worker;
	shm_mq	   *queue;

	/* The segment belongs to no transaction. */
	CurrentResourceOwner = NULL;
	visit.segment = dsm_create(QUEUE_SIZE, 0);
	CurrentResourceOwner = owner;
	visit.is_done = false;
	queue = shm_mq_create(dsm_segment_address(visit.segment), QUEUE_SIZE);
	shm_mq_set_receiver(queue, MyProc);
	snowflake_describe_worker(&worker, "snowflake report", SNOWFLAKE_CLIENT_LIBRARY,
							  "snowflake_report_main");
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_notify_pid = MyProcPid;
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(visit.segment));
	memcpy(worker.bgw_extra, &database->oid, sizeof(Oid));
	if (!RegisterDynamicBackgroundWorker(&worker, &visit.process))
	{
		dsm_detach(visit.segment);
		visit.segment = NULL;
		return false;
	}
	visit.queue = shm_mq_attach(queue, visit.segment, visit.process);
	return true;
}

static void
log_unread(const Database *database, const char *detail)
{
	is_complete = false;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("could not find out which numbers of sequences database \"%s\" has", database->name),
			 errdetail_internal("%s", detail),
			 errhint("The report to the registry is not complete, and is made again in a minute.")));
}

/*
 * Take what was sent.  Returns false if more can come, or the slot of the process, which
 * may be the only one, is not free yet for the next.
 */
static bool
continue_visit(const Database *database)
{
	Size		size;
	void	   *data;
	pid_t		pid;
	shm_mq_result result;

	while ((result = shm_mq_receive(visit.queue, &size, &data, true)) == SHM_MQ_SUCCESS)
	{
		if (size == sizeof(RangeReport))
			note_report(data);
		else
			visit.is_done = true;
	}
	if (result == SHM_MQ_WOULD_BLOCK ||
		GetBackgroundWorkerPid(visit.process, &pid) != BGWH_STOPPED)
		return false;
	dsm_detach(visit.segment);
	visit.segment = NULL;
	if (!visit.is_done)
		log_unread(database, "The background worker that read it has ended, as the server log says.");
	return true;
}

/*
 * Go on with the databases.  Returns true if all were read.
 */
static bool
visit_databases(void)
{
	while (databases != NIL)
	{
		const Database *database = linitial(databases);

		if (visit.segment == NULL && !begin_visit(database))
			log_unread(database, "No slot for a background worker is free: increase \"max_worker_processes\".");
		else if (!continue_visit(database))
			return false;
		databases = list_delete_first(databases);
	}
	return true;
}

/*
 * If slots were given up, memory does not know all that was granted in this life of the
 * server.  Sessions can have numbers of these sequences that no table has.
 */
static bool
doubt_reports(void)
{
	HASH_SEQ_STATUS status;
	RangeReport *entry;

	if (!snowflake_have_slots_forgotten())
		return false;
	hash_seq_init(&status, found);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		entry->is_exact = false;
		entry->is_unread = true;
	}
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("could not find out which numbers sessions of this server have"),
			 errdetail("More range sequences were used than \"snowflake.max_range_sequences\", so the numbers of some were given up."),
			 errhint("A registry that grants ranges waits until this server is restarted.")));
	return true;
}

/*
 * Add what was granted in this life of the server, and have all in an array.  Of what was
 * granted in it, memory knows all; the numbers before that were lower.
 */
static void
list_reports(void)
{
	HASH_SEQ_STATUS status;
	RangeReport *entry;
	RangeReport granted;
	bool		exists;
	bool		is_doubted = doubt_reports();

	for (int i = 0; snowflake_get_granted_here(i, &granted); i++)
	{
		entry = hash_search(found, &granted, granted.is_exact ? HASH_ENTER : HASH_FIND, &exists);
		if (entry == NULL)
			continue;
		granted.last = Max(granted.last, exists ? entry->last : 0);
		granted.granted = Max(granted.granted, exists ? entry->granted : 0);
		granted.is_unread = exists && entry->is_unread && !granted.is_exact;
		granted.is_exact |= exists && entry->is_exact;
		*entry = granted;
	}
	/* One was given up just now. */
	is_complete &= snowflake_have_slots_forgotten() == is_doubted;
	reports = MemoryContextAllocHuge(context, (hash_get_num_entries(found) + 1) *
									 sizeof(RangeReport));
	hash_seq_init(&status, found);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		nunread += entry->is_unread;
		reports[nreports++] = *entry;
	}
}

/*
 * Have a task report the next page, if a report is wanted and ready, and how many sequences
 * of the whole report were not read.
 */
bool
snowflake_get_report(RangeTask *task, int max)
{
	MemoryContext caller;

	if (context == NULL)
	{
		if (!wanted || snowflake_steady_clock() < not_before)
			return false;
		begin_report();
	}
	if (reports == NULL)
	{
		bool		all_read;

		caller = MemoryContextSwitchTo(context);
		all_read = visit_databases();
		MemoryContextSwitchTo(caller);
		if (!all_read)
			return false;
		list_reports();
	}
	task->reports = reports + nreported;
	task->n = Min(nreports - nreported, max);
	task->after = nreported;
	task->unread = nunread;
	task->is_complete = is_complete && nreported + task->n == nreports;
	return true;
}

/*
 * The registry did not take a page, and may be another one by now: make the report again
 * after a while.
 */
void
snowflake_drop_report(void)
{
	not_before = snowflake_steady_clock() + USECS_PER_SEC;
	MemoryContextDelete(context);
	context = NULL;
}

/*
 * The registry refuses a sequence, and so cannot have granted numbers of it.
 */
void
snowflake_skip_report(const char *why)
{
	ereport(LOG,
			(errmsg("the registry refuses the report of sequence %s in database \"%s\"",
					reports[nreported].name, reports[nreported].database),
			 errdetail_internal("%s", why)));
	nunread -= reports[nreported].is_unread;
	reports[nreported] = reports[--nreports];
}

/*
 * The registry has taken a page of so many.
 */
void
snowflake_note_reported(int n)
{
	nreported += n;
	if (nreported < nreports)
		return;
	ereport(LOG,
			(errmsg("reported to the registry which numbers of %d sequences are in use",
					nreports)));
	snowflake_drop_report();
	not_before = snowflake_steady_clock() + AGAIN_US;
}
