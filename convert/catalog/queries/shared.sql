-- What all queries share: their parameters, the columns to convert, and snippets.

-- The keys: their tables, columns, generators, whether these must become the default, and whether
-- each keeps its sequences.
-- parameters: tables oid[], columns int2[], generators oid[], set_default bool[],
--   keeps_sequences bool[]

-- The columns that the query walk found: their tables, columns, whether each is a key, and the
-- number of the key, from 1, that it is or references.  Others to widen.
-- parameters: target_tables oid[], target_columns int2[], target_is_key bool[], target_keys int4[],
--   other_tables oid[], other_columns int2[]

-- What the query sequence_names found: the sequences of the keys; and sequences, each with an
-- object that has its name.
-- parameters: known_sequences oid[], named_sequences oid[], naming_objects text[]

-- The sequences that get another kind, that kind, and the greatest INCREMENT.
-- parameters: sequences oid[], kind text, max_increment int8

-- The columns that hold a key without a foreign key: their tables, columns, verdicts, and reasons.
-- parameters: found_tables oid[], found_columns int2[], found_verdicts text[], found_reasons text[]

-- The schema, the object that a query is about, the search_path of the caller, whether the tables
-- are in use, and whether other sequences have the kind already.
-- parameters: schema oid, object oid, search_path text, online bool, again bool

-- The regular expression for a name as a whole word.  As standard_conforming_strings
-- may be off, all backslashes are in E''.
-- snippet: word(name)
format('(?<![[:alnum:]_])%s(?![[:alnum:]_])',
  regexp_replace({name}, '[^[:alnum:]_]', E'\\\\\\&', 'g'))

-- The row of pg_attribute of a column, for FROM; and what columns and objects are called.
-- snippet: attribute(a, column)
pg_attribute {a} ON ({a}.attrelid, {a}.attnum) = ({column}.relid, {column}.attnum)

-- snippet: column_name(name, relid)
format('column %I of table %s', {name}, {relid}::regclass)

-- snippet: qualified(relation)
format('%s.%I', {relation}.relnamespace::regnamespace, {relation}.relname)

-- snippet: describe(d)
pg_describe_object({d}.classid, {d}.objid, {d}.objsubid)

-- snippet: describe_oid(catalog, oid)
pg_describe_object('{catalog}'::regclass, {oid}, 0)

-- snippet: describe_object(d)
pg_describe_object({d}.classid, {d}.objid, 0)

-- snippet: this_database
(SELECT oid FROM pg_database WHERE datname = current_database())

-- A privilege that a role needs, and whether it has it.
-- snippet: needs_schema(role, schema, privilege)
format('{privilege} on schema %s', {schema}::regnamespace),
has_schema_privilege({role}, {schema}, '{privilege}')

-- snippet: needs_function(role, function)
format('EXECUTE on function %s', {function}::regprocedure),
has_function_privilege({role}, {function}, 'EXECUTE')

-- Is an object a member of an extension; and is a function in a temporary schema?
-- snippet: of_extension(catalog, oid)
EXISTS (SELECT FROM pg_depend e
        WHERE (e.classid, e.objid, e.deptype) = ('{catalog}'::regclass, {oid}, 'e'))

-- snippet: is_temporary(function)
({function}.pronamespace = pg_my_temp_schema() OR pg_is_other_temp_schema({function}.pronamespace))

-- Is d a row about an object, or a dependency on it; and on column c?
-- snippet: is_object(d, catalog, oid)
({d}.classid, {d}.objid) = ('{catalog}'::regclass, {oid})

-- snippet: on_object(d, catalog, oid)
({d}.refclassid, {d}.refobjid) = ('{catalog}'::regclass, {oid})

-- snippet: on_column(d, c)
({d}.refclassid, {d}.refobjid, {d}.refobjsubid) = ('pg_class'::regclass, {c}.relid, {c}.attnum)

-- May the owner of a table alter a function?
-- snippet: may_alter(owner, function)
(pg_has_role({owner}, {function}.proowner, 'USAGE')
 AND has_schema_privilege({owner}, {function}.pronamespace, 'USAGE'))

-- The statement by which an aclitem e grants its right on a column.
-- snippet: grant_column(column, name)
format('GRANT %s (%I) ON TABLE %s TO %s%s', e.privilege_type, {column}, {name}, {grantee},
  {grant_option})

-- snippet: grantee
CASE e.grantee WHEN 0 THEN 'PUBLIC' ELSE e.grantee::regrole::text END

-- snippet: grant_option
CASE WHEN e.is_grantable THEN ' WITH GRANT OPTION' END

-- The statements that give an object what a new one does not have; NULL if it has no comment.
-- snippet: comment_on(what, oid, catalog)
format('COMMENT ON %s IS ', {what}) || quote_literal(obj_description({oid}, '{catalog}'))

-- snippet: has_comment(oid, catalog)
obj_description({oid}, '{catalog}') IS NOT NULL

-- snippet: set_statistics(schema, name, target)
format('ALTER STATISTICS %I.%I SET STATISTICS %s', {schema}, {name}, {target})

-- Does a column of an index only cast a column of its table that becomes bigint?  It is that column
-- itself afterwards, for which an index has no statistics target.
-- snippet: only_casts(index, table, attnum)
EXISTS (SELECT FROM widened t WHERE t.relid = {table}
        AND translate(pg_get_indexdef({index}, {attnum}, true), '()', '')
          = translate(format('%I::bigint', t.attname), '()', ''))

-- A query of a list, with what is said of its rows.
-- snippet: hint(number, hint, query)
SELECT {number}, {hint}, o.* FROM ({query}) o

-- snippet: notice(number, severity, form, title, query)
SELECT {number}, {severity}, {form}, {title}, o.* FROM ({query}) o

-- What prevents a conversion: each query of the list returns lines that say what, and the
-- table or column that each is about.  One without a foreign key need not be widened.
-- snippet: obstacles(entries)
SELECT line COLLATE "C" AS line, min(object COLLATE "C") AS object, concat(o.hint, w.hint) AS hint
FROM ({entries}) o(number, hint, line, object) CROSS JOIN LATERAL (
  SELECT CASE WHEN o.object IN (SELECT column_name FROM target WHERE key IS NULL)
    THEN ' Or leave these columns out: give widen ''none'' or a list of other columns instead of '
      '''keys''.' END) w(hint)
GROUP BY number, o.hint, w.hint, line COLLATE "C"
ORDER BY number, line COLLATE "C"

-- What is to be told.  The severity "first" is that of what needs a decision before the first
-- conversion, and is only told afterwards, and "later" the opposite: others are converted, so
-- something has changed since.  Columns that were found come in the order of their likelihood.
-- snippet: notices(entries)
SELECT CASE WHEN severity NOT IN ('first', 'later') THEN severity
    WHEN (true = ALL ($set_default) AND NOT $again) = (severity = 'first') THEN 'warning'
    ELSE 'info' END AS severity, form, title, object, line, message, detail, hint, f.place
FROM ({entries}) n(number, severity, form, title, object, line, message, detail, hint)
  LEFT JOIN (SELECT column_name, min(place) AS place FROM found GROUP BY 1) f
    ON f.column_name = n.object
ORDER BY number, f.place, object COLLATE "C"

-- What an extension has, or what depends on one.
-- cte: in_extension(classid, objid, line)
SELECT d.classid, d.objid,
  format('%s is a member of, or depends on, extension %I', {describe_object(d)}, e.extname)
FROM pg_depend d JOIN pg_extension e ON {on_object(d, pg_extension, e.oid)}
WHERE d.deptype IN ('e', 'x')

-- The types that hold any ID, which are bigint,
-- uuid, and domains over them, or over such a domain.  A column references a
-- key of another type only if both are integers.
-- cte: wide(typid)
SELECT unnest('{int8,uuid}'::regtype[])::oid
UNION ALL
SELECT y.oid FROM wide w JOIN pg_type y ON y.typbasetype = w.typid AND y.typtype = 'd'

-- The columns that were found.  is_root is
-- true for the keys without their partitions and children.  gets_ids is true if the key
-- does not get IDs yet: set_default, if its generator is to become the default, and
-- uses_sequence, if its sequence stays, and it has neither an identity nor a default.  change says
-- what to do: widen a smallint or integer, keep a bigint or uuid, or that the column cannot be
-- converted because it has another type.
-- cte: target
SELECT w.relid, w.attnum, w.is_key, w.key, a.attname, a.atttypid AS typid, a.attinhcount,
  a.attidentity, a.attgenerated,
  coalesce((w.relid, w.attnum) = ($tables[w.key], $columns[w.key]), false) AS is_root,
  $generators[w.key] AS generator, coalesce($set_default[w.key], false) AS gets_ids,
  coalesce($set_default[w.key] AND NOT $keeps_sequences[w.key], false) AS set_default,
  coalesce($set_default[w.key] AND $keeps_sequences[w.key]
    AND NOT (a.attidentity <> '' OR a.atthasdef), false) AS uses_sequence,
  CASE WHEN a.atttypid IN ('int2'::regtype, 'int4'::regtype) THEN 'widen'
    WHEN a.atttypid IN (SELECT typid FROM wide) THEN 'keep'
    ELSE 'cannot' END AS change,
  format('table %s', w.relid::regclass) AS table_name,
  {column_name(a.attname, w.relid)} AS column_name
FROM unnest($target_tables, $target_columns, $target_is_key, $target_keys)
    w(relid, attnum, is_key, key)
  JOIN {attribute(a, w)}

-- cte: widened
SELECT * FROM target WHERE change = 'widen'

-- The tables that are altered, and those at the other end of a
-- foreign key that is created again.
-- cte: changed(relid)
SELECT relid FROM target WHERE is_key AND (set_default OR uses_sequence) OR change = 'widen'
UNION
SELECT unnest(ARRAY[c.conrelid, c.confrelid])
FROM widened t JOIN pg_constraint c ON c.contype = 'f'
  AND (c.confrelid = t.relid AND t.attnum = ANY (c.confkey)
       OR c.conrelid = t.relid AND t.attnum = ANY (c.conkey))

-- The sequences that a key, or the column of a partition or
-- child, owns or has in its default.
-- cte: key_default(oid, relid, attnum, key, expression)
SELECT f.oid, t.relid, t.attnum, t.key, pg_get_expr(f.adbin, f.adrelid)
FROM target t JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (t.relid, t.attnum)
WHERE t.is_key

-- cte: related(oid, key, owned, is_identity) union
SELECT d.objid, t.key, true, d.deptype = 'i' FROM target t
  JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    AND {on_column(d, t)}
WHERE t.is_key
SELECT d.refobjid, k.key, false, false FROM key_default k
  JOIN pg_depend d ON {is_object(d, pg_attrdef, k.oid)} AND d.refclassid = 'pg_class'::regclass
SELECT n.oid, k.key, false, false FROM key_default k
  JOIN pg_class n ON n.relkind = 'S' AND k.expression ~* {word(n.relname)}
WHERE k.expression ~ 'nextval[(].*::text'

-- cte: seq
SELECT r.oid, {qualified(c)} AS name, c.relname,
  bool_or(r.owned) AS owned, bool_or(r.is_identity) AS is_identity,
  bool_or($set_default[r.key] AND NOT $keeps_sequences[r.key]) AS replaced
FROM related r JOIN pg_class c ON c.oid = r.oid AND c.relkind = 'S'
GROUP BY 1, 2, 3

-- What else uses them.
-- cte: seq_user(oid, name, by_name) union
SELECT s.oid, {describe(d)}, false
FROM seq s JOIN pg_depend d ON {on_object(d, pg_class, s.oid)}
WHERE d.classid <> 'pg_attrdef'::regclass OR d.objid NOT IN (SELECT oid FROM key_default)
SELECT s.oid, pg_describe_object(d.refclassid, d.refobjid, 0), false
FROM seq s JOIN pg_depend d ON {is_object(d, pg_class, s.oid)} AND d.deptype = 'e'
SELECT oid, name, true FROM unnest($named_sequences, $naming_objects) n(oid, name)

-- What ALTER COLUMN ... TYPE creates again, with the indexes of constraints, which have their
-- expressions; and the indexes and statistics objects among it.  An index of a partition that has
-- a parent is created with that.
-- cte: rebuilt(classid, objid)
SELECT DISTINCT o.classid, o.objid FROM widened t
  JOIN pg_depend d ON {on_column(d, t)}
  LEFT JOIN pg_constraint k ON {is_object(d, pg_constraint, k.oid)}
    AND k.contype IN ('p', 'u', 'x')
  CROSS JOIN LATERAL (VALUES (d.classid, d.objid), ('pg_class'::regclass, k.conindid))
    o(classid, objid)
WHERE o.objid IS NOT NULL

-- cte: rebuilt_index materialized
SELECT c.oid, c.relname, c.reloptions, c.reltablespace, n.nspname, i.indrelid, i.indisclustered,
  i.indisreplident, h.inhparent AS parent
FROM rebuilt r JOIN pg_index i ON {is_object(r, pg_class, i.indexrelid)}
  JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_inherits h ON h.inhrelid = c.oid

-- cte: rebuilt_statistics
SELECT s.*, n.nspname FROM rebuilt r
  JOIN pg_statistic_ext s ON {is_object(r, pg_statistic_ext, s.oid)}
  JOIN pg_namespace n ON n.oid = s.stxnamespace

-- The PL/pgSQL functions that use rows of tables, those of the CTE row_table, which has rows of
-- pg_class, so that what sessions have compiled of them has the types of the columns;
-- with the owner of the table.  The types of variables are in their bodies only, so
-- there the name of a table decides, unless it is a partition.  There may be much
-- source and many tables.
-- cte: plpgsql(oid, source, lower) materialized
SELECT p.oid, p.prosrc, lower(p.prosrc COLLATE "C")
FROM pg_proc p
WHERE p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')
AND NOT {is_temporary(p)}

-- cte: row_user(oid, owner)
SELECT f.oid, r.relowner
FROM row_table r JOIN pg_trigger g ON g.tgrelid = r.oid AND NOT g.tgisinternal
  JOIN plpgsql f ON f.oid = g.tgfoid
UNION
SELECT f.oid, r.relowner
FROM row_table r JOIN pg_type y ON y.oid = r.reltype
  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass
    AND d.refclassid = 'pg_type'::regclass AND d.refobjid IN (y.oid, y.typarray)
  JOIN plpgsql f ON f.oid = d.objid
UNION
SELECT f.oid, r.relowner
FROM row_table r JOIN plpgsql f
    ON CASE WHEN strpos(f.lower, lower(r.relname::text COLLATE "C")) > 0
       THEN f.source ~* {word(r.relname::text)} END
WHERE NOT r.relispartition
AND NOT {of_extension(pg_proc, f.oid)}

-- Those of the tables whose columns change their type, with a statement that changes nothing, after
-- which sessions compile them again.
-- cte: row_table materialized
SELECT r.* FROM widened t JOIN pg_class r ON r.oid = t.relid

-- cte: row_function(oid, name, owner, owned, command)
SELECT DISTINCT p.oid, p.oid::regprocedure::text, p.proowner::regrole, {may_alter(u.owner, p)},
  CASE p.prokind
    WHEN 'p' THEN format('ALTER PROCEDURE %s.%I(%s) SECURITY %s', p.pronamespace::regnamespace,
      p.proname, pg_get_function_identity_arguments(p.oid),
      CASE WHEN p.prosecdef THEN 'DEFINER' ELSE 'INVOKER' END)
    ELSE format('ALTER FUNCTION %s %s', p.oid::regprocedure,
      CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END) END
FROM row_user u JOIN pg_proc p ON p.oid = u.oid

-- The columns that hold, or might hold, a key without a foreign key, as columns.c has found, the
-- likely ones first: the verdict is sure or perhaps, or unfit for types that are not widened.
-- cte: found
SELECT h.*, a.attname, c.*, format('%s (%s): %s', c.column_name, c.type, h.reason) AS line,
  format('%I.%I', r.relname, a.attname) AS path
FROM unnest($found_tables, $found_columns, $found_verdicts, $found_reasons) WITH ORDINALITY
    h(relid, attnum, verdict, reason, place)
  JOIN pg_class r ON r.oid = h.relid
  JOIN {attribute(a, h)}
  CROSS JOIN LATERAL (SELECT {column_name(a.attname, h.relid)}, format_type(a.atttypid, NULL))
    c(column_name, type)

-- The types of numbers and of arrays of them that do not hold all IDs, those of texts, which may
-- be too short, and domains over them.
-- cte: small(typid, base, typmod)
SELECT unnest('{int2,int4,float4,float8,numeric,varchar,bpchar,int2[],int4[],float4[],float8[],'
  'numeric[]}'::regtype[])::oid, NULL::oid, -1
UNION ALL
SELECT y.oid, coalesce(s.base, s.typid), greatest(s.typmod, y.typtypmod)
FROM small s JOIN pg_type y ON y.typbasetype = s.typid AND y.typtype = 'd'

-- The columns of the schema that have such a type, which nothing widens, and room for keys: a text,
-- for 5 digits.
-- cte: small_type(relid, attnum, base, is_array)
SELECT r.oid, a.attnum, b.base, format_type(b.base, NULL) LIKE '%[]'
FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid
  JOIN small s ON s.typid = a.atttypid
  CROSS JOIN LATERAL (
    SELECT coalesce(s.base, s.typid), greatest(s.typmod, a.atttypmod)) b(base, mod)
WHERE r.relnamespace = $schema AND r.relkind IN ('r', 'p') AND $tables <> '{}'
AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0
AND (b.base NOT IN ('varchar'::regtype, 'bpchar'::regtype) OR b.mod - 4 BETWEEN 5 AND 18)
-- numeric(p, s) has p - s digits before the point, and an ID 19.
AND (b.base NOT IN ('numeric'::regtype, 'numeric[]'::regtype)
     OR b.mod >= 4 AND ((b.mod - 4) >> 16) - ((((b.mod - 4) & 2047) # 1024) - 1024) < 19)
AND NOT EXISTS (SELECT FROM pg_constraint c
                WHERE c.contype = 'f' AND c.conrelid = r.oid AND a.attnum = ANY (c.conkey))
AND NOT {of_extension(pg_class, r.oid)}
AND (a.attrelid, a.attnum) NOT IN (SELECT relid, attnum FROM target)

-- Those that hold keys, and arrays that might, by their names or as arrays of integers.  rounds is
-- true for those that store something else without an error.
-- cte: unfit(column_name, type, reason, rounds)
SELECT {column_name(a.attname, a.attrelid)},
  format_type(a.atttypid, a.atttypmod), h.reason, format_type(y.base, NULL) ~ '^(real|double)'
FROM small_type y JOIN {attribute(a, y)}
  LEFT JOIN found h ON (h.relid, h.attnum) = (y.relid, y.attnum) AND h.verdict = 'unfit'
WHERE h.verdict = 'unfit' OR y.is_array
AND (a.attname ~* 'ids?$'
     OR y.base IN ('int2[]'::regtype, 'int4[]'::regtype) AND NOT {is_number({words(a.attname)})})
