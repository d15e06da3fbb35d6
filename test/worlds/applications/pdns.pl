# PowerDNS, by its HTTP interface, its tool, and queries.  It holds IDs of zones in 32 bits.

use Application;
use PowerDNS;
use SnowflakeTest;

my $app = Application->new;
my $dns = PowerDNS->new($app);

$app->run_ok('its tables are created', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$PowerDNS::schemas/schema.pgsql.sql");
$app->works_before(
	sub ($label, $name) {
		ok($dns->start, "$label: it starts");
		my $answers = $dns->use($name);
		$dns->stop;
		return $answers;
	}, qr/^www: 192\.0\.2\.1$/m, qr/^[^:]*: (?:[45]\d\d|failed)\b/m);
$app->works_converted('range', [ 'domains.id', 'records.domain_id' ],
	sub ($label) {
		$app->sql('ALTER TABLE domains DROP COLUMN options, DROP COLUMN catalog');
		$app->run_ok($label, 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$PowerDNS::schemas/4.3.0_to_4.7.0_schema.pgsql.sql");
	});

# What prevents snowflake IDs
$app->restore;
$app->convert_to('snowflake');
ok($dns->start, 'snowflake: it starts, with the zones that it had');
my $after = $dns->use('after');
like($after, qr/^zone: 500 /m, 'snowflake: a zone with a new ID fails');
like($after, qr/source value \d+ is larger than target's maximum possible value 4294967295/, 'snowflake: it says why');
$dns->stop;
like($app->run_fails('snowflake: with such a zone it does not start, as it is set by default', $dns->command('--zone-cache-refresh-interval=300')),
	qr/STL Exception while filling the zone cache/, 'snowflake: it says so');

done_testing();
