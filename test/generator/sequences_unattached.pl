# A database that has sequences that are not local, and is not attached: the log says so at the
# start, and each session that calls nextval() is told once, whatever way it takes.
# So does the log of one that lacks the setting for new tables.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('node', 'log_min_messages = debug1');
my $fails = qr/sequences of database "(\w+)" are not attached/;

$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->safe_psql('postgres', 'CREATE DATABASE closed');
$node->safe_psql($_, q{CREATE EXTENSION IF NOT EXISTS snowflake; SELECT snowflake_attach_sequences();
	CREATE TABLE t (id bigserial, n int); SELECT snowflake_set_sequence_kind('t_id_seq')})
  foreach qw(postgres shop closed);

# As pg_upgrade leaves it
my $detach = q{UPDATE pg_proc SET prosupport = 0 WHERE prosupport = 'snowflake_sequence_support'::regproc};

# The databases that the log names after a restart
sub named_at_start
{
	my $offset = -s $node->logfile;
	my $done = qr/background worker "snowflake sequences" \(PID \d+\) exited with exit code 0/;

	$node->restart;
	# One for each database that is looked at, and last the one that started them
	my $databases = $node->safe_psql('postgres', 'SELECT count(*) FROM pg_database WHERE datallowconn');
	$node->wait_for_log(qr/\A(?:.*?$done){@{[ $databases + 1 ]}}/s, $offset);
	my $log = slurp_file($node->logfile, $offset);
	return join ' ', sort $log =~ /WARNING:  $fails/g;
}

# What a session is told
sub told
{
	my ($sql) = @_;
	my ($status, $out, $err) = $node->psql('shop', $sql, on_error_stop => 0);

	return $err;
}

is(named_at_start(), '', 'nothing is logged of databases that are attached');
unlike(told(q{SELECT nextval('t_id_seq')}), $fails, 'nor told in them');

$node->safe_psql($_, $detach) foreach qw(shop closed);
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS false');
is(named_at_start(), 'shop', 'the start logs a database that is not attached, if it allows connections');

like(told(q{INSERT INTO t (n) VALUES (1)}), qr/WARNING: .*$fails\n.*HINT: .*snowflake_attach_sequences.*nextval: reached maximum value/s,
	'a session is told before the error');
is(scalar(() = told(q{INSERT INTO t (n) VALUES (1); SELECT nextval('t_id_seq')}) =~ /$fails/g), 1, '... once');
like(told("COPY t (n) FROM stdin;\n1\n\\.\n"), $fails, '... by COPY');
like(told(q{DO $$ DECLARE i bigint; BEGIN i := nextval('t_id_seq'); END $$}), $fails, '... by PL/pgSQL');
like(told(q{CREATE SEQUENCE local; SELECT nextval('local'); DROP SEQUENCE local}), $fails, '... also by that of a local sequence');
unlike(told(q{SELECT 1, lower('A'); INSERT INTO t VALUES (1)}), $fails, '... and not without nextval()');

# The slots of the worker that logs worker IDs, and of this one, are enough.
$node->append_conf('postgresql.conf', 'max_worker_processes = 4');
is(named_at_start(), 'shop', 'without a free slot, they wait for one');

$node->safe_psql('shop', 'SELECT snowflake_attach_sequences()');
is(told(q{INSERT INTO t (n) VALUES (1)}), '', 'after it is attached, calls succeed');
is(named_at_start(), '', '... and nothing is logged');

# A copy of a database lacks the setting for new tables
$node->safe_psql('postgres', 'ALTER DATABASE shop SET snowflake.default_sequence_kind = snowflake');
$node->safe_psql('shop', 'CREATE TABLE made (id bigserial)');
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE shop');
my $not_set = qr/WARNING:  new tables of database "(\w+)" get local sequences/;
my $offset = -s $node->logfile;
is(named_at_start(), '', 'a copy of a database is attached');
is(join(' ', slurp_file($node->logfile, $offset) =~ /$not_set/g), 'copied', '... and the log says that its new tables get local sequences');
$offset = -s $node->logfile;
$node->safe_psql('postgres', 'ALTER DATABASE copied SET snowflake.default_sequence_kind = local');
named_at_start();
unlike(slurp_file($node->logfile, $offset), $not_set, '... until the setting is made there');
$node->stop;
done_testing();
