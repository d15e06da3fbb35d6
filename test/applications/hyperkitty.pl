# HyperKitty, a Django application: its archiver, its models and its pages.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../perl";
use Application;
use Test::More;

my $app = Application->new;
my @use = ('python3', '-B', "$FindBin::RealBin/use_hyperkitty.py");

$app->{env}{PYTHONPATH} = $FindBin::RealBin;
$app->{env}{DJANGO_SETTINGS_MODULE} = 'hyperkitty_settings';
$app->run_ok('its tables are created', 'python3', '-B', '-m', 'django', 'migrate');
my $before = $app->run_ok('it works before', @use, 'before');
like($before, qr/^emails left: 2$/m, 'its answers are those of a list');

unlike($before, qr/ (?:404|500) /, 'all pages are there');
note($before);

# One column that has a key has no foreign key.
$app->sql("SELECT snowflake_convert_schema('public')");
like($app->run_fails('keys alone are not enough', @use, 'keys'), qr/integer out of range/, 'a column is too small');
is($app->sql(q{SELECT DISTINCT what_to_do FROM snowflake_convert_report('public') WHERE severity <> 'info'}),
	q{If they hold keys of converted tables, new IDs do not fit. To widen all of them, specify widen => 'names'.},
	'the report says what to do');
note($app->sql(q{SELECT object FROM snowflake_convert_report('public') WHERE severity <> 'info'}));
$app->convert(q{, widen => 'names'});
is($app->run_ok('it works afterwards', @use, 'after'), $before, 'its answers are the same');
is( $app->sql('SELECT min(id) < 1000, max(id) > 1000000000000 FROM hyperkitty_email'),
	't|t',
	'the new IDs are snowflake IDs');

$app->{node}->stop;
done_testing();
