# Each server reports what it was granted when the registry grants no more: whoever owns a sequence
# or a database cannot prevent that, and however many sequences there are, it keeps few locks.

use SnowflakeTest;

my $tables = 600;
my $registry = new_server('registry');
$registry->safe_psql('postgres', q{CREATE DATABASE registry ENCODING UTF8 LOCALE 'C' TEMPLATE template0});
sub asked { return $registry->safe_psql('registry', $_[0]); }
asked(q{CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create(1, 100, new => true);
	SELECT snowflake_registry.add_database('postgres')});

# Few locks fit into its memory.
my $server = new_server('server', registry_conf($registry, 'dbname=registry'), "snowflake.server_name = 'server'", 'max_connections = 10', 'max_locks_per_transaction = 10');
my $by_default = 'SET snowflake.default_sequence_kind = range;';
sub query { my ($sql, $database) = @_; return $server->safe_psql($database // 'postgres', $sql); }

query(qq{$by_default SELECT format('CREATE TABLE t%s (id serial PRIMARY KEY)', i) FROM generate_series(1, $tables) i \\gexec
	INSERT INTO t1 SELECT FROM generate_series(1, 250)});
query(q{CREATE ROLE mallory CREATEDB; CREATE SCHEMA mallory AUTHORIZATION mallory});

# A sequence that the registry refuses
query(qq{SET ROLE mallory; $by_default CREATE SEQUENCE mallory.below AS integer; ALTER SEQUENCE mallory.below MINVALUE -10 MAXVALUE -1 START -5});

# One of a database whose name is not UTF-8
query(q{CREATE DATABASE bytes ENCODING SQL_ASCII LOCALE 'C' TEMPLATE template0});
query(qq{SET client_encoding = SQL_ASCII; SET ROLE mallory; CREATE DATABASE "d\xfcb"}, 'bytes');
query("CREATE EXTENSION IF NOT EXISTS snowflake; $by_default CREATE SEQUENCE s", "d\xfcb");

# A database whose transactions wait for those that may write
query('SET ROLE mallory; CREATE DATABASE mallory');
query(q{SET ROLE mallory; ALTER DATABASE mallory SET default_transaction_isolation = serializable;
	ALTER DATABASE mallory SET default_transaction_read_only = on; ALTER DATABASE mallory SET default_transaction_deferrable = on});
my $writing = $server->background_psql('mallory', on_error_die => 1);
$writing->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE; SELECT count(*) FROM pg_class');

asked(q{SELECT snowflake_registry.stop_ranges('a test')});
like(sql_error($server, 'INSERT INTO t1 SELECT FROM generate_series(1, 1000)'), qr/ERROR:  55000: the registry refuses numbers of sequence "t1_id_seq"/, 'a server that needs numbers is told that there are none');
wait_until('a complete report', sub { asked('SELECT reported = incarnation FROM snowflake_registry.range_clients, snowflake_registry.range_state') eq 't' },
	sub { slurp_file($server->logfile) =~ s/.*(?=.{3000})//sr });
$writing->query_safe('COMMIT');
$writing->quit;
is(asked(q{SELECT count(*), count(*) FILTER (WHERE exact) FROM snowflake_registry.range_evidence WHERE name LIKE 'public.t%'}),
	"$tables|$tables", 'a report is complete and exact with few locks, and while transactions of a database wait');
my $log = slurp_file($server->logfile);
like($log, qr/LOG:  the registry refuses the report of sequence public\.s in database "d\xfcb"\n.*DETAIL:  /, 'the log names a sequence that the registry refuses');
ok($log !~ /refuses the report of sequence mallory/, '... and one that can have no range is not reported');

my $greatest = query('SELECT max(id) FROM t1');
my $granted = asked(q{SELECT granted FROM snowflake_registry.range_evidence WHERE name = 'public.t1_id_seq'});
asked('SELECT snowflake_registry.resume_ranges(0, servers => 1)');
wait_until('numbers again', sub { $server->psql('postgres', 'INSERT INTO t1 SELECT FROM generate_series(1, 250)') == 0 });
cmp_ok(query("SELECT min(id) FROM t1 WHERE id > $greatest"), '>', $granted, 'then numbers go on above what was reported');

$_->stop foreach $server, $registry;
done_testing();
