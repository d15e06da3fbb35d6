# What docs/registry.md and docs/registry-recovery.md have for a registry in use: each change,
# while clients of two servers insert.  None gets an error, no row is missing, and no two rows have the same ID.

use Page;
use SnowflakeTest;

my $page = Page->section('docs/registry.md');
my $recovery = Page->section('docs/registry-recovery.md');
my $name = 'regress_id_server';

# A registry as on the page, with short grants and some of the worker IDs.
sub make_registry ($node, $first, $last, $from, $text, %more)
{
	my $sql = $from->example($text, %more) =~ s/\bid_server\b/$name/gr =~ s/CREATE EXTENSION snowflake_registry;/CREATE EXTENSION IF NOT EXISTS snowflake_registry;/r;

	$sql =~ s/create\(\d+, \d+, 'shardingsphere', new/create($first, $last, 'shardingsphere', grant_time => '2 s', new/ or die;
	sql($node, $sql);
	return;
}

# A page's line for another place of the registry.
sub place ($from, $text, @nodes)
{
	my $hosts = join ',', map { $_->host } @nodes;
	my $ports = join ',', map { $_->port } @nodes;

	return $from->example($text) =~ s/host=\S+ dbname=ids user=id_server/host=$hosts port=$ports dbname=postgres user=$name/r;
}

my ($registry, $other) = map { plain_server($_, { allows_streaming => 1 }) } 'registry', 'other';
make_registry($registry, 1, 255, $page, 'snowflake_registry.create(1, 511');
my $standby = new_standby($registry, 'standby');
my @servers = map { new_server($_, place($page, "shared_preload_libraries = 'snowflake'\nsnowflake.registry", $registry, $standby)) } 'a', 'b';
my ($a, $b) = @servers;
my $written = 0;

sub worker_ids { return map { sql($_, 'SELECT worker_id FROM snowflake_stat') } @servers; }

# All servers have worker IDs for which an expression is true, and their clients insert with them.
sub all_use ($true, $what)
{
	foreach my $node (@servers)
	{
		becomes_true($node, "
				SELECT count(*) > 100 FROM t JOIN snowflake_stat ON worker_id = (snowflake_parse(id)).worker_id WHERE $true",
			$node->name . ": $what");
	}
	return;
}

sql($_, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())') foreach @servers;
my %writing = map { $_->name => start_writing($_, 't', 2) } @servers;
all_use('worker_id BETWEEN 1 AND 255', 'clients insert with worker IDs of the registry');

# The settings are changed, a worker ID is taken from a server, and others are granted.
sql($registry, $page->example('grant_time => ', '15 min' => '3 s'));
my ($first, $second) = worker_ids();
sql($registry, $page->example('SELECT snowflake_registry.free_worker', 'free_worker(1' => "free_worker($first"));
all_use("worker_id NOT IN (0, $first)", 'clients insert after a worker ID was taken from a');
is((worker_ids())[1], $second, 'b keeps its worker ID');
my $others = "alter('shardingsphere', 512";
sql($registry, $recovery->example($others, '512' => '256', '1023' => '511'));
all_use('worker_id BETWEEN 256 AND 511', 'clients insert with other worker IDs');

# It fails over.  Its standby grants nothing until the promotion is confirmed.
my @before = worker_ids();
$registry->wait_for_catchup($standby);
$registry->stop('immediate');
$standby->promote;
is(sql($standby, $recovery->example('SELECT snowflake_registry.confirm_promotion')), 't', 'a promotion is confirmed');
all_use('worker_id BETWEEN 256 AND 511 AND worker_id NOT IN (' . join(', ', @before) . ')', 'clients insert with worker IDs of the next slice');

# Grants may be lost.
sql($standby, $recovery->example('SELECT snowflake_registry.report_loss'));
sql($standby, $recovery->example($others, '1023' => '767'));
all_use('worker_id BETWEEN 512 AND 767', 'clients insert with other worker IDs after a loss');

# The registry is lost, and another one takes its place before the grants end.
$standby->stop('immediate');
make_registry($other, 768, 895, $recovery, "CREATE EXTENSION snowflake_registry;\nSELECT snowflake_registry.create(512, 1023");
sql($other, $page->example('CREATE ROLE') =~ s/\bid_server\b/$name/gr =~ s/.*(?=CREATE ROLE)//sr);
reload_with($_, place($recovery, 'host=other.example', $other)) foreach @servers;
all_use('worker_id BETWEEN 768 AND 895', 'clients insert with worker IDs of another registry');

# Its clock was years ahead, so it is created again.
make_registry($other, 896, 1023, $recovery, "SELECT snowflake_registry.drop('shardingsphere')");
all_use('worker_id BETWEEN 896 AND 1023', 'clients insert with worker IDs of a registry that was created again');

# Back to fixed worker IDs, one server after the other
my $n = 0;
foreach my $node (@servers)
{
	$n++;
	$written += stop_writing($writing{ $node->name });
	restart_with($node, "snowflake.registry = ''\nsnowflake.worker_id = $n");
	$writing{ $node->name } = start_writing($node, 't', 2);
}
all_use("worker_id = $n OR worker_id = 1", 'clients insert with a fixed worker ID');
$written += stop_writing($_) foreach values %writing;

my @ids = map { split /\n/, sql($_, 'SELECT id FROM t') } @servers;
my %ids = map { $_ => 1 } @ids;
cmp_ok($written, '>', 1000, 'clients have inserted rows');
is(scalar(@ids), $written, 'no row is missing');
is(scalar(keys %ids), $written, 'no two rows have the same ID');

done_testing();
