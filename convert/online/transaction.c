/*-------------------------------------------------------------------------
 *
 * transaction.c
 *	  The state of a call, and its transactions.
 *
 * Each transaction runs as the owner of the table (table_owner.c), but never
 * beyond its end.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/transaction.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "utils/guc.h"

#include "convert/conversion.h"
#include "convert/online/transaction.h"
#include "shared/table_owner.h"

/*
 * Become the owner of the table, and find the column, which may have another
 * number than in the transaction before.
 */
void
snowflake_online_open(SnowflakeOnline *online)
{
	SnowflakeConversion *conversion = &online->transaction.conversion;
	SnowflakeKey *key;

	online->transaction.rows_locked = false;
	online->transaction.locked_since = 0;
	online->transaction.owner = snowflake_convert_lock(online->relid, true);
	snowflake_become_owner(online->transaction.owner, &online->transaction.caller);

	memset(conversion, 0, sizeof(*conversion));
	conversion->online = true;
	conversion->dry_run = true;
	key = snowflake_convert_find_key(online->relid, online->column, false);
	snowflake_convert_choose_generator(key, online->generator);
	conversion->keys = list_make1(key);
	snowflake_convert_prepare(conversion, online->transaction.owner);
}

/*
 * Begin the work of a transaction.
 */
void
snowflake_online_begin(SnowflakeOnline *online)
{
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	EnsurePortalSnapshotExists();
	snowflake_online_open(online);
}

/*
 * Become the caller, and commit.
 */
void
snowflake_online_commit(SnowflakeOnline *online)
{
	snowflake_become_caller(&online->transaction.caller);
	SPI_commit();
	SPI_finish();
	CHECK_FOR_INTERRUPTS();
}

/*
 * The same, but do not wait until the commit is durable.
 */
void
snowflake_online_commit_soon(SnowflakeOnline *online)
{
	snowflake_become_caller(&online->transaction.caller);
	(void) set_config_option("synchronous_commit", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	SPI_commit();
	SPI_finish();
	CHECK_FOR_INTERRUPTS();
}

/*
 * Execute a statement that returns no rows.
 */
void
snowflake_online_run_statement(const char *statement)
{
	if (SPI_execute(statement, false, 0) < 0)
		elog(ERROR, "statement failed: %s", statement);
}

/*
 * Execute statements of a transaction.
 */
void
snowflake_online_run_statements(List *statements)
{
	ListCell   *cell;

	foreach(cell, statements)
		snowflake_online_run_statement(lfirst(cell));
}
