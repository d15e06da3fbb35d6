# The world "Registry" of script/tests/torture: servers that get their worker IDs from a
# registry, and all that can happen to both.

package Registry;

use History;
use Sequences;
use SnowflakeTest;
use Torture;
use WithRegistry;

use constant HOUR => 3600;
use constant DAYS => 200 * 86400;
use constant CLIENTS => (usual => 2, greedy => 1, witness => 1, sequences => 1);
use constant ROUNDS => 10;

# The nodes that can be the registry of a world, one after the other
use constant REGISTRIES => 9;

#
# The plan.  A world is a registry, its servers, and what happens to them, round
# by round.
#
# Often there are just as many W's as servers, so that each that a server loses is
# taken by another one as soon as it is free.
#
# In a world with a short reach clocks are off by seconds; by hours only for a
# while, in which the server or the registry is refused.  In one with a long
# reach they are off by an hour for long, and W's are reserved for as long: there
# are more of them.
#
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

sub plan_round
{
	my @faults = $bug ? $fault_for_bug{$bug} : map { any_of(@server_faults) } 1 .. any_of(1, 2, 3, 4);

	return {
		plan_fault(),
		server_faults => [ map { { plan_fault(), sequences => plan_sequences(), fault => $_ } } @faults ],
		registry_fault => $bug
		? $registry_fault_for_bug{$bug} // 'nothing'
		: any_of(@registry_faults),
		pause => rand(1.5)
	};
}

sub plan_world
{
	my $long = rand() < 0.3;
	my $servers = 2 + int rand(3);
	my $most = $servers + 1;
	my $grant_time = any_of(2, 3, 4, 8);
	my $failovers = any_of(1, 3, 5);
	my %its = (
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
	$its{rounds} = [ map { plan_round() } 1 .. ROUNDS ];

	# Servers ask the registry through proxies, which may break.
	$its{proxies} = rand() < 0.5 || $bug eq 'hosts' ? 1 : 0;

	# Registries archive their WAL in one place; and one of the servers is the registry
	# itself, whose standby takes over both.  The old one, which may keep running, has a
	# worker ID, too.
	$its{archive} = rand() < 0.4 && $bug ne 'timeline' ? 1 : 0;
	$its{own} = rand() < 0.4 ? 1 : 0;
	$its{workers} += 2 * ($failovers + 1) if $its{own};
	$its{workers} = 1000 if $its{workers} > 1000;
	return \%its;
}

sub bad { return found() > $total{failed}; }

#
# Servers and their clients
#

# What clients do, over and over: single calls and blocks, committed or not, and greedy
# ones large blocks.  They rest, because speed is not measured here.
my %script = map { $_ => "$PostgreSQL::Test::Utils::tmp_check/$_.sql" } ('usual', 'greedy');
my $template;

sub create
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
	$template = template_node(\&create_sequences,
		'max_connections = 40', 'max_wal_senders = 8',
		'snowflake.sequence_start = zero', "snowflake.grant_timeout = '3s'");
	$book = new_book();
	return;
}

# A copy asks in its own name.
sub copy_conf ($node, $, $origin)
{
	return slurp_file($origin->data_dir . '/postgresql.conf') =~ /^snowflake\.registry/m ? registry_of($node, 1) : ();
}

# Each server is a life-line of its own, which histories have the same name of.  Its IDs are above
# a last one: none, or of a copy what is stored.
sub add_line ($server)
{
	$server->{line} = ++$world{lines};
	$server->{last} //= 0;
	book("line $server->{line} $server->{last}");
	fact($book->{history}, 'server', $server->{line}, $server->{name}, $server->{last});
	are_snowflake($book->{history}, $server->{node}, $server->{line});
	return;
}

# In the order of the hosts that a server asks, each other one begins at the end.  Its
# sessions at the registry have the name of its node.
sub registry_of ($node, $i)
{
	my ($registries, $proxies) = @world{ 'registries', 'proxies' };

	return asks_registries($node, map { $_ && $i % 2 ? [ reverse @$_ ] : $_ } $registries, $proxies);
}

sub conf_of ($node, $i)
{
	my $name = $plan->{one_name} ? 'one' : $node->name;

	return (
		registry_of($node, $i),
		"snowflake.server_name = '$name'",
		"snowflake.max_lead = $plan->{max_lead}",
		"snowflake.reserve_time = $plan->{reserve_time}");
}

# Errors of clients: that there is no grant just now is none.
sub judge ($server, @errors)
{
	judge_errors("a client of $server->{name}",
		qr/no worker ID is granted|the grant of worker ID \d+ ended|$sequence_refusal/, @errors);
	return;
}

sub renew_clients ($server)
{
	my %missing = (CLIENTS);

	reap_clients($server);
	$missing{ $_->{is} }-- foreach @{ $server->{clients} };
	my @kinds = map { ($_) x $missing{$_} } sort keys %missing;
	return if @kinds == 0;
	add_up('take');
	foreach my $kind (@kinds)
	{
		my $client = start_client($server->{node}, $server->{line}, $kind eq 'witness' ? 'calls' : $kind, $script{$kind});
		push @{ $server->{clients} }, { %$client, is => $kind };
	}
	return;
}

# End all clients, those too that are about to connect.
sub end_all_clients ($server)
{
	within(LONGEST_WAIT, sub { end_clients($server->{node}); reap_clients($server); return !@{ $server->{clients} } });
	reap_clients($server, 1);
	return;
}

# A time by which a clock may be off for long.  A server that is ahead of the registry
# by more than grant_time gets no worker ID when it starts.
sub small_step ($r)
{
	return (-HOUR, 0, -HOUR / 60)[ 3 * $r ] if $plan->{long};
	return (8 * $r - 4) * $plan->{grant_time} / 10;
}

# The same for a registry, which servers must not be ahead of.
sub registry_step ($r) { return $plan->{long} ? -small_step($r) : small_step($r); }

# Longer than a grant.
sub more_than_grant { return $plan->{grant_time} * (1.2 + $round_plan->{seconds}); }

sub worker_of ($server)
{
	return $server->{node}
	  ->safe_psql('postgres', 'SELECT worker_id FROM snowflake_stat');
}

# Have a server that is not started yet ask for this worker ID.
sub wish ($server, $worker)
{
	$server->{node}
	  ->append_conf('postgresql.conf', "snowflake.worker_id = $worker\n")
	  if $worker ne '';
	happens("$server->{name} would like to have $worker");
	return;
}

sub start_wishing ($server, $worker)
{
	wish($server, $worker);
	start_server($server);
	return;
}

# Wait, but not for long, until a server has a grant, without an ID of it.
sub wait_for_grant ($server)
{
	within(10, sub { worker_of($server) ne '' });
	happens("$server->{name} has worker ID " . worker_of($server));
	return;
}

# Nobody extends a server's grant.  Another one would like to have its worker ID,
# and asks for it when it is just free, or later.
sub let_grant_pass ($other, $worker)
{
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

sub copy_server ($server, $backup, $clock = small_step($round_plan->{step}))
{
	my $node = node_of_backup('copy', $server->{node}, $backup);

	$node->append_conf('postgresql.conf', $_) foreach copy_conf($node, undef, $server->{node});
	set_clock($node, $clock);
	start_node($node);
	add_copy($node, "a copy of $server->{name}", last => greatest_stored($node), clock => $clock);
	return;
}

my %server_fault = (
	'restart two' => sub (@both) {
		my @workers = map { worker_of($_) } @both;
		stop_server($_, 'fast') foreach @both;
		start_wishing($both[$_], $workers[ 1 - $_ ]) foreach 1, 0;
	},
	'kill worker' => sub { kill_process($_[0]{node}, 'snowflake grant') },

	# It is told that it holds no worker ID, and one of its processes is killed
	# while it generates IDs of the rest of its grant.
	'kill refused' => sub ($server, @) {
		my $node = $server->{node};
		my $worker = worker_of($server);
		return 'not done' if $world{away} || $worker eq '';
		my $offset = -s $node->logfile;
		$round_plan->{seconds} < 0.6 && may_lose_grants()
		  ? lose_grants()
		  : free_worker($worker);
		within(10, sub { slurp_file($node->logfile, $offset) =~ /does not extend the grant/ });
		kill_process($node, 'client backend');
	},

	# Another server has its worker ID for a while.  It gets it back, and before
	# its first ID its clock is set back and one of its processes is killed.
	'kill granted' => sub ($server, $other) {
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
	reload => sub ($server, @) {
		my $node = $server->{node};
		reload_with($node,
			$round_plan->{step} < 0.5 ? "snowflake.registry = ''" : registry_of($node, 1));
		nap(0.5);
		kill_process($node, 'background writer');
		renew_clients($server);
		nap($round_plan->{pause});
		reload_with($node, registry_of($node, 0));
	},

	# Others take its worker ID meanwhile.
	pause => sub ($server, $other) {
		my $worker = worker_of($server);
		pause_node($server->{node});
		let_grant_pass($other, $worker);
		continue_node($server->{node});
	},
	'pause backend' => sub ($server, $other) {
		my $worker = worker_of($server);
		return pause_process($server, 'client backend', sub {
			free_worker($worker)
			  if $round_plan->{step} < 0.7 && $worker ne '' && !$world{away};
			let_grant_pass($other, $worker);
		});
	},
	'pause worker' => sub ($server, $other) {
		my $worker = worker_of($server);
		return pause_process($server, 'snowflake grant', sub { let_grant_pass($other, $worker) });
	},
	'end worker' => sub ($server, $other) {
		my $worker = worker_of($server);
		my $pid = some_process($server->{node}, 'snowflake grant') or return 'not done';
		stop_server($other, 'immediate');
		kill 'TERM', $pid;
		start_wishing($other, $worker);
	},

	# The old primary keeps running.
	promotion => sub ($server, @) {
		my $clock = $server->{standby} ? 0 : $server->{clock};
		my $standby = delete $server->{standby} // standby_for($server->{node}, new_node('standby'), $clock);
		$standby->promote;
		add_copy($standby, "promoted from a standby of $server->{name}",
			last => greatest_stored($standby), clock => $clock);
	},
	copy => sub ($server, @) {
		my $backup = 'copy' . ++$world{backups};
		$server->{node}->backup($backup);
		copy_server($server, $backup);
	},
	# Neither it nor its origin can ask the registry.
	'cut-off copy' => sub ($server, @) {
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
	sequences => sub ($server, $other) {
		my $there = $round_plan->{other} < 0.5 ? $other : $server;
		my $on = $round_plan->{sequences}{change} eq 'dump' ? $there : $server;
		book("id $on->{line} $_")
		  foreach change_sequences($server->{node}, $round_plan->{sequences}, $book->{history}, $server->{line}, $there->{node});

		# It is counted there, by its kind.
		return 'not done';
	},
	clock => sub ($server, @) {
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
	'start with clock' => sub ($server, @) {
		stop_server($server, any_way());
		put_clock($server, (DAYS, HOUR, -HOUR)[ 3 * $round_plan->{step} ]);
		start_server($server);
		my $answer =
		  $server->{node}->psql('postgres', 'SELECT snowflake_nextval()');
		$total{refused}++ if $answer != 0;
		put_clock($server, 0);
	},
	reset => sub ($server, @) {
		end_all_clients($server);
		my $seconds = (-HOUR, -1, 0, 2)[ 4 * $round_plan->{step} ];
		my $mark = sql($server->{node}, qq{
			SELECT snowflake_lower_bound(now() + interval '$seconds s') AS mark \\gset
			SET client_min_messages = error;
			DELETE FROM t WHERE id >= :mark;
			SELECT snowflake_set_mark(:mark, force => true) \\g /dev/null
			SELECT :mark});
		$server->{last} = $mark - 1;
		add_line($server);
		happens("$server->{name} is reset, line $server->{line}");
	});

sub any_way { return ('fast', 'immediate', 'kill')[ 3 * $round_plan->{seconds} ]; }

#
# The registry
#
# Why a registry does not grant worker IDs, if it does not.  A worker ID that nobody has
# is freed for that, which changes nothing.
sub refusal ($node)
{
	my $error = sql_error($node, 'SELECT snowflake_registry.free_worker(-1)');

	return $error =~ /ERROR:  42704: worker ID -1 was never granted/ ? undef : $error;
}

# The first of them that grants worker IDs by itself.
sub wait_until_it_grants (@nodes)
{
	my $refusal;
	my $first = within(LONGEST_WAIT, sub {
			foreach my $node (@nodes)
			{
				$refusal = refusal($node) // return $node;
				die "a registry: $refusal" unless $refusal =~ /has not been archived yet/;
			}
			return;
		}, 0.1);

	fail_call("no registry continues by itself: $refusal") unless $first;
	return $first // $nodes[0];
}

# After the promotion of the registry's standby there is another one.
sub promote_registry
{
	my $standby = delete $world{registry_standby};

	end_silence();
	$standby->promote;

	# Nobody promotes two standbys to the same timeline here.
	$plan->{archive}
	  ? wait_until_it_grants($standby)
	  : sql($standby, 'SELECT snowflake_registry.confirm_promotion()');
	$total{failovers}++;
	$world{failovers}++;
	registry_is($standby);
	own_server();
	return;
}

sub timeline_of ($node)
{
	return hex sql($node, 'SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)');
}

# Which of two standbys with a common archive is the registry?  The one that archived
# the timeline of both, or the one that saw the other one's timeline there, if it can archive its own.
sub archived_first ($timelines, @twins)
{
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
sub has_other_wal ($node)
{
	my $failed = sub { slurp_file($node->logfile) =~ /archiving write-ahead log file "[0-9A-F]{24}\.partial" failed too many times/ };

	within(LONGEST_WAIT, sub { !defined refusal($node) || $failed->() }, 0.1);
	return defined refusal($node) && $failed->();
}

# Without an archive none of them is, until an administrator says so.
sub confirmed (@twins)
{
	my $node = $twins[ $round_plan->{other} < 0.5 ? 0 : 1 ];

	nap(1);
	foreach my $twin (@twins)
	{
		fail_call('a registry grants worker IDs, and another one may, too')
		  unless $bug || defined refusal($twin);
	}
	sql($node, 'SELECT snowflake_registry.confirm_promotion()');
	return $node;
}

# Both standbys are promoted at once, mostly to the same timeline.  The one that is not the
# registry then keeps running for some time.
sub promote_twins (@twins)
{
	end_silence();
	system_or_bail('pg_ctl', '-W', '-D', $_->data_dir, 'promote')
	  foreach @twins;
	wait_until_true($_, 'SELECT NOT pg_is_in_recovery()') foreach @twins;
	my @timelines = map { timeline_of($_) } @twins;
	happens("two standbys are promoted to timelines @timelines");
	$total{twins}++ if $timelines[0] == $timelines[1];
	my $next =
	  $plan->{archive} ? archived_first(\@timelines, @twins) : confirmed(@twins);

	$total{failovers}++;
	$world{failovers} += 2;
	delete $world{registry_standby};
	registry_is($_) foreach sort { ($a == $next) <=> ($b == $next) } @twins;
	keep_old_registry(grep { $_ != $next } @twins);
	own_server();
	return;
}

# The server that is the registry itself is a life-line of its own after each promotion.
sub own_server
{
	return unless $plan->{own};
	my $last = $world{own} ? greatest_stored(registry()) : 0;

	$world{own} = add_copy(registry(), 'its own registry', last => $last, is_own => 1);
	push @{ $world{own_servers} }, $world{own};
	return;
}

sub new_registry_standby
{
	my $node = shift @{ $world{spares} } // return;

	$world{registry_standby} = standby_for(registry(), $node, registry_step($round_plan->{step}));
	return;
}

# One that is the registry no more keeps running for some time.
sub keep_old_registry ($node, @walsenders)
{
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

	kill_postmaster($old->{node}, @{ $old->{walsenders} });
	$world{rests}{ $old->{slice} } = time() + 2 * $plan->{reach};
	return;
}

sub slice_of ($timeline) { return $timeline % ($plan->{failovers} + 1); }

# What an old registry granted has to end before its slice is granted again: the new one
# knows nothing of that, and an administrator has to see to it.
sub next_slices_rest ($promotions)
{
	my $timeline = timeline_of(registry());

	foreach my $slice (map { slice_of($timeline + $_) } 1 .. $promotions)
	{
		return 1 if ($world{rests}{$slice} // 0) > time();
		return 1 if $world{old_registry} && $world{old_registry}{slice} == $slice;
	}
	return 0;
}

sub free_worker ($worker)
{
	# It may have been granted by the old registry, or lost.
	my $error = sql_error(registry(), "SELECT snowflake_registry.free_worker($worker)");
	die $error unless $error =~ /^(?:psql:.*ERROR:  42704: worker ID \d+ was never granted|$)/;
	happens("worker ID $worker is freed $error");
	return;
}

# What was lost may reach as far ahead of the registry's clock as what is known: an hour
# if it was behind by that, and a server extended its grant then and never again.
sub may_lose_grants { return !$plan->{long} && !$world{was_behind}; }

sub lose_grants
{
	registry()->safe_psql('postgres', 'SELECT snowflake_registry.report_loss()');
	happens('the registry has lost grants');
	return;
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
	outage => sub { return outage($plan->{grant_time} * 0.4) },
	'long outage' => sub { return outage(more_than_grant()) },
	failover => sub {
		end_old_registry();
		my @walsenders = cut_off_standbys(1);
		return sub {
			kill_postmaster(registry(), @walsenders);
			promote_registry();
			new_registry_standby();
		};
	},

	# Two standbys, which know nothing of each other, take over.
	'same timeline' => sub {
		end_old_registry();
		my $twin = standby_for(registry(), shift @{ $world{spares} }, registry_step($round_plan->{step}));
		my @walsenders = cut_off_standbys(2);
		return sub {
			kill_postmaster(registry(), @walsenders);
			promote_twins($world{registry_standby}, $twin);
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

	'bad host' => sub {
		return bad_host(('silent', 'mute', 'lose', 'cut', 'late')[ 5 * $round_plan->{other} ],
			$round_plan->{way} eq 'kill' ? $plan->{grant_time} * 0.4 : more_than_grant());
	},

	# The host of its standby takes connections and says nothing until the next round:
	# those servers that try it first have to go on to the registry.
	'silent host' => sub {
		($world{silent}) = grep { $_->{is_of} == $world{registry_standby} } @{ $world{proxies} };
		$world{silent}->set('silent');
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
sub possible ($fault)
{
	my $promotions = { failover => 1, 'split brain' => 1, 'same timeline' => 2 }->{$fault};
	return 0 if $fault =~ /^(?:bad|silent) host$/ && !$world{proxies};
	return $fault ne 'silent host' || defined $world{registry_standby} unless $promotions;

	# As many failovers as the registry allows, where waiting takes hours; and as
	# there are nodes.
	return 0 if !defined $world{registry_standby} || @{ $world{spares} } < $promotions - 1;
	return 0 if !may_lose_grants() && $world{failovers} + $promotions > $plan->{failovers};
	return !next_slices_rest($promotions);
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
sub write_grants ($node)
{
	my $file = "$book->{history}->{directory}/" . $node->name . '.grants';
	my $copy = q{COPY (SELECT 'grant', node, worker_id, granted_from, granted_until, held }
	  . "FROM granted ORDER BY n) TO '$file' (DELIMITER ' ')";
	my $output = single_user($node, $copy);

	die "the grants of " . $node->name . " cannot be read: $output" if $? || !-e $file;
	return;
}

# An archive of all registries of the world, in which no file is replaced.
sub archive_in_common ($node)
{
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
	my $reach = $plan->{reach};

	%world = (servers => [], own_servers => [], lines => 0, backups => 0, failovers => 0, away => 0);
	$book->{history} = new_history();
	begin_ledger(12, 10, 1, $plan->{workers});
	fact($book->{history}, 'registry', 12, 10);

	my $registry = begin_registries(REGISTRIES);
	node_of_backup($registry, $template, 'backup');
	$registry->append_conf('postgresql.conf', join "\n", conf_of($registry, 0), '') if $plan->{own};
	archive_in_common($registry) if $plan->{archive};
	set_clock($registry, 0);
	start_node($registry);
	sql($registry, qq{
		CREATE EXTENSION snowflake_registry;
		SELECT snowflake_registry.create(1, $plan->{workers},
			grant_time => '$plan->{grant_time} s', reach => '$reach s',
			failovers => $plan->{failovers}, new => true)} . $keep_grants);
	registry_is($registry);
	own_server();
	$world{registry_standby} = standby_for($registry, shift @{ $world{spares} }, 0);

	foreach my $i (0 .. $plan->{servers} - 1)
	{
		my $node = new_node('server');
		my $server = add_server(new_server_of($node, $template, conf_of($node, $i)), 'new');
		$node->backup('old') if $i == 0;
		$server->{standby} = standby_for($node, new_node('standby'), 0) if $plan->{pairs}[$i];
	}
	probe_all(@{ $world{servers} });
	renew_all(@{ $world{servers} });
	return;
}

# Of too many servers, one that was added goes.
sub retire_servers
{
	while (@{ $world{servers} } > $plan->{most})
	{
		my ($server) = splice @{ $world{servers} }, 1, 1;

		happens("$server->{name} is retired");
		$_->stop('immediate') foreach grep { defined } $server->{standby};
		stop_server($server, 'immediate');
	}
	return;
}

sub registry_round
{
	end_silence();
	round();
	nap($round_plan->{pause});

	end_old_registry()
	  if $world{old_registry} && --$world{old_registry}{rounds} < 0;
	my @all = (@{ $world{servers} }, grep { defined } $world{own});
	probe_all(@all);
	renew_all(@all);
	add_up('take');
	return;
}

# What the servers' logs tell of grants.
sub count_grants
{
	my %files = map { $_->logfile => 1 } @nodes;
	my $n = 0;

	foreach my $file (keys %files)
	{
		$n += () = slurp_file($file) =~
		  /LOG:  snowflake IDs are generated with worker ID/g;
	}
	return $n;
}

sub end_world ($lived)
{
	part_with($_->{clients}, 0, $_->{name}) foreach @{ $world{servers} }, @{ $world{own_servers} };
	end_registries();
	kill 'CONT', @{ (delete $world{old_registry} // {})->{walsenders} // [] };
	add_up('take');
	$total{grants} += count_grants();
	end_nodes(@nodes);

	# Let the checker compare what clients received with what was granted.
	write_grants($_) foreach $lived ? @{ $world{were_registry} } : ();
	$lived ? end_history() : drop_history();
	system_or_bail('rm', '-rf', map { ($_->data_dir, $_->backup_dir) } @nodes) unless bad();
	system_or_bail('rm', '-rf', $world{archive}) if defined $world{archive};
	@nodes = ();
	return;
}

with_registry(__PACKAGE__,
	probe => 'SELECT snowflake_nextval()',
	probed => sub { book("id $_[0]{line} $_[1]") },
	server_faults => \%server_fault,
	registry_faults => \%registry_fault);

sub world
{
	return {
		create => \&create,
		plan => \&plan_world,
		begin => \&begin_world,
		round => \&registry_round,
		stops => \&bad,
		end => \&end_world,

		# What led to it is in the logs and the data directories.
		ends => sub { bad() || !$_[0] },
		wrong => [qw(duplicates falls shared foreign failed)],
		promise => 'neither a duplicate nor a fall, and no call that failed',
		so_far => '{worlds} worlds, {rounds} rounds, {ids} IDs',
		bug_figures => '{rounds} rounds, {ids} IDs, {duplicates} duplicates, {falls} falls, {shared} shared, '
		  . '{foreign} foreign, {failed} failed',
		figures => '{rounds} rounds, {faults} faults in {worlds} worlds ({failovers} failovers of the registry, '
		  . '{twins} of them of two standbys to one timeline, {split_brains} of them with the old primary alive), '
		  . '{servers} servers, {ids} IDs, {workers} worker IDs, {grants} grants, {duplicates} duplicates, {falls} falls, '
		  . '{shared} shared, {foreign} foreign, {failed} failed, {refused} refused, longest wait {longest_wait} s' };
}

1;
