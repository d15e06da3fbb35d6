-- ranges of sequences
--
-- The registry also grants ranges of small numbers, those of sequences of kind
-- "range": consecutive numbers, each range to one server.  No clock decides about
-- them.  A name is a sequence, "schema.sequence", of a group of databases.  For each
-- name the registry has "next", which only increases: all below it may have been
-- granted, and none at or above it.
--
-- A client is one life of a server's shared memory, the only place where a server
-- has ranges: at most one that it uses, and one in reserve.  It asks for another one
-- when it begins the one in reserve, so the one before that is exhausted.
--
-- A floor F of a name: no number <= F is to be given out anymore.  It raises "next",
-- and clients that have ranges at or below it are waited for, until each has
-- acknowledged it.
--
-- What can happen between a server A, the registry, and a server B:
--
--   what happens                       what the registry does
--   ---------------------------------  --------------------------------------------
--   an answer is lost                  A's next call does not confirm its token: what
--                                      it granted is granted again, no more
--   a call is given up, and arrives    it holds A's row: the next call fails, and A
--   late                               tries again; or it comes after that, and its
--                                      tokens are old: it is superseded
--   A's memory is resumed twice        each call replaces the token: the second of
--                                      both to call is superseded
--   A returned its ranges, and then    A's row remains without a token: superseded
--   a snapshot of its memory resumes
--   A sets a floor while B's call      both lock the name: either B's range is below
--   is in flight                       the floor, and B waited for; or it is above
--   B is granted a range, gets no      B has it as unconfirmed, so B is waited for;
--   answer, and A sets a floor         what is granted again begins above the floor
--   A's floor is refused               no more than the floor of the name counts as
--                                      acknowledged: B's later floor waits for A
--   A is killed, and starts again      its former life has ended: its data directory
--                                      has one server at a time.  After a start of
--                                      the machine, which a copy has, too, it is
--                                      waited for until it was silent for a minute
--                                      (end_former_lives())
--   A's directory is copied, and the   the copy has another directory, or another
--   copy is started                    start of its machine: A is waited for
--   A and B have one name and address  they have different directories: as any two
--   the registry is promoted,          place() differs: it stops, in the call that
--   or restored from a dump            notices
--   B asks for floors right before     floor_changes, which had B ask, increases with
--   A's call that sets one commits     each call of A that waits for B
--   a database is put into another     its group continues above its former one, with
--   group                              a floor, which servers hear of: they give up
--                                      what they have of that
--
-- What can happen to the registry's commits, and to the receipts that prove it (see
-- read_receipt()):
--
--   yesterday's files are put back,    the receipt of the first server that connects
--   or two registries run              is not known: all stops.  Servers connect
--                                      within 5 s, also if they need nothing; before
--                                      that, another one can be granted numbers twice
--   A is killed after the commit, and  its receipt is the one before, which is known;
--   before it has kept the receipt     what was granted is lost, as its memory is
--   A is copied, restored from a       the same
--   backup, or its standby promoted
--   A's call arrives late, after A     A's row is locked by either, and then the call
--   has reported                       has an old token: it is superseded
--   A calls while all is stopped       it gets no receipt, and none is counted:
--                                      otherwise, the count reaches the lost ones
--   A is started again after it has    its new life reports, too; what the former one
--   reported                           said counts, and so does that it was complete
--   A reports right when an            the state is locked by either: the report is in
--   administrator has it resumed       the evidence, or raises "next" by itself
--   A is away until it is resumed      its receipt is of an earlier incarnation: it
--                                      reports before it is granted anything
--   the registry is restored again,    A's receipt is of a later incarnation: all
--   from before it was resumed         stops, and the next one is later still
--   A is moved here, or back           its receipt is another registry's: it reports, also
--                                      of databases that are added later
--   ... while it cannot read a table,  what it could read counts, and it reports again: it is
--   which somebody has locked          granted nothing before it has read it
--   a server joined after the backup,  the registry cannot know of it: an administrator
--   and is away                        says how many servers there are, or skips
--   a dump is restored                 it has no receipts: all servers report

CREATE TABLE snowflake_registry.range_state (
    id integer PRIMARY KEY CHECK (id = 1),
    grant_time interval NOT NULL,  -- for how long servers keep numbers in reserve
    lossless_failover boolean NOT NULL,  -- whether only standbys are promoted that have all commits
    identity text NOT NULL,  -- that of snowflake_registry.place() when ranges were granted last
    timeline bigint NOT NULL,  -- timeline on which the last ranges were granted
    registry integer NOT NULL,  -- by what its receipts differ from those of others: drawn once
    -- how often it stopped, also before it was restored, as far as servers have proved it
    incarnation integer NOT NULL DEFAULT 0,
    stopped text,  -- why no ranges are granted; NULL if they are
    stopped_at timestamptz  -- time when this was noticed
);

COMMENT ON TABLE snowflake_registry.range_state IS
'whether ranges are granted; one row, or none before the first snowflake_registry.add_database()';

CREATE TABLE snowflake_registry.range_databases (
    database text PRIMARY KEY CHECK (length(database) <= 63),  -- name of the database, on all servers
    -- group of databases that share their sequences; NULL: removed, or only servers know it
    database_group text,
    former_group text  -- the group when it was removed last, or the name of one that was not added
);

COMMENT ON TABLE snowflake_registry.range_databases IS
'databases that have sequences of kind "range"; see snowflake_registry.add_database()';

CREATE TABLE snowflake_registry.range_sequences (
    database_group text,  -- group of databases that share the sequence
    name text CHECK (octet_length(name) < 264),  -- schema and name of the sequence
    last bigint NOT NULL CHECK (last > 0),  -- MAXVALUE of the sequence
    next bigint NOT NULL,  -- number below which all may have been granted
    -- number up to which all are in use without having been granted, or may be
    floor bigint NOT NULL CHECK (floor >= 0),
    granted bigint NOT NULL DEFAULT 0,  -- how many numbers were granted
    -- how many of these servers had left when they ended, at most, but those in held_ranges
    lost bigint NOT NULL DEFAULT 0,
    sampled bigint NOT NULL DEFAULT 0,  -- granted, at sampled_at
    sampled_at timestamptz NOT NULL,  -- a time within the last day before the last grant
    previous bigint NOT NULL DEFAULT 0,  -- granted, at previous_at
    -- a time at least a day before sampled_at, or that of the first call
    previous_at timestamptz NOT NULL,
    PRIMARY KEY (database_group, name)
) WITH (fillfactor = 50);

COMMENT ON TABLE snowflake_registry.range_sequences IS
'sequences of which ranges are granted; see the view snowflake_registry.sequences';

-- Rows are never removed: who resumes an old snapshot of its memory is superseded.

CREATE TABLE snowflake_registry.range_clients (
    client uuid PRIMARY KEY,  -- identifier, drawn when the shared memory is initialized
    token_hash bytea,  -- SHA-256 of a secret, drawn for the last call; NULL: it has given up all
    calls bigint NOT NULL DEFAULT 0,  -- number of the last call
    -- calls whose answers did not arrive, and of which ranges have not been granted again
    lost_calls bigint[] NOT NULL DEFAULT '{}',
    -- what its receipts have in common
    receipt_id integer NOT NULL UNIQUE DEFAULT 1 + floor(random() * 4194303)::integer,
    receipts integer NOT NULL DEFAULT 0,  -- how many it got: the number of the last one
    -- incarnation of the registry in which it has reported what it was granted; NULL: none
    reported integer,
    -- incarnation of the registry, and of how many sequences its last report told in it
    reporting integer[],
    server_name text,  -- name of the server, as the server gave it
    client_addr inet,  -- address that the server called from; NULL for a Unix-domain socket
    boot uuid,  -- identifier of the time since the server's machine was started; NULL: not known
    directory uuid,  -- identifier of the data directory, which only a copy of the machine has, too
    -- when the shared memory was initialized: microseconds of a clock of the boot, never set
    started bigint,
    created_at timestamptz NOT NULL,  -- time of the first call
    -- time of the last call, or up to 10 seconds before that of snowflake_registry.get_floors()
    called_at timestamptz NOT NULL
) WITH (fillfactor = 50);

COMMENT ON TABLE snowflake_registry.range_clients IS
'servers that were granted ranges, one row for each time that its shared memory was
initialized';

CREATE TABLE snowflake_registry.held_ranges (
    client uuid,  -- the server
    database text,  -- its database
    name text,  -- the sequence in it
    database_group text NOT NULL,  -- group of the database when the range was granted
    call bigint NOT NULL,  -- number of the call that granted the latest range
    previous_first bigint NOT NULL,  -- first number that the server may still give out
    latest_first bigint NOT NULL,  -- first number of the latest range
    latest_last bigint NOT NULL,  -- last number of the latest range
    acknowledged_floor bigint NOT NULL,  -- the server gives out no number up to this one
    floor_pending boolean NOT NULL DEFAULT false,  -- whether get_floors() has the sequence's floor
    last bigint NOT NULL,  -- MAXVALUE of the sequence on this server
    least_count bigint NOT NULL CHECK (least_count BETWEEN 1 AND 1999999),  -- fewest it can use
    -- how many numbers the server wanted last, or half of what it wanted at its start
    wish bigint NOT NULL CHECK (wish BETWEEN 0 AND 2147483648),
    granted_at timestamptz NOT NULL,  -- time of the latest range
    used_at timestamptz NOT NULL,  -- when it began to use a range: it asked for the next one
    PRIMARY KEY (client, database, name)
) WITH (fillfactor = 50);

CREATE INDEX held_ranges_name ON snowflake_registry.held_ranges (database_group, name);
CREATE INDEX held_ranges_pending ON snowflake_registry.held_ranges (client) WHERE floor_pending;

COMMENT ON TABLE snowflake_registry.held_ranges IS
'what servers can give out, if they have a token; see the view snowflake_registry.range_holders';

CREATE INDEX range_clients_name ON snowflake_registry.range_clients (server_name)
    WHERE token_hash IS NOT NULL;
CREATE INDEX range_clients_directory ON snowflake_registry.range_clients (directory);

CREATE SEQUENCE snowflake_registry.floor_changes;

COMMENT ON SEQUENCE snowflake_registry.floor_changes IS
'increases if snowflake_registry.get_floors() may have something new; servers that
hold ranges read it every 2 seconds, and call that then, and every 20 seconds';

CREATE TABLE snowflake_registry.range_evidence (
    directory uuid,
    database text,
    name text CHECK (octet_length(name) < 264),
    database_group text NOT NULL,
    server_name text NOT NULL,
    last bigint NOT NULL CHECK (last > 0),
    granted bigint NOT NULL CHECK (granted >= 0),
    exact boolean NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (directory, database, name, server_name)
);

COMMENT ON TABLE snowflake_registry.range_evidence IS
'what servers have reported since the registry stopped granting ranges';
COMMENT ON COLUMN snowflake_registry.range_evidence.directory IS
'identifier of the server''s data directory';
COMMENT ON COLUMN snowflake_registry.range_evidence.database IS
'its database';
COMMENT ON COLUMN snowflake_registry.range_evidence.name IS
'the sequence in it';
COMMENT ON COLUMN snowflake_registry.range_evidence.database_group IS
'group of the database';
COMMENT ON COLUMN snowflake_registry.range_evidence.server_name IS
'name of the server';
COMMENT ON COLUMN snowflake_registry.range_evidence.last IS
'MAXVALUE of the sequence';
COMMENT ON COLUMN snowflake_registry.range_evidence.granted IS
'greatest number that the server knows of: that it was granted, or that rows have';
COMMENT ON COLUMN snowflake_registry.range_evidence.exact IS
'whether it can have been granted no greater one';
COMMENT ON COLUMN snowflake_registry.range_evidence.seen_at IS
'time of the report';

-- A dump has what is known of sequences: "next" of then is not enough, but better
-- than none.  Its identity shows that numbers were lost since, so a restored
-- registry stops, and "next" is the least that it continues with.  A dump has no
-- clients: their tokens would be old, and those who hold ranges report that.

SELECT pg_catalog.pg_extension_config_dump('snowflake_registry.range_state', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_registry.range_databases', '');
SELECT pg_catalog.pg_extension_config_dump('snowflake_registry.range_sequences', '');

