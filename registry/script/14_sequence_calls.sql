-- functions for servers: ranges of sequences
--
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
DECLARE
    called record;
    c snowflake_registry.range_clients;
    noticed record;
    s snowflake_registry.range_sequences;
    u record;
    g record;
    left_out integer[];
    busy boolean;
    in_order boolean;
    remaining bigint;
BEGIN
    PERFORM snowflake_registry.begin_range_call();
    PERFORM snowflake_registry.check_tokens(unconfirmed || confirmed, new_token);
    -- All transactions lock in this order: own client, state, sequences.
    called := snowflake_registry.lock_range_client(client, confirmed, unconfirmed, server_name);
    c := called.holder;
    noticed := snowflake_registry.notice_range_loss(receipt, server_name, c.reported);
    must_report := coalesce(noticed.must_report, false);
    in_order := noticed.standing IS NOT NULL AND noticed.stopped IS NULL AND NOT must_report;
    new_receipt := receipt;
    -- While nothing is granted, who is superseded may be so because its last calls
    -- were lost.  It keeps its ranges until somebody has looked.
    IF called.state <> 'superseded' THEN
        -- What a call granted stays unconfirmed, if its answer was lost, until the name
        -- is asked for again.
        IF called.state = 'repeated' THEN
            c.lost_calls := ARRAY(SELECT l FROM unnest(c.lost_calls || c.calls) l
                                  WHERE EXISTS (SELECT FROM snowflake_registry.held_ranges h
                                                WHERE h.client = c.client AND h.call = l));
        END IF;
        UPDATE snowflake_registry.range_clients k
        SET token_hash = snowflake_registry.hash(new_token), calls = c.calls + 1, lost_calls = c.lost_calls,
            receipts = c.receipts + in_order::integer,
            reported = CASE WHEN noticed.stopped IS NOT NULL OR noticed.standing IN ('other', 'away') THEN c.reported END,
            server_name = left(get_ranges.server_name, 255), client_addr = inet_client_addr(),
            boot = get_ranges.boot, directory = get_ranges.directory, started = get_ranges.started,
            called_at = clock_timestamp()
        WHERE k.client = c.client
        RETURNING k.* INTO c;
        IF in_order THEN
            new_receipt := snowflake_registry.make_receipt((noticed.settings).registry, (noticed.settings).incarnation, c.receipt_id, c.receipts);
        END IF;
    ELSIF noticed.stopped IS NULL THEN
        RETURN;
    END IF;
    -- New ones before any other is locked, as these are: see lock_range_sequences().
    INSERT INTO snowflake_registry.range_sequences (database_group, name, last, next, floor, sampled_at, previous_at)
    SELECT DISTINCT ON (d.database_group, w.name)
           d.database_group, w.name, w.last, w.floor + 1, w.floor, clock_timestamp(), clock_timestamp()
    FROM unnest(databases, names, lasts, floors) w(database, name, last, floor)
        JOIN snowflake_registry.range_databases d ON d.database = w.database
    WHERE noticed.stopped IS NULL AND d.database_group IS NOT NULL AND w.floor < snowflake_registry.usable_last(w.last)
    AND NOT EXISTS (SELECT FROM snowflake_registry.range_sequences q
                    WHERE q.database_group = d.database_group AND q.name = w.name)
    ORDER BY d.database_group, w.name, w.floor DESC
    ON CONFLICT DO NOTHING;
    left_out := snowflake_registry.lock_range_sequences(databases, names);
    grant_time_ms := extract(epoch FROM (noticed.settings).grant_time) * 1000;

    FOR u IN
        SELECT r.*, d.database_group
        FROM unnest(databases, names, lasts, counts, leasts, floors, sources)
            WITH ORDINALITY r(database, name, last, count, least_count, floor, source, n)
            LEFT JOIN snowflake_registry.range_databases d ON d.database = r.database
        ORDER BY r.n
    LOOP
        SELECT * INTO s FROM snowflake_registry.range_sequences q
        WHERE q.database_group = u.database_group AND q.name = u.name AND u.n <> ALL (left_out);
        -- Otherwise, A does not find a name, B adds it, and both are granted the same numbers.
        busy := u.n = ANY (left_out) AND EXISTS (SELECT FROM snowflake_registry.range_sequences q
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
                -- Otherwise, a database that was copied from one of another group, or was one,
                -- has numbers that are granted again.
                UPDATE snowflake_registry.range_sequences q
                SET next = least(o.next, snowflake_registry.usable_last(q.last) + 1)
                FROM snowflake_registry.range_databases d JOIN snowflake_registry.range_sequences o
                    ON o.database_group = coalesce(d.database_group, d.former_group)
                WHERE q.database_group = s.database_group AND q.name = s.name AND d.database = u.source
                AND o.name = s.name AND o.next > q.next AND q.next <= snowflake_registry.usable_last(q.last);
                SELECT * INTO s FROM snowflake_registry.range_sequences q
                WHERE q.database_group = u.database_group AND q.name = u.name;
            END IF;
            remaining := snowflake_registry.usable_last(s.last) - s.next + 1;
            IF u.database_group IS NULL THEN
                problem_kind := 'database';
                problem := format('The registry grants no ranges to database "%s". Its administrator can call snowflake_registry.add_database().', u.database);
            ELSIF s.name IS NULL AND u.floor IS NULL THEN
                problem_kind := 'unknown';
                problem := format('The registry does not know sequence %s of database "%s".', u.name, u.database);
            ELSIF s.name IS NULL THEN
                problem_kind := 'floor';
                problem := format('No number of sequence %s is left above %s.', u.name, u.floor);
            -- Otherwise, setval() with a wrong number exhausts the sequence of all servers.
            ELSIF u.floor >= s.next AND (u.floor - s.next >= remaining / 10 OR u.floor - s.next >= remaining - 1) THEN
                problem_kind := 'floor';
                problem := format('It would skip all numbers from %s up to %s, more than a tenth of what is left of sequence %s. The administrator of the registry can call snowflake_registry.raise_sequence().', s.next, u.floor, u.name);
            END IF;
        END IF;
        IF problem IS NULL AND u.floor > s.floor THEN
            UPDATE snowflake_registry.range_sequences q
            SET floor = u.floor, next = greatest(q.next, u.floor + 1)
            WHERE q.database_group = s.database_group AND q.name = s.name
            RETURNING * INTO s;
        END IF;
        floor := CASE WHEN s.floor > u.last THEN u.last ELSE s.floor END;
        -- Who has a lower MAXVALUE has no numbers above it, either.  No more than the floor of the
        -- sequence: otherwise, A wants a floor of 1000 that is refused, is granted 101 to 200, and
        -- B's floor of 500 does not wait for A.  Nor does it if that call of A arrives late, while all
        -- is stopped.  The database may have been removed, so the group is that of the range.
        UPDATE snowflake_registry.held_ranges h
        SET acknowledged_floor = a.floor, floor_pending = h.floor_pending AND a.floor < q.floor
        FROM snowflake_registry.range_sequences q
            CROSS JOIN LATERAL (SELECT least(CASE WHEN u.floor < u.last THEN u.floor END, q.floor) AS floor) a
        WHERE u.floor IS NOT NULL AND NOT busy AND called.state <> 'superseded'
        AND q.database_group = h.database_group AND q.name = h.name
        AND h.client = c.client AND h.database = u.database AND h.name = u.name AND h.acknowledged_floor < a.floor;
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
END
$$;

COMMENT ON FUNCTION snowflake_registry.get_ranges(uuid, uuid, uuid[], uuid, bigint, text, text[], text[], bigint[], bigint[], bigint[], bigint[], text[], uuid, uuid, bigint) IS
'for servers: get a range of each of up to 100 sequences, of about so many numbers (0:
none), but at least so many, and have nobody give out numbers up to a floor (NULL: none);
confirmed is the new_token of the last call whose answer arrived, unconfirmed are
those of calls since then, which granted the same again; receipt is the new_receipt
that the server has kept last, 0 if it never had one; sources are the databases that
sequences were copied from (NULL: none); boot and directory identify the start of the
server''s machine and its data directory, started is when its shared memory was
initialized: a former life there has ended;
one row for each sequence in this order, with the greatest floor known, what is granted
next (NULL: the sequence is not known), and the servers that may still give out numbers up
to the given floor; problem_kind is a word, problem a sentence; each row has the receipt,
which the server must keep durably before it uses anything of the answer, and whether it
has to call snowflake_registry.report_ranges(); no row: another one continues with the
memory of this server, which has to give up its ranges; for roles granted EXECUTE;
errors: 55P03 if the previous call of the server is in progress, or others for
longer than a second, 22023 if new_token is NULL or one of the other tokens, 23502 and
23514 if another argument is wrong, 0A000 above READ COMMITTED, 25006 on a standby';

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
    IF client IS NULL THEN
        -- In the order of an index, and with OFFSET 0 looked up one by one: no page reads
        -- what all servers hold.  A server of this name is this one before a failover.
        RETURN QUERY
        SELECT d.database, s.name, s.last, 1::bigint, 0::bigint
        FROM snowflake_registry.range_sequences s
            JOIN snowflake_registry.range_databases d ON d.database_group = s.database_group
        WHERE EXISTS (SELECT FROM snowflake_registry.held_ranges h
                          JOIN snowflake_registry.range_clients c ON c.client = h.client
                      WHERE h.database_group = s.database_group AND h.name = s.name
                      AND h.used_at > clock_timestamp() - interval '7 days'
                      AND c.directory IS DISTINCT FROM get_range_names.directory
                      AND (c.server_name = get_range_names.server_name) IS NOT TRUE
                      OFFSET 0)
        ORDER BY s.database_group, s.name, d.database
        OFFSET after LIMIT most;
        RETURN;
    END IF;
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
if client is NULL, every hour: those that others were granted numbers of in 7 days;
for roles granted EXECUTE';

CREATE FUNCTION snowflake_registry.get_floors(
    client uuid,
    receipt bigint)
RETURNS TABLE (database text, name text, floor bigint)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c snowflake_registry.range_clients;
    noticed record;
BEGIN
    PERFORM snowflake_registry.begin_range_call();
    -- What this writes need not be durable.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO c FROM snowflake_registry.range_clients k WHERE k.client = get_floors.client;
    noticed := snowflake_registry.notice_range_loss(receipt, c.server_name, c.reported);
    IF c.token_hash IS NULL AND c.calls > 0 OR noticed.must_report THEN
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
END
$$;

COMMENT ON FUNCTION snowflake_registry.get_floors(uuid, bigint) IS
'for servers, every 20 seconds, when they have connected, and when
snowflake_registry.floor_changes has increased: floors that the server has to
acknowledge by snowflake_registry.get_ranges(); receipt as there; a row of NULLs: it
has to call snowflake_registry.report_ranges(); for roles granted EXECUTE;
errors: 55P03 if others keep the registry locked for
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
    exact boolean[],
    complete boolean,
    directory uuid,
    before integer DEFAULT 0,
    unread integer DEFAULT 0)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    called record;
    st record;
    s record;
BEGIN
    PERFORM snowflake_registry.begin_range_call();
    called := snowflake_registry.lock_range_client(client, confirmed, unconfirmed, server_name);
    -- Otherwise, it is resumed meanwhile, without this report.
    SELECT * INTO st FROM snowflake_registry.range_state FOR SHARE;
    IF NOT FOUND OR called.state = 'superseded' AND st.stopped IS NULL THEN
        RETURN false;
    END IF;
    -- Otherwise, the registry is put back between two of these calls, and counts the
    -- report as complete though it has only the last one.
    IF before > 0 AND NOT EXISTS (SELECT FROM snowflake_registry.range_clients c
                                  WHERE c.client = report_ranges.client AND c.reporting = ARRAY[st.incarnation, before]) THEN
        RAISE EXCEPTION 'report of ranges must begin again'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    PERFORM snowflake_registry.note_evidence(directory, server_name, databases, names, lasts, granted, exact);
    IF st.stopped IS NULL THEN
        FOR s IN SELECT * FROM snowflake_registry.continue_above_reports(NULL) r WHERE r.next > r.was_next AND r.was_next > 1 LOOP
            RAISE LOG 'sequence % (%) continues above %, which server "%" has, instead of at %',
                s.name, s.database_group, s.greatest_granted, coalesce(server_name, '?'), s.was_next
                USING DETAIL = 'If the server was granted them by this registry, others may have been granted the same.';
        END LOOP;
    END IF;
    -- Otherwise, A holds a range that the registry has lost, or that another one granted,
    -- and B's floor does not wait for A.
    INSERT INTO snowflake_registry.held_ranges
        (client, database, name, database_group, call, previous_first, latest_first, latest_last, acknowledged_floor,
         last, least_count, wish, granted_at, used_at)
    SELECT report_ranges.client, n.database, n.name, coalesce(d.database_group, d.former_group), 0, 1, 1, n.granted, 0, n.last, 1, 0, clock_timestamp(), clock_timestamp()
    FROM unnest(databases, names, lasts, granted) n(database, name, last, granted)
        JOIN snowflake_registry.range_databases d ON d.database = n.database
    WHERE n.granted > 0
    ON CONFLICT DO NOTHING;
    -- Otherwise, it is granted numbers that it has in rows that it could not read.  While
    -- all is stopped, an administrator looks.
    UPDATE snowflake_registry.range_clients c
    SET server_name = left(report_ranges.server_name, 255), client_addr = inet_client_addr(), directory = report_ranges.directory,
        called_at = clock_timestamp(),
        reported = CASE WHEN complete AND (unread = 0 OR st.stopped IS NOT NULL) THEN st.incarnation END,
        reporting = ARRAY[st.incarnation, before + cardinality(names)]
    WHERE c.client = report_ranges.client;
    RETURN true;
END
$$;

COMMENT ON FUNCTION snowflake_registry.report_ranges(uuid, uuid, uuid[], text, text[], text[], bigint[], bigint[], boolean[], boolean, uuid, integer, integer) IS
'for servers that have to: report the greatest number that the server knows of each of
up to 100 sequences, 0 if none, and whether it can have been granted no greater one;
complete with the last one of these calls; before: of how many the calls before have told;
unread: how many sequences of the report have keys that could not be read now, for which
the registry waits if it grants ranges;
false: another one continues with the memory of this server, which has to give up its
ranges; other arguments as in snowflake_registry.get_ranges(); for roles granted EXECUTE;
errors: 55P03 if the previous call of the server is in progress, or others for
longer than a second, 23502 and 23514 if an argument is wrong, 55000 if the registry does
not know of the calls before, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.return_ranges(
    client uuid,
    confirmed uuid,
    unconfirmed uuid[])
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    hashes bytea[] := ARRAY(SELECT snowflake_registry.hash(t) FROM unnest(unconfirmed || confirmed) t);
BEGIN
    PERFORM snowflake_registry.begin_range_call();
    PERFORM snowflake_registry.end_range_client(own.client)
    FROM (SELECT k.client FROM snowflake_registry.range_clients k
          -- Otherwise, A's memory is resumed twice, one of the two is shut down, and
          -- floors do not wait for the other one anymore.
          WHERE k.client = return_ranges.client AND k.token_hash = ANY (hashes)
          FOR UPDATE) own;
    RETURN FOUND;
END
$$;

COMMENT ON FUNCTION snowflake_registry.return_ranges(uuid, uuid, uuid[]) IS
'for servers that are shut down: the server has given up all its ranges, which are
not granted again; tokens as in snowflake_registry.get_ranges(); false if it holds
none; for roles granted EXECUTE;
errors: 55P03 if a call of the server is
in progress, 0A000 above READ COMMITTED, 25006 on a standby';

