/*-------------------------------------------------------------------------
 *
 * catalog_rows.c
 *	  The rows of the catalogs that a conversion changes, and functions that it
 *	  calls by name.
 *
 * GRANT and REVOKE take no lock on a table, since 18 that of a SELECT, but update
 * its rows in the catalogs.  Others do so with what belongs to a table: ALTER
 * FUNCTION with the function of a trigger, ALTER STATISTICS, DROP PUBLICATION.
 *
 * - While such a transaction is open, ALTER TABLE would wait for it, with its
 *	 locks, and then fail.  So it is waited for before.
 * - A swap takes over what it has found.  What is committed between that and the
 *	 swap would be lost: a privilege that was revoked would be granted again.  So
 *	 the rows are locked.  Who comes then waits, and fails if the swap has replaced
 *	 what it is about, otherwise it continues.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/catalog_rows.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/subtrans.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

#include "convert/catalog/queries.h"
#include "convert/catalog/subtransaction.h"
#include "convert/online/catalog_rows.h"

/*
 * Has somebody changed the rows about these tables, or functions that use their
 * rows, in a transaction that is open?  Returns who.
 */
char *
snowflake_online_find_changer(const List *relids)
{
	List	   *rows = snowflake_convert_ask_server(snowflake_convert_oids_parameter(relids),
													sql_changers);
	ListCell   *cell;

	foreach(cell, snowflake_convert_texts(rows))
	{
		TransactionId xid = strtoul(lfirst(cell), NULL, 10);
		char	   *top;
		char	   *owner;

		/* It may be the ID of a multixact, which is any number. */
		if (!TransactionIdIsNormal(xid) || TransactionIdPrecedes(xid, TransactionXmin) ||
			!TransactionIdPrecedes(xid, ReadNextTransactionId()) ||
			TransactionIdIsCurrentTransactionId(xid) || !TransactionIdIsInProgress(xid))
			continue;

		/* A subtransaction that was released has no lock any more. */
		top = psprintf("%u", SubTransGetTopmostTransaction(xid));
		owner = snowflake_convert_first(snowflake_convert_ask_server(list_make1(top),
																	 sql_owner_of_transaction));
		if (owner != NULL)
			return psprintf("%s has changed privileges or definitions of these tables, or of what belongs to them, in a transaction that is open.",
							owner);
	}
	return NULL;
}

/* Rows to lock: those that a query finds for tables, whose OIDs are its parameter. */
typedef struct Rows
{
	SnowflakeQuery query;
	List	   *tables;
} Rows;

static bool
lock_rows(void *argument)
{
	const Rows *rows = argument;

	(void) snowflake_convert_ask_server(rows->tables, rows->query);
	return true;
}

/*
 * Lock rows until the end of the transaction.  Returns false if somebody has changed one:
 * who waits for one and has others could be in a deadlock.  No code of users runs here, so
 * the error of NOWAIT is what it looks like.
 */
static bool
lock(SnowflakeQuery query, const List *relids)
{
	Rows		rows = {query, snowflake_convert_oids_parameter(relids)};
	ErrorData  *error;
	bool		locked = snowflake_convert_do(lock_rows, &rows, &error);

	if (!locked && error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
		ReThrowError(error);
	AcceptInvalidationMessages();
	return locked;
}

bool
snowflake_online_lock_rows(const List *relids)
{
	return lock(sql_lock_rows, relids);
}

/*
 * Lock the functions that a swap reads by name, and looks for by that name again,
 * against getting another one.  Not their rows: ALTER FUNCTION ... RENAME waits for
 * these with a lock that the swap itself needs.  But, after that, the rows of those
 * that it alters.
 */
bool
snowflake_online_lock_functions(const List *relids)
{
	List	   *rows = snowflake_convert_ask_server(snowflake_convert_oids_parameter(relids),
													sql_functions_of_tables);
	ListCell   *cell;

	foreach(cell, snowflake_convert_oids(rows))
		LockDatabaseObject(ProcedureRelationId, lfirst_oid(cell), 0, AccessShareLock);
	return lock(sql_lock_row_function_rows, relids);
}
