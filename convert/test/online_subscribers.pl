# snowflake_convert_online() and logical replication: the tables of a subscriber are
# converted while changes stream in, and then those of the publisher.

use SnowflakeTest::Online;
use SnowflakeTest;

my $publisher = new_server('publisher', 'fsync = off', 'wal_level = logical', 'max_wal_senders = 10');
my $subscriber = new_server('subscriber', 'fsync = off', 'wal_level = logical', 'max_wal_senders = 10', 'snowflake.worker_id = 1', 'wal_retrieve_retry_interval = 100ms');
my $connstr = $publisher->connstr . ' dbname=postgres';

# Have both servers begin with these tables, and replicate them.
sub replicate ($tables, $publication, $options)
{
	foreach my $node ($subscriber, $publisher)
	{
		sql($node, 'SET client_min_messages = warning; DROP SUBSCRIPTION IF EXISTS s') if $node == $subscriber;
		sql($node, "SET client_min_messages = warning; DROP PUBLICATION IF EXISTS p; DROP TABLE IF EXISTS b, a; $tables");
	}
	sql($publisher, "INSERT INTO a (v) SELECT generate_series(1, 1000); INSERT INTO b (a) SELECT generate_series(1, 1000);
		CREATE PUBLICATION p FOR TABLE $publication");
	sql($subscriber, "CREATE SUBSCRIPTION s CONNECTION '$connstr' PUBLICATION p $options");
	$subscriber->wait_for_subscription_sync($publisher, 's');
	return;
}

# Set an option of the subscription, with its worker ended before: one that restarts by
# itself may find its origin still in use, and says ERROR.
sub set_option ($option)
{
	sql($subscriber, 'ALTER SUBSCRIPTION s DISABLE');
	wait_until_true($subscriber, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type ~ '^logical replication.*worker$'},
			'the worker of the subscription does not end');
	sql($subscriber, "ALTER SUBSCRIPTION s SET ($option)");
	sql($subscriber, 'ALTER SUBSCRIPTION s ENABLE');
	return;
}

# Clients that write the publisher's tables, each transaction in a session of its own.
sub start_writers
{
	my $file = $publisher->basedir . '/write.sql';

	append_to_file($file, q{
\set id random(1, 1000)
INSERT INTO a (v) VALUES (:id) RETURNING id AS new \gset
INSERT INTO b (a) VALUES (:new), (:id);
UPDATE a SET v = v + 1 WHERE id = :id;
UPDATE b SET a = :new WHERE a = :id AND random() < 0.3;
DELETE FROM b WHERE a = :new AND random() < 0.3;
}) unless -e $file;
	my %writers = (err => '');
	$writers{run} = IPC::Run::start([ 'pgbench', '-n', '-C', '-c', 2, '-T', 1000, '--rate', 40, '-f', $file, $publisher->connstr('postgres') ],
		'<' => \undef, '>' => '/dev/null', '2>' => \$writers{err});
	return \%writers;
}

# Convert on a server while changes stream to the other.
sub convert_while_streaming ($node, $name, $arguments)
{
	my $offset = -s $subscriber->logfile;
	my $writers = start_writers();
	my $rows = sql($node, 'SELECT count(*) FROM a');

	wait_until_true($subscriber, "SELECT count(*) > $rows FROM a", 'no changes stream in');
	my $err = convert_online($node, 'postgres', "'a', batch_time => '5 ms'$arguments");
	unlike($err, qr/ERROR/, "$name: the conversion succeeds") or diag($err);
	$rows = sql($publisher, 'SELECT count(*) FROM a');
	wait_until_true($subscriber, "SELECT count(*) > $rows FROM a", 'no changes stream in after the conversion');
	$writers->{run}->signal('TERM');
	eval { $writers->{run}->finish };
	# Their last transactions may still be running.
	wait_until_true($publisher, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'});
	unlike($writers->{err}, qr/ERROR/, "$name: the clients of the publisher see no error") or diag($writers->{err});
	$publisher->wait_for_catchup('s');
	my @contents = map { sql($_, q{
		SELECT count(*), md5(string_agg(format('%s %s', id, v), ',' ORDER BY id)) FROM a
		UNION ALL SELECT count(*), md5(string_agg(format('%s %s', id, a), ',' ORDER BY id)) FROM b}) } $publisher, $subscriber;
	is($contents[1], $contents[0], "$name: the subscriber has what the publisher has");
	is(sql($node, q{SELECT string_agg(format('%s.%s', attrelid::regclass, attname), ' ' ORDER BY attrelid::regclass::text, attname) FROM pg_attribute
		WHERE attrelid IN ('a'::regclass, 'b'::regclass) AND atttypid = 'int8'::regtype}), 'a.id b.a', "$name: the columns are bigint");
	unlike(slurp_file($subscriber->logfile, $offset), qr/ERROR/, "$name: the subscription sees no error");
	is(nothing_is_left($node, 'postgres'), '', "$name: nothing is left");
	return;
}

my $tables = q{
	CREATE TABLE a (id serial PRIMARY KEY, v int);
	CREATE TABLE b (id serial PRIMARY KEY, a int NOT NULL REFERENCES a);
	CREATE INDEX ON b (a)};

# With a column list
replicate($tables, 'a (id, v), b (id, a)', '');
convert_while_streaming($subscriber, 'subscriber', '');
convert_while_streaming($publisher, 'publisher with a column list', '');

# Without one: the subscriber has the new columns.
replicate($tables, 'a, b', '');
like(convert_online($publisher, 'postgres', "'a'"), qr/ERROR:  cannot convert.*\nDETAIL:  publication p has all columns of table public\.a/, 'a publication without a column list');
convert_while_streaming($subscriber, 'subscriber', '');
sql($subscriber, 'ALTER TABLE a ADD snowflake_new_id bigint; ALTER TABLE b ADD snowflake_new_a bigint');
convert_while_streaming($publisher, 'publisher without a column list', ', subscribers_ready => true');
sql($subscriber, 'ALTER TABLE a DROP snowflake_new_id; ALTER TABLE b DROP snowflake_new_a');
sql($publisher, 'INSERT INTO a (v) VALUES (-1)');
$publisher->wait_for_catchup('s');
is(sql($subscriber, 'SELECT count(*) FROM a WHERE v = -1'), '1', 'the columns can be dropped on the subscriber');

# A subscription finds rows of a table without a key by comparing all columns.
my $without_key = q{CREATE TABLE a (id serial PRIMARY KEY, v int);
	CREATE TABLE b (id serial, a int NOT NULL REFERENCES a); ALTER TABLE b REPLICA IDENTITY FULL};
my $obstacle = qr/ERROR:  cannot convert.*\nDETAIL:  subscription s has table public\.b, which has no primary key or replica identity\n/;
replicate($without_key, 'a, b', '');
like(convert_online($subscriber, 'postgres', "'a'"), $obstacle, 'a subscriber without a key');
like(convert_online($publisher, 'postgres', "'a', subscribers_ready => true"),
	qr/ERROR:  cannot convert.*\nDETAIL:  publication p has table public\.b, which has no primary key or replica identity\n/, 'a publisher without a key');
sql($subscriber, 'ALTER TABLE b ADD PRIMARY KEY (id) DEFERRABLE');
like(convert_online($subscriber, 'postgres', "'a'"), $obstacle, 'a key that is deferrable');
sql($subscriber, 'ALTER TABLE b DROP CONSTRAINT b_pkey, ADD PRIMARY KEY (id)');
unlike(convert_online($subscriber, 'postgres', "'a', until => 'foreign keys'"), qr/ERROR/, 'a subscriber with a key');
sql($publisher, 'UPDATE b SET a = 1 WHERE id = 7; DELETE FROM b WHERE id = 8');
$publisher->wait_for_catchup('s');
is(sql($subscriber, 'SELECT id, a FROM b WHERE id IN (7, 8)'), '7|1', 'a subscriber with a key receives changes during a conversion');
# A table that is received through its parent
replicate(q{CREATE TABLE a (id serial PRIMARY KEY, v int);
	CREATE TABLE b (id serial, a int NOT NULL REFERENCES a) PARTITION BY RANGE (id);
	CREATE TABLE b_1 PARTITION OF b DEFAULT; ALTER TABLE b_1 REPLICA IDENTITY FULL},
	'a, b WITH (publish_via_partition_root)', '');
like(convert_online($subscriber, 'postgres', "'a'"), qr/DETAIL:  subscription s has table public\.b_1, which has no primary key or replica identity\n/, 'a partition without a key');

# In binary, an integer is no bigint.
replicate($tables, 'a (id, v), b (id, a)', 'WITH (binary)');
like(convert_online($subscriber, 'postgres', "'a'"), qr/ERROR:  cannot convert.*\nDETAIL:  subscription s receives table public\.a in binary format\nsubscription s receives table public\.b in binary format/,
	'a subscription in binary format');
set_option('binary = false');
convert_while_streaming($subscriber, 'subscription that was binary', '');
convert_while_streaming($publisher, 'its publisher', '');
set_option('binary = true');
sql($publisher, 'INSERT INTO a (v) VALUES (-1)');
$publisher->wait_for_catchup('s');
is(sql($subscriber, 'SELECT count(*) FROM a WHERE v = -1'), '1', 'afterwards, it can be binary again');

sql($subscriber, 'DROP SUBSCRIPTION s');
done_testing();
