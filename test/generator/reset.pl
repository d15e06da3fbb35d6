# snowflake_raise_mark() and snowflake_set_mark(): no ID that is stored, or that
# another session receives meanwhile, is at or above a mark that is lowered.
# (test/specs/mark.spec has rows that are committed meanwhile.)

use SnowflakeTest;

my $node = new_server('main', 'snowflake.worker_id = 1');

sub next_id { return sql($node, 'SELECT snowflake_nextval()'); }

# A raised mark is logged, and survives a crash.  (sql/mark.sql has what one session sees.)
next_id();
my $ahead = mark_of($node) + (500 << 22) + 5;
my $offset = -s $node->logfile;
sql($node, "SELECT snowflake_raise_mark($ahead)");
like(slurp_file($node->logfile, $offset), qr/LOG:  mark of snowflake IDs was set from \d+ to $ahead/, 'raising the mark is logged');
crash_and_start($node);
cmp_ok(next_id(), '>=', $ahead, 'a raised mark survives a crash');

# A mark below the durable one, but above ticks that are reserved: before the first ID,
# because no standby confirms the reserve
restart_with($node, "snowflake.reserve_time = '4s'\nsynchronous_standby_names = 'nobody'\nwal_level = replica\nmax_wal_senders = 1");
my $mark = mark_of($node);
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

done_testing();
