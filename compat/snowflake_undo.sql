-- Back from snowflake IDs to sequences, for all tables of a schema: rows get small
-- numbers in place of their snowflake IDs, and keys get sequences again.
--
--	psql -d DATABASE -v schema=public -f snowflake_undo.sql
--
-- A snowflake ID is unique in all tables.  So each bigint column of the database that
-- has one of them has it because of that row, with a foreign key or without, and gets
-- the row's number, too.  IDs in columns of other types, such as text, stay.
--
-- It requires a superuser, because triggers must not act on this.  It locks the tables
-- until the transaction ends.  Values up to 2147483647 are those from before the
-- conversion, and stay.  Columns stay bigint.

\set ON_ERROR_STOP on
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL session_replication_role = replica;
SELECT set_config('snowflake_undo.schema', quote_ident(:'schema'), true) AS schema \gset
CREATE TEMPORARY TABLE undone_key (
    relation regclass, name text, key name, sequence text, owner regrole) ON COMMIT DROP;
CREATE TEMPORARY TABLE renumbered (old bigint PRIMARY KEY, new bigint NOT NULL) ON COMMIT DROP;

-- Keys whose default is a function of the extension, or that of snowflake_compat.sql.
INSERT INTO undone_key
SELECT r.oid, format('%I.%I', n.nspname, r.relname), a.attname,
    format('%I.%I', n.nspname, concat_ws('_', r.relname, a.attname, 'seq')), r.relowner
FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
    JOIN pg_attribute a ON a.attrelid = r.oid
    JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (r.oid, a.attnum)
WHERE n.oid = current_setting('snowflake_undo.schema')::regnamespace
AND r.relkind IN ('r', 'p') AND a.attinhcount = 0 AND a.atttypid = 'int8'::regtype
AND EXISTS (
    SELECT FROM pg_depend d
        JOIN pg_proc p ON p.oid = d.refobjid
        LEFT JOIN pg_depend m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e'
        LEFT JOIN pg_extension e ON m.refclassid = 'pg_extension'::regclass AND e.oid = m.refobjid
    WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
    AND d.refclassid = 'pg_proc'::regclass
    AND (e.extname = 'snowflake' OR p.pronamespace = to_regnamespace('snowflake_default')));

DO $$
DECLARE
    k record;
    c record;
BEGIN
    FOR k IN SELECT * FROM undone_key ORDER BY relation LOOP
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', k.name);
    END LOOP;
    FOR k IN SELECT * FROM undone_key ORDER BY relation LOOP
        EXECUTE format('INSERT INTO renumbered
                        SELECT %1$I, row_number() OVER (ORDER BY %1$I) + coalesce((
                            SELECT max(%1$I) FROM %2$s WHERE %1$I <= 2147483647), 0)
                        FROM %2$s WHERE %1$I > 2147483647
                        ON CONFLICT DO NOTHING', k.key, k.name);
    END LOOP;
    ANALYZE renumbered;

    FOR c IN SELECT format('%I.%I', n.nspname, r.relname) AS name, a.attname
             FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
                 JOIN pg_attribute a ON a.attrelid = r.oid
                 JOIN pg_type t ON t.oid = a.atttypid
             WHERE r.relkind IN ('r', 'p') AND r.relpersistence <> 't' AND n.nspname !~ '^pg_'
             AND n.nspname <> 'information_schema' AND a.attnum > 0 AND NOT a.attisdropped
             AND a.attinhcount = 0 AND a.attgenerated = '' AND 'int8'::regtype IN (t.oid, t.typbasetype)
             AND EXISTS (SELECT FROM renumbered)
             ORDER BY r.oid, a.attnum LOOP
        EXECUTE format('UPDATE %1$s SET %2$I = r.new FROM pg_temp.renumbered r WHERE %2$I = r.old',
                       c.name, c.attname);
    END LOOP;
END
$$;

-- Sequences above all rows; one that the conversion kept is used again.
DO $$
DECLARE
    k record;
    grantee text;
BEGIN
    FOR k IN SELECT * FROM undone_key ORDER BY relation LOOP
        EXECUTE format('CREATE SEQUENCE IF NOT EXISTS %s', k.sequence);
        EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', k.sequence);
        EXECUTE format('ALTER SEQUENCE %s OWNER TO %s', k.sequence, k.owner);
        EXECUTE format('ALTER SEQUENCE %s AS bigint OWNED BY %s.%I', k.sequence, k.name, k.key);
        EXECUTE format('SELECT setval(%L, coalesce(max(%I), 0) + 1, false) FROM %s', k.sequence, k.key, k.name);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L)', k.name, k.key, k.sequence);
        FOR grantee IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
                       FROM pg_class r, aclexplode(r.relacl) a
                       WHERE r.oid = k.relation AND a.privilege_type = 'INSERT' LOOP
            EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %s', k.sequence, grantee);
        END LOOP;
    END LOOP;
    RAISE NOTICE '% keys have a sequence, % rows a new number',
        (SELECT count(*) FROM undone_key), (SELECT count(*) FROM renumbered);
END
$$;
COMMIT;
