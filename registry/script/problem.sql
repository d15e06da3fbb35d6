        -- What keeps the functions of the registry from being called, or NULL.  Servers ask it,
        -- too, before they call one.
        SELECT CASE
            WHEN n.oid IS NULL THEN 'no schema'
            WHEN NOT o.rolsuper THEN 'schema'
            WHEN e.oid IS NULL THEN 'no extension'
            WHEN m.called < 8
            OR EXISTS (SELECT FROM unnest(m.owners || e.extowner) x(owner)
                       JOIN pg_roles f ON f.oid = x.owner AND NOT f.rolsuper) THEN 'objects'
        END
        FROM (SELECT) here
        LEFT JOIN pg_namespace n ON n.nspname = 'snowflake_registry'
        LEFT JOIN pg_roles o ON o.oid = n.nspowner
        LEFT JOIN pg_extension e ON e.extname = 'snowflake_registry' AND e.extnamespace = n.oid
        CROSS JOIN LATERAL
            (SELECT count(*) FILTER (WHERE x.is_called) AS called, array_agg(DISTINCT x.owner) AS owners
             FROM (SELECT p.proowner,
                          p.pronamespace = n.oid AND p.proname IN ('get_grant', 'extend_grant', 'return_grant',
                                                                   'get_ranges', 'get_range_names', 'get_floors', 'report_ranges', 'return_ranges')
                   FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
                   WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e' AND d.classid = 'pg_proc'::regclass
                   UNION ALL
                   SELECT c.relowner, false
                   FROM pg_depend d JOIN pg_class c ON c.oid = d.objid
                   WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e' AND d.classid = 'pg_class'::regclass
                  ) x(owner, is_called)) m
