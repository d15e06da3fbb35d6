# A server with range sequences is started again: it holds numbers of all of them at once, as
# many as it used in the time for which servers can do without the registry, and does so.

use List::Util qw(max);
use SnowflakeTest;

my $grant_time = 12;
my $names = 1000;
my $registry = new_range_registry('registry', 'postgres');
sql($registry, "SELECT snowflake_registry.alter_ranges(grant_time => '$grant_time s')");
my $server = new_server('server', registry_conf($registry), "snowflake.server_name = 'server'", 'snowflake.max_range_sequences = ' . ($names + 100));

sub calls { return sql($registry, 'SELECT sum(calls) FROM snowflake_registry.range_clients'); }

# How many sequences have so many numbers, and the numbers of one that is busy
sub ready { return sql($server, "SELECT count(*) FROM pg_class c, _snowflake_range_statistics(c.oid) s WHERE relname ~ '^(s[0-9]|t_id)' AND s.held >= $_[0]"); }
sub held { return sql($server, "SELECT held FROM _snowflake_range_statistics('busy')"); }

sql($server, qq{
	SET snowflake.default_sequence_kind = 'range';
	DO \$\$ BEGIN FOR i IN 1 .. $names LOOP EXECUTE format('CREATE SEQUENCE s%s AS integer', i); END LOOP; END \$\$;
	CREATE SEQUENCE busy AS integer; CREATE SEQUENCE wide AS integer INCREMENT 20; CREATE TABLE t (id serial PRIMARY KEY)});
# Those used last are the ones with the highest numbers.
my $begin = time;
sql($server,
	"SELECT nextval(format('s%s', i)::regclass) FROM generate_series(1, $names) i; SELECT nextval('wide')");
my $one_by_one = time - $begin;
sql($server, 'INSERT INTO t DEFAULT VALUES');

# Numbers at a rate, for as long as the registry's servers do without it
my $rate = 300;
my ($first, $count);
sub catch_up
{
	my $due = int((time - $first) * $rate) - $count;

	$count += $due;
	return $due > 0 && sql_error($server, "SELECT nextval('busy') FROM generate_series(1, $due)");
}
sub use_numbers ($seconds)
{
	my $failed = 0;

	($first, $count) = (time, 0);
	while (time < $first + $seconds)
	{
		$failed++ if catch_up();
		sleep 0.2;
	}
	return $failed;
}
is(use_numbers(2 * $grant_time), 0, 'a sequence is used at a steady rate');

sub starts_with_numbers ($how, $least)
{
	my $calls = calls();
	my $start = time;

	wait_until("numbers of all sequences after $how", sub { ready(100) == $names + 1 });
	my $seconds = time - $start;
	note(sprintf('%.2f s, one by one %.2f s, %s numbers', $seconds, $one_by_one, held()));
	cmp_ok($seconds, '<', max(5, $one_by_one), "all $names sequences have numbers soon after $how");
	cmp_ok(calls() - $calls, '<=', $names / 100 + 15, 'each call has 100 of them');
	cmp_ok(held(), '>=', $least, 'as many as were used before in the time without the registry');
	cmp_ok(sql($server, "SELECT held FROM _snowflake_range_statistics('wide')"), '>=', 2000, 'more with an INCREMENT');
	return;
}
$server->restart;
starts_with_numbers('a restart', $rate * $grant_time);

# The registry is down, for as long as it may be.
$registry->stop('immediate');
is(sql_error($server, 'INSERT INTO t DEFAULT VALUES'), '', 'the first row of a table after a restart does not wait for the registry');
is(use_numbers($grant_time), 0, 'the busy sequence goes on at its rate without the registry');
is(sql($server, "SELECT count(nextval(format('s%s', i)::regclass)) FROM generate_series(1, $names) i, generate_series(1, 50)"), $names * 50, 'and all others');
$registry->start;
wait_until('numbers again', sub { catch_up(); return held() >= $rate * $grant_time * 0.8; });
pass('it is ready for that again');

# A crash, with which nothing is returned.
crash_and_start($server);
# It used less since then.
starts_with_numbers('a crash', 500);

done_testing();
