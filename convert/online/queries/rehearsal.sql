-- The columns that become bigint, and the table with which each is swapped.
-- name: swapped_together
SELECT col.relid, attnum, attname, newname, team
FROM col JOIN top ON top.relid = col.relid JOIN team ON team.relid = top.root
