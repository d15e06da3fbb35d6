# snowflake_convert_online() of partitioned tables: as the table of the key, and as one
# that references it; with clients that move rows between partitions, partitions that
# come and go meanwhile, and kills.
#
# SNOWFLAKE_KILLS in the environment is how often (2), SNOWFLAKE_SEED repeats a run, and with
# SNOWFLAKE_CASES=all each table is undone in each phase, not one of them (script/tests/conversions).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use SnowflakeTest::Online;
use Test::More;
use Time::HiRes qw(time sleep);

my $nkills = $ENV{SNOWFLAKE_KILLS} // 2;
my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1e6));
my $nrows = 6000;
my $node = new_server('main', 'wal_level = logical', 'fsync = off');
$node->safe_psql('postgres', 'CREATE ROLE regress_reader');
srand($seed);
note "seed $seed";

sub new_database
{
	my ($name) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $name");
	$node->safe_psql($name, 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert');
	return $name;
}

# Orders are partitioned by month, on two levels, and reference customers.  Partitions
# have columns in another order, and indexes, constraints, triggers, a default, a
# foreign key and NOT NULL of their own.
sub create_tables
{
	my ($database) = @_;

	$node->safe_psql(
		$database, qq{
		CREATE TABLE customers (id serial PRIMARY KEY, name text);
		CREATE TABLE orders (
			month int NOT NULL, id serial, customer int REFERENCES customers ON DELETE CASCADE, parent int,
			note text, PRIMARY KEY (month, id), CONSTRAINT positive CHECK (id > 0)) PARTITION BY RANGE (month);
		CREATE TABLE year1 PARTITION OF orders FOR VALUES FROM (1) TO (13) PARTITION BY RANGE (month);
		CREATE TABLE winter PARTITION OF year1 FOR VALUES FROM (1) TO (7);
		CREATE TABLE summer (note text, gone int, parent int NOT NULL, id int NOT NULL DEFAULT 7, month int NOT NULL, customer int,
			CONSTRAINT positive CHECK (id > 0), CONSTRAINT below CHECK (id < 9000000000000000000));
		ALTER TABLE summer DROP COLUMN gone;
		ALTER TABLE summer ADD CONSTRAINT strange FOREIGN KEY (customer) REFERENCES customers ON DELETE CASCADE;
		CREATE UNIQUE INDEX summer_own ON summer (id, month);
		ALTER TABLE year1 ATTACH PARTITION summer FOR VALUES FROM (7) TO (13);
		CREATE TABLE later PARTITION OF orders DEFAULT;
		CREATE INDEX orders_id ON orders (id) WITH (fillfactor = 70);
		CREATE INDEX orders_mod ON orders ((id % 100)) WHERE id > 0;
		CREATE INDEX orders_customer ON orders (customer);
		CREATE UNIQUE INDEX orders_next ON orders (month, (id + 1)) INCLUDE (customer);
		CREATE INDEX year1_parent ON year1 (parent, id);
		CREATE INDEX later_customer ON later (customer, id);
		ALTER TABLE orders ADD CONSTRAINT orders_parent FOREIGN KEY (parent) REFERENCES customers ON DELETE SET NULL DEFERRABLE;
		ALTER TABLE winter ADD CONSTRAINT winter_parent FOREIGN KEY (parent) REFERENCES customers NOT VALID;
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER of_id AFTER UPDATE OF id ON orders FOR EACH ROW EXECUTE FUNCTION nothing();
		CREATE TRIGGER positive AFTER UPDATE ON orders FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION nothing();
		CREATE TRIGGER of_winter AFTER UPDATE OF id ON winter FOR EACH ROW EXECUTE FUNCTION nothing();
		ALTER TABLE orders DISABLE TRIGGER of_id;
		ALTER TABLE summer ENABLE TRIGGER of_id;
		CREATE STATISTICS orders_stat ON id, customer FROM orders;
		CREATE STATISTICS later_stat ON id, customer FROM later;
		CREATE VIEW of_orders AS SELECT id, note FROM orders;
		CREATE VIEW of_winter AS SELECT id, note FROM winter;
		ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
		CREATE POLICY readers ON orders FOR SELECT TO regress_reader USING (id > 0);
		CREATE POLICY readers ON summer FOR SELECT TO regress_reader USING (id > 1);
		ALTER TABLE winter ALTER id SET STATISTICS 300;
		CREATE INDEX winter_third ON winter ((id / 3));
		CREATE INDEX orders_third ON orders ((id / 3));
		ALTER INDEX orders_third ALTER 1 SET STATISTICS 40;
		ALTER INDEX winter_third ALTER 1 SET STATISTICS 50;
		ALTER INDEX later_expr_idx1 ALTER 1 SET STATISTICS -1;
		ALTER TABLE later REPLICA IDENTITY USING INDEX later_pkey;
		ALTER TABLE later CLUSTER ON later_id_idx;
		GRANT SELECT (id) ON orders TO regress_reader;
		GRANT SELECT (id) ON winter TO regress_reader;
		COMMENT ON COLUMN winter.id IS 'winter';
		COMMENT ON INDEX orders_id IS 'index';
		COMMENT ON INDEX winter_id_idx IS 'index of winter';
		COMMENT ON CONSTRAINT orders_pkey ON orders IS 'key';
		COMMENT ON CONSTRAINT later_pkey ON later IS 'key of later';
		COMMENT ON CONSTRAINT strange ON summer IS 'strange';
		COMMENT ON TRIGGER positive ON later IS 'of later';
		CREATE PUBLICATION by_root FOR TABLE orders (month, id, customer) WHERE (id > 0) WITH (publish_via_partition_root);
		INSERT INTO customers (name) SELECT 'c' || g FROM generate_series(1, 100) g;
		INSERT INTO orders (month, customer, parent, note)
		SELECT 1 + g % 18, 1 + g % 100, 1 + g % 99, 'n' || g FROM generate_series(1, $nrows) g});
	$node->safe_psql($database, 'VACUUM ANALYZE');
}

my $members = q{(SELECT relid FROM pg_partition_tree('orders') UNION ALL SELECT 'customers'::regclass)};
sub describe
{
	my ($database) = @_;

	return $node->safe_psql(
		$database, qq{
		\\pset tuples_only off
		\\d+ orders
		\\d+ year1
		\\d+ winter
		\\d+ summer
		\\d+ later
		\\d+ customers
		\\d+ of_orders
		\\d+ of_winter
		\\dRp+
		\\dX
		SELECT c.relname, p.relname AS parent, i.indisvalid, i.indisprimary, i.indisclustered, i.indisreplident, c.reloptions
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_inherits h ON h.inhrelid = c.oid
			LEFT JOIN pg_class p ON p.oid = h.inhparent WHERE i.indrelid IN $members ORDER BY 1;
		SELECT c.conname, c.conrelid::regclass, c.confrelid::regclass, p.conname AS parent, p.conrelid::regclass AS "of",
			c.convalidated, c.coninhcount
		FROM pg_constraint c LEFT JOIN pg_constraint p ON p.oid = c.conparentid WHERE c.conrelid IN $members ORDER BY c.conrelid::regclass::text, 1, c.confrelid::regclass::text;
		SELECT tgname, tgrelid::regclass, tgenabled, tgparentid <> 0 FROM pg_trigger
		WHERE tgrelid IN $members AND NOT tgisinternal ORDER BY tgrelid::regclass::text, 1;
		SELECT attrelid::regclass, attname, attacl, coalesce(attstattarget, -1) FROM pg_attribute
		WHERE attrelid IN (SELECT relid FROM $members m UNION SELECT indexrelid FROM pg_index WHERE indrelid IN $members)
		AND attnum > 0 AND NOT attisdropped ORDER BY attrelid::regclass::text COLLATE "C", 2;
		SELECT polname, polrelid::regclass, pg_get_expr(polqual, polrelid) FROM pg_policy ORDER BY polrelid::regclass::text, 1;
		SELECT description FROM pg_description d WHERE objoid >= 16384 AND description !~ '[\\n;]' ORDER BY 1});
}

# Lines that only one of two descriptions has, without what always differs: types, the
# default, the order of columns, and from 18 on, that not-null constraints of a
# partition's primary key are not only inherited, and have the names of the parent's.
sub differences
{
	my ($before, $after, $ordinary) = @_;
	my %count;

	$count{$_}-- foreach split /\n/, $before;
	$count{$_}++ foreach split /\n/, $after;
	return join "\n", sort
	  grep { !defined $ordinary || !/$ordinary/ }
	  map { ($count{$_} > 0 ? '+' : '-') . $_ } grep { $count{$_} != 0 } keys %count;
}

# What is wrong with the rows.
sub rows_are_whole
{
	my ($database) = @_;

	return $node->safe_psql(
		$database, qq{
		SELECT 'orders', count(*) FROM orders WHERE note ~ '^n[0-9]' HAVING count(*) <> $nrows
		UNION ALL SELECT 'id', count(*) FROM orders WHERE note ~ '^n[0-9]' AND note <> 'n' || id HAVING count(*) > 0
		UNION ALL SELECT 'references', count(*) FROM orders WHERE note ~ '^n[0-9]'
			AND (customer <> 1 + id % 100 OR parent <> 1 + id % 99) HAVING count(*) > 0
		UNION ALL SELECT 'orphans', count(*) FROM orders o
		WHERE NOT EXISTS (SELECT FROM customers c WHERE c.id = o.customer) HAVING count(*) > 0});
}

# Clients that insert, delete, and move rows; two of them never the same row.
sub start_movers
{
	my ($database, %options) = @_;
	my $file = $node->basedir . "/$database.sql";
	my %clients = (file => $file, err => "$file.err");

	append_to_file($file, qq{
\\set id 2 * random(1, $nrows / 2) - :client_id
\\set month random(1, 18)
UPDATE orders SET month = :month WHERE id = :id AND note <> 'x';
UPDATE orders SET note = note WHERE id = :id;
INSERT INTO orders (month, id, customer, parent, note) VALUES (:month, DEFAULT, 1 + :id % 100, 1, 'new') RETURNING id AS new \\gset
UPDATE orders SET month = 19 - month WHERE id = :new;
DELETE FROM orders WHERE id = :new AND random() < 0.5;
});
	$clients{run} = IPC::Run::start(
		[
			'pgbench', '-n', '-c', 2, '-j', 2, '-T', 1000, ($options{reconnect} ? ('-C') : ()),
			'--rate', $options{rate} // 100, '-f', $file, $node->connstr($database)
		],
		'<' => \undef, '>' => '/dev/null', '2>' => $clients{err});
	return \%clients;
}

#
# What is carried over, and undone
#
my $shop = new_database('shop');
create_tables($shop);
my $before = describe($shop);
my @tables = rand() < 0.5 ? ('orders', 'customers') : ('customers', 'orders');
foreach my $phase ('prepare', 'backfill', 'indexes', 'foreign keys')
{
	push @tables, shift @tables;
	foreach my $table (($ENV{SNOWFLAKE_CASES} // '') eq 'all' ? @tables : $tables[0])
	{
		my $err = run_in($node, $shop, "CALL snowflake_convert_online('$table', 'id', until => '$phase')");

		like($err, qr/^NOTICE:  public\.\w+: the next phase is "/m, "the conversion of $table ends after phase $phase") or diag($err);
		is(run_in($node, $shop, "SELECT snowflake_convert_undo('$table', 'id')"), '', "phase $phase can be undone");
		is(differences($before, describe($shop)), '', "after undo in phase $phase, all is as before");
		is(nothing_is_left($node, $shop), '', "after undo in phase $phase, nothing is left");
	}
}

# By hand: the statements of the plan, phase by phase, as long as there are some.
my $by_hand = new_database('by_hand');
create_tables($by_hand);
my $ordinary = qr/^.(?:id|customer|parent)\|(?:integer|bigint)\||\(id % 100|ON (?:id, customer|customer, id)|\|(?:id, customer|customer, id) FROM|\(month, (?:id, customer|customer, id)\)|orders_id_seq|customers_id_seq|_not_null/;
foreach my $table ('orders', 'customers')
{
	my $err = run_in($node, $shop, "CALL snowflake_convert_online('$table', 'id')");

	unlike($err, qr/ERROR|WARNING/, "table $table is converted") or diag($err);
	is(differences($before, describe($shop), $ordinary), '', "the conversion of $table changes nothing but types, the order of columns, and the default");
	is(nothing_is_left($node, $shop), '', "nothing is left of the conversion of $table");
	is(rows_are_whole($shop), '', "the conversion of $table loses no row");
}
run_in($node, $by_hand, "CALL snowflake_convert_online('orders', 'id')");
foreach (1 .. 20)
{
	my $left = $node->safe_psql(
		$by_hand, q{
		CREATE TEMP TABLE plan AS SELECT * FROM snowflake_convert_plan('customers') WHERE state <> 'done';
		SELECT statement FROM plan WHERE phase = (SELECT phase FROM plan WHERE state LIKE 'next%') ORDER BY step \gexec
		SELECT count(*) FROM snowflake_convert_plan('customers') WHERE state <> 'done'});

	last if $left =~ /^0\z/m;
}
is(differences(describe($shop), describe($by_hand)), '', 'the statements of the plan have the same result');
is(rows_are_whole($by_hand), '', 'the statements of the plan lose no row');
is( $node->safe_psql($shop, q{SELECT DISTINCT atttypid::regtype FROM pg_attribute
	WHERE attrelid IN (SELECT relid FROM pg_partition_tree('orders')) AND attname IN ('id', 'customer', 'parent')}),
	'bigint', 'the columns of all partitions are bigint');

#
# Clients that move rows, and partitions that come and go
#
my $used = new_database('used');
create_tables($used);
my $clients = start_movers($used, rate => 400);
$node->poll_query_until($used, q{SELECT count(*) > 20 FROM orders WHERE note = 'new'}) or die 'the clients do nothing';
my $err = run_in($node, $used, "CALL snowflake_convert_online('orders', 'id', until => 'prepare')");
unlike($err, qr/ERROR/, 'columns are added while clients move rows') or diag($err);
run_in($node, $used, 'CREATE TABLE extra1 PARTITION OF orders FOR VALUES FROM (100) TO (200)', 'INSERT INTO orders (month, customer, parent) SELECT 100, 1, 1 FROM generate_series(1, 10)');
like(run_in($node, $used, 'CREATE TABLE extra2 (month int NOT NULL, id int NOT NULL, customer int, parent int, note text, CONSTRAINT positive CHECK (id > 0))',
		'ALTER TABLE orders ATTACH PARTITION extra2 FOR VALUES FROM (200) TO (300)'),
	qr/ERROR:  child table is missing column "snowflake_new_id"/, 'a table without the new column cannot be attached');
like(run_in($node, $used, 'ALTER TABLE orders DETACH PARTITION extra1', 'ALTER TABLE orders ATTACH PARTITION extra1 FOR VALUES FROM (100) TO (200)'),
	qr/\A\z/, 'a partition can be detached and attached again');
$err = run_in($node, $used, "CALL snowflake_convert_online('orders', 'id', until => 'backfill', batch_time => '1 s', work_share => 1)");
unlike($err, qr/ERROR/, 'partitions are filled while clients move rows') or diag($err);
run_in($node, $used, 'CREATE TABLE extra3 PARTITION OF orders FOR VALUES FROM (300) TO (400)', 'INSERT INTO orders (month, customer, parent) VALUES (300, 1, 1)');
$err = run_in($node, $used, "CALL snowflake_convert_online('orders', 'id', until => 'foreign keys')");
unlike($err, qr/ERROR/, 'indexes are created while clients move rows') or diag($err);
run_in($node, $used, 'CREATE TABLE extra4 (LIKE orders INCLUDING ALL EXCLUDING STATISTICS)', 'ALTER TABLE orders ATTACH PARTITION extra4 FOR VALUES FROM (400) TO (500)',
	'INSERT INTO orders (month, customer, parent) VALUES (400, 1, 1)', 'DROP TABLE extra3');
my $state = $node->safe_psql($used, q{SELECT string_agg(DISTINCT phase || ' ' || table_name, ', ') FROM snowflake_convert_plan('orders', 'id') WHERE state <> 'done' AND phase <> 'default'});
like($state, qr/indexes public\.extra4/, 'a new partition is next') or diag($state);
$err = run_in($node, $used, "CALL snowflake_convert_online('orders', 'id', until => 'swap')");
unlike($err, qr/ERROR/, 'columns are swapped while clients move rows') or diag($err);
run_in($node, $used, 'CREATE TABLE extra5 PARTITION OF orders FOR VALUES FROM (500) TO (600)');
my $errors = stop_shoppers($clients);
unlike($errors, qr/ERROR/, 'clients that move rows see no error') or diag($errors);
$err = run_in($node, $used, "CALL snowflake_convert_online('orders', 'id')");
unlike($err, qr/ERROR/, 'the default is set') or diag($err);
is(rows_are_whole($used), '', 'no row that clients move is lost or changed');
is(nothing_is_left($node, $used), '', 'nothing is left of a conversion in use');
is($node->safe_psql($used, 'SELECT count(*) FROM orders WHERE month >= 100'), '11', 'rows of new partitions are kept');

# A referencing table whose partitions come and go
$clients = start_movers($used, rate => 100);
foreach my $phase ('prepare', 'backfill', 'indexes', 'foreign keys')
{
	my $n = { prepare => 6, backfill => 7, indexes => 8, 'foreign keys' => 9 }->{$phase};

	$err = run_in($node, $used, "CALL snowflake_convert_online('customers', until => '$phase')",
		"CREATE TABLE extra$n PARTITION OF orders FOR VALUES FROM (${n}00) TO (${n}99)", "INSERT INTO orders (month, customer, parent) VALUES (${n}00, $n, 1)");
	unlike($err, qr/ERROR/, "a partition is created after phase $phase") or diag($err);
}
run_in($node, $used, 'ALTER TABLE orders DETACH PARTITION extra6');
like(run_in($node, $used, "CALL snowflake_convert_online('customers')"), qr/ERROR:.*\nDETAIL:  .*column snowflake_new_customer of table public\.extra6 is in the way/s,
	'a partition that was detached is an obstacle');
run_in($node, $used, 'ALTER TABLE orders ATTACH PARTITION extra6 FOR VALUES FROM (600) TO (699)');
$err = run_in($node, $used, "CALL snowflake_convert_online('customers', until => 'swap')");
unlike($err, qr/ERROR/, 'a table that partitions reference is converted') or diag($err);
$errors = stop_shoppers($clients);
unlike($errors, qr/ERROR/, 'clients of a referencing table see no error') or diag($errors);
$err = run_in($node, $used, "CALL snowflake_convert_online('customers')");
unlike($err, qr/ERROR/, 'the default of a referenced table is set') or diag($err);
is(rows_are_whole($used), '', 'no row of a referencing table is lost or changed');
is(nothing_is_left($node, $used), '', 'nothing is left of a conversion of a referenced table');
is($node->safe_psql($used, 'DELETE FROM customers WHERE id = 100; SELECT count(*) FROM orders WHERE customer = 100'), '0', 'foreign keys of partitions act');

#
# A partitioned table that others reference
#
my $referenced = new_database('referenced');
create_tables($referenced);
$node->safe_psql(
	$referenced, q{
	CREATE TABLE lines (id serial PRIMARY KEY, month int, "order" int, no int DEFAULT 1,
		CONSTRAINT lines_order FOREIGN KEY (month, "order") REFERENCES orders (month, id) ON UPDATE CASCADE ON DELETE CASCADE DEFERRABLE);
	CREATE INDEX ON lines (month, "order");
	CREATE TABLE notes (month int, "order" bigint, FOREIGN KEY (month, "order") REFERENCES orders (month, id) ON UPDATE CASCADE NOT VALID);
	CREATE TABLE parts (line int REFERENCES lines ON DELETE CASCADE, winter int, month int, FOREIGN KEY (month, winter) REFERENCES winter (month, id));
	COMMENT ON CONSTRAINT lines_order ON lines IS 'lines';
	INSERT INTO lines (month, "order") SELECT month, id FROM orders;
	INSERT INTO notes SELECT month, id FROM orders WHERE id % 7 = 0;
	INSERT INTO parts SELECT id FROM lines;
	ANALYZE});
my $foreign_keys = q{
	SELECT conname, conrelid::regclass, pg_get_constraintdef(oid), obj_description(oid) FROM pg_constraint
	WHERE contype = 'f' AND conparentid = 0 ORDER BY conrelid::regclass::text, 1};
$before = describe($referenced) . $node->safe_psql($referenced, $foreign_keys);
run_in($node, $referenced, "CALL snowflake_convert_online('orders', 'id', until => 'foreign keys')");
is(run_in($node, $referenced, "SELECT snowflake_convert_undo('orders', 'id')"), '', 'the conversion of a referenced table can be undone');
is(differences($before, describe($referenced) . $node->safe_psql($referenced, $foreign_keys)), '', 'after undo, all is as before');
is(nothing_is_left($node, $referenced), '', 'after undo, nothing is left');
my $foreign = $node->safe_psql($referenced, $foreign_keys);
$clients = start_movers($referenced, rate => 100);
$err = run_in($node, $referenced, "CALL snowflake_convert_online('orders', 'id', until => 'swap')");
unlike($err, qr/ERROR/, 'a partitioned table that others reference is converted') or diag($err);
$errors = stop_shoppers($clients);
unlike($errors, qr/ERROR/, 'clients see no error') or diag($errors);
is($node->safe_psql($referenced, $foreign_keys), $foreign, 'all foreign keys are as before');
like(run_in($node, $referenced, 'INSERT INTO lines (month, "order") VALUES (1, 1000000000)'), qr/violates foreign key constraint "lines_order"/, 'they are enforced');
$err = run_in($node, $referenced, "CALL snowflake_convert_online('orders', 'id')");
unlike($err, qr/ERROR/, 'the default is set') or diag($err);
is(rows_are_whole($referenced), '', 'no row of a referenced table is lost or changed');
is($node->safe_psql($referenced, 'SELECT count(*) FROM lines l JOIN orders o ON (o.month, o.id) = (l.month, l."order")'), $nrows, 'rows that reference them neither');
is(nothing_is_left($node, $referenced), '', 'nothing is left');

# An interruption between the swap and the validation of the foreign keys
$node->safe_psql(
	'postgres', q{
	CREATE TABLE keys (d int, id serial, PRIMARY KEY (d, id)) PARTITION BY LIST (d);
	CREATE TABLE keys1 PARTITION OF keys FOR VALUES IN (1);
	CREATE TABLE uses (d int, key int, CONSTRAINT uses_key FOREIGN KEY (d, key) REFERENCES keys);
	INSERT INTO keys (d) SELECT 1 FROM generate_series(1, 10);
	INSERT INTO uses SELECT d, id FROM keys});
run_in($node, 'postgres', "CALL snowflake_convert_online('keys', 'id', until => 'foreign keys')");
$node->safe_psql('postgres', $node->safe_psql('postgres', "SELECT statement FROM snowflake_convert_plan('keys', 'id') WHERE state LIKE 'next%'"));
is($node->safe_psql('postgres', "SELECT statement FROM snowflake_convert_plan('keys', 'id') WHERE state = 'next'"),
	'ALTER TABLE public.uses VALIDATE CONSTRAINT uses_key', 'after the swap, the foreign key is to be validated');
like(run_in($node, 'postgres', 'INSERT INTO uses VALUES (1, 99)'), qr/violates foreign key constraint "uses_key"/, 'it is enforced already');
like(run_in($node, 'postgres', "SELECT snowflake_convert_undo('keys', 'id')"), qr/ERROR:  cannot undo/, 'the swap cannot be undone');
unlike(run_in($node, 'postgres', "CALL snowflake_convert_online('keys', 'id')"), qr/ERROR/, 'the conversion continues');
is($node->safe_psql('postgres', q{SELECT convalidated FROM pg_constraint WHERE conname = 'uses_key'}), 't', 'the foreign key is validated');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left of an interrupted conversion');

#
# Kills
#
my $killed = new_database('killed');
create_tables($killed);
foreach my $n (1 .. $nkills)
{
	$clients = start_movers($killed, reconnect => 1, rate => 30);
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr($killed) . ' application_name=conversion', '-c',
			"CALL snowflake_convert_online('customers', batch_time => '5 ms', work_share => 0.3, until => 'swap')" ],
		'<' => \undef, '>' => '/dev/null', '2>' => \$err);
	my $end = time + 0.3 + rand(3);
	$run->pump_nb, sleep 0.02 while time < $end && $run->pumpable;
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'conversion'});
	eval { $run->finish };
	note 'terminated after ' . ($err =~ /.*(phase "[^"]+")/s ? $1 : 'nothing');
	stop_shoppers($clients);
	is(rows_are_whole($killed), '', 'no row is lost or changed when the conversion is terminated');
}
$err = run_in($node, $killed, "CALL snowflake_convert_online('customers')");
unlike($err, qr/ERROR/, 'the same call completes the conversion') or diag($err);
is(rows_are_whole($killed), '', 'no row is lost or changed');
is(nothing_is_left($node, $killed), '', 'nothing is left');

#
# A batch whose rows are moved after it has begun: with SKIP LOCKED, this is an error.
#
my $moved = new_database('moved');
$node->safe_psql(
	$moved, q{
	CREATE TABLE orders (month int NOT NULL, id serial, PRIMARY KEY (month, id)) PARTITION BY LIST (month);
	CREATE TABLE orders0 PARTITION OF orders FOR VALUES IN (0);
	CREATE TABLE orders1 PARTITION OF orders FOR VALUES IN (1);
	CREATE INDEX ON orders (id);
	INSERT INTO orders (month) SELECT g % 2 FROM generate_series(1, 40000) g});
my $moves = $node->basedir . '/moves.sql';
append_to_file($moves, "\\set id 2 * random(1, 20000) - :client_id\nUPDATE orders SET month = 1 - month WHERE id = :id;\n");
my $mover = IPC::Run::start([ 'pgbench', '-n', '-c', 2, '-j', 2, '-T', 1000, '-f', $moves, $node->connstr($moved) ],
	'<' => \undef, '>' => '/dev/null', '2>' => $moves . '.err');
$node->poll_query_until($moved, 'SELECT count(*) > 1000 FROM orders WHERE month <> id % 2') or die 'the clients do nothing';
$err = run_in($node, $moved, "CALL snowflake_convert_online('orders', 'id', batch_time => '5 s', work_share => 1, until => 'backfill')");
unlike($err, qr/ERROR/, 'rows that are moved during a batch do not end it') or diag($err);
$mover->signal('TERM');
eval { $mover->finish };
unlike(slurp_file($moves . '.err'), qr/ERROR/, 'and clients that move them see no error');
is($node->safe_psql($moved, 'SELECT count(*), count(DISTINCT id), bool_and(snowflake_new_id = id) FROM orders'), '40000|40000|t', 'all rows are filled');

# A partition that is detached while it is filled
$node->safe_psql(
	'postgres', q{
	CREATE TABLE parted (d int, id serial, PRIMARY KEY (d, id)) PARTITION BY LIST (d);
	SELECT format('CREATE TABLE parted%s PARTITION OF parted FOR VALUES IN (%1$s)', g) FROM generate_series(1, 2) g \gexec
	INSERT INTO parted (d) SELECT 1 FROM generate_series(1, 30000)});
my $filling = IPC::Run::start(
	[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "CALL snowflake_convert_online('parted', 'id', until => 'backfill', batch_time => '1 ms', work_share => 0.05)" ],
	'<' => \undef, '>' => '/dev/null', '2>' => \$err);
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_attribute WHERE attrelid = 'parted1'::regclass AND attname = 'snowflake_new_id'})
  && $node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM parted1 WHERE snowflake_new_id IS NOT NULL') or die 'nothing is filled';
$node->safe_psql('postgres', 'ALTER TABLE parted DETACH PARTITION parted1');
$filling->finish;
like($err, qr/the next phase is "indexes"/, 'a partition that is detached while it is filled is left out') or diag($err);
unlike($err, qr/ERROR/, 'and the conversion continues');
is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT table_name, ',') FROM snowflake_convert_plan('parted', 'id') WHERE state <> 'done' AND phase = 'backfill'}), '', 'the other one is filled');

#
# Many partitions
#
$node->safe_psql('postgres', q{
	CREATE TABLE many (id serial, day int NOT NULL, v int, PRIMARY KEY (day, id)) PARTITION BY LIST (day);
	SELECT format('CREATE TABLE many%s PARTITION OF many FOR VALUES IN (%1$s)', g) FROM generate_series(1, 40) g \gexec
	CREATE INDEX ON many (id);
	INSERT INTO many (day, v) SELECT 1 + g % 40, g FROM generate_series(1, 10000) g});
$node->append_conf('postgresql.conf', "max_locks_per_transaction = 10\nmax_connections = 20");
$node->restart;
like(run_in($node, 'postgres', "CALL snowflake_convert_online('many', 'id')"),
	qr/ERROR:.*\nDETAIL:  the swap of table public\.many needs about 5\d\d locks, and the server has room for \d+\nHINT:  Nothing was changed\. Increase max_locks_per_transaction/,
	'more partitions than can be locked');
$node->append_conf('postgresql.conf', 'max_locks_per_transaction = 100');
$node->restart;
$err = run_in($node, 'postgres', "CALL snowflake_convert_online('many', 'id')");
unlike($err, qr/ERROR/, 'a table with 40 partitions is converted') or diag($err);
note $_ foreach $err =~ /^NOTICE:  (public\.many: .*with the lock)$/mg;
is($node->safe_psql('postgres', 'SELECT count(*), sum(id), count(*) FILTER (WHERE id = v) FROM many'), '10000|50005000|10000', 'all rows of 40 partitions are there');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_index WHERE indrelid IN (SELECT relid FROM pg_partition_tree('many')) AND indisvalid}), '82', 'all indexes of 40 partitions are there');

#
# Obstacles
#
my @obstacles = (
	[ 'CREATE TABLE o (id int PRIMARY KEY) PARTITION BY RANGE (id)', 'column id of table o is part of the partition key' ],
	[ 'CREATE TABLE o (id serial, d int, PRIMARY KEY (d, id)) PARTITION BY LIST (d); CREATE TABLE o1 PARTITION OF o FOR VALUES IN (1) PARTITION BY LIST (id)',
	  'column id of table o1 is part of the partition key' ],
	[ 'CREATE TABLE o (id serial, d int, PRIMARY KEY (d, id)) PARTITION BY LIST (d); CREATE TABLE r (o int, d int, FOREIGN KEY (d, o) REFERENCES o) PARTITION BY LIST (d)',
	  'foreign key r_d_o_fkey of table r is between partitioned tables' ],
	[ 'CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE TABLE o (id serial, d int) PARTITION BY LIST (d); CREATE FOREIGN TABLE o1 PARTITION OF o FOR VALUES IN (1) SERVER s',
	  'column id of table o1 belongs to a foreign table' ],
	[ 'CREATE TABLE o (id serial, d int) PARTITION BY LIST (d); CREATE TABLE o1 PARTITION OF o (PRIMARY KEY (id, d)) FOR VALUES IN (1); CREATE UNIQUE INDEX oi ON o (id, d)',
	  'constraint o1_pkey of partition o1 belongs to index oi, which has another constraint or none' ],
	[ 'CREATE TABLE o (id serial, d int) PARTITION BY LIST (d); CREATE TABLE o1 PARTITION OF o FOR VALUES IN (1); CREATE PUBLICATION p FOR TABLE o (id, d) WITH (publish_via_partition_root)',
	  'publication p publishes updates of table o1, which has no replica identity' ],
	[ 'CREATE TABLE o (id serial, d int) PARTITION BY LIST (d); CREATE TABLE o1 PARTITION OF o FOR VALUES IN (1); CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$; CREATE VIEW ov AS SELECT f(id) FROM o1',
	  'view ov cannot be created again: function f\(bigint\) does not exist' ],
);
foreach my $obstacle (@obstacles)
{
	my ($create, $line) = @$obstacle;

	$node->safe_psql('postgres', $create);
	like(run_in($node, 'postgres', "CALL snowflake_convert_online('o', 'id')") =~ s/public\.//gr, qr/ERROR:  cannot convert column "id" of table o\nDETAIL:  (?:.*\n)*?$line/, "obstacle: $create");
	like(run_in($node, 'postgres', "SELECT * FROM snowflake_convert_plan('o', 'id')") =~ s/public\.//gr, qr/$line/, 'the plan has it, too');
	$node->safe_psql('postgres', 'SET client_min_messages = warning; DROP PUBLICATION IF EXISTS p; DROP TABLE IF EXISTS r, o CASCADE; DROP FOREIGN DATA WRAPPER IF EXISTS w CASCADE');
}
$node->safe_psql('postgres', 'CREATE TABLE o (id serial, d int) PARTITION BY LIST (d); CREATE TABLE o1 PARTITION OF o FOR VALUES IN (1)');
like(run_in($node, 'postgres', "CALL snowflake_convert_online('o1', 'id')") =~ s/public\.//gr, qr/ERROR:.*\nDETAIL:  .*column id of table o1 is inherited from table o/, 'a partition alone');

$node->stop;
done_testing();
