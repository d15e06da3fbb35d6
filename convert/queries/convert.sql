-- What a conversion of a schema does, in numbers.
-- name: summary
SELECT count(*) FILTER (WHERE is_root AND gets_ids),
  count(*) FILTER (WHERE change = 'widen' AND attinhcount = 0),
  count(DISTINCT relid) FILTER (WHERE change = 'widen' AND attinhcount = 0),
  (SELECT count(*) FROM seq WHERE replaced AND owned
   AND (is_identity OR oid NOT IN (SELECT oid FROM seq_user)))
FROM target
