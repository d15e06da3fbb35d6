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
  AND NOT (r.relrowsecurity AND r.relforcerowsecurity) AND has_table_privilege(t.root, 'SELECT')
FROM tree t JOIN pg_class r ON r.oid = t.oid LEFT JOIN pg_am m ON m.oid = r.relam

-- The statements that read values of the columns of tables.  Each has a row for each column: its
-- number, and values.
--
-- At most 128 pages of a table are read, and as long as it is not changed, the same ones each time.
-- What is no small integer, and so in no key that is looked for, counts as a negative one.
-- name: samples
WITH size AS (SELECT root, sum(pages) AS pages FROM part GROUP BY root HAVING bool_and(readable))
SELECT r.oid AS relid, format('WITH s AS MATERIALIZED (SELECT %s FROM %I.%I%s) %s',
  string_agg(format('CASE WHEN CASE WHEN %1$I::text '
    '~ ''^-?[0-9]{1,10}([.][0-9]{0,20})?(e[+]0[0-9])?$'' '
    'THEN %1$I::text::numeric = trunc(%1$I::text::numeric) '
    'AND %1$I::text::numeric BETWEEN -2147483648 AND 2147483647 END '
    'THEN %1$I::text::numeric::int '
    'WHEN %1$I IS NOT NULL THEN -2 - (hashtext(%1$I::text) & 65535) END AS n%2$s', a.attname,
    a.attnum), ', '), n.nspname, r.relname,
  CASE WHEN s.pages > 128 THEN format(' TABLESAMPLE SYSTEM (%s) REPEATABLE (0)',
    round(12800 / s.pages, 6)) END,
  string_agg(format('SELECT %1$s AS attnum, array_agg(DISTINCT n%1$s) FILTER '
    '(WHERE n%1$s NOT IN (0, -1)) AS numbers FROM s', a.attnum), ' UNION ALL ')) AS statement
 FROM unnest($tables::oid[], $columns::int2[]) u(relid, attnum) JOIN size s ON s.root = u.relid
  JOIN {attribute(a, u)} AND NOT a.attisdropped
  JOIN pg_class r ON r.oid = s.root JOIN pg_namespace n ON n.oid = r.relnamespace
 GROUP BY r.oid, n.nspname, r.relname, s.pages, a.attnum / 800
 ORDER BY r.oid, a.attnum / 800

-- The statements that say which of the integers of the array $1 are in a key, and how many rows
-- this has, up to 100; of the keys that are the columns of the tables.  What is not small is
-- not read without an index.
-- name: lookups
WITH key AS (
  SELECT k.number, a.attrelid, a.attname
  FROM unnest($tables::oid[], $columns::int2[]) WITH ORDINALITY k(relid, attnum, number)
    JOIN {attribute(a, k)}),
 size AS (
  SELECT k.number, sum(p.pages) > 128 AS is_big
  FROM key k JOIN part p ON p.root = k.attrelid
  GROUP BY k.number
  HAVING bool_and(p.readable AND (p.pages <= 128 OR EXISTS (
    SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
      JOIN pg_attribute a ON (a.attrelid, a.attnum) = (i.indrelid, i.indkey[0])
    WHERE i.indrelid = p.oid AND a.attname = k.attname AND i.indisvalid AND i.indpred IS NULL
    AND m.amname = 'btree'))))
SELECT k.number, s.is_big::int AS is_big,
  format('SELECT array_agg(v ORDER BY v) AS present, '
    '(SELECT count(*) FROM (SELECT FROM %I.%I LIMIT 100) t) AS nrows '
    'FROM (SELECT DISTINCT unnest($1::int[])) u(v) WHERE '
    || CASE WHEN s.is_big THEN '(SELECT true FROM %1$I.%2$I t WHERE t.%3$I = v LIMIT 1)'
      ELSE 'v IN (SELECT t.%3$I FROM %1$I.%2$I t)' END, n.nspname, r.relname, k.attname)
  AS statement
 FROM key k JOIN size s USING (number) JOIN pg_class r ON r.oid = k.attrelid
  JOIN pg_namespace n ON n.oid = r.relnamespace
 ORDER BY k.number
