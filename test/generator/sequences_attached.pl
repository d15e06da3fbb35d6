# Nothing has to be attached: the first label does it, or CREATE EXTENSION over labels; a
# restored dump gives IDs at once.  Statements that drop the extension, one session that waits for
# another, and cursors from before.

use SnowflakeTest;

my $node = new_server('node');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $ID = '> 1e17';

sub query { my ($sql, $database) = @_; return $node->safe_psql($database // 'shop', $sql); }
sub fails { my ($sql, $database) = @_; return sql_error($node, $sql, dbname => $database // 'shop'); }

# Statements of a session that may have to wait, and what it was told at its end
sub start ($database, $sql) { return (start_queries($node, { dbname => $database }, $sql))[0]; }
sub finish ($session) { finish_queries($session); return $session->{err}; }

# How many of the server's functions know kinds
my $attached = q{SELECT count(*) FROM pg_proc p JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid AND refobjid = prosupport
	WHERE proname IN ('nextval', 'currval', 'lastval', 'setval') AND pronamespace = 'pg_catalog'::regnamespace};

# As pg_upgrade leaves a database in which no sequence has a label
my $detach = q{DELETE FROM pg_depend USING pg_proc p WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND refobjid = prosupport;
	UPDATE pg_proc SET prosupport = 0 WHERE proname IN ('nextval', 'currval', 'lastval', 'setval') AND pronamespace = 'pg_catalog'::regnamespace};

query('CREATE DATABASE shop', 'postgres');
query('CREATE EXTENSION snowflake');
is(query($attached), 0, 'CREATE EXTENSION changes nothing where no sequence has a label');
query(q{CREATE SCHEMA app; CREATE TABLE app.t (id bigserial PRIMARY KEY, n int);
	INSERT INTO app.t (n) SELECT generate_series(1, 10); SELECT snowflake_set_sequence_kind('app.t_id_seq')});

#
# Dumps: of a database, and of a schema, which has no extension
#
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/shop", '-d', $node->connstr('shop') ], 'pg_dump');
$node->command_ok([ 'pg_dump', '-Fc', '-n', 'app', '-f', "$dir/app", '-d', $node->connstr('shop') ], 'pg_dump -n');
query("CREATE DATABASE $_", 'postgres') foreach qw(restored part);
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('restored'), "$dir/shop" ], 'pg_restore');
is(query("INSERT INTO app.t (n) VALUES (1) RETURNING id $ID", 'restored'), 't', 'a restored dump gives IDs at the first INSERT');
is(query("SELECT setval('app.t_id_seq', 5), nextval('app.t_id_seq') $ID", 'restored'), '5|t', '... also after setval()');

$node->command_checks_all([ 'pg_restore', '-d', $node->connstr('part'), "$dir/app" ], 1, [],
	[qr/ERROR:  extension "snowflake" does not exist in this database\nDETAIL:.*\nHINT:  CREATE EXTENSION snowflake/],
	'the label of a sequence fails without the extension');
is( query(q{
		BEGIN;
		DO $$ BEGIN
			SECURITY LABEL FOR snowflake ON SEQUENCE app.t_id_seq IS 'snowflake';
		EXCEPTION WHEN undefined_object THEN NULL; END $$;
		SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND objid = 'nextval(regclass)'::regprocedure}, 'part'),
	0, '... and does not stop setval() of others until the transaction ends');
like(fails('INSERT INTO app.t (n) VALUES (1)', 'part'), qr/nextval: reached maximum value of sequence/, '... and it gives no small number');
is(query("CREATE EXTENSION snowflake; SELECT snowflake_set_sequence_kind('app.t_id_seq'); INSERT INTO app.t (n) VALUES (1) RETURNING id $ID", 'part'),
	"\nt", '... until the extension is there, and its kind is set');

# Labels from before the extension
query("BEGIN; $detach; DELETE FROM pg_depend WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake') AND deptype = 'e';
	DELETE FROM pg_extension WHERE extname = 'snowflake'; COMMIT", 'part');
query('CREATE SCHEMA other; CREATE EXTENSION snowflake SCHEMA other', 'part');
is(query("INSERT INTO app.t (n) VALUES (2) RETURNING id $ID", 'part'), 't', 'CREATE EXTENSION attaches over labels');

#
# Locks
#
query('CREATE SEQUENCE one; CREATE SEQUENCE two');
query("SELECT snowflake_set_sequence_kind('app.t_id_seq', 'local'); $detach");
is(query($attached), 0, 'nothing is attached');
my $session = $node->background_psql('shop');
my $waits = q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND locktype = 'object' AND objid = 'nextval(regclass)'::regprocedure};
$session->query_safe(q{BEGIN; SELECT snowflake_set_sequence_kind('one')});
my $second = start('shop', q{SELECT snowflake_set_sequence_kind('two')});
ok($node->poll_query_until('shop', $waits), 'the second session that sets a first label waits');
$session->query_safe('COMMIT');
is(finish($second), '', '... and does not fail');
is(query("$attached; SELECT nextval('one') $ID, nextval('two') $ID"), "5\nt|t", '... and both are attached');
$session->query_safe(q{BEGIN; CREATE SEQUENCE three; SELECT snowflake_set_sequence_kind('three')});
is(query(q{CREATE SEQUENCE four; SET lock_timeout = '1ms'; SELECT snowflake_set_sequence_kind('four')}), '', 'later ones wait for nobody');
$session->query_safe('COMMIT');
$session->quit;

# The server's setval(), begun before
query('CREATE DATABASE early', 'postgres');
query('CREATE SEQUENCE s', 'early');
$session = $node->background_psql('early');
$session->query_safe(q{BEGIN; DECLARE c CURSOR FOR SELECT setval('s', g * 10) FROM generate_series(1, 5) g; FETCH c});
query('CREATE EXTENSION snowflake', 'early');
like(fails(q{SET lock_timeout = '100ms'; SELECT snowflake_set_sequence_kind('s')}, 'early'), qr/lock timeout/, 'the first label waits for a cursor that calls setval()');
my $create = start('early', q{SELECT snowflake_set_sequence_kind('s')});
ok($node->poll_query_until('early', $waits), '... as long as its transaction lasts');
is($session->query_safe('FETCH c') =~ s/\n\z//r, 20, '... which continues');
$session->query_safe('COMMIT');
is(finish($create), '', '... and then succeeds');
is(query("SELECT nextval('s') $ID", 'early'), 't', '... and no small number comes');
$session->quit;

# A plan from before the first label
sub insert_meanwhile ($database, $before)
{
	query("CREATE DATABASE $database", 'postgres');
	query("CREATE EXTENSION snowflake; CREATE TABLE t (id bigserial); $before", $database);
	my $setter = $node->background_psql($database);
	$setter->query_safe(q{BEGIN; SELECT snowflake_set_sequence_kind('t_id_seq')});
	my $insert = start($database, 'INSERT INTO t DEFAULT VALUES');
	$node->poll_query_until($database, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND relation = 't_id_seq'::regclass})
	  or die 'no INSERT waits';
	$setter->query_safe('COMMIT');
	$setter->quit;
	return finish($insert);
}

like(insert_meanwhile('unprepared', ''), qr/ERROR:  nextval: reached maximum value/, 'an INSERT that waits for the first label fails once');
is(insert_meanwhile('prepared', q{CREATE SEQUENCE s; SELECT snowflake_set_sequence_kind('s'); DROP SEQUENCE s}), '',
	'... and not after a label of a sequence that is dropped');
is(query("SELECT count(*) FROM t WHERE id $ID", 'prepared'), '1', '... and gets an ID');

#
# Statements that drop the extension
#
query(q{CREATE ROLE owner; CREATE ROLE other; CREATE DATABASE drops OWNER owner});
query(q{SET ROLE owner; CREATE SCHEMA m; CREATE EXTENSION snowflake SCHEMA m; CREATE TABLE m.t (id bigserial); SELECT m.snowflake_set_sequence_kind('m.t_id_seq')}, 'drops');
my $holder = $node->background_psql('drops');
$holder->query_safe(q{BEGIN; SELECT m.snowflake_set_sequence_kind('m.t_id_seq', 'local'); SELECT m.snowflake_set_sequence_kind('m.t_id_seq')});
like(fails("SET ROLE other; SET lock_timeout = '1ms'; $_", 'drops'), qr/must be owner|permission denied/, "$_: who may not gets the server's error, and waits for nobody")
  foreach 'DROP EXTENSION snowflake', 'DROP SCHEMA m CASCADE', 'DROP OWNED BY owner';
is(fails(q{SET ROLE other; SET lock_timeout = '1ms'; DROP OWNED BY other}, 'drops'), '', 'what does not reach the extension waits for nobody, either');
like(fails(q{SET ROLE owner; SET lock_timeout = '1ms'; DROP EXTENSION snowflake}, 'drops'), qr/lock timeout/, 'what does waits for who sets a kind');
$holder->query_safe('ROLLBACK');
$holder->quit;
done_testing();
