-- Keys that are not converted yet, with their defaults.  That is a reason to worry only if others
-- are: these tables are newer, or an upgrade of the application restored a default.
-- list: report_notices notices

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
-- notice: warning | list | sequences are local, although new tables get another kind
SELECT format('sequence %s', {qualified(c)}), NULL,
  'it is local, although new tables get another kind', NULL,
  'Call snowflake_convert_schema() with the kind that they are to have, or '
  'snowflake_set_sequence_kind() with ''local'' in a session that has the setting.'
FROM pg_class c
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
