/*-------------------------------------------------------------------------
 *
 * convert_plan.c
 *	  The statements that convert a column, and the notices beside them.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * src/convert_plan.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert.h"

/*
 * What an administrator needs to know besides the statements: notice, detail,
 * and hint.
 */
static const char *const notice_queries[] = {
	"SELECT 'columns are changed to type bigint',"
	"  string_agg(format('%s (%s)', t.column_name, format_type(a.atttypid, NULL)), E'\\n'"
	"             ORDER BY t.column_name COLLATE \"C\"),"
	"  'Use 64-bit integers for these columns in the application, and have it reconnect.'"
	" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
	" WHERE t.change = 'widen' AND t.attinhcount = 0"
	" HAVING count(*) > 0",

	/* That it came from a sequence is in the notice about the sequence. */
	"SELECT format('default of %s is replaced', t.column_name),"
	"    format('The default was %s.', d.expression), NULL"
	" FROM key_default d JOIN target t ON (t.relid, t.attnum) = (d.relid, d.attnum)"
	"  LEFT JOIN target r ON r.is_root AND r.key = t.key"
	"  LEFT JOIN key_default k ON (k.relid, k.attnum) = (r.relid, r.attnum)"
	" WHERE t.set_default AND d.expression <> t.generator::regprocedure::text"
	" AND CASE WHEN t.is_root THEN d.expression !~ '^nextval\\(''[^'']*''::regclass\\)$'"
	"   ELSE d.expression IS DISTINCT FROM k.expression END"
	" ORDER BY t.column_name COLLATE \"C\"",

	"SELECT format('%s had no default', t.column_name),"
	"  'The application supplied the values.',"
	"  'Omit the column from INSERT in the application. If the application continues to supply values, for example from a sequence, they are not snowflake IDs.'"
	" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
	" WHERE t.is_root AND t.set_default AND a.attidentity = '' AND a.atttypid <> 'uuid'::regtype"
	" AND NOT EXISTS (SELECT FROM key_default d WHERE (d.relid, d.attnum) = (t.relid, t.attnum))",

	"SELECT format('%s had no default', t.column_name),"
	"  'The application supplied the values.',"
	"  'Omit the column from INSERT in the application. If it continues to supply values, they do not come from the generator.'"
	" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
	" WHERE t.is_root AND t.set_default AND a.atttypid = 'uuid'::regtype"
	" AND NOT EXISTS (SELECT FROM key_default d WHERE (d.relid, d.attnum) = (t.relid, t.attnum))",

	"SELECT format('%s keeps the UUIDs that it has', t.column_name),"
	"  'New ones may be anywhere among them. Those of uuid_v7() are in the order of time among themselves.',"
	"  'Do not use the order of the key for older rows.'"
	" FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
	" WHERE t.is_root AND t.set_default AND a.atttypid = 'uuid'::regtype",

	"SELECT format('sequence %s is dropped', name), NULL,"
	"  'Calls of nextval() and currval() with its name fail afterwards. pg_get_serial_sequence() returns NULL for the column, and so does currval() of that.'"
	" FROM seq WHERE replaced AND owned AND oid NOT IN (SELECT oid FROM seq_user)"
	" ORDER BY name COLLATE \"C\"",

	"SELECT format('sequence %s is kept', name),"
	"  coalesce((SELECT string_agg(DISTINCT format(CASE WHEN u.by_name THEN 'Its name occurs in %s.' ELSE 'It is used by %s.' END, u.name), ' ')"
	"            FROM seq_user u WHERE u.oid = seq.oid),"
	"           'The column does not own it.'),"
	"  'An application that uses the sequence gets numbers that are not snowflake IDs. Drop it when nothing uses it anymore.'"
	" FROM seq WHERE replaced AND NOT is_identity"
	" AND NOT (owned AND oid NOT IN (SELECT oid FROM seq_user))"
	" ORDER BY name COLLATE \"C\"",

	/* By their names in the bodies of functions: only what might be. */
	", called(oid) AS ("
	"  SELECT g.tgfoid"
	"    FROM target t JOIN pg_trigger g ON g.tgrelid = t.relid AND NOT g.tgisinternal"
	"  WHERE t.change = 'widen'"
	"  UNION"
	"  SELECT p.oid FROM called c JOIN pg_proc b ON b.oid = c.oid"
	"    JOIN pg_proc p ON strpos(lower(b.prosrc), lower(p.proname)) > 0"
	"      AND b.prosrc ~* format('(?<!\\w)%s(?!\\w)',"
	"                             regexp_replace(p.proname, '\\W', '\\\\\\&', 'g'))"
	"  WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
	"  AND NOT EXISTS (SELECT FROM pg_depend e"
	"                  WHERE (e.classid, e.objid, e.deptype) = ('pg_proc'::regclass, p.oid, 'e'))),"
	" narrow(name) AS ("
	"  SELECT p.oid::regprocedure::text FROM called c JOIN pg_proc p ON p.oid = c.oid"
	"  WHERE p.prorettype || p.proargtypes::oid[] && ARRAY['int2'::regtype, 'int4'::regtype]::oid[]"
	"  OR p.prosrc ~* '(?<!\\w)(smallint|int|int2|int4|integer)(?!\\w)')"
	"SELECT 'triggers of these tables might call functions that use integers',"
	"  string_agg(name, E'\\n' ORDER BY name COLLATE \"C\"),"
	"  'A bigint does not match an integer parameter, and a new ID does not fit into an integer variable. Change those that hold IDs to bigint.'"
	" FROM narrow HAVING count(*) > 0",

	"SELECT format('function %s might fail in open sessions', name),"
	"  format('It is a PL/pgSQL function of a trigger. Its plans are for the old type, and cannot be discarded, because it belongs to role %s.', owner),"
	"  format('Have its owner run %s after the conversion, or have sessions reconnect.', command)"
	" FROM trigger_function WHERE NOT owned ORDER BY name COLLATE \"C\"",
};

/*
 * The statements, in their order.  The default goes first: Citus, for example,
 * does not allow changing the type of a column whose default is a sequence.
 * Since 17, partitions have the identity of their table, and lose it with it.
 *
 * PL/pgSQL functions of triggers go last.  The plans that sessions keep for them
 * would fail if they have a field of a record as a parameter, because its type
 * has changed; altering a function, even if nothing is different afterwards,
 * has it compiled again.
 */
static const char statements_query[] =
", altered AS ("
"  SELECT t.*, format('%I.%I', n.nspname, r.relname) AS name, r.relispartition"
"  FROM target t JOIN pg_class r ON r.oid = t.relid"
"    JOIN pg_namespace n ON n.oid = r.relnamespace),"
" statement(step, other, name, command) AS ("
"  SELECT 1, NOT t.is_root, t.name,"
"    format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', t.name, t.attname)"
"  FROM altered t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
"  WHERE t.set_default AND t.is_key AND a.attidentity <> ''"
"  AND (t.is_root OR NOT t.relispartition"
"       OR current_setting('server_version_num')::int < 170000)"
"  UNION ALL"
"  SELECT 2, false, t.name,"
"    format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %I.%I()',"
"           t.name, t.attname, n.nspname, f.proname)"
"  FROM altered t, pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace"
"  WHERE t.set_default AND t.is_root AND f.oid = t.generator"
"  UNION ALL"
"  SELECT 3, false, name, format('DROP SEQUENCE %s', name)"
"  FROM seq WHERE replaced AND owned AND NOT is_identity AND oid NOT IN (SELECT oid FROM seq_user)"
"  UNION ALL"
"  SELECT 4, relid <> ALL ($1), name,"
"    format('ALTER TABLE %s %s', name,"
"           string_agg(format('ALTER COLUMN %I TYPE bigint', attname), ', ' ORDER BY attnum))"
"  FROM altered WHERE change = 'widen' AND attinhcount = 0"
"  GROUP BY relid, name"
"  UNION ALL"
"  SELECT 5, false, name, command FROM trigger_function WHERE owned) "
"SELECT command FROM statement ORDER BY step, other, name COLLATE \"C\"";

/*
 * Run a query, which begins after all CTEs.
 */
static List *
ask(const SnowflakeConversion *conversion, const char *query)
{
	return snowflake_ask(conversion,
						 psprintf("%s%s%s", snowflake_sequences,
								  snowflake_trigger_functions, query));
}

/*
 * Report what the statements do not show.
 */
void
snowflake_give_notices(const SnowflakeConversion *conversion)
{
	for (size_t i = 0; i < lengthof(notice_queries); i++)
	{
		ListCell   *cell;

		foreach(cell, ask(conversion, notice_queries[i]))
		{
			char	  **row = lfirst(cell);

			ereport(NOTICE,
					(errmsg_internal("%s", row[0]),
					 row[1] != NULL ? errdetail_internal("%s", row[1]) : 0,
					 row[2] != NULL ? errhint("%s", row[2]) : 0));
		}
	}
}

/*
 * The statements that convert the column.
 */
List *
snowflake_statements(const SnowflakeConversion *conversion)
{
	List	   *statements = NIL;
	ListCell   *cell;

	foreach(cell, ask(conversion, statements_query))
	{
		char	  **row = lfirst(cell);

		statements = lappend(statements, row[0]);
	}
	return statements;
}
