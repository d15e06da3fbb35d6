-- Who has the advisory lock of conversions?
-- texts: keys
-- name: converter
SELECT {process(Process)} || ' has the advisory lock of conversions.'
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted
AND l.objsubid = $keys::smallint
AND l.database = {this_database}
