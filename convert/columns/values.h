/*-------------------------------------------------------------------------
 *
 * values.h
 *	  Values of columns, and which of them are in keys.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/columns/values.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_VALUES_H
#define SNOWFLAKE_CONVERT_VALUES_H

#include "access/attnum.h"
#include "nodes/pg_list.h"

/* Different values of an integer column. */
typedef struct SnowflakeValues
{
	Oid			relid;
	AttrNumber	attnum;
	bool		is_read;
	int			count;			/* without 0 and -1 */
	int32	   *values;			/* in their order */
	int			known;			/* that are in any key */
	int		   *in_key;			/* how many of them are in each key */
} SnowflakeValues;

extern void snowflake_convert_read_values(List *columns, bool wait);
extern int *snowflake_convert_look_up(const List *keys, List *columns);

#endif							/* SNOWFLAKE_CONVERT_VALUES_H */
