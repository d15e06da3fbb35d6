-- internal functions: receipts, and lost ranges of sequences
--
-- Numbers below "next" that are not known to be granted are harmless; a "next" that
-- is too low grants a number twice.  A registry that lost commits does not know it;
-- its servers do.  So each answer has a receipt, a number that only the registry
-- understands, which the server keeps durable before it uses anything of the answer,
-- and brings with each call:
--
--   11 bits   which registry made it
--    6 bits   its incarnation: how often it stopped
--   22 bits   which life of a server got it
--   24 bits   which one of that life's receipts it is
--
-- A receipt is known if that life has had so many, as older ones are, which a copy of
-- the server or a standby that lagged has; one whose commit was lost is not.
--
--   the receipt is                  the registry
--   ------------------------------  -----------------------------------------------
--   0                               grants: this server was granted nothing, or was
--                                   upgraded by pg_upgrade, which copies no receipt
--   known                           grants
--   not known, of this incarnation  stops: what was committed last is lost first, so
--   or a later one (a registry      one receipt proves it for all servers
--   that was restored again)
--   not known, of an earlier one    the server was away when an administrator had it
--                                   resumed: asks it to report, and grants it nothing
--                                   before; others go on
--   another registry's              the same: the server was moved here
--
-- While it is stopped, it asks each server to report what it was granted, and an
-- administrator calls resume_ranges().  An answer has a new receipt only if the
-- registry is in order, and the server has nothing to report; otherwise, it has the
-- one that the server brought.  So a proof remains until somebody has looked, also
-- if the server is started again.

CREATE FUNCTION snowflake_registry.make_receipt(registry integer, incarnation integer, id integer, number integer)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (registry::bigint << 52) | ((incarnation % 64)::bigint << 46) | (id::bigint << 24) | number;

COMMENT ON FUNCTION snowflake_registry.make_receipt(integer, integer, integer, integer) IS
'internal: a receipt of a call';

CREATE FUNCTION snowflake_registry.read_receipt(
    receipt bigint,
    OUT registry integer,
    OUT incarnation integer,
    OUT id integer,
    OUT number integer)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT (receipt >> 52)::integer, (receipt >> 46 & 63)::integer,
           (receipt >> 24 & 4194303)::integer, (receipt & 16777215)::integer;
END;

COMMENT ON FUNCTION snowflake_registry.read_receipt(bigint) IS
'internal: what a receipt was made of';

CREATE FUNCTION snowflake_registry.note_stop(reason text, later integer)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    UPDATE snowflake_registry.range_state s
    SET stopped = coalesce(s.stopped, reason), stopped_at = coalesce(s.stopped_at, clock_timestamp()),
        incarnation = s.incarnation + later + 1, identity = here.identity, timeline = here.timeline
    FROM snowflake_registry.place() here;
    -- Otherwise, files from while it was stopped are put back: what servers knew then is
    -- less than what they were granted when it had been resumed.
    UPDATE snowflake_registry.range_evidence SET exact = false;
END;

COMMENT ON FUNCTION snowflake_registry.note_stop(text, integer) IS
'internal: grant no ranges; all receipts from before are of an earlier incarnation, also
those that were lost, which are of one that was so much later';

CREATE FUNCTION snowflake_registry.notice_range_loss(
    receipt bigint,
    server_name text,
    reported integer,
    OUT settings snowflake_registry.range_state,
    OUT standing text,
    OUT stopped text,
    OUT must_report boolean)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record := snowflake_registry.read_receipt(receipt);
    here record := snowflake_registry.place();
    later integer;
    reason text;
BEGIN
    FOR i IN 1 .. 2 LOOP
        SELECT * INTO settings FROM snowflake_registry.range_state;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        -- Of two incarnations modulo 64, the one that is less than half of these ahead is later.
        later := (r.incarnation - settings.incarnation % 64 + 64) % 64;
        standing := CASE
            WHEN receipt = 0 THEN 'none'
            WHEN r.registry <> settings.registry THEN 'other'
            WHEN EXISTS (SELECT FROM snowflake_registry.range_clients c
                         WHERE c.receipt_id = r.id AND c.receipts >= r.number) THEN 'known'
            WHEN later < 32 THEN 'lost'
            ELSE 'away'
        END;
        reason := CASE
            WHEN settings.identity <> here.identity THEN
                'its database was copied, upgraded, or restored from a dump'
            WHEN settings.timeline <> here.timeline AND NOT (settings.lossless_failover AND settings.timeline < here.timeline) THEN
                format('its server was promoted to timeline %s', here.timeline)
            WHEN standing = 'lost' THEN
                format('it lost commits: server "%s" has a receipt of a call that it does not know', coalesce(server_name, host(inet_client_addr()), '?'))
        END;
        EXIT WHEN reason IS NULL;
        -- Also while it is stopped.  Otherwise, files from before it was resumed are put back,
        -- somebody stops it, and once it is resumed, it stops again for the same loss.
        IF i = 2 THEN
            PERFORM snowflake_registry.note_stop(reason, CASE standing WHEN 'lost' THEN later ELSE 0 END);
            SELECT * INTO settings FROM snowflake_registry.range_state;
        ELSE
            -- Judged again, for the case that it was resumed in the meantime.
            PERFORM FROM snowflake_registry.range_state FOR UPDATE;
        END IF;
    END LOOP;
    must_report := (settings.stopped IS NOT NULL OR standing IN ('other', 'away')) AND reported IS DISTINCT FROM settings.incarnation;
    IF settings.stopped IS NOT NULL THEN
        stopped := format('The registry has granted no ranges since %s, because %s.', settings.stopped_at, settings.stopped);

    -- A standby with all commits was promoted.
    ELSIF settings.timeline <> here.timeline THEN
        BEGIN
            PERFORM snowflake_registry.check_promotion(here.timeline);
            UPDATE snowflake_registry.range_state s SET timeline = here.timeline
            WHERE s.timeline < here.timeline;
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
            stopped := format('The server of the registry was promoted to timeline %s, and another standby might have been, too.', here.timeline);
        END;
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.notice_range_loss(bigint, text, integer) IS
'internal: stop granting ranges if some might have been lost; what the receipt says: none;
other: another registry''s; known; lost: commits were; away: from before it was resumed;
why nothing is granted, or NULL; whether the server has to report what it was granted';

CREATE FUNCTION snowflake_registry.note_evidence(
    directory uuid,
    server_name text,
    databases text[],
    names text[],
    lasts bigint[],
    granted bigint[],
    exact boolean[])
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    -- Otherwise, a database that is added later begins above what the first server has.
    INSERT INTO snowflake_registry.range_databases (database, former_group)
    SELECT DISTINCT n.database, n.database FROM unnest(databases) n(database) ORDER BY n.database
    ON CONFLICT DO NOTHING;

    INSERT INTO snowflake_registry.range_evidence AS e
    SELECT note_evidence.directory, u.database, u.name, coalesce(d.database_group, d.former_group), coalesce(left(server_name, 255), '?'),
           u.last, u.granted, u.exact, clock_timestamp()
    FROM unnest(databases, names, lasts, granted, exact) u(database, name, last, granted, exact)
        JOIN snowflake_registry.range_databases d ON d.database = u.database
    ORDER BY u.database, u.name
    -- What a former life of it knew is right, too.
    ON CONFLICT ON CONSTRAINT range_evidence_pkey
    DO UPDATE SET granted = greatest(e.granted, excluded.granted), exact = e.exact OR excluded.exact,
        last = greatest(e.last, excluded.last), seen_at = excluded.seen_at;
END;

COMMENT ON FUNCTION snowflake_registry.note_evidence(uuid, text, text[], text[], bigint[], bigint[], boolean[]) IS
'internal: note what a server reports';

CREATE FUNCTION snowflake_registry.continue_above_reports(skip bigint)
RETURNS TABLE (database_group text, name text, was_next bigint, next bigint, greatest_granted bigint, granted_to text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    skipped bigint := coalesce(skip, 0);
BEGIN
    -- Those that only servers know.
    INSERT INTO snowflake_registry.range_sequences (database_group, name, last, next, floor, sampled_at, previous_at)
    SELECT e.database_group, e.name, max(e.last), 1, 0, clock_timestamp(), clock_timestamp()
    FROM snowflake_registry.range_evidence e
    GROUP BY e.database_group, e.name
    HAVING max(e.granted) > 0 OR skipped > 0
    ORDER BY e.database_group, e.name
    ON CONFLICT DO NOTHING;
    PERFORM FROM snowflake_registry.range_sequences s
    WHERE skip IS NOT NULL
    OR (s.database_group, s.name) IN (SELECT e.database_group, e.name FROM snowflake_registry.range_evidence e)
    ORDER BY s.database_group, s.name FOR UPDATE;

    RETURN QUERY
    WITH seen AS (
        SELECT e.database_group, e.name, max(e.granted) AS granted,
               string_agg(DISTINCT e.server_name, ', ') FILTER (WHERE e.granted > 0) AS servers
        FROM snowflake_registry.range_evidence e GROUP BY e.database_group, e.name),
    known AS (
        SELECT s.database_group, s.name, s.next AS was_next, seen.granted, seen.servers,
               snowflake_registry.usable_last(s.last) + 1 AS end_of,
               greatest(s.next, snowflake_registry.usable_last(coalesce(seen.granted, 0)) + 1) AS next
        FROM snowflake_registry.range_sequences s
            LEFT JOIN seen ON seen.database_group = s.database_group AND seen.name = s.name
        WHERE skip IS NOT NULL OR seen.name IS NOT NULL)
    UPDATE snowflake_registry.range_sequences s
    -- s.next, as a sequence that is new since they were locked may have been granted numbers.
    SET next = greatest(s.next, least(k.next, k.end_of - skipped) + skipped)
    FROM known k
    WHERE s.database_group = k.database_group AND s.name = k.name
    RETURNING s.database_group, s.name, k.was_next, s.next, k.granted, k.servers;

    DELETE FROM snowflake_registry.range_evidence;
END
$$;

COMMENT ON FUNCTION snowflake_registry.continue_above_reports(bigint) IS
'internal: have sequences continue above what servers have reported, and all of them
above so many numbers more (NULL: only the reported ones), and forget the reports';
