-- functions for servers: ranges of sequences

CREATE FUNCTION snowflake_registry.check_range_call(
    client uuid,
    confirmed uuid,
    unconfirmed uuid[],
    new_token uuid,
    databases text[],
    names text[],
    lasts bigint[],
    counts bigint[],
    leasts bigint[],
    floors bigint[],
    granted bigint[])
RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wrong text;
BEGIN
    IF num_nulls(client, unconfirmed, new_token, databases, names, lasts, counts, leasts, floors, granted) > 0 THEN
        RAISE EXCEPTION 'only confirmed, server_name, boot, directory and started may be null in a call for ranges'
            USING ERRCODE = 'null_value_not_allowed';
    END IF;
    PERFORM snowflake_registry.check_tokens(unconfirmed || confirmed, new_token);
    SELECT CASE
        WHEN cardinality(databases) > 100 THEN
            'A call has at most 100 names.'
        WHEN count(*) > least(cardinality(databases), cardinality(names), cardinality(lasts), cardinality(counts),
                              cardinality(leasts), cardinality(floors), cardinality(check_range_call.granted)) THEN
            'The arrays have different lengths.'
        WHEN NOT bool_and(num_nulls(u.database, u.name, u.last, u.count, u.least_count, u.granted) = 0) THEN
            'Only elements of floors may be null.'
        WHEN NOT bool_and(length(u.database) <= 63 AND length(u.name) <= 300) THEN
            'A name is too long.'
        WHEN count(*) > count(DISTINCT (u.database, u.name)) THEN
            'A name is given twice.'
        WHEN NOT bool_and(u.last > 0 AND u.count BETWEEN 0 AND 2147483648 AND u.least_count BETWEEN 0 AND 4294967296
                          AND coalesce(u.floor, 0) >= 0
                          -- The greatest bigint is never granted: see usable_last().
                          AND u.granted BETWEEN 0 AND 9223372036854775806) THEN
            'A number is out of range.'
        END
    INTO wrong
    FROM unnest(databases, names, lasts, counts, leasts, floors, check_range_call.granted)
        u(database, name, last, count, least_count, floor, granted);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'invalid call for ranges'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = wrong;
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_range_call(uuid, uuid, uuid[], uuid, text[], text[], bigint[], bigint[], bigint[], bigint[], bigint[]) IS
'internal: check the arguments of snowflake_registry.get_ranges();
errors: 22004, 22023 if one is wrong';

CREATE FUNCTION snowflake_registry.lock_range_sequence(
    database_group text,
    name text,
    until timestamptz)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    left_ms bigint;
BEGIN
    left_ms := extract(epoch FROM until - clock_timestamp()) * 1000;
    IF left_ms > 0 THEN
        PERFORM set_config('lock_timeout', left_ms::text, true);
        BEGIN
            PERFORM FROM snowflake_registry.range_sequences s
            WHERE s.database_group = lock_range_sequence.database_group AND s.name = lock_range_sequence.name
            FOR UPDATE;
        EXCEPTION WHEN lock_not_available THEN
            -- get_ranges() says so.
        END;
        PERFORM set_config('lock_timeout', '1s', true);
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lock_range_sequence(text, text, timestamptz) IS
'internal: wait until a time to lock a sequence until the end of the transaction';

CREATE FUNCTION snowflake_registry.lock_range_sequences(
    databases text[],
    names text[],
    lasts bigint[],
    floors bigint[],
    granted bigint[],
    may_add boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    clock timestamptz := clock_timestamp();
    sequence record;
BEGIN
    -- In the order of names, and new ones before any other: otherwise, A and B each
    -- wait for a name that the other one has locked.
    -- Subqueries that look each name up: the planner makes joins of others.
    IF may_add AND EXISTS (SELECT FROM unnest(databases, names) u(database, name)
                               JOIN snowflake_registry.range_databases d ON d.database = u.database
                           WHERE (SELECT s.last FROM snowflake_registry.range_sequences s
                                  WHERE s.database_group = d.database_group AND s.name = u.name) IS NULL) THEN
        INSERT INTO snowflake_registry.range_sequences (database_group, name, last, next, floor, created_at, sampled_at, previous_at)
        SELECT DISTINCT ON (d.database_group, u.name)
               d.database_group, u.name, u.last, greatest(u.floor, u.granted) + 1, u.floor, clock, clock, clock
        FROM unnest(databases, names, lasts, floors, granted) u(database, name, last, floor, granted)
            JOIN snowflake_registry.range_databases d ON d.database = u.database
        WHERE greatest(u.floor, u.granted) < u.last AND u.floor IS NOT NULL
        AND NOT EXISTS (SELECT FROM snowflake_registry.range_sequences s
                        WHERE s.database_group = d.database_group AND s.name = u.name)
        ORDER BY d.database_group, u.name, u.floor DESC
        ON CONFLICT DO NOTHING;
    END IF;
    -- One that somebody keeps locked must not hold up the others for long.
    FOR sequence IN
        SELECT DISTINCT d.database_group, n.name
        FROM unnest(databases, names) n(database, name)
            JOIN snowflake_registry.range_databases d ON d.database = n.database
        ORDER BY d.database_group, n.name
    LOOP
        PERFORM FROM snowflake_registry.range_sequences s
        WHERE s.database_group = sequence.database_group AND s.name = sequence.name
        FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            PERFORM snowflake_registry.lock_range_sequence(sequence.database_group, sequence.name, clock + interval '0.5 s');
        END IF;
    END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lock_range_sequences(text[], text[], bigint[], bigint[], bigint[], boolean) IS
'internal: lock the sequences of a call until the end of the transaction, but those
that others have locked for long; those that are not known are added if there is a
floor, and may_add';

CREATE FUNCTION snowflake_registry.usable_last(last bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(last, 9223372036854775806);

COMMENT ON FUNCTION snowflake_registry.usable_last(bigint) IS
'internal: last number that can be granted, so that the next one is a bigint';

CREATE FUNCTION snowflake_registry.range_problem(
    s snowflake_registry.range_sequences,
    database_group text,
    database text,
    name text,
    floor bigint)
RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN CASE
        WHEN database_group IS NULL THEN
            format('database: The registry grants no ranges to database "%s". Its administrator can call snowflake_registry.add_database().', database)
        WHEN s.name IS NULL AND floor IS NULL THEN
            format('unknown: The registry does not know sequence %s of database "%s". Set the kind of the sequence again.', name, database)
        WHEN s.name IS NULL THEN
            format('floor: No number of sequence %s is left above %s.', name, floor)
        -- Otherwise, setval() with a wrong number exhausts the sequence of all servers.
        WHEN floor >= s.next AND (floor >= snowflake_registry.usable_last(s.last)
                                  OR floor - s.next >= (snowflake_registry.usable_last(s.last) - s.next + 1) / 10) THEN
            format('floor: It would skip all numbers from %s up to %s, more than a tenth of what is left of sequence %s. The administrator of the registry can call snowflake_registry.raise_sequence().', s.next, floor, name)
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.range_problem(snowflake_registry.range_sequences, text, text, text, bigint) IS
'internal: why nothing is granted of a sequence: a keyword, a colon, and a sentence;
NULL: nothing is wrong';

CREATE FUNCTION snowflake_registry.acknowledge_floor(
    client uuid,
    database text,
    name text,
    acknowledged bigint)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- No more than the floor of the sequence.  Otherwise, A wants a floor of 1000 that
    -- is refused, is granted 101 to 200, and B's floor of 500 does not wait for A.  The
    -- database may have been removed, so the group is that of the range.
    UPDATE snowflake_registry.held_ranges h
    SET acknowledged_floor = least(acknowledged, s.floor),
        floor_pending = h.floor_pending AND acknowledged < s.floor
    FROM snowflake_registry.range_sequences s
    WHERE s.database_group = h.database_group AND s.name = h.name
    AND h.client = acknowledge_floor.client AND h.database = acknowledge_floor.database AND h.name = acknowledge_floor.name
    AND h.acknowledged_floor < least(acknowledged, s.floor);
END
$$;

COMMENT ON FUNCTION snowflake_registry.acknowledge_floor(uuid, text, text, bigint) IS
'internal: a server gives out no number up to a floor anymore';

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
    wish bigint := count;
    h snowflake_registry.held_ranges;
    holds boolean;
    unconfirmed boolean := false;
BEGIN
    SELECT * INTO h FROM snowflake_registry.held_ranges r
    WHERE r.client = c.client AND r.database = grant_range.database AND r.name = s.name;
    holds := FOUND;

    IF holds THEN
        unconfirmed := h.call = ANY (c.lost_calls) AND h.database_group = s.database_group;
        -- Otherwise, answers that do not arrive exhaust the numbers.
        IF unconfirmed AND h.latest_last <= last AND h.latest_last - greatest(h.latest_first, s.floor + 1) + 1 >= greatest(least_count, 1) THEN
            first_number := greatest(h.latest_first, s.floor + 1);
            last_number := h.latest_last;
            UPDATE snowflake_registry.held_ranges r SET call = c.calls, latest_first = first_number
            WHERE r.client = c.client AND r.database = grant_range.database AND r.name = s.name;
            RETURN;
        END IF;
    ELSE
        wish := greatest(count, snowflake_registry.remembered_count(c.client, c.server_name, database, s.database_group, s.name));
    END IF;

    IF remaining < greatest(least_count, 1) THEN
        RETURN;
    END IF;
    first_number := s.next;
    last_number := s.next - 1 + greatest(least(wish, remaining / 1000), least_count, 1);
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

    IF holds THEN
        -- The latest range is the one in use now, unless it never arrived, and
        -- those before it are exhausted.
        UPDATE snowflake_registry.held_ranges r
        SET database_group = s.database_group, call = c.calls,
            previous_first = CASE WHEN unconfirmed THEN r.previous_first ELSE r.latest_first END,
            latest_first = first_number, latest_last = last_number, wish = count, granted_at = clock
        WHERE r.client = c.client AND r.database = grant_range.database AND r.name = s.name;
    ELSE
        -- Half of what was remembered: otherwise, a burst is granted with each start.
        INSERT INTO snowflake_registry.held_ranges
            (client, database, name, database_group, call, previous_first, latest_first, latest_last, acknowledged_floor, wish, granted_at)
        VALUES (c.client, database, s.name, s.database_group, c.calls, first_number, first_number, last_number, s.floor,
                greatest(count, wish / 2), clock);
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.grant_range(snowflake_registry.range_sequences, snowflake_registry.range_clients, text, bigint, bigint, bigint) IS
'internal: grant a range of a sequence, or again what did not arrive; NULL if too few
numbers are left up to the last one of the server, or of the registry';

-- Its plans are made once a session, and look names up one by one, whatever the
-- statistics say.

CREATE FUNCTION snowflake_registry.get_ranges(
    client uuid,
    confirmed uuid,
    unconfirmed uuid[],
    new_token uuid,
    server_name text,
    databases text[],
    names text[],
    lasts bigint[],
    counts bigint[],
    leasts bigint[],
    floors bigint[],
    granted bigint[],
    boot uuid DEFAULT NULL,
    directory uuid DEFAULT NULL,
    started bigint DEFAULT NULL)
RETURNS TABLE (
    "position" integer,
    first_number bigint,
    last_number bigint,
    floor bigint,
    grant_time_ms bigint,
    waits_for text,
    problem text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 100
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
BEGIN
    @CHECK_OWNERS@

    DECLARE
        called record;
        c snowflake_registry.range_clients;
        s snowflake_registry.range_sequences;
        stopped text;
        u record;
        g record;
        busy boolean;
    BEGIN
        PERFORM snowflake_registry.lock_range_tables();
        PERFORM snowflake_registry.check_range_call(client, confirmed, unconfirmed, new_token, databases, names, lasts, counts, leasts, floors, granted);
        PERFORM snowflake_registry.check_transaction();
        PERFORM snowflake_registry.limit_transaction();
        -- Otherwise, a commit that hangs has the calls of all servers hang.
        PERFORM set_config('lock_timeout', '1s', true);

        -- All transactions lock in this order: own client, state, sequences.
        called := snowflake_registry.lock_range_client(client, confirmed, unconfirmed, server_name);
        c := called.holder;
        stopped := snowflake_registry.notice_lost_ranges(databases, names, lasts, granted, server_name);
        IF called.state <> 'superseded' THEN
            c := snowflake_registry.note_range_call(c, called.state, new_token, server_name, boot, directory, started);
        ELSIF stopped IS NULL THEN
            RETURN;
        END IF;
        -- While nothing is granted, who is superseded may be so because its last calls
        -- were lost.  It keeps its ranges until somebody has looked.
        IF called.state = 'unknown' OR stopped IS NOT NULL AND called.state <> 'new' THEN
            PERFORM snowflake_registry.note_unknown_ranges(client, databases, names, granted);
        END IF;
        PERFORM snowflake_registry.lock_range_sequences(databases, names, lasts, floors, granted, stopped IS NULL);
        SELECT extract(epoch FROM t.grant_time) * 1000 INTO grant_time_ms FROM snowflake_registry.range_state t;

        FOR u IN
            SELECT r.*, d.database_group
            FROM unnest(databases, names, lasts, counts, leasts, floors, granted)
                WITH ORDINALITY r(database, name, last, count, least_count, floor, granted, n)
                LEFT JOIN snowflake_registry.range_databases d ON d.database = r.database
            ORDER BY r.n
        LOOP
            SELECT * INTO s FROM snowflake_registry.range_sequences q
            WHERE q.database_group = u.database_group AND q.name = u.name
            FOR UPDATE SKIP LOCKED;
            busy := NOT FOUND AND EXISTS (SELECT FROM snowflake_registry.range_sequences q
                                          WHERE q.database_group = u.database_group AND q.name = u.name);
            "position" := u.n;
            first_number := NULL;
            last_number := NULL;
            waits_for := NULL;
            problem := CASE
                WHEN stopped IS NOT NULL THEN 'stopped: ' || stopped
                WHEN busy THEN format('busy: Another transaction at the registry has locked sequence %s.', u.name)
                WHEN s.name IS NOT NULL AND coalesce(u.floor < s.next, true) THEN NULL
                ELSE snowflake_registry.range_problem(s, u.database_group, u.database, u.name, u.floor)
            END;
            IF problem IS NULL AND u.floor > s.floor THEN
                UPDATE snowflake_registry.range_sequences q
                SET floor = u.floor, next = greatest(q.next, u.floor + 1)
                WHERE q.database_group = s.database_group AND q.name = s.name
                RETURNING * INTO s;
            END IF;
            floor := CASE WHEN s.floor > u.last THEN u.last ELSE s.floor END;
            IF u.floor IS NOT NULL AND NOT busy THEN
                -- Who has a lower MAXVALUE has no numbers above it, either.
                PERFORM snowflake_registry.acknowledge_floor(client, u.database, u.name,
                    CASE WHEN u.floor < u.last THEN u.floor ELSE s.floor END);
            END IF;
            IF problem IS NULL AND u.floor IS NOT NULL THEN
                waits_for := snowflake_registry.wait_for_holders(client, u.database, s.database_group, s.name, u.floor);
            END IF;
            IF problem IS NULL AND u.count > 0 THEN
                g := snowflake_registry.grant_range(s, c, u.database, u.last, u.count, u.least_count);
                first_number := g.first_number;
                last_number := g.last_number;
                IF first_number IS NULL THEN
                    -- MAXVALUE is another one after ALTER SEQUENCE ... AS bigint of a migration.
                    problem := CASE WHEN u.last > s.last
                        THEN format('last: The registry has %s as the last number of sequence %s, not %s. Its administrator can call snowflake_registry.raise_sequence().', s.last, u.name, u.last)
                        ELSE format('maximum: All numbers of sequence %s up to %s are in use or granted.', u.name, u.last)
                    END;
                END IF;
            END IF;
            RETURN NEXT;
        END LOOP;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.get_ranges(uuid, uuid, uuid[], uuid, text, text[], text[], bigint[], bigint[], bigint[], bigint[], bigint[], uuid, uuid, bigint) IS
'for servers: get a range of each of up to 100 sequences, of about so many numbers
(0: none), but at least so many, and have nobody give out numbers up to a floor
(NULL: none);
confirmed is the new_token of the last call whose answer arrived, unconfirmed are
those of calls since then, which granted the same again; granted is the greatest
number that the server was ever granted; boot and directory identify the start of
the server''s machine and its data directory, started is when its shared memory was
initialized: a former life there has ended;
one row for each sequence in this order, with the greatest floor known, and the
servers that may still give out numbers up to the given one; problem is a
keyword, a colon, and a sentence; no row: another one continues with the memory
of this server, which has to give up its ranges; for roles granted EXECUTE;
errors: 55P03 if the previous call of the server is in progress, or others for
longer than a second, 22004 and 22023 if an argument is wrong, 0A000 above READ
COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.get_floors(client uuid)
RETURNS TABLE (database text, name text, floor bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    @CHECK_OWNERS@

    DECLARE
        last_call timestamptz;
    BEGIN
        PERFORM snowflake_registry.lock_range_tables();
        -- Otherwise, add_database() waits for these locks, and all servers for that.  What
        -- this writes need not be durable.
        IF NOT pg_is_in_recovery() THEN
            PERFORM snowflake_registry.limit_transaction();
            PERFORM set_config('synchronous_commit', 'off', true);
        END IF;
        IF client IS NULL THEN
            RAISE EXCEPTION 'client must not be null'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        SELECT c.called_at INTO last_call FROM snowflake_registry.range_clients c
        WHERE c.client = get_floors.client AND c.token_hash IS NOT NULL;
        IF NOT FOUND THEN
            RETURN NEXT;
            RETURN;
        END IF;
        -- For end_former_lives().
        IF last_call < clock_timestamp() - interval '10 s' THEN
            UPDATE snowflake_registry.range_clients c SET called_at = clock_timestamp()
            WHERE c.client = (SELECT k.client FROM snowflake_registry.range_clients k
                              WHERE k.client = get_floors.client FOR UPDATE SKIP LOCKED);
        END IF;
        RETURN QUERY
        SELECT h.database, h.name, s.floor
        FROM snowflake_registry.held_ranges h
            JOIN snowflake_registry.range_sequences s ON s.database_group = h.database_group AND s.name = h.name
        WHERE h.client = get_floors.client AND h.floor_pending;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.get_floors(uuid) IS
'for servers that hold ranges, every 20 seconds, and when
snowflake_registry.floor_changes has increased: floors that the server has to
acknowledge by snowflake_registry.get_ranges(); a row of NULLs: the registry does
not know that it holds ranges, so it has to call that for all that it holds; for
roles granted EXECUTE;
errors: 22004 if client is NULL, 25006 on a standby if the call is to be noted,
which it is if the last call was 10 seconds ago';

CREATE FUNCTION snowflake_registry.return_ranges(
    client uuid,
    confirmed uuid,
    unconfirmed uuid[])
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    @CHECK_OWNERS@

    DECLARE
        hashes bytea[] := ARRAY(SELECT snowflake_registry.hash(t) FROM unnest(unconfirmed || confirmed) t);
        c snowflake_registry.range_clients;
    BEGIN
        IF num_nulls(client, unconfirmed) > 0 THEN
            RAISE EXCEPTION 'client and unconfirmed must not be null'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        PERFORM snowflake_registry.lock_range_tables();
        PERFORM snowflake_registry.check_transaction();
        PERFORM snowflake_registry.limit_transaction();
        PERFORM set_config('lock_timeout', '1s', true);
        SELECT * INTO c FROM snowflake_registry.range_clients k
        -- Otherwise, A's memory is resumed twice, one of the two is shut down, and
        -- floors do not wait for the other one anymore.
        WHERE k.client = return_ranges.client AND k.token_hash = ANY (hashes)
        FOR UPDATE;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
        PERFORM snowflake_registry.end_range_client(client);
        RETURN true;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.return_ranges(uuid, uuid, uuid[]) IS
'for servers that are shut down: the server has given up all its ranges, which are
not granted again; tokens as in snowflake_registry.get_ranges(); false if it holds
none; for roles granted EXECUTE;
errors: 22004 if client or unconfirmed is NULL, 55P03 if a call of the server is
in progress, 0A000 above READ COMMITTED, 25006 on a standby';

