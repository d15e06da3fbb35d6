-- views: ranges of sequences

CREATE VIEW snowflake_registry.sequences AS
    SELECT s.database_group, s.name, s.last, s.next, s.floor,
        greatest(snowflake_registry.usable_last(s.last) - s.next + 1, 0) AS numbers_left,
        round(r.per_day)::bigint AS numbers_per_day,
        CASE WHEN r.per_day > 0 AND (snowflake_registry.usable_last(s.last) - s.next) / r.per_day < 36500 THEN
            clock_timestamp() + ((snowflake_registry.usable_last(s.last) - s.next) / r.per_day)::double precision * interval '1 day'
        END AS exhausted_at,
        s.lost + coalesce((SELECT sum(snowflake_registry.numbers_of(h))
                           FROM snowflake_registry.held_ranges h JOIN snowflake_registry.range_clients c ON c.client = h.client
                           WHERE h.database_group = s.database_group AND h.name = s.name AND c.token_hash IS NULL), 0)::bigint AS numbers_lost,
        (SELECT t.stopped FROM snowflake_registry.range_state t) AS stopped
    FROM snowflake_registry.range_sequences s
        CROSS JOIN LATERAL (SELECT (s.granted - s.previous) * 86400.0
                                / greatest(extract(epoch FROM clock_timestamp() - s.previous_at), 3600) AS per_day) r;

COMMENT ON VIEW snowflake_registry.sequences IS
'sequences of which this database grants ranges to servers';
COMMENT ON COLUMN snowflake_registry.sequences.database_group IS
'group of databases that share the sequence';
COMMENT ON COLUMN snowflake_registry.sequences.name IS
'schema and name of the sequence';
COMMENT ON COLUMN snowflake_registry.sequences.last IS
'MAXVALUE of the sequence';
COMMENT ON COLUMN snowflake_registry.sequences.next IS
'next number that is granted; all below it may be in use';
COMMENT ON COLUMN snowflake_registry.sequences.floor IS
'number up to which rows had numbers of their own';
COMMENT ON COLUMN snowflake_registry.sequences.numbers_left IS
'how many numbers can be granted';
COMMENT ON COLUMN snowflake_registry.sequences.numbers_per_day IS
'how many were granted a day in the last day or two, also those that servers have
lost; in the first hour: in it';
COMMENT ON COLUMN snowflake_registry.sequences.exhausted_at IS
'when none are left at this rate; NULL: not within 100 years';
COMMENT ON COLUMN snowflake_registry.sequences.numbers_lost IS
'how many numbers servers had left when they ended, at most';
COMMENT ON COLUMN snowflake_registry.sequences.stopped IS
'why no ranges are granted; NULL if they are';

CREATE VIEW snowflake_registry.range_holders AS
    SELECT c.server_name, c.client_addr, h.database, h.name, h.previous_first AS lowest, h.latest_last AS highest,
        s.floor AS waiting_floor, h.granted_at, c.called_at
    FROM snowflake_registry.held_ranges h
        JOIN snowflake_registry.range_clients c ON c.client = h.client
        LEFT JOIN snowflake_registry.range_sequences s ON s.database_group = h.database_group AND s.name = h.name AND h.floor_pending
    WHERE c.token_hash IS NOT NULL;

COMMENT ON VIEW snowflake_registry.range_holders IS
'servers that may give out numbers of sequences';
COMMENT ON COLUMN snowflake_registry.range_holders.server_name IS
'name of the server, as the server gave it';
COMMENT ON COLUMN snowflake_registry.range_holders.client_addr IS
'address that the server called from; NULL for a Unix-domain socket';
COMMENT ON COLUMN snowflake_registry.range_holders.database IS
'database of the sequence';
COMMENT ON COLUMN snowflake_registry.range_holders.name IS
'schema and name of the sequence';
COMMENT ON COLUMN snowflake_registry.range_holders.lowest IS
'least number that the server may give out';
COMMENT ON COLUMN snowflake_registry.range_holders.highest IS
'greatest number that the server may give out';
COMMENT ON COLUMN snowflake_registry.range_holders.waiting_floor IS
'floor that the server has not acknowledged; NULL if there is none';
COMMENT ON COLUMN snowflake_registry.range_holders.granted_at IS
'time of the latest range';
COMMENT ON COLUMN snowflake_registry.range_holders.called_at IS
'time of the server''s last call, up to 20 seconds before';

