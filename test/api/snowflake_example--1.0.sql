/* snowflake_example--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_example" to load this file. \quit

CREATE FUNCTION example_id()
RETURNS bigint
AS 'MODULE_PATHNAME', 'example_id'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION example_id() IS
'ID that sorts by time, and does not show on which server it was made, nor how many there are';

CREATE FUNCTION example_snowflake_id(id bigint)
RETURNS bigint
AS 'MODULE_PATHNAME', 'example_snowflake_id'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION example_snowflake_id(bigint) IS
'snowflake ID that example_id() made its ID of';

CREATE FUNCTION example_order_number()
RETURNS text
AS 'MODULE_PATHNAME', 'example_order_number'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION example_order_number() IS
'order number: worker ID, tick, and the bits of the snowflake ID below the tick';

CREATE FUNCTION example_block(count integer)
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'example_block'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION example_block(integer) IS
'as many new snowflake IDs, rising';

CREATE FUNCTION example_parts(
    id bigint,
    OUT "timestamp" timestamptz,
    OUT tick bigint,
    OUT datacenter_id integer,
    OUT worker_id integer,
    OUT sequence bigint)
AS 'MODULE_PATHNAME', 'example_parts'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION example_parts(bigint) IS
'parts of a snowflake ID, 0 for those that it does not have';

CREATE FUNCTION example_scheme(
    OUT scheme text,
    OUT epoch timestamptz,
    OUT tick_us bigint,
    OUT widths integer[],
    OUT shifts integer[])
AS 'MODULE_PATHNAME', 'example_scheme'
LANGUAGE C STABLE PARALLEL SAFE;

COMMENT ON FUNCTION example_scheme() IS
'scheme of the server''s snowflake IDs; widths and shifts are those of timestamp, datacenter, worker and sequence';

CREATE FUNCTION example_version(version integer)
RETURNS integer
AS 'MODULE_PATHNAME', 'example_version'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION example_version(integer) IS
'version of snowflake''s C interface; an error if it is below the one given';
