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
$app->works_before(\@use, qr/^login of the user: 201$/m, qr/\b500\b/);
$app->works_converted($_, ['revocation_event.id'], sub ($label) { $app->run_ok($label, @manage, 'db_sync') })
  foreach 'range', 'snowflake';

done_testing();
