# HyperKitty, a Django application: its archiver, its models and its pages.

use Application;
use SnowflakeTest;

my $app = Application->new;
my @use = ('python3', '-B', "$FindBin::RealBin/use_hyperkitty.py");

$app->{env}{PYTHONPATH} = $FindBin::RealBin;
$app->{env}{DJANGO_SETTINGS_MODULE} = 'hyperkitty_settings';
$app->run_ok('its tables are created', 'python3', '-B', '-m', 'django', 'migrate');
$app->works_before(\@use, qr/^emails left: 2$/m, qr/ (?:404|500) /);
foreach my $kind ('range', 'snowflake')
{
	# The site gets an application more.
	delete $app->{env}{MORE_APPLICATIONS};
	$app->works_converted($kind, [ 'hyperkitty_email.id', 'auth_user.id' ], sub ($label) {
		$app->{env}{MORE_APPLICATIONS} = 'django.contrib.flatpages';
		$app->run_ok($label, 'python3', '-B', '-m', 'django', 'migrate');
	});
	is($app->sql('SELECT count(*) FROM django_flatpage_sites'), 1, "$kind: a new table has a row");
}

done_testing();
