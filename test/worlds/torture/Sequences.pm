# Snowflake sequences in script/tests/torture: their databases, what clients do with them,
# and what is done to them meanwhile.
#
# Clients take IDs from sequences of "postgres", whose extension stays.  Those of
# "app" become local and snowflake sequences again, and its extension is dropped and created; its only
# client is a witness (test/worlds/torture/witness), which knows small numbers from IDs.  "still" is
# copied, so it has no clients.

package Sequences;

use v5.36;

use Exporter 'import';
use History;
use SnowflakeTest;
use Torture;

our @EXPORT = qw(
  create_sequences sequence_queries greedy_sequence_queries plan_sequences are_snowflake change_sequences
  $sequence_refusal
);

my @in_app = ('k1', 'k2', 'items_id_seq');

my $objects = q{
	CREATE SEQUENCE %s;
	CREATE SEQUENCE %s;
	CREATE TABLE items (id bigserial PRIMARY KEY, no int);
	SELECT snowflake_set_sequence_kind(oid, 'snowflake') FROM pg_class
	WHERE relname IN ('ids', 'by20', 'k1', 'k2', 'items_id_seq');
};

# Create what clients use, on a server that others are copies of.
sub create_sequences ($node)
{
	sql($node, sprintf $objects, 'ids', 'by20 INCREMENT BY 20');
	sql($node, "CREATE DATABASE $_") foreach 'app', 'still';
	foreach my $database ('app', 'still')
	{
		$node->safe_psql($database, 'CREATE EXTENSION snowflake;' . sprintf $objects, 'k1', 'k2');
		$node->safe_psql($database,
			q{CREATE FUNCTION taken() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('k1'); END $$});
	}
	return;
}

# What a client does that counts by itself: all IDs that it may use, from so many values.
sub owned ($values)
{
	return "SELECT g FROM (SELECT nextval('by20') AS v FROM generate_series(1, $values) OFFSET 0) x, "
	  . 'generate_series(x.v - 19, x.v + 19) g';
}

# What psql does with sequences, and commits nothing
sub sequence_queries
{
	return q{
SELECT nextval('ids') FROM generate_series(1, 20);
SELECT nextval('ids');
BEGIN;
INSERT INTO items (no) SELECT g FROM generate_series(1, 5) g RETURNING id;
ROLLBACK;
BEGIN;
COPY items (no) FROM STDIN;
1
2
3
\.
SELECT currval('items_id_seq');
ROLLBACK;
} . owned(1) . ";\n";
}

sub greedy_sequence_queries ($n)
{
	my $by20 = int($n / 200);

	return "COPY (SELECT nextval('ids') FROM generate_series(1, $n)) TO STDOUT;\n"
	  . 'COPY (' . owned($by20) . ") TO STDOUT;\n";
}

# Errors that calls may get.  A client that counts by itself needs consecutive IDs.  The
# server's own nextval() is what is reached while the extension is dropped or created.
our $sequence_refusal =
  qr/INCREMENT 20 of sequence "by20" is not possible|reached maximum value of sequence "(?:k1|k2|items_id_seq)"/;

#
# What happens to sequences while clients use them
#
my @changes = ('restart', 'local', 'local', 'drop', 'drop', 'drop', 'dump', 'copy');

sub plan_sequences
{
	return {
		change => any_of(@changes),
		number => 1 + int rand(1_000_000),
		seconds => rand(0.5)
	};
}

# Are the sequences of "app" snowflake sequences, so that they give out IDs alone from
# now on?
sub are_snowflake ($history, $node, $server)
{
	ids_only($history, $server)
	  if $node->safe_psql('app', "SELECT bool_and(kind = 'snowflake' AND problem IS NULL) FROM snowflake_sequences WHERE sequence IN ('k1', 'k2', 'items_id_seq')") eq 't';
	return;
}

sub set_kind ($node, $kind)
{
	$node->safe_psql('app', "SELECT snowflake_set_sequence_kind('$_', '$kind')") foreach @in_app;
	return;
}

# Change nothing, but the files of sequences.
sub restart ($node, $plan)
{
	foreach my $its ([ 'postgres', 'ids', 'items_id_seq' ], [ 'app', 'k1', 'k2' ])
	{
		my ($database, $one, $two) = @$its;
		$node->safe_psql($database, $_)
		  foreach "ALTER SEQUENCE $one RESTART", "ALTER SEQUENCE $two RESTART WITH $plan->{number}",
		  "SELECT setval('$one', $plan->{number})", 'TRUNCATE items RESTART IDENTITY',
		  "ALTER SEQUENCE $two CACHE " . (1 + $plan->{number} % 50);
	}
	return;
}

sub become_local ($node, $plan, $history, $server)
{
	not_only_ids($history, $server);
	set_kind($node, 'local');
	if ($plan->{change} eq 'drop')
	{
		$node->safe_psql('app', 'DROP EXTENSION snowflake');
		nap($plan->{seconds});
		$node->safe_psql('app', 'CREATE EXTENSION snowflake');
	}
	nap($plan->{seconds});
	set_kind($node, 'snowflake');
	ids_only($history, $server);
	return;
}

# IDs of another database, in the order of their calls
sub ids_of ($node, $database)
{
	return split /\n/, $node->safe_psql($database, q{
		SELECT nextval('k1');
		INSERT INTO items (no) VALUES (1) RETURNING id;
		SELECT taken();
		SELECT nextval('k2') FROM generate_series(1, 3)});
}

# Restore a dump of "app".
sub dump_app ($origin, $node, $plan, $database)
{
	sql($node, "CREATE DATABASE $database");
	system_or_bail('sh', '-c', 'pg_dump -d "$1" -f "$2" && psql -XAtq -v ON_ERROR_STOP=1 -d "$3" -f "$2" >/dev/null',
		'sh', $origin->connstr('app'), $node->basedir . '/app.sql', $node->connstr($database));
	return;
}

# Do what is planned to the sequences of a server.  A dump is restored on this one, or on another.
# Returns IDs of another database, on the server that has it.
my $databases = 0;

sub change_sequences ($node, $plan, $history, $server, $other = undef)
{
	my $change = $plan->{change};
	my $database = "other" . ++$databases;

	happens("sequences: $change");
	fault("sequences: $change");
	return restart($node, $plan) if $change eq 'restart';
	return become_local($node, $plan, $history, $server) if $change eq 'local' || $change eq 'drop';
	$change eq 'copy'
	  ? sql($node, "CREATE DATABASE $database TEMPLATE still")
	  : dump_app($node, $other // $node, $plan, $database);
	my $on = $change eq 'copy' ? $node : $other // $node;
	my @ids = eval { ids_of($on, $database) };
	die $@ if $@ && $@ !~ /clock is too far|no worker ID is granted|the grant of worker ID/;
	sql($on, "DROP DATABASE $database WITH (FORCE)");
	return @ids;
}

1;
