# Servers with the extension, their queries and errors.

package SnowflakeTest::Servers;

use v5.36;

use Carp;
use FindBin;
use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest::Clock;
use Test::More;

our @EXPORT = qw(
  plain_server server_of_backup new_server new_server_with_clock new_primary new_standby
  standby_without require_standbys new_registry new_range_registry new_own_registry registry_conf inherits
  crash_and_start single_user origins_setting
  sql sql_error sql_fails wait_until_true becomes_true reload_with restart_with start_fails
  create_ms setting conninfo_user change_setting synchronize_sequences start_queries finish_queries waits_for_standbys wait_event mark_of
);

# A server of PostgreSQL alone.  The rest of the arguments are lines of its configuration, after
# parameters of init() if there are any; with a "clock", it has that of set_clock.
sub plain_server ($name, @arguments)
{
	my ($options, @conf) = (ref $arguments[0] ? () : {}, @arguments);
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%$options);
	return start_configured($node, $options, @conf);
}

# A server with the data of another one's backup: the same, with parameters of init_from_backup()
sub server_of_backup ($name, $origin, $backup, @arguments)
{
	my ($options, @conf) = (ref $arguments[0] ? () : {}, @arguments);
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($origin, $backup, %$options);
	return start_configured($node, $options, @conf);
}

sub start_configured ($node, $options, @conf)
{
	$node->append_conf('postgresql.conf', join("\n", @conf, ''));
	set_clock($node, $options->{clock}) if defined $options->{clock};
	defined $options->{clock} ? start_with_clock($node) : $node->start;
	return $node;
}

# A server with the extension in database postgres, and that of the test's folder, with
# arguments of plain_server()
sub new_server ($name, @arguments)
{
	my ($options, @conf) = (ref $arguments[0] ? () : {}, @arguments);

	# Standbys may be away for a while.
	unshift @conf, 'wal_keep_size = 128MB' if $options->{allows_streaming};
	my $node = plain_server($name, $options, "shared_preload_libraries = 'snowflake'", @conf);
	if ($FindBin::RealBin =~ m{/convert/test$})
	{
		# As with another extension's support function, so that conversions are to
		# snowflake_nextval() unless a test says otherwise
		$node->safe_psql($_, 'ALTER FUNCTION nextval(regclass) SUPPORT generate_series_int8_support')
		  foreach qw(template1 postgres);
	}
	sql($node, 'SET client_min_messages = error; CREATE EXTENSION snowflake');
	sql($node, "CREATE EXTENSION snowflake_$1") if $FindBin::RealBin =~ m{/(convert|keys)/test$};
	return $node;
}

# The same for one that has the clock of set_clock.
sub new_server_with_clock { return new_server($_[0], { clock => 0 }, @_[ 1 .. $#_ ]); }

# The same for a server that gets standbys.
sub new_primary { return new_server($_[0], { allows_streaming => 1 }, @_[ 1 .. $#_ ]); }

# A standby of a server, with lines of its configuration.
sub new_standby ($primary, $name, @conf)
{
	$primary->backup($name);
	return server_of_backup($name, $primary, $name, { has_streaming => 1 }, @conf);
}

# One that gets nothing from now on, as it does not receive WAL
sub standby_without ($primary, $name, @conf)
{
	my $standby = new_standby($primary, $name, @conf);

	$primary->wait_for_catchup($standby);
	reload_with($standby, "primary_conninfo = ''");
	wait_until_true($standby, 'SELECT count(*) = 0 FROM pg_stat_wal_receiver');
	return $standby;
}

# Set synchronous_standby_names, and wait until there is such a standby, or none is required.
sub require_standbys ($primary, $names)
{
	reload_with($primary, "synchronous_standby_names = '$names'");
	wait_until_true($primary, $names eq ''
		? "SELECT current_setting('synchronous_standby_names') = ''"
		: "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')");
	return;
}

# A server whose database postgres grants worker IDs, with arguments of
# snowflake_registry.create().
sub new_registry ($name, $arguments, @conf)
{
	my $node = new_server($name, @conf);

	sql($node, "CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create($arguments)");
	return $node;
}

# The same, also for range sequences of a database; and a server that is its own one
sub new_range_registry ($name, $database, @conf)
{
	my $node = new_registry($name, '1, 100, new => true', @conf);

	sql($node, "SELECT snowflake_registry.add_database('$database')");
	return $node;
}

sub new_own_registry
{
	my $node = new_range_registry(@_);

	restart_with($node, registry_conf($node));
	return $node;
}

# The line of configuration that has a server ask registries; options of the connection
# string can be among them.
sub registry_conf
{
	my @nodes = grep { ref } @_;
	my @options = ('dbname=postgres', conninfo_user(), grep { !ref } @_);
	my @hosts = map { $_->host } @nodes;
	my @ports = map { $_->port } @nodes;

	local $" = ',';
	return setting('snowflake.registry', join(' ', "host=@hosts port=@ports", @options));
}

# Have a subscription copy the positions of sequences (since PostgreSQL 19), and wait for that.
sub synchronize_sequences ($node, $command)
{
	sql($node, $command);
	wait_until_true($node, q{
		SELECT count(*) > 0 AND count(*) FILTER (WHERE srsubstate <> 'r') = 0
		FROM pg_subscription_rel JOIN pg_class c ON c.oid = srrelid WHERE relkind = 'S'});
	return;
}

# The superuser of the tests' servers, who may have any name, in a connection string
sub conninfo_user { return "user='" . (getpwuid($>) =~ s/([\\'])/\\$1/gr) . "'"; }

# A line of configuration with any value
sub setting ($name, $value) { return "$name = '" . ($value =~ s/\\/\\\\/gr =~ s/'/''/gr) . "'"; }

# Do the server's processes inherit what the postmaster has?  Not those that
# script/tests/asserts exec-backend builds.
sub inherits { return `pg_config --cflags` !~ /-DEXEC_BACKEND/; }

# What statements return in database postgres; with parameters of safe_psql().  They succeed.
sub sql ($node, $sql, %params) { return $node->safe_psql('postgres', $sql, %params); }

# A query is true, soon: a test with a label; or what the test needs, and why says that it is
# not so.
sub becomes_true ($node, $query, $label)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($node->poll_query_until('postgres', $query), $label);
}

sub wait_until_true ($node, $query, $why = undef)
{
	$node->poll_query_until('postgres', $query) or croak($why // "waited in vain: $query");
	return;
}

# Lines of configuration, which the server reads
sub reload_with ($node, @conf)
{
	$node->append_conf('postgresql.conf', join("\n", @conf));
	$node->reload;
	return;
}

sub restart_with ($node, @conf)
{
	$node->append_conf('postgresql.conf', join("\n", @conf));
	$node->restart;
	return;
}

sub crash_and_start ($node)
{
	$node->stop('immediate');
	$node->start;
	return;
}

# What single-user mode prints for lines of input, in database postgres unless another is given
sub single_user ($node, $sql, %params)
{
	my @command = ('postgres', '--single', '-D', $node->data_dir, @{ $params{options} // [] });

	IPC::Run::run([ @command, $params{dbname} // 'postgres' ], '<' => \"$sql\n", '>&' => \my $out);
	return $out;
}

# The setting for the number of replication origins, one of which has the mark
sub origins_setting ($node)
{
	return $node->pg_version >= 18 ? 'max_active_replication_origins' : 'max_replication_slots';
}

# The error that a query gets: SQLSTATE, message, detail and hint.
sub sql_error ($node, $sql, %params)
{
	my ($stdout, $stderr);

	$node->psql(
		$params{dbname} // 'postgres',
		"\\set VERBOSITY verbose\n$sql",
		stdout => \$stdout,
		stderr => \$stderr,
		on_error_stop => 0);
	return $stderr;
}

# A test that statements fail, with such an error
sub sql_fails ($node, $sql, $error, $label)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like(sql_error($node, $sql), $error, $label);
}

# A server that is down refuses to start with lines of configuration, and says
# why.  The lines are taken back.
sub start_fails ($node, $conf, $why, $name)
{
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

# Change a setting, and wait until the checkpointer has it, which keeps some in
# shared memory for the others.  It reads the configuration before a checkpoint that
# was requested later.
sub change_setting ($node, $name, $value)
{
	reload_with($node, "$name = '$value'");
	wait_until_true($node, "SELECT current_setting('$name') = '$value'");
	sql($node, 'CHECKPOINT') foreach 1 .. 2;
	return;
}

# Start psql sessions, one for each query, all at once, in database postgres unless a "dbname" is
# among the options before them.
sub start_queries ($node, @queries)
{
	my $options = ref $queries[0] ? shift @queries : {};
	my $connstr = $node->connstr($options->{dbname} // 'postgres');

	return map {
		my %session = (out => '', err => '');
		$session{run} = IPC::Run::start(
			[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $connstr, '-c', $_ ],
			'<' => \undef, '>' => \$session{out}, '2>' => \$session{err});
		\%session
	} @queries;
}

# Wait for sessions of start_queries; returns how many succeeded.
sub finish_queries { return scalar grep { $_->{run}->finish } @_; }

# Does a process wait for synchronous standbys, soon?
sub waits_for_standbys ($node)
{
	return $node->poll_query_until(
		'postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE backend_type IN ('client backend', 'parallel worker')
		AND wait_event_type = 'Extension' AND wait_event = } . wait_event($node, 'SnowflakeStandby'));
}

# A wait event as a string in SQL: extensions have names for theirs since PostgreSQL 17.
sub wait_event ($node, $name) { return $node->pg_version >= 17 ? "'$name'" : "'Extension'"; }

# The durable mark of a server, also of a standby.
sub mark_of ($node)
{
	return sql($node, q{
		SELECT coalesce(max(remote_lsn - '0/0'), 0)::bigint
		FROM pg_replication_origin_status WHERE local_id = 65534});
}

# The statement that creates a function ms(), which executes a query and returns how long that
# took.
sub create_ms
{
	return q{
	CREATE FUNCTION ms(query text) RETURNS float8 LANGUAGE plpgsql AS $$
	DECLARE
		start timestamptz := clock_timestamp();
	BEGIN
		EXECUTE query;
		RETURN extract(epoch FROM clock_timestamp() - start) * 1000;
	END $$;
	};
}

1;
