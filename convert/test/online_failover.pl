# snowflake_convert_online() and failovers: a standby is promoted in the middle of a
# phase, and the same call continues there.
#
# SNOWFLAKE_FAILOVERS in the environment is how often (3), SNOWFLAKE_SEED repeats a run.

use List::Util qw(min shuffle);
use SnowflakeTest::Online;
use SnowflakeTest;

my $norders = 300;
my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1e6));

srand($seed);
note "seed $seed";
my $primary = new_primary('primary', 'wal_level = logical');
sql($primary, 'CREATE ROLE regress_reader');
create_shop($primary, 'postgres', $norders);

# What comes from a primary is replayed, and the standby was the only one.
sub fail_over ($standby)
{
	$primary->stop('immediate');
	$standby->promote;
	$primary = $standby;
	return;
}

sub wait_until_asleep ($event)
{
	wait_until_true($primary, "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'conversion' AND wait_event = '$event'",
		"the conversion does not wait for $event");
	return;
}

my $standby = new_standby($primary, 'standby');
$primary->wait_for_catchup($standby);

# The moments of a failover, in the order of the phases: what is complete, and how the
# conversion waits for a session that has done something.  Without one, the standby is
# synchronous.
my @moments = (
	{ until => 'prepare' },
	{ until => 'prepare', session => 'SELECT FROM orders WHERE id = 7 FOR UPDATE', says => qr/waiting to copy locked rows/ },
	{ until => 'backfill' },
	{ until => 'backfill', session => 'SELECT FROM audit', event => 'virtualxid' },
	{ until => 'foreign keys' },
	{ until => 'foreign keys', session => 'SELECT FROM orders', says => qr/waiting to lock table/ },
	{ until => 'foreign keys', swap => 1 },
	{ until => 'swap' });
my @chosen = sort { $a <=> $b } (shuffle 0 .. $#moments)[ 0 .. min($#moments, ($ENV{SNOWFLAKE_FAILOVERS} // 3) - 1) ];
foreach my $i (@chosen)
{
	my $moment = $moments[$i];
	my $name = "failover $i, after phase $moment->{until}";
	my ($session, $call);

	note $name;
	$standby = new_standby($primary, "standby$i") if $standby eq $primary;
	if (!defined $moment->{session})
	{
		sql($primary, q{ALTER SYSTEM SET synchronous_standby_names = '*'});
		$primary->reload;
		wait_until_true($primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
	}
	my $err = convert_online($primary, 'postgres', "'orders', until => '$moment->{until}'");
	unlike($err, qr/ERROR/, "$name: the conversion came that far") or diag($err);
	sql($primary, sql($primary, q{SELECT statement FROM snowflake_convert_plan('orders') WHERE state = 'next' AND phase = 'swap'})) if $moment->{swap};
	if (defined $moment->{session})
	{
		$session = $primary->background_psql('postgres');
		$session->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $moment->{session}");
		$call = start_converting($primary, 'postgres', "'orders'", $moment->{says});
		wait_until_asleep($moment->{event}) if defined $moment->{event};
		$primary->wait_for_catchup($standby);
	}
	fail_over($standby);
	finish_converting($call) if defined $call;
	eval { $session->quit } if defined $session;
	is(sql($primary, "SELECT count(*) FROM snowflake_convert_plan('orders') WHERE phase = '$moment->{until}' AND state <> 'done'"),
		'0', "$name: what is done is done on the new primary");
	is(shop_is_whole($primary, 'postgres', $norders), '', "$name: no row is lost or changed");
}
my $err = convert_online($primary, 'postgres', "'orders'");
unlike($err, qr/ERROR/, 'the same call completes the conversion on a server that was a standby') or diag($err);
is(shop_is_whole($primary, 'postgres', $norders), '', 'no row is lost or changed');
is(nothing_is_left($primary, 'postgres'), '', 'nothing is left');
done_testing();
