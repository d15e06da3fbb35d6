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

CREATE FUNCTION snowflake_parse(
    id bigint,
    OUT "timestamp" timestamptz,
    OUT datacenter_id integer,
    OUT worker_id integer,
    OUT sequence integer)
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
    OUT sequence integer)
AS 'MODULE_PATHNAME', 'snowflake_parse_scheme'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_parse(bigint, text) IS
'parts of a snowflake ID by a scheme given as text: a name or key=value items like those of snowflake.scheme; '
'22023 if the text is no scheme, 22003 if the ID is negative or wider than the scheme';

CREATE FUNCTION snowflake_reset(mark bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_reset'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_reset(bigint) IS
'set the mark, below which are all snowflake IDs made so far, to a value of one''s own, for a mark that a wrong clock drove far ahead; '
'IDs at or above it that were made before may be made again; 22003 if it is negative or wider than the scheme';

REVOKE ALL ON FUNCTION snowflake_reset(bigint) FROM PUBLIC;

CREATE FUNCTION uuid_v4()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_v4'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuid_v4() IS
'random UUID, version 4 of RFC 9562: 122 bits of the server''s strong random source';
