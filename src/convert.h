/*-------------------------------------------------------------------------
 *
 * convert.h
 *	  What the files of snowflake_convert() share.
 *
 *	convert.c				the function: what happens, in which order
 *	convert_plan.c			the statements, and the notices beside them
 *	convert_new_ids.c		whether tables accept the IDs to come
 *	convert_expressions.c	whether what depends on the columns accepts bigint
 *	convert_obstacles.c		what else prevents a conversion
 *	convert_queries.c		queries of the catalogs; the columns to convert
 *
 * A file calls those below it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/convert.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_H
#define SNOWFLAKE_CONVERT_H

#include "access/attnum.h"
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

/* The arrays that describe the columns: tables, columns, and is_key. */
#define SNOWFLAKE_TARGET_ARRAYS	3

/* The column to convert, and how. */
typedef struct SnowflakeConversion
{
	Oid			relid;			/* the table */
	char	   *table;			/* its qualified name, when it is locked */
	AttrNumber	attnum;			/* the column */
	char	   *column;			/* its name */
	Oid			generator;		/* function that generates the IDs */
	bool		snowflakes;		/* are they snowflake IDs? */
	bool		dry_run;
	bool		set_default;	/* is the generator not the default yet? */
	Datum		targets[SNOWFLAKE_TARGET_ARRAYS];	/* see
													 * snowflake_find_targets() */
} SnowflakeConversion;

/* Obstacles, one per line, and hints, as sentences. */
typedef struct SnowflakeObstacles
{
	StringInfoData lines;
	StringInfoData hints;
} SnowflakeObstacles;

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

/* convert_queries.c */
extern const char snowflake_changed_tables[];
extern const char snowflake_sequences[];
extern const char snowflake_trigger_functions[];
extern void snowflake_find_targets(SnowflakeConversion *conversion);
extern List *snowflake_ask(const SnowflakeConversion *conversion,
						   const char *query);
extern char *snowflake_get_value(const char *query);

/* convert_obstacles.c */
extern void snowflake_add_obstacle(SnowflakeObstacles *obstacles,
								   const char *line, const char *hint);
extern void snowflake_find_obstacles(const SnowflakeConversion *conversion,
									 SnowflakeObstacles *obstacles);
extern void snowflake_report_obstacles(const SnowflakeConversion *conversion,
									   const SnowflakeObstacles *obstacles);

/* convert_new_ids.c */
extern void snowflake_check_new_ids(const SnowflakeConversion *conversion,
									SnowflakeObstacles *obstacles);

/* convert_expressions.c */
extern bool snowflake_is_false(Node *condition, AttrNumber attnum, int64 id);
extern void snowflake_check_expressions(const SnowflakeConversion *conversion,
										const SnowflakeSample *samples,
										size_t nsamples,
										SnowflakeObstacles *obstacles);

/* convert_plan.c */
extern void snowflake_give_notices(const SnowflakeConversion *conversion);
extern List *snowflake_statements(const SnowflakeConversion *conversion);

#endif							/* SNOWFLAKE_CONVERT_H */
