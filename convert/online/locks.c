/*-------------------------------------------------------------------------
 *
 * locks.c
 *	  Locks that nobody has to wait behind.
 *
 * A lock that conflicts with those of the application makes everybody wait who
 * comes after the request.  So:
 *
 * - Look first.  A transaction that has held a lock on one of the tables for
 *	 more than three times lock_wait will probably hold it for longer.  It is
 *	 reported, and nothing is requested.  So is one that has changed what
 *	 online/catalog_rows.c is about, and what that is is locked, too.
 * - Whoever has one lock and waits for another might be in a deadlock with a
 *	 transaction of the application, which must not be the one that fails.  So
 *	 this session finds a deadlock at once (see transaction.c), and then begins
 *	 again.  And it requests nothing while somebody waits for it, who could be the
 *	 first to look.
 * - Who holds a lock on a table and requests a stronger one has everybody else fail
 *	 at once who does the same: the server does not wait for deadlock_timeout then.
 *	 So what is held of a table is released before a lock on it is requested.  If its
 *	 definition has changed by then, all begins again.
 * - A request ends after lock_wait, which is less than deadlock_timeout.  All
 *	 locks are released then, and requested later in the opposite order, because
 *	 the application has one order or the other.  Partitions are locked after
 *	 their table, as statements of clients lock them.
 *
 * The list of sessions is read as the bootstrap superuser, because sessions of
 * other roles are hidden otherwise.  These queries access system views only, and
 * cancel autovacuum workers.  Process IDs and ages are reported; the text of a
 * query only to those who may see it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/locks.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#include "convert/catalog/queries.h"
#include "convert/catalog/subtransaction.h"
#include "convert/catalog/watch.h"
#include "convert/online/catalog_rows.h"
#include "convert/online/locks.h"
#include "convert/online/transaction.h"
#include "shared/clock.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

/*
 * The modes that do not conflict with one that is requested here, as an array.
 */
static char *
compatible_modes(LOCKMODE mode)
{
	switch (mode)
	{
		case AccessExclusiveLock:
			return "{}";
		case ShareRowExclusiveLock:
			return "{AccessShareLock, RowShareLock}";
		case ShareUpdateExclusiveLock:
			return "{AccessShareLock, RowShareLock, RowExclusiveLock}";
		default:
			Assert(mode == RowExclusiveLock);
			return "{AccessShareLock, RowShareLock, RowExclusiveLock, ShareUpdateExclusiveLock}";
	}
}

/*
 * Does somebody hold a lock on the tables that will probably not be released
 * soon, that is, for longer than the time?  Returns who.
 *
 * A prepared transaction has no process; its locks have the virtual transaction
 * of the session that prepared it, so the lock on its transaction ID identifies
 * it.
 */
static char *
find_holder(List *relids, LOCKMODE mode, int64 ms)
{
	List	   *parameters = snowflake_convert_oids_parameter(relids);

	parameters = lappend(parameters, psprintf(INT64_FORMAT " ms", ms));
	parameters = lappend(parameters, compatible_modes(mode));
	return snowflake_convert_first(snowflake_convert_ask_server(parameters, sql_holder));
}

/*
 * Who has a lock on a relation that conflicts with one?
 */
char *
snowflake_online_find_holder(Oid relid, LOCKMODE mode)
{
	return find_holder(list_make1_oid(relid), mode, 0);
}

/*
 * The relations, each followed by its partitions, the upper levels first, as
 * the server locks them.
 */
List *
snowflake_online_with_partitions(const List *relids)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, relids)
		result = list_concat_unique_oid(result,
										find_all_inheritors(lfirst_oid(cell), NoLock, NULL));
	return result;
}

/*
 * Release what this transaction has locked of a relation, which nothing has open.
 */
static void
release(Oid relid)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	for (LOCKMODE mode = AccessShareLock; mode <= AccessExclusiveLock; mode++)
	{
		while (snowflake_lock_held(&tag, mode) && LockRelease(&tag, mode, false))
			;
	}
}

/*
 * Be ready to request locks on relations.
 *
 * In a transaction of the caller, that of snowflake_convert_undo(), the locks may be
 * his, so nothing is released, and others may wait for them.
 */
static void
prepare_to_lock(const SnowflakeOnline *online, const List *relids)
{
	ListCell   *cell;

	snowflake_convert_watch(relids);
	if (online->options.undo)
		return;
	if (snowflake_convert_ask_server(NIL, sql_waiter) != NIL)
		snowflake_convert_give_way("somebody waits for this session");
	foreach(cell, relids)
		release(lfirst_oid(cell));
}

/*
 * Lock the tables.  Clients wait behind the first of them until the last one is
 * locked, so they have lock_wait together.
 */
static void
lock_relations(SnowflakeOnline *online, const List *relids, LOCKMODE mode)
{
	int64		end = snowflake_steady_clock() + online->options.lock_ms * INT64CONST(1000);
	ListCell   *cell;

	foreach(cell, relids)
	{
		Oid			relid = lfirst_oid(cell);
		int			left = (int) ((end - snowflake_steady_clock()) / 1000);

		online->transaction.locking = relid;
		(void) set_config_option("lock_timeout", psprintf("%d", Max(left, 1)),
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
		LockRelationOid(relid, mode);

		/* It may have been dropped: look again. */
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
			snowflake_convert_give_way("a relation does not exist");
	}
	if (snowflake_convert_has_changed())
		snowflake_convert_give_way("a relation was changed");
	(void) set_config_option("lock_timeout", psprintf("%d", online->options.lock_ms),
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
}

void
snowflake_online_lock(SnowflakeOnline *online, List *relids, LOCKMODE mode)
{
	prepare_to_lock(online, relids);
	lock_relations(online, relids, mode);
}

/* What to do with which locks. */
typedef struct LockedWork
{
	SnowflakeOnline *online;
	List	   *relids;
	LOCKMODE	mode;
	SnowflakeOnlineWork work;
	void	   *argument;
} LockedWork;

/*
 * Lock tables, and do something with them.
 */
static bool
work_with_locks(void *argument)
{
	const LockedWork *locked = argument;
	SnowflakeOnline *online = locked->online;
	List	   *relids = snowflake_online_with_partitions(locked->relids);

	lock_relations(online, relids, locked->mode);
	online->transaction.locked_since = snowflake_steady_clock();
	if (!online->transaction.rows_locked && !snowflake_online_lock_rows(relids))
		return false;
	online->transaction.rows_locked = true;
	locked->work(online, locked->argument);
	return true;
}

/*
 * Look, lock tables in the order of the list or the opposite one, and do
 * something with them.  Returns false if a lock was not to be had; then nothing has
 * changed, all locks are released, and the transaction should end, and another one
 * try again.
 */
bool
snowflake_online_with_locks(SnowflakeOnline *online, List *relids, LOCKMODE mode,
							SnowflakeOnlineWork work, void *argument)
{
	const char *what = psprintf("lock table %s",
								snowflake_relation_name(llast_oid(relids)));
	List	   *all = snowflake_online_with_partitions(relids);
	LockedWork	locked = {online, relids, mode, work, argument};
	ErrorData  *error;
	char	   *holder;

	holder = find_holder(all, mode, online->options.lock_ms * SNOWFLAKE_PATIENCE);
	if (holder == NULL)
		holder = snowflake_online_find_changer(all);
	if (holder != NULL)
	{
		snowflake_online_report_wait(online, what, holder);
		return false;
	}
	/* as a session would that waits for it for longer than deadlock_timeout */
	(void) snowflake_convert_ask_server(snowflake_convert_oids_parameter(all),
										sql_cancel_autovacuum);
	prepare_to_lock(online, all);
	if (pg_prng_bool(&pg_global_prng_state))
	{
		ListCell   *cell;

		locked.relids = NIL;
		foreach(cell, relids)
			locked.relids = lcons_oid(lfirst_oid(cell), locked.relids);
	}
	if (snowflake_convert_do(work_with_locks, &locked, &error))
		return true;
	online->transaction.rows_locked = false;
	if (error != NULL && !snowflake_convert_is_of_others(error))
		ReThrowError(error);
	/* What was tried has left rows: see snowflake_online_rollback(). */
	online->transaction.only_looked = true;
	snowflake_online_report_wait(online, what, NULL);
	return false;
}

/* The work of a transaction. */
typedef struct Attempt
{
	SnowflakeOnline *online;
	SnowflakeOnlineWork work;
	void	   *argument;
} Attempt;

/*
 * Become the owner, and work.
 */
static bool
work_as_owner(void *argument)
{
	const Attempt *attempt = argument;
	SnowflakeOnline *online = attempt->online;

	snowflake_online_open(online);
	attempt->work(online, attempt->argument);
	snowflake_become_caller(&online->transaction.caller);
	return true;
}

/*
 * Do something in a transaction, in which no lock is waited for longer than
 * lock_wait.  Returns false if it has to be tried again.
 *
 * The application may lock a table that references the key, and then that of the
 * key, or the other way round.  So who has one and waits for another gives up:
 * all is undone, and no lock is left.
 */
bool
snowflake_online_try(SnowflakeOnline *online, SnowflakeOnlineWork work, void *argument)
{
	Attempt		attempt = {online, work, argument};
	ErrorData  *error;

	snowflake_online_begin();
	if (!snowflake_convert_do(work_as_owner, &attempt, &error))
	{
		Oid			relid = online->transaction.locking;

		if (!snowflake_convert_is_of_others(error))
			ReThrowError(error);
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
			relid = online->relid;
		snowflake_online_report_wait(online,
									 psprintf("lock table %s", snowflake_relation_name(relid)),
									 snowflake_online_find_holder(relid, ShareUpdateExclusiveLock));
	}
	if (error != NULL || online->transaction.only_looked)
		snowflake_online_rollback();
	else
		snowflake_online_commit();
	return error == NULL;
}
