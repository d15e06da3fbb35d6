/*-------------------------------------------------------------------------
 *
 * unattached.c
 *	  Databases that have sequences that are not local, and lack what belongs to
 *	  them.
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
 * The worker also warns of databases in which the setting for new tables is
 * missing, because a copy by TEMPLATE or a dump did not have it.
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
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_proc.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/wait_event.h"
#include "base/worker.h"
#include "generator/settings.h"
#include "sequences/attach.h"
#include "sequences/kind.h"
#include "sequences/labelled.h"
#include "sequences/unattached.h"
#include "shared/compat.h"

#define NEW_TABLES_SETTING	"snowflake.default_sequence_kind"

/* How long to wait before asking again for a slot. */
#define SLOT_WAIT_MS	1000

PGDLLEXPORT void snowflake_sequences_main(Datum main_arg);

static object_access_hook_type prev_object_access_hook = NULL;

/* Has this session looked for itself? */
static bool has_looked = false;

/*
 * Warn if this database has snowflake or range sequences, and is not attached.
 */
static void
warn_if_unattached(void)
{
	if (snowflake_is_attached() ||
		!OidIsValid(snowflake_find_nonlocal_sequence()))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("sequences of database \"%s\" are not attached",
					get_database_name(MyDatabaseId)),
			 errdetail("Calls of nextval() for snowflake and range sequences fail. This is so after pg_upgrade, and in a restored dump."),
			 errhint("Have a superuser call snowflake_attach_sequences() in this database.")));
}

/*
 * Do the settings of a row of pg_db_role_setting have that for new tables?
 */
static bool
has_setting(ArrayType *settings)
{
	ArrayIterator iterator = array_create_iterator(settings, 0, NULL);
	bool		found = false;
	Datum		value;
	bool		isnull;

	while (!found && array_iterate(iterator, &value, &isnull))
		found = !isnull && strncmp(TextDatumGetCString(value), NEW_TABLES_SETTING "=",
								   strlen(NEW_TABLES_SETTING "=")) == 0;
	array_free_iterator(iterator);
	return found;
}

/*
 * Is the setting for new tables one of this database, or of a role?
 */
static bool
is_set_here(void)
{
	Relation	relation = table_open(DbRoleSettingRelationId, AccessShareLock);
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	scan = systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			database = ((Form_pg_db_role_setting) GETSTRUCT(tuple))->setdatabase;
		bool		isnull;
		Datum		settings = heap_getattr(tuple, Anum_pg_db_role_setting_setconfig,
											RelationGetDescr(relation), &isnull);

		found = !isnull && (!OidIsValid(database) || database == MyDatabaseId) &&
			has_setting(DatumGetArrayTypeP(settings));
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return found;
}

/*
 * Warn if a setting made sequences of this database snowflake or range sequences,
 * and those of new tables are local now.
 */
static void
warn_if_not_set(void)
{
	if (snowflake_default_sequence_kind != SNOWFLAKE_DEFAULT_LOCAL ||
		!snowflake_has_default_sequence() || is_set_here())
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("new tables of database \"%s\" get local sequences, and earlier ones did not",
					get_database_name(MyDatabaseId)),
			 errdetail("\"" NEW_TABLES_SETTING "\" is not set there. A copy of a database, and a dump without --create, do not have it."),
			 errhint("Set it for the database by ALTER DATABASE, to the kind that it had, or to \"local\" if that is what you want.")));
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
	if (access != OAT_FUNCTION_EXECUTE)
		return;
	snowflake_check_call(object);
	if (object != F_NEXTVAL || has_looked)
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
							  SNOWFLAKE_LIBRARY, SNOWFLAKE_SEQUENCES_FUNCTION);
	worker.bgw_restart_time = BGW_NEVER_RESTART;
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
	warn_if_not_set();
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
