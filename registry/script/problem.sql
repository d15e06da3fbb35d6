        -- What keeps the functions of the registry from being called, or NULL.  Servers ask it,
        -- too, before they call one.
        SELECT CASE
            WHEN n.oid IS NULL THEN 'no schema'
            WHEN NOT o.rolsuper THEN 'schema'
            WHEN NOT EXISTS (SELECT FROM pg_extension e
                             WHERE e.extname = 'snowflake_registry' AND e.extnamespace = n.oid) THEN 'no extension'
            WHEN (SELECT count(*) FROM pg_extension e
                  JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
                      AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
                  JOIN pg_proc p ON p.oid = d.objid AND p.pronamespace = n.oid
                  WHERE e.extname = 'snowflake_registry'
                  AND p.proname IN ('get_grant', 'extend_grant', 'return_grant',
                                    'get_ranges', 'get_floors', 'return_ranges')) < 6
            OR EXISTS (SELECT FROM pg_extension e
                       JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                       LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                       LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                       JOIN pg_roles f ON f.oid IN (e.extowner, p.proowner, c.relowner) AND NOT f.rolsuper
                       WHERE e.extname = 'snowflake_registry') THEN 'objects'
        END
        FROM (SELECT) here
        LEFT JOIN pg_namespace n ON n.nspname = 'snowflake_registry'
        LEFT JOIN pg_roles o ON o.oid = n.nspowner
