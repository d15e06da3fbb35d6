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
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    registry := receipt >> 52;
    incarnation := receipt >> 46 & 63;
    id := receipt >> 24 & 4194303;
    number := receipt & 16777215;
END
$$;

COMMENT ON FUNCTION snowflake_registry.read_receipt(bigint) IS
'internal: what a receipt was made of';

CREATE FUNCTION snowflake_registry.judge_receipt(
    settings snowflake_registry.range_state,
    receipt bigint,
    server_name text,
    OUT standing text,
    OUT later integer,
    OUT timeline bigint,
    OUT reason text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record := snowflake_registry.read_receipt(receipt);
    here record := snowflake_registry.place();
BEGIN
    later := 0;
    timeline := here.timeline;
    standing := CASE
        WHEN receipt = 0 THEN 'none'
        WHEN r.registry <> settings.registry THEN 'other'
        WHEN EXISTS (SELECT FROM snowflake_registry.range_clients c
                     WHERE c.receipt_id = r.id AND c.receipts >= r.number) THEN 'known'
        ELSE 'away'
    END;
    -- Of two incarnations modulo 64, the one that is less than half of these ahead is later.
    IF standing = 'away' AND (r.incarnation - settings.incarnation % 64 + 64) % 64 < 32 THEN
        standing := 'lost';
        later := (r.incarnation - settings.incarnation % 64 + 64) % 64;
    END IF;
    reason := CASE
        WHEN settings.identity <> here.identity THEN
            'its database was copied, upgraded, or restored from a dump'
        WHEN settings.timeline <> here.timeline AND NOT (settings.lossless_failover AND settings.timeline < here.timeline) THEN
            format('its server was promoted to timeline %s', here.timeline)
        WHEN standing = 'lost' THEN
            format('it lost commits: server "%s" has a receipt of a call that it does not know', coalesce(server_name, host(inet_client_addr()), '?'))
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.judge_receipt(snowflake_registry.range_state, bigint, text) IS
'internal: what a server''s receipt says: none; other: it is another registry''s;
known; lost: commits were lost, of so much later an incarnation; away: the registry was
resumed without this server; the timeline; and why ranges might have been lost, as the
receipt shows, and where the registry is; NULL: nothing shows it';

CREATE FUNCTION snowflake_registry.note_stop(reason text, later integer)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    UPDATE snowflake_registry.range_state s
    SET stopped = coalesce(s.stopped, reason), stopped_at = coalesce(s.stopped_at, clock_timestamp()),
        incarnation = s.incarnation + later + 1;
END;

COMMENT ON FUNCTION snowflake_registry.note_stop(text, integer) IS
'internal: grant no ranges; all receipts from before are of an earlier incarnation, also
those that were lost, which are of one that was so much later';

CREATE FUNCTION snowflake_registry.notice_range_loss(
    receipt bigint,
    server_name text,
    OUT settings snowflake_registry.range_state,
    OUT standing text,
    OUT stopped text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    judged record;
BEGIN
    SELECT * INTO settings FROM snowflake_registry.range_state;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    judged := snowflake_registry.judge_receipt(settings, receipt, server_name);
    -- Also while it is stopped.  Otherwise, files from before it was resumed are put back,
    -- somebody stops it, and once it is resumed, it stops again for the same loss.
    IF settings.stopped IS NULL AND judged.reason IS NOT NULL OR judged.standing = 'lost' THEN
        -- Judged again, for the case that it was resumed in the meantime.
        SELECT * INTO settings FROM snowflake_registry.range_state FOR UPDATE;
        judged := snowflake_registry.judge_receipt(settings, receipt, server_name);
        IF settings.stopped IS NULL AND judged.reason IS NOT NULL OR judged.standing = 'lost' THEN
            PERFORM snowflake_registry.note_stop(judged.reason, judged.later);
            SELECT * INTO settings FROM snowflake_registry.range_state;
        END IF;
    END IF;
    standing := judged.standing;
    IF settings.stopped IS NOT NULL THEN
        stopped := format('The registry has granted no ranges since %s, because %s.', settings.stopped_at, settings.stopped);

    -- A standby with all commits was promoted.
    ELSIF settings.timeline <> judged.timeline THEN
        BEGIN
            PERFORM snowflake_registry.check_promotion(judged.timeline);
            UPDATE snowflake_registry.range_state s SET timeline = judged.timeline
            WHERE s.timeline < judged.timeline;
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
            stopped := format('The server of the registry was promoted to timeline %s, and another standby might have been, too.', judged.timeline);
        END;
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.notice_range_loss(bigint, text) IS
'internal: stop granting ranges if some might have been lost; returns the settings,
what the receipt says, and why nothing is granted, or NULL';

CREATE FUNCTION snowflake_registry.has_to_report(
    settings snowflake_registry.range_state,
    standing text,
    reported integer)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (settings.stopped IS NOT NULL OR standing IN ('other', 'away')) AND reported IS DISTINCT FROM settings.incarnation;

COMMENT ON FUNCTION snowflake_registry.has_to_report(snowflake_registry.range_state, text, integer) IS
'internal: whether a server has to report what it was granted, unless it has';

CREATE FUNCTION snowflake_registry.note_evidence(
    c snowflake_registry.range_clients,
    directory uuid,
    server_name text,
    databases text[],
    names text[],
    lasts bigint[],
    granted bigint[])
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    -- A life of a server that got a receipt before was granted all that was lost, and
    -- knows it.
    INSERT INTO snowflake_registry.range_evidence AS e
    SELECT note_evidence.directory, coalesce(d.database_group, d.former_group), u.name, coalesce(left(server_name, 255), '?'), max(u.last),
           CASE WHEN bool_or(u.granted IS NULL OR u.granted = 0 AND (c).receipts = 0) THEN NULL ELSE max(u.granted) END,
           max(s.next), NULL, clock_timestamp()
    FROM unnest(databases, names, lasts, granted) u(database, name, last, granted)
        JOIN snowflake_registry.range_databases d ON d.database = u.database
        LEFT JOIN snowflake_registry.range_sequences s ON s.database_group = coalesce(d.database_group, d.former_group) AND s.name = u.name
    GROUP BY coalesce(d.database_group, d.former_group), u.name
    ON CONFLICT ON CONSTRAINT range_evidence_pkey
    DO UPDATE SET granted = greatest(e.granted, excluded.granted), last = greatest(e.last, excluded.last), skip = NULL, seen_at = excluded.seen_at;
END;

COMMENT ON FUNCTION snowflake_registry.note_evidence(snowflake_registry.range_clients, uuid, text, text[], text[], bigint[], bigint[]) IS
'internal: note what a server reports while nothing is granted';

CREATE FUNCTION snowflake_registry.raise_reported(
    server_name text,
    databases text[],
    names text[],
    lasts bigint[],
    granted bigint[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s record;
BEGIN
    PERFORM snowflake_registry.add_range_sequences(databases, names, lasts,
        ARRAY(SELECT nullif(n.granted, 0) FROM unnest(granted) WITH ORDINALITY n(granted, i) ORDER BY n.i), false);
    FOR s IN
        SELECT q.database_group, q.name, q.next, max(u.granted) AS granted
        FROM unnest(databases, names, granted) u(database, name, granted)
            JOIN snowflake_registry.range_databases d ON d.database = u.database
            JOIN snowflake_registry.range_sequences q ON q.database_group = d.database_group AND q.name = u.name
        WHERE u.granted >= q.next
        GROUP BY q.database_group, q.name, q.next
        ORDER BY q.database_group, q.name
    LOOP
        RAISE LOG 'sequence % (%) continues above %, which server "%" has, instead of at %',
            s.name, s.database_group, s.granted, coalesce(server_name, '?'), s.next
            USING DETAIL = 'If the server was granted them by this registry, others may have been granted the same.';
        UPDATE snowflake_registry.range_sequences q
        SET next = greatest(q.next, least(s.granted, snowflake_registry.usable_last(q.last)) + 1)
        WHERE q.database_group = s.database_group AND q.name = s.name;
    END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_registry.raise_reported(text, text[], text[], bigint[], bigint[]) IS
'internal: have sequences continue above what a server reports';
