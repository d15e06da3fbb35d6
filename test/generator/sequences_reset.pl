# What resets the position of sequences: in the middle of it, no path to nextval() gives a small
# number of a snowflake sequence; it takes no longer with labels of others, and does not fail
# while others drop theirs, nor does a query on the view.

use List::Util qw(min);
use SnowflakeTest;

my $node = new_server('node', 'max_prepared_transactions = 2');
my $exhausted = qr/ERROR:  2200H: nextval: reached maximum value of sequence "t_id_seq"/;

sub query { return sql($node, $_[0]); }

# An aggregate whose final function is the server's nextval(), which no planner replaces
query(q{
	CREATE TABLE log (label text, n bigint);
	CREATE TABLE t (id bigserial, n int);
	SELECT snowflake_set_sequence_kind('t_id_seq');
	CREATE FUNCTION keep(regclass, int) RETURNS regclass LANGUAGE sql AS 'SELECT $1';
	CREATE AGGREGATE small(int) (sfunc = keep, stype = regclass, initcond = 't_id_seq', finalfunc = nextval);
	CREATE FUNCTION take(label text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE v bigint;
	BEGIN
		SELECT small(1) INTO v;
		INSERT INTO log VALUES (label, v);
	END $$;
	CREATE FUNCTION try(label text) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM take(label);
	EXCEPTION WHEN sequence_generator_limit_exceeded THEN
		INSERT INTO log VALUES (label, NULL);
	END $$;
	CREATE FUNCTION on_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN PERFORM try(TG_WHEN || ' TRUNCATE'); RETURN NULL; END $$;
	CREATE FUNCTION on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN PERFORM try(TG_EVENT || ' ' || TG_TAG); END $$});
sql_fails($node, q{SELECT small(1)}, $exhausted, 'the final function of an aggregate gets an error');
query(q{
	CREATE TRIGGER b BEFORE TRUNCATE ON t EXECUTE FUNCTION on_truncate();
	CREATE TRIGGER a AFTER TRUNCATE ON t EXECUTE FUNCTION on_truncate();
	CREATE EVENT TRIGGER s ON ddl_command_start EXECUTE FUNCTION on_ddl();
	CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION on_ddl();
	TRUNCATE t RESTART IDENTITY;
	ALTER SEQUENCE t_id_seq RESTART;
	ALTER SEQUENCE t_id_seq MAXVALUE 1000000;
	ALTER SEQUENCE t_id_seq NO MAXVALUE CACHE 5;
	ALTER TABLE t ADD g int DEFAULT length(current_setting('role')), SET UNLOGGED;
	ALTER TABLE t SET LOGGED;
	BEGIN; TRUNCATE t RESTART IDENTITY; SAVEPOINT x; ALTER SEQUENCE t_id_seq RESTART 5; ROLLBACK TO x; PREPARE TRANSACTION 'x'; COMMIT PREPARED 'x'});
is(query('SELECT DISTINCT label FROM log WHERE n IS NOT NULL'), '', 'triggers in the middle of what resets a sequence get an error');
cmp_ok(query('SELECT count(DISTINCT label) FROM log'), '>=', 6, '... each of them');
is(query('SELECT last_value, is_called FROM t_id_seq'), '9223372036854775807|t', 'and the sequence is exhausted afterwards');

# What is wrong with a definition is an error also if an event trigger runs queries before
# the statement ends.
sql_fails($node, $_, qr/ERROR:  22023: /, "$_ is an error with an event trigger")
  foreach 'ALTER SEQUENCE t_id_seq CYCLE', 'ALTER SEQUENCE t_id_seq INCREMENT -1';
is(query(q{SELECT seqcycle FROM pg_sequence WHERE seqrelid = 't_id_seq'::regclass}), 'f', '... and changes nothing');
query('DROP EVENT TRIGGER s; DROP EVENT TRIGGER e');

# What begins no query in the trigger: a cursor that was open before, and an expression whose
# nextval() is the server's.  An error in between, which undoes what exhausts the sequence.
query(q{
	CREATE FUNCTION keep_only(regclass, int) RETURNS regclass LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
	CREATE AGGREGATE small_only(int) (sfunc = keep_only, stype = regclass, initcond = 't_id_seq', finalfunc = nextval);
	CREATE FUNCTION without_query() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE
		c refcursor := 'c';
		v bigint;
	BEGIN
		BEGIN
			v := length(current_setting('role'));
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN
		END;
		BEGIN
			IF TG_ARGV[0] = 'cursor' THEN
				FETCH c INTO v;
			ELSE
				v := nextval('t_id_seq');
			END IF;
		EXCEPTION WHEN sequence_generator_limit_exceeded THEN
			v := NULL;
		END;
		INSERT INTO log VALUES (TG_ARGV[0], v);
		RETURN NULL;
	END $$;
	DROP TRIGGER a ON t;
	DROP TRIGGER b ON t;
	CREATE TRIGGER a AFTER TRUNCATE ON t EXECUTE FUNCTION without_query('cursor');
	BEGIN;
	DECLARE c CURSOR FOR SELECT small_only(1) FROM generate_series(1, 3) g GROUP BY g;
	TRUNCATE t RESTART IDENTITY;
	COMMIT;
	DROP TRIGGER a ON t;
	CREATE TRIGGER a AFTER TRUNCATE ON t EXECUTE FUNCTION without_query('expression');
	BEGIN;
	REVOKE EXECUTE ON FUNCTION _snowflake_nextval FROM PUBLIC;
	TRUNCATE t RESTART IDENTITY;
	GRANT EXECUTE ON FUNCTION _snowflake_nextval TO PUBLIC;
	COMMIT;
	DROP TRIGGER a ON t});
is(query(q{SELECT label, count(*), count(n) FROM log WHERE label IN ('cursor', 'expression') GROUP BY 1 ORDER BY 1}),
	"cursor|1|0\nexpression|1|0", 'a trigger that begins no query gets an error');

# A function in a default, while ALTER TABLE rewrites the table
query(q{
	CREATE FUNCTION in_default() RETURNS int LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE 'ALTER SEQUENCE t_id_seq RESTART';
		PERFORM try('default');
		RETURN 1;
	END $$;
	INSERT INTO t (n) VALUES (1), (2);
	ALTER TABLE t ADD d int DEFAULT in_default(), SET UNLOGGED});
is(query(q{SELECT count(*), count(n) FROM log WHERE label = 'default'}), '2|0', 'a function in a default gets an error');
is(query('SELECT last_value, is_called FROM t_id_seq'), '9223372036854775807|t', '... and leaves the sequence exhausted');

# Repeat each of some statements of PL/pgSQL for a while, in a session of its own.
sub repeat
{
	return start_queries($node, map { qq{DO \$\$
		DECLARE until timestamptz := clock_timestamp() + interval '5 s';
		BEGIN
			WHILE clock_timestamp() < until LOOP
				$_;
				COMMIT;
			END LOOP;
		END \$\$} } @_);
}

# Others that drop local ones, with their schemas
my @drops = repeat(map { qq{
	CREATE SCHEMA z$_;
	FOR i IN 1 .. 20 LOOP
		EXECUTE format('CREATE SEQUENCE z$_.s%s', i);
	END LOOP;
	COMMIT;
	DROP SCHEMA z$_ CASCADE} } 1 .. 2);
my @reads = repeat(('PERFORM count(*), count(problem) FROM snowflake_sequences') x 2);
is(finish_queries(@reads), 2, 'snowflake_sequences can be read while others drop sequences');
is(finish_queries(@drops), 2, '... which they can');

# Labels of others
query(q{CREATE SEQUENCE mine; CREATE TABLE truncated (id serial); SELECT snowflake_set_sequence_kind('mine')});

sub fastest ($sql)
{
	my $session = $node->background_psql('postgres', on_error_die => 1);
	my @times;

	foreach (1 .. 15)
	{
		my $begun = time;

		$session->query_safe($sql);
		push @times, time - $begun;
	}
	$session->quit;
	return min(@times);
}
my @statements = ('ALTER SEQUENCE mine CACHE 1', 'TRUNCATE truncated RESTART IDENTITY');
my %before = map { $_ => fastest($_) } @statements;
query(qq{DO \$\$ BEGIN FOR i IN $_ * 500 .. $_ * 500 + 499 LOOP
	EXECUTE format('CREATE SEQUENCE s%s', i); EXECUTE format('SECURITY LABEL FOR snowflake ON SEQUENCE s%s IS %L', i, 'snowflake'); END LOOP; END \$\$})
  foreach 0 .. 5;
cmp_ok(fastest($_), '<', $before{$_} + 0.02, "$_ takes no longer with 3000 labels of others")
  foreach @statements;

# Others that create and drop theirs
my @others = repeat(map { qq{
	FOR i IN 1 .. 20 LOOP
		EXECUTE format('CREATE SEQUENCE z${_}_%s', i);
		EXECUTE format('SECURITY LABEL FOR snowflake ON SEQUENCE z${_}_%s IS %L', i, 'snowflake');
	END LOOP;
	COMMIT;
	FOR i IN 1 .. 20 LOOP
		EXECUTE format('DROP SEQUENCE z${_}_%s', i);
		COMMIT;
	END LOOP} } 1 .. 2);
my @resets = repeat(@statements);
is(finish_queries(@resets), 2, 'ALTER SEQUENCE and TRUNCATE do not fail while others drop sequences');
is(finish_queries(@others), 2, '... nor do these');

done_testing();
