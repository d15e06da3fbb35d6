-- Views that cannot come back, each before those that it is made of, with the statements that
-- drop it and create it again.
-- name: views
WITH own(oid, stage, n, command) AS (
  SELECT oid, stage, n, command FROM view_statement
  UNION ALL
  SELECT oid, 1, 0, format('ALTER %s %s OWNER TO %s', {kind}, name, relowner::regrole) FROM vw
  UNION ALL
  SELECT relid, 90 + stage, oid, command FROM rule_statement)
SELECT format('%s %s', lower({kind}), name) AS object,
  format('it must be dropped, as number %s of %s', row_number() OVER (ORDER BY depth DESC, name),
    count(*) OVER ()) AS finding,
  format(E'DROP %s %s;\n-- convert, and create the views in reverse order:\n%s', {kind}, name,
    (SELECT string_agg(command || ';', E'\n' ORDER BY stage, n) FROM own WHERE own.oid = vw.oid))
  AS what_to_do
 FROM vw WHERE oid IN (SELECT oid FROM stuck) ORDER BY depth DESC, name

-- Keys that are not converted yet, with their defaults.  That is a reason to worry only if others
-- are: these tables are newer, or an upgrade of the application restored a default.
-- list: unconverted_keys notices

-- notice: later | list | keys are not snowflake keys
SELECT t.column_name, NULL, format('it is not a snowflake key: it has %s',
    CASE WHEN t.attidentity <> '' THEN 'an identity'
    ELSE coalesce(format('the default %s', d.expression), 'no default') END), NULL,
  CASE WHEN NOT true = ALL ($set_default) THEN 'Others are. The tables are new, or something, such '
    'as an upgrade of the application, changed the defaults. ' ELSE '' END || 'Convert them with '
    'snowflake_convert_schema(), or with snowflake_convert_online() while they are in use.'
FROM target t LEFT JOIN key_default d ON (d.relid, d.attnum) = (t.relid, t.attnum)
WHERE t.is_root AND t.gets_ids

-- The sequences of $schema that are local, as a script that looks like a dump leaves them, and
-- nobody has called them so, if new tables of this database get another kind.
-- list: local_sequences notices

-- notice: warning | list | sequences are local, although new tables get another kind
SELECT format('sequence %I.%I', n.nspname, c.relname), NULL,
  'it is local, although new tables get another kind', NULL,
  'Call snowflake_convert_schema() with the kind that they are to have, or '
  'snowflake_set_sequence_kind() with ''local'' in a session that has the setting.'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relnamespace = $schema AND c.relkind = 'S' AND c.relpersistence <> 't'
AND $kind IS DISTINCT FROM 'local'
AND NOT EXISTS (SELECT FROM pg_seclabel l
                WHERE (l.classoid, l.objoid, l.provider)
                  = ('pg_class'::regclass, c.oid, 'snowflake'))
AND NOT {of_extension(pg_class, c.oid)}
AND EXISTS (
  SELECT FROM pg_db_role_setting r LEFT JOIN pg_database b ON b.oid = r.setdatabase,
    unnest(r.setconfig) v
  WHERE (b.oid IS NULL OR b.datname = current_database())
  AND v LIKE 'snowflake.default\_sequence\_kind=%' AND v NOT LIKE '%=local')
