# Settings of the session that change how SQL is read and written: conversions do the
# same with each of them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use SnowflakeTest::Online;
use Test::More;

my $node = new_server('main', 'fsync = off');
$node->safe_psql(
	'postgres', q{
	CREATE SCHEMA shop;
	CREATE TABLE shop.t (id serial PRIMARY KEY, "a\b" int, CONSTRAINT c CHECK (id > 0));
	CREATE TABLE shop.u (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), t_id int REFERENCES shop.t, other_id int);
	CREATE INDEX ON shop.u (t_id, (other_id || '\n'));
	CREATE STATISTICS shop.s ON t_id, other_id FROM shop.u;
	CREATE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE i int; BEGIN PERFORM nextval(''shop.t_id_seq''); RETURN NEW; END';
	CREATE TRIGGER f BEFORE INSERT ON shop.u FOR EACH ROW EXECUTE FUNCTION shop.f();
	INSERT INTO shop.t SELECT generate_series(1, 10)});

# What the functions return and report with some settings.
sub look
{
	my ($settings) = @_;
	my ($stdout, $stderr);

	$node->psql(
		'postgres', "$settings;" . q{
		SELECT * FROM snowflake_convert_report('shop');
		SELECT * FROM snowflake_convert_schema('shop', widen_ids => true, dry_run => true);
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
	($node->pg_version < 19 ? 'standard_conforming_strings = off; SET escape_string_warning = off; SET backslash_quote = off' : ()));
foreach my $setting (@settings)
{
	is(look("SET $setting"), $usual, "the same with $setting");
}

# Conversions with all of them
my $err;
my $all = join(' ', map { "SET $_;" } @settings);
$node->safe_psql('postgres', 'DROP TRIGGER f ON shop.u');
IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $all, '-c', q{CALL snowflake_convert_online('shop.t')} ], '2>' => \$err);
unlike($err, qr/ERROR/, 'a conversion of tables in use');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left of it');
is($node->safe_psql('postgres', q{SELECT pg_get_indexdef('shop.u_t_id_expr_idx'::regclass)}) =~ s/.*USING//r,
	q{ btree (t_id, ((other_id || '\n'::text)))}, 'the index has the expression that it had');

$node->stop;
done_testing();
