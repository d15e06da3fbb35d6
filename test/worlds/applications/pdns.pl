# PowerDNS, by its HTTP interface, its tool, and queries.  It holds IDs of zones in 32 bits.

use Application;
use PowerDNS;
use SnowflakeTest;

my $app = Application->new;
my $dns = PowerDNS->new($app);

$app->run_ok('its tables are created', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$PowerDNS::schemas/schema.pgsql.sql");
ok($dns->start, 'it starts');
my $before = $dns->use('before');
like($before, qr/^www: 192\.0\.2\.1$/m, 'its answers are those of zones');
unlike($before, qr/^[^:]*: (?:[45]\d\d|failed)\b/m, 'without an error');
note($before);
$dns->stop;
$app->save;

$app->convert_to('range');
$app->new_tables('range');
ok($dns->start, 'range: it starts');
is($dns->use('after'), $before, 'range: its answers are the same');
$dns->stop;

# Its latest upgrade of tables
$app->sql('ALTER TABLE domains DROP COLUMN options, DROP COLUMN catalog');
$app->run_ok('range: an upgrade', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$PowerDNS::schemas/4.3.0_to_4.7.0_schema.pgsql.sql");
ok($dns->start, 'range: it starts afterwards');
is($dns->use('upgraded'), $before, 'range: its answers are the same afterwards');
$dns->stop;
$app->kinds_are('range');
$app->keys_are('range', 'domains.id', 'records.domain_id');

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
