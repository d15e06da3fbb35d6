# Kea, a DHCP server that has its leases, reservations and configuration in the database:
# what is stored as its programs store it, is found by clients that ask for an address.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../perl";
use Application;
use Kea;
use PostgreSQL::Test::Utils;
use Test::More;

my $app = Application->new(bare => 1);
Kea::admin($app, 'db-init');
$app->create_extensions;
my $before = Kea::use($app, 'before', 1);
like($before, qr/^has an address: X\.2\.1, X\.0\.2, hostN, -$/m, 'its answers are those of addresses');
note($before);
$app->save;

foreach my $kind ('range', 'snowflake')
{
	$app->restore if $kind eq 'snowflake';
	$app->convert_to($kind);
	is(Kea::use($app, $kind, 2), $before, "$kind: its answers are the same");
	is(Kea::use($app, $kind, 3), $before, "$kind: a second time");
	$app->keys_are($kind, 'hosts.host_id', 'dhcp4_options.option_id', 'dhcp4_audit.id', 'dhcp4_client_class.id');
	$app->kinds_are($kind);
}

# Its latest upgrade; the program needs the tables that this makes.
foreach my $kind ('range', 'snowflake')
{
	my $older = slurp_file($Kea::schema) =~ s/^-- This line starts the schema upgrade to version 13\..*?^-- This line concludes the schema upgrade to version 13\.$//msr;
	append_to_file("$Kea::dir/$kind.sql", $older);
	$app->empty;
	$app->run_ok('tables of the version before', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$Kea::dir/$kind.sql");
	$app->create_extensions;
	$app->convert_to($kind);
	$app->new_tables($kind);
	Kea::admin($app, 'db-upgrade');
	is($app->sql('SELECT version FROM schema_version'), 13, "$kind: it was upgraded");
	is(Kea::use($app, "$kind, upgraded", 1), $before, "$kind: its answers are the same after the upgrade");
	$app->kinds_are($kind);
}

$app->stop;
done_testing();
