# What others do with the tables in each phase of snowflake_convert_online(): they
# succeed, and are never the victim of a deadlock; the conversion completes, or it
# fails with a reason, and the next call completes it.
#
# A phase is held by a session that has what the phase waits for, until the others have
# ended or wait for a lock.
#
# Each of the others meets two of the phases, at random: SNOWFLAKE_SEED repeats a run, and with
# SNOWFLAKE_CASES=all each meets all (script/tests/conversions).

use List::Util qw(shuffle);
use SnowflakeTest::Online;
use SnowflakeTest;

my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1e6));
srand($seed);
note "seed $seed";
my $node = new_server('main', 'autovacuum = off', 'max_locks_per_transaction = 256');
$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->safe_psql(
	'shop', q{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_convert;
	CREATE TABLE customers (id serial PRIMARY KEY, name text);
	CREATE TABLE orders (id serial PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, note text);
	CREATE INDEX orders_customer ON orders (customer_id);
	CREATE TABLE visits (customer_id int REFERENCES customers, day int NOT NULL) PARTITION BY LIST (day);
	CREATE TABLE visits_1 PARTITION OF visits FOR VALUES IN (1);
	CREATE TABLE visits_2 PARTITION OF visits FOR VALUES IN (2);
	CREATE TABLE notes (customer_id int REFERENCES customers);
	INSERT INTO customers (name) SELECT 'c' || g FROM generate_series(1, 500) g;
	INSERT INTO orders (customer_id, note) SELECT g, 'o' FROM generate_series(1, 500) g;
	INSERT INTO visits SELECT g, 1 + g % 2 FROM generate_series(1, 500) g;
	INSERT INTO notes SELECT g FROM generate_series(1, 500) g});

# What is done, by its name: the statements of one session.
my @others = (
	[ 'REINDEX INDEX CONCURRENTLY', 'REINDEX INDEX CONCURRENTLY customers_pkey' ],
	[ 'REINDEX TABLE CONCURRENTLY', 'REINDEX TABLE CONCURRENTLY orders' ],
	[ 'an index, CONCURRENTLY', 'CREATE INDEX CONCURRENTLY extra ON orders (note)', 'DROP INDEX CONCURRENTLY extra' ],
	[ 'VACUUM FULL and CLUSTER', 'VACUUM FULL orders', 'CLUSTER customers USING customers_pkey' ],
	[ 'VACUUM and ANALYZE', 'VACUUM ANALYZE orders', 'ANALYZE customers' ],
	[
		'a migration: child, then parent', 'BEGIN',
		'ALTER TABLE orders ADD COLUMN extra int', 'LOCKED',
		'ALTER TABLE customers ADD COLUMN extra int', 'COMMIT'
	],
	[
		'a migration: parent, then child', 'BEGIN',
		'ALTER TABLE customers ADD COLUMN extra int', 'LOCKED',
		'ALTER TABLE orders ADD COLUMN extra int', 'COMMIT'
	],
	[
		'rows, then a migration', 'BEGIN',
		'UPDATE orders SET note = note WHERE id = 500', 'LOCKED',
		'ALTER TABLE orders ADD COLUMN extra int', 'COMMIT'
	],
	[
		'a constraint', 'ALTER TABLE orders ADD CONSTRAINT extra CHECK (note IS NOT NULL)',
		'ALTER TABLE orders DROP CONSTRAINT extra'
	],
	[
		'a partition', 'ALTER TABLE visits DETACH PARTITION visits_2 CONCURRENTLY',
		'ALTER TABLE visits ATTACH PARTITION visits_2 FOR VALUES IN (2)'
	],
	[
		'a copy that takes the place of a table',
		'CREATE TABLE copied (id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, note text)',
		'BEGIN', 'LOCK TABLE orders IN ACCESS EXCLUSIVE MODE', 'LOCKED',
		'INSERT INTO copied SELECT id, customer_id, note FROM orders',
		'ALTER TABLE orders RENAME TO replaced', 'ALTER TABLE copied RENAME TO orders', 'COMMIT'
	],
	[ 'DROP TABLE of a referencing table', 'DROP TABLE notes' ]);

# The phases, with what holds each of them after the phases before it, and the sign
# that it is held.
my $said = sub { $_[0]{err} =~ /waiting to/ };
my @phases = (
	[ 'prepare', undef, 'LOCK TABLE customers IN ACCESS SHARE MODE', $said ],
	[ 'backfill', 'prepare', 'SELECT FROM orders WHERE id = 1 FOR UPDATE', $said ],
	[
		'indexes', 'backfill', 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1',
		sub { waits($_[1], 'conversion', 'virtualxid') }
	],
	[ 'foreign keys', 'indexes', 'LOCK TABLE orders IN ROW EXCLUSIVE MODE', $said ],
	[ 'swap', 'foreign keys', 'LOCK TABLE orders IN ACCESS SHARE MODE', $said ],
	[ 'default', 'swap', 'LOCK TABLE customers IN ACCESS SHARE MODE', $said ]);

# A session that looks at the others: a psql for each look would take most of the time.
my $monitor = $node->background_psql('postgres');

# Does a session of the database wait for a lock, of one kind or any?
sub waits ($database, $application, $event = undef)
{
	my $kind = defined $event ? "AND wait_event = '$event'" : '';

	return $monitor->query_safe(
		"SELECT count(*) FROM pg_stat_activity WHERE datname = '$database' AND application_name = '$application' AND wait_event_type = 'Lock' $kind") > 0;
}

sub sleeps ($database)
{
	return $monitor->query_safe(
		"SELECT count(*) FROM pg_stat_activity WHERE datname = '$database' AND wait_event = 'PgSleep'") > 0;
}

sub end_sessions ($database, $application)
{
	$monitor->query_safe(
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '$database' AND application_name = '$application'");
	return;
}

# Wait until something is so; what is pumped meanwhile may say why it is not.
sub wait_for ($what, $is_so, @sessions)
{
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;

	until ($is_so->())
	{
		die "not seen: $what\n" . join("\n", map { $_->{err} } @sessions) if time > $end;
		$_->{run}->pump_nb foreach grep { $_->{run}->pumpable } @sessions;
		sleep 0.05;
	}
	return;
}

sub start_session ($database, $application, @statements)
{
	my %session = (err => '', out => '');

	$session{run} = IPC::Run::start(
		[
			'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d',
			$node->connstr($database) . " application_name=$application",
			map { ('-c', $_) } @statements
		],
		'<' => \undef,
		'>' => \$session{out},
		'2>' => \$session{err});
	return \%session;
}

sub has_ended ($session)
{
	$session->{run}->pump_nb if $session->{run}->pumpable;
	return !$session->{run}->pumpable;
}

# What is left to do, and the rows.
sub describe ($database)
{
	return $node->safe_psql($database, q{
		SELECT 'integer', attrelid::regclass FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
		WHERE atttypid = 'integer'::regtype AND c.relkind IN ('r', 'p')
		AND (attname = 'customer_id' OR relname = 'customers' AND attname = 'id');
		SELECT 'left', relname FROM pg_class WHERE relname LIKE 'snowflake\_new%';
		SELECT 'left', attname FROM pg_attribute WHERE attname LIKE 'snowflake\_new%';
		SELECT 'invalid', indexrelid::regclass FROM pg_index WHERE NOT indisvalid;
		SELECT count(*), sum(id) FROM customers;
		SELECT count(*), sum(customer_id) FROM orders;
		SELECT count(*), sum(customer_id) FROM visits});
}

# The state of a case: the database, what holds the phase, the call, the others.
sub start_case ($number, $phase, $other)
{
	my ($name, undef, $hold, $is_held) = @$phase;
	my ($what, @statements) = @$other;
	my %case = (label => "$what, phase $name", database => "others_$number");
	my $database = $case{database};
	my ($gate) = grep { $statements[$_] eq 'LOCKED' } 0 .. $#statements;

	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE " . template_of($name));
	if (defined $gate)
	{
		# It has its first lock, and continues when the conversion waits for that, or
		# has ended.
		$statements[$gate] = 'SELECT FROM pg_advisory_lock(1)';
		$case{holder} = start_session($database, 'gate', 'SELECT pg_advisory_lock(1)', 'SELECT pg_sleep(600)');
		wait_for('the gate', sub { sleeps($database) }, $case{holder});
		$case{other} = start_session($database, 'other', @statements);
		wait_for("$case{label}: lock of the other", sub { waits($database, 'other', 'advisory') }, $case{other});
		$case{call} = start_converting($node, $database, "'customers'");
	}
	else
	{
		$case{holder} = start_session($database, 'gate', 'BEGIN', $hold, 'SELECT pg_sleep(600)');
		wait_for('the holder', sub { sleeps($database) }, $case{holder});
		$case{call} = start_converting($node, $database, "'customers'");
		wait_for("$case{label}: the phase is held", sub { $is_held->($case{call}, $database) }, $case{call});
		$case{other} = start_session($database, 'other', @statements);
	}
	return \%case;
}

# Release what holds the case when the others, or the conversion, have got so far.
sub release_case ($case, $phase, $other)
{
	my $database = $case->{database};
	my $call = $case->{call};

	if (grep { $_ eq 'LOCKED' } @$other)
	{
		wait_for("$case->{label}: the conversion waits",
			sub { $call->{err} =~ /waiting to/ || has_ended($call) || waits($database, 'conversion') }, $call);
	}
	else
	{
		wait_for("$case->{label}: the other has ended, or waits",
			sub { has_ended($case->{other}) || waits($database, 'other') }, $call, $case->{other});
	}
	end_sessions($database, 'gate');
	eval { $case->{holder}{run}->finish };
	return;
}

sub check_case ($case)
{
	my ($label, $database) = @$case{ 'label', 'database' };
	my $other = $case->{other};

	ok($other->{run}->finish && $other->{err} !~ /ERROR/, "$label: it succeeds") or diag $other->{err};
	my $err = finish_converting($case->{call});
	unlike($err, qr/deadlock|could not find/, "$label: the conversion fails at nothing internal");
	if ($err =~ /(ERROR.*)/)
	{
		like($err, qr/HINT/, "$label: it says why it fails: $1");
		$err = convert_online($node, $database, "'customers'");
	}
	unlike($err, qr/ERROR/, "$label: the conversion completes");
	is(describe($database), "500|125250\n500|125250\n500|125250", "$label: all is bigint, and no row is lost");
	$node->safe_psql('postgres', "DROP DATABASE $database WITH (FORCE)");
	return;
}

sub template_of { return 'before_' . ($_[0] =~ s/ /_/r); }

# The others that a phase meets.
my @left;
sub others_of_phase
{
	return 0 .. $#others if ($ENV{SNOWFLAKE_CASES} // '') eq 'all';
	@left = shuffle(0 .. $#others) unless @left;
	return splice @left, 0, 2 * @others / @phases;
}

foreach my $phase (@phases)
{
	my ($name, $before) = @$phase;
	my @chosen = @others[ others_of_phase() ];
	my $template = template_of($name);

	$node->safe_psql('postgres', "CREATE DATABASE $template TEMPLATE shop");
	convert_online($node, $template, "'customers', until => '$before'") if defined $before;
	my @cases = map { start_case($_, $phase, $chosen[$_]) } 0 .. $#chosen;
	release_case($cases[$_], $phase, $chosen[$_]) foreach 0 .. $#chosen;
	check_case($_) foreach @cases;
}

$monitor->quit;
done_testing();
