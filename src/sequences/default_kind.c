/*-------------------------------------------------------------------------
 *
 * default_kind.c
 *	  The kind that snowflake.default_sequence_kind has sequences get, and the type
 *	  of their columns.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/sequences/default_kind.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "generator/settings.h"
#include "sequences/attach.h"
#include "sequences/default_kind.h"
#include "sequences/kind.h"
#include "sequences/references.h"
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
 * The kind of a new sequence for a column of a type.
 */
SnowflakeSequenceKind
snowflake_kind_for(Oid type)
{
	if (snowflake_default_sequence_kind == SNOWFLAKE_DEFAULT_RANGE ||
		(snowflake_default_sequence_kind == SNOWFLAKE_DEFAULT_DISTRIBUTED &&
		 getBaseType(type) != INT8OID))
		return SNOWFLAKE_KIND_RANGE;
	return SNOWFLAKE_KIND_SNOWFLAKE;
}

/*
 * The same for a sequence that exists, and keeps its kind unless that is
 * local.
 */
SnowflakeSequenceKind
snowflake_kind_of(Oid sequence, Oid type)
{
	SnowflakeSequenceKind kind = snowflake_sequence_kind(sequence);

	return kind != SNOWFLAKE_KIND_LOCAL ? kind : snowflake_kind_for(type);
}

/*
 * The type that an integer column has with a kind of sequence.  Fail for one
 * whose owner wanted small numbers.
 */
Oid
snowflake_type_with(SnowflakeSequenceKind kind, const char *column, Oid type)
{
	if (kind == SNOWFLAKE_KIND_SNOWFLAKE && type == INT2OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" cannot have a snowflake sequence because it is smallint",
						column),
				 errdetail("\"snowflake.default_sequence_kind\" is \"%s\", and snowflake IDs are bigint.",
						   setting()),
				 errhint("Use bigint, or set \"snowflake.default_sequence_kind\" to \"local\" for this statement.")));
	return kind == SNOWFLAKE_KIND_SNOWFLAKE && type == INT4OID ? INT8OID : type;
}

/*
 * Can values of a kind of sequence be stored in a type?
 */
bool
snowflake_fits_kind(SnowflakeSequenceKind kind, Oid type)
{
	return kind == SNOWFLAKE_KIND_RANGE || getBaseType(type) == INT8OID;
}

/*
 * Say that a sequence that the statement uses stays what it is.
 */
void
snowflake_warn_local(Oid sequence, const char *reason)
{
	if (snowflake_sequence_kind(sequence) != SNOWFLAKE_KIND_LOCAL)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("sequence \"%s\" remains local although \"snowflake.default_sequence_kind\" is \"%s\"",
					get_rel_name(sequence), setting()),
			 errdetail_internal("%s", reason),
			 errhint("Its owner can call snowflake_set_sequence_kind(). A snowflake sequence needs bigint columns.")));
}

/*
 * Say which statement needs the registry, and how to do without.
 */
static void
describe_kind(void *name)
{
	errcontext("making sequence \"%s\" a range sequence, because \"snowflake.default_sequence_kind\" is \"%s\"",
			   (const char *) name, setting());
	if (geterrcode() == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE)
		errhint("To create a local sequence, set \"snowflake.default_sequence_kind\" to \"local\" for this statement.");
}

/*
 * ALTER SEQUENCE ... AS, if numbers of the sequence do not fit in a type.
 */
static void
narrow_sequence(Oid sequence, Oid type, const char *query)
{
	AlterSeqStmt *statement;

	type = getBaseType(type);
	if (snowflake_get_definition(sequence).seqmax <= snowflake_type_maximum(type))
		return;
	statement = makeNode(AlterSeqStmt);
	statement->sequence = snowflake_range_of(sequence);
	statement->options = list_make1(makeDefElem("as",
												(Node *) makeTypeNameFromOid(type, -1), -1));
	snowflake_run_statement((Node *) statement, query);
}

/*
 * Have a sequence become a range sequence with numbers that fit in a type.
 */
static void
make_range(Oid sequence, Oid type, const char *query)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = describe_kind,
		.arg = get_rel_name(sequence)
	};

	narrow_sequence(sequence, type, query);
	error_context_stack = &context;
	snowflake_set_default_kind(sequence, SNOWFLAKE_KIND_RANGE);
	error_context_stack = context.previous;
}

/*
 * Have a local sequence be of the kind that it gets with a column of a type.  A
 * local one could return the numbers of another server, and nobody could use one
 * of another kind in a database that is not attached.
 */
void
snowflake_make_nonlocal(Oid sequence, Oid type, const char *query)
{
	if (!snowflake_is_attached())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this database does not know kinds of sequences"),
				 errdetail("\"snowflake.default_sequence_kind\" is \"%s\".", setting()),
				 errhint("CREATE EXTENSION snowflake, or set \"snowflake.default_sequence_kind\" to \"local\".")));
	if (snowflake_sequence_kind(sequence) != SNOWFLAKE_KIND_LOCAL)
		return;
	if (snowflake_kind_for(type) == SNOWFLAKE_KIND_RANGE)
		make_range(sequence, type, query);
	else
		snowflake_set_default_kind(sequence, SNOWFLAKE_KIND_SNOWFLAKE);
}
