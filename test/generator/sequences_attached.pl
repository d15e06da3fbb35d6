# Nothing has to be attached: the first label does it, or CREATE EXTENSION over labels; a
# restored dump gives IDs at once.  (test/specs/sequences.spec has a second session.)

use SnowflakeTest;

my $node = new_server('node');
my $dir = PostgreSQL::Test::Utils::tempdir;
my $ID = '> 1e17';

sub query { my ($sql, $database) = @_; return $node->safe_psql($database // 'shop', $sql); }
sub fails { my ($sql, $database) = @_; return sql_error($node, $sql, dbname => $database // 'shop'); }

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

done_testing();
