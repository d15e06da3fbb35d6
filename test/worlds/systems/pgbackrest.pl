# pgBackRest, as docs/backups.md has it: a server goes back to a point in time,
# and another one is restored beside it.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/backups.md', 'Backups');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = PostgreSQL::Test::Cluster->new('main');
my $data = $node->data_dir;
my ($host, $port) = ($node->host, $node->port);

# The page's configuration.  The places of its files are given in the environment.
append_to_file(
	"$dir/pgbackrest.conf",
	$page->example(
		'[global]',
		'/var/lib/pgbackrest' => "$dir/repository",
		'/var/lib/postgresql/15/main' => $data));
mkdir "$dir/$_" foreach qw(repository log lock spool);
$ENV{PGBACKREST_CONFIG} = "$dir/pgbackrest.conf";
$ENV{PGBACKREST_LOG_PATH} = "$dir/log";
$ENV{PGBACKREST_LOCK_PATH} = "$dir/lock";
$ENV{PGBACKREST_SPOOL_PATH} = "$dir/spool";
$ENV{PGBACKREST_PG1_SOCKET_PATH} = $host;
$ENV{PGBACKREST_PG1_PORT} = $port;

sub run_commands { is(system_log('sh', '-c', $_), 0, $_) foreach @_; }

$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf',
	join("\n", "shared_preload_libraries = 'snowflake'", $page->example('archive_mode')));
$node->start;
sql($node, 'ALTER SYSTEM SET snowflake.worker_id = 1');
$node->restart;
sql($node, q{
	CREATE EXTENSION snowflake;
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())});
my ($create, $take) = Page::commands($page->example('stanza-create'));
run_commands($create);

# The backup is taken while clients insert.
my @clients = start_clients($node, 4);
wait_for_clients(@clients);
run_commands($take);
my $rows_then = sql($node, 'SELECT count(*) FROM t');
my $target = sql($node, 'SELECT clock_timestamp()');
wait_until_true($node, "SELECT count(*) > $rows_then + 1000 FROM t");
end_clients($node);
my @lists = finish_clients(@clients);
my ($last) = sort { $b <=> $a } map { @$_ } @lists;
my $rows = sql($node, 'SELECT count(*) FROM t');
sql($node, 'SELECT pg_switch_wal()');
$node->stop;

# In place, with a right clock and with one that is an hour behind
my $restore = $page->example('--type=time', '2026-11-21 12:00:00+00' => $target);

sub back_in_time ($behind)
{
	run_commands($restore);
	set_clock($node, -$behind);
	start_with_clock($node);
	wait_until_true($node, 'SELECT NOT pg_is_in_recovery()');
	my $stored = stored_ids($node);
	cmp_ok(scalar(@$stored), '>=', $rows_then, 'a restore to a point in time has the rows before it');
	cmp_ok(scalar(@$stored), '<', $rows, 'a restore to a point in time has no rows after it');
	my $ledger = new_ledger();
	note_ids($ledger, $stored);
	my $first = first_id($ledger, $node);
	note_ids($ledger, [$first]);
	is(verdict($ledger), '0 duplicates, 0 falls', "IDs continue above the restored rows with a clock $behind s behind");
	return $first;
}

back_in_time(3600);
$node->stop;

# Not along the timeline that this began
$restore =~ s/--type=time/--target-timeline=current $&/;
cmp_ok(back_in_time(0), '>', $last, 'with a right clock, IDs are above those that are lost');
is(sql($node, 'SELECT worker_id FROM snowflake_stat'), 1, 'a server restored in place has the same worker ID');

# Beside the server, which keeps running
my $copy = PostgreSQL::Test::Cluster->new('copy');
my $copy_data = $copy->data_dir;
mkdir $copy->basedir;
my ($copy_port, $copy_host) = ($copy->port, $copy->host);
run_commands(
	Page::commands($page->example('--archive-mode=off', '/var/lib/postgresql/15/copy' => $copy_data)));
$copy->append_conf('postgresql.conf', "port = $copy_port\nunix_socket_directories = '$copy_host'");
$copy->start;
wait_until_true($copy, 'SELECT NOT pg_is_in_recovery()');
is(sql($copy, 'SELECT worker_id FROM snowflake_stat'), 2, 'a copy has its own worker ID');
is(sql($copy, 'SHOW archive_mode'), 'off', 'a copy archives nothing');
my $ledger = new_ledger();
$ledger->{seen} = {};
@clients = map { start_clients($_, 4) } $node, $copy;
wait_for_clients(@clients);
end_clients($_) foreach $node, $copy;
note_ids($ledger, finish_clients(@clients));
is($ledger->{duplicates}, 0, "no duplicates among $ledger->{ids} IDs of a server and its copy");

Page::all_taken();
