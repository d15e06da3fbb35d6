/*-------------------------------------------------------------------------
 *
 * values.c
 *	  nextval() and its like for sequences of every kind.
 *
 * These functions are called in place of the server's (attach.c).  They look
 * at the kind of the sequence; for a local one they call the server's.  The
 * privileges, the lock, and the messages are the server's for each kind.
 *
 * What is known of a sequence is kept for the session, like the server does,
 * with the last value.  README.md says what invalidates it.
 *
 * lastval().  The server knows which of its own sequences came last, we know
 * which of the snowflake sequences did, and C code, the fast-path protocol, and ALTER
 * TABLE ADD COLUMN of an identity column do not pass here.  So when the first snowflake sequence
 * after another one is called, the marker, a sequence that nobody else uses,
 * becomes the server's last one.  If the server's lastval() is still the
 * marker's value, the snowflake sequence is the last.  If not, what came
 * between is the last only if there was one call since the marker was set;
 * otherwise it cannot be known, which is an error.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/values.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/dbcommands.h"
#include "commands/sequence.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "generator/generator.h"
#include "ranges/elsewhere.h"
#include "ranges/numbers.h"
#include "sequences/copy_identity.h"
#include "sequences/exhaust.h"
#include "sequences/floor.h"
#include "sequences/label.h"
#include "sequences/position.h"
#include "sequences/suitable.h"
#include "sequences/unused.h"
#include "sequences/values.h"
#include "shared/compat.h"

#define MARKER_NAME		"_snowflake_lastval_marker"

/* What calls need to know of a sequence. */
typedef struct SequenceInfo
{
	SnowflakeSequenceKind kind;
	int64		increment;
	int64		first;			/* MINVALUE */
	RangeHandle range;			/* of a range sequence */
} SequenceInfo;

/* A sequence that this session has used. */
typedef struct Sequence
{
	Oid			relid;			/* hash key */
	LocalTransactionId lxid;	/* transaction that has locked it */
	bool		is_serial;		/* it began in no parallel operation */
	bool		known;			/* is info valid? */
	Oid			role;			/* may call nextval(), or InvalidOid */
	SequenceInfo info;
	bool		has_value;
	bool		is_id;			/* from when it was not local */
	int64		value;			/* last value of nextval() */
} Sequence;

static HTAB *sequences = NULL;
static uint64 invalidations = 0;

/* The last sequence that was found; entries are never removed. */
static Sequence *found_last = NULL;

/* The last sequence whose nextval() was called, if it passed here. */
static Sequence *used_last = NULL;

/* In place of used_last: it is not known which was. */
static Sequence unknown_last;

/* The marker's value, and how many IDs came from sequences since it was set. */
static int64 marker_value;
static int64 ids_since_marker;

/* May everybody execute the server's function?  Nearly always so. */
static struct
{
	bool		nextval;
	bool		currval;
	bool		lastval;
	bool		setval[2];
}			everybody;

PG_FUNCTION_INFO_V1(snowflake_sequence_nextval);
PG_FUNCTION_INFO_V1(snowflake_sequence_currval);
PG_FUNCTION_INFO_V1(snowflake_sequence_lastval);
PG_FUNCTION_INFO_V1(snowflake_sequence_setval);

static void
forget(Sequence *sequence)
{
	sequence->known = false;
	sequence->role = InvalidOid;
}

static void
forget_all(void)
{
	HASH_SEQ_STATUS status;
	Sequence   *sequence;

	if (sequences == NULL)
		return;
	hash_seq_init(&status, sequences);
	while ((sequence = hash_seq_search(&status)) != NULL)
		forget(sequence);
}

/*
 * A relation was changed: its privileges, its file, or its label.  A session has room for
 * ten such callbacks of all modules (Citus has five), so this is the only one of ours.
 */
static void
relation_changed(Datum arg, Oid relid)
{
	Sequence   *sequence;

	snowflake_note_change(relid);
	snowflake_renew_identities(relid);
	invalidations++;
	if (!OidIsValid(relid))
		forget_all();
	else if (sequences != NULL &&
			 (sequence = hash_search(sequences, &relid, HASH_FIND, NULL)) != NULL)
		forget(sequence);
}

/*
 * A role, or who is member of it, was changed.
 */
static void
role_changed(Datum arg, int cache, uint32 hash)
{
	forget_all();
}

static void
function_changed(Datum arg, int cache, uint32 hash)
{
	memset(&everybody, 0, sizeof(everybody));
}

static void
create_sequences(void)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(Sequence),
		.hcxt = TopMemoryContext
	};

	sequences = hash_create("snowflake sequences", 32, &control,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Watch for changes of sequences and roles, after which what is known of them is
 * forgotten.
 */
void
snowflake_watch_sequences(void)
{
	CacheRegisterRelcacheCallback(relation_changed, 0);
	CacheRegisterSyscacheCallback(AUTHOID, role_changed, 0);
	CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, role_changed, 0);
	CacheRegisterSyscacheCallback(DATABASEOID, role_changed, 0);
	CacheRegisterSyscacheCallback(PROCOID, function_changed, 0);
}

/*
 * After DISCARD SEQUENCES, no sequence has a value.
 */
void
snowflake_forget_sequence_values(void)
{
	HASH_SEQ_STATUS status;
	Sequence   *sequence;

	used_last = NULL;
	if (sequences == NULL)
		return;
	hash_seq_init(&status, sequences);
	while ((sequence = hash_seq_search(&status)) != NULL)
		sequence->has_value = sequence->is_id = false;
}

/*
 * Lock a sequence like the server's nextval(): until the end of the
 * transaction, whatever subtransaction this is.  A change of kind conflicts
 * with that.
 */
static void
lock_sequence(Sequence *sequence)
{
	ResourceOwner owner = CurrentResourceOwner;

	CurrentResourceOwner = TopTransactionResourceOwner;
	LockRelationOid(sequence->relid, RowExclusiveLock);
	CurrentResourceOwner = owner;
	sequence->lxid = snowflake_transaction();
	sequence->is_serial = !IsInParallelMode();
}

/*
 * What calls need to know of a relation, which may be no sequence.
 */
static SequenceInfo
read_info(Oid relid, const SequenceLabel *label)
{
	SequenceInfo info = {.kind = label->kind,.increment = 1};
	FormData_pg_sequence definition;

	if (label->kind == SNOWFLAKE_KIND_LOCAL)
		return info;
	definition = snowflake_get_definition(relid);
	info.increment = definition.seqincrement;
	info.first = definition.seqmin;
	info.range.relid = relid;
	info.range.step = definition.seqincrement;
	info.range.last = definition.seqmax;
	return info;
}

/*
 * Warn that a local sequence returns numbers of other servers, if so.
 */
static void
warn_elsewhere(Oid relid)
{
	char	   *name = get_rel_name(relid);
	bool		first;

	if (name != NULL &&
		snowflake_is_elsewhere(snowflake_range_name(relid), &first) && first)
		ereport(WARNING,
				(errcode(ERRCODE_WARNING),
				 errmsg("sequence \"%s\" is local, but other servers are granted its numbers", name),
				 errdetail("They can have the same keys."),
				 errhint("Call snowflake_set_sequence_kind(sequence, 'range') of it in database \"%s\".",
						 get_database_name(MyDatabaseId))));
}

/*
 * Learn the kind of a sequence, and exhaust it if it has another than local and
 * something has reset it.  The next call does so again if this one may not, or if the
 * sequence was changed meanwhile.
 */
static void
learn_sequence(Sequence *sequence)
{
	uint64		before = invalidations;
	SequenceLabel label = snowflake_sequence_label(sequence->relid);
	bool		is_exhausted;

	sequence->info = read_info(sequence->relid, &label);
	if (label.kind == SNOWFLAKE_KIND_LOCAL)
		warn_elsewhere(sequence->relid);
	if (label.by_default)
		snowflake_note_used(sequence->relid);
	is_exhausted = label.kind == SNOWFLAKE_KIND_LOCAL ||
		snowflake_exhaust_in_place(sequence->relid);
	sequence->known = is_exhausted && before == invalidations;
}

/*
 * Find a sequence that was not the last, or not in this transaction.
 */
static pg_noinline Sequence *
look_up_sequence(Oid relid)
{
	Sequence   *sequence;
	bool		found;

	if (sequences == NULL)
		create_sequences();
	sequence = hash_search(sequences, &relid, HASH_ENTER, &found);
	if (!found)
		memset((char *) sequence + sizeof(Oid), 0, sizeof(Sequence) - sizeof(Oid));
	if (sequence->lxid != snowflake_transaction())
		lock_sequence(sequence);
	if (!sequence->known)
		learn_sequence(sequence);
	found_last = sequence;
	return sequence;
}

static inline Sequence *
find_sequence(Oid relid)
{
	Sequence   *sequence = found_last;

	if (likely(sequence != NULL && sequence->relid == relid &&
			   sequence->known && sequence->lxid == snowflake_transaction()))
		return sequence;
	return look_up_sequence(relid);
}

static inline bool
is_local(const Sequence *sequence)
{
	return sequence->info.kind == SNOWFLAKE_KIND_LOCAL;
}

/*
 * Fail if the caller may not execute the server's function.
 */
static inline void
check_execute(Oid function, bool *everybody)
{
	if (likely(*everybody))
		return;
	*everybody = snowflake_function_aclcheck(function, ACL_ID_PUBLIC) == ACLCHECK_OK;
	if (!*everybody &&
		snowflake_function_aclcheck(function, GetUserId()) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(function));
}

/*
 * Fail, like the server, if the caller has none of the privileges.
 */
static void
check_privilege(Oid relid, AclMode mode)
{
	if (pg_class_aclcheck(relid, GetUserId(), mode) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for sequence %s",
						get_rel_name(relid))));
}

/*
 * Fail, like the server, in a read-only transaction, unless the sequence is a
 * temporary one of this session; and in a worker of a parallel operation.
 */
static inline void
check_writable(const Sequence *sequence, const char *command)
{
	if (unlikely(XactReadOnly) &&
		!isTempOrTempToastNamespace(get_rel_namespace(sequence->relid)))
		PreventCommandIfReadOnly(command);
	if (unlikely(!sequence->is_serial))
		PreventCommandIfParallelMode(command);
}

/*
 * Does a call give an identity column its value?  The right to insert is enough for it.
 */
static inline bool
gives_identity(FunctionCallInfo fcinfo)
{
	return snowflake_is_marked(fcinfo->flinfo->fn_expr);
}

static inline void
check_nextval_privilege(Sequence *sequence, FunctionCallInfo fcinfo)
{
	if (likely(sequence->role == GetUserId()) || gives_identity(fcinfo))
		return;
	check_privilege(sequence->relid, ACL_USAGE | ACL_UPDATE);
	if (sequence->known)
		sequence->role = GetUserId();
}

/*
 * A snowflake ID that has as many IDs of the same tick on either side as a
 * client with this INCREMENT uses: some count up from the value that they
 * get, others down to it.
 */
static int64
generate_middle(const Sequence *sequence)
{
	int64		increment = sequence->info.increment;
	int			wanted = (int) (2 * increment - 1);
	int64		first;
	int64		step;

	snowflake_check_increment(sequence->relid, increment, SNOWFLAKE_KIND_SNOWFLAKE);
	(void) snowflake_generate_block(wanted, wanted, &first, &step);
	Assert(step == 1);
	return first + increment - 1;
}

static Oid
find_marker(Oid function)
{
	return get_relname_relid(MARKER_NAME, get_func_namespace(function));
}

/*
 * Make the server's lastval() the marker's, also if the transaction is
 * read-only and used a temporary sequence.  An error resets what it was.
 */
static void
set_marker(Oid function)
{
	Oid			marker = find_marker(function);
	bool		read_only = XactReadOnly;

	XactReadOnly = false;
	marker_value = nextval_internal(marker, false);
	XactReadOnly = read_only;
	ids_since_marker = 0;
}

/*
 * A number of a range sequence.  It may have to be attached to its ranges
 * again, because another session has changed or dropped them.
 */
static int64
next_range_number(Sequence *sequence)
{
	RangeHandle *handle = &sequence->info.range;
	RangeNumber result = RANGE_NUMBER_OTHER;
	int64		number;

	while (handle->slot == NULL ||
		   (result = snowflake_next_number(handle, &number)) != RANGE_NUMBER_TAKEN)
	{
		if (handle->slot != NULL && result == RANGE_NUMBER_UNKNOWN)
			snowflake_begin_sequence_range(handle);
		else
			snowflake_attach_sequence_range(handle);
	}
	return number;
}

/*
 * Another sequence was used last, or none, or this one when it was local.
 */
static pg_noinline void
note_sequence(Sequence *sequence, Oid function)
{
	if (used_last == NULL || !used_last->is_id)
	{
		set_marker(function);
		ids_since_marker = 1;
	}
	sequence->has_value = sequence->is_id = true;
	used_last = sequence;
}

static inline int64
nextval_nonlocal(Sequence *sequence, FunctionCallInfo fcinfo)
{
	int64		id;

	check_nextval_privilege(sequence, fcinfo);
	check_writable(sequence, "nextval()");
	if (sequence->info.kind == SNOWFLAKE_KIND_RANGE)
		id = next_range_number(sequence);
	else
		id = likely(sequence->info.increment == 1) ?
			snowflake_generate() : generate_middle(sequence);
	ids_since_marker++;
	if (unlikely(used_last != sequence || !sequence->is_id))
		note_sequence(sequence, fcinfo->flinfo->fn_oid);
	sequence->value = id;
	return id;
}

/*
 * _snowflake_nextval(regclass) returns bigint
 */
Datum
snowflake_sequence_nextval(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Sequence   *sequence = find_sequence(relid);

	if (unlikely(!everybody.nextval) && !gives_identity(fcinfo))
		check_execute(F_NEXTVAL, &everybody.nextval);
	if (!is_local(sequence))
		PG_RETURN_INT64(nextval_nonlocal(sequence, fcinfo));

	sequence->value = nextval_internal(relid, !gives_identity(fcinfo));
	sequence->has_value = true;
	sequence->is_id = false;
	used_last = sequence;
	PG_RETURN_INT64(sequence->value);
}

/*
 * _snowflake_currval(regclass) returns bigint
 *
 * The last value may be from before a change of kind.
 */
Datum
snowflake_sequence_currval(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Sequence   *sequence = find_sequence(relid);

	check_execute(F_CURRVAL, &everybody.currval);
	if (is_local(sequence) && !sequence->is_id)
	{
		Datum		value = DirectFunctionCall1(currval_oid, ObjectIdGetDatum(relid));

		if (!snowflake_has_set_position(relid, DatumGetInt64(value)))
			return value;
	}
	check_privilege(relid, ACL_SELECT | ACL_USAGE);
	if (!sequence->has_value)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("currval of sequence \"%s\" is not yet defined in this session",
						get_rel_name(relid))));
	PG_RETURN_INT64(sequence->value);
}

static int64
server_lastval(void)
{
	LOCAL_FCINFO(call, 0);

	InitFunctionCallInfoData(*call, NULL, 0, InvalidOid, NULL, NULL);
	return DatumGetInt64(lastval(call));
}

/*
 * Is the marker the server's last sequence?  The caller may have no right on
 * the one that is.
 */
static bool
is_marker_last(void)
{
	Oid			user;
	int			sec_context;
	int64		value;

	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   sec_context | SECURITY_LOCAL_USERID_CHANGE);
	value = server_lastval();
	SetUserIdAndSecContext(user, sec_context);
	return value == marker_value;
}

/*
 * The value of the sequence that passed here last.
 */
static int64
last_value_here(void)
{
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(used_last->relid)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("lastval is not yet defined in this session")));
	(void) find_sequence(used_last->relid);
	check_privilege(used_last->relid, ACL_SELECT | ACL_USAGE);
	return used_last->value;
}

/*
 * lastval() if a local sequence passed here last.  If its kind was changed in
 * this session since then, the server returns the position that was set.
 */
static int64
lastval_local(void)
{
	int64		value = server_lastval();
	Sequence   *sequence = used_last;

	if (sequence != NULL && value != sequence->value &&
		snowflake_has_set_position(sequence->relid, value))
		return last_value_here();
	return value;
}

/*
 * _snowflake_lastval() returns bigint
 */
Datum
snowflake_sequence_lastval(PG_FUNCTION_ARGS)
{
	check_execute(F_LASTVAL, &everybody.lastval);
	if (used_last != &unknown_last)
	{
		if (used_last == NULL || !used_last->is_id)
			PG_RETURN_INT64(lastval_local());
		if (is_marker_last())
			PG_RETURN_INT64(last_value_here());
		if (ids_since_marker == 1)
			PG_RETURN_INT64(server_lastval());
	}

	/* The next nextval() sets the marker again. */
	used_last = &unknown_last;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("lastval is ambiguous"),
			 errdetail("Identity columns and snowflake sequences were used, and it is not known which of them last."),
			 errhint("Use RETURNING or currval().")));
}

static Datum
server_setval(FunctionCallInfo fcinfo)
{
	return PG_NARGS() == 2 ?
		DirectFunctionCall2(setval_oid, PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) :
		DirectFunctionCall3(setval3_oid, PG_GETARG_DATUM(0),
							PG_GETARG_DATUM(1), PG_GETARG_DATUM(2));
}

/*
 * A sequence as an argument, for hints.
 */
static char *
sequence_literal(Oid relid)
{
	return quote_literal_cstr(DatumGetCString(DirectFunctionCall1(regclassout,
																  ObjectIdGetDatum(relid))));
}

/*
 * Fail if setval() is to reserve numbers, as in setval(s, nextval(s) + 99): others
 * use those numbers.  A key of a row, or the number above one, is what programs set
 * after an import.  The end of the sequence is what a dump sets.
 */
static void
check_not_reserved(const Sequence *sequence, int64 value)
{
	if (!sequence->has_value || !sequence->is_id || value <= sequence->value ||
		value == sequence->info.range.last || snowflake_is_key(sequence->relid, value))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("setval() cannot reserve values of sequence \"%s\"",
					get_rel_name(sequence->relid)),
			 errdetail("The value is above currval() of this session, and no key of a row. Others use the values between."),
			 errhint("To get n values, use SELECT nextval(%s::regclass) FROM generate_series(1, n), or INCREMENT BY n for good. To continue above values without rows, call setval() in another session.",
					 sequence_literal(sequence->relid))));
}

/*
 * setval() of a range sequence: no server returns its values up to this one any
 * more.  A restored dump has the end of an exhausted sequence, which means nothing.
 */
static void
setval_range(Sequence *sequence, int64 value, bool is_called)
{
	RangeHandle *handle = &sequence->info.range;
	int64		floor = is_called ? Max(value, 0) : Max(value, 1) - 1;

	if (value < sequence->info.first || value > handle->last)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("setval: value " INT64_FORMAT " is out of bounds for sequence \"%s\" (" INT64_FORMAT ".." INT64_FORMAT ")",
						value, get_rel_name(sequence->relid),
						sequence->info.first, handle->last)));
	if (value == handle->last)
		return;
	check_not_reserved(sequence, value);
	while (handle->slot == NULL || !snowflake_settle_floor(handle, floor, true))
		snowflake_attach_sequence_range(handle);
	if (is_called)
	{
		sequence->value = value;
		sequence->has_value = true;
	}
}

/*
 * Warn that a local sequence was set to its end: what copies a schema, such as
 * clone_schema(), copies the positions of its sequences, but not their kinds.
 */
static void
warn_exhausted(Oid relid, int64 value)
{
	if (value < snowflake_get_definition(relid).seqmax ||
		!OidIsValid(snowflake_find_nonlocal_sequence()))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("local sequence \"%s\" is exhausted", get_rel_name(relid)),
			 errdetail("It was set to its MAXVALUE, where snowflake and range sequences always are."),
			 errhint("If it is a copy of one, call snowflake_set_sequence_kind(%s::regclass, kind), or snowflake_convert_schema() for a schema.",
					 sequence_literal(relid))));
}

/*
 * _snowflake_setval(regclass, bigint [, boolean]) returns bigint
 *
 * A snowflake sequence has no position, so there is nothing to set.
 */
Datum
snowflake_sequence_setval(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Sequence   *sequence = find_sequence(relid);
	bool		with_called = PG_NARGS() == 3;

	check_execute(with_called ? F_SETVAL_REGCLASS_INT8_BOOL : F_SETVAL_REGCLASS_INT8,
				  &everybody.setval[with_called]);
	/* Its values are no others', also after setval() of all sequences. */
	if (relid == find_marker(fcinfo->flinfo->fn_oid))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));
	if (is_local(sequence))
	{
		Datum		result = server_setval(fcinfo);

		if (!with_called || PG_GETARG_BOOL(2))
		{
			sequence->value = PG_GETARG_INT64(1);
			sequence->has_value = true;
			if (used_last != sequence)
				sequence->is_id = false;
			warn_exhausted(relid, sequence->value);
		}
		return result;
	}
	check_privilege(relid, ACL_UPDATE);
	check_writable(sequence, "setval()");
	if (sequence->info.kind == SNOWFLAKE_KIND_RANGE)
		setval_range(sequence, PG_GETARG_INT64(1),
					 !with_called || PG_GETARG_BOOL(2));
	else
		check_not_reserved(sequence, PG_GETARG_INT64(1));
	PG_RETURN_DATUM(PG_GETARG_DATUM(1));
}
