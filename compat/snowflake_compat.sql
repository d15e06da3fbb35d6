-- Functions for programs that ask a sequence for the ID of the row that they have
-- inserted: lastval(), currval(), pg_get_serial_sequence().  Where a conversion has
-- replaced the sequence, they return the last snowflake ID of the session.
--
--	psql -d DATABASE -f snowflake_compat.sql
--	ALTER ROLE app IN DATABASE ... SET search_path = public, snowflake_compat, pg_catalog;
--
-- They are found first because pg_catalog is last in the search_path.  They are right
-- only if all tables that the program inserts into are converted, and if it asks
-- right after its INSERT: a trigger that inserts into another table generates the last
-- ID.  docs/clients.md says more.
--
-- They run with the search_path of the session, because the names that programs give
-- them are looked up in it.  So everything in them is qualified.  It can be run again.

\set ON_ERROR_STOP on
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL search_path = pg_catalog, pg_temp;
CREATE SCHEMA IF NOT EXISTS snowflake_compat;
CREATE SCHEMA IF NOT EXISTS snowflake_default;

-- The extension may be in any schema.  Who owns a schema that existed could change what
-- is in it.
DO $do$
DECLARE
    extension regnamespace;
    s record;
BEGIN
    FOR s IN SELECT nspname, rolname FROM pg_namespace JOIN pg_roles r ON r.oid = nspowner
             WHERE nspname IN ('snowflake_compat', 'snowflake_default')
             AND rolname <> current_user AND NOT rolsuper LOOP
        RAISE EXCEPTION 'schema "%" belongs to role %', s.nspname, s.rolname
            USING HINT = 'Drop it, or run the script as this role.';
    END LOOP;
    SELECT extnamespace INTO extension FROM pg_extension WHERE extname = 'snowflake';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'extension "snowflake" does not exist in this database';
    END IF;
    EXECUTE format('CREATE OR REPLACE FUNCTION snowflake_compat.last_id() RETURNS bigint
                    LANGUAGE sql VOLATILE PARALLEL RESTRICTED RETURN %s.snowflake_currval()', extension);
    EXECUTE format('CREATE OR REPLACE FUNCTION snowflake_compat.next_id() RETURNS bigint
                    LANGUAGE sql VOLATILE PARALLEL RESTRICTED RETURN %s.snowflake_nextval()', extension);
END
$do$;
COMMENT ON FUNCTION snowflake_compat.last_id() IS 'last snowflake ID of this session';
COMMENT ON FUNCTION snowflake_compat.next_id() IS 'next snowflake ID';

-- In a session that has used a sequence, nobody knows which came last.
CREATE OR REPLACE FUNCTION snowflake_compat.lastval() RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    BEGIN
        PERFORM pg_catalog.lastval();
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
        RETURN snowflake_compat.last_id();
    END;
    RAISE EXCEPTION 'lastval() cannot tell a snowflake ID from the value of a sequence'
        USING ERRCODE = 'object_not_in_prerequisite_state',
              HINT = 'Convert all tables of the application, or read the ID by RETURNING.';
END
$$;
COMMENT ON FUNCTION snowflake_compat.lastval() IS
'last snowflake ID of this session; error: 55000 if the session has used a sequence';

-- Does the default of a column generate snowflake IDs, by the extension or this script?
CREATE OR REPLACE FUNCTION snowflake_compat.is_converted(relation oid, number smallint) RETURNS boolean
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_attrdef f
            JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                AND d.refclassid = 'pg_proc'::regclass
            JOIN pg_proc p ON p.oid = d.refobjid
            LEFT JOIN pg_depend m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e'
            LEFT JOIN pg_extension e ON m.refclassid = 'pg_extension'::regclass AND e.oid = m.refobjid
        WHERE (f.adrelid, f.adnum) = (relation, number)
        AND (e.extname = 'snowflake' AND p.proname IN ('snowflake_nextval', 'snowflake_id')
             OR p.pronamespace = 'snowflake_default'::regnamespace
                AND pg_get_expr(f.adbin, f.adrelid) ~ 'nextval[(]''snowflake''::text[)]'))
$$;
COMMENT ON FUNCTION snowflake_compat.is_converted(oid, smallint) IS
'whether the default of a column generates snowflake IDs';

-- A sequence that a conversion has kept still belongs to its column.
CREATE OR REPLACE FUNCTION snowflake_compat.currval(sequence regclass) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $$
BEGIN
    RETURN pg_catalog.currval(sequence);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    IF EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
        AND d.objid OPERATOR(pg_catalog.=) sequence
        AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
        AND snowflake_compat.is_converted(d.refobjid, d.refobjsubid::pg_catalog.int2)) THEN
        RETURN snowflake_compat.last_id();
    END IF;
    RAISE;
END
$$;
COMMENT ON FUNCTION snowflake_compat.currval(regclass) IS
'current value of a sequence; if the session has not used it, and its column is
converted, the last snowflake ID of the session';

CREATE OR REPLACE FUNCTION snowflake_compat.currval(sequence text) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
    found pg_catalog.regclass := pg_catalog.to_regclass(sequence);
BEGIN
    IF found IS NULL THEN
        RETURN snowflake_compat.last_id();
    END IF;
    RETURN snowflake_compat.currval(found);
END
$$;
COMMENT ON FUNCTION snowflake_compat.currval(text) IS
'the same by name; if there is no such sequence, the last snowflake ID of the session';

-- The name that the sequence of a serial column would have.
CREATE OR REPLACE FUNCTION snowflake_compat.pg_get_serial_sequence(table_name text, column_name text) RETURNS text
LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    result pg_catalog.text := pg_catalog.pg_get_serial_sequence(table_name, column_name);
BEGIN
    IF result IS NULL THEN
        SELECT pg_catalog.format('%I.%I', n.nspname, pg_catalog.concat_ws('_', r.relname, a.attname, 'seq'))
        INTO result
        FROM pg_catalog.pg_class r
            JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) r.relnamespace
            JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) r.oid
        WHERE r.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(table_name)
        AND a.attname OPERATOR(pg_catalog.=) column_name::pg_catalog.name
        AND snowflake_compat.is_converted(r.oid, a.attnum);
    END IF;
    RETURN result;
END
$$;
COMMENT ON FUNCTION snowflake_compat.pg_get_serial_sequence(text, text) IS
'sequence of a column; if it is converted, the name that this would have, for
currval()';

-- A default for programs that read the name of the sequence in it.  It generates
-- snowflake IDs only if that is snowflake, so that clients that count up from the value
-- of a sequence, as Hibernate does, do not get one.
CREATE OR REPLACE FUNCTION snowflake_default.nextval(sequence text) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $$
BEGIN
    IF sequence OPERATOR(pg_catalog.=) 'snowflake' THEN
        RETURN snowflake_compat.next_id();
    END IF;
    RETURN pg_catalog.nextval(sequence::pg_catalog.regclass);
END
$$;
COMMENT ON FUNCTION snowflake_default.nextval(text) IS
'next snowflake ID if the sequence is snowflake, otherwise its next value';

GRANT USAGE ON SCHEMA snowflake_compat, snowflake_default TO PUBLIC;
COMMIT;
