# The extension created by the owner of a database who is not a superuser: dumps.
# (sql/trusted.sql has the rest.)

use SnowflakeTest;

my $node = new_server('main');
sql($node, 'CREATE ROLE regress_app LOGIN CREATEDB');
my @as_app = ('-X', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('app') . ' user=regress_app');

# What migrations do
sql($node, 'CREATE DATABASE app OWNER regress_app');
command_ok([ 'psql', @as_app, '-c', 'CREATE EXTENSION snowflake' ],
	'the owner of a database creates the extension');
$node->safe_psql('app',
	'SET ROLE regress_app; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int); INSERT INTO t (v) VALUES (1)');
my $dump = $node->basedir . '/app.sql';
command_ok([ 'pg_dump', '-d', $node->connstr('app') . ' user=regress_app', '-f', $dump ],
	'the owner of a database with the extension dumps it');
sql($node, 'CREATE DATABASE again OWNER regress_app');
command_ok(
	[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump,
		'-d', $node->connstr('again') . ' user=regress_app' ],
	'the owner of another database restores the dump');
is( $node->safe_psql('again',
		'SET ROLE regress_app; INSERT INTO t (v) VALUES (2); SELECT count(DISTINCT id) FROM t WHERE id > 1000000'),
	'2',
	'the restored table has its default');

done_testing();
