-- internal functions: servers that hold ranges of sequences

CREATE FUNCTION snowflake_registry.begin_range_call()
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- A function that sets session_replication_role has all plans of the session made
    -- again, which is most of its time; servers call those for ranges each second.
    -- So these refuse triggers instead, and while they run none can be created.
    LOCK TABLE snowflake_registry.range_state, snowflake_registry.range_databases, snowflake_registry.range_clients,
        snowflake_registry.range_sequences, snowflake_registry.held_ranges, snowflake_registry.range_evidence IN ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM pg_class c JOIN pg_trigger t ON t.tgrelid = c.oid
               WHERE c.relnamespace = 'snowflake_registry'::regnamespace
               AND c.relname IN ('range_state', 'range_databases', 'range_clients', 'range_sequences', 'held_ranges', 'range_evidence')) THEN
        RAISE EXCEPTION 'tables of the registry have triggers'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = 'A trigger would have own code executed with the rights of a superuser.',
            HINT = 'Revoke the privilege TRIGGER on the tables of the registry. Then drop the triggers.';
    END IF;
    PERFORM snowflake_registry.check_transaction();
    PERFORM snowflake_registry.limit_transaction();
    -- Otherwise, a commit that hangs has the calls of all servers hang.
    PERFORM set_config('lock_timeout', '1s', true);
END
$$;

COMMENT ON FUNCTION snowflake_registry.begin_range_call() IS
'internal: what each call of a server begins with; no triggers until the transaction ends;
errors: 55000 if there are some, 0A000 above READ COMMITTED';

CREATE FUNCTION snowflake_registry.lock_range_client(
    client uuid,
    confirmed uuid,
    unconfirmed uuid[],
    server_name text,
    OUT holder snowflake_registry.range_clients,
    OUT state text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Otherwise, A's call hangs in its commit, A gives it up and calls again, and gets
    -- a second range beside the one that it is about to be granted.
    SELECT * INTO holder FROM snowflake_registry.range_clients c
    WHERE c.client = lock_range_client.client FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO snowflake_registry.range_clients (client, server_name, client_addr, created_at, called_at)
        SELECT lock_range_client.client, left(server_name, 255), inet_client_addr(), clock_timestamp(), clock_timestamp()
        WHERE NOT EXISTS (SELECT FROM snowflake_registry.range_clients c WHERE c.client = lock_range_client.client)
        ON CONFLICT DO NOTHING
        RETURNING * INTO holder;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the previous call of this server is still in progress'
                USING ERRCODE = 'lock_not_available',
                HINT = 'The server calls again by itself. If this remains, check whether the registry waits for a synchronous standby.';
        END IF;
        state := 'new';
        RETURN;
    END IF;

    -- Otherwise, A's memory is resumed twice, and both continue with A's range: each
    -- call brings a token of its own, so the second of the two has an old one.  One that
    -- was saved before A's first call has none.
    state := CASE
        WHEN holder.calls = 0 THEN 'new'
        -- There is no further receipt: see make_receipt().
        WHEN holder.receipts = 16777215 THEN 'superseded'
        WHEN holder.token_hash = snowflake_registry.hash(confirmed) THEN 'confirmed'
        WHEN holder.token_hash = ANY (ARRAY(SELECT snowflake_registry.hash(t) FROM unnest(unconfirmed) t)) THEN 'repeated'
        ELSE 'superseded'
    END;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lock_range_client(uuid, uuid, uuid[], text) IS
'internal: lock a server''s row, or create one; state: new; confirmed: the last answer
arrived; repeated: it did not; superseded: another one continues with the memory of
this server;
error: 55P03 if a call of the server is in progress';

CREATE FUNCTION snowflake_registry.end_range_client(client uuid)
RETURNS void
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    -- The row remains without a token: see lock_range_client().  What it held is for
    -- forget_former_ranges(), and is not locked here: others lock it in another order.
    UPDATE snowflake_registry.range_clients c SET token_hash = NULL, lost_calls = '{}'
    WHERE c.client = end_range_client.client;
    SELECT nextval('snowflake_registry.floor_changes');
END;

COMMENT ON FUNCTION snowflake_registry.end_range_client(uuid) IS
'internal: a server has given up all its ranges';

CREATE FUNCTION snowflake_registry.end_former_lives()
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- A server that was killed does not say that its ranges are gone; but it starts
    -- again, and calls.  A directory has one server at a time.  Only one that was
    -- copied with its machine is the same as another one: that has another start, or
    -- another address.  Who holds ranges calls get_floors() every 20 seconds.  One that
    -- calls right now is skipped.
    PERFORM snowflake_registry.end_range_client(former.client)
    FROM (SELECT o.client FROM snowflake_registry.range_clients o
          WHERE o.token_hash IS NOT NULL
          AND EXISTS (SELECT FROM snowflake_registry.range_clients n
                      WHERE n.directory = o.directory
                      -- A machine can be put back to a snapshot of its memory, and its clock with
                      -- it: then the life that began later has called before.
                      AND (n.boot = o.boot AND n.started > o.started AND n.called_at > o.created_at
                           OR o.called_at < clock_timestamp() - interval '1 min' AND n.created_at > o.called_at
                              -- A call of a life before it can arrive late; where the start is not
                              -- known, that a minute after its last call is not expected.
                              AND ((n.boot = o.boot) IS NOT TRUE OR n.started >= o.started)
                           AND n.server_name = o.server_name AND n.client_addr IS NOT DISTINCT FROM o.client_addr))
          FOR UPDATE OF o SKIP LOCKED) former;
END
$$;

COMMENT ON FUNCTION snowflake_registry.end_former_lives() IS
'internal: former lives of servers that were started again have lost their ranges';

CREATE FUNCTION snowflake_registry.wait_for_holders(
    client uuid,
    database text,
    database_group text,
    name text,
    floor bigint)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    servers text;
BEGIN
    FOR i IN 1 .. 2 LOOP
        SELECT string_agg(DISTINCT coalesce(c.server_name, '?'), ', ') INTO servers
        FROM snowflake_registry.held_ranges h JOIN snowflake_registry.range_clients c ON c.client = h.client
        WHERE h.database_group = wait_for_holders.database_group AND h.name = wait_for_holders.name
        AND h.previous_first <= wait_for_holders.floor AND h.acknowledged_floor < wait_for_holders.floor
        AND c.token_hash IS NOT NULL
        AND (h.client, h.database) IS DISTINCT FROM (wait_for_holders.client, wait_for_holders.database);
        EXIT WHEN servers IS NULL OR i = 2;
        PERFORM snowflake_registry.end_former_lives();
        -- Who acknowledges a floor of a database that was removed has not locked the
        -- sequence.  Its rows are skipped: the server that waits asks again.
        UPDATE snowflake_registry.held_ranges h SET floor_pending = true
        FROM (SELECT p.client, p.database, p.name FROM snowflake_registry.held_ranges p
              WHERE p.database_group = wait_for_holders.database_group AND p.name = wait_for_holders.name
              AND p.previous_first <= wait_for_holders.floor AND p.acknowledged_floor < wait_for_holders.floor
              AND NOT p.floor_pending AND (p.client, p.database) IS DISTINCT FROM (wait_for_holders.client, wait_for_holders.database)
              FOR UPDATE SKIP LOCKED) l
        WHERE h.client = l.client AND h.database = l.database AND h.name = l.name;
        -- Each time that A asks: it increases before A's commit, which B may not see yet.
        PERFORM nextval('snowflake_registry.floor_changes');
    END LOOP;
    RETURN servers;
END
$$;

COMMENT ON FUNCTION snowflake_registry.wait_for_holders(uuid, text, text, text, bigint) IS
'internal: have get_floors() report a floor to the servers, other than one, that may
still give out numbers up to it; returns their names, or NULL';

CREATE FUNCTION snowflake_registry.numbers_of(h snowflake_registry.held_ranges)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN h.call > 0 THEN greatest(h.latest_last - greatest(h.previous_first - 1, h.acknowledged_floor), 0) ELSE 0 END;

COMMENT ON FUNCTION snowflake_registry.numbers_of(snowflake_registry.held_ranges) IS
'internal: how many numbers a server may have left, at most, of those that it has not
given up; 0 for what only the server knows';

CREATE FUNCTION snowflake_registry.forget_former_ranges(
    c snowflake_registry.range_clients,
    s snowflake_registry.range_sequences,
    database text)
RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    WITH former AS (
        SELECT h.client, h.used_at, o.token_hash IS NULL AS has_ended
        FROM snowflake_registry.held_ranges h JOIN snowflake_registry.range_clients o ON o.client = h.client
        WHERE h.database_group = (s).database_group AND h.name = (s).name AND h.database = forget_former_ranges.database
        AND (o.directory = (c).directory OR o.server_name = (c).server_name)),
    gone AS (
        DELETE FROM snowflake_registry.held_ranges h USING former f
        WHERE f.client = h.client AND f.has_ended AND h.database = forget_former_ranges.database AND h.name = (s).name
        RETURNING snowflake_registry.numbers_of(h) AS numbers),
    lost AS (
        UPDATE snowflake_registry.range_sequences q SET lost = q.lost + g.numbers
        FROM (SELECT sum(gone.numbers)::bigint AS numbers FROM gone) g
        WHERE g.numbers > 0 AND q.database_group = (s).database_group AND q.name = (s).name)
    SELECT max(f.used_at) FROM former f;
END;

COMMENT ON FUNCTION snowflake_registry.forget_former_ranges(snowflake_registry.range_clients, snowflake_registry.range_sequences, text) IS
'internal: forget what former lives of a server held of a sequence, but for how many
numbers they have lost; returns when they used it last';
