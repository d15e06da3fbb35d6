-- The rows of functions $1.  Who changes one has it until the end of its transaction.
-- parameters: text
-- name: lock_key_functions
SELECT FROM pg_proc WHERE oid = ANY ($1::oid[]) ORDER BY oid FOR NO KEY UPDATE
