-- functions for servers: ranges of sequences

CREATE FUNCTION snowflake_registry.usable_last(last bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN least(last, 9223372036854775806);

COMMENT ON FUNCTION snowflake_registry.usable_last(bigint) IS
'internal: last number that can be granted, so that the next one is a bigint';

CREATE FUNCTION snowflake_registry.check_range_names(
    databases text[],
    names text[],
    lasts bigint[],
    lengths integer[],
    are_valid boolean)
RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wrong text;
BEGIN
    SELECT CASE
        WHEN cardinality(databases) > 100 THEN
            'A call has at most 100 names.'
        WHEN cardinality(databases) <> ANY (ARRAY[cardinality(names), cardinality(lasts)] || lengths) THEN
            'The arrays have different lengths.'
        WHEN NOT bool_and(num_nulls(u.database, u.name) = 0) THEN
            'A name is null.'
        WHEN NOT bool_and(length(u.database) <= 63 AND length(u.name) <= 300) THEN
            'A name is too long.'
        WHEN count(*) > count(DISTINCT (u.database, u.name)) THEN
            'A name is given twice.'
        WHEN are_valid IS FALSE OR NOT bool_and(coalesce(u.last, 0) > 0) THEN
            'A number is out of range.'
        END
    INTO wrong
    FROM unnest(databases, names, lasts) u(database, name, last);
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'invalid call for ranges'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = wrong;
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_range_names(text[], text[], bigint[], integer[], boolean) IS
'internal: check the names of a call, that its other arrays have as many elements, and
whether these are valid, as the caller found;
error: 22023 if not';

CREATE FUNCTION snowflake_registry.add_range_sequences(
    databases text[],
    names text[],
    lasts bigint[],
    numbers bigint[],
    are_floors boolean)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    INSERT INTO snowflake_registry.range_sequences (database_group, name, last, next, floor, created_at, sampled_at, previous_at)
    SELECT DISTINCT ON (d.database_group, u.name)
           d.database_group, u.name, u.last, u.number + 1, CASE WHEN are_floors THEN u.number ELSE 0 END,
           clock_timestamp(), clock_timestamp(), clock_timestamp()
    FROM unnest(databases, names, lasts, numbers) u(database, name, last, number)
        JOIN snowflake_registry.range_databases d ON d.database = u.database
    WHERE d.database_group IS NOT NULL AND u.number < snowflake_registry.usable_last(u.last)
    AND NOT EXISTS (SELECT FROM snowflake_registry.range_sequences s
                    WHERE s.database_group = d.database_group AND s.name = u.name)
    ORDER BY d.database_group, u.name, u.number DESC
    ON CONFLICT DO NOTHING;
END;

COMMENT ON FUNCTION snowflake_registry.add_range_sequences(text[], text[], bigint[], bigint[], boolean) IS
'internal: add those sequences that are not known, to continue above numbers (NULL: do
not add it), which are floors or not';

CREATE FUNCTION snowflake_registry.lock_range_sequences(
    databases text[],
    names text[])
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    until timestamptz := clock_timestamp() + interval '0.5 s';
    before text := current_setting('lock_timeout');
    q record;
    left_ms bigint;
BEGIN
    -- In the order of names: otherwise, A and B each wait for a name that the other one
    -- has locked.  One that somebody keeps locked must not hold up the others for long:
    -- it is left out, and get_ranges() says so.
    FOR q IN
        SELECT DISTINCT d.database_group, n.name
        FROM unnest(databases, names) n(database, name)
            JOIN snowflake_registry.range_databases d ON d.database = n.database
        ORDER BY d.database_group, n.name
    LOOP
        PERFORM FROM snowflake_registry.range_sequences s
        WHERE s.database_group = q.database_group AND s.name = q.name
        FOR UPDATE SKIP LOCKED;
        left_ms := extract(epoch FROM until - clock_timestamp()) * 1000;
        CONTINUE WHEN FOUND OR left_ms <= 0;
        PERFORM set_config('lock_timeout', left_ms::text, true);
        BEGIN
            PERFORM FROM snowflake_registry.range_sequences s
            WHERE s.database_group = q.database_group AND s.name = q.name
            FOR UPDATE;
        EXCEPTION WHEN lock_not_available THEN
        END;
        PERFORM set_config('lock_timeout', before, true);
    END LOOP;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lock_range_sequences(text[], text[]) IS
'internal: lock the sequences of a call until the end of the transaction, but those
that others have locked for long';

CREATE FUNCTION snowflake_registry.find_range_problem(
    s snowflake_registry.range_sequences,
    database_group text,
    database text,
    name text,
    floor bigint,
    OUT kind text,
    OUT problem text)
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF database_group IS NULL THEN
        kind := 'database';
        problem := format('The registry grants no ranges to database "%s". Its administrator can call snowflake_registry.add_database().', database);
    ELSIF s.name IS NULL AND floor IS NULL THEN
        kind := 'unknown';
        problem := format('The registry does not know sequence %s of database "%s".', name, database);
    ELSIF s.name IS NULL THEN
        kind := 'floor';
        problem := format('No number of sequence %s is left above %s.', name, floor);
    -- Otherwise, setval() with a wrong number exhausts the sequence of all servers.
    ELSIF floor >= s.next AND (floor >= snowflake_registry.usable_last(s.last)
                               OR floor - s.next >= (snowflake_registry.usable_last(s.last) - s.next + 1) / 10) THEN
        kind := 'floor';
        problem := format('It would skip all numbers from %s up to %s, more than a tenth of what is left of sequence %s. The administrator of the registry can call snowflake_registry.raise_sequence().', s.next, floor, name);
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.find_range_problem(snowflake_registry.range_sequences, text, text, text, bigint) IS
'internal: why nothing is granted of a sequence, as a word and a sentence; NULL: nothing
is wrong';

CREATE FUNCTION snowflake_registry.continue_above(
    INOUT s snowflake_registry.range_sequences,
    source text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    other snowflake_registry.range_sequences;
BEGIN
    -- Otherwise, a database that was copied from one of another group, or was one, has
    -- numbers that are granted again.  Later ones of that group are not in it.
    SELECT q.* INTO other
    FROM snowflake_registry.range_databases d JOIN snowflake_registry.range_sequences q
        ON q.database_group = coalesce(d.database_group, d.former_group)
    WHERE d.database = source AND q.name = s.name
    AND q.database_group <> ALL (s.continued || s.database_group);
    IF FOUND THEN
        UPDATE snowflake_registry.range_sequences q
        SET next = greatest(q.next, least(other.next, snowflake_registry.usable_last(q.last) + 1)),
            continued = q.continued || other.database_group
        WHERE q.database_group = s.database_group AND q.name = s.name
        RETURNING * INTO s;
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.continue_above(snowflake_registry.range_sequences, text) IS
'internal: have a sequence continue above what another group was granted, from whose
database it came (NULL: from none), once for each group';

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

    IF holds THEN
        -- The latest range is the one in use now, unless it never arrived, and
        -- those before it are exhausted.
        UPDATE snowflake_registry.held_ranges r
        SET database_group = s.database_group, call = c.calls,
            previous_first = CASE WHEN unconfirmed THEN r.previous_first ELSE r.latest_first END,
            latest_first = first_number, latest_last = last_number, last = grant_range.last,
            least_count = grant_range.least_count, wish = count, granted_at = clock, used_at = clock
        WHERE r.client = c.client AND r.database = grant_range.database AND r.name = s.name;
    ELSE
        -- Half of what is wanted at a start: otherwise, a burst is granted with each.
        INSERT INTO snowflake_registry.held_ranges
            (client, database, name, database_group, call, previous_first, latest_first, latest_last, acknowledged_floor,
             last, least_count, wish, granted_at, used_at)
        VALUES (c.client, database, s.name, s.database_group, c.calls, first_number, first_number, last_number, s.floor,
                last, least_count, count / 2, clock, coalesce(snowflake_registry.forget_former_ranges(c, s, database), clock));
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
    receipt bigint,
    server_name text,
    databases text[],
    names text[],
    lasts bigint[],
    counts bigint[],
    leasts bigint[],
    floors bigint[],
    sources text[],
    boot uuid DEFAULT NULL,
    directory uuid DEFAULT NULL,
    started bigint DEFAULT NULL)
RETURNS TABLE (
    "position" integer,
    first_number bigint,
    last_number bigint,
    floor bigint,
    next bigint,
    grant_time_ms bigint,
    waits_for text,
    problem_kind text,
    problem text,
    new_receipt bigint,
    must_report boolean)
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
        noticed record;
        s snowflake_registry.range_sequences;
        u record;
        g record;
        busy boolean;
        in_order boolean;
    BEGIN
        PERFORM snowflake_registry.begin_range_call();
        IF num_nulls(client, unconfirmed, new_token, receipt, databases, names, lasts, counts, leasts, floors, sources) > 0 THEN
            RAISE EXCEPTION 'only confirmed, server_name, boot, directory and started may be null in a call for ranges'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        PERFORM snowflake_registry.check_tokens(unconfirmed || confirmed, new_token);
        PERFORM snowflake_registry.check_range_names(databases, names, lasts,
            ARRAY[cardinality(counts), cardinality(leasts), cardinality(floors), cardinality(sources)],
            receipt >= 0 AND (SELECT bool_and((n.count BETWEEN 0 AND 2147483648 AND n.least_count BETWEEN 0 AND 4294967296
                                               AND coalesce(n.floor, 0) >= 0) IS TRUE)
                              FROM unnest(counts, leasts, floors) n(count, least_count, floor)));

        -- All transactions lock in this order: own client, state, sequences.
        called := snowflake_registry.lock_range_client(client, confirmed, unconfirmed, server_name);
        c := called.holder;
        noticed := snowflake_registry.notice_range_loss(receipt, server_name);
        must_report := coalesce(snowflake_registry.has_to_report(noticed.settings, noticed.standing, c.reported), false);
        in_order := noticed.standing IS NOT NULL AND noticed.stopped IS NULL AND NOT must_report;
        new_receipt := receipt;
        -- While nothing is granted, who is superseded may be so because its last calls
        -- were lost.  It keeps its ranges until somebody has looked.
        IF called.state <> 'superseded' THEN
            c := snowflake_registry.note_range_call(c, called.state, new_token, server_name, boot, directory, started,
                in_order, noticed.stopped IS NOT NULL OR noticed.standing IN ('other', 'away'));
            IF in_order THEN
                new_receipt := snowflake_registry.make_receipt((noticed.settings).registry, (noticed.settings).incarnation, c.receipt_id, c.receipts);
            END IF;
        ELSIF noticed.stopped IS NULL THEN
            RETURN;
        END IF;
        -- New ones before any other is locked, as these are: see lock_range_sequences().
        IF noticed.stopped IS NULL THEN
            PERFORM snowflake_registry.add_range_sequences(databases, names, lasts, floors, true);
        END IF;
        PERFORM snowflake_registry.lock_range_sequences(databases, names);
        grant_time_ms := extract(epoch FROM (noticed.settings).grant_time) * 1000;

        FOR u IN
            SELECT r.*, d.database_group
            FROM unnest(databases, names, lasts, counts, leasts, floors, sources)
                WITH ORDINALITY r(database, name, last, count, least_count, floor, source, n)
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
            problem_kind := NULL;
            problem := NULL;
            IF noticed.stopped IS NOT NULL THEN
                problem_kind := 'stopped';
                problem := noticed.stopped;
            ELSIF must_report THEN
                problem_kind := 'report';
                problem := 'The registry waits for this server to report what it was granted before.';
            ELSIF busy THEN
                problem_kind := 'busy';
                problem := format('Another transaction at the registry has locked sequence %s.', u.name);
            ELSE
                IF s.name IS NOT NULL AND u.source IS NOT NULL THEN
                    s := snowflake_registry.continue_above(s, u.source);
                END IF;
                IF s.name IS NULL OR u.floor >= s.next THEN
                    g := snowflake_registry.find_range_problem(s, u.database_group, u.database, u.name, u.floor);
                    problem_kind := g.kind;
                    problem := g.problem;
                END IF;
            END IF;
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
                s := g.s;
                first_number := g.first_number;
                last_number := g.last_number;
                IF first_number IS NULL THEN
                    -- MAXVALUE is another one after ALTER SEQUENCE ... AS bigint of a migration.
                    problem_kind := CASE WHEN u.last > s.last THEN 'last' ELSE 'maximum' END;
                    problem := CASE WHEN u.last > s.last
                        THEN format('The registry has %s as the last number of sequence %s, not %s. Its administrator can call snowflake_registry.raise_sequence().', s.last, u.name, u.last)
                        ELSE format('All numbers of sequence %s up to %s are in use or granted.', u.name, u.last)
                    END;
                END IF;
            END IF;
            next := s.next;
            RETURN NEXT;
        END LOOP;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.get_ranges(uuid, uuid, uuid[], uuid, bigint, text, text[], text[], bigint[], bigint[], bigint[], bigint[], text[], uuid, uuid, bigint) IS
'for servers: get a range of each of up to 100 sequences, of about so many numbers
(0: none), but at least so many, and have nobody give out numbers up to a floor
(NULL: none);
confirmed is the new_token of the last call whose answer arrived, unconfirmed are
those of calls since then, which granted the same again; receipt is the new_receipt
that the server has kept last, 0 if it never had one; sources are the databases that
sequences were copied from (NULL: none); boot and directory identify the start of the
server''s machine and its data directory, started is when its shared memory was
initialized: a former life there has ended;
one row for each sequence in this order, with the greatest floor known, what is
granted next (NULL: the sequence is not known), and the servers that may still give
out numbers up to the given floor; problem_kind is a word, problem a sentence; each
row has the receipt, which the server must keep durably before it uses anything of the
answer, and whether it has to call snowflake_registry.report_ranges(); no row: another
one continues with the memory of this server, which has to give up its ranges; for
roles granted EXECUTE;
errors: 55P03 if the previous call of the server is in progress, or others for
longer than a second, 22004 and 22023 if an argument is wrong, 0A000 above READ
COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.get_range_names(
    client uuid,
    server_name text,
    directory uuid,
    after integer,
    most integer)
RETURNS TABLE (database text, name text, last bigint, least_count bigint, wish bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER ROWS 100
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    @CHECK_OWNERS@

    RETURN QUERY
    SELECT n.database, n.name, n.last, n.least_count, n.wish
    FROM (SELECT DISTINCT ON (h.database, h.name) h.database, h.name, h.last, h.least_count, h.used_at,
                 CASE WHEN h.granted_at > clock_timestamp() - interval '1 hour' THEN h.wish ELSE 0 END AS wish
          FROM snowflake_registry.held_ranges h
              JOIN snowflake_registry.range_clients c ON c.client = h.client
              JOIN snowflake_registry.range_databases d ON d.database = h.database AND d.database_group = h.database_group
          WHERE c.client = get_range_names.client OR c.directory = get_range_names.directory
          OR c.server_name = get_range_names.server_name AND c.client_addr IS NOT DISTINCT FROM inet_client_addr()
          ORDER BY h.database, h.name, h.granted_at DESC) n
    ORDER BY n.used_at DESC, n.database, n.name
    OFFSET after LIMIT most;
END
$$;

COMMENT ON FUNCTION snowflake_registry.get_range_names(uuid, text, uuid, integer, integer) IS
'for servers that have started: sequences that this server, known by its directory, or
its name and address, was granted numbers of, those used last first: so many, after the
first ones; with its MAXVALUE, and the fewest numbers, and about how many, to ask for;
for roles granted EXECUTE';

CREATE FUNCTION snowflake_registry.get_floors(
    client uuid,
    receipt bigint)
RETURNS TABLE (database text, name text, floor bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    @CHECK_OWNERS@

    DECLARE
        c snowflake_registry.range_clients;
        noticed record;
    BEGIN
        PERFORM snowflake_registry.begin_range_call();
        IF num_nulls(client, receipt) > 0 THEN
            RAISE EXCEPTION 'client and receipt must not be null'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        -- What this writes need not be durable.
        PERFORM set_config('synchronous_commit', 'off', true);
        SELECT * INTO c FROM snowflake_registry.range_clients k WHERE k.client = get_floors.client;
        noticed := snowflake_registry.notice_range_loss(receipt, c.server_name);
        IF c.token_hash IS NULL AND c.calls > 0 OR snowflake_registry.has_to_report(noticed.settings, noticed.standing, c.reported) THEN
            RETURN NEXT;
        END IF;
        -- For end_former_lives().
        IF c.called_at < clock_timestamp() - interval '10 s' AND c.token_hash IS NOT NULL THEN
            UPDATE snowflake_registry.range_clients k SET called_at = clock_timestamp()
            WHERE k.client = (SELECT l.client FROM snowflake_registry.range_clients l
                              WHERE l.client = get_floors.client FOR UPDATE SKIP LOCKED);
        END IF;
        RETURN QUERY
        SELECT h.database, h.name, s.floor
        FROM snowflake_registry.held_ranges h
            JOIN snowflake_registry.range_sequences s ON s.database_group = h.database_group AND s.name = h.name
        WHERE h.client = get_floors.client AND h.floor_pending;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.get_floors(uuid, bigint) IS
'for servers, every 20 seconds, when they have connected, and when
snowflake_registry.floor_changes has increased: floors that the server has to
acknowledge by snowflake_registry.get_ranges(); receipt as there; a row of NULLs: it
has to call snowflake_registry.report_ranges(); for roles granted EXECUTE;
errors: 22004 if an argument is NULL, 55P03 if others keep the registry locked for
longer than a second, 0A000 above READ COMMITTED, 55000 on a standby';

CREATE FUNCTION snowflake_registry.report_ranges(
    client uuid,
    confirmed uuid,
    unconfirmed uuid[],
    server_name text,
    databases text[],
    names text[],
    lasts bigint[],
    granted bigint[],
    complete boolean,
    directory uuid)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    @CHECK_OWNERS@

    DECLARE
        called record;
        st record;
    BEGIN
        PERFORM snowflake_registry.begin_range_call();
        IF num_nulls(client, unconfirmed, databases, names, lasts, granted, complete, directory) > 0 THEN
            RAISE EXCEPTION 'only confirmed and server_name may be null in a report'
                USING ERRCODE = 'null_value_not_allowed';
        END IF;
        PERFORM snowflake_registry.check_range_names(databases, names, lasts, ARRAY[cardinality(granted)],
            (SELECT bool_and(coalesce(n, 0) >= 0) FROM unnest(granted) n));
        called := snowflake_registry.lock_range_client(client, confirmed, unconfirmed, server_name);
        -- Otherwise, it is resumed meanwhile, without this report.
        SELECT * INTO st FROM snowflake_registry.range_state FOR SHARE;
        IF NOT FOUND OR called.state = 'superseded' AND st.stopped IS NULL THEN
            RETURN false;
        END IF;
        IF st.stopped IS NOT NULL THEN
            PERFORM snowflake_registry.note_evidence(called.holder, directory, server_name, databases, names, lasts, granted);
        ELSE
            PERFORM snowflake_registry.raise_reported(server_name, databases, names, lasts, granted);
        END IF;
        -- Otherwise, A holds a range that the registry has lost, or that another one granted,
        -- and B's floor does not wait for A.
        INSERT INTO snowflake_registry.held_ranges
            (client, database, name, database_group, call, previous_first, latest_first, latest_last, acknowledged_floor,
             last, least_count, wish, granted_at, used_at)
        SELECT report_ranges.client, n.database, n.name, d.database_group, 0, 1, 1, n.granted, 0, n.last, 1, 0, clock_timestamp(), clock_timestamp()
        FROM unnest(databases, names, lasts, granted) n(database, name, last, granted)
            JOIN snowflake_registry.range_databases d ON d.database = n.database
        WHERE n.granted > 0 AND d.database_group IS NOT NULL
        ON CONFLICT DO NOTHING;
        UPDATE snowflake_registry.range_clients c
        SET server_name = left(report_ranges.server_name, 255), client_addr = inet_client_addr(), directory = report_ranges.directory,
            called_at = clock_timestamp(), reported = CASE WHEN complete THEN st.incarnation END
        WHERE c.client = report_ranges.client;
        RETURN true;
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.report_ranges(uuid, uuid, uuid[], text, text[], text[], bigint[], bigint[], boolean, uuid) IS
'for servers that have to: report the greatest number that the server may have been
granted of each of up to 100 sequences; 0: none since its shared memory was
initialized; NULL: not known; complete with the last one of these calls;
false: another one continues with the memory of this server, which has to give up its
ranges; other arguments as in snowflake_registry.get_ranges(); for roles granted
EXECUTE;
errors: 55P03 if the previous call of the server is in progress, or others for
longer than a second, 22004 and 22023 if an argument is wrong, 0A000 above READ
COMMITTED, 25006 on a standby';

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
        PERFORM snowflake_registry.begin_range_call();
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

