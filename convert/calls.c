/*-------------------------------------------------------------------------
 *
 * calls.c
 *	  Functions and operators that are looked up again.
 *
 * What a conversion creates again, or evaluates with new IDs, is read from its text, in
 * which a function is a name.  Whoever may create functions in the schema of that name
 * can add one that matches better, at any time, and have it called with the rights of the
 * owner of the tables.  Obstacles say whether there is one.  So from before they are
 * looked for until all is created, nobody creates or renames a function or an operator,
 * or renames one of these schemas.
 *
 * That is a lock on their catalogs.  CREATE FUNCTION releases its own at its end, so
 * there is no lock to see of a transaction that is open; but its rows are.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/calls.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "convert/calls.h"
#include "convert/rows.h"
#include "queries/calls.sql.h"
#include "shared/compat.h"

/* Of those that keep others from writing, the weakest that only one session has. */
#define HOLD	ShareRowExclusiveLock

static const Oid catalogs[] = {ProcedureRelationId, OperatorRelationId};

/*
 * A transaction that is open, and has written rows of a catalog; or none.
 */
static TransactionId
find_writer(Oid catalog)
{
	Relation	relation = table_open(catalog, NoLock);
	TransactionId writer = InvalidTransactionId;
	SnapshotData dirty;
	SysScanDesc scan;

	InitDirtySnapshot(dirty);
	scan = systable_beginscan(relation, InvalidOid, false, &dirty, 0, NULL);
	while (!TransactionIdIsValid(writer) && HeapTupleIsValid(systable_getnext(scan)))
		writer = dirty.xmin;
	systable_endscan(scan);
	table_close(relation, NoLock);
	return writer;
}

/*
 * Lock the catalogs until the end of the transaction.  Who waits for others has no lock on
 * them, for which these could wait.
 */
static void
lock_catalogs(void)
{
	for (;;)
	{
		TransactionId writer = InvalidTransactionId;

		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < lengthof(catalogs); i++)
			LockRelationOid(catalogs[i], HOLD);
		for (size_t i = 0; i < lengthof(catalogs) && !TransactionIdIsValid(writer); i++)
			writer = find_writer(catalogs[i]);
		if (!TransactionIdIsValid(writer))
			return;
		for (size_t i = 0; i < lengthof(catalogs); i++)
			UnlockRelationOid(catalogs[i], HOLD);
		XactLockTableWait(writer, NULL, NULL, XLTW_None);
	}
}

/*
 * Have the functions and operators that are looked up again, if there are any, found as
 * they are now, until the end of the transaction.
 */
void
snowflake_convert_hold_calls(const SnowflakeConversion *conversion)
{
	List	   *rows = snowflake_convert_ask(conversion, sql_called_schemas);
	List	   *schemas = snowflake_convert_oids(rows);

	if (schemas == NIL || RecoveryInProgress())
		return;
	lock_catalogs();
	if (!XactReadOnly)
		(void) snowflake_convert_ask_server(snowflake_convert_oids_parameter(schemas),
											sql_lock_schemas);
}

static LOCKTAG
lock_of(Oid catalog)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, catalog);
	return tag;
}

/*
 * What is held now is also held after the transaction, until it is released, or a
 * transaction fails.
 */
void
snowflake_convert_hold_calls_longer(void)
{
	for (size_t i = 0; i < lengthof(catalogs); i++)
	{
		LOCKTAG		tag = lock_of(catalogs[i]);
		LockRelId	relation = {.relId = catalogs[i],.dbId = MyDatabaseId};

		if (snowflake_lock_held(&tag, HOLD))
			LockRelationIdForSession(&relation, HOLD);
	}
}

/*
 * Release that, if there is any of it.
 */
void
snowflake_convert_release_calls(void)
{
	for (size_t i = 0; i < lengthof(catalogs); i++)
	{
		LOCKTAG		tag = lock_of(catalogs[i]);

		if (snowflake_lock_held(&tag, HOLD))
			(void) LockRelease(&tag, HOLD, true);
	}
}
