# A database for an application, which connects as a role that owns its tables.

package Application;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

sub new
{
	my ($class) = @_;
	my $node = new_server('main', 'fsync = off', "listen_addresses = '127.0.0.1'");
	my $self = bless {
		node => $node, dir => PostgreSQL::Test::Utils::tempdir,
		env => {
			PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'regress_app',
			PGDATABASE => 'app', LANG => 'C.UTF-8', HOME => PostgreSQL::Test::Utils::tempdir
		}
	}, $class;

	$node->safe_psql('postgres', 'CREATE ROLE regress_app LOGIN; CREATE DATABASE app OWNER regress_app');
	$node->safe_psql('app', 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert; GRANT CREATE ON SCHEMA public TO regress_app');
	return $self;
}

# Run a program of the application.  Returns what it printed; fails if it fails.
sub run_ok
{
	my ($self, $label, @command) = @_;
	my ($out, $err);

	local %ENV = (%ENV, %{ $self->{env} });
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(IPC::Run::run(\@command, '<' => \undef, '>' => \$out, '2>' => \$err), $label)
	  or diag("$out\n$err");
	return $out;
}

# The same for a program that has to fail.  Returns what it printed.
sub run_fails
{
	my ($self, $label, @command) = @_;
	my ($out, $err);

	local %ENV = (%ENV, %{ $self->{env} });
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(!IPC::Run::run(\@command, '<' => \undef, '>' => \$out, '2>' => \$err), $label);
	return "$out$err";
}

sub sql
{
	my ($self, $sql) = @_;

	return $self->{node}->safe_psql('app', $sql);
}

# Convert all tables, and test that the dry run has the same statements, and that the
# report finds nothing that is left to do.
sub convert
{
	my ($self, $arguments) = @_;
	my $dry = $self->sql("SELECT snowflake_convert_schema('public', dry_run => true$arguments)");

	is($self->sql("SELECT snowflake_convert_schema('public'$arguments)"),
		$dry, 'the conversion does what the dry run has shown');
	note($dry);
	is($self->sql("SELECT object, finding FROM snowflake_convert_report('public') WHERE severity <> 'info'"),
		'', 'the report finds nothing afterwards');
	return;
}

1;
