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
	$node->safe_psql('postgres', q{
		CREATE EXTENSION snowflake;
		CREATE SEQUENCE everywhere; CREATE SEQUENCE here; CREATE SEQUENCE there});
}
$a->safe_psql('postgres', q{
	SELECT snowflake_set_sequence_kind('everywhere'), snowflake_set_sequence_kind('there'), setval('here', 11);
	CREATE PUBLICATION p FOR ALL SEQUENCES});
$b->safe_psql('postgres', q{SELECT snowflake_set_sequence_kind('everywhere'), snowflake_set_sequence_kind('here')});

synchronize_sequences($b, sprintf q{CREATE SUBSCRIPTION s CONNECTION '%s dbname=postgres' PUBLICATION p}, $a->connstr);
is($b->safe_psql('postgres', "SELECT last_value, nextval('here') $ID, nextval('everywhere') $ID FROM here"),
	'9223372036854775807|t|t', 'a local position leaves a snowflake sequence exhausted');
synchronize_sequences($b, 'ALTER SUBSCRIPTION s REFRESH SEQUENCES');
is($b->safe_psql('postgres', "SELECT last_value, nextval('here') $ID FROM here"),
	'9223372036854775807|t', 'the same after the next synchronization');
like(sql_error($b, q{SELECT nextval('there')}), $exhausted,
	'a local sequence fails after it got the position of a snowflake sequence');
is($b->safe_psql('postgres', "SELECT snowflake_set_sequence_kind('there'); SELECT nextval('there') $ID"), "\nt",
	'... until it is one, too');
$b->safe_psql('postgres', 'DROP SUBSCRIPTION s');

# Kinds change definitions: they end CYCLE, and an identity becomes bigint with its column.
foreach my $node ($a, $b)
{
	$node->safe_psql('postgres', q{
		CREATE EXTENSION snowflake_convert;
		CREATE SEQUENCE cyclic CYCLE;
		CREATE TABLE serials (id serial PRIMARY KEY);
		CREATE TABLE identities (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
		ALTER SYSTEM SET wal_retrieve_retry_interval = '200ms';
		SELECT pg_reload_conf()});
}
my $convert = q{SELECT snowflake_set_sequence_kind('cyclic'); SELECT snowflake_convert('serials'); SELECT snowflake_convert('identities')};
my $waiting = q{SELECT string_agg(srrelid::regclass::text, ' ' ORDER BY srrelid::regclass::text) FROM pg_subscription_rel WHERE srsubstate <> 'r'};
$a->safe_psql('postgres', $convert);
my $position = -s $b->logfile;
$b->safe_psql('postgres', sprintf q{CREATE SUBSCRIPTION s CONNECTION '%s dbname=postgres' PUBLICATION p}, $a->connstr);
$b->wait_for_log(qr/mismatched or renamed sequences? on subscriber.*sequence synchronization failed.*mismatched or renamed/s, $position);
is($b->safe_psql('postgres', $waiting), 'cyclic identities_id_seq', 'definitions that differ are waited for, and other sequences are synchronized');
$b->safe_psql('postgres', $convert);
$b->poll_query_until('postgres', "SELECT ($waiting) IS NULL") or die 'sequences are not synchronized';
is($b->safe_psql('postgres', "SELECT nextval('cyclic') $ID, nextval('serials_id_seq') $ID, nextval('identities_id_seq') $ID"), 't|t|t',
	'with the same kind on both sides all are synchronized, and give IDs');
$b->safe_psql('postgres', 'DROP SUBSCRIPTION s');
$_->stop foreach $a, $b;
done_testing();
