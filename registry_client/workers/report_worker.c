/*-------------------------------------------------------------------------
 *
 * report_worker.c
 *	  The background worker that reads which numbers a database has.
 *
 * range_report.c starts it for each database in turn.  It sends what it finds through a
 * queue, and at the end a message that is shorter.
 *
 * It has the rights of a superuser, in a database in which others own tables.  Their
 * rows are read as their owners, and that ends after a while.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * registry_client/workers/report_worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

#include "sequences/report.h"
#include "shared/compat.h"

PGDLLEXPORT void snowflake_report_main(Datum main_arg);

static void
send_report(const RangeReport *report, void *queue)
{
	if (shm_mq_send(queue, sizeof(RangeReport), report, false, true) != SHM_MQ_SUCCESS)
		proc_exit(1);
}

/*
 * Main function of the background worker, in whose argument is the queue.
 */
void
snowflake_report_main(Datum main_arg)
{
	Oid			database;
	dsm_segment *segment;
	shm_mq	   *queue;
	shm_mq_handle *handle;

	/* The last one came with PostgreSQL 17. */
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_deferrable", "off"},
		{"transaction_timeout", "0"}
	};

	memcpy(&database, MyBgworkerEntry->bgw_extra, sizeof(Oid));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);

	/* Its owner could have it wait for a safe snapshot, or end. */
	for (size_t i = 0; i < lengthof(settings); i++)
	{
		if (GetConfigOption(settings[i].name, true, false) != NULL)
			SetConfigOption(settings[i].name, settings[i].value, PGC_USERSET, PGC_S_OVERRIDE);
	}

	StartTransactionCommand();

	/* The first one of a transaction is not taken during a scan of a catalog. */
	PushActiveSnapshot(GetTransactionSnapshot());
	segment = dsm_attach(DatumGetUInt32(main_arg));
	if (segment == NULL)
		proc_exit(1);
	queue = dsm_segment_address(segment);
	shm_mq_set_sender(queue, MyProc);
	handle = shm_mq_attach(queue, segment, NULL);

	pgstat_report_activity(STATE_RUNNING, "which numbers of sequences are in use");
	snowflake_report_sequences(send_report, handle);
	(void) shm_mq_send(handle, 1, "", false, true);
	dsm_detach(segment);
	PopActiveSnapshot();
	CommitTransactionCommand();
	proc_exit(0);
}
