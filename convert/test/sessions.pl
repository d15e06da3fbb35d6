# Functions that others alter, drop, or have compiled again, while a conversion does that.

use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'max_prepared_transactions = 5');

# A function that is dropped meanwhile
sql($node, 'CREATE TABLE dropped (id serial PRIMARY KEY);
	CREATE FUNCTION looks() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r dropped; BEGIN END $$');
my $dropping = $node->background_psql('postgres');
$dropping->query_safe('BEGIN; DROP FUNCTION looks()');
my ($converting) = start_queries($node, "SELECT snowflake_convert('dropped')");
wait_until_true($node, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'object' AND NOT granted",
	'the conversion does not wait');
$dropping->query_safe('COMMIT');
$dropping->quit;
is(finish_queries($converting), 1, 'a function that is dropped meanwhile') or diag($converting->{err});

# A function that is altered before the conversion, and while it rewrites the table, which
# waits here for an advisory lock: what was committed stays
my $definer = "SELECT string_agg(prosecdef::text, ' ') FROM pg_proc WHERE proname = 'alters'";
sql($node, 'CREATE TABLE altered (id serial PRIMARY KEY);
	CREATE PROCEDURE alters() SECURITY DEFINER LANGUAGE plpgsql AS $$ DECLARE r altered; BEGIN END $$;
	CREATE FUNCTION waits(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
		IF $1 = 1 THEN PERFORM pg_advisory_xact_lock_shared(1); END IF; RETURN $1; END $$;
	CREATE INDEX ON altered (waits(id));
	INSERT INTO altered DEFAULT VALUES');
my $altering = $node->background_psql('postgres');
$altering->query_safe('BEGIN; ALTER PROCEDURE alters() SECURITY INVOKER');
($converting) = start_queries($node, "SELECT snowflake_convert('altered')");
wait_until_true($node, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted",
	'the conversion does not wait');
$altering->query_safe('COMMIT');
is(finish_queries($converting), 1, 'a procedure is altered before the conversion') or diag($converting->{err});
is(sql($node, $definer), 'false', 'a conversion keeps what was altered before it');

sql($node, 'DROP TABLE altered; CREATE TABLE altered (id serial PRIMARY KEY);
	ALTER PROCEDURE alters() SECURITY DEFINER;
	CREATE INDEX ON altered (waits(id));
	INSERT INTO altered DEFAULT VALUES');
$altering->query_safe('SELECT pg_advisory_lock(1)');
($converting) = start_queries($node, "SELECT snowflake_convert('altered')");
wait_until_true($node, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
	'the conversion does not wait');
my ($invoker) = start_queries($node, 'ALTER PROCEDURE alters() SECURITY INVOKER');
wait_until_true($node, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted) OR NOT prosecdef FROM pg_proc WHERE proname = 'alters'",
	'the procedure is not altered, and nobody waits');
$altering->quit;
is(finish_queries($converting), 1, 'a procedure is altered during the conversion') or diag($converting->{err});
is(sql($node, $definer), finish_queries($invoker) ? 'false' : 'true', 'a conversion takes back nothing that was committed');

# Two conversions with one function
sql($node, q{
	CREATE FUNCTION same_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	SELECT format('CREATE TABLE %I (id serial PRIMARY KEY)', name),
		format('CREATE TRIGGER t AFTER UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION same_row()', name)
	FROM unnest('{first,second}'::text[]) name \gexec});
sql($node, "BEGIN; SELECT snowflake_convert('first'); PREPARE TRANSACTION 'first'");
my ($session) = start_queries($node, "SELECT snowflake_convert('second')");
wait_until_true($node, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'object' AND NOT granted",
	'the second conversion does not wait');
sql($node, "COMMIT PREPARED 'first'");
ok(finish_queries($session), 'two tables that share a function are converted one after the other')
  or diag($session->{err});

done_testing();
