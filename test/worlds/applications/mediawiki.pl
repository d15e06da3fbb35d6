# MediaWiki, by its web interface and its scripts.  Its search casts IDs to integer, and
# its upgrade makes columns integer again.

use Application;
use SnowflakeTest;

my $app = Application->new;
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $dir = $app->{dir};
my $scripts = '/usr/share/mediawiki/maintenance';

$app->run_ok('its tables are created', 'php', "$scripts/install.php", '--dbtype', 'postgres', '--dbserver', $app->{env}{PGHOST},
	'--dbport', $app->{env}{PGPORT}, '--dbname', 'app', '--dbuser', 'regress_app', '--dbpass', 'none', '--dbschema', 'public',
	'--confpath', $dir, '--scriptpath', '', '--server', "http://127.0.0.1:$port", '--pass', 'correct horse', 'Test', 'Admin');
append_to_file("$dir/LocalSettings.php", '
$wgMainCacheType = CACHE_NONE;
$wgMessageCacheType = CACHE_NONE;
$wgParserCacheType = CACHE_DB;
$wgSessionCacheType = CACHE_DB;
$wgJobRunRate = 0;
$wgShowExceptionDetails = true;
$wgRateLimits = [];
$wgCacheDirectory = "' . $dir . '";
');
$app->{env}{MW_CONFIG_FILE} = "$dir/LocalSettings.php";

# Use it by its pages, and run the jobs that are due.  Returns what does not depend on the IDs.
sub use_wiki ($label, $name)
{
	$name = ucfirst $name;
	my $service = $app->start_service($port, 'php', '-S', "127.0.0.1:$port", '-t', '/usr/share/mediawiki');
	my $first = $app->run_ok($label, 'perl', "$FindBin::RealBin/use_mediawiki.pl", $port, $name, 'write');
	$app->run_ok("$label: jobs", 'php', "$scripts/runJobs.php");
	$first .= $app->run_ok("$label: what was written", 'perl', "$FindBin::RealBin/use_mediawiki.pl", $port, $name, 'read');
	Application::stop_service($service);
	return $first;
}

sub upgrade { return $app->run_ok($_[0], 'php', "$scripts/update.php", '--quick'); }

$app->works_before(\&use_wiki, qr/^found: NAME page$/m);
$app->works_converted('range', [ 'page.page_id', 'revision.rev_id', '"user".user_id', 'text.old_id', 'actor.actor_id' ], \&upgrade);

# With few rows, not all columns that hold a key are told by their values.
$app->restore;
$app->convert_to('snowflake', ", widen => 'all'");
my $after = use_wiki('snowflake: it works afterwards', 'After');
note($after);
like($after, qr/^found: $/m, 'snowflake: its search finds nothing');
like(slurp_file($app->{node}->logfile), qr/out of range for type integer\n[^\n]*STATEMENT: [^\n]*SearchPostgres/, 'snowflake: it casts an ID to integer');
my @steps = $app->run_fails('snowflake: an upgrade does not end', 'timeout', '60', 'php', "$scripts/update.php", '--quick') =~ /^\.\.\. \d+ - \d+$/mg;
cmp_ok(scalar(@steps), '>', 1000, 'snowflake: it counts up to the greatest ID of a user');

done_testing();
