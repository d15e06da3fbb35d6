# Settings of the session that change how SQL is read and written: conversions do the
# same with each of them.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'allow_in_place_tablespaces = on');
sql($node, "CREATE TABLESPACE regress_other LOCATION ''");
sql($node, q{
	CREATE SCHEMA shop;
	CREATE TABLE shop.t (id serial PRIMARY KEY, "a\b" int, CONSTRAINT c CHECK (id > 0));
	CREATE TABLE shop.u (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), t_id int REFERENCES shop.t, other_id int);
	CREATE INDEX ON shop.u (t_id, (other_id || '\n'));
	CREATE INDEX of_values_idx ON shop.u (t_id) WHERE other_id::float8 < '0.12345678901234567'::float8;
	CREATE TABLE shop.p (at date, t_id int REFERENCES shop.t) PARTITION BY RANGE (at);
	CREATE TABLE shop.p_1 PARTITION OF shop.p FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
	CREATE INDEX ON shop.p (t_id);
	CREATE STATISTICS shop.s ON t_id, other_id FROM shop.u;
	CREATE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE i int; BEGIN PERFORM nextval(''shop.t_id_seq''); RETURN NEW; END';
	CREATE TRIGGER f BEFORE INSERT ON shop.u FOR EACH ROW EXECUTE FUNCTION shop.f();
	INSERT INTO shop.t SELECT generate_series(1, 10)});

# What the functions return and report with some settings.
sub look ($settings)
{
	my ($stdout, $stderr);

	$node->psql(
		'postgres', "$settings;" . q{
		SELECT * FROM snowflake_convert_report('shop');
		SELECT * FROM snowflake_convert_schema('shop', widen => 'names', dry_run => true);
		SELECT * FROM snowflake_convert('shop.t', dry_run => true);
		SELECT * FROM snowflake_convert_plan('shop.t')},
		stdout => \$stdout,
		stderr => \$stderr);

	# The plan has the sessions of the present time, and literals as this session can read them.
	return "$stdout\n$stderr" =~ s/\('\d+\.\d+ [\d ]+'\)//gr =~ s/'\\\\n'/'\\n'/gr;
}

my $usual = look('SELECT');
like($usual, qr/info.*next/s, 'the functions report and plan');
unlike($usual, qr/ERROR|pg_attver/, 'they do so without an error, and without what the server keeps among the options of a column');

my @settings = (
	'quote_all_identifiers = on',
	'bytea_output = escape',
	'transform_null_equals = on',
	'search_path = shop, public',
	"IntervalStyle = iso_8601; SET DateStyle = 'German'",
	"IntervalStyle = sql_standard; SET DateStyle = 'SQL, DMY'",
	'extra_float_digits = 0',
	'array_nulls = off',
	'default_tablespace = regress_other',
	($node->pg_version->major < 19 ? 'standard_conforming_strings = off; SET escape_string_warning = off; SET backslash_quote = off' : ()));
is(look("SET $_"), $usual, "the same with $_") foreach @settings;

# Conversions with all of them; the time zone has an abbreviation that is read as
# another one.
my $err;
push @settings, "timezone = 'Asia/Kolkata'";
sql($node, q{
	CREATE POLICY of_values ON shop.u USING (t_id > 0 AND now() > '2020-01-01 00:00:00+05:30'::timestamptz
		AND now() - '2020-01-01'::timestamptz > '-1 day +02:03:04'::interval AND other_id::float8 < '0.12345678901234567'::float8);
	CREATE VIEW shop.of_values AS SELECT id, t_id, '{a,NULL}'::text[] AS a, other_id = NULL AS b, DATE '2020-02-01' AS d FROM shop.u});
my $definitions = q{
	SELECT pg_get_viewdef('shop.of_values'), pg_get_indexdef('shop.of_values_idx'::regclass),
		(SELECT pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polname = 'of_values')};
my $before = sql($node, $definitions);
my $all = join(' ', map { "SET $_;" } @settings);
sql($node, 'DROP TRIGGER f ON shop.u');
IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $all, '-c', q{CALL snowflake_convert_online('shop.t')} ], '2>' => \$err);
unlike($err, qr/ERROR/, 'a conversion of tables in use');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left of it');
is(sql($node, $definitions), $before, 'definitions are as before');
is(sql($node, 'SELECT count(*) FROM pg_class WHERE reltablespace <> 0 AND NOT relisshared'), 0, 'nothing is in another tablespace');
is(sql($node, q{SELECT pg_get_indexdef('shop.u_t_id_expr_idx'::regclass)}) =~ s/.*USING//r,
	q{ btree (t_id, ((other_id || '\n'::text)))}, 'the index has the expression that it had');

done_testing();
