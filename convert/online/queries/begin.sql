-- Who has the advisory lock with the keys $1 and $2?
-- parameters: text, text
-- name: converter
SELECT {process(Process)} || ' has the advisory lock of conversions.'
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted
AND (l.classid, l.objid, l.objsubid) = ($1::oid, $2::oid, 2)
AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
