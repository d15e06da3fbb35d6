-- internal functions: lost ranges of sequences
--
-- Numbers below "next" that are not known to be granted are harmless; a "next" that
-- is too low grants a number twice.  The registry cannot know by how much it is too
-- low.  So it stops where it may be, until an administrator has seen what servers
-- were granted, and calls snowflake_registry.resume_ranges().

CREATE FUNCTION snowflake_registry.suspect_loss(
    settings snowflake_registry.range_state,
    identity text,
    timeline bigint,
    databases text[],
    names text[],
    granted bigint[],
    server_name text)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    proof record;
BEGIN
    IF settings.identity <> identity THEN
        RETURN 'its database was copied, upgraded, or restored from a dump';
    END IF;
    IF settings.timeline <> timeline AND
        NOT (settings.lossless_failover AND settings.timeline < timeline) THEN
        RETURN format('its server was promoted to timeline %s', timeline);
    END IF;

    -- Only a number of a known name is a proof: the sequence of a database that was
    -- copied with CREATE DATABASE has numbers of the other one.  Otherwise, numbers
    -- that A was granted after a backup was taken are granted to B.  The answers that
    -- granted them were visible before A could call with them.
    SELECT s.database_group, s.name, s.next, u.granted INTO proof
    FROM unnest(databases, names, granted) u(database, name, granted)
        CROSS JOIN LATERAL (SELECT q.database_group, q.name, q.next
                            FROM snowflake_registry.range_databases d JOIN snowflake_registry.range_sequences q ON q.database_group = d.database_group
                            WHERE d.database = u.database AND q.name = u.name LIMIT 1) s
    WHERE u.granted >= s.next
    ORDER BY u.granted - s.next DESC LIMIT 1;
    IF FOUND THEN
        RETURN format('it lost ranges: server "%s" was granted number %s of %s (%s), and the registry had none above %s',
                      coalesce(server_name, '?'), proof.granted, proof.name, proof.database_group, proof.next - 1);
    END IF;
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION snowflake_registry.suspect_loss(snowflake_registry.range_state, text, bigint, text[], text[], bigint[], text) IS
'internal: why ranges might have been lost, as what was granted to a server shows,
and where the registry is; NULL: nothing shows it';

CREATE FUNCTION snowflake_registry.timeline_may_be_double(timeline bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM snowflake_registry.check_promotion(timeline);
    RETURN false;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
    RETURN true;
END
$$;

COMMENT ON FUNCTION snowflake_registry.timeline_may_be_double(bigint) IS
'internal: whether two standbys can have been promoted to this timeline';

CREATE FUNCTION snowflake_registry.notice_lost_ranges(
    databases text[],
    names text[],
    lasts bigint[],
    granted bigint[],
    server_name text)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    st snowflake_registry.range_state;
    here record := snowflake_registry.place();
    reason text;
BEGIN
    SELECT * INTO st FROM snowflake_registry.range_state;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF st.stopped IS NULL
        AND snowflake_registry.suspect_loss(st, here.identity, here.timeline, databases, names, granted, server_name) IS NOT NULL THEN
        -- Looked at again, for the case that it was resumed in the meantime.
        SELECT * INTO st FROM snowflake_registry.range_state FOR UPDATE;
        IF st.stopped IS NULL THEN
            reason := snowflake_registry.suspect_loss(st, here.identity, here.timeline, databases, names, granted, server_name);
        END IF;
        IF reason IS NOT NULL THEN
            UPDATE snowflake_registry.range_state
            SET stopped = reason, stopped_at = clock_timestamp()
            RETURNING * INTO st;
        END IF;
    END IF;
    IF st.stopped IS NOT NULL THEN
        INSERT INTO snowflake_registry.range_evidence AS e
        SELECT DISTINCT ON (d.database_group, u.name)
               d.database_group, u.name, coalesce(left(server_name, 255), '?'), u.last, u.granted, s.next, clock_timestamp()
        FROM unnest(databases, names, lasts, granted) u(database, name, last, granted)
            JOIN snowflake_registry.range_databases d ON d.database = u.database
            LEFT JOIN snowflake_registry.range_sequences s ON s.database_group = d.database_group AND s.name = u.name
        WHERE u.granted > 0
        ORDER BY d.database_group, u.name, u.granted DESC
        ON CONFLICT ON CONSTRAINT range_evidence_pkey
        DO UPDATE SET granted = excluded.granted, seen_at = excluded.seen_at
        WHERE e.granted < excluded.granted;
        RETURN format('The registry has granted no ranges since %s, because %s.', st.stopped_at, st.stopped);
    END IF;

    -- A standby with all commits was promoted.
    IF st.timeline <> here.timeline THEN
        IF snowflake_registry.timeline_may_be_double(here.timeline) THEN
            RETURN format('The server of the registry was promoted to timeline %s, and another standby might have been, too.', here.timeline);
        END IF;
        UPDATE snowflake_registry.range_state s SET timeline = here.timeline
        WHERE s.timeline < here.timeline;
    END IF;
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION snowflake_registry.notice_lost_ranges(text[], text[], bigint[], bigint[], text) IS
'internal: stop granting ranges if some might have been lost, and note what the
server was granted; returns why none are granted, or NULL';

