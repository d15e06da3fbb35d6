-- snippet: lines(entries)
SELECT line COLLATE "C", NULL::text AS object, hint
FROM ({entries}) o(number, hint, line)
GROUP BY number, hint, line COLLATE "C"
ORDER BY number, line COLLATE "C"

-- The body of a function without comments; and without calls of functions
-- that have no parentheses in their arguments, because an argument does not
-- depend on the order of columns.  Regular expressions: a value, in the list of
-- those that a statement inserts, begins here; and all columns of a row that is
-- the result of an expression.
-- snippet: without_comments(source)
regexp_replace({source}, E'--[^\n]*|/\\*([^*]|\\*+[^*/])*\\*+/', '', 'g')

-- snippet: without_calls(source)
regexp_replace({source},
  E'\\m(?!(values|select|all|distinct|format|concat)\\M)\\w+\\s*\\((?!\\s*select\\M)[^()]*\\)',
    '0', 'gi')

-- snippet: inserts
E'\\minsert\\s+into\\M[^;]*(,|\\m(select|all|distinct)\\M|\\mvalues\\s*\\()\\s*'

-- snippet: inserts_expression
E'\\minsert\\s+into\\M[^;]*(\\m(new|old)\\M\\s*(\\)\\s*|[^;().\\s][^;()]*)\\)'
  '|\\mquote_literal\\s*\\(\\s*(new|old)\\s*\\)[^;]*\\)|%(\\d+\\$)?L[^;()]*\\))\\s*\\.\\s*\\*'

-- list: online_obstacles lines

-- Until the swap, an old and a new foreign key both act on a referencing row, in the order of the
-- names of their triggers, which contain OIDs as text.  If the new one is first, the trigger that
-- copies columns undoes what it sets, and the old one sets both.  With SET DEFAULT, which looks for
-- referencing rows once more, it would fail.
-- hint: A foreign key from one partitioned table to another can only be created with a check of
--   all rows under locks, and one with SET DEFAULT could have statements of clients fail. Drop it,
--   convert, and create it again, or use snowflake_convert().
SELECT format('foreign key %I of table %s is between partitioned tables', conname,
  conrelid::regclass)
FROM fkey WHERE late AND relkind = 'p'
SELECT format('foreign key %I of table %s has SET DEFAULT', conname, conrelid::regclass)
FROM fkey WHERE 'd' IN (confdeltype, confupdtype) AND NOT internal

-- A new one of the table could take over that one, and not its own.
-- hint: Drop foreign keys of partitions that their tables have as well.
SELECT format('foreign key %I of table %s is the same as one of its parent', a.conname,
  a.conrelid::regclass)
FROM fkey a JOIN fkey b USING (conrelid, confrelid, conkey, confkey, confupdtype, confdeltype,
  confmatchtype, condeferrable, condeferred)
WHERE a.conparentid = 0 AND b.conparentid <> 0

-- As many as were counted in swaps, for tables and objects together.
-- hint: Increase max_locks_per_transaction, and restart the server.
SELECT format('the swap of table %s needs about %s locks, and the server has room for %s',
    name, needed, room)
FROM (SELECT t.team, sum(4 + 5 * (SELECT count(*) FROM idx WHERE idx.indrelid = top.relid))
      FROM team t JOIN top ON top.root = t.relid GROUP BY t.team) s(relid, needed)
        JOIN tab USING (relid)
  CROSS JOIN (SELECT current_setting('max_locks_per_transaction')::int
                * (current_setting('max_connections')::int
                   + current_setting('max_prepared_transactions')::int)) r(room)
WHERE relkind = 'p' AND needed > room

-- hint: Convert temporary tables, and tables that inherit, with snowflake_convert().
SELECT format('table %s is temporary', name)
FROM tab JOIN pg_class r ON r.oid = tab.relid WHERE r.relpersistence = 't'
SELECT format('table %s has a parent or child table', name)
FROM tab JOIN pg_class r ON r.oid = tab.relid
WHERE r.relkind <> 'p' AND NOT r.relispartition AND tab.root IN (SELECT relid FROM swapping)
AND EXISTS (SELECT FROM pg_inherits i WHERE r.oid IN (i.inhrelid, i.inhparent))

-- As in the manual's examples of an audit trigger.
-- hint: Have it name the columns (NEW.id, NEW.name), because the converted ones are the last ones
--   afterwards, or pass the row itself (NEW) to a function.
SELECT format('trigger function %s inserts all columns of a row of table %s in their order',
  p.oid::regprocedure, tab.name)
FROM tab JOIN pg_trigger g ON g.tgrelid = tab.relid AND NOT g.tgisinternal AND g.tgparentid = 0
  JOIN pg_proc p ON p.oid = g.tgfoid
  CROSS JOIN LATERAL (SELECT {without_comments(p.prosrc)}) c(code)
  CROSS JOIN LATERAL (SELECT {without_calls({without_calls({without_calls(code)})})}) s(source)
-- variables that have the row, too
  CROSS JOIN LATERAL (SELECT concat_ws('|', E'new|old|\\$\\d+', string_agg(m[1], '|'))
    FROM regexp_matches(code, E'\\m(\\w+)\\s*(?::?=|\\malias\\s+for\\M)\\s*(?:new|old)\\s*;',
      'gi') m) n(names)
WHERE tab.converted
AND (source
  ~* ({inserts} || format(E'(\\(\\s*(%1$s)\\s*\\)|%1$s)\\s*\\.\\s*\\*(?!\\s*(::|[<>=!]|is\\M))',
    names)) OR code ~* {inserts_expression}
  OR EXISTS (SELECT FROM (VALUES (g.tgoldtable), (g.tgnewtable)) t(name)
              WHERE name IS NOT NULL
              AND source ~* (E'\\minsert\\s+into\\s+("[^"]*"|[^\\s();"])+\\s*(\\([^()]*\\)\\s*)?\\(?\\s*'
                '(\\mtable\\M[^;]*|\\mselect\\M([^;()]*,)?(\\s*(all|distinct)\\M)?\\s*(\\w+\\s*\\.\\s*)?\\*[^;]*)'
                || {word(t.name::text)})))

-- hint: Drop objects that cannot be carried over, convert, and create them again: pg_dump
--   --schema-only has their statements.
SELECT format('%s depends on %s', {describe(d)}, t.column_name)
FROM col JOIN target t USING (relid, attnum)
  JOIN pg_depend d ON {on_column(d, t)}
  LEFT JOIN pg_class c ON {is_object(d, pg_class, c.oid)}
  LEFT JOIN pg_attrdef f ON {is_object(d, pg_attrdef, f.oid)}
  LEFT JOIN pg_policy p ON {is_object(d, pg_policy, p.oid)}
WHERE NOT coalesce(CASE d.classid
  WHEN 'pg_class'::regclass THEN c.relkind IN ('i', 'I') OR c.relkind = 'S'
    AND d.deptype IN ('a', 'i')
  WHEN 'pg_attrdef'::regclass THEN (f.adrelid, f.adnum) = (col.relid, col.attnum)
  WHEN 'pg_policy'::regclass THEN p.polrelid = col.relid
  ELSE d.classid = ANY ('{pg_trigger,pg_publication_rel,pg_statistic_ext,pg_rewrite,'
    'pg_constraint}'::regclass[]) END, false)
-- Since 18, there are constraints that are not enforced, and temporal ones.
SELECT format('%s cannot be carried over', pg_describe_object(classid, objid, 0))
FROM (SELECT 'pg_class'::regclass, oid FROM vw WHERE relkind = 'm'
      UNION ALL SELECT 'pg_rewrite'::regclass, oid FROM rul
      UNION ALL SELECT 'pg_rewrite'::regclass, r.oid
      FROM pg_rewrite r JOIN col ON col.relid = r.ev_class
      UNION ALL SELECT 'pg_constraint'::regclass, oid FROM pg_constraint k
      WHERE k.oid IN (SELECT oid FROM fkey UNION SELECT oid FROM chk UNION SELECT con FROM idx)
      AND (k.contype = 'x' OR k.condeferrable AND k.contype <> 'f'
           OR to_jsonb(k) @> '{"conenforced": false}' OR to_jsonb(k) @> '{"conperiod": true}'))
    o(classid, objid)
SELECT line
FROM (SELECT 'pg_class'::regclass, indexrelid FROM idx
      UNION ALL SELECT 'pg_statistic_ext'::regclass, oid FROM stat) o(classid, objid)
  JOIN in_extension USING (classid, objid)
-- A row has all columns of its table, in their order.
SELECT format('%s uses whole rows of its table', {describe_oid(pg_class, indexrelid)})
FROM pg_index WHERE indrelid IN (SELECT relid FROM col)
AND concat(indexprs, indpred) ~ ':varattno 0 '

-- hint: Remove security labels, convert, and set them again.
SELECT format('%s has a security label', column_name)
FROM col JOIN target USING (relid, attnum) JOIN pg_seclabel l
  ON (l.classoid, l.objoid, l.objsubid) = ('pg_class'::regclass, relid, attnum)

-- hint: Take the table out of such publications, or give them the owner of the table.
SELECT format('publication %I has a column list or row filter with %s, and is owned by role %s',
    b.pubname, t.column_name, b.pubowner::regrole)
FROM col JOIN target t USING (relid, attnum) JOIN tab USING (relid)
  JOIN pg_depend d ON (d.refclassid, d.refobjid, d.refobjsubid, d.classid)
    = ('pg_class'::regclass, col.relid, col.attnum, 'pg_publication_rel'::regclass)
  JOIN pg_publication_rel p ON p.oid = d.objid JOIN pg_publication b ON b.oid = p.prpubid
WHERE NOT pg_has_role(tab.relowner, b.pubowner, 'USAGE')

-- All rows are updated.  Without an index that a subscription finds a row by, it compares all
-- columns, and those that it does not receive with NULL.
-- hint: Give the table a primary key, here and on subscribers, or take it out of the publication or
--   subscription. UPDATE would fail, or subscriptions ignore UPDATE and DELETE without an error as
--   long as they have other columns.
SELECT format('%s has table %s, which has no primary key or replica identity', p.name, tab.name)
FROM tab JOIN pg_class r ON r.oid = tab.relid CROSS JOIN LATERAL (
  SELECT format('publication %I', b.pubname) FROM pg_publication b
  WHERE (b.pubupdate OR b.pubdelete) AND r.relpersistence = 'p'
  AND (b.puballtables
       OR EXISTS (SELECT FROM up JOIN pg_class a ON a.oid = up.ancestor
                    JOIN pg_publication_namespace n ON n.pnnspid = a.relnamespace
                  WHERE up.relid = r.oid AND n.pnpubid = b.oid)
       OR EXISTS (SELECT FROM up JOIN pg_publication_rel p ON p.prrelid = up.ancestor
                  WHERE up.relid = r.oid AND p.prpubid = b.oid))
  UNION
  SELECT format('subscription %I', b.subname)
  FROM up JOIN pg_subscription_rel s ON s.srrelid = up.ancestor
    JOIN pg_subscription b ON b.oid = s.srsubid
  WHERE up.relid = r.oid) p(name)
WHERE tab.converted AND r.relkind <> 'p'
AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = r.oid
                AND CASE r.relreplident WHEN 'n' THEN false WHEN 'i' THEN i.indisreplident
                  ELSE i.indisprimary END AND i.indimmediate AND i.indisvalid)

-- hint: Drop what was created for an index, constraint or statistics object that was dropped or
--   renamed since then; the conversion creates it again if it is needed.
SELECT format('%s has no counterpart any more', what) FROM single

-- hint: Rename BEFORE INSERT OR UPDATE triggers that sort after our trigger.
SELECT format('trigger %I of table %s would be fired after trigger ~snowflake_new', g.tgname,
  tab.name)
FROM tab JOIN pg_trigger g ON g.tgrelid = tab.relid AND NOT g.tgisinternal
WHERE tab.converted AND g.tgfoid <> {copier}
AND g.tgtype & 3 = 3 AND g.tgtype & 20 <> 0 AND g.tgname::text COLLATE "C" > '~snowflake_new'

-- hint: Run ALTER SUBSCRIPTION ... SET (binary = false), and set it to true again when the
--   columns of the publisher are bigint, too.
SELECT format('subscription %I receives table %s in binary format', b.subname, tab.name)
FROM tab JOIN pg_subscription_rel r ON r.srrelid = tab.relid JOIN pg_subscription b
  ON b.oid = r.srsubid
WHERE tab.converted AND b.subbinary

-- hint: Drop one of the foreign keys, convert, and create it again.
SELECT format('tables that reference each other in a circle: %s', name)
FROM swap JOIN tab USING (relid) WHERE level >= 99

-- hint: Have the owner of the table grant these privileges.
SELECT format('%s privilege on %s was granted by role %s, not by the owner', e.privilege_type,
  t.column_name, e.grantor::regrole)
FROM col JOIN target t USING (relid, attnum) JOIN tab USING (relid), aclexplode(col.attacl) e
WHERE e.grantor <> tab.relowner

-- hint: Grant the owner of the tables the privileges to create what the conversion creates.
SELECT format('role %s, the owner of table %s, lacks %s', tab.relowner::regrole, tab.name, p.what)
FROM tab CROSS JOIN LATERAL (
  SELECT {needs_schema(tab.relowner, n.oid, CREATE)} FROM pg_namespace n
  WHERE n.nspname IN (SELECT tab.nspname UNION SELECT nspname FROM stat
                      WHERE stxrelid = tab.relid)
  UNION ALL
  SELECT format('EXECUTE on function %s', f.name), has_function_privilege(tab.relowner, f.oid,
    'EXECUTE')
  FROM own_function f
  UNION ALL
  SELECT format('CREATE on tablespace %I', s.spcname), has_tablespace_privilege(tab.relowner,
    s.spcname, 'CREATE')
  FROM (SELECT DISTINCT spcname FROM idx WHERE indrelid = tab.relid AND spcname IS NOT NULL) s
  ) p(what, has)
WHERE tab.root IN (SELECT relid FROM swapping) AND NOT p.has

-- hint: Run ALTER TABLE ... ENABLE ALWAYS TRIGGER "~snowflake_new".
SELECT format('trigger ~snowflake_new of table %s is not enabled as it was', name) FROM tab
WHERE prepared AND tgenabled <> 'A'

-- The CHECK constraints have to prove it, without reading the rows.
-- hint: Drop NOT NULL, and set it again after the conversion, or call snowflake_convert_undo()
--   and begin again.
SELECT format('column %I of table %s is NOT NULL, and was not when its copy was created', attname,
  tab.name)
FROM col JOIN tab USING (relid) WHERE prepared AND newnum IS NOT NULL AND attnotnull
AND NOT EXISTS (SELECT FROM pg_constraint k
                WHERE k.conrelid = relid AND k.contype = 'c' AND {is_copy_check(k.conname)}
                AND position(format('(%I IS NOT NULL)', newname)
                  IN pg_get_constraintdef(k.oid)) > 0)

-- hint: Rename or drop what has a name that the conversion uses, or attach the table again if it
--   was a partition. If it is left from a conversion whose trigger was changed, call
--   snowflake_convert_undo().
SELECT format('%s is in the way', what)
FROM (
  SELECT relid, 'pg_class'::regclass, relid, newnum::int FROM col
  UNION ALL SELECT tgrelid, 'pg_trigger'::regclass, oid, 0 FROM pg_trigger
  WHERE tgname IN ('~snowflake_new', '~snowflake_swapped') AND tgfoid <> {copier}
  UNION ALL SELECT conrelid, 'pg_constraint'::regclass, oid, 0 FROM pg_constraint
  WHERE {is_new(conname)}
  AND (contype = 'c' OR oid IN (SELECT unnest(ARRAY[oid, newoid]) FROM fkey))
  UNION ALL SELECT relid, 'pg_class'::regclass,
    to_regclass(format('%I.snowflake_new_definitions', nspname)), 0 FROM tab
  UNION ALL SELECT indrelid, 'pg_class'::regclass,
    to_regclass(format('%I.%I', nspname, newname)), 0 FROM idx
  UNION ALL SELECT stat.stxrelid, 'pg_statistic_ext'::regclass, f.oid, 0
  FROM stat JOIN pg_statistic_ext f ON f.stxname = newname AND f.stxnamespace = stat.stxnamespace
  ) o(relid, classid, objid, objsubid) JOIN tab USING (relid)
  CROSS JOIN LATERAL {describe(o)} what
WHERE NOT prepared AND what IS NOT NULL AND tab.converted

-- hint: If foreign keys or columns were added or dropped since the conversion of this table
--   began, call snowflake_convert_undo() for this table, and then snowflake_convert_online()
--   again. If it is the conversion of another table, complete or undo that first.
SELECT format('trigger %I of table %s is for other columns', g.tgname, tab.name)
FROM tab JOIN pg_trigger g ON g.tgrelid = tab.relid AND g.tgname = '~snowflake_new'
WHERE prepared AND (EXISTS (SELECT FROM col WHERE col.relid = tab.relid AND newnum IS NULL)
  OR g.tgnargs <> 2 * (SELECT count(*) FROM col WHERE col.relid = tab.relid)
  OR NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = tab.relid
    AND k.conname = 'snowflake_new_check'))

-- CHECK constraints that are not valid, each with a query for a row that does not satisfy it,
-- which could not be updated.
-- name: not_valid
SELECT format('a row of table %s does not satisfy constraint %I', tab.name, k.conname) AS line,
  format('SELECT FROM ONLY %s WHERE NOT (%s) LIMIT 1', tab.name, pg_get_expr(k.conbin, k.conrelid))
    AS query
FROM tab JOIN pg_constraint k ON k.conrelid = tab.relid
WHERE tab.converted AND NOT tab.copied AND tab.relkind = 'r'
AND k.contype = 'c' AND NOT k.convalidated AND NOT {is_new(k.conname)}
AND to_jsonb(k) @> '{"conenforced": false}' IS NOT TRUE
ORDER BY 1

-- Functions whose code is searched, with the code in lower case, in which names
-- are found fast.  Not those of extensions and temporary schemas, which who converts
-- could not change.
-- cte: searched(name, source, returns_set, result, lower) materialized
SELECT p.oid::regprocedure::text, p.prosrc, p.proretset, p.prorettype, lower(p.prosrc COLLATE "C")
FROM pg_proc p
WHERE p.prolang NOT IN (SELECT oid FROM pg_language WHERE lanname IN ('internal', 'c'))
AND NOT {is_temporary(p)} AND NOT {of_extension(pg_proc, p.oid)}

-- snippet: names_table
strpos(f.lower, lower(tab.relname::text COLLATE "C")) > 0

-- Code without EXISTS (SELECT * and count(*), which say nothing about the order of
-- columns.  Regular expressions: a table; INSERT up to its list of columns; all columns
-- of a table.
-- snippet: table_pattern
E'(only\\s+)?("?' || {word(tab.nspname::text)}
 || E'"?\\s*\\.\\s*)?"?' || {word(tab.relname::text)} || E'"?'

-- snippet: without_exists(source)
regexp_replace({source}, E'\\mexists\\s*\\(\\s*select\\s*\\*|\\(\\s*\\*\\s*\\)', '', 'gi')

-- snippet: into_columns
E'\\minsert\\s+into\\s+[^;()]*(\\([^;()]*\\)\\s*)?'

-- snippet: all_columns
E'("?\\w+"?\\s*\\.\\s*)?\\*\\s*'

-- Functions that insert into a table by the order of its columns, of which the
-- converted ones are the last ones after the swap.  There may be much source, so
-- it is searched for the name of the table first.
-- list: function_obstacles lines

-- hint: Have it name the columns (INSERT INTO t (id, name) SELECT id, name, RETURNING id, name),
--   because the converted ones are the last ones afterwards.
SELECT format(m.line, f.name, tab.name)
FROM tab JOIN searched f ON {names_table}
  CROSS JOIN LATERAL (SELECT {without_comments(f.source)}, {table_pattern} OFFSET 0)
    s(code, pattern)
  CROSS JOIN LATERAL (VALUES
    ('function %s inserts into table %s without the names of columns',
      code ~* (E'\\minsert\\s+into\\s+' || pattern
        || E'\\s*(\\mas\\s+\\S+\\s+)?(\\m(values|select|table|with|overriding)\\M'
        || E'|\\(\\s*(values|select|table|with)\\M)')),
    ('function %s inserts all columns of table %s in their order',
      code ~* ({into_columns} || E'(select\\s+' || {all_columns} || E'from|table)\\s+' || pattern
        || E'|\\m(delete\\s+from|update)\\s+' || pattern
        || E'[^;]*\\mreturning\\s+' || {all_columns} || E'\\)[^;]*'
        || {into_columns} || E'select\\s+' || {all_columns} || E'from\\M'))) m(line, found)
WHERE m.found AND tab.converted

-- list: publication_obstacles lines

-- hint: Add the new columns on all subscribers, which stop at the first new row otherwise (ALTER
--   TABLE ... ADD COLUMN snowflake_new_... bigint, for each column that becomes bigint), change
--   the type of the old ones to bigint, and specify subscribers_ready => true. Drop the new
--   columns there after the conversion.
SELECT format('publication %I has all columns of table %s', b.pubname, tab.name)
FROM tab JOIN pg_class r ON r.oid = tab.relid CROSS JOIN pg_publication b
WHERE tab.converted
AND (b.puballtables AND tab.parent IS NULL
      OR EXISTS (SELECT FROM pg_publication_namespace n WHERE n.pnpubid = b.oid
        AND n.pnnspid = r.relnamespace)
      AND NOT EXISTS (SELECT FROM pg_class a WHERE a.oid = tab.parent
        AND a.relnamespace = r.relnamespace)
      OR EXISTS (SELECT FROM pg_publication_rel p
                WHERE p.prpubid = b.oid AND p.prrelid = r.oid AND p.prattrs IS NULL))

-- list: online_notices notices

-- notice: warning | one each | columns
SELECT NULL, NULL, 'new columns are at the end of their tables',
  string_agg(t.column_name, E'\n' ORDER BY t.column_name COLLATE "C"),
  'Until the swap, SELECT * and COPY show one more column for each, and afterwards the columns '
  'have another order. Have INSERT and COPY name their columns, and SELECT and RETURNING where '
  'columns are used by their positions.'
FROM col JOIN target t USING (relid, attnum) JOIN tab USING (relid)
WHERE tab.parent IS NULL HAVING count(*) > 0

-- notice: warning | one each | functions
SELECT NULL, NULL, 'functions might use columns by their positions',
  string_agg(DISTINCT f.name COLLATE "C", E'\n' ORDER BY f.name COLLATE "C"),
  'They return rows of a table, and fail until the swap if they list its columns, or contain its '
  'name, and SELECT * or the like. See that they name columns wherever the order of columns '
  'matters, because the converted ones are the last ones afterwards.'
FROM tab JOIN searched f ON f.result = (SELECT reltype FROM pg_class r WHERE r.oid = tab.relid)
  OR CASE WHEN tab.parent IS NULL AND strpos(f.source, '*') + strpos(f.lower, 'table') > 0
    AND {names_table} THEN f.source ~* {word(tab.relname::text)}
      AND {without_exists({without_comments(f.source)})}
        ~* E'(\\m(select|returning|all|distinct)\\s*|\\)\\s*|[.,]\\s*)\\*\\s*(from|into|[,);'']|$)'
          '|\\mtable\\s+(only\\s+)?"?\\w'
      AND (f.returns_set
        OR f.source
          ~* E'\\minsert\\s+into\\M|\\m(for|into|into\\s+strict)\\s+[\\w.]+\\s*,|\\mset\\s*\\(') END
WHERE tab.converted HAVING count(*) > 0

-- notice: warning | one each | slots
SELECT slot_name, NULL, format('logical replication slot %I gets an UPDATE of each row', slot_name),
  NULL, 'The changes have the new columns until the swap. See that what reads the slot can keep up '
  'with the backfill, and accepts these columns.'
FROM pg_replication_slots WHERE slot_type = 'logical' AND database = current_database()
  AND plugin <> 'pgoutput'
AND EXISTS (SELECT FROM col)
