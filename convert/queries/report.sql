-- Views that cannot come back, each before those that it is made of, with the statements that
-- drop it and create it again.
-- name: views
-- with: vw, rul, stuck, view_statement, rule_statement
WITH own(oid, stage, n, command) AS (
  SELECT oid, stage, n, command FROM view_statement
  UNION ALL
  SELECT oid, 1, 0, format('ALTER %s %s OWNER TO %s', {kind}, name, relowner::regrole) FROM vw
  UNION ALL
  SELECT relid, 90 + stage, oid, command FROM rule_statement)
SELECT format('%s %s', lower({kind}), name),
  format('it must be dropped, as number %s of %s', row_number() OVER (ORDER BY depth DESC, name),
    count(*) OVER ()),
  format(E'DROP %s %s;\n-- convert, and create the views in reverse order:\n%s', {kind}, name,
    (SELECT string_agg(command || ';', E'\n' ORDER BY stage, n) FROM own WHERE own.oid = vw.oid))
 FROM vw WHERE oid IN (SELECT oid FROM stuck) ORDER BY depth DESC, name

-- Keys that are not converted yet, with their defaults.
-- name: unconverted_keys
-- with: target
SELECT t.column_name,
  format('it has %s', CASE WHEN a.attidentity <> '' THEN 'an identity'
    ELSE coalesce(format('the default %s', pg_get_expr(f.adbin, f.adrelid)), 'no default') END)
FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)
  LEFT JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (t.relid, t.attnum)
WHERE t.is_root AND t.gets_ids
ORDER BY t.column_name COLLATE "C"
