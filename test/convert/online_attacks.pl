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

$node->stop;
done_testing();
