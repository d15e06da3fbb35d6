# Nothing waits longer than a limit, PG_TEST_TIMEOUT_DEFAULT or 180 s, by the clock: neither a
# program that a test runs, nor a condition that it polls.  What ends a wait fails the test,
# and says where it was and what all servers were doing.

package SnowflakeTest::Limits;

use v5.36;

use Carp;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(wait_until);

# Wait until a function returns true, and return that; the function is called at least
# every 0.1 s.  Dies with what was waited for, and what the second function returns.
sub wait_until ($what, $condition, $seen = undef)
{
	my $end = time + limit();
	my $pause = 10_000;

	for (;;)
	{
		my $result = $condition->();
		return $result if $result;
		if (time > $end)
		{
			report_servers();
			croak("waited in vain for: $what" . ($seen ? '; there is: ' . ($seen->() // '') : ''));
		}
		usleep($pause);
		$pause = 2 * $pause < 100_000 ? 2 * $pause : 100_000;
	}
	return;
}

sub limit { return $PostgreSQL::Test::Utils::timeout_default; }

# What sessions of all servers do, and the ends of their logs.
sub report_servers
{
	foreach my $node (@PostgreSQL::Test::Cluster::all_nodes)
	{
		next unless defined $node->{_pid};
		my $out = '';

		eval {
			IPC::Run::run(
				[ 'psql', '-X', '-d', $node->connstr('postgres'), '-c',
					"SELECT pid, pg_blocking_pids(pid) AS blocked_by, state, wait_event, now() - xact_start AS age, left(coalesce(nullif(query, ''), backend_type), 150) FROM pg_stat_activity" ],
				'<' => \undef, '>' => \$out, '2>&1', IPC::Run::timeout(10));
		};
		my @log = eval { split /^/, slurp_file($node->logfile) };
		diag('server ' . $node->name . ":\n$out" . join('', @log > 10 ? @log[ -10 .. -1 ] : @log));
	}
	return;
}

#
# Programs: each start and each end begins a new wait, which SIGALRM ends.
#
sub begin_wait { alarm(limit()); return; }

$SIG{ALRM} = sub {
	my $where = Carp::longmess('');

	alarm(0);
	report_servers();
	fail('nothing waits longer than ' . limit() . ' s');
	die "waited in vain$where";
};
END { alarm(0); }

my @programs = ('IPC::Run::start', 'IPC::Run::finish', 'PostgreSQL::Test::Utils::system_log');
{
	no strict 'refs';
	no warnings 'redefine';
	foreach my $name (@programs)
	{
		my $original = \&{$name};

		*{$name} = sub { begin_wait(); goto &$original };
	}
	*PostgreSQL::Test::Cluster::poll_query_until = \&poll_query_until;

	# A background session has its limit for each query, not for its life.
	my $background_psql = \&PostgreSQL::Test::Cluster::background_psql;
	*PostgreSQL::Test::Cluster::background_psql = sub {
		my $session = $background_psql->(@_);

		$session->set_query_timer_restart();
		return $session;
	};
}

# As PostgreSQL::Test::Cluster has it, which counts attempts instead of looking at the
# clock, and so waits many times as long on a busy machine.
sub poll_query_until ($self, $database, $query, $expected = 't')
{
	my ($out, $err);

	my $end = time + limit();
	for (my $pause = 10_000;; $pause = 2 * $pause < 100_000 ? 2 * $pause : 100_000)
	{
		local %ENV = $self->_get_env();

		IPC::Run::run([ $self->installed_command('psql'), '-XAt', '-d', $self->connstr($database) ],
			'<' => \$query, '>' => \$out, '2>' => \$err);
		chomp($out, $err);
		return 1 if $out eq $expected && $err eq '';
		last if time > $end;
		usleep($pause);
	}
	diag("waited in vain for the result $expected of:\n$query\nthere is: $out\n$err");
	report_servers();
	return 0;
}

1;
