        -- What keeps the functions of the registry from being called, or NULL.  Servers ask it,
        -- too, before they call one.
        SELECT CASE
            WHEN n.oid IS NULL THEN 'no schema'
            WHEN NOT o.rolsuper THEN 'schema'
            WHEN e.oid IS NULL THEN 'no extension'
            WHEN (SELECT count(*) FROM pg_proc p
                  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                      AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  WHERE p.proname IN ('get_grant', 'extend_grant', 'return_grant',
                                      'get_ranges', 'get_floors', 'return_ranges')
                  AND p.pronamespace = n.oid) < 6
            OR EXISTS (SELECT FROM (SELECT e.extowner
                                    UNION
                                    SELECT p.proowner FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
                                    WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e' AND d.classid = 'pg_proc'::regclass
                                    UNION
                                    SELECT c.relowner FROM pg_depend d JOIN pg_class c ON c.oid = d.objid
                                    WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e' AND d.classid = 'pg_class'::regclass
                                   ) x(owner)
                       JOIN pg_roles f ON f.oid = x.owner AND NOT f.rolsuper) THEN 'objects'
        END
        FROM (SELECT) here
        LEFT JOIN pg_namespace n ON n.nspname = 'snowflake_registry'
        LEFT JOIN pg_roles o ON o.oid = n.nspowner
        LEFT JOIN pg_extension e ON e.extname = 'snowflake_registry' AND e.extnamespace = n.oid
