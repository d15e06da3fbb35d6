# A server restored from a backup, to the end or to a point in time, hands out
# only IDs above every row that it has, whatever its clock says.

use SnowflakeTest;

my $node = new_server('main', { has_archiving => 1, allows_streaming => 1 });
sql($node, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');

# The backup is taken under load, which continues after it.
my @clients = start_clients($node, 4);
usleep(300_000);
$node->backup('backup');
usleep(300_000);
my $target = sql($node, "SELECT pg_create_restore_point('target')");
usleep(1_500_000);
$node->stop('fast');
my ($last) = sort { $b <=> $a } map { @$_ } finish_clients(@clients);

sub restored_goes_on ($name, $conf, $back)
{
	my $what = "$name, clock $back s behind";

	# The immediate stop may leave half a file in the archive that they share.
	my $restored = server_of_backup($name, $node, 'backup',
		{ has_restoring => 1, standby => 0, clock => -$back },
		'archive_mode = off', 'recovery_target_action = promote', $conf);
	wait_until_true($restored, 'SELECT NOT pg_is_in_recovery()');

	my $ledger = new_ledger();
	my $stored = stored_ids($restored);
	cmp_ok(scalar(@$stored), '>', 0, "$what: the restored server has rows");
	note_ids($ledger, $stored);
	my $first = first_id($ledger, $restored);
	@clients = start_clients($restored, 4);
	usleep(300_000);
	$restored->stop('immediate');
	note_ids($ledger, [$first], finish_clients(@clients));
	is(verdict($ledger), '0 duplicates, 0 falls',
		"$what: no duplicates among $ledger->{ids} IDs");
	return $first;
}

my $first = restored_goes_on('backup', '', 0);
cmp_ok($first, '>', $last, 'restored with a right clock, no received ID is repeated');
restored_goes_on('backup_slow', '', 5);
$first =
  restored_goes_on('target', "recovery_target_name = 'target'", 0);
cmp_ok($first, '>', $last,
	'restored with a right clock, no ID generated after the target is repeated');
restored_goes_on('target_slow', "recovery_target_name = 'target'", 5);

done_testing();
