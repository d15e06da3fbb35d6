# Servers that get their worker IDs from a registry, and all that can happen to
# both, at random; see script/tests/torture.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin", "$FindBin::RealBin/../../perl";
use Torture qw(
  $figures begin_torture
  any_of describe happens nothing_happened problem_in_world fault count_faults
  faults_by_kind start_ledger ask_ledger become_client client_ended start_node template_node new_node
  asks_registries all_processes pause_node continue_node have_away end_nodes some_process kill_process nap);
use IPC::Run;
use History;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX ();
use Proxy;
use Sequences;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my ($seed, $bug, $begin, $end) = begin_torture(@ARGV);

# A server that generates no IDs for as long, although nothing keeps it from that, has
# stopped for good.
use constant LONGEST_WAIT => 120;

use constant HOUR => 3600;
use constant DAYS => 200 * 86400;
use constant CLIENTS => (usual => 2, greedy => 1, witness => 1, sequences => 1);
use constant ROUNDS => 10;

#
# The plan.  A world is a registry, its servers, and what happens to them, round
# by round.  It is all drawn before it begins, from the world's own seed.
#
# Often there are just as many W's as servers, so that each that a server loses is
# taken by another one as soon as it is free.
#
# In a world with a short reach clocks are off by seconds; by hours only for a
# while, in which the server or the registry is refused.  In one with a long
# reach they are off by an hour for long, and W's are reserved for as long: there
# are more of them.
#
srand($seed);
my @world_seeds = map { int rand(2**31) } 1 .. 10_000;

my @server_faults = (
	'restart', 'restart', 'restart two', 'kill backend',
	'kill worker', 'kill postmaster', 'kill postmaster', 'pause',
	'pause', 'pause backend', 'pause worker', 'pause worker',
	'pause worker', 'promotion',
	'promotion', 'copy', 'cut-off copy', 'cut-off copy', 'old copy', 'clock',
	'clock', 'start with clock', 'reset', 'end worker',
	'end worker', 'immediate', 'kill refused', 'kill refused',
	'kill granted', 'kill granted', 'reload', 'reload', 'sequences', 'sequences', 'sequences',
	'sequences');
my @registry_faults = (
	'nothing', 'nothing', 'outage', 'outage',
	'long outage', 'failover', 'failover', 'split brain',
	'split brain', 'restart', 'crash', 'free',
	'free', 'lost', 'clock', 'clock', 'bad host', 'bad host', 'bad host', 'silent host',
	'silent host', 'same timeline', 'same timeline');

# What finds the bugs that script/tests/torture --break puts into the sources.
my %fault_for_bug = (
	'kept-from' => 'kill granted',
	'registry-reload' => 'reload',
	'hosts' => 'immediate',
	'timeline' => 'restart');
my %registry_fault_for_bug = (
	'hosts' => 'silent host',
	'timeline' => 'same timeline');

# What any fault may need, of the registry or of a server.
sub plan_fault
{
	return (
		who => rand(),
		other => rand(),
		way => any_of('kill', 'immediate', 'pause'),
		step => rand(),
		seconds => rand(),
		sequences => plan_sequences());
}

sub plan_round
{
	my @faults = $bug ? $fault_for_bug{$bug} : map { any_of(@server_faults) } 1 .. any_of(1, 2, 3, 4);

	return {
		plan_fault(),
		server_faults => [ map { { plan_fault(), fault => $_ } } @faults ],
		registry_fault => $bug
		? $registry_fault_for_bug{$bug} // 'nothing'
		: any_of(@registry_faults),
		pause => rand(1.5)
	};
}

sub plan_world
{
	my ($n) = @_;

	srand($world_seeds[$n]);
	my $long = rand() < 0.3;
	my $servers = 2 + int rand(3);
	my $most = $servers + 1;
	my $grant_time = any_of(2, 3, 4, 8);
	my $failovers = any_of(1, 3, 5);
	my %plan = (
		long => $long,
		servers => $servers,
		pairs => [ map { rand() < 0.4 ? 1 : 0 } 1 .. $servers ],
		grant_time => $grant_time,
		reach => $long ? 3 * HOUR : $grant_time > 4 ? 20 : 10,
		failovers => $failovers,
		most => $most,
		workers => ($failovers + 1) * ($long ? 160 : $most + any_of(0, 0, 1, 4)),
		one_name => any_of(0, 1),
		max_lead => any_of('0ms', '0ms', '100ms', '2s'),
		reserve_time => any_of('100ms', '1s', '1s'));
	$plan{rounds} = [ map { plan_round() } 1 .. ROUNDS ];

	# Servers ask the registry through proxies, which may break.
	$plan{proxies} = rand() < 0.5 || ($bug // '') eq 'hosts' ? 1 : 0;

	# Registries archive their WAL in one place; and one of the servers is the registry
	# itself, whose standby takes over both.  The old one, which may keep running, has a
	# worker ID, too.
	$plan{archive} = rand() < 0.4 && ($bug // '') ne 'timeline' ? 1 : 0;
	$plan{own} = rand() < 0.4 ? 1 : 0;
	$plan{workers} += 2 * ($failovers + 1) if $plan{own};
	$plan{workers} = 1000 if $plan{workers} > 1000;
	return \%plan;
}

# What is counted.
my %total = (
	worlds => 0,
	rounds => 0,
	failovers => 0,
	split_brains => 0,
	twins => 0,
	servers => 0,
	grants => 0,
	ids => 0,
	workers => 0,
	duplicates => 0,
	falls => 0,
	shared => 0,
	foreign => 0,
	failed => 0,
	refused => 0,
	longest_wait => 0);
my ($world_plan, $round_plan, %world);

# Something that must not be: tell of it at once, with what led to it.
sub wrong
{
	my ($what) = @_;

	problem_in_world($what, \%total, $world_plan, $round_plan);
	return;
}

sub fail_call
{
	$total{failed}++;
	wrong($_[0]);
	return;
}

#
# The ledger
#
my $ledger = start_ledger();

# Have the ledger do something, and tell of what it finds wrong.
sub ledger
{
	my ($answer, @found) = ask_ledger($ledger, @_);

	wrong(join "\n  ", @found) if @found;
	return $answer;
}

# Take up all that clients received.
sub take_ids
{
	my %now;

	@now{qw(ids duplicates falls shared foreign workers runs)} =
	  split ' ', ledger('take');
	$world{$_} = $now{$_} foreach keys %now;
	return;
}

sub bad
{
	return $world{duplicates} + $world{shared} + $world{foreign} +
	  $world{falls} + ($world{unhistoric} // 0);
}

#
# Servers and their clients
#

# What clients do, over and over: single calls and blocks, committed or not, and greedy
# ones large blocks.  They rest, because speed is not measured here.
my %script = map { $_ => "$PostgreSQL::Test::Utils::tmp_check/$_.sql" } ('usual', 'greedy');
{
	my $usual = q{
SELECT snowflake_nextval() FROM generate_series(1, 20);
SELECT snowflake_nextval(40);
INSERT INTO t SELECT FROM generate_series(1, 3) RETURNING id;
BEGIN;
INSERT INTO t SELECT FROM generate_series(1, 3) RETURNING id;
ROLLBACK;
SELECT snowflake_nextval();
} . sequence_queries() . q{
\! sleep 0.1
};
	my $greedy = q{
COPY (SELECT snowflake_nextval(200000)) TO STDOUT;
\! sleep 1
} . greedy_sequence_queries(20_000);
	my $more = $usual x 30 . "SELECT snowflake_nextval(5000);\n";
	append_to_file($script{usual}, $more x 300);
	append_to_file($script{greedy}, $greedy x 20_000);
}

my $template = template_node(\&create_sequences,
	'max_connections = 40', 'max_wal_senders = 8',
	'snowflake.sequence_start = zero', "snowflake.grant_timeout = '3s'");

# A node of this world with the data of a backup.
sub node_of_backup
{
	my ($node, $origin, $backup, %params) = @_;

	$node->init_from_backup($origin, $backup, %params);
	push @{ $world{nodes} }, $node;
	return $node;
}

# A copy asks in its own name.
sub name_copy
{
	my ($node) = @_;

	$node->append_conf('postgresql.conf', registry_of($node, $world{backups}))
	  if slurp_file($node->data_dir . '/postgresql.conf') =~ /^snowflake\.registry/m;
	return;
}

# A backup of a server as it is now, started as a standby.
sub add_standby
{
	my ($origin, $node, $clock) = @_;
	my $backup = 'standby' . ++$world{backups};

	$origin->backup($backup);
	node_of_backup($node, $origin, $backup, has_streaming => 1);
	PostgreSQL::Test::Utils::system_or_bail('rm', '-rf',
		$origin->backup_dir . "/$backup");
	name_copy($node);
	set_clock($node, $clock);
	start_node($node);
	return $node;
}

# A life-line of a server, which histories have the same name of.
sub begin_line
{
	my ($server, $last) = @_;

	ledger("line $server->{line} $last");
	fact($world{history}, 'server', $server->{line}, $server->{node}->name, $last);
	are_snowflake($world{history}, $server->{node}, $server->{line});
	return;
}

# Another server that is there from now on, as a life-line of its own.  Its
# clients begin at once, here and after each start: what it could have of an
# earlier grant soon ends.
sub add_server
{
	my ($node, $what, $last, $clock) = @_;
	my $server = {
		node => $node,
		name => $node->name,
		clients => [],
		line => ++$world{lines}
	};

	$total{servers}++;
	begin_line($server, $last);
	push @{ $world{servers} }, $server;
	$server->{clock} = $clock // 0;
	happens("$server->{name} is $what, life-line $server->{line}");
	return $server;
}

# In the order of the hosts that a server asks, each other one begins at the end.  Its
# sessions at the registry have the name of its node.
sub registry_of
{
	my ($node, $i) = @_;
	my ($registries, $proxies) = @world{ 'registries', 'proxies' };

	return asks_registries($node, map { $_ && $i % 2 ? [ reverse @$_ ] : $_ } $registries, $proxies);
}

sub configure
{
	my ($node, $i) = @_;
	my $name = $world_plan->{one_name} ? 'one' : $node->name;

	$node->append_conf(
		'postgresql.conf', join("\n",
			registry_of($node, $i),
			"snowflake.server_name = '$name'",
			"snowflake.max_lead = $world_plan->{max_lead}",
			"snowflake.reserve_time = $world_plan->{reserve_time}", ''));
	return;
}

# Errors of clients: that there is no grant just now is none.
sub judge_errors
{
	my ($server, @errors) = @_;
	my %others;

	foreach my $error (@errors)
	{
		if ($error =~ /no worker ID is granted|the grant of worker ID \d+ ended/ || is_sequence_refusal($error))
		{
			$total{refused}++;
		}
		elsif ($error !~
			/terminating connection|canceling statement|transaction is aborted/)
		{
			$world{duplicates}++ if $error =~ /duplicate key/;
			$others{$error}++;
		}
	}
	fail_call("$others{$_} times a client of $server->{name}: $_")
	  foreach sort keys %others;
	return;
}

sub start_client
{
	my ($server, $kind) = @_;
	my $n = ++$world{clients};
	my $file = "$PostgreSQL::Test::Utils::tmp_check/ids$n";
	my $pid = fork() // die $!;

	if ($pid == 0)
	{
		become_client($server->{node}, $script{$kind}, $file, $kind eq 'greedy')
		  if $script{$kind};
		open(STDIN, '<', '/dev/null') or POSIX::_exit(1);
		open(STDOUT, '>', "$file.out") or POSIX::_exit(1);
		open(STDERR, '>', "$file.err") or POSIX::_exit(1);
		exec(witness_command($world{history}, $server->{node}, $server->{line}, $n,
				$kind eq 'witness' ? 'calls' : $kind));
	}
	my $client = {
		pid => $pid,
		n => $n % 4096,
		file => "$file.out",
		errors => "$file.err",
		kind => $kind
	};
	ledger("client $client->{n} $server->{line} $client->{file}");
	push @{ $server->{clients} }, $client;
	return;
}

sub end_client
{
	my ($server, $client) = @_;

	ledger("close $client->{n}");
	judge_errors($server, client_errors($client));
	unlink $client->{file}, $client->{errors};
	return;
}

# Take leave of clients that have ended; of all, if the server ends them.
sub reap_clients
{
	my ($server, $all) = @_;
	my @left;
	my $deadline = $all ? time + LONGEST_WAIT : undef;

	foreach my $client (@{ $server->{clients} })
	{
		client_ended($client, $deadline, sub { fail_call("a client of $server->{name} hangs") })
		  ? end_client($server, $client)
		  : push @left, $client;
	}
	$server->{clients} = \@left;
	return;
}

sub renew_clients
{
	my ($server) = @_;
	my %missing = (CLIENTS);

	reap_clients($server, 0);
	$missing{ $_->{kind} }-- foreach @{ $server->{clients} };
	my @kinds = map { ($_) x $missing{$_} } sort keys %missing;
	return if @kinds == 0;
	take_ids();
	start_client($server, $_) foreach @kinds;
	return;
}

# End all clients, those too that are about to connect.
sub end_all_clients
{
	my ($server) = @_;
	my $start = time;

	while (@{ $server->{clients} } > 0 && time - $start < LONGEST_WAIT)
	{
		end_clients($server->{node});
		usleep(20_000);
		reap_clients($server, 0);
	}
	reap_clients($server, 1);
	return;
}

# One ID, as soon as there is one.
sub probe
{
	my ($server) = @_;
	my $start = time;

	for (;;)
	{
		my ($stdout, $stderr);
		my $rc = $server->{node}->psql(
			'postgres', 'SELECT snowflake_nextval()',
			stdout => \$stdout,
			stderr => \$stderr,
			timeout => 60,
			timed_out => \my $timed_out);
		my $wait = time - $start;

		if (!$timed_out && $rc == 0)
		{
			ledger("id $server->{line} $stdout");
			$total{longest_wait} = $wait if $wait > $total{longest_wait};
			happens(sprintf '%s makes ID %s after %.3f s', $server->{name},
				$stdout, $wait);
			return 1;
		}
		$total{refused}++;
		if ($wait > LONGEST_WAIT)
		{
			fail_call("$server->{name} makes no IDs: "
				  . ($timed_out ? 'no answer' : $stderr));
			return 0;
		}
		usleep(100_000);
	}
}

sub start_server
{
	my ($server) = @_;

	start_node($server->{node});
	renew_clients($server);
	return;
}

sub put_clock
{
	my ($server, $clock) = @_;

	$server->{clock} = $clock;
	set_clock($server->{node}, $clock);
	happens(sprintf '%s: clock %+.3f s', $server->{name}, $clock);
	return;
}

# A time by which a clock may be off for long.  A server that is ahead of the registry
# by more than grant_time gets no worker ID when it starts.
sub small_step
{
	my ($r) = @_;

	return (-HOUR, 0, -HOUR / 60)[ 3 * $r ] if $world_plan->{long};
	return (8 * $r - 4) * $world_plan->{grant_time} / 10;
}

# The same for a registry, which servers must not be ahead of.
sub registry_step
{
	my ($r) = @_;

	return $world_plan->{long} ? -small_step($r) : small_step($r);
}

sub greatest_stored
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT coalesce(max(id), 0) FROM t');
}

# Longer than a grant.
sub more_than_grant
{
	return $world_plan->{grant_time} * (1.2 + $round_plan->{seconds});
}

sub stop_server
{
	my ($server, $way) = @_;

	$way eq 'kill'
	  ? kill_postmaster($server->{node})
	  : $server->{node}->stop($way);
	reap_clients($server, 1);
	return;
}

sub worker_of
{
	my ($server) = @_;
	return $server->{node}
	  ->safe_psql('postgres', 'SELECT worker_id FROM snowflake_stat');
}

# Have a server that is not started yet ask for this worker ID.
sub wish
{
	my ($server, $worker) = @_;

	$server->{node}
	  ->append_conf('postgresql.conf', "snowflake.worker_id = $worker\n")
	  if $worker ne '';
	happens("$server->{name} would like to have $worker");
	return;
}

sub start_wishing
{
	my ($server, $worker) = @_;

	wish($server, $worker);
	start_server($server);
	return;
}

# Wait, but not for long, until a server has a grant, without an ID of it.
sub wait_for_grant
{
	my ($server) = @_;
	my $start = time;

	nap(0.02) while worker_of($server) eq '' && time - $start < 10;
	happens("$server->{name} has worker ID " . worker_of($server));
	return;
}

# Nobody extends a server's grant.  Another one would like to have its worker ID,
# and asks for it when it is just free, or later.
sub let_grant_pass
{
	my ($other, $worker) = @_;
	my $left = more_than_grant();

	stop_server($other, 'immediate');
	$left = registry()->safe_psql('postgres', qq{
		SELECT greatest(extract(epoch FROM granted_until - clock_timestamp()) + 0.1, 0)
		FROM snowflake_registry.workers WHERE worker_id = $worker}) || 0
	  if $round_plan->{way} ne 'pause' && $worker ne '' && !$world{away};
	nap($left) if $left < 20;
	start_wishing($other, $worker);
	nap(1);
	return;
}

sub copy_server
{
	my ($server, $backup, $clock) = @_;
	my $node = new_node('copy');

	node_of_backup($node, $server->{node}, $backup);
	name_copy($node);
	$clock //= small_step($round_plan->{step});
	set_clock($node, $clock);
	start_node($node);
	renew_clients(
		add_server($node, "a copy of $server->{name}",
			greatest_stored($node), $clock));
	return;
}

my %server_fault = (
	restart => sub {
		my ($server) = @_;
		stop_server($server, 'fast');
		start_server($server);
	},
	'restart two' => sub {
		my @both = @_;
		my @workers = map { worker_of($_) } @both;
		stop_server($_, 'fast') foreach @both;
		start_wishing($both[$_], $workers[ 1 - $_ ]) foreach 1, 0;
	},
	immediate => sub {
		my ($server) = @_;
		stop_server($server, 'immediate');
		start_server($server);
	},
	'kill backend' => sub { kill_process($_[0]{node}, 'client backend') },
	'kill worker' => sub { kill_process($_[0]{node}, 'snowflake grant') },
	'kill postmaster' => sub {
		my ($server) = @_;
		stop_server($server, 'kill');
		start_server($server);
	},

	# It is told that it holds no worker ID, and one of its processes is killed
	# while it generates IDs of the rest of its grant.
	'kill refused' => sub {
		my ($server) = @_;
		my $node = $server->{node};
		my $worker = worker_of($server);
		return 'not done' if $world{away} || $worker eq '';
		my $offset = -s $node->logfile;
		$round_plan->{seconds} < 0.6 && may_lose_grants()
		  ? lose_grants()
		  : free_worker($worker);
		for (my $i = 0; $i < 500; $i++)
		{
			last
			  if slurp_file($node->logfile, $offset) =~
			  /does not extend the grant/;
			usleep(20_000);
		}
		kill_process($node, 'client backend');
	},

	# Another server has its worker ID for a while.  It gets it back, and before
	# its first ID its clock is set back and one of its processes is killed.
	'kill granted' => sub {
		my ($server, $other) = @_;
		my $node = $server->{node};
		my $worker = worker_of($server);
		return 'not done' if $world{away} || $worker eq '';
		stop_server($_, 'fast') foreach $server, $other;
		start_wishing($other, $worker);
		nap(1 + 2 * $round_plan->{seconds});
		stop_server($other, 'fast');
		wish($server, $worker);
		start_node($node);
		wait_for_grant($server);
		my $clock = $server->{clock};
		put_clock($server, $clock - 1 - 4 * $round_plan->{step});
		kill_process($node, 'background writer');
		renew_clients($server);
		start_server($other);
		nap(2);
		put_clock($server, $clock);
	},

	# A server is told to ask nobody, or its hosts in another order, which it is to
	# do when it is started again only; one of its processes is killed.
	reload => sub {
		my ($server) = @_;
		my $node = $server->{node};
		$node->append_conf('postgresql.conf',
			$round_plan->{step} < 0.5 ? "snowflake.registry = ''" : registry_of($node, 1));
		$node->reload;
		nap(0.5);
		kill_process($node, 'background writer');
		renew_clients($server);
		nap($round_plan->{pause});
		$node->append_conf('postgresql.conf', registry_of($node, 0));
		$node->reload;
	},

	# Others take its worker ID meanwhile.
	pause => sub {
		my ($server, $other) = @_;
		my $worker = worker_of($server);
		pause_node($server->{node});
		let_grant_pass($other, $worker);
		continue_node($server->{node});
	},
	'pause backend' => sub {
		my ($server, $other) = @_;
		my $worker = worker_of($server);
		my $pid = some_process($server->{node}, 'client backend') or return 'not done';
		kill 'STOP', $pid;
		free_worker($worker)
		  if $round_plan->{step} < 0.7 && $worker ne '' && !$world{away};
		let_grant_pass($other, $worker);
		kill 'CONT', $pid;
	},
	'pause worker' => sub {
		my ($server, $other) = @_;
		my $worker = worker_of($server);
		my $pid = some_process($server->{node}, 'snowflake grant') or return 'not done';
		kill 'STOP', $pid;
		let_grant_pass($other, $worker);
		kill 'CONT', $pid;
	},
	'end worker' => sub {
		my ($server, $other) = @_;
		my $worker = worker_of($server);
		my $pid = some_process($server->{node}, 'snowflake grant') or return 'not done';
		stop_server($other, 'immediate');
		kill 'TERM', $pid;
		start_wishing($other, $worker);
	},

	# The old primary keeps running.
	promotion => sub {
		my ($server) = @_;
		my $clock = $server->{standby} ? 0 : $server->{clock};
		my $standby = delete $server->{standby}
		  // add_standby($server->{node}, new_node('standby'), $clock);
		$standby->promote;
		renew_clients(
			add_server(
				$standby, "promoted from a standby of $server->{name}",
				greatest_stored($standby), $clock));
	},
	copy => sub {
		my ($server) = @_;
		my $backup = 'copy' . ++$world{backups};
		$server->{node}->backup($backup);
		copy_server($server, $backup);
	},
	# Neither it nor its origin can ask the registry.
	'cut-off copy' => sub {
		my ($server) = @_;
		my $backup = 'copy' . ++$world{backups};
		my $pauses = !$world{away};
		pause_node(registry()) if $pauses;
		$server->{node}->backup($backup);
		copy_server($server, $backup, $server->{clock});
		nap(2);
		continue_node(registry()) if $pauses;
	},
	'old copy' => sub { copy_server($world{servers}[0], 'old') },

	# A dump of its sequences is restored on another one, or here.
	sequences => sub {
		my ($server, $other) = @_;
		my $there = $round_plan->{other} < 0.5 ? $other : $server;
		my $on = $round_plan->{sequences}{change} eq 'dump' ? $there : $server;
		ledger("id $on->{line} $_")
		  foreach change_sequences($server->{node}, $round_plan->{sequences}, $world{history}, $server->{line}, $there->{node});

		# It is counted there, by its kind.
		return 'not done';
	},
	clock => sub {
		my ($server) = @_;
		my $step = $round_plan->{step};

		# For good, or for a while.
		if ($round_plan->{seconds} < 0.6)
		{
			put_clock($server, small_step($step));
			return;
		}
		put_clock($server,
			(HOUR, -HOUR, HOUR, 2 * HOUR, DAYS)[ 5 * $step ]);
		nap(more_than_grant());
		put_clock($server, 0);
	},
	'start with clock' => sub {
		my ($server) = @_;
		stop_server($server, any_way());
		put_clock($server, (DAYS, HOUR, -HOUR)[ 3 * $round_plan->{step} ]);
		start_server($server);
		my $answer =
		  $server->{node}->psql('postgres', 'SELECT snowflake_nextval()');
		$total{refused}++ if $answer != 0;
		put_clock($server, 0);
	},
	reset => sub {
		my ($server) = @_;
		end_all_clients($server);
		my $seconds = (-HOUR, -1, 0, 2)[ 4 * $round_plan->{step} ];
		my $mark = $server->{node}->safe_psql('postgres', qq{
			SELECT snowflake_lower_bound(now() + interval '$seconds s') AS mark \\gset
			SET client_min_messages = error;
			DELETE FROM t WHERE id >= :mark;
			SELECT snowflake_set_mark(:mark, force => true) \\g /dev/null
			SELECT :mark});
		$server->{line} = ++$world{lines};
		begin_line($server, $mark - 1);
		happens("$server->{name} is reset, life-line $server->{line}");
	});

sub any_way
{
	return ('fast', 'immediate', 'kill')[ 3 * $round_plan->{seconds} ];
}

#
# The registry
#
sub registry
{
	return $world{registries}[ $world{registry} ];
}

# Let nothing reach the standbys of the registry any more.
sub cut_off_standbys
{
	my ($n) = @_;
	my $query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender'";

	registry()->poll_query_until('postgres', "SELECT count(*) = $n FROM ($query) p")
	  or die "there are not $n standbys";
	my @pids = split /\n/, registry()->safe_psql('postgres', $query);
	stop_walsender(registry(), $_) foreach @pids;
	return @pids;
}

sub kill_registry
{
	my ($node, @walsenders) = @_;
	my ($postmaster) = all_processes($node);

	kill 'KILL', $postmaster, @walsenders;
	kill_postmaster($node);
	return;
}

# Why a registry does not grant worker IDs, if it does not.  A worker ID that nobody has
# is freed for that, which changes nothing.
sub refusal
{
	my ($node) = @_;
	my $error = sql_error($node, 'SELECT snowflake_registry.free_worker(-1)');

	return $error =~ /ERROR:  42704: worker ID -1 was never granted/ ? undef : $error;
}

# The first of them that grants worker IDs by itself.
sub wait_until_it_grants
{
	my @nodes = @_;
	my $start = time;

	for (;;)
	{
		my @refusals = map { refusal($_) } @nodes;
		foreach my $i (0 .. $#nodes)
		{
			return $nodes[$i] unless defined $refusals[$i];
			die "a registry: $refusals[$i]"
			  unless $refusals[$i] =~ /has not been archived yet/;
		}
		if (time - $start > LONGEST_WAIT)
		{
			fail_call("no registry continues by itself: $refusals[0]");
			return $nodes[0];
		}
		usleep(100_000);
	}
}

# After the promotion of the registry's standby there is another one.
sub promote_registry
{
	my $standby = $world{registries}[ ++$world{registry} ];

	end_silence();
	$standby->promote;

	# Nobody promotes two standbys to the same timeline here.
	$world_plan->{archive}
	  ? wait_until_it_grants($standby)
	  : $standby->safe_psql('postgres', 'SELECT snowflake_registry.confirm_promotion()');
	$total{failovers}++;
	$world{failovers}++;
	happens($standby->name . ' is the registry');
	own_server();
	return;
}

sub timeline_of
{
	my ($node) = @_;

	return hex $node->safe_psql('postgres',
		'SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)');
}

# Which of two standbys with a common archive is the registry?  The one that archived
# the timeline of both, or the one that saw the other one's timeline there, if it can archive its own.
sub archived_first
{
	my ($timelines, @twins) = @_;
	my $first = wait_until_it_grants(@twins);

	if ($timelines->[0] == $timelines->[1])
	{
		my ($other) = grep { $_ != $first } @twins;
		nap(1);
		fail_call('two registries of one timeline grant worker IDs')
		  unless defined refusal($other);
		return $first;
	}
	my $later = $twins[ $timelines->[0] > $timelines->[1] ? 0 : 1 ];
	return wait_until_it_grants($later) if $first == $later || !has_other_wal($later);

	# Its standbys are not to look for the greatest timeline in the archive.
	$first->append_conf('postgresql.conf', "recovery_target_timeline = 'current'\n");
	return $first;
}

# Before its own timeline, a server archives what it has of the one before.  It cannot if the other
# standby had received less of it, or more, and was the first: then it grants nothing.
sub has_other_wal
{
	my ($node) = @_;
	my $start = time;

	while (defined refusal($node) && time - $start < LONGEST_WAIT)
	{
		return 1 if slurp_file($node->logfile) =~ /archiving write-ahead log file "[0-9A-F]{24}\.partial" failed too many times/;
		usleep(100_000);
	}
	return 0;
}

# Without an archive none of them is, until an administrator says so.
sub confirmed
{
	my (@twins) = @_;
	my $node = $twins[ $round_plan->{other} < 0.5 ? 0 : 1 ];

	nap(1);
	foreach my $twin (@twins)
	{
		fail_call('a registry grants worker IDs, and another one may, too')
		  unless $bug || defined refusal($twin);
	}
	$node->safe_psql('postgres', 'SELECT snowflake_registry.confirm_promotion()');
	return $node;
}

# Both standbys are promoted at once, mostly to the same timeline.  The one that is not the
# registry then keeps running for some time.
sub promote_twins
{
	my $first = $world{registry} + 1;
	my @twins = @{ $world{registries} }[ $first, $first + 1 ];

	end_silence();
	PostgreSQL::Test::Utils::system_or_bail('pg_ctl', '-W', '-D', $_->data_dir, 'promote')
	  foreach @twins;
	foreach my $node (@twins)
	{
		$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()')
		  or die 'a registry is not promoted';
	}
	my @timelines = map { timeline_of($_) } @twins;
	happens("two standbys are promoted to timelines @timelines");
	$total{twins}++ if $timelines[0] == $timelines[1];
	my $next =
	  $world_plan->{archive} ? archived_first(\@timelines, @twins) : confirmed(@twins);

	$total{failovers}++;
	$world{failovers} += 2;
	if ($next == $twins[0])
	{
		@$_[ $first, $first + 1 ] = @$_[ $first + 1, $first ]
		  foreach $world{registries}, $world{proxies} // ();
	}
	$world{registry} += 2;
	keep_old_registry($world{registries}[$first]);
	happens(registry()->name . ' is the registry');
	own_server();
	return;
}

# The server that is the registry itself is a life-line of its own after each promotion.
sub own_server
{
	return unless $world_plan->{own};
	my $node = registry();
	my $server = {
		node => $node,
		name => $node->name,
		clients => [],
		line => ++$world{lines},
		clock => 0
	};

	$total{servers}++;
	push @{ $world{own_servers} }, $server;
	begin_line($server, $world{own} ? greatest_stored($node) : 0);
	$world{own} = $server;
	happens("$server->{name} is its own registry, life-line $server->{line}");
	renew_clients($server);
	return;
}

sub new_registry_standby
{
	my $node = $world{registries}[ $world{registry} + 1 ];

	add_standby(registry(), $node, registry_step($round_plan->{step}))
	  if defined $node;
	return;
}

# One that is the registry no more keeps running for some time.
sub keep_old_registry
{
	my ($node, @walsenders) = @_;

	$world{old_registry} = {
		node => $node,
		walsenders => \@walsenders,
		slice => slice_of(timeline_of($node)),
		rounds => 2
	};
	return;
}

sub end_old_registry
{
	my $old = delete $world{old_registry} or return;

	kill_registry($old->{node}, @{ $old->{walsenders} });
	$world{rests}{ $old->{slice} } = time() + 2 * $world_plan->{reach};
	return;
}

sub slice_of
{
	my ($timeline) = @_;

	return $timeline % ($world_plan->{failovers} + 1);
}

# What an old registry granted has to end before its slice is granted again: the new one
# knows nothing of that, and an administrator has to see to it.
sub next_slices_rest
{
	my ($promotions) = @_;
	my $timeline = timeline_of(registry());

	foreach my $slice (map { slice_of($timeline + $_) } 1 .. $promotions)
	{
		return 1 if ($world{rests}{$slice} // 0) > time();
		return 1 if $world{old_registry} && $world{old_registry}{slice} == $slice;
	}
	return 0;
}

sub free_worker
{
	my ($worker) = @_;

	# It may have been granted by the old registry, or lost.
	my $error = sql_error(registry(), "SELECT snowflake_registry.free_worker($worker)");
	die $error unless $error =~ /^(?:psql:.*ERROR:  42704: worker ID \d+ was never granted|$)/;
	happens("worker ID $worker is freed $error");
	return;
}

# What was lost may reach as far ahead of the registry's clock as what is known: an hour
# if it was behind by that, and a server extended its grant then and never again.
sub may_lose_grants
{
	return !$world_plan->{long} && !$world{was_behind};
}

sub lose_grants
{
	registry()->safe_psql('postgres', 'SELECT snowflake_registry.report_loss()');
	happens('the registry has lost grants');
	return;
}

sub outage
{
	my ($seconds) = @_;
	my $ends = have_away(registry(), $round_plan->{way}, $seconds);

	$world{away} = 1;
	return sub {
		$ends->();
		$world{away} = 0;
	};
}

# The host of the registry's standby answers again.
sub end_silence
{
	my $proxy = delete $world{silent} or return;

	$proxy->set('pass');
	return;
}

# Each begins and returns how it ends; the server's fault is between.
my %registry_fault = (
	nothing => sub { return sub { } },
	outage => sub { return outage($world_plan->{grant_time} * 0.4) },
	'long outage' => sub { return outage(more_than_grant()) },
	failover => sub {
		end_old_registry();
		my @walsenders = cut_off_standbys(1);
		return sub {
			kill_registry(registry(), @walsenders);
			promote_registry();
			new_registry_standby();
		};
	},

	# Two standbys, which know nothing of each other, take over.
	'same timeline' => sub {
		end_old_registry();
		add_standby(registry(), $world{registries}[ $world{registry} + 2 ],
			registry_step($round_plan->{step}));
		my @walsenders = cut_off_standbys(2);
		return sub {
			kill_registry(registry(), @walsenders);
			promote_twins();
			new_registry_standby();
		};
	},
	'split brain' => sub {
		end_old_registry();
		my $old = registry();
		my @walsenders = cut_off_standbys(1);
		promote_registry();
		$total{split_brains}++;
		keep_old_registry($old, @walsenders);
		return sub { new_registry_standby() };
	},

	# Its host takes connections, and calls or answers are lost, or late.
	'bad host' => sub {
		my $proxy = $world{proxies}[ $world{registry} ];
		my $mode = ('silent', 'mute', 'lose', 'cut', 'late')[ 5 * $round_plan->{other} ];
		$proxy->set($mode);
		happens("the registry's host is $mode");
		$world{away} = 1;
		return sub {
			nap($round_plan->{way} eq 'kill'
				? $world_plan->{grant_time} * 0.4
				: more_than_grant());
			$proxy->set('pass');
			$world{away} = 0;
		};
	},

	# The host of its standby takes connections and says nothing until the next round:
	# those servers that try it first have to go on to the registry.
	'silent host' => sub {
		$world{silent} = $world{proxies}[ $world{registry} + 1 ];
		$world{silent}->set('silent');
		return sub { };
	},
	restart => sub {
		my $node = registry();
		$world{away} = 1;
		$node->stop;
		return sub {
			start_node($node);
			$world{away} = 0;
		};
	},
	crash => sub {
		kill_process(registry(), 'background writer');
		return sub { };
	},
	free => sub {
		my $worker = registry()->safe_psql('postgres',
			"SELECT worker_id FROM snowflake_registry.workers WHERE state = 'held' ORDER BY worker_id");
		my @held = split /\n/, $worker;
		free_worker($held[ $round_plan->{other} * @held ]) if @held;
		return sub { };
	},
	lost => sub {
		lose_grants() if may_lose_grants();
		return sub { };
	},
	clock => sub {
		my $node = registry();
		my $step = registry_step($round_plan->{step});

		# For a while, servers are refused.
		$step = -HOUR if $round_plan->{seconds} < 0.3;
		$world{was_behind} = 1 if $step == -HOUR;
		set_clock($node, $step);
		happens("clock of the registry $step s");
		nap(1);
		return sub {
			set_clock($node, 0) if $step == -HOUR;
		};
	});

# Can this happen now?
sub possible
{
	my ($fault) = @_;

	# As many failovers as the registry allows, where waiting takes hours; and as
	# there are nodes.
	if ($fault eq 'failover' || $fault eq 'split brain')
	{
		return 0 if $world{registry} + 1 >= @{ $world{registries} };
		return 0
		  if $world_plan->{long}
		  && $world{failovers} >= $world_plan->{failovers};
		return 0 if next_slices_rest(1);
	}
	if ($fault eq 'same timeline')
	{
		return 0 if $world{registry} + 2 >= @{ $world{registries} };
		return 0
		  if $world_plan->{long}
		  && $world{failovers} + 1 >= $world_plan->{failovers};
		return 0 if next_slices_rest(2);
	}
	return 0 if $fault eq 'bad host' && !$world{proxies};
	return 0
	  if $fault eq 'silent host'
	  && (!$world{proxies} || $world{registry} + 1 >= @{ $world{proxies} });
	return 1;
}

#
# What the registry has granted, for histories: the changes of its table, with the server
# that called.  The registry's functions fire no triggers but those that are always
# enabled.
#
my $keep_grants = q{;
CREATE TABLE granted (
	n bigint GENERATED ALWAYS AS IDENTITY, node text, worker_id integer,
	granted_from bigint, granted_until bigint, held boolean);
CREATE FUNCTION keep_grant() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	INSERT INTO public.granted (node, worker_id, granted_from, granted_until, held)
	VALUES (current_setting('application_name'), NEW.worker_id, NEW.granted_from,
		NEW.granted_until, NEW.token_hash IS NOT NULL);
	RETURN NULL;
END $$;
CREATE TRIGGER keep_grant AFTER INSERT OR UPDATE ON snowflake_registry.grants
FOR EACH ROW EXECUTE FUNCTION keep_grant();
ALTER TABLE snowflake_registry.grants ENABLE ALWAYS TRIGGER keep_grant;
};

# A registry that is down writes what it has granted, when it has recovered.  It does so
# without a postmaster, so that no server reaches it.
sub write_grants
{
	my ($node) = @_;
	my $file = "$world{history}->{directory}/" . $node->name . '.grants';
	my $copy = q{COPY (SELECT 'grant', node, worker_id, granted_from, granted_until, held }
	  . "FROM granted ORDER BY n) TO '$file' (DELIMITER ' ')";
	my $output = '';

	IPC::Run::run(
		[ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ],
		'<' => \"$copy\n",
		'>&' => \$output) && -e $file
	  or die "the grants of " . $node->name . " cannot be read: $output";
	return;
}

# An archive of all registries of the world, in which no file is replaced.
sub archive_in_common
{
	my ($node) = @_;
	my $archive = $world{archive} = "$PostgreSQL::Test::Utils::tmp_check/archive$total{worlds}";

	mkdir $archive or die "$archive: $!";
	$node->append_conf('postgresql.conf', join "\n",
		'archive_mode = on',
		"archive_command = 'cp -n \"%p\" \"$archive/%f\" && cmp -s \"%p\" \"$archive/%f\"'",
		"restore_command = 'cp \"$archive/%f\" \"%p\"'", '');
	return;
}

#
# Worlds
#
sub begin_world
{
	my $reach = $world_plan->{reach};
	%world = (
		servers => [],
		nodes => [],
		lines => 0,
		clients => 0,
		backups => 0,
		own_servers => [],
		failovers => 0,
		away => 0,
		registry => 0,
		history => new_history());
	$world{registries} = [ map { new_node('registry') } 0 .. 8 ];
	$world{proxies} = [ map { Proxy->new($_) } @{ $world{registries} } ]
	  if $world_plan->{proxies};
	ledger("begin 12 10 1 $world_plan->{workers}");
	fact($world{history}, 'registry', 12, 10);

	my $registry = node_of_backup(registry(), $template, 'backup');
	configure($registry, 0) if $world_plan->{own};
	archive_in_common($registry) if $world_plan->{archive};
	set_clock($registry, 0);
	start_node($registry);
	$registry->safe_psql(
		'postgres', qq{
		CREATE EXTENSION snowflake_registry;
		SELECT snowflake_registry.create(1, $world_plan->{workers},
			grant_time => '$world_plan->{grant_time} s', reach => '$reach s',
			failovers => $world_plan->{failovers}, new => true)} . $keep_grants);
	own_server();
	add_standby($registry, $world{registries}[1], 0);

	foreach my $i (0 .. $world_plan->{servers} - 1)
	{
		my $node = node_of_backup(new_node('server'), $template, 'backup');
		configure($node, $i);
		set_clock($node, 0);
		start_node($node);
		my $server = add_server($node, 'new', 0);
		$node->backup('old') if $i == 0;
		$server->{standby} = add_standby($node, new_node('standby'), 0)
		  if $world_plan->{pairs}[$i];
	}
	return;
}

# Of too many servers, one that was added goes.
sub retire_servers
{
	while (@{ $world{servers} } > $world_plan->{most})
	{
		my ($server) = splice @{ $world{servers} }, 1, 1;

		happens("$server->{name} is retired");
		$_->stop('immediate') foreach grep { defined } $server->{standby};
		stop_server($server, 'immediate');
	}
	return;
}

# One of the faults of servers of a round.
sub server_fault
{
	my ($fault) = @_;
	my @servers = @{ $world{servers} };
	my $server = $servers[ $round_plan->{who} * @servers ];
	my @others = grep { $_ != $server } @servers;
	my $other = $others[ $round_plan->{other} * @others ];

	happens("$server->{name}: $fault");
	my $done = $server_fault{$fault}->($server, $other);
	fault($fault) unless ($done // '') eq 'not done';
	retire_servers();
	return;
}

sub round
{
	my $round = $round_plan;
	my $registry_fault = $round->{registry_fault};

	$registry_fault = 'restart' unless possible($registry_fault);
	end_silence();
	happens("registry: $registry_fault");
	my $ends = $registry_fault{$registry_fault}->();
	foreach my $its (@{ $round->{server_faults} })
	{
		$round_plan = { %$round, %$its };
		server_fault($its->{fault});
	}
	$round_plan = $round;
	$ends->();
	happens("end of the registry's $registry_fault");
	fault("$registry_fault of the registry") if $registry_fault ne 'nothing';
	nap($round_plan->{pause});

	end_old_registry()
	  if $world{old_registry} && --$world{old_registry}{rounds} < 0;
	my @all = (@{ $world{servers} }, grep { defined } $world{own});
	probe($_) foreach @all;
	renew_clients($_) foreach @all;
	take_ids();
	return;
}

# What the servers' logs tell of grants.
sub count_grants
{
	my %files = map { $_->logfile => 1 } @{ $world{nodes} };
	my $n = 0;

	foreach my $file (keys %files)
	{
		$n += () = slurp_file($file) =~
		  /LOG:  snowflake IDs are generated with worker ID/g;
	}
	return $n;
}

# Let the checker compare what clients received with what was granted.
sub check_world
{
	write_grants($_) foreach @{ $world{registries} }[ 0 .. $world{registry} ];
	my (undef, @found) = check_history($world{history});
	wrong(join "\n  ", 'the checker of histories', @found) if @found;
	$world{unhistoric} = @found;
	return;
}

sub end_world
{
	my ($lived) = @_;

	foreach my $server (@{ $world{servers} }, @{ $world{own_servers} })
	{
		kill 'KILL', map { $_->{pid} } @{ $server->{clients} };
		waitpid($_->{pid}, 0) foreach @{ $server->{clients} };
		ledger("close $_->{n}") foreach @{ $server->{clients} };
		unlink $_->{file}, $_->{errors} foreach @{ $server->{clients} };
	}
	$_->stop foreach @{ delete $world{proxies} // [] };
	if (my $old = delete $world{old_registry})
	{
		kill 'CONT', @{ $old->{walsenders} };
	}
	take_ids();
	$total{grants} += count_grants();
	$total{$_} += $world{$_}
	  foreach 'ids', 'duplicates', 'falls', 'shared', 'foreign', 'workers';
	end_nodes(@{ $world{nodes} });
	check_world() if $lived;
	foreach my $node (@{ $world{nodes} })
	{
		PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', $node->data_dir,
			$node->backup_dir)
		  unless bad();
	}
	PostgreSQL::Test::Utils::system_or_bail('rm', '-rf', $world{archive})
	  if defined $world{archive};
	return;
}

while (time < $end)
{
	$world_plan = plan_world($total{worlds}++);
	$round_plan = undef;
	nothing_happened();
	print '# plan: ', describe($world_plan), "\n";
	happens("world $total{worlds} begins");
	my $lived = eval {
		begin_world();
		probe($_) foreach @{ $world{servers} };
		renew_clients($_) foreach @{ $world{servers} };
		foreach my $plan (@{ $world_plan->{rounds} })
		{
			last if time > $end;
			$round_plan = $plan;
			$total{rounds}++;
			happens("round $total{rounds}: " . describe($plan));
			round();
			last if bad() || $bug && $total{failed} > 0;
		}
		1;
	};
	my $undone = $lived || $@ =~ /^interrupted/ ? undef : $@;
	fail_call("what was planned could not be done: $undone")
	  if defined $undone && !$bug;
	end_world($lived);
	die $undone if defined $undone && $bug && !bad() && $total{failed} == 0;
	printf $figures
	  "world %d: %d rounds so far, %d IDs, %d worker IDs of %d, %d runs in the ledger\n",
	  $total{worlds}, $total{rounds}, $world{ids}, $world{workers},
	  $world_plan->{workers}, $world{runs};

	# What led to it is in the logs and the data directories.
	last if bad() || !$lived || $bug && $total{failed} > 0;
}

my ($histories, $wrong_in_histories, $calls) = history_figures();
my $wrong =
  $total{duplicates} + $total{falls} + $total{shared} + $total{foreign} +
  $total{failed} + $wrong_in_histories;
if ($bug)
{
	ok($wrong > 0, "the bug \"$bug\" is found");
	done_testing();
	print $figures "$histories\n";
	printf $figures
	  "bug \"$bug\": %d rounds, %d IDs, %d duplicates, %d falls, %d shared, %d foreign, %d failed, %s, seed %d\n",
	  @total{qw(rounds ids duplicates falls shared foreign failed)},
	  $wrong > 0 ? sprintf('found after %.0f s', time - $begin) : 'not found', $seed;
	exit($wrong == 0);
}
is($wrong, 0, 'neither a duplicate nor a fall, and no call that failed');
cmp_ok($calls, '>', 0, 'histories were checked');
done_testing();
print $figures "$histories\n";
print $figures 'faults by kind: ', faults_by_kind(), "\n";
printf $figures
  '%d rounds, %d faults in %d worlds (%d failovers of the registry, %d of them of two standbys to one timeline, %d more with the old primary alive), '
  . '%d servers, %d IDs, %d worker IDs, %d grants, %d duplicates, %d falls, '
  . "%d shared, %d foreign, %d failed, %d refused, longest wait %.1f s, seed %d\n",
  $total{rounds}, count_faults(), $total{worlds}, $total{failovers} - $total{split_brains},
  @total{
	qw(twins split_brains servers ids workers grants duplicates falls shared foreign
	  failed refused longest_wait)
  }, $seed;
exit($wrong > 0 || $calls == 0);
