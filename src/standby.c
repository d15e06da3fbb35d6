/*-------------------------------------------------------------------------
 *
 * standby.c
 *	  Have the synchronous standbys got the WAL?
 *
 * A commit waits for them in SyncRepWaitForLSN().  That is not for us: it goes
 * by the synchronous_commit of the session, where what is waited for concerns
 * all of them, and a wait that is cancelled returns as one that is done.  What
 * it waits for can be looked at, though: the position that the walsenders
 * report in shared memory.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/standby.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lwlock.h"
#include "utils/guc.h"

#include "compat.h"
#include "standby.h"

/*
 * Is synchronous_standby_names set?
 *
 * A backend in the middle of a query does not reload the configuration, so
 * the checkpointer keeps what it is in a byte of shared memory.  That byte was
 * a bool first.  Since 15.13, 16.9, 17.5 and 18 its first bit tells that the
 * checkpointer has set it, its second one that there are standbys.  The module
 * may run on another minor version than it was built for, so the server is
 * asked for its own.
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
	 * It is read without a lock, as SyncRepWaitForLSN() does.  A byte is
	 * never read in halves, and one that is too old is that of a commit which
	 * came a moment before the change.
	 */
	status = *(volatile uint8 *) &snowflake_standbys_byte;
	if (version < 150013 ||
		(version >= 160000 && version < 160009) ||
		(version >= 170000 && version < 170005))
		return status != 0;
	if ((status & 1) != 0)
		return (status & 2) != 0;

	/* The checkpointer is not that far yet. */
	return SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0';
}

/*
 * Have as many synchronous standbys as are asked for flushed the WAL up to
 * here, or are there none by now?
 */
bool
snowflake_standbys_have(XLogRecPtr lsn)
{
	XLogRecPtr	flushed;

	if (!snowflake_synchronous_standbys())
		return true;
	LWLockAcquire(SyncRepLock, LW_SHARED);
	flushed = WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH];
	LWLockRelease(SyncRepLock);
	return lsn <= flushed;
}
