/*-------------------------------------------------------------------------
 *
 * alter.c
 *	  ALTER SEQUENCE and TRUNCATE, for sequences that are not local.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/alter.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "utils/lsyscache.h"

#include "new_tables/alter.h"
#include "sequences/kind.h"
#include "sequences/suitable.h"

static DefElem *
find_option(const AlterSeqStmt *statement, const char *name)
{
	ListCell   *cell;

	foreach(cell, statement->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, name) == 0)
			return option;
	}
	return NULL;
}

/*
 * The MAXVALUE that a sequence is to have: as it is, if nothing says otherwise, but
 * that of its type changes with the type.
 */
static int64
new_maximum(const AlterSeqStmt *statement, const FormData_pg_sequence *now)
{
	DefElem    *type = find_option(statement, "as");
	DefElem    *maximum = find_option(statement, "maxvalue");
	Oid			new_type = type != NULL ?
		typenameTypeId(NULL, defGetTypeName(type)) : now->seqtypid;

	if (maximum != NULL && maximum->arg != NULL)
		return defGetInt64(maximum);
	if (maximum != NULL || now->seqmax == snowflake_type_maximum(now->seqtypid))
		return snowflake_type_maximum(new_type);
	return now->seqmax;
}

/*
 * Does a statement decrease MAXVALUE of a sequence that is not local, without RESTART?
 */
static bool
decreases_maximum(const AlterSeqStmt *statement, Oid relid)
{
	FormData_pg_sequence now;

	if (find_option(statement, "restart") != NULL ||
		snowflake_sequence_kind(relid) == SNOWFLAKE_KIND_LOCAL)
		return false;
	now = snowflake_get_definition(relid);
	return new_maximum(statement, &now) < now.seqmax;
}

/*
 * The same statement with RESTART.
 */
static PlannedStmt *
with_restart(PlannedStmt *planned)
{
	PlannedStmt *copy = copyObject(planned);
	AlterSeqStmt *statement = castNode(AlterSeqStmt, copy->utilityStmt);

	statement->options = lappend(statement->options, makeDefElem("restart", NULL, -1));
	return copy;
}

/*
 * Before ALTER SEQUENCE of one that is not local.  The sequence is exhausted, and a lower
 * MAXVALUE would be below its last value; so it restarts with that, and is exhausted again
 * afterwards.
 *
 * The lock and the check of the owner are those of the statement.  In a read-only
 * transaction, that fails; a standby has no such lock.
 */
PlannedStmt *
snowflake_prepare_alter(PlannedStmt *planned)
{
	const AlterSeqStmt *statement = (const AlterSeqStmt *) planned->utilityStmt;
	Oid			relid;

	if (!IsA(statement, AlterSeqStmt) || XactReadOnly)
		return planned;
	relid = RangeVarGetRelidExtended(statement->sequence, ShareRowExclusiveLock,
									 RVR_MISSING_OK, RangeVarCallbackOwnsRelation, NULL);
	if (!OidIsValid(relid) || get_rel_relkind(relid) != RELKIND_SEQUENCE)
		return planned;
	return decreases_maximum(statement, relid) ? with_restart(planned) : planned;
}

/*
 * Is a statement ALTER SEQUENCE ... OWNED BY, which each serial column has?
 */
static bool
sets_owner_only(const AlterSeqStmt *statement)
{
	return list_length(statement->options) == 1 &&
		strcmp(linitial_node(DefElem, statement->options)->defname, "owned_by") == 0;
}

/*
 * Can a utility statement reset the position of sequences?
 */
bool
snowflake_resets_sequences(const Node *statement)
{
	if (IsA(statement, AlterSeqStmt))
		return !sets_owner_only((const AlterSeqStmt *) statement);
	return IsA(statement, TruncateStmt) && ((const TruncateStmt *) statement)->restart_seqs;
}
