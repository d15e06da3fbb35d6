# RT, by its classes, its pages and its mail gateway.  It reads the name of a sequence from
# the default of the key.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../perl";
use Application;
use Page;
use PostgreSQL::Test::Utils;
use Test::More;

my $app = Application->new;
my $dir = $app->{dir};
my @use = ('perl', "$FindBin::RealBin/use_rt.pl");

append_to_file("$dir/site.pm", "
Set(\$DatabaseType, 'Pg');
Set(\$DatabaseHost, '$app->{env}{PGHOST}');
Set(\$DatabasePort, $app->{env}{PGPORT});
Set(\$DatabaseName, 'app');
Set(\$DatabaseUser, 'regress_app');
Set(\$DatabasePassword, '');
Set(\$rtname, 'example');
Set(\$WebDomain, 'localhost');
Set(\$LogToSyslog, undef);
Set(\$LogToSTDERR, 'error');
Set(\$MailCommand, 'testfile');
Set(\$WebSessionClass, 'Apache::Session::File');
Set(\$MasonDataDir, '$dir');
Set(\$MasonSessionDir, '$dir');
1;
");
mkdir "$dir/more";
$app->{env}{RT_SITE_CONFIG} = "$dir/site.pm";
$app->{env}{RT_SITE_CONFIG_DIR} = "$dir/more";
$app->run_ok('its tables are created', '/usr/sbin/rt-setup-database-5', '--action', 'init', '--skip-create',
	'--dba', 'regress_app', '--dba-password', '');
my $before = $app->run_ok('it works before', @use, 'before');
like($before, qr/^DependsOn = N: one$/m, 'its answers are those of tickets');

# docs/applications.md
my $page = Page->claim('docs/applications.md', 'RT');
my $steps = Page::replace($page->take('lastupdatedby')->{text}, 'ROLE rt IN DATABASE rt' => 'ROLE regress_app IN DATABASE app');
my ($convert, $rest) = split /\n\n/, $steps, 2;
my $dry = $app->sql("SELECT snowflake_convert_schema('public', widen => 'names', dry_run => true)");
my $keys = () = $dry =~ / SET DEFAULT /g;
like($page->{text}, qr/^It has $keys keys,/m, 'the page has the number of its keys');
is($convert, "SELECT snowflake_convert_schema('public', widen => 'names');", 'the first step is the conversion');
$app->convert(q{, widen => 'names'});
like($app->run_fails('unchanged, it does not work', @use, 'unchanged'), qr/^User: Could not create user$/m, 'it says so');

$app->{node}->command_ok(
	[
		'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$FindBin::RealBin/../../compat/snowflake_compat.sql",
		'-d', $app->{node}->connstr('app')
	],
	'the functions are created');
$app->sql($rest);
is($app->run_ok('it works afterwards', @use, 'after'), $before, 'its answers are the same');
is($app->sql('SELECT min(id) < 1000, max(id) > 1000000000000, max(owner) > 1000000000000 FROM tickets'), 't|t|t',
	'new IDs are snowflake IDs');
is($app->sql('SELECT count(*) FROM pg_sequences'), '0', 'it has no sequence anymore');

$app->{node}->stop;
Page::all_taken();
done_testing();
