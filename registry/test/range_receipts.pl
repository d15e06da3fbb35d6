# The receipt of the registry, which a server keeps as long as its files: it is durable before a
# number is used, a promoted standby has it, and without room for it no number is. What a
# server reports, when the registry asks, comes from memory and from all of its databases.

use SnowflakeTest;

my $registry = new_registry('registry', '1, 100, new => true');
sql($registry, "SELECT snowflake_registry.add_database(d) FROM unnest('{postgres,a,closed}'::text[]) d");
my $setting = origins_setting($registry);

sub asked { return sql($registry, $_[0]); }
sub receipt { return sql($_[0], 'SELECT remote_lsn FROM pg_replication_origin_status WHERE local_id = 65533'); }

# Without a replication origin for the receipt
my $server = new_primary('server', registry_conf($registry), "snowflake.server_name = 'server'", "snowflake.grant_timeout = '2s'", "$setting = 1", 'max_prepared_transactions = 3');
sql($server, q{SELECT snowflake_nextval();
	CREATE SEQUENCE s AS integer; CREATE TABLE t (id integer PRIMARY KEY DEFAULT nextval('s'))});
is(receipt($server), '', 'a server that was granted no range has no receipt');
sql_fails($server, "SELECT snowflake_set_sequence_kind('s', 'range')",
	qr/55000: no number of sequence "s" is granted to this server\nDETAIL:  Calls to the registry have failed since [^:]+:\d\d:[^:]+: could not find free replication state slot for replication origin with O?ID 65533.* Increase "$setting" to at least 2, /,
	'without a replication origin for the receipt, no answer is used, and the error says why');
like(slurp_file($server->logfile), qr/WARNING:  could not call the registry of sequence ranges\n.*DETAIL:  could not find free replication state slot /,
	'and so does the log');
restart_with($server, "$setting = 4");
sql($server, "SELECT snowflake_set_sequence_kind('s', 'range'); INSERT INTO t SELECT FROM generate_series(1, 250)");
my $receipt = receipt($server);
isnt($receipt, '', 'with one, the receipt of the last answer is there');

# It changes with each answer, and is what a crash leaves.
sql($server, 'INSERT INTO t SELECT FROM generate_series(1, 450)');
isnt(receipt($server), $receipt, 'the next answer has another one');
$receipt = receipt($server);
crash_and_start($server);
wait_until('a call', sub { receipt($server) ne $receipt });
is(asked('SELECT stopped FROM snowflake_registry.range_state'), '', 'after a crash, it shows that nothing was lost');

# A standby has it.
my $standby = new_standby($server, 'standby');
sql($server, 'INSERT INTO t SELECT FROM generate_series(1, 450)');
$server->wait_for_catchup($standby);
is(receipt($standby), receipt($server), 'a standby has the receipt');
$server->stop;
$standby->promote;
sql($standby, 'INSERT INTO t SELECT FROM generate_series(1, 450)');
is(asked('SELECT stopped FROM snowflake_registry.range_state'), '', 'promoted, it proves no loss');

# Other databases, one of which takes no connections, and one that cannot be read.
sql($standby, "CREATE DATABASE $_") foreach 'a', 'closed', 'broken', 'invalid';
foreach my $database ('a', 'closed')
{
	$standby->safe_psql($database, q{CREATE EXTENSION IF NOT EXISTS snowflake;
		SET snowflake.default_sequence_kind = 'range';
		CREATE SEQUENCE alone AS integer; SELECT nextval('alone');
		CREATE TABLE u (id serial PRIMARY KEY); INSERT INTO u SELECT FROM generate_series(1, 220)});
}
sql($standby, q{UPDATE pg_database SET datallowconn = false WHERE datname = 'closed'});

# One process after the other reads them, in one slot.
restart_with($standby, 'max_worker_processes = '
	  . sql($standby, q{SELECT 1 + count(*) FROM pg_stat_activity WHERE backend_type ~ '^(?:snowflake|logical replication launcher)'}));
wait_until('numbers after the start', sub { sql($standby, q{SELECT count(*) FROM snowflake_sequences WHERE numbers_held > 0}) });

# A trigger of whoever owns a table must not be run by the worker, nor a function of an index, which could
# also keep it; and no setting ends it.
$standby->safe_psql('a', q{
	CREATE ROLE mallory LOGIN; CREATE TABLE who (role name); GRANT INSERT ON who TO PUBLIC;
	CREATE SCHEMA mallory AUTHORIZATION mallory; SET ROLE mallory; SET snowflake.default_sequence_kind = 'range';
	CREATE FUNCTION mallory.f(i integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
		IF current_user <> 'mallory' THEN RAISE WARNING 'as % of %', current_user, session_user; END IF; RETURN i; END$$;
	CREATE TABLE mallory.m (id serial); INSERT INTO mallory.m SELECT FROM generate_series(1, 10);
	CREATE INDEX ON mallory.m ((mallory.f(id)));
	CREATE INDEX ON mallory.m (id) WHERE mallory.f(id) > 5;
	CREATE TABLE mallory.endless (id serial); INSERT INTO mallory.endless SELECT FROM generate_series(1, 10);
	CREATE FUNCTION mallory.g() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END';
	CREATE INDEX ON mallory.endless (id) WHERE mallory.g() > 0;
	CREATE OR REPLACE FUNCTION mallory.g() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$BEGIN
		LOOP BEGIN PERFORM pg_sleep(1000); EXCEPTION WHEN query_canceled THEN END; END LOOP; END$$;
	RESET ROLE; ALTER DATABASE a SET exit_on_error = on});

sub evidence
{
	return asked(q{SELECT string_agg(database_group || '.' || name || '=' || granted || CASE WHEN exact THEN '' ELSE '?' END, ' ' ORDER BY database_group, name)
		FROM snowflake_registry.range_evidence});
}
asked(q{SELECT snowflake_registry.stop_ranges('a test')});
ok($standby->wait_for_log(qr/LOG:  reported to the registry which numbers of \d+ sequences are in use/), 'the server reports what it was granted');
my $evidence = evidence();
like($evidence, qr/\ba\.public\.u_id_seq=\d{3}/, 'what another database has');
like($evidence, qr/\bclosed\.public\.u_id_seq=\d{3}/, 'what one has that takes no connections');
like($evidence, qr/\ba\.public\.alone=\d/, 'what was granted of a sequence that no table uses, as memory has it');
like($evidence, qr/\bpostgres\.public\.s=\d{4}/, 'the greatest number of all');
unlike(slurp_file($standby->logfile), qr/WARNING:  as /, 'no code of a table runs as a superuser for it');
unlike(slurp_file($standby->logfile), qr/could not find out which numbers of sequences/, 'all databases were read');
asked('SELECT snowflake_registry.resume_ranges(0, servers => count(DISTINCT server_name)::int) FROM snowflake_registry.range_evidence');
wait_until('numbers again', sub { $standby->psql('postgres', 'INSERT INTO t SELECT FROM generate_series(1, 2000)') == 0 });
is(sql($standby, 'SELECT count(DISTINCT id) = count(*) FROM t'), 't', 'then numbers go on');

# One that cannot be read, and one of which DROP DATABASE was interrupted.
sql($standby, q{UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'invalid'});
my $version = $standby->data_dir . '/base/' . sql($standby, q{SELECT oid FROM pg_database WHERE datname = 'broken'}) . '/PG_VERSION';
rename $version, "$version.away" or die;
asked(q{SELECT snowflake_registry.stop_ranges('a test')});
ok($standby->wait_for_log(qr/WARNING:  could not find out which numbers of sequences database "broken" has\n/), 'a database that cannot be read is named');
ok($standby->wait_for_log(qr/reported to the registry.*reported to the registry/s), 'the rest is reported');
sql_fails($registry, 'SELECT snowflake_registry.resume_ranges(0, servers => 1)', qr/ERROR:  55000: /, 'but the report is not complete');
unlike(slurp_file($standby->logfile), qr/database "invalid"/, '... and one that nobody can connect to is left out');
rename "$version.away", $version or die;

# What a prepared transaction has, or somebody keeps locked, is not all known.  One who keeps many
# locked does not delay the others.  Templates are read, too.
sql($standby, 'DROP DATABASE broken');
asked('SELECT snowflake_registry.resume_ranges(1)');
wait_until('numbers again', sub { $standby->psql('postgres', 'INSERT INTO t DEFAULT VALUES') == 0 });
sql($standby, q{
	CREATE TABLE prepared (id serial PRIMARY KEY); SELECT snowflake_set_sequence_kind('prepared_id_seq', 'range'); INSERT INTO prepared DEFAULT VALUES;
	CREATE TABLE locked (id serial PRIMARY KEY); INSERT INTO locked SELECT FROM generate_series(1, 7); SELECT snowflake_set_sequence_kind('locked_id_seq', 'range'); INSERT INTO locked DEFAULT VALUES});
sql($standby, q{BEGIN; INSERT INTO prepared SELECT FROM generate_series(1, 50); PREPARE TRANSACTION 'rows'});
sql($standby, q{BEGIN; DROP TABLE locked; PREPARE TRANSACTION 'drop'});
$standby->safe_psql('a', q{SET ROLE mallory; SET snowflake.default_sequence_kind = 'range';
	DO $$BEGIN FOR i IN 1..20 LOOP EXECUTE format('CREATE TABLE mallory.m%s (id serial)', i); END LOOP; END$$;
	BEGIN; DO $$BEGIN FOR i IN 1..20 LOOP EXECUTE format('LOCK TABLE mallory.m%s', i); END LOOP; END$$; PREPARE TRANSACTION 'locks'});
sql($standby, q{UPDATE pg_database SET datistemplate = true WHERE datname = 'closed'});
asked(q{SELECT snowflake_registry.stop_ranges('a test')});
my $begun = time;
$standby->restart;
wait_until('a complete report', sub { asked('SELECT count(*) FROM snowflake_registry.range_clients c, snowflake_registry.range_state s WHERE c.reported = s.incarnation') eq '1' });
cmp_ok(time - $begun, '<', 70, 'somebody who keeps 20 tables locked does not delay the report by 5 s each');
$evidence = evidence();
like($evidence, qr/\ba\.mallory\.m20_id_seq=\d+\?/, '... but it is not known which numbers they have');
like($evidence, qr/\ba\.public\.u_id_seq=\d{3}(?!\d|\?)/, '... others are read');
like($evidence, qr/\bpostgres\.public\.prepared_id_seq=1\?/, 'a prepared transaction may have greater numbers');
like($evidence, qr/\bpostgres\.public\.locked_id_seq=7\?/, 'and a sequence that is locked greater ones than its position from before');
like($evidence, qr/\bclosed\.public\.u_id_seq=\d{3}/, 'a template that takes no connections is read');
sql($standby, "ROLLBACK PREPARED '$_'") foreach qw(rows drop);
$standby->safe_psql('a', q{ROLLBACK PREPARED 'locks'});

# A server that has told its registry of a floor tells another one, too.  That grants it nothing
# while it cannot read a table.
$standby->safe_psql('a', 'DROP TABLE mallory.endless');
asked('SELECT snowflake_registry.resume_ranges(1)');
wait_until('numbers again', sub { $standby->psql('postgres', 'INSERT INTO t DEFAULT VALUES') == 0 });
sql($standby, "SELECT setval('s', 20000)");
my $moved = new_range_registry('moved', 'postgres');
reload_with($standby, registry_conf($moved));
wait_until_true($moved, q{SELECT count(*) > 0 FROM snowflake_registry.range_clients WHERE reported IS NOT NULL});
my $second = new_server('second', registry_conf($moved), "snowflake.server_name = 'second'", "snowflake.grant_timeout = '20s'");
sql($second, "CREATE SEQUENCE s AS integer; SELECT snowflake_set_sequence_kind('s', 'range')");
is(sql_error($second, "SELECT setval('s', 15000)"), '', 'a server that has moved to another registry tells it of floors of which it has told the former one');

done_testing();
