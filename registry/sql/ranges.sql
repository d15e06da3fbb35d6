-- ranges of sequences: what one session sees of the registry
SET client_min_messages = warning;
CREATE EXTENSION snowflake_registry;
\pset null -
\set VERBOSITY sqlstate

-- A call of a server, whose tokens are small numbers here.  Where all sequences of the
-- call have the same, that is the default.
CREATE FUNCTION regress_call(
    server text, confirmed integer, unconfirmed integer[], new_token integer, names text[],
    counts bigint[] DEFAULT NULL, floors bigint[] DEFAULT NULL,
    lasts bigint[] DEFAULT NULL, leasts bigint[] DEFAULT NULL, databases text[] DEFAULT NULL,
    boot text DEFAULT NULL, directory text DEFAULT NULL, started bigint DEFAULT 0)
RETURNS TABLE (name text, first_number bigint, last_number bigint, floor bigint, next bigint, waits_for text, kind text, problem text)
LANGUAGE sql
BEGIN ATOMIC
    SELECT names[r."position"], r.first_number, r.last_number, r.floor, r.next, r.waits_for, r.problem_kind,
           regexp_replace(r.problem, 'since .*, because', 'since (time), because')
    FROM (SELECT cardinality(names) AS n) c,
        snowflake_registry.get_ranges(
            md5(server)::uuid, lpad(confirmed::text, 32, '0')::uuid,
            ARRAY(SELECT lpad(u::text, 32, '0')::uuid FROM unnest(unconfirmed) u), lpad(new_token::text, 32, '0')::uuid,
            0, split_part(server, '/', 1),
            coalesce(databases, array_fill('shop'::text, ARRAY[c.n])), names,
            coalesce(lasts, array_fill(2147483647::bigint, ARRAY[c.n])),
            coalesce(counts, array_fill(100::bigint, ARRAY[c.n])),
            coalesce(leasts, array_fill(1::bigint, ARRAY[c.n])),
            coalesce(floors, array_fill(NULL::bigint, ARRAY[c.n])),
            array_fill(NULL::text, ARRAY[c.n]),
            md5(boot)::uuid, md5(coalesce(directory, split_part(server, '/', 1)))::uuid, started) r;
END;

-- databases
SELECT snowflake_registry.remove_database('shop');
SELECT snowflake_registry.stop_ranges('test');
SELECT * FROM regress_call('a', NULL, '{}', 1, '{public.t}', floors => '{0}');
SELECT snowflake_registry.add_database(NULL);
SELECT snowflake_registry.add_database('shop');
SELECT snowflake_registry.add_database('shop');
SELECT snowflake_registry.add_database('shop', 'others');
SELECT snowflake_registry.add_database('shop_eu', 'shop');
SELECT snowflake_registry.add_database('other');
SELECT snowflake_registry.remove_database('shops');
SELECT * FROM snowflake_registry.range_databases ORDER BY database;

-- A sequence is known from its first floor on, above which ranges begin.
SELECT * FROM regress_call('a', 1, '{}', 2, '{public.t,public.u,public.v}');
SELECT * FROM regress_call('a', 2, '{}', 3, '{public.u,public.t,public.v}', floors => '{0,50,NULL}');
SELECT * FROM regress_call('b', NULL, '{}', 4, '{public.t,public.u}');
SELECT * FROM regress_call('a', 3, '{}', 5, '{public.t}', counts => '{0}');

-- Databases that share them, and one that does not.  The same name in two databases of a
-- server is two holders.
SELECT * FROM regress_call('b', 4, '{}', 6, '{public.t,public.t,public.t}', floors => '{NULL,NULL,0}', databases => '{shop,shop_eu,other}');

-- An answer that is lost is granted again, also if other answers arrive before the name
-- is asked for again, and nothing else is granted.
SELECT * FROM regress_call('a', 5, '{}', 7, '{public.t,public.u}');
SELECT * FROM regress_call('a', 5, '{7}', 8, '{public.u}', counts => '{1}');
SELECT * FROM regress_call('a', 5, '{7,8}', 9, '{public.u}');
SELECT * FROM regress_call('a', 9, '{}', 10, '{public.u,public.t}');
SELECT * FROM regress_call('a', 10, '{}', 11, '{public.u,public.t}');

-- Another one continues with the memory of a server; one that was saved before the first
-- call.
SELECT * FROM regress_call('a', 10, '{}', 12, '{public.t}');
SELECT * FROM regress_call('a', NULL, '{}', 12, '{public.t}');
SELECT * FROM regress_call('a', 9, '{10,11}', 12, '{public.t}', counts => '{0}');

-- a floor: who holds lower ranges hears of it, and is waited for
SELECT * FROM regress_call('c', NULL, '{}', 13, '{public.t}', floors => '{5000}');
SELECT DISTINCT database, name, floor FROM snowflake_registry.get_floors(md5('a')::uuid, 0);
SELECT DISTINCT database, name, floor FROM snowflake_registry.get_floors(md5('b')::uuid, 0) ORDER BY database;
SELECT count(*) FROM snowflake_registry.get_floors(md5('c')::uuid, 0);
SELECT server_name, database, waiting_floor FROM snowflake_registry.range_holders WHERE name = 'public.t' AND waiting_floor > 0 ORDER BY 1, 2;
SELECT * FROM regress_call('a', 12, '{}', 14, '{public.t}', floors => '{5000}');
SELECT * FROM regress_call('c', 13, '{}', 15, '{public.t}', floors => '{5000}', counts => '{0}');
SELECT * FROM regress_call('b', 6, '{}', 16, '{public.t,public.t}', floors => '{5000,5000}', databases => '{shop,shop_eu}');
SELECT * FROM regress_call('c', 15, '{}', 17, '{public.t}', floors => '{5000}', counts => '{0}');
SELECT count(*) FROM snowflake_registry.get_floors(md5('b')::uuid, 0);
-- a lower one needs nobody
SELECT * FROM regress_call('c', 17, '{}', 18, '{public.t}', floors => '{10}', counts => '{0}');
-- What is granted again begins above it.
SELECT * FROM regress_call('c', 18, '{}', 19, '{public.t}');
SELECT * FROM regress_call('b', 16, '{}', 20, '{public.t}', floors => '{5550}', counts => '{0}');
SELECT * FROM regress_call('c', 18, '{19}', 21, '{public.t}');
SELECT * FROM regress_call('b', 20, '{}', 22, '{public.t}', floors => '{20000}', counts => '{0}');
SELECT * FROM regress_call('c', 18, '{19,21}', 23, '{public.t}', floors => '{20000}');

-- The range in use counts, beside the one in reserve, and also if what came after it did
-- not arrive.
SELECT * FROM regress_call('k', NULL, '{}', 4001, '{public.k,public.l,public.m}', floors => '{0,0,0}');
SELECT * FROM regress_call('k', 4001, '{}', 4002, '{public.k,public.l}');
SELECT * FROM regress_call('c', 23, '{}', 4003, '{public.k,public.l}', floors => '{50,250}', counts => '{0,0}');
SELECT * FROM regress_call('k', 4001, '{4002}', 4004, '{public.l}');
SELECT * FROM regress_call('k', 4004, '{}', 4005, '{public.k}');
SELECT * FROM regress_call('c', 4003, '{}', 4006, '{public.k,public.l}', floors => '{50,50}', counts => '{0,0}');
SELECT * FROM regress_call('k', 4005, '{}', 4007, '{public.k}');
SELECT * FROM regress_call('c', 4006, '{}', 4008, '{public.k,public.m}', floors => '{50,0}');
-- What did not arrive is granted again from above a floor in it.
SELECT * FROM regress_call('k', 4007, '{}', 4009, '{public.m}', floors => '{150}', counts => '{0}');
SELECT * FROM regress_call('c', 4006, '{4008}', 23, '{public.m}', leasts => '{50}');

-- A floor that is refused changes nothing, and acknowledges nothing that is granted later.
SELECT * FROM regress_call('c', 23, '{}', 24, '{public.t}', floors => '{1000000000}');
SELECT * FROM regress_call('c', 24, '{}', 25, '{public.t}', floors => '{2147483647}');
SELECT * FROM regress_call('c', 25, '{}', 26, '{public.t}');
SELECT * FROM regress_call('d', NULL, '{}', 27, '{public.t}', floors => '{30000}', counts => '{0}');
SELECT * FROM regress_call('d', 27, '{}', 28, '{public.z}', floors => '{2147483647}', counts => '{0}');
SELECT snowflake_registry.raise_sequence('shop', 'public.t', 1000000000);
SELECT snowflake_registry.raise_sequence('shop', 'public.t', 2147483647);
SELECT snowflake_registry.raise_sequence('shop', 'public.none', 1);
SELECT next, floor, numbers_left FROM snowflake_registry.sequences WHERE name = 'public.t' AND database_group = 'shop';

-- Nor does one that was given up, and arrives while all is stopped.
BEGIN;
SELECT * FROM regress_call('late', NULL, '{}', 6001, '{public.late}', floors => '{0}', counts => '{0}');
SELECT * FROM regress_call('late', 6001, '{6002}', 6003, '{public.late}', floors => '{1000000000}', counts => '{0}');
SELECT * FROM regress_call('late', 6003, '{}', 6004, '{public.late}');
SELECT * FROM regress_call('early', NULL, '{}', 6005, '{public.late}', floors => '{500}', counts => '{0}');
SELECT snowflake_registry.stop_ranges('test');
SELECT kind FROM regress_call('late', 6001, '{}', 6002, '{public.late}', floors => '{1000000000}', counts => '{0}');
SELECT count(*) > 0 AS resumed FROM snowflake_registry.resume_ranges(1);
SELECT * FROM regress_call('early', 6005, '{}', 6006, '{public.late}', floors => '{500}', counts => '{0}');
ROLLBACK;

-- The last number is that of the first call, until an administrator changes it, or a
-- lower one of the server, which acknowledges with it all that is above.
SELECT * FROM regress_call('c', 26, '{}', 5001, '{public.t}', lasts => '{9223372036854775807}');
SELECT * FROM regress_call('c', 5001, '{}', 5002, '{public.t}', lasts => '{9223372036854775807}', leasts => '{4294967296}');
SELECT * FROM regress_call('a', 14, '{}', 29, '{public.t}', lasts => '{32767}', floors => '{32767}');
SELECT count(*) FROM snowflake_registry.get_floors(md5('a')::uuid, 0);
SELECT snowflake_registry.raise_sequence('other', 'public.t', last => 9223372036854775807);
SELECT * FROM regress_call('a', 29, '{}', 30, '{public.t}', lasts => '{9223372036854775807}', databases => '{other}');
SELECT snowflake_registry.raise_sequence('other', 'public.t', last => 100);

-- a small type: shares of what is left, all of them once, and then its end
SELECT * FROM regress_call('a', 30, '{}', 31, '{public.small}', lasts => '{32767}', floors => '{32000}', counts => '{2147483648}');
SELECT * FROM regress_call('a', 31, '{}', 32, '{public.small}', lasts => '{32767}', leasts => '{99}');
SELECT * FROM regress_call('a', 32, '{}', 33, '{public.small}', lasts => '{32767}', leasts => '{700}');
DO $$
DECLARE
    r record;
    n integer := 0;
BEGIN
    LOOP
        SELECT * INTO r FROM regress_call('a', 33 + n, '{}', 34 + n, '{public.small}', lasts => '{32767}');
        EXIT WHEN r.first_number IS NULL;
        ASSERT r.last_number - r.first_number < 100;
        n := n + 1;
    END LOOP;
    RAISE WARNING '% more, and then: %', n, r.problem;
END
$$;
SELECT * FROM regress_call('d', 28, '{}', 1001, '{public.big}', lasts => '{9223372036854775807}', floors => '{9223372036854775800}');
SELECT * FROM regress_call('d', 1001, '{}', 1002, '{public.big}', lasts => '{9223372036854775807}', leasts => '{5}');
SELECT * FROM regress_call('d', 1002, '{}', 1003, '{public.big}', lasts => '{9223372036854775807}');
SELECT next, numbers_left FROM snowflake_registry.sequences WHERE name IN ('public.small', 'public.big') ORDER BY name;

-- A server that starts is told half of what it wanted at its last start, or all that it
-- wanted since.
SELECT last_number - first_number + 1 AS n FROM regress_call('e/1', NULL, '{}', 2001, '{public.rate}', floors => '{0}', counts => '{20000}');
SELECT snowflake_registry.return_ranges(md5('e/1')::uuid, lpad('2001', 32, '0')::uuid, '{}');
SELECT name, wish FROM snowflake_registry.get_range_names(md5('e/2')::uuid, 'e', md5('e')::uuid, 0, 100);
SELECT last_number - first_number + 1 AS n FROM regress_call('e/2', NULL, '{}', 2002, '{public.rate}');
SELECT last_number - first_number + 1 AS n FROM regress_call('e/3', NULL, '{}', 2003, '{public.rate}');
SELECT last_number - first_number + 1 AS n FROM regress_call('f', NULL, '{}', 2004, '{public.rate}');

-- Ranges are returned, by who holds them; who returned them and continues is superseded.
SELECT snowflake_registry.return_ranges(md5('e/2')::uuid, lpad('2001', 32, '0')::uuid, '{}');
SELECT snowflake_registry.return_ranges(md5('e/2')::uuid, NULL, ARRAY[lpad('2002', 32, '0')::uuid]);
SELECT snowflake_registry.return_ranges(md5('e/2')::uuid, NULL, ARRAY[lpad('2002', 32, '0')::uuid]);
SELECT * FROM regress_call('e/2', 2002, '{}', 2005, '{public.rate}');
SELECT * FROM snowflake_registry.get_floors(md5('e/2')::uuid, 0);
SELECT * FROM snowflake_registry.get_floors(md5('nobody')::uuid, 0);
SELECT count(*) FROM snowflake_registry.get_floors(md5('f')::uuid, 0);

-- A server that ends has lost what it had, but not what it had given up before.
SELECT * FROM regress_call('j/1', NULL, '{}', 2040, '{public.j}', floors => '{0}');
SELECT * FROM regress_call('j/1', 2040, '{}', 2041, '{public.j}');
SELECT numbers_lost FROM snowflake_registry.sequences WHERE name = 'public.j';
SELECT * FROM regress_call('j/1', 2041, '{}', 2042, '{public.j}', floors => '{100000000}');
SELECT snowflake_registry.return_ranges(md5('j/1')::uuid, lpad('2042', 32, '0')::uuid, '{}');
SELECT numbers_lost FROM snowflake_registry.sequences WHERE name = 'public.j';
SELECT * FROM regress_call('j/2', NULL, '{}', 2043, '{public.j}');
SELECT numbers_lost FROM snowflake_registry.sequences WHERE name = 'public.j';

-- A server that was killed is waited for, until an administrator knows that it has ended,
-- or it was started again, and has been silent for a minute.
SELECT * FROM regress_call('f', 2004, '{}', 2006, '{public.rate}', floors => '{60000}', counts => '{0}');
SELECT snowflake_registry.free_ranges('e');
SELECT snowflake_registry.free_ranges('nobody');
UPDATE snowflake_registry.range_clients SET called_at = called_at - interval '2 min', created_at = created_at - interval '2 min' WHERE server_name = 'e';
SELECT * FROM regress_call('f', 2006, '{}', 2007, '{public.rate}', floors => '{60000}', counts => '{0}');
SELECT * FROM regress_call('e/4', NULL, '{}', 2008, '{public.rate}');
SELECT * FROM regress_call('f', 2007, '{}', 2009, '{public.rate}', floors => '{60000}', counts => '{0}');
SELECT * FROM regress_call('e/3', 2003, '{}', 2010, '{public.rate}');
UPDATE snowflake_registry.range_clients SET called_at = called_at - interval '2 min' WHERE client = md5('f')::uuid;
SELECT snowflake_registry.free_ranges('f');
SELECT * FROM regress_call('f', 2009, '{}', 2011, '{public.rate}');
-- Another server of this name and address does not end it while it calls.
SELECT first_number > 0 AS granted FROM regress_call('n/1', NULL, '{}', 2012, '{public.rate}');
SELECT * FROM regress_call('n/2', NULL, '{}', 2013, '{public.rate}', counts => '{0}');
SELECT * FROM regress_call('e/4', 2008, '{}', 2014, '{public.rate}', floors => '{70000}', counts => '{0}');
-- get_floors() says that a server lives.
UPDATE snowflake_registry.range_clients SET called_at = called_at - interval '2 min' WHERE client = md5('e/4')::uuid;
SELECT count(*) FROM snowflake_registry.get_floors(md5('e/4')::uuid, 0);
SELECT snowflake_registry.free_ranges('e');

-- A server that is started again ends its former life at once, if nothing else can have its
-- directory: in the same boot of the machine, another life of it began before.
SELECT * FROM regress_call('lives/1', NULL, '{}', 2020, '{public.lives}', floors => '{0}', boot => 'b', started => 10);
SELECT * FROM regress_call('lives/2', NULL, '{}', 2021, '{public.lives}', floors => '{1000}', boot => 'b', started => 20);
SELECT * FROM regress_call('lives/1', 2020, '{}', 2022, '{public.lives}', boot => 'b', started => 10);
-- A call of the former life that arrives late ends nothing, and holds up nobody.
SELECT * FROM regress_call('lives/0', NULL, '{}', 2023, '{public.lives}', boot => 'b', started => 5);
SELECT * FROM regress_call('lives/2', 2021, '{}', 2024, '{public.lives}', floors => '{2000}', boot => 'b', started => 20);
-- A machine that was put back to a snapshot of its memory: a life that was, and that began later by
-- its clock, does not end the one that is.
SELECT * FROM regress_call('lives/back', NULL, '{}', 2032, '{public.lives}', boot => 'b', started => 15);
SELECT * FROM regress_call('lives/asks', NULL, '{}', 2033, '{public.lives}', floors => '{2500}', boot => 'b', directory => 'asks', started => 30);
SELECT * FROM regress_call('lives/back', 2032, '{}', 2034, '{public.lives}', floors => '{2500}', boot => 'b', started => 15);
SELECT snowflake_registry.return_ranges(md5('lives/' || l)::uuid, lpad(t, 32, '0')::uuid, '{}')
FROM (VALUES ('back', '2034'), ('asks', '2033')) v(l, t);
-- Two servers with one name and address have different directories: neither ends the other
-- one, however silent that is.
SELECT * FROM regress_call('lives/other', NULL, '{}', 2025, '{public.lives}', floors => '{3000}', boot => 'b', directory => 'copy', started => 30);
UPDATE snowflake_registry.range_clients SET called_at = called_at - interval '2 min', created_at = created_at - interval '3 min' WHERE client = md5('lives/2')::uuid;
SELECT * FROM regress_call('lives/other', 2025, '{}', 2026, '{public.lives}', floors => '{4000}', boot => 'b', directory => 'copy', started => 30);
UPDATE snowflake_registry.range_clients SET called_at = clock_timestamp() WHERE client = md5('lives/2')::uuid;
-- All these wait for it, too: a copy of its machine, a machine that does not know its boot, and the
-- same memory as another client.
SELECT * FROM regress_call('lives/machine', NULL, '{}', 2027, '{public.lives}', floors => '{5000}', boot => 'c', started => 30);
SELECT * FROM regress_call('lives/unknown', NULL, '{}', 2028, '{public.lives}', floors => '{6000}', started => 30);
SELECT * FROM regress_call('lives/again', NULL, '{}', 2029, '{public.lives}', floors => '{7000}', boot => 'b', started => 20);
SELECT snowflake_registry.return_ranges(md5('lives/' || l)::uuid, lpad(t, 32, '0')::uuid, '{}')
FROM (VALUES ('other', '2026'), ('machine', '2027'), ('unknown', '2028'), ('again', '2029')) v(l, t);
SELECT server_name, name FROM snowflake_registry.range_holders WHERE name = 'public.lives';
-- After another start of the machine, under the same name and address, a former life that is
-- silent for a minute has ended.
SELECT * FROM regress_call('lives/3', NULL, '{}', 2030, '{public.lives}', floors => '{8000}', boot => 'd', started => 1);
UPDATE snowflake_registry.range_clients SET called_at = called_at - interval '2 min' WHERE client = md5('lives/2')::uuid;
SELECT * FROM regress_call('lives/3', 2030, '{}', 2031, '{public.lives}', floors => '{8000}', counts => '{0}', boot => 'd', started => 1);
-- The same where the machine does not know its boot.
SELECT * FROM regress_call('boots/1', NULL, '{}', 2040, '{public.boots}', floors => '{0}', started => 10);
UPDATE snowflake_registry.range_clients SET called_at = called_at - interval '2 min', created_at = created_at - interval '3 min' WHERE client = md5('boots/1')::uuid;
SELECT * FROM regress_call('boots/2', NULL, '{}', 2041, '{public.boots}', floors => '{1000}', started => 5);

-- settings
SELECT snowflake_registry.alter_ranges('1 hour', true);
SELECT snowflake_registry.alter_ranges('0 s');
SELECT snowflake_registry.alter_ranges('2 d');
SELECT grant_time, lossless_failover FROM snowflake_registry.range_state;
SELECT DISTINCT grant_time_ms FROM snowflake_registry.get_ranges(gen_random_uuid(), NULL, '{}', gen_random_uuid(), 0, NULL, '{shop}', '{public.u}', '{1}', '{0}', '{0}', '{NULL}', '{NULL}');
-- A floor that is refused because the database was removed acknowledges nothing that is
-- granted later.
SELECT * FROM regress_call('d', 1003, '{}', 3011, '{public.w}', floors => '{0}');
SELECT snowflake_registry.remove_database('shop');
SELECT * FROM regress_call('d', 3011, '{}', 3012, '{public.u,public.w}', floors => '{NULL,5000}');
SELECT snowflake_registry.add_database('shop');
SELECT * FROM regress_call('p', NULL, '{}', 3013, '{public.w}', floors => '{50}', counts => '{0}');
-- One of a range of that database is acknowledged, also by who knows no more of it.
SELECT * FROM regress_call('d', 3012, '{}', 3014, '{public.w}', databases => '{shop_eu}');
SELECT snowflake_registry.remove_database('shop_eu');
SELECT * FROM regress_call('p', 3013, '{}', 3015, '{public.w}', floors => '{1000}', counts => '{0}');
SELECT database, name, floor FROM snowflake_registry.get_floors(md5('d')::uuid, 0) WHERE database = 'shop_eu';
SELECT * FROM regress_call('d', 3014, '{}', 3016, '{public.w}', floors => '{1000}', lasts => '{1000}', counts => '{0}', databases => '{shop_eu}');
SELECT count(*) FROM snowflake_registry.get_floors(md5('d')::uuid, 0) WHERE database = 'shop_eu';
SELECT snowflake_registry.add_database('shop_eu', 'shop');
-- Who has been started again holds nothing of a database that gets another group.
SELECT snowflake_registry.add_database('grouped');
SELECT * FROM regress_call('q/1', NULL, '{}', 3017, '{public.w}', floors => '{0}', databases => '{grouped}', boot => 'q', started => 1);
SELECT * FROM regress_call('q/2', NULL, '{}', 3018, '{public.w}', databases => '{shop}', counts => '{0}', boot => 'q', started => 2);
SELECT snowflake_registry.remove_database('grouped'), snowflake_registry.add_database('grouped', 'other');
-- A failed call has no effect.
\set call 'SELECT * FROM snowflake_registry.get_ranges(md5(''h'')::uuid, NULL, ''{}'', md5(''1'')::uuid, '
:call 0, 'h', '{shop}', '{t}', '{1}', '{1}', '{1}', '{-1}', '{NULL}');
:call 0, 'h', '{shop}', ARRAY[repeat('x', 264)], '{9}', '{1}', '{1}', '{0}', '{NULL}');
:call 0, 'h', '{shop}', '{t}', '{9}', '{1}', '{NULL}', '{0}', '{NULL}');
:call 0, 'h', '{shop}', '{t}', '{9223372036854775807}', '{1}', '{2000000}', '{0}', '{NULL}');
:call 0, 'h', '{shop}', '{t}', '{9223372036854775807}', '{9223372036854775806}', '{1}', '{0}', '{NULL}');
SELECT * FROM regress_call('h', 1, '{2}', 2, '{t}');
BEGIN ISOLATION LEVEL REPEATABLE READ;
:call 0, 'h', '{shop}', '{t}', '{1}', '{1}', '{1}', '{1}', '{NULL}');
ROLLBACK;
SELECT count(*) FROM snowflake_registry.range_clients WHERE server_name = 'h';

-- A trigger is not called as a superuser.
CREATE FUNCTION regress_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called'; END $$;
CREATE TRIGGER regress_trigger BEFORE INSERT ON snowflake_registry.range_clients EXECUTE FUNCTION regress_trigger();
ALTER TABLE snowflake_registry.range_clients ENABLE ALWAYS TRIGGER regress_trigger;
\set VERBOSITY terse
SELECT * FROM regress_call('i', NULL, '{}', 1, '{public.u}');
SELECT * FROM snowflake_registry.get_floors(md5('e/4')::uuid, 0);
SELECT snowflake_registry.return_ranges(md5('e/4')::uuid, NULL, '{}');
DROP TRIGGER regress_trigger ON snowflake_registry.range_clients;

DROP FUNCTION regress_call, regress_trigger;
DROP EXTENSION snowflake_registry;
