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
sql($node, q{CREATE ROLE owner LOGIN; CREATE ROLE other LOGIN; CREATE DATABASE drops OWNER owner});
sub as { my ($role, $sql) = @_; return $node->psql('drops', $sql, extra_params => [ '-U', $role ], on_error_stop => 0); }

# What a session is told by an error, or nothing
sub told ($role, $sql)
{
	my (undef, undef, $err) = as($role, $sql);

	return $err =~ s/^(?:psql.*?: )?NOTICE:.*\n?(?:(?:DETAIL|drop cascades).*\n?)*//mgr;
}
my $create_again = q{CREATE SCHEMA IF NOT EXISTS m; CREATE EXTENSION snowflake SCHEMA m; CREATE SCHEMA app;
	CREATE TABLE app.t (id bigserial, n int); SELECT m.snowflake_set_sequence_kind('app.t_id_seq')};
as('owner', $create_again);
as('owner', 'CREATE TABLE public.kept (id bigserial)');
query(q{CREATE SCHEMA others; ALTER SCHEMA others OWNER TO other; CREATE TABLE others.t (id int);
	ALTER TABLE others.t OWNER TO other}, 'drops');
my $refused = qr/ERROR:  cannot drop extension snowflake because sequences use it\nDETAIL:  Sequence "t_id_seq" is not local\.\nHINT:  Call snowflake_set_sequence_kind/;
like(told('owner', $_), $refused, "$_: names the sequence")
  foreach 'DROP EXTENSION snowflake', 'DROP EXTENSION IF EXISTS absent, snowflake CASCADE', 'DROP SCHEMA m CASCADE', q{DO $$BEGIN DROP SCHEMA m CASCADE; END$$};
like(told('owner', 'DROP SCHEMA m'), qr/cannot drop schema m because other objects depend on it/, 'DROP SCHEMA without CASCADE fails as ever');
is(query("$attached; INSERT INTO app.t (n) VALUES (1) RETURNING id $ID", 'drops'), "5\nt", 'nextval() is attached still');
my $holder = $node->background_psql('drops');
$holder->query_safe(q{BEGIN; SELECT m.snowflake_set_sequence_kind('app.t_id_seq', 'local'); SELECT m.snowflake_set_sequence_kind('app.t_id_seq')});
like(told('other', "SET lock_timeout = '1ms'; $_"), qr/must be owner|permission denied/, "$_: who may not gets the server's error, and waits for nobody")
  foreach 'DROP EXTENSION snowflake', 'DROP SCHEMA m CASCADE', 'DROP OWNED BY owner';
is(told('other', "SET lock_timeout = '1ms'; DROP OWNED BY other"), '', 'what does not reach the extension waits for nobody, either');
like(told('owner', "SET lock_timeout = '1ms'; DROP EXTENSION snowflake"), qr/lock timeout/, 'what does waits for who sets a kind');
$holder->query_safe('ROLLBACK');
$holder->quit;

# With all its sequences, as the reset of an ORM does
is(told('owner', 'DROP SCHEMA m, app CASCADE'), '', 'DROP SCHEMA with all sequences succeeds');
is(query("$attached; SELECT count(*) FROM pg_extension WHERE extname = 'snowflake'; INSERT INTO public.kept DEFAULT VALUES RETURNING id", 'drops'),
	"0\n0\n1", '... and sequences that remain are local');
as('owner', $create_again);
is(told('owner', q{BEGIN; DROP SCHEMA m, app CASCADE; ROLLBACK}), '', 'a rollback');
is(query("$attached; INSERT INTO app.t (n) VALUES (1) RETURNING id $ID", 'drops'), "5\nt", '... leaves all as it was');

# DROP OWNED: of who owns the extension, also if it remains
is(told('owner', q{DROP OWNED BY owner CASCADE}), '', 'DROP OWNED of the owner succeeds');
is(query($attached, 'drops'), '0', '... and nothing is attached');
query(q{CREATE SCHEMA m; ALTER SCHEMA m OWNER TO owner; CREATE EXTENSION snowflake SCHEMA m}, 'drops');
like(told('owner', 'DROP OWNED BY owner'), qr/cannot drop desired object|other objects depend/, 'who owns the schema alone');
is(query("SELECT 0 + ($attached); ALTER SCHEMA m OWNER TO postgres" =~ s/postgres/@{[ query('SELECT current_user', 'drops') ]}/r, 'drops'), '0', '... changes nothing');

# public, with all that is in it
query('CREATE DATABASE orm', 'postgres');
query(q{CREATE EXTENSION snowflake; CREATE TABLE t (id bigserial); SELECT snowflake_set_sequence_kind('t_id_seq')}, 'orm');
is(query("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE EXTENSION snowflake; CREATE TABLE t (id bigserial);
		SELECT snowflake_set_sequence_kind('t_id_seq'); INSERT INTO t DEFAULT VALUES RETURNING id $ID", 'orm'),
	"\nt", 'DROP SCHEMA public CASCADE, and all of it again');
done_testing();
