# Crashes and failovers: what happens to a server under load.

package SnowflakeTest::Faults;

use v5.36;

use Exporter 'import';
use IPC::SysV qw(IPC_RMID);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest::Clients;
use SnowflakeTest::Clock;
use SnowflakeTest::Ledger;
use SnowflakeTest::Limits;
use SnowflakeTest::Servers;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(
  server_process stop_walsender is_up wait_until_up kill_postmaster crash_process
  kill_backend live failover debug_process wait_for_debugger finish_debugger
);

# The one process of a server that pg_stat_activity has with this backend_type.
# It may be about to start, so this waits for it.
sub server_process ($node, $type)
{
	my $query =
	  "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'";

	wait_until_true($node, "SELECT count(*) = 1 FROM ($query) p");
	return sql($node, $query);
}

# Stop a walsender, so that its standby gets nothing any more.  It is stopped where it
# waits for something to do: if it had the lock that commits need, these would hang until
# it continues, and could not even be terminated.
sub stop_walsender ($node, $pid)
{
	my $query = "SELECT wait_event LIKE 'WalSender%' FROM pg_stat_activity WHERE pid = $pid";

	wait_until(
		'a walsender with nothing to do',
		sub {
			kill('STOP', $pid) or die "there is no walsender $pid";
			return 1 if sql($node, $query) eq 't';
			kill 'CONT', $pid;
			return 0;
		});
	return;
}

# Kill the postmaster with SIGKILL, and children of it that would not notice, and wait until the
# others did.  Nothing stays of its shared memory.
sub kill_postmaster ($node, @children)
{
	my $data = $node->data_dir;
	my ($postmaster, $shmid) = slurp_file("$data/postmaster.pid") =~ /\A(\d+)\n.*^ *\d+ +(\d+) *$/ms;
	my @mapped = map { m{ (/dev/shm/PostgreSQL\.\d+)} } split /\n/, eval { slurp_file("/proc/$postmaster/maps") } // '';

	$node->kill9;
	kill 'KILL', @children;

	# Nobody may be attached to the shared memory any more.  The lock files go
	# too, as their process may stay a zombie for long where init is slow.
	wait_until(
		'the end of all processes of a killed server',
		sub {
			my ($segment) = grep { (split)[1] eq $shmid } split /\n/,
			  slurp_file('/proc/sysvipc/shm');

			return !defined $segment || (split(' ', $segment))[6] == 0;
		});
	shmctl($shmid, IPC_RMID, 0);
	unlink @mapped, "$data/postmaster.pid", $node->host . '/.s.PGSQL.' . $node->port . '.lock';
	return;
}

# Does a server take connections?  This writes nothing to psql, as IPC::Run dies of
# a broken pipe where psql ends before it has read that.
sub is_up ($node)
{
	return system('psql', '-XAtq', '-o', '/dev/null', '-d',
		$node->connstr('postgres'), '-c', 'SELECT 1') == 0;
}

# Wait until a server takes connections again.
sub wait_until_up ($node)
{
	wait_until('a server that takes connections', sub { is_up($node) });
	return;
}

# Stop a process where it is, unless it has ended, which may be before its parent knows.
# Returns whether it is stopped.
sub stop_process ($pid)
{
	my $state = '';

	kill('STOP', $pid) or return 0;
	while ($state ne 'T')
	{
		($state) = (eval { slurp_file("/proc/$pid/stat") } // '') =~ /\) (\w) /;
		return 0 if !defined $state || $state =~ /[XZ]/;
		usleep(1000);
	}
	return 1;
}

# Kill a process of a server with SIGKILL, and wait until the server is back from its
# recovery.  Returns whether there was one, which would else have gone on.
sub crash_process ($node, $pid)
{
	my $offset = -s $node->logfile;

	stop_process($pid) or return 0;
	kill('KILL', $pid);
	$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
	wait_until_up($node);
	return 1;
}

# Attach a debugger to a process of a server, with these commands, and wait until it
# prints a line like this.  Returns the session, or nothing if there is no debugger, or
# it cannot attach.  The commands run in the server's base directory.
sub debug_process ($node, $pid, $line, @commands)
{
	my $script = $node->basedir . '/gdb';
	my %gdb = (out => '', err => '');

	return if system('gdb --version >/dev/null 2>&1') != 0;
	unlink $script;
	append_to_file($script, join("\n",
		'set pagination off', 'set breakpoint pending on',
		'handle SIGUSR1 SIGHUP SIGURG SIGTERM SIGCHLD nostop noprint pass',
		@commands, 'detach', ''));
	$gdb{run} = IPC::Run::start(
		[ 'gdb', '-p', $pid, '-batch', '-x', $script ],
		'<' => \undef, '>' => \$gdb{out}, '2>' => \$gdb{err},
		init => sub { chdir $node->basedir });
	return \%gdb if wait_for_debugger(\%gdb, $line);
	diag("gdb cannot attach: $gdb{err}");
	return;
}

# Wait until the debugger prints a line.  Returns whether it did.
sub wait_for_debugger ($gdb, $line)
{
	wait_until(
		"a line of gdb like $line",
		sub {
			$gdb->{run}->pump_nb if $gdb->{run}->pumpable;
			return $gdb->{out} =~ $line || !$gdb->{run}->pumpable;
		},
		sub { "$gdb->{out}$gdb->{err}" });
	return $gdb->{out} =~ $line;
}

# Wait until the debugger has ended.
sub finish_debugger ($gdb) { $gdb->{run}->finish; return; }

# Crash one of the clients' backends.
sub kill_backend ($node)
{
	my $pid = sql($node, q{
		SELECT pid FROM pg_stat_activity
		WHERE application_name = 'client' AND backend_type = 'client backend'
		LIMIT 1});

	crash_process($node, $pid);
	return;
}

# One life of a server under load, which ends in a way.
sub live ($ledger, $node, $end)
{
	my $first = first_id($ledger, $node);
	my @clients = start_clients($node, 4);

	wait_for_clients(@clients);
	usleep(rand(300_000));
	$end->();
	note_ids($ledger, [$first], finish_clients(@clients));
	return;
}

# A primary dies under load and its standby takes over and dies too.  Parameters:
#
#	back			the standby's clock is behind by so many seconds
#	synchronous		is the standby synchronous?
#
# The ledger has the IDs that the standby made and, before them, the rows that
# reached it.  With a synchronous standby it has all that clients of the primary
# received instead.  Returns these, the rows, the standby's mark at its
# promotion, its first ID, and the errors that clients got.
sub failover ($ledger, $name, %params)
{
	my $primary = new_server("primary_$name", { allows_streaming => 1, clock => 0 });
	my %result;

	sql($primary, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
	$primary->backup('backup');

	my $standby = server_of_backup("standby_$name", $primary, 'backup',
		{ has_streaming => 1, clock => -($params{back} // 0) });
	require_standbys($primary, '*') if $params{synchronous};

	my @of_primary = start_clients($primary, 4);
	wait_for_clients(@of_primary);
	usleep(300_000 + rand(400_000));
	$result{while_standby} =
	  sql_error($standby, 'SELECT snowflake_nextval()');
	kill_postmaster($primary);
	$standby->promote;
	$result{stored} = stored_ids($standby);
	$result{mark} = mark_of($standby);
	$result{first} = first_id($ledger, $standby);

	my @of_standby = start_clients($standby, 4);
	wait_for_clients(@of_standby);
	usleep(300_000);
	$result{received} = [ finish_clients(@of_primary) ];
	$standby->stop('immediate');
	my @received = finish_clients(@of_standby);
	$result{errors} = [ client_errors(@of_primary, @of_standby) ];

	if ($params{synchronous})
	{
		note_ids($ledger, @{ $result{received} });

		# Some reached the standby, but not the client.
		my $last = $result{stored}->[-1];
		$ledger->{last} = $last if $last > $ledger->{last};
	}
	else
	{
		note_ids($ledger, $result{stored});
	}
	note_ids($ledger, [ $result{first} ]);
	note_ids($ledger, @received);
	return %result;
}

1;
