# Kea, whose database is converted while its functions and triggers are used.  Functions that hold keys in integers get bigint before.  Its server
# prepares statements, so it is restarted afterwards.

use Application;
use Kea;
use Online;
use SnowflakeTest;

my $app = Application->new(bare => 1);
Kea::admin($app, 'db-init');
$app->create_extensions;
Kea::widen_functions($app);
my $before = Kea::use($app, 'before', 1);

my $online = Online->new(
	app => $app,
	script => [ 'perl', "$FindBin::RealBin/load_kea.pl" ],
	written => qr/dhcp4_\w+|hosts|ipv6_reservations/,
	new_keys => [ 'dhcp4_options.option_id', 'dhcp4_options.pool_id', 'dhcp4_options.host_id', 'dhcp4_options_server.option_id', 'hosts.host_id',
		'ipv6_reservations.host_id', 'dhcp4_audit.revision_id', 'dhcp4_client_class.id', 'dhcp4_client_class_order.class_id' ]);
$online->use_by_clients('before', 60);
$online->convert;
$online->check;
$online->faults_are_seen(
	'DELETE FROM ipv6_reservations WHERE host_id IN (SELECT host_id FROM hosts ORDER BY host_id DESC LIMIT 5)',
	'UPDATE dhcp4_audit SET revision_id = revision_id - 1 WHERE revision_id IN (SELECT id FROM dhcp4_audit_revision ORDER BY id LIMIT 5)',
	'UPDATE dhcp4_options SET pool_id = NULL WHERE pool_id IN (SELECT id FROM dhcp4_pool ORDER BY id DESC LIMIT 5)',
	'ALTER TABLE dhcp4_options DISABLE TRIGGER dhcp4_options_AINS');
is(Kea::use($app, 'after', 2), $before, 'its answers are the same');

done_testing();
