-- Back from snowflake IDs to sequences, for all tables of a schema: rows get small
-- numbers in place of their snowflake IDs, and keys get sequences again.
--
--	psql -d DATABASE -v schema=public -f snowflake_undo.sql
--
-- A snowflake ID is unique in all tables.  So each bigint column that has one of them
-- has it because of that row, with a foreign key or without, and gets the row's number,
-- too.  The IDs of all tables are numbered together, above the numbers from before the
-- conversion, so that rows that differ have numbers that differ, in archives and logs, too.
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
SET LOCAL snowflake.default_sequence_kind = local;
\if :{?above}
\else
    \set above ''
\endif
SELECT set_config('snowflake_undo.schema', quote_ident(:'schema'), true) AS schema,
    set_config('snowflake_undo.above', :'above', true) AS above \gset undo_
CREATE TEMPORARY TABLE undone_key (
    relation regclass, attnum smallint, name text, key name, owner regrole,
    sequence text, increment bigint, taken bigint,
    PRIMARY KEY (relation, attnum)) ON COMMIT DROP;
CREATE TEMPORARY TABLE changed_column (
    relation regclass, name text, attname name, attidentity "char", has_id boolean DEFAULT false) ON COMMIT DROP;
CREATE TEMPORARY TABLE new_id (id bigint) ON COMMIT DROP;
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
INSERT INTO changed_column
SELECT r.oid, format('%I.%I', n.nspname, r.relname), a.attname, a.attidentity
FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
    JOIN pg_attribute a ON a.attrelid = r.oid
WHERE r.relkind IN ('r', 'p') AND r.relpersistence <> 't' AND n.nspname !~ '^pg_'
AND n.nspname <> 'information_schema' AND a.attnum > 0 AND NOT a.attisdropped
AND NOT r.relispartition AND a.attgenerated = ''
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
        UPDATE undone_key SET sequence = k.sequence, increment = k.increment, taken = k.taken
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
    last bigint;
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
        EXECUTE format('INSERT INTO pg_temp.new_id SELECT DISTINCT %1$I FROM %2$s WHERE %1$I > %3$L', k.key, k.name, above);
    END LOOP;
    ANALYZE new_id;

    -- All IDs are numbered together, as they were generated, and above all small numbers
    -- of keys and of columns that have IDs.  Otherwise, rows of a table and of its archive
    -- get the same number, and who refers to one cannot tell it from the other.
    SELECT greatest(0, max(taken)) INTO last FROM undone_key;
    FOR c IN SELECT * FROM changed_column WHERE EXISTS (SELECT FROM new_id) ORDER BY relation, attname LOOP
        EXECUTE format('SELECT count(i.id) > 0, max(changed.%1$I) FILTER (WHERE changed.%1$I <= %2$L)
                        FROM %3$s AS changed LEFT JOIN pg_temp.new_id i ON i.id = changed.%1$I', c.attname, above, c.name)
            INTO c.has_id, value;
        UPDATE changed_column h SET has_id = c.has_id WHERE (h.relation, h.attname) = (c.relation, c.attname);
        IF c.has_id OR EXISTS (SELECT FROM undone_key u WHERE (u.relation, u.key) = (c.relation, c.attname)) THEN
            last := greatest(last, value);
        END IF;
        IF c.has_id AND c.attidentity = 'a' THEN
            RAISE EXCEPTION 'column % of table % has snowflake IDs, and is GENERATED ALWAYS', c.attname, c.relation
                USING HINT = format('Nothing was changed. ALTER TABLE %s ALTER COLUMN %I SET GENERATED BY DEFAULT.', c.relation, c.attname);
        END IF;
    END LOOP;
    INSERT INTO renumbered SELECT id, last + row_number() OVER (ORDER BY id) FROM (SELECT DISTINCT id FROM new_id) ids;
    ANALYZE renumbered;
    UPDATE undone_key SET taken = n.last FROM (SELECT max(new) AS last FROM renumbered) n;

    -- Numbers above those of before the conversion might be those of rows that are gone.
    FOR c IN SELECT * FROM changed_column WHERE has_id AND (SELECT max(new) FROM renumbered) > above::bigint
             ORDER BY relation, attname LOOP
        EXECUTE format('SELECT max(changed.%1$I) FROM %2$s AS changed
                        WHERE changed.%1$I BETWEEN %3$s AND (SELECT max(new) FROM pg_temp.renumbered)
                        AND NOT EXISTS (SELECT FROM pg_temp.renumbered r WHERE r.old = changed.%1$I)', c.attname, c.name, last + 1)
            INTO value;
        IF value IS NOT NULL THEN
            RAISE EXCEPTION 'column % of table % has the value %, which would be a new number, too', c.attname, c.relation, value
                USING HINT = 'Nothing was changed. Give psql the greatest value of all tables that is not a snowflake ID: -v above=...';
        END IF;
    END LOOP;

    -- A foreign key of a table that is not changed would no longer hold.
    FOR c IN WITH RECURSIVE tree(oid, root) AS (
                 SELECT DISTINCT relation::oid, relation::oid FROM changed_column
                 UNION SELECT i.inhrelid, t.root FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid)
             SELECT DISTINCT f.conrelid::regclass AS name, f.confrelid::regclass AS relation
             FROM tree t JOIN pg_constraint f ON f.contype = 'f' AND f.confrelid = t.oid
                 JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (f.confkey)
                 JOIN changed_column h ON (h.relation, h.attname) = (t.root, a.attname)
                 JOIN pg_class r ON r.oid = f.conrelid
             WHERE h.has_id AND r.relowner NOT IN (SELECT owner FROM undone_key)
             ORDER BY 1, 2 LOOP
        RAISE EXCEPTION 'table % references %, but belongs to another role', c.name, c.relation
            USING HINT = 'Nothing was changed. Give it the same owner, if you trust its owner.';
    END LOOP;

    -- A generated column is computed again.
    FOR c IN WITH RECURSIVE tree(oid, root) AS (
                 SELECT DISTINCT relation::oid, relation::oid FROM changed_column
                 UNION SELECT i.inhrelid, t.root FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid)
             SELECT DISTINCT a.attrelid::regclass AS relation, a.attname, EXISTS (
                 SELECT FROM pg_depend d JOIN pg_depend m ON (m.classid, m.objid) = (d.refclassid, d.refobjid)
                     JOIN pg_extension e ON m.refclassid = 'pg_extension'::regclass AND e.oid = m.refobjid
                 WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid
                 AND m.deptype = 'e' AND e.extname IN ('snowflake', 'snowflake_keys')) AS has_id
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

-- Sequences above all new numbers, because rows may move from one table to another, or
-- below the rows of their table if they decrease.  They do not go back.
DO $$
DECLARE
    k record;
    grantee text;
BEGIN
    FOR k IN SELECT * FROM undone_key ORDER BY relation, attnum LOOP
        EXECUTE format('SELECT setval(%1$L, v) FROM (SELECT %2$s AS v FROM %3$s) t
                        WHERE v %4$s (SELECT last_value FROM %1$s)',
                       k.sequence, CASE WHEN k.increment < 0 THEN format('min(%I)', k.key)
                                   ELSE format('greatest(max(%I), %L::bigint)', k.key, k.taken) END, k.name,
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
