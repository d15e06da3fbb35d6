# Three Patroni nodes on etcd, by the configuration of docs/standbys.md, with
# clients that write down every ID.  Leaders are killed, switched over, paused and
# continued, and keep running with their clients beside the new leader: no ID comes
# twice.

use v5.36;

use FindBin;
use HTTP::Tiny;
use IPC::Run;
use JSON::PP;
use POSIX ();
use List::Util qw(max min);
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $page = Page->claim('docs/standbys.md', 'Patroni');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $sockets = PostgreSQL::Test::Utils::tempdir_short;
my $bindir = `pg_config --bindir` =~ s/\n//r;
my $http = HTTP::Tiny->new(timeout => 5);
my @nodes;
my @clients;
my $etcd;

# Patroni 3.0.2 with etcd3 that is stopped and continues may make itself the leader
# again, whoever that is by now.
my $takes_lock_back = `patroni --version` =~ / 3\.0/;

$SIG{TERM} = $SIG{INT} = sub { die 'interrupted' };

#
# Processes
#
sub start_process ($log, @command)
{
	my $pid = fork // die "fork: $!";

	if (!$pid)
	{
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>>', $log);
		open(STDERR, '>&', \*STDOUT);
		POSIX::setsid();
		exec(@command) or POSIX::_exit(127);
	}
	return $pid;
}

# A process and all that descend from it.
sub family ($pid)
{
	my %children;

	foreach my $file (glob('/proc/[0-9]*/stat'))
	{
		my $stat = eval { slurp_file($file) } // next;
		my ($child, $parent) = $stat =~ /^(\d+) \(.*\) \S (\d+) /s or next;
		push @{ $children{$parent} }, $child;
	}
	my @family = ($pid);
	for (my $i = 0; $i < @family; $i++)
	{
		push @family, @{ $children{ $family[$i] } // [] };
	}
	return @family;
}

sub postmaster ($node)
{
	my $file = "$node->{data}/postmaster.pid";

	return -e $file ? (slurp_file($file) =~ /^(\d+)/)[0] : undef;
}

sub processes ($node)
{
	my $postmaster = postmaster($node);

	return (family($node->{patroni}),
		defined $postmaster ? family($postmaster) : ());
}

sub start_patroni ($node)
{
	$node->{patroni} =
	  start_process("$dir/$node->{name}.log", 'patroni', $node->{yaml});
}

sub stop_all
{
	kill 'TERM', map { $_->{pid} } @clients;
	waitpid($_->{pid}, 0) foreach splice @clients;
	foreach my $node (@nodes)
	{
		kill 'CONT', processes($node);

		# Asked to end, Patroni may wait for the other ones.
		kill 'KILL', $node->{patroni};
		waitpid $node->{patroni}, 0;
		IPC::Run::run([ 'pg_ctl', '-D', $node->{data}, '-m', 'immediate', 'stop' ],
			'>' => '/dev/null', '2>' => '/dev/null')
		  if defined postmaster($node);
	}
	if (defined $etcd)
	{
		kill 'TERM', $etcd;
		waitpid $etcd, 0;
		undef $etcd;
	}
	@nodes = ();
}

END
{
	my $status = $?;
	stop_all();
	$? = $status;
}

#
# The cluster
#

# Start etcd and three nodes; $change makes a node's configuration from that of
# the page.
sub start_cluster ($name, $change)
{
	my @ports = map { PostgreSQL::Test::Cluster::get_free_port() } 1 .. 3;
	my ($client, $peer) = map { PostgreSQL::Test::Cluster::get_free_port() } 1 .. 2;

	$etcd = start_process(
		"$dir/etcd.log", 'etcd', '--name', 'e1', '--data-dir', "$dir/etcd.$name",
		'--listen-client-urls', "http://127.0.0.1:$client",
		'--advertise-client-urls', "http://127.0.0.1:$client",
		'--listen-peer-urls', "http://127.0.0.1:$peer",
		'--initial-advertise-peer-urls', "http://127.0.0.1:$peer",
		'--initial-cluster', "e1=http://127.0.0.1:$peer");

	my $yaml = $page->example('name: node1');
	foreach my $i (1 .. 3)
	{
		my %node = (
			name => "node$i",
			worker => $i,
			yaml => "$dir/$name.node$i.yml",
			data => "$dir/$name.data$i",
			port => $ports[ $i - 1 ],
			rest => PostgreSQL::Test::Cluster::get_free_port());

		my $own = $change->($yaml, $i);
		$own =~ s/\bnode1\b/node$i/g;
		$own =~ s/host=\/var\/run\/postgresql port=5432/host=$sockets port=$node{port}/;
		$own =~ s/10\.0\.0\.1:8008/127.0.0.1:$node{rest}/g;
		$own =~ s/10\.0\.0\.1:5432/127.0.0.1:$node{port}/g;
		$own =~ s/10\.0\.0\.9:2379/127.0.0.1:$client/g;
		$own =~ s/10\.0\.0\.0\/24/127.0.0.0\/8/g;
		$own =~ s/^(  data_dir: ).*/$1$node{data}/m;
		$own =~ s/^(  bin_dir: ).*/$1$bindir/m;
		$own =~ s/^  authentication:$/  pgpass: $dir\/$name.pgpass$i\n$&/m;
		$own =~ s/^  parameters:$/$&\n    unix_socket_directories: $sockets/m;

		# There is no watchdog here.
		$own =~ s/^(  mode: )required$/$1'off'/m or die;
		unlike($own, qr/10\.0\.0|\/var\/lib/, "the configuration of node$i");
		append_to_file($node{yaml}, $own);
		push @nodes, \%node;
	}
	foreach my $node (@nodes)
	{
		# The first one is initialized before the others copy it.
		start_patroni($node);
		wait_for(
			"$node->{name} to run",
			sub {
				die 'Patroni ended: ' . slurp_file("$dir/$node->{name}.log")
				  if waitpid($node->{patroni}, POSIX::WNOHANG) > 0;
				return state_of($node);
			});
	}
	return healthy();
}

# What a node says of itself; false while it does not run.
sub state_of ($node)
{
	my $answer = $http->get("http://127.0.0.1:$node->{rest}/patroni");
	my $state = eval { decode_json($answer->{content}) } // return;

	return unless ($state->{state} // '') eq 'running';
	return $state;
}

sub wait_for ($what, $condition, $seconds = undef)
{
	my $until = time + ($seconds // 300);

	while (1)
	{
		my $result = $condition->();
		return $result if $result;
		last if time > $until;
		usleep(100_000);
	}
	system("tail -n 30 $dir/node?.log >&2");
	die "waited in vain for $what";
}

# Who says that it is a primary, by PostgreSQL's own word.
sub primaries
{
	return grep {
		my $state = state_of($_);
		$state && $state->{role} =~ /^(master|primary)$/
	} @_;
}

sub patronictl (@arguments)
{
	system_log('patronictl', @arguments) == 0 or die "patronictl @arguments failed";
}

# Wait until there is one primary and two that stream from it; returns the primary.
sub healthy
{
	my $since = time;

	return wait_for(
		'a primary and two replicas',
		sub {
			my @primaries = primaries(@nodes);
			return if @primaries != 1;
			my $streaming = sql($primaries[0],
				"SELECT string_agg(application_name, ' ') FROM pg_stat_replication WHERE state = 'streaming' AND application_name LIKE 'node_'") // '';
			return $primaries[0] if $streaming =~ /^node. node.$/;

			# Old Patronis leave a node behind whose leader was overruled.
			if ($takes_lock_back && time > $since + 60)
			{
				my ($lost) = grep { $_ != $primaries[0] && $streaming !~ $_->{name} } @nodes;
				note("$lost->{name} is initialized again");
				patronictl('-c', $lost->{yaml}, 'reinit', '--force', 'shop', $lost->{name});
				$since = time;
			}
			return;
		});
}

sub wait_for_synchronous_standby ($primary)
{
	wait_for(
		'a synchronous standby',
		sub {
			(sql($primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") // 0) == 1;
		});
	return;
}

sub conninfo (@of)
{
	my $hosts = join ',', map { '127.0.0.1' } @of;
	my $ports = join ',', map { $_->{port} } @of;

	return "host=$hosts port=$ports user=postgres password=secret1 dbname=postgres connect_timeout=3";
}

# The result of a query, or undef.
sub sql ($node, $sql)
{
	my ($out, $err);

	my $ok = IPC::Run::run(
		[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', conninfo($node), '-c', $sql ],
		'>' => \$out,
		'2>' => \$err);
	return $ok ? $out =~ s/\n\z//r : undef;
}

#
# Clients
#
sub start_client ($name, $conninfo, $sql)
{
	my $file = "$dir/$name";

	my $pid = start_process("$file.log", $^X, "$FindBin::RealBin/../../perl/record_ids.pl",
		$conninfo, $sql, $file);
	push @clients, { pid => $pid, file => $file, name => $name };
	return $clients[-1];
}

# What a client wrote down, since a byte of its file.
sub received ($client, $offset = undef)
{
	my $text = -e $client->{file} ? slurp_file($client->{file}, $offset // 0) : '';

	$text = substr($text, 0, 1 + rindex($text, "\n"));
	return map { [ split / / ] } split /\n/, $text;
}

# Wait until a client has IDs that it did not have when this was called.
sub more_from ($client)
{
	my $size = -s $client->{file} // 0;

	wait_for("more IDs for $client->{name}",
		sub { (-s $client->{file} // 0) > $size + 100 });
}

sub start_clients ($name)
{
	my $any = conninfo(@nodes) . ' target_session_attrs=read-write';
	my $insert = 'INSERT INTO t DEFAULT VALUES RETURNING id';
	my %of;

	$of{insert} = start_client("$name.insert", $any, "$insert;");
	$of{rollback} = start_client("$name.rollback", $any, "BEGIN; $insert; ROLLBACK;");
	$of{block} = start_client("$name.block", $any, 'SELECT snowflake_nextval(50);');
	$of{control} =
	  start_client("$name.control", $any, 'INSERT INTO control DEFAULT VALUES RETURNING id;');
	$of{ $_->{name} } = start_client("$name.$_->{name}", conninfo($_),
		'SELECT snowflake_nextval() FROM generate_series(1, 20);')
	  foreach @nodes;
	more_from($of{$_}) foreach qw(insert rollback block control);
	return %of;
}

# How long a client was without an ID around a time.
sub gap ($client, $at)
{
	my @times = map { $_->[0] } received($client);
	my $before = max(grep { $_ <= $at } @times);
	my $after = min(grep { $_ > $before + 1 } @times);

	return $after - $before;
}

sub tell_gap ($what, $at, %of)
{
	my ($ids, $control) = map { gap($of{$_}, $at) } qw(insert control);

	note(sprintf '%s: %.1f s without an ID, %.1f s without a row with a serial key',
		$what, $ids, $control);
	cmp_ok($ids, '<', $control + 10, "$what: IDs are back when rows are");
}

# End the clients; no ID came twice.
sub no_duplicates ($name)
{
	my %seen;
	my ($duplicates, $ids) = (0, 0);

	kill 'TERM', map { $_->{pid} } @clients;
	waitpid($_->{pid}, 0) foreach @clients;
	foreach my $client (grep { $_->{name} !~ /control/ } splice @clients)
	{
		foreach my $record (received($client))
		{
			$ids++;
			$duplicates++ if $seen{ $record->[1] }++;
		}
	}
	cmp_ok($ids, '>', 1000, "$name: clients received $ids IDs");
	is($duplicates, 0, "$name: no ID is a duplicate");
}

# All nodes have the same rows in the end.
sub same_rows ($name)
{
	my $query = 'SELECT count(*), sum(hashint8(id)), (SELECT count(*) FROM control) FROM t';
	my $rows = sql(healthy(), $query);

	like($rows, qr/^[1-9]/, "$name: clients have inserted rows");
	wait_for("$name: the same rows on all nodes", sub { @nodes == grep { (sql($_, $query) // '') eq $rows } @nodes });
	pass("$name: all nodes have the same rows");
	return;
}

#
# What happens to a leader; each ends with a healthy cluster.
#

# Wait until another node than this one is a primary.
sub new_leader ($old)
{
	return wait_for('a new leader',
		sub { (primaries(grep { $_ != $old } @nodes))[0] });
}

# kill -9 of Patroni and PostgreSQL; started again when there is a new leader.
sub kill_leader (%of)
{
	my $leader = healthy();
	my $at = time;

	kill 'KILL', processes($leader);
	waitpid $leader->{patroni}, 0;
	new_leader($leader);
	more_from($of{insert});
	more_from($of{control});
	start_patroni($leader);
	healthy();
	tell_gap('leader killed', $at, %of);
}

# Patroni hangs, and the PostgreSQL keeps running beside the new leader.
sub hang_patroni ($unlimited, %of)
{
	my $leader = healthy();

	kill 'STOP', family($leader->{patroni});
	my $new = new_leader($leader);
	more_from($of{ $new->{name} });
	if ($unlimited)
	{
		more_from($of{ $leader->{name} });
		more_from($of{ $new->{name} });
		pass("both $leader->{name} and $new->{name} generate IDs");
	}
	else
	{
		my $stopped = wait_for(
			'the old leader to make no IDs',
			sub {
				my $size = -s $of{ $leader->{name} }{file};
				more_from($of{ $new->{name} });
				usleep(3_000_000);
				return -s $of{ $leader->{name} }{file} == $size;
			});
		ok($stopped, "$leader->{name} generates no more IDs, and $new->{name} does");
	}
	if ($unlimited || !$takes_lock_back)
	{
		kill 'CONT', family($leader->{patroni});
	}
	else
	{
		# As the watchdog does, only later
		kill 'KILL', processes($leader);
		waitpid $leader->{patroni}, 0;
		start_patroni($leader);
	}
	healthy();
}

# The machine is paused, and continues.
sub pause_leader (%of)
{
	my $leader = healthy();
	my $at = time;

	my @processes = processes($leader);
	kill 'STOP', @processes;
	my $new = new_leader($leader);
	more_from($of{insert});
	more_from($of{control});
	more_from($of{ $new->{name} });
	kill 'CONT', @processes;
	healthy();
	tell_gap('leader paused', $at, %of);
}

sub switch_over (%of)
{
	my $leader = healthy();
	my $at = time;
	my ($candidate) = grep { $_ != $leader } @nodes;

	patronictl('-c', $leader->{yaml}, 'switchover', '--force', '--candidate',
		$candidate->{name}, 'shop');
	new_leader($leader);
	more_from($of{insert});
	more_from($of{control});
	healthy();
	tell_gap('switched over', $at, %of);
}

# Which worker IDs are in the rows?
sub workers ($node)
{
	return sql($node,
		"SELECT string_agg(DISTINCT (snowflake_parse(id)).worker_id::text, ' ') FROM t");
}

my $create = q{
	CREATE EXTENSION snowflake;
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE TABLE control (id bigserial PRIMARY KEY)};

#
# A worker ID for each node.  At first there is no snowflake in the cluster.
#
my $leader = start_cluster(
	'own',
	sub ($yaml, $i) {
		$yaml =~ s/^      parameters:\n        shared_preload_libraries: snowflake\n//m or die;
		$yaml =~ s/^(    snowflake\.worker_id: )1$/$1$i/m or die;
		return $yaml;
	});
foreach my $command (split /\n/, $page->example('patronictl'))
{
	$command =~ s/\/etc\/patroni\/config\.yml/$leader->{yaml}/;
	is(system_log('sh', '-c', $command), 0, $command);
}
$leader = wait_for(
	'snowflake on all nodes',
	sub {
		my @loaded = grep {
			(sql($_, 'SHOW shared_preload_libraries') // '') eq 'snowflake'
		} @nodes;
		return @loaded == 3 ? healthy() : undef;
	});
ok(defined sql($leader, $create), 'the extension is created');
my %of = start_clients('own');
kill_leader(%of);
hang_patroni(1, %of);
pause_leader(%of);
switch_over(%of);
$leader = healthy();
no_duplicates('a worker ID for each node');
same_rows('a worker ID for each node');
like(workers($leader), qr/^\d \d/, 'several nodes made rows: ' . workers($leader));
my $worker = $page->example('FROM snowflake_stat');
is(sql($_, $worker), "$_->{worker}|t", "$_->{name} has its worker ID") foreach @nodes;
like(join('', map { slurp_file("$dir/$_->{name}.log") } @nodes),
	qr/running pg_rewind/, 'an old leader was rewound');
stop_all();

#
# One worker ID for all, with synchronous replication
#
$leader = start_cluster(
	'one',
	sub ($yaml, @) {
		my @one = split /\n/, $page->example('        snowflake.worker_id');

		# The page's other configuration, put into the first one.
		is(join("\n", grep { !/synchronous_mode|snowflake/ } @one),
			"bootstrap:\n  dcs:\n    postgresql:\n      parameters:",
			'the example has no other settings');
		$yaml =~ s/^  parameters:\n    snowflake\.worker_id: 1\n/  parameters:\n/m or die;
		$yaml =~ s/^  dcs:\n/$&$one[2]\n/m or die;
		$yaml =~ s/^        shared_preload_libraries.*\n/$&$one[5]\n/m or die;
		return $yaml;
	});
ok(defined sql($leader, $create), 'the extension is created');
wait_for_synchronous_standby($leader);
%of = start_clients('one');
hang_patroni(0, %of);
pause_leader(%of) unless $takes_lock_back;
no_duplicates('one worker ID and a synchronous standby');
same_rows('one worker ID and a synchronous standby');
is(workers(healthy()), 1, 'all rows have the one worker ID');
stop_all();

#
# The cluster is its own registry.
#
$leader = start_cluster(
	'registry',
	sub ($yaml, @) {
		my @registry = split /\n/, $page->example('snowflake.registry');

		is(join("\n", grep { !/synchronous_mode|snowflake/ } @registry),
			"bootstrap:\n  dcs:\n    postgresql:\n      parameters:",
			'the example has no other settings');
		$yaml =~ s/^  dcs:\n/$&$registry[2]\n/m or die;

		# Here the nodes have different ports, so each has the setting for itself.
		my $setting = $registry[5] =~ s/^ {8}/    /r;
		$yaml =~ s/^    snowflake\.worker_id: 1\n/$setting\n/m or die;
		return $yaml;
	});
ok(defined sql($leader, $page->example('CREATE ROLE id_server')), 'the statements that create the registry run');
ok(defined sql($leader, $create =~ s/CREATE EXTENSION snowflake;//r), 'the tables are created beside the registry');
wait_for_synchronous_standby($leader);
%of = start_clients('registry');
kill_leader(%of);
wait_for_synchronous_standby(healthy());
hang_patroni(0, %of);
pause_leader(%of) unless $takes_lock_back;
no_duplicates('the cluster is its own registry');
same_rows('the cluster is its own registry');
like(workers(healthy()), qr/^\d+ \d/, 'leaders had worker IDs of their own: ' . workers(healthy()));
stop_all();

Page::all_taken();
