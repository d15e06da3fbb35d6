# Roundcube, by its own classes: users, identities, contacts, groups and searches.  It
# reads IDs by currval() of sequences that its defaults name as text.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../perl";
use Application;
use PostgreSQL::Test::Utils;
use Test::More;

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

$app->convert(q{, widen => 'names'});
like($app->run_fails('unchanged, it does not work', @use, 'unchanged'), qr/ERROR: Failed to create new user/, 'it says so');

# docs/clients.md: functions that know snowflake IDs, and no sequence that is kept
$app->{node}->command_ok(
	[
		'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$FindBin::RealBin/../../compat/snowflake_compat.sql",
		'-d', $app->{node}->connstr('app')
	],
	'the functions are created');
$app->sql('ALTER ROLE regress_app IN DATABASE app SET search_path = public, snowflake_compat, pg_catalog');
$app->sql($_) foreach split /\n/, $app->sql(q{
	SELECT format('DROP SEQUENCE %s', oid::regclass) FROM pg_class
	WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace});
is($app->run_ok('it works afterwards', @use, 'after'), $before, 'its answers are the same');
is($app->sql(q{SELECT count(*) FROM users WHERE user_id > 1000000000000 AND username = 'after'}), '1',
	'and its IDs are snowflake IDs');
is( $app->run_ok('what was there before is found', 'php', '-r',
		q{define('INSTALL_PATH', '/usr/share/roundcube/'); require INSTALL_PATH . 'program/include/clisetup.php';
		$user = rcube_user::query('before', 'localhost'); echo count($user->list_identities());}),
	'2',
	'with its rows');

$app->{node}->stop;
done_testing();
