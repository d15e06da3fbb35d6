# What resets the position of sequences takes no longer with labels of others, and does not fail
# while others drop theirs, nor does a query on the view.  (sql/sequence_resets.sql has what one
# session sees.)

use List::Util qw(min);
use SnowflakeTest;

my $node = new_server('node');

sub query { return sql($node, $_[0]); }

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
