# What others can do while snowflake_convert() gives keys another default.

use PostgreSQL::Test::BackgroundPsql;
use SnowflakeTest;
use SnowflakeTest::Online;

my $node = new_server('main', 'fsync = off', 'autovacuum = off');

# The conversion calls the generator while it looks for obstacles, which waits for the
# test then.
sql($node, q{
	CREATE FUNCTION held_id() RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_advisory_xact_lock_shared(1);
		RETURN public.snowflake_nextval();
	END $$;
	CREATE TABLE parents (id bigserial PRIMARY KEY);
	CREATE TABLE children (id bigserial PRIMARY KEY, parent bigint REFERENCES parents);
	CREATE TABLE measured (id bigserial, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
	CREATE TABLE measured_1 PARTITION OF measured FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
	INSERT INTO parents DEFAULT VALUES;
	INSERT INTO children (parent) VALUES (1)});

# A session of its own that runs a statement; returns it.
sub start
{
	local $ENV{PGAPPNAME} = 'conversion';

	return (start_queries($node, @_))[0];
}

# Wait until the conversion waits for a lock.
sub wait_for ($session, $lock)
{
	wait_until_true($node, "SELECT count(*) > 0 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = 'conversion' AND NOT granted AND $lock",
		"the conversion does not wait for $lock, but says $session->{err}");
	return;
}

# What a statement of another session says that waits for no lock.
sub try_now ($statement)
{
	my ($err);

	$node->psql('postgres', "SET lock_timeout = '1s'; $statement", stderr => \$err);
	return $err;
}

sub default_of ($table)
{
	return sql($node, "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '$table'::regclass AND adnum = 1");
}

my $holder = $node->background_psql('postgres');

# Clients continue while the conversion looks for obstacles; changes of the tables do not.
foreach my $case (
	[ "snowflake_convert('parents', generator => 'held_id()')", 'parents', 'INSERT INTO children (parent) VALUES (1)' ],
	[ "snowflake_convert('measured', 'id', generator => 'held_id()')", 'measured_1', q{INSERT INTO measured (at) VALUES ('2026-05-01')} ],
	[ "snowflake_convert_schema('public', generator => 'held_id()')", 'children', 'INSERT INTO children (parent) VALUES (1)' ])
{
	my ($call, $table, $insert) = @$case;

	$holder->query_safe('BEGIN; SELECT pg_advisory_xact_lock(1)');
	my $session = start("SELECT $call");
	wait_for($session, "locktype = 'advisory'");
	is(try_now("INSERT INTO parents VALUES (7) ON CONFLICT DO NOTHING; $insert; SELECT count(*) FROM $table"), '', "$call: clients read and write meanwhile");
	like(try_now("ALTER TABLE $table ADD CHECK (id < 1000)"), qr/lock timeout/, "$call: nobody changes the tables");
	like(try_now("CREATE TABLE more (p int REFERENCES parents)"), qr/lock timeout/, "$call: nobody adds a foreign key") if $call !~ /measured/;
	$holder->query_safe('COMMIT');
	unlike(finish_converting($session), qr/ERROR/, "$call: it succeeds");
	is(default_of($table), 'held_id()', "$call: the default is set");
}

# A transaction that has used the table may change it while the conversion waits for it,
# which sees what is changed.
my $client = $node->background_psql('postgres');
$client->query_safe('BEGIN; INSERT INTO parents (id) VALUES (999)');
my $session = start(q{SELECT snowflake_convert('parents', generator => 'snowflake_nextval()')});
wait_for($session, q{mode = 'AccessExclusiveLock'});
is($client->query('ALTER TABLE parents ADD CONSTRAINT small CHECK (id < 1000); COMMIT') . $client->{stderr}, '', 'a transaction that the conversion waits for changes the table');
like(finish_converting($session), qr/small of table .*rejects/, 'the conversion finds the new obstacle');
is(default_of('parents'), 'held_id()', 'the default stays');
sql($node, 'ALTER TABLE parents DROP CONSTRAINT small');

# So may one that adds a reference of another type, which is converted.
$client->query_safe('BEGIN; SELECT FROM parents');
$session = start(q{SELECT snowflake_convert('parents', generator => 'snowflake_nextval()')});
wait_for($session, q{mode = 'AccessExclusiveLock'});
$client->query_safe('CREATE TABLE late (parent int REFERENCES parents); COMMIT');
unlike(finish_converting($session), qr/ERROR/, 'the conversion succeeds');
is(sql($node, q{SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'late'::regclass AND attname = 'parent'}),
	'bigint', 'a reference that came meanwhile is converted');
is(default_of('parents'), 'snowflake_nextval()', 'the default is set');

# Who has locked a view can lock its tables while the conversion waits for the view.
sql($node, 'CREATE TABLE viewed (id serial PRIMARY KEY); CREATE VIEW seen AS SELECT id FROM viewed');
$client->query_safe('BEGIN; COMMENT ON VIEW seen IS NULL');
$session = start(q{SELECT snowflake_convert('viewed')});
wait_for($session, q{relation = 'seen'::regclass});
is($client->query('INSERT INTO viewed DEFAULT VALUES; COMMIT') . $client->{stderr}, '', 'the conversion waits for a view before it locks the table');
unlike(finish_converting($session), qr/ERROR/, 'the conversion succeeds');

# ANALYZE, which autovacuum may run at any time, has it plan again, but notices come once.
$client->query_safe('INSERT INTO viewed SELECT FROM generate_series(1, 9); BEGIN; SELECT FROM viewed');
$session = start(q{SELECT snowflake_convert('viewed', generator => 'snowflake_id()')});
wait_for($session, q{mode = 'AccessExclusiveLock'});
$client->query_safe('ANALYZE viewed; COMMIT');
is(() = finish_converting($session) =~ /NOTICE: .* is replaced/g, 1, 'notices come once if the table is analyzed meanwhile');

# It can be cancelled after it has seen a change, too.
$client->query_safe('BEGIN; SELECT FROM parents');
$holder->query_safe('BEGIN; SELECT FROM children');
$session = start(q{SELECT snowflake_convert_schema('public', generator => 'snowflake_id()')});
wait_for($session, q{relation = 'parents'::regclass});
$client->query_safe('ALTER TABLE parents ADD COLUMN v int; COMMIT');
wait_for($session, q{relation = 'children'::regclass});
sql($node, q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'conversion'});
becomes_true($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'conversion'},
	'a conversion that has seen a change, and waits, ends when it is cancelled');
$holder->query_safe('ROLLBACK');
like(finish_converting($session), qr/canceling statement due to user request/, 'it says so');

# Columns that hold the key are looked for before the table is locked exclusively, in tables
# that are not waited for, nor their partitions, and that others can lock meanwhile.
sql($node, q{
	CREATE TABLE held (id serial PRIMARY KEY);
	INSERT INTO held SELECT FROM generate_series(1, 40);
	CREATE TABLE holds (held_id int);
	INSERT INTO holds SELECT generate_series(1, 40);
	CREATE TABLE holds_too (held_id int) PARTITION BY RANGE (held_id);
	CREATE TABLE holds_too_1 PARTITION OF holds_too FOR VALUES FROM (1) TO (1000);
	INSERT INTO holds_too SELECT generate_series(1, 40)});
$holder->query_safe('BEGIN; LOCK holds_too_1');
is(try_now(q{SET client_min_messages = warning; SELECT snowflake_convert('held', dry_run => true)}), '', 'it waits for no partition of a table that is read');
$holder->query_safe('ROLLBACK');
$client->query_safe('BEGIN; SELECT FROM held');
$session = start(q{SELECT snowflake_convert('held')});
wait_for($session, q{mode = 'AccessExclusiveLock'});
is(try_now('TRUNCATE holds'), '', 'what was read is free while the conversion waits');
$client->query_safe('COMMIT');
like(finish_converting($session), qr/column held_id of table (public\.)?holds .*40 of 40 values/, '... and was read before');

# What has nothing to do locks nobody out.
$client->query_safe('BEGIN; SELECT FROM parents');
unlike(try_now(q{SELECT snowflake_convert('parents')}), qr/ERROR/, 'a call without anything to do waits for no reader');
$client->query_safe('COMMIT');

# A table that calls functions holds nobody up who creates something else.
sql($node, q{
	CREATE FUNCTION listed(anyarray) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
	CREATE TABLE calling (id serial PRIMARY KEY CHECK (listed(ARRAY[id])));
	CREATE INDEX ON calling (id) WHERE listed(ARRAY[id]);
	CREATE VIEW calls AS SELECT id FROM calling WHERE listed(ARRAY[id])});
$client->query_safe(q{SET client_min_messages = warning; BEGIN; SELECT snowflake_convert('calling')});
is(try_now("BEGIN; CREATE $_; ROLLBACK"), '', "not held up by a conversion: CREATE $_")
  foreach 'FUNCTION other() RETURNS int LANGUAGE sql AS $$SELECT 1$$', 'TABLE other (id int)', 'TEMPORARY TABLE other (id int)', 'TYPE mood AS ENUM ()', 'CAST (int8 AS jsonb) WITH INOUT';
$client->query_safe('COMMIT');

$client->quit;
$holder->quit;
done_testing();
