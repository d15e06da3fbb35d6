-- Who has an advisory lock?
-- texts: classid, objid
-- name: converter
SELECT {process(Process)} || ' has the advisory lock of conversions.'
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted
AND (l.classid, l.objid, l.objsubid) = ($classid::oid, $objid::oid, 2)
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
