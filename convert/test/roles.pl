# snowflake_convert() while others change what it waits for.

use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'max_prepared_transactions = 5');
sql($node, q{
	CREATE ROLE regress_mallory;
	CREATE ROLE regress_bob;
	CREATE SCHEMA regress_shop AUTHORIZATION regress_mallory;
	GRANT ALL ON SCHEMA regress_shop TO regress_bob});

# Have one transaction lock a table, wait until a conversion waits for it,
# and commit the transaction.  Returns the session of the conversion.
sub convert_behind ($change, $convert)
{
	# A prepared transaction holds its locks without a session.
	sql($node, "BEGIN; $change; PREPARE TRANSACTION 'change'");
	my ($session) = start_queries($node, $convert);
	wait_until_true($node, q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND query LIKE '%snowflake_convert%' AND pid <> pg_backend_pid()},
		'the conversion does not wait');
	sql($node, "COMMIT PREPARED 'change'");
	$session->{succeeded} = finish_queries($session);
	return $session;
}

# The owner puts a view in the place of the table.
sql($node, q{
	SET SESSION AUTHORIZATION regress_mallory;
	CREATE FUNCTION regress_shop.evil(i bigint) RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		ALTER ROLE regress_mallory SUPERUSER;
		RETURN i;
	EXCEPTION WHEN insufficient_privilege THEN
		RETURN i;
	END $$});
foreach my $dry_run ('true', 'false')
{
	sql($node, 'CREATE TABLE regress_shop.t (id bigint PRIMARY KEY); ALTER TABLE regress_shop.t OWNER TO regress_mallory');
	my $session = convert_behind(
		q{
		SET SESSION AUTHORIZATION regress_mallory;
		LOCK TABLE regress_shop.t IN ACCESS EXCLUSIVE MODE;
		ALTER TABLE regress_shop.t RENAME TO was_t;
		CREATE VIEW regress_shop.t AS SELECT regress_shop.evil(1) AS id},
		"SELECT snowflake_convert('regress_shop.t', 'id', $dry_run)");
	like(
		$session->{out},
		qr/^ALTER TABLE regress_shop\.was_t ALTER COLUMN id SET DEFAULT/,
		"the table that was named is converted, though it was renamed (dry run: $dry_run)")
	  or diag($session->{err});
	is(sql($node, "SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_mallory'"),
		'f', 'the owner of a converted table gains no rights');
	sql($node, 'ALTER ROLE regress_mallory NOSUPERUSER; DROP VIEW regress_shop.t; DROP TABLE regress_shop.was_t');
}

# The table goes away, or to another owner.
sql($node, q{
	CREATE TABLE regress_shop.t (id bigint PRIMARY KEY);
	ALTER TABLE regress_shop.t OWNER TO regress_bob});
my $session =
  convert_behind('ALTER TABLE regress_shop.t OWNER TO regress_mallory',
	"SET SESSION AUTHORIZATION regress_bob; SELECT snowflake_convert('regress_shop.t')");
like($session->{err}, qr/must be owner of table regress_shop\.t/, 'a table that got another owner meanwhile is refused');
$session = convert_behind('DROP TABLE regress_shop.t', "SELECT snowflake_convert('regress_shop.t')");
like($session->{err}, qr/relation with OID \d+ does not exist/, 'a table that was dropped meanwhile is an error');

# Tables come that reference the key, or what references it.
sql($node, q{
	CREATE TABLE customers (id bigserial PRIMARY KEY);
	CREATE TABLE cards (customer bigint PRIMARY KEY REFERENCES customers);
	CREATE TABLE far (card int REFERENCES cards)});
$session = convert_behind('CREATE TABLE near (customer int REFERENCES customers)',
	"SELECT snowflake_convert('customers')");
like($session->{out}, qr/ALTER TABLE public\.near ALTER COLUMN customer TYPE bigint/, 'a foreign key that was created meanwhile is seen');
sql($node, 'ALTER TABLE far ALTER card TYPE int');
$session = convert_behind(
	'CREATE TABLE farther (card int REFERENCES cards); LOCK TABLE far IN SHARE MODE',
	"SELECT snowflake_convert('customers')");
like($session->{out}, qr/ALTER TABLE public\.farther ALTER COLUMN card TYPE bigint/, 'a foreign key to a referencing table that was created meanwhile is seen');

# Who waits no longer than lock_timeout
sql($node, "CREATE TABLE busy (id int PRIMARY KEY); BEGIN; LOCK TABLE busy; PREPARE TRANSACTION 'busy'");
sql_fails($node, "SET lock_timeout = '10ms'; SELECT snowflake_convert('busy')", qr/ERROR:  55P03/, 'a conversion obeys lock_timeout');
sql($node, "ROLLBACK PREPARED 'busy'");

# A partition that is being detached: ALTER TABLE would leave it out
sql($node, 'CREATE TABLE parts (id bigserial, kind int) PARTITION BY LIST (kind);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)');
sql($node, "BEGIN; SELECT FROM parts; PREPARE TRANSACTION 'reader'");
sql_fails($node, "SET lock_timeout = '10ms'; ALTER TABLE parts DETACH PARTITION parts_1 CONCURRENTLY",
	qr/ERROR:  55P03/, 'a partition cannot be detached while the table is read');
sql($node, "ROLLBACK PREPARED 'reader'");
foreach my $dry_run ('true', 'false')
{
	sql_fails($node, "SELECT snowflake_convert('parts', 'id', $dry_run)",
		qr/DETAIL:  partition public\.parts_1 of table public\.parts is being detached/,
		"a partition that is being detached is an obstacle (dry run: $dry_run)");
}
sql($node, 'ALTER TABLE parts DETACH PARTITION parts_1 FINALIZE');
is(sql($node, "SELECT count(*) FROM snowflake_convert('parts', 'id')"), '1', 'the table is converted when the partition is detached');

# While a bigint that references the key is in use
sql($node, "CREATE TABLE used (id bigserial PRIMARY KEY); CREATE TABLE uses (id bigint REFERENCES used);
	BEGIN; INSERT INTO uses VALUES (NULL); PREPARE TRANSACTION 'uses'");
is(sql($node, "SET lock_timeout = '10s'; SELECT count(*) FROM snowflake_convert('used')"), '2',
	'a table that is not changed can be written meanwhile');
sql($node, "COMMIT PREPARED 'uses'");

# While tables are locked that have nothing to do with it
sql($node, "CREATE TABLE elsewhere (id serial, n bigint DEFAULT 5, CHECK (n > 0));
	CREATE TABLE alone (id serial PRIMARY KEY);
	BEGIN; LOCK TABLE elsewhere; PREPARE TRANSACTION 'elsewhere'");
is(sql($node, "SET lock_timeout = '10ms'; SELECT count(*) FROM snowflake_convert('alone')"), '3',
	'a conversion does not wait for locks of other tables');
sql($node, "ROLLBACK PREPARED 'elsewhere'");

# A lock that cannot be had is not an obstacle.
sql($node, "CREATE TABLE referenced (id bigserial PRIMARY KEY);
	CREATE TABLE locked (id bigint REFERENCES referenced CHECK (id > 0));
	BEGIN; LOCK TABLE locked; PREPARE TRANSACTION 'locked'");
sql_fails($node, "SET lock_timeout = '10ms'; SELECT snowflake_convert('referenced', dry_run => true)",
	qr/ERROR:  55P03/, 'lock_timeout counts while constraints are evaluated');
sql($node, "ROLLBACK PREPARED 'locked'");

done_testing();
