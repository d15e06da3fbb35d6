# What the worlds of script/tests/torture with a registry share: its servers and their clients,
# and what happens to both, round by round.
#
# A world has these functions, too:
#
#	add_line	a server, or one that has become another one, begins
#	renew_clients	starts the clients that a server lacks
#	judge		judges the errors that clients of a server got
#	copy_conf	lines of the configuration of a copy
#	retire_servers	has those that have gone leave
#	possible	can a fault of the registry happen now?
#
# And with_registry() gets
#
#	probe		the query that a server has to answer when all is well
#	probed		what it has answered
#	server_faults, registry_faults	faults by their names, beside those that are here

package WithRegistry;

use v5.36;

use Exporter 'import';
use Proxy;
use SnowflakeTest;
use Torture;

our @EXPORT = qw(
  %world LONGEST_WAIT with_registry plan_fault begin_registries end_registries registry registry_is
  new_server_of add_server start_server stop_server reap_clients renew_all standby_for add_copy
  greatest_stored probe_all put_clock pause_process bad_host cut_off_standbys
  outage is_away round any_step
);

# A server that gives out nothing for as long, although nothing keeps it from that, has
# stopped for good.
use constant LONGEST_WAIT => 120;

our %world;
my $its;

sub with_registry ($world, %more)
{
	my @functions = qw(add_line renew_clients judge copy_conf retire_servers possible);

	$its = { %more, map { $_ => $world->can($_) } @functions };
	return;
}

# What any fault may need, of the registry or of a server.
sub plan_fault
{
	return (
		who => rand(),
		other => rand(),
		way => any_of('kill', 'immediate', 'pause'),
		step => rand(),
		seconds => rand());
}

# One of the arguments, as it is planned.
sub any_step { return $_[ $round_plan->{step} * @_ ]; }

#
# Servers
#
sub greatest_stored ($node, $table = 't')
{
	return sql($node, "SELECT coalesce(max(id), 0) FROM $table");
}

# Another server that is there from now on.
sub add_server ($node, $what, %more)
{
	my $server = { node => $node, name => $node->name, clients => [], clock => 0, %more };

	$total{servers}++;
	push @{ $world{servers} }, $server unless $more{is_own};
	$its->{add_line}->($server);
	happens("$server->{name} is $what, line $server->{line}");
	return $server;
}

# A server that begins with a template.
sub new_server_of ($node, $template, @conf)
{
	node_of_backup($node, $template, 'backup');
	$node->append_conf('postgresql.conf', join "\n", @conf, '');
	set_clock($node, 0);
	start_node($node);
	return $node;
}

# A standby of a server, or of the registry.
sub standby_for ($origin, $node, $clock, $server = undef)
{
	return copy_of($node, $origin, 1, $clock, $its->{copy_conf}->($node, $server, $origin));
}

# The server that a standby of it has become, or a copy, with clients; those begin at once, here
# and after each start.
sub add_copy ($node, $what, %more)
{
	my $server = add_server($node, $what, %more);

	$its->{renew_clients}->($server);
	return $server;
}

sub start_server ($server)
{
	start_node($server->{node});
	$its->{renew_clients}->($server);
	return;
}

sub stop_server ($server, $way)
{
	$way eq 'kill'
	  ? kill_postmaster($server->{node})
	  : $server->{node}->stop($way);
	kill 'TERM', map { $_->{pid} } grep { $_->{program} } @{ $server->{clients} };
	reap_clients($server, LONGEST_WAIT);
	return;
}

# Take leave of clients that have ended; of all, if there is a time for it.
sub reap_clients ($server, $seconds = undef)
{
	$its->{judge}->($server, part_with($server->{clients}, $seconds, $server->{name}));
	return;
}

sub renew_all { $its->{renew_clients}->($_) foreach @_; return; }

# One answer of each server, as soon as there is one.
sub probe_all { probe($_) foreach @_; return; }

sub probe ($server)
{
	my $start = time;

	for (;;)
	{
		my ($stdout, $stderr) = answer_of($server->{node}, $its->{probe});
		my $wait = time - $start;

		if (defined $stdout)
		{
			note_wait($wait);
			happens(sprintf '%s gives out %s after %.3f s', $server->{name}, $stdout, $wait);
			$its->{probed}->($server, $stdout);
			return;
		}
		$total{refused}++;
		return fail_call("$server->{name} gives out nothing: $stderr") if $wait > LONGEST_WAIT;
		usleep(100_000);
	}
}

sub put_clock ($server, $clock)
{
	$server->{clock} = $clock;
	set_clock($server->{node}, $clock);
	happens(sprintf '%s: clock %+.3f s', $server->{name}, $clock);
	return;
}

# Stop a process of a server until the function returns.
sub pause_process ($server, $type, $meanwhile)
{
	my $pid = some_process($server->{node}, $type) or return 'not done';

	kill 'STOP', $pid;
	$meanwhile->();
	kill 'CONT', $pid;
	return;
}

my %server_faults = (
	nothing => sub { nap($round_plan->{pause}) },
	restart => sub { restart_server($_[0], 'fast') },
	immediate => sub { restart_server($_[0], 'immediate') },
	'kill postmaster' => sub { restart_server($_[0], 'kill') },
	'kill backend' => sub { kill_process($_[0]{node}, 'client backend') });

sub restart_server ($server, $way)
{
	stop_server($server, $way);
	start_server($server);
	return;
}

#
# The registry
#
# The nodes that can be it have names from the beginning, because servers ask all of them; through
# proxies, which may break, if there are some.  The first of "spares" is the next one.
#
sub begin_registries ($n)
{
	my @all = map { new_node('registry') } 1 .. $n;

	$world{registries} = [@all];
	$world{proxies} = [ map { Proxy->new($_) } @all ] if $plan->{proxies};
	$world{proxies}[$_]{is_of} = $all[$_] foreach 0 .. $#{ $world{proxies} // [] };
	$world{spares} = \@all;
	return shift @all;
}

sub end_registries { $_->stop foreach @{ delete $world{proxies} // [] }; return; }

sub registry { return $world{registry}; }

sub registry_is ($node)
{
	$world{registry} = $node;
	push @{ $world{were_registry} }, $node;
	happens($node->name . ' is the registry');
	return;
}

# Let nothing reach the standbys of the registry any more.
sub cut_off_standbys ($n)
{
	my $query = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender' AND application_name !~ '^of_'};

	wait_until_true(registry(), "SELECT count(*) = $n FROM ($query) p");
	my @pids = split /\n/, sql(registry(), $query);
	stop_walsender(registry(), $_) foreach @pids;
	return @pids;
}

# Calls find the registry away.
sub outage ($seconds)
{
	my $ends = have_away(registry(), $round_plan->{way}, $seconds);

	return is_away($ends);
}

sub is_away ($ends)
{
	$world{away} = 1;
	return sub {
		$ends->();
		$world{away} = 0;
	};
}

# A host of a registry takes connections, and calls or answers are lost, or late, for so many
# seconds.
sub bad_host ($mode, $seconds)
{
	my ($proxy) = grep { $_->{is_of} == registry() } @{ $world{proxies} };

	$proxy->set($mode);
	happens("the registry's host is $mode");
	return is_away(sub {
		nap($seconds);
		$proxy->set('pass');
	});
}

# Each begins and returns how it ends; the server's faults are between.
my %registry_faults = (
	nothing => sub { return sub { } },
	restart => sub {
		my $node = registry();
		$node->stop;
		return is_away(sub { start_node($node) });
	},
	crash => sub {
		kill_process(registry(), 'background writer');
		return sub { };
	});

#
# Rounds
#
# One of the faults of servers of a round.  Returns what is done after that of the registry,
# unless the server has gone.
sub server_fault ($fault)
{
	my @servers = grep { $_->{node} != registry() } @{ $world{servers} };
	my $server = $servers[ $round_plan->{who} * @servers ];
	my @others = grep { $_ != $server } @servers;

	happens("$server->{name}: $fault");
	my $done = ($its->{server_faults}{$fault} // $server_faults{$fault})->($server, $others[ $round_plan->{other} * @others ]);
	fault($fault) unless $fault eq 'nothing' || ($done // '') eq 'not done';
	$its->{retire_servers}->();
	return ref $done ne 'CODE' ? () : sub { $done->() if grep { $_ == $server } @{ $world{servers} } };
}

sub round
{
	my $round = $round_plan;
	my $registry_fault = $round->{registry_fault};
	my @later;

	# Servers may need one that grants.
	$registry_fault = 'crash' unless $its->{possible}->($registry_fault);
	happens("registry: $registry_fault");
	my $ends = ($its->{registry_faults}{$registry_fault} // $registry_faults{$registry_fault})->();
	foreach my $of_server (@{ $round->{server_faults} })
	{
		$round_plan = { %$round, %$of_server };
		push @later, server_fault($of_server->{fault});

		# The next one finds clients at work, too.
		renew_all(@{ $world{servers} });
		nap(0.2);
	}
	$round_plan = $round;
	$ends->();
	$_->() foreach @later;
	happens("end of the registry's $registry_fault");
	fault("$registry_fault of the registry") if $registry_fault ne 'nothing';
	return;
}

1;
