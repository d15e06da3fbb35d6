-- What to fill in table $object, and how much there is.
-- name: copied_columns
SELECT string_agg(format('%I = %I', newname, attname), ', ') AS assignments,
  string_agg(format('%I IS DISTINCT FROM %I', newname, attname), ' OR ') AS condition,
  pg_relation_size($object) / current_setting('block_size')::int AS pages
FROM col WHERE relid = $object

-- name: validation
SELECT format('ALTER TABLE %s %s', name, validate) FROM tab WHERE relid = $object

-- Who is further behind than some microseconds?
-- texts: microseconds
-- name: standby_behind
SELECT format('Standby or subscriber %s is %s behind.', application_name, lag)
FROM pg_stat_replication
  CROSS JOIN LATERAL (SELECT greatest(replay_lag,
    CASE WHEN replay_lsn < sent_lsn THEN clock_timestamp() - reply_time END)) l(lag)
WHERE replay_lsn IS NOT NULL AND extract(epoch FROM lag) * 1000000 > $microseconds::bigint
ORDER BY lag DESC LIMIT 1
