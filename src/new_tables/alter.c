/*-------------------------------------------------------------------------
 *
 * alter.c
 *	  ALTER SEQUENCE, SET LOGGED and TRUNCATE, for sequences that are not local.
 *
 * What a range sequence was granted is in its file, which they replace: it is read
 * before the statement, and written into the new file after it.  If another session has
 * locked the file, ALTER waits for it before that, and not after it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/alter.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/sequence.h"
#include "commands/tablecmds.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"

#include "new_tables/alter.h"
#include "ranges/granted.h"
#include "sequences/exhaust.h"
#include "sequences/kind.h"
#include "sequences/labelled.h"
#include "sequences/suitable.h"

/* What a range sequence was granted. */
typedef struct GrantedNumber
{
	Oid			relid;
	GrantedNote note;
} GrantedNumber;

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

static bool
has_no_cycle(const AlterSeqStmt *statement)
{
	DefElem    *cycle = find_option(statement, "cycle");

	return cycle != NULL && !boolVal(cycle->arg);
}

/*
 * Lock the sequence of ALTER SEQUENCE.  The lock and the check of the owner are those
 * of the statement.
 */
static Oid
lock_altered_sequence(const AlterSeqStmt *alter)
{
	return RangeVarGetRelidExtended(alter->sequence, ShareRowExclusiveLock,
									RVR_MISSING_OK, RangeVarCallbackOwnsRelation, NULL);
}

/*
 * Before ALTER SEQUENCE: have the label say what it says of CYCLE.
 *
 * In a read-only transaction, the statement fails; a standby has no such lock.
 */
void
snowflake_prepare_alter(const Node *statement)
{
	const AlterSeqStmt *alter = (const AlterSeqStmt *) statement;
	Oid			relid;

	if (!IsA(statement, AlterSeqStmt) || XactReadOnly || !has_no_cycle(alter))
		return;
	relid = lock_altered_sequence(alter);
	if (OidIsValid(relid) && get_rel_relkind(relid) == RELKIND_SEQUENCE)
		snowflake_forget_cycle(relid);
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
 * Is a statement ALTER ... SET LOGGED or UNLOGGED, which owned sequences follow?
 */
static bool
sets_persistence(const Node *statement)
{
	ListCell   *cell;

	if (!IsA(statement, AlterTableStmt))
		return false;
	foreach(cell, ((const AlterTableStmt *) statement)->cmds)
	{
		AlterTableType type = lfirst_node(AlterTableCmd, cell)->subtype;

		if (type == AT_SetLogged || type == AT_SetUnLogged)
			return true;
	}
	return false;
}

/*
 * Can a utility statement reset the position of sequences, or what is noted there?
 */
SnowflakeReset
snowflake_resets_sequences(const Node *statement)
{
	if (sets_persistence(statement))
		return SNOWFLAKE_RESET_BY_ALTER;
	if (IsA(statement, AlterSeqStmt))
		return sets_owner_only((const AlterSeqStmt *) statement) ?
			SNOWFLAKE_RESET_NONE : SNOWFLAKE_RESET_BY_ALTER;
	if (IsA(statement, TruncateStmt) &&
		((const TruncateStmt *) statement)->restart_seqs)
		return SNOWFLAKE_RESET_BY_TRUNCATE;
	return SNOWFLAKE_RESET_NONE;
}

/*
 * Add what a sequence was granted to a list, if it is a range sequence.  The caller has
 * locked it, so that its file is not removed meanwhile.
 */
static List *
add_granted(List *list, Oid relid)
{
	GrantedNumber *granted;

	if (snowflake_sequence_kind(relid) != SNOWFLAKE_KIND_RANGE)
		return list;
	granted = palloc_object(GrantedNumber);
	granted->relid = relid;
	granted->note = snowflake_read_note(relid, snowflake_get_definition(relid).seqmax);
	return lappend(list, granted);
}

/*
 * Lock the sequences to which SET LOGGED and its like give other files, and read what
 * they were granted.  The server changes the tuple in the file that it replaces, which
 * has the note no more after a rollback then.  So that is another file already.
 */
static List *
granted_before_persistence(AlterTableStmt *statement)
{
	Oid			relid = AlterTableLookupRelation(statement, AccessExclusiveLock);
	List	   *list = add_granted(NIL, relid);
	ListCell   *cell;

	foreach(cell, OidIsValid(relid) ? getOwnedSequences(relid) : NIL)
	{
		LockRelationOid(lfirst_oid(cell), AccessExclusiveLock);
		list = add_granted(list, lfirst_oid(cell));
	}
	foreach(cell, list)
		ResetSequence(((GrantedNumber *) lfirst(cell))->relid);
	CommandCounterIncrement();
	return list;
}

/*
 * Lock the sequence of ALTER SEQUENCE, and read what it was granted.  It is exhausted,
 * so a lower MAXVALUE would be below its last value: then it is at its start before the
 * statement, and is exhausted again after it.
 */
static List *
granted_before_sequence(const AlterSeqStmt *statement)
{
	Oid			relid = lock_altered_sequence(statement);
	List	   *list = add_granted(NIL, relid);

	if (OidIsValid(relid) && get_rel_relkind(relid) == RELKIND_SEQUENCE &&
		decreases_maximum(statement, relid))
	{
		ResetSequence(relid);
		CommandCounterIncrement();
	}
	return list;
}

/*
 * Lock the sequences to which ALTER gives other files, and what it locks by name, and
 * read what they were granted.
 */
static List *
granted_before_alter(Node *statement)
{
	if (IsA(statement, AlterSeqStmt))
		return granted_before_sequence((AlterSeqStmt *) statement);
	return granted_before_persistence((AlterTableStmt *) statement);
}

/*
 * The same for a sequence that TRUNCATE may give another file, or a subscription another
 * position.  It is locked for a moment, and left out if another session has locked it:
 * that can be another TRUNCATE, after which it has no rows.
 */
static bool
read_granted(Oid relid, void *arg)
{
	List	  **list = arg;

	if (!ConditionalLockRelationOid(relid, RowExclusiveLock))
		return false;
	*list = add_granted(*list, relid);
	UnlockRelationOid(relid, RowExclusiveLock);
	return false;
}

/*
 * Read what range sequences were granted, before a statement or subscription that can
 * give them other files or positions.  In a read-only transaction, it fails; a standby
 * does not have all of the files.
 */
List *
snowflake_granted_before(Node *statement, SnowflakeReset reset)
{
	List	   *list = NIL;

	if (reset == SNOWFLAKE_RESET_NONE || XactReadOnly ||
		!OidIsValid(snowflake_find_nonlocal_sequence()))
		return NIL;
	if (reset == SNOWFLAKE_RESET_BY_ALTER)
		return granted_before_alter(statement);
	(void) snowflake_find_labelled(read_granted, &list);
	return list;
}

/*
 * Have the files say so again, after the sequences were exhausted.  Those are locked like
 * this, or more strongly, until the transaction ends.
 */
void
snowflake_keep_granted(const List *before, LOCKMODE mode)
{
	ListCell   *cell;

	foreach(cell, before)
	{
		GrantedNumber *granted = lfirst(cell);

		if (snowflake_is_locked(granted->relid, mode))
			snowflake_keep_note(granted->relid,
								snowflake_get_definition(granted->relid).seqmax,
								&granted->note);
	}
}
