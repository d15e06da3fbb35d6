-- Back from snowflake IDs to sequences, for all tables of a schema: rows get small
-- numbers in place of their snowflake IDs, and keys get sequences again.
--
--	psql -d DATABASE -v schema=public -f snowflake_undo.sql
--
-- A snowflake ID is unique in all tables.  So each bigint column that has one of them
-- has it because of that row, with a foreign key or without, and gets the row's number,
-- too.  Values of a column that differ still differ then: the IDs of tables that meet in
-- one, such as that of an audit log, are numbered together, and above its small numbers.
-- Columns are those of all tables of the database that have the same owners as
-- the keys.  IDs in columns of other types, such as text, stay.  For these and other
-- copies, the old and the new numbers are written to a file
-- snowflake_undo_DATABASE_SCHEMA_TIME.csv in the current directory, or to that of
-- -v map=FILE, which is replaced if it exists.
--
-- Triggers must not act on this, so it requires a superuser, or, since PostgreSQL 15,
-- SET on the parameter session_replication_role.  Code of the owners runs with the
-- rights of who calls it: let the owner do so unless you trust it.  It locks the tables
-- until the transaction ends.  Values up to 2147483647, or -v above=N, are those from
-- before the conversion, and stay.  Columns stay bigint.

\set ON_ERROR_STOP on
-- Each statement has to see what was committed before the locks.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL session_replication_role = replica;
SET LOCAL row_security = off;
\if :{?above}
\else
    \set above ''
\endif
SELECT set_config('snowflake_undo.schema', quote_ident(:'schema'), true) AS schema,
    set_config('snowflake_undo.above', :'above', true) AS above \gset undo_
CREATE TEMPORARY TABLE undone_key (
    relation regclass, attnum smallint, name text, key name, owner regrole,
    sequence text, increment bigint, taken bigint,
    no int GENERATED ALWAYS AS IDENTITY, numbered_with int, numbered boolean DEFAULT false) ON COMMIT DROP;
CREATE TEMPORARY TABLE changed_column (
    relation regclass, name text, attname name, has_id boolean DEFAULT false) ON COMMIT DROP;
CREATE TEMPORARY TABLE new_id (id bigint, of_key int) ON COMMIT DROP;
CREATE TEMPORARY TABLE renumbered (old bigint PRIMARY KEY, new bigint NOT NULL) ON COMMIT DROP;

-- Keys whose default generates snowflake IDs, or that of snowflake_compat.sql does.
INSERT INTO undone_key (relation, attnum, name, key, owner)
SELECT r.oid, a.attnum, format('%I.%I', n.nspname, r.relname), a.attname, r.relowner
FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
    JOIN pg_attribute a ON a.attrelid = r.oid
    JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (r.oid, a.attnum)
WHERE n.oid = current_setting('snowflake_undo.schema')::regnamespace
AND r.relkind IN ('r', 'p') AND a.attinhcount = 0 AND a.atttypid = 'int8'::regtype
AND EXISTS (
    SELECT FROM pg_depend d
        JOIN pg_proc p ON p.oid = d.refobjid
        LEFT JOIN pg_depend m ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid AND m.deptype = 'e'
        LEFT JOIN pg_extension e ON m.refclassid = 'pg_extension'::regclass AND e.oid = m.refobjid
    WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
    AND d.refclassid = 'pg_proc'::regclass
    AND (e.extname = 'snowflake' AND p.proname IN ('snowflake_nextval', 'snowflake_id')
         OR p.pronamespace = to_regnamespace('snowflake_default')
            AND pg_get_expr(f.adbin, f.adrelid) ~ 'nextval[(]''snowflake''::text[)]'));

-- Columns that might have IDs.  UPDATE runs code of the table's owner, so roles that
-- have nothing to do with this must not gain rights by it.
WITH RECURSIVE wide(typid) AS (
    SELECT 'int8'::regtype::oid
    UNION ALL
    SELECT y.oid FROM wide w JOIN pg_type y ON y.typbasetype = w.typid AND y.typtype = 'd')
INSERT INTO changed_column (relation, name, attname)
SELECT r.oid, format('%I.%I', n.nspname, r.relname), a.attname
FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
    JOIN pg_attribute a ON a.attrelid = r.oid
WHERE r.relkind IN ('r', 'p') AND r.relpersistence <> 't' AND n.nspname !~ '^pg_'
AND n.nspname <> 'information_schema' AND a.attnum > 0 AND NOT a.attisdropped
AND NOT r.relispartition AND a.attgenerated = '' AND a.attidentity <> 'a'
AND a.atttypid IN (SELECT typid FROM wide)
AND r.relowner IN (SELECT owner FROM undone_key);

-- Rows that are inserted meanwhile would keep their IDs.
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT name, relation IN (SELECT relation FROM undone_key) AS has_key
             FROM changed_column GROUP BY relation, name ORDER BY relation LOOP
        EXECUTE format('LOCK TABLE %s IN %s MODE', r.name,
                       CASE WHEN r.has_key THEN 'ACCESS EXCLUSIVE' ELSE 'SHARE ROW EXCLUSIVE' END);
    END LOOP;

    FOR r IN SELECT c.conrelid::regclass AS name, k.relation FROM pg_constraint c
                 JOIN undone_key k ON c.confrelid = k.relation AND k.attnum = ANY (c.confkey)
                 JOIN pg_class t ON t.oid = c.conrelid
             WHERE c.contype = 'f' AND t.relowner NOT IN (SELECT owner FROM undone_key) LOOP
        RAISE EXCEPTION 'table % references %, but belongs to another role', r.name, r.relation
            USING HINT = 'Nothing was changed. Give it the same owner, if you trust its owner.';
    END LOOP;
    FOR r IN SELECT g.tgrelid::regclass AS name FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
             WHERE g.tgname = '~snowflake_new' AND p.proname = 'snowflake_convert_copy'
             AND g.tgrelid IN (SELECT relation FROM changed_column) ORDER BY g.tgrelid LOOP
        RAISE EXCEPTION 'table % is being converted by snowflake_convert_online()', r.name
            USING HINT = 'Nothing was changed. Complete the conversion, or take it back with snowflake_convert_undo() for the table that it was begun for.';
    END LOOP;
    -- Partitions and children have triggers of their own.
    FOR r IN WITH RECURSIVE tree(oid) AS (
                 SELECT relation::oid FROM changed_column
                 UNION SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid)
             SELECT 'trigger' AS kind, g.tgname AS name, g.tgrelid::regclass AS relation
             FROM tree t JOIN pg_trigger g ON g.tgrelid = t.oid WHERE g.tgenabled IN ('A', 'R')
             UNION ALL
             SELECT 'rule', w.rulename, w.ev_class::regclass
             FROM tree t JOIN pg_rewrite w ON w.ev_class = t.oid WHERE w.ev_enabled IN ('A', 'R') LOOP
        RAISE EXCEPTION '% % of table % is enabled ALWAYS or REPLICA', r.kind, r.name, r.relation
            USING HINT = 'Nothing was changed. Disable it first.';
    END LOOP;
END
$$;

-- A sequence that the conversion kept is used again: it belongs to the key, or has the
-- name that it would have, and nothing else uses it.  Other tables might have numbers of
-- one that belongs to the key, so rows get numbers that it has not handed out.  After
-- ALTER SEQUENCE, nobody else can call nextval().
DO $$
DECLARE
    k record;
    found oid;
    base text;
    number text;
BEGIN
    FOR k IN SELECT u.*, r.relname, n.nspname FROM undone_key u
                 JOIN pg_class r ON r.oid = u.relation JOIN pg_namespace n ON n.oid = r.relnamespace
             ORDER BY u.relation, u.attnum LOOP
        k.sequence := pg_get_serial_sequence(k.name, k.key);
        base := concat_ws('_', k.relname, k.key);
        WHILE octet_length(base) > 55 LOOP
            base := left(base, -1);
        END LOOP;
        number := '';
        WHILE k.sequence IS NULL LOOP
            k.sequence := format('%I.%I', k.nspname, concat(base, '_seq', number));
            found := to_regclass(k.sequence);
            number := concat(coalesce(nullif(number, '')::int, 0) + 1);
            EXIT WHEN found IS NULL;
            IF (SELECT relkind FROM pg_class WHERE oid = found) <> 'S'
                OR EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_class'::regclass AND refobjid = found)
                OR EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = found
                           AND refclassid = 'pg_class'::regclass) THEN
                k.sequence := NULL;
            END IF;
        END LOOP;
        EXECUTE format('CREATE SEQUENCE IF NOT EXISTS %s', k.sequence);
        EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', k.sequence);
        EXECUTE format('ALTER SEQUENCE %s OWNER TO %s', k.sequence, k.owner);
        EXECUTE format('ALTER SEQUENCE %s AS bigint OWNED BY %s.%I', k.sequence, k.name, k.key);
        EXECUTE format('SELECT seqincrement, CASE WHEN seqincrement < 0 THEN greatest(seqstart, last_value)
                                                  WHEN is_called THEN last_value ELSE last_value - 1 END
                        FROM %1$s, pg_sequence WHERE seqrelid = %1$L::regclass', k.sequence)
            INTO k.increment, k.taken;
        UPDATE undone_key SET sequence = k.sequence, increment = k.increment, taken = k.taken, numbered_with = no
        WHERE (relation, attnum) = (k.relation, k.attnum);
    END LOOP;
END
$$;

DO $$
DECLARE
    above text := current_setting('snowflake_undo.above');
    extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'snowflake');
    first_id bigint;
    value bigint;
    keys int[];
    k record;
    c record;
BEGIN
    -- Without -v above, what looks like an ID of the first day is none.
    IF above = '' THEN
        above := '2147483647';
        EXECUTE format('SELECT %1$s.snowflake_lower_bound(%1$s.snowflake_timestamp(0) + interval ''1 day'')', extension)
            INTO first_id;
    END IF;
    FOR k IN SELECT * FROM undone_key ORDER BY relation LOOP
        EXECUTE format('SELECT max(%1$I) FROM %2$s WHERE %1$I > %3$L AND %1$I < %4$L', k.key, k.name, above, first_id)
            INTO value;
        IF value IS NOT NULL THEN
            RAISE EXCEPTION 'column % of table % has the value %, which is hardly a snowflake ID', k.key, k.relation, value
                USING HINT = 'Nothing was changed. If it is from before the conversion, give psql the greatest such value of all tables: -v above=...';
        END IF;
        IF k.taken > above::bigint THEN
            RAISE EXCEPTION 'sequence % has reached %, and column % of table % would get larger numbers', k.sequence, k.taken, k.key, k.relation
                USING HINT = 'Nothing was changed. If rows have such numbers, give psql the greatest one of all tables and sequences: -v above=... Otherwise set the sequence back with setval().';
        END IF;
        EXECUTE format('INSERT INTO pg_temp.new_id SELECT DISTINCT %1$I, %2$s FROM %3$s WHERE %1$I > %4$L',
                       k.key, k.no, k.name, above);
    END LOOP;
    ANALYZE new_id;

    -- Otherwise, rows a and b of two tables get the same number, and a column that refers
    -- to both, or a copy that has both, cannot tell them apart.  Or a number is that of a
    -- row from before the conversion, which is now in an archive.
    FOR c IN SELECT * FROM changed_column WHERE EXISTS (SELECT FROM new_id) ORDER BY relation, attname LOOP
        EXECUTE format('SELECT array_agg(DISTINCT i.of_key) FILTER (WHERE i.of_key IS NOT NULL),
                            max(changed.%1$I) FILTER (WHERE i.id IS NULL AND changed.%1$I < (SELECT min(id) FROM pg_temp.new_id))
                        FROM %2$s AS changed LEFT JOIN pg_temp.new_id i ON i.id = changed.%1$I', c.attname, c.name)
            INTO keys, value;
        CONTINUE WHEN keys IS NULL;
        UPDATE changed_column SET has_id = true WHERE (relation, attname) = (c.relation, c.attname);
        UPDATE undone_key SET taken = greatest(taken, value) WHERE no = ANY (keys);
        UPDATE undone_key SET numbered_with = (SELECT min(numbered_with) FROM undone_key WHERE no = ANY (keys))
        WHERE numbered_with IN (SELECT numbered_with FROM undone_key WHERE no = ANY (keys));
    END LOOP;
    INSERT INTO renumbered
    SELECT id, taken + row_number() OVER (PARTITION BY numbered_with ORDER BY id)
    FROM (SELECT DISTINCT i.id, u.numbered_with FROM new_id i JOIN undone_key u ON u.no = i.of_key) ids
        JOIN (SELECT numbered_with, greatest(0, max(taken)) AS taken FROM undone_key GROUP BY numbered_with) g USING (numbered_with);
    ANALYZE renumbered;
    UPDATE undone_key u SET taken = g.taken, numbered = true
    FROM (SELECT o.numbered_with, max(r.new) AS taken
          FROM renumbered r JOIN new_id i ON i.id = r.old JOIN undone_key o ON o.no = i.of_key GROUP BY o.numbered_with) g
    WHERE u.numbered_with = g.numbered_with;

    -- A generated column is computed again.
    FOR c IN WITH RECURSIVE tree(oid, root) AS (
                 SELECT DISTINCT relation::oid, relation::oid FROM changed_column
                 UNION SELECT i.inhrelid, t.root FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid)
             SELECT DISTINCT a.attrelid::regclass AS relation, a.attname, EXISTS (
                 SELECT FROM pg_depend d JOIN pg_depend m ON (m.classid, m.objid) = (d.refclassid, d.refobjid)
                     JOIN pg_extension e ON m.refclassid = 'pg_extension'::regclass AND e.oid = m.refobjid
                 WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                 AND m.deptype = 'e' AND e.extname = 'snowflake') AS has_id
             FROM tree t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attgenerated <> ''
                 JOIN pg_attrdef f ON (f.adrelid, f.adnum) = (a.attrelid, a.attnum)
                 JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                     AND d.refclassid = 'pg_class'::regclass AND d.refobjid = a.attrelid
                 JOIN pg_attribute o ON (o.attrelid, o.attnum) = (d.refobjid, d.refobjsubid)
                 JOIN changed_column h ON (h.relation, h.attname) = (t.root, o.attname)
             WHERE h.has_id AND NOT EXISTS (
                 SELECT FROM pg_inherits i JOIN pg_attribute p ON (p.attrelid, p.attname) = (i.inhparent, a.attname)
                 WHERE i.inhrelid = a.attrelid AND p.attgenerated <> '')
             ORDER BY 1, 2 LOOP
        IF c.has_id THEN
            RAISE EXCEPTION 'column % of table % is computed from snowflake IDs, and would change', c.attname, c.relation
                USING HINT = format('Nothing was changed. Make it an ordinary column, which has these values: ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION. Or drop it.', c.relation, c.attname);
        END IF;
        RAISE WARNING 'column % of table % is computed again, from the new numbers', c.attname, c.relation;
    END LOOP;

    -- All columns of a row at once, because a constraint might compare them.  So a table
    -- that inherits some has an UPDATE of its own.
    FOR c IN SELECT relation, name,
                 string_agg(format('%1$I = coalesce((SELECT r.new FROM pg_temp.renumbered r
                                                     WHERE r.old = changed.%1$I), changed.%1$I)', attname), ', ') AS set,
                 string_agg(format('EXISTS (SELECT FROM pg_temp.renumbered r
                                            WHERE r.old = changed.%I)', attname), ' OR ') AS has_id
             FROM changed_column WHERE has_id
             GROUP BY relation, name ORDER BY relation LOOP
        EXECUTE format('UPDATE %s AS changed SET %s
                        WHERE (tableoid = %s OR tableoid NOT IN (SELECT relation FROM pg_temp.changed_column))
                        AND (%s)', c.name, c.set, c.relation::oid, c.has_id);
    END LOOP;
END
$$;

-- Sequences above all rows that were numbered together, because rows may move from one
-- table to another; or below those of their table if they decrease.  They do not go back.
DO $$
DECLARE
    k record;
    grantee text;
BEGIN
    FOR k IN SELECT * FROM undone_key ORDER BY relation, attnum LOOP
        EXECUTE format('SELECT setval(%1$L, v) FROM (SELECT %2$s AS v FROM %3$s) t
                        WHERE v %4$s (SELECT last_value FROM %1$s)',
                       k.sequence, CASE WHEN k.increment < 0 THEN format('min(%I)', k.key)
                                   WHEN k.numbered THEN format('greatest(max(%I), %s)', k.key, k.taken)
                                   ELSE format('max(%I)', k.key) END, k.name,
                       CASE WHEN k.increment < 0 THEN '<=' ELSE '>=' END);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT nextval(%L)', k.name, k.key, k.sequence);
        FOR grantee IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
                       FROM (SELECT relacl FROM pg_class WHERE oid = k.relation
                             UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid = k.relation) g(acl),
                           aclexplode(g.acl) a
                       WHERE a.privilege_type = 'INSERT' LOOP
            EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %s', k.sequence, grantee);
        END LOOP;
    END LOOP;
    RAISE NOTICE '% keys have a sequence, % rows a new number',
        (SELECT count(*) FROM undone_key), (SELECT count(*) FROM renumbered);
END
$$;

-- After an error, nothing is changed.
SELECT EXISTS (SELECT FROM pg_temp.renumbered) AS renumbered,
    format('snowflake_undo_%s_%s.csv', regexp_replace(concat_ws('_', current_database(), :'schema'), '[^[:alnum:]]+', '_', 'g'),
           to_char(now(), 'YYYYMMDD_HH24MISS_US')) AS map \gset undo_
\if :{?map}
\else
    \set map :undo_map
\endif
\if :undo_renumbered
    COPY (SELECT old, new FROM pg_temp.renumbered ORDER BY old) TO STDOUT (FORMAT csv, HEADER) \g :map
\endif
COMMIT;
\if :undo_renumbered
    \warn The old and new numbers are in :map
\endif
