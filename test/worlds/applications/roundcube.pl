# Roundcube, by its own classes: users, identities, contacts, groups and searches.  It
# reads IDs by currval() of sequences that its defaults name as text and no column owns.

use Application;
use SnowflakeTest;

my $app = Application->new;
my $dir = $app->{dir};
my @use = ('php', "$FindBin::RealBin/use_roundcube.php");

append_to_file("$dir/config.inc.php", "<?php
\$config['db_dsnw'] = 'pgsql://regress_app\@127.0.0.1:$app->{env}{PGPORT}/app';
\$config['log_dir'] = '$dir';
\$config['temp_dir'] = '$dir';
\$config['log_driver'] = 'file';
\$config['plugins'] = [];
");
$app->{env}{ROUNDCUBE_CONFIG_DIR} = $dir;
$app->run_ok('its tables are created', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f',
	'/usr/share/roundcube/SQL/postgres.initial.sql');
my $before = $app->run_ok('it works before', @use, 'before');
like($before, qr/^all: b c$/m, 'its answers are those of contacts');

# Have the tables of an earlier version, which its upgrade changes.
$app->sql(q{
	DROP TABLE collected_addresses, responses;
	DROP SEQUENCE collected_addresses_seq, responses_seq;
	UPDATE system SET value = '2020020101' WHERE name = 'roundcube-version'});
$app->save;

foreach my $kind ('range', 'snowflake')
{
	$app->convert_anew($kind);
	is($app->run_ok("$kind: it works afterwards", @use, $kind), $before, "$kind: its answers are the same");
	$app->run_ok("$kind: its tables are upgraded", 'php', '/usr/share/roundcube/bin/updatedb.sh', '--dir=/usr/share/roundcube/SQL', '--package=roundcube');
	$app->convert_upgraded($kind);
	is($app->sql("SELECT value >= '2022081200' FROM system WHERE name = 'roundcube-version'"), 't', "$kind: to its version");
	is( $app->run_ok("$kind: it still works", @use, "$kind-again", 'upgraded'),
		$before . "response: found\nrecipient: a\n",
		"$kind: its answers are still the same");
	is( $app->run_ok("$kind: what was there before is found", 'php', '-r',
			q{define('INSTALL_PATH', '/usr/share/roundcube/'); require INSTALL_PATH . 'program/include/clisetup.php';
			$user = rcube_user::query('before', 'localhost'); echo count($user->list_identities());}),
		'2',
		"$kind: with its rows");
	$app->kinds_are($kind);
	$app->keys_are($kind, 'users.user_id', 'contacts.contact_id');
}

done_testing();
