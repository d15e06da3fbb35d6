/* snowflake_convert--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake_convert" to load this file. \quit

CREATE FUNCTION snowflake_convert(
    relation regclass,
    column_name name DEFAULT NULL,
    dry_run boolean DEFAULT false,
    generator regprocedure DEFAULT NULL,
    kind text DEFAULT NULL)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'snowflake_convert'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_convert(regclass, name, boolean, regprocedure, text) IS
'change a serial, identity, or plain integer column (NULL: the primary key) to
bigint with a generator (NULL: that of the column, or snowflake_nextval()) as its
default, and all columns that reference it to bigint; a uuid column only gets the
generator as its default;
kind is that of the sequences instead: snowflake (the default without a generator; the
key keeps its default), or range or local,
which change all sequences that feed the table, or the column, and nothing else;
where columns become bigint, views, rules, policies and triggers that depend on them
are dropped and created again; functions that might hold keys are named in a notice;
returns the statements, which dry_run does not execute; runs as the owner of the
table, in a security-restricted operation; calls the generator once, also in a
dry run;
errors: 55000 with a list of obstacles, or if nextval() does not know the kind,
42501 if the caller does not own the table, or a sequence that gets a kind, 42P01,
42809, 42703, or 42804 if the table or column does not exist or is of another kind,
22023 if the primary key has several columns or the generator or the kind is not
suitable, 55006 if the table was changed during the conversion, 0A000 above READ
COMMITTED';

CREATE FUNCTION snowflake_convert_schema(
    schema regnamespace,
    exclude regclass[] DEFAULT '{}',
    widen text DEFAULT 'keys',
    dry_run boolean DEFAULT false,
    generator regprocedure DEFAULT NULL,
    kind text DEFAULT NULL)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'snowflake_convert_schema'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_convert_schema(regnamespace, regclass[], text, boolean, regprocedure, text) IS
'convert the keys of all tables in a schema that have their values from a sequence
or a generator, except for keys of excluded tables, as snowflake_convert() does, in
one ALTER TABLE for each table whose columns change their type;
widen says which integer columns without a foreign key become bigint, too: none,
names (that end in id), keys (of which names or values tell that they hold a key), all
(that might hold one), or columns with their tables, such as keys, orders.customer;
kind is that of snowflake_convert(); returns the statements, which dry_run does not
execute;
errors: those of snowflake_convert(), 3F000 if the schema does not exist, 22004 if
an excluded table is null, 22023, 42602, 42P01, or 42703 for a wrong widen';

CREATE FUNCTION snowflake_convert_report(
    schema regnamespace,
    exclude regclass[] DEFAULT '{}',
    widen text DEFAULT 'keys',
    rehearse boolean DEFAULT false,
    kind text DEFAULT NULL,
    details boolean DEFAULT false,
    OUT severity text,
    OUT count integer,
    OUT object text,
    OUT finding text,
    OUT what_to_do text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'snowflake_convert_report'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_convert_report(regnamespace, regclass[], text, boolean, text, boolean) IS
'what snowflake_convert_schema() would do with these arguments, what is in its way,
and, afterwards, what is not converted, or not anymore; changes nothing, but calls the generator;
severity is obstacle (the conversion would fail), warning (somebody has to decide), or
info; count is the number of objects of which a row says the same, and object has the
names of the first, or, with details, each has a row of its own;
rehearse also does the conversion, inserts and updates copies of rows with new keys,
which fires triggers, and rolls all of it back; it takes the locks of the conversion, and
what triggers do outside of the transaction stays;
errors: 42501 if the caller does not own the tables, 3F000 if the schema does not
exist, 22004 if an excluded table is null, those of snowflake_convert_schema() for a
wrong widen or kind; with rehearse, 55006 if deferred triggers of
the transaction wait for its end, 0A000 above READ COMMITTED';

CREATE FUNCTION _snowflake_convert_move_identity(relation regclass, column_name name,
    new_column name)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_convert_move_identity'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION _snowflake_convert_move_identity(regclass, name, name) IS
'internal: for the statements of snowflake_convert_plan(): the identity of a column, with its
sequence, becomes that of another one;
errors: 55000 if the column has no identity of its own, or the other one cannot have one,
42501 if the caller does not own the table, 42P01, 42809, or 42703 if the table or a column
does not exist or is of another kind';

CREATE FUNCTION _snowflake_convert_copy()
RETURNS trigger
AS 'MODULE_PATHNAME', 'snowflake_convert_copy'
LANGUAGE C;

COMMENT ON FUNCTION _snowflake_convert_copy() IS
'internal: trigger of snowflake_convert_online(): copies columns of a row to new ones;
its arguments are names of columns, an old one, the new one, and so on;
errors: 39P01 if it is not fired BEFORE INSERT OR UPDATE FOR EACH ROW, 42703 or
42804 if a column does not exist or is of another type';

CREATE PROCEDURE snowflake_convert_online(
    relation regclass,
    column_name name DEFAULT NULL,
    generator regprocedure DEFAULT NULL,
    until text DEFAULT NULL,
    batch_time interval DEFAULT '50 ms',
    work_share double precision DEFAULT 0.5,
    lock_wait interval DEFAULT '100 ms',
    max_lag interval DEFAULT NULL,
    give_up_after interval DEFAULT NULL,
    subscribers_ready boolean DEFAULT false,
    kind text DEFAULT NULL)
AS 'MODULE_PATHNAME', 'snowflake_convert_online'
LANGUAGE C;

COMMENT ON PROCEDURE snowflake_convert_online(regclass, name, regprocedure, text, interval, double precision, interval, interval, interval, boolean, text) IS
'what snowflake_convert() does, for tables in use: with second columns that are
swapped with the old ones in the end, so that clients can read and write the
tables; the same call continues after an interruption;
must be called outside of a transaction block, function, or DO;
errors: 2D000 or 25001 in a transaction block, 55000 with a list of obstacles,
55P03 after waiting for give_up_after, 55006 if another session converts a table,
42501 if the caller does not own the table, 22023 for a wrong argument, and those
of snowflake_convert()';

CREATE FUNCTION snowflake_convert_plan(
    relation regclass,
    column_name name DEFAULT NULL,
    subscribers_ready boolean DEFAULT false,
    kind text DEFAULT NULL,
    OUT step integer,
    OUT phase text,
    OUT table_name text,
    OUT lock text,
    OUT statement text,
    OUT state text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'snowflake_convert_plan'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_convert_plan(regclass, name, boolean, text) IS
'steps of snowflake_convert_online(), with the lock that each of them takes on the
table, and its state: done, next, or to do, with who has to end first; steps
behind a swap are left out;
errors: those of snowflake_convert_online()';

CREATE FUNCTION snowflake_convert_undo(
    relation regclass,
    column_name name DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'snowflake_convert_undo'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION snowflake_convert_undo(regclass, name) IS
'drop what snowflake_convert_online() has created, until it has swapped the
columns of a table;
errors: 55000 after that, 55P03 if the tables could not be locked within a minute,
55006 if a session converts a table, 0A000 above READ COMMITTED';
