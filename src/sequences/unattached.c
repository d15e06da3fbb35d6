/*-------------------------------------------------------------------------
 *
 * unattached.c
 *	  Databases that have snowflake sequences, and are not attached.
 *
 * After pg_upgrade, or in a restored dump, sequences have their labels, but
 * nextval() does not know of them: it fails, because they are exhausted, and
 * the server's message says only that.  So there is a WARNING beside it, in
 * two places:
 *
 * - A session gets it before it first executes the server's own nextval(), in
 *	 whichever way.  (In a database that is attached, none does.)
 *
 * - At the start a background worker has another one look into each database,
 *	 one after the other.  A database costs what it costs autovacuum each minute.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/unattached.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "catalog/pg_proc.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

#include "base/wait_event.h"
#include "base/worker.h"
#include "sequences/attach.h"
#include "sequences/kind.h"
#include "sequences/unattached.h"
#include "shared/compat.h"

/* How long to wait before asking again for a slot. */
#define SLOT_WAIT_MS	1000

PGDLLEXPORT void snowflake_sequences_main(Datum main_arg);

static object_access_hook_type prev_object_access_hook = NULL;

/* Has this session looked for itself? */
static bool has_looked = false;

/*
 * Warn if this database has snowflake sequences, and is not attached.
 */
static void
warn_if_unattached(void)
{
	if (snowflake_is_attached() ||
		!OidIsValid(snowflake_find_nonlocal_sequence()))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("snowflake sequences of database \"%s\" are not attached",
					get_database_name(MyDatabaseId)),
			 errdetail("Calls of nextval() fail. This is so after pg_upgrade, and in a restored dump."),
			 errhint("Have a superuser call snowflake_attach_sequences() in this database.")));
}

/*
 * Before a function is executed.  Errors in a sequence's nextval() come while
 * it holds the lock of a buffer, which is too late to look at catalogs.
 */
static void
access_object(ObjectAccessType access, Oid class, Oid object, int column, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, class, object, column, arg);
	if (access != OAT_FUNCTION_EXECUTE || object != F_NEXTVAL || has_looked)
		return;
	has_looked = true;
	warn_if_unattached();
}

void
snowflake_watch_unattached(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = access_object;
}

/*
 * The databases that allow connections.
 */
static List *
list_databases(void)
{
	MemoryContext context = CurrentMemoryContext;
	Relation	databases;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *list = NIL;

	StartTransactionCommand();
	databases = table_open(DatabaseRelationId, AccessShareLock);
	scan = systable_beginscan(databases, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old = MemoryContextSwitchTo(context);

		if (form->datallowconn && form->datconnlimit != DATCONNLIMIT_INVALID_DB)
			list = lappend_oid(list, form->oid);
		MemoryContextSwitchTo(old);
	}
	systable_endscan(scan);
	table_close(databases, AccessShareLock);
	CommitTransactionCommand();
	return list;
}

/*
 * Have a worker look into a database, as soon as there is a slot for it, and
 * wait until it has.
 */
static void
look_into(Oid database)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;

	snowflake_describe_worker(&worker, SNOWFLAKE_SEQUENCES_WORKER,
							  SNOWFLAKE_SEQUENCES_FUNCTION, BGW_NEVER_RESTART);
	worker.bgw_main_arg = ObjectIdGetDatum(database);
	worker.bgw_notify_pid = MyProcPid;
	while (!RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 SLOT_WAIT_MS,
						 snowflake_wait_event(SNOWFLAKE_EVENT_SEQUENCES_MAIN));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	(void) WaitForBackgroundWorkerShutdown(handle);
	pfree(handle);
}

static void
look_into_all(void)
{
	ListCell   *cell;

	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	foreach(cell, list_databases())
		look_into(lfirst_oid(cell));
}

/*
 * In the database to which this worker is connected.
 */
static void
look_here(void)
{
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(MyBgworkerEntry->bgw_main_arg),
											  InvalidOid, 0);
	StartTransactionCommand();
	warn_if_unattached();
	CommitTransactionCommand();
}

/*
 * Main function of the worker that is registered at the start, and of those
 * that it registers, whose argument is a database.
 */
void
snowflake_sequences_main(Datum main_arg)
{
	snowflake_run_once(OidIsValid(DatumGetObjectId(main_arg)) ?
					   look_here : look_into_all);
}
