# monitoring/: the queries run, have a column for each metric, and have each metric
# that an alert or a panel uses.  (script/tests/alerts tests when alerts fire, and
# script/tests/dashboard what panels show.)

use JSON::PP;
use Page;
use SnowflakeTest;

my $dir = "$FindBin::RealBin/../../monitoring";
my $primary = new_primary('primary');
sql($primary, q{
	SELECT snowflake_nextval();
	CREATE EXTENSION snowflake_registry;
	SELECT snowflake_registry.create(2, 20, failovers => 2, new => true)});
my $standby = new_standby($primary, 'standby');

my %metric;
my %query;
foreach my $part (split /^(?=\w+:$)/m, slurp_file("$dir/queries.yaml") . slurp_file("$dir/registry.yaml"))
{
	next unless $part =~ /^(\w+):\n.*query: \|\n(.*?)\n  metrics:/s;
	my ($name, $query) = ($1, $2);
	my @columns = $part =~ /^    - (\w+):$/mg;
	my $columns = sql($primary, "CREATE TEMP VIEW q AS $query;
		SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'q'::regclass");
	is($columns, "@columns", "$name: the query has a column for each metric");
	$query{$name} = $query;
	$metric{"${name}_$_"} = 1 foreach @columns;
}

my $alerts = slurp_file("$dir/alerts.yaml");
my @unknown = grep { !$metric{$_} } "@{[ $alerts =~ /^ +expr: (.*)/mg ]}" =~ /\b(snowflake_\w+)/g;
is("@unknown", '', 'alerts use metrics that the queries have');

my $dashboard = decode_json(slurp_file("$dir/dashboard.json"));
@unknown = grep { !$metric{$_} } map { $_->{expr} =~ /\b(snowflake_\w+)/g } map { @{ $_->{targets} } } @{ $dashboard->{panels} };
is("@unknown", '', 'panels use metrics that the queries have');
@unknown = map { $_->{title} } grep { $_->{type} eq 'stat' && grep { !$_->{instant} || $_->{range} } @{ $_->{targets} } } @{ $dashboard->{panels} };
is("@unknown", '', 'a panel of single values does not show those of before');
my %title = map { $_->{title} => 1 } @{ $dashboard->{panels} };
my @named = grep { /^[A-Z]\w+ / } Page->section('docs/monitoring.md', 'Grafana')->{text} =~ /\*([^*`]+)\*/g;
is(scalar(@named), 4, 'the page names the panels that must be empty');
is(join(', ', grep { !$title{$_} } @named), '', '... which the dashboard has');

# The limit of a scheme: 4096 IDs in each ms, 256 in each 10 ms
foreach my $case ([ 'shardingsphere', 4096000 ], [ 'sonyflake', 25600 ], [ 'javascript', 102400 ], [ 'hazelcast', 64000 ])
{
	my ($scheme, $limit) = @$case;
	sql($primary, "ALTER SYSTEM SET snowflake.scheme = '$scheme'");
	$primary->restart;
	is(sql($primary, "SELECT round(limit_ids_per_second) FROM ($query{snowflake}) q"),
		$limit, "the limit of $scheme");
}
sql($primary, 'ALTER SYSTEM RESET snowflake.scheme');
sql($primary, q{ALTER SYSTEM SET snowflake.max_lead = '2 s'});
$primary->restart;

# Worker IDs of a registry that grants every third: 2, 5, ..., 20 or the like
my $free = sql($primary, "SELECT free FROM ($query{snowflake_registry}) q");
is($free, sql($primary, q{
		SELECT count(*) FROM snowflake_registry.registries r, generate_series(r.first_worker_id, r.last_worker_id) w
		WHERE w % r.slices = r.timeline % r.slices}), "$free worker IDs are free");

# Who counts as a server that generates IDs
my $server = $query{snowflake_server};
is(sql($primary, "SELECT worker_id, datacenter_id, info, scheme = current_setting('snowflake.scheme') FROM ($server) q"),
	'0||1|t', 'a primary has a worker ID, also if that was never set');
is(sql($standby, "SELECT count(*) FROM ($server) q"),
	0, 'a standby has no worker ID in the metrics');
is(sql($standby, "SELECT count(*) FROM ($query{snowflake_registry}) q"),
	0, 'a standby of a registry has no worker IDs to grant in the metrics');
is(sql($primary, qq{
		WITH snowflake_stat AS (SELECT scheme, datacenter_id, worker_id, now() - interval '1 s' AS granted_until FROM public.snowflake_stat)
		SELECT count(*) FROM ($server) q}), 0, 'nor has a server whose grant has ended');
is(sql($primary, "SELECT normal_lead_seconds FROM ($query{snowflake}) q"),
	3, 'the normal lead is that of reserve_time and max_lead');
is(sql($primary, "SELECT worker_id_set FROM ($query{snowflake}) q"),
	0, 'whether the worker ID was set is a metric');

# Two worker IDs were granted, of which one was not extended, and the registry's own
# server has a third one; or that one.  Then nothing is granted, because grants
# might have been lost.
sql($primary, q{
	CREATE ROLE regress_exporter IN ROLE pg_monitor;
	SELECT snowflake_registry.get_grant('shardingsphere', 0, w, snowflake_lower_bound(clock_timestamp()), '{}', gen_random_uuid(), 'x')
		FROM unnest(ARRAY[10, 13]) w;
	UPDATE snowflake_registry.grants SET granted_until = snowflake_lower_bound(clock_timestamp() - interval '1 min') WHERE worker_id = 10;
	ALTER SYSTEM SET snowflake.worker_id = 7});
$primary->restart;
my $metrics = "SET ROLE regress_exporter; SELECT held, lapsed, free FROM ($query{snowflake_registry}) q";
is(sql($primary, $metrics), join('|', 1, 1, $free - 3),
	'the worker ID of the registry\'s own server is not free');
sql($primary, 'ALTER SYSTEM SET snowflake.worker_id = 10');
$primary->restart;
is(sql($primary, $metrics), join('|', 1, 0, $free - 2),
	'the worker ID of the registry\'s own server is not available, if a server had it before');
sql($primary, q{
	ALTER SYSTEM SET snowflake.worker_id = 1;
	UPDATE snowflake_registry.registries SET not_before = array_fill(snowflake_lower_bound(clock_timestamp() + interval '1 hour'), ARRAY[slices])});
$primary->restart;
is(sql($primary, $metrics), '1|0|0',
	'no worker ID is free or available while the registry grants none');

# Ranges of sequences: 100 of 1000 numbers that a server lost when it ended, and 1 of another
my ($ranges, $sequence) = @query{qw(snowflake_registry_ranges snowflake_registry_sequence)};
is(sql($primary, "SELECT count(*) FROM ($ranges) q"), 0, 'a registry without sequences has no metric of them');
sql($primary, qq{
	SELECT snowflake_registry.add_database('shop');
	SELECT FROM (VALUES ('a', 100), ('b', 1)) v(c, n),
		snowflake_registry.get_ranges(md5(c)::uuid, NULL, '{}', md5('1')::uuid, 0, c, '{shop}', '{public.s}', '{100000}', ARRAY[n], '{1}', '{0}', '{NULL}');
	SELECT snowflake_registry.return_ranges(md5('a')::uuid, md5('1')::uuid, '{}')});
$metrics = qq{SET ROLE regress_exporter; SELECT database_group, name, "left", lost, round(exhausted_timestamp_seconds) > extract(epoch FROM now()) FROM ($sequence) q};
is(sql($primary, $metrics), 'shop|public.s|99899|100|t', 'numbers that are left, lost, and when they end');
sql($primary, q{
	SELECT count(*) FROM snowflake_registry.get_ranges(md5('c')::uuid, NULL, '{}', md5('1')::uuid, 0, 'a', '{shop}', '{public.s}', '{100000}', '{1}', '{1}', '{0}', '{NULL}')});
like(sql($primary, $metrics), qr/^shop\|public\.s\|\d+\|100\|t$/, 'numbers stay lost when the server that lost them calls again');
is(sql($primary, "SELECT stopped FROM ($ranges) q"), 0, 'ranges are granted');
sql($primary, q{SELECT snowflake_registry.stop_ranges('test')});
is(sql($primary, "SELECT stopped FROM ($ranges) q"), 1, 'ranges are not granted');

# Sequences: one that is not at the end of its definition
sql($primary, q{
	CREATE SEQUENCE s; CREATE SEQUENCE local;
	SELECT snowflake_set_sequence_kind('s')});
my $problems = "SELECT datname, problems FROM ($query{snowflake_sequences}) q";
is(sql($primary, $problems), 'postgres|0', 'no sequence has a problem');
sql($primary, q{
	UPDATE pg_sequence SET seqmax = seqmax - 1 WHERE seqrelid = 's'::regclass;
	GRANT pg_read_all_data TO regress_exporter});
my $as_exporter = "SET ROLE regress_exporter; $problems";
is(sql($primary, $as_exporter), 'postgres|1', 'one that is not exhausted has');
sql($primary, q{SELECT nextval('s')});
is(sql($primary, $as_exporter), 'postgres|0', 'until it is called');

# Other checks: the filter of the page, and what is not to alarm without it
sql($primary, q{CREATE DATABASE shop; \c shop
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE s; CREATE SEQUENCE small MAXVALUE 100 START 50; SELECT nextval('small');
	SELECT snowflake_set_sequence_kind('s'); SELECT nextval('s')});
my $page = Page->claim('docs/monitoring.md', 'Sequences');
is($primary->safe_psql('shop', $page->example('AS percent')), 'public|small|50',
	'the query of the page leaves out snowflake sequences, and what lastval() uses');
is( $primary->safe_psql('shop', q{
		SELECT round(100.0 * (last_value - min_value) / (max_value - min_value + 1))
		FROM pg_sequences WHERE sequencename = '_snowflake_lastval_marker'}),
	'0', 'what lastval() uses is not near its end, whoever computes it');
is($primary->safe_psql('shop', $page->example('problem IS NOT NULL')), '', 'no sequence has a problem, by the page');
my $command = $page->example('check_postgres');
SKIP:
{
	skip 'check_postgres is not installed', 2 if system('check_postgres --version >/dev/null 2>&1') != 0;
	my $check = sub {
		local %ENV = (%ENV, PGHOST => $primary->host, PGPORT => $primary->port);
		return scalar `$command`;
	};
	like($check->(), qr/^POSTGRES_CUSTOM_QUERY OK/, 'check_postgres with the query of the page');
	$primary->safe_psql('shop', q{SELECT setval('small', 96)});
	like($check->(), qr/^POSTGRES_CUSTOM_QUERY CRITICAL/, 'check_postgres warns of other sequences');
}

Page::all_taken();
