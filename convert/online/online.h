/*-------------------------------------------------------------------------
 *
 * online.h
 *	  What the files of snowflake_convert_online() share.
 *
 *	online/online.c			the procedure and its phases; plan and undo
 *	online/backfill.c	copies the old columns to the new ones
 *	online/obstacles.c	what prevents a conversion of a table in use
 *	online/rehearsal.c	whether what a swap creates again accepts bigint
 *	online/swap_statements.c		the statements that swap the columns of a table
 *	online/steps.c		which steps there are, and which are done
 *	online/locks.c		locks that nobody has to wait behind
 *	online/catalog_rows.c		rows of the catalogs that others may change
 *	online/silent_update.c		an UPDATE that fires no triggers
 *	online/top_level.c			statements outside of a transaction
 *	online/copy_trigger.c		the trigger that fills the new columns
 *
 * A file calls those below it, and those of convert.h.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/online.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_ONLINE_H
#define SNOWFLAKE_CONVERT_ONLINE_H

#include "datatype/timestamp.h"
#include "storage/lockdefs.h"
#include "utils/timestamp.h"

#include "convert/convert.h"
#include "shared/table_owner.h"

/*
 * Names of what a conversion creates, beside those of the triggers and
 * SNOWFLAKE_NEW_NAME().
 */
#define SNOWFLAKE_COPY_CHECK	"snowflake_new_check"
#define SNOWFLAKE_NULL_CHECK	"snowflake_new_null_check"
#define SNOWFLAKE_COPY_CHECKS	"'" SNOWFLAKE_COPY_CHECK "', '" SNOWFLAKE_NULL_CHECK "'"
#define SNOWFLAKE_COPY_TABLE	"snowflake_new_definitions"

/*
 * The name of a new column, index, constraint, or statistics object in SQL,
 * from that of the old one.
 */
#define SNOWFLAKE_NEW_NAME(name) \
	"CASE WHEN octet_length(" name "::text) <= 49 THEN 'snowflake_new_' || " name \
	" ELSE 'snowflake_new_' || md5(" name "::text) END"

/* What a row of pg_stat_activity is called, in a query that is a format. */
#define SNOWFLAKE_PROCESS(word) \
	"format('" word " %%s (%%s, %%s)', pid, usename, coalesce(nullif(application_name, ''), backend_type))"

/* What a step does, in the order of the phases. */
typedef enum SnowflakeStepKind
{
	SNOWFLAKE_STEP_PREPARE,
	SNOWFLAKE_STEP_BACKFILL,
	SNOWFLAKE_STEP_INDEX,
	SNOWFLAKE_STEP_CHECK,
	SNOWFLAKE_STEP_STATISTICS,
	SNOWFLAKE_STEP_ANALYZE,
	SNOWFLAKE_STEP_FOREIGN_KEY,
	SNOWFLAKE_STEP_VALIDATE,
	SNOWFLAKE_STEP_SWAP,
	SNOWFLAKE_STEP_DEFAULT
} SnowflakeStepKind;

typedef enum SnowflakePhase
{
	SNOWFLAKE_PHASE_PREPARE,
	SNOWFLAKE_PHASE_BACKFILL,
	SNOWFLAKE_PHASE_INDEXES,
	SNOWFLAKE_PHASE_FOREIGN_KEYS,
	SNOWFLAKE_PHASE_SWAP,
	SNOWFLAKE_PHASE_DEFAULT
} SnowflakePhase;

typedef struct SnowflakeOnlineStep
{
	SnowflakeStepKind kind;
	SnowflakePhase phase;
	bool		done;
	Oid			relid;			/* the table */
	Oid			other;			/* another one to lock, if any */
	Oid			object;			/* the old index, constraint, and so on */
	char	   *table;			/* names */
	char	   *new_name;
	char	   *schema;			/* of the new object */
	char	   *tablespace;		/* of an index */
	char	   *statement;		/* NULL if snowflake_step_statement() finds it */
} SnowflakeOnlineStep;

/* How to proceed. */
typedef struct SnowflakeOnlineOptions
{
	SnowflakePhase until;		/* the last phase */
	bool		subscribers_ready;
	bool		by_hand;		/* the plan only */
	bool		undo;
	int64		batch_us;		/* length of a batch */
	double		work_share;		/* of the time, how much is work */
	int			lock_ms;		/* how long others may wait behind a lock */
	int64		max_lag_us;		/* of a standby; 0 is unlimited */
	int64		give_up_us;		/* after waiting so long; 0 is never */
} SnowflakeOnlineOptions;

typedef struct SnowflakeOnline
{
	SnowflakeOnlineOptions options;
	Oid			relid;
	char	   *column;			/* NULL until the first transaction */
	Oid			generator;		/* as specified */
	Oid			namespace;		/* of the extension snowflake_convert */
	MemoryContext context;		/* outlives transactions */
	Oid			owner;			/* while a transaction is open: */
	SnowflakeCaller caller;
	SnowflakeConversion conversion;
	bool		rows_locked;	/* those of online/catalog_rows.c */
	int64		locked_since;	/* by the steady clock: when a step got its
								 * locks, or 0 */
	Oid			waits_for;		/* table whose swap has looked for sessions */
	List	   *old_sessions;	/* with snapshots that may be older than the
								 * copies of its columns, as strings */
	bool		exported;		/* there was a snapshot to import */
	int64		wait_start;		/* of the present wait, or 0 */
	int64		wait_told;		/* when that was last reported */
} SnowflakeOnline;

/* What to do with locked tables. */
typedef void (*SnowflakeWork) (SnowflakeOnline *online, void *argument);

/* online/backfill.c */
extern void snowflake_backfill(SnowflakeOnline *online,
							   const SnowflakeOnlineStep *step);
extern int	snowflake_backfill_percent(const SnowflakeConversion *conversion,
									   const SnowflakeOnlineStep *step);

/* online/swap_statements.c */
extern List *snowflake_swap_scope(const SnowflakeConversion *conversion,
								  Oid relid);
extern List *snowflake_swap_locks(const SnowflakeConversion *conversion,
								  Oid relid);
extern List *snowflake_swap_indexes(const SnowflakeConversion *conversion,
									Oid relid);
extern void snowflake_swap_statements(const SnowflakeConversion *conversion,
									  Oid relid, List **before_drop,
									  List **after_drop);
extern List *snowflake_swap_trees(const SnowflakeConversion *conversion,
								  Oid relid);
extern void snowflake_check_drop(Oid relid, const List *trees);
extern List *snowflake_swap_names(const List *relids);
extern char *snowflake_swap_privileges(const List *names);
extern char *snowflake_swap_comments(const List *relids);
extern void snowflake_check_privileges(Oid relid, const List *names,
									   const char *privileges);
extern void snowflake_check_swap(const SnowflakeConversion *conversion,
								 Oid relid, const List *obstacles);

/* online/steps.c */
extern const char snowflake_online_tables[];
extern const char snowflake_online_views[];
extern List *snowflake_steps(const SnowflakeConversion *conversion);
extern char *snowflake_step_statement(const SnowflakeConversion *conversion,
									  const SnowflakeOnlineStep *step);
extern List *snowflake_changed_objects(const SnowflakeConversion *conversion,
									   const List *relids);
extern List *snowflake_undo_statements(const SnowflakeConversion *conversion,
									   List **tables);
extern const char *snowflake_phase_name(SnowflakePhase phase);

/* online/obstacles.c */
extern List *snowflake_list_online_obstacles(const SnowflakeConversion *conversion,
											 const SnowflakeOnlineOptions *options,
											 bool *known);
extern List *snowflake_list_object_obstacles(const SnowflakeConversion *conversion,
											 const List *relids);
extern void snowflake_give_online_notices(const SnowflakeConversion *conversion);

/* online/rehearsal.c */
extern bool snowflake_rehearse_swaps(const SnowflakeConversion *conversion,
									 List **obstacles);

/* online/locks.c */
extern void snowflake_open(SnowflakeOnline *online);
extern void snowflake_begin(SnowflakeOnline *online);
extern void snowflake_commit(SnowflakeOnline *online);
extern void snowflake_commit_soon(SnowflakeOnline *online);
extern bool snowflake_with_locks(SnowflakeOnline *online, List *relids,
								 LOCKMODE mode, SnowflakeWork work,
								 void *argument);
extern List *snowflake_with_partitions(const List *relids);
extern void snowflake_report_wait(SnowflakeOnline *online, const char *what,
								  const char *who);
extern void snowflake_report_transactions(const SnowflakeOnline *online,
										  const char *what);
extern void snowflake_nap(double ms);
extern void snowflake_run_statement(const char *statement);

/* online/catalog_rows.c */
extern char *snowflake_find_changer(const List *relids);
extern void snowflake_lock_rows(const List *relids);
extern void snowflake_lock_functions(const List *relids);

/* online/silent_update.c */
extern uint64 snowflake_update_silently(const char *statement);

/* online/top_level.c */
extern void snowflake_run_top_level(MemoryContext context, Oid owner,
									const char *statement,
									const char *tablespace);

#endif							/* SNOWFLAKE_CONVERT_ONLINE_H */
