# snowflake_convert_online() while pg_dump runs, which is slow: it is waited for, and
# clients are not; what was dumped can be restored, and the same call continues there.

use SnowflakeTest::Online;
use SnowflakeTest;

my $nrows = 2000;
my $node = new_server('main', 'fsync = off');
sql($node, qq{
	CREATE TABLE t (id serial PRIMARY KEY, up int REFERENCES t, v text);
	CREATE TABLE l (t int NOT NULL REFERENCES t ON DELETE CASCADE, n int);
	CREATE INDEX ON l (t);
	INSERT INTO t (up, v) SELECT nullif(g - 1, 0), repeat('x', 500) FROM generate_series(1, $nrows) g;
	INSERT INTO l SELECT g, g FROM generate_series(1, $nrows) g});

# A dump that stops when nobody reads more of it.
sub start_dump
{
	open(my $dump, '-|', 'pg_dump', '--dbname', $node->connstr('postgres') . ' application_name=pg_dump') or die;
	wait_until_true($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'pg_dump' AND wait_event = 'ClientWrite' AND xact_start < clock_timestamp() - interval '1 s'",
		'the dump does not stop');
	return $dump;
}

# The rest of it, in a database of its own, where the conversion continues.
sub restore_dump ($dump, $name)
{
	my $text = do { local $/; <$dump> };

	ok(close($dump), "$name: the dump is complete");
	return sub {
		my $file = $node->basedir . '/dump.sql';

		unlink $file;
		append_to_file($file, $text);
		sql($node, 'CREATE DATABASE restored');
		$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d', $node->connstr('restored') ], "$name: it is restored");
		my $err = convert_online($node, 'restored', "'t'");
		unlike($err, qr/ERROR/, "$name: the conversion continues there") or diag($err);
		is_right('restored', $name);
		sql($node, 'DROP DATABASE restored');
	};
}

sub is_right ($database, $name)
{
	my $sum = $nrows * ($nrows + 1) / 2;

	is($node->safe_psql($database, 'SELECT count(*), sum(t.id), sum(l.n), sum(t.up) FROM t JOIN l ON l.t = t.id'),
		join('|', $nrows, $sum, $sum, $sum - $nrows), "$name: no row is lost or changed");
	is(nothing_is_left($node, $database), '', "$name: nothing is left");
	return;
}

# Clients do not wait.
sub clients_write ($name)
{
	is(sql_error($node, q{SET lock_timeout = '200ms'; UPDATE t SET v = v WHERE id = 7; UPDATE l SET n = n WHERE t = 7}), '', "$name: clients do not wait");
	return;
}

# A dump that begins in the backfill
my $err = convert_online($node, 'postgres', "'t', until => 'prepare'");
my $dump = start_dump();
$err = convert_online($node, 'postgres', "'t', until => 'backfill'");
unlike($err, qr/ERROR|waiting/, 'the backfill does not wait for a dump') or diag($err);
my $call = start_converting($node, 'postgres', "'t', until => 'foreign keys'");
wait_until_true($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'conversion' AND wait_event = 'virtualxid'},
	'CREATE INDEX CONCURRENTLY does not wait for a dump');
clients_write('indexes');
my $restore = restore_dump($dump, 'a dump that began in the backfill');
$err = finish_converting($call);
like($err, qr/^NOTICE:  waiting to create index snowflake_new_\w+\nDETAIL:  Process \d+ \(.+?, pg_dump\) is in a transaction that is [\d:.]+ old\.$/m, 'indexes: the dump is named');
like($err, qr/the next phase is "swap"/, 'the conversion continues when the dump has ended') or diag($err);
$restore->();

# One that begins before the swap
$dump = start_dump();
$call = start_converting($node, 'postgres', "'t', until => 'swap'", qr/waiting to lock table/);
clients_write('swap');
$restore = restore_dump($dump, 'a dump that began before the swap');
$err = finish_converting($call);
like($err, qr/DETAIL:  Process \d+ \(.+?, pg_dump\) has a lock on (?:public\.)?\w+, in a transaction that is [\d:.]+ old\./, 'the dump is named');
like($err, qr/the next phase is "default"/, 'the tables are swapped when the dump has ended') or diag($err);
$restore->();

# One that begins before the default
$restore = restore_dump(start_dump(), 'a dump that began before the default');
$err = convert_online($node, 'postgres', "'t'");
unlike($err, qr/ERROR/, 'the conversion is completed') or diag($err);
$restore->();
is_right('postgres', 'the server of the dumps');

done_testing();
