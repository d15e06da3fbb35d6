-- The oldest transaction that began more than $age ago.
-- texts: age
-- name: oldest_transaction
SELECT format('%s is in a transaction that is %s old.', {process(Process)},
  date_trunc('milliseconds', clock_timestamp() - xact_start))
FROM {other_sessions}
AND backend_type <> 'autovacuum worker' AND backend_xmin IS NOT NULL
AND xact_start < clock_timestamp() - $age::interval
ORDER BY xact_start LIMIT 1
