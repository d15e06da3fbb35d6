# Logical replication both ways between two servers that insert at once, and a
# third that takes both, as docs/logical-replication.md has it: initial copy under load, a
# server that is copied again, tables that are converted on both sides, and worker IDs
# from a registry, which change after a crash.

use Page;
use SnowflakeTest;

if (`pg_config --version` =~ /^PostgreSQL 15/)
{
	plan skip_all => 'subscriptions have no origin before PostgreSQL 16';
}

my $page = Page->claim('docs/logical-replication.md');
my %server;
my $worker = 0;
foreach my $name (qw(a b c))
{
	my $conf = $page->example('wal_level');

	$worker++;
	$conf =~ s/^(snowflake\.worker_id = )1/$1$worker/m or die;
	$server{$name} = plain_server($name, { allows_streaming => 'logical' }, $conf);
}
my ($a, $b, $c) = @server{qw(a b c)};

# An example on a server, connected to the servers of the test.
sub run_example ($node, $text)
{
	my $sql = $page->example($text) =~ s/\breplicator;/regress_replicator;/gr =~ s/ROLE replicator/ROLE regress_replicator/r;

	foreach my $n (1, 2)
	{
		my $to = (undef, $a, $b)[$n]->connstr('postgres') =~ s/'/''/gr . ' user=regress_replicator';
		$sql =~ s/host=10\.0\.0\.$n dbname=shop user=replicator/$to/g;
	}
	return sql($node, $sql);
}

my $copied = $page->example('srsubstate');

sub wait_for_copy ($node) { wait_until_true($node, $copied); }

# Wait until all servers have what the others have.
sub catch_up
{
	# What reaches b from a is passed on to c.
	foreach my $from ($a, $b, $a, $b)
	{
		my $lsn = $from->lsn('write');

		wait_until_true($from, qq{
			SELECT bool_and(coalesce(replay_lsn >= '$lsn', false))
			FROM pg_replication_slots LEFT JOIN pg_stat_replication ON pid = active_pid});
	}
}

my $sums = q{
	SELECT count(*), sum(hashtext(customers::text)), (SELECT count(*) FROM orders),
		   (SELECT sum(hashtext(orders::text)) FROM orders)
	FROM customers};

sub same_on_both ($what)
{
	catch_up();
	is(sql($b, $sums), sql($a, $sums), $what);
}

# Sessions that insert for a while, in transactions.
sub inserting ($node, $sessions = undef)
{
	my $insert = q{
		DO $$
		DECLARE
			c bigint;
		BEGIN
			FOR i IN 1 .. 150 LOOP
				INSERT INTO customers (name) VALUES ('NAME') RETURNING id INTO c;
				INSERT INTO orders (customer) SELECT c FROM generate_series(1, 10);
				COMMIT;
			END LOOP;
		END
		$$};
	my $name = $node->name;

	return start_queries($node, ($insert =~ s/NAME/$name/r) x ($sessions // 2));
}

run_example($_, 'CREATE TABLE customers') foreach $a, $b, $c;
foreach my $node ($a, $b)
{
	run_example($node, 'CREATE ROLE');
	run_example($node, 'CREATE PUBLICATION shop');
}

# The initial copy, with rows that a has and gets meanwhile
sql($a, q{
	INSERT INTO customers SELECT n, 'old' FROM generate_series(1, 20000) n;
	INSERT INTO orders (customer) SELECT id FROM customers});
my @sessions = inserting($a);
run_example($a, 'CREATE SUBSCRIPTION a_from_b');
run_example($b, 'copy_data = true');
wait_for_copy($b);

# Both at once, and a third that begins meanwhile
push @sessions, inserting($b), inserting($a);
run_example($c, "PUBLICATION shop;\n");
push @sessions, inserting($c, 1);
wait_for_copy($c);
push @sessions, inserting($a), inserting($b);
is(finish_queries(@sessions), 11, 'clients of three servers insert');
same_on_both('a and b have all rows of both');
my $own = q{SELECT count(*) FROM customers WHERE name = 'c'};
is(sql($c, $own), 150, 'c has rows of its own');
my $others = $sums . q{ WHERE name <> 'c'};
$others =~ s/FROM orders/FROM orders WHERE customer NOT IN (SELECT id FROM customers WHERE name = 'c')/g;
is(sql($c, $others), sql($a, $sums), 'c has all rows of a and b');
is(sql($a, q{
		SELECT count(*) FROM customers
		WHERE (snowflake_parse(id)).worker_id <> CASE name WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END
		AND id > 1000000}), 0, 'an ID has the worker ID of its server');

# Changes and deletions of rows that another server made reach c, too.
sql($b, q{
	UPDATE customers SET name = 'changed on b' WHERE id IN (SELECT id FROM customers WHERE name = 'a' LIMIT 10);
	DELETE FROM orders WHERE id IN (SELECT id FROM orders WHERE (snowflake_parse(id)).worker_id = 1 LIMIT 10)});
sql($a, q{UPDATE customers SET name = 'changed on a' WHERE id IN (SELECT id FROM customers WHERE name = 'b' LIMIT 10)});
same_on_both('changes are replicated both ways');
is(sql($c, $others), sql($a, $sums), 'c has the changes of both');

# b is copied again, while a is in use.
@sessions = inserting($a);
run_example($a, "DROP SUBSCRIPTION a_from_b;\n");
my $mark = mark_of($b);
run_example($b, 'TRUNCATE');
run_example($a, 'CREATE SUBSCRIPTION a_from_b');
run_example($b, 'copy_data = true');
wait_for_copy($b);
push @sessions, inserting($b);
is(finish_queries(@sessions), 4, 'b is copied again');
cmp_ok(sql($b, q{SELECT min(id) FROM customers WHERE name = 'b' AND id > } . $mark),
	'>', $mark, 'after the copy, IDs of b continue above its mark');
same_on_both('after the copy, a and b have the same rows');
is(sql($c, $others), sql($a, $sums), 'after the copy, c has the same rows');

# The mark beside the subscriptions
my @origins = split /\n/, run_example($c, 'AS snowflake');
is(scalar(grep { /^65534\|[^|]*\|[^|]+\|t$/ } @origins), 1, 'the mark is one of the replication origins');
is(scalar(grep { /\|pg_\d+\|.*\|f$/ } @origins), 1, 'the replication origin of a subscription is beside the mark');
is(run_example($_, 'AS needed'), '4|10', $_->name . ' needs 4 of 10 replication origins') foreach $a, $b, $c;

# With as many as are needed, and no more, both tables are copied at once; with
# one less the mark still has its place, which it took first.
my $setting = origins_setting($c);
$c->append_conf('postgresql.conf', "$setting = 4");
sql($c, 'DROP SUBSCRIPTION c_from_a; TRUNCATE customers, orders');
$c->restart;
is(run_example($c, 'AS needed') =~ s/^\d+\|//r, 4, 'c has as few replication origins as it needs');
run_example($c, "PUBLICATION shop;\n");
wait_for_copy($c);
catch_up();
is(sql($c, $others), sql($a, $sums), '4 replication origins are enough to copy the tables');
unlike(slurp_file($c->logfile), qr/could not find free replication state/, 'the mark keeps its replication origin');

# A table that is converted on both sides, while it is replicated
sql($_, q{
	CREATE TABLE old_customers (id serial PRIMARY KEY, name text);
	CREATE TABLE old_orders (id serial PRIMARY KEY, customer int REFERENCES old_customers)}) foreach $a, $b, $c;
foreach my $node ($a, $b)
{
	sql($node, q{
		ALTER SEQUENCE old_customers_id_seq INCREMENT 2;
		ALTER PUBLICATION shop ADD TABLE old_customers, old_orders;
		GRANT SELECT ON old_customers, old_orders TO regress_replicator});
}
sql($b, q{SELECT setval('old_customers_id_seq', 2, false)});
sql($b, 'ALTER SUBSCRIPTION b_from_a REFRESH PUBLICATION');
sql($a, 'ALTER SUBSCRIPTION a_from_b REFRESH PUBLICATION WITH (copy_data = false)');
sql($c, 'ALTER SUBSCRIPTION c_from_a REFRESH PUBLICATION');
wait_for_copy($_) foreach $a, $b, $c;
my $add = q{INSERT INTO old_customers (name) SELECT 'x' FROM generate_series(1, 1000)};
sql($_, $add) foreach $a, $b;
catch_up();
my $convert = $page->example('snowflake_convert') =~ s/customers/old_customers/r;
sql($_, 'CREATE EXTENSION snowflake_convert') foreach $a, $b, $c;
sql($a, $convert);
my $offset = -s $b->logfile;
sql($a, $add);
my ($message) = $page->{text} =~ /`value "\.\.\." (is out of range for type integer)`/;
$b->wait_for_log(qr/value "\d+" \Q$message\E/, $offset);
sql($b, $add);
sql($_, $convert) foreach $b, $c;
sql($_, $add) foreach $a, $b;
catch_up();
my $all = 'SELECT count(*), count(DISTINCT id), sum(hashtext(old_customers::text)) FROM old_customers';
my $on_a = sql($a, $all);
like($on_a, qr/^6000\|6000\|/, 'a converted table lost no row');
is(sql($_, $all), $on_a, 'a converted table is the same on ' . $_->name) foreach $b, $c;

# From fixed worker IDs to a registry, one server after the other, while the others are in
# use.  a crashes, and gets another worker ID: all its rows reach b and c all the same.
restart_with($c, "$setting = 10");
sql($c, 'CREATE EXTENSION snowflake_registry; '
	  . Page->section('docs/registry.md', 'From fixed worker IDs, and back')->{text} =~ s/.*`(snowflake_registry\.create\(.*?\))`.*/SELECT $1/sr);
my %worker;

sub worker_id { return sql($_[0], 'SELECT snowflake_nextval(); SELECT worker_id FROM snowflake_stat') =~ s/.*\n//r; }

sub rows { return sql($_[0], 'SELECT count(*) FROM customers'); }

my %before = map { $_->name => rows($_) } $a, $b, $c;
foreach my $node ($a, $b, $c)
{
	@sessions = map { inserting($_, 1) } grep { $_ != $node } $a, $b;
	restart_with($node, registry_conf($c) . "\nsnowflake.worker_id = -1");
	$worker{ $node->name } = worker_id($node);
	cmp_ok($worker{ $node->name }, '>=', 512, $node->name . ' has a worker ID of the registry');
	push @sessions, inserting($node, 1) if $node != $c;
	is(finish_queries(@sessions), 2, 'clients insert while ' . $node->name . ' is moved to the registry');
}
@sessions = inserting($b, 1);
crash_and_start($a);
isnt(worker_id($a), $worker{a}, 'after a crash, a has another worker ID');
is(finish_queries(@sessions, inserting($a, 1)), 2, 'clients insert after a crash of a');
same_on_both('with a registry, a and b have the same rows');
is(rows($a), $before{a} + 8 * 150, 'with a registry, a has all rows that clients inserted');
is(rows($c), $before{c} + 8 * 150, 'with a registry, c has all rows that clients inserted');
is(sql($c, $others), sql($a, $sums), 'with a registry, c has all rows of a and b');

# c follows b.
run_example($c, 'c_from_b');
@sessions = map { inserting($_, 1) } $a, $b;
is(finish_queries(@sessions), 2, 'clients insert while c follows b');
same_on_both('while c follows b, a and b have the same rows');
is(sql($c, $others), sql($a, $sums), 'c has all rows from b');

# Nothing of all this was a conflict.
unlike(slurp_file($_->logfile), qr/duplicate key|conflict detected/, 'no conflict on ' . $_->name)
  foreach $a, $b, $c;

sql($c, 'DROP SUBSCRIPTION c_from_b');
sql($a, 'DROP SUBSCRIPTION a_from_b');
sql($b, 'DROP SUBSCRIPTION b_from_a');
Page::all_taken();
