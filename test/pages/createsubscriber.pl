# pg_createsubscriber makes a server of its own of a standby, as docs/standbys.md
# has it: with another worker ID, and replication both ways.

use Page;
use SnowflakeTest;

if (`pg_config --version` =~ /^PostgreSQL 1[56]/)
{
	plan skip_all => 'there is no pg_createsubscriber before PostgreSQL 17';
}

my $page = Page->claim('docs/standbys.md', 'pg_createsubscriber');
my $a = new_server('a', { allows_streaming => 'logical' });

# By ALTER SYSTEM, so that the copy gets it in the worst way.
sql($a, 'ALTER SYSTEM SET snowflake.worker_id = 1');
$a->restart;
sql($a, q{
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	INSERT INTO t SELECT FROM generate_series(1, 1000)});
$a->backup('backup');
my $b = server_of_backup('b', $a, 'backup', { has_streaming => 1 });
is(sql($b, 'SHOW snowflake.worker_id'), 1, 'a copy has the worker ID of its origin');

# The page's commands.  a continues meanwhile.
my @clients = start_clients($a, 2);
wait_for_clients(@clients);
$a->wait_for_replay_catchup($b);
my $mark = mark_of($b);
my $data = $b->data_dir;
$b->{_pid} = undef;
foreach my $command (
	Page::commands(
		$page->example(
			'pg_createsubscriber -D',
			'/var/lib/postgresql/17/b' => $data,
			'/var/log/postgresql/b.log' => $b->logfile,
			'-d shop' => '-d postgres',
			'host=10.0.0.1 dbname=shop user=postgres' => $a->connstr('postgres') =~ s/'/'\\''/gr)))
{
	is(system_log('sh', '-c', "{ $command\n} >>'$data.out' 2>&1"), 0, $command)
	  or diag(slurp_file("$data.out"));
}
$b->_update_pid(1);
is(sql($b, $page->example('FROM snowflake_stat')), 2, 'the new server has a worker ID of its own');
$b->wait_for_log(qr/snowflake IDs have scheme .*, worker ID 2$/m);
pass('the new server logs its worker ID');

# Both ways
sql($b, $page->example('ALTER SUBSCRIPTION', 'ROLE replicator' => 'ROLE regress_replicator'));
sql($a, $page->example('CREATE SUBSCRIPTION a_from_b',
		'host=10.0.0.2 dbname=shop user=replicator' => $b->connstr('postgres') =~ s/'/''/gr . ' user=regress_replicator'));
wait_until_true($a, q{SELECT count(*) > 0 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel});
my @of_b = start_clients($b, 2);
wait_for_clients(@of_b);
end_clients($_) foreach $a, $b;
my @lists = (finish_clients(@clients), finish_clients(@of_b));
my $ledger = new_ledger();
$ledger->{seen} = {};
note_ids($ledger, @lists);
is($ledger->{duplicates}, 0, "no duplicates among $ledger->{ids} IDs");
is(scalar(grep { $_ <= $mark } map { @$_ } @lists[ 2, 3 ]), 0, 'IDs of the new server are above its mark');
foreach my $from ($a, $b)
{
	my $lsn = $from->lsn('write');
	wait_until_true($from, "SELECT count(*) = 1 AND bool_and(replay_lsn >= '$lsn') FROM pg_stat_replication");
}
my $sums = 'SELECT count(*), sum(hashint8(id)), count(DISTINCT (snowflake_parse(id)).worker_id) FROM t';
my $of_a = sql($a, $sums);
like($of_a, qr/\|2$/, 'a has rows of two servers');
is(sql($b, $sums), $of_a, 'b has the same rows');

sql($a, 'DROP SUBSCRIPTION a_from_b');
sql($b, 'DROP SUBSCRIPTION b_from_a');
Page::all_taken();
