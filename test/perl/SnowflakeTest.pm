# What the TAP tests share.

package SnowflakeTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Open2;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

# So that servers are stopped, too, when a test is.
$SIG{TERM} = $SIG{INT} = sub { die 'interrupted' };

# libfaketime leaves its own shared memory behind, named by a process that is
# gone: that which this test made.
END
{
	unlink grep { -o && -M _ <= 0 && /_(\d+)$/ && !kill(0, $1) }
	  glob('/dev/shm/*faketime_s*_*');
}

our @EXPORT = qw(
  new_server new_registry registry_conf inherits sql_error start_fails
  start_queries finish_queries
  set_clock start_with_clock
  mark_of
  start_ledger ask_ledger
  new_ledger note_ids client_queries start_clients wait_for_clients finish_clients
  end_clients client_errors
  stored_ids first_id
  server_process is_up wait_until_up kill_postmaster kill_backend live verdict failover
);

# A server with the extension in database postgres; the rest of the arguments
# are lines of its configuration.
sub new_server
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf',
		join("\n", "shared_preload_libraries = 'snowflake'", @conf, ''));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $node;
}

# A server whose database postgres grants worker IDs, with arguments of
# snowflake_create_registry().
sub new_registry
{
	my ($name, $arguments, @conf) = @_;
	my $node = new_server($name, @conf);

	$node->safe_psql('postgres',
		"SELECT snowflake_create_registry($arguments)");
	return $node;
}

# The line of configuration that has a server ask registries.
sub registry_conf
{
	my (@nodes) = @_;
	my @hosts = map { $_->host } @nodes;
	my @ports = map { $_->port } @nodes;
	my $user = getpwuid($>);

	local $" = ',';
	return "snowflake.registry = 'host=@hosts port=@ports dbname=postgres user=$user'";
}

# Do the server's processes inherit what the postmaster has?  Not those that
# script/asserts exec-backend builds.
sub inherits { return `pg_config --cflags` !~ /-DEXEC_BACKEND/; }

# The error that a query gets: SQLSTATE, message, detail and hint.
sub sql_error
{
	my ($node, $sql, %params) = @_;
	my ($stdout, $stderr);

	$node->psql(
		$params{dbname} // 'postgres',
		"\\set VERBOSITY verbose\n$sql",
		stdout => \$stdout,
		stderr => \$stderr,
		on_error_stop => 0);
	return $stderr;
}

# A server that is down refuses to start with lines of configuration, and says
# why.  The lines are taken back.
sub start_fails
{
	my ($node, $conf, $why, $name) = @_;
	my $file = $node->data_dir . '/postgresql.conf';
	my $before = slurp_file($file);
	my $offset = -s $node->logfile // 0;

	$node->append_conf('postgresql.conf', $conf);
	my $started = $node->start(fail_ok => 1);
	my $log = slurp_file($node->logfile, $offset);
	$node->stop if $started;
	ok(!$started && $log =~ $why, $name) or diag($log);

	open(my $handle, '>', $file) or die "$file: $!";
	print $handle $before;
	close $handle;
}

# Start psql sessions, one for each query, all at once.
sub start_queries
{
	my ($node, @queries) = @_;
	my @sessions;

	foreach my $query (@queries)
	{
		my %session = (out => '', err => '');
		$session{run} = IPC::Run::start(
			[
				'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d',
				$node->connstr('postgres'), '-c', $query
			],
			'<' => \undef,
			'>' => \$session{out},
			'2>' => \$session{err});
		push @sessions, \%session;
	}
	return @sessions;
}

# Wait for sessions of start_queries; returns how many succeeded.
sub finish_queries
{
	my $succeeded = 0;

	foreach my $session (@_)
	{
		$succeeded++ if $session->{run}->finish;
	}
	return $succeeded;
}

# Have a server that is not started yet live by a clock of its own, which
# set_clock sets while it runs.
sub fake_clock
{
	my ($node) = @_;
	my @found = grep { -e } (
		glob('/usr/lib/*/faketime/libfaketime.so.1'),
		'/usr/lib/faketime/libfaketime.so.1',
		'/usr/lib64/faketime/libfaketime.so.1',
		'/usr/local/lib/faketime/libfaketime.so.1');

	die "libfaketime was not found" unless @found;
	set_clock($node, 0) unless -e clock_file($node);
	return (
		LD_PRELOAD => $found[0],
		FAKETIME_TIMESTAMP_FILE => clock_file($node),
		FAKETIME_NO_CACHE => 1,
		FAKETIME_DONT_FAKE_MONOTONIC => 1);
}

sub clock_file
{
	my ($node) = @_;
	return $node->basedir . '/clock';
}

# Set the clock of a server to so many seconds from the real time.
sub set_clock
{
	my ($node, $seconds) = @_;
	my $file = clock_file($node);

	open(my $handle, '>', "$file.new") or die "$file: $!";
	printf $handle "%+.3f\n", $seconds;
	close $handle;
	rename("$file.new", $file) or die "$file: $!";
}

# Start a server that lives by the clock of set_clock.
sub start_with_clock
{
	my ($node, %params) = @_;

	local %ENV = (%ENV, fake_clock($node));
	return $node->start(%params);
}

# The durable mark of a server, also of a standby.
sub mark_of
{
	my ($node) = @_;

	return $node->safe_psql(
		'postgres', q{
		SELECT coalesce(max(remote_lsn - '0/0'), 0)::bigint
		FROM pg_replication_origin_status WHERE local_id = 65534});
}

#
# The ledger: all IDs that any client received, committed or not.  It is kept
# in eras, as long as a server runs without a break; each ID of an era has to
# be greater than all of the eras before, and each that a client received
# greater than the ones that it received before.  A duplicate from another era
# counts as a fall only.
#
sub new_ledger
{
	return {
		ids => 0,
		duplicates => 0,
		falls => 0,
		last => 0,
		longest_wait => 0
	};
}

# Note the IDs of one era, a list for each client in the order of receipt.
sub note_ids
{
	my ($ledger, @clients) = @_;
	my %seen;
	my $greatest = $ledger->{last};

	foreach my $ids (@clients)
	{
		my $last = $ledger->{last};
		foreach my $id (@$ids)
		{
			$ledger->{ids}++;
			$ledger->{duplicates}++ if $seen{$id}++;
			$ledger->{falls}++ if $id <= $last;
			$last = $id;
		}
		$greatest = $last if $last > $greatest;
	}
	$ledger->{last} = $greatest;
	return;
}

# The ledger of script/torture, a program (test/ledger.c) that is told what to do
# on its standard input.
sub start_ledger
{
	my $ledger = {};
	my $program = "$PostgreSQL::Test::Utils::tmp_check/ledger";

	$ledger->{pid} = open2($ledger->{from}, $ledger->{to}, $program);
	return $ledger;
}

# The answer to a command, and what it told of things that are wrong.
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

# What clients do: "usual" ones ask for IDs one by one and in blocks, in
# queries, in rows of table t that are committed and in rows that are not.
# Blocks are small mostly, and sometimes more than a tick has.  "asking" ones
# commit nothing, so that they wait for no standby to have their rows.
my $asking = q{
SELECT snowflake_nextval() FROM generate_series(1, 20);
SELECT snowflake_nextval(40);
BEGIN;
INSERT INTO t SELECT FROM generate_series(1, 5) RETURNING id;
ROLLBACK;
};
my $usual = $asking . q{
INSERT INTO t DEFAULT VALUES RETURNING id;
INSERT INTO t SELECT FROM generate_series(1, 3) RETURNING id;
INSERT INTO t SELECT snowflake_nextval(10) RETURNING id;
};
my $large = q{
SELECT snowflake_nextval(5000);
};
my %queries = (usual => $usual, asking => $asking);

sub client_queries
{
	my ($kind) = @_;
	my $round = $queries{$kind} x 100 . $large;

	return $round x 200;
}

# Start clients that ask for IDs until they lose their connection.
sub start_clients
{
	my ($node, $n, $kind) = @_;
	my $script = $node->basedir . '/' . ($kind //= 'usual') . '.sql';

	append_to_file($script, client_queries($kind)) unless -e $script;

	# Files, as a pipe that nobody reads would soon stop the clients.
	return map {
		my $file = $node->basedir . "/$kind$_";
		unlink "$file.out";
		my $run = IPC::Run::start(
			[
				'psql', '-XAtq', '-d',
				$node->connstr('postgres') . ' application_name=client',
				'-f', $script
			],
			'<' => \undef,
			'>' => "$file.out",
			'2>' => "$file.err");
		{ run => $run, file => "$file.out", errors => "$file.err" };
	} 1 .. $n;
}

# Wait until each of some clients has an ID.
sub wait_for_clients
{
	foreach my $client (@_)
	{
		my $i = 0;
		until (-s $client->{file})
		{
			die 'a client got no ID' if $i++ > 9000;
			usleep(20_000);
		}
	}
	return;
}

# Wait for clients, and return a list of IDs for each.
sub finish_clients
{
	my @lists;

	foreach my $client (@_)
	{
		$client->{run}->finish;

		# The last line may be cut off in the middle.
		my $out = slurp_file($client->{file});
		push @lists, [ split /\n/, substr($out, 0, 1 + rindex($out, "\n")) ];
	}
	return @lists;
}

# Have a server end the sessions of its clients.
sub end_clients
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q{
		SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = 'client'});
}

# The errors that clients which have finished got for their queries; to lose the
# connection is none.
sub client_errors
{
	return
	  map { slurp_file($_->{errors}) =~ /^.*: ((?:ERROR|PANIC):  .*)$/mg } @_;
}

# All IDs in table t, in their order.
sub stored_ids
{
	my ($node) = @_;

	return [ split /\n/,
		$node->safe_psql('postgres', 'SELECT id FROM t ORDER BY id') ];
}

# One ID, and a note of how long it took: what it takes to connect does not
# count.  In a context of lists also the error that the call got instead, which
# is fatal otherwise.
sub first_id
{
	my ($ledger, $node) = @_;
	my ($stdout, $stderr);

	$node->psql(
		'postgres', q{
		\set VERBOSITY verbose
		\timing on
		SELECT snowflake_nextval();},
		stdout => \$stdout,
		stderr => \$stderr,
		on_error_stop => 0,
		timeout => $PostgreSQL::Test::Utils::timeout_default,
		timed_out => \my $timed_out);
	$stderr = 'no answer' if $timed_out;
	my ($id, $ms) = $stdout =~ /^(\d+)\nTime: (\d+\.\d+) ms/;
	if (defined $id)
	{
		$ledger->{longest_wait} = $ms / 1000
		  if $ms / 1000 > $ledger->{longest_wait};
		return wantarray ? ($id, '') : $id;
	}
	die $stderr unless wantarray;
	return (undef, $stderr);
}

# The one process of a server that pg_stat_activity has with this backend_type.
# It may be about to start, so this waits for it.
sub server_process
{
	my ($node, $type) = @_;
	my $query =
	  "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'";

	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($query) p")
	  or die "there is not one $type";
	return $node->safe_psql('postgres', $query);
}

# Kill the postmaster with SIGKILL, and wait until its children noticed.  What it
# had of shared memory goes when it is started again.
sub kill_postmaster
{
	my ($node) = @_;
	my $data = $node->data_dir;
	my ($shmid) = slurp_file("$data/postmaster.pid") =~ /^ *\d+ +(\d+) *$/m;

	$node->kill9;

	# Nobody may be attached to the shared memory any more.  The lock files go
	# too, as their process may stay a zombie for long where init is slow.
	foreach my $i (1 .. 1800)
	{
		my ($segment) = grep { (split)[1] eq $shmid } split /\n/,
		  slurp_file('/proc/sysvipc/shm');
		if (!defined $segment || (split(' ', $segment))[6] == 0)
		{
			unlink "$data/postmaster.pid",
			  $node->host . '/.s.PGSQL.' . $node->port . '.lock';
			return;
		}
		usleep(20_000);
	}
	die 'processes of a killed server live on';
}

# Does a server take connections?  This writes nothing to psql, as IPC::Run dies of
# a broken pipe where psql ends before it has read that.
sub is_up
{
	my ($node) = @_;

	return system('psql', '-XAtq', '-o', '/dev/null', '-d',
		$node->connstr('postgres'), '-c', 'SELECT 1') == 0;
}

# Wait until a server takes connections again.
sub wait_until_up
{
	my ($node) = @_;
	my $start = time;

	until (is_up($node))
	{
		die 'the server does not come back'
		  if time - $start > 3 * $PostgreSQL::Test::Utils::timeout_default;
		usleep(20_000);
	}
	return;
}

# Kill one of the clients' backends with SIGKILL, and wait until the server is
# back from its recovery.
sub kill_backend
{
	my ($node) = @_;
	my $pid = $node->safe_psql(
		'postgres', q{
		SELECT pid FROM pg_stat_activity
		WHERE application_name = 'client' AND backend_type = 'client backend'
		LIMIT 1});

	my $offset = -s $node->logfile;
	kill 'KILL', $pid;
	$node->wait_for_log(qr/all server processes terminated; reinitializing/,
		$offset);
	wait_until_up($node);
	return;
}

# One life of a server under load, which ends in a way.
sub live
{
	my ($ledger, $node, $end) = @_;
	my $first = first_id($ledger, $node);
	my @clients = start_clients($node, 8);

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
sub failover
{
	my ($ledger, $name, %params) = @_;
	my $primary = PostgreSQL::Test::Cluster->new("primary_$name");
	my %result;

	$primary->init(allows_streaming => 1);
	$primary->append_conf('postgresql.conf',
		"shared_preload_libraries = 'snowflake'");
	start_with_clock($primary);
	$primary->safe_psql(
		'postgres', q{
		CREATE EXTENSION snowflake;
		CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())});
	$primary->backup('backup');

	my $standby = PostgreSQL::Test::Cluster->new("standby_$name");
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	set_clock($standby, -($params{back} // 0));
	start_with_clock($standby);
	if ($params{synchronous})
	{
		$primary->append_conf('postgresql.conf',
			"synchronous_standby_names = '*'");
		$primary->reload;
		$primary->poll_query_until('postgres',
			"SELECT sync_state = 'sync' FROM pg_stat_replication")
		  or die 'the standby did not become synchronous';
	}

	my @of_primary = start_clients($primary, 8);
	wait_for_clients(@of_primary);
	usleep(500_000 + rand(500_000));
	$result{while_standby} =
	  sql_error($standby, 'SELECT snowflake_nextval()');
	kill_postmaster($primary);
	$standby->promote;
	$result{stored} = stored_ids($standby);
	$result{mark} = mark_of($standby);
	$result{first} = first_id($ledger, $standby);

	my @of_standby = start_clients($standby, 8);
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

	# For nothing but its shared memory: the start finds and removes it.
	$primary->start;
	$primary->stop('immediate');
	return %result;
}

# What the ledger says, to be compared with '0 duplicates, 0 falls'.
sub verdict
{
	my ($ledger) = @_;

	return "$ledger->{duplicates} duplicates, $ledger->{falls} falls";
}

1;
