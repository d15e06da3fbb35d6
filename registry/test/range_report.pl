# Each server reports what it was granted when the registry grants no more: whoever owns a sequence
# or a database cannot prevent that, and however many sequences there are, it keeps few locks.

use SnowflakeTest;

my $tables = 600;
my $registry = new_server('registry');
sql($registry, q{CREATE DATABASE registry ENCODING UTF8 LOCALE 'C' TEMPLATE template0});
sub asked { return $registry->safe_psql('registry', $_[0]); }
asked(q{CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create(1, 100, new => true);
	SELECT snowflake_registry.add_database('postgres')});

# Few locks fit into its memory.
my $server = new_server('server', registry_conf($registry, 'dbname=registry'), "snowflake.server_name = 'server'", 'max_connections = 10', 'max_locks_per_transaction = 10',
	'max_prepared_transactions = 2');
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
sql_fails($server, 'INSERT INTO t1 SELECT FROM generate_series(1, 1000)', qr/ERROR:  55000: the registry refuses numbers of sequence "t1_id_seq"/, 'a server that needs numbers is told that there are none');
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

# It is moved to another registry, which grants ranges, while its keys cannot be read: one
# table is locked, and rows of another are prepared.  Its memory does not know them.
sql($registry, q{CREATE DATABASE other ENCODING UTF8 LOCALE 'C' TEMPLATE template0});
$registry->safe_psql('other', q{CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create(101, 200, new => true);
	SELECT snowflake_registry.add_database('postgres')});
query(q{INSERT INTO t2 SELECT FROM generate_series(1, 10)});
my %greatest = map { $_ => query("SELECT max(id) FROM $_") } qw(t1 t2);
query(q{BEGIN; LOCK TABLE t1; PREPARE TRANSACTION 'lock'});
$greatest{t2} = query(q{BEGIN; INSERT INTO t2 SELECT FROM generate_series(1, 100); SELECT max(id) FROM t2; PREPARE TRANSACTION 'rows'});
$server->append_conf('postgresql.conf', registry_conf($registry, 'dbname=other'));
my $from = -s $server->logfile;
$server->restart;
ok($server->wait_for_log(qr/WARNING:  could not find out which numbers of sequence public\.$_->[0]_id_seq database "postgres" has\n.*DETAIL:  $_->[1]/, $from), "a server that is moved says of which numbers it does not know: $_->[1]")
  foreach [ t1 => 'canceling statement due to lock timeout' ], [ t2 => 'A prepared transaction has used it\.' ];
wait_until('a report', sub { $registry->safe_psql('other', 'SELECT count(*) FROM snowflake_registry.range_clients WHERE reporting IS NOT NULL') });
like(sql_error($server, 'INSERT INTO t3 SELECT'), qr/waits for this server to report/, 'and is granted none');
query("ROLLBACK PREPARED 'lock'");
query("COMMIT PREPARED 'rows'");
$server->reload;
foreach my $table (qw(t1 t2))
{
	my $id;
	wait_until('numbers of the other registry', sub { (my $failed, $id) = $server->psql('postgres', "INSERT INTO $table DEFAULT VALUES RETURNING id"); !$failed });
	cmp_ok($id, '>', $greatest{$table}, 'before it has read them; then, above these');
}

# One whose memory has no room for all sequences that it uses is moved while it runs.  A session
# can have numbers of the one that was given up.
my $small = new_server('small', registry_conf($registry, 'dbname=registry'), "snowflake.server_name = 'small'", 'snowflake.max_range_sequences = 3');
sql($small,
	qq{CREATE ROLE mallory; CREATE SCHEMA mallory AUTHORIZATION mallory; $by_default CREATE SEQUENCE a; CREATE SEQUENCE b; CREATE SEQUENCE c;
	SET ROLE mallory; CREATE SEQUENCE mallory.d});
sql($small, 'SELECT nextval($$' . $_ . '$$)') foreach qw(a b c mallory.d);
$small->append_conf('postgresql.conf', registry_conf($registry, 'dbname=other'));
$from = -s $small->logfile;
$small->reload;
ok($small->wait_for_log(qr/WARNING:  could not find out which numbers sessions of this server have\n.*reported to the registry/s, $from), 'a server that has given up numbers says that it does not know which ones');
my $many = q{SELECT count(nextval('mallory.d')) FROM generate_series(1, 1000)};
like(sql_error($small, $many), qr/waits for this server to report/, 'its report is not complete, so it is granted none by another registry');
$small->restart;
wait_until('numbers after a restart', sub { $small->psql('postgres', $many) == 0 });

done_testing();
