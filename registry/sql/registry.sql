--
-- The registry, as far as one session sees it.  registry/test/protocol.pl has the rest.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION snowflake_registry;
RESET client_min_messages;
SET timezone = 'UTC';
SET datestyle = 'ISO';
\set SHOW_CONTEXT never

-- the extension: what it has, and all of it has comments, also columns that users read
SELECT n.nspname, o.rolsuper AS of_a_superuser, extrelocatable
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
WHERE extname = 'snowflake_registry';
CREATE TEMP VIEW member AS
SELECT classid, objid FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND classid <> 'pg_type'::regclass
AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_registry');
SELECT p.oid::regprocedure, p.provolatile, p.proparallel, p.prosecdef, p.proconfig
FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT pg_describe_object(classid, objid, 0) FROM member WHERE classid <> 'pg_proc'::regclass ORDER BY pg_describe_object(classid, objid, 0) COLLATE "C";
SELECT classid::regclass, objid FROM member
WHERE obj_description(objid, classid::regclass::name) IS NULL;
SELECT a.attrelid::regclass, a.attname
FROM member m JOIN pg_attribute a ON m.classid = 'pg_class'::regclass AND a.attrelid = m.objid AND a.attnum > 0
    JOIN pg_class c ON c.oid = m.objid AND (c.relkind = 'v' OR c.relname = 'range_evidence')
WHERE col_description(a.attrelid, a.attnum) IS NULL;
-- functions that do not use the caller's search_path: in C, bound to what they call, or with one of their own
SELECT p.oid::regprocedure AS by_search_path
FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
    JOIN pg_language l ON l.oid = p.prolang
WHERE l.lanname <> 'c' AND p.prosqlbody IS NULL AND p.proconfig IS NULL;

-- schemes, as the registry writes them
SELECT * FROM snowflake_registry.read_scheme(NULL);
SELECT * FROM snowflake_registry.read_scheme('twitter');
SELECT text, s.*
FROM unnest(ARRAY[' TIMESTAMP = 41 , worker=10,sequence=12, epoch=1970-01-01,tick=1000ms', 'twitter,epoch=1999-12-31T23:59',
                  'epoch=2016-02-29T23:59:59.999,tick=90s,timestamp=30,unused=1,unused=2,sequence=4,unused=3',
                  'epoch=1999-12-31T23:59:00+01:30,tick=1500us,timestamp=20,sequence=1', 'epoch=0001-01-01,timestamp=50,sequence=1',
                  'epoch=9999-12-31T23:59:59.999,timestamp=10,sequence=1', 'epoch=-1,timestamp=50,sequence=1']) text,
    snowflake_registry.read_scheme(text) s;
SELECT snowflake_registry.read_scheme('worker=7,timestamp=30,sequence=4');
SELECT snowflake_registry.read_scheme('twitter,epoch=1999-12-31T24:00');
-- written and read again, the same
SELECT count(*), bool_and(s.canonical = t.canonical AND s.tick = t.tick)
FROM generate_series('0001-01-01'::timestamp, '9999-12-31', '977 days 1:02:03.004') epoch,
    LATERAL snowflake_registry.read_scheme(format('epoch=%s,timestamp=40,worker=3,sequence=9', to_char(epoch, 'YYYY-MM-DD"T"HH24:MI:SS.MS'))) s,
    LATERAL snowflake_registry.read_scheme(s.canonical) t
WHERE s.canonical LIKE 'epoch=' || to_char(epoch, 'YYYY-MM-DD') || '%';

-- the calls of servers, for short: tokens are numbers, the next ID is so many
-- minutes ahead of the clock, as is the end in the answer
CREATE SCHEMA r;
CREATE FUNCTION r.id(minutes numeric, scheme text DEFAULT 'shardingsphere') RETURNS bigint LANGUAGE sql AS
'SELECT snowflake_lower_bound(clock_timestamp() + minutes * interval ''1 min'', scheme)';
CREATE FUNCTION r.minutes(id bigint) RETURNS int LANGUAGE sql AS
'SELECT extract(epoch FROM snowflake_timestamp(id) - clock_timestamp() + interval ''5 s'') / 60';
CREATE FUNCTION r.token(n int) RETURNS uuid LANGUAGE sql AS
'SELECT lpad(n::text, 32, ''0'')::uuid';
CREATE FUNCTION r.get(tokens int[], new int, wanted int DEFAULT NULL, minutes numeric DEFAULT 0, name text DEFAULT 'a',
                      scheme text DEFAULT 'shardingsphere', datacenter int DEFAULT 0,
                      OUT worker_id int, OUT ends int, OUT grant_time_ms bigint) LANGUAGE sql AS
'SELECT worker_id, CASE WHEN scheme = ''shardingsphere'' THEN r.minutes(until) END, grant_time_ms FROM snowflake_registry.get_grant(scheme, datacenter, wanted, r.id(minutes, scheme),
     ARRAY(SELECT r.token(t) FROM unnest(tokens) t), r.token(new), name)';
CREATE FUNCTION r.extend(worker_id int, tokens int[], new int, minutes numeric DEFAULT 0, name text DEFAULT 'a',
                         OUT ends int, OUT grant_time_ms bigint) RETURNS SETOF record LANGUAGE sql AS
'SELECT r.minutes(until), grant_time_ms FROM snowflake_registry.extend_grant(''shardingsphere'', 0, worker_id, r.id(minutes),
     ARRAY(SELECT r.token(t) FROM unnest(tokens) t), r.token(new), name)';
CREATE FUNCTION r.return(worker_id int, tokens int[], until bigint DEFAULT NULL) RETURNS boolean LANGUAGE sql AS
'SELECT snowflake_registry.return_grant(''shardingsphere'', 0, worker_id, ARRAY(SELECT r.token(t) FROM unnest(tokens) t), until)';
-- what happened so long ago
CREATE FUNCTION r.pass(minutes int, worker int DEFAULT NULL) RETURNS void LANGUAGE sql AS
'UPDATE snowflake_registry.grants
 SET granted_from = greatest(granted_from - ((minutes * 60000::bigint) << 22), 0),
     granted_until = greatest(granted_until - ((minutes * 60000::bigint) << 22), 0),
     reached = greatest(reached - ((minutes * 60000::bigint) << 22), 0),
     renewed_at = renewed_at - minutes * interval ''1 min''
 WHERE worker IS NULL OR worker_id = worker';
CREATE FUNCTION r.workers(OUT worker_id int, OUT state text, OUT starts int, OUT ends int, OUT free int, OUT name text)
RETURNS SETOF record LANGUAGE sql AS
'SELECT worker_id, state, r.minutes(snowflake_lower_bound(granted_from)), r.minutes(snowflake_lower_bound(granted_until)),
        r.minutes(snowflake_lower_bound(free_from)), server_name
 FROM snowflake_registry.workers ORDER BY 1';

-- the error of a statement that would have servers wait, for so many hours
CREATE FUNCTION r.refused(command text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
    wait text;
BEGIN
    EXECUTE command;
    RETURN NEXT 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    wait := substring(SQLERRM FROM '@.*');
    RETURN NEXT SQLSTATE || ' ' || replace(SQLERRM, wait, date_trunc('hour', justify_hours(wait::interval + '30 min'))::text);
    RETURN NEXT detail;
    RETURN NEXT hint;
END
$$;

-- the error that a server gets, without the times
CREATE FUNCTION r.why(minutes numeric DEFAULT 0, tokens int[] DEFAULT '{}') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    PERFORM r.get(tokens, 99, minutes => minutes);
    RETURN NEXT 'granted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN NEXT SQLSTATE || ' ' || SQLERRM;
    RETURN NEXT regexp_replace(detail, '\d+-\d+-\d+ [0-9:.]*\+00', '<time>', 'g');
    RETURN NEXT hint;
END
$$;

-- before there is a registry
SELECT r.get('{}', 1);
\set VERBOSITY terse
SELECT r.extend(1, '{}', 1);
SELECT r.return(1, '{}');
SELECT snowflake_registry.report_loss();
SELECT snowflake_registry.free_worker(1);
SELECT snowflake_registry.drop(NULL);

-- invalid settings
SELECT snowflake_registry.create(NULL, 10);
SELECT snowflake_registry.create(1, 10, grant_time => NULL);
SELECT snowflake_registry.create(1, 10, 'no scheme');
SELECT snowflake_registry.create(1, 10, 'discord');
SELECT snowflake_registry.create(1, 10, 'baidu');
\set VERBOSITY default
SELECT snowflake_registry.create(0, 10);
SELECT snowflake_registry.create(1, 1024);
SELECT snowflake_registry.create(11, 10);
SELECT snowflake_registry.create(1, 32, 'twitter');
SELECT snowflake_registry.create(1, 1, 'timestamp=41,sequence=12');
SELECT snowflake_registry.create(1, 3);
SELECT snowflake_registry.create(1, 10, failovers => -1);
SELECT snowflake_registry.create(1, 1000, failovers => 100);
SELECT snowflake_registry.create(1, 511, failovers => 2147483647);
SELECT snowflake_registry.create(1, 10, grant_time => '999 ms');
SELECT snowflake_registry.create(1, 10, 'baidu,tick=60s', grant_time => '59 s');
SELECT snowflake_registry.create(1, 10, reach => '19 min 59 s');
SELECT snowflake_registry.create(1, 10, reach => '366 days');
SELECT snowflake_registry.create(1, 10, grant_time => '-1 min', reach => '1 min');
SELECT count(*) FROM snowflake_registry.registries;
\set VERBOSITY sqlstate
SELECT snowflake_registry.create(NULL, 10);
SELECT snowflake_registry.create(0, 10);
SELECT r.get('{}', 1);
SELECT snowflake_registry.free_worker(1);
\set VERBOSITY default

-- no slice for a failover: the old primary grants the same worker IDs as the new one
BEGIN;
SELECT snowflake_registry.create(1, 20, failovers => 0, new => true);
SELECT snowflake_registry.alter(NULL, 21, 40, failovers => 1, new => true);
SELECT snowflake_registry.alter(NULL, 41, 60, failovers => 0, new => true);
ROLLBACK;

-- 20 worker IDs in 4 slices; timeline 1 has slice 1: 1, 5, 9, 13, 17
SELECT snowflake_registry.create(1, 20, new => true);
SET client_min_messages = error;
SELECT scheme, first_worker_id, last_worker_id, grant_time, reach, slices, not_before, timeline FROM snowflake_registry.registries;
SELECT * FROM snowflake_registry.workers;
-- the lowest that was never granted
SELECT * FROM r.get('{}', 1, name => 'a');
SELECT * FROM r.get('{}', 2, name => 'b');
-- the one that the server wants, if it is free, in the slice, and of the registry
SELECT worker_id FROM r.get('{}', 3, 17, name => 'c');
SELECT worker_id FROM r.get('{}', 4, 17, name => 'd');
-- the answer was lost, and the server's clock set back to before its range
SELECT snowflake_registry.drop(NULL);
SELECT snowflake_registry.create(1, 20, new => true);
SELECT worker_id AS later FROM r.get('{}', 1, minutes => 5) \gset
SELECT worker_id <> :later AS another FROM r.get('{1}', 2);
SELECT snowflake_registry.drop(NULL);
SELECT * FROM snowflake_registry.workers;
SELECT snowflake_registry.create(1, 20, new => true);
SELECT worker_id FROM r.get('{}', 1, 4);
SELECT worker_id FROM r.get('{}', 2, 25);
SELECT worker_id FROM r.get('{}', 3, 0);
SELECT worker_id FROM r.get('{}', 4, -1);
SELECT worker_id FROM r.get('{}', 5, 17);
-- none is left; a failed call has no effect, a repeated one has the same
\set VERBOSITY terse
SELECT r.get('{}', 6);
SELECT worker_id FROM r.get('{6,5}', 7);
SELECT worker_id FROM r.get('{5}', 8);
SELECT worker_id FROM r.get('{7}', 9);
\set VERBOSITY default
SELECT * FROM r.workers();
-- nor for a server whose clock is ahead of the ends
SELECT r.why(30);

-- which of those that are free: the wanted one, the server's last, the one not used for longest
SELECT r.pass(12), r.pass(4, 5), r.pass(5, 9), r.pass(2, 13), r.pass(1, 17);
UPDATE snowflake_registry.grants SET server_name = CASE worker_id WHEN 1 THEN 'x' ELSE 'y' END WHERE worker_id IN (1, 13, 17);
SELECT * FROM r.workers();
SELECT worker_id FROM r.get('{}', 11, name => 'y');
SELECT worker_id FROM r.get('{}', 12, 1, name => 'y');
SELECT worker_id FROM r.get('{}', 13, 17, name => 'x');
SELECT worker_id FROM r.get('{}', 14, name => 'z');
SELECT worker_id FROM r.get('{}', 15, name => NULL);
SELECT * FROM r.workers();

-- extended repeatedly; the token of the previous call is valid, and those of calls without an answer
SELECT r.pass(5);
SELECT * FROM r.workers() WHERE worker_id = 5;
SELECT * FROM r.extend(5, '{14}', 20);
SELECT * FROM r.extend(5, '{14}', 21);
SELECT * FROM r.extend(5, '{14,20}', 22, name => 'moved');
SELECT * FROM r.extend(5, '{14,20,21,22,23}', 24);
-- not another server's, nor after the token was replaced
SELECT * FROM r.extend(9, '{24}', 25);
SELECT * FROM r.extend(8, '{24}', 25);
SELECT * FROM r.extend(5, '{22}', 25);
SELECT * FROM r.extend(5, '{}', 25);
SELECT * FROM r.extend(5, ARRAY[NULL]::int[], 25);
-- a range that has ended is extended unless another server holds the worker ID
SELECT r.pass(60, 5);
SELECT state FROM r.workers() WHERE worker_id = 5;
SELECT * FROM r.extend(5, '{24}', 25);
SELECT r.pass(60, 5);
SELECT worker_id FROM r.get('{}', 26, 5);
SELECT * FROM r.extend(5, '{25}', 27);
SELECT * FROM r.extend(5, '{26}', 28);

-- two servers with the same memory: one of them has the worker ID, by whatever call
SELECT worker_id FROM r.get('{28}', 30);
\set VERBOSITY terse
SELECT r.get('{28}', 31);
\set VERBOSITY default
SELECT * FROM r.extend(5, '{28}', 31);
SELECT r.return(5, '{28}', 0);
SELECT state, ends FROM r.workers() WHERE worker_id = 5;

-- servers of the same name: one that was started again, and one that runs beside the other
BEGIN;
\set VERBOSITY terse
SELECT r.pass(1000);
SELECT worker_id AS first FROM r.get('{}', 101, name => 'twin') \gset
SELECT r.pass(5);
SELECT worker_id AS second FROM r.get('{}', 102, name => 'twin') \gset
SELECT r.pass(1);
SET LOCAL client_min_messages = warning;
SELECT count(*) FROM r.extend(:second, '{102}', 103, name => 'twin');
SELECT count(*) FROM snowflake_registry.workers WHERE problem IS NOT NULL;
SELECT count(*) FROM r.extend(:first, '{101}', 104, name => 'twin');
SELECT count(*) FROM r.extend(:first, '{104}', 105, name => 'twin');
SELECT count(*) FROM r.extend(:second, '{103}', 106, name => 'twin');
SELECT regexp_replace(replace(problem, :first::text, 'first'), 'a Unix-domain socket|127\.0\.0\.1|::1', 'here') FROM snowflake_registry.workers WHERE worker_id = :second;
SELECT count(*) FROM snowflake_registry.workers WHERE problem IS NOT NULL;
-- ... until one of them has another name, or has ended
SELECT count(*) FROM r.extend(:first, '{105}', 107, name => 'other');
SELECT count(*) FROM r.extend(:second, '{106}', 108, name => 'twin');
SELECT count(*) FROM r.extend(:first, '{107}', 109, name => 'twin');
SELECT r.return(:first, '{109}');
SELECT count(*) FROM r.extend(:second, '{108}', 110, name => 'twin');
SELECT count(*) FROM snowflake_registry.workers WHERE problem IS NOT NULL;
\set VERBOSITY default
ROLLBACK;

-- returned, up to the end of the used IDs, which is never outside the grant
SELECT r.return(5, '{30}', r.id(2));
SELECT state, ends, free FROM r.workers() WHERE worker_id = 5;
SELECT r.return(5, '{30}', r.id(1));
SELECT * FROM r.extend(5, '{30}', 31);
\set VERBOSITY terse
SELECT r.get('{30}', 31);
\set VERBOSITY default
SELECT r.pass(3, 5);
SELECT worker_id FROM r.get('{}', 32, minutes => 1);
SELECT r.return(5, '{32}', 0);
SELECT starts, ends FROM r.workers() WHERE worker_id = 5;
SELECT r.pass(5, 5);
SELECT worker_id FROM r.get('{}', 33);
SELECT r.return(5, '{33}', 9223372036854775807);
SELECT ends FROM r.workers() WHERE worker_id = 5;
SELECT r.pass(15, 5);
SELECT worker_id FROM r.get('{}', 34);
SELECT r.return(5, '{34}', NULL);
SELECT state, ends FROM r.workers() WHERE worker_id = 5;
-- a returned worker ID is free from that ID on, not before
SELECT r.pass(10, 5);
SELECT r.why(-1);
SELECT worker_id FROM r.get('{}', 35);

-- clocks: the end is grant_time after the later one of both, and not further than "reach"
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 20, new => true);
SELECT * FROM r.get('{}', 1, minutes => -1000);
SELECT * FROM r.get('{1}', 2, minutes => 30);
SELECT * FROM r.get('{2}', 3, minutes => 55);
-- the end never decreases
SELECT * FROM r.get('{3}', 4, minutes => 0);
SELECT * FROM r.extend(1, '{4}', 5, minutes => 0);
\set VERBOSITY terse
SELECT r.get('{5}', 6, minutes => 59.5);
SELECT r.extend(1, '{5}', 6, minutes => 100000);
\set VERBOSITY sqlstate
SELECT r.extend(1, '{5}', 6, minutes => 100000);
\set VERBOSITY default
SELECT r.why(1000, '{5}');
DO $$
DECLARE
    detail text;
BEGIN
    PERFORM r.get('{5}', 99, minutes => 1000);
    ASSERT false, 'there is an error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    ASSERT substring(detail FROM 'next ID is ([-0-9:. ]*\+00)')::timestamptz - substring(detail FROM 'clock reads ([-0-9:. ]*\+00)')::timestamptz
        BETWEEN interval '999 min' AND interval '1001 min';
END
$$;
-- a server that is behind gets worker IDs that were not used after its time
SELECT r.return(1, '{5}', r.id(0));
SELECT worker_id FROM r.get('{}', 6, 1, minutes => -1);
SELECT count(worker_id) FROM generate_series(11, 13) n, LATERAL r.get('{}', n);
BEGIN;
SELECT r.why(-2);
ROLLBACK;
SELECT worker_id FROM r.get('{}', 7);
SELECT r.why();
UPDATE snowflake_registry.registries SET first_worker_id = 5, last_worker_id = 8;
SELECT r.why();
-- the time in the error: when the first one is free
SELECT r.pass(3, 5);
DO $$
DECLARE
    detail text;
BEGIN
    PERFORM r.get('{}', 99);
    ASSERT false, 'there is an error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    ASSERT substring(detail FROM 'free at ([-0-9:. ]*\+00)')::timestamptz - now() BETWEEN interval '6 min' AND interval '8 min';
END
$$;

-- The registry's clock was ahead by two hours, and is right again: the server gets
-- one more grant_time, and then as much as has passed.
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 20, new => true);
SELECT worker_id FROM r.get('{}', 1);
SELECT r.pass(-120);
SELECT * FROM r.workers();
SELECT * FROM r.extend(1, '{1}', 2, minutes => 125);
SELECT * FROM r.extend(1, '{2}', 3, minutes => 130);
UPDATE snowflake_registry.grants SET renewed_at = renewed_at - interval '5 min';
SELECT * FROM r.extend(1, '{3}', 4, minutes => 133);
SELECT * FROM r.get('{4}', 5, minutes => 133);
-- also after it returned its worker ID, and other servers
\set VERBOSITY sqlstate
SELECT r.extend(1, '{5}', 6, minutes => 139.5);
SELECT r.return(1, '{5}', r.id(134));
SELECT * FROM r.get('{}', 6, minutes => 134.5, name => 'z');
SELECT * FROM r.get('{}', 41, minutes => 100);
SELECT r.get('{}', 7, minutes => 140);
\set VERBOSITY default
SELECT * FROM r.workers();
-- The lead does not shrink while no server holds it: half an hour after its last
-- range began, it was returned, by the server or an administrator.
BEGIN;
DELETE FROM snowflake_registry.grants WHERE worker_id <> 5;
UPDATE snowflake_registry.grants SET renewed_at = renewed_at - interval '30 min';
SAVEPOINT before;
SELECT r.return(5, '{6}', r.id(134.5));
SELECT * FROM r.get('{}', 7, minutes => 150, name => 'z');
ROLLBACK TO before;
SELECT snowflake_registry.free_worker(5) > now() AS freed;
SELECT * FROM r.get('{}', 7, minutes => 150, name => 'z');
ROLLBACK;
-- who has its token gets no worker ID further than that, however often it calls
SELECT count(*), max(ends) FROM generate_series(6, 40) n, LATERAL r.get(ARRAY[n], n + 1, minutes => 138.5) g;
-- what was granted then, and might have been lost, is lifted
SELECT snowflake_registry.report_loss() > now() AS lost;
SELECT ARRAY(SELECT r.minutes(l) FROM unnest(not_before) l) AS lifts FROM snowflake_registry.registries;
-- A registry that is dropped leaves the end of all its grants to the next one,
-- whatever the "reach" of that; worker IDs that are new need not wait for it.
BEGIN;
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(21, 40, reach => '20 min');
SELECT ARRAY(SELECT r.minutes(l) FROM unnest(not_before) l) AS lifts FROM snowflake_registry.registries;
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(41, 60, reach => '20 min', new => true);
SELECT not_before FROM snowflake_registry.registries;
-- nor do they, when grants of theirs are lost
SAVEPOINT before;
SELECT snowflake_registry.report_loss() > now() AS lost;
SELECT ARRAY(SELECT r.minutes(l) FROM unnest(not_before) l) AS lifts FROM snowflake_registry.registries;
ROLLBACK TO before;
UPDATE snowflake_registry.registries SET identity = '';
SELECT r.get('{}', 8);
SELECT ARRAY(SELECT r.minutes(l) FROM unnest(not_before) l) AS lifts FROM snowflake_registry.registries;
ROLLBACK TO before;
SELECT snowflake_registry.alter(NULL, 21, 60, force => true);
SELECT ARRAY(SELECT r.minutes(l) FROM unnest(not_before) l) AS lifts FROM snowflake_registry.registries;
SELECT snowflake_registry.drop(NULL);
SELECT scheme, r.minutes(not_before) FROM snowflake_registry.dropped;
ROLLBACK;
-- a server that holds no worker ID gets it for no longer than grant_time
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 20, new => true);
SELECT * FROM r.get('{}', 1, minutes => 5);
\set VERBOSITY sqlstate
SELECT * FROM r.get('{}', 2, minutes => 15, name => 'b');
SELECT * FROM r.get('{}', 2, minutes => 15);
\set VERBOSITY default
-- until the registry knows of IDs that are ahead of its clock; others have their normal length
BEGIN;
SELECT * FROM r.extend(1, '{1}', 2, minutes => 30);
SELECT * FROM r.get('{}', 3, minutes => 30, name => 'b');
SELECT * FROM r.get('{}', 4, name => 'c');
ROLLBACK;
-- whose clock was set back to before the range: it gets another one
SELECT * FROM r.extend(1, '{1}', 2, minutes => 1);
SELECT worker_id FROM r.get('{1}', 2, minutes => 1);
-- each call needs a token of its own
SELECT r.extend(5, '{2}', 2);
SELECT r.get('{1,2}', 2);
\set VERBOSITY sqlstate
SELECT r.get('{1,2}', 2);
\set VERBOSITY default

-- The registry is on another timeline than it was: after a failover.  The
-- slice of this timeline is granted at once, servers lose what they hold.
CREATE FUNCTION r.lifts() RETURNS int[] LANGUAGE sql AS
'SELECT array(SELECT CASE l WHEN 0 THEN 0 ELSE r.minutes(l) END FROM unnest(not_before) l) FROM snowflake_registry.registries WHERE scheme LIKE ''%2016-11-01%''';
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 20, new => true);
SELECT worker_id FROM r.get('{}', 1);
SELECT worker_id FROM r.get('{}', 2);
UPDATE snowflake_registry.registries SET timeline = 0;
-- but another standby might have been promoted to the same timeline
SELECT * FROM r.extend(1, '{1}', 3);
\set VERBOSITY terse
SELECT r.get('{1}', 3);
SELECT r.return(1, '{1}');
SELECT snowflake_registry.free_worker(1);
SELECT snowflake_registry.alter(NULL, grant_time => '5 min');
\set VERBOSITY sqlstate
SELECT r.get('{1}', 3);
\set VERBOSITY default
SELECT snowflake_registry.confirm_promotion();
SELECT snowflake_registry.confirm_promotion('shardingsphere');
SELECT * FROM r.extend(1, '{1}', 3);
SELECT r.lifts(), timeline FROM snowflake_registry.registries;
SELECT * FROM r.workers();
SELECT worker_id FROM r.get('{1}', 4);
UPDATE snowflake_registry.registries SET timeline = 0;
SELECT snowflake_registry.confirm_promotion();
SELECT r.return(9, '{4}', 0);
SELECT * FROM r.workers();
-- report_loss() and drop() need no confirmation
UPDATE snowflake_registry.registries SET timeline = 0;
SELECT snowflake_registry.report_loss() > now() AS lost;
SELECT r.lifts(), timeline FROM snowflake_registry.registries;
UPDATE snowflake_registry.registries SET timeline = 0;
-- Where nothing can be granted, the first call notes the loss.  By the time the
-- lift has passed, worker IDs are granted again.
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 5, failovers => 0, new => true);
SELECT worker_id FROM r.get('{}', 5);
UPDATE snowflake_registry.registries SET identity = '';
SELECT * FROM r.get('{5}', 6);
SELECT r.lifts(), timeline FROM snowflake_registry.registries;
SELECT * FROM r.workers();
SELECT r.why();
UPDATE snowflake_registry.registries SET not_before = ARRAY[r.id(-2)];
SELECT r.why(-3);
SELECT worker_id FROM r.get('{}', 6, 1);
-- a lift never decreases
UPDATE snowflake_registry.registries SET timeline = 0;
SELECT snowflake_registry.confirm_promotion();
SELECT * FROM r.extend(2, '{6}', 7);
UPDATE snowflake_registry.registries SET timeline = 0, reach = '40 min';
SELECT snowflake_registry.confirm_promotion();
SELECT r.lifts();
-- an earlier timeline, or another identity: a dump or a copy was restored
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 20, new => true);
SELECT worker_id FROM r.get('{}', 6);
SELECT worker_id FROM r.get('{}', 7);
SELECT r.pass(11, 1);
SELECT snowflake_registry.free_worker(1) < now() AS free;
UPDATE snowflake_registry.registries SET timeline = 2;
SELECT * FROM r.workers();
SELECT * FROM r.extend(5, '{7}', 8);
SELECT r.lifts(), timeline FROM snowflake_registry.registries;
UPDATE snowflake_registry.registries SET not_before = '{0,0,0,0}', identity = regexp_replace(identity, '^\d+', '1');
SELECT * FROM r.get('{7}', 8);
SELECT r.lifts();
UPDATE snowflake_registry.registries SET not_before = '{0,0,0,0}', identity = regexp_replace(identity, '/\d+/', '/1/');
SELECT * FROM r.get('{7}', 8);
SELECT r.lifts();
UPDATE snowflake_registry.registries SET not_before = '{0,0,0,0}', identity = regexp_replace(identity, '\d+$', '1'), timeline = 0;
SELECT * FROM r.get('{6}', 7);
SELECT r.lifts(), timeline FROM snowflake_registry.registries;
SELECT extconfig::regclass[], extcondition FROM pg_extension WHERE extname = 'snowflake_registry';
-- declared by an administrator
UPDATE snowflake_registry.registries SET not_before = '{0,0,0,0}';
SELECT worker_id FROM r.get('{}', 8);
SELECT snowflake_registry.report_loss() - now() BETWEEN interval '119 min' AND interval '121 min' AS lost;
SELECT r.lifts();
SELECT * FROM r.extend(1, '{8}', 9);
SELECT r.why();
UPDATE snowflake_registry.registries SET reach = '40 min';
SELECT snowflake_registry.report_loss() - now() BETWEEN interval '119 min' AND interval '121 min' AS still;
SELECT r.lifts();

-- A dump has no grants.  It is restored after "reach" was shortened: nothing is
-- granted before those of the longer one have ended.
CREATE FUNCTION r.restore_dump() RETURNS void LANGUAGE sql AS
'DELETE FROM snowflake_registry.grants; UPDATE snowflake_registry.registries SET identity = ''''';
BEGIN;
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 20, grant_time => '1 day', reach => '2 days', new => true);
SELECT * FROM r.get('{}', 1);
SELECT snowflake_registry.alter(NULL, grant_time => '2 s', reach => '4 s');
SELECT r.restore_dump();
SELECT * FROM r.get('{}', 2, name => 'b');
SELECT r.lifts();
ROLLBACK;
-- The same worker IDs are added again after the registry went to other ones, and
-- its "reach" was shortened; or in a registry that is created after that one.
BEGIN;
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 4, grant_time => '1 day', reach => '2 days', failovers => 0, new => true);
SELECT * FROM r.get('{}', 1);
SELECT r.restore_dump();
SELECT * FROM r.get('{}', 2, name => 'b');
SELECT r.lifts();
SELECT snowflake_registry.alter(NULL, 5, 8, new => true);
SELECT r.lifts();
SELECT snowflake_registry.alter(NULL, grant_time => '2 s', reach => '4 s');
SAVEPOINT before;
SELECT snowflake_registry.alter(NULL, 1, 8, force => true);
SELECT r.lifts();
ROLLBACK TO before;
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 8, grant_time => '2 s', reach => '4 s', failovers => 0);
SELECT r.lifts();
ROLLBACK;

-- A tick of 1 s: how far a range is ahead of the clock neither grows nor shrinks
-- by rounding, however often the server calls.
CREATE FUNCTION r.extend_seconds(first int, last int, pause float8, OUT calls bigint, OUT lead_remains boolean) LANGUAGE plpgsql AS $$
DECLARE
    of text := (snowflake_registry.read_scheme('baidu,epoch=2026-01-01')).canonical;
BEGIN
    calls := 0;
    FOR n IN first .. last LOOP
        PERFORM pg_sleep(pause);
        calls := calls + (SELECT count(*) FROM snowflake_registry.extend_grant(of, 0, 1, r.id(18, of), ARRAY[r.token(n)], r.token(n + 1), 'a'));
    END LOOP;
    SELECT snowflake_registry.time_of(g.reached, g.scheme) - g.renewed_at BETWEEN interval '20 min' AND interval '20 min 1 s' INTO lead_remains
    FROM snowflake_registry.grants g WHERE g.scheme = of;
END
$$;
SELECT snowflake_registry.create(1, 8, 'baidu,epoch=2026-01-01', grant_time => '5 min', reach => '20 min', failovers => 0, new => true);
SELECT worker_id FROM r.get('{}', 1, 1, scheme => 'baidu,epoch=2026-01-01');
SELECT * FROM r.extend_seconds(1, 100, 0);
SELECT snowflake_registry.alter('baidu,epoch=2026-01-01', reach => '10 min');
SELECT * FROM r.extend_seconds(101, 200, 0);
SELECT * FROM r.extend_seconds(201, 215, 0.1);
SELECT snowflake_registry.drop('baidu,epoch=2026-01-01');

-- the settings are changed: what is not named remains
CREATE FUNCTION r.settings() RETURNS text LANGUAGE sql AS
'SELECT concat_ws('' '', first_worker_id, last_worker_id, grant_time, reach, slices, r.lifts()) FROM snowflake_registry.registries';
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 20, new => true);
SELECT snowflake_registry.create(1, 30, new => true);
SELECT snowflake_registry.create(1, 30, 'shardingsphere,tick=1000us');
SELECT r.settings();
SELECT worker_id FROM r.get('{}', 1);
SELECT snowflake_registry.alter(NULL, grant_time => '20 min', reach => '1 day');
SELECT r.settings();
SELECT * FROM r.extend(1, '{1}', 2);
SELECT snowflake_registry.alter('shardingsphere', 2, 10);
SELECT r.settings();
SELECT snowflake_registry.alter(NULL, grant_time => '36 hours', reach => '3 days');
SELECT r.settings();
SELECT snowflake_registry.alter(NULL);
SELECT r.settings();
SELECT * FROM r.extend(1, '{2}', 3);
SELECT worker_id FROM r.get('{2}', 3);
SELECT * FROM r.workers();
-- added worker IDs that no server had
SELECT snowflake_registry.alter(NULL, last_worker_id => 20, new => true);
SELECT r.settings();
-- or that a server might have had: with force, servers keep theirs, no other is granted
SELECT * FROM r.refused('SELECT snowflake_registry.alter(NULL, first_worker_id => 1)');
SELECT * FROM r.refused('SELECT snowflake_registry.alter(NULL, last_worker_id => 21, reach => ''4 days'')');
SELECT r.settings();
SELECT snowflake_registry.alter(NULL, grant_time => '10 min', reach => '1 hour');
\set VERBOSITY terse
RESET client_min_messages;
SELECT snowflake_registry.alter(NULL, first_worker_id => 1, force => true);
SET client_min_messages = error;
\set VERBOSITY default
SELECT r.settings();
SELECT r.why();
SELECT * FROM r.extend(5, '{3}', 4);
SELECT worker_id FROM r.get('{4}', 5);
-- this does not apply to those that were there before
\set VERBOSITY terse
SELECT snowflake_registry.alter(NULL, last_worker_id => 30, new => true);
SELECT r.settings();
UPDATE snowflake_registry.registries SET not_before = '{0,0,0,0}';
SELECT snowflake_registry.alter(NULL, last_worker_id => 40, force => true);
SELECT r.settings();
-- entirely different worker IDs
SELECT snowflake_registry.alter(NULL, 101, 120, new => true);
SELECT r.settings();
SELECT * FROM r.extend(5, '{5}', 6);
SELECT worker_id FROM r.get('{5}', 6);
SELECT * FROM r.workers();
-- a server that did not call meanwhile does not have its worker ID when that is back
BEGIN;
SELECT snowflake_registry.alter(NULL, 141, 160, new => true);
SELECT snowflake_registry.alter(NULL, 101, 120, new => true);
SELECT * FROM r.extend(101, '{6}', 7);
SELECT worker_id FROM r.get('{6}', 7, minutes => 15);
SELECT * FROM r.workers();
ROLLBACK;
-- other slices: servers lose what they hold
SELECT * FROM r.refused('SELECT snowflake_registry.alter(NULL, failovers => 1)');
SELECT * FROM r.refused('SELECT snowflake_registry.alter(NULL, last_worker_id => 130, failovers => 1, new => true)');
SELECT snowflake_registry.alter(NULL, failovers => 1, force => true);
SELECT r.settings();
SELECT * FROM r.extend(101, '{6}', 7);
SELECT snowflake_registry.alter(NULL, 201, 220, failovers => 0, new => true);
SELECT r.settings();
SELECT worker_id FROM r.get('{}', 7);
-- without further information
SELECT snowflake_registry.drop(NULL);
RESET client_min_messages;
SELECT snowflake_registry.create(1, 20);
SET client_min_messages = error;
\set VERBOSITY default
SELECT r.settings();
SELECT r.why();
-- invalid changes
SELECT snowflake_registry.alter(NULL, first_worker_id => 21);
SELECT snowflake_registry.alter(NULL, first_worker_id => 18);
SELECT snowflake_registry.alter(NULL, failovers => 2147483647);
SELECT snowflake_registry.alter(NULL, reach => '19 min');
\set VERBOSITY terse
SELECT snowflake_registry.alter('twitter', grant_time => '1 min');
\set VERBOSITY sqlstate
SELECT snowflake_registry.create(1, 20);
SELECT snowflake_registry.alter(NULL, last_worker_id => 40);
SELECT snowflake_registry.alter(NULL, last_worker_id => 40, new => NULL, force => NULL);
SELECT snowflake_registry.alter(NULL, failovers => 2147483647);
SELECT snowflake_registry.alter('twitter', grant_time => '1 min');
\set VERBOSITY default

-- an administrator takes a worker ID from a server
SELECT snowflake_registry.drop(NULL), snowflake_registry.create(1, 20, new => true);
SELECT worker_id FROM r.get('{}', 1);
SELECT snowflake_registry.free_worker(5);
SELECT snowflake_registry.free_worker(1) - now() BETWEEN interval '9 min' AND interval '11 min' AS free_from;
SELECT * FROM r.workers();
SELECT * FROM r.extend(1, '{1}', 2);
SELECT worker_id FROM r.get('{1}', 2, 1);
SELECT r.pass(11, 1);
SELECT * FROM r.workers();
SELECT snowflake_registry.free_worker(1) < now() AS free;
SELECT worker_id FROM r.get('{}', 3, 1);

-- several schemes, and datacenters
SELECT snowflake_registry.create(1, 31, 'twitter', new => true);
SELECT snowflake_registry.create(1, 4194303, 'baidu,epoch=2026-01-01', new => true);
SELECT scheme, first_worker_id, last_worker_id FROM snowflake_registry.registries ORDER BY scheme COLLATE "C";
SELECT worker_id FROM r.get('{}', 1, scheme => 'twitter', datacenter => 3);
SELECT worker_id FROM r.get('{}', 2, scheme => 'twitter', datacenter => 31);
SELECT worker_id FROM r.get('{}', 3, scheme => 'epoch=1288834974657,timestamp=41,datacenter=5,worker=5,sequence=12', datacenter => 31);
SELECT worker_id FROM r.get('{1}', 4, scheme => 'twitter', datacenter => 3);
SELECT worker_id FROM r.get('{3}', 5, scheme => 'twitter', datacenter => 4);
SELECT worker_id FROM r.get('{}', 1, 4194301, scheme => 'baidu,epoch=2026-01-01');
SELECT worker_id FROM r.get('{}', 2, 4194300, scheme => 'baidu,epoch=2026-01-01');
SELECT datacenter_id, worker_id FROM snowflake_registry.workers WHERE datacenter_id > 0 ORDER BY 1, 2;
SELECT snowflake_registry.free_worker(1, 31, 'twitter') > now() AS freed;
SELECT snowflake_registry.free_worker(9, 31, 'twitter');
SELECT datacenter_id, worker_id, state FROM snowflake_registry.workers WHERE datacenter_id > 0 ORDER BY 1, 2;
SELECT r.get('{}', 1, scheme => 'twitter,epoch=2020-01-01');
UPDATE snowflake_registry.registries SET reach = '9 years', grant_time = '9 years' WHERE scheme LIKE '%worker=22%';
\set VERBOSITY terse
SELECT r.get('{}', 3, scheme => 'baidu,epoch=2026-01-01');
\set VERBOSITY default
UPDATE snowflake_registry.registries SET reach = '1 hour', grant_time = '10 min' WHERE scheme LIKE '%worker=22%';
SELECT snowflake_registry.report_loss('baidu,epoch=2026-01-01') > now() AS lost;
SELECT scheme, not_before[1] > 0 AS lifted FROM snowflake_registry.registries ORDER BY scheme COLLATE "C";
SELECT snowflake_registry.drop('baidu,epoch=2026-01-01');
SELECT count(*) FROM snowflake_registry.registries;

-- invalid calls
\set VERBOSITY terse
SELECT snowflake_registry.get_grant('twitter', NULL, 1, 1, '{}', r.token(1), 'a');
SELECT snowflake_registry.get_grant('twitter', 0, 1, NULL, '{}', r.token(1), 'a');
SELECT snowflake_registry.get_grant('twitter', 0, 1, 1, '{}', NULL, 'a');
SELECT snowflake_registry.get_grant('discord', 0, 1, 1, '{}', r.token(1), 'a');
SELECT snowflake_registry.get_grant('shardingsphere', 0, 1, -1, '{}', r.token(1), 'a');
SELECT snowflake_registry.extend_grant('twitter', 0, 1, 1, '{}', NULL, 'a');
SELECT snowflake_registry.extend_grant('shardingsphere', 0, 1, -1, '{}', r.token(1), 'a');
\set VERBOSITY default
-- names of any length
SELECT worker_id FROM r.get('{}', 50, name => repeat('n', 1000));
SELECT length(name) FROM r.workers() WHERE name LIKE 'nn%';
SELECT count(*) FROM r.extend(9, '{50}', 51, name => repeat('m', 1000));
SELECT length(name) FROM r.workers() WHERE name LIKE 'mm%';

-- transactions: each statement must see what others committed
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT r.get('{}', 60);
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT r.extend(1, '{60}', 61);
ROLLBACK;
BEGIN ISOLATION LEVEL READ UNCOMMITTED;
SELECT count(*) FROM r.get('{}', 60);
ROLLBACK;
BEGIN READ ONLY;
SELECT r.get('{}', 60);
ROLLBACK;
-- and be durable, whatever the session has set
BEGIN;
SET LOCAL synchronous_commit = off;
SELECT count(*) FROM r.get('{}', 60);
SHOW synchronous_commit;
ROLLBACK;
BEGIN;
SET LOCAL synchronous_commit = local;
SELECT count(*) FROM r.extend(1, '{60}', 61);
SHOW synchronous_commit;
ROLLBACK;
BEGIN;
SET LOCAL synchronous_commit = remote_write;
SELECT r.return(1, '{60}');
SHOW synchronous_commit;
ROLLBACK;
BEGIN;
SET LOCAL synchronous_commit = remote_apply;
SELECT r.return(1, '{60}');
SHOW synchronous_commit;
ROLLBACK;

-- privileges: a role that is granted the three calls can do nothing else
CREATE ROLE regress_server;
CREATE ROLE regress_admin;
CREATE ROLE regress_public;
GRANT USAGE ON SCHEMA r TO regress_server, regress_admin;
SET ROLE regress_server;
\set VERBOSITY terse
SELECT r.get('{}', 70);
SELECT r.extend(1, '{}', 70);
SELECT r.return(1, '{}');
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_registry.get_grant, snowflake_registry.extend_grant, snowflake_registry.return_grant TO regress_server;
SET ROLE regress_server;
SELECT worker_id FROM r.get('{}', 70);
SELECT ends FROM r.extend(13, '{70}', 71);
SELECT r.return(13, '{71}', 0);
SELECT snowflake_registry.create(1, 20);
SELECT snowflake_registry.drop(NULL);
SELECT snowflake_registry.report_loss();
SELECT snowflake_registry.free_worker(1);
SELECT snowflake_registry.confirm_promotion();
SELECT snowflake_registry.alter('twitter', grant_time => '5 min');
SELECT snowflake_registry.lock('twitter', false);
SELECT first_worker_id FROM snowflake_registry.registries ORDER BY last_worker_id;
TABLE snowflake_registry.grants;
TABLE snowflake_registry.workers;
DELETE FROM snowflake_registry.grants;
-- their objects do not hide those of the extension
CREATE TEMP TABLE registries (scheme text);
CREATE TEMP TABLE grants (scheme text, token_hash bytea);
SET search_path = pg_temp, public, pg_catalog;
SELECT worker_id FROM r.get('{}', 72);
RESET search_path;
DROP TABLE pg_temp.registries, pg_temp.grants;
RESET ROLE;
-- administrators need not be superusers; monitoring roles can read the view
GRANT EXECUTE ON FUNCTION snowflake_registry.create, snowflake_registry.alter, snowflake_registry.drop, snowflake_registry.report_loss,
    snowflake_registry.confirm_promotion, snowflake_registry.free_worker TO regress_admin;
GRANT pg_monitor TO regress_admin;
SET ROLE regress_admin;
SELECT snowflake_registry.drop('twitter');
SELECT snowflake_registry.create(1, 20, 'twitter', new => true);
SELECT snowflake_registry.alter('twitter', grant_time => '5 min');
SELECT snowflake_registry.confirm_promotion();
SELECT snowflake_registry.free_worker(13) > now() AS freed;
SELECT snowflake_registry.report_loss() > now() AS lost;
SELECT count(*) > 3 AS workers FROM snowflake_registry.workers;
TABLE snowflake_registry.grants;
RESET ROLE;
SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type, relname
FROM pg_class, aclexplode(relacl) WHERE relnamespace = 'snowflake_registry'::regnamespace AND grantee <> relowner
ORDER BY relname;
SELECT oid::regprocedure AS for_everybody FROM pg_proc
WHERE pronamespace = 'snowflake_registry'::regnamespace AND has_function_privilege('regress_public', oid, 'EXECUTE')
ORDER BY oid::regprocedure::text COLLATE "C";

-- clean up
SELECT snowflake_registry.drop(NULL);
SELECT count(*) FROM snowflake_registry.grants;
DROP OWNED BY regress_server, regress_admin;
DROP ROLE regress_server, regress_admin, regress_public;
DROP SCHEMA r CASCADE;
DROP EXTENSION snowflake_registry;
SELECT count(*) FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = 'snowflake_registry'::regnamespace;
DROP SCHEMA snowflake_registry;
