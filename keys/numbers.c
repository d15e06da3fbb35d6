/*-------------------------------------------------------------------------
 *
 * numbers.c
 *	  Numbers that one text is written for: arguments in, array out; and what is prepared
 *	  for that.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * keys/numbers.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/memutils.h"

#include "keys/numbers.h"
#include "shared/compat.h"

/* A state, and what it was prepared from. */
typedef struct PreparedState
{
	MemoryContext context;		/* of all of it */
	int			number;
	struct varlena *a;
	struct varlena *b;
	void	   *state;
} PreparedState;

/*
 * The numbers of an array, for one text of some kind.
 */
const int64 *
snowflake_numbers_of_array(ArrayType *array, int *n, int max, const char *kind)
{
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("array of numbers must be one-dimensional")));
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("array of numbers must not contain nulls")));
	*n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	if (*n > max)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many numbers for one %s", kind),
				 errdetail("There are %d numbers, but at most %d are allowed.",
						   *n, max)));
	return (const int64 *) ARR_DATA_PTR(array);
}

/*
 * Fail if one of them cannot be written.
 */
void
snowflake_check_numbers(const int64 *numbers, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (numbers[i] < 0)
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("number " INT64_FORMAT " is negative", numbers[i]),
					 errdetail("Numbers from 0 to " INT64_FORMAT " can be encoded.",
							   PG_INT64_MAX)));
	}
}

/*
 * The numbers that were read, as an array.
 */
ArrayType *
snowflake_array_of_numbers(const int64 *numbers, int n)
{
	Datum	   *datums = palloc(Max(n, 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		datums[i] = Int64GetDatum(numbers[i]);
	return construct_array(datums, n, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
						   TYPALIGN_DOUBLE);
}

/*
 * Are two values, which may be NULL, the same?
 */
static bool
same_value(const struct varlena *a, const struct varlena *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return VARSIZE_ANY(a) == VARSIZE_ANY(b) &&
		memcmp(a, b, VARSIZE_ANY(a)) == 0;
}

/*
 * A copy of a value, which may be NULL.
 */
static struct varlena *
copy_value(const struct varlena *value)
{
	return value == NULL ? NULL : memcpy(palloc(VARSIZE_ANY(value)), value, VARSIZE_ANY(value));
}

/*
 * The state that is prepared from arguments.  It is kept for the calls from the same place
 * of a query.
 */
void *
snowflake_prepared_state(FunctionCallInfo fcinfo, Size size, int number, const void *a,
						 const void *b, SnowflakePrepare prepare)
{
	PreparedState *kept = fcinfo->flinfo->fn_extra;
	PreparedState *new;
	MemoryContext context;
	MemoryContext caller;

	/* Nearly always, they are those of the previous call. */
	if (kept != NULL && kept->number == number && same_value(kept->a, a) &&
		same_value(kept->b, b))
		return kept->state;

	/* Until it is complete, it belongs to the call, which may fail. */
	context = AllocSetContextCreate(CurrentMemoryContext, "snowflake key",
									ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(context);
	new = palloc_object(PreparedState);
	new->context = context;
	new->number = number;
	new->a = copy_value(a);
	new->b = copy_value(b);
	new->state = palloc0(size);
	prepare(new->state, number, new->a, new->b);
	MemoryContextSwitchTo(caller);
	MemoryContextSetParent(context, fcinfo->flinfo->fn_mcxt);
	fcinfo->flinfo->fn_extra = new;
	if (kept != NULL)
		MemoryContextDelete(kept->context);
	return new->state;
}
