/*-------------------------------------------------------------------------
 *
 * convert.h
 *	  What the files of online/ use of this folder, and SQL for their queries.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/convert.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef SNOWFLAKE_CONVERT_H
#define SNOWFLAKE_CONVERT_H

#include "convert/conversion.h"
#include "convert/obstacles.h"
#include "convert/queries.h"
#include "convert/statements.h"
#include "convert/subtransaction.h"

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
extern const char snowflake_view_statements[];
extern const char snowflake_changed_tables[];
extern List *snowflake_ask(const SnowflakeConversion *conversion,
						   const char *query);
extern List *snowflake_ask_often(const SnowflakeConversion *conversion,
								 Oid object, const char *query);
#define snowflake_ask_server(query) snowflake_convert_ask_server(InvalidOid, query)
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

#endif							/* SNOWFLAKE_CONVERT_H */
