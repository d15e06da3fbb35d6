# HyperKitty, a Django application, whose database is converted while it is used.

use Application;
use Online;
use SnowflakeTest;

my $app = Application->new;
my @use = ('python3', '-B', "$FindBin::RealBin/use_hyperkitty.py");

$app->{env}{PYTHONPATH} = $FindBin::RealBin;
$app->{env}{DJANGO_SETTINGS_MODULE} = 'hyperkitty_settings';
$app->run_ok('its tables are created', 'python3', '-B', '-m', 'django', 'migrate');
my $before = $app->run_ok('it works before', @use, 'before');

my $online = Online->new(
	app => $app,
	script => [ 'python3', '-B', "$FindBin::RealBin/load_hyperkitty.py" ],
	written => qr/(?:hyperkitty_|auth_user|django_session|django_q_|account_emailaddress|django_mailman3_profile)\w*/,
	new_keys => [ 'hyperkitty_email.id', 'hyperkitty_email.parent_id', 'hyperkitty_thread.starting_email_id', 'hyperkitty_attachment.email_id',
		'hyperkitty_vote.email_id', 'auth_user.id', 'auth_user_groups.user_id' ]);
$online->use_by_clients('before', 60);
$online->convert;
$online->check;
is($app->run_ok('it works afterwards', @use, 'after'), $before, 'its answers are the same');

# Messages of the clients, the last of which none has interrupted
my $messages = "SELECT id FROM hyperkitty_email WHERE message_id ~ '^[123][.]'";
$online->faults_are_seen(
	"DELETE FROM hyperkitty_attachment WHERE email_id IN ($messages ORDER BY id DESC LIMIT 5)",
	'DELETE FROM auth_user WHERE id IN (SELECT id FROM auth_user ORDER BY id DESC LIMIT 5)',
	"UPDATE hyperkitty_email SET parent_id = id WHERE id IN ($messages AND parent_id IS NOT NULL ORDER BY id DESC LIMIT 5)",
	"UPDATE hyperkitty_vote SET value = -value WHERE email_id IN ($messages)",
	'UPDATE auth_group_permissions SET permission_id = permission_id + 1; UPDATE django_content_type SET model = model || 1 WHERE id = 5',
	'ALTER TABLE hyperkitty_tag ADD snowflake_new_id bigint',
	'DROP INDEX hyperkitty_email_parent_id_c0b40ef8',
	'ALTER TABLE hyperkitty_email ALTER parent_id TYPE numeric');

done_testing();
