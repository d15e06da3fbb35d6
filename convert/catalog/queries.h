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

/* The keys of one conversion. */
typedef struct SnowflakeConversion
{
	List	   *keys;			/* of SnowflakeKey */
	Oid			schema;			/* whose tables these are, if not of one table */
	SnowflakeConvertKind kind;
	const char *search_path;	/* of the caller */
	bool		dry_run;
	bool		online;			/* are the tables in use? */
	bool		rewrites;		/* does a column change its type? */
	LOCKMODE	lock;			/* on tables that are altered */
	List	   *altered;		/* these tables */
	List	   *views;			/* that are dropped, and other relations to
								 * lock before the tables */
	List	   *sequences;		/* that get the kind, as OIDs */
	int64		max_increment;	/* that these can have */
	Datum		arrays[SNOWFLAKE_PARAMETERS]; /* what was found so far, by the parameters
									 * that have it, or 0: see shared.sql */
} SnowflakeConversion;

extern const char *snowflake_convert_kind_name(SnowflakeConvertKind kind);
extern Datum snowflake_convert_array_of_oids(const List *oids);
extern void snowflake_convert_keep_plans(MemoryContext context);
extern void snowflake_convert_find_targets(SnowflakeConversion *conversion);
extern void snowflake_convert_find_sequence_names(SnowflakeConversion *conversion);
extern bool snowflake_convert_has_new_sequences(const SnowflakeConversion *conversion);
extern SnowflakeConversion snowflake_convert_part(const SnowflakeConversion *conversion,
												  Oid relid);
extern Datum snowflake_convert_get_names(const SnowflakeConversion *conversion,
										 SnowflakeQuery query);
extern List *snowflake_convert_ask(const SnowflakeConversion *conversion,
								   SnowflakeQuery query);
extern List *snowflake_convert_ask_of(const SnowflakeConversion *conversion,
									  Oid object, SnowflakeQuery query);
extern List *snowflake_convert_ask_once(const char *query);
extern List *snowflake_convert_ask_with(const List *texts, SnowflakeQuery query);
extern List *snowflake_convert_ask_server(const List *texts, SnowflakeQuery query);
extern List *snowflake_convert_oid_parameter(Oid oid);
extern List *snowflake_convert_oids_parameter(const List *oids);
extern List *snowflake_convert_ask_about(Oid object, SnowflakeQuery query);
extern char *snowflake_convert_get_value(const char *query);

#endif							/* SNOWFLAKE_CONVERT_QUERIES_H */
