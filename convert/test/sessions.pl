# Sessions that are open while a table is converted, and have plans for the old
# type of its columns.

use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'max_prepared_transactions = 5');
sql($node, q{
	CREATE TABLE log (id bigint, line text);
	CREATE FUNCTION log_update() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE line text;
	BEGIN
		line := 'id ' || NEW.id;
		INSERT INTO log VALUES (NEW.id, line);
		RETURN NULL;
	END $$;
	CREATE ROLE regress_shop;
	GRANT CREATE, USAGE ON SCHEMA public TO regress_shop;
	GRANT INSERT ON log TO regress_shop});

sub create_table ($table)
{
	sql($node, qq{
		CREATE TABLE $table (id serial PRIMARY KEY, v int);
		INSERT INTO $table (v) SELECT generate_series(1, 3);
		CREATE TRIGGER log_update AFTER UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION log_update()});
}

# Update a row, have another session convert the table, and update it again; and once
# more after another session has run the statement that the NOTICE names.  Returns
# the errors, and all output.
sub update_convert_update ($table, $role)
{
	my ($out, $err);
	my $connstr = $node->connstr('postgres');

	$node->psql(
		'postgres', qq{
		SET SESSION AUTHORIZATION $role;
		UPDATE $table SET v = v + 1 WHERE id = 1;
		\\! psql -XAtq -d "$connstr" -c "SET SESSION AUTHORIZATION $role" -c "SELECT snowflake_convert('$table')" 2>&1
		UPDATE $table SET v = v + 1 WHERE id = 2;
		INSERT INTO $table (v) VALUES (4);
		UPDATE $table SET v = v + 1 WHERE v = 4;
		\\! psql -XAtq -d "$connstr" -c "ALTER FUNCTION public.log_update() VOLATILE"
		UPDATE $table SET v = v + 1 WHERE id = 3 RETURNING 'row ' || id || ' is updated'},
		on_error_stop => 0,
		stdout => \$out,
		stderr => \$err);
	return ($err, $out);
}

create_table('orders');
my ($errors, $said) = update_convert_update('orders', 'DEFAULT');
is($errors, '', 'functions of triggers work in a session that stays open');
like($said, qr/^ALTER FUNCTION public\.log_update\(\) VOLATILE$/m, 'functions of triggers are compiled again');
is(sql($node, "SELECT count(*), count(*) FILTER (WHERE id > 1000000) FROM log"), '4|1',
	'all updates are in the log');
is(sql($node, "SELECT provolatile FROM pg_proc WHERE proname = 'log_update'"), 'v',
	'a function that was compiled again has its properties');

# Prepared statements, and a trigger, while a table is converted that is in use
{
	my $connstr = $node->connstr('postgres');
	my $convert = "\\! psql -XAtq -d \"$connstr\" -c \"CALL snowflake_convert_online('c'";
	my ($returned, $out, $err) = $node->psql(
		'postgres', qq{
		TRUNCATE log;
		CREATE TABLE c (id serial PRIMARY KEY, v int);
		CREATE TABLE d (c int REFERENCES c, v int);
		INSERT INTO c (v) SELECT generate_series(1, 100);
		CREATE TRIGGER log_update AFTER UPDATE ON c FOR EACH ROW EXECUTE FUNCTION log_update();
		PREPARE one AS SELECT id FROM c WHERE id = \$1;
		PREPARE whole AS SELECT * FROM c WHERE id = \$1;
		PREPARE write AS UPDATE c SET v = v + 1 WHERE id = \$1;
		PREPARE add AS INSERT INTO c (v) VALUES (\$1);
		PREPARE reference AS INSERT INTO d (c, v) VALUES (\$1, 1);
		EXECUTE one(1); EXECUTE whole(1); EXECUTE write(1); EXECUTE add(1); EXECUTE reference(1);
		$convert, until => 'foreign keys')" 2>/dev/null
		EXECUTE whole(2);
		EXECUTE one(2); EXECUTE write(2); EXECUTE add(2); EXECUTE reference(2);
		$convert, until => 'swap')" 2>/dev/null
		EXECUTE one(3);
		EXECUTE one(3);
		EXECUTE write(3); EXECUTE add(3); EXECUTE reference(3);
		EXECUTE write(4)},
		on_error_stop => 0);
	is($err =~ s/^psql:<stdin>:\d+: //gmr, join("\n", ('ERROR:  cached plan must not change result type') x 3),
		'a session that stays open sees errors of prepared statements whose results have changed: each time, with * at once, and by name after the swap');
	is(sql($node, 'SELECT string_agg(id::text, $$,$$ ORDER BY id) FROM log'), '1,2,3,4',
		'functions of triggers work in a session that stays open during an online conversion');
	is(sql($node, 'SELECT count(*) FROM d JOIN c ON c.id = d.c'), '3', 'prepared INSERTs work in a session that stays open');
}

# Functions with rows of the table as parameters and variables, also in an online conversion
foreach my $convert (q{SELECT snowflake_convert('%s')}, q{CALL snowflake_convert_online('%s', until => 'swap')})
{
	my $table = $convert =~ /online/ ? 'goods' : 'items';
	my $connstr = $node->connstr('postgres');
	my $statement = sprintf($convert, $table);

	create_table($table);
	my ($returned, $out, $err) = $node->psql(
		'postgres', qq{
		CREATE TABLE seen_$table (t text);
		CREATE FUNCTION see_$table(r $table) RETURNS text LANGUAGE plpgsql AS \$\$ BEGIN RETURN format('%s %s', (r).id, (r).v); END \$\$;
		CREATE FUNCTION tell_$table() RETURNS trigger LANGUAGE plpgsql AS \$\$ DECLARE r record; s $table; BEGIN
			SELECT * INTO r FROM $table WHERE v = NEW.v LIMIT 1;
			SELECT * INTO s FROM $table WHERE v = NEW.v LIMIT 1;
			INSERT INTO seen_$table VALUES (concat_ws(' ', see_$table(NEW), r.id, (s).id)); RETURN NULL; END \$\$;
		CREATE TRIGGER tell AFTER UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION tell_$table();
		CREATE FUNCTION look_$table() RETURNS text LANGUAGE plpgsql AS \$\$ DECLARE r record; s $table; BEGIN
			SELECT * INTO r FROM $table WHERE v = 3;
			SELECT * INTO s FROM $table WHERE v = 3;
			RETURN concat_ws(' ', r.id, (s).id); END \$\$;
		UPDATE $table SET v = 10 WHERE id = 1;
		SELECT look_$table();
		\\! psql -XAtq -d "$connstr" -c "$statement" 2>&1
		SELECT look_$table();
		UPDATE $table SET v = 10 WHERE id = 1;
		SELECT t FROM seen_$table},
		on_error_stop => 0);
	is($err, '', "$statement: no error in a session that stays open");
	is(join("\n", grep { !/^(NOTICE|DETAIL|HINT)|^ALTER|^DROP|^column/ } split /\n/, $out), "3 3\n3 3\n1 10 1 1\n1 10 1 1",
		"$statement: rows are the same in a session that stays open");
}

# A partition as the type of a parameter
{
	my $connstr = $node->connstr('postgres');
	my ($returned, $out, $err) = $node->psql(
		'postgres', qq{
		CREATE TABLE parent (id serial PRIMARY KEY);
		CREATE TABLE parts (n int, p int REFERENCES parent) PARTITION BY LIST (n);
		CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1);
		INSERT INTO parent DEFAULT VALUES;
		INSERT INTO parts VALUES (1, 1);
		CREATE FUNCTION key_of(r part_1) RETURNS text LANGUAGE plpgsql AS \$\$ BEGIN RETURN concat('key ', (r).p); END \$\$;
		CREATE PROCEDURE twice(x int) LANGUAGE plpgsql AS \$\$ DECLARE r parent; BEGIN END \$\$;
		CREATE PROCEDURE twice(OUT x int) LANGUAGE plpgsql AS \$\$ DECLARE r parent; BEGIN END \$\$;
		CREATE SCHEMA closed;
		CREATE FUNCTION closed.look() RETURNS text LANGUAGE plpgsql AS \$\$ DECLARE r parent; BEGIN END \$\$;
		ALTER FUNCTION closed.look() OWNER TO regress_shop;
		ALTER TABLE parent OWNER TO regress_shop;
		ALTER TABLE parts OWNER TO regress_shop;
		ALTER TABLE part_1 OWNER TO regress_shop;
		ALTER FUNCTION key_of OWNER TO regress_shop;
		ALTER PROCEDURE twice(IN int) OWNER TO regress_shop;
		ALTER PROCEDURE twice(OUT int) OWNER TO regress_shop;
		SELECT key_of(x) FROM part_1 x;
		\\! psql -XAtq -d "$connstr" -c "CALL snowflake_convert_online('parent', until => 'swap')" 2>&1
		SELECT key_of(x) FROM part_1 x},
		on_error_stop => 0);
	is($err, '', 'rows of a partition: no error');
	is(join("\n", grep { /^key/ } split /\n/, $out), "key 1\nkey 1", 'a row of a partition has its key in a session that stays open');
	like($out, qr/NOTICE:  function closed\.look\(\) might fail in open sessions\n/, 'a function in a schema without USAGE is named');
	unlike($out, qr/ERROR/, 'the conversion is no error');
}

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
sql($node, 'REVOKE CREATE ON SCHEMA public FROM regress_shop;
	CREATE TABLE altered (id serial PRIMARY KEY);
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

# Of another owner
my $superuser = sql($node, 'SELECT quote_ident(current_user)');
create_table('bills');
sql($node, 'GRANT CREATE ON SCHEMA public TO regress_shop; ALTER TABLE bills OWNER TO regress_shop');
($errors, $said) = update_convert_update('bills', 'regress_shop');
unlike($said, qr/^ALTER FUNCTION/m, 'a function of another owner is not altered');
like(
	$said,
	qr/^NOTICE:  function public\.log_update\(\) might fail in open sessions
DETAIL:  It is a PL\/pgSQL function that uses rows of the table\. .* because it belongs to role \Q$superuser\E or is in a schema without USAGE\.
HINT:  Have its owner run ALTER FUNCTION public\.log_update\(\) VOLATILE after the conversion, or have sessions reconnect\.$/m,
	'a function of another owner is named in a NOTICE');
like($errors, qr/type of parameter \d+ \(bigint\) does not match that when preparing the plan \(integer\)/,
	'a function of another owner fails in a session that stays open');

# Two conversions with one function
create_table($_) foreach 'first', 'second';
sql($node, "BEGIN; SELECT snowflake_convert('first'); PREPARE TRANSACTION 'first'");
my ($session) = start_queries($node, "SELECT snowflake_convert('second')");
wait_until_true($node, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'object' AND NOT granted",
	'the second conversion does not wait');
sql($node, "COMMIT PREPARED 'first'");
ok(finish_queries($session), 'two tables that share a function are converted one after the other')
  or diag($session->{err});

# A column that is bigint already
sql($node, 'CREATE TABLE big (id bigserial PRIMARY KEY);
	CREATE TRIGGER log_update AFTER UPDATE ON big FOR EACH ROW EXECUTE FUNCTION log_update()');
is(sql($node, "SELECT count(*) FROM snowflake_convert('big')"), '2',
	'functions are left alone if the type stays');

done_testing();
