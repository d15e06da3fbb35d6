# RT, by its classes, its pages and its mail gateway.  It reads the name of a sequence from
# the default of the key.

use Application;
use SnowflakeTest;

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
$app->works_before(\@use, qr/^DependsOn = N: one$/m);

sub upgrade ($label)
{
	return $app->run_ok($label, '/usr/sbin/rt-setup-database-5', '--action', 'upgrade', '--upgrade-from', '5.0.1', '--upgrade-to', '5.0.3',
		'--force', '--dba', 'regress_app', '--dba-password', '');
}

# Names and values do not tell of all columns that they hold keys.
my %widen = (range => '', snowflake => ", widen => 'all'");
$app->works_converted($_, [ 'tickets.id', 'users.id', 'attachments.id' ], \&upgrade, $widen{$_}) foreach 'range', 'snowflake';

done_testing();
