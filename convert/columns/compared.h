/*-------------------------------------------------------------------------
 *
 * compared.h
 *	  Columns that the database's own queries compare.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/compared.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_COMPARED_H
#define SNOWFLAKE_CONVERT_COMPARED_H

#include "access/attnum.h"

#include "convert/catalog/queries.h"

/* A column that a query is about. */
typedef struct SnowflakeOrigin
{
	Oid			relid;
	AttrNumber	attnum;
} SnowflakeOrigin;

/* Two columns that are compared. */
typedef struct SnowflakeComparison
{
	SnowflakeOrigin one;
	SnowflakeOrigin other;
	const char *where;			/* the view, rule, policy or function */
} SnowflakeComparison;

extern List *snowflake_convert_find_comparisons(const SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_CONVERT_COMPARED_H */
