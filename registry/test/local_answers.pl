# A server that is its own registry, whose functions return anything: no number is given out
# that a registry could not have granted, and no process crashes.  With more time,
# script/tests/answers runs this.

use SnowflakeTest;

my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1_000_000_000));
my $wanted = $ENV{SNOWFLAKE_ANSWERS} // 40;
my $maximum = 1_000_000_000;

my $server = new_own_registry('server', 'postgres', "snowflake.grant_timeout = '300ms'", "log_statement = 'none'");
sql($server, "CREATE SEQUENCE s MAXVALUE $maximum");
wait_until('a range sequence', sub { return $server->psql('postgres', "SELECT snowflake_set_sequence_kind('s', 'range')") == 0; });
my $last = sql($server, "SELECT nextval('s')");

# A function in place of one of the registry's: rows of random values, of which some are good.
sub replace ($name, $arguments, $columns, $body)
{
	return qq{
		ALTER EXTENSION snowflake_registry DROP FUNCTION snowflake_registry.$name;
		DROP FUNCTION snowflake_registry.$name;
		CREATE FUNCTION snowflake_registry.$name($arguments) RETURNS $columns LANGUAGE plpgsql AS \$\$ $body \$\$;
		ALTER EXTENSION snowflake_registry ADD FUNCTION snowflake_registry.$name};
}
diag("SNOWFLAKE_SEED=$seed");
sql($server, join ";\n", "CREATE SEQUENCE public.seeds START $seed",
	'CREATE SEQUENCE public.numbers START 100000 INCREMENT 1000',
	q{CREATE FUNCTION public.wrong(good text) RETURNS text LANGUAGE sql AS $$
		SELECT CASE WHEN random() < 0.88 THEN good ELSE
			(ARRAY[NULL, '', '-', '0', '1', '-1', '2', '99', '1000000001', '4294967297', '9223372036854775807', '9223372036854775808', '0x1', ' 1', '1 ', 'x', 'stopped', 'maximum', 'floor', repeat('x', 600), E'a\nb\tc'])[1 + (random() * 20)::int] END $$},
	q{CREATE FUNCTION public.fail() RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM setseed((nextval('public.seeds') % 1000) / 1000.0);
		IF random() < 0.2 THEN
			RAISE EXCEPTION '%', repeat('error', (random() * 300)::int) USING ERRCODE = (ARRAY['XX000', '22003', '55P03', '57014', '40001'])[1 + (random() * 4)::int];
		ELSIF random() < 0.02 THEN
			PERFORM pg_sleep(2);
		END IF;
	END $$},
	replace('get_ranges', 'client uuid, confirmed uuid, unconfirmed uuid[], new_token uuid, receipt bigint, server_name text, databases text[], names text[], lasts bigint[], counts bigint[], leasts bigint[], floors bigint[], sources text[], boot uuid DEFAULT NULL, directory uuid DEFAULT NULL, started bigint DEFAULT NULL',
		'TABLE ("position" text, first_number text, last_number text, floor text, next text, grant_time_ms text, waits_for text, problem_kind text, problem text, new_receipt text, must_report text)', q{
		BEGIN
			PERFORM public.fail();
			RETURN QUERY SELECT public.wrong(i::text), public.wrong(f::text), public.wrong((f + counts[i] - 1)::text), public.wrong(floors[i]::text), public.wrong(NULL), public.wrong('600000'), public.wrong(NULL), public.wrong(NULL), public.wrong(NULL), public.wrong('1'), public.wrong('0')
			FROM (SELECT i, CASE WHEN counts[i] > 0 THEN greatest(floors[i], nextval('public.numbers')) + 1 END AS f FROM generate_series(1, cardinality(names)) i
				UNION ALL SELECT 1, 1 FROM generate_series(1, CASE WHEN random() < 0.1 THEN 300 * random() ELSE 0 END::int)) r(i, f);
		END}),
	replace('get_floors', 'client uuid, receipt bigint', 'TABLE (database text, name text, floor text)', q{
		BEGIN
			PERFORM public.fail();
			RETURN QUERY SELECT public.wrong('postgres'), public.wrong('public.s'), CASE WHEN random() < 0.5 THEN '1' ELSE public.wrong('x') END FROM generate_series(1, (random() * (ARRAY[1, 2, 300])[1 + (random() * 2)::int])::int)
			WHERE random() < 0.3;
		END}));

# Each time over another connection of the worker.
my ($bad, $numbers) = (0, 0);
foreach (1 .. $wanted)
{
	my (undef, $out) = $server->psql('postgres', "SELECT nextval('s');\n" x 100);

	foreach my $number (split /\n/, $out)
	{
		$bad++ if $number !~ /^\d+$/ || $number <= $last || $number > $maximum;
		$last = $number;
		$numbers++;
	}
	$server->reload;
}
# On a slow machine, each reload can come before the next call.
my $calls;
wait_until(
	'answers of the functions',
	sub {
		my ($status, $number) = $server->psql('postgres', "SELECT nextval('s')");

		if ($status == 0)
		{
			$bad++ if $number <= $last;
			$last = $number;
		}
		$calls = sql($server, "SELECT last_value - $seed FROM public.seeds");
		return $calls > 1;
	});
cmp_ok($calls, '>', 1, "functions returned anything ($calls times)");
ok($bad == 0, "each number is above the ones before, and at most MAXVALUE ($numbers numbers)");
$server->stop('fast');
unlike(slurp_file($server->logfile), qr/terminated by signal|all server processes terminated|runtime error:|ERROR: \w+Sanitizer|TRAP:/, 'no process has crashed');
done_testing();
