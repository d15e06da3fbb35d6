# A Django site: Django's own applications, its admin, and an application with keys of each
# size.

use Application;
use DjangoSite;
use SnowflakeTest;

my $app = Application->new;
my $site = DjangoSite->new($app);

$site->run_ok('its tables are created', 'migrate');
$app->works_before(sub ($label, $name) { $site->use($name) }, qr/^password: False True$/m, qr/^GET .* (?:404|500)\b|^POST .* (?!302$)/m);
$app->works_converted('range', [ 'auth_user.id', 'shop_product.id', 'shop_category.id' ],
	sub ($label) { $site->upgrade; $site->run_ok("$label: a later version has its tables", 'migrate') });

# Who is created afterwards cannot log in: AutoField has 32 bits.
$app->restore;
$app->convert_to('snowflake');
like($app->run_fails('snowflake: it does not work', DjangoSite::program('limited')),
	qr/Save with update_fields did not affect any rows/, 'snowflake: because no new user is found');

done_testing();
