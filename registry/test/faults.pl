# Faults of servers with a registry: split brain, copies, pauses, clocks, failover of
# the registry.  No two servers ever make the same ID.

use SnowflakeTest;

my $registry = new_registry('registry',
	"1, 1000, grant_time => '4 s', reach => '10 min', new => true");
my $conf = registry_conf($registry);
my $table =
  'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())';

# None of the IDs of clients came twice, and each client had some.
sub all_different ($name, @clients)
{
	my @lists = finish_clients(@clients);
	my $total = 0;
	my $least = (sort { $a <=> $b } map { scalar @$_ } @lists)[0];
	my $again = 0;
	my %seen;

	foreach my $list (@lists)
	{
		$total += @$list;
		$again += grep { $seen{$_}++ } @$list;
	}
	is($again, 0, "$name: no duplicates among $total IDs");
	cmp_ok($least, '>', 0, "$name: each client received IDs");
	return;
}

sub worker_id ($node)
{
	return sql($node, 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())');
}

# A standby is promoted, while the primary keeps running; and so does a copy of its
# data directory.
my $primary = new_primary('primary', $conf, 'snowflake.worker_id = 5', "snowflake.server_name = 'shop'");
sql($primary, $table);
my $standby = new_standby($primary, 'standby');
my $copy = server_of_backup('copy', $primary, 'standby');
is(worker_id($primary), 5, 'the primary has the worker ID that it asked for');
sql_fails($standby, 'SELECT snowflake_nextval()',
	qr/25006: cannot generate snowflake IDs during recovery/, 'a standby generates no IDs');
is(sql($standby, 'SELECT worker_id IS NULL FROM snowflake_stat'),
	't', 'a standby has no worker ID');
my @clients = (start_clients($primary, 2, 'calm'), start_clients($copy, 2, 'calm'));
wait_for_clients(@clients);
$standby->promote;
push @clients, start_clients($standby, 2, 'calm');
wait_for_clients(@clients);
usleep(6_000_000);
my @workers = map { worker_id($_) } $primary, $standby, $copy;
end_clients($_) foreach $primary, $standby, $copy;
all_different('split brain and a copy', @clients);
isnt($workers[0], $workers[1], 'the new primary has another worker ID');
isnt($workers[0], $workers[2], 'the copy has another worker ID than the primary');
isnt($workers[1], $workers[2], 'the new primary and the copy have different worker IDs');
foreach my $server ($primary, $standby, $copy, $registry)
{
	like(slurp_file($server->logfile),
		qr/WARNING:  another server calls itself "shop"\n.*DETAIL:  It has worker ID (?:@{[ join '|', @workers ]}), and calls from a Unix-domain socket\.\n.*HINT:  If one of them is a copy, shut it down/,
		'the log announces that another server has the same name: ' . $server->name);
}
is(scalar(() = slurp_file($copy->logfile) =~ /WARNING:  another server calls/g) <= 2, 1, 'a server logs it once of each');
is(sql($registry, q{SELECT count(*) FROM snowflake_registry.workers WHERE problem LIKE 'Another server calls itself "shop". It has worker ID %'}),
	3, 'so does the view of the registry');

# A whole server stands still until its grant is over, and another server has its
# worker ID.  Then it continues.
$standby->stop;
sql($registry, "SELECT snowflake_registry.create(1, 4, 'twitter', grant_time => '4 s', reach => '10 min', failovers => 0, new => true)");
my @twitter = ("snowflake.scheme = 'twitter'", "snowflake.worker_id = 3");
$copy->stop('immediate');
$copy->append_conf('postgresql.conf', join("\n", @twitter, ''));
$copy->start;
is(worker_id($copy), 3, 'a server with another scheme has the worker ID that it asked for');
@clients = start_clients($copy, 4, 'calm');
wait_for_clients(@clients);
my ($postmaster) = slurp_file($copy->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my @processes =
  ($postmaster, split /\n/, sql($copy, 'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()'));
kill 'STOP', @processes;
wait_until_true($registry, "SELECT granted_until < now() FROM snowflake_registry.workers WHERE scheme LIKE '%datacenter%' AND worker_id = 3");
$primary->stop('immediate');
$primary->append_conf('postgresql.conf', join("\n", @twitter, ''));
$primary->start;
is(worker_id($primary), 3, 'the worker ID of a paused server is granted to another one after its grant');
push @clients, start_clients($primary, 4, 'calm');
wait_for_clients(@clients[ 4 .. 7 ]);
kill 'CONT', reverse @processes;
wait_until_true($copy, 'SELECT granted_until > now() AND worker_id <> 3 FROM snowflake_stat');
usleep(2_000_000);
isnt(worker_id($copy), 3, 'a server that was paused gets another worker ID');
end_clients($_) foreach $primary, $copy;
all_different('a pause', @clients);
$_->stop foreach $primary, $copy;

# Clocks.  One that is far off at a start is refused, with both times, before
# it raises the mark.
my $clocks =
  new_server('clocks', { clock => 200 * 86400 }, $conf, "snowflake.grant_timeout = '3 s'");
sql($clocks, $table);

# On some versions, what is started at the end of recovery does not see the fake
# clock.  The worker does when it is started again.
$clocks->wait_for_log(qr/too far ahead of the registry's clock|IDs are generated with worker ID/);
sql($clocks, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'snowflake grant'")
  if slurp_file($clocks->logfile) =~ /IDs are generated with worker ID/;
$clocks->wait_for_log(qr/too far ahead of the registry's clock/);
sql_fails($clocks, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: no worker ID is granted.*\n.*DETAIL:  .*too far ahead of the registry's clock; The time of the server's next ID is (\S+) .*, the registry's clock reads (\S+) /,
	'a clock 200 days ahead is refused, with both times');
set_clock($clocks, 0);
becomes_true($clocks, "SELECT abs(extract(epoch FROM snowflake_timestamp(snowflake_nextval()) - now())) < 5",
	'IDs are generated as soon as the clock is correct');

# While it runs, a jump is not followed past what is granted.  IDs continue.
my $offset = -s $clocks->logfile;
@clients = start_clients($clocks, 2, 'calm');
wait_for_clients(@clients);
set_clock($clocks, 200 * 86400);
usleep(8_000_000);
end_clients($clocks);
my @lists = finish_clients(@clients);
cmp_ok(scalar(@{ $lists[0] }), '>', 1000, 'IDs continue when the clock jumps by 200 days');
is(sql($registry, "SELECT abs(extract(epoch FROM snowflake_timestamp($lists[0][-1]) - now())) < 60"),
	't', 'IDs do not follow the clock past the grant');
is(scalar(client_errors(@clients)), 0, 'no call fails when the clock jumps');
like(slurp_file($clocks->logfile, $offset),
	qr/WARNING:  clock jumped ahead by \d+ ms, but snowflake IDs do not follow it\n.*DETAIL:  .* indicate (\S+ \S+)\. The registry has granted IDs up to (?!\1)\d/,
	'the log says that IDs do not follow the clock past the grant, and when that ends');
my $mark = mark_of($clocks);
sql_fails($clocks, 'SELECT snowflake_accept_clock()',
	qr/ERROR:  55000: cannot accept a clock that is ahead of what the registry has granted\n.*DETAIL:  The clock reads \S+ \S+, and the grant ends at \S+ \S+\.\n.*HINT:  Check the clocks/s,
	'a clock is not accepted past the grant');
cmp_ok(mark_of($clocks) - $mark, '<', 60_000 << 22, 'a clock that is not accepted does not move the mark');
set_clock($clocks, 0);
is(sql($clocks, 'SELECT count(snowflake_nextval()) FROM generate_series(1, 10)'),
	10, 'IDs continue when the clock is right again');
$offset = -s $clocks->logfile;
set_clock($clocks, 400 * 86400);
sql($clocks, 'SELECT snowflake_nextval()');
$clocks->wait_for_log(qr/do not follow it\n.*DETAIL:  .*"snowflake\.max_clock_forward" is \d+ s\.\n.*HINT:  .*call snowflake_accept_clock\(\)/, $offset);
pass('with a registry, too, the log says why IDs do not follow a jump past max_clock_forward');
set_clock($clocks, 0);

# An hour behind: a worker ID that nobody used in that hour.
$clocks->stop;
set_clock($clocks, -3600);
start_with_clock($clocks);
is( sql($clocks, q{
		SELECT setting::int FROM pg_settings WHERE name = 'snowflake.max_lead'}),
	'0', 'no lead is allowed for bursts');
my $id = sql($clocks, 'SELECT snowflake_nextval()');
is(sql($registry, "SELECT snowflake_timestamp($id) > now() - interval '1 min'"),
	't', 'IDs continue from the mark with a clock that is an hour behind');
$clocks->stop;

# The clock of the registry is behind: refused, with both times.
$registry->stop;
set_clock($registry, -3600);
start_with_clock($registry);
$primary->start;
sql_fails($primary, "SET statement_timeout = 0; SELECT snowflake_nextval()",
	qr/ERROR:  55000: no worker ID is granted.*\n.*DETAIL:  .*too far ahead of the registry's clock; The time of the server's next ID is /,
	'a registry whose clock is an hour behind grants nothing');
set_clock($registry, 0);
becomes_true($primary, 'SELECT worker_id > 0 FROM snowflake_stat',
	'a registry grants again when its clock is correct');
set_clock($registry, 3600);
usleep(5_000_000);
@clients = start_clients($primary, 2, 'calm');
wait_for_clients(@clients);
usleep(3_000_000);
end_clients($primary);
all_different('the clock of the registry is ahead', @clients);
$_->stop foreach $primary, $registry;

# The registry is in the cluster of the server itself, with an asynchronous
# standby that is promoted, and an archive.
my $own = PostgreSQL::Test::Cluster->new('own');
my $other = PostgreSQL::Test::Cluster->new('other');
$own->init(allows_streaming => 1, has_archiving => 1);
my $archive = $own->archive_dir;
$own->append_conf('postgresql.conf',
	"shared_preload_libraries = 'snowflake'\nrestore_command = 'cp $archive/%f %p'\n"
	  . registry_conf($own, $other) . "\n");
$own->start;
sql($own, "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_registry; $table; SELECT snowflake_registry.create(1, 1000, new => true)");
$own->backup('backup');
$other->init_from_backup($own, 'backup', has_streaming => 1);
$other->start;
@clients = start_clients($own, 2, 'calm');
wait_for_clients(@clients);
my $before = worker_id($own);
foreach my $failover (1 .. 2)
{
	kill_postmaster($own);
	$other->promote;
	my $start = time;
	push @clients, start_clients($other, 2, 'calm');
	wait_for_clients(@clients[ -2 .. -1 ]);
	cmp_ok(time - $start, '<', 60, "failover $failover: the new primary generates IDs long before grants end");
	isnt(worker_id($other), $before, 'the new primary has another worker ID');
	$before = worker_id($other);
	last if $failover == 2;

	# The old primary is a new standby.
	end_clients($other);
	$other->backup('again');
	($own, $other) = ($other, PostgreSQL::Test::Cluster->new('third'));
	$other->init_from_backup($own, 'again', has_streaming => 1);
	$_->append_conf('postgresql.conf', registry_conf($own, $other))
	  foreach $own, $other;
	$own->reload;
	$other->start;
	$own->wait_for_catchup($other);
}
end_clients($other);
all_different('failovers with the registry', @clients);
done_testing();
