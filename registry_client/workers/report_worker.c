/*-------------------------------------------------------------------------
 *
 * report_worker.c
 *	  The background worker that reads which numbers a database has.
 *
 * range_report.c starts it for each database in turn.  It sends what it finds through a
 * queue, and at the end a message that is shorter.
 *
 * It has the rights of a superuser, in a database in which others own tables.  Their
 * rows are read as their owners, and that ends after a while.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/report_worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timeout.h"

#include "ranges/slots.h"
#include "registry_client/workers/range_needs.h"
#include "sequences/exhaust.h"
#include "sequences/floor.h"
#include "sequences/label.h"
#include "sequences/suitable.h"
#include "shared/clock.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PGDLLEXPORT void snowflake_report_main(Datum main_arg);

/*
 * How long the sequences of one owner are read, and waited for if they are locked; later
 * ones only so long each, which suffices for a table that is not locked and has an index.
 */
#define MAX_READ_MS		60000
#define MAX_WAIT_MS		5000
#define MIN_MS			100

/* How long those of an owner have taken, who shall not hold up the others. */
typedef struct OwnerTime
{
	Oid			owner;
	int			spent_ms;
} OwnerTime;

static bool
add_sequence(Oid relid, void *relids)
{
	List	  **list = relids;

	*list = lappend_oid(*list, relid);
	return false;
}

/*
 * Fill in which sequence it is, and what is known without its columns.  Returns false
 * if it is no range sequence, or one that cannot have been granted numbers.
 */
static bool
fill_name(Oid relid, RangeReport *report)
{
	SequenceLabel label = snowflake_sequence_label(relid);
	const char *name;

	/*
	 * Somebody can drop a sequence that is not locked.  The registry takes no
	 * other MAXVALUE.
	 */
	if (label.kind != SNOWFLAKE_KIND_RANGE ||
		!SearchSysCacheExists1(SEQRELID, ObjectIdGetDatum(relid)) ||
		snowflake_get_definition(relid).seqmax < 1)
		return false;
	name = snowflake_utf8_name(label.name);
	if (name == NULL ||
		strlcpy(report->name, name, sizeof(report->name)) >= sizeof(report->name))
		return false;
	report->last = snowflake_get_definition(relid).seqmax;
	report->granted = snowflake_number_before(relid, &label);
	return true;
}

/*
 * Has a transaction used a sequence that was prepared before the start of the server?  Nobody
 * sees its rows.  What was granted to others, memory knows, or that it has forgotten it.
 */
static bool
is_prepared(Oid relid)
{
	VirtualTransactionId *holders;
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	holders = GetLockConflicts(&tag, ShareLock, NULL);
	for (int i = 0; VirtualTransactionIdIsValid(holders[i]); i++)
	{
		if (VirtualTransactionIdIsRecoveredPreparedXact(holders[i]))
			return true;
	}
	return false;
}

static void
note_unread(RangeReport *report, const char *why)
{
	report->is_unread = true;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("could not find out which numbers of sequence %s database \"%s\" has",
					report->name, report->database),
			 errdetail_internal("%s", why),
			 errhint("A registry that grants ranges waits for it. The report is made again in a minute.")));
}

/*
 * Fill in what is known of a sequence, which may be locked for longer than is waited.
 * Returns false if it is no range sequence.
 */
static bool
fill_report(Oid relid, RangeReport *report)
{
	int64		key;
	bool		has_keys;

	if (!fill_name(relid, report))
		return false;
	LockRelationOid(relid, AccessShareLock);
	if (get_rel_relkind(relid) != RELKIND_SEQUENCE || !fill_name(relid, report))
		return false;

	/* Before its keys are read: it may commit meanwhile. */
	if (is_prepared(relid))
		note_unread(report, "A prepared transaction has used it.");
	key = snowflake_greatest_key(relid, &has_keys);
	report->granted = Max(report->granted, key);
	report->is_exact = has_keys && !report->is_unread;
	return true;
}

/*
 * The same, in a subtransaction: if its keys cannot be read, they are greater, perhaps.
 * Without its name, there is no report of this database.
 */
static bool
try_report(Oid relid, RangeReport *report, int read_ms)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool is_range = false;

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		enable_timeout_after(STATEMENT_TIMEOUT, read_ms);
		is_range = fill_report(relid, report);
		disable_timeout(STATEMENT_TIMEOUT, false);

		/* Its locks are not kept: of all sequences, they are too many. */
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		if (report->last == 0)
			PG_RE_THROW();
		disable_timeout(STATEMENT_TIMEOUT, false);
		QueryCancelPending = false;
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		note_unread(report, error->message);
		is_range = true;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return is_range;
}

/*
 * The same, as long as is left to the owner of the sequence.
 */
static bool
try_in_time(Oid relid, RangeReport *report, HTAB *owners)
{
	Oid			owner = snowflake_table_owner(relid);
	int64		begun = snowflake_steady_clock();
	bool		exists;
	OwnerTime  *time = hash_search(owners, &owner, HASH_ENTER, &exists);
	bool		is_range;

	if (!exists)
		time->spent_ms = 0;
	SetConfigOption("lock_timeout",
					psprintf("%d", Max(MAX_WAIT_MS - time->spent_ms, MIN_MS)),
					PGC_USERSET, PGC_S_OVERRIDE);
	is_range = try_report(relid, report, Max(MAX_READ_MS - time->spent_ms, MIN_MS));
	time->spent_ms += (snowflake_steady_clock() - begun) / 1000;
	return is_range;
}

/*
 * Send what is known of each range sequence of this database: the number that it would
 * continue above, exact if a column has its keys.
 */
static void
report_sequences(shm_mq_handle *queue)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(OwnerTime)
	};
	HTAB	   *owners = hash_create("snowflake owners", 16, &control, HASH_ELEM | HASH_BLOBS);
	const char *database = get_database_name(MyDatabaseId);
	List	   *relids = NIL;
	ListCell   *cell;

	(void) snowflake_find_labelled(add_sequence, &relids);
	foreach(cell, relids)
	{
		RangeReport found;

		CHECK_FOR_INTERRUPTS();
		memset(&found, 0, sizeof(found));
		strlcpy(found.database, database, sizeof(found.database));
		if (try_in_time(lfirst_oid(cell), &found, owners) &&
			shm_mq_send(queue, sizeof(RangeReport), &found, false, true) != SHM_MQ_SUCCESS)
			proc_exit(1);
	}
}

/* The hook of another module, before refuse_code(). */
static object_access_hook_type previous_hook = NULL;

/*
 * Fail if a function in another language than C or SQL is about to be called, as one in
 * the condition of an index can be when a query is planned: it could catch the error
 * that ends its time.
 */
static void
refuse_code(ObjectAccessType access, Oid class, Oid object, int column, void *arg)
{
	if (access == OAT_FUNCTION_EXECUTE && object >= FirstNormalObjectId)
	{
		HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(object));
		Oid			language = HeapTupleIsValid(tuple) ?
			((Form_pg_proc) GETSTRUCT(tuple))->prolang : InvalidOid;

		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
		if (language != ClanguageId && language != SQLlanguageId)
			elog(ERROR, "function %s is not called to look for keys", format_procedure(object));
	}
	if (previous_hook != NULL)
		previous_hook(access, class, object, column, arg);
}

/*
 * Main function of the background worker, in whose argument is the queue.
 */
void
snowflake_report_main(Datum main_arg)
{
	Oid			database;
	dsm_segment *segment;
	shm_mq	   *queue;
	shm_mq_handle *handle;

	/* The last one came with PostgreSQL 17. */
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"client_encoding", "SQL_ASCII"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_deferrable", "off"},
		{"exit_on_error", "off"},
		{"transaction_timeout", "0"}
	};

	memcpy(&database, MyBgworkerEntry->bgw_extra, sizeof(Oid));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/*
	 * Those of the database could have it wait for a safe snapshot, or end,
	 * be it because there is no conversion to an encoding.
	 */
	for (size_t i = 0; i < lengthof(settings); i++)
	{
		if (GetConfigOption(settings[i].name, true, false) != NULL)
			SetConfigOption(settings[i].name, settings[i].value, PGC_USERSET, PGC_S_OVERRIDE);
	}
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	previous_hook = object_access_hook;
	object_access_hook = refuse_code;

	StartTransactionCommand();

	/* The first one of a transaction is not taken during a scan of a catalog. */
	PushActiveSnapshot(GetTransactionSnapshot());
	segment = dsm_attach(DatumGetUInt32(main_arg));
	if (segment == NULL)
		proc_exit(1);
	queue = dsm_segment_address(segment);
	shm_mq_set_sender(queue, MyProc);
	handle = shm_mq_attach(queue, segment, NULL);

	pgstat_report_activity(STATE_RUNNING, "which numbers of sequences are in use");
	report_sequences(handle);
	(void) shm_mq_send(handle, 1, "", false, true);
	dsm_detach(segment);
	PopActiveSnapshot();
	CommitTransactionCommand();
	proc_exit(0);
}
