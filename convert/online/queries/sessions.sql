-- Those of the swap, if the table of the first key has been swapped, without the last step.
-- name: sessions
SELECT sessions FROM swapped

-- When the columns of the table were copied, at the latest.
-- name: copied_at
SELECT k.xmin
FROM pg_constraint k JOIN tab ON relid = conrelid
WHERE k.contype = 'c' AND k.convalidated
AND {is_copy_check(k.conname)}
ORDER BY age(k.xmin) LIMIT 1

-- Who has a snapshot that may be older than the copies of the columns?  $transaction is an ID
-- as old as those.  The last column says whether a session can import the snapshot of another one.
--
-- A snapshot is not older because it has an older xmin: any transaction of the server that is open
-- for long holds that back.  So of sessions, those are waited for that were there at the first
-- look, and any that may have imported a snapshot since then, because one was exported at this
-- look or the one before, or because no transaction is open that would explain the xmin.  Of a
-- standby nothing else is known.
-- texts: transaction
-- name: old_snapshots
SELECT key, format(CASE WHEN holder IS NULL
      THEN '%s has a snapshot that is older than the copy of the columns.'
    ELSE '%s may have a snapshot that is older than the copy of the columns, until %s has ended.' END,
    who, holder) AS sentence,
  EXISTS (SELECT FROM pg_ls_dir('pg_snapshots'))::int AS exported,
  (age(xmin) > ALL (SELECT age(backend_xid) FROM pg_stat_activity WHERE backend_xid IS NOT NULL
                    UNION ALL SELECT age(transaction) FROM pg_prepared_xacts))::int AS unexplained
FROM (SELECT format('%s %s', pid, extract(epoch FROM xact_start)), {process(Process)}, backend_xmin
      FROM {other_sessions}
      AND backend_type <> 'autovacuum worker'
      AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
      UNION ALL
      SELECT NULL, {process(Process)}, backend_xmin FROM pg_stat_activity
      WHERE datname IS NULL AND backend_type = 'walsender'
      UNION ALL
      SELECT NULL, format('Replication slot "%s"', slot_name), xmin FROM pg_replication_slots
      WHERE coalesce(database = current_database(), true)) s(key, who, xmin)
  LEFT JOIN LATERAL (
    SELECT {process(process)} FROM pg_stat_activity WHERE backend_xid = s.xmin
    UNION ALL
    SELECT format('prepared transaction %L of %s', gid, owner) FROM pg_prepared_xacts
    WHERE transaction = s.xmin) h(holder) ON key IS NULL
WHERE age(xmin) >= age($transaction::xid) ORDER BY age(xmin) DESC, key

-- Those of a list that are still there.
-- texts: sessions
-- name: old_sessions
SELECT format('%s sessions are older than the swap, and may have prepared statements: %s.',
  count(*), string_agg({process(process)}, ', ' ORDER BY pid))
FROM {other_sessions}
AND backend_type = 'client backend'
AND pid::text = ANY (string_to_array($sessions, ' '))
AND starts_with($sessions, extract(epoch FROM pg_postmaster_start_time())::text)
HAVING count(*) > 0

-- name: present_sessions
SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
  string_agg(pid::text, ' ' ORDER BY pid))
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend'
