# docs/registry.md and docs/registry-recovery.md as their reader would do it: a registry and two
# servers.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/registry.md');
my $recovery = Page->claim('docs/registry-recovery.md');
my $registry = plain_server('registry');
sql($registry, 'CREATE DATABASE ids');
unlike(
	sql_error($registry, $page->example('snowflake_registry.create(1, 511', id_server => 'regress_id_server'),
		dbname => 'ids'),
	qr/ERROR/,
	'a registry is created in a server that does not preload the library');

my $conf = $page->example('host=registry.example',
	id_server => 'regress_id_server',
	'host=registry.example' => 'host=' . $registry->host . ' port=' . $registry->port);
my $use = $page->example('SELECT snowflake_nextval()');
my @workers;
my @servers;
foreach my $name ('one', 'two')
{
	my $node = plain_server($name, $conf);
	push @servers, $node;

	# The worker may still be asking.
	sql($node, 'CREATE EXTENSION snowflake; SELECT snowflake_nextval(); DROP EXTENSION snowflake');
	my ($worker) = sql($node, $use) =~ /^(\d+)\|.*\n\d+$/;
	push @workers, $worker;
	cmp_ok($worker, '>', 0, "server $name has a worker ID");
}
isnt($workers[0], $workers[1], 'two servers have different worker IDs');
is( $registry->safe_psql('ids', $page->example('FROM snowflake_registry.workers')) =~ s/\|.*$//mgr,
	join("\n", sort { $a <=> $b } @workers),
	'the registry shows both worker IDs');

my $free = $page->example('SELECT snowflake_registry.free_worker');
my ($taken) = $free =~ /snowflake_registry.free_worker\((\d+)/;
ok(scalar(grep { $_ == $taken } @workers), 'the page takes a worker ID that is held');
$registry->safe_psql('ids', $free);
is( $registry->safe_psql('ids',
		"SELECT state FROM snowflake_registry.workers WHERE worker_id = $taken"),
	'reserved',
	'a worker ID that was taken is reserved until the end of its grant');
$_->stop foreach @servers;

# The server of the registry has a worker ID, too.
restart_with($registry, "shared_preload_libraries = 'snowflake'\n"
	  . $page->example('host=/var/run/postgresql',
		'/var/run/postgresql' => $registry->host, 5432 => $registry->port,
		id_server => 'regress_id_server'));
$registry->safe_psql('ids', 'CREATE EXTENSION snowflake; SELECT snowflake_nextval()');
is( $registry->safe_psql('ids',
		"SELECT datname, usename FROM pg_stat_activity WHERE backend_type = 'snowflake grant'"),
	'ids|regress_id_server',
	'the worker of the registry\'s own server is connected to the database');
restart_with($registry, "shared_preload_libraries = ''\nsnowflake.registry = ''");
is( $registry->safe_psql('ids',
		"SELECT count(*) FROM snowflake_registry.workers WHERE state = 'held'"),
	'0',
	'servers that are shut down hold no worker ID');

# The settings are changed; nobody was promoted.
my $settings = 'SELECT first_worker_id, last_worker_id, reach, slices FROM snowflake_registry.registries';
my $before = $registry->safe_psql('ids', $settings);
$registry->safe_psql('ids', $page->example('grant_time => '));
is($registry->safe_psql('ids', "$settings WHERE grant_time > '10 min'"),
	$before, 'alter() changes only what is named');
is($registry->safe_psql('ids', $recovery->example('SELECT snowflake_registry.confirm_promotion')),
	'f', 'a registry that was not promoted needs no confirmation');

# Ranges of sequences: one is granted, shown, and not granted while some may be lost.
$registry->safe_psql('ids', $page->example('snowflake_registry.add_database', id_server => 'regress_id_server'));
my $range = q{SELECT coalesce(problem_kind, 'granted') FROM snowflake_registry.get_ranges(md5('page')::uuid, NULL, '{}',
	gen_random_uuid(), 0, 'page', '{shop}', '{public.t}', '{2147483647}', '{100}', '{1}', '{500}', '{NULL}', directory => md5('d')::uuid)};
is($registry->safe_psql('ids', $range, extra_params => [ '-U', 'regress_id_server' ]),
	'granted', 'a server gets a range of a sequence');
like($registry->safe_psql('ids', $page->example('FROM snowflake_registry.sequences')),
	qr/^public\.t\|601\|2147483047\|/, 'the view shows the sequence');
like($registry->safe_psql('ids', $page->example('FROM snowflake_registry.range_holders')),
	qr/^page\|shop\|public\.t\|501\|600\|/, 'another one shows who holds its numbers');
$registry->safe_psql('ids', $recovery->example('files of yesterday'));
like($registry->safe_psql('ids', $range, extra_params => [ '-U', 'regress_id_server' ]), qr/^stopped/, 'nothing is granted while some may be lost');
my $report = q{SELECT snowflake_registry.report_ranges(md5('page')::uuid, NULL, '{}', 'page', '{shop}', '{public.t}', '{2147483647}', '{700}', '{true}', true, md5('d')::uuid)};
is($registry->safe_psql('ids', $report, extra_params => [ '-U', 'regress_id_server' ]), 't', 'a server reports');
is($registry->safe_psql('ids', $recovery->example('servers => 3', 'servers => 3' => 'servers => 1')),
	'shop|public.t|601|701|700|page', 'with all reports, nothing is skipped');
is($registry->safe_psql('ids', $recovery->example('skip => 100000')), 'shop|public.t|701|100701||', 'otherwise, numbers are');

# Grants may be lost, so none is granted again; but others are granted at once.
my $ask = q{SELECT worker_id, current_user FROM snowflake_registry.get_grant('shardingsphere', 0, NULL,
	snowflake_registry.lower_bound(now(), 'shardingsphere'), '{}', gen_random_uuid(), 'page')};
like($registry->safe_psql('ids', $recovery->example('SELECT snowflake_registry.report_loss')),
	qr/^20\d\d-/, 'the function returns when worker IDs are granted again');
like(sql_error($registry, "SET ROLE regress_id_server; $ask", dbname => 'ids'),
	qr/ERROR:  \w{5}: .*no worker ID/, 'a server gets no worker ID until then');
like(sql_error($registry, q{SELECT snowflake_registry.alter('shardingsphere', 300, new => true)}, dbname => 'ids'),
	qr/NOTICE: .* does not grant worker IDs yet\n.*HINT:  .* specify none of 1 to 511, and new => true\./s,
	'new is not enough for some of the worker IDs that it had');
$registry->safe_psql('ids', $recovery->example('alter(\'shardingsphere\', 512'));
is($registry->safe_psql('ids', $ask, extra_params => [ '-U', 'regress_id_server' ]),
	'513|regress_id_server', 'other worker IDs are granted at once');

# The registry's clock was ahead by 3 years.
$registry->safe_psql('ids', q{UPDATE snowflake_registry.grants SET reached = snowflake_registry.lower_bound(now() + interval '3 years', 'shardingsphere')});
my $lost = q{SELECT snowflake_registry.report_loss('shardingsphere') - now() < interval '3 hours'};
is($registry->safe_psql('ids', "BEGIN; $lost; ROLLBACK"), 'f', 'after a clock that was years ahead, a lift lasts for years');
$registry->safe_psql('ids', $recovery->example("SELECT snowflake_registry.drop('shardingsphere')"));
is($registry->safe_psql('ids', $lost), 't', 'a registry that was created again has lifts of the usual length');
$registry->stop;

# The registry is lost, and another one takes its place.
my $other = plain_server('other');
sql($other, 'CREATE DATABASE ids');
$other->safe_psql('ids', $recovery->example("CREATE EXTENSION snowflake_registry;\nSELECT snowflake_registry.create(512, 1023") . '
	CREATE ROLE regress_id_server LOGIN;
	GRANT EXECUTE ON FUNCTION snowflake_registry.get_grant, snowflake_registry.extend_grant, snowflake_registry.return_grant TO regress_id_server');
$other->safe_psql('ids', $recovery->example('the registry was lost', id_server => 'regress_id_server'));
is($other->safe_psql('ids', 'SELECT database, stopped FROM snowflake_registry.range_databases, snowflake_registry.range_state'),
	'shop|the registry was lost', 'the other registry grants no ranges before servers have reported');
my $server = $servers[0];
$server->start;
reload_with($server, $recovery->example('host=other.example', id_server => 'regress_id_server',
		'host=other.example' => 'host=' . $other->host . ' port=' . $other->port));
wait_until_true($server, 'SELECT worker_id BETWEEN 512 AND 1023 FROM snowflake_stat');
is(sql($server, 'SELECT worker_id = (SELECT worker_id FROM snowflake_stat) FROM snowflake_parse(snowflake_nextval())'),
	't', 'a server gets a worker ID of a registry in place of the one that is lost');
Page::all_taken();
