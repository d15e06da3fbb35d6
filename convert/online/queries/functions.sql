-- texts: table
-- name: copied_column
SELECT a.attname
FROM pg_trigger g
  CROSS JOIN LATERAL {arguments(g.tgargs)} WITH ORDINALITY arg(name, number)
  JOIN pg_attribute a ON a.attrelid = g.tgrelid AND NOT a.attisdropped
    AND {is_argument(a.attname)}
  LEFT JOIN pg_index i ON i.indrelid = g.tgrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)
WHERE g.tgrelid = $table::oid AND g.tgname = '~snowflake_new'
ORDER BY i.indexrelid IS NULL, number % 2 = 0, number LIMIT 1
