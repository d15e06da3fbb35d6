-- functions for administrators: ranges of sequences

CREATE FUNCTION snowflake_registry.lock_range_state()
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM snowflake_registry.check_transaction();
    PERFORM FROM snowflake_registry.range_state FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'registry grants no ranges of sequences'
            USING ERRCODE = 'undefined_object',
            HINT = 'To have it grant them, call snowflake_registry.add_database() in the database of the registry.';
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.lock_range_state() IS
'internal: lock the state until the end of the transaction;
errors: 42704 if no database was ever added, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.add_database(
    database text,
    shared_as text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
DECLARE
    wanted text := coalesce(shared_as, database);
    here record;
    d record;
BEGIN
    PERFORM snowflake_registry.check_database();
    PERFORM snowflake_registry.check_transaction();
    -- Otherwise, a call has locked the sequences of one group, or none, and takes
    -- numbers of another one, which a call of another database takes, too.
    LOCK TABLE snowflake_registry.range_databases IN SHARE ROW EXCLUSIVE MODE;
    here := snowflake_registry.place();
    INSERT INTO snowflake_registry.range_state
    VALUES (1, interval '10 min', false, here.identity, here.timeline, floor(random() * 2048)::integer)
    ON CONFLICT DO NOTHING;
    SELECT * INTO d FROM snowflake_registry.range_databases k WHERE k.database = add_database.database;
    IF d.database_group <> wanted THEN
        RAISE EXCEPTION 'database "%" has already been added, shared as "%"', database, d.database_group
            USING ERRCODE = 'duplicate_object',
            HINT = 'Call snowflake_registry.remove_database() first.';
    END IF;
    INSERT INTO snowflake_registry.range_databases VALUES (database, wanted)
    ON CONFLICT ON CONSTRAINT range_databases_pkey DO UPDATE SET database_group = wanted;
    UPDATE snowflake_registry.range_evidence e SET database_group = wanted WHERE e.database = add_database.database;
    IF (d.database_group IS NULL AND d.former_group <> wanted) IS NOT TRUE THEN
        RETURN NULL;
    END IF;

    -- Otherwise, the database has numbers that are granted again.
    INSERT INTO snowflake_registry.range_sequences AS s (database_group, name, last, next, floor, sampled_at, previous_at)
    SELECT wanted, f.name, f.last, f.next, f.next - 1, clock_timestamp(), clock_timestamp()
    FROM snowflake_registry.range_sequences f WHERE f.database_group = d.former_group ORDER BY f.name
    ON CONFLICT ON CONSTRAINT range_sequences_pkey
    DO UPDATE SET next = greatest(s.next, least(excluded.next, snowflake_registry.usable_last(s.last) + 1)),
                  floor = greatest(s.floor, least(excluded.floor, snowflake_registry.usable_last(s.last)));
    -- What servers hold is of the former group, so they hear that it is below the floor,
    -- but those that have been started again.
    PERFORM snowflake_registry.end_former_lives();
    UPDATE snowflake_registry.held_ranges h SET database_group = wanted WHERE h.database = add_database.database;
    UPDATE snowflake_registry.held_ranges h SET floor_pending = true
    FROM snowflake_registry.range_sequences s
    WHERE s.database_group = wanted AND h.database_group = s.database_group AND h.name = s.name
    AND h.previous_first <= s.floor AND h.acknowledged_floor < s.floor;
    PERFORM nextval('snowflake_registry.floor_changes');
    RETURN (
        SELECT string_agg(DISTINCT coalesce(c.server_name, '?'), ', ')
        FROM snowflake_registry.held_ranges h JOIN snowflake_registry.range_clients c ON c.client = h.client
        WHERE h.database_group = wanted AND h.floor_pending AND c.token_hash IS NOT NULL);
END
$$;

COMMENT ON FUNCTION snowflake_registry.add_database(text, text) IS
'grant ranges of sequences to databases of this name, on all servers; those with the
same shared_as (NULL: the name of the database) have their sequences in common;
if it was removed, and was shared as another one, its sequences continue above those:
returns the names of the servers that may still give out lower numbers, until they
have heard of it;
for superusers, and roles granted EXECUTE;
errors: 42710 if it was added with another shared_as, 23502 if database is NULL, 55000
if the owner of the registry''s database is not a superuser, 0A000 above READ
COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.remove_database(database text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    -- As in add_database().  Calls lock this before the state.
    LOCK TABLE snowflake_registry.range_databases IN SHARE ROW EXCLUSIVE MODE;
    PERFORM snowflake_registry.lock_range_state();
    -- Its sequences remain: otherwise, their numbers are granted again when it is
    -- added again.
    UPDATE snowflake_registry.range_databases d SET database_group = NULL, former_group = d.database_group
    WHERE d.database = remove_database.database AND d.database_group IS NOT NULL;
    RETURN FOUND;
END
$$;

COMMENT ON FUNCTION snowflake_registry.remove_database(text) IS
'grant no more ranges of sequences to databases of this name, which use those that
they have; what was granted is remembered; false if it was not added; for
superusers, and roles granted EXECUTE;
errors: 42704 if no database was ever added, 0A000 above READ COMMITTED, 25006 on
a standby';

CREATE FUNCTION snowflake_registry.alter_ranges(
    grant_time interval DEFAULT NULL,
    lossless_failover boolean DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
DECLARE
    length interval := snowflake_registry.in_seconds(grant_time);
BEGIN
    PERFORM snowflake_registry.lock_range_state();
    IF length NOT BETWEEN '1 s' AND '1 d' THEN
        RAISE EXCEPTION 'invalid settings for a registry'
            USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'grant_time of ranges of sequences must be between 1 second and 1 day.';
    END IF;
    UPDATE snowflake_registry.range_state s
    SET grant_time = coalesce(length, s.grant_time),
        lossless_failover = coalesce(alter_ranges.lossless_failover, s.lossless_failover);
END
$$;

COMMENT ON FUNCTION snowflake_registry.alter_ranges(interval, boolean) IS
'change settings of ranges of sequences; those that are NULL remain;
grant_time is for how long servers keep numbers in reserve; lossless_failover
states that only standbys of the registry are promoted that have all commits, so
that it need not stop; for superusers, and roles granted EXECUTE;
errors: 22023 if grant_time is out of range, 42704 if no database was ever added,
0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.raise_sequence(
    database text,
    name text,
    floor bigint DEFAULT NULL,
    last bigint DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
DECLARE
    s snowflake_registry.range_sequences;
BEGIN
    PERFORM snowflake_registry.lock_range_state();
    SELECT q.* INTO s
    FROM snowflake_registry.range_databases d JOIN snowflake_registry.range_sequences q ON q.database_group = d.database_group
    WHERE d.database = raise_sequence.database AND q.name = raise_sequence.name
    FOR UPDATE OF q;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'registry does not know sequence % of database "%"', name, database
            USING ERRCODE = 'undefined_object',
            HINT = 'See the view snowflake_registry.sequences.';
    END IF;
    s.last := coalesce(last, s.last);
    s.floor := greatest(s.floor, floor);
    IF s.floor >= snowflake_registry.usable_last(s.last) OR s.next > snowflake_registry.usable_last(s.last) + 1 THEN
        RAISE EXCEPTION 'no number of sequence % would be left', name
            USING ERRCODE = 'invalid_parameter_value',
            DETAIL = format('Its next number is %s, its floor %s, and its last number %s.', s.next, s.floor, s.last);
    END IF;
    UPDATE snowflake_registry.range_sequences q
    SET last = s.last, floor = s.floor, next = greatest(q.next, s.floor + 1)
    WHERE q.database_group = s.database_group AND q.name = s.name;
    RETURN snowflake_registry.wait_for_holders(NULL, NULL, s.database_group, s.name, s.floor);
END
$$;

COMMENT ON FUNCTION snowflake_registry.raise_sequence(text, text, bigint, bigint) IS
'have no number of a sequence up to a floor be given out anymore, however many are
skipped (NULL: as it is), and set its last number to the MAXVALUE that it has on
all servers (NULL: as it is);
returns the names of the servers that may still give out lower ones, until they have
heard of it;
for superusers, and roles granted EXECUTE;
errors: 42704 if the registry does not know the sequence, 22023 if no number would
be left, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.free_ranges(server_name text)
RETURNS integer
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
DECLARE
    ended integer;
BEGIN
    PERFORM snowflake_registry.lock_range_state();
    PERFORM snowflake_registry.end_range_client(silent.client)
    FROM (SELECT c.client FROM snowflake_registry.range_clients c
          WHERE c.server_name = free_ranges.server_name AND c.token_hash IS NOT NULL
          AND c.called_at < clock_timestamp() - interval '1 min'
          FOR UPDATE SKIP LOCKED) silent;
    GET DIAGNOSTICS ended = ROW_COUNT;
    IF ended = 0 THEN
        RAISE EXCEPTION 'no server "%" has ranges and has been silent for a minute', server_name
            USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'See the view snowflake_registry.range_holders.';
    END IF;
    RETURN ended;
END
$$;

COMMENT ON FUNCTION snowflake_registry.free_ranges(text) IS
'a server has ended, and gives out no numbers anymore: floors do not wait for it;
returns how many lives of it held ranges; for superusers, and roles granted EXECUTE;
errors: 55000 if no server of this name holds ranges and has not called for a minute,
42704 if no database was ever added, 0A000 above READ COMMITTED, 25006 on a standby';

CREATE FUNCTION snowflake_registry.stop_ranges(reason text)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
BEGIN
    PERFORM snowflake_registry.lock_range_state();
    PERFORM snowflake_registry.note_stop(coalesce(reason, 'an administrator stopped them'), 0);
END
$$;

COMMENT ON FUNCTION snowflake_registry.stop_ranges(text) IS
'grant no ranges of sequences until snowflake_registry.resume_ranges(), and note
what servers were granted; for superusers, and roles granted EXECUTE;
errors: 42704 if no database was ever added, 0A000 above READ COMMITTED, 25006 on a
standby';

CREATE FUNCTION snowflake_registry.check_reports(
    settings snowflake_registry.range_state,
    servers integer)
RETURNS void
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    reported integer;
    its_names text;
    silent text;
    unknown text;
    estimate bigint;
BEGIN
    -- Otherwise, A is granted numbers that B was granted, which the registry has lost and
    -- B did not report.  Copies on like machines have one directory identifier.
    SELECT count(DISTINCT (c.directory, c.server_name)), string_agg(DISTINCT coalesce(c.server_name, '?'), ', ') INTO reported, its_names
    FROM snowflake_registry.range_clients c WHERE c.reported = settings.incarnation;
    SELECT string_agg(format('%s (last call %s)', coalesce(o.server_name, '?'), date_trunc('second', o.called_at)), ', ' ORDER BY o.called_at DESC) INTO silent
    FROM (SELECT DISTINCT ON (coalesce(c.directory, c.client), c.server_name) c.* FROM snowflake_registry.range_clients c
          WHERE c.receipts > 0 ORDER BY coalesce(c.directory, c.client), c.server_name, c.called_at DESC) o
    WHERE NOT EXISTS (SELECT FROM snowflake_registry.range_clients c
                      WHERE c.reported = settings.incarnation
                      AND (c.directory = o.directory
                              AND (c.server_name IS NOT DISTINCT FROM o.server_name OR c.client_addr = o.client_addr)
                           -- Another directory of it has not called before.
                           OR c.server_name = o.server_name AND c.client_addr IS NOT DISTINCT FROM o.client_addr
                              AND NOT EXISTS (SELECT FROM snowflake_registry.range_clients k
                                              WHERE k.directory = c.directory AND k.created_at <= o.called_at)));
    SELECT string_agg(format('%s (%s) of server %s', e.name, e.database, e.server_name), ', ' ORDER BY e.database, e.name, e.server_name) INTO unknown
    FROM (SELECT * FROM snowflake_registry.range_evidence v WHERE NOT v.exact
          ORDER BY v.database, v.name, v.server_name LIMIT 10) e;
    -- What it knows of the last two days, for each day since then: a new registry, nothing.
    SELECT max(greatest(1000, (s.granted - s.previous) * ceil(extract(epoch FROM clock_timestamp() - s.sampled_at) / 86400 + 1))) INTO estimate
    FROM snowflake_registry.range_sequences s WHERE s.granted > 0;

    IF servers IS DISTINCT FROM reported OR silent IS NOT NULL OR unknown IS NOT NULL THEN
        RAISE EXCEPTION 'numbers might be granted twice if none are skipped'
            USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = concat_ws(' ', format('Servers that have reported all that they know: %s.', coalesce(its_names, 'none')),
                'Servers that have not: ' || silent || '.',
                'It is not known what these sequences were granted, as no column has their numbers, or it could not be read: ' || unknown || '.'),
            HINT = concat_ws(' ', CASE
                    WHEN silent IS NOT NULL THEN 'Start those that have not, and try again.'
                    WHEN unknown IS NULL AND servers > reported THEN 'Have the others call this registry, and try again.'
                    WHEN unknown IS NULL THEN format('If no other server uses ranges of this registry, call snowflake_registry.resume_ranges(0, servers => %s).', reported)
                END, CASE
                    WHEN estimate IS NULL THEN 'Otherwise, skip more numbers than any sequence can ever have used.'
                    ELSE format('Otherwise, skip more numbers than any sequence can have used since the backup, about %s as far as the registry knows: snowflake_registry.resume_ranges(%s). If it certainly lost nothing, skip 1.', estimate, estimate)
                END);
    END IF;
END
$$;

COMMENT ON FUNCTION snowflake_registry.check_reports(snowflake_registry.range_state, integer) IS
'internal: so many servers, among them all known ones, have reported all that they were
granted since the registry stopped granting ranges; error: 55000 if not';

CREATE FUNCTION snowflake_registry.resume_ranges(
    skip bigint,
    servers integer DEFAULT NULL)
RETURNS TABLE (database_group text, name text, was_next bigint, next bigint, greatest_granted bigint, granted_to text)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET session_replication_role = replica
AS $$
DECLARE
    st record;
BEGIN
    PERFORM snowflake_registry.lock_range_state();
    IF skip IS NULL OR skip < 0 THEN
        RAISE EXCEPTION 'skip must be at least 0'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Otherwise, it is promoted, and resumed before a call has noticed that, on reports
    -- from before.
    st := (snowflake_registry.notice_range_loss(0, NULL, NULL)).settings;
    IF skip = 0 AND st.stopped IS NOT NULL THEN
        PERFORM snowflake_registry.check_reports(st, servers);
    END IF;

    RETURN QUERY SELECT * FROM snowflake_registry.continue_above_reports(skip);
    UPDATE snowflake_registry.range_state s
    SET stopped = NULL, stopped_at = NULL, identity = here.identity, timeline = here.timeline
    FROM snowflake_registry.place() here;
END
$$;

COMMENT ON FUNCTION snowflake_registry.resume_ranges(bigint, integer) IS
'grant ranges of sequences again, after some might have been lost: for each sequence
above all that servers have reported since then, and above so many numbers more, for
what they have not; 0 only if so many servers have reported all that they were granted,
and no other one ever used the registry;
returns each sequence with its next number before and after, the greatest number that a
server was granted, and those servers; for superusers, and roles granted EXECUTE;
errors: 22023 if skip is NULL or negative, 55000 if it is 0 and that is not so, 42704 if
no database was ever added, 0A000 above READ COMMITTED, 25006 on a standby';
