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
my $before = $app->run_ok('it works before', @use, 'before');
like($before, qr/^shown: True Finished Complete True$/m, 'its answers are those of jobs');
unlike($before, qr/ (?:404|500)\b/, 'without an error');
note($before);
$app->save;
my $second = $app->second;

$app->convert_to('range');
$app->new_tables('range');
is($app->run_ok('range: it works afterwards', @use, 'after'), $before, 'range: its answers are the same');

# Go back to an earlier version of its tables, and upgrade that.
$app->run_ok('range: earlier tables', @manage, 'migrate', 'lava_scheduler_app', '0053');
$app->run_ok('range: its tables are upgraded', @manage, 'migrate');
is($app->run_ok('range: it still works', @use, 'upgraded'), $before, 'range: its answers are still the same');
$app->kinds_are('range');
$app->keys_are('range', 'lava_scheduler_app_testjob.id', 'auth_user.id');

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

	is(Application::finish_ok($_), $before, "$name: the answers are the same") foreach @both;
	Application::replicated($name, $app, $second);
}
Application::end_replication($app, $second);

done_testing();
