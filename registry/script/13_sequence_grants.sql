-- internal functions: what is granted of a sequence

CREATE FUNCTION snowflake_registry.usable_last(last bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(last, 9223372036854775806);

COMMENT ON FUNCTION snowflake_registry.usable_last(bigint) IS
'internal: last number that can be granted, so that the next one is a bigint';

CREATE FUNCTION snowflake_registry.lock_range_sequences(
    databases text[],
    names text[])
RETURNS integer[]
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    until timestamptz := clock_timestamp() + interval '0.5 s';
    before text := current_setting('lock_timeout');
    q record;
    left_ms bigint;
    left_out integer[] := '{}';
BEGIN
    -- In the order of names: otherwise, A and B each wait for a name that the other one
    -- has locked.  One that somebody keeps locked must not hold up the others for long:
    -- it is left out, and get_ranges() says so.  That does not try again to lock it: SKIP
    -- LOCKED waits for who updates a row that another one had updated a moment ago.  One
    -- that is not there is left out, too, as it can be there a moment later.
    FOR q IN
        SELECT d.database_group, n.name, array_agg(n.n::integer) AS positions
        FROM unnest(databases, names) WITH ORDINALITY n(database, name, n)
            JOIN snowflake_registry.range_databases d ON d.database = n.database
        GROUP BY d.database_group, n.name
        ORDER BY d.database_group, n.name
    LOOP
        PERFORM FROM snowflake_registry.range_sequences s
        WHERE s.database_group = q.database_group AND s.name = q.name
        FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN FOUND;
        left_ms := extract(epoch FROM until - clock_timestamp()) * 1000;
        BEGIN
            IF left_ms <= 0 THEN
                RAISE lock_not_available;
            END IF;
            PERFORM set_config('lock_timeout', left_ms::text, true);
            PERFORM FROM snowflake_registry.range_sequences s
            WHERE s.database_group = q.database_group AND s.name = q.name
            FOR UPDATE;
            IF NOT FOUND THEN
                RAISE no_data_found;
            END IF;
        EXCEPTION WHEN lock_not_available OR no_data_found THEN
            left_out := left_out || q.positions;
        END;
        PERFORM set_config('lock_timeout', before, true);
    END LOOP;
    RETURN left_out;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lock_range_sequences(text[], text[]) IS
'internal: lock the sequences of a call until the end of the transaction, but those
that others have locked for long, or that are not there; returns the positions of these';

CREATE FUNCTION snowflake_registry.grant_range(
    INOUT s snowflake_registry.range_sequences,
    c snowflake_registry.range_clients,
    database text,
    last bigint,
    count bigint,
    least_count bigint,
    OUT first_number bigint,
    OUT last_number bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    clock timestamptz := clock_timestamp();
    remaining bigint := snowflake_registry.usable_last(least(s.last, last)) - s.next + 1;
    h snowflake_registry.held_ranges;
    unconfirmed boolean;
BEGIN
    SELECT * INTO h FROM snowflake_registry.held_ranges r
    WHERE r.client = c.client AND r.database = grant_range.database AND r.name = s.name;
    unconfirmed := h.call = ANY (c.lost_calls) AND h.database_group = s.database_group;
    -- Otherwise, answers that do not arrive exhaust the numbers.
    IF unconfirmed AND h.latest_last <= last AND h.latest_last - greatest(h.latest_first, s.floor + 1) + 1 >= greatest(least_count, 1) THEN
        first_number := greatest(h.latest_first, s.floor + 1);
        last_number := h.latest_last;
        UPDATE snowflake_registry.held_ranges r SET call = c.calls, latest_first = first_number
        WHERE r.client = c.client AND r.database = grant_range.database AND r.name = s.name;
        RETURN;
    END IF;

    IF remaining < greatest(least_count, 1) THEN
        RETURN;
    END IF;
    -- A share of what is left; but its end in a few calls, not one for each number.
    first_number := s.next;
    last_number := s.next - 1 + least(greatest(least(count, greatest(remaining / 1000, 100)), least_count, 1), remaining);
    IF s.sampled_at < clock - interval '1 day' THEN
        s.previous := s.sampled;
        s.previous_at := s.sampled_at;
        s.sampled := s.granted;
        s.sampled_at := clock;
    END IF;
    s.next := last_number + 1;
    s.granted := s.granted + last_number - first_number + 1;
    UPDATE snowflake_registry.range_sequences t
    SET next = s.next, granted = s.granted, sampled = s.sampled, sampled_at = s.sampled_at,
        previous = s.previous, previous_at = s.previous_at
    WHERE t.database_group = s.database_group AND t.name = s.name;

    -- Half of what is wanted at a start: otherwise, a burst is granted with each.
    INSERT INTO snowflake_registry.held_ranges AS r
        (client, database, name, database_group, call, previous_first, latest_first, latest_last, acknowledged_floor,
         last, least_count, wish, granted_at, used_at)
    VALUES (c.client, database, s.name, s.database_group, c.calls, first_number, first_number, last_number, s.floor,
            last, least_count, count / 2, clock,
            coalesce(CASE WHEN h.client IS NULL THEN snowflake_registry.forget_former_ranges(c, s, database) END, clock))
    -- The latest range is the one in use now, unless it never arrived, and those before it
    -- are exhausted.
    ON CONFLICT ON CONSTRAINT held_ranges_pkey DO UPDATE
    SET (database_group, call, latest_first, latest_last, last, least_count, wish, granted_at, used_at) =
        (s.database_group, c.calls, first_number, last_number, excluded.last, excluded.least_count, count, clock, clock),
        previous_first = CASE WHEN unconfirmed THEN r.previous_first ELSE r.latest_first END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.grant_range(snowflake_registry.range_sequences, snowflake_registry.range_clients, text, bigint, bigint, bigint) IS
'internal: grant a range of a sequence, or again what did not arrive; NULL if too few
numbers are left up to the last one of the server, or of the registry';
