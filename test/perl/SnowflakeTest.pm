# What the TAP tests share.

package SnowflakeTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  new_server sql_error start_fails
  start_queries finish_queries
  fake_clock set_clock
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
	set_clock($node, 0);
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

1;
