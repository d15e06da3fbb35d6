-- The keys, and their columns in partitions and children.
-- name: key_columns
SELECT relid, attnum, key FROM target WHERE is_key

-- The tables to lock, and whether they are altered.
-- name: tables_to_lock
SELECT relid, 1 AS altered FROM changed
UNION
SELECT relid, 0 FROM target WHERE relid NOT IN (SELECT relid FROM changed)
ORDER BY 1

-- name: altered_tables
SELECT relid FROM changed ORDER BY 1

-- Views that are dropped, those that are made of others first; and other relations whose rules
-- and policies are.  Those of other owners are obstacles.
-- name: views_to_lock
SELECT v.oid
FROM (SELECT oid, relowner, depth FROM vw UNION ALL SELECT oid, relowner, 0 FROM ruled) v
  JOIN owner ON owner.oid = v.relowner
ORDER BY v.depth DESC, v.oid

-- name: functions_to_lock
SELECT oid FROM row_function WHERE owned ORDER BY 1

-- The columns that are not converted.
-- name: narrow_targets
SELECT attname, relid FROM widened ORDER BY key, NOT is_root, relid, attnum

-- Columns that hold keys and are not widened, and what cures one of a table; of a schema, an
-- argument does.
-- cte: narrow_key
SELECT *, CASE WHEN $schema <> 0 THEN NULL
  WHEN $online THEN format('To widen it while it is in use, run CALL '
    '%s.snowflake_convert_online(%L::regclass, %L::name, until => ''swap''::text) first, and then '
    'DROP TRIGGER "~snowflake_swapped" ON %2$s.', (SELECT extnamespace::regnamespace
      FROM pg_extension WHERE extname = 'snowflake_convert'), relid::regclass, attname)
  ELSE format('To widen it, run ALTER TABLE %s ALTER COLUMN %I TYPE bigint.', relid::regclass,
    attname) END AS hint
FROM found WHERE (relid, attnum) NOT IN (SELECT relid, attnum FROM target)

-- snippet: use_bigint
'Use 64-bit integers for these columns in the application, and have it reconnect.'

-- list: notices notices

-- notice: info | list | columns are changed to type bigint
SELECT t.column_name, format('%s (%s)', t.column_name, format_type(t.typid, NULL)),
  format('%s becomes bigint', format_type(t.typid, NULL)), NULL, {use_bigint}
FROM widened t
WHERE t.attinhcount = 0
AND NOT EXISTS (SELECT FROM found h WHERE (h.relid, h.attnum) = (t.relid, t.attnum))

-- These two are about direct conversions.
-- notice: info | list | views are dropped and created again
SELECT format('%s %s', lower({kind}), name), name, 'it is dropped and created again', NULL,
  'Functions that have rows of them are compiled again when their sessions reconnect.'
FROM vw WHERE NOT $online

-- notice: info | list | rules, triggers and policies are dropped and created again
SELECT {describe_object(o)}, {describe_object(o)}, 'it is dropped and created again', NULL, NULL
FROM (SELECT 'pg_rewrite'::regclass, oid FROM rul JOIN pg_rewrite w USING (oid)
      WHERE w.ev_class NOT IN (SELECT oid FROM vw)
      UNION ALL SELECT 'pg_trigger'::regclass, oid FROM trg
      UNION ALL SELECT 'pg_policy'::regclass, oid FROM pol) o(classid, objid)
WHERE NOT $online

-- notice: later | list | columns that hold a key without a foreign key are changed to type bigint
SELECT h.column_name, h.line, format('%s becomes bigint: %s', h.type, h.reason), NULL,
  CASE WHEN true = ALL ($set_default) THEN {use_bigint}
    ELSE 'Other keys are converted. The column is new, or something, such as an upgrade of the '
      'application, changed its type.' END
FROM found h JOIN widened USING (relid, attnum)

-- notice: first | list | columns that hold a key without a foreign key stay integer
SELECT column_name, line,
  format('it holds a key, without a foreign key, and stays %s: %s', type, reason), NULL,
  coalesce(hint, 'New IDs do not fit into these columns. To widen them, specify '
    'widen => ''keys''; those of other roles are widened by their owners, and those of partition '
    'keys need a new table.')
FROM narrow_key WHERE verdict = 'sure'

-- notice: first | list | columns might hold a key, and stay integer
SELECT column_name, line, format('it might hold a key, and stays %s: %s', type, reason), NULL,
  coalesce(hint, format('To widen it, name it, as in widen => ''keys, %s''. ''all'' widens all '
    'of them.', replace(path, '''', '''''')))
FROM narrow_key WHERE verdict = 'perhaps'

-- notice: first | list | columns that might hold keys cannot hold new IDs
SELECT column_name, format('%s (%s%s)%s', column_name, type, CASE WHEN rounds THEN ', rounds' END,
    ': ' || reason),
  concat(format(CASE WHEN rounds THEN 'it might hold keys, and %s rounds new IDs without an error'
    ELSE 'it might hold keys, and new IDs do not fit into %s' END, type), ': ' || reason), NULL,
  'If they hold keys of converted tables, change their types, for example to bigint, bigint[] or '
  'text, and those in expressions of generated columns. widen does not do that.'
FROM unfit

-- That it came from a sequence is in the notice about the sequence.
-- notice: warning | one each | defaults are replaced
SELECT t.column_name, format('%s: %s', t.column_name, d.expression),
  format('default of %s is replaced', t.column_name),
  format('The default was %s.', d.expression), NULL
FROM key_default d JOIN target t ON (t.relid, t.attnum) = (d.relid, d.attnum)
  LEFT JOIN target r ON r.is_root AND r.key = t.key
  LEFT JOIN key_default k ON (k.relid, k.attnum) = (r.relid, r.attnum)
WHERE t.set_default AND d.expression <> t.generator::regprocedure::text
AND CASE WHEN t.is_root THEN d.expression !~ '^nextval[(]''[^'']*''::regclass[)]$'
  ELSE d.expression IS DISTINCT FROM k.expression END

-- notice: warning | one each | keys had no default
SELECT t.column_name, t.column_name, format('%s had no default', t.column_name),
  'The application supplied the values.',
  'Omit the column from INSERT in the application. If it continues to supply values, for example '
  'from a sequence, these do not come from the generator.'
FROM target t
WHERE t.is_root AND t.set_default AND t.attidentity = ''
AND NOT EXISTS (SELECT FROM key_default d WHERE (d.relid, d.attnum) = (t.relid, t.attnum))

-- notice: warning | one each | keys are no longer GENERATED ALWAYS
SELECT t.column_name, t.column_name, format('%s is no longer GENERATED ALWAYS', t.column_name),
  'Roles with INSERT or UPDATE on the table can choose its values, also with OVERRIDING USER '
  'VALUE.', 'Grant INSERT and UPDATE on the other columns only.'
FROM target t WHERE t.is_root AND t.set_default AND t.attidentity = 'a'

-- notice: warning | one each | row filters of publications use converted columns
SELECT f.name, format('%s: %s', f.name, f.expression), f.name, f.expression,
  'Rows that it does not accept are not published. See that it accepts the new IDs.'
FROM (SELECT DISTINCT format('row filter of publication %I uses %s', b.pubname, t.column_name),
        pg_get_expr(p.prqual, p.prrelid)
      FROM target t
        JOIN pg_depend d ON d.classid = 'pg_publication_rel'::regclass AND {on_column(d, t)}
        JOIN pg_publication_rel p ON p.oid = d.objid AND p.prqual IS NOT NULL
        JOIN pg_publication b ON b.oid = p.prpubid
      WHERE (t.gets_ids OR t.change = 'widen')
      AND pg_get_expr(p.prqual, p.prrelid) ~ {word(t.attname::text)}) f(name, expression)

-- Constants have quotes.
-- notice: warning | list | expressions with integers are kept
WITH kept(name, expression) AS (
  SELECT format('default of %s', t.column_name), pg_get_expr(f.adbin, f.adrelid)
  FROM widened t JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (t.relid, t.attnum)
  WHERE NOT (t.is_key AND t.set_default)
  UNION
  SELECT {describe_object(d)},
    CASE d.classid WHEN 'pg_policy'::regclass
      THEN concat_ws(' ', pg_get_expr(p.polqual, p.polrelid),
        pg_get_expr(p.polwithcheck, p.polrelid))
      WHEN 'pg_trigger'::regclass THEN pg_get_triggerdef(d.objid)
      ELSE pg_get_viewdef(r.ev_class) END
  FROM widened t JOIN pg_depend d ON {on_column(d, t)}
    LEFT JOIN pg_policy p ON {is_object(d, pg_policy, p.oid)}
    LEFT JOIN pg_rewrite r ON {is_object(d, pg_rewrite, r.oid)}
  WHERE d.classid = ANY ('{pg_policy,pg_trigger,pg_rewrite}'::regclass[])
-- Keys may be in JSON, too.
  UNION
  SELECT {describe_oid(pg_class, c.oid)}, v.definition
  FROM pg_class c CROSS JOIN LATERAL (
    SELECT CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END) v(definition)
  WHERE c.relnamespace = $schema AND strpos(v.definition, '->>') > 0)
SELECT name, name, 'it has a cast to integer, and stays as it is', NULL,
  'New IDs do not fit into an integer. Change the casts of those that get IDs to bigint.'
FROM kept WHERE expression ~ E'\\)::(integer|smallint)\\M'

-- An integer literal is an integer, and only the operators of a family are those of its indexes.
-- notice: warning | list | queries with integer literals no longer use indexes
SELECT i.indexrelid::regclass::text, format('%s (%s)', i.indexrelid::regclass, m.amname),
  format('queries that compare %s with an integer literal no longer use index %s', t.column_name,
    i.indexrelid::regclass), 'Its operators for bigint have no form for integers.',
  'Cast the literals: WHERE id = 5::bigint. Parameters that are bigint need no change.'
FROM widened t JOIN pg_index i ON i.indrelid = t.relid AND t.attnum = ANY (i.indkey)
  JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
  JOIN pg_opclass o ON o.opcmethod = m.oid AND o.opcintype = 'bigint'::regtype AND o.opcdefault
WHERE NOT EXISTS (
  SELECT FROM pg_amop p
  WHERE (p.amopfamily, p.amoplefttype, p.amoprighttype)
    = (o.opcfamily, 'bigint'::regtype, 'integer'::regtype))

-- notice: warning | one each | keys keep the UUIDs that they have
SELECT t.column_name, t.column_name, format('%s keeps the UUIDs that it has', t.column_name),
  'New ones may be anywhere among them. Those of uuid_v7() are in the order of time among '
  'themselves.', 'Do not use the order of the key for older rows.'
FROM target t WHERE t.is_root AND t.set_default AND t.typid = 'uuid'::regtype

-- notice: warning | one each | sequences stay as they are
SELECT format('sequence %s', c.oid::regclass), format('%s feeds %s', c.oid::regclass, k.narrow),
  format('sequence %s stays as it is', c.oid::regclass), format('It also feeds %s.', k.narrow),
  'New rows get numbers that are not snowflake IDs. Widen the other columns, or give them a '
  'sequence of their own.'
FROM key_sequence k JOIN pg_class c ON c.oid = k.sequence
WHERE $keeps_sequences[k.key] AND k.kind <> 'snowflake' AND k.narrow IS NOT NULL

-- notice: warning | list | defaults make texts of snowflake IDs
SELECT column_name, column_name, 'its default makes a text of snowflake IDs', NULL,
  'See that the column has room for 19 digits, and that the default, such as lpad() or to_char(), '
  'cuts none of them; or give it a range sequence of its own.'
FROM number_text WHERE has_ids

-- notice: first | list | defaults make texts of numbers of local sequences
SELECT column_name, column_name, 'its default makes a text of the numbers of a local sequence',
  NULL, 'Other servers that insert rows have the same numbers. Give it a range sequence with '
  'snowflake_set_sequence_kind(), or add the name of the server to the text.'
FROM number_text WHERE NOT has_ids

-- notice: warning | one each | sequences are dropped
SELECT format('sequence %s', name), name, format('sequence %s is dropped', name), NULL,
  'Calls of nextval() and currval() with its name fail afterwards. pg_get_serial_sequence() '
  'returns NULL for the column, and so does currval() of that.'
FROM seq WHERE replaced AND owned AND oid NOT IN (SELECT oid FROM seq_user)

-- notice: warning | one each | sequences are kept
SELECT format('sequence %s', name), format('%s. %s', name, why),
  format('sequence %s is kept', name), why,
  'An application that uses the sequence gets numbers that are not snowflake IDs. Drop it when '
  'nothing uses it anymore.'
FROM seq CROSS JOIN LATERAL (
  SELECT coalesce(string_agg(DISTINCT format(CASE WHEN u.by_name THEN 'Its name occurs in %s.'
    ELSE 'It is used by %s.' END, u.name), ' '), 'The column does not own it.') AS why
  FROM seq_user u WHERE u.oid = seq.oid) u
WHERE replaced AND NOT is_identity
AND NOT (owned AND oid NOT IN (SELECT oid FROM seq_user))

-- The catalogs record no dependencies on functions of the server.
-- notice: warning | list | functions might use the sequences of keys
SELECT format('function %s', p.oid::regprocedure), p.oid::regprocedure::text,
  'it might use the sequence of a key', NULL,
  'Use the value that INSERT ... RETURNING returns, or that of the row. Afterwards lastval() '
  'returns the number of another sequence, pg_get_serial_sequence() returns NULL, and '
  'OVERRIDING USER VALUE stores what is given.'
FROM pg_proc p
WHERE p.prosrc ~* E'\\m(lastval|pg_get_serial_sequence|overriding\\s+user\\s+value)\\M'
AND EXISTS (SELECT FROM target t JOIN pg_class r ON r.oid = t.relid
            WHERE t.is_key
            AND (t.is_root AND p.prosrc ~* {word(r.relname::text)}
                 OR EXISTS (SELECT FROM pg_trigger g WHERE (g.tgrelid, g.tgfoid) = (r.oid, p.oid))))
AND NOT {is_temporary(p)} AND NOT {of_extension(pg_proc, p.oid)}
AND EXISTS (SELECT FROM seq WHERE replaced)

-- By names and words alone: what it does with them is not known, and its source is somewhere else.
-- Keys may be in temporary tables and in JSON, too.
-- notice: warning | list | functions of these tables have integers
WITH changed_name(relid, schema, name) AS (
  SELECT r.oid, r.relnamespace, unnest(ARRAY[r.relname::text, t.attname::text])
  FROM target t JOIN pg_class r ON r.oid = t.relid
  WHERE t.change = 'widen' OR t.gets_ids AND t.typid <> 'uuid'::regtype),
 own(oid, definition) AS MATERIALIZED (
  SELECT p.oid, pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
  WHERE (p.pronamespace IN (SELECT schema FROM changed_name)
         OR p.oid IN (SELECT tgfoid FROM pg_trigger
                      WHERE tgrelid IN (SELECT relid FROM changed_name)))
  AND p.prokind IN ('f', 'p') AND l.lanname NOT IN ('internal', 'c')
  AND NOT {of_extension(pg_proc, p.oid)} AND NOT {is_temporary(p)})
SELECT format('function %s', o.oid::regprocedure), o.oid::regprocedure::text,
  'it has integers, which might hold keys', NULL,
  'Change what holds keys there to bigint, also in its source. A bigint does not match an integer '
  'parameter, and a new ID does not fit into an integer variable.'
FROM own o
WHERE (o.definition ~* E'\\m(smallint|int|int2|int4|integer)\\M'
-- the two keys of an advisory lock
       OR o.definition ~* E'\\mpg_(try_)?advisory_\\w+\\s*\\(([^()]|\\([^()]*\\))*,')
AND (o.definition ~* E'\\mtemp(orary)?\\s+table\\M|->>'
     OR o.oid IN (SELECT tgfoid FROM pg_trigger WHERE tgrelid IN (SELECT relid FROM changed_name))
     OR EXISTS (SELECT FROM (SELECT DISTINCT name FROM changed_name) n
                WHERE CASE WHEN strpos(lower(o.definition), lower(n.name)) > 0
                  THEN o.definition ~* {word(n.name)} END))

-- notice: warning | one each | functions might fail in open sessions
SELECT format('function %s', name), format('%s of role %s', name, owner),
  format('function %s might fail in open sessions', name),
  format('It is a PL/pgSQL function that uses rows of the table. What sessions have compiled is '
    'for the old type, and the owner of the table cannot discard it, because it belongs to role '
    '%s or is in a schema without USAGE.', owner),
  format('Have its owner run %s after the conversion, or have sessions reconnect.', command)
FROM row_function WHERE NOT owned

-- The statements that drop, and those that create again, with their place among others of a
-- step.
-- cte: recreated_statement(step, place, command) union
SELECT -3, r.rulename::text, format('DROP RULE %I ON %s', r.rulename, r.ev_class::regclass)
FROM rul JOIN pg_rewrite r USING (oid)
SELECT CASE WHEN stage < 0 THEN -2 ELSE 12 + stage END, depth::text, command
FROM attached_statement
SELECT -1, lpad((9999 - depth)::text, 4, '0') || name, format('DROP %s %s', {kind}, name) FROM vw
SELECT 11, concat(lpad(depth::text, 4, '0'), lpad(v.oid::text, 10, '0'), lpad(stage::text, 2, '0'),
  lpad(n::text, 19, '0')), command
FROM view_statement v
SELECT 12, o.stage::text || lpad(w.oid::text, 10, '0'), o.command
FROM rul JOIN pg_rewrite w USING (oid)
  CROSS JOIN LATERAL (VALUES (1, rtrim(pg_get_ruledef(w.oid), ';')),
    (2, CASE WHEN w.ev_enabled <> 'O' THEN format('ALTER TABLE %s %s RULE %I', w.ev_class::regclass,
      {trigger_state(w.ev_enabled)}, w.rulename) END)) o(stage, command)
SELECT 18, '', command FROM gone_comment

-- cte: altered
SELECT t.*, {qualified(r)} AS name, r.relispartition
FROM target t JOIN pg_class r ON r.oid = t.relid

-- cte: foreign_key(oid, root)
SELECT oid, oid FROM pg_constraint WHERE contype = 'f' AND conparentid = 0
UNION ALL
SELECT k.oid, f.root FROM foreign_key f JOIN pg_constraint k ON k.conparentid = f.oid

-- cte: partitioned_index
SELECT i.* FROM rebuilt_index i
WHERE i.parent IS NULL AND {has_comment(i.oid, pg_class)}
AND EXISTS (SELECT FROM pg_inherits p WHERE p.inhparent = i.oid)

-- The statements, in their order.  The default goes first: Citus, for example,
-- does not allow changing the type of a column whose default is a sequence.
-- Since 17, partitions have the identity of their table, and lose it with it.
--
-- What changing the type creates again does not have all that was set with a
-- statement of its own, nor, where it is inherited, its comment.  Foreign keys of
-- partitions get the name of that of their root.
--
-- What prevents that is dropped first, and created again in the end: first the views, each
-- before those that are made of it.
--
-- PL/pgSQL functions that use rows of the tables go after the tables.  The plans that sessions
-- keep for them would fail if they have a field of a record as a parameter, because
-- its type has changed; altering a function, even if nothing is different
-- afterwards, has it compiled again.
-- cte: statement(step, other, name, command) union
SELECT 1, NOT t.is_root, t.name,
  format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', t.name, t.attname)
FROM altered t
WHERE t.set_default AND t.is_key AND t.attidentity <> ''
AND (t.is_root OR NOT t.relispartition OR current_setting('server_version_num')::int < 170000)
SELECT 2, false, t.name,
  format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %I.%I()',
         t.name, t.attname, n.nspname, f.proname)
FROM altered t, pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
WHERE t.set_default AND t.is_root AND f.oid = t.generator
SELECT 3, false, name, format('DROP SEQUENCE %s', name)
FROM seq WHERE replaced AND owned AND NOT is_identity AND oid NOT IN (SELECT oid FROM seq_user)
-- The indexes of partitions would get it, too.
SELECT 3, true, nspname || relname, format('COMMENT ON INDEX %I.%I IS NULL', nspname, relname)
FROM partitioned_index
SELECT 4, relid <> ALL ($tables), name,
  format('ALTER TABLE %s %s', name,
         string_agg(format('ALTER COLUMN %I TYPE bigint', attname), ', ' ORDER BY attnum))
FROM altered WHERE change = 'widen' AND attinhcount = 0
GROUP BY relid, name
SELECT 5, false, i.nspname || i.relname,
  format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', i.nspname, i.relname, a.attnum,
    a.attstattarget)
FROM rebuilt_index i JOIN pg_attribute a ON a.attrelid = i.oid
WHERE i.parent IS NULL AND a.attstattarget >= 0 AND NOT {only_casts(i.oid, i.indrelid, a.attnum)}
SELECT 5, false, i.nspname || i.relname, format('ALTER INDEX %I.%I DEPENDS ON EXTENSION %I',
  i.nspname, i.relname, e.extname)
FROM rebuilt_index i JOIN pg_depend d ON {is_object(d, pg_class, i.oid)} AND d.deptype = 'x'
  JOIN pg_extension e ON {on_object(d, pg_extension, e.oid)}
WHERE i.parent IS NULL
SELECT 6, false, nspname || stxname, {set_statistics(nspname, stxname, stxstattarget)}
FROM rebuilt_statistics WHERE stxstattarget >= 0
SELECT 7, false, t.name || k.conname,
{comment_on(format('CONSTRAINT %I ON %s', k.conname, t.name), k.oid, pg_constraint)}
FROM (SELECT DISTINCT relid, name FROM altered) t
  JOIN pg_constraint k ON k.conrelid = t.relid AND k.contype IN ('c', 'f')
  LEFT JOIN foreign_key f ON f.oid = k.oid
  LEFT JOIN pg_constraint p ON p.oid = f.root
WHERE k.oid IN (SELECT objid FROM rebuilt WHERE classid = 'pg_constraint'::regclass)
AND CASE k.contype WHEN 'c' THEN k.coninhcount > 0
  ELSE p.conname = k.conname AND p.conrelid <> k.conrelid END
SELECT 7, false, nspname || relname,
{comment_on(format('INDEX %I.%I', nspname, relname), oid, pg_class)}
FROM partitioned_index
-- A parent's constraint that is NOT VALID makes those of its children so.
SELECT 8, false, t.name || k.conname, format('ALTER TABLE %s VALIDATE CONSTRAINT %I', t.name,
  k.conname)
FROM (SELECT DISTINCT relid, name FROM altered) t
  JOIN pg_constraint k ON k.conrelid = t.relid AND k.contype = 'c' AND k.convalidated
WHERE k.oid IN (SELECT objid FROM rebuilt WHERE classid = 'pg_constraint'::regclass)
AND EXISTS (SELECT FROM pg_inherits i JOIN pg_constraint p ON p.conrelid = i.inhparent
              AND p.contype = 'c' AND p.conname = k.conname AND NOT p.convalidated
            WHERE i.inhrelid = t.relid)
SELECT 9, false, name, command FROM row_function WHERE owned
SELECT step, false, place, command FROM recreated_statement

-- name: statements
SELECT command FROM statement WHERE command IS NOT NULL
ORDER BY step, other, name COLLATE "C", command COLLATE "C"

-- texts: function
-- name: lock_function
SELECT FROM pg_proc WHERE oid = $function::oid FOR NO KEY UPDATE
