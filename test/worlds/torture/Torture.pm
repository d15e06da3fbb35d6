# What the tortures of script/tests/torture share: the plan's words, what is reported about
# a problem, servers with a clock and a disk of their own, and what is done to
# their processes.

package Torture;

use strict;
use warnings;

# The lines of script/tests/torture go to standard output, which PostgreSQL::Test::Utils takes
# for its log: a torture uses this module before that one.
our $figures;
BEGIN { open($figures, '>&', \*STDOUT) or die $!; $figures->autoflush(1); }

use Exporter 'import';
use File::Basename;
use IPC::Open2;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX qw(WNOHANG);
use SnowflakeTest;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(
  $figures begin_torture
  any_of describe
  happens nothing_happened problem problem_in_world fault count_faults faults_by_kind
  start_ledger ask_ledger become_client client_ended set_disk start_node template_node new_node node_of_backup
  asks_registries all_processes pause_node continue_node have_away end_nodes some_process kill_process nap
);

# Begin with the arguments of a script: minutes, a seed, and a bug that is to be found.  Returns
# seed and bug, and when it begins and ends.
sub begin_torture
{
	my ($minutes, $seed, $bug) = @_;
	my $begin = time;

	print $figures "seed $seed\n";
	return ($seed, $bug, $begin, $begin + 60 * $minutes);
}

sub any_of
{
	return $_[ rand @_ ];
}

sub describe
{
	my ($what) = @_;

	return 'nothing' unless defined $what;
	return '[' . join(' ', map { describe($_) } @$what) . ']'
	  if ref $what eq 'ARRAY';
	return
	  '{' . join(', ', map { "$_ " . describe($what->{$_}) } sort keys %$what) . '}'
	  if ref $what eq 'HASH';
	return $what =~ /^\d+\.\d{4,}$/ ? sprintf('%.3f', $what) : $what;
}

#
# What has happened, which is reported with a problem
#
my @happened;

sub happens
{
	push @happened, sprintf('%.3f %s', time, $_[0]);
	print '# ', time, " $_[0]\n";
	return;
}

sub nothing_happened
{
	@happened = ();
	return;
}

# Something that must not be: tell of it at once, with what led to it.
sub problem
{
	my ($what, $where, $plan) = @_;
	my $first = @happened > 15 ? @happened - 15 : 0;

	print $figures "$where: $what\n", "  plan: $plan\n",
	  map { "  $_\n" } @happened[ $first .. $#happened ];
	@happened = ();
	return;
}

# The same in a world, and a round of it, whose numbers are counted and which are planned.
sub problem_in_world
{
	my ($what, $total, $world_plan, $round_plan) = @_;
	my %world_only = %$world_plan;

	delete $world_only{rounds};
	problem($what, "world $total->{worlds}, round $total->{rounds}",
		describe(\%world_only) . ' ' . describe($round_plan));
	return;
}

my %faults;

sub fault
{
	$faults{ $_[0] }++;
	return;
}

sub count_faults
{
	my $n = 0;

	$n += $_ foreach values %faults;
	return $n;
}

# The numbers, the greatest first.
sub faults_by_kind
{
	return join ', ',
	  map { "$_ $faults{$_}" }
	  sort { $faults{$b} <=> $faults{$a} || $a cmp $b } keys %faults;
}

sub ledger_program
{
	return compile(dirname(__FILE__) . '/ledger.c');
}

# The ledger: a program that is told what to do on its standard input.
sub start_ledger
{
	my $ledger = {};

	$ledger->{pid} = open2($ledger->{from}, $ledger->{to}, ledger_program());
	return $ledger;
}

# The answer to a command, and what it reported as wrong.
sub ask_ledger
{
	my ($ledger, $command) = @_;
	my ($from, $to) = @$ledger{ 'from', 'to' };
	my @wrong;

	print $to "$command\n";
	$to->flush;
	while (defined(my $line = <$from>))
	{
		chomp $line;
		return ($line, @wrong) unless $line =~ s/^! //;
		push @wrong, $line;
	}
	die "the ledger has ended at \"$command\"";
}

# Become a psql that runs a script.  "$file.out" gets what it receives, as runs if these
# are so many IDs, and "$file.err" the errors.
sub become_client
{
	my ($node, $script, $file, $as_runs) = @_;
	my $pack = $as_runs ? " | '" . ledger_program() . "' pack" : '';

	exec('sh', '-c',
		"psql -XAtq -d \"\$1\" -f '$script' </dev/null 2>'$file.err' $pack >'$file.out'",
		'sh', $node->connstr('postgres') . ' application_name=client')
	  or POSIX::_exit(1);
}

# Has a client ended?  With a deadline, wait for that; after it call the function, and kill
# the client.
sub client_ended
{
	my ($client, $deadline, $hangs) = @_;
	my $ended = waitpid($client->{pid}, WNOHANG) != 0;

	while (defined $deadline && !$ended)
	{
		if (time > $deadline)
		{
			$hangs->();
			kill 'KILL', $client->{pid};
			waitpid($client->{pid}, 0);
			return 1;
		}
		usleep(20_000);
		$ended = waitpid($client->{pid}, WNOHANG) != 0;
	}
	return $ended;
}

#
# Servers
#
# Is the disk of pg_wal full, and how many seconds does a flush take?
sub set_disk
{
	my ($node, $full, $seconds) = @_;
	write_integers($node->basedir . '/wal_disk', $full, 1_000_000 * $seconds);
	return;
}

# Each flush of its WAL takes so many seconds from the start on, if that is given.
sub start_node
{
	my ($node, %params) = @_;
	my $flush = delete $params{flush} // 0;

	my %clock = fake_clock($node);
	my $disk = compile(dirname(__FILE__) . '/wal_disk.c', '-shared', '-fPIC');

	set_disk($node, 0, $flush);
	local %ENV = (
		%ENV, %clock,
		LD_PRELOAD => "$clock{LD_PRELOAD} $disk",
		SNOWFLAKE_WAL_DISK => $node->basedir . '/wal_disk');
	return $node->start(%params);
}

# A server that is stopped, and whose backup "backup" all others begin with.  The function
# creates what it has besides.
sub template_node
{
	my ($create, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new('template');

	# A standby that is away for a while finds the WAL that it needs.
	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf',
		join("\n", "shared_preload_libraries = 'snowflake'", 'wal_keep_size = 128MB',
			'restart_after_crash = on', 'log_statement = none',
			'fsync = on', 'wal_sender_timeout = 0',
			'wal_receiver_timeout = 0', @conf, ''));
	$node->start;
	$node->safe_psql('postgres',
		'CREATE EXTENSION snowflake; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
	$create->($node) if defined $create;
	$node->backup('backup');
	$node->stop;
	return $node;
}

my $nodes = 0;

sub new_node
{
	my ($name) = @_;
	return PostgreSQL::Test::Cluster->new("${name}_" . ++$nodes);
}

sub node_of_backup
{
	my ($name, $origin, $backup, %params) = @_;
	my $node = new_node($name);

	$node->init_from_backup($origin, $backup, %params);
	return $node;
}

# The line that has a node ask these registries, in this order, by the name of the node;
# through their proxies, if there are some.
sub asks_registries
{
	my ($node, $registries, $proxies) = @_;
	my $line = registry_conf(@$registries);
	my $name = $node->name;

	if ($proxies)
	{
		my $hosts = join ',', map { $_->{host} } @$proxies;
		my $ports = join ',', map { $_->{port} } @$proxies;
		$line =~ s/host=\S+ port=\S+/host=$hosts port=$ports/;
	}
	return $line =~ s/'$/ application_name=$name'/r . "\n";
}

#
# Processes
#
sub all_processes
{
	my ($node) = @_;
	my ($postmaster) =
	  slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	return ($postmaster, split ' ', qx(ps -o pid= --ppid $postmaster));
}

# Stop a whole server, or let it continue.
sub pause_node
{
	my ($node) = @_;
	my ($postmaster) = all_processes($node);

	kill 'STOP', $postmaster;
	kill 'STOP', all_processes($node);
	return;
}

sub continue_node
{
	my ($node) = @_;

	kill 'CONT', reverse all_processes($node);
	return;
}

# Have a server be away: 'pause', 'kill' or 'immediate'.  Returns what ends that after some
# seconds.
sub have_away
{
	my ($node, $way, $seconds) = @_;

	$way eq 'pause' ? pause_node($node)
	  : $way eq 'kill' ? kill_postmaster($node)
	  : $node->stop('immediate');
	return sub {
		nap($seconds);
		$way eq 'pause' ? continue_node($node) : start_node($node);
	};
}

# End servers, all at once, and those that stand still, too.
sub end_nodes
{
	my (@nodes) = @_;

	foreach my $node (@nodes)
	{
		eval {
			continue_node($node);
			kill 'QUIT', (all_processes($node))[0];
		};
	}
	$_->stop('immediate', fail_ok => 1) foreach @nodes;
	return;
}

# A process of a server that pg_stat_activity has under a type; of the backends,
# one of a client, because the test's own are just about to end.
sub some_process
{
	my ($node, $type) = @_;

	return $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = '$type' AND ('$type' <> 'client backend' OR application_name = 'client') LIMIT 1");
}

# Kill a process with SIGKILL, and wait until the server is back from its
# recovery.  Returns whether there was one.
sub kill_process
{
	my ($node, $type) = @_;
	my $pid = some_process($node, $type) or return 0;

	return crash_process($node, $pid);
}

sub nap
{
	usleep(1_000_000 * $_[0]);
	return;
}

1;
