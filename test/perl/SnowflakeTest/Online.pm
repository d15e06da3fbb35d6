# Tables with everything that an online conversion carries over, clients that use
# them, and what has to be true of them at any moment.

package SnowflakeTest::Online;

use v5.36;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest::Servers;
use Test::More;
use Time::HiRes qw(time sleep);

our @EXPORT = qw(
  run_in create convert_online start_converting wait_until_said finish_converting converting_pid
  create_shop describe_shop start_shoppers stop_shoppers
  shop_is_whole nothing_is_left
);

my $application = 'conversion';

# Statements of a session, each sent by itself; returns standard error, and in a context of
# lists standard output, too.
sub run_in ($node, $database, @statements)
{
	my ($out, $err);

	IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr($database), map { ('-c', $_) } @statements ],
		'<' => \undef, '>' => \$out, '2>' => \$err);
	return wantarray ? ($err, $out) : $err;
}

# Begin with these tables, in an empty schema "shop".
sub create ($node, $statements)
{
	sql($node, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop; SET search_path = shop, public; $statements");
	return;
}

# Call snowflake_convert_online() with arguments; returns what it says.
sub convert_online ($node, $database, $arguments, %options)
{
	return finish_converting(start_converting($node, $database, $arguments, undef, %options));
}

# Start a call, and wait until it has said something that matches.  Options:
#
#	connection		more of the connection string, such as a user
#	before, after	lists of statements of the same session, which return $call->{out}
sub start_converting ($node, $database, $arguments, $said = undef, %options)
{
	my %call = (out => '', err => '');
	my @statements = (@{ $options{before} // [] }, "CALL snowflake_convert_online($arguments)", @{ $options{after} // [] });

	$call{run} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr($database) . " application_name=$application " . ($options{connection} // ''),
			map { ('-c', $_) } @statements ],
		'<' => \undef,
		'>' => \$call{out},
		'2>' => \$call{err});
	wait_until_said(\%call, $said) if defined $said;
	return \%call;
}

# Wait until a call has said something.
sub wait_until_said ($call, $said)
{
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;

	while ($call->{err} !~ $said)
	{
		die "the conversion does not say $said, but $call->{err}" if time > $end || !$call->{run}->pumpable;
		$call->{run}->pump_nb;
		sleep 0.02;
	}
	return;
}

# Wait for the end of a call; returns all that it said.
sub finish_converting ($call)
{
	eval { $call->{run}->finish };
	return $call->{err};
}

# The process of a call that has been started.
sub converting_pid ($node)
{
	my $query = "FROM pg_stat_activity WHERE application_name = '$application' AND query LIKE 'CALL%'";

	wait_until_true($node, "SELECT count(*) = 1 $query");
	return sql($node, "SELECT pid $query");
}

# The tables, with so many orders.
sub create_shop ($node, $database, $norders)
{
	$node->safe_psql(
		$database, qq{
		CREATE TABLE audit (id bigint, op text);
		CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN NEW.updated_at := clock_timestamp(); IF NEW.id IS NULL THEN RAISE ''no id''; END IF; RETURN NEW; END';
		CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN INSERT INTO audit VALUES (NEW.id, TG_OP); RETURN NULL; END';
		CREATE TABLE orders (
			id serial PRIMARY KEY, parent_id int, region int NOT NULL, customer text NOT NULL,
			total numeric, note text, updated_at timestamptz,
			CONSTRAINT orders_id_region UNIQUE (id, region), CONSTRAINT no_self CHECK (parent_id <> id));
		CREATE TABLE lines (
			id bigserial PRIMARY KEY, order_id int NOT NULL, no int NOT NULL, amount int,
			CONSTRAINT lines_no UNIQUE (order_id, no));
		CREATE TABLE events (order_id int NOT NULL, kind int);
		INSERT INTO orders (parent_id, region, customer, total, note)
		SELECT CASE WHEN g > 100 AND g % 20 = 0 THEN g - 100 END, g % 50, 'customer ' || g, g % 1000, 'old'
		FROM generate_series(1, $norders) g;
		INSERT INTO lines (order_id, no, amount) SELECT g, n, g % 100 FROM generate_series(1, $norders) g, generate_series(1, 2) n;
		INSERT INTO events SELECT g, 1 FROM generate_series(1, $norders, 2) g;
		ALTER TABLE orders ADD CONSTRAINT orders_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES orders ON DELETE SET NULL;
		ALTER TABLE lines ADD CONSTRAINT lines_order_id_fkey FOREIGN KEY (order_id) REFERENCES orders ON DELETE CASCADE ON UPDATE CASCADE;
		ALTER TABLE events ADD CONSTRAINT events_order_id_fkey FOREIGN KEY (order_id) REFERENCES orders DEFERRABLE INITIALLY DEFERRED NOT VALID;
		CREATE INDEX orders_region ON orders (region, id DESC) WITH (fillfactor = 80);
		CREATE INDEX orders_parent ON orders (parent_id) WHERE parent_id IS NOT NULL;
		CREATE INDEX orders_mod ON orders ((id % 100));
		CREATE INDEX orders_included ON orders (region) INCLUDE (id);
		CREATE UNIQUE INDEX orders_nulls ON orders (id, note) NULLS NOT DISTINCT WHERE id > 5;
		CREATE INDEX orders_customer ON orders (customer);
		ALTER INDEX orders_mod ALTER COLUMN 1 SET STATISTICS 33;
		ALTER TABLE orders CLUSTER ON orders_region;
		ALTER TABLE lines REPLICA IDENTITY USING INDEX lines_no;
		CREATE STATISTICS orders_stat (dependencies, ndistinct) ON id, region FROM orders;
		ALTER STATISTICS orders_stat SET STATISTICS 77;
		ALTER TABLE orders ALTER id SET STATISTICS 500;
		CREATE VIEW order_totals AS SELECT o.id, o.region, o.customer, sum(l.amount) AS amount
			FROM orders o LEFT JOIN lines l ON l.order_id = o.id GROUP BY o.id;
		CREATE VIEW big_orders WITH (security_barrier) AS SELECT id, amount FROM order_totals WHERE amount > 50;
		ALTER VIEW big_orders ALTER amount SET DEFAULT 5;
		CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER instead INSTEAD OF INSERT ON big_orders FOR EACH ROW EXECUTE FUNCTION instead();
		ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
		CREATE POLICY readers ON orders FOR SELECT TO regress_reader USING (id > 0 AND region < 40);
		CREATE POLICY writers ON orders AS RESTRICTIVE FOR INSERT WITH CHECK (parent_id > 0);
		GRANT SELECT (id, region), UPDATE (id) ON orders TO regress_reader WITH GRANT OPTION;
		GRANT SELECT ON big_orders TO PUBLIC;
		GRANT SELECT (amount) ON order_totals TO regress_reader;
		CREATE TRIGGER touch BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION touch();
		CREATE TRIGGER audit AFTER UPDATE OF id, total ON orders FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION audit();
		CREATE TRIGGER disabled AFTER UPDATE OF id ON orders FOR EACH ROW EXECUTE FUNCTION audit();
		ALTER TABLE orders DISABLE TRIGGER disabled;
		CREATE PUBLICATION partly FOR TABLE orders (id, region, total) WHERE (id > 0), lines (id, order_id, no);
		COMMENT ON COLUMN orders.id IS 'the key';
		COMMENT ON COLUMN lines.order_id IS 'the order';
		COMMENT ON INDEX orders_region IS 'by region';
		COMMENT ON CONSTRAINT orders_pkey ON orders IS 'primary';
		COMMENT ON CONSTRAINT no_self ON orders IS 'check';
		COMMENT ON CONSTRAINT lines_order_id_fkey ON lines IS 'foreign';
		COMMENT ON STATISTICS orders_stat IS 'statistics';
		COMMENT ON TRIGGER audit ON orders IS 'audit';
		COMMENT ON POLICY readers ON orders IS 'readers';
		COMMENT ON VIEW big_orders IS 'big ones';
		COMMENT ON COLUMN big_orders.amount IS 'amount';
		COMMENT ON TRIGGER instead ON big_orders IS 'instead'});
	$node->safe_psql($database, 'VACUUM ANALYZE');
}

# What psql says of all of it.
sub describe_shop ($node, $database)
{
	return $node->safe_psql(
		$database, q{
		\pset tuples_only off
		\pset footer on
		\d+ orders
		\d+ lines
		\d+ events
		\d+ order_totals
		\d+ big_orders
		\dRp+
		\dX
		SELECT c.relname, i.indisclustered, i.indisreplident, s.stxstattarget, a.attstattarget
		FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
			LEFT JOIN pg_statistic_ext s ON s.stxrelid = c.oid
			LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attstattarget > 0
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('i', 'r', 'v') ORDER BY 1;
		SELECT c.relname, a.attname, CASE WHEN a.attnum IS NULL THEN c.relacl ELSE a.attacl END
		FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attacl IS NOT NULL AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v', 'S') AND c.relname <> 'orders_id_seq' ORDER BY 1, 2;
		SELECT polname, polcmd, polroles, polpermissive, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)
		FROM pg_policy ORDER BY 1;
		SELECT attrelid::regclass, attname FROM pg_attribute
		WHERE attrelid IN (SELECT indexrelid FROM pg_index WHERE indrelid::regclass::text IN ('orders', 'lines', 'events')) ORDER BY 1, 2;
		SELECT description FROM pg_description d WHERE objoid >= 16384 AND description !~ '[\n;]' ORDER BY 1});
}

# Clients that use all tables, each transaction in a session of its own if they are to
# reconnect.
sub start_shoppers ($node, $database, $norders, %options)
{
	my $file = $node->basedir . "/$database.sql";

	append_to_file($file, qq{
\\set order random(1, $norders)
\\set other random(1, $norders)
\\set no random(10, 100000)
BEGIN;
INSERT INTO orders (parent_id, region, customer, total, note) VALUES (NULL, 7, 'new', 5, 'new') RETURNING id AS new \\gset
INSERT INTO lines (order_id, no, amount) VALUES (:new, 1, 7), (:new, 2, 7);
INSERT INTO events (order_id, kind) VALUES (:new, 3);
COMMIT;
UPDATE orders SET total = total + 1 WHERE id = :order;
BEGIN;
UPDATE lines SET amount = amount + 1 WHERE order_id = :order;
UPDATE orders SET note = note WHERE id = :order;
COMMIT;
BEGIN;
UPDATE orders SET total = total + 1 WHERE id = :other;
UPDATE lines SET amount = amount + 1 WHERE order_id = :other AND no = 1;
COMMIT;
INSERT INTO lines (order_id, no, amount) SELECT id, :no, 1 FROM orders WHERE id = :new;
DELETE FROM lines WHERE order_id = :new AND no = :no;
SELECT amount FROM order_totals WHERE id = :order;
DELETE FROM events WHERE order_id = :new;
DELETE FROM orders WHERE id = :new AND random() < 0.5;
});
	my %clients = (file => $file, err => "$file.err");
	$clients{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', $options{clients} // 2, '-j', 2, '-T', 1000,
			($options{reconnect} ? ('-C') : ()), '-M', $options{protocol} // 'simple',
			'--rate', $options{rate} // 40, '--max-tries', $options{tries} // 1, '-f', $file,
			$node->connstr($database) ],
		'<' => \undef,
		'>' => '/dev/null',
		'2>' => $clients{err});
	return \%clients;
}

sub stop_shoppers ($clients)
{
	$clients->{run}->signal('TERM');
	eval { $clients->{run}->finish };
	my $errors = slurp_file($clients->{err});
	unlink $clients->{file}, $clients->{err};
	return $errors;
}

# Is every row there, and right?  Returns what is wrong.
sub shop_is_whole ($node, $database, $norders)
{
	return $node->safe_psql(
		$database, qq{
		SELECT 'orders', count(*) FROM orders WHERE note = 'old' HAVING count(*) <> $norders
		UNION ALL
		SELECT 'id', count(*) FROM orders WHERE note = 'old' AND customer <> 'customer ' || id HAVING count(*) > 0
		UNION ALL
		SELECT 'parent', count(*) FROM orders WHERE note = 'old'
		AND parent_id IS DISTINCT FROM CASE WHEN id > 100 AND id % 20 = 0 THEN id - 100 END HAVING count(*) > 0
		UNION ALL
		SELECT 'lines', count(*) FROM lines WHERE order_id BETWEEN 1 AND $norders AND no <= 2 HAVING count(*) <> 2 * $norders
		UNION ALL
		SELECT 'events', count(*) FROM events WHERE kind = 1 HAVING count(*) <> ($norders + 1) / 2
		UNION ALL
		SELECT 'orphans', count(*) FROM (SELECT order_id FROM lines UNION ALL SELECT order_id FROM events) l
		WHERE NOT EXISTS (SELECT FROM orders o WHERE o.id = l.order_id) HAVING count(*) > 0});
}

# What a conversion has left behind.
sub nothing_is_left ($node, $database)
{
	return $node->safe_psql(
		$database, q{
		SELECT attname::text FROM pg_attribute WHERE attname ~ 'snowflake_(new|swap)' AND NOT attisdropped
		UNION ALL SELECT relname FROM pg_class WHERE relname ~ 'snowflake_(new|swap)'
		UNION ALL SELECT conname FROM pg_constraint WHERE conname ~ 'snowflake_(new|swap)'
		UNION ALL SELECT tgname FROM pg_trigger WHERE tgname ~ 'snowflake_(new|swap|validate)'
		UNION ALL SELECT stxname FROM pg_statistic_ext WHERE stxname ~ 'snowflake_(new|swap)'
		UNION ALL SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid});
}

1;
