# Rows of two servers that had the same worker ID, as docs/troubleshooting.md has it, while
# clients insert, change and delete rows: one that subscribes to the other, and two that
# replicate to each other.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/troubleshooting.md', 'Rows with equal IDs');
my $stopped = qr/(?:duplicate key value violates unique constraint|Key already exists in unique index)/;
my $number = qr/\b\d{19}\b/;

# What clients of a server have written is in a table that is not replicated.
my $schema = q{
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text, note text,
		created_at timestamptz DEFAULT clock_timestamp());
	CREATE TABLE lines (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), order_id bigint REFERENCES orders,
		product text, created_at timestamptz DEFAULT clock_timestamp());
	CREATE TABLE written (customer text PRIMARY KEY, note text);
	CREATE TABLE halt ();
	CREATE PUBLICATION shop FOR TABLE orders, lines;
	CREATE PROCEDURE add(c text, id bigint DEFAULT snowflake_nextval(), line bigint DEFAULT snowflake_nextval())
		BEGIN ATOMIC
			INSERT INTO orders (id, customer) VALUES (id, c);
			INSERT INTO lines (id, order_id, product) VALUES (line, id, c);
			INSERT INTO written VALUES (c);
		END;
	CREATE PROCEDURE remove(c text)
		BEGIN ATOMIC
			DELETE FROM lines WHERE product = c;
			DELETE FROM orders WHERE customer = c;
			DELETE FROM written WHERE customer = c;
		END;
	CREATE PROCEDURE change(c text, n text)
		BEGIN ATOMIC
			UPDATE orders SET note = n WHERE customer = c;
			UPDATE written SET note = n WHERE customer = c;
		END};

# A client that inserts an order in each turn, changes one of those that were there before it
# began, and deletes one of its own, until it has to stop.
sub start_client ($node, $deletes)
{
	my $name = $node->name . ' ' . sql($node, 'SELECT count(*) FROM written');
	my $delete = $deletes ? "CALL remove('$name, ' || i - 2);" : '';

	return start_queries($node, qq{
		DO \$\$
		DECLARE
			old text[] := ARRAY(SELECT customer FROM written ORDER BY customer);
		BEGIN
			FOR i IN 1 .. 1000000 LOOP
				CALL add('$name, ' || i);
				CALL change(old[1 + i % cardinality(old)], 'changed ' || i);
				IF i % 2 = 0 THEN $delete END IF;
				COMMIT;
				EXIT WHEN EXISTS (SELECT FROM halt);
				PERFORM pg_sleep(0.01);
			END LOOP;
		END
		\$\$});
}

sub stop_client ($node, $client)
{
	stop_writing({ node => $node, sessions => [$client] });
	sql($node, 'TRUNCATE halt');
	return;
}

# Run an example of the page on a server.
sub on ($node, $text, %replace) { return sql($node, $page->example($text, %replace)); }

# Run commands of the page, where a is the server at 10.0.0.1, and b the one that runs them.
sub shell ($a, $b, $text, %replace)
{
	system_or_bail(
		'bash', '-c',
		'set -o pipefail; '
		  . $page->example($text,
			"-d 'host=10.0.0.1 dbname=shop'" => "-X -d '" . $a->connstr . " dbname=postgres'",
			'-d shop' => "-X -d '" . $b->connstr . " dbname=postgres'",
			%replace));
	return;
}

# What is written on the servers is what all tables of a server have.
sub has_all ($node, @writers)
{
	my %orders = map { $_ => 1 } map { split /\n/, sql($_, 'SELECT customer, note FROM written') } @writers;
	my @found = split /\n/, sql($node, 'SELECT customer, note FROM orders');
	my $name = $node->name;

	cmp_ok(scalar(keys %orders), '>', 200, 'there are orders');
	is(scalar(@found), scalar(keys %orders), "$name has as many orders as were written");
	is(join("\n", grep { !$orders{$_} } @found), '', "$name has the orders that were written, with all changes");
	is(sql($node, 'SELECT count(*), count(*) FILTER (WHERE customer = product) FROM lines JOIN orders ON order_id = orders.id'),
		join('|', (scalar(@found)) x 2), "on $name, each order has its own line");
	return;
}

sub subscribe ($node, $name, $to, $options)
{
	sql($node, "CREATE SUBSCRIPTION $name CONNECTION '" . $to->connstr . " dbname=postgres' PUBLICATION shop WITH (copy_data = false$options)");
	return;
}

sub both ($a, $b, $both, $do) { $do->($_) foreach $both ? ($a, $b) : $b; return; }

# The page, from its beginning to its end.
sub follow ($both)
{
	my ($of_a, $of_b) = $both ? ('c', 'd') : ('a', 'b');
	my @conf = ('wal_level = logical', 'max_wal_senders = 8', 'snowflake.worker_id = 1', 'wal_retrieve_retry_interval = 100ms');
	my $a = new_server($of_a, @conf);
	my $b = new_server($of_b, @conf);
	my $options = $both ? ', origin = none' : '';

	sql($_, $schema) foreach $a, $b;
	subscribe($b, 'b_from_a', $a, $options);
	subscribe($a, 'a_from_b', $b, $options) if $both;

	# Rows that are replicated, and then, while nothing is, rows with equal IDs
	sql($a, "CALL add('replicated')");
	$a->wait_for_catchup('b_from_a');
	sql($b, 'ALTER SUBSCRIPTION b_from_a DISABLE');
	sql($a, 'ALTER SUBSCRIPTION a_from_b DISABLE') if $both;
	my $id = sql($a, 'SELECT snowflake_nextval()');
	my $add = sub ($node, $from) {
		my $name = $node->name;

		sql($node, "
			DO \$\$
			BEGIN
				FOR i IN $from .. $from + 99 LOOP
					CALL add('equal, $name ' || i, $id + i, $id + 1000 + i);
					IF i % 10 = 0 THEN
						COMMIT;
					END IF;
				END LOOP;
			END
			\$\$");
	};
	$add->($a, 1);
	$add->($b, 51);
	my @clients = start_client($a, 1);
	sql($b, 'ALTER SUBSCRIPTION b_from_a ENABLE');
	sql($a, 'ALTER SUBSCRIPTION a_from_b ENABLE') if $both;
	my $stops = qr/$stopped "orders_pkey"/;
	both($a, $b, $both, sub { $_[0]->wait_for_log($stops) });

	# Somebody has skipped one of the transactions before the page was read.
	if ($both)
	{
		$b->wait_for_log(qr/finished at ([0-9A-F\/]+)/);
		my ($lsn) = slurp_file($b->logfile) =~ /finished at ([0-9A-F\/]+)/;
		sql($b, "ALTER SUBSCRIPTION b_from_a SKIP (lsn = '$lsn')");
		$b->wait_for_log(qr/logical replication completed skipping transaction at LSN \Q$lsn\E/);
	}

	# b gets its own worker ID.  A row of a that has been deleted is not found equal to that of b.
	restart_with($b, 'snowflake.worker_id = 2');
	push @clients, start_client($b, 1);
	sql($a, "CALL remove('equal, $of_a 99')");

	on($a, 'a_from_b DISABLE') if $both;
	on($b, 'b_from_a DISABLE');
	on($_, 'CREATE VIEW made', '2026-11-21 12:00:00+00' => '2016-11-02') foreach $a, $b;
	on($b, 'CREATE UNLOGGED TABLE theirs');
	shell($a, $b, 'COPY theirs');
	on($b, 'INSERT INTO equal_ids' . "\n");
	shell($a, $b, 'COPY equal_ids') if $both;
	is(sql($b, 'SELECT table_name, count(*) FROM equal_ids GROUP BY 1 ORDER BY 1'),
		"lines|49\norders|49", 'rows with equal IDs are found');
	both($a, $b, $both, sub { is(scalar(grep { /^$number\|$number$/ } split /\n/, on($_[0], 'WITH renumbered')), 49, 'they get new IDs on ' . $_[0]->name) });
	my $offset = -s $b->logfile;
	on($a, 'a_from_b ENABLE') if $both;
	on($b, 'b_from_a ENABLE');
	$b->wait_for_log($stops, $offset);
	on($b, 'TRUNCATE equal_ids', '1330748468284497920' => $id + 99);
	on($b, 'WITH renumbered');
	$b->wait_for_log(qr/$stopped "lines_pkey"/, $offset);
	sql($b, q{TRUNCATE equal_ids; INSERT INTO equal_ids VALUES ('lines', } . ($id + 1099) . ')');
	on($b, 'WITH renumbered');

	if ($both)
	{
		# What was skipped
		$a->wait_for_catchup('b_from_a');
		stop_client($a, shift @clients);
		stop_client($b, shift @clients);
		@clients = map { start_client($_, 0) } $a, $b;
		foreach my $table ('orders', 'lines')
		{
			sql($b, $page->example('CREATE UNLOGGED TABLE missing') =~ s/orders/$table/r);
			shell($a, $b, 'COPY missing', 'COPY orders' => "COPY $table");
			my ($now, $arrived) = $page->example('SELECT replay_lsn') =~ /^(SELECT pg_current_wal_lsn\(\);)\n(.+)/s;
			my $lsn = sql($a, $now);
			wait_until_true($a, $arrived =~ s/'0\/\w+'/'$lsn'/r);
			sql($b, $page->example('pg_replication_origin_session_setup') =~ s/\borders\b/$table/r);
		}
	}
	else
	{
		$page->take($_) foreach 'a_from_b DISABLE', 'a_from_b ENABLE', 'COPY equal_ids', 'LIKE orders', 'COPY missing', 'SELECT replay_lsn', 'pg_replication_origin_session_setup';
	}

	stop_client($a, $clients[0]);
	stop_client($b, $clients[1]);
	$a->wait_for_catchup('b_from_a');
	$b->wait_for_catchup('a_from_b') if $both;
	has_all($b, $a, $b);
	has_all($a, $a, $b) if $both;
	my $rows = 'SELECT md5(string_agg(orders::text, chr(10) ORDER BY id)), (SELECT md5(string_agg(lines::text, chr(10) ORDER BY id)) FROM lines) FROM orders';
	is(sql($b, $rows), sql($a, $rows), 'both servers have the same rows') if $both;
	sql($a, 'DROP SUBSCRIPTION a_from_b') if $both;
	sql($b, 'DROP SUBSCRIPTION b_from_a');
	$_->stop foreach $a, $b;
	return;
}

follow(0);
SKIP:
{
	skip 'subscriptions have no origin before PostgreSQL 16', 1 if `pg_config --version` =~ /^PostgreSQL 15/;
	follow(1);
}
Page::all_taken();
