# snowflake_raise_mark() and snowflake_set_mark(): no ID that is stored, or that
# another session receives meanwhile, is at or above a mark that is lowered.
# (test/specs/mark.spec has rows that are committed meanwhile.)

use SnowflakeTest;

my $node = new_server('main', 'snowflake.worker_id = 1');

sub next_id { return sql($node, 'SELECT snowflake_nextval()'); }

sql($node, q{
	CREATE ROLE regress_alice;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), t text);
	INSERT INTO orders (t) VALUES ('old')});
my $above = sql($node, 'SELECT max(id) + 1 FROM orders');

# snowflake_raise_mark()
my $mark = mark_of($node);
is(sql($node, 'SELECT snowflake_raise_mark(1000)'),
	$mark, 'a mark below the current one changes nothing');
is(sql($node, 'SELECT snowflake_raise_mark(NULL) IS NULL'), 't', 'NULL does not change the mark');
is(mark_of($node), $mark, 'the mark is what it was');
my $offset = -s $node->logfile;
my $ahead = mark_of($node) + (500 << 22) + 5;
is(sql($node, "SELECT snowflake_raise_mark($ahead)"), $ahead, 'the mark is raised');
cmp_ok(next_id(), '>=', $ahead, 'the next ID is not below the raised mark');
like(slurp_file($node->logfile, $offset),
	qr/LOG:  mark of snowflake IDs was set from \d+ to $ahead/,
	'raising the mark is logged');
$ahead = mark_of($node) + (500 << 22) + 5;
sql($node, "SELECT snowflake_raise_mark($ahead)");
crash_and_start($node);
cmp_ok(next_id(), '>=', $ahead, 'a raised mark survives a crash');

# A mark below the durable one, but above ticks that are reserved: before the first ID,
# because no standby confirms the reserve
restart_with($node, "snowflake.reserve_time = '4s'\nsynchronous_standby_names = 'nobody'\nwal_level = replica\nmax_wal_senders = 1");
$mark = mark_of($node);
wait_until_true($node, "SELECT snowflake_lower_bound(clock_timestamp()) > $mark");
sql_fails($node, "SET statement_timeout = '1s'; SELECT snowflake_nextval()",
	qr/ERROR:  57014: .*\n.*CONTEXT:  while waiting for synchronous standbys/, 'a call waits for a standby after the mark was raised');
my $inside = mark_of($node) - (1000 << 22);
cmp_ok($inside, '>', $mark, 'the new mark is inside the reserve');
reload_with($node, "synchronous_standby_names = ''");
sql($node, "SELECT snowflake_raise_mark($inside)");
cmp_ok(next_id(), '>=', $inside, 'the first ID is not below a mark inside the reserve');

# The same after it
restart_with($node, "snowflake.reserve_time = '60s'");
my $id = next_id();
$inside = $id + (20_000 << 22);
cmp_ok(mark_of($node), '>', $inside, 'more is reserved than the new mark');
cmp_ok(sql($node, "SELECT snowflake_raise_mark($inside)"), '>=', $inside, 'a mark inside the reserve');
cmp_ok(next_id(), '>=', $inside, 'the next ID is not below a mark inside the reserve');
my $waits = sql($node, 'SELECT clock_waits FROM snowflake_stat');
is( sql($node, q{
		DO $$
		DECLARE
			id bigint := snowflake_nextval();
			start timestamptz := clock_timestamp();
		BEGIN
			FOR i IN 1 .. 100 LOOP
				PERFORM snowflake_raise_mark(id + (1 << 22));
				id := snowflake_nextval();
			END LOOP;
			RAISE LOG 'raised by a tick: % s', extract(epoch FROM clock_timestamp() - start);
		END $$;
		SELECT clock_waits FROM snowflake_stat}),
	$waits, 'to raise the mark by a tick costs no more than a tick');
$mark = mark_of($node);
sql($node, "SELECT snowflake_raise_mark($id)");
sql($node, 'SELECT snowflake_raise_mark(0)');
is(mark_of($node), $mark, 'a mark below the last ID changes nothing');
cmp_ok(next_id(), '>=', $inside, 'and IDs continue');
sql_fails($node, 'SELECT snowflake_set_mark(' . ($inside + (1000 << 22)) . ')',
	qr/ERROR:  55000: cannot lower the mark .*\n.*DETAIL:  The mark is $mark, which is above \d+\.\n/, 'snowflake_set_mark() lowers nothing without tables');
restart_with($node, "snowflake.reserve_time = '1s'");
sql_fails($node, 'SELECT snowflake_raise_mark(-1)',
	qr/ERROR:  22003: snowflake ID -1 is negative/, 'a negative mark is refused');
sql_fails($node, 'SET ROLE regress_alice; SELECT snowflake_raise_mark(1)',
	qr/ERROR:  42501: permission denied for function snowflake_raise_mark/,
	'not every role may raise the mark');

sql_fails($node, "SELECT snowflake_raise_mark(snowflake_lower_bound(now() + interval '400 days'))",
	qr/ERROR:  22023: new mark of snowflake IDs is too far ahead of the clock\nDETAIL:  The time of the new mark is (\S+) .*, and the clock reads (?!\1)\d.*\nHINT:  Check the number/,
	'a mark above which no ID could be generated is refused, with both times');
ok(next_id(), 'IDs are generated after a mark was refused');

# Who copies a lower mark is not told how to lower this one.
my $error = sql_error($node, "SELECT snowflake_set_mark($above)");
like($error, qr/HINT:  Use snowflake_raise_mark\(\) for a mark that was copied/,
	'the hint names what never lowers the mark');
unlike($error, qr/force/, 'the hint does not suggest to skip the check');

# Arguments that would not be checked
$mark = mark_of($node);
sql_fails($node,
		"SELECT snowflake_set_mark($above, ARRAY[to_regclass('orders'), to_regclass('ordres')])",
	qr/ERROR:  22004: array of tables must not contain nulls/,
	'a table that does not exist is an error');

# All columns of a primary key, and domains over bigint
sql($node, qq{
	CREATE TABLE by_tenant (tenant bigint, id bigint, PRIMARY KEY (tenant, id));
	INSERT INTO by_tenant VALUES (1, $above);
	CREATE DOMAIN key AS bigint;
	CREATE DOMAIN order_key AS key;
	CREATE TABLE of_domain (id order_key PRIMARY KEY);
	INSERT INTO of_domain VALUES ($above)});
foreach my $table ('by_tenant', 'of_domain')
{
	sql_fails($node, "SELECT snowflake_set_mark($above, '{$table}')",
		qr/ERROR:  55000: column id of table public\.$table has IDs at or above/,
		"$table: each bigint of the primary key is checked");
}
is(mark_of($node), $mark, 'the mark is not lowered by calls that fail');

# What the same command has inserted counts as well.
sql($node, q{
	CREATE FUNCTION lower_after_insert(m bigint) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO orders DEFAULT VALUES;
		PERFORM snowflake_set_mark(m, '{orders}');
	END $$});
sql_fails($node, "SELECT lower_after_insert($above)",
	qr/ERROR:  55000: column id of table public\.orders/, 'a row of the same transaction is found');

# The mark is lowered where that is right: the rest is above no ID.
sql($node, "DELETE FROM orders WHERE id >= $above; SELECT snowflake_set_mark($above, '{orders}')");
cmp_ok(next_id(), '>=', $above, 'IDs continue at a mark that was lowered');

# Calls that raise the mark, while others reserve: what was a higher mark when
# it was compared may be a lower one when it is written.
sql($node, q{
	CREATE PROCEDURE raise(rounds int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. rounds LOOP
			BEGIN
				PERFORM snowflake_set_mark((SELECT mark FROM snowflake_stat) + 1);
			EXCEPTION WHEN object_not_in_prerequisite_state THEN
			END;
			COMMIT;
		END LOOP;
	END $$;
	CREATE PROCEDURE generate(rounds int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. rounds LOOP
			PERFORM snowflake_nextval();
			COMMIT;
		END LOOP;
	END $$});
$offset = -s $node->logfile;
my @callers = start_queries($node,
	('CALL raise(1000)') x 3,
	('CALL generate(3000)') x 3);
is(finish_queries(@callers), 6, 'sessions raise the mark while others generate IDs')
  or diag(map { $_->{err} } @callers);
my $lowered = 0;
my $log = slurp_file($node->logfile, $offset);
while ($log =~ /mark of snowflake IDs was set from (\d+) to (\d+)/g)
{
	$lowered++ if $2 < $1;
}
is($lowered, 0, 'no call that raises the mark lowers it');

# A digit too many.
my $far = "snowflake_lower_bound(now() + interval '2 years')";
sql_fails($node, "SELECT snowflake_set_mark($far)",
	qr/22023: new mark of snowflake IDs is too far ahead of the clock/,
	'a mark that is too far ahead of the clock is refused');
$mark = sql($node, 'SELECT mark FROM snowflake_stat');
is($node->psql('postgres', "SELECT snowflake_set_mark($far, force => true); SELECT snowflake_set_mark($mark, force => true)"),
	0, 'a mark that is too far ahead of the clock can be forced');

done_testing();
