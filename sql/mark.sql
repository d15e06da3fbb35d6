--
-- snowflake_raise_mark() and snowflake_set_mark(): what they refuse, and what changes nothing.
-- test/generator/reset.pl and mark.pl have restarts, crashes, and marks that are lowered.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE SCHEMA marks;
SET search_path = marks, public;
\pset format unaligned
CREATE ROLE regress_alice;
CREATE ROLE regress_bob;
GRANT USAGE ON SCHEMA marks TO regress_alice, regress_bob;
GRANT EXECUTE ON FUNCTION snowflake_set_mark TO regress_bob;
CREATE FUNCTION mark() RETURNS bigint LANGUAGE sql AS 'SELECT mark FROM snowflake_stat';
-- the error of a statement, without IDs and times
CREATE FUNCTION try(command text, OUT error text, OUT hint text, OUT times_differ boolean) LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    EXECUTE command;
    error := 'none';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    error := concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM, nullif(regexp_replace(regexp_replace(detail, '\d{16,}', '(ID)', 'g'),
        '\d+-\d+-\d+ [-+0-9:.]+', '(time)', 'g'), ''));
    times_differ := substring(detail FROM 'new mark is (\S+ \S+)') <> substring(detail FROM 'clock reads (\S+ \S+)');
END
$$;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), t text);
INSERT INTO orders (t) VALUES ('old');
SELECT max(id) + 1 AS above FROM orders \gset

-- raised: never lowered, and IDs are above it
SELECT mark() AS mark \gset
SELECT snowflake_raise_mark(1000) = :mark AS same, snowflake_raise_mark(NULL) IS NULL AS null, mark() = :mark AS unchanged;
SELECT mark() + (500 << 22) + 5 AS ahead \gset
SELECT snowflake_raise_mark(:ahead) = :ahead AS raised, snowflake_nextval() >= :ahead AS above;
SELECT error FROM try('SELECT snowflake_raise_mark(-1)');
-- one above which no ID could be generated is refused, with both times
SELECT * FROM try($$SELECT snowflake_raise_mark(snowflake_lower_bound(now() + interval '400 days'))$$);
SELECT * FROM try($$SELECT snowflake_set_mark(snowflake_lower_bound(now() + interval '2 years'))$$);
SELECT snowflake_nextval() > :ahead AS above;

-- lowered: not without tables, and the hint does not suggest to skip the check
SELECT mark() AS mark \gset
SELECT error, hint FROM try(format('SELECT snowflake_set_mark(%s)', :above));
SELECT error, hint FROM try('SELECT snowflake_set_mark(0)');
SELECT error FROM try('SELECT snowflake_set_mark(-1)');
SELECT snowflake_set_mark(NULL) IS NULL AS null;
-- a table that does not exist, or has no IDs, or is of another owner
SELECT error FROM try(format($$SELECT snowflake_set_mark(%s, ARRAY[to_regclass('orders'), to_regclass('ordres')])$$, :above));
CREATE TABLE other (n int);
SELECT error FROM try(format($$SELECT snowflake_set_mark(%s, '{other}')$$, :above));
SET ROLE regress_bob;
SELECT error FROM try(format($$SELECT snowflake_set_mark(%s, '{orders}')$$, :above));
RESET ROLE;
-- nor below a stored ID: by a default, in any column of a primary key, of another owner, or of a domain
SELECT error FROM try(format($$SELECT snowflake_set_mark(%s, '{orders}')$$, :above - 1));
CREATE TABLE keys (id bigint PRIMARY KEY);
ALTER TABLE keys OWNER TO regress_alice;
INSERT INTO keys VALUES (:above);
SELECT error FROM try(format($$SELECT snowflake_set_mark(%s, '{keys, orders}')$$, :above));
CREATE TABLE by_tenant (tenant bigint, id bigint, PRIMARY KEY (tenant, id));
INSERT INTO by_tenant VALUES (1, :above);
SELECT error FROM try(format($$SELECT snowflake_set_mark(%s, '{by_tenant}')$$, :above));
CREATE DOMAIN key AS bigint;
CREATE DOMAIN order_key AS key;
CREATE TABLE of_domain (id order_key PRIMARY KEY);
INSERT INTO of_domain VALUES (:above);
SELECT error FROM try(format($$SELECT snowflake_set_mark(%s, '{of_domain}')$$, :above));
-- or of the same command
CREATE FUNCTION lower_after_insert(m bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO orders DEFAULT VALUES;
    PERFORM snowflake_set_mark(m, '{orders}');
END
$$;
SELECT error FROM try(format('SELECT lower_after_insert(%s)', :above));
SELECT mark() >= :mark AS not_lowered;

-- IDs of the tests after this one are not ahead of the clock
DO $$
BEGIN
    WHILE snowflake_nextval() >= snowflake_lower_bound(clock_timestamp()) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
END
$$;

DROP SCHEMA marks CASCADE;
DROP OWNED BY regress_bob;
DROP ROLE regress_alice, regress_bob;
