-- snowflake sequences

CREATE FUNCTION _snowflake_nextval(regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_sequence_nextval'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION _snowflake_nextval(regclass) IS
'internal: what nextval() is replaced by: a snowflake ID, or the sequence''s next value if it
is local';

CREATE FUNCTION _snowflake_currval(regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_sequence_currval'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION _snowflake_currval(regclass) IS
'internal: what currval() is replaced by';

CREATE FUNCTION _snowflake_lastval()
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_sequence_lastval'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION _snowflake_lastval() IS
'internal: what lastval() is replaced by;
error: 55000 if it is not known whether a snowflake sequence was used last, or one that
C code called';

CREATE FUNCTION _snowflake_setval(regclass, bigint)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_sequence_setval'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION _snowflake_setval(regclass, bigint) IS
'internal: what setval() is replaced by; changes nothing for snowflake sequences';

CREATE FUNCTION _snowflake_setval(regclass, bigint, boolean)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_sequence_setval'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION _snowflake_setval(regclass, bigint, boolean) IS
'internal: what setval() is replaced by; changes nothing for snowflake sequences';

-- Every role calls them, whatever ALTER DEFAULT
-- PRIVILEGES says; they check what the functions of PostgreSQL check.
GRANT EXECUTE ON FUNCTION
    _snowflake_nextval(regclass),
    _snowflake_currval(regclass),
    _snowflake_lastval(),
    _snowflake_setval(regclass, bigint),
    _snowflake_setval(regclass, bigint, boolean)
TO PUBLIC;

CREATE FUNCTION _snowflake_sequence_support(internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'snowflake_sequence_support'
LANGUAGE C STRICT PARALLEL SAFE;

COMMENT ON FUNCTION _snowflake_sequence_support(internal) IS
'internal: planner support function of nextval(), currval(), lastval() and setval()';

REVOKE ALL ON FUNCTION _snowflake_sequence_support(internal) FROM PUBLIC;

-- Its values are those that no other sequence has, and whatever computes how much of
-- it is used gets nothing, and no overflow.  Nothing of it is granted, because what compares
-- information_schema.sequences with models would drop it.
CREATE UNLOGGED SEQUENCE _snowflake_lastval_marker
    MINVALUE -4611686018427387904 MAXVALUE 4611686018427387902 CACHE 100 CYCLE;

COMMENT ON SEQUENCE _snowflake_lastval_marker IS
'internal: what lastval() uses to know whether a snowflake sequence was the last';

CREATE FUNCTION snowflake_set_sequence_kind(
    sequence regclass, kind text DEFAULT 'snowflake', name text DEFAULT NULL, without_registry boolean DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_set_sequence_kind'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_set_sequence_kind(regclass, text, text, boolean) IS
'have nextval() of a sequence return snowflake IDs (snowflake), small numbers that no
other server returns (range; the name is what the registry knows it by, by default its
own), or continue where it was before (local; a range sequence above all numbers that the
registry granted, or, without_registry, above those that this server was granted since
its start, and the keys); for its owner;
errors: 42804 if a column with it is too narrow, 55000 if there is no registry, or other
servers do not answer in time, 55006 if nextval() has a support function of another
extension, 22023 for its INCREMENT, another kind or an empty name, 42501 if the caller
does not own it, or the database for another name';

CREATE FUNCTION snowflake_set_sequence_kinds(
    sequences regclass[], kind text DEFAULT 'snowflake', without_registry boolean DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_set_sequence_kinds'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_set_sequence_kinds(regclass[], text, boolean) IS
'set the kind of many sequences, each of its own name, except for nulls; a call
of the registry has many of them;
errors: those of snowflake_set_sequence_kind()';

CREATE FUNCTION _snowflake_prepare_ranges(sequences regclass[])
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_prepare_range_sequences'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION _snowflake_prepare_ranges(regclass[]) IS
'internal: have the registry know local sequences that are to become range sequences, and what they
continue above, while clients use them; changes nothing here; for their owner;
errors: those of snowflake_set_sequence_kind()';

CREATE FUNCTION _snowflake_range_statistics(
    sequence regclass, OUT granted bigint, OUT held bigint, OUT problem text)
RETURNS record
AS 'MODULE_PATHNAME', 'snowflake_range_statistics'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION _snowflake_range_statistics(regclass) IS
'internal: what this server knows of the numbers of a range sequence since its start: the greatest
that it was granted, how many of them are left, and why the registry grants none; of others,
NULLs, or that the library is not preloaded, or that a local one is of kind range on other
servers';

GRANT EXECUTE ON FUNCTION _snowflake_range_statistics(regclass) TO PUBLIC;

-- Who creates the extension can have operators and functions in its schema that match
-- better than those of PostgreSQL.  Otherwise, they are executed by whoever reads the
-- view, such as a superuser.

DO $do$
DECLARE
    path text := pg_catalog.current_setting('search_path');
    schema text := pg_catalog.quote_ident(pg_catalog.current_schema());
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    EXECUTE replace($view$
CREATE VIEW @schema@.snowflake_sequences AS
SELECT c.oid::regclass::text AS sequence,
    CASE WHEN l.label IS NULL THEN 'local' ELSE pg_catalog.split_part(l.label, ' ', 1) END AS kind,
    u.relid::regclass::text AS table_name, a.attname::text AS column_name,
    pg_catalog.format_type(a.atttypid, a.atttypmod) AS column_type,
    CASE
        WHEN r.problem IS NOT NULL
            THEN r.problem
        WHEN l.label IS NULL AND c.relpersistence <> 't' AND d.is_other
            THEN 'local, although new tables get another kind: call snowflake_set_sequence_kind()'
        WHEN l.label IS NULL OR l.label = 'local' THEN NULL
        -- The position is not known here of temporary ones of other sessions, and on
        -- standbys of unlogged ones.
        WHEN s.seqcycle OR pg_catalog.has_sequence_privilege(c.oid, 'USAGE, SELECT') IS TRUE
            AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
            AND (c.relpersistence <> 'u' OR NOT pg_catalog.pg_is_in_recovery())
            AND pg_catalog.pg_sequence_last_value(c.oid) IS DISTINCT FROM s.seqmax
            THEN 'not exhausted: call nextval() or setval() of it'
        WHEN l.label NOT LIKE 'range %' AND t.greatest < 9223372036854775807 OR t.is_integer AND t.greatest < s.seqmax
            THEN 'column is too narrow'
        WHEN l.label ~ '^[a-z]+( [a-z]+_value=-?[0-9]+)? default( |$)' AND NOT d.is_other AND NOT d.is_stored
            THEN 'new tables get local sequences: set snowflake.default_sequence_kind'
    END AS problem,
    CASE WHEN r.granted > 0 THEN s.seqmax - r.granted END AS numbers_left,
    r.held AS numbers_held
FROM pg_catalog.pg_sequence s
    JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid
    CROSS JOIN (
        -- What new tables get in this session, or in those that have a setting of their own.
        SELECT pg_catalog.bool_or(v.kind <> 'local') IS TRUE AS is_other, pg_catalog.bool_or(v.is_stored) AS is_stored
        FROM (
            SELECT pg_catalog.current_setting('snowflake.default_sequence_kind', true) AS kind, false AS is_stored
            UNION ALL
            SELECT pg_catalog.split_part(v.setting, '=', 2), true
            FROM pg_catalog.pg_db_role_setting r LEFT JOIN pg_catalog.pg_database b ON b.oid = r.setdatabase,
                unnest(r.setconfig) v(setting)
            WHERE (b.oid IS NULL OR b.datname = pg_catalog.current_database())
                AND v.setting LIKE 'snowflake.default_sequence_kind=%') v) d
    LEFT JOIN pg_catalog.pg_seclabel l
        ON l.objoid = c.oid AND l.classoid = 'pg_catalog.pg_class'::regclass AND l.objsubid = 0 AND l.provider = 'snowflake'
    LEFT JOIN LATERAL @schema@._snowflake_range_statistics(c.oid::regclass) r ON true
    LEFT JOIN (
        SELECT d.refobjid AS seqrelid, f.adrelid AS relid, f.adnum AS attnum
        FROM pg_catalog.pg_depend d
            JOIN pg_catalog.pg_attrdef f ON f.oid = d.objid
        WHERE d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
        UNION
        SELECT d.objid, d.refobjid, d.refobjsubid::int2
        FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
            AND d.deptype IN ('a', 'i') AND d.refobjsubid > 0) u ON u.seqrelid = c.oid
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = u.relid AND a.attnum = u.attnum
    LEFT JOIN LATERAL (
        -- The greatest integer that the column can have, which may be of a domain.
        WITH RECURSIVE base(type, typmod) AS (
            SELECT a.atttypid, a.atttypmod
            UNION ALL
            SELECT y.typbasetype, greatest(b.typmod, y.typtypmod)
            FROM base b JOIN pg_catalog.pg_type y ON y.oid = b.type AND y.typtype = 'd')
        SELECT min(CASE type
                WHEN 'pg_catalog.int2'::regtype THEN 32767
                WHEN 'pg_catalog.int4'::regtype THEN 2147483647
                WHEN 'pg_catalog.float4'::regtype THEN 16777216
                WHEN 'pg_catalog.float8'::regtype THEN 9007199254740992
                WHEN 'pg_catalog.numeric'::regtype
                    THEN 10::numeric ^ (((typmod - 4) >> 16) - ((((typmod - 4) & 2047) # 1024) - 1024)) - 1
                ELSE 10::numeric ^ (typmod - 4) - 1
            END) AS greatest,
            bool_or(type IN ('pg_catalog.int2'::regtype, 'pg_catalog.int4'::regtype)) AS is_integer
        FROM base
        WHERE type IN ('pg_catalog.int2'::regtype, 'pg_catalog.int4'::regtype, 'pg_catalog.float4'::regtype, 'pg_catalog.float8'::regtype)
            OR typmod >= 4 AND type IN ('pg_catalog.numeric'::regtype, 'pg_catalog.varchar'::regtype, 'pg_catalog.bpchar'::regtype)
        ) t ON true
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
$view$, '@schema@', schema);
    PERFORM set_config('search_path', path, true);
END
$do$;

GRANT SELECT ON snowflake_sequences TO PUBLIC;

COMMENT ON VIEW snowflake_sequences IS
'sequences of this database, with the columns that use them';
COMMENT ON COLUMN snowflake_sequences.sequence IS
'sequence, as regclass shows it';
COMMENT ON COLUMN snowflake_sequences.kind IS
'snowflake, range or local';
COMMENT ON COLUMN snowflake_sequences.table_name IS
'table of a column that the sequence belongs to, or is a default of, as regclass shows it';
COMMENT ON COLUMN snowflake_sequences.column_name IS
'that column';
COMMENT ON COLUMN snowflake_sequences.column_type IS
'its type';
COMMENT ON COLUMN snowflake_sequences.problem IS
'what is wrong with a sequence, such as that it is local although new tables, or
other servers, get another kind; NULL if nothing is';
COMMENT ON COLUMN snowflake_sequences.numbers_left IS
'of a range sequence that was used since the start of the server: how many numbers are
left for all servers, at most';
COMMENT ON COLUMN snowflake_sequences.numbers_held IS
'how many of its numbers this server was granted and has left';
