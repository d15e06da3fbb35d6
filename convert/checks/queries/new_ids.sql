-- Partitioned tables whose columns reference a key, and are no partitions of
-- one that does.
-- name: partitioned
SELECT t.relid, t.attname, t.relid::regclass AS name, t.generator,
  CASE WHEN $schema = 0 THEN ''
    ELSE format(' Excluding %s does not help, because its column %I has keys of table %s: exclude '
      'that one.', t.table_name, t.attname, $tables[t.key]::regclass) END AS hint
FROM target t JOIN pg_class c ON c.oid = t.relid
WHERE c.relkind = 'p' AND NOT t.is_key AND t.gets_ids AND NOT EXISTS (
  SELECT FROM pg_inherits i JOIN target p ON (p.relid, p.attname) = (i.inhparent, t.attname)
  WHERE i.inhrelid = t.relid)
ORDER BY t.relid, t.attnum

-- The columns by which indexes of table $object are ordered.
-- name: ordered_columns
SELECT i.indkey[0] AS attnum
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE i.indrelid = $object AND a.amname = 'btree' AND i.indisvalid AND i.indpred IS NULL
