# snowflake_convert_online(): what it carries over, what undo takes back, and what
# clients see meanwhile.

use SnowflakeTest::Online;
use SnowflakeTest;

my $norders = 1500;
my $node = new_server('main', 'wal_level = logical', 'max_prepared_transactions = 5');
sql($node, 'CREATE ROLE regress_reader');

sub new_database ($name)
{
	sql($node, "CREATE DATABASE $name");
	$node->safe_psql($name, 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert');
	return $name;
}

# Lines that only one of two descriptions has.
sub differences ($before, $after)
{
	my %count;

	$count{$_}-- foreach split /\n/, $before;
	$count{$_}++ foreach split /\n/, $after;
	return join "\n", sort map { ($count{$_} > 0 ? '+' : '-') . $_ } grep { $count{$_} != 0 } keys %count;
}

#
# What is carried over, and undone
#
my $shop = new_database('shop');
create_shop($node, $shop, $norders);
my $before = describe_shop($node, $shop);
foreach my $phase ('prepare', 'backfill', 'indexes', 'foreign keys')
{
	my $err = run_in($node, $shop, "CALL snowflake_convert_online('orders', until => '$phase')");

	like($err, qr/^NOTICE:  public\.\w+: the next phase is "/m, "the conversion ends after phase $phase")
	  or diag($err);
	is(run_in($node, $shop, "SELECT snowflake_convert_undo('orders')"), '', "phase $phase can be undone");
	is(differences($before, describe_shop($node, $shop)), '', "after undo in phase $phase, all is as before");
	is(nothing_is_left($node, $shop), '', "after undo in phase $phase, nothing is left");
}
like(run_in($node, $shop, "SELECT snowflake_convert_undo('orders')"),
	qr/^NOTICE:  no conversion of table public\.orders has begun\nHINT:  If the key has kept its sequence, snowflake_convert\(\) with kind => 'local' has that be local again\.$/m, 'undo says that there is nothing to undo');

my ($err, $out) = run_in($node, $shop, q{SELECT state, phase, table_name FROM snowflake_convert_plan('orders') WHERE step = 1});
is($out, "next|prepare|public.orders\n", 'the plan begins with the columns');

# By hand: the statements of the plan, phase by phase, as long as there are some.
my $by_hand = new_database('by_hand');
create_shop($node, $by_hand, 500);
my $nstatements = 0;
foreach (1 .. 20)
{
	my $count = $node->safe_psql(
		$by_hand, q{
		CREATE TEMP TABLE plan AS SELECT * FROM snowflake_convert_plan('orders') WHERE state <> 'done';
		CREATE TEMP TABLE next AS SELECT step, statement FROM plan WHERE phase = (SELECT phase FROM plan WHERE state LIKE 'next%');
		SELECT statement FROM next ORDER BY step \gexec
		SELECT count(*) FROM next}) =~ s/.*\n//sr;

	last if $count == 0;
	$nstatements += $count;
}
cmp_ok($nstatements, '>', 20, 'the statements of the plan can be run by hand');
is(nothing_is_left($node, $by_hand), '', 'the statements of the plan leave nothing behind');
is(shop_is_whole($node, $by_hand, 500), '', 'the statements of the plan lose no row');

# What has to be known before is said by the call that begins, and the others report
# progress.
my $before_all = qr/^NOTICE:  (.*)\n(?=DETAIL|HINT)/m;
my @first = run_in($node, $shop, "CALL snowflake_convert_online('orders', until => 'prepare')") =~ /$before_all/g;
is(scalar(grep { $_ eq 'new columns are at the end of their tables' } @first), 1, 'the first call says what to know before, once');
is(join("\n", @first), join("\n", do { my %there; grep { !$there{$_}++ } @first }), 'it says nothing twice');
is($node->safe_psql($shop, q{SELECT DISTINCT to_jsonb(o) ? 'snowflake_new_id', to_jsonb(o) - 'snowflake_new_id' ? 'snowflake_new_id' FROM orders o}), 't|f',
	'what stores whole rows has the new column, unless it leaves it out');
$err = run_in($node, $shop, "CALL snowflake_convert_online('orders', until => 'swap')");
is(join("\n", $err =~ /$before_all/g), 'public.orders: the next phase is "default"', 'the second call does not say it again');
like($err, qr/^NOTICE:  public\.orders: phase "swap"/m, '... but what it does');
unlike($err, qr/ERROR|WARNING/, 'a conversion succeeds') or diag($err);
unlike(run_in($node, $shop, "SELECT * FROM snowflake_convert_plan('orders')"), qr/NOTICE/, 'the plan of what has begun does not, either');
$err = run_in($node, $shop, "CALL snowflake_convert_online('orders')");
is(join("\n", $err =~ /$before_all/g), '', 'nor does the last call');
unlike($err, qr/ERROR|WARNING/, '... which completes it') or diag($err);
my $expected = q{+id|bigint||not null|snowflake_nextval()|plain||500|the key
+order_id|bigint||not null||plain|||
+order_id|bigint||not null||plain|||the order
+parent_id|bigint||||plain|||
-id|integer||not null|nextval('orders_id_seq'::regclass)|plain||500|the key
-order_id|integer||not null||plain|||
-order_id|integer||not null||plain|||the order
-parent_id|integer||||plain|||};
my $differences = differences($before, describe_shop($node, $shop));
my @others = grep {
	my $line = $_;
	# The order of columns, their type in a view or an expression, and their sequence
	!( grep { $_ eq $line } split /\n/, $expected
	) && $line !~ /orders_mod.*id % 100|orders_stat|\(id, region, total\)|\(region, total, id\)|\(id, order_id, no\)|\(id, no, order_id\)|^[-+]id\|(integer|bigint)\|\|\|\|plain\||orders_id_seq/
} split /\n/, $differences;
like($differences, qr/^\Q$_\E$/m, "the difference is: $_") foreach split /\n/, $expected;
is(join("\n", @others), '', 'nothing but types, the order of columns, the default and the sequence is different');
is(differences(describe_shop($node, $shop), describe_shop($node, $by_hand) =~ s/customer \d+//gr), '',
	'a conversion by hand has the same result');
is(nothing_is_left($node, $shop), '', 'nothing is left of a conversion');
is(shop_is_whole($node, $shop, $norders), '', 'no row is lost or changed');
is($node->safe_psql($shop, 'SELECT count(*) FROM audit'), '0', 'triggers of the application are not fired');
is($node->safe_psql($shop, 'SELECT count(updated_at) FROM orders'), '0', 'updated_at is as before');
$err = run_in($node, $shop, "CALL snowflake_convert_online('orders')");
unlike($err, qr/ERROR|phase/, 'a second call does nothing');
like(run_in($node, $shop, "SELECT snowflake_convert_undo('orders')"), qr/^NOTICE:  no conversion/, 'after a conversion, there is nothing to undo');
is((run_in($node, $shop, q{SELECT phase, state FROM snowflake_convert_plan('orders')}))[1], "default|done\n",
	'the plan of a conversion that is complete');

#
# Clients
#
my $used = new_database('used');
create_shop($node, $used, $norders);
my $clients = start_shoppers($node, $used, $norders);
$node->poll_query_until($used, "SELECT count(*) > 20 FROM orders WHERE note = 'new'") or die 'the clients do nothing';
$err = run_in($node, $used, "CALL snowflake_convert_online('orders', until => 'swap')");
unlike($err, qr/ERROR/, 'tables in use are converted until the default') or diag($err);
like(
	run_in($node, $used, "CALL snowflake_convert_online('orders', give_up_after => '1 ms')"),
	qr/ERROR:  gave up waiting to set the default\nDETAIL:  2 sessions are older than the swap, and may have prepared statements: process \d+ \(.+?, online\.pl\), process \d+ \(.+?, online\.pl\)\.\nHINT:  What is done is kept\./,
	'the default waits for sessions that are older than the swap');
like((run_in($node, $used, "SELECT state FROM snowflake_convert_plan('orders') WHERE phase = 'default'"))[1],
	qr/^to do, and has to wait: 2 sessions are older than the swap, and may have prepared statements: process /,
	'the plan says so, too');
like(run_in($node, $used, "SELECT snowflake_convert_undo('orders')"),
	qr/ERROR:  cannot undo the conversion of table public\.orders, because columns have been swapped\nHINT:  Call snowflake_convert_online\(\) to complete it\. snowflake_convert\(\) with kind => 'local' has its sequence be local again\./,
	'a swap cannot be undone');
my $errors = stop_shoppers($clients);
unlike($errors, qr/ERROR/, 'clients see no error until the swap, and after it') or diag($errors);

$clients = start_shoppers($node, $used, $norders);
$err = run_in($node, $used, "CALL snowflake_convert_online('orders')");
unlike($err, qr/ERROR/, 'the default is set') or diag($err);
ok( $node->poll_query_until($used, "SELECT count(*) > 20 FROM orders WHERE note = 'new' AND id > 1000000000000"),
	'clients get snowflake IDs');
$errors = stop_shoppers($clients);
unlike($errors, qr/ERROR/, 'clients see no error when the default is set') or diag($errors);
is(shop_is_whole($node, $used, $norders), '', 'no row of tables in use is lost or changed');
is(nothing_is_left($node, $used), '', 'nothing is left of a conversion in use');

my $start = time;
sql($node, 'CREATE TABLE small (id serial PRIMARY KEY, v int); INSERT INTO small (v) SELECT generate_series(1, 100)');
unlike(run_in($node, 'postgres', "CALL snowflake_convert_online('small')"), qr/ERROR/, 'a small table is converted');
cmp_ok(time - $start, '<', 30, 'a table of 100 rows does not take long');
is(sql($node, 'SELECT count(*), count(DISTINCT id), sum(id) FROM small'), '100|100|5050', 'a small table has its rows');

# In a pipeline, what stands before it would be committed.
sql($node, 'CREATE TABLE log (n int)');
my $pipeline = $node->basedir . '/pipeline.sql';
append_to_file($pipeline, "\\startpipeline\nINSERT INTO log VALUES (2);\nCALL snowflake_convert_online('small');\n\\endpipeline\n");
IPC::Run::run([ 'pgbench', '-n', '-t', '1', '-M', 'extended', '-f', $pipeline, $node->connstr('postgres') ], '>' => \$out, '2>' => \$err);
like($err, qr/cannot be executed within a pipeline|cannot run inside a transaction block|must be converted outside/, 'a call in a pipeline is an error');
is(sql($node, 'SELECT count(*) FROM log'), '0', 'what stands before it is not committed');

done_testing();
