/*-------------------------------------------------------------------------
 *
 * kind.c
 *	  The kind of a sequence: its label, and the state that belongs to it.
 *
 * The kind is a security label.  Whoever owns the sequence may set it, and it
 * is dumped, copied with the database, and dropped like any other.  A sequence
 * without a label is local.  The label also keeps what becoming local again
 * needs: the position, and CYCLE.
 *
 *		snowflake [last_value=N | next_value=N] [cycle] [default]
 *
 * Without a position the sequence was at its start, unused.  The last word is
 * there if a new table got it because of a setting.
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

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_seclabel.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/seclabel.h"
#include "commands/sequence.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "generator/state.h"
#include "sequences/kind.h"
#include "shared/compat.h"
#include "shared/table_owner.h"

#define PROVIDER		"snowflake"
#define SET_KIND_HINT	"Call snowflake_set_sequence_kind()."

/* A position of a sequence, as it is in its file. */
typedef struct Position
{
	int64		last_value;
	bool		is_called;
} Position;

typedef struct Label
{
	bool		has_position;
	Position	position;
	bool		cycle;
} Label;

/* The last position that this session has set of a sequence. */
typedef struct SetPosition
{
	Oid			relid;			/* hash key */
	int64		value;
} SetPosition;

static HTAB *set_positions = NULL;

/*
 * Read one word of a label after the first.
 */
static bool
read_word(const char *word, Label *label)
{
	const char *number = strchr(word, '=');
	char	   *end;

	if (strcmp(word, "default") == 0)
		return true;
	if (strcmp(word, "cycle") == 0)
	{
		label->cycle = true;
		return true;
	}
	label->position.is_called = strncmp(word, "last_value=", 11) == 0;
	if (!label->position.is_called && strncmp(word, "next_value=", 11) != 0)
		return false;
	errno = 0;
	label->position.last_value = strtoll(number + 1, &end, 10);
	label->has_position = true;
	return errno == 0 && end != number + 1 && *end == '\0';
}

/*
 * Read a label.  Returns false if it is invalid.
 */
static bool
read_label(const char *string, Label *label)
{
	char	   *copy = pstrdup(string);
	char	   *rest;
	char	   *word = strtok_r(copy, " ", &rest);
	bool		valid = word != NULL && strcmp(word, "snowflake") == 0;

	memset(label, 0, sizeof(Label));
	while (valid && (word = strtok_r(NULL, " ", &rest)) != NULL)
		valid = read_word(word, label);
	pfree(copy);
	return valid;
}

static char *
get_label(Oid relid)
{
	ObjectAddress object;

	ObjectAddressSet(object, RelationRelationId, relid);
	return GetSecurityLabel(&object, PROVIDER);
}

static FormData_pg_sequence
get_definition(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(relid));
	FormData_pg_sequence definition;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", relid);
	definition = *(Form_pg_sequence) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	return definition;
}

/*
 * The position of a sequence that the caller has locked.
 */
static Position
get_position(Oid relid)
{
	Relation	sequence = relation_open(relid, NoLock);
	Buffer		buffer = ReadBuffer(sequence, 0);
	HeapTupleData tuple;
	Form_pg_sequence_data data;
	Position	position;
	ItemId		item;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	item = PageGetItemId(BufferGetPage(buffer), FirstOffsetNumber);
	tuple.t_data = (HeapTupleHeader) PageGetItem(BufferGetPage(buffer), item);
	tuple.t_len = ItemIdGetLength(item);
	data = (Form_pg_sequence_data) GETSTRUCT(&tuple);
	position.last_value = data->last_value;
	position.is_called = data->is_called;
	UnlockReleaseBuffer(buffer);
	relation_close(sequence, NoLock);
	return position;
}

/*
 * Note that the server's currval() of a sequence is a position that was set
 * here.  That is not undone when the transaction rolls back.
 */
static void
note_position(Oid relid, int64 value)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(SetPosition),
		.hcxt = TopMemoryContext
	};
	SetPosition *set;

	if (set_positions == NULL)
		set_positions = hash_create("snowflake sequence positions", 32, &control,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	set = hash_search(set_positions, &relid, HASH_ENTER, NULL);
	set->value = value;
}

/*
 * Is a value that the server's currval() or lastval() returns for a sequence a
 * position that this module set, and not from nextval() or setval()?
 */
bool
snowflake_has_set_position(Oid relid, int64 value)
{
	SetPosition *set = NULL;

	if (set_positions != NULL)
		set = hash_search(set_positions, &relid, HASH_FIND, NULL);
	return set != NULL && set->value == value;
}

/*
 * Set the position, as the server's setval().  The owner may have revoked the
 * privilege from itself; no code of users runs meanwhile.
 */
static void
set_position(Oid relid, Position position)
{
	Oid			user;
	int			sec_context;

	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   sec_context | SECURITY_LOCAL_USERID_CHANGE);
	DirectFunctionCall3(setval3_oid, ObjectIdGetDatum(relid),
						Int64GetDatum(position.last_value),
						BoolGetDatum(position.is_called));
	SetUserIdAndSecContext(user, sec_context);
	if (position.is_called)
		note_position(relid, position.last_value);
}

static Position
end_position(const FormData_pg_sequence *definition)
{
	Position	end = {definition->seqmax, true};

	return end;
}

static bool
is_exhausted(Oid relid)
{
	FormData_pg_sequence definition = get_definition(relid);
	Position	position = get_position(relid);

	return position.is_called && position.last_value == definition.seqmax;
}

/*
 * Exhaust a sequence until the transaction rolls back.  The new file makes
 * other sessions drop the values that they cached.  A crash resets an unlogged
 * sequence to what it was when it got its file, so it gets that last.
 */
static void
exhaust(Oid relid)
{
	FormData_pg_sequence definition = get_definition(relid);

	ResetSequence(relid);
	set_position(relid, end_position(&definition));
	if (get_rel_persistence(relid) == RELPERSISTENCE_UNLOGGED)
		SequenceChangePersistence(relid, RELPERSISTENCE_UNLOGGED);
}

/*
 * Set or reset CYCLE, as its owner.
 */
static void
set_cycle(Oid relid, bool cycle)
{
	AlterSeqStmt *statement = makeNode(AlterSeqStmt);

	statement->sequence = makeRangeVar(get_namespace_name(get_rel_namespace(relid)),
									   get_rel_name(relid), -1);
	statement->options = list_make1(makeDefElem("cycle",
												(Node *) makeBoolean(cycle), -1));
	(void) AlterSequence(NULL, statement);
	CommandCounterIncrement();
}

/*
 * Fail if an INCREMENT cannot be that of a snowflake sequence.  The scheme may
 * be another one than when the label was set.
 */
void
snowflake_check_increment(Oid relid, int64 increment)
{
	const		SnowflakeScheme *scheme;
	int64		most;

	if (increment == 1 || snowflake_state == NULL)
		return;
	scheme = snowflake_server_scheme();
	most = scheme->shift[SNOWFLAKE_SEQUENCE] > 0 ? 1 :
		(snowflake_field_max(scheme, SNOWFLAKE_SEQUENCE) + 2) / 2;
	if (increment < 1 || increment > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("INCREMENT " INT64_FORMAT " of sequence \"%s\" is not possible for a snowflake sequence",
						increment, get_rel_name(relid)),
				 errdetail("With this \"snowflake.scheme\", it must be from 1 to " INT64_FORMAT ".",
						   most)));
}

static void
check_definition(Oid relid)
{
	FormData_pg_sequence definition = get_definition(relid);

	snowflake_check_increment(relid, definition.seqincrement);
	if (definition.seqcycle)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("snowflake sequence \"%s\" must not have CYCLE",
						get_rel_name(relid)),
				 errdetail("What does not know its kind would get small numbers.")));
}

/*
 * Fail if a column is too narrow for the values of a sequence.
 */
static void
check_column(Oid relid, Oid table, int column)
{
	Oid			type = getBaseType(get_atttype(table, column));

	if (type == INT2OID || type == INT4OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("sequence \"%s\" cannot be a snowflake sequence because column \"%s\" of table \"%s\" is not bigint",
						get_rel_name(relid),
						get_attname(table, column, false), get_rel_name(table)),
				 errhint("Convert the column first.")));
}

/*
 * Check all columns that a sequence belongs to, or that have it in a default.
 */
static void
check_columns(Oid relid)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			table;
	int32		column;

	if (sequenceIsOwned(relid, DEPENDENCY_AUTO, &table, &column))
		check_column(relid, table, column);

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == AttrDefaultRelationId)
		{
			ObjectAddress object = GetAttrDefaultColumnAddress(form->objid);

			check_column(relid, object.objectId, object.objectSubId);
		}
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
}

/*
 * Is the position of a sequence that of a new one?  The caller has locked it.
 */
bool
snowflake_is_unused(Oid relid)
{
	Position	position = get_position(relid);

	return !position.is_called &&
		position.last_value == get_definition(relid).seqstart;
}

/*
 * Fail if a sequence was used, and the label does not have its position.
 */
static void
check_position(Oid relid, const Label *label)
{
	if (label->has_position || is_exhausted(relid) || snowflake_is_unused(relid))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("label of sequence \"%s\" does not have its position",
					get_rel_name(relid)),
			 errhint(SET_KIND_HINT)));
}

/*
 * Is a sequence one of the extension's own, which lastval() uses?
 */
static bool
is_of_extension(Oid relid)
{
	Oid			extension = getExtensionOfObject(RelationRelationId, relid);

	return OidIsValid(extension) && extension == get_extension_oid("snowflake", true);
}

static void
become_snowflake(Oid relid, const Label *label)
{
	Oid			table;
	int32		column;

	if (is_of_extension(relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" of the extension cannot be a snowflake sequence",
						get_rel_name(relid))));
	if (sequenceIsOwned(relid, DEPENDENCY_INTERNAL, &table, &column))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" of an identity column cannot be a snowflake sequence",
						get_rel_name(relid)),
				 errhint("Replace the identity by DEFAULT nextval() of a sequence.")));
	check_definition(relid);
	check_columns(relid);
	check_position(relid, label);
	if (!is_exhausted(relid))
		exhaust(relid);
}

static void
become_local(Oid relid, const Label *label)
{
	ResetSequence(relid);
	if (label->has_position)
		set_position(relid, label->position);
	if (label->cycle)
		set_cycle(relid, true);
}

/*
 * Called before a label is set; NULL removes it.  The caller has checked who
 * owns the object.
 *
 * In a binary upgrade, definition and file are those of the old cluster.
 */
static void
relabel(const ObjectAddress *object, const char *string)
{
	Oid			relid = object->objectId;
	Label		label;
	Label		old;
	char	   *old_text;

	if (object->classId != RelationRelationId || object->objectSubId != 0 ||
		get_rel_relkind(relid) != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("only sequences have labels of snowflake")));
	if (string != NULL && !read_label(string, &label))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid label of a sequence: \"%s\"", string),
				 errhint(SET_KIND_HINT)));

	LockRelationOid(relid, ShareRowExclusiveLock);
	old_text = get_label(relid);
	if (IsBinaryUpgrade)
		return;
	if (string != NULL && old_text == NULL)
		become_snowflake(relid, &label);
	else if (string == NULL && old_text != NULL && read_label(old_text, &old))
		become_local(relid, &old);

	/* Last, so that it is processed after the label is set. */
	CacheInvalidateRelcacheByRelid(relid);
}

/*
 * Register the labels.
 */
void
snowflake_register_kinds(void)
{
	register_label_provider(PROVIDER, relabel);
}

/*
 * The label of a local sequence that becomes a snowflake sequence.
 */
static char *
make_label(Oid relid)
{
	FormData_pg_sequence definition = get_definition(relid);
	Position	position = get_position(relid);
	const char *cycle = definition.seqcycle ? " cycle" : "";

	if (snowflake_is_unused(relid))
		return psprintf("snowflake%s", cycle);
	return psprintf("snowflake %s=" INT64_FORMAT "%s",
					position.is_called ? "last_value" : "next_value",
					position.last_value, cycle);
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
 * Set the kind of a sequence of the caller.
 */
void
snowflake_set_kind(Oid relid, SnowflakeSequenceKind kind)
{
	ObjectAddress object;
	char	   *string = NULL;

	check_sequence(relid);
	LockRelationOid(relid, ShareRowExclusiveLock);
	check_sequence(relid);
	if ((get_label(relid) != NULL) == (kind == SNOWFLAKE_KIND_SNOWFLAKE))
		return;

	if (kind == SNOWFLAKE_KIND_SNOWFLAKE)
	{
		string = make_label(relid);
		if (get_definition(relid).seqcycle)
			set_cycle(relid, false);
	}
	ObjectAddressSet(object, RelationRelationId, relid);
	relabel(&object, string);
	SetSecurityLabel(&object, PROVIDER, string);
	CommandCounterIncrement();
}

/*
 * The kind of a sequence, looked up without its lock.
 */
SnowflakeSequenceKind
snowflake_sequence_kind(Oid relid)
{
	return get_label(relid) != NULL ? SNOWFLAKE_KIND_SNOWFLAKE : SNOWFLAKE_KIND_LOCAL;
}

/*
 * Have a sequence of the caller be a snowflake sequence, because the setting
 * says so.
 */
void
snowflake_set_default_kind(Oid relid)
{
	ObjectAddress object;

	if (snowflake_sequence_kind(relid) != SNOWFLAKE_KIND_LOCAL)
		return;
	snowflake_set_kind(relid, SNOWFLAKE_KIND_SNOWFLAKE);
	ObjectAddressSet(object, RelationRelationId, relid);
	SetSecurityLabel(&object, PROVIDER, psprintf("%s default", get_label(relid)));
	CommandCounterIncrement();
}

/*
 * Exhaust a sequence in its file, if something reset it where this module does
 * not see it.  The caller has locked it as nextval() does, so its kind cannot
 * change.
 */
static void
exhaust_in_place(Oid relid, const FormData_pg_sequence *definition)
{
	if (!XactReadOnly && !IsInParallelMode() && !is_exhausted(relid))
		set_position(relid, end_position(definition));
}

/*
 * What nextval() needs to know of a relation, which may be no sequence.
 */
void
snowflake_read_sequence(Oid relid, SnowflakeSequenceInfo *info)
{
	FormData_pg_sequence definition;
	Label		label;
	char	   *string = get_label(relid);

	info->kind = SNOWFLAKE_KIND_LOCAL;
	info->increment = 1;
	if (string == NULL)
		return;

	/* It could have been set while this library was not preloaded. */
	if (!read_label(string, &label))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("invalid label of a sequence: \"%s\"", string),
				 errhint(SET_KIND_HINT)));
	definition = get_definition(relid);
	exhaust_in_place(relid, &definition);
	info->kind = SNOWFLAKE_KIND_SNOWFLAKE;
	info->increment = definition.seqincrement;
}

/*
 * Call a function for each sequence that has a label, until it returns true.
 * Returns that sequence, or InvalidOid.
 */
static Oid
find_labelled(bool (*matches) (Oid))
{
	Relation	labels = table_open(SecLabelRelationId, AccessShareLock);
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	scan = systable_beginscan(labels, InvalidOid, false, NULL, 0, NULL);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		FormData_pg_seclabel *form = (FormData_pg_seclabel *) GETSTRUCT(tuple);
		bool		isnull;
		Datum		provider = heap_getattr(tuple, Anum_pg_seclabel_provider,
											RelationGetDescr(labels), &isnull);

		if (form->classoid == RelationRelationId &&
			strcmp(TextDatumGetCString(provider), PROVIDER) == 0 &&
			matches(form->objoid))
			found = form->objoid;
	}
	systable_endscan(scan);
	table_close(labels, AccessShareLock);
	return found;
}

static bool
is_any(Oid relid)
{
	return true;
}

/*
 * A sequence that is not local, or InvalidOid.
 */
Oid
snowflake_find_nonlocal_sequence(void)
{
	return find_labelled(is_any);
}

static bool
is_by_default(Oid relid)
{
	return strstr(get_label(relid), " default") != NULL;
}

/*
 * Is there a sequence that a setting made a snowflake sequence?
 */
bool
snowflake_has_default_sequence(void)
{
	return OidIsValid(find_labelled(is_by_default));
}

/*
 * Has this transaction locked a sequence like this, or more strongly?
 */
static bool
is_locked(Oid relid, LOCKMODE mode)
{
	Relation	sequence = RelationIdGetRelation(relid);
	bool		locked;

	if (!RelationIsValid(sequence))
		return false;
	locked = CheckRelationLockedByMe(sequence, mode, true);
	RelationClose(sequence);
	return locked;
}

/*
 * Exhaust a sequence again that this transaction has truncated.
 */
static bool
exhaust_truncated(Oid relid)
{
	if (is_locked(relid, AccessExclusiveLock) && !is_exhausted(relid))
		exhaust(relid);
	return false;
}

/*
 * Exhaust a sequence again that this transaction has altered.  Its name may be
 * that of another one by now, so its lock tells which it is.
 */
static bool
exhaust_altered(Oid relid)
{
	if (!is_locked(relid, ShareRowExclusiveLock))
		return false;
	check_definition(relid);
	if (!is_exhausted(relid))
		exhaust(relid);
	CacheInvalidateRelcacheByRelid(relid);
	return false;
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
SnowflakeReset
snowflake_resets_sequences(const Node *statement)
{
	if (IsA(statement, AlterSeqStmt))
		return sets_owner_only((const AlterSeqStmt *) statement) ?
			SNOWFLAKE_RESET_NONE : SNOWFLAKE_RESET_BY_ALTER;
	if (IsA(statement, TruncateStmt) &&
		((const TruncateStmt *) statement)->restart_seqs)
		return SNOWFLAKE_RESET_BY_TRUNCATE;
	return SNOWFLAKE_RESET_NONE;
}

/*
 * After such a statement: what it has reset is exhausted again, in the same
 * transaction.  The statement's lock is held until its end.
 */
void
snowflake_exhaust_after(SnowflakeReset reset)
{
	if (reset == SNOWFLAKE_RESET_NONE)
		return;
	CommandCounterIncrement();
	(void) find_labelled(reset == SNOWFLAKE_RESET_BY_ALTER ?
						 exhaust_altered : exhaust_truncated);
}
