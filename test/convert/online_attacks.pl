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

$node->stop;
done_testing();
