# Cascading and delayed standbys, as docs/standbys.md has them.  Their clocks are
# behind, so that only the mark keeps their IDs above what is there.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/standbys.md', 'A delayed standby');

sub standby ($name, $of, $behind, @conf)
{
	return server_of_backup($name, $of, 'backup', { has_streaming => 1, clock => -$behind }, @conf);
}

my $primary = new_primary('primary', 'snowflake.worker_id = 1');
sql($primary, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
$primary->backup('backup');
my $first = standby('first', $primary, 10);
$first->backup('backup');
my $second = standby('second', $first, 20);
my @delay = split /\n/, $page->example('recovery_min_apply_delay');
my $delayed = standby('delayed', $primary, 3600, @delay);
is(sql($second, 'SELECT sender_port FROM pg_stat_wal_receiver'),
	$first->port, 'the second standby streams from the first');

# Three lives: the primary's, that of the first standby, and that of the second.
# Rows and IDs of each are below the IDs of the next.
my $ledger = new_ledger();
my ($node, @others) = ($primary, $first, $second);
my %known;
while (1)
{
	my $begin = first_id($ledger, $node);
	foreach my $other (@others)
	{
		sql_fails($other, 'SELECT snowflake_nextval()', qr/ERROR:  25006:/,
			$other->name . ' makes none while ' . $node->name . ' lives');
	}
	my @clients = start_clients($node, 4);
	wait_for_clients(@clients);
	usleep(300_000);
	my $next = shift @others;
	if (!defined $next)
	{
		end_clients($node);
		note_ids($ledger, [$begin], finish_clients(@clients));
		last;
	}
	kill_postmaster($node);
	finish_clients(@clients);
	$next->promote;
	my @rows = grep { !$known{$_}++ } @{ stored_ids($next) };
	note_ids($ledger, [$begin], \@rows);
	cmp_ok(scalar(@rows), '>', 0, $next->name . ' has rows, and takes over');
	$node = $next;
}
is(verdict($ledger), '0 duplicates, 0 falls', "no duplicates among $ledger->{ids} IDs");

# The delayed standby has received all of the first life and replayed nothing.
is(sql($delayed, 'SELECT count(*) FROM t'), 0, 'a delayed standby has no rows yet');
cmp_ok(mark_of($delayed), '<', mark_of($second), 'a delayed standby has an old mark');
is(sql($delayed, $page->example('FROM snowflake_stat')) =~ s/\|[^|]*$//r,
	'9|' . mark_of($delayed), 'snowflake_stat of a delayed standby shows the old mark');
$delayed->promote;
my $stored = stored_ids($delayed);
cmp_ok(scalar(@$stored), '>', 0, 'a delayed standby has all rows when it is promoted');
$ledger = new_ledger();
note_ids($ledger, $stored);
is(sql($delayed, 'SHOW snowflake.worker_id'), 9, 'a delayed standby has a worker ID of its own');
my $id = first_id($ledger, $delayed);
note_ids($ledger, [$id]);
is(verdict($ledger), '0 duplicates, 0 falls', 'IDs of a promoted delayed standby are above its rows');
is(sql($delayed, "SELECT (snowflake_parse($id)).worker_id"), 9, 'IDs of a promoted delayed standby have its worker ID');

Page::all_taken();
