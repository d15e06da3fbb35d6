/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

CREATE FUNCTION snowflake_nextval()
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_nextval() IS
'new snowflake ID by the server''s scheme (snowflake.scheme), greater than all this server made before; '
'55000 if the clock is too far behind, 25006 on a standby, 2200H if the timestamp field is used up, 53400 without a place for the mark';

CREATE FUNCTION snowflake_nextval(count integer)
RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval_block'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 1000;

COMMENT ON FUNCTION snowflake_nextval(integer) IS
'as many new snowflake IDs, rising, taken from the generator a tick at a time; '
'22023 if count is below 1, else the errors of snowflake_nextval()';

CREATE FUNCTION snowflake_currval()
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_currval'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_currval() IS
'the snowflake ID that this session made last (not its parallel workers); '
'55000 before the first, and after DISCARD ALL or DISCARD SEQUENCES';

CREATE FUNCTION snowflake_parse(
    id bigint,
    OUT "timestamp" timestamptz,
    OUT datacenter_id integer,
    OUT worker_id integer,
    OUT sequence bigint)
AS 'MODULE_PATHNAME', 'snowflake_parse'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_parse(bigint) IS
'parts of a snowflake ID by the server''s scheme (snowflake.scheme): start of its tick, and its fields, NULL where the scheme has none; '
'22003 if the ID is negative or wider than the scheme';

CREATE FUNCTION snowflake_parse(
    id bigint,
    scheme text,
    OUT "timestamp" timestamptz,
    OUT datacenter_id integer,
    OUT worker_id integer,
    OUT sequence bigint)
AS 'MODULE_PATHNAME', 'snowflake_parse_scheme'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_parse(bigint, text) IS
'parts of a snowflake ID by a scheme given as text: a name or key=value items like those of snowflake.scheme; '
'22023 if the text is no scheme, 22003 if the ID is negative or wider than the scheme';

CREATE FUNCTION snowflake_timestamp(id bigint)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'time of a snowflake ID by the server''s scheme (snowflake.scheme): the start of its tick; '
'22003 if the ID is negative or wider than the scheme';

CREATE FUNCTION snowflake_timestamp(id bigint, scheme text)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp_scheme'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
'time of a snowflake ID by a scheme given as text: the start of its tick; '
'22023 if the text is no scheme, 22003 if the ID is negative or wider than the scheme';

CREATE FUNCTION snowflake_lower_bound(ts timestamptz)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_lower_bound'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_lower_bound(timestamptz) IS
'smallest snowflake ID that can carry a time, by the server''s scheme (snowflake.scheme): '
'id >= snowflake_lower_bound(a) AND id < snowflake_lower_bound(b) are those made in [a, b); '
'22008 if the time is out of the scheme''s range';

CREATE FUNCTION snowflake_lower_bound(ts timestamptz, scheme text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_lower_bound_scheme'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_lower_bound(timestamptz, text) IS
'smallest snowflake ID that can carry a time, by a scheme given as text; '
'22008 if the time is out of the scheme''s range, 22023 if the text is no scheme or its IDs do not sort by time';

CREATE FUNCTION snowflake_make(
    ts timestamptz,
    worker_id integer,
    sequence bigint,
    datacenter_id integer DEFAULT NULL,
    scheme text DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_make'
LANGUAGE C STABLE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_make(timestamptz, integer, bigint, integer, text) IS
'snowflake ID made up of given parts, the inverse of snowflake_parse(), by a scheme given as text or the server''s; '
'the time is that of the tick which contains it; unused bits are 0; NULL for a NULL ts, or a NULL sequence if the scheme has one; '
'22008 if the time and 22003 if another part is out of range, 22004 if one that the scheme has is NULL';

CREATE FUNCTION snowflake_schemes(
    OUT name text,
    OUT scheme text,
    OUT first_time timestamptz,
    OUT last_time timestamptz,
    OUT ids_per_second bigint,
    OUT workers bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'snowflake_schemes'
LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 16;

COMMENT ON FUNCTION snowflake_schemes() IS
'the schemes that have a name: their text, start of the first and last tick, IDs per second of one worker, number of workers (of all datacenters); '
'the text of a name never changes, so indexes can be built on it';

CREATE FUNCTION snowflake_encode(id bigint, format text DEFAULT 'base32')
RETURNS text
AS 'MODULE_PATHNAME', 'snowflake_encode'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_encode(bigint, text) IS
'snowflake ID as text of fixed length: base32 (Crockford''s, 13 characters, as TSID libraries write it), base62 (0-9A-Za-z, 11 characters) or hex (16); '
'sorts as the ID does with COLLATE "C", a negative ID as the unsigned number of 64 bits that it stands for; '
'22023 for another format';

CREATE FUNCTION snowflake_decode(encoded text, format text DEFAULT 'base32')
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_decode'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_decode(text, text) IS
'snowflake ID that snowflake_encode() wrote; base32 and hex in any case, base32 with I and L for 1 and O for 0; '
'22P02 for a wrong character or length, 22003 above 64 bits, 22023 for another format';

--
-- Convert a key column, in three steps: find all columns that have to change
-- their type with it, look for whatever stands in the way of any of them, and
-- make the statements.
--
CREATE FUNCTION snowflake_convert(
    relation regclass,
    column_name name DEFAULT NULL,
    dry_run boolean DEFAULT false)
RETURNS SETOF text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    nextval text;                   -- the qualified name of snowflake_nextval
    key pg_attribute;               -- the column to convert
    old_default text;
    columns text[] := '{}';         -- "relid attnum" of each that changes its type
    obstacles text[] := '{}';
    statements text[] := '{}';
    greatest_id bigint;
    item record;
    statement text;
BEGIN
    IF relation IS NULL OR dry_run IS NULL THEN
        RETURN;
    END IF;

    SELECT format('%I.%I', n.nspname, p.proname) INTO STRICT nextval
    FROM pg_extension e
        JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
        JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
        JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE e.extname = 'snowflake' AND p.proname = 'snowflake_nextval' AND p.pronargs = 0;

    -- The table and the column
    SELECT c.relkind, pg_has_role(c.relowner, 'USAGE') AS owned INTO item
    FROM pg_class c WHERE c.oid = relation;
    IF item.relkind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION '% is not a table', relation
            USING ERRCODE = 'wrong_object_type';
    END IF;
    IF NOT item.owned THEN
        RAISE EXCEPTION 'must be owner of table %', relation
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT dry_run THEN
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
    END IF;

    IF column_name IS NULL THEN
        SELECT a.* INTO key
        FROM pg_index i
            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = relation AND i.indisprimary AND i.indnkeyatts = 1;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'table % has no primary key of a single column', relation
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = 'Give the name of the column to convert.';
        END IF;
    ELSE
        SELECT a.* INTO key
        FROM pg_attribute a
        WHERE a.attrelid = relation AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'column "%" of table % does not exist', column_name, relation
                USING ERRCODE = 'undefined_column';
        END IF;
    END IF;
    IF key.atttypid NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) THEN
        RAISE EXCEPTION 'column "%" of table % is not an integer', key.attname, relation
            USING ERRCODE = 'datatype_mismatch',
                  DETAIL = format('Its type is %s.', format_type(key.atttypid, key.atttypmod));
    END IF;

    SELECT pg_get_expr(d.adbin, d.adrelid) INTO old_default
    FROM pg_attrdef d WHERE d.adrelid = relation AND d.adnum = key.attnum;
    IF key.atttypid = 'int8'::regtype AND old_default = nextval || '()' THEN
        RAISE NOTICE 'column "%" of table % is converted already', key.attname, relation;
        RETURN;
    END IF;

    IF key.attgenerated <> '' THEN
        obstacles := obstacles || format('column %I is a generated column', key.attname);
    END IF;
    IF key.attinhcount > 0 THEN
        SELECT string_agg(format('column %I is inherited from table %s: convert that', key.attname, inhparent::regclass), E'\n') INTO statement
        FROM pg_inherits WHERE inhrelid = relation;
        obstacles := obstacles || statement;
    END IF;

    -- All columns that have to become bigint with it: those that reference it,
    -- and the same column of partitions, children and parents, transitively.
    IF key.atttypid <> 'int8'::regtype THEN
        WITH RECURSIVE target(relid, attnum) AS (
            SELECT key.attrelid, key.attnum
            UNION
            SELECT n.relid, n.attnum
            FROM target t CROSS JOIN LATERAL (
                SELECT c.conrelid, k.referencing
                FROM pg_constraint c, unnest(c.conkey, c.confkey) k(referencing, referenced)
                WHERE c.contype = 'f' AND c.confrelid = t.relid AND k.referenced = t.attnum
                UNION ALL
                SELECT other.attrelid, other.attnum
                FROM pg_inherits i
                    JOIN pg_attribute this ON this.attrelid = t.relid AND this.attnum = t.attnum
                    JOIN pg_attribute other ON other.attname = this.attname AND NOT other.attisdropped
                        AND (i.inhparent = t.relid AND other.attrelid = i.inhrelid
                             OR i.inhrelid = t.relid AND other.attrelid = i.inhparent AND this.attinhcount > 0)
            ) n(relid, attnum)
            JOIN pg_attribute a ON a.attrelid = n.relid AND a.attnum = n.attnum
            WHERE a.atttypid IN ('int2'::regtype, 'int4'::regtype)
        )
        SELECT array_agg(relid || ' ' || attnum ORDER BY relid, attnum) INTO columns FROM target;
    END IF;

    -- Nothing may change between the checks and the statements.
    IF NOT dry_run THEN
        FOR item IN
            SELECT DISTINCT r.oid::regclass AS relid
            FROM unnest(columns) c JOIN pg_class r ON r.oid = split_part(c, ' ', 1)::oid
            WHERE pg_has_role(r.relowner, 'USAGE')
            ORDER BY 1
        LOOP
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', item.relid);
        END LOOP;
    END IF;

    -- What stands in the way of one of them
    FOR item IN
        WITH target AS (
            SELECT split_part(c, ' ', 1)::oid AS relid, split_part(c, ' ', 2)::int2 AS attnum
            FROM unnest(columns) c)
        SELECT DISTINCT x.reason
        FROM target t
            JOIN pg_class r ON r.oid = t.relid
            JOIN pg_attribute a ON a.attrelid = t.relid AND a.attnum = t.attnum
            CROSS JOIN LATERAL (SELECT format('column %I of table %s', a.attname, r.oid::regclass) AS name) col
            CROSS JOIN LATERAL (
                SELECT format('%s depends on %s', pg_describe_object(d.classid, d.objid, d.objsubid), col.name)
                FROM pg_depend d
                WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = t.relid AND d.refobjsubid = t.attnum
                AND (d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass)
                     OR d.classid = 'pg_trigger'::regclass
                        AND EXISTS (SELECT FROM pg_trigger g WHERE g.oid = d.objid AND NOT g.tgisinternal)
                     OR d.classid = 'pg_attrdef'::regclass
                        AND EXISTS (SELECT FROM pg_attrdef f WHERE f.oid = d.objid AND (f.adrelid, f.adnum) <> (t.relid, t.attnum)))
                UNION ALL
                SELECT format('%s is in the partition key', col.name)
                FROM pg_partitioned_table p WHERE p.partrelid = t.relid AND t.attnum = ANY (p.partattrs)
                UNION ALL
                SELECT format('column %I of %s uses the row type of table %s', u.attname, u.attrelid::regclass, r.oid::regclass)
                FROM pg_attribute u
                    JOIN pg_class uc ON uc.oid = u.attrelid AND uc.relkind IN ('r', 'p', 'm')
                    JOIN pg_type y ON y.oid = u.atttypid
                WHERE NOT u.attisdropped AND r.reltype IN (y.oid, y.typelem)
                UNION ALL
                SELECT format('table %s is of type %s', r.oid::regclass, format_type(r.reloftype, NULL))
                WHERE r.reloftype <> 0
                UNION ALL
                SELECT format('%s is inherited from several tables', col.name)
                WHERE a.attinhcount > 1
                UNION ALL
                SELECT format('%s is a generated column', col.name)
                WHERE a.attgenerated <> '' AND (t.relid, t.attnum) <> (key.attrelid, key.attnum)
                UNION ALL
                SELECT format('table %s is not yours', r.oid::regclass)
                WHERE NOT pg_has_role(r.relowner, 'USAGE')
            ) x(reason)
        ORDER BY 1
    LOOP
        obstacles := obstacles || item.reason;
    END LOOP;

    EXECUTE format('SELECT max(%I) FROM %s', key.attname, relation) INTO greatest_id;
    EXECUTE format('SELECT %s()', nextval) INTO item;
    IF greatest_id >= item.snowflake_nextval THEN
        obstacles := obstacles || format('a row has the value %s, which is not below the IDs to come', greatest_id);
    END IF;

    IF obstacles <> '{}' THEN
        RAISE EXCEPTION 'cannot convert column "%" of table %', key.attname, relation
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  DETAIL = array_to_string(obstacles, E'\n'),
                  HINT = 'Nothing was changed. Remove the obstacles, convert, and create them again.';
    END IF;

    -- The statements
    IF key.attidentity <> '' THEN
        statements := statements || format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY', relation, key.attname);
    END IF;
    FOR item IN
        SELECT format('ALTER TABLE %s %s', a.attrelid::regclass,
                      string_agg(format('ALTER COLUMN %I TYPE bigint', a.attname), ', ' ORDER BY a.attnum)) AS statement
        FROM unnest(columns) c
            JOIN pg_attribute a ON a.attrelid = split_part(c, ' ', 1)::oid AND a.attnum = split_part(c, ' ', 2)::int2
        WHERE a.attinhcount = 0
        GROUP BY a.attrelid
        ORDER BY a.attrelid <> relation, a.attrelid::regclass::text COLLATE "C"
    LOOP
        statements := statements || item.statement;
    END LOOP;
    statements := statements ||
        format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s()', relation, key.attname, nextval);

    -- A sequence that the column owns, and only its default uses
    FOR item IN
        SELECT s.oid AS sequence
        FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
        AND d.refobjid = relation AND d.refobjsubid = key.attnum AND d.deptype = 'a'
        AND NOT EXISTS (
            SELECT FROM pg_depend u
                LEFT JOIN pg_attrdef f ON u.classid = 'pg_attrdef'::regclass AND f.oid = u.objid
                LEFT JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
            WHERE u.refclassid = 'pg_class'::regclass AND u.refobjid = s.oid
            AND (f.oid IS NULL
                 OR a.attname <> key.attname
                 OR f.adrelid <> relation
                    AND NOT EXISTS (
                        WITH RECURSIVE child(relid) AS (
                            SELECT inhrelid FROM pg_inherits WHERE inhparent = relation
                            UNION
                            SELECT i.inhrelid FROM pg_inherits i JOIN child ON i.inhparent = child.relid)
                        SELECT FROM child WHERE child.relid = f.adrelid)))
        ORDER BY 1
    LOOP
        statements := statements || format('DROP SEQUENCE %s', item.sequence::regclass);
    END LOOP;

    FOREACH statement IN ARRAY statements LOOP
        IF NOT dry_run THEN
            EXECUTE statement;
        END IF;
        RETURN NEXT statement;
    END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_convert(regclass, name, boolean) IS
'turn a serial, identity or plain integer column (by default the primary key''s) into bigint DEFAULT snowflake_nextval(), with all columns that reference it; '
'returns the statements, which dry_run does not execute; '
'55000 with a list of obstacles if something depends on the type or a row is above the IDs to come, 42501 if the table is another''s, '
'42703 and 42804 if there is no such column or it is no integer, 22023 if the key has several columns';

CREATE FUNCTION snowflake_reset(mark bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_reset'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_reset(bigint) IS
'set the mark, below which are all snowflake IDs made so far, to a value of one''s own, for a mark that a wrong clock drove far ahead; '
'IDs at or above it that were made before may be made again; 22003 if it is negative or wider than the scheme';

REVOKE ALL ON FUNCTION snowflake_reset(bigint) FROM PUBLIC;

CREATE FUNCTION snowflake_accept_clock()
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_accept_clock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_clock() IS
'take the server''s clock for right where it is further ahead than snowflake.max_clock_forward, and make snowflake IDs by it; '
'returns what it reads; superusers, and roles granted EXECUTE; 25006 on a standby, 22008 if the scheme has no tick for the time';

REVOKE ALL ON FUNCTION snowflake_accept_clock() FROM PUBLIC;

CREATE FUNCTION snowflake_stat(
    OUT scheme text,
    OUT datacenter_id integer,
    OUT worker_id integer,
    OUT worker_id_set boolean,
    OUT last_timestamp timestamptz,
    OUT mark bigint,
    OUT mark_timestamp timestamptz,
    OUT expires_at timestamptz,
    OUT lead_ms double precision,
    OUT ids bigint,
    OUT sequence_waits bigint,
    OUT sequence_wait_ms double precision,
    OUT clock_waits bigint,
    OUT clock_wait_ms double precision,
    OUT reserve_waits bigint,
    OUT reserve_wait_ms double precision,
    OUT clock_errors bigint,
    OUT clock_steps bigint,
    OUT max_clock_backward_ms double precision,
    OUT reserves bigint,
    OUT stats_reset timestamptz)
AS 'MODULE_PATHNAME', 'snowflake_stat_1_0'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_stat() IS
'what the generator of this server is, did and waited for; see the view snowflake_stat';

CREATE VIEW snowflake_stat AS
    SELECT * FROM snowflake_stat();

GRANT SELECT ON snowflake_stat TO PUBLIC;

COMMENT ON VIEW snowflake_stat IS
'the generator of this server, one row: scheme and IDs, whether the worker ID was set, time of the last ID, the mark, end of the timestamp field, '
'and counted since stats_reset: IDs made, calls that waited as the sequence was used up or the clock behind, for how many ms, '
'calls refused as the clock was wrong, the farthest that the clock was behind, writes of the mark';

CREATE FUNCTION snowflake_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_stat_reset'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_stat_reset() IS
'count in snowflake_stat from 0 again';

REVOKE ALL ON FUNCTION snowflake_stat_reset() FROM PUBLIC;

CREATE FUNCTION uuid_v4()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_v4'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuid_v4() IS
'random UUID, version 4 of RFC 9562: 122 bits of the server''s strong random source';

-- Without the library in shared_preload_libraries all is installed, but no ID
-- can be made: say so, with the hint of the error that calls will get.
DO $$
DECLARE
    hint text;
BEGIN
    PERFORM snowflake_parse(bigint '0');
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RAISE WARNING 'snowflake makes no IDs until it is loaded via shared_preload_libraries'
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = hint;
END
$$;
