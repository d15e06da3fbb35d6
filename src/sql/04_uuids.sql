-- UUIDs

CREATE FUNCTION uuid_v4()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_v4'
LANGUAGE C VOLATILE PARALLEL SAFE
SUPPORT _snowflake_copy_support;

COMMENT ON FUNCTION uuid_v4() IS
'random UUID (version 4 of RFC 9562), with 122 bits from the server''s strong
random number generator';

CREATE FUNCTION uuid_v7()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_v7'
LANGUAGE C VOLATILE PARALLEL SAFE
SUPPORT _snowflake_copy_support;

COMMENT ON FUNCTION uuid_v7() IS
'time-ordered UUID (version 7 of RFC 9562), greater than all that this server
generated before with the same snowflake.scheme: milliseconds and sequence of a new
snowflake ID, and random bits;
errors: those of snowflake_nextval(), and 22008 from the year 10889 on';

CREATE FUNCTION uuid_v7(ts timestamptz)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_v7_at'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuid_v7(timestamptz) IS
'UUID of version 7 for a row of this time, which sorts by it, to the microsecond among
its like; the rest is random;
error: 22008 if the time is not between the years 1970 and 10889';

CREATE FUNCTION uuid_timestamp(id uuid)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'uuid_timestamp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuid_timestamp(uuid) IS
'time of a UUID of version 1 or 6 (to the microsecond) or 7 (to the millisecond);
NULL for other versions and variants. A ULID stored as uuid can look like one of
these: then the time is wrong';

CREATE FUNCTION uuid_lower_bound(ts timestamptz)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuid_lower_bound'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuid_lower_bound(timestamptz) IS
'smallest UUID of version 7 at or after a time: id >= uuid_lower_bound(a) AND id <
uuid_lower_bound(b) selects the UUIDs of times in [a, b);
error: 22008 if the time is not between the years 1970 and 10889';

