# HyperKitty, a Django application: its archiver, its models and its pages.

use Application;
use SnowflakeTest;

my $app = Application->new;
my @use = ('python3', '-B', "$FindBin::RealBin/use_hyperkitty.py");

$app->{env}{PYTHONPATH} = $FindBin::RealBin;
$app->{env}{DJANGO_SETTINGS_MODULE} = 'hyperkitty_settings';
$app->run_ok('its tables are created', 'python3', '-B', '-m', 'django', 'migrate');
my $before = $app->run_ok('it works before', @use, 'before');
like($before, qr/^emails left: 2$/m, 'its answers are those of a list');

unlike($before, qr/ (?:404|500) /, 'all pages are there');
note($before);

$app->save;

foreach my $kind ('range', 'snowflake')
{
	$app->convert_anew($kind);
	is($app->run_ok("$kind: it works afterwards", @use, $kind), $before, "$kind: its answers are the same");

	# The site gets an application more.
	local $app->{env}{MORE_APPLICATIONS} = 'django.contrib.flatpages';
	$app->run_ok("$kind: new tables", 'python3', '-B', '-m', 'django', 'migrate');
	$app->convert_upgraded($kind);
	is($app->run_ok("$kind: it still works", @use, "$kind-again"), $before, "$kind: its answers are still the same");
	is($app->sql('SELECT count(*) FROM django_flatpage_sites'), 1, "$kind: a new table has a row");
	$app->kinds_are($kind);
	$app->keys_are($kind, 'hyperkitty_email.id', 'auth_user.id');
}

done_testing();
