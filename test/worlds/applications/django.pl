# A Django site: Django's own applications, its admin, and an application with keys of each
# size.

use Application;
use DjangoSite;
use SnowflakeTest;

my $app = Application->new;
my $site = DjangoSite->new($app);

$site->run_ok('its tables are created', 'migrate');
my $before = $site->use('before');
like($before, qr/^password: False True$/m, 'its answers are those of users');
unlike($before, qr/^GET .* (?:404|500)\b|^POST .* (?!302$)/m, 'without an error');
note($before);
$app->save;

$app->convert_to('range');
$app->new_tables('range');
is($site->use('after'), $before, 'range: its answers are the same');
$site->upgrade;
$site->run_ok('range: a later version has its tables', 'migrate');
is($site->use('later'), $before, 'range: its answers are still the same');
$app->kinds_are('range');
$app->keys_are('range', 'auth_user.id', 'shop_product.id', 'shop_category.id');

# Who is created afterwards cannot log in: AutoField has 32 bits.
$app->restore;
$app->convert_to('snowflake');
like($app->run_fails('snowflake: it does not work', DjangoSite::program('limited')),
	qr/Save with update_fields did not affect any rows/, 'snowflake: because no new user is found');

done_testing();
