# docs/registry.md as its reader would do it: a registry and two servers.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $page = Page->claim('docs/registry.md');
my $registry = PostgreSQL::Test::Cluster->new('registry');
$registry->init;
$registry->start;
$registry->safe_psql('postgres', 'CREATE DATABASE ids');
unlike(
	sql_error($registry, $page->example('snowflake_create_registry(1, 511'), dbname => 'ids'),
	qr/ERROR/,
	'a registry in a server without the library in shared_preload_libraries');

my $conf = $page->example('snowflake.registry = ',
	'host=registry.example' => 'host=' . $registry->host . ' port=' . $registry->port);
my $use = $page->example('SELECT snowflake_nextval()');
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
is( $registry->safe_psql('ids', $page->example('FROM snowflake_workers')) =~ s/\|.*$//mgr,
	join("\n", sort { $a <=> $b } @workers),
	'the registry shows them');

my $free = $page->example('snowflake_free_worker');
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

# Grants may be lost, so none is made anew; but others are granted at once.
my $ask = q{SELECT worker_id, current_user FROM snowflake_get_grant('shardingsphere', 0, NULL,
	snowflake_lower_bound(now(), 'shardingsphere'), '{}', gen_random_uuid(), 'page')};
like($registry->safe_psql('ids', $page->example('snowflake_registry_lost')),
	qr/^20\d\d-/, 'until when worker IDs rest');
like(sql_error($registry, "SET ROLE id_server; $ask", dbname => 'ids'),
	qr/ERROR:  \w{5}: .*no worker ID/, 'a server gets none');
$registry->safe_psql('ids', $page->example('512, 1023'));
is($registry->safe_psql('ids', $ask, extra_params => [ '-U', 'id_server' ]),
	'513|id_server', 'others are granted at once');
$registry->stop;
Page::all_taken();
done_testing();
