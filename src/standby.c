/*-------------------------------------------------------------------------
 *
 * standby.c
 *	  Do the synchronous standbys have the WAL?
 *
 * A commit waits for them in SyncRepWaitForLSN().  That cannot be used here:
 * it depends on synchronous_commit of the session, although the mark concerns
 * all sessions, and a cancelled wait returns like a completed one.  However,
 * what standbys have reported is in shared memory.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/standby.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/timeline.h"
#include "access/xlog.h"
#include "fmgr.h"
#include "postmaster/interrupt.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/spin.h"
#include "utils/guc.h"

#include "compat.h"
#include "standby.h"

PG_FUNCTION_INFO_V1(snowflake_timeline_is_confirmed);

/*
 * Is synchronous_standby_names set?
 *
 * A backend does not reload the configuration during a query, so the
 * checkpointer keeps this in a byte of shared memory.  Originally, it was a
 * bool.  Since 15.13, 16.9, 17.5, and 18, its first bit says that the
 * checkpointer has set it, and its second bit that there are standbys.  The
 * module may run on another minor version than it was built for, so the
 * version of the running server is checked.
 */
bool
snowflake_synchronous_standbys(void)
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
 * Have as many standbys as a commit waits for flushed the WAL up to this
 * position, of those that are synchronous now?
 *
 * The position in shared memory that commits wait for does not say so: it
 * remains when the standby that reported it has gone, and does not count what
 * a standby reported before it was synchronous.
 *
 * A backend does not reload the configuration during a query.  If it is about
 * to, fewer standbys may be required, so that all that are connected are
 * enough.  If there were no names, it has only the position in shared memory.
 */
static bool
standbys_flushed(XLogRecPtr lsn)
{
	SyncRepStandbyData *standbys;
	XLogRecPtr	flushed;
	int			nstandbys;
	int			have = 0;

	if (SyncRepConfig == NULL)
	{
		LWLockAcquire(SyncRepLock, LW_SHARED);
		flushed = WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH];
		LWLockRelease(SyncRepLock);
		return lsn <= flushed;
	}
	nstandbys = SyncRepGetCandidateStandbys(&standbys);
	for (int i = 0; i < nstandbys; i++)
		have += lsn <= standbys[i].flush;
	pfree(standbys);
	return have >= SyncRepConfig->num_sync ||
		(ConfigReloadPending && have > 0 && have == nstandbys);
}

/*
 * Have the synchronous standbys flushed the WAL up to this position, or are
 * there none?
 */
bool
snowflake_standbys_have(XLogRecPtr lsn)
{
	return !snowflake_synchronous_standbys() || standbys_flushed(lsn);
}

/*
 * Has a synchronous standby WAL of the timeline that began there?
 *
 * The position that it reports does not say so.  A standby that is ahead on the
 * previous timeline cannot follow this one, but connects again and again, and
 * each time reports how far it is.  So WAL of this timeline must have been sent,
 * too.  A subscription is no standby: it could follow another server that was
 * promoted.  Only sessions of logical replication are connected to a database.
 */
static bool
standby_has_timeline(const SyncRepStandbyData *standby, XLogRecPtr begin)
{
	WalSnd	   *walsender = &WalSndCtl->walsnds[standby->walsnd_index];
	PGPROC	   *process = BackendPidGetProc(standby->pid);
	XLogRecPtr	sent = InvalidXLogRecPtr;

	SpinLockAcquire(&walsender->mutex);
	if (walsender->pid == standby->pid)
		sent = walsender->sentPtr;
	SpinLockRelease(&walsender->mutex);
	return sent > begin && standby->flush > begin &&
		process != NULL && !OidIsValid(process->databaseId);
}

/*
 * snowflake_registry.timeline_is_confirmed(): have the synchronous standbys
 * WAL of the timeline that this server was promoted to?
 *
 * A commit that has waited is no answer: it is released, too, when
 * synchronous_standby_names is cleared.  Nor is the position that commits wait
 * for: it remains when the names are cleared, and can be one of the previous
 * timeline.  So the standbys are looked at, and then whether there still are
 * names.  If they are cleared after that, at most this commit is lost, but the
 * standbys that had the WAL before cannot be promoted to its timeline.
 */
Datum
snowflake_timeline_is_confirmed(PG_FUNCTION_ARGS)
{
	TimeLineHistoryEntry *current;
	SyncRepStandbyData *standbys;
	int			nstandbys;
	int			have = 0;

	if (RecoveryInProgress())
		PG_RETURN_BOOL(false);
	current = linitial(readTimeLineHistory(GetWALInsertionTimeLine()));
	if (current->begin == InvalidXLogRecPtr || SyncRepConfig == NULL)
		PG_RETURN_BOOL(false);
	nstandbys = SyncRepGetCandidateStandbys(&standbys);
	for (int i = 0; i < nstandbys; i++)
		have += standby_has_timeline(&standbys[i], current->begin);
	PG_RETURN_BOOL(have >= SyncRepConfig->num_sync &&
				   snowflake_synchronous_standbys());
}
