-- Which columns might hold a key without a foreign key.  The names of tables and columns are
-- compared as words in lower case, with _ between them, and without a number at the end.

-- snippet: words(name)
lower(regexp_replace(regexp_replace(regexp_replace({name}, '(.)_?[[:digit:]]+$', E'\\1'),
  E'([[:lower:][:digit:]])([[:upper:]])', E'\\1_\\2', 'g'), '[^[:alnum:]_]+', '_', 'g'))

-- The ends of words: all of them, those without the first one, and so on to the last one.
-- snippet: ends(words)
(SELECT array_to_string((string_to_array({words}, '_'))[i:], '_')
 FROM generate_series(1, cardinality(string_to_array({words}, '_'))) i)

-- What is left of a name without what says that it holds a key.
-- snippet: base(words)
regexp_replace(regexp_replace({words}, '^(id|fk)_', ''),
  '(.)_?(id|uid|fk|oid)$|(.)_(no|nr|num|ref|key|pk)$', E'\\1\\3')

-- Names of numbers that count, measure, or order, or say of which kind something is.
-- snippet: is_number(words)
{words} ~ ('(^|_)(amount|count|digits|index|left|len|length|level|number|order|pages|position|price'
  '|priority|quantity|rank|right|score|sequence|size|sort|status|total|type|version|weight)s?$')

-- Tables by which a column can be named, with the number and the name of the key if it is
-- converted.
-- cte: named(number, relid, words, key_words, label)
SELECT n.number, n.relid, {words(n.relname)}, {words(n.key)}, n.label
FROM (
  SELECT t.key, r.oid, r.relname, t.attname, format('%I.%I', r.relname, t.attname)
  FROM target t JOIN pg_class r ON r.oid = t.relid
  WHERE t.is_root
  UNION ALL
  SELECT NULL, r.oid, r.relname, NULL, r.relname
  FROM pg_class r JOIN pg_index i ON i.indrelid = r.oid AND i.indisprimary AND i.indnkeyatts = 1
    JOIN pg_attribute a ON (a.attrelid, a.attnum) = (r.oid, i.indkey[0])
  WHERE r.relnamespace = $schema AND r.relkind IN ('r', 'p') AND NOT r.relispartition
  AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
  AND r.oid NOT IN (SELECT relid FROM target WHERE is_root)) n(number, relid, relname, key, label)

-- Their names, also without the first word, and in the singular.
-- cte: name_of(number, relid, label, word, whole, plain, singular)
SELECT DISTINCT ON (n.word, d.number IS NULL, d.relid) d.number, d.relid, d.label, n.word, p.whole,
  n.word = d.words, n.word !~ '[^isu]s$' OR n.word ~ '(news|series|species)$'
FROM named d
  CROSS JOIN LATERAL (VALUES (d.words, true), (regexp_replace(d.words, '^[^_]+_', ''), false))
    p(words, whole)
  CROSS JOIN LATERAL (VALUES (p.words), (regexp_replace(p.words, 'ies$', 'y')),
    (regexp_replace(p.words, '(s|x|ch|sh|z)es$', E'\\1')),
    (regexp_replace(p.words, '([^s])s$', E'\\1')),
    (regexp_replace(p.words, 'people$', 'person'))) n(word)
WHERE length(n.word) > 1
ORDER BY n.word, d.number IS NULL, d.relid, p.whole DESC

-- The columns of the schema.
-- cte: worded(relid, attnum, attname, words) materialized
SELECT a.attrelid, a.attnum, a.attname, {words(a.attname)}
FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid
WHERE r.relnamespace = $schema AND r.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped

-- The word that all columns of a table begin with, as in rc_id, rc_user, and rc_page.
-- cte: prefix(relid, prefix)
SELECT relid, min(split_part(words, '_', 1)) || '_'
FROM worded
GROUP BY relid
HAVING count(*) > 1 AND count(DISTINCT split_part(words, '_', 1)) = 1
AND bool_and(strpos(words, '_') > 0)

-- Those that might hold a key, of types that hold small ones: nothing generates their values, and
-- nothing widens them; with the number of columns of the primary key, in it.
-- cte: narrow(relid, attnum, attname, table_name, words, is_integer, key_columns)
SELECT a.attrelid, a.attnum, a.attname, r.relname, w.words,
  a.atttypid IN ('int2'::regtype, 'int4'::regtype) AND a.attgenerated = '', i.indnkeyatts
FROM worded w JOIN pg_class r ON r.oid = w.relid
  JOIN {attribute(a, w)}
  JOIN small_type y ON (y.relid, y.attnum) = (a.attrelid, a.attnum) AND NOT y.is_array
  LEFT JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (a.attrelid, a.attnum)
  LEFT JOIN pg_index i ON i.indrelid = r.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)
WHERE a.attidentity = ''
AND NOT coalesce(pg_get_expr(f.adbin, f.adrelid) ~* 'nextval[(]', false)

-- What the names of these columns say, as a number: 3 if a name says whose key it is, 2 if it is
-- like one, 1 if it has a part of such a one, -1 if it is that of something else, and -2 if it is
-- that of its own table's key, to which the application gives values.  A single word that is the
-- name of a table, but says nothing of a key, may as well mean something else.
-- name: columns
WITH split AS MATERIALIZED (
  SELECT n.*, s.short, {base(s.short)} AS base, {base(n.words)} AS long_base,
    n.words ~ '.id$|_fk$|^(id|fk)_' AS is_id
  FROM narrow n LEFT JOIN prefix p USING (relid) CROSS JOIN LATERAL (
    SELECT CASE WHEN starts_with(n.words, p.prefix) AND n.words <> p.prefix || 'id'
      THEN substr(n.words, length(p.prefix) + 1) ELSE n.words END) s(short)),
 foreign_key AS (SELECT {words(attname)} AS words FROM target WHERE NOT is_key),
 name_end AS MATERIALIZED (SELECT * FROM name_of n CROSS JOIN LATERAL {ends(n.word)} e(part)),
 key_name AS MATERIALIZED (SELECT * FROM named WHERE key_words <> 'id'),
 matched(relid, attnum, number, label, rank, clear, part) AS (
-- the name of the key, or that with others before it,
  SELECT s.relid, s.attnum, d.number, d.label, CASE WHEN d.key_words = s.words THEN 1 ELSE 3 END,
    s.words ~ '_', false
  FROM split s CROSS JOIN LATERAL {ends(s.words)} e(part) JOIN key_name d ON d.key_words = e.part
  WHERE d.relid <> s.relid AND (d.key_words = s.words OR d.key_words ~ '_|[^_]id$')
  UNION ALL
-- that of the table, or its end,
  SELECT s.relid, s.attnum, n.number, n.label, CASE WHEN n.word IN (s.base, s.long_base)
      THEN 2 ELSE 3 END, n.whole AND (NOT n.plain OR s.words ~ '_'), NOT n.whole
  FROM split s CROSS JOIN LATERAL {ends(s.long_base)} e(part) JOIN name_of n ON n.word = e.part
  WHERE s.is_id OR n.singular AND n.number IS NOT NULL AND n.relid <> s.relid
  UNION ALL
-- or what the name of the table ends with.
  SELECT s.relid, s.attnum, n.number, n.label, 4, false, NOT n.whole
  FROM split s JOIN name_end n ON n.part = s.base
  WHERE s.is_id OR n.singular AND n.number IS NOT NULL),
 told AS (
  SELECT DISTINCT ON (s.relid, s.attnum) s.*, m.number AS key, m.label, m.rank, m.clear,
    NOT s.is_id AND {is_number(s.words)} AS is_number,
    s.key_columns > 1 AND s.words = 'id'
      OR s.short ~ '^(author|creator|owner|parent)(_id)?$|ed_?by$'
      OR s.words <> 'id' AND s.words IN (SELECT words FROM foreign_key) AS is_like
  FROM split s LEFT JOIN matched m ON (m.relid, m.attnum) = (s.relid, s.attnum)
  ORDER BY s.relid, s.attnum, m.rank, m.number IS NULL, m.part, m.label COLLATE "C")
SELECT t.relid, t.attnum,
  CASE WHEN t.key_columns = 1
      AND (t.words = 'id' OR {words(t.table_name)} ~ ('(^|_)' || t.base || 's?$')) THEN -2
    WHEN t.is_number OR t.rank < 3 AND t.key IS NULL THEN -1
    WHEN t.key IS NOT NULL AND (t.is_id OR t.rank < 3 AND t.clear) THEN 3
    WHEN t.is_id AND p.attname IS NOT NULL THEN 3
    WHEN t.is_like THEN CASE WHEN t.words = 'id' THEN 2 ELSE 3 END
    WHEN t.words ~ '_id$|^id_' THEN 2 WHEN t.is_id OR t.rank IS NOT NULL THEN 1 ELSE 0 END
    AS strength, t.is_id::int AS is_id, t.is_integer::int AS is_integer,
  EXISTS (SELECT FROM pg_partitioned_table k
          WHERE k.partrelid = t.relid AND t.attnum = ANY (k.partattrs))::int AS is_fixed,
  t.key, CASE WHEN t.words = 'id' THEN 'its name is id'
    WHEN t.is_number THEN 'its name is that of a number or kind'
    WHEN t.rank < 3 THEN format('its name is that of %s', t.label)
    WHEN t.key IS NOT NULL THEN format('its name ends like that of %s', t.label)
    WHEN t.is_like THEN 'its name is that of a reference'
    WHEN t.is_id THEN 'its name ends in id' END AS by_name,
  CASE WHEN t.is_id AND p.attname IS NOT NULL THEN p.attname END AS pair
 FROM told t LEFT JOIN LATERAL (
    SELECT w.attname FROM worded w
    WHERE w.relid = t.relid AND w.words IN (t.base || '_type', t.base || '_class',
      t.base || '_kind', t.base || '_table', t.base || '_model')
    ORDER BY w.attnum LIMIT 1) p ON true
 ORDER BY t.relid, t.attnum
