-- Who has the lock of conversions in this database?
-- texts: subid
-- name: converter
SELECT {process(Process)} || ' converts.'
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'object' AND l.granted
AND l.classid = 'pg_extension'::regclass AND l.objsubid = $subid::int
AND l.objid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_convert')
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
