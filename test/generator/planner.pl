# What the planner knows of snowflake IDs: bounds that are constants are computed
# while a query is planned, so that only the partitions that are needed are locked;
# but nothing that outlives the server's scheme depends on it.

use SnowflakeTest;

my $days = 100;
my $shifted = 'shardingsphere,epoch=2016-10-31';

my $node = new_primary('main', "timezone = 'UTC'", 'jit = off');
sql($node, qq{
	CREATE TABLE m (id bigint PRIMARY KEY, v int) PARTITION BY RANGE (id);
	DO \$\$
	BEGIN
		FOR n IN 0 .. $days - 1 LOOP
			EXECUTE format('CREATE TABLE m_%s PARTITION OF m FOR VALUES FROM (%s) TO (%s)', n,
				snowflake_lower_bound('2026-01-01'::timestamptz + n * interval '1 day'),
				snowflake_lower_bound('2026-01-02'::timestamptz + n * interval '1 day'));
		END LOOP;
	END \$\$;
	INSERT INTO m SELECT snowflake_make('2026-01-01'::timestamptz + n * interval '1 hour', 0, 0), n
	FROM generate_series(0, 24 * $days - 1) n;
	ANALYZE m;
	CREATE VIEW day AS
		SELECT * FROM m WHERE id >= snowflake_lower_bound('2026-02-01') AND id < snowflake_lower_bound('2026-02-02');
	CREATE FUNCTION bound() RETURNS bigint LANGUAGE plpgsql AS \$\$
	BEGIN
		RETURN snowflake_lower_bound('2026-02-01');
	END \$\$;
	CREATE FUNCTION since(t timestamptz, until timestamptz) RETURNS bigint LANGUAGE plpgsql AS \$\$
	BEGIN
		RETURN (SELECT count(*) FROM m WHERE id >= snowflake_lower_bound(t) AND id < snowflake_lower_bound(until));
	END \$\$});

# How many relations a query locks, whatever its result is.  The partitioned index
# is not counted, because it is locked from PostgreSQL 16 on.
sub locks ($query, $before)
{
	my @lines = split /\n/, sql($node, ($before // '') . qq{
		BEGIN;
		$query;
		SELECT 'locks', count(*) FROM pg_locks
		WHERE pid = pg_backend_pid() AND locktype = 'relation'
			AND relation IN (SELECT oid FROM pg_class WHERE relkind <> 'I' AND (relname LIKE 'm\\_%' OR relname = 'm'));
		COMMIT});
	return $lines[-1] =~ s/^locks\|//r;
}

# The table, a partition, and its index
my $day = q{id >= snowflake_lower_bound('2026-02-01') AND id < snowflake_lower_bound('2026-02-02')};
my $prepare = 'PREPARE p(timestamptz, timestamptz) AS SELECT count(*) FROM m WHERE id >= snowflake_lower_bound($1) AND id < snowflake_lower_bound($2);';
my $execute = q{EXECUTE p('2026-02-01', '2026-02-02')};
my %queries = (
	'constants' => ["SELECT count(*) FROM m WHERE $day"],
	'a time zone' => [
		q{SELECT count(*) FROM m WHERE id >= snowflake_lower_bound(timestamp '2026-02-01' AT TIME ZONE 'UTC')
		AND id < snowflake_lower_bound('2026-02-02')}
	],
	'a view' => ['SELECT count(*) FROM day'],
	'snowflake_make()' => [
		q{SELECT count(*) FROM m WHERE id BETWEEN snowflake_make('2026-02-01', 0, 0) AND snowflake_make('2026-02-01 23:59:59', 0, 0)}
	],
	'snowflake_within()' => [q{SELECT count(*) FROM m WHERE snowflake_within(id, '[2026-02-01,2026-02-02)')}],
	'snowflake_within() of a view' =>
	  [q{SELECT count(*) FROM (SELECT id FROM m OFFSET 0) m WHERE snowflake_within(id, '[2026-02-01,2026-02-02)')}, 1 + 2 * $days],
	'parameters' => [ $execute, 3, "$prepare SET plan_cache_mode = force_custom_plan;" ],
	'a generic plan' => [ $execute, 1 + 2 * $days, "$prepare SET plan_cache_mode = force_generic_plan;" ],
	'PL/pgSQL' => [
		q{SELECT since('2026-02-01', '2026-02-02')}, 3, 'SET plan_cache_mode = force_custom_plan;'
	],
	'PL/pgSQL with a generic plan' => [
		q{SELECT since('2026-02-01', '2026-02-02')}, 1 + 2 * $days, 'SET plan_cache_mode = force_generic_plan;'
	],
	'now()' => [
		q{SELECT count(*) FROM m WHERE id < snowflake_lower_bound(now() - interval '1 hour')},
		1 + 2 * $days
	]);
foreach my $name (sort keys %queries)
{
	my ($query, $locks, $before) = @{ $queries{$name} };

	is(locks($query, $before), $locks // 3, "relations that a query locks: $name");
	is(sql($node, ($before // '') . $query), 24, "a query finds the rows of the day: $name")
	  if $name ne 'now()';
}

# What is known at the start of the execution prunes partitions then.
my $tenth_day = q{snowflake_lower_bound(now() - (now() - '2026-01-11'))};
my %removed = (
	'a generic plan' => [ $days - 1, "SET plan_cache_mode = force_generic_plan; $prepare EXPLAIN (COSTS off) $execute" ],
	'a bound of now()' => [ $days - 10, "EXPLAIN SELECT * FROM m WHERE id < $tenth_day" ]);
foreach my $name (sort keys %removed)
{
	my ($partitions, $query) = @{ $removed{$name} };

	like(sql($node, $query),
		qr/Subplans Removed: $partitions\n/, "partitions are pruned at the start of the execution: $name");
}

# Rows are estimated by the time at which the query is planned.
my ($estimate) = sql($node, "CREATE TABLE flat AS SELECT * FROM m; ANALYZE flat; EXPLAIN SELECT * FROM flat WHERE id < $tenth_day") =~ /rows=(\d+)/;
cmp_ok(abs($estimate - 240), '<', 24, 'rows below a bound of now() are estimated');

# What is evaluated by time needs no index on it.
my $plan = sql($node, q{SET enable_seqscan = off; EXPLAIN (COSTS off) SELECT * FROM m_31 WHERE snowflake_within(id, tstzrange(now() - interval '1 day', NULL))});
like($plan, qr/Index Cond: .*id >= _snowflake_first_id\(tstzrange\(\(now/,
	'snowflake_within() of a range that is not a constant uses the index');

# Parallel workers
like(sql($node, qq{
		SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		EXPLAIN (COSTS off) SELECT count(*) FROM m WHERE $day;
		SELECT count(*) FROM m WHERE $day}),
	qr/Gather.*Parallel Seq Scan on m_31 .*Filter: \(\(id >= '\d+'::bigint\).*\n24\z/s,
	'parallel workers have the constant');

# The right to call a function is checked when its result is computed, and a plan with
# the result does not outlive it, even if the query does not name the function.
sql($node, 'CREATE ROLE regress_reader; GRANT SELECT ON m TO regress_reader');
my $reader = $node->background_psql('postgres', on_error_stop => 0);
$reader->query_safe(
	q{SET ROLE regress_reader; PREPARE r AS SELECT count(*) FROM m WHERE snowflake_within(id, '[2026-02-01,2026-02-02)')});
is(0 + $reader->query_safe('EXECUTE r'), 24, 'a role with EXECUTE has a plan with a bound');
my @rights = map { "EXECUTE ON FUNCTION $_" } 'snowflake_lower_bound(timestamptz)', '_snowflake_first_id(tstzrange)';
sql($node, join ';', map { "REVOKE $_ FROM PUBLIC" } @rights);
sql_fails($node, "SET ROLE regress_reader; SELECT count(*) FROM m WHERE $day",
	qr/42501: permission denied for function snowflake_lower_bound/,
	'a role without EXECUTE cannot have a bound computed');
is(sql($node, q{SET ROLE regress_reader; SELECT count(*) FROM m WHERE id > snowflake_lower_bound('2026-02-01') AND false}),
	0, 'without EXECUTE, a bound that is never computed does no harm');
$reader->query('EXECUTE r');
like($reader->{stderr}, qr/permission denied for function _snowflake_first_id/,
	'a plan with a bound ends with the right to compute it');
$reader->quit;
sql($node, join ';', map { "GRANT $_ TO PUBLIC" } @rights);

# A call that fails does so when it is reached, and not while the query is planned.
my %limits = (
	'snowflake_timestamp(%s)' => [ 'bigint', 22003, -1, '-9223372036854775808' ],
	'snowflake_lower_bound(%s)' => [
		'timestamptz', 22008, map { "'$_'" } 'infinity', '-infinity', '2016-10-31 23:59:59.999999', '2086-07-08 15:47:35.552', '294276-12-31', '4713-01-01 BC'
	],
	'snowflake_make(%s, 0, 0)' => [
		'timestamptz', 22008, map { "'$_'" } 'infinity', '-infinity', '2016-10-31 23:59:59.999999', '2086-07-08 15:47:35.552', '294276-12-31', '4713-01-01 BC'
	],
	q{snowflake_make('2026-01-01', %s, 0)} => [ 'int', 22003, -1, 1024, '2147483647', '-2147483648' ],
	q{snowflake_make('2026-01-01', 0, %s)} => [ 'bigint', 22003, -1, 4096, '9223372036854775807', '-9223372036854775808' ],
	q{snowflake_make('2026-01-01', 0, 0, %s)} => [ 'int', 22003, -1, 1, '2147483647', '-2147483648' ],
	q{snowflake_make('2026-01-01', coalesce(%s, NULL), 0)} => [ 'int', 22004, 'NULL' ]);
foreach my $call (sort keys %limits)
{
	my ($type, $state, @values) = @{ $limits{$call} };

	foreach my $value (@values)
	{
		my $constant = sprintf $call, "CAST($value AS $type)";
		my $parameter = sprintf $call, '$1';

		is( sql($node, qq{
				SET plan_cache_mode = force_custom_plan;
				SELECT count($constant) FROM generate_series(1, 1) WHERE false;
				SELECT CASE WHEN v < 0 THEN $constant IS NULL END FROM generate_series(1, 1) v;
				PREPARE p($type) AS SELECT $parameter FROM generate_series(1, 1) v WHERE v < 0;
				EXECUTE p($value)}), "0\n", "a call that is not reached does not fail: $constant");
		sql_fails($node, "SELECT $constant", qr/ERROR:  $state: /, "one that is reached does: $constant");
	}
}
is( sql($node, q{
		PREPARE p(bigint) AS SELECT snowflake_timestamp($1) WHERE $1 >= 0;
		EXECUTE p(-1);
		SELECT snowflake_make(NULL, 0, 0) IS NULL AND snowflake_make('2026-01-01', 0, NULL) IS NULL AND snowflake_timestamp(NULL) IS NULL}),
	't', 'a condition on a parameter protects the call');
foreach my $times ("'empty'", 'NULL', "'(,)'", "'[infinity,]'", "'[-infinity,infinity]'", "'[294276-12-31,)'", "'(,4713-01-01 BC]'")
{
	my $columns = join ', ', map { "_snowflake_${_}_id($times) AS $_" } 'first', 'last';

	unlike(sql($node, "EXPLAIN (VERBOSE, COSTS off) SELECT $columns FROM generate_series(1, 1)"),
		qr/snowflake_/, "the IDs of a range at its limits are computed while planning: $times");
}

# The last that do not fail are computed.
foreach my $call (
	'snowflake_timestamp(0)', 'snowflake_timestamp(9223372036854775807)',
	"snowflake_lower_bound('2016-11-01')", "snowflake_lower_bound('2086-07-08 15:47:35.551')",
	"snowflake_make('2016-11-01', 0, 0)", "snowflake_make('2086-07-08 15:47:35.551', 1023, 4095)",
	"snowflake_make('2026-01-01', 0, 0, 0)", "snowflake_make('2026-01-01', 0, NULL)")
{
	unlike(sql($node, "EXPLAIN (VERBOSE, COSTS off) SELECT $call FROM generate_series(1, 1)"),
		qr/snowflake_/, "a call at its limit is computed while planning: $call");
}

# What outlives the scheme may not depend on it.
sql_fails($node, q{CREATE INDEX ON m (id) WHERE id > snowflake_lower_bound('2026-02-01')},
	qr/42P17: functions in index predicate must be marked IMMUTABLE/,
	'an index predicate with a bound of the server\'s scheme is refused');
sql_fails($node, q{CREATE TABLE g (id bigint, x bigint GENERATED ALWAYS AS (snowflake_lower_bound('2026-02-01')) STORED)},
	qr/42P17: generation expression is not immutable/,
	'a generated column with a bound of the server\'s scheme is refused');
sql($node, q{
	CREATE TABLE g (id bigint, x bigint GENERATED ALWAYS AS (snowflake_make('2026-02-01', 1, 0, NULL, 'shardingsphere')) STORED);
	CREATE TABLE c (id bigint DEFAULT snowflake_lower_bound('2026-02-01') CHECK (id >= snowflake_lower_bound('2026-02-01')));
	INSERT INTO c DEFAULT VALUES;
	INSERT INTO g VALUES (1)});
pass('snowflake_make() with a scheme may be in a generated column');

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
