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

# A reference that came after the snapshot
$session = (start_queries($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT snowflake_convert(\'customers\')'))[0];
ok(!finish_queries($session), 'a conversion with an old snapshot is refused');
like($session->{err}, qr/cannot convert a table in a transaction with isolation level REPEATABLE READ/, 'the error of an old snapshot names the isolation level');

# Who waits no longer than lock_timeout
sql($node, "CREATE TABLE busy (id int PRIMARY KEY); BEGIN; LOCK TABLE busy; PREPARE TRANSACTION 'busy'");
sql_fails($node, "SET lock_timeout = '10ms'; SELECT snowflake_convert('busy')", qr/ERROR:  55P03/, 'a conversion obeys lock_timeout');
sql($node, "ROLLBACK PREPARED 'busy'");

# Not-null constraints have names since 18, which must be those of the parent.
sql($node, 'CREATE TABLE parent (id serial PRIMARY KEY); CREATE TABLE child (id int NOT NULL) INHERITS (parent)');
my $try = "SELECT count(*) FROM snowflake_convert('parent', dry_run => true)";
if ($node->pg_version >= 18)
{
	sql_fails($node, $try,
		qr/DETAIL:  constraint child_id_not_null of table public\.child is named parent_id_not_null in table public\.parent/,
		'a not-null constraint with another name than in the parent is an obstacle');
	sql($node, 'ALTER TABLE child NO INHERIT parent;
		ALTER TABLE child RENAME CONSTRAINT child_id_not_null TO parent_id_not_null;
		ALTER TABLE child INHERIT parent');
}
is(sql($node, $try =~ s/, dry_run => true//r), '3', 'a parent and its child are converted');

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

# Since 18, a CHECK constraint may be not enforced.
if ($node->pg_version >= 18)
{
	sql($node, 'CREATE TABLE unchecked (id bigint PRIMARY KEY CHECK (id < 10) NOT ENFORCED)');
	is(sql($node, "SELECT count(*) FROM snowflake_convert('unchecked')"), '1',
		'a CHECK constraint that is not enforced is no obstacle');
}

# Operators of exclusion constraints, which need an index for equality of any kind
SKIP:
{
	skip 'btree_gist is not installed', 7
	  if sql($node, "SELECT count(*) FROM pg_available_extensions WHERE name = 'btree_gist'") == 0;
	sql($node, q{
		CREATE EXTENSION btree_gist;
		CREATE FUNCTION same(int, int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 = $2';
		CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = same, COMMUTATOR = ===);
		ALTER OPERATOR FAMILY gist_int4_ops USING gist ADD OPERATOR 30 === (int4, int4);
		CREATE TABLE excluding (id int PRIMARY KEY, EXCLUDE USING gist (id WITH ===) WHERE (id > 5))});
	my $dry_run = "SELECT count(*) FROM snowflake_convert('excluding', dry_run => true)";
	sql_fails($node, $dry_run,
		qr/DETAIL:  exclusion constraint excluding_id_excl of table public\.excluding cannot be created again: operator does not exist: bigint public\.=== bigint/,
		'an exclusion constraint with an operator for integers only is an obstacle');
	sql($node, q{
		CREATE FUNCTION same(bigint, bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT $1 = $2';
		CREATE OPERATOR === (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = same, COMMUTATOR = ===)});
	sql_fails($node, $dry_run, qr/operator public\.===\(bigint,bigint\) is not in the operator family of the index/,
		'an exclusion constraint with an operator outside of the operator family is an obstacle');
	sql($node, 'ALTER OPERATOR FAMILY gist_int8_ops USING gist ADD OPERATOR 30 === (int8, int8)');
	is(sql($node, $dry_run =~ s/, dry_run => true//r), '2', 'an exclusion constraint is converted when its operator is in the operator family');

	# Indexes whose operators have no form for a bigint and an integer
	sql($node, q{
		CREATE EXTENSION btree_gin;
		CREATE TABLE looked_up (id int PRIMARY KEY, other int REFERENCES looked_up, plain int);
		CREATE INDEX by_gist ON looked_up USING gist (id);
		CREATE INDEX by_gin ON looked_up USING gin (other, plain);
		CREATE INDEX by_hash ON looked_up USING hash (id);
		CREATE INDEX by_brin ON looked_up USING brin (id);
		CREATE INDEX kept ON looked_up USING gin (plain);
		INSERT INTO looked_up SELECT g, 1, g FROM generate_series(1, 10000) g});
	my $uses = sub {
		return sql($node, "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off;
			EXPLAIN (COSTS off) SELECT FROM looked_up WHERE other = $_[0]") =~ /by_gin/;
	};
	ok($uses->('5'), 'an index of btree_gin is used with an integer literal');

	# Since 19, btree_gin compares a bigint with an integer.
	my $gin = $node->pg_version->major < 19 ? qr/public\.by_gin \(gin\)\n/ : qr//;
	sql_fails($node, "SELECT snowflake_convert('looked_up')",
		qr/queries with integer literals no longer use indexes\nDETAIL:  ${gin}public\.by_gist \(gist\)\nHINT:  Cast the literals: WHERE id = 5::bigint/,
		'the indexes that are no longer used are named');
	is($uses->('5'), $node->pg_version->major >= 19, '... which is so, unless the literal is cast');
	ok($uses->('5::bigint'), '... which is cast');
}

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
