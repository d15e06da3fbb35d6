# A standby that is promoted never repeats an ID of a row that reached it, even
# with a clock that is behind.

use SnowflakeTest;

foreach my $case ([ 0, 0 ], [ 3, 0 ], [ 0, 1 ], [ 3, 1 ])
{
	my ($back, $synchronous) = @$case;
	my $what = ($synchronous ? 'synchronous' : 'asynchronous')
	  . " standby, clock $back s behind";
	my $ledger = new_ledger();
	my %result = failover(
		$ledger, "${back}_$synchronous",
		back => $back,
		synchronous => $synchronous);

	like($result{while_standby},
		qr/ERROR:  25006: cannot generate snowflake IDs during recovery/,
		"$what: the standby generates no IDs");
	cmp_ok(scalar(@{ $result{stored} }), '>', 0, "$what: the standby has rows");
	cmp_ok($result{mark}, '>', $result{stored}->[-1],
		"$what: the standby has a mark above its rows");
	is(verdict($ledger), '0 duplicates, 0 falls',
		"$what: no duplicates among $ledger->{ids} IDs");
	is(join("\n", @{ $result{errors} }), '', "$what: no call failed");

	# What the primary made and the standby did not receive is lost with the
	# primary's WAL.  A right clock is above that too.
	if ($back == 0)
	{
		my ($last) =
		  sort { $b <=> $a } map { @$_ } @{ $result{received} };
		cmp_ok($result{first}, '>', $last,
			"$what: no received ID is repeated");
	}
}

done_testing();
