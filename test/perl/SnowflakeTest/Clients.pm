# Clients that ask for IDs under load, and what they received.

package SnowflakeTest::Clients;

use v5.36;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Utils;
use SnowflakeTest::Limits;
use SnowflakeTest::Servers;
use Test::More;

our @EXPORT = qw(
  client_queries start_clients wait_for_clients finish_clients end_clients
  client_errors stored_ids start_writing stop_writing
);

# What clients do: "usual" ones ask for IDs one by one and in blocks, in
# queries, in rows of table t that are committed and in rows that are not.
# Blocks are small mostly, and sometimes more than a tick has.  "asking" ones
# commit nothing, so that they wait for no standby to have their rows.  "calm" ones
# leave the processors to others, for tests in which time must pass.
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
my $calm = $usual . q{
DO 'BEGIN PERFORM pg_sleep(0.02); END';
};
my %queries = (usual => $usual, asking => $asking, calm => $calm);

sub client_queries ($kind)
{
	my $round = $queries{$kind} x 100 . $large;

	return $round x 200;
}

# Start clients that ask for IDs until they lose their connection.
sub start_clients ($node, $n, $kind = undef)
{
	my $script = $node->basedir . '/' . ($kind //= 'usual') . '.sql';

	append_to_file($script, client_queries($kind)) unless -e $script;

	# Files, because a pipe that nobody reads would soon stop the clients.
	return map {
		my $file = $node->basedir . "/$kind$_";
		unlink "$file.out";
		my $run = IPC::Run::start(
			[ 'psql', '-XAtq', '-d',
				$node->connstr('postgres') . ' application_name=client',
				'-f', $script ],
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
		wait_until("an ID in $client->{file}", sub { -s $client->{file} }, sub { slurp_file($client->{errors}) });
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
sub end_clients ($node)
{
	sql($node, q{
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
sub stored_ids ($node) { return [ split /\n/, sql($node, 'SELECT id FROM t ORDER BY id') ]; }

# Start clients that insert rows into a table, each in a transaction of its own, until
# stop_writing().
sub start_writing ($node, $table, $n = undef)
{
	sql($node, q{
		CREATE TABLE IF NOT EXISTS halt ();
		TRUNCATE halt;
		CREATE OR REPLACE PROCEDURE write(name regclass, INOUT n int) LANGUAGE plpgsql AS $$
		BEGIN
			LOOP
				EXECUTE format('INSERT INTO %s DEFAULT VALUES', name);
				COMMIT;
				n := n + 1;
				EXIT WHEN EXISTS (SELECT FROM halt);
				PERFORM pg_sleep(0.005);
			END LOOP;
		END
		$$});
	return { node => $node, sessions => [ start_queries($node, ("CALL write('$table', 0)") x ($n // 1)) ] };
}

# Stop them, and test that none got an error.  Returns how many rows they inserted.
sub stop_writing ($writing)
{
	my @sessions = @{ $writing->{sessions} };
	my $rows = 0;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	sql($writing->{node}, 'INSERT INTO halt DEFAULT VALUES');
	is(finish_queries(@sessions), scalar(@sessions), 'clients of ' . $writing->{node}->name . ' insert without an error')
	  or diag(map { $_->{err} } @sessions);
	$rows += $_->{out} || 0 foreach @sessions;
	return $rows;
}

1;
