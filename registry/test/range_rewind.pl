# A server with range and snowflake sequences is cut off from its asynchronous standby, which
# is promoted, and both give out numbers; then it is rewound, a standby, and promoted again,
# and the other one is started beside it.

use SnowflakeTest;

my $registry = new_range_registry('registry', 'postgres');
my ($first, $other) = map { new_primary($_, registry_conf($registry), "snowflake.server_name = '$_'", "snowflake.grant_timeout = '60s'", 'wal_log_hints = on') } 'first', 'other';
foreach my $node ($first, $other)
{
	sql($node, q{
		CREATE SEQUENCE r AS integer; CREATE SEQUENCE s;
		SELECT snowflake_set_sequence_kind('r', 'range'), snowflake_set_sequence_kind('s')});
}
my $second = new_standby($first, 'second', "snowflake.server_name = 'second'");

# More numbers than a range has, of both sequences, on servers in turn
my %seen;

sub take ($label, @nodes)
{
	my $repeated = 0;

	foreach my $node (@nodes)
	{
		$repeated += grep { $seen{$_}++ } split /\n/, sql($node, "SELECT nextval(s) FROM generate_series(1, 450), unnest('{r,s}'::regclass[]) s");
	}
	is($repeated, 0, "$label: no number comes twice");
	return;
}

sub cut_off ($primary, $standby)
{
	reload_with($standby, "primary_conninfo = ''");
	wait_until_true($primary, 'SELECT count(*) = 0 FROM pg_stat_replication');
	return;
}

take('before', $first, $other, $first);
$first->wait_for_catchup($second);
cut_off($first, $second);
take('numbers that the standby does not know of', $first);
$second->promote;
take('the standby is promoted, and the old primary continues', $second, $first, $other, $second, $first);
is(sql($second, "SELECT setval('r', 50000)"), 50000, 'setval() reaches both');
take('after setval()', $first, $second, $other);

# The old primary is rewound.
$first->stop;
sql($second, 'CHECKPOINT');
command_ok([ 'pg_rewind', '-D', $first->data_dir, '--source-server', $second->connstr('postgres') ], 'the old primary is rewound');
$first->append_conf('postgresql.conf', 'port = ' . $first->port . "\nsnowflake.server_name = 'first'\n" . setting('primary_conninfo', $second->connstr . ' application_name=first'));
$first->set_standby_mode;
$first->start;
take('it is a standby', $second, $other);
$second->wait_for_catchup('first');
sql_fails($first, "SELECT nextval('r')", qr/25006: /, 'a rewound server is a standby');
sql($second, "SELECT nextval('r')");
$second->stop('immediate');
$first->promote;
take('it is promoted again', $first, $other);
$second->start;
take('the other one is started beside it', $second, $first, $other, $second);

sql($first, "SELECT snowflake_set_sequence_kind('r', 'local')");
my $number = sql($first, "SELECT nextval('r')");
ok(!$seen{$number}, 'local, the sequence continues above its numbers');
is(sql($registry, 'SELECT count(stopped) FROM snowflake_registry.sequences'), 0, 'the registry saw no loss');
done_testing();
