# Servers for an application, which connects as a role that owns its tables.  A registry
# grants their sequences numbers, so they can be converted by each kind.

package Application;

use IO::Socket::INET;
use POSIX ':sys_wait_h';
use SnowflakeTest;

# A server with an empty database "app"; "name" is another than "main", "registry" that of
# another server, "scheme" that of its IDs, and without extensions it is "bare".
sub new ($class, %options)
{
	my $name = $options{name} // 'main';
	my $scheme = $options{scheme} ? "snowflake.scheme = '$options{scheme}'" : '';
	my $registry = $options{registry} // registry_of_application($name, $scheme);
	my $node = new_server($name, 'fsync = off', "listen_addresses = '127.0.0.1'", 'wal_level = logical',
		'max_wal_senders = 10', 'max_replication_slots = 10', $scheme,
		registry_conf($registry), "snowflake.server_name = '$name'");
	my $self = bless {
		node => $node, registry => $registry, dir => PostgreSQL::Test::Utils::tempdir,
		env => {
			PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'regress_app',
			PGDATABASE => 'app', LANG => 'C.UTF-8', HOME => PostgreSQL::Test::Utils::tempdir
		}
	}, $class;

	$node->safe_psql('postgres', 'CREATE ROLE regress_app LOGIN; CREATE DATABASE app OWNER regress_app TEMPLATE template0 ENCODING UTF8');
	$self->create_extensions unless $options{bare};
	return $self;
}

sub create_extensions ($self)
{
	$self->{node}->safe_psql('app', q{
		CREATE EXTENSION snowflake;
		CREATE EXTENSION snowflake_convert;
		GRANT CREATE ON SCHEMA public TO regress_app});
	return;
}

sub registry_of_application ($name = '', $scheme = '')
{
	my $registry = new_registry("registry_$name", '1, 30, new => true', 'fsync = off', $scheme);

	$registry->safe_psql('postgres', "SELECT snowflake_registry.add_database('app')");
	return $registry;
}

# Stop all servers; a second one has the registry of the first.
sub stop ($self)
{
	$self->{node}->stop;
	$self->{registry}->stop if $self->{registry}->{_pid};
	return;
}

# Run a program of the application.  Returns what it printed; fails if it fails.
sub run_ok ($self, $label, @command)
{
	my ($out, $err);

	local %ENV = (%ENV, %{ $self->{env} });
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(IPC::Run::run(\@command, '<' => \undef, '>' => \$out, '2>' => \$err), $label)
	  or diag("$out\n$err");
	return $out;
}

# Start a program, for finish_ok().
sub start ($self, $label, @command)
{
	my $run = { label => $label };

	local %ENV = (%ENV, %{ $self->{env} });
	$run->{harness} = IPC::Run::start(\@command, '<' => \undef, '>' => \$run->{out}, '2>' => \$run->{err});
	return $run;
}

# Test that it succeeds.  Returns what it printed.
sub finish_ok ($run)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($run->{harness}->finish, $run->{label}) or diag("$run->{out}\n$run->{err}");
	return $run->{out};
}

# The same for a program that has to fail.  Returns what it printed.
sub run_fails ($self, $label, @command)
{
	my ($out, $err);

	local %ENV = (%ENV, %{ $self->{env} });
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(!IPC::Run::run(\@command, '<' => \undef, '>' => \$out, '2>' => \$err), $label);
	return "$out$err";
}

# Start a program that serves clients on a port of 127.0.0.1, and wait until it does.
# Returns what stop_service() takes, or nothing if the program has ended before that.
my %services;

sub start_service ($self, $port, @command)
{
	my $log = "$self->{dir}/$port.log";
	my $deadline = time + 120;
	my $pid = fork // die "fork: $!";

	if (!$pid)
	{
		%ENV = (%ENV, %{ $self->{env} });
		open STDIN, '<', '/dev/null' and open STDOUT, '>>', $log and open STDERR, '>&', \*STDOUT and exec @command;
		POSIX::_exit(1);
	}
	$services{$pid} = 1;
	until (IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port))
	{
		my $ended = waitpid($pid, WNOHANG) == $pid;
		if ($ended || time > $deadline)
		{
			$ended ? delete $services{$pid} : stop_service($pid);
			note(slurp_file($log));
			return;
		}
		select undef, undef, undef, 0.1;
	}
	return $pid;
}

sub stop_service ($pid)
{
	my $deadline = time + 120;

	kill TERM => $pid;
	until (waitpid($pid, WNOHANG) != 0)
	{
		if (time > $deadline)
		{
			fail('a service ends when it is told to');
			kill KILL => $pid;
			waitpid $pid, 0;
			last;
		}
		select undef, undef, undef, 0.1;
	}
	delete $services{$pid};
	return;
}

my $process = $$;

END
{
	my $status = $?;

	kill KILL => $$ == $process ? keys %services : ();
	$? = $status;
}

sub sql ($self, $sql) { return $self->{node}->safe_psql($self->{env}{PGDATABASE}, $sql); }

# Keep the database as it is now, for restore().
sub save ($self)
{
	$self->{node}->safe_psql('postgres', 'CREATE DATABASE saved TEMPLATE app OWNER regress_app');
	return;
}

# Have the database as it was at save(), under its own name.
sub restore ($self)
{
	$self->{node}->safe_psql('postgres', $_)
	  foreach 'DROP DATABASE app WITH (FORCE)', 'CREATE DATABASE app TEMPLATE saved OWNER regress_app';
	return;
}

# Have an empty one, without extensions.
sub empty ($self)
{
	$self->{node}->safe_psql('postgres', $_)
	  foreach 'DROP DATABASE app WITH (FORCE)', 'CREATE DATABASE app OWNER regress_app TEMPLATE template0 ENCODING UTF8';
	return;
}

# The lines of a dump of the database, but for its sequences and where they are.
sub dump_of ($self, @options)
{
	my ($out, $err);

	IPC::Run::run([ 'pg_dump', '--no-security-labels', @options, '-d', $self->{node}->connstr($self->{env}{PGDATABASE}) ],
		'<' => \undef, '>' => \$out, '2>' => \$err)
	  or die $err;
	$out =~ s/^(?:CREATE|ALTER) SEQUENCE .*?;$//gms;
	return join "\n", grep { !/^--|^SELECT pg_catalog\.setval\(|^\\(?:un)?restrict / } split /\n/, $out;
}

# Convert the database by one call of its owner, and test that the dry run has the same
# statements, that all sequences that columns use are of the kind, and that of kind range
# nothing else changes.  Restarts the server.
sub convert_to ($self, $kind, $arguments = undef)
{
	my $call = "snowflake_convert_schema('public', kind => '$kind'" . ($arguments // '');
	my $before = $self->dump_of;
	my $dry = $self->as_owner("SELECT $call, dry_run => true)");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $report = $call =~ s/schema\(/report(/r;
	like($self->as_owner("SELECT count(*), count(*) FILTER (WHERE severity = 'obstacle') FROM $report)"),
		qr/^(\d|1[0-2])\|0$/, "$kind: the report has few rows, and no obstacle");
	is($self->as_owner("SELECT $call)"), $dry, "$kind: the conversion does what the dry run has shown");
	note($dry);
	$self->kinds_are($kind);
	ok($self->dump_of eq $before, 'range: nothing else changes but the kinds') if $kind eq 'range';
	$self->{node}->restart;
	return;
}

sub as_owner ($self, $sql)
{
	return $self->{node}->safe_psql($self->{env}{PGDATABASE}, $sql, extra_params => [ '-U', $self->{env}{PGUSER} ]);
}

# Test that all sequences that columns use, also by their names as text, are of a kind, and
# that none has a problem.
sub kinds_are ($self, $kind)
{
	my $used = q{(column_name IS NOT NULL OR EXISTS (
		SELECT FROM pg_attrdef WHERE strpos(pg_get_expr(adbin, adrelid), quote_literal(sequence)) > 0))};

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	cmp_ok($self->sql("SELECT count(*) FROM snowflake_sequences WHERE kind = '$kind' AND $used"), '>', 0, "$kind: columns have such sequences");
	is($self->sql("SELECT sequence, kind, problem FROM snowflake_sequences WHERE (kind <> '$kind' OR problem IS NOT NULL) AND $used"),
		'', "$kind: all have, without a problem");
	return;
}

# Test that columns have keys from before and new ones of a kind.
sub keys_are ($self, $kind, @columns)
{
	my $is_new = $kind eq 'range' ? 'BETWEEN 2 AND 1000000' : '> 1000000000000';

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach (@columns)
	{
		my ($table, $column) = split /\./;

		is($self->sql("SELECT min($column) < 1000, max($column) $is_new FROM $table"), 't|t', "$kind: so are new keys: $_");
	}
	return;
}

# Have the tables that the application creates from now on get sequences of a kind.
sub new_tables ($self, $kind)
{
	$self->sql("ALTER ROLE regress_app IN DATABASE $self->{env}{PGDATABASE} SET snowflake.default_sequence_kind = '$kind'");
	return;
}

# Convert the database as it was at save(), and have new tables get sequences of that kind.
sub convert_anew ($self, $kind, $arguments = undef)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$self->restore;
	$self->convert_to($kind, $arguments);
	$self->new_tables($kind);
	return;
}

# Use the application before it is converted, and keep its database for restore().  What uses it is
# a function, which gets a label and a name for what it makes, or a command, which gets the name.
# Its answers, in which nothing depends on IDs, are like these patterns, and unlike an error.
sub works_before ($self, $use, $like, $error = undef)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$self->{use} = ref $use eq 'CODE' ? $use : sub ($label, $name) { $self->run_ok($label, @$use, $name) };
	$self->{before} = $self->{use}->('it works before', 'before');
	note($self->{before});
	like($self->{before}, $like, 'its answers are as they should be');
	unlike($self->{before}, $error, 'without an error') if defined $error;
	$self->save;
	return;
}

# Test that it works as before, for what has another name.
sub works ($self, $label, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($self->{use}->($label, $name), $self->{before}, "$label, and its answers are the same");
	return;
}

# Convert the database as it was at save(), and test that it works as before, also after an upgrade:
# a function, which gets a label.  Columns have keys of the kind.
sub works_converted ($self, $kind, $keys, $upgrade = undef, $arguments = undef)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$self->convert_anew($kind, $arguments);
	$self->works("$kind: it works afterwards", 'after');
	if (defined $upgrade)
	{
		$upgrade->("$kind: an upgrade");
		$self->convert_to($kind) if $kind eq 'snowflake';
		$self->works("$kind: it works after the upgrade", 'upgraded');
	}
	$self->kinds_are($kind);
	$self->keys_are($kind, @$keys);
	return;
}

# Convert what an upgrade has created with integers: new tables of kind snowflake keep them.
sub convert_upgraded ($self, $kind)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$self->convert_to($kind) if $kind eq 'snowflake';
	return;
}

# A second server with the same rows, before they are converted.
sub second ($self)
{
	my $second = Application->new(name => 'second', registry => $self->{registry});

	$second->{node}->command_ok(
		[ 'bash', '-c', 'set -o pipefail; pg_dump -d "$0" | psql -Xq -v ON_ERROR_STOP=1 -d "$1"',
			$self->{node}->connstr('app'), $second->{node}->connstr('app') ],
		'the second server has its rows');
	return $second;
}

# Have two servers replicate all tables to each other, or those that are "published".
sub replicate (@both)
{
	foreach my $self (@both)
	{
		# What has no key is found by all its columns.
		$self->sql($_) foreach split /\n/, $self->sql(q{
			SELECT format('ALTER TABLE %s REPLICA IDENTITY FULL', c.oid::regclass) FROM pg_class c
			WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relreplident = 'd'
			AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)});
		my $tables = $self->{published} // 'ALL TABLES';
		$self->sql("CREATE PUBLICATION all_tables FOR $tables WITH (publish = 'insert, update, delete')");
	}
	foreach my $pair ([@both], [ reverse @both ])
	{
		my ($to, $from) = @$pair;

		$to->sql(sprintf q{CREATE SUBSCRIPTION to_%s CONNECTION '%s' PUBLICATION all_tables WITH (origin = none, copy_data = false)},
			$to->{node}->name, $from->{node}->connstr('app') =~ s/'/''/gr);
	}
	return;
}

# End that.
sub end_replication { $_->sql('DROP SUBSCRIPTION to_' . $_->{node}->name) foreach @_; return; }

# Wait until both servers have the rows of each other, and test that they have the same ones.
sub replicated ($label, @both)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$both[$_]->{node}->wait_for_catchup('to_' . $both[ 1 - $_ ]->{node}->name) foreach 0, 1;
	foreach my $self (@both)
	{
		is($self->sql('SELECT sum(apply_error_count + sync_error_count) FROM pg_stat_subscription_stats'), 0,
			"$label: no conflict on server " . $self->{node}->name);
	}
	my @rows = map { $_->rows_of_all } @both;
	is($rows[1], $rows[0], "$label: both have the same rows");
	return;
}

# The number of rows of each table, and a sum of what they have
sub rows_of_all ($self)
{
	return $self->sql(q{
		SELECT c.oid::regclass::text, query_to_xml(format('SELECT count(*), sum(hashtextextended(t::text, 0)) FROM %s t', c.oid::regclass), true, true, '')
		FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1});
}

1;
