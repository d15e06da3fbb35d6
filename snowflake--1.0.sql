/* snowflake--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

-- name of the schema
--
-- It is substituted into function bodies.  PostgreSQL 15.0 to 15.3 allow quotes
-- in it (CVE-2023-39417).

DO $$
BEGIN
    IF pg_catalog.current_schema()::pg_catalog.text OPERATOR(pg_catalog.~) E'["$''\\\\]' THEN
        RAISE EXCEPTION 'invalid character in extension "snowflake" schema: must not contain any of "%"', E'"$''\\'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

-- snowflake IDs

CREATE FUNCTION snowflake_nextval()
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_nextval() IS
'next snowflake ID of this server, greater than all IDs that it made before;
errors: 55000 if no ID can be made, for example because of the clock, 25006 on a
standby, 2200H if the timestamp field is exhausted, 53400 if no replication
origin is free for the mark';

CREATE FUNCTION snowflake_id()
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_id() IS
'same as snowflake_nextval(), as a column default for clients that take a default
containing nextval for that of a sequence (Rails)';

CREATE FUNCTION snowflake_nextval(count integer)
RETURNS SETOF bigint
AS 'MODULE_PATHNAME', 'snowflake_nextval_block'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 1000;

COMMENT ON FUNCTION snowflake_nextval(integer) IS
'count new snowflake IDs, in ascending order;
errors: 22023 if count is less than 1, and those of snowflake_nextval()';

CREATE FUNCTION snowflake_currval()
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_currval'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_currval() IS
'last snowflake ID made by this session, not counting its parallel workers;
error: 55000 before the first ID, and after DISCARD ALL or DISCARD SEQUENCES';

-- parts of snowflake IDs

CREATE FUNCTION snowflake_parse(
    id bigint,
    OUT "timestamp" timestamptz,
    OUT datacenter_id integer,
    OUT worker_id integer,
    OUT sequence bigint)
AS 'MODULE_PATHNAME', 'snowflake_parse'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_parse(bigint) IS
'parts of a snowflake ID in the scheme of this server (snowflake.scheme): start
of its tick, and its fields, NULL for fields that the scheme does not have;
error: 22003 if the ID does not fit the scheme';

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
'parts of a snowflake ID in a scheme given as text, a name or key=value items as
in snowflake.scheme;
errors: 22023 if the text is not a valid scheme, 22003 if the ID does not fit
the scheme, 22008 if its timestamp is out of range';

CREATE FUNCTION snowflake_timestamp(id bigint)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint) IS
'time of a snowflake ID in the scheme of this server (snowflake.scheme): start of
its tick;
error: 22003 if the ID does not fit the scheme';

CREATE FUNCTION snowflake_timestamp(id bigint, scheme text)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp_scheme'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_timestamp(bigint, text) IS
'time of a snowflake ID in a scheme given as text: start of its tick;
errors: 22023 if the text is not a valid scheme, 22003 if the ID does not fit
the scheme, 22008 if its timestamp is out of range';

CREATE FUNCTION snowflake_lower_bound(ts timestamptz)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_lower_bound'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_lower_bound(timestamptz) IS
'smallest snowflake ID at or after a time, in the scheme of this server
(snowflake.scheme): id >= snowflake_lower_bound(a) AND id <
snowflake_lower_bound(b) selects the IDs of times in [a, b);
error: 22008 if the time is out of range for the scheme';

CREATE FUNCTION snowflake_lower_bound(ts timestamptz, scheme text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_lower_bound_scheme'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_lower_bound(timestamptz, text) IS
'smallest snowflake ID at or after a time, in a scheme given as text;
errors: 22008 if the time is out of range for the scheme, 22023 if the text is
not a valid scheme or its IDs do not sort by time';

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
'snowflake ID composed of its parts, the inverse of snowflake_parse(), in a
scheme given as text (NULL: that of this server);
the ID is of the tick that contains ts, and has 0 in unused bits; NULL if ts is
NULL, or if sequence is NULL and the scheme has that field;
errors: 22008 if ts and 22003 if another part is out of range, 22004 if
worker_id or datacenter_id is NULL and the scheme has that field, 22023 if the
text is not a valid scheme';

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
'named schemes: their text, start of the first and the last tick, IDs per second
of one worker, number of workers in all datacenters;
the text of a name never changes, so indexes can depend on it';

-- snowflake IDs as text

CREATE FUNCTION snowflake_encode(id bigint, format text DEFAULT 'base32')
RETURNS text
AS 'MODULE_PATHNAME', 'snowflake_encode'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_encode(bigint, text) IS
'snowflake ID as text of fixed length: base32 (Crockford''s, 13 characters, as in
TSID libraries), base62 (0-9A-Za-z, 11 characters), or hex (16 characters);
with COLLATE "C", texts sort like the IDs as unsigned numbers;
error: 22023 for another format';

CREATE FUNCTION snowflake_decode(encoded text, format text DEFAULT 'base32')
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_decode'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_decode(text, text) IS
'snowflake ID that snowflake_encode() wrote; base32 and hex are read in any case,
and base32 with I and L for 1 and O for 0;
errors: 22P02 for a wrong character or length, 22003 above 64 bits, 22023 for
another format';

-- conversion of tables

CREATE FUNCTION snowflake_convert(
    relation regclass,
    column_name name DEFAULT NULL,
    dry_run boolean DEFAULT false,
    generator regprocedure DEFAULT NULL)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'snowflake_convert'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_convert(regclass, name, boolean, regprocedure) IS
'change a serial, identity, or plain integer column (NULL: the primary key) to
bigint with the default snowflake_nextval() or another generator, and all
columns that reference it to bigint;
returns the statements, which dry_run does not execute; runs as the owner of the
table, in a security-restricted operation;
errors: 55000 with a list of obstacles, 42501 if the caller does not own the
table, 42P01, 42809, 42703, or 42804 if the table or column does not exist or is
of another kind, 22023 if the primary key has several columns or the generator
is not suitable, 55006 if the table was changed during the conversion, 0A000
above READ COMMITTED';

-- administration

CREATE FUNCTION snowflake_reset(
    mark bigint,
    tables regclass[] DEFAULT '{}',
    force boolean DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_reset'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_reset(bigint, regclass[], boolean) IS
'set the mark, below which are all snowflake IDs made so far; for superusers, and
roles granted EXECUTE;
to lower it, specify all tables that have such IDs, which are locked against
changes until the transaction ends, or force;
errors: 55000 if a table has an ID at or above the new mark, or neither tables
nor force are specified, 22023 if a table has no column of snowflake IDs, 42501
if the caller does not own a table, 22003 if the mark does not fit the scheme,
25006 on a standby';

REVOKE ALL ON FUNCTION snowflake_reset(bigint, regclass[], boolean) FROM PUBLIC;

CREATE FUNCTION snowflake_accept_clock()
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_accept_clock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_clock() IS
'make snowflake IDs by the clock although it is further ahead than
snowflake.max_clock_forward, and return its time; for superusers, and roles
granted EXECUTE;
errors: 25006 on a standby, 22008 if the time is out of range for the scheme';

REVOKE ALL ON FUNCTION snowflake_accept_clock() FROM PUBLIC;

-- statistics

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
    OUT stats_reset timestamptz,
    OUT grant_waits bigint,
    OUT grant_wait_ms double precision,
    OUT granted_until timestamptz,
    OUT registry_contact timestamptz,
    OUT registry_error text,
    OUT registry_error_since timestamptz)
AS 'MODULE_PATHNAME', 'snowflake_stat_1_0'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_stat() IS
'state and counters of the snowflake ID generator; see the view snowflake_stat';

CREATE VIEW snowflake_stat AS
    SELECT * FROM snowflake_stat();

GRANT SELECT ON snowflake_stat TO PUBLIC;

COMMENT ON VIEW snowflake_stat IS
'state of the snowflake ID generator of this server, and its counters since
stats_reset; one row';
COMMENT ON COLUMN snowflake_stat.scheme IS
'snowflake.scheme';
COMMENT ON COLUMN snowflake_stat.datacenter_id IS
'datacenter ID; NULL if the scheme does not have the field';
COMMENT ON COLUMN snowflake_stat.worker_id IS
'worker ID; NULL if the scheme does not have the field, or none is granted';
COMMENT ON COLUMN snowflake_stat.worker_id_set IS
'whether the worker ID was set or comes from a registry; NULL if the scheme does
not have the field';
COMMENT ON COLUMN snowflake_stat.last_timestamp IS
'time of the last ID; NULL before the first ID since server start';
COMMENT ON COLUMN snowflake_stat.mark IS
'mark, below which are all IDs made so far; NULL if no ID was ever made';
COMMENT ON COLUMN snowflake_stat.mark_timestamp IS
'time of the mark; NULL if the scheme has none for it';
COMMENT ON COLUMN snowflake_stat.expires_at IS
'end of the timestamp field';
COMMENT ON COLUMN snowflake_stat.lead_ms IS
'how far the last ID (before the first one, and on a standby, the mark) is ahead
of the clock, in milliseconds';
COMMENT ON COLUMN snowflake_stat.ids IS
'IDs made';
COMMENT ON COLUMN snowflake_stat.sequence_waits IS
'calls that waited for the next tick because the sequence was exhausted';
COMMENT ON COLUMN snowflake_stat.sequence_wait_ms IS
'time that calls waited for the next tick, in milliseconds';
COMMENT ON COLUMN snowflake_stat.clock_waits IS
'calls that waited for a clock that was behind';
COMMENT ON COLUMN snowflake_stat.clock_wait_ms IS
'time that calls waited for the clock, in milliseconds';
COMMENT ON COLUMN snowflake_stat.reserve_waits IS
'calls that waited for synchronous standbys to flush the mark';
COMMENT ON COLUMN snowflake_stat.reserve_wait_ms IS
'time that calls waited for synchronous standbys, in milliseconds';
COMMENT ON COLUMN snowflake_stat.clock_errors IS
'calls that failed because the clock was wrong';
COMMENT ON COLUMN snowflake_stat.clock_steps IS
'times that the clock was found ahead or behind by a second or more';
COMMENT ON COLUMN snowflake_stat.max_clock_backward_ms IS
'farthest that the clock was behind the last ID, in milliseconds';
COMMENT ON COLUMN snowflake_stat.reserves IS
'writes of the mark';
COMMENT ON COLUMN snowflake_stat.stats_reset IS
'time since which the counters count';
COMMENT ON COLUMN snowflake_stat.grant_waits IS
'calls that waited for a grant from the registry';
COMMENT ON COLUMN snowflake_stat.grant_wait_ms IS
'time that calls waited for a grant, in milliseconds';
COMMENT ON COLUMN snowflake_stat.granted_until IS
'end of the grant, as the time of IDs; NULL without a grant';
COMMENT ON COLUMN snowflake_stat.registry_contact IS
'time of the last successful call of the registry; NULL if there was none';
COMMENT ON COLUMN snowflake_stat.registry_error IS
'error of the last call of the registry; NULL if it succeeded';
COMMENT ON COLUMN snowflake_stat.registry_error_since IS
'time since which calls of the registry have failed; NULL if the last one succeeded';

CREATE FUNCTION snowflake_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_stat_reset'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_stat_reset() IS
'reset the counters of the view snowflake_stat to 0; for superusers, and roles
granted EXECUTE';

REVOKE ALL ON FUNCTION snowflake_stat_reset() FROM PUBLIC;

-- UUIDs

CREATE FUNCTION uuid_v4()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_v4'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuid_v4() IS
'random UUID (version 4 of RFC 9562), with 122 bits from the server''s strong
random number generator';

CREATE FUNCTION uuid_v7()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_v7'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuid_v7() IS
'time-ordered UUID (version 7 of RFC 9562), greater than all that this server
made before: milliseconds and sequence of a new snowflake ID, and random bits;
errors: those of snowflake_nextval(), and 22008 from the year 10889 on';

CREATE FUNCTION uuid_timestamp(id uuid)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'uuid_timestamp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuid_timestamp(uuid) IS
'time of a UUID of version 1 or 6 (to the microsecond) or 7 (to the millisecond);
NULL for other versions and variants';

-- ObjectIds

CREATE FUNCTION objectid()
RETURNS bytea
AS 'MODULE_PATHNAME', 'objectid'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION objectid() IS
'new ObjectId as in MongoDB, 12 bytes: Unix time in seconds, 5 random bytes of
the process, counter that starts at random;
error: 22008 if the clock is not between 1970 and 2106';

CREATE FUNCTION objectid_timestamp(id bytea)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'objectid_timestamp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION objectid_timestamp(bytea) IS
'time of an ObjectId, to the second; error: 22P03 if it does not have 12 bytes';

CREATE FUNCTION objectid_to_text(id bytea)
RETURNS text
AS 'MODULE_PATHNAME', 'objectid_to_text'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION objectid_to_text(bytea) IS
'ObjectId as 24 hexadecimal digits; error: 22P03 if it does not have 12 bytes';

CREATE FUNCTION objectid_from_text(digits text)
RETURNS bytea
AS 'MODULE_PATHNAME', 'objectid_from_text'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION objectid_from_text(text) IS
'ObjectId from 24 hexadecimal digits in any case; error: 22P02 for any other text';

-- Hashids

CREATE FUNCTION hashids_encode(
    number bigint,
    salt text DEFAULT '',
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'hashids_encode'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION hashids_encode(bigint, text, integer, text) IS
'Hashid of a number, by the algorithm of hashids.org; the default alphabet is
a-z, A-Z, 1-9, 0; this is not encryption;
errors: 22003 if the number is negative, 22023 if min_length is not between 0
and 1000 or the alphabet does not have at least 16 different printable ASCII
characters';

CREATE FUNCTION hashids_encode(
    numbers bigint[],
    salt text DEFAULT '',
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'hashids_encode_array'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION hashids_encode(bigint[], text, integer, text) IS
'Hashid of up to 10000 numbers, by the algorithm of hashids.org;
errors: 22004 if a number is NULL, 2202E if the array has several dimensions,
54000 if there are more numbers, and those for a single number';

CREATE FUNCTION hashids_decode(
    hashid text,
    salt text DEFAULT '',
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL)
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'hashids_decode'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION hashids_decode(text, text, integer, text) IS
'numbers of a Hashid made by hashids_encode() or another Hashids library;
errors: 22P02 if it was not made with this salt, min_length, and alphabet, 22003
if a number is out of range for bigint, 22023 as in hashids_encode()';

-- daily numbers

CREATE FUNCTION daily_nextval(
    sequence regclass,
    digits integer DEFAULT 6,
    time_zone text DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'daily_nextval'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION daily_nextval(regclass, integer, text) IS
'next number of the day: the date as YYYYMMDD, then a number of that many digits
(1 to 9), which starts at 1 each day, as in 20261121000001;
the day is that of time_zone (NULL: of the session); numbers never decrease,
even if the clock is set back; requires USAGE on the sequence, whose values are
the date and a number of 10 digits;
errors: 2200H if no number is left for the day, 55000 if an option or the value
of the sequence is not suitable, 22023 if digits or time_zone is invalid, 22008
outside the years 1000 to 9999, 42501 without USAGE, 25006 on a standby and in a
read-only transaction';

-- registry: worker IDs for servers
--
-- A registry is a database that servers ask for worker IDs.  It grants a server
-- a range of IDs: those with a worker ID, from the server's next ID up to an
-- end.  Servers make IDs only in their ranges, so no two servers make the same
-- ID as long as ranges of the same worker ID never overlap.  The functions below
-- ensure that.  They use clocks to decide how long a range is, and when a worker
-- ID can go to another server; but ranges depend on a clock not to overlap only
-- where the registry has lost grants.
--
-- The comment at each clause says what would happen without it: "A" and "B" are
-- servers, "W" is a worker ID.
--
-- Times are passed and stored as IDs, the first ID of a tick.  All functions
-- start with snowflake_lock_registry(), so for each scheme they run one at a time.

CREATE FUNCTION snowflake_read_scheme(
    scheme text,
    OUT canonical text,
    OUT tick interval,
    OUT last_datacenter_id integer,
    OUT last_worker_id integer)
AS 'MODULE_PATHNAME', 'snowflake_read_scheme'
LANGUAGE C STABLE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_read_scheme(text) IS
'scheme given as text (NULL: that of this server) in its canonical form, with its
tick, and its greatest datacenter and worker ID, 0 if it does not have the
field;
error: 22023 if the text is not a scheme that IDs can be made with';

-- registry: tables

CREATE TABLE snowflake_registry (
    scheme text PRIMARY KEY,
    first_worker_id integer NOT NULL,
    last_worker_id integer NOT NULL,
    grant_time interval NOT NULL,
    reach interval NOT NULL,
    slices integer NOT NULL,
    lifted bigint[] NOT NULL,
    identity text NOT NULL,
    timeline bigint NOT NULL
);

REVOKE ALL ON snowflake_registry FROM PUBLIC;

COMMENT ON TABLE snowflake_registry IS
'settings of the registry, one row for each scheme; see snowflake_create_registry()';
COMMENT ON COLUMN snowflake_registry.scheme IS
'scheme, in the canonical form of snowflake_read_scheme()';
COMMENT ON COLUMN snowflake_registry.first_worker_id IS
'first worker ID that is granted';
COMMENT ON COLUMN snowflake_registry.last_worker_id IS
'last worker ID that is granted';
COMMENT ON COLUMN snowflake_registry.grant_time IS
'how long a server can make IDs without calling the registry again';
COMMENT ON COLUMN snowflake_registry.reach IS
'how far ahead of the registry''s clock a grant can end';
COMMENT ON COLUMN snowflake_registry.slices IS
'number of slices; worker ID W is in slice W % slices, and is granted while
timeline % slices is the same';
COMMENT ON COLUMN snowflake_registry.lifted IS
'for each slice, starting with slice 0: ID at or above which grants start,
because grants below it might have been lost';
COMMENT ON COLUMN snowflake_registry.identity IS
'system identifier, and OIDs of the database and of snowflake_grants, when the
grants were made';
COMMENT ON COLUMN snowflake_registry.timeline IS
'timeline on which the last grants were made';

CREATE TABLE snowflake_grants (
    scheme text REFERENCES snowflake_registry ON DELETE CASCADE,
    datacenter_id integer,
    worker_id integer,
    granted_from bigint NOT NULL,
    granted_until bigint NOT NULL,
    token uuid,
    server_name text,
    client_addr inet,
    renewed_at timestamptz NOT NULL,
    PRIMARY KEY (scheme, datacenter_id, worker_id),
    UNIQUE (scheme, datacenter_id, token)
) WITH (fillfactor = 50);

REVOKE ALL ON snowflake_grants FROM PUBLIC;

COMMENT ON TABLE snowflake_grants IS
'last grant of each worker ID; see the view snowflake_workers';
COMMENT ON COLUMN snowflake_grants.scheme IS
'scheme of the IDs';
COMMENT ON COLUMN snowflake_grants.datacenter_id IS
'datacenter ID, 0 if the scheme does not have the field';
COMMENT ON COLUMN snowflake_grants.worker_id IS
'worker ID';
COMMENT ON COLUMN snowflake_grants.granted_from IS
'first ID of the range';
COMMENT ON COLUMN snowflake_grants.granted_until IS
'end of the range: first ID above it';
COMMENT ON COLUMN snowflake_grants.token IS
'secret of the server that holds the worker ID, drawn for its last call; NULL if
no server holds it';
COMMENT ON COLUMN snowflake_grants.server_name IS
'name of the server, as the server gave it';
COMMENT ON COLUMN snowflake_grants.client_addr IS
'address that the server called from; NULL for a Unix-domain socket';
COMMENT ON COLUMN snowflake_grants.renewed_at IS
'time of the last change, by the registry''s clock';

-- registry: functions for servers

CREATE FUNCTION snowflake_lock_registry(
    INOUT scheme text,
    next_id bigint,
    OUT first_worker_id integer,
    OUT last_worker_id integer,
    OUT grant_time interval,
    OUT reach interval,
    OUT slices integer,
    OUT slice integer,
    OUT lifted bigint,
    OUT clock timestamptz,
    OUT until bigint,
    OUT adopted boolean)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r @extschema@.snowflake_registry;
    now_identity text;
    now_timeline bigint;
    lift bigint;
BEGIN
    -- A and B ask at the same time, and both find W free.  So the settings are
    -- locked below; and with an older snapshot, B would not see A's grant.
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'cannot use the registry in a transaction with isolation level %',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'feature_not_supported';
    END IF;

    -- A is given W, the registry crashes before the commit is durable, or a
    -- synchronous standby without it is promoted, and W is free again.
    IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    scheme := (@extschema@.snowflake_read_scheme(scheme)).canonical;
    SELECT * INTO r FROM @extschema@.snowflake_registry s
    WHERE s.scheme = snowflake_lock_registry.scheme FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'registry has no worker IDs for scheme "%"', scheme
            USING ERRCODE = 'undefined_object',
            DETAIL = coalesce((SELECT 'The registry has worker IDs for ' || string_agg(format('"%s"', s.scheme), ', ' ORDER BY s.scheme) || '.'
                               FROM @extschema@.snowflake_registry s),
                              'The registry has no worker IDs for any scheme.'),
            HINT = 'Servers that share worker IDs must have the same "snowflake.scheme". To add worker IDs for another scheme, call snowflake_create_registry() in the database of the registry.';
    END IF;
    clock := clock_timestamp();

    -- Are the identity and timeline still those that the grants were made with?
    -- If not, grants might be missing.
    SELECT format('%s/%s/%s', c.system_identifier, d.oid, '@extschema@.snowflake_grants'::regclass::oid),
           ('x' || lpad(left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), 16, '0'))::bit(64)::bigint
    INTO now_identity, now_timeline
    FROM pg_control_system() c, pg_database d WHERE d.datname = current_database();
    adopted := r.identity <> now_identity OR r.timeline <> now_timeline;
    IF adopted THEN
        -- W was granted to A, an asynchronous standby without that commit is
        -- promoted, and W is granted to B.  So no W that might have been granted
        -- after the last commit that is here is granted until the lost ranges
        -- have passed.  They end at most "reach" after the clock of that time,
        -- which might have been ahead of this one by as much again.
        --
        -- After a failover, these are the W's in the slices of all timelines from
        -- the last known one to the one before this one.  The slice of this
        -- timeline is granted at once: otherwise every failover would stop all
        -- servers.  An old primary that is still running grants only W's of its
        -- own slice.  After restoring a dump, or in a copy of the database, any W
        -- might have been granted.
        lift := @extschema@.snowflake_lower_bound(clock + 2 * r.reach, r.scheme);
        IF r.identity = now_identity AND r.timeline < now_timeline THEN
            FOR t IN greatest(r.timeline, now_timeline - r.slices) .. now_timeline - 1 LOOP
                r.lifted[t % r.slices + 1] := greatest(r.lifted[t % r.slices + 1], lift);
            END LOOP;
        ELSE
            r.lifted := ARRAY(SELECT greatest(l, lift) FROM unnest(r.lifted) l);
        END IF;
        r.timeline := now_timeline;
        UPDATE @extschema@.snowflake_registry s
        SET lifted = r.lifted, identity = now_identity, timeline = now_timeline
        WHERE s.scheme = r.scheme;

        -- A's range had ended, W was granted to B, that grant was lost, and A,
        -- whose token is here again, extends its range.
        UPDATE @extschema@.snowflake_grants s SET token = NULL
        WHERE s.scheme = r.scheme AND s.token IS NOT NULL;
    END IF;

    first_worker_id := r.first_worker_id;
    last_worker_id := r.last_worker_id;
    grant_time := r.grant_time;
    reach := r.reach;
    slices := r.slices;
    slice := r.timeline % r.slices;
    lifted := r.lifted[slice + 1];

    -- The end of a range for a server with this next ID.  Without "reach", a
    -- server whose clock is a year ahead would reserve W until then, and lifting
    -- by 2 * reach would not be enough.
    IF next_id IS NOT NULL THEN
        until := @extschema@.snowflake_lower_bound(
            least(greatest(clock, @extschema@.snowflake_timestamp(next_id, scheme)) + grant_time, clock + reach), scheme);
        IF @extschema@.snowflake_timestamp(until, scheme) - @extschema@.snowflake_timestamp(next_id, scheme) < grant_time / 10 THEN
            RAISE EXCEPTION 'snowflake IDs of the server are too far ahead of the registry''s clock'
                USING ERRCODE = 'object_not_in_prerequisite_state',
                DETAIL = format('The time of the server''s next ID is %s, the registry''s clock reads %s, and grants reach %s ahead of it.',
                                @extschema@.snowflake_timestamp(next_id, scheme), clock, reach),
                HINT = 'Check the clocks of the server and the registry.';
        END IF;
    END IF;
END
$$;

REVOKE ALL ON FUNCTION snowflake_lock_registry(text, bigint) FROM PUBLIC;

COMMENT ON FUNCTION snowflake_lock_registry(text, bigint) IS
'internal to the registry: lock the settings of a scheme, check whether grants
might have been lost, and return the settings with what follows from them;
errors: 55000 if the next ID is too far ahead of the registry''s clock, 42704 if
the registry has no worker IDs for the scheme, 22023 if it is not a valid
scheme, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_get_grant(
    scheme text,
    datacenter_id integer,
    wanted_worker_id integer,
    next_id bigint,
    tokens uuid[],
    new_token uuid,
    server_name text,
    OUT worker_id integer,
    OUT until bigint,
    OUT grant_time_ms bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record;
    g @extschema@.snowflake_grants;
    first_of_slice integer;
    clock_id bigint;
    limit_id bigint;
    free_from bigint;
    last_datacenter_id integer := (@extschema@.snowflake_read_scheme(scheme)).last_datacenter_id;
BEGIN
    IF num_nulls(scheme, datacenter_id, next_id, tokens, new_token) > 0 THEN
        RAISE EXCEPTION 'scheme, datacenter_id, next_id, tokens, and new_token must not be null'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
    IF datacenter_id NOT BETWEEN 0 AND last_datacenter_id THEN
        RAISE EXCEPTION 'datacenter ID % is out of range', datacenter_id
            USING ERRCODE = 'numeric_value_out_of_range',
            DETAIL = format('The scheme has datacenter IDs from 0 to %s.', last_datacenter_id);
    END IF;

    r := @extschema@.snowflake_lock_registry(scheme, next_id);
    clock_id := @extschema@.snowflake_lower_bound(r.clock, r.scheme);
    limit_id := least(clock_id, next_id);

    -- A holds W, but the answer was lost, or a process of A crashed.  A would
    -- take another W with each call, until none is left.  The token is that of
    -- the last call: a copy of A's memory has an older one, and does not hold W.
    -- Nor does A if its clock was set back since then: before the range started,
    -- W might have been B's.
    SELECT * INTO g FROM @extschema@.snowflake_grants s
    WHERE s.scheme = r.scheme AND s.datacenter_id = snowflake_get_grant.datacenter_id
    AND s.token = ANY (tokens) AND s.granted_from <= next_id
    AND s.worker_id BETWEEN r.first_worker_id AND r.last_worker_id
    ORDER BY s.renewed_at DESC LIMIT 1;

    IF g.worker_id IS NULL THEN
        -- W is free if its last range, and those that might have been lost, end
        --   at or below next_id: otherwise A, whose clock is behind, would make
        --   IDs that B made;
        --   at or below the clock: otherwise A, whose clock is ahead, would get
        --   the W's of all other servers, which would have to stop.
        -- The first choice is the W that the server wants, then the one that it
        -- held last, one that was never granted, and the one unused for longest.
        first_of_slice := r.first_worker_id + mod(r.slice - r.first_worker_id % r.slices + r.slices, r.slices);
        IF r.lifted <= limit_id THEN
            SELECT c.worker_id INTO g.worker_id
            FROM (SELECT s.worker_id, s.granted_until, s.renewed_at,
                         CASE WHEN s.worker_id = wanted_worker_id THEN 1
                              WHEN s.server_name = snowflake_get_grant.server_name THEN 2
                              ELSE 4 END AS choice
                  FROM @extschema@.snowflake_grants s
                  WHERE s.scheme = r.scheme AND s.datacenter_id = snowflake_get_grant.datacenter_id
                  AND s.granted_until <= limit_id
                  UNION ALL
                  (SELECT n.worker_id, 0, NULL, CASE n.worker_id WHEN wanted_worker_id THEN 1 ELSE 3 END
                   FROM (SELECT wanted_worker_id
                         UNION ALL
                         SELECT generate_series(first_of_slice, r.last_worker_id, r.slices)) n(worker_id)
                   WHERE NOT EXISTS (SELECT FROM @extschema@.snowflake_grants s
                                     WHERE s.scheme = r.scheme AND s.datacenter_id = snowflake_get_grant.datacenter_id
                                     AND s.worker_id = n.worker_id)
                   LIMIT 2)) c
            -- Others are granted by another registry, or by an old primary of
            -- this one that is still running.
            WHERE c.worker_id BETWEEN r.first_worker_id AND r.last_worker_id
            AND c.worker_id % r.slices = r.slice
            ORDER BY c.choice, CASE WHEN c.choice = 2 THEN c.renewed_at END DESC, c.granted_until, c.worker_id
            LIMIT 1;
        END IF;
        IF g.worker_id IS NULL THEN
            -- Lost grants were detected by this call.  An error would roll that
            -- back, the next call would detect and lift again, and servers would
            -- wait forever.  So the first call returns NULL.
            IF r.adopted THEN
                RETURN;
            END IF;
            SELECT CASE WHEN count(*) > (r.last_worker_id - first_of_slice) / r.slices
                        THEN greatest(min(s.granted_until), r.lifted)
                        ELSE r.lifted END
            INTO free_from
            FROM @extschema@.snowflake_grants s
            WHERE s.scheme = r.scheme AND s.datacenter_id = snowflake_get_grant.datacenter_id
            AND s.worker_id BETWEEN r.first_worker_id AND r.last_worker_id AND s.worker_id % r.slices = r.slice;
            RAISE EXCEPTION 'no worker ID is free'
                USING ERRCODE = 'configuration_limit_exceeded',
                DETAIL = CASE
                    WHEN free_from <= clock_id THEN
                        format('The next one is free for IDs from %s on, the time of the server''s next ID is %s, and the registry''s clock reads %s.',
                               @extschema@.snowflake_timestamp(free_from, r.scheme), @extschema@.snowflake_timestamp(next_id, r.scheme), r.clock)
                    WHEN free_from = r.lifted THEN
                        format('Grants might have been lost, or made by another registry, so this registry makes none until %s.',
                               @extschema@.snowflake_timestamp(free_from, r.scheme))
                    ELSE
                        format('All worker IDs that the registry can grant now (%s) are held or reserved. The next one is free at %s, unless its grant is extended.',
                               (r.last_worker_id - first_of_slice) / r.slices + 1, @extschema@.snowflake_timestamp(free_from, r.scheme))
                    END,
                HINT = CASE
                    WHEN free_from <= clock_id THEN 'Check the clocks of the server and the registry.'
                    WHEN free_from = r.lifted THEN 'Worker IDs that no registry has granted before can be granted at once; see snowflake_create_registry().'
                    ELSE 'To have the registry grant more worker IDs, call snowflake_create_registry().'
                    END;
        END IF;
        g.granted_from := next_id;
        g.granted_until := next_id;
    END IF;

    worker_id := g.worker_id;
    until := greatest(g.granted_until, r.until);
    grant_time_ms := extract(epoch FROM r.grant_time) * 1000;
    INSERT INTO @extschema@.snowflake_grants
    VALUES (r.scheme, datacenter_id, worker_id, g.granted_from, until, new_token,
            left(server_name, 255), inet_client_addr(), r.clock)
    ON CONFLICT ON CONSTRAINT snowflake_grants_pkey DO UPDATE
    SET (granted_from, granted_until, token, server_name, client_addr, renewed_at) =
        (excluded.granted_from, excluded.granted_until, excluded.token, excluded.server_name, excluded.client_addr, excluded.renewed_at);
END
$$;

REVOKE ALL ON FUNCTION snowflake_get_grant(text, integer, integer, bigint, uuid[], uuid, text) FROM PUBLIC;

COMMENT ON FUNCTION snowflake_get_grant(text, integer, integer, bigint, uuid[], uuid, text) IS
'for servers: get a worker ID, if possible the wanted one (NULL: any), for IDs
from next_id up to the returned end;
tokens are the new_token of each call that might have been the last one, which
gets the same worker ID again; if worker_id is NULL, call again; for roles
granted EXECUTE;
errors: 53400 if no worker ID is free, with the time when the next one is, 22003
if datacenter_id or next_id does not fit the scheme, 22004 if an argument other
than wanted_worker_id and server_name is NULL, 55000 if next_id is too far ahead
of the registry''s clock, 22008 if the timestamp field ends before the grant
could, 42704 if the registry has no worker IDs for the scheme, 22023 if it is
not a valid scheme, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_extend_grant(
    scheme text,
    datacenter_id integer,
    worker_id integer,
    next_id bigint,
    tokens uuid[],
    new_token uuid,
    server_name text,
    OUT until bigint,
    OUT grant_time_ms bigint)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record;
BEGIN
    IF num_nulls(scheme, datacenter_id, worker_id, next_id, tokens, new_token) > 0 THEN
        RAISE EXCEPTION 'scheme, datacenter_id, worker_id, next_id, tokens, and new_token must not be null'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;

    r := @extschema@.snowflake_lock_registry(scheme, next_id);

    UPDATE @extschema@.snowflake_grants s
    -- The end never decreases: A knows the old one.
    SET granted_until = greatest(s.granted_until, r.until),
        token = new_token,
        server_name = left(snowflake_extend_grant.server_name, 255),
        client_addr = inet_client_addr(),
        renewed_at = r.clock
    WHERE s.scheme = r.scheme
    AND s.datacenter_id = snowflake_extend_grant.datacenter_id
    AND s.worker_id = snowflake_extend_grant.worker_id
    -- A was suspended, its range ended, W was granted to B, and A resumes.  Or A
    -- returned W, and an earlier call of A arrives late.  Or A was restored from
    -- a snapshot of its memory, or runs twice: as each call stores a token of its
    -- own, the first of the two to call takes W from the other.
    AND s.token = ANY (tokens)
    -- W was removed from the registry's range, for use elsewhere.
    AND s.worker_id BETWEEN r.first_worker_id AND r.last_worker_id
    RETURNING s.granted_until INTO until;
    IF FOUND THEN
        grant_time_ms := extract(epoch FROM r.grant_time) * 1000;
        RETURN NEXT;
    END IF;
END
$$;

REVOKE ALL ON FUNCTION snowflake_extend_grant(text, integer, integer, bigint, uuid[], uuid, text) FROM PUBLIC;

COMMENT ON FUNCTION snowflake_extend_grant(text, integer, integer, bigint, uuid[], uuid, text) IS
'for servers: move the end of a grant ahead; tokens are the new_token of each
call that might have been the last one: the last one answered and those since;
no row if the server does not hold the worker ID (anymore), and must get another
one; for roles granted EXECUTE;
errors: 22003 if next_id does not fit the scheme, 22004 if an argument other
than server_name is NULL, 55000 if next_id is too far ahead of the registry''s
clock, 22008 if the timestamp field ends before the grant could, 42704 if the
registry has no worker IDs for the scheme, 22023 if it is not a valid scheme,
0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_return_grant(
    scheme text,
    datacenter_id integer,
    worker_id integer,
    tokens uuid[],
    until bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record;
BEGIN
    IF num_nulls(scheme, datacenter_id, worker_id, tokens) > 0 THEN
        RAISE EXCEPTION 'scheme, datacenter_id, worker_id, and tokens must not be null'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;

    r := @extschema@.snowflake_lock_registry(scheme, NULL::bigint);

    UPDATE @extschema@.snowflake_grants s
    -- The end of the used IDs, but never outside the granted range.
    SET granted_until = least(greatest(coalesce(until, s.granted_until), s.granted_from), s.granted_until),
        -- A late call of A finds nothing.
        token = NULL,
        renewed_at = r.clock
    WHERE s.scheme = r.scheme
    AND s.datacenter_id = snowflake_return_grant.datacenter_id
    AND s.worker_id = snowflake_return_grant.worker_id
    -- W is B's by now.  Or A runs twice, and this one is shut down, while the
    -- other one has called and made IDs above the end that this one returns.
    AND s.token = ANY (tokens);
    RETURN FOUND;
END
$$;

REVOKE ALL ON FUNCTION snowflake_return_grant(text, integer, integer, uuid[], bigint) FROM PUBLIC;

COMMENT ON FUNCTION snowflake_return_grant(text, integer, integer, uuid[], bigint) IS
'for servers: return a worker ID, which is free from the end of the used IDs on
(NULL: from the end of the grant on);
false if the server does not hold the worker ID (anymore); tokens as in
snowflake_extend_grant(); for roles granted EXECUTE;
errors: 22004 if an argument other than until is NULL, 42704 if the registry has
no worker IDs for the scheme, 22023 if it is not a valid scheme, 0A000 above
READ COMMITTED, 25006 on a standby';

-- registry: functions for administrators

CREATE FUNCTION snowflake_create_registry(
    first_worker_id integer,
    last_worker_id integer,
    scheme text DEFAULT NULL,
    grant_time interval DEFAULT '10 min',
    reach interval DEFAULT '1 hour',
    failovers integer DEFAULT 3,
    new boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own record := @extschema@.snowflake_read_scheme(scheme);
    r @extschema@.snowflake_registry;
    n_slices integer := failovers + 1;
    created boolean;
    disjoint boolean;
    wrong text;
BEGIN
    IF num_nulls(first_worker_id, last_worker_id, grant_time, reach, failovers, new) > 0 THEN
        RAISE EXCEPTION 'first_worker_id, last_worker_id, grant_time, reach, failovers, and new must not be null'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
    wrong := CASE
        WHEN own.last_worker_id = 0 THEN
            'The scheme has no worker field.'
        WHEN first_worker_id < 1 OR last_worker_id > own.last_worker_id OR first_worker_id > last_worker_id THEN
            format('Worker IDs must be between 1 and %s, and first_worker_id must not be greater than last_worker_id.', own.last_worker_id)
        WHEN failovers NOT BETWEEN 0 AND 99 THEN
            'failovers must be between 0 and 99.'
        WHEN last_worker_id - first_worker_id < failovers THEN
            format('With failovers => %s, there must be at least %s worker IDs.', failovers, n_slices)
        WHEN grant_time < greatest('1 s', own.tick) THEN
            format('grant_time must be at least %s.', greatest('1 s', own.tick))
        WHEN reach < 2 * grant_time OR reach > '365 d' THEN
            'reach must be at least twice grant_time and at most 365 days.'
        END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'invalid settings for a registry'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = wrong;
    END IF;

    -- A new registry is treated like one that has lost all grants, so that the
    -- next statement lifts all of its slices.
    INSERT INTO @extschema@.snowflake_registry
    VALUES (own.canonical, first_worker_id, last_worker_id, grant_time, reach, n_slices, array_fill(0, ARRAY[n_slices]), '', 0)
    ON CONFLICT ON CONSTRAINT snowflake_registry_pkey DO NOTHING;
    created := FOUND;
    PERFORM @extschema@.snowflake_lock_registry(own.canonical, NULL::bigint);
    SELECT * INTO r FROM @extschema@.snowflake_registry s WHERE s.scheme = own.canonical;

    disjoint := first_worker_id > r.last_worker_id OR last_worker_id < r.first_worker_id;
    IF new AND (created OR disjoint) THEN
        r.lifted := array_fill(0, ARRAY[n_slices]);
    ELSIF n_slices <> r.slices
        OR (NOT new AND (first_worker_id < r.first_worker_id OR last_worker_id > r.last_worker_id)) THEN
        -- Another registry might have granted the added W's.  And if the number
        -- of slices has changed, W's that were granted before the last failover
        -- might be in the slice that is granted now.
        r.lifted := array_fill(greatest((SELECT max(l) FROM unnest(r.lifted) l),
                                        @extschema@.snowflake_lower_bound(clock_timestamp() + 2 * greatest(r.reach, reach), r.scheme)),
                               ARRAY[n_slices]);
    END IF;
    IF n_slices <> r.slices THEN
        -- Only W's of the slice that is granted have tokens, so that the next
        -- failover lifts them.
        UPDATE @extschema@.snowflake_grants s SET token = NULL
        WHERE s.scheme = r.scheme AND s.token IS NOT NULL;
    END IF;

    UPDATE @extschema@.snowflake_registry s
    SET first_worker_id = snowflake_create_registry.first_worker_id,
        last_worker_id = snowflake_create_registry.last_worker_id,
        -- in seconds, because a day can have 23 hours
        grant_time = make_interval(secs => extract(epoch FROM snowflake_create_registry.grant_time)::double precision),
        reach = make_interval(secs => extract(epoch FROM snowflake_create_registry.reach)::double precision),
        slices = n_slices,
        lifted = r.lifted
    WHERE s.scheme = r.scheme;

    IF r.lifted[r.timeline % n_slices + 1] > @extschema@.snowflake_lower_bound(clock_timestamp(), r.scheme) THEN
        RAISE NOTICE 'the registry does not grant worker IDs yet'
            USING DETAIL = format('They might have been granted by another registry, or by this one in other slices. The registry grants them from %s on.',
                                  @extschema@.snowflake_timestamp(r.lifted[r.timeline % n_slices + 1], r.scheme)),
            HINT = 'If no registry has ever granted them, call snowflake_drop_registry(), and then snowflake_create_registry() with new => true.';
    END IF;
END
$$;

REVOKE ALL ON FUNCTION snowflake_create_registry(integer, integer, text, interval, interval, integer, boolean) FROM PUBLIC;

COMMENT ON FUNCTION snowflake_create_registry(integer, integer, text, interval, interval, integer, boolean) IS
'make this database grant worker IDs to servers, from the first to the last, for
a scheme (NULL: that of this server), or change these settings;
grant_time is how long a server can make IDs without the registry, reach how far
ahead of the registry''s clock grants can end, failovers how many failovers
within 2 * reach do not interrupt granting;
new registries, added worker IDs, and changed failovers take effect after 2 *
reach, unless new states that no registry has granted these worker IDs and no
server has them set; for superusers, and roles granted EXECUTE;
errors: 22023 if a setting is out of range, 22004 if a setting other than scheme
is NULL, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_drop_registry(scheme text)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record := @extschema@.snowflake_lock_registry(scheme, NULL::bigint);
BEGIN
    DELETE FROM @extschema@.snowflake_registry s WHERE s.scheme = r.scheme;
END
$$;

REVOKE ALL ON FUNCTION snowflake_drop_registry(text) FROM PUBLIC;

COMMENT ON FUNCTION snowflake_drop_registry(text) IS
'stop granting worker IDs for a scheme (NULL: that of this server), and forget
the grants, which servers use until they end; for superusers, and roles granted
EXECUTE;
errors: 42704 if the registry has no worker IDs for the scheme, 22023 if it is
not a valid scheme, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry_lost(scheme text DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record := @extschema@.snowflake_lock_registry(scheme, NULL::bigint);
    lift bigint := @extschema@.snowflake_lower_bound(r.clock + 2 * r.reach, r.scheme);
BEGIN
    UPDATE @extschema@.snowflake_registry s
    SET lifted = ARRAY(SELECT greatest(l, lift) FROM unnest(s.lifted) l)
    WHERE s.scheme = r.scheme
    RETURNING s.lifted[r.slice + 1] INTO lift;
    UPDATE @extschema@.snowflake_grants s SET token = NULL
    WHERE s.scheme = r.scheme AND s.token IS NOT NULL;
    RETURN @extschema@.snowflake_timestamp(lift, r.scheme);
END
$$;

REVOKE ALL ON FUNCTION snowflake_registry_lost(text) FROM PUBLIC;

COMMENT ON FUNCTION snowflake_registry_lost(text) IS
'tell the registry that grants for a scheme (NULL: that of this server) might
have been lost, for example by restoring a backup or disk snapshot; it makes
none for 2 * reach, and returns when that ends; for superusers, and roles
granted EXECUTE;
errors: 42704 if the registry has no worker IDs for the scheme, 22023 if it is
not a valid scheme, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_free_worker(
    worker_id integer,
    datacenter_id integer DEFAULT 0,
    scheme text DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record := @extschema@.snowflake_lock_registry(scheme, NULL::bigint);
    until bigint;
BEGIN
    -- The end stays: the server can make IDs up to it.
    UPDATE @extschema@.snowflake_grants s SET token = NULL, renewed_at = r.clock
    WHERE s.scheme = r.scheme
    AND s.datacenter_id = snowflake_free_worker.datacenter_id
    AND s.worker_id = snowflake_free_worker.worker_id
    RETURNING greatest(s.granted_until, r.lifted) INTO until;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'worker ID % was never granted', worker_id
            USING ERRCODE = 'undefined_object',
            HINT = 'See the view snowflake_workers for worker IDs that were granted.';
    END IF;
    RETURN @extschema@.snowflake_timestamp(until, r.scheme);
END
$$;

REVOKE ALL ON FUNCTION snowflake_free_worker(integer, integer, text) FROM PUBLIC;

COMMENT ON FUNCTION snowflake_free_worker(integer, integer, text) IS
'take a worker ID of a scheme (NULL: that of this server) from the server that
holds it, which then gets another one;
returns when it is free, the end of its grant; for superusers, and roles granted
EXECUTE;
errors: 42704 if it was never granted, 42704 if the registry has no worker IDs
for the scheme, 22023 if it is not a valid scheme, 0A000 above READ COMMITTED,
25006 on a standby';

-- registry: view

CREATE VIEW snowflake_workers AS
    SELECT g.scheme, g.datacenter_id, g.worker_id, g.server_name, g.client_addr,
        CASE
            WHEN g.worker_id NOT BETWEEN r.first_worker_id AND r.last_worker_id THEN 'outside'
            WHEN g.token IS NOT NULL AND t.granted_until > t.clock THEN 'held'
            WHEN g.token IS NOT NULL THEN 'lapsed'
            WHEN t.free_from > t.clock THEN 'reserved'
            -- The cast makes the operator unambiguous: the schema could have others.
            WHEN g.worker_id % r.slices <> r.timeline % r.slices::bigint THEN 'spare'
            ELSE 'free'
        END AS state,
        snowflake_timestamp(g.granted_from, g.scheme) AS granted_from,
        t.granted_until, g.renewed_at, t.free_from
    FROM snowflake_grants g
        JOIN snowflake_registry r ON r.scheme = g.scheme
        CROSS JOIN LATERAL (SELECT snowflake_timestamp(g.granted_until, g.scheme) AS granted_until,
                                   snowflake_timestamp(greatest(g.granted_until, r.lifted[g.worker_id % r.slices + 1]), g.scheme) AS free_from,
                                   clock_timestamp() AS clock) t;

GRANT SELECT ON snowflake_workers TO pg_monitor;

COMMENT ON VIEW snowflake_workers IS
'worker IDs that this database has granted to servers, with the last grant of each';
COMMENT ON COLUMN snowflake_workers.scheme IS
'scheme of the IDs';
COMMENT ON COLUMN snowflake_workers.datacenter_id IS
'datacenter ID, 0 if the scheme does not have the field';
COMMENT ON COLUMN snowflake_workers.worker_id IS
'worker ID';
COMMENT ON COLUMN snowflake_workers.server_name IS
'name of the last server that held the worker ID';
COMMENT ON COLUMN snowflake_workers.client_addr IS
'address that the server called from; NULL for a Unix-domain socket';
COMMENT ON COLUMN snowflake_workers.state IS
'held; lapsed: the server did not extend its grant; reserved: no server holds it,
and it is free from free_from on; free; spare: free after a failover; outside:
no longer granted';
COMMENT ON COLUMN snowflake_workers.granted_from IS
'start of the grant, as the time of IDs';
COMMENT ON COLUMN snowflake_workers.granted_until IS
'end of the grant, as the time of IDs';
COMMENT ON COLUMN snowflake_workers.renewed_at IS
'time of the last change, by the registry''s clock';
COMMENT ON COLUMN snowflake_workers.free_from IS
'time from which the worker ID is free, unless its grant is extended';

-- warning if the library is not preloaded
--
-- The extension is installed, but cannot make IDs.  The hint is that of the error
-- that calls will get.

DO $$
DECLARE
    hint text;
BEGIN
    PERFORM snowflake_parse(bigint '0');
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RAISE WARNING 'snowflake cannot make IDs until it is loaded via "shared_preload_libraries"'
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = hint;
END
$$;

-- privileges of the registry's functions
--
-- The functions run as the superuser who owns them, and refer to objects by the
-- name of the schema.  The owner of the schema could give that name to another
-- schema, and so run code of their own as a superuser.  If that owner is not a
-- superuser, the functions therefore run as the caller, who has no privileges on
-- the tables.
--
-- Otherwise, dumps contain the settings of the registry, but not the grants, which
-- change after the dump was taken.  (If the owner of a database is not a superuser
-- and cannot read the extension's tables, pg_dump would fail.)

DO $$
DECLARE
    f regprocedure;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF (SELECT o.rolsuper
        FROM pg_extension e
            JOIN pg_namespace n ON n.oid = e.extnamespace
            JOIN pg_database d ON d.datname = current_database()
            JOIN pg_roles o ON o.oid = CASE n.nspowner WHEN 'pg_database_owner'::regrole THEN d.datdba ELSE n.nspowner END
        WHERE e.extname = 'snowflake') THEN
        PERFORM pg_extension_config_dump('@extschema@.snowflake_registry', '');
        RETURN;
    END IF;
    FOR f IN
        SELECT p.oid
        FROM pg_proc p
            JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
            JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
        WHERE e.extname = 'snowflake' AND p.prosecdef
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY INVOKER', f);
    END LOOP;
END
$$;
