-- What is dropped and created again: class, OID, description.
-- cte: gone(classid, objid)
SELECT 'pg_class'::regclass::oid, oid FROM vw
UNION ALL SELECT 'pg_type'::regclass, reltype FROM vw
UNION ALL SELECT 'pg_type'::regclass, y.typarray FROM vw JOIN pg_type y ON y.oid = vw.reltype
UNION ALL SELECT 'pg_class'::regclass, indexrelid FROM idx
UNION ALL SELECT 'pg_constraint'::regclass, con FROM idx WHERE con IS NOT NULL
UNION ALL SELECT 'pg_constraint'::regclass, oid FROM fkey
UNION ALL SELECT 'pg_constraint'::regclass, oid FROM chk
UNION ALL SELECT 'pg_statistic_ext'::regclass, oid FROM stat
UNION ALL SELECT d.classid, d.objid FROM col JOIN pg_depend d ON {on_column(d, col)}
WHERE d.classid = 'pg_policy'::regclass
UNION ALL SELECT 'pg_trigger'::regclass, oid FROM triggered
UNION ALL SELECT 'pg_attrdef'::regclass, f.oid FROM vw JOIN pg_attrdef f ON f.adrelid = vw.oid
UNION ALL SELECT 'pg_trigger'::regclass, g.oid FROM vw JOIN pg_trigger g ON g.tgrelid = vw.oid

-- snippet: lines(entries)
SELECT line COLLATE "C", NULL::text AS object, hint
FROM ({entries}) o(number, hint, line)
GROUP BY number, hint, line COLLATE "C"
ORDER BY number, line COLLATE "C"

-- Publications of tables that have a new column, for the rows of its changes.
-- snippet: published(changes)
FROM tab JOIN pg_class r ON r.oid = tab.relid CROSS JOIN pg_publication b
 WHERE relid IN (SELECT relid FROM col) AND ({changes}) AND r.relkind <> 'p'
   AND r.relpersistence = 'p'
 AND (b.puballtables
      OR EXISTS (SELECT FROM up JOIN pg_class a ON a.oid = up.ancestor
        JOIN pg_publication_namespace n
                   ON n.pnpubid = b.oid AND n.pnnspid = a.relnamespace WHERE up.relid = r.oid)
      OR EXISTS (SELECT FROM up JOIN pg_publication_rel p ON p.prpubid = b.oid
        AND p.prrelid = up.ancestor
                 WHERE up.relid = r.oid))

-- Has a table an index by which a subscription finds a row?  Without one, it
-- compares all columns, and those that it does not receive with NULL.
-- snippet: has_key
EXISTS (SELECT FROM pg_index i WHERE i.indrelid = r.oid
         AND (i.indisprimary OR i.indisreplident) AND i.indimmediate AND i.indisvalid)

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

-- hint: A foreign key from one partitioned table to another can only be created with a check of
--   all rows under locks. Drop it, convert, and create it again, or use snowflake_convert().
SELECT format('foreign key %I of table %s is between partitioned tables', conname,
  conrelid::regclass)
FROM fkey WHERE late AND relkind = 'p'

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

-- hint: Convert tables that inherit with snowflake_convert().
SELECT format('table %s has a parent or child table', name)
FROM tab JOIN pg_class r ON r.oid = tab.relid
WHERE r.relkind <> 'p' AND NOT r.relispartition AND tab.root IN (SELECT relid FROM swapping)
AND EXISTS (SELECT FROM pg_inherits i WHERE r.oid IN (i.inhrelid, i.inhparent))

-- hint: A table has room for 1600 columns. Use snowflake_convert().
SELECT format('table %s has %s columns, those that were dropped included, and needs %s more',
  name, r.relnatts, count(*))
FROM tab JOIN pg_class r ON r.oid = tab.relid JOIN col USING (relid) WHERE newnum IS NULL
  AND NOT prepared
GROUP BY name, r.relnatts HAVING r.relnatts + count(*) > 1600

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
WHERE relid IN (SELECT relid FROM col)
AND (source
  ~* ({inserts} || format(E'(\\(\\s*(%1$s)\\s*\\)|%1$s)\\s*\\.\\s*\\*(?!\\s*(::|[<>=!]|is\\M))',
    names))
  OR code ~* {inserts_expression}
  OR EXISTS (SELECT FROM (VALUES (g.tgoldtable), (g.tgnewtable)) t(name)
              WHERE name IS NOT NULL
              AND source ~* (E'\\minsert\\s+into\\s+("[^"]*"|[^\\s();"])+\\s*(\\([^()]*\\)\\s*)?\\(?\\s*'
                '(\\mtable\\M[^;]*|\\mselect\\M([^;()]*,)?(\\s*(all|distinct)\\M)?\\s*(\\w+\\s*\\.\\s*)?\\*[^;]*)'
                || {word(t.name::text)})))

-- hint: Convert temporary tables with snowflake_convert().
SELECT format('table %s is temporary', name)
FROM tab JOIN pg_class r ON r.oid = tab.relid WHERE r.relpersistence = 't'

-- hint: Drop objects that depend on a column and cannot be carried over, convert, and create them
--   again: pg_dump --schema-only has their statements.
SELECT format('%s depends on %s', pg_describe_object(d.classid, d.objid, d.objsubid),
  t.column_name)
FROM col JOIN target t USING (relid, attnum)
  JOIN pg_depend d ON {on_column(d, col)}
  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
  LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
  LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
  LEFT JOIN pg_policy p ON d.classid = 'pg_policy'::regclass AND p.oid = d.objid
  LEFT JOIN (pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class)
    ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
WHERE NOT coalesce(CASE d.classid
  WHEN 'pg_class'::regclass THEN c.relkind IN ('i', 'I') OR c.relkind = 'S'
    AND d.deptype IN ('a', 'i')
  WHEN 'pg_constraint'::regclass THEN k.contype IN ('c', 'f', 'n')
    OR k.contype IN ('p', 'u') AND NOT k.condeferrable
  WHEN 'pg_attrdef'::regclass THEN (f.adrelid, f.adnum) = (col.relid, col.attnum)
  WHEN 'pg_rewrite'::regclass THEN v.relkind = 'v' AND r.rulename = '_RETURN'
  WHEN 'pg_policy'::regclass THEN p.polrelid = col.relid
  ELSE d.classid IN ('pg_trigger'::regclass, 'pg_publication_rel'::regclass,
    'pg_statistic_ext'::regclass) END, false)
SELECT format('%s depends on %s', pg_describe_object(d.classid, d.objid, d.objsubid),
    pg_describe_object(gone.classid, gone.objid, 0))
FROM gone JOIN pg_depend d ON (d.refclassid, d.refobjid) = (gone.classid, gone.objid)
  LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    AND r.rulename = '_RETURN'
    AND (r.ev_class IN (SELECT oid FROM vw WHERE relkind = 'v')
-- the rule of a materialized view depends on that view, too
         OR (gone.classid, gone.objid) = ('pg_class'::regclass, r.ev_class))
WHERE d.deptype <> 'i' AND r.oid IS NULL
AND (d.classid = 'pg_policy'::regclass OR (d.classid, d.objid) NOT IN (SELECT classid, objid
  FROM gone))
SELECT format('%s is a member of, or depends on, extension %I',
    pg_describe_object(gone.classid, gone.objid, 0), e.extname)
FROM gone JOIN pg_depend d ON (d.classid, d.objid) = (gone.classid, gone.objid)
  AND d.deptype IN ('e', 'x')
  JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
-- A row has all columns of its table, in their order.
SELECT format('%s uses whole rows of its table', pg_describe_object('pg_class'::regclass,
  indexrelid, 0))
FROM pg_index WHERE indrelid IN (SELECT relid FROM col)
AND concat(indexprs, indpred) ~ ':varattno 0 '
SELECT format('exclusion constraint %I of table %s depends on a converted column', conname,
  tab.name)
FROM idx JOIN tab ON tab.relid = indrelid JOIN pg_constraint k ON k.oid = con
WHERE k.contype = 'x'
AND NOT EXISTS (SELECT FROM col WHERE col.relid = indrelid AND col.attnum = ANY (k.conkey))
-- Since 18: constraints that are not enforced, and temporal ones.
SELECT format('constraint %I of table %s is not enforced, or temporal', conname,
  conrelid::regclass)
FROM pg_constraint k
WHERE (oid IN (SELECT oid FROM fkey UNION ALL SELECT oid FROM chk UNION ALL SELECT con FROM idx))
AND (to_jsonb(k) @> '{"conenforced": false}' OR to_jsonb(k) @> '{"conperiod": true}')

-- hint: Remove security labels, convert, and set them again.
SELECT format('%s has a security label', pg_describe_object(l.classoid, l.objoid, l.objsubid))
FROM pg_seclabel l WHERE (l.classoid, l.objoid) IN (SELECT classid, objid FROM gone)
OR l.classoid = 'pg_class'::regclass AND (l.objoid, l.objsubid) IN (SELECT relid, attnum FROM col)

-- hint: Give the views that depend on a converted column the owner of the table.
SELECT format('view %s is owned by role %I, but table %s by role %I', vw.name,
    vw.relowner::regrole::text, tab.name, tab.relowner::regrole::text)
FROM vw, tab WHERE tab.relid = $tables[1] AND tab.relowner <> vw.relowner

-- hint: Change what these lines say, or drop the objects, convert, and create them again: pg_dump
--   --schema-only has their statements.
SELECT line FROM lost_view

-- hint: Take the table out of such publications, or give them the owner of the table.
SELECT format('publication %I has a column list or row filter with %s, and is owned by role %s',
    b.pubname, t.column_name, b.pubowner::regrole)
FROM col JOIN target t USING (relid, attnum) JOIN tab USING (relid)
  JOIN pg_depend d ON (d.refclassid, d.refobjid, d.refobjsubid, d.classid)
    = ('pg_class'::regclass, col.relid, col.attnum, 'pg_publication_rel'::regclass)
  JOIN pg_publication_rel p ON p.oid = d.objid JOIN pg_publication b ON b.oid = p.prpubid
WHERE NOT pg_has_role(tab.relowner, b.pubowner, 'USAGE')

-- hint: Give the table a primary key, here and on subscribers, or take it out of the publication,
--   because the rows are updated.
SELECT format('publication %I publishes updates of table %s, which has no replica identity',
  b.pubname, tab.name)
{published(b.pubupdate)}
AND r.relreplident <> 'f'
AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = r.oid
                AND CASE r.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i'
                  THEN i.indisreplident END)

-- hint: Give the table a primary key, here and on subscribers, or take it out of the publication.
--   Subscribers would compare all columns, and ignore UPDATE and DELETE without an error as long
--   as they have other columns.
SELECT format('publication %I publishes changes of table %s, which has REPLICA IDENTITY FULL '
  'and no primary key', b.pubname, tab.name)
{published(b.pubupdate OR b.pubdelete)}
AND r.relreplident = 'f' AND NOT {has_key}

-- hint: Give the table a primary key, or take it out of the subscription. It would compare all
--   columns, and ignore UPDATE and DELETE without an error until the swap.
SELECT format('a subscription receives table %s, which has no primary key', tab.name)
FROM tab JOIN pg_class r ON r.oid = tab.relid
WHERE relid IN (SELECT relid FROM col) AND r.relkind <> 'p' AND NOT {has_key}
AND EXISTS (SELECT FROM up JOIN pg_subscription_rel s ON s.srrelid = up.ancestor
WHERE up.relid = tab.relid)

-- hint: Drop what was created for an index, constraint or statistics object that was dropped or
--   renamed since then; the conversion creates it again if it is needed.
SELECT format('%s has no counterpart any more', what) FROM single

-- hint: Rename what has a name that begins with "snowflake_new_".
SELECT format('%s has a name that the conversion uses', pg_describe_object(o.classid, o.objid, 0))
FROM (SELECT 'pg_constraint'::regclass, oid, conname FROM fkey WHERE conparentid = 0
  UNION ALL SELECT 'pg_constraint'::regclass, oid, conname FROM chk
  UNION ALL SELECT 'pg_class'::regclass, indexrelid, relname FROM idx
  UNION ALL SELECT 'pg_statistic_ext'::regclass, oid, stxname FROM stat) o(classid, objid, name)
WHERE starts_with(name::text, 'snowflake_new_')

-- hint: Rename BEFORE INSERT OR UPDATE triggers that sort after our trigger.
SELECT format('trigger %I of table %s would be fired after trigger ~snowflake_new', g.tgname,
  tab.name)
FROM tab JOIN pg_trigger g ON g.tgrelid = tab.relid AND NOT g.tgisinternal
WHERE relid IN (SELECT relid FROM col) AND g.tgfoid <> (SELECT oid FROM copier)
AND g.tgtype & 3 = 3 AND g.tgtype & 20 <> 0 AND g.tgname::text COLLATE "C" > '~snowflake_new'

-- hint: Run ALTER SUBSCRIPTION ... SET (binary = false), and set it to true again when the
--   columns of the publisher are bigint, too.
SELECT format('subscription %I receives table %s in binary format', b.subname, tab.name)
FROM tab JOIN pg_subscription_rel r ON r.srrelid = tab.relid JOIN pg_subscription b
  ON b.oid = r.srsubid
WHERE relid IN (SELECT relid FROM col) AND b.subbinary

-- hint: Drop the rules of the tables, convert, and create them again.
SELECT format('rule %I of table %s', r.rulename, tab.name)
FROM tab JOIN pg_rewrite r ON r.ev_class = tab.relid WHERE relid IN (SELECT relid FROM col)

-- hint: Drop one of the foreign keys, convert, and create it again.
SELECT format('tables that reference each other in a circle: %s', name)
FROM swap JOIN tab USING (relid) WHERE level >= 99

-- hint: Have the owner of the table grant these privileges.
SELECT format('%s privilege on %s was granted by role %s, not by the owner', e.privilege_type,
  t.column_name,
    e.grantor::regrole)
FROM col JOIN target t USING (relid, attnum) JOIN tab USING (relid), aclexplode(col.attacl) e
WHERE e.grantor <> tab.relowner

-- hint: Grant the owner of the tables the privileges to create what the conversion creates.
SELECT format('role %s, the owner of table %s, lacks %s', tab.relowner::regrole, tab.name, p.what)
FROM tab CROSS JOIN LATERAL (
  SELECT format('CREATE on schema %I', n.nspname), has_schema_privilege(tab.relowner, n.oid,
    'CREATE')
  FROM pg_namespace n
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
  UNION ALL
  SELECT format('EXECUTE on function %s', g.tgfoid::regprocedure),
    has_function_privilege(tab.relowner, g.tgfoid, 'EXECUTE')
  FROM pg_trigger g WHERE g.tgrelid = tab.relid AND g.oid IN (SELECT oid FROM triggered)
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
                WHERE k.conrelid = relid AND k.contype = 'c'
                  AND k.conname IN ('snowflake_new_check', 'snowflake_new_null_check')
                AND position(format('(%I IS NOT NULL)', newname)
                  IN pg_get_constraintdef(k.oid)) > 0)

-- hint: Rename or drop what has a name that the conversion uses, or attach the table again if it
--   was a partition. If it is left from a conversion whose trigger was changed, call
--   snowflake_convert_undo().
SELECT format('%s is in the way', w.what)
FROM tab CROSS JOIN LATERAL (
  SELECT format('column %I of table %s', newname, tab.name) FROM col
  WHERE col.relid = tab.relid AND newnum IS NOT NULL AND NOT prepared
  UNION ALL
  SELECT format('trigger %I of table %s', g.tgname, tab.name) FROM pg_trigger g
  WHERE g.tgrelid = tab.relid AND g.tgfoid <> (SELECT oid FROM copier)
  AND g.tgname IN ('~snowflake_new', '~snowflake_swapped')
  UNION ALL
  SELECT format('constraint %I of table %s', k.conname, tab.name) FROM pg_constraint k
  WHERE k.conrelid = tab.relid
    AND k.conname IN ('snowflake_new_check', 'snowflake_new_null_check') AND NOT prepared
  UNION ALL
  SELECT format('relation %I.%I', n.nspname, c.relname)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relname IN ('snowflake_new_definitions', 'snowflake_new_definitions_object')
  AND n.nspname = tab.nspname
  UNION ALL
  SELECT format('relation %I.%I', idx.nspname, c.relname)
  FROM idx JOIN pg_class c ON c.relname = idx.newname
    AND c.relnamespace = (SELECT relnamespace FROM pg_class o WHERE o.oid = idx.indexrelid)
  WHERE idx.indrelid = tab.relid AND idx.relkind = 'i' AND (idx.newoid IS NULL OR NOT prepared)
  UNION ALL
  SELECT format('constraint %I of table %s', newname, tab.name)
  FROM (SELECT conrelid, newname, newoid FROM fkey UNION ALL SELECT conrelid, newname, newoid
    FROM chk) k
  WHERE k.conrelid = tab.relid AND k.newoid IS NOT NULL AND relid IN (SELECT relid FROM col)
    AND NOT prepared
  UNION ALL
  SELECT format('statistics object %I.%I', stat.nspname, newname)
  FROM stat JOIN pg_statistic_ext f ON f.stxname = stat.newname
    AND f.stxnamespace = stat.stxnamespace
  WHERE stat.stxrelid = tab.relid AND (stat.newoid IS NULL OR NOT prepared)
  ) w(what) WHERE tab.root IN (SELECT relid FROM swapping)

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
WHERE tab.relid IN (SELECT relid FROM col) AND NOT tab.copied AND tab.relkind = 'r'
AND k.contype = 'c' AND NOT k.convalidated AND NOT starts_with(k.conname::text, 'snowflake_new_')
AND to_jsonb(k) @> '{"conenforced": false}' IS NOT TRUE
ORDER BY 1

-- Functions whose code is searched, with the code in lower case, in which names
-- are found fast.  Not those of extensions and temporary schemas, which who converts
-- could not change.
-- snippet: searched_functions
(SELECT p.oid::regprocedure::text, p.prosrc, p.proretset, lower(p.prosrc COLLATE "C")
  FROM pg_proc p
  WHERE p.prolang NOT IN (SELECT oid FROM pg_language WHERE lanname IN ('internal', 'c'))
  AND NOT {is_temporary(p)} AND NOT {of_extension(pg_proc, p.oid)}
  OFFSET 0) f(name, source, returns_set, lower)

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

-- hint: Have it name the columns (INSERT INTO t (id, name) ...), because the converted ones are
--   the last ones afterwards.
SELECT format('function %s inserts into table %s without the names of columns', f.name, tab.name)
FROM tab JOIN {searched_functions}
  ON CASE WHEN {names_table}
    THEN {without_comments(f.source)} ~* (E'\\minsert\\s+into\\s+' || {table_pattern}
      || E'\\s*(\\mas\\s+\\S+\\s+)?(\\m(values|select|table|with|overriding)\\M'
      || E'|\\(\\s*(values|select|table|with)\\M)') END
WHERE tab.relid IN (SELECT relid FROM col)

-- hint: Have it name the columns (SELECT id, name, RETURNING id, name), because the converted
--   ones are the last ones afterwards.
SELECT format('function %s inserts all columns of table %s in their order', f.name, tab.name)
FROM tab JOIN {searched_functions}
  ON CASE WHEN {names_table}
    THEN {without_comments(f.source)}
      ~* ({into_columns} || E'(select\\s+' || {all_columns} || E'from|table)\\s+' || {table_pattern}
        || E'|\\m(delete\\s+from|update)\\s+' || {table_pattern}
        || E'[^;]*\\mreturning\\s+' || {all_columns} || E'\\)[^;]*'
        || {into_columns} || E'select\\s+' || {all_columns} || E'from\\M') END
WHERE tab.relid IN (SELECT relid FROM col)

-- list: publication_obstacles lines

-- hint: Add the new columns on all subscribers, which stop at the first new row otherwise (ALTER
--   TABLE ... ADD COLUMN snowflake_new_... bigint, for each column that becomes bigint), change
--   the type of the old ones to bigint, and specify subscribers_ready => true. Drop the new
--   columns there after the conversion.
SELECT format('publication %I has all columns of table %s', b.pubname, tab.name)
FROM tab JOIN pg_class r ON r.oid = tab.relid CROSS JOIN pg_publication b
WHERE relid IN (SELECT relid FROM col)
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

-- notice: warning | one each | keys
SELECT NULL, NULL, 'INSERT ... ON CONFLICT may fail with unique_violation',
  string_agg(format('table %s', tab.name), E'\n' ORDER BY tab.name COLLATE "C"),
  'Until the swap there are two unique indexes for one key, and ON CONFLICT expects a conflict '
  'in one of them only. Have the application repeat such statements; it is rare.'
FROM tab WHERE relid IN (SELECT relid FROM col) AND tab.parent IS NULL
AND EXISTS (SELECT FROM idx JOIN tab m ON m.relid = idx.indrelid WHERE m.root = tab.relid
  AND idx.indisunique)
HAVING count(*) > 0

-- notice: warning | one each | functions
SELECT NULL, NULL, 'functions might use columns by their positions',
  string_agg(DISTINCT f.name COLLATE "C", E'\n' ORDER BY f.name COLLATE "C"),
  'They contain the name of a table, and SELECT * or the like. See that they name columns '
  'wherever the order of columns matters, because the converted ones are the last ones '
  'afterwards.'
FROM tab JOIN {searched_functions}
  ON CASE WHEN tab.parent IS NULL AND strpos(f.source, '*') + strpos(f.lower, 'table') > 0
    AND {names_table}
    THEN f.source ~* {word(tab.relname::text)}
      AND {without_exists({without_comments(f.source)})}
        ~* E'(\\m(select|returning|all|distinct)\\s*|\\)\\s*|[.,]\\s*)\\*\\s*(from|into|[,);'']|$)'
          '|\\mtable\\s+(only\\s+)?"?\\w'
      AND (f.returns_set
        OR f.source
          ~* E'\\minsert\\s+into\\M|\\m(for|into|into\\s+strict)\\s+[\\w.]+\\s*,|\\mset\\s*\\(') END
WHERE tab.relid IN (SELECT relid FROM col) HAVING count(*) > 0

-- notice: warning | one each | slots
SELECT slot_name, NULL, format('logical replication slot %I gets an UPDATE of each row', slot_name),
  NULL, 'The changes have the new columns until the swap. See that what reads the slot can keep up '
  'with the backfill, and accepts these columns.'
FROM pg_replication_slots WHERE slot_type = 'logical' AND database = current_database()
  AND plugin <> 'pgoutput'
AND EXISTS (SELECT FROM col)

-- notice: warning | one each | rows
SELECT NULL, NULL, 'functions return rows of these tables',
  string_agg(format('%s: table %s', p.oid::regprocedure, tab.name), E'\n'
    ORDER BY p.oid::regprocedure::text COLLATE "C"),
  'One that lists the columns itself fails until the swap, because the table has one more, and '
  'afterwards if it relies on their order.'
FROM tab JOIN pg_class r ON r.oid = tab.relid JOIN pg_proc p ON p.prorettype = r.reltype
WHERE tab.relid IN (SELECT relid FROM col) HAVING count(*) > 0
