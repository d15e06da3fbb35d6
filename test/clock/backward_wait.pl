# The clock of a running server is changed, with snowflake.clock_backward = wait: no
# ID is handed out twice, and calls wait or fail, without a restart.

use SnowflakeTest;

my $node = new_server_with_clock('main', 'snowflake.clock_backward = wait', 'snowflake.max_clock_backward = 4s');
sql($node, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');

my $ledger = new_ledger();
my @clients = start_clients($node, 8);
my $clock = 0;
my $refused = qr/55000: clock is too far behind the last snowflake ID/;

sub step ($seconds)
{
	$clock += $seconds;
	set_clock($node, $clock);
}

usleep(300_000);
foreach my $back (0.001, 0.1, 3)
{
	step(-$back);
	my $start = time;
	my $id = first_id($ledger, $node);
	cmp_ok(time - $start, '<', $back + 10, "a call waits for a step of -$back s");
	usleep(200_000);
}
cmp_ok($ledger->{longest_wait}, '>', 2, 'the longest wait took over 2 s');

step(-3600);
sql_fails($node, 'SELECT snowflake_nextval()', $refused, 'calls fail after a step of -1 h');
step(3600);
ok(first_id($ledger, $node), 'calls succeed when the clock is correct again');
usleep(200_000);

my $offset = -s $node->logfile;
step(3600);
ok(first_id($ledger, $node), 'IDs follow a step of +1 h');
$node->wait_for_log(qr/WARNING:  clock jumped ahead by (359|360)\d{4} ms/,
	$offset);
like(slurp_file($node->logfile, $offset),
	qr/DETAIL:  The clock reads \d{4}-.*, but the last snowflake ID and the time elapsed since then indicate \d{4}-/,
	'a step of +1 h is logged with both times');
usleep(1_500_000);
my @warnings = slurp_file($node->logfile, $offset) =~ /clock jumped ahead/g;
is(scalar(@warnings), 1, 'a step of +1 h is logged once');
step(-3600);
sql_fails($node, 'SELECT snowflake_nextval()', $refused, 'calls fail after the step back by 1 h');
step(3600);
ok(first_id($ledger, $node), 'calls succeed when the clock is ahead again');
usleep(200_000);

sql($node, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'client'");
my @received = finish_clients(@clients);
note_ids($ledger, @received);
cmp_ok($ledger->{ids}, '>', 10000, 'clients received more than 10000 IDs');
is(verdict($ledger), '0 duplicates, 0 falls', "no duplicates among $ledger->{ids} IDs");

# A mark that is raised may be ahead of the clock by reserve_time and 60 s, as at a start.
change_setting($node, 'snowflake.max_clock_backward', '100ms');
my $raised = sql($node, q{
	SELECT snowflake_nextval();
	SELECT snowflake_raise_mark(snowflake_lower_bound(clock_timestamp() + interval '3 s'))});
$raised =~ s/.*\n//;
cmp_ok(first_id($ledger, $node), '>=', $raised, 'a call waits for a mark that was raised');

# One that is ahead by less delays calls until then, not for what is reserved.
reload_with($node, "snowflake.max_clock_backward = 4s\nsnowflake.reserve_time = 20s");
$node->poll_query_until('postgres', "SELECT current_setting('snowflake.reserve_time') = '20s'");
sql($node, "SELECT snowflake_nextval() FROM pg_sleep(1)");
my $begun = time;
sql($node, q{
	SELECT snowflake_nextval();
	SELECT snowflake_raise_mark(snowflake_lower_bound(clock_timestamp() + interval '5 ms'))});
ok(first_id($ledger, $node), 'an ID after a mark that is a bit ahead');
cmp_ok(time - $begun, '<', 10, 'that is not after reserve_time');
$node->append_conf('postgresql.conf', 'snowflake.reserve_time = 1s');

# A jump outlives a restart, because the mark has it.
step(-3600);
$node->stop;
$offset = -s $node->logfile;
start_with_clock($node);
$node->wait_for_log(
	qr/WARNING:  clock is too far behind the mark of snowflake IDs\n.*DETAIL:  The mark is .*\n.*HINT:  .*\n.*CONTEXT:  while checking at server start/,
	$offset);
pass('the log says so at the start');
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/55000: clock is too far behind the mark of snowflake IDs.*DETAIL:  The mark is \d+ \(\d{4}-.* in this scheme\), and the clock reads \d{4}-.*HINT:.*set "snowflake\.clock_backward" to "continue"/s,
	'after a restart the mark is ahead of the clock');
change_setting($node, 'snowflake.max_lead', '2h');
cmp_ok(first_id($ledger, $node), '>', $ledger->{last},
	'with max_lead, IDs continue above a mark ahead of the clock');

done_testing();
