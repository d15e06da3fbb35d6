-- The tables, and their partitions and children, with the number of their pages, and whether the
-- current user can read them, by no code of another one: those that it does not own, those whose
-- policies hold for their owner, and foreign tables are not read.
-- texts: tables, columns
-- cte: tree(root, oid)
SELECT DISTINCT oid, oid FROM unnest($tables::oid[]) r(oid)
UNION
SELECT t.root, i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid

-- cte: part(root, oid, pages, readable) materialized
SELECT t.root, r.oid, CASE WHEN r.relkind = 'r' THEN pg_relation_size(r.oid) ELSE 0 END
    / current_setting('block_size')::int,
  r.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
  AND (r.relkind = 'p' OR r.relkind = 'r' AND m.amname = 'heap')
  AND NOT (r.relrowsecurity AND r.relforcerowsecurity)
  AND has_table_privilege(t.root, 'SELECT')
FROM tree t JOIN pg_class r ON r.oid = t.oid LEFT JOIN pg_am m ON m.oid = r.relam

-- The statements that read values of tables: of the columns of the tables, and of their
-- texts those that have the name of a table, of which a statement gets the array $1, and a number.
-- It has a row for each column: its number, values, how many texts it has, how many of them are
-- such, and one of these.
--
-- At most 128 pages of a table are read, and as long as it is not changed, the same ones each time.
-- name: samples
WITH size AS (SELECT root, sum(pages) AS pages FROM part GROUP BY root HAVING bool_and(readable)),
 col AS (
  SELECT u.relid, a.attnum, a.attname, true AS is_number
  FROM unnest($tables::oid[], $columns::int2[]) u(relid, attnum)
    JOIN pg_attribute a ON (a.attrelid, a.attnum) = (u.relid, u.attnum)
  WHERE NOT a.attisdropped
  UNION ALL
  SELECT s.root, a.attnum, a.attname, false
  FROM size s JOIN pg_attribute a ON a.attrelid = s.root
  WHERE a.attnum > 0 AND NOT a.attisdropped
  AND a.atttypid IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype))
SELECT r.oid AS relid, format('WITH s AS MATERIALIZED (SELECT %s FROM %I.%I%s) %s',
  string_agg(format(CASE WHEN c.is_number THEN '%I'
    ELSE 'CASE WHEN pg_column_size(%1$I) < 100 THEN %1$I::text END AS %1$I' END, c.attname), ', '),
  n.nspname, r.relname,
  CASE WHEN s.pages > 128 THEN format(' TABLESAMPLE SYSTEM (%s) REPEATABLE (0)',
    round(12800 / s.pages, 6)) END,
  string_agg(format(CASE WHEN c.is_number
    THEN 'SELECT %s AS attnum, array_agg(DISTINCT %I::int) FILTER (WHERE %2$I NOT IN (0, -1)) '
      'AS numbers, 0 AS texts, 0 AS named, NULL AS example FROM s'
    ELSE 'SELECT %s AS attnum, NULL::int[] AS numbers, count(t) AS texts, '
      'count(t) FILTER (WHERE h) AS named, min(t COLLATE "C") FILTER (WHERE h) AS example '
      'FROM (SELECT %I AS t, lower(regexp_replace('
      'substring(%2$I FROM ''([^/]+)[,:#/|][0-9]+$''), ''[^[:alnum:]]'', '''', ''g'')) '
      '= ANY ($1::text[]) AS h FROM s) h' END, c.attnum, c.attname), ' UNION ALL ')) AS statement
 FROM size s JOIN col c ON c.relid = s.root JOIN pg_class r ON r.oid = s.root
  JOIN pg_namespace n ON n.oid = r.relnamespace
 GROUP BY r.oid, n.nspname, r.relname, s.pages
 ORDER BY r.oid

-- The statements that say which of the integers of the array $1 are in a key, and how many rows
-- this has, up to 20; of the keys that are the columns of the tables.  What is not small is
-- not read without an index.
-- name: lookups
WITH key AS (
  SELECT k.number, a.attrelid, a.attname
  FROM unnest($tables::oid[], $columns::int2[]) WITH ORDINALITY k(relid, attnum, number)
    JOIN pg_attribute a ON (a.attrelid, a.attnum) = (k.relid, k.attnum)),
 size AS (
  SELECT k.number, sum(p.pages) > 128 AS is_big
  FROM key k JOIN part p ON p.root = k.attrelid
  GROUP BY k.number
  HAVING bool_and(p.readable AND (p.pages <= 128 OR EXISTS (
    SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
      JOIN pg_attribute a ON (a.attrelid, a.attnum) = (i.indrelid, i.indkey[0])
    WHERE i.indrelid = p.oid AND a.attname = k.attname AND i.indisvalid AND i.indpred IS NULL
    AND m.amname = 'btree'))))
SELECT k.number, CASE WHEN s.is_big THEN 1 ELSE 0 END AS is_big,
  format('SELECT array_agg(v ORDER BY v) AS present, '
    '(SELECT count(*) FROM (SELECT FROM %I.%I LIMIT 20) t) AS nrows '
    'FROM (SELECT DISTINCT unnest($1::int[])) u(v) WHERE '
    || CASE WHEN s.is_big THEN '(SELECT true FROM %1$I.%2$I t WHERE t.%3$I = v LIMIT 1)'
      ELSE 'v IN (SELECT t.%3$I FROM %1$I.%2$I t)' END, n.nspname, r.relname, k.attname)
  AS statement
 FROM key k JOIN size s USING (number) JOIN pg_class r ON r.oid = k.attrelid
  JOIN pg_namespace n ON n.oid = r.relnamespace
 ORDER BY k.number
