# snowflake_convert_online() while the clock moves: no pause takes longer, and the default
# waits for the sessions that are older than the swap, and for no other.

use SnowflakeTest;
use SnowflakeTest::Online;

my $node = new_server_with_clock('main');

sub create_table
{
	sql($node, q{
		CREATE TABLE orders (id serial PRIMARY KEY, note text);
		INSERT INTO orders (note) SELECT repeat('x', 500) FROM generate_series(1, 3000)});
	return;
}

# A session, whose process is running until it is told to end.
sub start_session
{
	my %session = (in => "SELECT pg_backend_pid();\n", out => '');
	$session{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres') ],
		'<' => \$session{in},
		'>' => \$session{out},
		'2>' => '/dev/null');
	$session{run}->pump until $session{out} =~ /\n/;
	return \%session;
}

# The backfill rests most of the time, when the clock is set back or ahead.
foreach my $step (-3600, 3600)
{
	create_table();
	my $call = start_converting($node, 'postgres', "'orders', batch_time => '1 ms', work_share => 0.01");
	wait_until_true($node, q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE application_name = 'conversion' AND wait_event_type = 'Extension'},
		'the backfill does not rest');
	set_clock($node, $step);
	ok($call->{run}->finish, "the clock moves by $step s during the backfill, and the call ends")
	  or diag($call->{err});
	set_clock($node, 0);
	sql($node, 'DROP TABLE orders');
}

# Sessions from before the swap, and after it, whatever the clock was when they began.
create_table();
set_clock($node, 3600);
my $old = start_session();
set_clock($node, 0);
sql($node, "CALL snowflake_convert_online('orders', until => 'swap')");
set_clock($node, -3600);
my $new = start_session();
my ($pid) = $old->{out} =~ /(\d+)/;
sql_fails($node, "CALL snowflake_convert_online('orders', give_up_after => '1 ms')",
	qr/DETAIL:  1 sessions are older than the swap, and may have prepared statements: process $pid \(/,
	'a session is older than the swap, although the clock was set back since it began');
$old->{run}->finish;
unlike(sql_error($node, "CALL snowflake_convert_online('orders', give_up_after => '1 min')"),
	qr/ERROR/, 'a session is newer than the swap, although the clock was set back before it began');
$new->{run}->finish;
is(sql($node, 'SELECT count(*) FROM orders'), 3000, 'all rows are there');

# After a restart no session is older.
sql($node, 'DROP TABLE orders');
create_table();
$old = start_session();
sql($node, "CALL snowflake_convert_online('orders', until => 'swap')");
my $mark = sql($node, q{
	SELECT split_part(encode(tgargs, 'escape'), '\000', 1) FROM pg_trigger WHERE tgname = '~snowflake_swapped'});
($pid) = $old->{out} =~ /(\d+)/;
like($mark, qr/^[\d.]+ .*\b$pid\b/, 'the swap keeps the start of the server and process IDs');
$node->stop('immediate');
start_with_clock($node);
unlike(sql_error($node, "CALL snowflake_convert_online('orders', give_up_after => '1 min')"),
	qr/ERROR/, 'after a restart, the default waits for nobody');
$old->{run}->kill_kill;

done_testing();
