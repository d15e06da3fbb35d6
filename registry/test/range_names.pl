# Sequences of kind range whose server has no range of them anymore, and whose rows and
# numbers are not where they were.

use List::Util qw(max);
use SnowflakeTest;

my $registry = new_range_registry('registry', 'postgres');

my ($a, $b) = map {
	my $server = new_server($_, registry_conf($registry), "snowflake.server_name = '$_'", "snowflake.grant_timeout = '20s'", 'max_prepared_transactions = 1', "wal_writer_delay = '10s'");
	$server
} 'a', 'b';

sub asked { return sql($registry, $_[0]); }

# A range sequence on both servers, each of which has a range of it.
sub create_on_both ($name)
{
	sql($_, "CREATE SEQUENCE $name AS integer; SELECT snowflake_set_sequence_kind('$name', 'range'); SELECT nextval('$name')")
	  foreach $a, $b;
	return;
}

# A server that has given up its ranges does not keep others waiting.
create_on_both('dropped');
create_on_both('localized');
create_on_both('kept');
sql($a, "DROP SEQUENCE dropped; SELECT snowflake_set_sequence_kind('localized', 'local')");
foreach my $name ('dropped', 'localized')
{
	my $floor = asked("SELECT next + 1000 FROM snowflake_registry.sequences WHERE name = 'public.$name'");
	is(query($b, "SELECT setval('$name', $floor)"), $floor, "setval() does not wait for a server where the sequence is $name");
}

# Nor does one that has no range at all.
sql($a, 'DROP SEQUENCE kept');
is(query($b, "SELECT setval('kept', 100000)"), 100000, 'nor for one that has no range of any sequence');
unlike(slurp_file($a->logfile), qr/WARNING:  the registry grants no numbers/, 'no problem of these is logged');

# Rows that the transaction does not see are below the floor.
sql($a, 'CREATE TABLE t (id serial)');
my $session = $a->background_psql('postgres');
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
sql($a, 'INSERT INTO t VALUES (500)');
$session->query_safe('INSERT INTO t VALUES (600)');
$session->query_safe("SELECT snowflake_set_sequence_kind('t_id_seq', 'range')");
$session->query_safe('COMMIT');
$session->quit;
is(sql($a, "SELECT nextval('t_id_seq')"), 601, 'the floor is above rows of the transaction');
$session = $a->background_psql('postgres');
$session->query_safe("SELECT snowflake_set_sequence_kind('t_id_seq', 'local')");
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
sql($a, 'INSERT INTO t VALUES (5000)');
$session->query_safe("SELECT snowflake_set_sequence_kind('t_id_seq', 'range')");
$session->query_safe('COMMIT');
$session->quit;
is(sql($a, "SELECT nextval('t_id_seq')"), 5001, 'and above rows that it does not see');

# A rollback of what gives a sequence another file takes nothing away, also after a crash.
# (registry_client/sql/range_sequences.sql has several files.)
my %number_of;
sql($a, q{CREATE TABLE rolled (id serial); SELECT snowflake_set_sequence_kind('rolled_id_seq', 'range');
	BEGIN; TRUNCATE rolled RESTART IDENTITY; SELECT nextval('rolled_id_seq'); ROLLBACK});
$number_of{rolled_id_seq} = sql($a, "SELECT nextval('rolled_id_seq')");

# A sequence that was renamed shares its numbers with one that has the former name.
foreach my $name ('former', 'renamed')
{
	sql($a, "CREATE SEQUENCE former; SELECT snowflake_set_sequence_kind('former', 'range'); SELECT nextval('former')");
	sql($a, 'ALTER SEQUENCE former RENAME TO renamed') if $name eq 'former';
}
my @shared = map { split /\n/, sql($a, "SELECT nextval('$_') FROM generate_series(1, 150)") } ('former', 'renamed') x 3;
is(scalar(keys %{ { map { $_ => 1 } @shared } }), 900, 'two sequences of one name have numbers of their own');
$number_of{$_} = max(@shared) foreach 'former', 'renamed';

# A number that a client has is not returned again after a crash, although no row has it.
sql($a, "CREATE SEQUENCE client; SELECT snowflake_set_sequence_kind('client', 'range')");
$number_of{client} = sql($a, "SELECT nextval('client')");

# Nor one of a range that a transaction began which has not ended.
sql($a, "CREATE SEQUENCE begun; SELECT snowflake_set_sequence_kind('begun', 'range')");
my $unended = $a->background_psql('postgres');
$unended->query_safe("BEGIN; SELECT nextval('begun')");
$number_of{begun} = sql($a, "SELECT nextval('begun')");

# Nor one of a sequence whose position was set by C code, which does not pass setval().
sql($a, q{
	CREATE FUNCTION set_by_c(regclass, bigint) RETURNS bigint LANGUAGE internal STRICT AS 'setval_oid';
	CREATE SEQUENCE moved; SELECT snowflake_set_sequence_kind('moved', 'range')});
my $pooled = $a->background_psql('postgres');
$pooled->query_safe("SELECT nextval('moved')");
sql($a, "SELECT set_by_c('moved', 5)");
$number_of{moved} = $pooled->query_safe("SELECT max(nextval('moved')) FROM generate_series(1, 300)");
crash_and_start($a);
foreach my $name (sort keys %number_of)
{
	sql($a, "SELECT snowflake_set_sequence_kind('$name', 'local')");
	cmp_ok(sql($a, "SELECT nextval('$name')"), '>', $number_of{$name}, "after a crash, the local sequence $name continues above its numbers");
}

# A new file waits for no other server.
create_on_both('persistent');
sql($a, q{SELECT count(nextval('persistent')) FROM generate_series(1, 300)});
$b->stop('immediate');
foreach my $persistence ('UNLOGGED', 'LOGGED')
{
	like(query($a, "ALTER SEQUENCE persistent SET $persistence; SELECT nextval('persistent')"), qr/^\d+$/, "after SET $persistence, nextval() does not wait for a server that is down");
}
$b->start;

# A database gets the name of another one, which was renamed.
sql($registry, "SELECT snowflake_registry.add_database(d) FROM unnest('{first_name,second_name}'::text[]) d");
sub create_named ($name)
{
	sql($a, "CREATE DATABASE $name");
	$a->safe_psql($name, q{
		CREATE EXTENSION snowflake; CREATE SEQUENCE s;
		SELECT snowflake_set_sequence_kind('s', 'range'); SELECT nextval('s')});
	return;
}
create_named('first_name');
sql($a, 'ALTER DATABASE first_name RENAME TO second_name');
create_named('first_name');
my $calls = "SELECT sum(calls) FROM snowflake_registry.range_clients WHERE server_name = 'a'";
my $called = asked($calls);
asked("SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE application_name = 'snowflake'");
wait_until('a call over another connection, which has all sequences', sub { asked($calls) > $called });
unlike(slurp_file($registry->logfile), qr/A name is given twice/, 'a database that was renamed has no ranges under its former name');

# A database does not get another group during a call.
my $call = $registry->background_psql('postgres');
$call->query_safe('BEGIN');
$call->query_safe(
	q{SELECT * FROM snowflake_registry.get_ranges(gen_random_uuid(), NULL, '{}', gen_random_uuid(), 0, 'x', '{other}', '{public.s}', '{1000}', '{10}', '{1}', '{NULL}', '{NULL}')});
foreach my $change ("add_database('other')", "remove_database('postgres')")
{
	sql_fails($registry, "SET lock_timeout = '1s'; SELECT snowflake_registry.$change",
		qr/ERROR:  55P03: canceling statement due to lock timeout/, "$change waits for a call");
}
$call->quit;

done_testing();

# The result of a query, or its error
sub query ($server, $sql)
{
	my ($status, $out, $err) = $server->psql('postgres', $sql);

	return $status == 0 ? $out : $err;
}
