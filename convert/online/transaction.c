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

#include "convert/columns/keys.h"
#include "convert/direct/conversion.h"
#include "convert/online/transaction.h"
#include "shared/table_owner.h"

/*
 * Until the end of the GUC nest level, find out at once when a wait of this session
 * is part of a deadlock, and end it: the others, who look after deadlock_timeout,
 * find none then.
 */
static void
be_first_in_deadlocks(void)
{
	static const char *const settings[][2] = {
		{"deadlock_timeout", "1ms"},
		/* Each wait would be logged. */
		{"log_lock_waits", "off"},
	};

	for (size_t i = 0; i < lengthof(settings); i++)
		(void) set_config_option(settings[i][0], settings[i][1],
								 PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Become the owner of the table, and find the column, which may have another
 * number than in the transaction before.
 */
void
snowflake_online_open(SnowflakeOnline *online)
{
	SnowflakeConversion *conversion = &online->transaction.conversion;

	online->transaction.only_looked = false;
	online->transaction.prepared = false;
	online->transaction.rows_locked = false;
	online->transaction.locked_since = 0;
	online->transaction.locking = online->relid;
	online->transaction.owner = snowflake_convert_lock(online->relid, AccessShareLock);
	snowflake_become_owner(online->transaction.owner, &online->transaction.caller);
	be_first_in_deadlocks();

	*conversion = online->blank;
	conversion->online = true;
	conversion->dry_run = true;
	snowflake_convert_add_key(conversion, online->relid, online->column, online->generator, false);
	(void) snowflake_convert_prepare(conversion, online->transaction.owner);
}

/*
 * Begin a transaction, as the caller.
 */
void
snowflake_online_begin(void)
{
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	EnsurePortalSnapshotExists();
}

void
snowflake_online_commit(void)
{
	SPI_commit();
	SPI_finish();
	CHECK_FOR_INTERRUPTS();
}

/*
 * The same, but do not wait until the commit is durable.
 */
void
snowflake_online_commit_soon(void)
{
	(void) set_config_option("synchronous_commit", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	snowflake_online_commit();
}

/*
 * End a transaction that has changed nothing, or nothing that is to stay.
 *
 * What it has tried in subtransactions left dead rows in the catalogs, whose place it
 * can have used again.  Logical decoding cannot tell such rows apart (with assertions,
 * it stops), but ignores a transaction that is rolled back.
 */
void
snowflake_online_rollback(void)
{
	SPI_rollback();
	SPI_finish();
	CHECK_FOR_INTERRUPTS();
}
