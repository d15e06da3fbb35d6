# No ID is handed out again after a crash, with the clock set back besides.

use SnowflakeTest;

my $node = new_server_with_clock('main', 'restart_after_crash = on');
my $clock = 0;
sql($node, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');

my $ledger = new_ledger();

sub report ($what)
{
	is( verdict($ledger),
		'0 duplicates, 0 falls',
		"$what ($ledger->{ids} IDs)");
}

foreach my $round (1 .. 12)
{
	live($ledger, $node, sub { kill_postmaster($node) });
	$clock -= (0, 0.5, 3)[ $round % 3 ];
	set_clock($node, $clock);
	start_with_clock($node);
}
report('12 times kill -9 of the postmaster and a clock set back');

foreach my $round (1 .. 3)
{
	live($ledger, $node, sub { kill_backend($node) });
}
report('kill -9 of a backend');

foreach my $mode ('immediate', 'fast')
{
	foreach my $back (0, 3)
	{
		live($ledger, $node, sub { $node->stop($mode) });
		$clock -= $back;
		set_clock($node, $clock);
		start_with_clock($node);
	}
	report("after a stop of mode $mode, IDs are distinct and increase");
}

# What is stored is among what was received, or was lost on the way to the
# client: nothing was stored twice, because of the primary key.
is(sql($node, 'SELECT count(*) > 1000 AND max(id) <= snowflake_nextval() FROM t'),
	't', 'new IDs are above the stored ones');
cmp_ok($ledger->{longest_wait}, '<', 5.5,
	sprintf('the longest wait for a first ID was %.1f s',
		$ledger->{longest_wait}));
done_testing();
