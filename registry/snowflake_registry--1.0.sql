/* snowflake_registry--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_registry" to load this file. \quit

-- The registry
--
-- A registry is a database that servers ask for worker IDs.  It grants a server
-- a range of IDs: those with a worker ID, from the server's next ID up to an
-- end.  Servers generate IDs only in their ranges, so no two servers generate the
-- same ID as long as ranges of the same worker ID never overlap.  The functions
-- below ensure that.  They use clocks to decide how long a range is, and when a
-- worker ID can go to another server; but ranges depend on a clock not to overlap
-- only where the registry has lost grants.
--
-- A comment that begins with "Otherwise," says what could happen without the
-- clause below it.  "A" and "B" are servers, "W" is a worker ID.
--
-- Times are passed and stored as IDs, the first ID of a tick.  All functions that
-- read or change grants start with lock(), so for each scheme they run one at a
-- time.
--
-- Privileges
--
-- The functions that servers and administrators call run as the superuser who
-- installed the extension.  No other role can have its own code run by them:
--
-- * The schema belongs to a superuser, and nobody else can create objects in it.
--   This script refuses any other schema, and each of these functions checks
--   first that this is still so: who owns the schema could rename it, and put
--   other functions in place of those that are called by name.  Therefore the
--   check is not in a function, and nothing of the schema is used before it, not
--   even the type of a variable: a domain could have code in its constraint.
-- * Everything in the extension belongs to a superuser, too, and so does the
--   extension, whose owner could take something out of it.  Who owns a table can
--   create triggers that always fire, constraints, or defaults, and who owns a
--   function can replace it.
-- * All names are qualified or found in pg_catalog, and arguments have exactly the
--   types that functions are declared with.
-- * Nobody has privileges on the tables, even if default privileges would grant
--   them (see the end of this script).  If somebody is granted TRIGGER later,
--   triggers do not fire: the functions set session_replication_role.
--
-- Everybody may read the settings, which are not secret, so that whoever dumps
-- the database can.

-- The schema might have existed before.  Only names in pg_catalog are used until
-- this is checked.

DO $$
DECLARE
    reason pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    SELECT CASE
        WHEN NOT o.rolsuper THEN
            format('The schema belongs to role "%s", which is not a superuser.', o.rolname)
        WHEN EXISTS (SELECT FROM pg_depend d
                     WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid
                     AND d.classid <> 'pg_extension'::regclass AND d.deptype = 'n') THEN
            'The schema contains other objects.'
        END
    INTO reason
    FROM pg_namespace n JOIN pg_roles o ON o.oid = n.nspowner
    WHERE n.nspname = 'snowflake_registry';
    IF reason IS NOT NULL THEN
        RAISE EXCEPTION 'cannot create the registry in existing schema "snowflake_registry"'
            USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = reason,
            HINT = 'Rename or drop the schema. CREATE EXTENSION creates it again.';
    END IF;
END
$$;

COMMENT ON SCHEMA snowflake_registry IS
'registry that grants worker IDs to servers; see snowflake_registry.create()';

-- schemes, and IDs as times

CREATE FUNCTION snowflake_registry.read_scheme(
    scheme text,
    OUT canonical text,
    OUT tick interval,
    OUT last_datacenter_id integer,
    OUT last_worker_id integer)
AS 'MODULE_PATHNAME', 'snowflake_read_scheme'
LANGUAGE C STABLE PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_registry.read_scheme(text) IS
'scheme given as text (NULL: that of this server) in its canonical form, with its
tick, and its greatest datacenter and worker ID, 0 if it does not have the
field;
errors: 22023 if the text is not a scheme that IDs can be generated with, also
for schemes that can only be decoded, 55000 for NULL if the library is not
preloaded';

CREATE FUNCTION snowflake_registry.lower_bound(ts timestamptz, scheme text)
RETURNS bigint
AS 'MODULE_PATHNAME', 'snowflake_lower_bound_scheme'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_registry.lower_bound(timestamptz, text) IS
'smallest ID at or after a time, in a scheme given as text;
errors: 22008 if the time is out of range for the scheme, 22023 if the text is
not a valid scheme or its IDs do not sort by time';

CREATE FUNCTION snowflake_registry.time_of(id bigint, scheme text)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'snowflake_timestamp_scheme'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION snowflake_registry.time_of(bigint, text) IS
'time of an ID in a scheme given as text: start of its tick;
errors: 22023 if the text is not a valid scheme, 22003 if the ID does not fit
the scheme, 22008 if its timestamp is out of range';

-- tables

CREATE TABLE snowflake_registry.registries (
    scheme text PRIMARY KEY,
    first_worker_id integer NOT NULL,
    last_worker_id integer NOT NULL,
    grant_time interval NOT NULL,
    reach interval NOT NULL,
    slices integer NOT NULL,
    not_before bigint[] NOT NULL,
    longer_reach_until bigint NOT NULL,
    identity text NOT NULL,
    timeline bigint NOT NULL
);

COMMENT ON TABLE snowflake_registry.registries IS
'settings of the registry, one row for each scheme; see
snowflake_registry.create() and snowflake_registry.alter()';
COMMENT ON COLUMN snowflake_registry.registries.scheme IS
'scheme, in the canonical form of snowflake_registry.read_scheme()';
COMMENT ON COLUMN snowflake_registry.registries.first_worker_id IS
'first worker ID that is granted';
COMMENT ON COLUMN snowflake_registry.registries.last_worker_id IS
'last worker ID that is granted';
COMMENT ON COLUMN snowflake_registry.registries.grant_time IS
'how long a server can generate IDs without calling the registry again';
COMMENT ON COLUMN snowflake_registry.registries.reach IS
'how far ahead of the registry''s clock a grant can be extended';
COMMENT ON COLUMN snowflake_registry.registries.slices IS
'number of slices; worker ID W is in slice W % slices, and is granted while
timeline % slices is the same';
COMMENT ON COLUMN snowflake_registry.registries.not_before IS
'for each slice, starting with slice 0: ID at or above which grants start,
because grants below it might have been lost';
COMMENT ON COLUMN snowflake_registry.registries.longer_reach_until IS
'ID below which all grants end that were made before reach was shortened; 0 if it
never was';
COMMENT ON COLUMN snowflake_registry.registries.identity IS
'system identifier, and OIDs of the database and of the table grants, when the
grants were made';
COMMENT ON COLUMN snowflake_registry.registries.timeline IS
'timeline on which the last grants were made';

-- Nothing but the primary key is indexed, and nothing of it changes, so that an
-- extension is a HOT update.

CREATE TABLE snowflake_registry.grants (
    scheme text REFERENCES snowflake_registry.registries,
    datacenter_id integer,
    worker_id integer,
    granted_from bigint NOT NULL,
    granted_until bigint NOT NULL,
    reached bigint NOT NULL,
    token_hash bytea,
    server_name text,
    client_addr inet,
    renewed_at timestamptz NOT NULL,
    PRIMARY KEY (scheme, datacenter_id, worker_id)
) WITH (fillfactor = 50);

COMMENT ON TABLE snowflake_registry.grants IS
'last grant of each worker ID; see the view snowflake_registry.workers';
COMMENT ON COLUMN snowflake_registry.grants.scheme IS
'scheme of the IDs';
COMMENT ON COLUMN snowflake_registry.grants.datacenter_id IS
'datacenter ID, 0 if the scheme does not have the field';
COMMENT ON COLUMN snowflake_registry.grants.worker_id IS
'worker ID';
COMMENT ON COLUMN snowflake_registry.grants.granted_from IS
'first ID of the range';
COMMENT ON COLUMN snowflake_registry.grants.granted_until IS
'end of the range: first ID above it; when the worker ID is returned, the end of
the used IDs';
COMMENT ON COLUMN snowflake_registry.grants.reached IS
'end of the range before the worker ID was returned, as of renewed_at';
COMMENT ON COLUMN snowflake_registry.grants.token_hash IS
'SHA-256 of the secret of the server that holds the worker ID, drawn for its last
call; NULL if no server holds it';
COMMENT ON COLUMN snowflake_registry.grants.server_name IS
'name of the server, as the server gave it';
COMMENT ON COLUMN snowflake_registry.grants.client_addr IS
'address that the server called from; NULL for a Unix-domain socket';
COMMENT ON COLUMN snowflake_registry.grants.renewed_at IS
'time when the worker ID was granted or its grant extended last, by the
registry''s clock, or less than a tick before that';

-- Registries that were dropped, or went to other worker IDs: rows are never removed,
-- as the worker IDs that their servers had can be granted again by any later
-- registry for the scheme.

CREATE TABLE snowflake_registry.dropped (
    scheme text PRIMARY KEY,
    not_before bigint NOT NULL
);

COMMENT ON TABLE snowflake_registry.dropped IS
'schemes whose registry was dropped, or went to other worker IDs; see
snowflake_registry.drop() and snowflake_registry.alter()';
COMMENT ON COLUMN snowflake_registry.dropped.scheme IS
'scheme, in the canonical form of snowflake_registry.read_scheme()';
COMMENT ON COLUMN snowflake_registry.dropped.not_before IS
'ID below which all grants of the registry end, also those that might have been
lost';

-- Dumps contain the settings, but not the grants, which change after the dump was
-- taken: a restored registry knows by its identity that it has lost them.

SELECT pg_catalog.pg_extension_config_dump('snowflake_registry.registries', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_registry.dropped', '');

-- internal functions: where the registry is

CREATE FUNCTION snowflake_registry.check_database()
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    owner name;
BEGIN
    SELECT o.rolname INTO owner
    FROM pg_database d JOIN pg_roles o ON o.oid = d.datdba
    WHERE d.datname = current_database() AND NOT o.rolsuper;
    IF FOUND THEN
        RAISE EXCEPTION 'cannot use database "%" as a registry, because its owner is not a superuser', current_database()
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Role "%s" owns the database and could replace it with one that grants worker IDs twice.', owner),
            HINT = 'Use a database that belongs to a superuser.';
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_database() IS
'internal: check that the database belongs to a superuser;
error: 55000 if not';

SELECT snowflake_registry.check_database();

CREATE FUNCTION snowflake_registry.place(OUT identity text, OUT timeline bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    SELECT format('%s/%s/%s', c.system_identifier, d.oid, 'snowflake_registry.grants'::regclass::oid),
           ('x' || lpad(left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), 16, '0'))::bit(64)::bigint
    FROM pg_control_system() c, pg_database d WHERE d.datname = current_database();
END;

COMMENT ON FUNCTION snowflake_registry.place() IS
'internal: identity of this registry and timeline of its server, as stored with
the settings;
error: 55000 on a standby';

CREATE FUNCTION snowflake_registry.own_worker_id(scheme text)
RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- The library need not be loaded: then these are NULL, or whatever the
    -- configuration has.
    IF coalesce(current_setting('snowflake.registry', true), '') <> ''
        OR coalesce(current_setting('snowflake.worker_id', true), '') !~ '^[0-9]+$' THEN
        RETURN NULL;
    END IF;
    IF (snowflake_registry.read_scheme(coalesce(current_setting('snowflake.scheme', true), 'shardingsphere'))).canonical <> scheme THEN
        RETURN NULL;
    END IF;
    RETURN current_setting('snowflake.worker_id', true)::integer;
END
$$;

COMMENT ON FUNCTION snowflake_registry.own_worker_id(text) IS
'internal: worker ID that the server of the registry itself generates IDs with,
in a scheme given in its canonical form; NULL if there is none, or a registry
grants it';

-- internal functions: promotions
--
-- After a promotion the registry grants worker IDs of another slice, which
-- follows from the number of the timeline.  That is safe as long as no two
-- standbys are promoted to the same number: A and B would be granted W by two
-- registries that do not know each other.  PostgreSQL does not exclude that: a
-- standby takes the number after the greatest that it knows of.  It is excluded
-- in these cases, and the registry grants nothing in others:
--
-- (a) The standbys share an archive.  A standby that is promoted looks there for
--     the history files of other timelines, and takes a greater number.  If two
--     are promoted at the same time and find none, both take the same number T:
--
--         P looks: no history of T         Q looks: no history of T
--         P is promoted to T               Q is promoted to T
--         P archives T.history             Q cannot archive its own T.history
--         P archives its first WAL of T    Q cannot archive its first WAL of T
--         P grants W's of slice T          Q grants nothing
--
--     An archive must not replace a file by another one.  It may accept one
--     with the same contents, as the history files of P and Q are if both were
--     promoted at the same position.  So the first WAL of the timeline must have
--     been archived, too: it has the time of the promotion.  WAL is archived in
--     its order, after the history file.  What a standby only received is marked
--     as archived there, but it is of other timelines than the one to which
--     that standby is promoted.  Nor is WAL archived that archive_command only
--     says to have archived, such as /bin/true.
--
-- (b) Without an archive: synchronous standbys have WAL of the new timeline.  (With
--     one, P could have archived T, and Q, whose archive cannot be reached, a standby.)
--     A standby that has P's WAL of T cannot be promoted to T.  It could be made to
--     follow Q, and receive Q's WAL, although it cannot replay that; or be rewound or
--     created again as a standby of Q, and know nothing of P anymore.  So the
--     administrator has to ensure that P and Q do not both have a quorum, and that
--     no standby of P becomes one of Q.  That commits wait for standbys is not
--     enough: those that wait are released when synchronous_standby_names is
--     cleared, as a cluster manager may do for P and for Q.  Nor is it enough that
--     a standby had the WAL before: the names must still be set.  A subscription
--     is no standby: it may follow P and then Q.  So may pg_receivewal.
--
-- (c) An administrator knows that nobody else was promoted, or that whoever was
--     did not grant anything, and calls confirm_promotion().

CREATE FUNCTION snowflake_registry.pretends_to_archive()
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    -- The manual suggests such a command to switch archiving off.  One that is not
    -- given the name of the file cannot archive it.  If it is empty, WAL is archived
    -- later.
    SELECT current_setting('archive_mode') IN ('on', 'always') AND current_setting('archive_library') = ''
        AND (current_setting('archive_command') !~ '%[pf]' AND current_setting('archive_command') <> ''
             OR current_setting('archive_command') ~ E'^\\s*"?(/usr/bin/|/bin/)?(true|:)"?(\\s+"?%[pf]"?)*\\s*(#.*)?$');
END;

COMMENT ON FUNCTION snowflake_registry.pretends_to_archive() IS
'internal: whether archive_command succeeds without archiving anything';

CREATE FUNCTION snowflake_registry.has_common_archive()
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT current_setting('restore_command') <> '' AND current_setting('archive_mode') IN ('on', 'always')
        AND NOT snowflake_registry.pretends_to_archive();
END;

COMMENT ON FUNCTION snowflake_registry.has_common_archive() IS
'internal: whether this server archives WAL, and would restore it from an
archive';

CREATE FUNCTION snowflake_registry.has_synchronous_standbys()
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT current_setting('synchronous_standby_names') <> '' AND current_setting('max_wal_senders')::integer > 0;
END;

COMMENT ON FUNCTION snowflake_registry.has_synchronous_standbys() IS
'internal: whether commits on this server wait for synchronous standbys';

CREATE FUNCTION snowflake_registry.timeline_is_confirmed()
RETURNS boolean
AS 'MODULE_PATHNAME', 'snowflake_timeline_is_confirmed'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_registry.timeline_is_confirmed() IS
'internal: whether there are synchronous standbys, and have WAL of the timeline
that this server was promoted to; false on a standby';

CREATE FUNCTION snowflake_registry.check_promotion(timeline bigint)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    number text := upper(lpad(to_hex(timeline), 8, '0'));
    history text := format('pg_wal/archive_status/%s.history', number);
    archives boolean := snowflake_registry.has_common_archive();
    waits boolean := snowflake_registry.has_synchronous_standbys();
    pretends boolean := snowflake_registry.pretends_to_archive();
    archivable boolean := false;
    files text[];
BEGIN
    IF NOT archives AND snowflake_registry.timeline_is_confirmed() THEN
        RETURN;
    END IF;
    IF archives THEN
        -- In this order, because the archiver renames the one to the other.
        archivable := (pg_stat_file(history || '.ready', true)).size IS NOT NULL;
        IF (pg_stat_file(history || '.done', true)).size IS NOT NULL THEN
            archivable := true;
            SELECT array_agg(name) INTO files FROM pg_ls_archive_statusdir() WHERE starts_with(name, number);
            IF EXISTS (SELECT FROM unnest(files) f WHERE f ~ '^[0-9A-F]{24}[.]done$') THEN
                RETURN;
            END IF;
            -- Otherwise, the first WAL would be archived when a segment is full.  The
            -- server forgets what was archived when it removes the segment, but not that of
            -- a backup, whose file has a longer name.
            IF NOT EXISTS (SELECT FROM unnest(files) f WHERE f ~ '^[0-9A-F]{24}[.]ready$') THEN
                PERFORM pg_switch_wal();
            END IF;
        END IF;
    END IF;
    RAISE EXCEPTION 'the registry does not grant worker IDs since its server was promoted to timeline %', timeline
        USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = CASE WHEN archivable THEN
                'This timeline has not been archived yet. Another standby might have been promoted to it, too, and grant the same worker IDs.'
            WHEN archives THEN
                'This timeline cannot be archived anymore, because archiving was off when the server was promoted. Another standby might have been promoted to it, too, and grant the same worker IDs.'
            WHEN waits THEN
                'Its synchronous standbys have no WAL of this timeline yet. Another standby might have been promoted to it, too, and grant the same worker IDs.'
            WHEN pretends THEN
                'The "archive_command" of this server does not archive, so another standby might have been promoted to this timeline, too, and grant the same worker IDs.'
            ELSE
                'Another standby might have been promoted to this timeline, too, and grant the same worker IDs. Neither a common archive ("restore_command", "archive_mode", and "archive_command") nor "synchronous_standby_names" excludes it.'
            END,
        HINT = CASE WHEN archivable THEN
                'The registry continues when the timeline is archived. If archiving fails, check the server log. If no other standby was promoted, you can call snowflake_registry.confirm_promotion().'
            WHEN archives THEN
                'If no other standby was promoted, call snowflake_registry.confirm_promotion().'
            WHEN waits THEN
                'The registry continues when they have. If no other standby was promoted, you can call snowflake_registry.confirm_promotion().'
            -- Otherwise, what is marked as archived counts.
            WHEN pretends THEN
                'If no other standby was promoted, call snowflake_registry.confirm_promotion(). Do so before you change "archive_command".'
            ELSE
                'If no other standby was promoted, call snowflake_registry.confirm_promotion(). To have the registry continue by itself after the next promotion, set up a common archive ("restore_command", "archive_mode", and "archive_command"), or "synchronous_standby_names".'
            END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_promotion(bigint) IS
'internal: check that no two standbys can have been promoted to this timeline;
error: 55000 if they can';

CREATE FUNCTION snowflake_registry.warn_of_promotions(settings snowflake_registry.registries)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT snowflake_registry.has_common_archive() AND NOT snowflake_registry.has_synchronous_standbys()
        AND current_setting('wal_level') <> 'minimal' THEN
        RAISE WARNING 'if a standby of this server is promoted, the registry will not grant worker IDs until snowflake_registry.confirm_promotion() is called'
            USING ERRCODE = '01000',
            DETAIL = 'Another standby might be promoted to the same timeline, and grant the same worker IDs.',
            HINT = 'To have the registry continue by itself, set up a common archive ("restore_command", "archive_mode", and "archive_command"), or "synchronous_standby_names".';
    END IF;
    -- The promotion lifts what the old primary granted until then, no more.
    IF settings.slices = 1 THEN
        RAISE WARNING 'after a promotion, the registry will grant the same worker IDs as an old primary that keeps running'
            USING ERRCODE = '01000',
            DETAIL = 'With failovers => 0, all timelines have the same worker IDs.',
            HINT = 'Shut the old primary down before the promotion. If it ran longer, shut it down within 2 * reach, and then call snowflake_registry.lost() on the new one. To avoid this, specify failovers => 1 or more.';
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.warn_of_promotions(snowflake_registry.registries) IS
'internal: warn if nothing excludes that two standbys are promoted to the same
timeline, or that an old primary grants the same worker IDs as the new one';

-- internal functions: lost grants

CREATE FUNCTION snowflake_registry.lift(settings snowflake_registry.registries)
RETURNS bigint
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'	-- where a day has 24 hours
AS $$
DECLARE
    clock timestamptz := clock_timestamp();
    lead interval;
BEGIN
    -- An end that is not known here was granted by a clock C, which differs from
    -- this one by at most "reach".  It is at most (see end_of_range())
    --   C + reach <= clock + 2 * reach, or
    --   as far ahead of C as the last end that is known here was ahead of the
    --   clock of its time.  If that clock was ahead of this one, the known end
    --   counts from now, because it has moved by less than "reach" since then.
    -- Worker IDs that the registry had before count, too: a server that had one of
    -- them, and whose IDs are as far ahead, gets another one with the same lead.
    -- Where "reach" was longer before, those ends are known here; but a dump has
    -- none: see notice_loss().  Nor does it have the lead of a clock that was ahead
    -- (docs/registry.md says what to do).
    SELECT max(snowflake_registry.time_of(s.reached, settings.scheme) - least(s.renewed_at, clock)) INTO lead
    FROM snowflake_registry.grants s WHERE s.scheme = settings.scheme;
    RETURN snowflake_registry.lower_bound(clock + settings.reach + greatest(settings.reach, lead), settings.scheme);
END
$$;

COMMENT ON FUNCTION snowflake_registry.lift(snowflake_registry.registries) IS
'internal: ID below which all grants end that might have been lost';

CREATE FUNCTION snowflake_registry.lift_added(settings snowflake_registry.registries)
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    -- Another registry has the same "reach".  One that was dropped here, or this one
    -- when it had other worker IDs, might have had a longer one, or clocks that were
    -- ahead.
    SELECT greatest(snowflake_registry.lift(settings),
                    (SELECT d.not_before FROM snowflake_registry.dropped d WHERE d.scheme = settings.scheme));
END;

COMMENT ON FUNCTION snowflake_registry.lift_added(snowflake_registry.registries) IS
'internal: ID below which all grants end that another registry, one that was
dropped, or this one with other worker IDs might have made';

CREATE FUNCTION snowflake_registry.remember_ends(settings snowflake_registry.registries)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    -- Otherwise, A has a range of W that ends more than 2 * "reach" from now, by a
    -- clock that was ahead or with a longer "reach", and W is granted to B by the
    -- next registry, or by this one when W is added to it again.
    INSERT INTO snowflake_registry.dropped AS d
    VALUES (settings.scheme, greatest(snowflake_registry.lift(settings), (SELECT max(n) FROM unnest(settings.not_before) n)))
    ON CONFLICT ON CONSTRAINT dropped_pkey DO UPDATE SET not_before = greatest(d.not_before, excluded.not_before);
END;

COMMENT ON FUNCTION snowflake_registry.remember_ends(snowflake_registry.registries) IS
'internal: keep the ID below which all grants end, also those that might have
been lost, for when these worker IDs are granted again';

CREATE FUNCTION snowflake_registry.notice_loss(
    INOUT settings snowflake_registry.registries,
    confirmed boolean,
    OUT noticed boolean)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    here record := snowflake_registry.place();
    promoted boolean;
    lift bigint;
BEGIN
    -- Are the identity and timeline still those that the grants were made with?
    -- If not, grants might be missing.
    noticed := settings.identity <> here.identity OR settings.timeline <> here.timeline;
    IF NOT noticed THEN
        RETURN;
    END IF;

    -- Otherwise, W is granted to A, an asynchronous standby without that commit is
    -- promoted, and W is granted to B.  So no W that might have been granted after
    -- the last commit that is here is granted until the lost ranges have passed.
    --
    -- After a failover, these are the W's in the slices of all timelines from the
    -- last known one to the one before this one.  The slice of this timeline is
    -- granted at once: otherwise every failover would stop all servers.  An old
    -- primary that is still running grants only W's of its own slice.  After
    -- restoring a dump, or in a copy of the database, any W might have been
    -- granted.
    lift := snowflake_registry.lift(settings);
    promoted := settings.identity = here.identity AND settings.timeline < here.timeline;
    -- The server of a copy may have been promoted before the copy's first call.
    IF NOT confirmed AND (promoted OR here.timeline > 1) THEN
        PERFORM snowflake_registry.check_promotion(here.timeline);
    END IF;
    IF promoted THEN
        FOR t IN greatest(settings.timeline, here.timeline - settings.slices) .. here.timeline - 1 LOOP
            settings.not_before[t % settings.slices + 1] := greatest(settings.not_before[t % settings.slices + 1], lift);
        END LOOP;
    ELSE
        -- Otherwise, A was granted W before "reach" was shortened, a dump without that
        -- grant is restored, and W is granted to B.
        lift := greatest(lift, settings.longer_reach_until);
        settings.not_before := ARRAY(SELECT greatest(l, lift) FROM unnest(settings.not_before) l);
    END IF;
    settings.identity := here.identity;
    settings.timeline := here.timeline;
    UPDATE snowflake_registry.registries s
    SET not_before = settings.not_before, identity = settings.identity, timeline = settings.timeline
    WHERE s.scheme = settings.scheme;

    -- Otherwise, A's range ends, W is granted to B, that grant is lost, and A,
    -- whose token is here again, extends its range.
    PERFORM snowflake_registry.take_all(settings.scheme);
END
$$;

COMMENT ON FUNCTION snowflake_registry.notice_loss(snowflake_registry.registries, boolean) IS
'internal: check whether grants might have been lost, and lift the worker IDs that
they are of; confirmed: a promotion need not be checked;
error: 55000 if two standbys can have been promoted to this timeline';

CREATE FUNCTION snowflake_registry.take_all(scheme text)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE snowflake_registry.grants s SET token_hash = NULL
    WHERE s.scheme = take_all.scheme AND s.token_hash IS NOT NULL;
END
$$;

COMMENT ON FUNCTION snowflake_registry.take_all(text) IS
'internal: take the worker IDs of a scheme from all servers; they generate IDs up
to the end of their grants';

-- internal functions: what every call begins with

CREATE FUNCTION snowflake_registry.check_transaction()
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    isolation text := current_setting('transaction_isolation');
BEGIN
    -- Otherwise, B waits for A's call to end, and then has a snapshot in which W,
    -- which A was granted, is free.
    IF isolation IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'cannot use the registry in a transaction with isolation level %', upper(isolation)
            USING ERRCODE = 'feature_not_supported',
            HINT = 'Use READ COMMITTED: reset default_transaction_isolation for the role that calls this.';
    END IF;

    -- Otherwise, A is granted W, the registry crashes before the commit is durable,
    -- or a synchronous standby without it is promoted, and W is free again.
    IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_transaction() IS
'internal: check that the transaction sees what others committed, and have its
commit be durable;
error: 0A000 above READ COMMITTED';

CREATE FUNCTION snowflake_registry.lock(
    scheme text,
    confirmed boolean,
    OUT settings snowflake_registry.registries,
    OUT noticed boolean)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    single text := (SELECT min(s.scheme) FROM snowflake_registry.registries s HAVING count(*) = 1);
    canonical text := (snowflake_registry.read_scheme(coalesce(scheme, single))).canonical;
    n record;
BEGIN
    PERFORM snowflake_registry.check_transaction();

    -- Otherwise, A and B call at the same time, and both find W free.
    SELECT * INTO settings FROM snowflake_registry.registries s
    WHERE s.scheme = canonical FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'registry has no worker IDs for scheme "%"', canonical
            USING ERRCODE = 'undefined_object',
            DETAIL = coalesce((SELECT 'The registry has worker IDs for ' || string_agg(format('"%s"', s.scheme), ', ' ORDER BY s.scheme) || '.'
                               FROM snowflake_registry.registries s),
                              'The registry has no worker IDs for any scheme.'),
            HINT = 'Servers that share worker IDs must have the same "snowflake.scheme". To add worker IDs for another scheme, call snowflake_registry.create() in the database of the registry.';
    END IF;
    n := snowflake_registry.notice_loss(settings, confirmed);
    settings := n.settings;
    noticed := n.noticed;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lock(text, boolean) IS
'internal: lock the settings of a scheme (NULL: the only one that the registry has
worker IDs for, or else that of this server) until the end of the transaction,
and check whether grants might have been lost;
errors: 42704 if the registry has no worker IDs for the scheme, 22023 if it is
not a valid scheme, 55000 if two standbys can have been promoted to this
timeline, 0A000 above READ COMMITTED, 25006 on a standby';

-- internal functions: ranges

CREATE FUNCTION snowflake_registry.hash(token uuid)
RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN sha256(uuid_send(token));

COMMENT ON FUNCTION snowflake_registry.hash(uuid) IS
'internal: what is stored of a token; who can read the tables cannot take the
place of a server';

CREATE FUNCTION snowflake_registry.end_of_range(
    settings snowflake_registry.registries,
    clock timestamptz,
    next_id bigint,
    known snowflake_registry.grants,
    holds boolean,
    OUT until bigint,
    OUT renewed_at timestamptz)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    grant_time interval := settings.grant_time;
    next_time timestamptz := snowflake_registry.time_of(next_id, settings.scheme);
    passed numeric;
    rest numeric;
    known_time timestamptz;
    last_time timestamptz;
BEGIN
    -- The end of a range: grant_time after the later one of both clocks, but not
    -- after the last of these times.
    --
    -- * "reach" ahead of the registry's clock if the server holds the worker ID.
    --   Otherwise, a server whose clock is a year ahead reserves W until then, and
    --   lifting by 2 * reach is not enough.
    --
    -- * grant_time ahead of it if the server holds none.  Otherwise, a server whose
    --   clock is ahead, and which is started again and again after crashes,
    --   reserves one W after the other for "reach".
    --
    -- * As far ahead of it as the known end was ahead of the clock of its time: the
    --   end of the range that the server holds, or else the last end of all
    --   ranges.  Otherwise, after the clock of the registry was ahead by more than
    --   "reach" and was set right, servers have to stop until that time has come;
    --   and so does a standby, or a server that is started again, whose IDs are
    --   ahead of the clock as those of the primary were.  If the clock was set
    --   back since then, this is one more grant_time.  The lead over the clock
    --   grows only by that, however often servers call; lift() depends on it.
    --   Therefore only whole ticks are added.  The rest of the time counts at the
    --   next call.  Otherwise, the lead shrinks, until servers have to stop.
    passed := extract(epoch FROM CASE WHEN known.renewed_at > clock THEN grant_time ELSE clock - known.renewed_at END);
    rest := mod(passed, extract(epoch FROM (snowflake_registry.read_scheme(settings.scheme)).tick));
    known_time := snowflake_registry.time_of(known.reached, settings.scheme)
        + make_interval(secs => (passed - rest)::double precision);
    last_time := greatest(clock + CASE WHEN holds THEN settings.reach ELSE grant_time END, known_time);
    until := snowflake_registry.lower_bound(least(greatest(clock, next_time) + grant_time, last_time), settings.scheme);

    -- The end never decreases: A knows the old one.
    IF holds THEN
        until := greatest(until, known.granted_until);
    END IF;
    IF snowflake_registry.time_of(until, settings.scheme) - next_time < grant_time / 10 THEN
        RAISE EXCEPTION 'snowflake IDs of the server are too far ahead of the registry''s clock'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('The time of the server''s next ID is %s, the registry''s clock reads %s, and the grant cannot end later than %s.',
                            next_time, clock, last_time),
            HINT = 'Check the clocks of the server and the registry.';
    END IF;
    renewed_at := clock;
    IF snowflake_registry.time_of(until, settings.scheme) = known_time THEN
        renewed_at := clock - make_interval(secs => rest::double precision);
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.end_of_range(snowflake_registry.registries, timestamptz, bigint, snowflake_registry.grants, boolean) IS
'internal: end of the range for a server with this next ID, and the time from which
its lead over the clock counts; the known range is the one that it holds, or
else the one that ends last;
errors: 55000 if the next ID is too far ahead of the registry''s clock, 22008 if
the timestamp field ends before the grant could';

CREATE FUNCTION snowflake_registry.first_of_slice(settings snowflake_registry.registries)
RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN settings.first_worker_id
    + mod((settings.timeline % settings.slices)::integer - settings.first_worker_id % settings.slices + settings.slices, settings.slices);

COMMENT ON FUNCTION snowflake_registry.first_of_slice(snowflake_registry.registries) IS
'internal: first worker ID in the slice that is granted';

CREATE FUNCTION snowflake_registry.start_of_slice(settings snowflake_registry.registries)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN settings.not_before[settings.timeline % settings.slices + 1];

COMMENT ON FUNCTION snowflake_registry.start_of_slice(snowflake_registry.registries) IS
'internal: ID at or above which grants of the current slice start';

CREATE FUNCTION snowflake_registry.choose_worker_id(
    settings snowflake_registry.registries,
    datacenter_id integer,
    wanted_worker_id integer,
    server_name text,
    limit_id bigint)
RETURNS integer
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own_worker_id integer := snowflake_registry.own_worker_id(settings.scheme);
BEGIN
    IF snowflake_registry.start_of_slice(settings) > limit_id THEN
        RETURN NULL;
    END IF;

    -- The first choice is the W that the server wants, then the one that it held
    -- last, one that was never granted, and the one unused for longest.
    RETURN (
        SELECT c.worker_id
        FROM (SELECT s.worker_id, s.granted_until, s.renewed_at,
                     CASE WHEN s.worker_id = wanted_worker_id THEN 1
                          WHEN s.server_name = choose_worker_id.server_name THEN 2
                          ELSE 4 END AS choice
              FROM snowflake_registry.grants s
              WHERE s.scheme = settings.scheme AND s.datacenter_id = choose_worker_id.datacenter_id
              AND s.granted_until <= limit_id
              UNION ALL
              (SELECT n.worker_id, 0, NULL, CASE n.worker_id WHEN wanted_worker_id THEN 1 ELSE 3 END
               FROM (SELECT wanted_worker_id
                     UNION ALL
                     SELECT generate_series(snowflake_registry.first_of_slice(settings), settings.last_worker_id, settings.slices)) n(worker_id)
               WHERE NOT EXISTS (SELECT FROM snowflake_registry.grants s
                                 WHERE s.scheme = settings.scheme AND s.datacenter_id = choose_worker_id.datacenter_id
                                 AND s.worker_id = n.worker_id)
               -- the wanted one, the server's own one, and another one
               LIMIT 3)) c
        -- Otherwise, W is granted by another registry, too, or by an old primary of
        -- this one that is still running.
        WHERE c.worker_id BETWEEN settings.first_worker_id AND settings.last_worker_id
        AND c.worker_id % settings.slices = settings.timeline % settings.slices
        -- Otherwise, A is granted the W that this server generates IDs with.
        AND c.worker_id IS DISTINCT FROM own_worker_id
        ORDER BY c.choice, CASE WHEN c.choice = 2 THEN c.renewed_at END DESC, c.granted_until, c.worker_id
        LIMIT 1);
END
$$;

COMMENT ON FUNCTION snowflake_registry.choose_worker_id(snowflake_registry.registries, integer, integer, text, bigint) IS
'internal: worker ID to grant to a server for IDs from this one on; NULL if none
is free';

CREATE FUNCTION snowflake_registry.raise_none_free(
    settings snowflake_registry.registries,
    datacenter_id integer,
    next_id bigint,
    clock timestamptz)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    not_before bigint := snowflake_registry.start_of_slice(settings);
    available integer[] := ARRAY(
        SELECT w FROM generate_series(snowflake_registry.first_of_slice(settings), settings.last_worker_id, settings.slices) w
        WHERE w IS DISTINCT FROM snowflake_registry.own_worker_id(settings.scheme));
    free_from bigint;
    free_at timestamptz;
    detail text;
    hint text;
BEGIN
    SELECT CASE WHEN count(*) = cardinality(available) THEN greatest(min(s.granted_until), not_before) ELSE not_before END
    INTO free_from
    FROM snowflake_registry.grants s
    WHERE s.scheme = settings.scheme AND s.datacenter_id = raise_none_free.datacenter_id
    AND s.worker_id = ANY (available);
    free_at := snowflake_registry.time_of(free_from, settings.scheme);

    IF available = '{}' THEN
        detail := format('The registry can grant only worker ID %s now, with which its own server generates IDs ("snowflake.worker_id").',
                         snowflake_registry.own_worker_id(settings.scheme));
        hint := 'Set another "snowflake.worker_id" on that server and restart it, or call snowflake_registry.alter() to grant other worker IDs.';
    ELSIF free_at <= clock THEN
        detail := format('The next one is free for IDs from %s on, the time of the server''s next ID is %s, and the registry''s clock reads %s.',
                         free_at, snowflake_registry.time_of(next_id, settings.scheme), clock);
        hint := 'Check the clocks of the server and the registry.';
    ELSIF free_from = not_before THEN
        detail := format('Grants might have been lost, or given by another registry, so this registry gives none until %s.', free_at);
        hint := 'Worker IDs that no registry has granted before can be granted at once; see snowflake_registry.alter().';
    ELSE
        detail := format('All worker IDs that the registry can grant now (%s) are held or reserved. The next one is free at %s, unless its grant is extended.',
                         cardinality(available), free_at);
        hint := 'To have the registry grant more worker IDs, call snowflake_registry.alter().';
    END IF;
    RAISE EXCEPTION 'no worker ID is free'
        USING ERRCODE = 'configuration_limit_exceeded', DETAIL = detail, HINT = hint;
END
$$;

COMMENT ON FUNCTION snowflake_registry.raise_none_free(snowflake_registry.registries, integer, bigint, timestamptz) IS
'internal: report that no worker ID is free, and when the next one is;
error: 53400 always';

CREATE FUNCTION snowflake_registry.check_tokens(tokens uuid[], new_token uuid)
RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Otherwise, A runs twice, both call with the same token, and both hold W.
    IF new_token = ANY (tokens) THEN
        RAISE EXCEPTION 'new_token must not be one of the tokens'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_tokens(uuid[], uuid) IS
'internal: check that a call brings a new token;
error: 22023 if it does not';

-- functions for servers

CREATE FUNCTION snowflake_registry.get_grant(
    scheme text,
    datacenter_id integer,
    wanted_worker_id integer,
    next_id bigint,
    tokens uuid[],
    new_token uuid,
    server_name text,
    OUT worker_id integer,
    OUT until bigint,
    OUT grant_time_ms bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;

    DECLARE
        last_datacenter_id integer;
        hashes bytea[] := ARRAY(SELECT snowflake_registry.hash(t) FROM unnest(tokens) t);
        locked record;
        r snowflake_registry.registries;
        g snowflake_registry.grants;
        clock timestamptz;
        holds boolean;
        range record;
    BEGIN
        IF num_nulls(scheme, datacenter_id, next_id, tokens, new_token) > 0 THEN
            RAISE EXCEPTION 'scheme, datacenter_id, next_id, tokens, and new_token must not be null'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        last_datacenter_id := (snowflake_registry.read_scheme(scheme)).last_datacenter_id;
        IF datacenter_id NOT BETWEEN 0 AND last_datacenter_id THEN
            RAISE EXCEPTION 'datacenter ID % is out of range', datacenter_id
                USING ERRCODE = 'numeric_value_out_of_range',
                DETAIL = format('The scheme has datacenter IDs from 0 to %s.', last_datacenter_id),
                HINT = 'Correct snowflake.datacenter_id of the server.';
        END IF;
        PERFORM snowflake_registry.check_tokens(tokens, new_token);

        locked := snowflake_registry.lock(scheme, false);
        r := locked.settings;
        clock := clock_timestamp();

        -- Otherwise, A holds W, but the answer was lost, or a process of A crashed, and
        -- A takes another W with each call, until none is left.  The token is that of
        -- the last call: a copy of A's memory has an older one, and does not hold W.
        -- Nor does A if its clock was set back since then: before the range started,
        -- W might have been B's.
        SELECT * INTO g FROM snowflake_registry.grants s
        WHERE s.scheme = r.scheme AND s.datacenter_id = get_grant.datacenter_id
        AND s.token_hash = ANY (hashes) AND s.granted_from <= next_id
        AND s.worker_id BETWEEN r.first_worker_id AND r.last_worker_id
        AND s.worker_id IS DISTINCT FROM snowflake_registry.own_worker_id(r.scheme)
        ORDER BY s.renewed_at DESC LIMIT 1;
        holds := FOUND;

        IF NOT holds THEN
            -- The range that ends last: see end_of_range().
            SELECT * INTO g FROM snowflake_registry.grants s
            WHERE s.scheme = r.scheme AND s.datacenter_id = get_grant.datacenter_id
            ORDER BY s.reached DESC LIMIT 1;
        END IF;
        range := snowflake_registry.end_of_range(r, clock, next_id, g, holds);
        until := range.until;

        IF NOT holds THEN
            -- W is free if its last range, and those that might have been lost, end
            --   at or below next_id.  Otherwise, A, whose clock is behind, generates
            --   IDs that B generated;
            --   at or below the clock.  Otherwise, A, whose clock is ahead, gets the
            --   W's of all other servers, which have to stop.
            g.worker_id := snowflake_registry.choose_worker_id(r, datacenter_id, wanted_worker_id, left(server_name, 255),
                least(snowflake_registry.lower_bound(clock, r.scheme), next_id));
            g.granted_from := next_id;
            IF g.worker_id IS NULL THEN
                -- Otherwise, an error rolls back that lost grants were noticed by this
                -- call, the next call notices and lifts again, and servers wait
                -- forever.  So the first call returns NULL.
                IF locked.noticed THEN
                    until := NULL;
                    RETURN;
                END IF;
                PERFORM snowflake_registry.raise_none_free(r, datacenter_id, next_id, clock);
            END IF;
        END IF;

        worker_id := g.worker_id;
        grant_time_ms := extract(epoch FROM r.grant_time) * 1000;
        INSERT INTO snowflake_registry.grants
        VALUES (r.scheme, datacenter_id, worker_id, g.granted_from, until, until, snowflake_registry.hash(new_token),
                left(server_name, 255), inet_client_addr(), range.renewed_at)
        ON CONFLICT ON CONSTRAINT grants_pkey DO UPDATE
        SET (granted_from, granted_until, reached, token_hash, server_name, client_addr, renewed_at) =
            (excluded.granted_from, excluded.granted_until, excluded.reached, excluded.token_hash, excluded.server_name, excluded.client_addr, excluded.renewed_at);
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.get_grant(text, integer, integer, bigint, uuid[], uuid, text) IS
'for servers: get a worker ID, if possible the wanted one (NULL: any), for IDs
from next_id up to the returned end;
tokens are the new_token of each call that might have been the last one, which
gets the same worker ID again; if worker_id is NULL, call again; for roles
granted EXECUTE;
errors: 53400 if no worker ID is free, with the time when the next one is, 22003
if datacenter_id or next_id does not fit the scheme, 22004 if an argument other
than wanted_worker_id and server_name is NULL, 22023 if new_token is one of the
tokens, 55000 if next_id is too far ahead of the registry''s clock, or another
standby can have been promoted to the same timeline, 22008 if the timestamp
field ends before the grant could, 42704 if the registry has no worker IDs for
the scheme, 22023 if it is not a valid scheme, 0A000 above READ COMMITTED, 25006
on a standby';

CREATE FUNCTION snowflake_registry.extend_grant(
    scheme text,
    datacenter_id integer,
    worker_id integer,
    next_id bigint,
    tokens uuid[],
    new_token uuid,
    server_name text,
    OUT until bigint,
    OUT grant_time_ms bigint)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;

    DECLARE
        hashes bytea[] := ARRAY(SELECT snowflake_registry.hash(t) FROM unnest(tokens) t);
        r snowflake_registry.registries;
        g snowflake_registry.grants;
        range record;
    BEGIN
        IF num_nulls(scheme, datacenter_id, worker_id, next_id, tokens, new_token) > 0 THEN
            RAISE EXCEPTION 'scheme, datacenter_id, worker_id, next_id, tokens, and new_token must not be null'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        PERFORM snowflake_registry.check_tokens(tokens, new_token);

        r := (snowflake_registry.lock(scheme, false)).settings;
        SELECT * INTO g FROM snowflake_registry.grants s
        WHERE s.scheme = r.scheme
        AND s.datacenter_id = extend_grant.datacenter_id
        AND s.worker_id = extend_grant.worker_id
        -- Otherwise, A is suspended, its range ends, W is granted to B, and A resumes.
        -- Or A returned W, and an earlier call of A arrives late.  Or A was restored
        -- from a snapshot of its memory, or runs twice: because each call stores a
        -- token of its own, the first of the two to call takes W from the other.
        AND s.token_hash = ANY (hashes)
        -- Otherwise, A's clock is set back to before the range, when W might have been
        -- B's, a crash makes A forget where the range begins, and A generates B's IDs.
        AND s.granted_from <= next_id
        -- Otherwise, W is granted elsewhere, too: it was removed from the registry's
        -- range, or this server generates IDs with it.
        AND s.worker_id BETWEEN r.first_worker_id AND r.last_worker_id
        AND s.worker_id IS DISTINCT FROM snowflake_registry.own_worker_id(r.scheme);
        IF NOT FOUND THEN
            RETURN;
        END IF;

        range := snowflake_registry.end_of_range(r, clock_timestamp(), next_id, g, true);
        until := range.until;
        grant_time_ms := extract(epoch FROM r.grant_time) * 1000;
        UPDATE snowflake_registry.grants s
        SET granted_until = extend_grant.until,
            reached = extend_grant.until,
            token_hash = snowflake_registry.hash(new_token),
            server_name = left(extend_grant.server_name, 255),
            client_addr = inet_client_addr(),
            renewed_at = range.renewed_at
        WHERE s.scheme = g.scheme AND s.datacenter_id = g.datacenter_id AND s.worker_id = g.worker_id;
        RETURN NEXT;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.extend_grant(text, integer, integer, bigint, uuid[], uuid, text) IS
'for servers: move the end of a grant ahead; tokens are the new_token of each
call that might have been the last one: the last one answered and those since;
no row if the server does not hold the worker ID (anymore), and must get another
one; for roles granted EXECUTE;
errors: 22003 if next_id does not fit the scheme, 22004 if an argument other
than server_name is NULL, 22023 if new_token is one of the tokens, 55000 if
next_id is too far ahead of the registry''s clock, or another standby can have
been promoted to the same timeline, 22008 if the timestamp field ends before the
grant could, 42704 if the registry has no worker IDs for the scheme, 22023 if it
is not a valid scheme, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.return_grant(
    scheme text,
    datacenter_id integer,
    worker_id integer,
    tokens uuid[],
    until bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;

    DECLARE
        hashes bytea[] := ARRAY(SELECT snowflake_registry.hash(t) FROM unnest(tokens) t);
        r snowflake_registry.registries;
    BEGIN
        IF num_nulls(scheme, datacenter_id, worker_id, tokens) > 0 THEN
            RAISE EXCEPTION 'scheme, datacenter_id, worker_id, and tokens must not be null'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;

        r := (snowflake_registry.lock(scheme, false)).settings;
        UPDATE snowflake_registry.grants s
        -- The end of the used IDs, but never outside the granted range.
        SET granted_until = least(greatest(coalesce(until, s.granted_until), s.granted_from), s.granted_until),
            -- Otherwise, a late call of A extends the grant.
            token_hash = NULL
            -- renewed_at stays with "reached", whose lead over the clock counts
            -- from it.  Otherwise, A's IDs are ahead of the clock, and each time
            -- that A is started again its next range may end less far ahead.
        WHERE s.scheme = r.scheme
        AND s.datacenter_id = return_grant.datacenter_id
        AND s.worker_id = return_grant.worker_id
        -- Otherwise, W is B's by now.  Or A runs twice, and this one is shut down, while
        -- the other one has called and generated IDs above the end that this one
        -- returns.
        AND s.token_hash = ANY (hashes);
        RETURN FOUND;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.return_grant(text, integer, integer, uuid[], bigint) IS
'for servers: return a worker ID, which is free from the end of the used IDs on
(NULL: from the end of the grant on);
false if the server does not hold the worker ID (anymore); tokens as in
snowflake_registry.extend_grant(); for roles granted EXECUTE;
errors: 22004 if an argument other than until is NULL, 42704 if the registry has
no worker IDs for the scheme, 22023 if it is not a valid scheme, 55000 if
another standby can have been promoted to the same timeline, 0A000 above READ
COMMITTED, 25006 on a standby';

-- functions for administrators

CREATE FUNCTION snowflake_registry.check_settings(settings snowflake_registry.registries)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    own record := snowflake_registry.read_scheme(settings.scheme);
    shortest interval := greatest('1 s', own.tick);
    own_worker_id integer := snowflake_registry.own_worker_id(settings.scheme);
    wrong text;
BEGIN
    wrong := CASE
        WHEN own.last_worker_id = 0 THEN
            'The scheme has no worker field.'
        WHEN settings.first_worker_id < 1 OR settings.last_worker_id > own.last_worker_id
            OR settings.first_worker_id > settings.last_worker_id THEN
            format('Worker IDs must be between 1 and %s, and first_worker_id must not be greater than last_worker_id.', own.last_worker_id)
        WHEN own_worker_id BETWEEN settings.first_worker_id AND settings.last_worker_id THEN
            format('This server generates IDs with worker ID %s ("snowflake.worker_id"). Use others, or set "snowflake.registry" on this server, too, and restart it.', own_worker_id)
        WHEN settings.slices - 1 NOT BETWEEN 0 AND 99 THEN
            'failovers must be between 0 and 99.'
        WHEN settings.last_worker_id - settings.first_worker_id < settings.slices - 1 THEN
            format('With failovers => %s, there must be at least %s worker IDs.', settings.slices - 1, settings.slices)
        WHEN settings.grant_time < shortest THEN
            format('grant_time must be at least %s.', shortest)
        WHEN settings.reach < 2 * settings.grant_time OR settings.reach > '365 d' THEN
            'reach must be at least twice grant_time and at most 365 days.'
        END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'invalid settings for a registry'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = wrong;
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_settings(snowflake_registry.registries) IS
'internal: check settings;
error: 22023 if one is out of range';

CREATE FUNCTION snowflake_registry.in_seconds(length interval)
RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN make_interval(secs => extract(epoch FROM length)::double precision);

COMMENT ON FUNCTION snowflake_registry.in_seconds(interval) IS
'internal: interval without days, which can have 23 hours';

CREATE FUNCTION snowflake_registry.create(
    first_worker_id integer,
    last_worker_id integer,
    scheme text DEFAULT NULL,
    grant_time interval DEFAULT '10 min',
    reach interval DEFAULT '1 hour',
    failovers integer DEFAULT 3,
    new boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;

    DECLARE
        r snowflake_registry.registries;
        here record;
        lift bigint;
    BEGIN
        PERFORM snowflake_registry.check_database();
        PERFORM snowflake_registry.check_transaction();
        IF num_nulls(first_worker_id, last_worker_id, grant_time, reach, failovers, new) > 0 THEN
            RAISE EXCEPTION 'first_worker_id, last_worker_id, grant_time, reach, failovers, and new must not be null'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        r.scheme := (snowflake_registry.read_scheme(scheme)).canonical;
        r.first_worker_id := first_worker_id;
        r.last_worker_id := last_worker_id;
        r.grant_time := snowflake_registry.in_seconds(grant_time);
        r.reach := snowflake_registry.in_seconds(reach);
        r.slices := least(failovers, 1000) + 1;
        PERFORM snowflake_registry.check_settings(r);

        -- Otherwise, a transaction that drops the registry commits after its end was
        -- looked for, and before the row of the new one is inserted.
        LOCK TABLE snowflake_registry.registries IN SHARE ROW EXCLUSIVE MODE;

        -- Otherwise, another registry, or this one before it was dropped, has granted
        -- the same W's.
        lift := CASE WHEN new THEN 0 ELSE snowflake_registry.lift_added(r) END;
        r.not_before := array_fill(lift, ARRAY[r.slices]);
        r.longer_reach_until := 0;
        here := snowflake_registry.place();
        r.identity := here.identity;
        r.timeline := here.timeline;
        INSERT INTO snowflake_registry.registries SELECT r.* ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'registry for scheme "%" already exists', r.scheme
                USING ERRCODE = 'duplicate_object',
                HINT = 'To change its settings, call snowflake_registry.alter().';
        END IF;
        IF NOT new THEN
            RAISE NOTICE 'the registry does not grant worker IDs yet'
                USING DETAIL = format('Servers might have grants of another registry. This one grants worker IDs from %s on.',
                                      snowflake_registry.time_of(lift, r.scheme)),
                HINT = 'If no registry has ever granted these worker IDs, call snowflake_registry.drop(), and then snowflake_registry.create() with new => true.';
        END IF;
        PERFORM snowflake_registry.warn_of_promotions(r);
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.create(integer, integer, text, interval, interval, integer, boolean) IS
'make this database grant worker IDs to servers, from the first to the last, for
a scheme (NULL: that of this server);
grant_time is how long a server can generate IDs without the registry, reach how
far ahead of the registry''s clock grants can be extended, failovers how many
failovers within 2 * reach do not interrupt granting;
it grants them after 2 * reach, and when the grants of a registry that was
dropped have ended, unless new states that no registry has granted
these worker IDs and no server has them set; for superusers, and roles granted
EXECUTE;
errors: 42710 if the scheme has a registry, 22023 if a setting is out of range,
or the worker ID of this server is one of them, 22004 if a setting other than
scheme is NULL, 55000 if the owner of the database is not a superuser, 0A000
above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.alter(
    scheme text,
    first_worker_id integer DEFAULT NULL,
    last_worker_id integer DEFAULT NULL,
    grant_time interval DEFAULT NULL,
    reach interval DEFAULT NULL,
    failovers integer DEFAULT NULL,
    new boolean DEFAULT false,
    force boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;

    DECLARE
        old snowflake_registry.registries;
        r snowflake_registry.registries;
        lift bigint;
        others boolean;
        moved boolean;
        added boolean;
    BEGIN
        IF num_nulls(new, force) > 0 THEN
            RAISE EXCEPTION 'new and force must not be null'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        old := (snowflake_registry.lock(scheme, false)).settings;
        r := old;
        r.first_worker_id := coalesce(first_worker_id, old.first_worker_id);
        r.last_worker_id := coalesce(last_worker_id, old.last_worker_id);
        r.grant_time := coalesce(snowflake_registry.in_seconds(grant_time), old.grant_time);
        r.reach := coalesce(snowflake_registry.in_seconds(reach), old.reach);
        r.slices := least(coalesce(failovers, old.slices - 1), 1000) + 1;
        PERFORM snowflake_registry.check_settings(r);

        others := r.first_worker_id > old.last_worker_id OR r.last_worker_id < old.first_worker_id;
        added := NOT new AND (r.first_worker_id < old.first_worker_id OR r.last_worker_id > old.last_worker_id);
        moved := r.slices <> old.slices;
        IF r.reach < old.reach THEN
            r.longer_reach_until := greatest(old.longer_reach_until, snowflake_registry.lift(old));
        END IF;
        IF new AND others THEN
            PERFORM snowflake_registry.remember_ends(old);
            r.not_before := array_fill(0, ARRAY[r.slices]);
        ELSIF added OR moved THEN
            -- Otherwise, an added W was granted by another registry.  Or a W that was
            -- granted before the last failover is in the slice that is granted now.
            lift := greatest((SELECT max(l) FROM unnest(old.not_before) l),
                             snowflake_registry.lift(old), snowflake_registry.lift_added(r));
            r.not_before := array_fill(lift, ARRAY[r.slices]);
            IF NOT force THEN
                RAISE EXCEPTION 'the registry would not grant worker IDs for %',
                    justify_hours(date_trunc('second', snowflake_registry.time_of(lift, r.scheme) - clock_timestamp() + '0.5 s'))
                    USING ERRCODE = 'object_not_in_prerequisite_state',
                    DETAIL = CASE WHEN moved THEN
                            'If failovers is changed, all servers lose their worker IDs, and those that they held must not be granted until these grants have ended.'
                        ELSE
                            'Servers might have grants of another registry for the added worker IDs.'
                        END,
                    HINT = CASE WHEN moved THEN
                            'To avoid this, specify worker IDs at the same time that no registry has ever granted, and new => true. To accept it, specify force => true.'
                        ELSE
                            'If no registry has ever granted the added worker IDs, specify new => true. To accept it, specify force => true.'
                        END;
            END IF;
        END IF;
        IF moved THEN
            -- Otherwise, a W of another slice is held, and the next failover does not
            -- lift that slice.
            PERFORM snowflake_registry.take_all(r.scheme);
        END IF;
        -- Otherwise, A does not call while W is removed, another registry grants W to B,
        -- W is added again, and A extends its range.
        UPDATE snowflake_registry.grants s SET token_hash = NULL
        WHERE s.scheme = r.scheme AND s.token_hash IS NOT NULL
        AND s.worker_id NOT BETWEEN r.first_worker_id AND r.last_worker_id;

        UPDATE snowflake_registry.registries s
        SET first_worker_id = r.first_worker_id, last_worker_id = r.last_worker_id,
            grant_time = r.grant_time, reach = r.reach, slices = r.slices, not_before = r.not_before,
            longer_reach_until = r.longer_reach_until
        WHERE s.scheme = r.scheme;
        IF snowflake_registry.start_of_slice(r) > snowflake_registry.lower_bound(clock_timestamp(), r.scheme) THEN
            RAISE NOTICE 'the registry does not grant worker IDs yet'
                USING DETAIL = format('Servers might have grants of another registry, or grants that this one has lost. This one grants worker IDs from %s on.',
                                      snowflake_registry.time_of(snowflake_registry.start_of_slice(r), r.scheme));
        END IF;
        PERFORM snowflake_registry.warn_of_promotions(r);
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.alter(text, integer, integer, interval, interval, integer, boolean, boolean) IS
'change the settings of the registry for a scheme (NULL: the only one, or else that
of this server); those that are NULL remain;
a change after which the registry would not grant worker IDs for a time is
refused with that time, unless force; new states that no registry has granted
the added worker IDs and no server has them set; for superusers, and roles
granted EXECUTE;
errors: 55000 if granting would be interrupted, or another standby can have been
promoted to the same timeline, 22023 if a setting is out of range, the worker ID
of this server is one of them, or scheme is not a valid one, 22004 if new or
force is NULL, 42704 if the registry has no worker IDs for the scheme, 0A000
above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.drop(scheme text)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;

    DECLARE
        r snowflake_registry.registries := (snowflake_registry.lock(scheme, true)).settings;
    BEGIN
        PERFORM snowflake_registry.remember_ends(r);
        DELETE FROM snowflake_registry.grants s WHERE s.scheme = r.scheme;
        DELETE FROM snowflake_registry.registries s WHERE s.scheme = r.scheme;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.drop(text) IS
'stop granting worker IDs for a scheme (NULL: the only one, or else that of this
server), and forget the grants, which servers use until they end;
snowflake_registry.create() then grants nothing before that, unless new; for
superusers, and roles granted EXECUTE;
errors: 42704 if the registry has no worker IDs for the scheme, 22023 if it is
not a valid scheme, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.lost(scheme text DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;

    DECLARE
        -- This confirms a promotion, too: the administrator knows what was lost.  It
        -- lifts what was granted until now, but not what another standby that was
        -- promoted to the same timeline grants if it keeps running.
        r snowflake_registry.registries := (snowflake_registry.lock(scheme, true)).settings;
        lift bigint := snowflake_registry.lift(r);
    BEGIN
        UPDATE snowflake_registry.registries s
        SET not_before = ARRAY(SELECT greatest(l, lift) FROM unnest(s.not_before) l)
        WHERE s.scheme = r.scheme
        RETURNING s.not_before[r.timeline % r.slices + 1] INTO lift;
        PERFORM snowflake_registry.take_all(r.scheme);
        RETURN snowflake_registry.time_of(lift, r.scheme);
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lost(text) IS
'tell the registry that grants for a scheme (NULL: the only one, or else that of
this server) might have been lost, for example by restoring a backup or disk
snapshot; it grants none for 2 * reach, and returns when that ends; it confirms a
promotion, too: see snowflake_registry.confirm_promotion(); for superusers, and
roles granted EXECUTE;
errors: 42704 if the registry has no worker IDs for the scheme, 22023 if it is
not a valid scheme, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.confirm_promotion(scheme text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;
    RETURN (snowflake_registry.lock(scheme, true)).noticed;
END
$$;

COMMENT ON FUNCTION snowflake_registry.confirm_promotion(text) IS
'tell the registry for a scheme (NULL: the only one, or else that of this server)
that no other standby was promoted to the timeline of its server, so that it
grants worker IDs again; false if it did so already; for superusers, and roles
granted EXECUTE;
errors: 42704 if the registry has no worker IDs for the scheme, 22023 if it is
not a valid scheme, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.free_worker(
    worker_id integer,
    datacenter_id integer DEFAULT 0,
    scheme text DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_roles o ON o.oid = n.nspowner
                   WHERE e.extname = 'snowflake_registry' AND n.nspname = 'snowflake_registry' AND o.rolsuper) THEN
        RAISE EXCEPTION 'schema of the registry is not "snowflake_registry", or does not belong to a superuser'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Its owner could have other functions called in place of those of the registry.',
            HINT = 'Check that the schema has no objects of others in it. Then restore its name and owner.';
    ELSIF EXISTS (SELECT FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
                  LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                  LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                  JOIN pg_roles o ON o.oid IN (e.extowner, p.proowner, c.relowner) AND NOT o.rolsuper
                  WHERE e.extname = 'snowflake_registry') THEN
        RAISE EXCEPTION 'not all objects of the registry belong to superusers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'Another owner could have own code executed with the rights of a superuser.',
            HINT = 'In one transaction, give all to a superuser by REASSIGN OWNED, and drop triggers, rules, policies, constraints, defaults, and indexes that are not of the extension. If functions could have been replaced, drop the extension instead, and create the registry again.';
    END IF;

    DECLARE
        r snowflake_registry.registries := (snowflake_registry.lock(scheme, false)).settings;
        until bigint;
    BEGIN
        -- The end stays: the server can generate IDs up to it.  So does renewed_at:
        -- see return_grant().
        UPDATE snowflake_registry.grants s SET token_hash = NULL
        WHERE s.scheme = r.scheme
        AND s.datacenter_id = free_worker.datacenter_id
        AND s.worker_id = free_worker.worker_id
        RETURNING greatest(s.granted_until, r.not_before[s.worker_id % r.slices + 1]) INTO until;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'worker ID % was never granted', worker_id
                USING ERRCODE = 'undefined_object',
                HINT = 'See the view snowflake_registry.workers for worker IDs that were granted.';
        END IF;
        RETURN snowflake_registry.time_of(until, r.scheme);
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.free_worker(integer, integer, text) IS
'take a worker ID of a scheme (NULL: the only one, or else that of this server)
from the server that holds it, which then gets another one;
returns when it is free, the end of its grant; for superusers, and roles granted
EXECUTE;
errors: 42704 if it was never granted, 42704 if the registry has no worker IDs
for the scheme, 22023 if it is not a valid scheme, 55000 if another standby can
have been promoted to the same timeline, 0A000 above READ COMMITTED, 25006 on a
standby';

-- view

CREATE VIEW snowflake_registry.workers AS
    SELECT g.scheme, g.datacenter_id, g.worker_id, g.server_name, g.client_addr,
        CASE
            WHEN g.worker_id NOT BETWEEN r.first_worker_id AND r.last_worker_id THEN 'outside'
            WHEN g.token_hash IS NOT NULL AND t.granted_until > t.clock THEN 'held'
            WHEN g.token_hash IS NOT NULL THEN 'lapsed'
            WHEN t.free_from > t.clock THEN 'reserved'
            WHEN g.worker_id % r.slices <> r.timeline % r.slices THEN 'spare'
            ELSE 'free'
        END AS state,
        snowflake_registry.time_of(g.granted_from, g.scheme) AS granted_from,
        t.granted_until, g.renewed_at, t.free_from
    FROM snowflake_registry.grants g
        JOIN snowflake_registry.registries r ON r.scheme = g.scheme
        CROSS JOIN LATERAL (SELECT snowflake_registry.time_of(g.granted_until, g.scheme) AS granted_until,
                                   snowflake_registry.time_of(greatest(g.granted_until, r.not_before[g.worker_id % r.slices + 1]), g.scheme) AS free_from,
                                   clock_timestamp() AS clock) t;

COMMENT ON VIEW snowflake_registry.workers IS
'worker IDs that this database has granted to servers, with the last grant of each';
COMMENT ON COLUMN snowflake_registry.workers.scheme IS
'scheme of the IDs';
COMMENT ON COLUMN snowflake_registry.workers.datacenter_id IS
'datacenter ID, 0 if the scheme does not have the field';
COMMENT ON COLUMN snowflake_registry.workers.worker_id IS
'worker ID';
COMMENT ON COLUMN snowflake_registry.workers.server_name IS
'name of the last server that held the worker ID';
COMMENT ON COLUMN snowflake_registry.workers.client_addr IS
'address that the server called from; NULL for a Unix-domain socket';
COMMENT ON COLUMN snowflake_registry.workers.state IS
'held; lapsed: the server did not extend its grant; reserved: no server holds it,
and it is free from free_from on; free; spare: free after a failover; outside:
no longer granted';
COMMENT ON COLUMN snowflake_registry.workers.granted_from IS
'start of the grant, as the time of IDs';
COMMENT ON COLUMN snowflake_registry.workers.granted_until IS
'end of the grant, as the time of IDs';
COMMENT ON COLUMN snowflake_registry.workers.renewed_at IS
'time when the worker ID was granted or its grant extended last, by the
registry''s clock, or less than a tick before that';
COMMENT ON COLUMN snowflake_registry.workers.free_from IS
'time from which the worker ID is free, unless its grant is extended';

-- privileges
--
-- Default privileges might have granted some on the objects above, and on the
-- schema.  They are taken from everybody but the owner; then those that are meant
-- are granted.

DO $$
DECLARE
    o record;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    FOR o IN
        WITH member AS (
            SELECT d.classid, d.objid
            FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
            WHERE e.extname = 'snowflake_registry' AND d.deptype = 'e'),
        object AS (
            SELECT format('ROUTINE %s', p.oid::regprocedure) AS name, p.proowner AS owner,
                   coalesce(p.proacl, acldefault('f', p.proowner)) AS acl
            FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND m.objid = p.oid
            UNION ALL
            SELECT format('TABLE %s', c.oid::regclass), c.relowner, c.relacl
            FROM member m JOIN pg_class c ON m.classid = 'pg_class'::regclass AND m.objid = c.oid
            UNION ALL
            SELECT 'SCHEMA snowflake_registry', n.nspowner, n.nspacl
            FROM pg_namespace n WHERE n.nspname = 'snowflake_registry')
        SELECT DISTINCT object.name, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
        FROM object CROSS JOIN LATERAL aclexplode(object.acl) a
        WHERE a.grantee <> object.owner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', o.name, o.grantee);
    END LOOP;
END
$$;

GRANT USAGE ON SCHEMA snowflake_registry TO PUBLIC;
GRANT SELECT ON snowflake_registry.registries, snowflake_registry.dropped TO PUBLIC;
GRANT SELECT ON snowflake_registry.workers TO pg_monitor;
GRANT EXECUTE ON FUNCTION snowflake_registry.own_worker_id(text) TO pg_monitor;
GRANT EXECUTE ON FUNCTION
    snowflake_registry.read_scheme(text),
    snowflake_registry.lower_bound(timestamptz, text),
    snowflake_registry.time_of(bigint, text)
TO PUBLIC;
