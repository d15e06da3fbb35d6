--
-- What the catalogs say about the extension
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_keys;
RESET client_min_messages;

-- what the catalog says about the functions
SELECT oid::regprocedure::text AS function, provolatile, proparallel, proisstrict, prorettype::regtype
FROM pg_proc
WHERE oid IN (SELECT objid FROM pg_depend
              WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
              AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_keys'))
ORDER BY oid::regprocedure::text COLLATE "C";
-- and all of it has comments (since 17, row types of views are members, too)
SELECT classid::regclass, objid
FROM pg_depend d
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_keys')
AND classid <> 'pg_type'::regclass
AND obj_description(objid, classid::regclass::name) IS NULL;
