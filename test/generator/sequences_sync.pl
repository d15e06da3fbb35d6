# Subscriptions that copy the positions of sequences, which PostgreSQL has since 19:
# a snowflake sequence stays exhausted, and what one sends exhausts a local one, so that
# it fails.  One whose definition differs has PostgreSQL's worker begin again until it is the
# same, and keeps no other one from being copied.

use SnowflakeTest;

my ($a, $b) = map { PostgreSQL::Test::Cluster->new($_) } 'a', 'b';
plan skip_all => 'subscriptions have no sequences before PostgreSQL 19' if $a->pg_version->major < 19;

my $ID = '> 1e17';
my $exhausted = qr/ERROR:  2200H: nextval: reached maximum value of sequence/;
foreach my $node ($a, $b)
{
	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf',
		"shared_preload_libraries = 'snowflake'\nsnowflake.worker_id = " . ($node == $a ? 1 : 2));
	$node->start;
	sql($node, q{
		CREATE EXTENSION snowflake;
		CREATE SEQUENCE everywhere; CREATE SEQUENCE here; CREATE SEQUENCE there});
}
sql($a, q{
	SELECT snowflake_set_sequence_kind('everywhere'), snowflake_set_sequence_kind('there'), setval('here', 11);
	CREATE PUBLICATION p FOR ALL SEQUENCES});
sql($b, q{SELECT snowflake_set_sequence_kind('everywhere'), snowflake_set_sequence_kind('here')});

synchronize_sequences($b, sprintf q{CREATE SUBSCRIPTION s CONNECTION '%s dbname=postgres' PUBLICATION p}, $a->connstr);
is(sql($b, "SELECT last_value, nextval('here') $ID, nextval('everywhere') $ID FROM here"),
	'9223372036854775807|t|t', 'a local position leaves a snowflake sequence exhausted');
synchronize_sequences($b, 'ALTER SUBSCRIPTION s REFRESH SEQUENCES');
is(sql($b, "SELECT last_value, nextval('here') $ID FROM here"),
	'9223372036854775807|t', 'the same after the next synchronization');
sql_fails($b, q{SELECT nextval('there')}, $exhausted,
	'a local sequence fails after it got the position of a snowflake sequence');
is(sql($b, "SELECT snowflake_set_sequence_kind('there'); SELECT nextval('there') $ID"), "\nt",
	'... until it is one, too');
sql($b, 'DROP SUBSCRIPTION s');

# Kinds change definitions: an identity becomes bigint with its column.
foreach my $node ($a, $b)
{
	sql($node, q{
		CREATE EXTENSION snowflake_convert;
		CREATE TABLE serials (id serial PRIMARY KEY);
		CREATE TABLE identities (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
		ALTER SYSTEM SET wal_retrieve_retry_interval = '200ms';
		SELECT pg_reload_conf()});
}
my $convert = q{SELECT snowflake_convert('serials'); SELECT snowflake_convert('identities')};
my $waiting = q{SELECT string_agg(srrelid::regclass::text, ' ' ORDER BY srrelid::regclass::text) FROM pg_subscription_rel WHERE srsubstate <> 'r'};
sql($a, $convert);
my $position = -s $b->logfile;
sql($b, sprintf q{CREATE SUBSCRIPTION s CONNECTION '%s dbname=postgres' PUBLICATION p}, $a->connstr);
$b->wait_for_log(qr/mismatched or renamed sequences? on subscriber.*sequence synchronization failed.*mismatched or renamed/s, $position);
is(sql($b, $waiting), 'identities_id_seq', 'definitions that differ are waited for, and other sequences are synchronized');
sql($b, $convert);
wait_until_true($b, "SELECT ($waiting) IS NULL");
is(sql($b, "SELECT nextval('serials_id_seq') $ID, nextval('identities_id_seq') $ID"), 't|t',
	'with the same kind on both sides all are synchronized, and give IDs');
sql($b, 'DROP SUBSCRIPTION s');
done_testing();
