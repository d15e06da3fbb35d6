# What the planner knows of snowflake IDs (sql/planner.sql) beyond one session: on a standby, and
# nothing that outlives the server's scheme depends on it.

use SnowflakeTest;

my $shifted = 'shardingsphere,epoch=2016-10-31';
my $day = q{id >= snowflake_lower_bound('2026-02-01') AND id < snowflake_lower_bound('2026-02-02')};
my $node = new_primary('main', "timezone = 'UTC'", 'jit = off');
sql($node, qq{
	CREATE TABLE m (id bigint PRIMARY KEY, v int) PARTITION BY RANGE (id);
	DO \$\$
	BEGIN
		FOR n IN 0 .. 2 LOOP
			EXECUTE format('CREATE TABLE m_%s PARTITION OF m FOR VALUES FROM (%s) TO (%s)', n,
				snowflake_lower_bound('2026-01-31'::timestamptz + n * interval '1 day'),
				snowflake_lower_bound('2026-02-01'::timestamptz + n * interval '1 day'));
		END LOOP;
	END \$\$;
	INSERT INTO m SELECT snowflake_make('2026-01-31'::timestamptz + n * interval '1 hour', 0, 0), n
	FROM generate_series(0, 24 * 3 - 1) n;
	CREATE VIEW day AS SELECT * FROM m WHERE $day;
	CREATE FUNCTION bound() RETURNS bigint LANGUAGE plpgsql AS \$\$
	BEGIN
		RETURN snowflake_lower_bound('2026-02-01');
	END \$\$;
	CREATE TABLE c (id bigint DEFAULT snowflake_lower_bound('2026-02-01') CHECK (id >= snowflake_lower_bound('2026-02-01')));
	INSERT INTO c DEFAULT VALUES});

# A standby
my $standby = new_standby($node, 'standby');
$node->wait_for_catchup($standby);
like(sql($standby, "EXPLAIN (COSTS off) SELECT * FROM m WHERE $day; SELECT count(*) FROM m WHERE $day"),
	qr/\A(?!.*Append).*id >= '\d+'::bigint.*\n24\z/s, 'a standby computes bounds while planning');
$standby->stop;

# A plan keeps its constant, because a reload does not change the scheme.
my %plans = (
	'a prepared statement' => 'EXECUTE b',
	'PL/pgSQL' => 'SELECT bound()',
	'a view' => 'SELECT DISTINCT v / 24 FROM day');
my $session = $node->background_psql('postgres');
my $prepare_b = "PREPARE b AS SELECT snowflake_lower_bound('2026-02-01') FROM generate_series(1, 1)";
my $generic = 'SET plan_cache_mode = force_generic_plan;';
$session->query_safe("$generic $prepare_b");
my %first = map { $_ => 0 + $session->query_safe($plans{$_}) } keys %plans;
reload_with($node, "snowflake.scheme = '$shifted'");
foreach my $name (sort keys %plans)
{
	is(0 + $session->query_safe($plans{$name}), $first{$name}, "a plan that is older than a reload has the right constant: $name");
	is(sql($node, "$generic $prepare_b; $plans{$name}"),
		$first{$name}, "a plan that is newer than a reload has the same constant: $name");
}
$session->quit;

# A constraint of a child table, by which the planner excludes it
my $old = sql($node, q{
	CREATE TABLE parent (id bigint);
	CREATE TABLE child (CHECK (id >= snowflake_lower_bound('2026-02-01'))) INHERITS (parent);
	INSERT INTO child VALUES (snowflake_lower_bound('2026-02-01')) RETURNING id});
is(sql($node, "SELECT count(*) FROM parent WHERE id <= $old"), '1', 'a row of a child table');

$node->restart;
is(sql($node, "SELECT count(*) FROM parent WHERE id <= $old"), '1',
	'a child table is not excluded by a constraint with the bound of another scheme');
my $first = $first{'PL/pgSQL'};
my $later = $first + (24 * 3600 * 1000 << 22);
my %later = ('a prepared statement' => $later, 'PL/pgSQL' => $later, 'a view' => $first{'a view'} + 1);
is(sql($node, "$generic $prepare_b; $plans{$_}"),
	$later{$_}, "after a restart with another scheme it is another one: $_") foreach sort keys %plans;
is(sql($node, 'INSERT INTO c DEFAULT VALUES RETURNING id'),
	$later, 'a default and a constraint have the bound of the new scheme');
sql_fails($node, "INSERT INTO c VALUES ($first)",
	qr/23514/, 'a constraint refuses what only the old scheme allows');

# Without the library, the error is that of the call, if it is executed.
restart_with($node, "shared_preload_libraries = ''");
sql_fails($node, "SELECT count(*) FROM m WHERE $day",
	qr/55000: snowflake must be loaded via "shared_preload_libraries"/,
	'a bound of a server without the library is refused');
is(sql($node, q{SELECT CASE WHEN count(*) = 0 THEN 0 ELSE snowflake_lower_bound('2026-02-01') END FROM c WHERE false}),
	0, 'a bound that is never computed does no harm without the library');
is(sql($node, "SELECT uuid_timestamp(uuid_lower_bound('2026-02-01')) = '2026-02-01'"),
	't', 'uuid_lower_bound() needs no library preloaded');

done_testing();
