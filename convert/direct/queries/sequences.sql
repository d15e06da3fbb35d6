-- The sequences that feed columns, and the statements that give them another kind.

-- The schemas in which applications look names up: by the settings of a role, or else as the
-- caller.
-- cte: app_path(owner, n, schema)
SELECT o.oid, m.n, CASE WHEN coalesce(m.part[1], m.part[2]) = '$user' THEN o.rolname::text
    ELSE coalesce(replace(m.part[1], '""', '"'), lower(m.part[2])) END
FROM pg_roles o
  CROSS JOIN LATERAL (
    SELECT coalesce((
      SELECT substr(c.setting, 13)
      FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) c(setting)
      WHERE s.setrole IN (o.oid, 0) AND starts_with(c.setting, 'search_path=')
      AND s.setdatabase IN (0, {this_database})
      ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1), $search_path)) p(path)
  CROSS JOIN LATERAL regexp_matches(p.path, '"((?:[^"]|"")*)"|([^,[:space:]"]+)', 'g')
    WITH ORDINALITY m(part, n)

-- Defaults that look the name of a sequence up each time, and that sequence.
-- pg_get_expr() locks the table, so it is not called for all of them.
-- cte: default_name(relid, attnum, owner, parts)
SELECT f.adrelid, f.adnum, r.relowner, CASE
  WHEN n.name ~ '^("([^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*)([.]("([^"]|"")+"|[[:alpha:]_][[:alnum:]_$]*))*$'
    THEN parse_ident(n.name)::name[] END
FROM pg_attrdef f JOIN pg_class r ON r.oid = f.adrelid
  CROSS JOIN LATERAL (
    SELECT replace(substring(CASE
      WHEN strpos(f.adbin::text, ':funcid ' || 'regclass(text)'::regprocedure::oid || ' ') > 0
        THEN pg_get_expr(f.adbin, f.adrelid) END
      FROM 'nextval[(]+''((?:[^'']|'''')*)''::text[)]'), '''''', '''')) n(name)
WHERE n.name IS NOT NULL

-- All columns that sequences feed: that own one, as serial and identity columns, or have it in
-- their default, or in that of their domain.  Anybody can write such a default, but who owns the
-- table has to have a right on the sequence.
-- cte: feeding(sequence, relid, attnum)
SELECT f.sequence, f.relid, f.attnum
FROM (
  SELECT d.objid, d.refobjid, d.refobjsubid::int2
  FROM pg_depend d
  WHERE (d.classid, d.refclassid) = ('pg_class'::regclass, 'pg_class'::regclass)
  AND d.deptype IN ('a', 'i') AND d.refobjsubid > 0
  UNION
  SELECT d.refobjid, f.adrelid, f.adnum
  FROM pg_depend d JOIN pg_attrdef f ON {is_object(d, pg_attrdef, f.oid)}
  WHERE d.refclassid = 'pg_class'::regclass
  UNION
  SELECT d.refobjid, a.attrelid, a.attnum
  FROM pg_depend d JOIN pg_attribute a ON {is_object(d, pg_type, a.atttypid)} AND a.attnum > 0
  WHERE d.refclassid = 'pg_class'::regclass
  UNION
  SELECT s.oid, d.relid, d.attnum
  FROM default_name d CROSS JOIN LATERAL (
    SELECT c.oid
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN app_path p ON (p.owner, p.schema) = (d.owner, n.nspname::text)
    WHERE c.relname = d.parts[cardinality(d.parts)]
    AND CASE cardinality(d.parts) WHEN 1
      THEN p.n IS NOT NULL AND has_schema_privilege(d.owner, n.oid, 'USAGE')
      ELSE n.nspname = d.parts[cardinality(d.parts) - 1] END
    ORDER BY p.n LIMIT 1) s) f(sequence, relid, attnum)
  JOIN pg_class s ON s.oid = f.sequence AND s.relkind = 'S' JOIN pg_class r ON r.oid = f.relid
WHERE r.relowner = s.relowner OR has_sequence_privilege(r.relowner, s.oid, 'USAGE, UPDATE')

-- Columns whose defaults make texts of numbers of sequences, and whether these are snowflake IDs.
-- cte: number_text(column_name, has_ids)
SELECT {column_name(a.attname, r.oid)},
  bool_or(f.sequence = ANY ($sequences) OR coalesce(k.kind = 'snowflake', false))
FROM feeding f JOIN {attribute(a, f)}
  JOIN pg_type y ON y.oid = a.atttypid AND y.typcategory = 'S'
  JOIN pg_class r ON r.oid = f.relid AND r.relkind IN ('r', 'p') AND NOT r.relispartition
  LEFT JOIN sequence_kind k ON k.sequence = f.sequence
WHERE $kind = 'snowflake' AND r.relpersistence <> 't'
AND (r.relnamespace = $schema OR r.oid IN (SELECT relid FROM target))
AND k.kind IS DISTINCT FROM 'range'
GROUP BY r.oid, a.attname

-- The types of integers, and domains over them, with the greatest value.
-- cte: integer_type(typid, base, greatest_value)
SELECT * FROM (VALUES
  ('int2'::regtype::oid, 'int2'::regtype, 32767),
  ('int4'::regtype::oid, 'int4'::regtype, 2147483647),
  ('int8'::regtype::oid, 'int8'::regtype, 9223372036854775807)) t(typid, base, greatest_value)
UNION ALL
SELECT y.oid, i.base, i.greatest_value
FROM integer_type i JOIN pg_type y ON y.typbasetype = i.typid AND y.typtype = 'd'

-- cte: sequence_kind(sequence, kind)
SELECT l.objoid, split_part(l.label, ' ', 1) FROM pg_seclabel l
WHERE (l.classoid, l.objsubid, l.provider) = ('pg_class'::regclass, 0, 'snowflake')

-- The sequences of keys, each with its kind, and a column that is too narrow for IDs afterwards.
-- cte: key_sequence(key, sequence, kind, narrow)
SELECT t.key, f.sequence, coalesce(k.kind, 'local'), min(n.column_name)
FROM target t JOIN feeding f ON (f.relid, f.attnum) = (t.relid, t.attnum)
  LEFT JOIN sequence_kind k ON k.sequence = f.sequence
  LEFT JOIN LATERAL (
    SELECT {column_name(a.attname, a.attrelid)}
    FROM feeding g JOIN {attribute(a, g)}
      JOIN small s ON s.typid = a.atttypid
    WHERE g.sequence = f.sequence
    AND (g.relid, g.attnum) NOT IN (SELECT relid, attnum FROM widened)
    AND CASE coalesce(s.base, s.typid)
      WHEN 'numeric'::regtype THEN greatest(s.typmod, a.atttypmod) >= 4
      WHEN 'varchar'::regtype THEN greatest(s.typmod, a.atttypmod) BETWEEN 4 AND 22
      WHEN 'bpchar'::regtype THEN greatest(s.typmod, a.atttypmod) BETWEEN 4 AND 22
      ELSE true END) n(column_name) ON true
WHERE t.is_key
GROUP BY t.key, f.sequence, k.kind

-- name: key_sequences
SELECT key, sequence, kind, narrow FROM key_sequence ORDER BY key, sequence

-- The sequences that get another kind.
-- cte: changing
SELECT s.*, {qualified(c)} AS name, format('sequence %s', {qualified(c)}) AS object, c.relowner,
  c.relnamespace, EXISTS (
    SELECT FROM pg_depend d
    WHERE {is_object(d, pg_class, c.oid)} AND d.deptype = 'i') AS is_identity
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
WHERE c.oid = ANY ($sequences)

-- The integer columns of these sequences: the least of their greatest values, its type, and a query
-- of the keys.  Those of partitions are among the rows of their table.
-- cte: fed(sequence, least, base, keys)
SELECT f.sequence, min(i.greatest_value), (array_agg(i.base ORDER BY i.greatest_value))[1],
  string_agg(format('SELECT pg_catalog.max(%I)::bigint FROM %s.%I', a.attname,
    r.relnamespace::regnamespace, r.relname), ' UNION ALL '
    ORDER BY r.relnamespace::regnamespace::text, r.relname, a.attname)
FROM changing c JOIN feeding f ON f.sequence = c.seqrelid
  JOIN {attribute(a, f)}
  JOIN pg_class r ON r.oid = f.relid AND r.relkind IN ('r', 'p')
  JOIN integer_type i ON i.typid = a.atttypid
WHERE NOT EXISTS (SELECT FROM pg_inherits h JOIN feeding p ON p.relid = h.inhparent
                  WHERE h.inhrelid = f.relid AND p.sequence = f.sequence)
GROUP BY f.sequence

-- The schema of the functions for sequences.
-- snippet: core
(SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'snowflake')

-- The statement after which the registry knows them, but those whose MAXVALUE changes.
-- name: prepare_statements
SELECT format('SELECT %s._snowflake_prepare_ranges(ARRAY[%s]::regclass[])',
  {core}, string_agg(quote_literal(name), ', ' ORDER BY name COLLATE "C"))
FROM changing s JOIN fed f ON f.sequence = s.seqrelid
WHERE s.seqmax <= f.least
HAVING count(*) > 0

-- The tables that those which a sequence feeds reference, also by others.
-- cte: referenced(sequence, relid)
(SELECT seqrelid, NULL::oid FROM changing
 UNION
 SELECT s.seqrelid, c.confrelid
 FROM changing s JOIN feeding f ON f.sequence = s.seqrelid
   JOIN pg_constraint c ON c.contype = 'f' AND c.conparentid = 0 AND c.conrelid = f.relid)
UNION
SELECT d.sequence, c.confrelid
FROM referenced d JOIN pg_constraint c
  ON c.contype = 'f' AND c.conparentid = 0 AND c.conrelid = d.relid

-- Sequences are locked in the order in which applications use them, that of orders before that of
-- lines.  Otherwise, A has orders, this has lines, and each waits for the other.
-- cte: locking_place(sequence, n)
SELECT sequence, row_number() OVER (ORDER BY count(relid), sequence)
FROM referenced GROUP BY sequence

-- A snowflake sequence may be that of a column that was an integer before, and may have a MAXVALUE,
-- which its IDs are above.  That of an identity has the type of its column.  A column without a
-- default gets that of the sequence that it owns.
--
-- The arguments have types: a function for two texts, which another role has created in the schema
-- of the extension, would be called instead.
-- cte: kind_statement(sequence, step, command) union
SELECT seqrelid, 1, format('ALTER SEQUENCE %s%s MAXVALUE %s', name,
  CASE WHEN NOT s.is_identity THEN ' AS ' || f.base END, f.least)
FROM changing s JOIN fed f ON f.sequence = s.seqrelid
WHERE $kind = 'range' AND s.seqmax > f.least
SELECT seqrelid, 2, format('SELECT %s.snowflake_set_sequence_kind(%L::regclass, %L)',
  {core}, name, $kind)
FROM changing WHERE $kind <> 'range'
SELECT NULL, 2, format('SELECT %s.snowflake_set_sequence_kinds(ARRAY[%s]::regclass[], %L)',
  {core}, string_agg(quote_literal(name), ', ' ORDER BY n), $kind)
FROM changing JOIN locking_place ON sequence = seqrelid
HAVING $kind = 'range' AND count(*) > 0
SELECT s.seqrelid, 3, format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L::regclass)',
  t.relid::regclass, t.attname, s.name)
FROM changing s JOIN feeding f ON f.sequence = s.seqrelid
  JOIN target t ON (t.relid, t.attnum) = (f.relid, f.attnum)
WHERE t.is_root AND t.uses_sequence
SELECT s.seqrelid, 3, format('ALTER SEQUENCE %s AS bigint%s', name,
  CASE WHEN s.seqmax < i.greatest_value THEN ' NO MAXVALUE' END)
FROM changing s JOIN fed f ON f.sequence = s.seqrelid
  JOIN sequence_kind k ON (k.sequence, k.kind) = (s.seqrelid, 'snowflake')
  JOIN integer_type i ON i.typid = s.seqtypid
WHERE $kind = 'local' AND s.seqmax < f.least
-- A client may have got IDs that are not stored yet, and a new one is above all of these.
SELECT s.seqrelid, 4, format('SELECT pg_catalog.setval(%L, %s) FROM (SELECT max(m) FROM (%s) m(m)) '
  'k(max), %s s WHERE k.max >= s.last_value', name, CASE WHEN k.kind = 'snowflake'
    THEN format('CASE WHEN k.max > s.last_value THEN greatest(k.max, %s.snowflake_nextval()) '
      'ELSE k.max END', {core})
    ELSE 'k.max' END, f.keys, name)
FROM changing s JOIN fed f ON f.sequence = s.seqrelid
  LEFT JOIN sequence_kind k ON k.sequence = s.seqrelid
WHERE $kind = 'local'

-- name: kind_statements
SELECT command FROM kind_statement LEFT JOIN locking_place USING (sequence) ORDER BY n, step

-- What prevents sequences from getting a kind.
-- list: kind_obstacles obstacles

-- Others compute a value: nextval('s') % 1000 would repeat keys, and nextval('s') * 10 fail.
-- hint: Have the default of a key be nextval() of its sequence, and nothing else.
SELECT format('default of %s is %s, which is not the ID that its sequence will return',
    t.column_name, k.expression), t.column_name
FROM key_default k JOIN target t ON (t.relid, t.attnum) = (k.relid, k.attnum)
WHERE $kind = 'snowflake' AND $keeps_sequences[t.key] AND t.gets_ids
AND (t.is_root OR k.expression ~ E'\\mnextval[(]')
AND regexp_replace(k.expression, '''([^'']|'''')*''', '_', 'g')
  NOT IN ('nextval(_::regclass)', 'nextval((_::text)::regclass)')

-- hint: Grant the owner of each sequence what it needs.
SELECT format('role %I, the owner of %s, lacks %s', o.rolname, s.object, p.what), s.object
FROM changing s JOIN pg_roles o ON o.oid = s.relowner
  JOIN pg_extension e ON e.extname = 'snowflake'
  JOIN pg_depend d ON (d.classid, d.deptype) = ('pg_proc'::regclass, 'e')
    AND {on_object(d, pg_extension, e.oid)}
  JOIN pg_proc f ON f.oid = d.objid AND CASE $kind
    WHEN 'range' THEN f.proname IN ('snowflake_set_sequence_kinds', '_snowflake_prepare_ranges')
    ELSE f.proname = 'snowflake_set_sequence_kind' END
  CROSS JOIN LATERAL (VALUES
    ({needs_schema(o.oid, s.relnamespace, USAGE)}), ({needs_schema(o.oid, f.pronamespace, USAGE)}),
    ({needs_function(o.oid, f.oid)})) p(what, has)
WHERE NOT p.has

-- Its greatest key is read as the owner of the sequence, and a query calls code of indexes.
-- hint: Revoke the privileges on a sequence from other roles whose tables it feeds, or give these
--   tables its owner.
SELECT format('%s also feeds table %s of role %I', s.object, r.oid::regclass, o.rolname), s.object
FROM changing s JOIN feeding f ON f.sequence = s.seqrelid JOIN pg_class r ON r.oid = f.relid
  JOIN pg_roles o ON o.oid = r.relowner AND NOT o.rolsuper
WHERE $kind = 'local' AND r.relowner <> s.relowner

-- ... and who owns a schema can have the name of a table, or of the sequence, find another one.
-- hint: Run these statements, or grant the owner of each sequence to these roles.
SELECT format('role %I could have its code called for %s: ALTER SCHEMA %I OWNER TO %I',
  o.rolname, s.object, n.nspname, pg_get_userbyid(s.relowner)), s.object
FROM changing s JOIN feeding f ON f.sequence = s.seqrelid JOIN pg_class r ON r.oid = f.relid
  JOIN pg_namespace n ON n.oid IN (s.relnamespace, r.relnamespace)
  JOIN pg_database b ON b.datname = current_database()
  JOIN pg_roles o ON o.oid
    = CASE n.nspowner WHEN 'pg_database_owner'::regrole THEN b.datdba ELSE n.nspowner END
WHERE $kind = 'local' AND NOT {can_become(o.oid, s.relowner)}

-- hint: Use ALTER SEQUENCE ... INCREMENT.
SELECT format('%s has INCREMENT %s, and that of a %s sequence must be from 1 to %s',
  s.object, s.seqincrement, $kind, m.most), s.object
FROM changing s CROSS JOIN (VALUES (CASE $kind WHEN 'range' THEN 1000000
  WHEN 'snowflake' THEN $max_increment ELSE 9223372036854775807 END)) m(most)
WHERE $kind <> 'local' AND s.seqincrement NOT BETWEEN 1 AND m.most

-- hint: Use ALTER SEQUENCE ... NO CYCLE.
SELECT format('%s has CYCLE', object), object FROM changing WHERE $kind <> 'local' AND seqcycle

-- The tables of $schema, or table $object, with their partitions and children.
-- cte: fed_table(relid)
SELECT r.oid FROM pg_class r
WHERE (r.relnamespace = $schema OR r.oid = $object)
AND r.relkind IN ('r', 'p') AND r.relpersistence <> 't' AND NOT {of_extension(pg_class, r.oid)}
UNION
SELECT i.inhrelid FROM fed_table f JOIN pg_inherits i ON i.inhparent = f.relid

-- Their columns that sequences feed.  What feeds none can only become local.
-- name: fed_columns
SELECT f.relid, a.attname, f.sequence, coalesce(k.kind, 'local') AS kind,
  {column_name(a.attname, f.relid)} AS column_name
FROM fed_table t JOIN feeding f ON f.relid = t.relid
  JOIN {attribute(a, f)}
  LEFT JOIN sequence_kind k ON k.sequence = f.sequence
UNION ALL
SELECT NULL, NULL, k.sequence, k.kind, NULL
FROM sequence_kind k JOIN pg_class c ON c.oid = k.sequence
WHERE $kind = 'local' AND c.relnamespace = $schema
AND k.sequence NOT IN (SELECT sequence FROM feeding)
ORDER BY relid, attname, sequence

-- What is to be said of the other sequences, and of what reads these.
-- list: kind_notices notices

-- notice: first | list | sequences that feed no column stay as they are
SELECT format('sequence %s', {qualified(c)}), {qualified(c)},
  'it feeds no column, and stays as it is', NULL,
  'If keys come from it, or numbers that no two servers may share, such as those of documents, '
  'call snowflake_set_sequence_kind().'
FROM pg_class c
WHERE $kind IN ('snowflake', 'range') AND c.relnamespace = $schema AND c.relkind = 'S'
AND c.relpersistence <> 't' AND c.oid NOT IN (SELECT sequence FROM feeding)
AND c.oid NOT IN (SELECT sequence FROM sequence_kind)
AND NOT {of_extension(pg_class, c.oid)}

-- What reads the position of sequences that get a kind, or have one: views and functions that
-- depend on it, and functions by their text.
-- notice: warning | list | functions and views read last_value of sequences
WITH s(oid, relname) AS (
  SELECT oid, relname::text FROM pg_class
  WHERE $kind IN ('snowflake', 'range') AND relkind = 'S'
  AND (oid = ANY ($sequences)
       OR relnamespace = $schema AND oid IN (SELECT sequence FROM sequence_kind)))
SELECT name, name, 'it reads last_value of a sequence that is not local', NULL,
  'That is always its MAXVALUE. Use RETURNING, currval(), or max() of the column, and after an '
  'import call setval() whatever it is.'
FROM (SELECT {describe_oid(pg_class, w.ev_class)}
      FROM s JOIN pg_depend d ON {on_object(d, pg_class, s.oid)} AND d.refobjsubid > 0
        JOIN pg_rewrite w ON {is_object(d, pg_rewrite, w.oid)}
      UNION
      SELECT format('function %s', p.oid::regprocedure)
      FROM s JOIN pg_proc p ON strpos(lower(p.prosrc), 'last_value') > 0
          AND p.prosrc ~* {word(s.relname)}
        OR EXISTS (SELECT FROM pg_depend d
                   WHERE {is_object(d, pg_proc, p.oid)} AND d.refobjsubid > 0
                   AND {on_object(d, pg_class, s.oid)})
      WHERE NOT {is_temporary(p)} AND NOT {of_extension(pg_proc, p.oid)}) r(name)
