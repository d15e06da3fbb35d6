-- warning about the server
--
-- If the library is not preloaded, the extension is installed, but cannot generate
-- IDs.  The hint is that of the error that calls will get.

DO $$
DECLARE
    hint text;
BEGIN
    PERFORM FROM snowflake_stat;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RAISE WARNING 'snowflake cannot generate IDs until it is loaded via "shared_preload_libraries"'
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = hint;
END
$$;

-- privileges
--
-- Default privileges of the role that owns the objects might have granted some on
-- them to other roles, also on functions that are revoked from PUBLIC above.

DO $$
DECLARE
    o record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR o IN
        WITH member AS (
            SELECT d.classid, d.objid
            FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
            WHERE e.extname = 'snowflake' AND d.deptype = 'e'),
        object AS (
            SELECT format('ROUTINE %s', p.oid::regprocedure) AS name, p.proowner AS owner, p.proacl AS acl
            FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
            UNION ALL
            SELECT format('TABLE %s', c.oid::regclass), c.relowner, c.relacl
            FROM member m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND m.objid = c.oid)
        SELECT DISTINCT object.name, a.grantee::regrole AS grantee
        FROM object CROSS JOIN LATERAL aclexplode(object.acl) a
        WHERE a.grantee NOT IN (0, object.owner)
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', o.name, o.grantee);
    END LOOP;
END
$$;

-- nextval() and its like
--
-- Sequences may have labels already.  Otherwise the first label does the same, so the
-- function is needed only here.

CREATE FUNCTION snowflake_attach()
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_attach'
LANGUAGE C;

SELECT snowflake_attach();

DROP FUNCTION snowflake_attach();
