# docs/registry.md as its reader would do it: a registry and two servers.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $page = slurp_file("$FindBin::RealBin/../../docs/registry.md");

# The blocks of a section, in one language.
sub blocks
{
	my ($section, $language) = @_;
	my ($text) = $page =~ /^## \Q$section\E\n(.*?)(?=^## |\z)/ms;
	die "there is no section $section" unless defined $text;
	return $text =~ /^```\Q$language\E\n(.*?)^```$/msg;
}

my $registry = PostgreSQL::Test::Cluster->new('registry');
$registry->init;
$registry->start;
$registry->safe_psql('postgres', 'CREATE DATABASE ids');
my ($create) = blocks('Create it', 'sql');
like($create, qr/snowflake_create_registry\(/, 'the page creates a registry');
unlike(sql_error($registry, $create, dbname => 'ids'), qr/ERROR/,
	'in a server without the library in shared_preload_libraries');

my ($conf) = blocks('Have servers use it', '');
like($conf, qr/^snowflake\.registry = 'host=registry\.example dbname=ids user=id_server'$/m,
	'the page has the settings of a server');
my ($host, $port) = ($registry->host, $registry->port);
$conf =~ s/host=registry\.example/host=$host port=$port/;
my ($use) = blocks('Have servers use it', 'sql');
my @workers;
my @servers;
foreach my $name ('one', 'two')
{
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', $conf);
	$node->start;
	push @servers, $node;

	# The worker may still be asking.
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; SELECT snowflake_nextval(); DROP EXTENSION snowflake');
	my ($worker) = $node->safe_psql('postgres', $use) =~ /^(\d+)\|.*\n\d+$/;
	push @workers, $worker;
	cmp_ok($worker, '>', 0, "server $name has a worker ID");
}
isnt($workers[0], $workers[1], 'each its own');
my ($view) = blocks('See who has which', 'sql');
is( $registry->safe_psql('ids', $view) =~ s/\|.*$//mgr,
	join("\n", sort { $a <=> $b } @workers),
	'the registry shows them');

my ($free) = blocks('Take a worker ID from a server', 'sql');
my ($taken) = $free =~ /snowflake_free_worker\((\d+)/;
ok(scalar(grep { $_ == $taken } @workers), 'the page takes one of them');
$registry->safe_psql('ids', $free);
is( $registry->safe_psql('ids',
		"SELECT state FROM snowflake_workers WHERE worker_id = $taken"),
	'reserved',
	'it is reserved until its grant is over');
$_->stop foreach @servers;
is( $registry->safe_psql('ids',
		"SELECT count(*) FROM snowflake_workers WHERE state = 'held'"),
	'0',
	'servers that are shut down hold none');
$registry->stop;
done_testing();
