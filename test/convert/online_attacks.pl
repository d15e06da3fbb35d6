# snowflake_convert_online() while somebody changes the tables, and with what a copy of
# a table could lose: rights on sequences, deferred checks, names of what was dropped.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use SnowflakeTest::Online;
use Test::More;

my $node = new_server('main', 'fsync = off', 'wal_level = logical');
$node->safe_psql('postgres', 'CREATE ROLE regress_reader; CREATE ROLE regress_other');

# Statements of a session, each sent by itself, in an empty schema; returns standard error.
sub run_in
{
	my (@statements) = @_;
	my ($out, $err);

	IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), map { ('-c', $_) } @statements ],
		'<' => \undef, '>' => \$out, '2>' => \$err);
	return $err;
}

# Begin with these tables.
sub create
{
	my ($statements) = @_;

	$node->safe_psql('postgres', "SET client_min_messages = warning; DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; SET search_path = shop, public; $statements");
	return;
}

my $shop = 'SET search_path = shop, public';
my $call = q{CALL snowflake_convert_online('shop.t')};
my $until = q{CALL snowflake_convert_online('shop.t', until => 'foreign keys')};
my $undo = q{SELECT snowflake_convert_undo('shop.t')};

#
# Locks
#
create('CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 100)');
run_in($until);
my $err = run_in('SET client_min_messages = debug1', q{CALL snowflake_convert_online('shop.t', until => 'swap')});
like($err, qr/phase "swap"/, 'a table is swapped');
unlike($err, qr/verifying table "t"/, 'no row is read while the table is locked for the swap');

#
# Rights
#
create(q{
	ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO regress_reader;
	CREATE TABLE t (id int PRIMARY KEY);
	CREATE TABLE a (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
	CREATE TABLE b (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
	ALTER DEFAULT PRIVILEGES REVOKE SELECT ON SEQUENCES FROM regress_reader;
	CREATE TABLE c (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY REFERENCES t);
	ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO regress_reader;
	REVOKE ALL ON SEQUENCE a_id_seq FROM regress_reader, current_user;
	GRANT USAGE ON SEQUENCE b_id_seq TO regress_other WITH GRANT OPTION});
my $privileges = q{
	SELECT string_agg(format('%s %s %s %s', c.relname, e.grantee::regrole, e.privilege_type, e.is_grantable), ', '
		ORDER BY c.relname, e.grantee::regrole::text, e.privilege_type)
	FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('s', c.relowner))) e
	WHERE c.relnamespace = 'shop'::regnamespace AND c.relkind = 'S'};
my $before = $node->safe_psql('postgres', $privileges);
run_in($call);
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_attribute WHERE attrelid IN ('shop.a'::regclass, 'shop.b'::regclass, 'shop.c'::regclass) AND attidentity = 'a' AND atttypid = 'int8'::regtype}),
	'3', 'identities of columns that reference the key are kept');
is($node->safe_psql('postgres', $privileges), $before, 'the sequences of identities have the privileges that they had');
$node->safe_psql('postgres', 'ALTER DEFAULT PRIVILEGES REVOKE SELECT ON SEQUENCES FROM regress_reader');

#
# Deferred checks
#
create(q{
	CREATE TABLE t (id int PRIMARY KEY, v int);
	CREATE TABLE l (t int CONSTRAINT l_t REFERENCES t DEFERRABLE)});
my @deferred = ('BEGIN', 'SET CONSTRAINTS shop.l_t DEFERRED', 'INSERT INTO shop.l VALUES (%d)', 'INSERT INTO shop.t (id) VALUES (%1$d)', 'COMMIT');
run_in($until);
is(run_in(map { sprintf $_, 1 } @deferred), '', 'SET CONSTRAINTS ... DEFERRED with the name of a foreign key also defers the new one');
like(run_in('INSERT INTO shop.l VALUES (9)'), qr/ERROR:  .*violates foreign key constraint "l_t"/, 'the foreign key is checked at once, as it was');
run_in($call);
is(run_in(map { sprintf $_, 2 } @deferred), '', 'SET CONSTRAINTS ... DEFERRED after the conversion');
is($node->safe_psql('postgres', q{SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'l_t'}), 'FOREIGN KEY (t) REFERENCES shop.t(id) DEFERRABLE',
	'a deferrable foreign key is as it was');

#
# What is renamed or dropped meanwhile
#
create(q{
	CREATE TABLE t (id serial PRIMARY KEY, v int, CONSTRAINT c CHECK (id > 0));
	CREATE TABLE l (t int CONSTRAINT l_t REFERENCES t);
	CREATE INDEX i ON t (v, id); CREATE UNIQUE INDEX u ON t (id, v); CREATE STATISTICS s ON id, v FROM t;
	INSERT INTO t (v) SELECT generate_series(1, 100); INSERT INTO l SELECT id FROM t});
run_in($until, $shop, 'ALTER INDEX i RENAME TO j', 'DROP INDEX u', 'DROP STATISTICS s',
	'ALTER TABLE l RENAME CONSTRAINT l_t TO l_u', 'ALTER TABLE t DROP CONSTRAINT c');
like(run_in($call) =~ s/shop\.//gr,
	qr/DETAIL:  constraint snowflake_new_c on table t has no counterpart any more\nconstraint snowflake_new_l_t on table l has .*\nindex snowflake_new_i has .*\nindex snowflake_new_u has .*\nstatistics object snowflake_new_s has/,
	'what was created for objects that were dropped or renamed is an obstacle');
is(run_in($shop, 'DROP INDEX snowflake_new_i, snowflake_new_u', 'DROP STATISTICS snowflake_new_s',
		'ALTER TABLE t DROP CONSTRAINT snowflake_new_c', 'ALTER TABLE l DROP CONSTRAINT snowflake_new_l_t'), '', 'it can be dropped');
unlike(run_in($call), qr/ERROR/, 'then the conversion continues');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');
is($node->safe_psql('postgres', q{
	SELECT string_agg(indexrelid::regclass::text, ' ' ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indrelid = 'shop.t'::regclass
	UNION ALL SELECT string_agg(conname, ' ') FROM pg_constraint WHERE conrelid = 'shop.l'::regclass AND contype = 'f'}),
	"shop.j shop.t_pkey\nl_u", 'indexes and constraints have the names that they were given meanwhile');

# Undo finds its columns by the arguments of the trigger.
create(q{
	CREATE TABLE t (id serial PRIMARY KEY, "Straße \ '' x" int REFERENCES t);
	INSERT INTO t DEFAULT VALUES});
run_in($until, 'ALTER TABLE shop.t RENAME id TO key', 'ALTER TABLE shop.t RENAME "Straße \ \'\' x" TO y', $undo);
is(nothing_is_left($node, 'postgres'), '', 'columns that were renamed meanwhile are undone');
is(run_in('INSERT INTO shop.t (key, y) VALUES (100, 100)'), '', 'the table can be written after that');

# Triggers that were disabled and enabled again: no row is wrong, and undo works.
create('CREATE TABLE t (id serial PRIMARY KEY, t int REFERENCES t); INSERT INTO t (t) SELECT generate_series(1, 100)');
run_in($until, 'ALTER TABLE shop.t DISABLE TRIGGER ALL');
like(run_in('INSERT INTO shop.t (t) VALUES (5)'), qr/violates check constraint "snowflake_new_check"/, 'without the trigger, rows cannot differ');
run_in('ALTER TABLE shop.t ENABLE TRIGGER ALL');
like(run_in($call), qr/trigger "~snowflake_new" of table shop\.t is in the way/, 'a trigger that was disabled, and is not ENABLE ALWAYS any more');
is(run_in($undo), '', 'undo after that');
unlike(run_in($call), qr/ERROR/, 'the conversion begins again');
is($node->safe_psql('postgres', 'SELECT count(*), sum(id), sum(t) FROM shop.t'), '100|5050|5050', 'the rows are as before');

$node->stop;
done_testing();
