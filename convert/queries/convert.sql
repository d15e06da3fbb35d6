-- What a conversion of a schema does, in numbers.
-- name: summary
SELECT count(*) FILTER (WHERE is_root AND gets_ids) AS keys,
  count(*) FILTER (WHERE change = 'widen' AND attinhcount = 0) AS columns,
  count(DISTINCT relid) FILTER (WHERE change = 'widen' AND attinhcount = 0) AS tables,
  (SELECT count(*) FROM seq WHERE replaced AND owned
   AND (is_identity OR oid NOT IN (SELECT oid FROM seq_user))) AS dropped
FROM target
