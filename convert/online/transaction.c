/*-------------------------------------------------------------------------
 *
 * transaction.c
 *	  The state of a call, its transactions, and its waits: naps, and what is reported
 *	  during them.
 *
 * Times here and in the other files of online conversions are those of the steady
 * clock, because a call that naps until a time of a wall clock which is set back
 * meanwhile would do so for as long.
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

#include <math.h>

#include "access/xact.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "tcop/pquery.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#include "convert/catalog/queries.h"
#include "convert/columns/keys.h"
#include "convert/direct/conversion.h"
#include "convert/online/transaction.h"
#include "shared/clock.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

/* How often a wait is reported. */
#define REPORT_US	INT64CONST(5000000)

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

/*
 * Sleep, with a wait event.
 */
void
snowflake_online_nap(double ms)
{
	static uint32 event = 0;
	int64		end = snowflake_steady_clock() + (int64) ceil(ms * 1000);

	if (event == 0)
		event = snowflake_new_wait_event("SnowflakeConvert");
	for (;;)
	{
		int64		rest = end - snowflake_steady_clock();

		CHECK_FOR_INTERRUPTS();
		if (rest <= 0)
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) (rest / 1000 + 1), event);
		ResetLatch(MyLatch);
	}
}

/*
 * Sleep for a time that others do not sleep, who wait for the same.
 */
void
snowflake_online_nap_about(double ms)
{
	snowflake_online_nap(ms * (0.5 + pg_prng_double(&pg_global_prng_state)));
}

/*
 * The next wait is another one.
 */
void
snowflake_online_end_wait(SnowflakeOnline *online)
{
	online->wait.start = online->wait.told = 0;
}

/*
 * Report a wait every few seconds, and give up after a time.
 */
void
snowflake_online_report_wait(SnowflakeOnline *online, const char *what, const char *who)
{
	int64		now = snowflake_steady_clock();

	if (online->wait.start == 0)
		online->wait.start = now;
	if (online->options.give_up_us > 0 &&
		now - online->wait.start > online->options.give_up_us)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("gave up waiting to %s", what),
				 who == NULL ? 0 : errdetail_internal("%s", who),
				 online->options.undo ?
				 errhint("Nothing was undone. Call snowflake_convert_undo() again.") :
				 errhint("What is done is kept. Call snowflake_convert_online() again to continue.")));
	if (now - online->wait.told > REPORT_US)
	{
		online->wait.told = now;
		ereport(NOTICE,
				(errmsg("waiting to %s", what),
				 who == NULL ? 0 : errdetail_internal("%s", who)));
	}
}

/*
 * Report the oldest transaction that a statement such as CREATE INDEX
 * CONCURRENTLY will wait for, if there is one.  It waits by itself, for as long
 * as that takes; nobody waits for it.
 */
void
snowflake_online_report_transactions(const SnowflakeOnline *online, const char *what)
{
	char	   *age = psprintf(INT64_FORMAT " ms",
							   (int64) online->options.lock_ms * SNOWFLAKE_PATIENCE);
	List	   *rows = snowflake_convert_ask_server(list_make1(age), sql_oldest_transaction);

	if (rows != NIL)
		ereport(NOTICE,
				(errmsg("waiting to %s", what),
				 errdetail_internal("%s", snowflake_convert_first(rows))));
}
