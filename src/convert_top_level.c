/*-------------------------------------------------------------------------
 *
 * convert_top_level.c
 *	  Statements that cannot run in a transaction, such as CREATE INDEX
 *	  CONCURRENTLY, from within a procedure.
 *
 * A procedure that is the outermost statement of a session may commit.  Then
 * nothing distinguishes its state from that of a session without a
 * transaction block, if care is taken of:
 *
 * - Snapshots.  The statement gets the one of the portal, as a statement from
 *	 a client does.  What has an internal commit takes it away, and pushes
 *	 another one; event triggers look for it.  So it is set by
 *	 EnsurePortalSnapshotExists(), and afterwards it is popped where it is
 *	 still there.
 * - Users.  The session's user runs the statement.  These statements become
 *	 the owner of the table by themselves, but only after the definition of an
 *	 index was analyzed, which evaluates code of the owner, such as the CHECK of
 *	 a domain that a constant has.  So that is done before, as the owner.  A user
 *	 ID that is set for the whole statement would survive its internal commits.
 * - Settings.  search_path is set until the first commit, which is after all
 *	 names were looked up.  So is default_tablespace, because the definition
 *	 of an index does not contain its tablespace.
 * - Memory.  What the statement needs is in a context of the caller, because
 *	 its own transactions end.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/convert_top_level.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/tablecmds.h"
#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "parser/analyze.h"
#include "parser/parse_utilcmd.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

#include "convert_online.h"
#include "table_owner.h"

/*
 * Settings until the end of the transaction.
 */
static void
set_until_commit(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Analyze the definition of an index, as the owner of its table.
 */
static IndexStmt *
analyze_index(IndexStmt *index, const char *statement)
{
	Oid			relid = RangeVarGetRelidExtended(index->relation,
												 ShareUpdateExclusiveLock, 0,
												 RangeVarCallbackOwnsRelation,
												 NULL);
	SnowflakeCaller caller;

	snowflake_become_owner(snowflake_table_owner(relid), &caller);
	index = transformIndexStmt(relid, index, statement);
	snowflake_become_caller(&caller);
	return index;
}

/*
 * Parse a utility statement, and execute it.
 */
static void
process(const char *statement)
{
	RawStmt    *raw = linitial_node(RawStmt, pg_parse_query(statement));
	Query	   *query = parse_analyze_fixedparams(raw, statement, NULL, 0, NULL);
	PlannedStmt *planned = makeNode(PlannedStmt);

	if (query->commandType != CMD_UTILITY)
		elog(ERROR, "not a utility statement: %s", statement);
	planned->commandType = CMD_UTILITY;
	planned->canSetTag = true;
	planned->utilityStmt = query->utilityStmt;
	if (IsA(planned->utilityStmt, IndexStmt))
		planned->utilityStmt = (Node *) analyze_index((IndexStmt *) planned->utilityStmt,
													  statement);
	planned->queryId = query->queryId;
	ProcessUtility(planned, statement, false, PROCESS_UTILITY_TOPLEVEL, NULL,
				   NULL, None_Receiver, NULL);
}

/*
 * End the transaction that the statement has left open, as the session's main
 * loop would.
 */
static void
finish(MemoryContext context)
{
	if (ActivePortal->portalSnapshot != NULL && ActiveSnapshotSet())
		PopActiveSnapshot();
	ActivePortal->portalSnapshot = NULL;
	MemoryContextSwitchTo(context);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	SPI_finish();
}

/*
 * Run a statement, with no transaction of the caller and no connection to SPI.
 */
void
snowflake_run_top_level(MemoryContext context, const char *statement,
						const char *tablespace)
{
	MemoryContext old = CurrentMemoryContext;
	MemoryContext own = AllocSetContextCreate(context, "top-level statement",
											  ALLOCSET_DEFAULT_SIZES);

	MemoryContextSwitchTo(own);
	EnsurePortalSnapshotExists();
	(void) NewGUCNestLevel();
	set_until_commit("search_path", "pg_catalog, pg_temp");
	set_until_commit("default_tablespace", tablespace == NULL ? "" : tablespace);
	process(pstrdup(statement));
	finish(own);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(own);
}
