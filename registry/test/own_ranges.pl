# A server that is the registry of others, and is granted ranges itself: its files of yesterday are
# put back, and with them what it was granted is lost on both sides.  It must not ask itself before
# the registry is stopped.

use SnowflakeTest;

my $own = new_own_registry('own', 'postgres', 'wal_level = replica', 'max_wal_senders = 2', "snowflake.server_name = 'own'");
my $other = new_server('other', registry_conf($own), "snowflake.server_name = 'other'");
my $restored = PostgreSQL::Test::Cluster->new('restored', port => $own->port);
my %seen;

# More numbers than a range has; returns how many were there before.  After an error, a server
# asks again a second later.
sub take ($node)
{
	my $out;

	wait_until('numbers', sub {
		return $node->psql('postgres', "SELECT nextval('r') FROM generate_series(1, 1000)", stdout => \$out) == 0; });
	return scalar grep { $seen{$_}++ } split /\n/, $out;
}

sub resume ($skip)
{
	return sql_error($restored, "SELECT FROM snowflake_registry.resume_ranges($skip)");
}

foreach my $node ($own, $other)
{
	sql($node, q{CREATE SEQUENCE r; SELECT snowflake_set_sequence_kind('r', 'range')});
	is(take($node), 0, $node->name . ' gets numbers');
}
$own->backup('yesterday');
is(take($_), 0, $_->name . ' gets more') foreach ($other) x 4, ($own) x 4;
$own->stop('immediate');

$restored->init_from_backup($own, 'yesterday');
my $conninfo = registry_conf($own);
$restored->append_conf('postgresql.conf', "snowflake.registry = ''");
$restored->start;
sql($restored, q{SELECT snowflake_registry.stop_ranges('files of yesterday')});
restart_with($restored, $conninfo);
becomes_true($restored, q{
	SELECT count(DISTINCT c.directory) = 2 FROM snowflake_registry.range_clients c, snowflake_registry.range_state s WHERE c.reported = s.incarnation}, 'both servers report');
like(resume('0, 2'), qr/ERROR:  55000: numbers might be granted twice if none are skipped\nDETAIL:  .* It is not known what these sequences were granted, .*: public\.r \(postgres\) of server own\b/,
	'the registry does not continue right there, because nobody knows what its own server was granted');
is(resume(10000), '', 'an administrator has it skip more than that');
is(take($_), 0, $_->name . ' gets numbers that nobody has') foreach $restored, $other;

# Nothing can have been lost.
sql($restored, q{SELECT snowflake_registry.stop_ranges('a test')});
is(resume(1), '', 'where nothing was lost, one number is skipped');
is(take($_), 0, $_->name . ' continues') foreach $restored, $other;

done_testing();
