# LAVA, a Django application, by its XML-RPC and REST interfaces, its pages and its scheduler.

use Application;
use SnowflakeTest;

my $app = Application->new;
my @use = ('python3', '-B', "$FindBin::RealBin/use_lava.py");
my @manage = ('python3', '-B', '-m', 'django');

$app->{env}{PYTHONPATH} = $FindBin::RealBin;
$app->{env}{DJANGO_SETTINGS_MODULE} = 'lava_settings';
$app->{env}{LAVA_DIR} = $app->{dir};
mkdir "$app->{dir}/$_" foreach 'media', 'devices';
$app->run_ok('its tables are created', @manage, 'migrate');
$app->works_before(\@use, qr/^shown: True Finished Complete True$/m, qr/ (?:404|500)\b/);
my $second = $app->second;

# Go back to an earlier version of its tables, and upgrade that.
$app->works_converted('range', [ 'lava_scheduler_app_testjob.id', 'auth_user.id' ], sub ($label) {
	$app->run_ok("$label: earlier tables", @manage, 'migrate', 'lava_scheduler_app', '0053');
	$app->run_ok($label, @manage, 'migrate');
});

# Keys of its models are AutoFields.
$app->restore;
$app->convert_to('snowflake');
like($app->run_fails('snowflake: it does not work', @use, 'limited'), qr/Save with update_fields did not affect any rows/,
	'snowflake: because no new token is found');

# On two servers
$app->restore;
$second->{env}{$_} = $app->{env}{$_} foreach 'PYTHONPATH', 'DJANGO_SETTINGS_MODULE', 'LAVA_DIR';
$_->convert_to('range') foreach $app, $second;
Application::replicate($app, $second);
foreach my $name ('one', 'two')
{
	my @both = ($app->start("it works: $name-a", @use, "$name-a"), $second->start("it works: $name-b", @use, "$name-b"));

	is(Application::finish_ok($_), $app->{before}, "$name: the answers are the same") foreach @both;
	Application::replicated($name, $app, $second);
}
Application::end_replication($app, $second);

done_testing();
