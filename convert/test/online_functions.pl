# snowflake_convert_online() and functions that hold keys in integers: they get bigint before
# the first swap, so that they work at any moment.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use SnowflakeTest::Online;
use Test::More;

my $node = new_server('main', 'fsync = off');
my $tables = q{
	CREATE TABLE options (option_id serial PRIMARY KEY, value text);
	CREATE TABLE uses (id bigserial PRIMARY KEY, option_id int REFERENCES options);
	CREATE TABLE audit (n bigserial, option_id bigint, what text);
	CREATE FUNCTION note(what text, option_id int) RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		now_id INTEGER;
	BEGIN
		now_id := option_id;
		INSERT INTO audit (option_id, what) VALUES (now_id, $1);
		RETURN now_id;
	END $$;
	COMMENT ON FUNCTION note IS 'notes';
	GRANT EXECUTE ON FUNCTION note TO regress_reader;
	REVOKE EXECUTE ON FUNCTION note FROM PUBLIC;
	CREATE FUNCTION audited() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM note(TG_ARGV[0], NEW.option_id);
		RETURN NEW;
	END $$;
	CREATE FUNCTION last_use() RETURNS int LANGUAGE sql AS 'SELECT option_id FROM uses ORDER BY id DESC LIMIT 1';
	CREATE TRIGGER audited AFTER INSERT ON options FOR EACH ROW EXECUTE FUNCTION audited('option');
	CREATE TRIGGER audited AFTER INSERT ON uses FOR EACH ROW EXECUTE FUNCTION audited('use')};
my $use = q{
	WITH new AS (INSERT INTO options (value) VALUES ('new') RETURNING option_id)
	INSERT INTO uses (option_id) SELECT option_id FROM new;
	SELECT note('call', option_id) = option_id, last_use() = option_id FROM uses ORDER BY id DESC LIMIT 1};
my $signatures = q{
	SELECT string_agg(p.oid::regprocedure || ' ' || prorettype::regtype, ', ' ORDER BY proname) FROM pg_proc p
	WHERE pronamespace = 'shop'::regnamespace};
my $others = q{
	SELECT obj_description(oid, 'pg_proc'), proacl, proowner::regrole = current_user::regrole FROM pg_proc
	WHERE proname = 'note'};

$node->safe_psql('postgres', 'CREATE ROLE regress_reader; ALTER DATABASE postgres SET search_path = shop, public');

sub begin
{
	my ($more) = @_;

	create($node, $tables . ($more ? ";$more" : ''));
	is($node->safe_psql('postgres', $use), 't|t', 'the functions work');
	return;
}

# Run the next statement of the plan.
sub by_hand
{
	$node->safe_psql('postgres', $node->safe_psql('postgres',
		"SET client_min_messages = warning; SELECT statement FROM snowflake_convert_plan('options') WHERE state LIKE 'next%'"));
	return;
}

# The plan says which functions change, and how.
begin();
my $before = $node->safe_psql('postgres', $others);
my ($notices, $plan) = run_in($node, 'postgres',
	"SELECT phase, state, statement FROM snowflake_convert_plan('options') WHERE statement LIKE '%FUNCTION%' AND statement NOT LIKE '%TRIGGER%'");
like($notices, qr/NOTICE:  functions that hold keys get bigint\n.*last_use.*\n.*note\(text,integer\)/, 'a NOTICE names them');
like($plan, qr/^swap\|to do\|BEGIN;\n.*DROP FUNCTION shop\.note\(text,integer\);\n.*COMMIT$/s, 'the plan has their statements');

# Before the swap, between the swaps, and afterwards
my $err = convert_online($node, 'postgres', "'options', until => 'foreign keys'");
is($node->safe_psql('postgres', $signatures), 'audited() trigger, last_use() integer, note(text,integer) integer', 'they are changed by the swap only');
is($node->safe_psql('postgres', $use), 't|t', 'they work before it');
my $open = $node->background_psql('postgres');
is($open->query_safe($use), 't|t', 'they work in a session that stays open');
by_hand();
is($node->safe_psql('postgres', $signatures), 'audited() trigger, last_use() bigint, note(text,bigint) bigint', 'they change before the first swap');
is($_->($use), 't|t', 'they work then') foreach sub { $node->safe_psql('postgres', @_) }, sub { $open->query_safe(@_) };
by_hand();
is($node->safe_psql('postgres', q{SELECT string_agg(format_type(atttypid, NULL), ' ' ORDER BY attrelid) FROM pg_attribute
	WHERE attname = 'option_id' AND attrelid IN ('options'::regclass, 'uses'::regclass)}), 'integer bigint', 'one table is swapped, and one is not');
is($_->($use), 't|t', 'they work between the swaps') foreach sub { $node->safe_psql('postgres', @_) }, sub { $open->query_safe(@_) };
$open->quit;
$err = convert_online($node, 'postgres', "'options'");
unlike($err, qr/ERROR/, 'the call completes') or diag($err);
is($node->safe_psql('postgres', $use), 't|t', 'they work with new IDs');
is($node->safe_psql('postgres', 'SELECT max(option_id) > 1000000000000 FROM audit'), 't', 'which they have written');
is($node->safe_psql('postgres', $others), $before, 'their owner, comment and privileges are the same');
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');

# A key that is a bigint already has nothing to swap.
begin('ALTER TABLE options ALTER option_id TYPE bigint; ALTER TABLE uses ALTER option_id TYPE bigint;
	CREATE OR REPLACE FUNCTION audited() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE
		now_id int := NEW.option_id;
	BEGIN
		PERFORM note(TG_ARGV[0], now_id);
		RETURN NEW;
	END $$; DROP FUNCTION last_use(); CREATE FUNCTION last_use() RETURNS bigint LANGUAGE sql AS \'SELECT option_id FROM uses ORDER BY id DESC LIMIT 1\';
	DROP FUNCTION note(text, int); CREATE FUNCTION note(what text, option_id bigint) RETURNS bigint LANGUAGE sql AS \'INSERT INTO audit (option_id, what) VALUES (option_id, what) RETURNING option_id\'');
$err = convert_online($node, 'postgres', "'options'");
like($err, qr/options: phase "swap", functions/, 'a variable becomes bigint where only the default changes');
is($node->safe_psql('postgres', $use), 't|t', 'the functions work with new IDs');

# A function that is being changed is waited for, and keeps the change.
begin();
my $holder = $node->background_psql('postgres');
$holder->query_safe(q{BEGIN; CREATE OR REPLACE FUNCTION last_use() RETURNS int LANGUAGE sql AS 'SELECT option_id FROM uses ORDER BY id DESC LIMIT 1 /* changed */'});
my $call = start_converting($node, 'postgres', "'options'", qr/waiting/);
like($node->safe_psql('postgres', $signatures), qr/last_use\(\) integer/, 'functions do not change meanwhile');
$holder->query_safe('COMMIT');
$holder->quit;
$err = finish_converting($call);
unlike($err, qr/ERROR/, 'the call completes after that') or diag($err);
like($node->safe_psql('postgres', q{SELECT prosrc || prorettype::regtype FROM pg_proc WHERE proname = 'last_use'}), qr/changed.*bigint/, 'what was changed is still there');

# What would fail before the swap, or cannot be created again
my %obstacles = (
	q{CREATE FUNCTION listed() RETURNS TABLE(option_id int) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT o.option_id FROM options o; END $$}
	  => 'function shop.listed() returns keys as integers by RETURN QUERY',
	q{CREATE VIEW last AS SELECT last_use() AS option} => 'function shop.last_use() is created again with bigint, and view shop.last depends on it');
foreach my $statement (sort keys %obstacles)
{
	begin($statement);
	$err = convert_online($node, 'postgres', "'options'");
	like($err, qr/ERROR.*\Q$obstacles{$statement}\E/s, "an obstacle: $obstacles{$statement}");
	is($node->safe_psql('postgres', $use), 't|t', 'nothing has changed');
}

# As the hint says
begin(q{CREATE FUNCTION listed() RETURNS TABLE(option_id bigint) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT o.option_id::bigint FROM options o; END $$});
unlike(convert_online($node, 'postgres', "'options'"), qr/ERROR/, 'one that returns bigint is none');
is($node->safe_psql('postgres', 'SELECT count(*) FROM listed()'), 1, 'and works');

$node->stop;
done_testing();
