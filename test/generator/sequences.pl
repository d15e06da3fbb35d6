# Snowflake sequences beyond one session: what does not pass our nextval() fails,
# and no crash, dump, standby or subscription leaves a sequence that returns small numbers,
# or a local one that returns none.  (test/specs/sequences.spec has a second session.)

use Page;
use SnowflakeTest;

my $node = new_server('main', { allows_streaming => 'logical' }, 'snowflake.worker_id = 1');
my $ID = '> 1e17';
my $exhausted = qr/ERROR:  2200H: nextval: reached maximum value of sequence/;

sub query { my ($sql, $database) = @_; return $node->safe_psql($database // 'postgres', $sql); }

query(q{
	CREATE TABLE t (id bigserial PRIMARY KEY, n int);
	INSERT INTO t (n) SELECT 1 FROM generate_series(1, 10);
	SELECT snowflake_set_sequence_kind('t_id_seq')});

# A plan from before the extension, in a session that continues
query(q{CREATE DATABASE early});
my $before = $node->background_psql('early');
$before->query_safe(q{CREATE TABLE t (id bigserial, n int); CREATE SEQUENCE s; PREPARE p AS SELECT nextval('s'); SET plan_cache_mode = force_generic_plan});
cmp_ok($before->query_safe('EXECUTE p'), '==', 1, 'a plan from before the extension');
query(q{CREATE EXTENSION snowflake; SELECT snowflake_set_sequence_kind('s'), snowflake_set_sequence_kind('t_id_seq')}, 'early');
cmp_ok($before->query_safe('EXECUTE p'), '>', 1e17, 'is planned again after it');
$before->quit;
# What resets it unseen: a server without the library
restart_with($node, "shared_preload_libraries = ''");
like(sql_error($node, q{SELECT nextval('s')}, dbname => 'early'),
	qr/ERROR:  55000: /, 'without the library preloaded, it fails');
is(query(q{SELECT problem FROM snowflake_sequences WHERE sequence = 's'}, 'early'),
	'not preloaded: add snowflake to shared_preload_libraries, and restart', '... and the view reports it');
query('ALTER SEQUENCE s RESTART', 'early');
restart_with($node, "shared_preload_libraries = 'snowflake'");
like(query('SELECT problem FROM snowflake_sequences WHERE sequence = \'s\'', 'early'),
	qr/^not exhausted/, 'a sequence that was reset without the library is reported');
is(query("SELECT nextval('s') $ID; SELECT problem IS NULL FROM snowflake_sequences WHERE sequence = 's'",
		'early'), "t\nt", 'and exhausted by the next call');

# A crash, with a change of kind that did not commit, and one that did
my $one = $node->background_psql('postgres');
$one->query_safe(q{CREATE SEQUENCE c1; CREATE SEQUENCE c2; SELECT nextval('c1'), nextval('c2')});
query('CHECKPOINT');
query(q{SELECT snowflake_set_sequence_kind('c2')});
query(q{CREATE UNLOGGED TABLE u (id bigserial, n int); SELECT snowflake_set_sequence_kind('u_id_seq')});
$one->query_safe(q{BEGIN; SELECT snowflake_set_sequence_kind('c1')});
$node->stop('immediate');
eval { $one->quit };
$node->start;
is(query(q{SELECT nextval('c1')}) < 100 ? 'local' : 'ID', 'local', 'crash: a change that did not commit is undone');
is(query("SELECT nextval('c2') $ID; SELECT last_value, is_called FROM c2"),
	"t\n9223372036854775807|t", 'crash: one that did is kept');

is(query('SELECT last_value, is_called FROM u_id_seq; DROP TABLE u'),
	'9223372036854775807|t', 'crash: an unlogged one is exhausted');

# A scheme to which the INCREMENT does not fit: no value, and no wait for one
query(q{CREATE SEQUENCE pooled INCREMENT 50; SELECT snowflake_set_sequence_kind('pooled')});
foreach my $fields ('timestamp=41,worker=18,sequence=4', 'timestamp=41,sequence=12,worker=10')
{
	restart_with($node, "snowflake.scheme = 'epoch=2016-11-01,$fields'");
	sql_fails($node, q{SET statement_timeout = '60s'; SELECT nextval('pooled')},
		qr/ERROR:  22023: INCREMENT 50 of sequence "pooled" is not possible/, "no value with $fields");
}
# One to which it fits, and others use all of each tick: each gets its turn.
restart_with($node, q{snowflake.scheme = 'epoch=2016-11-01,timestamp=41,worker=20,sequence=2'});
query(q{CREATE SEQUENCE pair INCREMENT 2; SELECT snowflake_set_sequence_kind('pair')});
my @others = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 6;
$_->query_until(qr/started/, "\\echo started\nDO 'BEGIN LOOP PERFORM count(*) FROM snowflake_nextval(1000); END LOOP; END';\n")
  foreach @others;
my $pairs = q{SET statement_timeout = '60s'; SELECT count(DISTINCT nextval('pair')) FROM generate_series(1, 100)};
is(query($pairs), 100, 'INCREMENT gets its numbers while others take blocks of any size');
query(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %'});
$_->quit foreach @others;
restart_with($node, q{snowflake.scheme = 'epoch=2016-11-01,timestamp=41,worker=10,sequence=12'});
is(query("SELECT nextval('pooled') $ID; DROP SEQUENCE pooled, pair"), 't', 'and with the scheme from before, there is one');

# A template, and dumps: in one piece, by sections and in parallel, without labels
query('CREATE DATABASE copied TEMPLATE early');
is(query("SELECT nextval('s') $ID", 'copied'), 't', 'a database as a template is attached');
my $dir = PostgreSQL::Test::Utils::tempdir;
query(q{CREATE TABLE narrow (id serial PRIMARY KEY, n int); ALTER TABLE narrow ALTER id TYPE bigint; SELECT snowflake_set_sequence_kind('narrow_id_seq');
	INSERT INTO narrow (n) VALUES (1)});
$node->command_ok([ 'pg_dump', '-Fd', '-f', "$dir/dump", '-d', $node->connstr('postgres') ], 'pg_dump');
my %restores = (
	parallel => [ [ '-j', '2' ] ],
	sections => [ map { [ "--section=$_" ] } qw(pre-data data post-data) ],
	whole => [ [] ]);
foreach my $name (sort keys %restores)
{
	query("CREATE DATABASE $name");
	foreach my $step (@{ $restores{$name} })
	{
		$node->command_ok([ 'pg_restore', @$step, '-e', '-d', $node->connstr($name), "$dir/dump" ],
			"pg_restore $name: @$step");
	}
	is(query("INSERT INTO t (n) VALUES (1) RETURNING id $ID;
			SELECT count(*) FROM snowflake_sequences WHERE problem IS NOT NULL;
			SELECT snowflake_set_sequence_kind('t_id_seq', 'local');
			SELECT nextval('t_id_seq')", $name),
		"t\n0\n\n11", "$name: IDs at the first INSERT, and back to local with its position");
}
query('CREATE DATABASE unlabelled');
$node->command_ok([ 'pg_restore', '--no-security-labels', '-e', '-d', $node->connstr('unlabelled'), "$dir/dump" ],
	'pg_restore --no-security-labels');
like(sql_error($node, 'INSERT INTO t (n) VALUES (1)', dbname => 'unlabelled'), $exhausted,
	'without labels, calls fail');
is(query("SELECT snowflake_set_sequence_kind('t_id_seq');
		INSERT INTO t (n) VALUES (1) RETURNING id $ID", 'unlabelled'),
	"\nt", 'and setting the kind is enough');

# A server without the library, to which no extension is restored: the labels are errors,
# all else is restored, and the sequences are exhausted.
restart_with($node, "shared_preload_libraries = ''");
query('CREATE DATABASE bare');
my ($list) = run_command([ 'pg_restore', '-l', "$dir/dump" ]);
append_to_file("$dir/list", $list =~ s/^.* EXTENSION .*\n//mgr);
$node->command_checks_all([ 'pg_restore', '-j', '2', '-L', "$dir/list", '-d', $node->connstr('bare'), "$dir/dump" ], 1, [],
	[qr/security label provider "snowflake" is not loaded/, qr/errors ignored on restore/],
	'pg_restore to a server without the library');
like(sql_error($node, 'INSERT INTO t (n) VALUES (1)', dbname => 'bare'), $exhausted, '... leaves sequences exhausted');
is(query(q{SELECT setval('t_id_seq', max(id)) = max(id) FROM t; INSERT INTO t (n) VALUES (1) RETURNING id = lastval();
		SELECT id - lag(id) OVER (ORDER BY id) FROM t ORDER BY id DESC LIMIT 1}, 'bare'),
	"t\nt\n1", '... which setval() ends');
like(sql_error($node, q{SELECT setval('narrow_id_seq', max(id)) FROM narrow}, dbname => 'bare'), qr/22003: .*out of bounds/, '... not that of a serial column');
my ($widen, $set) = Page->look('docs/sequences.md')->{text} =~ /`(ALTER SEQUENCE tickets_id_seq AS bigint)`, and then `(SELECT setval[^`]*)`/;
is(query("$widen; $set; INSERT INTO tickets (n) VALUES (1) RETURNING id = lastval()" =~ s/tickets/narrow/gr, 'bare') =~ s/^\d{16,}\n//r, 't',
	'... unless it is a bigint before, as the page says');
restart_with($node, "shared_preload_libraries = 'snowflake'");

# A physical standby, and its promotion
my $standby = new_standby($node, 'standby', 'snowflake.worker_id = 2');
$node->wait_for_catchup($standby);
sql_fails($standby, q{SELECT nextval('t_id_seq')},
	qr/ERROR:  25006: cannot execute nextval\(\) in a read-only transaction/, 'a standby refuses like for any sequence');
sql_fails($standby, q{ALTER SEQUENCE t_id_seq MAXVALUE 1000},
	qr/ERROR:  25006: cannot execute ALTER SEQUENCE in a read-only transaction/, '... and ALTER SEQUENCE');
$standby->promote;
is(sql($standby, "SELECT nextval('t_id_seq') $ID"), 't', 'a promoted standby generates IDs');

# Logical replication: TRUNCATE ... RESTART IDENTITY reaches the subscriber, and leaves
# the sequence exhausted there
sql($standby, q{TRUNCATE t});
query('TRUNCATE t; CREATE PUBLICATION p FOR TABLE t');
sql($standby, sprintf(
	q{CREATE SUBSCRIPTION s CONNECTION '%s' PUBLICATION p}, $node->connstr . ' dbname=postgres'));
$standby->wait_for_subscription_sync($node, 's');
query('INSERT INTO t (n) SELECT 1 FROM generate_series(1, 5); TRUNCATE t RESTART IDENTITY; INSERT INTO t (n) VALUES (2)');
$node->wait_for_catchup('s');
is(sql($standby, "SELECT last_value FROM t_id_seq;
		INSERT INTO t (n) VALUES (3); SELECT count(*), count(*) FILTER (WHERE id $ID) FROM t"),
	"9223372036854775807\n2|2", 'a subscriber has rows and IDs of its own');
sql($standby, 'DROP SUBSCRIPTION s');
done_testing();
