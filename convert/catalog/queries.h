/*-------------------------------------------------------------------------
 *
 * queries.h
 *	  Queries of the catalogs, and the columns to convert.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/catalog/queries.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_QUERIES_H
#define SNOWFLAKE_CONVERT_QUERIES_H

#include "access/attnum.h"
#include "nodes/pg_list.h"
#include "storage/lockdefs.h"

#include "catalog/queries/names.sql.h"

/* What generates the values of keys: a function, or sequences of a kind. */
typedef enum SnowflakeConvertKind
{
	SNOWFLAKE_CONVERT_GENERATOR,
	SNOWFLAKE_CONVERT_SNOWFLAKE,
	SNOWFLAKE_CONVERT_RANGE,
	SNOWFLAKE_CONVERT_LOCAL,
	SNOWFLAKE_CONVERT_KINDS
} SnowflakeConvertKind;

/* A key to convert, and how. */
typedef struct SnowflakeKey
{
	Oid			relid;			/* the table */
	char	   *table;			/* its qualified name, when it is locked */
	AttrNumber	attnum;			/* the column */
	char	   *column;			/* its name */
	Oid			type;			/* that it has afterwards: bigint, or uuid */
	Oid			generator;		/* function that generates the IDs */
	bool		snowflakes;		/* are they snowflake IDs? */
	bool		set_default;	/* does it not get such IDs yet? */
	bool		has_generator;	/* is its default one already? */
	bool		keeps_sequences;	/* that get the kind, instead of another
									 * default */
} SnowflakeKey;

/* A column without a foreign key, which holds a key, or might. */
typedef struct SnowflakeColumn
{
	Oid			relid;
	AttrNumber	attnum;
	const char *verdict;
	const char *reason;
	double		likelihood;
} SnowflakeColumn;

/* A row of a query's result. */
typedef struct SnowflakeRow SnowflakeRow;

/*
 * The keys of one conversion, and what was found of them: each by the file that is named,
 * and in the memory of the connection to SPI.
 */
typedef struct SnowflakeConversion
{
	/* What is asked for, by the SQL functions */
	Oid			schema;			/* whose tables these are, if not of one table */
	SnowflakeConvertKind kind;
	const char *search_path;	/* of the caller */
	int64		max_increment;	/* that sequences of the kind can have */
	bool		dry_run;
	bool		online;			/* are the tables in use? */

	/* keys.c */
	List	   *keys;			/* of SnowflakeKey */

	/* sequences.c */
	List	   *sequences;		/* that get the kind, as OIDs */
	bool		again;			/* have others the kind already? */

	/* columns.c */
	List	   *found;			/* of SnowflakeColumn, without a foreign key */
	List	   *widened;		/* those that are widened with the others */

	/* queries.c */
	Datum		arrays[SNOWFLAKE_PARAMETERS];	/* by the parameters that have
												 * them, or 0: see shared.sql */

	/* conversion.c */
	bool		rewrites;		/* does a column change its type? */
	LOCKMODE	lock;			/* on tables that are altered */
	List	   *altered;		/* these tables */
	List	   *views;			/* that are dropped, and other relations to
								 * lock before the tables */
} SnowflakeConversion;

extern const char *snowflake_convert_kind_name(SnowflakeConvertKind kind);
extern void snowflake_convert_keep_plans(MemoryContext context);
extern void snowflake_convert_forget(SnowflakeConversion *conversion);
extern int	snowflake_convert_find_target(const SnowflakeConversion *conversion,
										  Oid relid, AttrNumber attnum);
extern void snowflake_convert_find_targets(SnowflakeConversion *conversion);
extern void snowflake_convert_find_sequence_names(SnowflakeConversion *conversion);
extern SnowflakeConversion snowflake_convert_part(const SnowflakeConversion *conversion,
												  Oid relid);
extern List *snowflake_convert_ask(const SnowflakeConversion *conversion,
								   SnowflakeQuery query);
extern List *snowflake_convert_ask_of(const SnowflakeConversion *conversion,
									  Oid object, SnowflakeQuery query);
extern List *snowflake_convert_ask_texts(const SnowflakeConversion *conversion,
										 SnowflakeQuery query);
extern List *snowflake_convert_ask_oids(const SnowflakeConversion *conversion,
										Oid object, SnowflakeQuery query);
extern List *snowflake_convert_run(const char *statement, const List *texts);
extern char *snowflake_convert_value(const char *query);
extern void snowflake_convert_run_statements(const List *statements);
extern List *snowflake_convert_ask_with(const List *texts, SnowflakeQuery query);
extern List *snowflake_convert_ask_server(const List *texts, SnowflakeQuery query);
extern List *snowflake_convert_oid_parameter(Oid oid);
extern List *snowflake_convert_oids_parameter(const List *oids);

extern char *snowflake_convert_text(const SnowflakeRow *row, const char *column);
extern Oid	snowflake_convert_oid(const SnowflakeRow *row, const char *column);
extern int64 snowflake_convert_number(const SnowflakeRow *row, const char *column);
extern bool snowflake_convert_flag(const SnowflakeRow *row, const char *column);
extern char *snowflake_convert_first(const List *rows);
extern List *snowflake_convert_texts(const List *rows);
extern List *snowflake_convert_oids(const List *rows);

#endif							/* SNOWFLAKE_CONVERT_QUERIES_H */
