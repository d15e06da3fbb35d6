# DAViCal, a calendar server, by the requests of its clients.  It casts a user's ID to
# integer when a property is set.

use Application;
use SnowflakeTest;

my $app = Application->new;
my $dir = $app->{dir};
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $tables = '/usr/share/davical/dba';
my @psql = ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f');
my @update = ('perl', "$tables/update-davical-database", '--dbhost', $app->{env}{PGHOST}, '--dbport', $app->{env}{PGPORT}, '--dbname', 'app',
	'--dbuser', 'regress_app', '--appuser', 'regress_app', '--owner', 'regress_app');

# Its configuration is read from /etc/davical, by the name of the server.
append_to_file("$dir/site-conf.php", "<?php
\$c->pg_connect[] = 'dbname=app user=regress_app host=$app->{env}{PGHOST} port=$app->{env}{PGPORT}';
\$c->admin_email = 'admin\@example.org';
\$c->dbg = [];
\$_SERVER['SERVER_NAME'] = '127.0.0.1';
");
append_to_file("$dir/prepend.php", "<?php \$_SERVER['SERVER_NAME'] = '../..$dir/site';\n");
my @php = ('php', '-d', "auto_prepend_file=$dir/prepend.php", '-d', 'include_path=.:/usr/share/davical/inc:/usr/share/awl/inc');

$app->run_ok("its tables are created: $_", @psql, $_)
  foreach '/usr/share/awl/dba/awl-tables.sql', '/usr/share/awl/dba/schema-management.sql', "$tables/davical.sql";
$app->run_ok('its functions are created', @update, '--nopatch');
$app->run_ok('it has its data', @psql, "$tables/base-data.sql");

# Returns what does not depend on the IDs.
sub use_davical ($label, $name)
{
	$app->run_ok("$label: users", @php, "$FindBin::RealBin/use_davical.php", $name);
	my $service = $app->start_service($port, @php, '-S', "127.0.0.1:$port", '-t', '/usr/share/davical/htdocs');
	my $out = $app->run_ok($label, 'perl', "$FindBin::RealBin/use_davical.pl", $port, $name);
	Application::stop_service($service);
	return $out;
}

# Its latest patch of tables, and all of its functions and views again
sub upgrade ($label)
{
	$app->sql(q{
		ALTER TABLE calendar_item DROP COLUMN dtstart_orig, DROP COLUMN dtend_orig;
		UPDATE awl_db_revision SET schema_patch = 4 WHERE (schema_major, schema_minor, schema_patch) = (1, 3, 5)});
	like($app->run_ok($label, @update), qr/1\.3\.5/, "$label: a patch was applied");
	return;
}

$app->works_before(\&use_davical, qr/^found: 207 one$/m);
$app->works_converted('range', [ 'usr.user_no', 'principal.principal_id' ], \&upgrade);

$app->restore;
$app->convert_to('snowflake');
my $after = use_davical('snowflake: it works afterwards', 'after');
note($after);
my ($old, $new) = map { my %answers = /^(.*?): (.*)$/mg; \%answers } $app->{before}, $after;
is(join(', ', grep { $old->{$_} ne $new->{$_} } sort keys %$old), 'color', 'snowflake: a property cannot be set, all else is as before');
like(slurp_file($app->{node}->logfile), qr/integer out of range.*?set_dav_property/s, 'snowflake: it casts an ID to integer');

done_testing();
