/*-------------------------------------------------------------------------
 *
 * new_sequences.c
 *	  The kind that new sequences get by snowflake.default_sequence_kind.
 *
 * It depends on the type that a sequence declares: what a program declares as integer
 * it holds as 32 bits.  So an integer sequence becomes a range sequence or, with
 * "snowflake", stays local, because an error would stop the migration.  What a
 * creator says of the values (a negative INCREMENT, CYCLE, another MAXVALUE) is meant, so
 * such a sequence stays local, too.  Each that does is named by a WARNING, and
 * by the view until its owner chooses a kind.
 *
 * A sequence with numbers for a column that is not bigint is what one of the type of
 * that column is.  That is known by OWNED BY, or when the column gets its default, so
 * the sequence becomes another one then, if nobody can have seen numbers of it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/new_sequences.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/sequence.h"
#include "nodes/makefuncs.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "generator/settings.h"
#include "new_tables/new_sequences.h"
#include "sequences/kind.h"
#include "sequences/suitable.h"

/*
 * The setting, for messages.
 */
static const char *
setting(void)
{
	return GetConfigOption("snowflake.default_sequence_kind", false, false);
}

/*
 * The kind of a new sequence of a type, or with its greatest value: that is what LIKE
 * ... INCLUDING IDENTITY says.
 */
static SnowflakeSequenceKind
kind_for(Oid type)
{
	if (snowflake_default_sequence_kind == SNOWFLAKE_DEFAULT_RANGE)
		return SNOWFLAKE_KIND_RANGE;
	if (type == INT8OID)
		return SNOWFLAKE_KIND_SNOWFLAKE;
	return snowflake_default_sequence_kind == SNOWFLAKE_DEFAULT_DISTRIBUTED ?
		SNOWFLAKE_KIND_RANGE : SNOWFLAKE_KIND_LOCAL;
}

static void
warn_local(Oid relid, const char *reason)
{
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("sequence \"%s\" remains local although \"snowflake.default_sequence_kind\" is \"%s\"",
					get_rel_name(relid), setting()),
			 errdetail_internal("%s", reason),
			 errhint("Set its kind by snowflake_set_sequence_kind(), also if it is to remain local.")));
}

static void
describe_kind(void *name)
{
	errcontext("setting the kind of sequence \"%s\", because \"snowflake.default_sequence_kind\" is \"%s\"",
			   (const char *) name, setting());
}

static void
set_kind(Oid relid, SnowflakeSequenceKind kind)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = describe_kind,
		.arg = get_rel_name(relid)
	};

	error_context_stack = &context;
	snowflake_set_default_kind(relid, kind);
	error_context_stack = context.previous;
}

/*
 * ALTER SEQUENCE ... AS ... MAXVALUE, if numbers of a local sequence that is unused do not
 * fit in a type.  Event triggers do not see it.
 */
static void
narrow(Oid relid, Oid type)
{
	FormData_pg_sequence definition = snowflake_get_definition(relid);
	int64		maximum = snowflake_type_maximum(type);
	AlterSeqStmt *statement = makeNode(AlterSeqStmt);
	TypeName   *new_type;
	Float	   *new_maximum;

	if (definition.seqmax <= maximum || definition.seqstart > maximum ||
		definition.seqmin < -maximum - 1)
		return;
	statement->sequence = makeRangeVar(get_namespace_name(get_rel_namespace(relid)),
									   get_rel_name(relid), -1);
	new_type = makeTypeNameFromOid(getBaseType(type), -1);
	new_maximum = makeFloat(psprintf(INT64_FORMAT, maximum));
	statement->options = list_make2(makeDefElem("as", (Node *) new_type, -1),
									makeDefElem("maxvalue", (Node *) new_maximum, -1));
	(void) AlterSequence(NULL, statement);
	CommandCounterIncrement();
}

/*
 * Give a sequence that this statement has created its kind.  With OWNED BY it is for a
 * column that is there.
 */
void
snowflake_give_default_kind(Oid relid)
{
	SnowflakeSequenceKind kind;
	Oid			table;
	int32		column;

	if (sequenceIsOwned(relid, DEPENDENCY_AUTO, &table, &column))
	{
		Oid			type = get_atttype(table, (AttrNumber) column);

		narrow(relid, type);
		if (snowflake_get_definition(relid).seqmax > snowflake_type_maximum(type))
		{
			warn_local(relid, "Its values do not fit in its column.");
			return;
		}
	}
	kind = kind_for(snowflake_get_definition(relid).seqmax == PG_INT64_MAX ? INT8OID : INT4OID);
	if (kind == SNOWFLAKE_KIND_LOCAL)
		warn_local(relid, "Snowflake IDs are bigint, and the sequence is not.");
	else if (snowflake_has_plain_definition(relid, kind))
		set_kind(relid, kind);
	else
		warn_local(relid, "It has a negative or a large INCREMENT, CYCLE, or a MAXVALUE below that of its type.");
}

/*
 * Before a column that is not bigint has a sequence in its default: have that be what one
 * for such a column is, if it may.
 */
void
snowflake_fit_default_kind(Oid relid, Oid type, const char *column)
{
	SnowflakeSequenceKind now = snowflake_sequence_kind(relid);
	SnowflakeSequenceKind kind = now == SNOWFLAKE_KIND_RANGE ? now : kind_for(INT4OID);

	if (now == SNOWFLAKE_KIND_LOCAL ||
		(now == SNOWFLAKE_KIND_RANGE &&
		 snowflake_get_definition(relid).seqmax <= snowflake_type_maximum(type)))
		return;
	if (snowflake_has_bigint_column(relid) || !snowflake_lock_default(relid))
	{
		if (now == SNOWFLAKE_KIND_SNOWFLAKE)
			ereport(WARNING,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" is not bigint, and its default uses snowflake sequence \"%s\"",
							column, get_rel_name(relid))));
		return;
	}
	set_kind(relid, SNOWFLAKE_KIND_LOCAL);
	if (kind == SNOWFLAKE_KIND_LOCAL)
		warn_local(relid, psprintf("Snowflake IDs are bigint, and column \"%s\" is not.", column));
	else
	{
		narrow(relid, type);
		set_kind(relid, kind);
	}
}
