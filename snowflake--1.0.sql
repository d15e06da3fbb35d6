/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

CREATE FUNCTION snowflake_nextval()
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_nextval() IS
'new snowflake ID by the server''s scheme (snowflake.scheme), greater than all this server made before; '
'55000 if no ID can be made by the clock, 25006 on a standby, 2200H if the timestamp field is used up, 53400 without a place for the mark';

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

CREATE FUNCTION snowflake_convert(
    relation regclass,
    column_name name DEFAULT NULL,
    dry_run boolean DEFAULT false,
    generator regprocedure DEFAULT NULL)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'snowflake_convert'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_convert(regclass, name, boolean, regprocedure) IS
'turn a serial, identity or plain integer column (by default the primary key''s) into bigint DEFAULT snowflake_nextval() or another generator, with all columns that reference it; '
'returns the statements, which dry_run does not execute; runs as the owner of the table, in a security-restricted operation; '
'55000 with a list of obstacles if something depends on the type or a row is above the IDs to come, 42501 if the table is another''s, '
'42P01, 42703 and 42804 if there is no such table or column or it is no integer, 22023 if the key has several columns or the generator is none, '
'0A000 in a transaction above READ COMMITTED';

CREATE FUNCTION snowflake_reset(
    mark bigint,
    tables regclass[] DEFAULT '{}',
    force boolean DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_reset'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_reset(bigint, regclass[], boolean) IS
'set the mark, below which are all snowflake IDs made so far; superusers, and roles granted EXECUTE; '
'lowering it needs the tables that have such IDs, which are locked against changes until the transaction ends, or force; '
'55000 if a table has an ID at or above the new mark, or neither is given, 22023 if a table has no column of IDs, 42501 if a table is not owned by the caller, '
'22003 if the mark is negative or wider than the scheme, 25006 on a standby';

REVOKE ALL ON FUNCTION snowflake_reset(bigint, regclass[], boolean) FROM PUBLIC;

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
'state and counters of the generator of this server; see the view snowflake_stat';

CREATE VIEW snowflake_stat AS
    SELECT * FROM snowflake_stat();

GRANT SELECT ON snowflake_stat TO PUBLIC;

COMMENT ON VIEW snowflake_stat IS
'the generator of this server, one row: scheme and IDs, whether the worker ID was set, time of the last ID, the mark, end of the timestamp field, '
'how many ms the last ID (before the first one, and on a standby, the mark) is ahead of the clock, '
'and counted since stats_reset: IDs made, calls that waited for the next tick, for the clock, or for synchronous standbys, and for how many ms, '
'calls refused as the clock was wrong, steps of the clock, the farthest that the clock was behind, writes of the mark';

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

CREATE FUNCTION uuid_v7()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_v7'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuid_v7() IS
'UUID that sorts by time, version 7 of RFC 9562, greater than all that this server made before: '
'milliseconds and sequence of a new snowflake ID, then 74 less the bits of the sequence random; '
'the errors of snowflake_nextval(), and 22008 from the year 10889 on';

CREATE FUNCTION uuid_timestamp(id uuid)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'uuid_timestamp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuid_timestamp(uuid) IS
'time of a UUID of version 1, 6 (to the microsecond) or 7 (to the millisecond); NULL for other versions and variants';

--
-- ObjectIds
--
CREATE FUNCTION objectid()
RETURNS bytea
AS 'MODULE_PATHNAME', 'objectid'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION objectid() IS
'new ObjectId as MongoDB has them, 12 bytes: Unix seconds, 5 random bytes of the process, a counter that begins at random; '
'22008 if the clock is not between 1970 and 2106';

CREATE FUNCTION objectid_timestamp(id bytea)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'objectid_timestamp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION objectid_timestamp(bytea) IS
'time of an ObjectId, to the second; 22P03 if it does not have 12 bytes';

CREATE FUNCTION objectid_to_text(id bytea)
RETURNS text
AS 'MODULE_PATHNAME', 'objectid_to_text'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION objectid_to_text(bytea) IS
'ObjectId as 24 hexadecimal digits; 22P03 if it does not have 12 bytes';

CREATE FUNCTION objectid_from_text(digits text)
RETURNS bytea
AS 'MODULE_PATHNAME', 'objectid_from_text'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION objectid_from_text(text) IS
'ObjectId from 24 hexadecimal digits, of either case; 22P02 if the text is anything else';

--
-- Hashids
--
CREATE FUNCTION hashids_encode(
    number bigint,
    salt text DEFAULT '',
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'hashids_encode'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION hashids_encode(bigint, text, integer, text) IS
'short text that stands for a number, by the algorithm of hashids.org; NULL alphabet: a-z, A-Z, 1-9, 0; not an encryption; '
'22003 if the number is negative, 22023 if min_length is not from 0 to 1000 or the alphabet does not have 16 different printable ASCII characters';

CREATE FUNCTION hashids_encode(
    numbers bigint[],
    salt text DEFAULT '',
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'hashids_encode_array'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION hashids_encode(bigint[], text, integer, text) IS
'short text that stands for up to 10000 numbers, by the algorithm of hashids.org; '
'22004 if one is NULL, 2202E if the array has several dimensions, 54000 if there are more, else as with a single number';

CREATE FUNCTION hashids_decode(
    hashid text,
    salt text DEFAULT '',
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL)
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'hashids_decode'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION hashids_decode(text, text, integer, text) IS
'numbers that a text of hashids_encode() or another Hashids library stands for; '
'22P02 if it was not made with this salt, min_length and alphabet, 22003 if a number is out of the range of bigint, 22023 as hashids_encode()';

--
-- Numbers of a day
--
CREATE FUNCTION daily_nextval(
    sequence regclass,
    digits integer DEFAULT 6,
    time_zone text DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'daily_nextval'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION daily_nextval(regclass, integer, text) IS
'next number of the day: the date as YYYYMMDD, then a number of that many digits (1 to 9) that starts at 1 each day, as in 20261121000001; '
'the day is that of time_zone, or of the session; numbers never fall, even if the clock does; needs USAGE on the sequence, whose value is the date and the number in 10 digits; '
'2200H if the day has no number left, 55000 if an option or the value of the sequence does not go with it, 22023 if digits or time_zone is wrong, 22008 outside of years 1000 to 9999, '
'42501, 25006 on a standby and in a read-only transaction';

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
