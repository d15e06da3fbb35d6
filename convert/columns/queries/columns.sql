-- Which columns might hold a key without a foreign key.  The names of tables and columns are
-- compared as words in lower case, with _ between them, and without a number at the end.

-- snippet: words(name)
lower(regexp_replace(regexp_replace(regexp_replace({name}, '(.)_?[[:digit:]]+$', E'\\1'),
  E'([[:lower:][:digit:]])([[:upper:]])', E'\\1_\\2', 'g'), '[^[:alnum:]_]+', '_', 'g'))

-- The ends of words: all of them, those without the first one, and so on to the last one.
-- snippet: ends(words)
(SELECT array_to_string((string_to_array({words}, '_'))[i:], '_')
 FROM generate_series(1, cardinality(string_to_array({words}, '_'))) i)

-- snippet: last(words)
regexp_replace({words}, '^.*_', '')

-- Names that end in id, or begin with it, of which some are words that only look like that.
-- snippet: is_id(words)
({words} ~ '[^_]id$|_(id|fk|oid)$|^(id|fk)_'
 AND {words} !~ '(^|_)(void|grid|bid|mid|raid|said|solid|hybrid|fluid|liquid|kid|lid|rapid|squid)$'
 AND {words} !~ '(^|_)((un|pre|re)?paid|(in)?valid|(order|sort|row|scope|schema)_?id)$')

-- What is left of a name without what says that it holds a key.
-- snippet: base(words)
regexp_replace(regexp_replace({words}, '^(id|fk)_', ''),
  '(.)_?(id|uid|fk|oid)$|(.)_(no|nr|num|ref|key|pk)$', E'\\1\\3')

-- Names of numbers that count, measure, order, or say of which kind or in which state something
-- is: by the last word, the first one, or a part.
-- snippet: is_number(words)
({last({words})} = ANY (string_to_array(
   'accuracy active age amount amounts attempt attempts balance bit bits byte bytes categories '
   'category changed channel channels checksum class cnt code codes color colour column '
   'columns cost costs count counter counts crc created date day days default delay deleted '
   'depth disabled distance duration edits enabled epoch error errors expiration expire '
   'expires expiry files flag flags frequency grade hash height hidden hits hour hours iaid '
   'idx index interval items kind kinds lat latitude left len length level levels lft lifetime '
   'limit limits lines locked lon longitude major mask max maximum min minimum minor minute '
   'minutes mode modes modified month months ms msec namespace nb num number numbers offset '
   'option options order ordering ordinal pages patch percent percentage period periods phase '
   'pid points port ports pos position positions posts precision price prices prio priority '
   'private protocol public qty quality quantity random rank ranking rate rates rating ratio '
   'retries rgt right rows scale score scores sec second seconds secs seed seq sequence '
   'severity size sizes sort sorting speed stage stages state states stati status sum '
   'temperature threshold time timeout timestamp total totals tries tstamp ttl type types '
   'updated usage usec used users value values version versions views visible visits votes '
   'weight when width x y year years z zoom', ' '))
 OR {words} ~ '^(allow|allows|can|count|disable|enable|has|hide|is|max|min|nb|no_of|notify|num)_'
 OR {words} ~ '^(number_of|require|requires|show|total|use|uses)_|^time'
 OR {words} ~ '(color|count|date|flags?|height|index|interval|level|mode|number|order|period)$'
 OR {words} ~ '(priority|severity|size|state|status|time|type|width|_at|ed_on|_id)$')

-- Those that say of which kind or in which state something is may hold the keys of a table that has
-- the kinds or states.
-- snippet: is_kind(words)
{words} ~ '(category|class|code|color|kind|level|mode|model|priority|stage|state|status|type|unit)$'

-- Names of columns that say who did something, or which row is above this one, or it came from.
-- snippet: is_reference(words)
({last({words})} = ANY (string_to_array(
   'approver assignee author creator editor invitee inviter moderator owner parent poster receiver '
   'recipient reporter requester requestor responsible reviewer sender submitter supervisor '
   'uploader user usr', ' '))
 OR {words} ~ '(ed|written|taken|sent|done|made|given|seen|run)_?by$'
 OR {words} ~ '[[:alpha:]]ed_(from|to|into)$|s_to$')

-- Tables by which a column can be named, with the number and the name of the key if it is
-- converted.
-- cte: named(number, relid, words, key_words, label)
SELECT t.key, r.oid, {words(r.relname)}, {words(t.attname)},
  format('%I.%I', r.relname, t.attname)
FROM target t JOIN pg_class r ON r.oid = t.relid
WHERE t.is_root
UNION ALL
SELECT NULL, r.oid, {words(r.relname)}, NULL, r.relname
FROM pg_class r JOIN pg_index i ON i.indrelid = r.oid AND i.indisprimary AND i.indnkeyatts = 1
  JOIN pg_attribute a ON (a.attrelid, a.attnum) = (r.oid, i.indkey[0])
WHERE r.relnamespace = $schema AND r.relkind IN ('r', 'p') AND NOT r.relispartition
AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
AND r.oid NOT IN (SELECT relid FROM target WHERE is_root)

-- Their names, also without the first word, and in the singular.
-- cte: name_of(number, relid, label, word, whole, singular)
SELECT DISTINCT ON (n.word, d.number IS NULL, d.relid) d.number, d.relid, d.label, n.word, p.whole,
  n.word !~ '[^isu]s$' OR n.word ~ '(news|series|species)$'
FROM named d
  CROSS JOIN LATERAL (VALUES (d.words, true), (regexp_replace(d.words, '^[^_]+_', ''), false))
    p(words, whole)
  CROSS JOIN LATERAL (VALUES (p.words), (regexp_replace(p.words, 'ies$', 'y')),
    (regexp_replace(p.words, '(s|x|ch|sh|z)es$', E'\\1')),
    (regexp_replace(p.words, '([^s])s$', E'\\1')),
    (regexp_replace(p.words, 'people$', 'person'))) n(word)
WHERE length(n.word) > 1
ORDER BY n.word, d.number IS NULL, d.relid, p.whole DESC

-- The word that all columns of a table begin with, as in rc_id, rc_user, and rc_page.
-- cte: prefix(relid, prefix)
SELECT a.attrelid, min(split_part({words(a.attname)}, '_', 1)) || '_'
FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid
WHERE r.relnamespace = $schema AND r.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
GROUP BY a.attrelid
HAVING count(*) > 1 AND count(DISTINCT split_part({words(a.attname)}, '_', 1)) = 1
AND bool_and(strpos({words(a.attname)}, '_') > 0)

-- The smallints and integers of the schema that might hold a key: nothing generates their values,
-- and nothing widens them.  is_key is true for a primary key that is named id.
-- cte: narrow(relid, attnum, attname, table_name, words, table_words, is_key)
SELECT a.attrelid, a.attnum, a.attname, r.relname, {words(a.attname)}, {words(r.relname)},
  lower(a.attname) = 'id' AND EXISTS (
    SELECT FROM pg_index i WHERE i.indrelid = r.oid AND i.indisprimary
    AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)
FROM pg_class r JOIN pg_attribute a ON a.attrelid = r.oid
  LEFT JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (a.attrelid, a.attnum)
WHERE r.relnamespace = $schema AND r.relkind IN ('r', 'p') AND $tables <> '{}'
AND a.attnum > 0 AND NOT a.attisdropped AND a.attinhcount = 0
AND a.atttypid IN ('int2'::regtype, 'int4'::regtype)
AND a.attidentity = '' AND a.attgenerated = ''
AND NOT coalesce(pg_get_expr(f.adbin, f.adrelid) ~* 'nextval[(]', false)
AND NOT EXISTS (SELECT FROM pg_constraint c
                WHERE c.contype = 'f' AND c.conrelid = r.oid AND a.attnum = ANY (c.conkey))
AND NOT {of_extension(pg_class, r.oid)}
AND (a.attrelid, a.attnum) NOT IN (SELECT relid, attnum FROM target)

-- What the names of these columns say.
-- name: columns
WITH short AS (
  SELECT n.*, CASE WHEN starts_with(n.words, p.prefix) AND n.words <> p.prefix || 'id'
      THEN substr(n.words, length(p.prefix) + 1) ELSE n.words END AS short
  FROM narrow n LEFT JOIN prefix p USING (relid)),
 split AS MATERIALIZED (
  SELECT *, {base(short)} AS base, {is_id(words)} AS is_id, {is_number(words)} AS is_number,
    regexp_replace(regexp_replace(table_words, 'ies$', 'y'), '([^s])s$', E'\\1') AS of_table,
    {last({base(short)})} AS last
  FROM short),
 foreign_key AS (SELECT {words(attname)} AS words FROM target WHERE NOT is_key),
 split_end AS MATERIALIZED (SELECT * FROM split s CROSS JOIN LATERAL {ends(s.base)} e(part)),
 name AS MATERIALIZED (SELECT *, {last(word)} AS last FROM name_of),
 name_end AS MATERIALIZED (SELECT * FROM name n CROSS JOIN LATERAL {ends(n.word)} e(part)),
 key_name AS MATERIALIZED (SELECT * FROM named WHERE key_words <> 'id'),
 matched(relid, attnum, number, label, rank, part) AS (
-- the name of the key,
  SELECT s.relid, s.attnum, d.number, d.label, 1, false
  FROM split s JOIN key_name d ON d.key_words = s.words
  WHERE d.relid <> s.relid AND (s.is_id OR NOT s.is_number)
  UNION ALL
-- that of the table, or its end,
  SELECT s.relid, s.attnum, n.number, n.label, CASE WHEN n.word = s.base
      AND (s.is_id OR n.relid <> s.relid AND (NOT s.is_number OR strpos(s.base, '_') > 0
        OR n.whole AND {is_kind(s.base)})) THEN 2
    WHEN s.is_id THEN 5 WHEN NOT s.is_number THEN 6 END, NOT n.whole
  FROM split_end s JOIN name n ON n.word = s.part
  WHERE s.is_id OR n.singular AND n.number IS NOT NULL
  UNION ALL
-- that with the one of its own table before it,
  SELECT s.relid, s.attnum, n.number, n.label, 3, NOT n.whole
  FROM split s CROSS JOIN LATERAL unnest(ARRAY[s.of_table, s.table_words]) o(words)
    JOIN name n ON n.word = o.words || '_' || s.base AND n.singular AND n.number IS NOT NULL
  WHERE NOT s.is_number OR {is_kind(s.base)}
  UNION ALL
-- what the name of a table ends with,
  SELECT s.relid, s.attnum, n.number, n.label, CASE WHEN strpos(s.base, '_') > 0 OR s.is_id
      OR starts_with(n.word, s.of_table || '_') THEN 4 ELSE 6 END, NOT n.whole
  FROM split s JOIN name_end n ON n.part = s.base
  WHERE (s.is_id OR n.singular AND n.number IS NOT NULL)
  AND (s.is_id OR NOT s.is_number
       OR {is_kind(s.base)} AND (strpos(s.base, '_') > 0 OR starts_with(n.word, s.of_table || '_')))
  UNION ALL
-- and the name of the key with others before it; or only the last word.
  SELECT s.relid, s.attnum, d.number, d.label, 5, false
  FROM split s CROSS JOIN LATERAL {ends(s.words)} e(part) JOIN key_name d ON d.key_words = e.part
  WHERE d.key_words ~ '_|[^_]id$' AND d.relid <> s.relid
  UNION ALL
  SELECT s.relid, s.attnum, n.number, n.label, 7, NOT n.whole
  FROM split s JOIN name n ON n.last = s.last
  WHERE NOT s.is_id AND n.singular AND n.number IS NOT NULL
  AND s.is_number AND {is_kind(s.base)}),
 told AS (
  SELECT DISTINCT ON (s.relid, s.attnum) s.*, m.number AS key, m.label, m.rank
  FROM split s LEFT JOIN matched m ON (m.relid, m.attnum) = (s.relid, s.attnum)
    AND m.rank IS NOT NULL
  ORDER BY s.relid, s.attnum, m.rank + CASE WHEN m.number IS NULL THEN 2 ELSE 0 END, m.part,
    m.label COLLATE "C")
SELECT t.relid, t.attnum, format('%I.%I', t.table_name, t.attname) AS path,
  CASE WHEN t.is_number AND NOT t.is_id AND coalesce(t.rank, 7) = 7 THEN 1 ELSE 0 END AS is_number,
  CASE WHEN t.rank > 5 AND t.key IS NOT NULL THEN 1 ELSE 0 END AS is_weak,
  CASE WHEN t.rank < 6 AND t.key IS NULL THEN 1 ELSE 0 END AS is_other,
  CASE WHEN t.is_key THEN 1 ELSE 0 END AS is_key,
  CASE WHEN t.is_id THEN 1 ELSE 0 END AS is_id,
  CASE WHEN EXISTS (SELECT FROM pg_partitioned_table k
                    WHERE k.partrelid = t.relid AND t.attnum = ANY (k.partattrs))
    THEN 1 ELSE 0 END AS is_fixed,
  t.key, CASE WHEN t.rank = 7 THEN format('its name ends like that of %s', t.label)
    WHEN t.key IS NOT NULL THEN format('its name is that of %s', t.label)
    WHEN t.is_id AND t.label IS NULL THEN 'its name ends in id'
    WHEN NOT t.is_number AND t.words <> 'id' AND t.words IN (SELECT words FROM foreign_key)
      THEN 'foreign keys have its name'
    WHEN NOT t.is_number AND {is_reference(t.short)} THEN 'its name is that of a reference' END
    AS by_name,
  CASE WHEN t.words ~ '^[^_]+_(id|uid|fk|oid|no|nr|num|ref|key|pk)$' THEN t.words
    ELSE regexp_replace(t.words, '^[^_]+_(.)', E'\\1') END AS core,
  CASE WHEN t.is_id AND p.attname IS NOT NULL THEN p.attname END AS pair
 FROM told t LEFT JOIN LATERAL (
    SELECT a.attname FROM pg_attribute a
    WHERE a.attrelid = t.relid AND a.attnum > 0 AND NOT a.attisdropped
    AND {words(a.attname)} IN (t.base || '_type', t.base || '_class', t.base || '_kind',
      t.base || '_table', t.base || '_model')
    ORDER BY a.attnum LIMIT 1) p ON true
 ORDER BY t.relid, t.attnum

-- The names by which texts can name a table with a key, without what separates words.
-- name: table_names
SELECT coalesce(array_agg(DISTINCT replace(word, '_', '')), '{}') FROM name_of
WHERE number IS NOT NULL
