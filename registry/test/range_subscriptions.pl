# Subscriptions reset the position of sequences: by TRUNCATE ... RESTART IDENTITY, and, since
# PostgreSQL 19, by the position of the publisher's.  A range sequence still gives no number
# twice, also after a restart, when only its file knows what was granted.

use SnowflakeTest;

my @kinds = ('local', 'range', 'snowflake');
my $registry = new_range_registry('registry', 'postgres');
my ($publisher, $subscriber) = map {
	new_primary($_, registry_conf($registry), 'wal_level = logical', "snowflake.server_name = '$_'")
} 'publisher', 'subscriber';
foreach my $node ($publisher, $subscriber)
{
	sql($node, q{
		CREATE TABLE t (id serial PRIMARY KEY, n int)});
	sql($node, "CREATE SEQUENCE from_$_; CREATE SEQUENCE unused_$_") foreach @kinds;
}

sub set_kind ($node, $sequence, $kind)
{
	sql($node, "SELECT snowflake_set_sequence_kind('$sequence', '$kind')") if $kind ne 'local';
	return;
}
foreach my $kind (@kinds)
{
	set_kind($publisher, "from_$kind", $kind);
	set_kind($publisher, "unused_$kind", $kind);
	set_kind($subscriber, "from_$kind", 'range');
	set_kind($subscriber, "unused_$kind", 'range');
}
set_kind($subscriber, 't_id_seq', 'range');
my @ranges = ((map { ("from_$_", "unused_$_") } @kinds), 't_id_seq');

# More numbers than a range has.  What is unused is known by its file alone after the restart.
my %given;

sub take ($label, @sequences)
{
	my $repeated = 0;

	foreach my $sequence (@sequences)
	{
		$repeated += grep { $given{$sequence}{$_}++ } split /\n/, sql($subscriber, "SELECT nextval('$sequence') FROM generate_series(1, 150)");
	}
	is($repeated, 0, "$label: no number comes twice");
	return;
}

sub problems
{
	return sql($subscriber, 'SELECT sequence, problem FROM snowflake_sequences WHERE problem IS NOT NULL');
}
take('before', @ranges);
sql($publisher, 'CREATE PUBLICATION tables FOR TABLE t');
$subscriber->restart;
sql($subscriber, sprintf q{CREATE SUBSCRIPTION tables CONNECTION '%s dbname=postgres' PUBLICATION tables}, $publisher->connstr);
$subscriber->wait_for_subscription_sync($publisher, 'tables');
# Clients are kept from writing; subscriptions ignore that.
sql($subscriber, q{
	CREATE FUNCTION on_truncate() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM count(*) FROM public.t; RETURN NULL; END';
	CREATE TRIGGER a AFTER TRUNCATE ON t EXECUTE FUNCTION on_truncate();
	ALTER TABLE t ENABLE ALWAYS TRIGGER a;
	ALTER DATABASE postgres SET default_transaction_read_only = on});
$subscriber->restart;
sql($publisher, 'INSERT INTO t (n) VALUES (1); TRUNCATE t RESTART IDENTITY; INSERT INTO t (n) VALUES (2)');
$publisher->wait_for_catchup('tables');
is(sql($subscriber, 'SELECT n FROM t'), 2, 'TRUNCATE is replicated');
is(problems(), '', '... and leaves the sequence exhausted');
sql($subscriber, 'SET default_transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only');
$subscriber->restart;
sql($subscriber, "SELECT snowflake_set_sequence_kind('t_id_seq', 'local')");
take('after TRUNCATE and a restart, local', 't_id_seq');

SKIP:
{
	skip 'subscriptions have no sequences before PostgreSQL 19', 1 if $subscriber->pg_version->major < 19;

	my $session = $subscriber->background_psql('postgres');
	my @used = map { "from_$_" } @kinds;

	sub synchronize ($command)
	{
		synchronize_sequences($subscriber, $command);
		is(problems(), '', "$command: no sequence is left that is not exhausted");
		return;
	}
	sql($publisher, 'CREATE PUBLICATION sequences FOR ALL SEQUENCES');
	$given{$_}{$session->query("SELECT nextval('$_')")}++ foreach @used;
	synchronize(sprintf q{CREATE SUBSCRIPTION sequences CONNECTION '%s dbname=postgres' PUBLICATION sequences}, $publisher->connstr);
	is(scalar(grep { $given{$_}{$session->query("SELECT nextval('$_')")}++ } @used), 0,
		'a session that has used them continues');
	take('another session', @used);
	synchronize('ALTER SUBSCRIPTION sequences REFRESH SEQUENCES');
	$session->quit;
	$subscriber->restart;
	my @all = grep { $_ ne 't_id_seq' } @ranges;
	sql($subscriber, "SELECT snowflake_set_sequence_kind('$_', 'local')") foreach @all;
	take('after a restart, local', @all);
}
done_testing();
