# Keystone, by its web interface; its models are those of SQLAlchemy.

use Application;
use SnowflakeTest;

my $app = Application->new;
my $dir = $app->{dir};
my $conf = "$dir/keystone.conf";
my @use = ('python3', '-B', "$FindBin::RealBin/use_keystone.py", $conf);

append_to_file($conf, "[DEFAULT]
use_stderr = true
[database]
connection = postgresql+psycopg2://regress_app\@/app?host=$app->{env}{PGHOST}&port=$app->{env}{PGPORT}
[token]
provider = fernet
[fernet_tokens]
key_repository = $dir/fernet
[fernet_receipts]
key_repository = $dir/receipts
[credential]
key_repository = $dir/credential
");
mkdir "$dir/$_", 0700 foreach 'fernet', 'receipts', 'credential';
my $owner = getpwuid($<);
my @manage = ('keystone-manage', '--config-file', $conf);
$app->run_ok('its tables are created', @manage, 'db_sync');
$app->run_ok("it has keys: $_", @manage, $_, '--keystone-user', $owner, '--keystone-group', $owner)
  foreach 'fernet_setup', 'credential_setup';
$app->run_ok('it has an administrator', @manage, 'bootstrap', '--bootstrap-password', 'secret');
my $before = $app->run_ok('it works before', @use, 'before');
like($before, qr/^login of the user: 201$/m, 'its answers are those of users and projects');
unlike($before, qr/\b500\b/, 'without an error');

$app->save;

foreach my $kind ('range', 'snowflake')
{
	$app->convert_anew($kind);
	is($app->run_ok("$kind: it works afterwards", @use, $kind), $before, "$kind: its answers are the same");
	$app->run_ok("$kind: an upgrade finds its tables", @manage, 'db_sync');
	is($app->run_ok("$kind: it still works", @use, "$kind-again"), $before, "$kind: its answers are still the same");
	$app->kinds_are($kind);
	$app->keys_are($kind, 'revocation_event.id');
}

done_testing();
