# snowflake_convert_online() and transactions that have used a table, and change it while
# the conversion waits for them: they continue, and the conversion begins again.

use PostgreSQL::Test::BackgroundPsql;
use SnowflakeTest::Online;
use SnowflakeTest;

# Nobody looks for a deadlock by himself, and what waits can be seen to wait.
my $node = new_server('main', 'fsync = off', 'autovacuum = off', 'deadlock_timeout = 60s');
my $patient = q{lock_wait => '4 s'};

sql($node, q{
	CREATE TABLE customers (id serial PRIMARY KEY, name text, CHECK (id > 0));
	CREATE TABLE orders (id serial PRIMARY KEY, customer int REFERENCES customers);
	INSERT INTO customers SELECT FROM generate_series(1, 10);
	INSERT INTO orders (customer) SELECT id FROM customers});

# Wait until sessions of an application wait for a lock of a kind.
sub wait_for ($call, $application, $lock)
{
	wait_until_true($node, "SELECT count(*) > 0 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = '$application' AND NOT granted AND $lock",
		"$application does not wait for $lock, the conversion says $call->{err}");
	return;
}

# Each phase that waits for clients.  The last one waits for sessions older than the swap.
my $client;
foreach my $case (
	[ 'prepare', undef, 'customers', 'AccessExclusiveLock' ],
	[ 'foreign keys', 'indexes', 'customers', 'ShareRowExclusiveLock' ],
	[ 'swap', 'foreign keys', 'orders', 'AccessExclusiveLock' ],
	[ 'default', 'swap', 'customers', 'AccessExclusiveLock' ])
{
	my ($phase, $before, $table, $mode) = @$case;

	unlike(convert_online($node, 'postgres', "'customers', until => '$before'"), qr/ERROR/, "the phases before phase $phase") if defined $before;
	$client = $node->background_psql('postgres');
	$client->query_safe("BEGIN; UPDATE $table SET id = id WHERE id = 1");
	my $call = start_converting($node, 'postgres', "'customers', until => '$phase', $patient");
	wait_for($call, 'conversion', "relation = '$table'::regclass AND mode = '$mode'");
	$client->{stderr} = '';
	$client->query("ALTER TABLE $table ADD COLUMN extra int; ALTER TABLE $table DROP COLUMN extra; COMMIT");
	unlike($client->{stderr}, qr/ERROR/, "phase $phase: a transaction that it waits for changes the table");
	unlike(finish_converting($call), qr/ERROR/, "phase $phase: the conversion succeeds");
	$client->quit;
}
$client = $node->background_psql('postgres');
is(sql($node, q{SELECT string_agg(attrelid::regclass::text, ' ' ORDER BY attrelid::regclass::text) FROM pg_attribute
	WHERE atttypid = 'bigint'::regtype AND (attrelid, attname) IN (('customers'::regclass, 'id'), ('orders'::regclass, 'customer'))}),
	'customers orders', 'the tables are converted');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');

# A lock is not requested while somebody waits for the conversion, who has what it needs.
# It is held while it calls the generator.
sql($node, q{
	CREATE FUNCTION held_id() RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		IF EXISTS (SELECT FROM pg_locks WHERE locktype = 'relation' AND relation = 'public.customers'::regclass
			AND pid = pg_backend_pid() AND mode = 'ShareUpdateExclusiveLock') THEN
			PERFORM pg_advisory_xact_lock_shared(7);
		END IF;
		RETURN public.snowflake_nextval();
	END $$});
my $holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(7)');
my $call = start_converting($node, 'postgres', "'customers', generator => 'held_id()', $patient");
wait_for($call, 'conversion', q{locktype = 'advisory'});
$client->query_safe(q{SET application_name = 'client'; BEGIN; SELECT FROM customers});
my $waiting = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=waiting',
	'-c', 'BEGIN', '-c', 'SELECT FROM customers', '-c', 'LOCK TABLE orders IN ACCESS EXCLUSIVE MODE', '-c', 'COMMIT' ], '<' => \undef, '>' => \my $out, '2>' => \my $err);
wait_for($call, 'waiting', q{relation = 'orders'::regclass});
$holder->query_safe('SELECT pg_advisory_unlock(7)');
$waiting->finish;
is($err, '', 'a transaction that waits for the conversion continues');
$client->query_safe('COMMIT');
unlike(finish_converting($call), qr/ERROR/, 'the conversion succeeds');
is(sql($node, q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'customers'::regclass AND adnum = 1 OR adrelid = 'customers'::regclass ORDER BY adnum DESC LIMIT 1}),
	'held_id()', 'the default is set');
is(sql($node, 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'), '0', 'there was no deadlock');

# snowflake_convert_undo() holds no lock while it does not try.
sql($node, 'CREATE TABLE t (id serial PRIMARY KEY)');
unlike(convert_online($node, 'postgres', q{'t', until => 'backfill'}), qr/ERROR/, 'a conversion begins');
$client->query_safe('BEGIN; SELECT FROM t');
my %undo = (out => '', err => '');
$undo{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=undo', '-c', q{SELECT snowflake_convert_undo('t')} ],
	'<' => \undef, '>' => \$undo{out}, '2>' => \$undo{err});
wait_until_said(\%undo, qr/waiting to lock table public\.t/);
becomes_true($node, q{
	SELECT count(*) = 1 FROM pg_stat_activity a WHERE application_name = 'undo' AND state = 'active'
	AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.relation = 't'::regclass)}, 'undo holds no lock between its tries');
$client->query_safe('COMMIT');
unlike(finish_converting(\%undo), qr/ERROR/, 'undo succeeds');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left of the conversion');

$client->quit;
$holder->quit;

# No transaction that commits has undone what it did to find a definition: logical
# decoding cannot tell such rows of catalogs apart.
sql($node, q{
	CREATE TABLE defined (id serial PRIMARY KEY, n int, CHECK (id > 0));
	CREATE INDEX ON defined (n, id);
	CREATE STATISTICS of_defined ON id, n FROM defined;
	CREATE FUNCTION note_definition() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity ~ 'snowflake_new_definitions$') THEN
			RAISE LOG 'definition in transaction %', pg_current_xact_id();
		END IF;
	END $$;
	CREATE EVENT TRIGGER note_definition ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION note_definition()});
my $offset = -s $node->logfile;
unlike(convert_online($node, 'postgres', q{'defined'}), qr/ERROR/, 'a table with all kinds of objects is converted');
my %transactions = map { $_ => 1 } slurp_file($node->logfile, $offset) =~ /definition in transaction (\d+)/g;
cmp_ok(scalar keys %transactions, '>', 4, 'definitions were found');
is(sql($node, "SELECT string_agg(DISTINCT pg_xact_status(x::text::xid8), ' ') FROM unnest('{" . join(',', keys %transactions) . "}'::bigint[]) x"),
	'aborted', 'their transactions are rolled back');

done_testing();
