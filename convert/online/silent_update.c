/*-------------------------------------------------------------------------
 *
 * silent_update.c
 *	  An UPDATE that fires no triggers, and computes no generated columns.
 *
 * The backfill changes nothing that the application sees, so triggers of the
 * table are not to act on it.  session_replication_role would do that, too,
 * but only superusers may set it, and for a reason: it turns off the triggers
 * and foreign keys of all tables.  The expressions of the table's CHECK
 * constraints and indexes belong to its owner, and they can change tables of
 * other owners.  So the triggers are taken from the executor's state of this
 * table alone.
 *
 * Stored generated columns keep their values, too.  The server computes them anew in
 * each UPDATE of a table that has a BEFORE trigger, as this one has; a function that
 * was replaced since then, or another time zone, would give other values.  None of
 * them depends on the columns that the backfill fills.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/silent_update.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "parser/analyze.h"
#include "parser/parsetree.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "convert/online/silent_update.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

static Query *
rewrite(const char *statement)
{
	RawStmt    *raw = linitial_node(RawStmt, pg_parse_query(statement));
	Query	   *query = parse_analyze_fixedparams(raw, statement, NULL, 0, NULL);
	Relation	table = table_open(rt_fetch(query->resultRelation, query->rtable)->relid,
								   NoLock);

	/* They are an obstacle when the call begins, so this is a new one. */
	if (table->rd_rules != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("a rule was created for table %s during the conversion",
						snowflake_relation_name(RelationGetRelid(table))),
				 errhint("Drop the rule, and call snowflake_convert_online() again.")));
	table_close(table, NoLock);
	return linitial_node(Query, pg_rewrite_query(query));
}

/*
 * SnowflakeWork: execute it.
 */
bool
snowflake_online_update_silently(void *argument)
{
	SnowflakeSilentUpdate *update = argument;
	Query	   *query = rewrite(update->statement);
	PlannedStmt *plan;
	QueryDesc  *desc;
	MemoryContext old;
	ListCell   *cell;

	PushActiveSnapshot(GetTransactionSnapshot());
	plan = snowflake_plan_query(query, update->statement);
	desc = CreateQueryDesc(plan, update->statement, GetActiveSnapshot(),
						   InvalidSnapshot, None_Receiver, NULL, NULL, 0);
	ExecutorStart(desc, 0);
	old = MemoryContextSwitchTo(desc->estate->es_query_cxt);
	foreach(cell, desc->estate->es_opened_result_relations)
	{
		ResultRelInfo *relation = lfirst(cell);

		relation->ri_TrigDesc = NULL;
		snowflake_skip_generated(relation,
								 RelationGetNumberOfAttributes(relation->ri_RelationDesc));
	}
	MemoryContextSwitchTo(old);
	snowflake_executor_run(desc);
	update->nrows = (int64) desc->estate->es_processed;
	ExecutorFinish(desc);
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
	PopActiveSnapshot();
	CommandCounterIncrement();
	return true;
}
