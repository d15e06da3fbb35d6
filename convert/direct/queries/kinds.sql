-- The tables of $schema, or table $object, with their partitions and children.
-- cte: fed_table(relid)
SELECT r.oid FROM pg_class r
WHERE (r.relnamespace = $schema OR r.oid = $object) AND r.relkind IN ('r', 'p') AND r.relpersistence <> 't'
AND NOT {of_extension(pg_class, r.oid)}
UNION
SELECT i.inhrelid FROM fed_table f JOIN pg_inherits i ON i.inhparent = f.relid

-- Their columns that sequences feed.  What feeds none can only become local.
-- name: fed_columns
SELECT f.relid, a.attname, f.sequence, coalesce(k.kind, 'local') AS kind,
  format('column %I of table %s', a.attname, f.relid::regclass) AS column_name
FROM fed_table t JOIN feeding f ON f.relid = t.relid
  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (f.relid, f.attnum)
  LEFT JOIN sequence_kind k ON k.sequence = f.sequence
UNION ALL
SELECT NULL, NULL, k.sequence, k.kind, NULL
FROM sequence_kind k JOIN pg_class c ON c.oid = k.sequence
WHERE $kind = 'local' AND c.relnamespace = $schema AND k.sequence NOT IN (SELECT sequence FROM feeding)
ORDER BY relid, attname, sequence

-- What is to be said before the first sequence gets the kind, and afterwards.
-- list: first_kind_notices notices

-- notice: warning | list | sequences that feed no column stay as they are
{idle}

-- notice: warning | list | functions and views read last_value of sequences
{readers}

-- list: kind_notices notices

-- notice: info | list | sequences that feed no column stay as they are
{idle}

-- notice: warning | list | functions and views read last_value of sequences
{readers}
