# monitoring/: the queries run, have a column for each metric, and have each metric
# that an alert uses.  (script/tests/alerts tests when alerts fire.)

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $dir = "$FindBin::RealBin/../../monitoring";
my $primary = new_server('primary', 'wal_level = replica', 'max_wal_senders = 5');
$primary->safe_psql('postgres', 'SELECT snowflake_nextval()');
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;

my %metric;
my %query;
foreach my $part (split /^(?=\w+:$)/m, slurp_file("$dir/queries.yaml"))
{
	next unless $part =~ /^(\w+):\n.*query: \|\n(.*?)\n  metrics:/s;
	my ($name, $query) = ($1, $2);
	my @columns = $part =~ /^    - (\w+):$/mg;
	my $columns = $primary->safe_psql('postgres',
		"CREATE TEMP VIEW q AS $query;
		SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'q'::regclass");
	is($columns, "@columns", "$name: the query has a column for each metric");
	$query{$name} = $query;
	$metric{"${name}_$_"} = 1 foreach @columns;
}

my $alerts = slurp_file("$dir/alerts.yaml");
my @unknown = grep { !$metric{$_} } "@{[ $alerts =~ /^ +expr: (.*)/mg ]}" =~ /\b(snowflake_\w+)/g;
is("@unknown", '', 'alerts use metrics that the queries have');

# Who counts as a server that generates IDs
my $server = $query{snowflake_server};
is($primary->safe_psql('postgres', "SELECT worker_id, datacenter_id, info, scheme = current_setting('snowflake.scheme') FROM ($server) q"),
	'0||1|t', 'a primary has a worker ID, also if that was never set');
is($standby->safe_psql('postgres', "SELECT count(*) FROM ($server) q"),
	0, 'a standby has no worker ID in the metrics');
is($primary->safe_psql('postgres', "SELECT worker_id_set FROM ($query{snowflake}) q"),
	0, 'whether the worker ID was set is a metric');

$standby->stop;
$primary->stop;
done_testing();
