/* snowflake_keys--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_keys" to load this file. \quit

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

CREATE FUNCTION hashids_encode_array(
    numbers bigint[],
    salt text DEFAULT '',
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'hashids_encode_array'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION hashids_encode_array(bigint[], text, integer, text) IS
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
'numbers of a Hashid made by hashids_encode(), hashids_encode_array(), or another
Hashids library;
errors: 22P02 if it was not made with this salt, min_length, and alphabet, 22003
if a number is out of range for bigint, 22023 as in hashids_encode()';

-- Sqids

CREATE FUNCTION sqids_encode(
    number bigint,
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL,
    blocklist text[] DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'sqids_encode'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION sqids_encode(bigint, integer, text, text[]) IS
'Sqid of a number, by the algorithm of sqids.org; the default alphabet is a-z, A-Z,
0-9, the default blocklist that of the specification; this is not encryption;
errors: 22003 if the number is negative, 22023 if min_length is not between 0
and 255, the alphabet does not have at least 3 printable ASCII characters, all
different, or the blocklist leaves no Sqid, 22004 if it contains NULL';

CREATE FUNCTION sqids_encode_array(
    numbers bigint[],
    min_length integer DEFAULT 0,
    alphabet text DEFAULT NULL,
    blocklist text[] DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'sqids_encode_array'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION sqids_encode_array(bigint[], integer, text, text[]) IS
'Sqid of up to 10000 numbers, by the algorithm of sqids.org;
errors: 22004 if a number is NULL, 2202E if the array has several dimensions,
54000 if there are more numbers, and those for a single number';

CREATE FUNCTION sqids_decode(
    sqid text,
    alphabet text DEFAULT NULL)
RETURNS bigint[]
AS 'MODULE_PATHNAME', 'sqids_decode'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION sqids_decode(text, text) IS
'numbers of a Sqid made by sqids_encode(), sqids_encode_array(), or another Sqids
library, with any min_length and blocklist;
errors: 22P02 if no numbers have this text with this alphabet, 22003 if a number
is out of range for bigint, 22023 as in sqids_encode()';

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
the date and a number of 10 digits, and UPDATE for the first number if the
sequence belongs to a column of numbers or was used for other numbers;
errors: 2200H if no number is left for the day, 55000 if an option or the value
of the sequence is not suitable, 22023 if digits or time_zone is invalid, 22008
outside the years 1000 to 9999, 42501 without these privileges, 25006 on a
standby and in a read-only transaction';
