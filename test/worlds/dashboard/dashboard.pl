# monitoring/dashboard.json: the query of each panel, evaluated by Prometheus over the
# exporters of two servers and a registry, returns what the panel shows, under
# load and with a fault for each of them.  script/tests/dashboard runs this.

use HTTP::Tiny;
use JSON::PP;
use SnowflakeTest;

my $monitoring = "$FindBin::RealBin/../../../monitoring";
my $tmp = PostgreSQL::Test::Utils::tempdir;
my $limit = 102_400;    # IDs per second of the scheme
my $load = 500;
my @running;

# Start a program that runs until the end of the test.
sub run_program ($name, %env)
{
	my ($program, @arguments) = @$name;
	my $log = "$tmp/" . scalar(@running) . '.log';

	local %ENV = (%ENV, %env);
	push @running, IPC::Run::start([ $program, @arguments ], '<', \undef, '>', $log, '2>&1');
	return;
}

END
{
	my $status = $?;
	$_->kill_kill foreach @running;
	$? = $status;
}

# The exporter of a server; returns its address.
sub start_exporter ($node, $queries, $user)
{
	my $address = '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port();

	run_program(
		[ "$ENV{PROGRAMS}/prometheus-postgres-exporter", "--web.listen-address=$address",
			"--extend.query-path=$monitoring/$queries", '--disable-default-metrics', '--disable-settings-metrics' ],
		DATA_SOURCE_NAME => 'host=' . $node->host . ' port=' . $node->port . " user=$user dbname=postgres sslmode=disable");
	return $address;
}

# Calls of a server at a steady rate
sub start_load ($node)
{
	my $script = "$tmp/nextval.sql";
	append_to_file($script, "SELECT snowflake_nextval();\n") unless -e $script;
	run_program([ 'pgbench', '-n', '-f', $script, '-T', 3600, '-R', $load, '-d', $node->connstr('postgres') ]);
	return;
}

# The servers: the clock of one can be set.
my $registry = new_registry('registry',
	"1, 20, scheme => 'javascript', grant_time => '10 s', reach => '60 s', failovers => 1, new => true");
sql($registry, 'CREATE ROLE regress_exporter LOGIN IN ROLE pg_monitor');
my %node;
foreach my $name ('a', 'b')
{
	$node{$name} = new_server_with_clock($name, "snowflake.scheme = 'javascript'",
		'wal_level = replica', 'max_wal_senders = 4', registry_conf($registry));
	sql($node{$name}, 'SELECT snowflake_nextval()');
}

# Prometheus, which asks each second
my $prometheus = '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port();
my %address = (
	(map { $_ => start_exporter($node{$_}, 'queries.yaml', getpwuid($>)) } 'a', 'b'),
	registry => start_exporter($registry, 'registry.yaml', 'regress_exporter'));
append_to_file("$tmp/prometheus.yaml", "global: {scrape_interval: 1s}\nscrape_configs:\n"
	  . join('', map { "- job_name: $_\n  static_configs:\n  - targets: ['$address{$_}']\n    labels: {instance: $_}\n" } sort keys %address));
run_program([ "$ENV{PROGRAMS}/prometheus", "--config.file=$tmp/prometheus.yaml",
	"--storage.tsdb.path=$tmp/data", "--web.listen-address=$prometheus", '--log.level=warn' ]);

# The panels
my $dashboard = decode_json(slurp_file("$monitoring/dashboard.json"));
my %panel = map { $_->{title} => $_ } @{ $dashboard->{panels} };
my %shown;

# What a panel shows now: values by their legends.
sub values_of ($title)
{
	my %values;

	foreach my $target (@{ $panel{$title}{targets} })
	{
		my $query = $target->{expr} =~ s/\$__rate_interval/10s/gr =~ s/\$__range/5m/gr =~ s/\$instance/.*/gr;
		die "variable in $query" if $query =~ /\$/;
		my $answer = HTTP::Tiny->new->post_form("http://$prometheus/api/v1/query", { query => $query });
		my $result = eval { decode_json($answer->{content}) } // next;
		die "$title: $result->{error}" if $result->{status} ne 'success';
		foreach my $series (@{ $result->{data}{result} })
		{
			my $legend = $target->{legendFormat} =~ s/\{\{(\w+)\}\}/$series->{metric}{$1} \/\/ ''/ger;
			$values{$legend} = $series->{value}[1] unless $series->{value}[1] eq 'NaN';
		}
	}
	return \%values;
}

# Wait until a panel shows what it should, up to a minute and a half.
sub shows ($title, $test, $name)
{
	my $deadline = time + 90;
	my $values;

	$shown{$title} = 1;
	do
	{
		$values = values_of($title);
		my $good = do { local $_ = $values; no warnings 'uninitialized'; $test->() };
		if ($good)
		{
			pass("$title: $name");
			return;
		}
		usleep(200_000);
	} while (time < $deadline);
	fail("$title: $name");
	diag(encode_json($values));
	return;
}

# Are there just these legends, and values between two numbers?
sub between ($legends, $least, $most)
{
	return join(' ', sort keys %$_) eq $legends && !grep { $_ < $least || $_ > $most } values %$_;
}

# Under load
start_load($node{$_}) foreach 'a', 'b';
shows('IDs per second', sub { between('a b', 0.7 * $load, 1.3 * $load) }, 'the rate of the load');
shows('Share of the limit', sub { between('a b', 0.7 * $load / $limit, 1.3 * $load / $limit) }, 'the load against the scheme');
shows('Waits by kind',
	sub { keys %$_ == 8 && !(grep { $_ > 0.05 } values %$_) && exists $_->{'a: clock'} && exists $_->{'b: grant'} },
	'none of the four kinds on either server');
shows('Lead', sub { between('a b', 0, 1) }, 'none');
shows('Mark ahead of the clock', sub { between('a b', -1.5, 1.5) }, 'up to reserve_time, as of the last scrape');
shows('Left of the grant', sub { between('a b', 3, 10.5) }, 'from half of a grant to a whole one');
shows('Servers that share a worker ID', sub { !%$_ }, 'none');
shows('Registry not reached', sub { !%$_ }, 'none');
shows('Clock errors', sub { !%$_ }, 'none');
shows('Sequences with a problem', sub { !%$_ }, 'none');
shows('Worker IDs of the registry', sub { "@$_{qw(held reserved lapsed free)}" eq '2 0 0 8' }, 'two of a slice are held');
my $end = sql($node{a}, 'SELECT extract(epoch FROM expires_at) FROM snowflake_stat');
shows('End of the timestamp field', sub { abs($_->{first} / 1000 - $end) < 1 }, 'that of the scheme');

# A sequence that is not exhausted, until it is called
sql($node{b}, q{CREATE SEQUENCE s; SELECT snowflake_set_sequence_kind('s');
	UPDATE pg_sequence SET seqmax = seqmax - 1 WHERE seqrelid = 's'::regclass});
shows('Sequences with a problem', sub { between('b postgres', 1, 1) }, 'its database');
sql($node{b}, q{SELECT nextval('s')});
shows('Sequences with a problem', sub { !%$_ }, 'none after it is called');

# More than the scheme has
my $burst = IPC::Run::start([ 'psql', '-Xq', '-d', $node{b}->connstr('postgres'),
	'-c', 'SELECT count(*) FROM snowflake_nextval(3000000)' ], '<', \undef, '>', '/dev/null', '2>&1');
shows('Share of the limit', sub { $_->{b} > 0.8 && $_->{b} < 1.1 && $_->{a} < 0.1 }, 'all of it on the server with a burst');
shows('Waits by kind', sub { $_->{'b: sequence'} > 0.5 && $_->{'a: sequence'} < 0.05 }, 'for the sequence');
$burst->kill_kill;

# A clock that is set back
set_clock($node{a}, -30);
shows('Lead', sub { $_->{a} > 20 && $_->{b} < 1 }, 'that of the server whose clock was set back');
sql($node{a}, q{ALTER SYSTEM SET snowflake.clock_backward = wait});
sql($node{a}, q{ALTER SYSTEM SET snowflake.max_clock_backward = '1 s'});
$node{a}->reload;
shows('Clock errors', sub { join(' ', keys %$_) eq 'a' && $_->{a} >= 1 }, 'calls that are refused');
sql($node{a}, q{ALTER SYSTEM SET snowflake.max_clock_backward = '60 s'});
$node{a}->reload;
set_clock($node{a}, 0);
wait_until_true($node{a}, 'SELECT lead_ms = 0 FROM snowflake_stat');
sql($node{a}, 'SELECT snowflake_nextval()');
set_clock($node{a}, -3);
sql($node{a}, 'SELECT snowflake_nextval()');
shows('Waits by kind', sub { $_->{'a: clock'} > 0.1 && $_->{'b: clock'} < 0.05 }, 'for the clock');
set_clock($node{a}, 0);
sql($node{a}, q{ALTER SYSTEM RESET snowflake.clock_backward});
$node{a}->reload;

# No synchronous standby
sql($node{a}, q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
$node{a}->reload;
start_load($node{a});
wait_until_true($node{a},
	q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'SELECT snowflake_nextval%' AND wait_event_type IN ('IPC', 'Extension', 'LWLock')});
usleep(2_000_000);
sql($node{a}, 'SET synchronous_commit = local; ALTER SYSTEM RESET synchronous_standby_names');
$node{a}->reload;
shows('Waits by kind', sub { $_->{'a: standbys'} > 0.1 && $_->{'b: standbys'} < 0.05 }, 'for synchronous standbys');

# The registry is down for longer than a grant.
$registry->stop;
shows('Registry not reached', sub { join(' ', sort keys %$_) eq 'a b' }, 'both servers');
shows('Left of the grant', sub { between('a b', -60, 0) }, 'it has ended');
my $waiting = IPC::Run::start([ 'psql', '-Xq', '-d', $node{b}->connstr('postgres'), '-c', 'SELECT snowflake_nextval()' ],
	'<', \undef, '>', '/dev/null', '2>&1');
usleep(2_000_000);
$registry->start;
$waiting->finish;
shows('Waits by kind', sub { $_->{'b: grant'} > 0.1 }, 'for a grant');
shows('Registry not reached', sub { !%$_ }, 'none afterwards');

# Two servers with one worker ID
my $worker = sql($node{a}, 'SELECT worker_id FROM snowflake_stat');
$node{b}->append_conf('postgresql.conf', "snowflake.registry = ''\nsnowflake.worker_id = $worker\n");
$node{b}->stop;
start_with_clock($node{b});
shows('Servers that share a worker ID', sub { join(' ', keys %$_) eq "datacenter  worker $worker" && (values %$_)[0] == 2 },
	'both, and their worker ID');
shows('Worker IDs of the registry', sub { $_->{held} == 1 && $_->{free} + $_->{reserved} == 9 }, 'the other one was given back');

is(join(', ', grep { !$shown{$_} } sort keys %panel), '', 'each panel was tested');
done_testing();
