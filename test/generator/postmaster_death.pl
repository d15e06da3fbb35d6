# Sessions that generate IDs in a loop end when the postmaster has died, so that
# the server can be started again.

use SnowflakeTest;

my $node = new_server('main');

# Loops that exhaust ticks, and wait for the next one by short sleeps, and one
# that hardly ever waits.
my %loops = (
	'one call for each ID' =>
	  'SELECT count(snowflake_nextval()) FROM generate_series(1, 30000) a, generate_series(1, 30000) b',
	'blocks of IDs' =>
	  'DO $$ BEGIN LOOP PERFORM count(*) FROM snowflake_nextval(100000); END LOOP; END $$',
	'a few IDs in each tick' =>
	  'DO $$ BEGIN LOOP PERFORM snowflake_nextval(), md5(repeat(i::text, 1000)) FROM generate_series(1, 10) i; END LOOP; END $$');

# Does a process run?  One that nobody has waited for yet, or just now, does not.
sub runs ($pid)
{
	open(my $stat, '<', "/proc/$pid/stat") or return 0;
	return (<$stat> // 'Z') !~ /\) [ZX] /;
}

foreach my $loop (sort keys %loops)
{
	my @sessions = start_queries($node,
		map { "SET application_name = looping; $_" } ($loops{$loop}) x 4);
	wait_until_true($node, "SELECT count(*) = 4 FROM pg_stat_activity WHERE application_name = 'looping' AND state = 'active'");
	my @pids = split /\n/, sql($node, "SELECT pid FROM pg_stat_activity WHERE application_name = 'looping'");

	kill 'KILL', (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
	my $end = time + 60;
	usleep(50_000) while (grep { runs($_) } @pids) && time < $end;
	is(scalar(grep { runs($_) } @pids), 0, "$loop: sessions end after the postmaster");
	kill 'QUIT', @pids;
	finish_queries(@sessions);

	kill_postmaster($node);
	$node->start;
	ok(sql($node, 'SELECT snowflake_nextval()'), "$loop: the server starts again");
}

done_testing();
