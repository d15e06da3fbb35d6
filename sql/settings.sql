--
-- Settings
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
RESET client_min_messages;

SELECT name, unit, context, vartype, boot_val, min_val, max_val, enumvals
FROM pg_settings WHERE name LIKE 'snowflake.%'
ORDER BY name COLLATE "C";

SET snowflake.default_sequence_kind = snowflake;
RESET snowflake.default_sequence_kind;
-- no other can be changed in a session (the messages are the server's own)
\set VERBOSITY sqlstate
SET snowflake.scheme = 'twitter';
SET snowflake.worker_id = 1;
SET snowflake.datacenter_id = 1;
SET snowflake.sequence_start = zero;
SET snowflake.max_lead = 1;
SET snowflake.max_clock_backward = 1;
SET snowflake.clock_backward = wait;
SET snowflake.max_clock_forward = '1 h';
SET snowflake.synchronous_mark = off;
SET snowflake.reserve_time = 100;

-- a mistyped name is an error
SET snowflake.workerid = 1;
SHOW snowflake.max_leed;

-- values for the next start are checked, as far as possible now
\set VERBOSITY default
ALTER SYSTEM SET snowflake.scheme = 'twiter';
ALTER SYSTEM SET snowflake.scheme = 'worker=22,timestamp=41,sequence=12';
ALTER SYSTEM SET snowflake.scheme = 'worker=10,timestamp=41,sequence=12';
ALTER SYSTEM SET snowflake.worker_id = 1024;
ALTER SYSTEM SET snowflake.datacenter_id = 1;
\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake.worker_id = 'one';
ALTER SYSTEM SET snowflake.worker_id = -2;
ALTER SYSTEM SET snowflake.datacenter_id = -1;
ALTER SYSTEM SET snowflake.sequence_start = 'one';
ALTER SYSTEM SET snowflake.max_lead = -1;
ALTER SYSTEM SET snowflake.max_lead = '1 fortnight';
ALTER SYSTEM SET snowflake.max_clock_backward = -1;
ALTER SYSTEM SET snowflake.clock_backward = 'stop';
ALTER SYSTEM SET snowflake.max_clock_forward = '59 s';
ALTER SYSTEM SET snowflake.synchronous_mark = 'remote';
ALTER SYSTEM SET snowflake.reserve_time = 9;
