/*-------------------------------------------------------------------------
 *
 * steps.h
 *	  The steps of a conversion of tables in use.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/steps.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_ONLINE_STEPS_H
#define SNOWFLAKE_ONLINE_STEPS_H

#include "convert/online/transaction.h"

/* What a step does, in the order of the phases. */
typedef enum SnowflakeOnlineStepKind
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
} SnowflakeOnlineStepKind;

typedef struct SnowflakeOnlineStep
{
	SnowflakeOnlineStepKind kind;
	SnowflakeOnlinePhase phase;
	bool		done;
	Oid			relid;			/* the table */
	Oid			other;			/* another one to lock, if any */
	Oid			object;			/* the old index, constraint, and so on */
	char	   *table;			/* names */
	char	   *new_name;
	char	   *tablespace;		/* of an index */
	char	   *statement;		/* NULL if snowflake_online_step_statement()
								 * finds it */
} SnowflakeOnlineStep;

extern List *snowflake_online_list_steps(const SnowflakeConversion *conversion);
extern bool snowflake_online_has_begun(const SnowflakeConversion *conversion,
									   const List *steps);
extern char *snowflake_online_step_statement(const SnowflakeConversion *conversion,
											 const SnowflakeOnlineStep *step);
extern char *snowflake_online_definitions(const List *relids);
extern void snowflake_online_find_changed_objects(const SnowflakeConversion *conversion,
												  const List *steps,
												  const List *relids, List **findings);
extern List *snowflake_online_undo_statements(const SnowflakeConversion *conversion,
											  List **tables);
extern const char *snowflake_online_phase_name(SnowflakeOnlinePhase phase);

#endif							/* SNOWFLAKE_ONLINE_STEPS_H */
