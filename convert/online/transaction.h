/*-------------------------------------------------------------------------
 *
 * transaction.h
 *	  The state of a call, its transactions, and its waits.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/transaction.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_TRANSACTION_H
#define SNOWFLAKE_ONLINE_TRANSACTION_H

#include "nodes/pg_list.h"

#include "convert/catalog/queries.h"
#include "shared/table_owner.h"

/* About how long until a lock is requested again. */
#define SNOWFLAKE_RETRY_MS	400

/* Transactions older than so many times lock_wait are waited for. */
#define SNOWFLAKE_PATIENCE	INT64CONST(3)

typedef enum SnowflakeOnlinePhase
{
	SNOWFLAKE_PHASE_PREPARE,
	SNOWFLAKE_PHASE_BACKFILL,
	SNOWFLAKE_PHASE_INDEXES,
	SNOWFLAKE_PHASE_FOREIGN_KEYS,
	SNOWFLAKE_PHASE_SWAP,
	SNOWFLAKE_PHASE_DEFAULT
} SnowflakeOnlinePhase;

/* How to proceed. */
typedef struct SnowflakeOnlineOptions
{
	SnowflakeOnlinePhase until; /* the last phase */
	bool		subscribers_ready;
	bool		undo;
	int64		batch_us;		/* length of a batch */
	double		work_share;		/* of the time, how much is work */
	int			lock_ms;		/* how long others may wait behind a lock */
	int64		max_lag_us;		/* of a standby; 0 is unlimited */
	int64		give_up_us;		/* after waiting so long; 0 is never */
} SnowflakeOnlineOptions;

/* What is known in a transaction, from snowflake_online_open() on. */
typedef struct SnowflakeOnlineTransaction
{
	Oid			owner;			/* of the table, as whom it runs */
	SnowflakeCaller caller;
	SnowflakeConversion conversion;
	bool		only_looked;	/* did it change nothing? */
	bool		prepared;		/* ... but found what the next one needs? */
	bool		rows_locked;	/* those of catalog_rows.c */
	Oid			locking;		/* the table that is being locked */
	int64		locked_since;	/* by the steady clock: when it got its locks,
								 * or 0 */
} SnowflakeOnlineTransaction;

/* What the swap of a table waits for, across transactions. */
typedef struct SnowflakeOnlineSwap
{
	Oid			relid;			/* the table */
	List	   *old_sessions;	/* with snapshots that may be older than the
								 * copies of its columns, as strings */
	bool		exported;		/* there was a snapshot to import */
	Oid			checked;		/* a table whose objects have not changed
								 * since their new ones were created, */
	char	   *definitions;	/* ... as long as these are what they were */
} SnowflakeOnlineSwap;

/* A wait, by the steady clock. */
typedef struct SnowflakeOnlineWait
{
	int64		start;			/* 0 if there is none */
	int64		told;			/* when it was last reported */
} SnowflakeOnlineWait;

/* A call. */
typedef struct SnowflakeOnline
{
	SnowflakeOnlineOptions options;
	Oid			relid;
	char	   *column;			/* NULL until the first transaction */
	Oid			generator;		/* as specified */
	SnowflakeConversion blank;	/* as it is before keys are found */
	Oid			namespace;		/* of the extension snowflake_convert */
	MemoryContext context;		/* outlives transactions */
	SnowflakeOnlineTransaction transaction;
	SnowflakeOnlineSwap swap;
	SnowflakeOnlineWait wait;
} SnowflakeOnline;

extern void snowflake_online_open(SnowflakeOnline *online);
extern void snowflake_online_begin(void);
extern void snowflake_online_commit(void);
extern void snowflake_online_rollback(void);
extern void snowflake_online_nap(double ms);
extern void snowflake_online_nap_about(double ms);
extern void snowflake_online_end_wait(SnowflakeOnline *online);
extern void snowflake_online_report_wait(SnowflakeOnline *online, const char *what,
										 const char *who);
extern void snowflake_online_report_transactions(const SnowflakeOnline *online,
												 const char *what);

#endif							/* SNOWFLAKE_ONLINE_TRANSACTION_H */
