-- administration

CREATE FUNCTION snowflake_raise_mark(mark bigint)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_raise_mark'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_raise_mark(bigint) IS
'ensure that all later snowflake IDs of this server are at or above a mark, such
as one that was copied from another server;
for superusers, and roles granted EXECUTE; never lowers the mark, and takes
effect at once;
returns the mark, which is higher if it was higher before, when the synchronous
standbys have it;
errors: 22003 if the mark does not fit the scheme, 22023 if its time is ahead of
the clock by more than snowflake.max_clock_forward, 25006 on a standby';

REVOKE ALL ON FUNCTION snowflake_raise_mark(bigint) FROM PUBLIC;

CREATE FUNCTION snowflake_set_mark(
    mark bigint,
    tables regclass[] DEFAULT '{}',
    force boolean DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_set_mark'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_set_mark(bigint, regclass[], boolean) IS
'set the mark, below which are all snowflake IDs generated so far; for superusers, and
roles granted EXECUTE;
to lower it, specify all tables that have such IDs, which are locked against
changes until the transaction ends, or force;
errors: 55000 if a table has an ID at or above the new mark, or neither tables
nor force are specified, 22004 if one of the tables is null, 22023 if a table
has no column of snowflake IDs, or the mark is too far ahead of the clock
without force, 42501 if the caller does not own a table, 22003 if the mark does
not fit the scheme, 25006 on a standby';

REVOKE ALL ON FUNCTION snowflake_set_mark(bigint, regclass[], boolean) FROM PUBLIC;

CREATE FUNCTION snowflake_accept_clock()
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_accept_clock'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_accept_clock() IS
'generate snowflake IDs by the clock although it is further ahead than
snowflake.max_clock_forward, and return its time; for superusers, and roles
granted EXECUTE;
errors: 25006 on a standby, 22008 if the time is out of range for the scheme';

REVOKE ALL ON FUNCTION snowflake_accept_clock() FROM PUBLIC;

-- statistics

CREATE FUNCTION _snowflake_stat()
RETURNS record
AS 'MODULE_PATHNAME', 'snowflake_stat'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION _snowflake_stat() IS
'internal: row of the view snowflake_stat';

CREATE VIEW snowflake_stat AS
    SELECT * FROM _snowflake_stat() s(
        scheme text,
        datacenter_id integer,
        worker_id integer,
        worker_id_set boolean,
        last_timestamp timestamptz,
        mark bigint,
        mark_timestamp timestamptz,
        expires_at timestamptz,
        lead_ms double precision,
        follows_clock boolean,
        ids bigint,
        granted_until timestamptz,
        registry_contact timestamptz,
        registry_error text,
        registry_error_since timestamptz,
        sequence_waits bigint,
        sequence_wait_ms double precision,
        clock_waits bigint,
        clock_wait_ms double precision,
        reserve_waits bigint,
        reserve_wait_ms double precision,
        grant_waits bigint,
        grant_wait_ms double precision,
        clock_errors bigint,
        mark_errors bigint,
        clock_steps bigint,
        max_backward_ms double precision,
        reserves bigint,
        stats_reset timestamptz);

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
'mark, below which are all IDs generated so far; NULL if no ID was ever generated';
COMMENT ON COLUMN snowflake_stat.mark_timestamp IS
'time of the mark; NULL if the scheme has none for it';
COMMENT ON COLUMN snowflake_stat.expires_at IS
'end of the timestamp field';
COMMENT ON COLUMN snowflake_stat.lead_ms IS
'how far the last ID (before the first one, and on a standby, the mark) is ahead
of the clock, in milliseconds';
COMMENT ON COLUMN snowflake_stat.follows_clock IS
'whether the last ID followed the clock; false after a jump ahead that is too far
(snowflake.max_clock_forward) or past the end of the grant';
COMMENT ON COLUMN snowflake_stat.ids IS
'IDs generated';
COMMENT ON COLUMN snowflake_stat.granted_until IS
'end of the grant, as the time of IDs; NULL without a grant';
COMMENT ON COLUMN snowflake_stat.registry_contact IS
'time of the last successful call of the registry; NULL if there was none';
COMMENT ON COLUMN snowflake_stat.registry_error IS
'error of the last call of the registry, for members of pg_monitor and
pg_read_all_settings; NULL if it succeeded';
COMMENT ON COLUMN snowflake_stat.registry_error_since IS
'time since which calls of the registry have failed; NULL if the last one succeeded';
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
COMMENT ON COLUMN snowflake_stat.grant_waits IS
'calls that waited for a grant from the registry';
COMMENT ON COLUMN snowflake_stat.grant_wait_ms IS
'time that calls waited for a grant, in milliseconds';
COMMENT ON COLUMN snowflake_stat.clock_errors IS
'calls that failed because the clock was wrong';
COMMENT ON COLUMN snowflake_stat.mark_errors IS
'calls that failed to write the mark, because no replication origin is free';
COMMENT ON COLUMN snowflake_stat.clock_steps IS
'times that the clock was found ahead or behind by a second or more';
COMMENT ON COLUMN snowflake_stat.max_backward_ms IS
'farthest that the clock was behind the last ID, in milliseconds';
COMMENT ON COLUMN snowflake_stat.reserves IS
'writes of the mark';
COMMENT ON COLUMN snowflake_stat.stats_reset IS
'time since which the counters count';

CREATE FUNCTION snowflake_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_stat_reset'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION snowflake_stat_reset() IS
'reset the counters of the view snowflake_stat to 0; for superusers, and roles
granted EXECUTE';

REVOKE ALL ON FUNCTION snowflake_stat_reset() FROM PUBLIC;

