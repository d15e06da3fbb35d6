/*-------------------------------------------------------------------------
 *
 * expressions.h
 *	  Whether what depends on the columns accepts bigint, and the IDs to come.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/checks/expressions.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_EXPRESSIONS_H
#define SNOWFLAKE_CONVERT_EXPRESSIONS_H

#include "nodes/nodes.h"

#include "convert/catalog/queries.h"

/*
 * IDs that the column may get.  With this many, each residue of a modulus that
 * is used in practice appears among them.
 */
#define SNOWFLAKE_SAMPLE_SIZE	256

typedef struct SnowflakeSample
{
	const char *name;			/* what a message calls them */
	int64		later_us;		/* how long after the first ID they begin */
	int			count;			/* 0 if they are not known */
	int64		ids[SNOWFLAKE_SAMPLE_SIZE];
} SnowflakeSample;

extern bool snowflake_convert_is_false(Node *condition, AttrNumber attnum, int64 id);
extern bool snowflake_convert_check_expressions(const SnowflakeConversion *conversion,
												Oid generator,
												const SnowflakeSample *samples,
												size_t nsamples, List **findings);

#endif							/* SNOWFLAKE_CONVERT_EXPRESSIONS_H */
