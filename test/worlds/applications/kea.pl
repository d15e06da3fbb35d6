# Kea, a DHCP server that has its leases, reservations and configuration in the database:
# what is stored as its programs store it, is found by clients that ask for an address.

use Application;
use Kea;
use SnowflakeTest;

my $app = Application->new(bare => 1);
Kea::admin($app, 'db-init');
$app->create_extensions;
my $before = Kea::use($app, 'before', 1);
like($before, qr/^has an address: X\.2\.1, X\.0\.2, hostN, -$/m, 'its answers are those of addresses');
note($before);
$app->save;

# The report names its functions that have integers.  Two of them hold keys in these.
my $named = $app->as_owner(q{SELECT object FROM snowflake_convert_report('public', kind => 'snowflake', details => true) WHERE finding LIKE '%has integers%'});
is($named =~ s/^function public\.|\(.*\)$//gmr,
	"checklease4limits\nchecklease6limits\ncreateoptionauditdhcp4\ncreateoptionauditdhcp6", 'the report names functions');
my $rehearsal = q{
	SELECT finding FROM snowflake_convert_report('public', kind => 'snowflake', rehearse => true) WHERE object = 'table public.dhcp4_options'};
like($app->as_owner($rehearsal), qr/^INSERT with a new key fails: function createoptionauditdhcp4\(.* does not exist/, 'a rehearsal finds what fails');
Kea::widen_functions($app);
is($app->as_owner($rehearsal), '', 'it finds nothing after they are changed');
$app->restore;

foreach my $kind ('range', 'snowflake')
{
	$app->restore if $kind eq 'snowflake';
	Kea::widen_functions($app) if $kind eq 'snowflake';
	$app->convert_to($kind);
	is(Kea::use($app, $kind, 2), $before, "$kind: its answers are the same");
	is(Kea::use($app, $kind, 3), $before, "$kind: a second time");
	is($app->sql(q{
		SELECT FROM lease6Upload('2001:db8::9', '01:02', 1, 1, 1, 1, 0, 7, 128, 0, 0, 'host', '01:02', 0, '', 1, 2);
		SELECT iaid, hwaddr_source FROM lease6DumpData()}), '7|2', "$kind: functions of leases work as they are");
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
	Kea::widen_functions($app) if $kind eq 'snowflake';
	$app->convert_to($kind);
	$app->new_tables($kind);
	Kea::admin($app, 'db-upgrade');
	is($app->sql('SELECT version FROM schema_version'), 13, "$kind: it was upgraded");
	is(Kea::use($app, "$kind, upgraded", 1), $before, "$kind: its answers are the same after the upgrade");
	$app->kinds_are($kind);
}

done_testing();
