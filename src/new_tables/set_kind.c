/*-------------------------------------------------------------------------
 *
 * set_kind.c
 *	  SQL functions that set the kind of sequences.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/new_tables/set_kind.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "sequences/attach.h"
#include "sequences/kind.h"
#include "sequences/suitable.h"

PG_FUNCTION_INFO_V1(snowflake_set_sequence_kind);
PG_FUNCTION_INFO_V1(snowflake_set_sequence_kinds);
PG_FUNCTION_INFO_V1(snowflake_prepare_range_sequences);

/*
 * The kind that an argument names.  Fails if nextval() would not know it, before the
 * registry is asked.
 */
static SnowflakeSequenceKind
find_kind(char *word)
{
	SnowflakeSequenceKind kind;

	if (!snowflake_find_kind(word, &kind))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid kind of sequence: \"%s\"", word),
				 errhint("Kinds are \"snowflake\", \"range\" and \"local\".")));
	if (kind != SNOWFLAKE_KIND_LOCAL)
		snowflake_attach_for_label();
	return kind;
}

/*
 * snowflake_set_sequence_kind(sequence regclass, kind text, name text,
 *	 without_registry boolean) returns void
 */
Datum
snowflake_set_sequence_kind(PG_FUNCTION_ARGS)
{
	char	   *name = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));
	SnowflakeSequenceKind kind;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(3))
		PG_RETURN_NULL();
	kind = find_kind(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	if (name != NULL && kind != SNOWFLAKE_KIND_RANGE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("only range sequences have a name in the registry")));
	if (name != NULL && *name == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("name of a range sequence must not be empty")));
	snowflake_set_kind(PG_GETARG_OID(0), kind, name, PG_GETARG_BOOL(3));
	PG_RETURN_VOID();
}

/*
 * The sequences in an array but the extension's own.
 */
static List *
read_oids(ArrayType *array)
{
	Datum	   *values;
	bool	   *nulls;
	int			n;
	List	   *oids = NIL;

	deconstruct_array(array, REGCLASSOID, sizeof(Oid), true, TYPALIGN_INT,
					  &values, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		if (!nulls[i] && !snowflake_is_own_sequence(DatumGetObjectId(values[i])))
			oids = list_append_unique_oid(oids, DatumGetObjectId(values[i]));
	}
	return oids;
}

/*
 * snowflake_set_sequence_kinds(sequences regclass[], kind text,
 *	 without_registry boolean) returns void
 */
Datum
snowflake_set_sequence_kinds(PG_FUNCTION_ARGS)
{
	SnowflakeSequenceKind kind = find_kind(text_to_cstring(PG_GETARG_TEXT_PP(1)));

	snowflake_set_kinds(read_oids(PG_GETARG_ARRAYTYPE_P(0)), kind, PG_GETARG_BOOL(2));
	PG_RETURN_VOID();
}

/*
 * _snowflake_prepare_ranges(sequences regclass[]) returns void
 */
Datum
snowflake_prepare_range_sequences(PG_FUNCTION_ARGS)
{
	snowflake_prepare_ranges(read_oids(PG_GETARG_ARRAYTYPE_P(0)));
	PG_RETURN_VOID();
}
