/*-------------------------------------------------------------------------
 *
 * kind.c
 *	  The kind of a sequence: its label, and what changes with it.
 *
 * The kind is a security label.  Whoever owns the sequence may set it, and it
 * is dumped, copied with the database, and dropped like any other.  A sequence
 * without a label is local.  The label also keeps the position from before (label.c).
 * The label "local", which is as none for all but the view, says that somebody wants the
 * kind that new tables do not get.
 *
 * A sequence of another kind is exhausted: whatever reaches the server's own
 * nextval() fails.  See README.md for the protocol.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/kind.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_sequence.h"
#include "commands/dbcommands.h"
#include "commands/seclabel.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "generator/settings.h"
#include "ranges/numbers.h"
#include "sequences/attach.h"
#include "sequences/exhaust.h"
#include "sequences/floor.h"
#include "sequences/kind.h"
#include "sequences/label.h"
#include "sequences/position.h"
#include "sequences/suitable.h"
#include "sequences/unused.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

#define SET_KIND_HINT	"Call snowflake_set_sequence_kind()."

/*
 * Fail if a sequence was used, and the label does not have its position.
 */
static void
check_position(Oid relid, const SequenceLabel *label)
{
	if (label->has_position || snowflake_is_exhausted(relid) || snowflake_is_unused(relid))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("label of sequence \"%s\" does not have its position",
					get_rel_name(relid)),
			 errhint(SET_KIND_HINT)));
}

/*
 * Fail if the caller may not take numbers of another name than the sequence's own, or
 * above those of another database, which tell how many that was granted.
 */
static void
check_name(Oid relid, const SequenceLabel *label)
{
	if (label->kind != SNOWFLAKE_KIND_RANGE ||
		(strcmp(label->name, snowflake_range_name(relid)) == 0 &&
		 strcmp(label->database, get_database_name(MyDatabaseId)) == 0) ||
		snowflake_owns_database(MyDatabaseId, GetUserId()))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to use numbers of \"%s\" of database \"%s\" for sequence \"%s\"",
					label->name, label->database, get_rel_name(relid)),
			 errhint("Only the owner of the database can use another name than that of the sequence, or another database.")));
}

/*
 * The position with which a sequence continues: not below numbers that it gave
 * out meanwhile, here or on any server.  Without the registry, only those that this
 * server was granted since its start count, and the keys.
 */
static SequencePosition
local_position(Oid relid, const SequenceLabel *label, bool ask_registry)
{
	SequencePosition position = label->position;
	FormData_pg_sequence definition = snowflake_get_definition(relid);
	RangeStatistics here;
	int64		granted;
	int64		above;

	if (label->kind != SNOWFLAKE_KIND_RANGE)
		return position;
	granted = ask_registry ? snowflake_granted_number(relid, label) :
		snowflake_get_range_statistics(label->name, &here) ? here.granted : 0;
	above = snowflake_greatest_key(relid, NULL);
	above = Max(above, granted);
	if (above > 0 &&
		above >= (label->has_position ? position.last_value : definition.seqstart))
	{
		position.last_value = above;
		position.is_called = true;
	}
	return position;
}

static void
become_local(Oid relid, const SequenceLabel *label, bool ask_registry)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);
	SequencePosition position = local_position(relid, label, ask_registry);

	ResetSequence(relid);
	if (label->has_position || position.is_called)
		snowflake_set_position(relid, snowflake_position_within(position, &definition));
}

/*
 * Fail if a label cannot replace another one.
 */
static void
check_same(Oid relid, const SequenceLabel *old, const SequenceLabel *label)
{
	if (old->kind != label->kind || strcmp(old->name, label->name) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" is of kind \"%s\" already",
						get_rel_name(relid), snowflake_kind_name(old->kind)),
				 errhint(SET_KIND_HINT)));
}

/*
 * What others continue above, for a local sequence that was used, or has keys, whose owner
 * has written its label, which can have an old position.
 */
static void
settle_written(Oid relid, const SequenceLabel *label)
{
	SequenceLabel used = *label;
	SequencePosition position = snowflake_get_position(relid);

	if (!snowflake_is_exhausted(relid) &&
		(!used.has_position || position.last_value >= used.position.last_value))
	{
		used.has_position = true;
		used.position = position;
	}
	snowflake_settle_range(relid, &used);
}

/*
 * Before a sequence gets a label, or loses its label (NULL): have it be what that says.
 * An owner who writes one does not settle before what others continue above, as the
 * functions do.
 */
static void
change_label(Oid relid, const SequenceLabel *label, bool is_written, bool ask_registry)
{
	char	   *old_text = snowflake_get_label(relid);
	SequenceLabel old;

	if (old_text == NULL && label != NULL)
	{
		snowflake_check_suitable(relid, label->kind);
		check_position(relid, label);
		if (is_written && label->kind == SNOWFLAKE_KIND_RANGE &&
			(!snowflake_is_unused(relid) || snowflake_greatest_key(relid, NULL) > 0))
			settle_written(relid, label);
		if (!snowflake_is_exhausted(relid))
			snowflake_exhaust(relid);
	}
	else if (old_text != NULL && snowflake_read_label(old_text, &old))
	{
		if (label != NULL)
		{
			check_same(relid, &old, label);

			/* Otherwise, a copy repeats numbers of its former database. */
			if (is_written && old.kind == SNOWFLAKE_KIND_RANGE &&
				strcmp(old.database, label->database) != 0)
				snowflake_settle_range(relid, &old);
		}
		else
			become_local(relid, &old, ask_registry);
	}

	/* Last, so that it is processed after the label is set. */
	CacheInvalidateRelcacheByRelid(relid);
}

/*
 * Called before a label is set by SECURITY LABEL; NULL removes it.  The caller has checked
 * who owns the object.
 *
 * In a binary upgrade, definition and file are those of the old cluster.
 */
static void
relabel(const ObjectAddress *object, const char *string)
{
	Oid			relid = object->objectId;
	SequenceLabel label;

	if (object->classId != RelationRelationId || object->objectSubId != 0 ||
		get_rel_relkind(relid) != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("only sequences have labels of snowflake")));
	if (string != NULL && strcmp(string, SNOWFLAKE_LABEL_LOCAL) == 0)
		string = NULL;
	if (string != NULL && !snowflake_read_label(string, &label))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid label of a sequence: \"%s\"", string),
				 errhint(SET_KIND_HINT)));

	if (string != NULL)
		snowflake_attach_for_label();
	LockRelationOid(relid, ShareRowExclusiveLock);
	if (IsBinaryUpgrade)
		return;
	if (string != NULL)
		check_name(relid, &label);
	change_label(relid, string != NULL ? &label : NULL, true, true);
}

/*
 * Register the labels.
 */
void
snowflake_register_kinds(void)
{
	register_label_provider(SNOWFLAKE_LABEL_PROVIDER, relabel);
}

/*
 * Fill the label of a local sequence that becomes one of another kind.
 */
static void
fill_label(Oid relid, SnowflakeSequenceKind kind, const char *name,
		   SequenceLabel *label)
{
	memset(label, 0, sizeof(SequenceLabel));
	label->kind = kind;

	/* The caller's lock may be too weak to keep the file. */
	LockRelationOid(relid, RowExclusiveLock);
	label->position = snowflake_get_position(relid);
	label->has_position = !snowflake_is_unused(relid);
	UnlockRelationOid(relid, RowExclusiveLock);
	if (kind != SNOWFLAKE_KIND_RANGE)
		return;
	strlcpy(label->database, get_database_name(MyDatabaseId), sizeof(label->database));
	if (strlcpy(label->name, name != NULL ? name : snowflake_range_name(relid),
				sizeof(label->name)) >= sizeof(label->name))
		snowflake_fail_long_name();
}

/*
 * Fail if a relation is not a sequence of the caller.
 */
static void
check_sequence(Oid relid)
{
	char	   *name = get_rel_name(relid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (get_rel_relkind(relid) != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence", name)));
	if (!has_privs_of_role(GetUserId(), snowflake_table_owner(relid)))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, name);
}

/*
 * Store the text of a label, or none.
 */
static void
store_label(Oid relid, const char *text)
{
	ObjectAddress object;

	ObjectAddressSet(object, RelationRelationId, relid);
	SetSecurityLabel(&object, SNOWFLAKE_LABEL_PROVIDER, text);
	CommandCounterIncrement();
}

static void
set_label(Oid relid, const SequenceLabel *label, bool ask_registry)
{
	if (label != NULL)
		snowflake_attach_for_label();
	change_label(relid, label, false, ask_registry);
	store_label(relid, label != NULL ? snowflake_write_label(label) : NULL);
}

/*
 * Make a local sequence one of another kind, for which it has a label.
 */
static void
set_nonlocal(Oid relid, const SequenceLabel *label)
{
	if (label->kind == SNOWFLAKE_KIND_RANGE)
	{
		snowflake_check_suitable(relid, label->kind);
		snowflake_settle_range(relid, label);
	}
	set_label(relid, label, false);
}

/*
 * The kind of a sequence is set to what it is.  The label of a copied one is that of this
 * database then.
 */
static void
confirm_kind(Oid relid, SequenceLabel *label)
{
	if (label->kind != SNOWFLAKE_KIND_RANGE)
		return;
	snowflake_settle_range(relid, label);
	strlcpy(label->database, get_database_name(MyDatabaseId), sizeof(label->database));
	set_label(relid, label, false);
}

/*
 * Warn that a sequence that is local already is exhausted.  If it was of another kind, and
 * was restored without its label, nothing says where it was before.  One of another kind has
 * neither CYCLE nor a negative INCREMENT.
 */
static void
warn_exhausted(Oid relid)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);

	if (definition.seqcycle || definition.seqincrement < 0 ||
		get_rel_persistence(relid) == RELPERSISTENCE_TEMP || !snowflake_is_exhausted(relid))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("local sequence \"%s\" is exhausted", get_rel_name(relid)),
			 errhint("If it was restored without its kind, call setval() with the greatest key.")));
}

/*
 * Set the kind of a sequence of the caller.  A range sequence gets the name of
 * another one in this database if one is given.  The extension's own sequence stays as
 * it is, so that a loop over all sequences works.
 */
void
snowflake_set_kind(Oid relid, SnowflakeSequenceKind kind, const char *name,
				   bool without_registry)
{
	SequenceLabel label;

	PreventCommandIfReadOnly("snowflake_set_sequence_kind()");
	if (snowflake_is_own_sequence(relid))
		return;
	check_sequence(relid);
	LockRelationOid(relid, ShareRowExclusiveLock);
	check_sequence(relid);
	label = snowflake_sequence_label(relid);
	if (label.kind == kind && kind != SNOWFLAKE_KIND_LOCAL &&
		(name == NULL || strcmp(name, label.name) == 0))
	{
		confirm_kind(relid, &label);
		return;
	}
	if (label.kind != SNOWFLAKE_KIND_LOCAL)
		set_label(relid, NULL, !without_registry);
	else if (kind == SNOWFLAKE_KIND_LOCAL)
		warn_exhausted(relid);
	if (kind == SNOWFLAKE_KIND_LOCAL)
	{
		/* The caller says it, if the setting says something else. */
		store_label(relid, snowflake_default_sequence_kind == SNOWFLAKE_DEFAULT_LOCAL ?
					NULL : SNOWFLAKE_LABEL_LOCAL);
	}
	else
	{
		fill_label(relid, kind, name, &label);
		check_name(relid, &label);
		set_nonlocal(relid, &label);
	}
}

/*
 * Lock sequences of the caller.
 */
static void
lock_sequences(const List *relids, LOCKMODE mode)
{
	ListCell   *cell;

	foreach(cell, relids)
	{
		check_sequence(lfirst_oid(cell));
		LockRelationOid(lfirst_oid(cell), mode);
		check_sequence(lfirst_oid(cell));
	}
}

/*
 * Tell the registry what local sequences continue above as range sequences, and wait
 * until all servers know it.
 */
static void
settle_ranges(const List *relids)
{
	List	   *floors = NIL;
	ListCell   *cell;

	foreach(cell, relids)
	{
		Oid			relid = lfirst_oid(cell);
		SequenceLabel label;

		CHECK_FOR_INTERRUPTS();
		if (snowflake_get_label(relid) != NULL)
			continue;
		snowflake_check_suitable(relid, SNOWFLAKE_KIND_RANGE);
		fill_label(relid, SNOWFLAKE_KIND_RANGE, NULL, &label);

		/* It may have got its kind while this waited to read its file. */
		if (snowflake_get_label(relid) == NULL)
			floors = lappend(floors, snowflake_range_floor(relid, &label));
	}
	snowflake_settle_floors(floors);
}

/*
 * Prepare sequences of the caller to become range sequences, while clients use them.  Of two
 * transactions that do so, one can lock them more strongly afterwards.
 */
void
snowflake_prepare_ranges(const List *relids)
{
	lock_sequences(relids, AccessShareLock);
	settle_ranges(relids);
}

/*
 * Have the registry be asked for what it granted of range sequences that are to be
 * local, so that a call has many of them.
 */
static void
ask_granted(const List *relids)
{
	ListCell   *cell;

	foreach(cell, relids)
	{
		SequenceLabel label = snowflake_sequence_label(lfirst_oid(cell));

		if (label.kind == SNOWFLAKE_KIND_RANGE)
			snowflake_ask_granted(lfirst_oid(cell), &label);
	}
}

/*
 * Set the kind of many sequences of the caller.  If they were prepared, the registry
 * is asked about those alone that gave out numbers since.
 */
void
snowflake_set_kinds(const List *relids, SnowflakeSequenceKind kind, bool without_registry)
{
	ListCell   *cell;

	lock_sequences(relids, ShareRowExclusiveLock);
	if (kind == SNOWFLAKE_KIND_RANGE)
		settle_ranges(relids);
	else if (kind == SNOWFLAKE_KIND_LOCAL && !without_registry)
		ask_granted(relids);
	foreach(cell, relids)
		snowflake_set_kind(lfirst_oid(cell), kind, NULL, without_registry);
}

/*
 * The kind of a sequence, looked up without its lock.
 */
SnowflakeSequenceKind
snowflake_sequence_kind(Oid relid)
{
	return snowflake_sequence_label(relid).kind;
}

/*
 * Lock a sequence of the caller that got its kind by the setting, and that can get another
 * one: a range sequence that was used continues, but a snowflake sequence would begin
 * with small numbers.  Returns false if it is another one.
 */
bool
snowflake_lock_default(Oid relid)
{
	SequenceLabel label = snowflake_sequence_label(relid);

	if (!label.by_default || !has_privs_of_role(GetUserId(), snowflake_table_owner(relid)))
		return false;

	/* Do not wait for who uses it, in vain. */
	if (label.kind != SNOWFLAKE_KIND_RANGE && !snowflake_is_noted_unused(relid))
		return false;
	LockRelationOid(relid, ShareRowExclusiveLock);
	check_sequence(relid);
	label = snowflake_sequence_label(relid);
	return label.by_default &&
		(label.kind == SNOWFLAKE_KIND_RANGE || snowflake_is_noted_unused(relid));
}

/*
 * Give a new sequence, or one that was locked like this, the kind that the setting
 * determines.  The registry is not asked: the first request for numbers will carry where
 * they begin.
 */
void
snowflake_set_default_kind(Oid relid, SnowflakeSequenceKind kind)
{
	SequenceLabel label;

	if (kind == SNOWFLAKE_KIND_RANGE)
		snowflake_check_ranges_enabled();
	if (snowflake_sequence_kind(relid) != SNOWFLAKE_KIND_LOCAL)
		set_label(relid, NULL, false);
	if (kind == SNOWFLAKE_KIND_LOCAL)
		return;
	fill_label(relid, kind, NULL, &label);
	label.by_default = true;
	set_label(relid, &label, false);
	snowflake_note_unused(relid);
}
