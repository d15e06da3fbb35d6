# snowflake_convert_online() that is killed at random moments, while clients use the
# tables: the same call continues, and no row is lost, changed or an orphan.
#
# SNOWFLAKE_KILLS in the environment is how often (9), SNOWFLAKE_SEED repeats a run.

use SnowflakeTest::Online;
use SnowflakeTest;

my $nkills = $ENV{SNOWFLAKE_KILLS} // 9;
my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1e6));
my $norders = 3000;
my $call = "CALL snowflake_convert_online('orders', batch_time => '5 ms', work_share => 0.3";

srand($seed);
note "seed $seed";
my $node = new_server('main', 'wal_level = logical', 'restart_after_crash = on', 'log_min_messages = log');
sql($node, 'CREATE ROLE regress_reader');

# How a session or the server ends.
my %kills = (
	'pg_terminate_backend()' => sub { sql($node, "SELECT pg_terminate_backend($_[0])") },
	'pg_cancel_backend()' => sub { sql($node, "SELECT pg_cancel_backend($_[0])") },
	'kill -9 of the session' => sub { crash_process($node, $_[0]) },
	'an immediate stop' => sub { $node->stop('immediate') });

sub server_is_up
{
	$node->start(fail_ok => 1) if !-f $node->data_dir . '/postmaster.pid';
	wait_until_true($node, 'SELECT true', 'the server does not come back');
}

my @names = sort keys %kills;
my $done = 0;
my %phases;
create_shop($node, 'postgres', $norders);
for (my $n = 0; $n < $nkills; $n++)
{
	my $name = $names[ $n % @names ];
	my $clients = start_shoppers($node, 'postgres', $norders, reconnect => 1, rate => 30);
	my $err = '';
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=conversion', '-c', "$call)" ],
		'<' => \undef, '>' => '/dev/null', '2>' => \$err);
	my $end = time + 0.3 + rand(2.4);
	$run->pump_nb, sleep 0.02 while time < $end && $run->pumpable;
	my $pid = sql($node, q{SELECT max(pid) FROM pg_stat_activity WHERE application_name = 'conversion'});
	if ($pid ne '')
	{
		$kills{$name}->($pid);
	}
	eval { $run->finish };
	my ($phase) = $err =~ /.*phase "([^"]+)"/s;
	$phases{ $phase // 'none' }++;
	note "$name after phase " . ($phase // 'none');
	unlike($err =~ s/ERROR:  canceling statement due to user request//r, qr/ERROR/, "the conversion continued before $name") or diag($err);
	stop_shoppers($clients);
	server_is_up();
	is(shop_is_whole($node, 'postgres', $norders), '', "after $name, no row is lost or changed");

	# Begin with a new table when it is complete.
	if ($pid eq '' || sql($node, q{SELECT state FROM snowflake_convert_plan('orders') ORDER BY step DESC LIMIT 1}) eq 'done')
	{
		is(nothing_is_left($node, 'postgres'), '', 'nothing is left when the conversion is complete');
		$done++;
		sql($node, 'SET client_min_messages = warning; DROP PUBLICATION partly; DROP TABLE orders, lines, events, audit CASCADE; DROP FUNCTION touch, audit, instead');
		create_shop($node, 'postgres', $norders);
	}
}
note join ', ', map { "$_: $phases{$_}" } sort keys %phases;

my ($out, $err);
is($node->psql('postgres', "$call)", stdout => \$out, stderr => \$err), 0, 'the same call completes the conversion') or diag($err);
is(shop_is_whole($node, 'postgres', $norders), '', 'no row is lost or changed');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');
is( sql($node, q{
		SELECT string_agg(format('%s.%s', attrelid::regclass, attname), ', ' ORDER BY attrelid::regclass::text, attname) FROM pg_attribute
		WHERE attrelid IN ('orders'::regclass, 'lines'::regclass, 'events'::regclass) AND atttypid = 'int8'::regtype}),
	'events.order_id, lines.id, lines.order_id, orders.id, orders.parent_id', 'all columns are bigint');

done_testing();
