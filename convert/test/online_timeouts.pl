# What timeouts of the caller, or of its role, do to snowflake_convert_online().

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off');
my $has_transaction_timeout = sql($node, q{SELECT count(*) FROM pg_settings WHERE name = 'transaction_timeout'});
sql($node, q{
	CREATE ROLE regress_owner LOGIN;
	GRANT CREATE ON SCHEMA public TO regress_owner;
	SET ROLE regress_owner;
	CREATE TABLE t (id serial PRIMARY KEY, v int);
	INSERT INTO t (v) SELECT generate_series(1, 100)});

# A session that has a lock until it ends.
sub lock_table ($mode)
{
	my $session = $node->background_psql('postgres');

	$session->query_safe("BEGIN; LOCK TABLE t IN $mode MODE");
	return $session;
}

# Those of a role are shorter than the conversion waits for a lock.  The other settings
# have nothing to do with it.
sql($node, q{
	ALTER ROLE regress_owner SET statement_timeout = '200ms';
	ALTER ROLE regress_owner SET lock_timeout = '50ms';
	ALTER ROLE regress_owner SET idle_in_transaction_session_timeout = '50ms';
	ALTER ROLE regress_owner SET idle_session_timeout = '5min'});
my $owner = 'user=regress_owner';
my $session = lock_table('EXCLUSIVE');
like(convert_online($node, 'postgres', "'t', give_up_after => '1 s'", connection => $owner),
	qr/ERROR:  gave up waiting to lock table public\.t\n/, 'a conversion waits for a lock for longer than all timeouts');
$session->quit;
unlike(convert_online($node, 'postgres', "'t', until => 'prepare'", connection => $owner), qr/ERROR/, 'phase prepare with timeouts');

# Undo waits for as long as other statements do, if that is less than its minute.
$session = lock_table('EXCLUSIVE');
sql_fails($node, "SET lock_timeout = '1 s'; SELECT snowflake_convert_undo('t')",
	qr/ERROR:  55P03: gave up waiting to lock table public\.t\n.*HINT:  Nothing was undone\. Call snowflake_convert_undo\(\) again\./s, 'undo waits for a lock');
$session->quit;

# The backfill, VALIDATE, indexes, and ANALYZE wait for somebody who has the table, and
# nobody waits for them.
$session = lock_table('SHARE ROW EXCLUSIVE');
my $call = start_converting($node, 'postgres', "'t', until => 'backfill'", undef, connection => $owner,
	after => [ q{SELECT current_setting('statement_timeout'), current_setting('lock_timeout')}, 'SELECT pg_sleep(1)' ]);
wait_until_said($call, qr/waiting to/);
$session->quit;
my $err = finish_converting($call);
like($err, qr/phase "backfill"/, 'lock_timeout does not apply to the backfill');
is($call->{out}, "200ms|50ms\n", 'the settings of the session are as before');
like($err, qr/ERROR:  canceling statement due to statement timeout\s*\z/, 'they apply to its next statement');
is(scalar(() = $err =~ /ERROR/g), 1, 'to no other') or diag($err);

$session = lock_table('SHARE UPDATE EXCLUSIVE');
$call = start_converting($node, 'postgres', "'t', until => 'indexes'", undef, connection => $owner);
wait_until_said($call, qr/waiting to/);
$session->quit;
$err = finish_converting($call);
unlike($err, qr/ERROR/, 'lock_timeout does not apply to CREATE INDEX CONCURRENTLY') or diag($err);
$err = convert_online($node, 'postgres', "'t'", connection => $owner);
unlike($err, qr/ERROR/, 'the conversion is completed') or diag($err);
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');

# lock_timeout applies until the conversion has begun: somebody else may have the table.
$session = lock_table('ACCESS EXCLUSIVE');
like(convert_online($node, 'postgres', "'t'", connection => $owner), qr/ERROR:  canceling statement due to lock timeout/,
	'lock_timeout applies before the first transaction');
$session->quit;

# lock_timeout is as before after an error in a step, too.
sql($node, 'SET ROLE regress_owner; DROP TABLE t; CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 100)');
$session = lock_table('ACCESS SHARE');
$call = start_converting($node, 'postgres', "'t', give_up_after => '1 ms'", undef, connection => $owner,
	after => [q{SELECT current_setting('lock_timeout')}]);
finish_converting($call);
is($call->{out}, "50ms\n", 'lock_timeout is as before after an error');
$session->quit;

SKIP:
{
	skip 'transaction_timeout is new in PostgreSQL 17', 4 unless $has_transaction_timeout;

	# The call takes longer than each of its transactions.
	sql($node, q{ALTER ROLE regress_owner SET transaction_timeout = '3s'});
	$session = lock_table('ACCESS SHARE');
	$err = convert_online($node, 'postgres', "'t', until => 'prepare', give_up_after => '5 s'", connection => $owner);
	like($err, qr/ERROR:  gave up waiting to lock table public\.t\n/, 'a call takes longer than transaction_timeout');
	$session->quit;
	convert_online($node, 'postgres', "'t', until => 'prepare'", connection => $owner);
	$session = lock_table('SHARE ROW EXCLUSIVE');
	$err = convert_online($node, 'postgres', "'t', give_up_after => '5 s'", connection => $owner);
	like($err, qr/ERROR:  gave up waiting to copy the columns of table public\.t\n/, 'the backfill waits for longer than transaction_timeout');
	$session->quit;
	$err = convert_online($node, 'postgres', "'t'", connection => $owner);
	unlike($err, qr/ERROR|FATAL/, 'the same call continues') or diag($err);
	is(nothing_is_left($node, 'postgres'), '', 'nothing is left after transaction_timeout');
}

done_testing();
