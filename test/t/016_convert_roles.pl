# snowflake_convert() while others change what it waits for, and with the
# extension in other schemas.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $node = new_server('main', 'fsync = off', 'max_prepared_transactions = 5');
$node->safe_psql(
	'postgres', q{
	CREATE ROLE mallory;
	CREATE ROLE bob;
	CREATE SCHEMA shop AUTHORIZATION mallory;
	GRANT ALL ON SCHEMA shop TO bob});

# Have one transaction lock a table, wait until a conversion waits for it,
# and commit the transaction.  Returns the session of the conversion.
sub convert_behind
{
	my ($change, $convert) = @_;

	# A prepared transaction holds its locks without a session.
	$node->safe_psql('postgres', "BEGIN; $change; PREPARE TRANSACTION 'change'");
	my ($session) = start_queries($node, $convert);
	$node->poll_query_until(
		'postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND query LIKE '%snowflake_convert%' AND pid <> pg_backend_pid()}
	) or die 'the conversion does not wait';
	$node->safe_psql('postgres', "COMMIT PREPARED 'change'");
	$session->{succeeded} = finish_queries($session);
	return $session;
}

# The owner puts a view in the place of the table.
$node->safe_psql(
	'postgres', q{
	SET SESSION AUTHORIZATION mallory;
	CREATE FUNCTION shop.evil(i bigint) RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		ALTER ROLE mallory SUPERUSER;
		RETURN i;
	EXCEPTION WHEN insufficient_privilege THEN
		RETURN i;
	END $$});
foreach my $dry_run ('true', 'false')
{
	$node->safe_psql('postgres', 'CREATE TABLE shop.t (id bigint PRIMARY KEY); ALTER TABLE shop.t OWNER TO mallory');
	my $session = convert_behind(
		q{
		SET SESSION AUTHORIZATION mallory;
		LOCK TABLE shop.t IN ACCESS EXCLUSIVE MODE;
		ALTER TABLE shop.t RENAME TO was_t;
		CREATE VIEW shop.t AS SELECT shop.evil(1) AS id},
		"SELECT snowflake_convert('shop.t', 'id', $dry_run)");
	like(
		$session->{out},
		qr/^ALTER TABLE shop\.was_t ALTER COLUMN id SET DEFAULT/,
		"the table is converted that was named (dry run: $dry_run)")
	  or diag($session->{err});
	is( $node->safe_psql(
			'postgres',
			"SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"),
		'f',
		'and its owner is what she was');
	$node->safe_psql('postgres',
		'ALTER ROLE mallory NOSUPERUSER; DROP VIEW shop.t; DROP TABLE shop.was_t');
}

# The table goes away, or to another owner.
$node->safe_psql(
	'postgres', q{
	CREATE TABLE shop.t (id bigint PRIMARY KEY);
	ALTER TABLE shop.t OWNER TO bob});
my $session =
  convert_behind('ALTER TABLE shop.t OWNER TO mallory',
	"SET SESSION AUTHORIZATION bob; SELECT snowflake_convert('shop.t')");
like($session->{err}, qr/must be owner of table shop\.t/, 'a new owner is asked');
$session = convert_behind('DROP TABLE shop.t', "SELECT snowflake_convert('shop.t')");
like($session->{err}, qr/relation with OID \d+ does not exist/, 'a table that is gone is told');

# Tables come that reference the key, or what references it.
$node->safe_psql(
	'postgres', q{
	CREATE TABLE customers (id bigserial PRIMARY KEY);
	CREATE TABLE cards (customer bigint PRIMARY KEY REFERENCES customers);
	CREATE TABLE far (card int REFERENCES cards)});
$session = convert_behind('CREATE TABLE near (customer int REFERENCES customers)',
	"SELECT snowflake_convert('customers')");
like($session->{out}, qr/ALTER TABLE public\.near ALTER COLUMN customer TYPE bigint/, 'a new reference is seen');
$node->safe_psql('postgres', 'ALTER TABLE far ALTER card TYPE int');
$session = convert_behind(
	'CREATE TABLE farther (card int REFERENCES cards); LOCK TABLE far IN SHARE MODE',
	"SELECT snowflake_convert('customers')");
like($session->{out}, qr/ALTER TABLE public\.farther ALTER COLUMN card TYPE bigint/, 'also behind another');

# A reference that came after the snapshot
$session = (start_queries($node, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT snowflake_convert(\'customers\')'))[0];
ok(!finish_queries($session), 'an old snapshot is refused');
like($session->{err}, qr/cannot convert a table in a transaction with isolation level REPEATABLE READ/, 'with a reason');

# Who waits no longer than lock_timeout
$node->safe_psql('postgres', "CREATE TABLE busy (id int PRIMARY KEY); BEGIN; LOCK TABLE busy; PREPARE TRANSACTION 'busy'");
like(sql_error($node, "SET lock_timeout = '10ms'; SELECT snowflake_convert('busy')"), qr/ERROR:  55P03/, 'lock_timeout counts');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'busy'");

# Not-null constraints have names since 18, which must be those of the parent.
$node->safe_psql('postgres', 'CREATE TABLE parent (id serial PRIMARY KEY); CREATE TABLE child (id int NOT NULL) INHERITS (parent)');
my $try = "SELECT count(*) FROM snowflake_convert('parent', dry_run => true)";
if ($node->pg_version >= 18)
{
	like(sql_error($node, $try),
		qr/DETAIL:  constraint child_id_not_null of table public\.child is named parent_id_not_null in table public\.parent/,
		'a not-null constraint with another name than in the parent');
	$node->safe_psql('postgres', 'ALTER TABLE child NO INHERIT parent;
		ALTER TABLE child RENAME CONSTRAINT child_id_not_null TO parent_id_not_null;
		ALTER TABLE child INHERIT parent');
}
is($node->safe_psql('postgres', $try =~ s/, dry_run => true//r), '3', 'not-null constraints of children');

# While a bigint that references the key is in use
$node->safe_psql('postgres', "CREATE TABLE used (id bigserial PRIMARY KEY); CREATE TABLE uses (id bigint REFERENCES used);
	BEGIN; INSERT INTO uses VALUES (NULL); PREPARE TRANSACTION 'uses'");
is($node->safe_psql('postgres', "SET lock_timeout = '10s'; SELECT count(*) FROM snowflake_convert('used')"), '2',
	'a table that stays as it is may be written meanwhile');
$node->safe_psql('postgres', "COMMIT PREPARED 'uses'");

# The extension in other schemas
$node->safe_psql('postgres', 'CREATE DATABASE system');
$node->safe_psql(
	'system', q{
	SET allow_system_table_mods = on;
	CREATE EXTENSION snowflake SCHEMA pg_catalog;
	CREATE TABLE t (id serial PRIMARY KEY)});
is( $node->safe_psql('system', "SELECT * FROM snowflake_convert('t')"),
	"ALTER TABLE public.t ALTER COLUMN id SET DEFAULT pg_catalog.snowflake_nextval()\n"
	  . "DROP SEQUENCE public.t_id_seq\n"
	  . 'ALTER TABLE public.t ALTER COLUMN id TYPE bigint',
	'the extension in pg_catalog');
like(
	sql_error($node, "SELECT snowflake_convert('t')", dbname => 'system'),
	qr/already converted/,
	'which is known the second time');

$node->safe_psql('postgres', 'CREATE DATABASE apart');
$node->safe_psql(
	'apart', q{
	CREATE SCHEMA "Its Own";
	CREATE EXTENSION snowflake SCHEMA "Its Own";
	CREATE TABLE t (id serial PRIMARY KEY);
	ALTER TABLE t OWNER TO bob});
my $convert = q{SELECT count(*) FROM "Its Own".snowflake_convert('t')};
like(
	sql_error($node, $convert, dbname => 'apart'),
	qr/DETAIL:  role bob, the owner of table public\.t, lacks USAGE on schema "Its Own"/,
	'an owner who cannot use the schema of the extension');
$node->safe_psql('apart', 'GRANT USAGE ON SCHEMA "Its Own" TO bob');
is($node->safe_psql('apart', $convert), '3', 'and one who can');
like(sql_error($node, q{SELECT "Its Own".snowflake_convert('t')}, dbname => 'apart'), qr/already converted/, 'only once');

# A function that could be meant by the call in the view: refused, not called
$node->safe_psql('postgres', 'CREATE DATABASE taken');
$node->safe_psql('taken', q{CREATE FUNCTION snowflake_stat(VARIADIC int[] DEFAULT '{}') RETURNS int LANGUAGE sql AS 'SELECT 1'});
like(sql_error($node, 'CREATE EXTENSION snowflake', dbname => 'taken'), qr/ERROR:  42725: function snowflake_stat\(\) is not unique/,
	'a function by the name of one of ours');
is($node->safe_psql('taken', 'CREATE SCHEMA ids; CREATE EXTENSION snowflake SCHEMA ids; SELECT count(*) FROM ids.snowflake_stat'), '1',
	'does not matter in another schema');

$node->stop;
done_testing();
