# Directus, by its interface for programs, which creates tables, too.

use Application;
use SnowflakeTest;

my $app = Application->new;
my $port = PostgreSQL::Test::Cluster::get_free_port();
my @directus = ('node', '/srv/npm/node_modules/directus/cli.js');

mkdir "$app->{dir}/$_" foreach 'uploads', 'extensions';
%{ $app->{env} } = (%{ $app->{env} }, DB_CLIENT => 'pg', DB_HOST => $app->{env}{PGHOST}, DB_PORT => $app->{env}{PGPORT}, DB_DATABASE => 'app',
	DB_USER => 'regress_app', DB_PASSWORD => 'none', SECRET => 'secret' x 8, HOST => '127.0.0.1', PORT => $port, PUBLIC_URL => "http://127.0.0.1:$port",
	ADMIN_EMAIL => 'admin@example.org', ADMIN_PASSWORD => 'correct horse', STORAGE_LOCAL_ROOT => "$app->{dir}/uploads",
	EXTENSIONS_PATH => "$app->{dir}/extensions", TELEMETRY => 'false', NODE_ENV => 'production',
	# It refuses calls when the machine is busy.
	PRESSURE_LIMITER_ENABLED => 'false', LOG_LEVEL => 'error', CONFIG_PATH => "$app->{dir}/none.env");

# Returns what does not depend on the IDs.
sub use_directus ($label, $name)
{
	my $service = $app->start_service($port, @directus, 'start');
	my $out = $app->run_ok($label, 'perl', "$FindBin::RealBin/use_directus.pl", $port, $name);

	Application::stop_service($service);
	return $out;
}

# The last migrations of its tables, taken back and made again
sub upgrade ($label)
{
	$app->run_ok("$label, $_", @directus, 'database', "migrate:$_") foreach 'down', 'down', 'latest';
	return;
}

$app->run_ok('its tables are created', @directus, 'bootstrap');
$app->works_before(\&use_directus, qr/^articles: 200 one two$/m, qr/: 5\d\d /);
foreach my $kind ('range', 'snowflake')
{
	$app->convert_anew($kind);
	$app->works("$kind: it works afterwards", 'after');
	upgrade("$kind: an upgrade");
	$app->works("$kind: it works after the upgrade", 'upgraded');
	# Keys of its collections are integers.
	$app->convert_upgraded($kind);
	$app->kinds_are($kind);
	$app->keys_are($kind, 'directus_activity.id', 'directus_revisions.id', 'directus_fields.id');
}

done_testing();
