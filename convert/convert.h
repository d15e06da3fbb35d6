/*-------------------------------------------------------------------------
 *
 * convert.h
 *	  What the files of snowflake_convert() share.
 *
 *	convert.c				the functions that convert
 *	report.c		the one that reports
 *	schema.c		which keys a schema has
 *	conversion.c			what happens, in which order
 *	statements.c			the statements, and the notices beside them
 *	new_ids.c		whether tables accept the IDs to come
 *	expressions.c	whether what depends on the columns accepts bigint
 *	obstacles.c		what else prevents a conversion
 *	views.c			statements that create views again
 *	queries.c		queries of the catalogs; the columns to convert
 *	rows.c			the rows of their results
 *	subtransaction.c	work whose errors do not end the transaction
 *
 * A file calls those below it.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/convert.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_H
#define SNOWFLAKE_CONVERT_H

#include "access/attnum.h"
#include "nodes/pg_list.h"
#include "utils/array.h"

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
	bool		set_default;	/* is the generator not the default yet? */
} SnowflakeKey;

/*
 * The arrays that describe the columns: tables, columns, is_key, and the number
 * of the key, from 1, that the column is or references.
 */
#define SNOWFLAKE_TARGET_ARRAYS	4

/* The arrays that describe other columns. */
#define SNOWFLAKE_OTHER_ARRAYS	2

/*
 * The arrays that describe where the names of sequences are: sequences of the
 * keys; and sequences, with an object that has the name.
 */
#define SNOWFLAKE_NAME_ARRAYS	3

/* The keys of one conversion. */
typedef struct SnowflakeConversion
{
	List	   *keys;			/* of SnowflakeKey */
	Oid			schema;			/* whose tables these are, if not of one table */
	bool		dry_run;
	bool		online;			/* are the tables in use? */
	Datum		others[SNOWFLAKE_OTHER_ARRAYS]; /* more columns to widen:
												 * tables, columns; may be 0 */
	Datum		targets[SNOWFLAKE_TARGET_ARRAYS];	/* see
													 * snowflake_find_targets() */
	Datum		names[SNOWFLAKE_NAME_ARRAYS];	/* see
												 * snowflake_find_sequence_names() */
} SnowflakeConversion;

/* What prevents a conversion, and what to do about it. */
typedef struct SnowflakeObstacle
{
	const char *object;			/* the table or column that cannot be changed */
	const char *line;
	const char *hint;
} SnowflakeObstacle;

/* A row of snowflake_convert_report(). */
typedef struct SnowflakeFinding
{
	const char *severity;
	const char *object;
	const char *finding;
	const char *what_to_do;
} SnowflakeFinding;

/* What becomes of a key of a schema. */
typedef enum SnowflakeKeyKind
{
	SNOWFLAKE_KEY_CONVERTED,
	SNOWFLAKE_KEY_EXCLUDED,		/* by the caller */
	SNOWFLAKE_KEY_REFERENCING,	/* it is a foreign key, too */
	SNOWFLAKE_KEY_SUPPLIED,		/* it has no generator, and no sequence */
	SNOWFLAKE_KEY_COUNTER,		/* a sequence, but not the primary key */
	SNOWFLAKE_KEY_KINDS
} SnowflakeKeyKind;

/* What is left as it is. */
typedef struct SnowflakeLeftKey
{
	SnowflakeKeyKind kind;
	const char *object;
} SnowflakeLeftKey;

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

/* Triggers of a table that is being converted online: before and after a swap. */
#define SNOWFLAKE_COPY_TRIGGER	"~snowflake_new"
#define SNOWFLAKE_SWAP_TRIGGER	"~snowflake_swapped"
#define SNOWFLAKE_VALIDATE_TRIGGER	"~snowflake_validate"

/* SQL: the statement by which an aclitem e grants its right on a column. */
#define SNOWFLAKE_GRANT_COLUMN(column, name) \
	"format('GRANT %s (%I) ON TABLE %s TO %s%s', e.privilege_type, " column ", " name "," \
	" " SNOWFLAKE_GRANTEE ", " SNOWFLAKE_GRANT_OPTION ")"
#define SNOWFLAKE_GRANTEE \
	"CASE e.grantee WHEN 0 THEN 'PUBLIC' ELSE e.grantee::regrole::text END"
#define SNOWFLAKE_GRANT_OPTION \
	"CASE WHEN e.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END"

/* SQL: the statements that give an object what a new one does not have. */
#define SNOWFLAKE_COMMENT_ON(what, oid, class) \
	"format('COMMENT ON %s IS %L', " what ", obj_description(" oid ", " class "))"
#define SNOWFLAKE_SET_STATISTICS(schema, name, target) \
	"format('ALTER STATISTICS %I.%I SET STATISTICS %s', " schema ", " name ", " target ")"

/*
 * SQL: the regular expression for a name as a whole word.  As
 * standard_conforming_strings may be off, all backslashes are in E''.
 */
#define SNOWFLAKE_WORD(name) \
	"format('(?<![[:alnum:]_])%s(?![[:alnum:]_])'," \
	" regexp_replace(" name ", '[^[:alnum:]_]', E'\\\\\\\\\\\\&', 'g'))"

/*
 * SQL: is a function a member of an extension; and is it, p, in a temporary schema?
 */
#define SNOWFLAKE_OF_EXTENSION(function) \
	"EXISTS (SELECT FROM pg_depend e" \
	"        WHERE (e.classid, e.objid, e.deptype) = ('pg_proc'::regclass, " function ", 'e'))"
#define SNOWFLAKE_IS_TEMPORARY \
	"(p.pronamespace = pg_my_temp_schema() OR pg_is_other_temp_schema(p.pronamespace))"

/*
 * SQL: the PL/pgSQL functions that use rows of tables, which a query of pg_class
 * returns, so that what sessions have compiled of them has the types of the columns;
 * with the owner of the table.  The types of variables are in their bodies only, so
 * there the name of a table decides, unless it is a partition.  There may be much
 * source and many tables.
 */
#define SNOWFLAKE_ROW_FUNCTIONS(tables) \
	"WITH r AS MATERIALIZED (" tables ")," \
	" f AS MATERIALIZED (" \
	"  SELECT p.oid, p.prosrc, lower(p.prosrc COLLATE \"C\") AS lower FROM pg_proc p" \
	"  WHERE p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')" \
	"  AND NOT " SNOWFLAKE_IS_TEMPORARY ") " \
	"SELECT f.oid, r.relowner FROM r JOIN pg_trigger g ON g.tgrelid = r.oid AND NOT g.tgisinternal" \
	"  JOIN f ON f.oid = g.tgfoid" \
	" UNION " \
	"SELECT f.oid, r.relowner FROM r JOIN pg_type y ON y.oid = r.reltype" \
	"  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass" \
	"    AND d.refclassid = 'pg_type'::regclass AND d.refobjid IN (y.oid, y.typarray)" \
	"  JOIN f ON f.oid = d.objid" \
	" UNION " \
	"SELECT f.oid, r.relowner FROM r JOIN f" \
	"    ON CASE WHEN strpos(f.lower, lower(r.relname::text COLLATE \"C\")) > 0" \
	"       THEN f.prosrc ~* " SNOWFLAKE_WORD("r.relname::text") " END" \
	" WHERE NOT r.relispartition" \
	" AND NOT " SNOWFLAKE_OF_EXTENSION("f.oid")

/*
 * SQL: may the owner of a table alter a function; and a statement that changes nothing,
 * after which sessions compile a function, p, again.
 */
#define SNOWFLAKE_MAY_ALTER(owner, function) \
	"(pg_has_role(" owner ", " function ".proowner, 'USAGE')" \
	" AND has_schema_privilege(" owner ", " function ".pronamespace, 'USAGE'))"
#define SNOWFLAKE_RECOMPILE \
	"CASE p.prokind WHEN 'p' THEN format('ALTER PROCEDURE %s.%I(%s) SECURITY %s', p.pronamespace::regnamespace," \
	"   p.proname, pg_get_function_identity_arguments(p.oid), CASE WHEN p.prosecdef THEN 'DEFINER' ELSE 'INVOKER' END)" \
	" ELSE format('ALTER FUNCTION %s %s', p.oid::regprocedure," \
	"   CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END) END"

/* views.c */
extern const char snowflake_view_statements[];

/* subtransaction.c */
extern ErrorData *snowflake_convert_do(void (*work) (void *argument), void *argument,
									   bool keep);
extern char *snowflake_convert_try(void (*work) (void *argument), void *argument);

/* queries.c */
extern const char snowflake_changed_tables[];
extern void snowflake_keep_plans(MemoryContext context);
extern void snowflake_find_targets(SnowflakeConversion *conversion);
extern void snowflake_find_sequence_names(SnowflakeConversion *conversion);
extern bool snowflake_has_new_sequences(const SnowflakeConversion *conversion);
extern SnowflakeConversion snowflake_convert_part(const SnowflakeConversion *conversion,
												  Oid relid);
extern void snowflake_find_narrow_columns(SnowflakeConversion *conversion);
extern List *snowflake_convert_ask(const SnowflakeConversion *conversion,
								   const char *query);
extern List *snowflake_convert_ask_often(const SnowflakeConversion *conversion,
										 Oid object, const char *query);
extern List *snowflake_convert_ask_server(Oid object, const char *query);
extern List *snowflake_ask(const SnowflakeConversion *conversion,
						   const char *query);
extern List *snowflake_ask_often(const SnowflakeConversion *conversion,
								 Oid object, const char *query);
extern List *snowflake_ask_about(Oid object, const char *query);
#define snowflake_ask_server(query) snowflake_convert_ask_server(InvalidOid, query)
extern char *snowflake_get_value(const char *query);

/* obstacles.c */

/* A query that returns a line for each obstacle, and what to do about them. */
typedef struct SnowflakeObstacleQuery
{
	const char *query;
	const char *hint;
} SnowflakeObstacleQuery;

extern void snowflake_ask_obstacles(const SnowflakeConversion *conversion,
									const char *ctes,
									const SnowflakeObstacleQuery *list,
									size_t count, const char *object,
									List **obstacles);
extern void snowflake_add_obstacle(List **obstacles, const char *object,
								   const char *line, const char *hint);
extern void snowflake_find_type_obstacles(const SnowflakeConversion *conversion,
										  List **obstacles);
extern void snowflake_find_trigger_obstacles(const SnowflakeConversion *conversion,
											 List **obstacles);
extern void snowflake_find_obstacles(const SnowflakeConversion *conversion,
									 List **obstacles);
extern void snowflake_report_obstacles(const SnowflakeConversion *conversion,
									   const List *obstacles);

/* new_ids.c */
extern void snowflake_check_new_ids(const SnowflakeConversion *conversion,
									List **obstacles);

/* expressions.c */
extern bool snowflake_is_false(Node *condition, AttrNumber attnum, int64 id);
extern void snowflake_check_expressions(const SnowflakeConversion *conversion,
										Oid generator,
										const SnowflakeSample *samples,
										size_t nsamples, List **obstacles);

/* statements.c */
extern void snowflake_give_notices(const SnowflakeConversion *conversion);
extern List *snowflake_list_findings(const SnowflakeConversion *conversion);
extern List *snowflake_statements(const SnowflakeConversion *conversion);

/* conversion.c */
extern void snowflake_refuse_old_snapshot(void);
extern void snowflake_check_generator(Oid generator);
extern SnowflakeKey *snowflake_find_key(Oid relid, const char *column,
										bool uuid_allowed);
extern Oid	snowflake_lock_to_convert(Oid relid, bool dry_run);
extern void snowflake_choose_generator(SnowflakeKey *key, Oid named);
extern void snowflake_report_kept_default(const SnowflakeKey *key);
extern void snowflake_prepare(SnowflakeConversion *conversion, Oid owner);
extern List *snowflake_list_obstacles(const SnowflakeConversion *conversion);
extern List *snowflake_execute(SnowflakeConversion *conversion);

/* schema.c */
extern List *snowflake_find_keys(SnowflakeConversion *conversion,
								 ArrayType *exclude, Oid generator,
								 Oid *owner);

#endif							/* SNOWFLAKE_CONVERT_H */
