/*-------------------------------------------------------------------------
 *
 * undo.c
 *	  snowflake_convert_undo(): take back a conversion of tables in use, before
 *	  the first swap.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/undo.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "convert/catalog/queries.h"
#include "convert/catalog/subtransaction.h"
#include "convert/online/begin.h"
#include "convert/online/locks.h"
#include "convert/online/steps.h"
#include "convert/online/transaction.h"
#include "convert/online/waits.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

PG_FUNCTION_INFO_V1(snowflake_convert_undo);

/* How long it waits, or lock_timeout. */
#define UNDO_GIVE_UP_US	(60 * USECS_PER_SEC)

/* What is to be done. */
typedef struct Undo
{
	SnowflakeOnline *online;
	List	   *tables;			/* to lock */
	List	   *statements;
} Undo;

/* SnowflakeOnlineWork: execute the statements. */
static void
execute_statements(SnowflakeOnline *online, void *argument)
{
	snowflake_convert_run_statements(((Undo *) argument)->statements);
}

/*
 * Find the statements, lock the tables, and execute them.
 */
static bool
undo_once(void *argument)
{
	Undo	   *undo = argument;
	SnowflakeOnline *online = undo->online;

	snowflake_online_open(online);
	undo->statements = snowflake_online_undo_statements(&online->transaction.conversion,
														&undo->tables);
	if (undo->statements != NIL &&
		!snowflake_online_with_locks(online, undo->tables, AccessExclusiveLock,
									 execute_statements, undo))
		return false;
	snowflake_become_caller(&online->transaction.caller);
	return true;
}

/*
 * A column of a table that is copied, if possible the primary key, or NULL if
 * there is none.  So undo needs only the name of the table, also of one that
 * references the key.
 */
static char *
find_copied_column(Oid relid)
{
	List	   *rows = snowflake_convert_ask_server(snowflake_convert_oid_parameter(relid),
													sql_copied_column);

	return snowflake_convert_first(rows);
}

/*
 * snowflake_convert_undo(relation regclass, column_name name)
 */
Datum
snowflake_convert_undo(PG_FUNCTION_ARGS)
{
	SnowflakeOnline online = {0};
	Undo		undo = {.online = &online};

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the table must not be null")));
	snowflake_online_lock_conversions(true);
	snowflake_online_begin_function(fcinfo, &online);
	if (online.column == NULL)
		online.column = find_copied_column(online.relid);
	online.options.undo = true;
	online.options.give_up_us = LockTimeout == 0 ? UNDO_GIVE_UP_US :
		Min(UNDO_GIVE_UP_US, LockTimeout * INT64CONST(1000));

	/*
	 * Of an attempt that fails no lock is left, behind which a client would
	 * wait until the next.
	 */
	while (!snowflake_convert_do(undo_once, &undo, NULL))
		snowflake_online_nap_about(SNOWFLAKE_RETRY_MS);
	if (undo.statements == NIL)
		ereport(NOTICE,
				(errmsg("no conversion of table %s has begun",
						snowflake_relation_name(online.relid)),
				 errhint("If the key has kept its sequence, snowflake_convert() with kind => 'local' has that be local again.")));
	SPI_finish();
	PG_RETURN_VOID();
}
