# A standby that is promoted never repeats an ID of a row that reached it, even
# with a clock that is behind.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $round = 0;

sub failover
{
	my ($back, $synchronous) = @_;
	my $what = ($synchronous ? 'synchronous' : 'asynchronous')
	  . " standby, clock $back s behind";

	$round++;
	my $primary = PostgreSQL::Test::Cluster->new("primary$round");
	$primary->init(allows_streaming => 1);
	$primary->append_conf('postgresql.conf',
		"shared_preload_libraries = 'snowflake'");
	$primary->start;
	$primary->safe_psql(
		'postgres', q{
		CREATE EXTENSION snowflake;
		CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())});
	$primary->backup('backup');

	my $standby = PostgreSQL::Test::Cluster->new("standby$round");
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	set_clock($standby, -$back);
	start_with_clock($standby);
	if ($synchronous)
	{
		$primary->append_conf('postgresql.conf',
			"synchronous_standby_names = '*'");
		$primary->reload;
		$primary->poll_query_until('postgres',
			"SELECT sync_state = 'sync' FROM pg_stat_replication")
		  or die;
	}

	my @clients = start_clients($primary, 8);
	usleep(700_000);
	like(
		sql_error($standby, 'SELECT snowflake_nextval()'),
		qr/ERROR:  25006: cannot make snowflake IDs during recovery/,
		"$what: none while it is a standby");

	# The primary dies under load, and the standby takes over.
	kill_postmaster($primary);
	$standby->promote;
	my @received = finish_clients(@clients);

	my $ledger = new_ledger();
	my $stored = stored_ids($standby);
	cmp_ok(scalar(@$stored), '>', 100, "$what: rows reached it");
	cmp_ok(mark_of($standby), '>', $stored->[-1],
		"$what: and so did a mark above them");
	note_ids($ledger, $stored);

	my $first = first_id($ledger, $standby);
	@clients = start_clients($standby, 8);
	usleep(300_000);
	$standby->stop('immediate');
	note_ids($ledger, [$first], finish_clients(@clients));
	is("$ledger->{duplicates} duplicates, $ledger->{falls} falls",
		'0 duplicates, 0 falls', "$what: $ledger->{ids} IDs");

	# What was acknowledged with synchronous replication is on the standby,
	# so that it is covered too; all else of the primary is not, unless the
	# standby's clock is right.
	if ($back == 0)
	{
		my $last = 0;
		foreach my $id (map { @$_ } @received)
		{
			$last = $id if $id > $last;
		}
		cmp_ok($first, '>', $last, "$what: nothing at all is repeated");
	}
}

failover(0, 0);
failover(3, 0);
failover(0, 1);
failover(3, 1);

done_testing();
