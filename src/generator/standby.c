/*-------------------------------------------------------------------------
 *
 * standby.c
 *	  Do the synchronous standbys have the WAL?
 *
 * A commit waits for them in SyncRepWaitForLSN().  That cannot be used here:
 * it depends on synchronous_commit of the session, although the mark concerns
 * all sessions, and a cancelled wait returns like a completed one.  However,
 * what standbys have reported is in shared memory, with the place that each has
 * in synchronous_standby_names.
 *
 * How many of them are required is not there: each process has read it from
 * the configuration, a backend not during a query, and a background worker
 * perhaps never again.  Those would count by a rule that no longer holds.  So a
 * background worker, "snowflake standbys", reads the configuration whenever it
 * is reloaded, as walsenders do, and keeps that number in shared memory.  Without
 * it, as in single-user mode or if there is no slot for it, they count as when
 * they began.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/generator/standby.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/timeline.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/spin.h"
#include "utils/guc.h"

#include "base/wait_event.h"
#include "generator/standby.h"
#include "generator/state.h"
#include "shared/compat.h"

PGDLLEXPORT void snowflake_standbys_main(Datum main_arg);

PG_FUNCTION_INFO_V1(snowflake_timeline_is_confirmed);

/* A standby that is synchronous, or would be if another one left. */
typedef struct Standby
{
	int			pid;			/* of its walsender */
	int64		place;			/* in the order in which they are chosen */
	XLogRecPtr	has;			/* it has the WAL up to here */
	bool		replays;		/* has it reported what it replayed? */
} Standby;

/*
 * Is synchronous_standby_names set?
 *
 * The checkpointer keeps this in a byte of shared memory, by which commits
 * decide whether to wait.  Originally, it was a bool.  Since 15.13, 16.9, 17.5,
 * and 18, its first bit says that the checkpointer has set it, and its second
 * bit that there are standbys.  The module may run on another minor version than
 * it was built for, so the version of the running server is checked.
 */
static bool
has_synchronous_standbys(void)
{
	static long version = 0;
	uint8		status;

	if (max_wal_senders == 0)
		return false;
	if (version == 0)
		version = strtol(GetConfigOption("server_version_num", false, false),
						 NULL, 10);

	/*
	 * It is read without a lock, as in SyncRepWaitForLSN().  Reading a byte
	 * is atomic, and an old value is that of a commit just before the change.
	 */
	status = *(volatile uint8 *) &snowflake_standbys_byte;
	if (version < 150013 ||
		(version >= 160000 && version < 160009) ||
		(version >= 170000 && version < 170005))
		return status != 0;
	if ((status & 1) != 0)
		return (status & 2) != 0;

	/* The checkpointer has not set it yet. */
	return SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0';
}

/*
 * How many standbys are required, as this process knows it: k for FIRST k, and
 * -k for ANY k.  If it knows no names, they are new, and it is one.
 */
static int32
known_requirement(void)
{
	if (SyncRepConfig == NULL)
		return 1;
	return SyncRepConfig->syncrep_method == SYNC_REP_QUORUM ?
		-SyncRepConfig->num_sync : SyncRepConfig->num_sync;
}

/*
 * How many standbys are required now.  A registry's server need not load the
 * module at its start.
 */
static int32
required_standbys(void)
{
	int32		shared = 0;

	if (snowflake_state != NULL && (ConfigReloadPending || MyBackendType == B_BG_WORKER))
		shared = (int32) pg_atomic_read_u32(&snowflake_state->required_standbys);
	return shared != 0 ? shared : known_requirement();
}

/*
 * Return the standby of a walsender, unless it is none that
 * SyncRepGetCandidateStandbys() would return.
 *
 * What it reports does not say that it has this server's WAL.  A standby that
 * is ahead on the previous timeline cannot follow this one, but connects again
 * and again, and each time reports how far it is.  So only what was sent counts.
 */
static bool
get_standby(int i, Standby *standby)
{
	WalSnd	   *walsender = &WalSndCtl->walsnds[i];
	bool		found;

	SpinLockAcquire(&walsender->mutex);
	found = walsender->pid != 0 &&
		(walsender->state == WALSNDSTATE_STREAMING ||
		 walsender->state == WALSNDSTATE_STOPPING) &&
		walsender->sync_standby_priority > 0 &&
		walsender->flush != InvalidXLogRecPtr;
	standby->pid = walsender->pid;
	standby->place = (int64) walsender->sync_standby_priority * max_wal_senders + i;
	standby->has = Min(walsender->flush, walsender->sentPtr);
	standby->replays = walsender->apply != InvalidXLogRecPtr;
	SpinLockRelease(&walsender->mutex);
	return found;
}

/*
 * Is it a physical standby?  A subscription could follow another server that
 * was promoted, and so could pg_receivewal, which begins its last segment anew.
 * Only sessions of logical replication are connected to a database, and
 * pg_receivewal never reports that it replayed anything.  A standby always does,
 * if not in its first report, then when it has nothing more to replay.
 */
static bool
is_physical(const Standby *standby)
{
	PGPROC	   *process = BackendPidGetProc(standby->pid);

	return standby->replays && process != NULL && !OidIsValid(process->databaseId);
}

static bool
has_wal(const Standby *standby, XLogRecPtr lsn, bool physical)
{
	return standby->has >= lsn && (!physical || is_physical(standby));
}

/*
 * Do as many standbys as a commit waits for have the WAL up to this position, of
 * those that are synchronous now?
 *
 * The position in shared memory that commits wait for does not say so: it
 * remains when the standby that reported it has gone, and does not count what
 * a standby reported before it was synchronous.
 *
 * Unless physical ones are required, this only takes spinlocks.
 */
static bool
enough_standbys(XLogRecPtr lsn, bool physical)
{
	int32		required = required_standbys();
	int64		first_without = PG_INT64_MAX;
	int			have = 0;
	Standby		standby;

	/* The first k have it if k of them are before the first without it. */
	for (int i = 0; i < max_wal_senders && required > 0; i++)
	{
		if (get_standby(i, &standby) && !has_wal(&standby, lsn, physical))
			first_without = Min(first_without, standby.place);
	}
	for (int i = 0; i < max_wal_senders; i++)
	{
		if (get_standby(i, &standby) && has_wal(&standby, lsn, physical) &&
			standby.place < first_without)
			have++;
	}
	return have >= abs(required);
}

/*
 * Is the WAL up to this position flushed by the synchronous standbys, or are
 * there none?
 */
bool
snowflake_standbys_have(XLogRecPtr lsn)
{
	return !has_synchronous_standbys() || enough_standbys(lsn, false);
}

/*
 * snowflake_registry.timeline_is_confirmed(): have the synchronous standbys
 * WAL of the timeline that this server was promoted to?
 *
 * A commit that has waited is no answer: it is released, too, when
 * synchronous_standby_names is cleared.  So the standbys are looked at, and then
 * whether there still are names.  If they are cleared after that, at most this
 * commit is lost, but the standbys that had the WAL before cannot be promoted to
 * its timeline.
 */
Datum
snowflake_timeline_is_confirmed(PG_FUNCTION_ARGS)
{
	TimeLineHistoryEntry *current;

	if (RecoveryInProgress())
		PG_RETURN_BOOL(false);
	current = linitial(readTimeLineHistory(GetWALInsertionTimeLine()));
	PG_RETURN_BOOL(current->begin != InvalidXLogRecPtr &&
				   SyncRepConfig != NULL &&
				   enough_standbys(current->begin + 1, true) &&
				   has_synchronous_standbys());
}

/*
 * At the end of the worker: nobody keeps the number.
 */
static void
forget_requirement(int code, Datum arg)
{
	pg_atomic_write_u32(&snowflake_state->required_standbys, 0);
}

/*
 * Main function of the background worker.  If it was terminated, it is started
 * again.
 */
void
snowflake_standbys_main(Datum main_arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	on_shmem_exit(forget_requirement, (Datum) 0);

	/* A reload may have been before the handler. */
	ConfigReloadPending = true;
	while (!ShutdownRequestPending)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			pg_atomic_write_u32(&snowflake_state->required_standbys,
								(uint32) known_requirement());
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, 0,
						 snowflake_wait_event(SNOWFLAKE_EVENT_STANDBYS_MAIN));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	proc_exit(1);
}
