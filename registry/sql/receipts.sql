-- ranges of sequences: what receipts prove, and what servers report
SET client_min_messages = warning;
CREATE EXTENSION snowflake_registry;
\pset null -
\set VERBOSITY terse

-- Servers: what each one keeps of the answers that it got.
CREATE TEMP TABLE regress_servers (server text PRIMARY KEY, token integer NOT NULL DEFAULT 0, receipt bigint NOT NULL DEFAULT 0);

-- A call of a life of a server ("a/2" is one of server a, "a@1/2" of one of the same name, "twin:a/1" of one of
-- the same directory identifier).  What it keeps is by default that of its last call, and of the life before the
-- receipt.
CREATE FUNCTION regress_call(
    life text, names text[], floors bigint[] DEFAULT NULL, receipt bigint DEFAULT NULL, counts bigint[] DEFAULT NULL,
    sources text[] DEFAULT NULL, databases text[] DEFAULT NULL)
RETURNS TABLE (name text, first_number bigint, last_number bigint, floor bigint, next bigint, kind text, receipt_is text, must_report boolean)
LANGUAGE plpgsql AS $$
DECLARE
    server text := split_part(life, '/', 1);
    n integer := cardinality(names);
    kept regress_servers;
    sent bigint;
    r record;
BEGIN
    INSERT INTO regress_servers SELECT life, 0, coalesce((SELECT max(s.receipt) FROM regress_servers s WHERE split_part(s.server, '/', 1) = split_part(life, '/', 1)), 0)
    ON CONFLICT DO NOTHING;
    SELECT * INTO kept FROM regress_servers s WHERE s.server = life;
    sent := coalesce(regress_call.receipt, kept.receipt);
    FOR r IN
        SELECT * FROM snowflake_registry.get_ranges(
            md5(life)::uuid, CASE WHEN kept.token > 0 THEN lpad(kept.token::text, 32, '0')::uuid END, '{}', lpad((kept.token + 1)::text, 32, '0')::uuid,
            sent, substring(server FROM '^\w+'), coalesce(databases, array_fill('shop'::text, ARRAY[n])), names, array_fill(2147483647::bigint, ARRAY[n]),
            coalesce(counts, array_fill(100::bigint, ARRAY[n])), array_fill(1::bigint, ARRAY[n]),
            coalesce(floors, array_fill(NULL::bigint, ARRAY[n])), coalesce(sources, array_fill(NULL::text, ARRAY[n])),
            NULL, md5(split_part(server, ':', -1))::uuid, split_part(life, '/', 2)::integer)
    LOOP
        name := names[r."position"];
        first_number := r.first_number;
        last_number := r.last_number;
        floor := r.floor;
        next := r.next;
        kind := r.problem_kind;
        receipt_is := CASE WHEN r.new_receipt = sent THEN 'the same' ELSE 'new' END;
        must_report := r.must_report;
        UPDATE regress_servers s SET token = kept.token + 1, receipt = r.new_receipt WHERE s.server = life;
        RETURN NEXT;
    END LOOP;
END
$$;

-- A report of one; exact by default
CREATE FUNCTION regress_report(
    life text, names text[], granted bigint[], exact boolean[] DEFAULT NULL, complete boolean DEFAULT true, databases text[] DEFAULT NULL)
RETURNS boolean
LANGUAGE sql
RETURN snowflake_registry.report_ranges(
    md5(life)::uuid, lpad((SELECT s.token FROM regress_servers s WHERE s.server = life)::text, 32, '0')::uuid, '{}', substring(life FROM '^\w+'),
    coalesce(databases, array_fill('shop'::text, ARRAY[cardinality(names)])), names, array_fill(2147483647::bigint, ARRAY[cardinality(names)]),
    granted, coalesce(exact, array_fill(true, ARRAY[cardinality(names)])), complete, md5(split_part(split_part(life, '/', 1), ':', -1))::uuid);

-- Does the registry ask for a report?
CREATE FUNCTION regress_must_report(life text, receipt bigint DEFAULT NULL)
RETURNS boolean
LANGUAGE sql
RETURN EXISTS (SELECT FROM snowflake_registry.get_floors(md5(life)::uuid,
    coalesce(receipt, (SELECT s.receipt FROM regress_servers s WHERE s.server = life), 0)) f WHERE f.name IS NULL);

CREATE FUNCTION regress_resume(skip bigint, servers integer DEFAULT NULL)
RETURNS TABLE (name text, was_next bigint, next bigint, greatest_granted bigint, granted_to text)
LANGUAGE sql
BEGIN ATOMIC
    SELECT r.name, r.was_next, r.next, r.greatest_granted, r.granted_to FROM snowflake_registry.resume_ranges(skip, servers) r ORDER BY r.database_group, r.name;
END;

-- Which servers have not reported?
CREATE FUNCTION regress_silent()
RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    PERFORM snowflake_registry.resume_ranges(0);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN regexp_replace(substring(detail FROM 'Servers that have not: ([^.]*)'), ' \(last call [^)]*\)', '', 'g');
END
$$;

-- the parts of a receipt, and their limits
SELECT snowflake_registry.read_receipt(snowflake_registry.make_receipt(2047, 63, 4194303, 16777215)),
    snowflake_registry.make_receipt(2047, 63, 4194303, 16777215) = 9223372036854775807 AS greatest;
SELECT snowflake_registry.read_receipt(snowflake_registry.make_receipt(1, 64 + 2, 3, 4));

SELECT snowflake_registry.add_database('shop');
UPDATE snowflake_registry.range_state SET registry = 7;

-- none: nothing was granted; then each answer has a new one, that is known
SELECT * FROM regress_call('a/1', '{t,u}', '{0,0}');
SELECT * FROM regress_call('a/1', '{t}');
SELECT * FROM regress_call('b/1', '{t}');
SELECT regress_must_report('a/1'), regress_must_report('nobody', 0);
-- an older one, as of a copy of the server, and one of its next life
SELECT receipt - 1 AS older FROM regress_servers WHERE server = 'a/1' \gset
SELECT * FROM regress_call('copy/1', '{t}', receipt => :older);
SELECT * FROM regress_call('a/2', '{t}');

-- Copies on like machines have the same directory identifier, and are two servers.
BEGIN;
SELECT count(*) FROM regress_call('twin:a/1', '{t}', '{0}', receipt => 0);
DELETE FROM snowflake_registry.range_clients WHERE server_name NOT IN ('a', 'twin');
SELECT snowflake_registry.stop_ranges('a');
SELECT regress_report('a/2', '{t}', '{1000}');
UPDATE snowflake_registry.range_clients SET client_addr = CASE server_name WHEN 'a' THEN '192.0.2.1' ELSE '192.0.2.2' END::inet;
SELECT regress_silent();
SELECT regress_report('twin:a/1', '{t}', '{0}', '{f}');
SELECT server_name, granted, exact FROM snowflake_registry.range_evidence ORDER BY 1;
SELECT regress_report('twin:a/1', '{t}', '{1000}');
SELECT * FROM regress_resume(0, 2);
-- ... but not if one has another name than before.
SELECT snowflake_registry.stop_ranges('a');
SELECT regress_report('a/2', '{}', '{}');
UPDATE snowflake_registry.range_clients SET client_addr = '192.0.2.1';
SELECT regress_silent();
ROLLBACK;

-- another registry's: the server has to report before it is granted anything; others go
-- on
SELECT snowflake_registry.make_receipt(8, 0, 1, 1) AS other \gset
SELECT regress_must_report('moved/1', :other);
SELECT * FROM regress_call('moved/1', '{t,v}', '{NULL,0}', receipt => :other);
SELECT * FROM regress_call('b/1', '{t}');
SELECT regress_report('moved/1', '{t,w}', '{800,0}', '{t,f}', false);
SELECT kind, receipt_is, must_report FROM regress_call('moved/1', '{t}', receipt => :other);
SELECT regress_report('moved/1', '{x,later,elsewhere}', '{30,600,600}', databases => '{shop,eu,de}');
SELECT regress_must_report('moved/1', :other);
SELECT * FROM regress_call('moved/1', '{t,v,w,x}', '{NULL,0,NULL,NULL}', receipt => :other);
-- ... and again, when it comes from there the next time
SELECT kind FROM regress_call('moved/1', '{t}');
SELECT kind, must_report FROM regress_call('moved/1', '{t}', receipt => :other);
-- What it has in its memory is below no floor that others set before it has heard of it.
SELECT waits_for FROM snowflake_registry.get_ranges(md5('q')::uuid, NULL, '{}', md5('1')::uuid, 0, 'q', '{shop}', '{x}', '{2147483647}', '{0}', '{1}', '{40}', '{NULL}');
SELECT name, floor FROM snowflake_registry.get_floors(md5('moved/1')::uuid, :other) WHERE name IS NOT NULL;
DELETE FROM snowflake_registry.range_clients WHERE server_name = 'q';

-- lost: a call was committed, and then it was not
BEGIN;
SELECT first_number > 0 AS granted FROM regress_call('b/1', '{t}');
SELECT receipt AS lost FROM regress_servers WHERE server = 'b/1' \gset
ROLLBACK;
BEGIN;
SELECT count(*) FROM regress_call('new/1', '{t}');
SELECT receipt AS lost_new FROM regress_servers WHERE server = 'new/1' \gset
ROLLBACK;
SELECT stopped FROM snowflake_registry.range_state;
SELECT * FROM regress_call('b/1', '{t,y}', '{NULL,0}', receipt => :lost);
SELECT stopped, stopped_at IS NOT NULL AS at FROM snowflake_registry.range_state;
SELECT * FROM regress_call('a/2', '{t,y}', '{NULL,0}');
SELECT regress_must_report(life, CASE life WHEN 'b/1' THEN :lost END) FROM unnest('{a/2,b/1,nobody}'::text[]) life;
-- Who is superseded has the memory of lost calls, and reports that.
UPDATE regress_servers SET token = 999 WHERE server = 'b/1';
SELECT kind FROM regress_call('b/1', '{t}', receipt => :lost);
SELECT regress_report('b/1', '{t,u}', '{1500,0}');
SELECT kind, receipt_is, must_report FROM regress_call('b/1', '{t}', receipt => :lost);
SELECT kind, must_report FROM regress_call('a/2', '{t}');
-- another life of a server; it does not know all that the one before was granted
SELECT kind, must_report FROM regress_call('a/3', '{t}', counts => '{0}');
SELECT regress_report('a/3', '{t,u,w,z}', '{700,0,20,5000}', '{t,f,f,t}', databases => '{shop,shop,shop,other}');
SELECT database_group, name, server_name, granted, exact FROM snowflake_registry.range_evidence ORDER BY 1, 2, 3;
-- A database is added meanwhile.  What it has exactly is not what another one of the group has.
SELECT snowflake_registry.add_database('other', shared_as => 'shop');
SELECT regress_report('a/3', '{u}', '{0}', databases => '{other}');
-- Another directory of a silent server is that server, but not if both call.
BEGIN;
SELECT kind FROM regress_call('copy@1/1', '{t}', receipt => 0, counts => '{0}');
SELECT regress_report('copy@1/1', '{u}', '{0}');
SELECT regress_silent();
SELECT kind FROM regress_call('copy/1', '{t}', counts => '{0}');
SELECT regress_silent();
ROLLBACK;

-- resumed: by whom, and what is not covered
SELECT * FROM regress_resume(NULL);
SELECT * FROM regress_resume(-1);
UPDATE snowflake_registry.range_clients SET called_at = '2026-01-02 03:04:05.678';
SET timezone = 'UTC';
\set VERBOSITY default
\set SHOW_CONTEXT never
SELECT snowflake_registry.resume_ranges(0, 2);
SELECT regress_report('copy/1', '{u}', '{0}'), regress_report('moved/1', '{u}', '{0}');
SELECT snowflake_registry.resume_ranges(0, 4);
SELECT regress_report('a/2', '{u,w}', '{0,0}'), regress_report('a/3', '{u}', '{0}', '{f}');
SELECT snowflake_registry.resume_ranges(0);
SELECT snowflake_registry.resume_ranges(0, 5);
-- A new one does not know what might have been used.
BEGIN;
UPDATE snowflake_registry.range_sequences SET granted = 0, previous = 0;
SELECT snowflake_registry.resume_ranges(0, 5);
ROLLBACK;
\set VERBOSITY terse
SELECT * FROM regress_resume(0, 4);
SELECT stopped, incarnation FROM snowflake_registry.range_state;
SELECT count(*) FROM snowflake_registry.range_evidence;
SELECT database_group, next FROM snowflake_registry.sequences WHERE name = 'z';

-- Those that have reported continue; so does the one with a lost receipt, as another client.
SELECT kind, receipt_is, must_report FROM regress_call('a/3', '{t}');
SELECT count(*) FROM regress_call('b/1', '{t}', receipt => :lost);
SELECT regress_must_report('b/2', :lost);
SELECT kind, must_report FROM regress_call('b/2', '{t}', receipt => :lost);
SELECT regress_report('b/2', '{t}', '{1500}');
SELECT kind, receipt_is FROM regress_call('b/2', '{t}', receipt => :lost);
-- away: a server with a lost receipt that was not there then; only it has to report
SELECT kind, receipt_is, must_report FROM regress_call('new/1', '{t}', receipt => :lost_new);
SELECT stopped FROM snowflake_registry.range_state;
SELECT kind FROM regress_call('a/3', '{t}');
SELECT next AS before FROM snowflake_registry.sequences WHERE name = 't' \gset
SELECT regress_report('new/1', '{t}', ARRAY[:before + 99]);
SELECT first_number - :before AS skipped, kind, receipt_is FROM regress_call('new/1', '{t}', receipt => :lost_new);

-- A registry that is restored again, to before it was resumed, is behind later receipts, too.
BEGIN;
SELECT snowflake_registry.stop_ranges('files of yesterday');
SELECT count(*) > 0 AS resumed FROM regress_resume(1);
SELECT kind, receipt_is FROM regress_call('b/2', '{t}');
SELECT receipt AS later FROM regress_servers WHERE server = 'b/2' \gset
SELECT incarnation AS incarnation FROM snowflake_registry.range_state \gset
ROLLBACK;
SELECT kind FROM regress_call('b/2', '{t}', receipt => :later);
SELECT stopped, incarnation > :incarnation AS later FROM snowflake_registry.range_state;
-- Numbers are skipped, also of a sequence of which only servers know.
SELECT regress_report('b/2', '{t,none,only}', '{9000,0,50}', '{t,f,f}');
SELECT regress_report('copy/1', '{t,only}', '{9000,300}', '{t,f}');
SELECT * FROM regress_resume(1000) WHERE name IN ('t', 'none', 'only');
SELECT kind, must_report FROM regress_call('b/2', '{t}', receipt => :later);
-- They begin above what was reported, and the numbers that are skipped.
SELECT name, first_number, kind FROM regress_call('b/2', '{none,only}');
-- The same if somebody stops it before: it does not stop again when it is resumed.
BEGIN;
SELECT snowflake_registry.stop_ranges('files of yesterday');
SELECT count(*) > 0 AS resumed FROM regress_resume(1);
SELECT kind FROM regress_call('b/2', '{t}');
SELECT receipt AS later FROM regress_servers WHERE server = 'b/2' \gset
ROLLBACK;
BEGIN;
SELECT snowflake_registry.stop_ranges('files of yesterday');
SELECT kind, must_report FROM regress_call('b/2', '{t}', receipt => :later);
SELECT count(*) > 0 AS resumed FROM regress_resume(1);
SELECT kind, must_report FROM regress_call('b/2', '{t}', receipt => :later);
SELECT stopped FROM snowflake_registry.range_state;
ROLLBACK;
-- After 64 of them, the numbers of incarnations begin again.
UPDATE snowflake_registry.range_state SET incarnation = 63;
SELECT kind, receipt_is FROM regress_call('a/3', '{t}');
BEGIN;
SELECT kind FROM regress_call('a/3', '{t}');
SELECT receipt AS lost FROM regress_servers WHERE server = 'a/3' \gset
ROLLBACK;
SELECT snowflake_registry.stop_ranges('a');
SELECT count(*) > 0 AS resumed FROM regress_resume(1);
SELECT kind, must_report FROM regress_call('a/3', '{t}', receipt => :lost);

-- The greatest numbers leave room for the end, and none is given up.
SELECT regress_report('a/3', '{small,big}', '{2147483647,2147483640}');
SELECT name, next, numbers_left FROM snowflake_registry.sequences WHERE name IN ('small', 'big') ORDER BY name;
SELECT first_number, last_number, kind FROM regress_call('a/3', '{big}', receipt => :lost);

-- A life that has had all receipts that it can have is another client.
UPDATE snowflake_registry.range_clients SET receipts = 16777215 WHERE client = md5('a/3')::uuid;
SELECT kind, receipt_is FROM regress_call('a/3', '{t}', receipt => :lost);
SELECT count(*) FROM regress_call('a/3', '{t}');

-- a database that is put into another group: its sequences continue above those of its
-- former one, and servers give up what they have of that
SELECT snowflake_registry.add_database('eu', 'eu'), snowflake_registry.add_database('de', 'shop');
SELECT first_number, last_number FROM regress_call('b/2', '{t}', '{0}', databases => '{eu}');
-- ... and what servers have reported before
SELECT database_group, name, next > 600 AS above FROM snowflake_registry.sequences WHERE name IN ('later', 'elsewhere') ORDER BY 1, 2;
SELECT first_number, last_number FROM regress_call('copy/1', '{eu_only}', '{20}', databases => '{eu}');
SELECT snowflake_registry.add_database('eu', 'shop');
SELECT snowflake_registry.remove_database('eu'), snowflake_registry.remove_database('eu');
SELECT kind, next FROM regress_call('b/2', '{t}', databases => '{eu}');
SELECT snowflake_registry.add_database('us');
SELECT first_number, last_number FROM regress_call('copy/1', '{t}', '{0}', databases => '{us}');
SELECT snowflake_registry.add_database('eu', 'us');
SELECT name, next, floor FROM snowflake_registry.sequences WHERE database_group = 'us' ORDER BY name;
SELECT database, name, floor FROM snowflake_registry.get_floors(md5('b/2')::uuid, 0) WHERE name IS NOT NULL;
SELECT first_number, last_number FROM regress_call('b/2', '{t}', '{100}', databases => '{eu}');
SELECT database, name, floor FROM snowflake_registry.get_floors(md5('b/2')::uuid, 0) WHERE name IS NOT NULL;
-- the same group again: nothing to do
SELECT snowflake_registry.remove_database('eu'), snowflake_registry.add_database('eu', 'us');

-- sources: a sequence of a database that was copied, or was renamed, continues above what
-- the other one was granted
SELECT snowflake_registry.add_database('renamed');
SELECT next AS before FROM snowflake_registry.sequences WHERE database_group = 'shop' AND name = 't' \gset
SELECT first_number - :before AS above, kind FROM regress_call('copy/1', '{t}', '{0}', sources => '{shop}', databases => '{renamed}');
SELECT first_number - :before AS above, kind FROM regress_call('copy/1', '{t}', sources => '{shop}', databases => '{renamed}');
SELECT first_number - :before AS above, kind FROM regress_call('copy/1', '{t}', sources => '{eu}', databases => '{renamed}');
SELECT first_number, kind FROM regress_call('copy/1', '{alone}', '{0}', sources => '{nowhere}', databases => '{renamed}');

-- names: what a server was granted before, those used last first; not what another one was
SELECT database, name, last, least_count, wish FROM snowflake_registry.get_range_names(md5('b/3')::uuid, 'b', md5('b')::uuid, 0, 100);
SELECT count(*) > 3 AS some FROM snowflake_registry.get_range_names(md5('copy/2')::uuid, 'another name', md5('copy')::uuid, 0, 100);
SELECT database, name FROM snowflake_registry.get_range_names(md5('copy/2')::uuid, 'copy', md5('another directory')::uuid, 1, 1);
SELECT count(*) FROM snowflake_registry.get_range_names(md5('copy/2')::uuid, 'another name', md5('another directory')::uuid, 0, 100);
-- What a new life was granted, and has not used, was not used since the former one.
SELECT used_at AS used FROM snowflake_registry.held_ranges WHERE client = md5('copy/1')::uuid AND name = 'eu_only' \gset
SELECT count(*) FROM regress_call('copy/2', '{eu_only}', databases => '{eu}');
SELECT used_at = :'used' AS as_before FROM snowflake_registry.held_ranges WHERE client = md5('copy/2')::uuid AND name = 'eu_only';
SELECT count(*) FROM regress_call('copy/2', '{eu_only}', databases => '{eu}');
SELECT used_at > :'used' AS used FROM snowflake_registry.held_ranges WHERE client = md5('copy/2')::uuid AND name = 'eu_only';

-- A failed report has no effect.
\set VERBOSITY sqlstate
\set report 'SELECT snowflake_registry.report_ranges(md5(''h'')::uuid, NULL, ''{}'', ''h'', '
:report '{shop}', '{t}', '{1}', '{1}', '{t}', true, NULL);
:report '{shop}', '{t}', '{1}', '{-1}', '{t}', true, md5('h')::uuid);
:report '{shop}', '{t}', '{1}', '{NULL}', '{t}', true, md5('h')::uuid);
:report '{shop}', '{t}', '{1}', '{1}', '{NULL}', true, md5('h')::uuid);
:report '{shop}', '{t}', '{1}', '{1}', '{}', true, md5('h')::uuid);
:report '{shop}', '{t}', '{0}', '{1}', '{t}', true, md5('h')::uuid);
:report '{shop}', '{NULL}', '{1}', '{1}', '{t}', true, md5('h')::uuid);
:report '{shop,shop}', '{t,t}', '{1,1}', '{1,1}', '{t,t}', true, md5('h')::uuid);
BEGIN ISOLATION LEVEL REPEATABLE READ;
:report '{shop}', '{t}', '{1}', '{1}', '{t}', true, md5('h')::uuid);
ROLLBACK;
SELECT count(*) FROM snowflake_registry.range_clients WHERE server_name = 'h';
-- an empty page, of a server that has nothing
SELECT snowflake_registry.stop_ranges(NULL);
SELECT stopped FROM snowflake_registry.range_state;
:report '{}', '{}', '{}', '{}', '{}', true, md5('h')::uuid);
SELECT regress_must_report('h', 0);
-- who has given up all its ranges
SELECT snowflake_registry.return_ranges(md5('b/2')::uuid, lpad((SELECT token FROM regress_servers WHERE server = 'b/2')::text, 32, '0')::uuid, '{}');
SELECT count(*) > 0 AS resumed FROM regress_resume(1);
SELECT regress_must_report('b/2'), regress_report('b/2', '{t}', '{1}');

DROP FUNCTION regress_call, regress_report, regress_silent, regress_must_report, regress_resume;
DROP EXTENSION snowflake_registry;
