-- Tables, each with all that are below it.
-- cte: below(root, relid)
SELECT relid, relid FROM target
UNION
SELECT b.root, i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.relid

-- What INSERT into a table may run: what belongs to it, to those below it, and to types of theirs,
-- with the functions, operators and types that this depends on.
-- cte: running(root, classid, objid)
SELECT root, 'pg_class'::regclass::oid, relid FROM below
UNION
SELECT r.root, n.classid, n.objid
FROM running r CROSS JOIN LATERAL (
  SELECT d.classid, d.objid FROM pg_depend d
  WHERE (d.refclassid, d.refobjid) = (r.classid, r.objid) AND d.deptype IN ('a', 'i')
  AND r.classid = ANY ('{pg_class,pg_type}'::regclass[])
  UNION ALL
  SELECT d.refclassid, d.refobjid FROM pg_depend d
  WHERE (d.classid, d.objid) = (r.classid, r.objid)
  AND d.refclassid = ANY ('{pg_proc,pg_operator,pg_type}'::regclass[])
) n(classid, objid)

-- Code in it of roles that must not get the rights of the owner, and casts of their types.
-- cte: code_of_others(relid, who, what)
SELECT r.root, u.who, {describe_object(r)}
FROM running r LEFT JOIN pg_proc p ON {is_object(r, pg_proc, p.oid)}
  LEFT JOIN pg_type y ON {is_object(r, pg_type, y.oid)}
  JOIN untrusted u ON u.oid = coalesce(p.proowner, y.typowner)

-- The tables that get rows.  Those of other owners, which have triggers of their own, and
-- foreign tables do not, nor does a table that has one of these below it, or code of others.
-- cte: tried(relid, name)
SELECT r.oid, {qualified(r)}
FROM pg_class r
WHERE r.oid IN (SELECT relid FROM target WHERE change <> 'cannot')
AND r.relkind IN ('r', 'p') AND NOT r.relispartition
AND NOT EXISTS (
  SELECT FROM below b JOIN pg_class p ON p.oid = b.relid JOIN pg_class k ON k.oid = $tables[1]
  WHERE b.root = r.oid AND (p.relowner <> k.relowner OR p.relkind = 'f'))
AND r.oid NOT IN (SELECT relid FROM code_of_others)

-- Their columns that hold keys, with the number of the key, or the one behind the last for a
-- column that is widened because of its name.
-- cte: held(relid, attnum, attname, is_key, is_root, type, number, own)
SELECT t.relid, t.attnum, t.attname, t.is_key, t.is_root, format_type(t.typid, NULL),
  coalesce(t.key, cardinality($tables) + 1),
  NOT t.is_key AND $tables[t.key] IS NOT DISTINCT FROM t.relid
FROM target t JOIN tried USING (relid)

-- The other tables that a table references, or inherits its key from, directly or through others.
-- It has more of them than any of these has, unless that one references it, too.
-- cte: ancestor(relid, parent)
SELECT relid, $tables[number] FROM held WHERE $tables[number] <> relid
UNION
SELECT a.relid, $tables[h.number]
FROM ancestor a JOIN held h ON h.relid = a.parent
WHERE $tables[h.number] <> a.relid

-- One column of each unique index that has no new key gets another value than the copied row.
-- cte: varied(relid, attnum)
SELECT DISTINCT ON (i.indexrelid) i.indrelid, a.attnum
FROM tried x JOIN pg_index i ON i.indrelid = x.relid AND i.indisunique
  CROSS JOIN LATERAL (SELECT (i.indkey::int2[])[0:i.indnkeyatts - 1]) k(attnums)
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum > 0 AND a.attgenerated = ''
    AND (a.attnum = ANY (k.attnums)
         OR EXISTS (SELECT FROM pg_depend d
                    WHERE {is_object(d, pg_class, i.indexrelid)}
                    AND (d.refclassid, d.refobjid, d.refobjsubid)
                      = ('pg_class'::regclass, a.attrelid, a.attnum)))
  JOIN pg_type y ON y.oid = a.atttypid AND (y.typcategory IN ('S', 'N', 'D')
                                            OR y.oid = 'uuid'::regtype)
WHERE NOT EXISTS (SELECT FROM held h WHERE h.relid = x.relid AND NOT h.own
                  AND h.attnum = ANY (k.attnums))
ORDER BY i.indexrelid,
  EXISTS (SELECT FROM pg_constraint c WHERE c.contype = 'f' AND c.conrelid = x.relid
          AND a.attnum = ANY (c.conkey)), y.typcategory <> 'S', a.attnum

-- All columns, with the expressions for INSERT and UPDATE.  These are evaluated with the search
-- path of the caller, as are triggers, so they name schemas.  r is the copied row; $1 and $2 are
-- the new keys of this row and the other one, and $3 is the number of the row.  What a sequence or
-- a generator feeds is not given, so copies have numbers that nobody else gets: triggers insert
-- rows, too.
-- cte: expression(relid, attnum, name, given, needed, updatable, inserted, updated)
SELECT a.attrelid, a.attnum, quote_ident(a.attname),
  NOT (a.attidentity <> '' OR a.atthasdef)
    OR CASE WHEN h.relid IS NOT NULL THEN NOT h.is_key
      ELSE v.relid IS NULL
        OR (a.attrelid, a.attnum) NOT IN (SELECT relid, attnum FROM feeding) END,
  h.relid IS NOT NULL OR a.attnotnull AND NOT a.atthasdef AND a.attidentity = '',
  a.attidentity <> 'a',
  CASE WHEN NOT h.own AND NOT h.is_root
    THEN format('coalesce((($1::pg_catalog.int8[])[%s])::%s, r.%I)', h.number, h.type, a.attname)
    WHEN v.relid IS NULL AND h.is_root IS NOT TRUE THEN format('r.%I', a.attname)
    WHEN y.typcategory = 'S' THEN format('pg_catalog.left(pg_catalog.concat(pg_catalog.substr('
      'pg_catalog.md5(pg_catalog.random()::pg_catalog.text), 1, 8), r.%I), %s)::%s', a.attname,
      CASE WHEN a.atttypmod > 4 THEN a.atttypmod - 4 ELSE 1000000 END,
      format_type(a.atttypid, a.atttypmod))
    WHEN y.typcategory = 'U' THEN 'pg_catalog.gen_random_uuid()'
    ELSE format('(SELECT %s OPERATOR(pg_catalog.+) ($3::pg_catalog.int4%s) FROM %s u)::%s',
      format(CASE WHEN h.is_root THEN 'coalesce(pg_catalog.max(u.%I), 0)'
        ELSE 'pg_catalog.max(u.%I)' END, a.attname),
      CASE y.typcategory WHEN 'D' THEN ' OPERATOR(pg_catalog.*) pg_catalog.interval ''1 day''' END,
      x.name, format_type(a.atttypid, a.atttypmod)) END,
  CASE WHEN NOT h.is_key THEN format('coalesce(((%s::pg_catalog.int8[])[%s])::%s, r.%I)',
      CASE WHEN h.own THEN '$2' ELSE '$1' END, h.number, h.type, a.attname)
    ELSE format('r.%I', a.attname) END
FROM tried x JOIN pg_attribute a ON a.attrelid = x.relid AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attgenerated = ''
  JOIN pg_type y ON y.oid = a.atttypid
  LEFT JOIN held h ON (h.relid, h.attnum) = (a.attrelid, a.attnum)
  LEFT JOIN varied v ON (v.relid, v.attnum) = (a.attrelid, a.attnum)

-- The key of a table, and where its rows are found: by the key, or by their place.
-- cte: place(relid, number, condition, location, key)
SELECT x.relid, t.key,
  CASE WHEN t.relid IS NULL
    THEN 'pg_catalog.concat(%1$s.tableoid, %1$s.ctid) OPERATOR(pg_catalog.=) %2$s'
    ELSE format('%%1$s.%s OPERATOR(pg_catalog.=) (%%2$s::pg_catalog.int8)::%s',
      replace(quote_ident(t.attname), '%', '%%'), format_type(t.typid, NULL)) END,
  coalesce('n.' || quote_ident(t.attname), 'pg_catalog.concat(n.tableoid, n.ctid)'),
  quote_ident(t.attname)
FROM tried x LEFT JOIN target t ON t.relid = x.relid AND t.is_root

-- For each table, twice: the numbers of its key and of those that it references, and the statements
-- that insert, compare and change rows.  The first inserts all columns of the row with the greatest
-- key, or of any row; the second those that are needed, so that others have the values that
-- defaults and triggers give them.  Two rows are compared by the text of their other columns.
-- name: trials
SELECT format('table %s', x.name) AS object, p.number AS key,
  (SELECT array_agg(h.number) FROM held h
   WHERE h.relid = x.relid AND h.number IS DISTINCT FROM p.number
   AND h.number <= cardinality($tables)) AS keys,
  format('INSERT INTO %s AS n %s RETURNING %s', x.name,
    CASE WHEN bool_or(e.given)
      THEN format('(%s) OVERRIDING SYSTEM VALUE SELECT %s FROM (VALUES (1)) one %s JOIN '
        '(SELECT * FROM %s r%s LIMIT 1) r ON true',
        string_agg(e.name, ', ' ORDER BY e.attnum) FILTER (WHERE e.given),
        string_agg(e.inserted, ', ' ORDER BY e.attnum) FILTER (WHERE e.given),
        CASE WHEN v.complete THEN 'INNER' ELSE 'LEFT' END, x.name,
        ' ORDER BY r.' || p.key || ' DESC NULLS LAST')
      ELSE 'DEFAULT VALUES' END, p.location) AS insert,
  (SELECT format('SELECT v.name, (v.a OPERATOR(pg_catalog.=) v.b)::pg_catalog.int4 AS equal '
      'FROM %s a, %s b, LATERAL (VALUES %s) v(name, a, b) '
      'WHERE %s AND %s AND v.a IS NOT NULL AND v.b IS NOT NULL', x.name, x.name,
      string_agg(format('(%1$L, a.%2$I::pg_catalog.text, b.%2$I::pg_catalog.text)',
        format('column %I of table %s', a.attname, x.name), a.attname), ', ' ORDER BY a.attnum),
      format(p.condition, 'a', '$3'), format(p.condition, 'b', '$4'))
   FROM pg_attribute a
   WHERE a.attrelid = x.relid AND a.attnum > 0 AND NOT a.attisdropped
   AND (a.attrelid, a.attnum) NOT IN (SELECT relid, attnum FROM held)
   HAVING count(*) > 0) AS compare,
  (SELECT format('UPDATE %s AS r SET %s WHERE %s', x.name,
      string_agg(format('%s = %s', u.name, u.updated), ', ' ORDER BY u.attnum),
      format(p.condition, 'r', '$3'))
   FROM expression u WHERE u.relid = x.relid AND u.updatable
   HAVING count(*) > 0) AS update
FROM tried x JOIN place p USING (relid) CROSS JOIN (VALUES (true), (false)) v(complete)
  JOIN expression e ON e.relid = x.relid AND (v.complete OR e.needed)
GROUP BY x.relid, x.name, p.number, p.condition, p.location, p.key, v.complete
ORDER BY (SELECT count(*) FROM ancestor a WHERE a.relid = x.relid), x.name COLLATE "C",
  v.complete DESC

-- Tables that get none because of that.
-- name: untried
SELECT format('table %s', r.oid::regclass) AS object,
  format('it is not rehearsed, because INSERT could run code of %s as its owner: %s', c.who,
    min(c.what COLLATE "C")) AS finding
FROM code_of_others c JOIN pg_class r ON r.oid = c.relid JOIN owner ON owner.oid = r.relowner
WHERE NOT r.relispartition
GROUP BY r.oid, c.who ORDER BY 1, 2

-- The sequences that give numbers to the rows that are inserted, by triggers, too.
-- cte: moved(oid, name, seqincrement, seqmax) materialized
SELECT c.oid, {qualified(c)}, s.seqincrement, s.seqmax
FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid JOIN owner ON owner.oid = c.relowner
WHERE (c.relnamespace = $schema
       OR c.oid IN (SELECT sequence FROM feeding JOIN tried USING (relid)))
AND c.oid NOT IN (SELECT sequence FROM sequence_kind)

-- Statements with which what they give from now on is rolled back, and is above all rows where the
-- application supplies keys.
-- name: sequences_to_move
SELECT command
FROM (SELECT 1, format('ALTER SEQUENCE %s INCREMENT %s', name, seqincrement) FROM moved
      UNION ALL
      SELECT 2, format('SELECT setval(%L, m.id) FROM %s s, (SELECT max(%I) FROM %s) m(id) '
        'WHERE m.id >= s.last_value AND m.id < %s', m.name, m.name, h.attname, x.name, m.seqmax)
      FROM moved m JOIN feeding f ON f.sequence = m.oid
        JOIN held h ON (h.relid, h.attnum) = (f.relid, f.attnum) AND h.is_root
        JOIN tried x ON x.relid = h.relid
      WHERE m.seqincrement > 0) c(step, command)
ORDER BY step

-- Tables whose triggers may be deferred.
-- name: deferrable_tables
SELECT DISTINCT tgrelid FROM pg_trigger WHERE tgdeferrable
