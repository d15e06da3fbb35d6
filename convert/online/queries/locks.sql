-- Is session a an autovacuum worker that ends for others?
-- snippet: cancellable_autovacuum
coalesce(a.backend_type = 'autovacuum worker'
  AND position('(to prevent wraparound)' IN a.query) = 0, false)

-- Who holds a lock on relations for longer than $age, in a mode that is not among $modes?
-- texts: relations, age, modes
-- name: holder
SELECT format('%s has a lock on %s, in a transaction that is %s old.', {lock_owner},
  l.relation::regclass, date_trunc('milliseconds', clock_timestamp() - b.since))
FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
  LEFT JOIN LATERAL (
    SELECT p.* FROM pg_locks t JOIN pg_prepared_xacts p ON p.transaction = t.transactionid
    WHERE l.pid IS NULL AND t.pid IS NULL AND t.locktype = 'transactionid' AND t.granted
    AND t.virtualtransaction = l.virtualtransaction) p ON true
  CROSS JOIN LATERAL (SELECT coalesce(a.xact_start, p.prepared)) b(since)
WHERE l.locktype = 'relation' AND l.granted
AND l.database = {this_database}
AND l.pid IS DISTINCT FROM pg_backend_pid()
AND l.mode <> ALL ($modes::text[])
AND NOT {cancellable_autovacuum}
AND b.since < clock_timestamp() - $age::interval
AND l.relation = ANY ($relations::oid[])
ORDER BY b.since, (SELECT relkind FROM pg_class WHERE oid = l.relation) IN ('i', 'I') LIMIT 1

-- texts: relations
-- name: cancel_autovacuum
SELECT pg_cancel_backend(a.pid)
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'relation' AND l.granted
AND l.database = {this_database}
AND {cancellable_autovacuum}
AND l.mode = 'ShareUpdateExclusiveLock'
AND l.relation = ANY ($relations::oid[])

-- Does somebody wait for this session?
-- name: waiter
SELECT FROM pg_locks
WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)) LIMIT 1
