/* snowflake_bench--1.0.sql */

\echo Use "CREATE EXTENSION snowflake_bench" to load this file. \quit

CREATE FUNCTION bench_empty() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION bench_empty() IS 'a function that does nothing';

CREATE FUNCTION bench_floor() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION bench_floor() IS 'one reading of the clock and one atomic fetch-add on shared memory';

CREATE FUNCTION bench_count(f regprocedure, argument bigint, seconds float8,
    OUT calls bigint, OUT ns bigint)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION bench_count(regprocedure, bigint, float8) IS 'call a function in a loop for a time: how many calls, in how many ns';

CREATE FUNCTION bench_latency(f regprocedure, argument bigint, seconds float8,
    OUT p999_ns bigint, OUT max_ns bigint)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION bench_latency(regprocedure, bigint, float8) IS 'the same, with each call timed: 99.9th percentile and longest';
