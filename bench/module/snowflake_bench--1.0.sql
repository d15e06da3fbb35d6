/* snowflake_bench--1.0.sql */

\echo Use "CREATE EXTENSION snowflake_bench" to load this file. \quit

CREATE FUNCTION bench_empty() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION bench_empty() IS 'a function that does nothing';

CREATE FUNCTION bench_floor() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION bench_floor() IS 'one reading of the clock and one atomic fetch-add on shared memory';

CREATE FUNCTION bench_own_floor() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION bench_own_floor() IS 'the same on the counter that this backend uses';

CREATE FUNCTION bench_own_add() RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION bench_own_add() IS 'one atomic fetch-add on the counter that this backend uses';

CREATE FUNCTION bench_use_counter(number integer) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION bench_use_counter(integer) IS 'choose the counter that this backend uses: from 0, which is that of bench_floor(), to 64';

CREATE FUNCTION bench_counter(number integer) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION bench_counter(integer) IS 'what a counter stands at';

CREATE FUNCTION bench_pin(processor integer) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION bench_pin(integer) IS 'have this backend run on one processor only, from 0';

CREATE FUNCTION bench_handover(turn integer, seconds float8) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION bench_handover(integer, float8) IS 'take turns with another backend, 0 and 1, at the counter that both use, for a time: how many turns this one had';

CREATE FUNCTION bench_count(f regprocedure, argument bigint, seconds float8,
    OUT calls bigint, OUT ns bigint)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION bench_count(regprocedure, bigint, float8) IS 'call a function in a loop for a time: how many calls, in how many ns';

CREATE FUNCTION bench_latency(f regprocedure, argument bigint, seconds float8,
    OUT p999_ns bigint, OUT max_ns bigint)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION bench_latency(regprocedure, bigint, float8) IS 'the same, with each call timed: 99.9th percentile and longest';
