# The measurements of bench/run.

use Report;
use IO::Handle;
use Slices qw(median least ratio_text);
use SnowflakeTest;

my $rounds = $quick ? 3 : 7;
my @backends = $quick ? (1, 4, 16) : (1, 2, 4, 8, 16, 32, 64);
my $seconds = $quick ? 0.5 : 1;
my $slices = $quick ? 100 : 400;
my $calls_per_slice = 4_000;
my $insert_rows = $quick ? 200_000 : 1_000_000;
my $insert_rounds = $quick ? 2 : 5;
begin_report('results', 'bench/run');

sub most { return (sort { $b <=> $a } @_)[0]; }

# The server: what it has beside the extension, and a clean start.
my $node = new_server('bench', "shared_preload_libraries = 'snowflake,snowflake_bench'",
	'snowflake.worker_id = 1', 'max_connections = 100', 'work_mem = 64MB', quiet_conf());
sql($node, q{
	CREATE EXTENSION snowflake_keys;
	CREATE EXTENSION snowflake_bench;
	CREATE EXTENSION "uuid-ossp";
	CREATE SEQUENCE cache_1;
	CREATE SEQUENCE cache_100 CACHE 100;
	CREATE SEQUENCE recipe;
	CREATE SEQUENCE daily;
	-- the recipe that is in many blogs
	CREATE FUNCTION plpgsql_id() RETURNS bigint LANGUAGE plpgsql AS $$
	DECLARE
		epoch bigint := 1314220021721;
		shard int := 1;
		ms bigint;
		number bigint;
	BEGIN
		number := nextval('recipe') % 1024;
		ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
		RETURN ((ms - epoch) << 23) | (shard << 10) | number;
	END $$;
	} . create_ms() . q{
	-- slices of calls, in turn; the first round warms up
	CREATE UNLOGGED TABLE cases (n serial, name text, expression text);
	CREATE UNLOGGED TABLE slices (round int, name text, ms float8);
	CREATE PROCEDURE measure(calls int, rounds int) LANGUAGE plpgsql AS $$
	DECLARE
		c cases;
	BEGIN
		FOR round IN 0 .. rounds LOOP
			FOR c IN SELECT * FROM cases ORDER BY n LOOP
				INSERT INTO slices
				SELECT round, c.name, ms(format('SELECT count(%s) FROM generate_series(1, %s) n', c.expression, calls));
			END LOOP;
		END LOOP;
		DELETE FROM slices s WHERE s.round = 0;
	END $$;
	-- the same in a C loop
	CREATE FUNCTION loop_slices(rounds int) RETURNS TABLE (floor_ns float8, ours_ns float8) LANGUAGE plpgsql AS $$
	BEGIN
		FOR round IN 1 .. rounds LOOP
			SELECT ns::float8 / calls INTO floor_ns FROM bench_count('bench_floor()', 0, 0.002);
			SELECT ns::float8 / calls INTO ours_ns FROM bench_count('snowflake_nextval()', 0, 0.002);
			RETURN NEXT;
		END LOOP;
	END $$;
	-- how fast a counter increases in the middle 60 % of a time
	CREATE FUNCTION sampled_rate(query text, seconds float8) RETURNS float8 LANGUAGE plpgsql AS $$
	DECLARE
		first bigint;
		last bigint;
		start timestamptz;
		stop timestamptz;
	BEGIN
		PERFORM pg_sleep(seconds * 0.2);
		EXECUTE query INTO first;
		start := clock_timestamp();
		PERFORM pg_sleep(seconds * 0.6);
		EXECUTE query INTO last;
		stop := clock_timestamp();
		RETURN (last - first) / extract(epoch FROM stop - start);
	END $$});

sub configure ($scheme)
{
	restart_with($node, "snowflake.scheme = '$scheme'");
	sql($node, 'SELECT snowflake_set_mark(0, force => true)');
	return;
}

my $wide = 'timestamp=41,worker=2,sequence=20';
my $default = 'shardingsphere';

# ns per call of expressions over generate_series, in slices of so many calls, measured in
# turn by one session.
sub measure ($calls, @expressions)
{
	my @cases = ([ base => 'n' ], @expressions);
	my %slices;
	my $list = join ', ', map { "('$_->[0]', '$_->[1]')" } @cases;

	sql($node, qq{
		TRUNCATE slices, cases;
		INSERT INTO cases (name, expression) VALUES $list;
		CALL measure($calls, $slices)});
	foreach (split /\n/, sql($node, 'SELECT name, ms FROM slices ORDER BY round'))
	{
		my ($name, $ms) = split /\|/;
		push @{ $slices{$name} }, $ms * 1e6 / $calls;
	}
	return Slices->new(\%slices, 'base', 'empty C function');
}

# The results of a query of many backends at the same time: all are connected
# before any of them begins.
sub at_once (@queries)
{
	my $begin = time + 0.5 + @queries / 40;
	my @sessions = start_queries(
		$node,
		map {
			"DO 'BEGIN PERFORM pg_sleep(greatest($begin - extract(epoch FROM clock_timestamp()), 0)); END'; $_"
		} @queries);
	die 'a backend failed' if finish_queries(@sessions) != @queries;
	return map { $_->{out} =~ s/^\s+|\s+$//gr } @sessions;
}

chomp(my $cpus = `nproc`);
say_to(machine_text($node) . ". Medians, with the least and the most of $rounds rounds in brackets, where there are several. Absolute figures are this machine's; the ratios were taken in one run.");

progress('per call');
configure($wide);
my $measured = measure(
	$calls_per_slice,
	[ 'empty C function', 'bench_empty()' ],
	[ 'floor: clock + fetch-add', 'bench_floor()' ],
	[ 'snowflake_nextval(), 20-bit sequence', 'snowflake_nextval()' ],
	[ 'nextval(), cache 1', q{nextval(''cache_1'')} ],
	[ 'nextval(), cache 100', q{nextval(''cache_100'')} ],
	[ 'PL/pgSQL recipe', 'plpgsql_id()' ],
	[ 'uuid_v4()', 'uuid_v4()' ],
	[ 'uuid_v7()', 'uuid_v7()' ],
	[ 'gen_random_uuid()', 'gen_random_uuid()' ],
	[ 'uuid_generate_v4() (uuid-ossp)', 'uuid_generate_v4()' ],
	[ 'snowflake_encode()', q{snowflake_encode(n)} ],
	[ 'snowflake_encode() and snowflake_decode()',
		q{snowflake_decode(snowflake_encode(n))} ],
	[ 'objectid()', 'objectid()' ],
	[ 'daily_nextval()', q{daily_nextval(''daily'', 9)} ],
	[ 'hashids_encode()', q{hashids_encode(n, ''this is my salt'')} ],
	[ 'hashids_encode() and hashids_decode()',
		q{hashids_decode(hashids_encode(n, ''this is my salt''), ''this is my salt'')} ]);
my (@floor_ns, @ours_ns);
foreach (split /\n/, sql($node, "SELECT * FROM loop_slices($slices)"))
{
	my ($floor_ns, $ours_ns) = split /\|/;
	push @floor_ns, $floor_ns;
	push @ours_ns, $ours_ns;
}
configure($default);
# A tick has 4096 numbers, which a slice must exceed by far.
my $limited = measure(
	$calls_per_slice * 10,
	[ 'empty C function', 'bench_empty()' ],
	[ 'snowflake_nextval(), default scheme', 'snowflake_nextval()' ]);

my $ours = 'snowflake_nextval(), 20-bit sequence';
section('One call in one backend');
say_to(sprintf("`SELECT count(f()) FROM generate_series(...)`, less the same without `f()`, in %d slices of %d calls each, in turn: the least, and the median. The resolution is %.1f ns: so far does the empty call differ between five parts of the run. Ratios have the range of these parts in brackets. With the default scheme a backend waits for the next tick (4096 IDs per ms are 244 ns for each), with a 20-bit sequence it does not.",
		$slices, $calls_per_slice, $measured->resolution));
cost_table('against ours', $ours, 2, 'empty C function', 'floor: clock + fetch-add', $ours,
	'nextval(), cache 1', 'nextval(), cache 100', 'PL/pgSQL recipe');
say_to(sprintf('| snowflake_nextval(), default scheme | %s | |',
		$limited->cost_text('snowflake_nextval(), default scheme')));
say_to('');
say_to(sprintf('In a C loop, without the executor, in %d slices of 2 ms each, in turn, the least: %.1f ns a call, the floor %.1f ns, %.2f times (medians: %.1f, %.1f, %.2f).',
		$slices, least(@ours_ns), least(@floor_ns), least(@ours_ns) / least(@floor_ns),
		median(@ours_ns), median(@floor_ns), median(@ours_ns) / median(@floor_ns)));
cost_table('against uuid_v4()', 'uuid_v4()', 1,
	'uuid_v4()', 'uuid_v7()', 'gen_random_uuid()', 'uuid_generate_v4() (uuid-ossp)');
cost_table('of gen_random_uuid()', 'gen_random_uuid()', 3, 'objectid()', 'daily_nextval()',
	'hashids_encode()', 'hashids_encode() and hashids_decode()', 'snowflake_encode()',
	'snowflake_encode() and snowflake_decode()');

# Costs of calls, and how many times that of another one they are
sub cost_table ($title, $other, $digits, @names)
{
	table_head("| | ns per call | $title |");
	say_to("| $_ | " . $measured->cost_text($_) . ' | ' . $measured->times($_, $other, $digits) . ' |') foreach @names;
	return;
}

# The median of times or rates, the least and the most
sub spread ($format, @values)
{
	return sprintf("$format ($format to $format)", median(@values), least(@values), most(@values));
}

# Many backends
my %rate;
my %latency;
my %full;
foreach my $case ([ 'default scheme', $default ], [ '20-bit sequence', $wide ])
{
	my ($name, $scheme) = @$case;
	configure($scheme);
	foreach my $n (@backends)
	{
		progress("$n backends, $name");
		my $f = "'snowflake_nextval()', 0";
		foreach my $round (1 .. 3)
		{
			push @{ $rate{$name}{$n} },
			  total_rate($n, $f, 'SELECT ids FROM snowflake_stat');
			next if $scheme ne $wide;
			push @{ $rate{'floor'}{$n} },
			  total_rate($n, "'bench_floor()', 0", 'SELECT bench_counter(0)');
			push @{ $rate{'nextval()'}{$n} },
			  total_rate(
				$n,
				"'nextval(regclass)', 'cache_1'::regclass::oid::bigint",
				'SELECT last_value FROM cache_1');
		}
		my @latencies = map { [ split /\|/ ] }
		  at_once(("SELECT * FROM bench_latency($f, $seconds)") x $n);
		$latency{$name}{$n} =
		  [ median(map { $_->[0] } @latencies), most(map { $_->[1] } @latencies) ];
		if ($scheme eq $default)
		{
			sql($node, 'CREATE UNLOGGED TABLE IF NOT EXISTS loads (ids bigint[]); TRUNCATE loads');
			my $each = int(1_000_000 / $n);
			at_once(
				("INSERT INTO loads SELECT array_agg(snowflake_nextval()) FROM generate_series(1, $each)"
				) x $n);
			$full{$n} = sql($node, q{
				SELECT 100.0 * count(*) FILTER (WHERE ids = 4096) / count(*)
				FROM (SELECT count(*) AS ids FROM loads, unnest(ids) id GROUP BY id >> 22) t});
		}
	}
}

# Calls per second of all backends together, by a counter that is read twice
# while all of them run.
sub total_rate ($n, $f, $counter)
{
	my ($sampled) = at_once(
		"SELECT sampled_rate('$counter', $seconds)",
		("SELECT * FROM bench_count($f, $seconds)") x $n);

	return $sampled;
}

section('Many backends at once');
say_to('Calls in a C loop, all backends together, in millions per second; the default scheme allows 4.096. Full ticks are those of which all 4096 numbers were used, of the ticks that a million IDs took that were generated by `array_agg` in all backends, from the first begun to the last done.');
table_head('| backends | default scheme | of the limit | full ticks | 99.9 % of calls within | longest call | 20-bit sequence | 99.9 % | longest | clock + fetch-add | nextval() |');
foreach my $n (@backends)
{
	my $limited = median(@{ $rate{'default scheme'}{$n} });
	say_to(sprintf('| %d | %.3f | %.1f %% | %.1f %% | %.2f ms | %.1f ms | %.1f | %.4f ms | %.1f ms | %.1f | %.1f |',
			$n, $limited / 1e6, $limited / 40960, $full{$n},
			$latency{'default scheme'}{$n}[0] / 1e6,
			$latency{'default scheme'}{$n}[1] / 1e6,
			median(@{ $rate{'20-bit sequence'}{$n} }) / 1e6,
			$latency{'20-bit sequence'}{$n}[0] / 1e6,
			$latency{'20-bit sequence'}{$n}[1] / 1e6,
			median(@{ $rate{'floor'}{$n} }) / 1e6,
			median(@{ $rate{'nextval()'}{$n} }) / 1e6));
}

# Two backends, on a processor each or on the same one: calls per second of both.
sub pair_rate ($f, $processor, $counter)
{
	my @results = at_once(map {
			my $own = $counter // 1 + $_;
			my $on = $processor // $_;
			"DO 'BEGIN PERFORM bench_pin($on), bench_use_counter($own); END'; "
			  . "SELECT calls::float8 / ns FROM bench_count('$f', 0, $seconds)"
	} 0, 1);
	return 1000 * ($results[0] + $results[1]);
}

# ns for a cache line to go from one processor to another.
sub handover_ns
{
	my @turns = at_once(map {
			"DO 'BEGIN PERFORM bench_pin($_), bench_use_counter(3); END'; "
			  . "SELECT bench_handover($_, $seconds)"
	} 0, 1);
	return 1e9 * $seconds / ($turns[0] + $turns[1]);
}

if ($cpus > 1)
{
	my @pairs = (
		[ 'clock + fetch-add, on a counter each', 'bench_own_floor()', undef ],
		[ 'clock + fetch-add, on one counter', 'bench_own_floor()', 0 ],
		[ 'fetch-add alone, on one counter', 'bench_own_add()', 0 ],
		[ 'snowflake_nextval(), 20-bit sequence', 'snowflake_nextval()', 0 ]);
	my @handover;
	my @rates = in_turn('two backends, pinned', $rounds, \@pairs, sub ($case, $n, $) {
		push @handover, handover_ns() if $n == 0;
		return map { pair_rate($case->[1], $_, $case->[2]) } undef, 0;
	});
	section('What two backends at once are limited by');
	say_to(sprintf(
			'Two backends that run on a processor each, or both on the same one; calls in a C loop, both together, in millions per second. A cache line that both write to goes from one processor to the other in %.0f ns (%.0f to %.0f), %.1f million times a second; docs/develop/benchmarks.md says what follows from that.',
			median(@handover), least(@handover), most(@handover), 1000 / median(@handover)));
	table_head('| | on two processors | on one |');
	foreach my $n (0 .. $#pairs)
	{
		say_to("| $pairs[$n][0] | " . join(' | ', map { spread('%.1f', @{ $_->[$n] }) } @rates) . ' |');
	}
}

progress('a synchronous standby');
my $pair = new_primary('pair', "shared_preload_libraries = 'snowflake,snowflake_bench'", "snowflake.scheme = '$wide'");
sql($pair, 'CREATE EXTENSION snowflake_bench');
my $standby = new_standby($pair, 'bench_standby');
# The call that waits because the standby has become synchronous is timed apart.
my $waited = 'SELECT reserve_waits, reserve_wait_ms FROM snowflake_stat';
my (%mark, @first_ms);
my ($waits, $wait_ms) = (0, 0);
foreach my $round (1 .. $rounds)
{
	foreach my $names ('', '*')
	{
		reload_with($pair, "synchronous_standby_names = '$names'");
		$pair->poll_query_until('postgres',
			"SELECT bool_and((sync_state = 'async') = ('$names' = '')) FROM pg_stat_replication");
		my $start = time;
		sql($pair, 'SELECT snowflake_nextval()');
		push @first_ms, (time - $start) * 1000 if $names eq '*';
		my ($before, $ms_before) = split /\|/, sql($pair, $waited);
		push @{ $mark{$names} },
		  sql($pair, "SELECT ns::float8 / calls FROM bench_count('snowflake_nextval()', 0, $seconds)");
		my ($after, $ms_after) = split /\|/, sql($pair, $waited);
		$waits += $after - $before;
		$wait_ms += $ms_after - $ms_before;
	}
}
section('A synchronous standby');
say_to(sprintf(
		'One backend, C loop, 20-bit sequence: %.1f ns a call with a synchronous standby on the same machine, %.1f ns with an asynchronous one, %.2f times. In the %d s of these calls, %d waited for the standby, %.1f ms in total. The first call when the standby becomes synchronous takes %.0f ms, with psql.',
		median(@{ $mark{'*'} }), median(@{ $mark{''} }),
		median(map { $mark{'*'}[$_] / $mark{''}[$_] } 0 .. $rounds - 1),
		2 * $rounds * $seconds, $waits, $wait_ms, median(@first_ms)));
$standby->stop;
$pair->stop;

# With a registry: one server that is granted its worker ID by another, which
# sets its own.
configure($wide);
sql($node, "CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create(2, 3, failovers => 0, new => true)");
my $granted = new_server('granted', "shared_preload_libraries = 'snowflake,snowflake_bench'",
	"snowflake.scheme = '$wide'", registry_conf($node), 'log_statement = none');
sql($granted, 'CREATE EXTENSION snowflake_bench');
my ($granted_ns) = in_turn('a registry', $rounds, [ $granted, $node ], sub ($server, @) {
	return sql($server, "SELECT ns::float8 / calls FROM bench_count('snowflake_nextval()', 0, $seconds)");
});

# What the registry does for it, each time on a connection of its own: processor
# time of its processes, of which those that ended are counted with their parent.
my $extensions = $quick ? 200 : 1000;
my $extend = $node->basedir . '/extend.sql';
append_to_file($extend, "\\set next :token + 1\n"
	  . "SELECT * FROM snowflake_registry.get_grant('$wide', 0, 3, snowflake_registry.lower_bound(now(), '$wide'), "
	  . "ARRAY[lpad(:token::text, 32, '0')::uuid], lpad(:next::text, 32, '0')::uuid, 'bench');\n"
	  . "\\set token :next\n");
my $clock_ticks = `getconf CLK_TCK`;
sub processor_time
{
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @stat = split ' ', slurp_file("/proc/$postmaster/stat") =~ s/.*\) //sr;
	return ($stat[11] + $stat[12] + $stat[13] + $stat[14]) / $clock_ticks;
}
my $used = processor_time();
PostgreSQL::Test::Utils::system_or_bail('pgbench', '-n', '-C', '-c', '1', '-D', 'token=0', '-t', $extensions,
	'-f', $extend, '-h', $node->host, '-p', $node->port, 'postgres');
$used = (processor_time() - $used) / $extensions;
$granted->stop;
section('A registry');
say_to(sprintf(
		'One backend, C loop, 20-bit sequence: %.1f ns a call on a server whose worker ID is granted, %.1f ns where it is set, %.3f times.',
		(map { median(@$_) } @$granted_ns),
		median(map { $granted_ns->[0][$_] / $granted_ns->[1][$_] } 0 .. $rounds - 1)));
say_to('');
say_to(sprintf(
		'One call for a grant, with its connection, takes %.1f ms of processor time in the registry. 1000 servers with a grant_time of 10 min call 3.7 times a second: %.1f %% of one core.',
		$used * 1000, $used * 1000 / (600 * 0.45) * 100));

# Rows
configure($default);
my @tables = (
	[ 'bigint given (floor)', 'bigint PRIMARY KEY', 'n' ],
	[ 'bigserial', 'bigserial PRIMARY KEY', 'DEFAULT' ],
	[ 'snowflake_nextval()', 'bigint PRIMARY KEY DEFAULT snowflake_nextval()', 'DEFAULT' ],
	[ 'gen_random_uuid()', 'uuid PRIMARY KEY DEFAULT gen_random_uuid()', 'DEFAULT' ],
	[ 'uuid_v4()', 'uuid PRIMARY KEY DEFAULT uuid_v4()', 'DEFAULT' ],
	[ 'uuid_v7()', 'uuid PRIMARY KEY DEFAULT uuid_v7()', 'DEFAULT' ]);
my ($ms, $wal, $index) = in_turn('rows', $insert_rounds, \@tables, sub ($case, @) {
	my (undef, $type, $value) = @$case;
	my $columns = $value eq 'n' ? 'id, v' : 'v';
	my $select = $value eq 'n' ? 'n, n' : 'n';
	return split /\|/, sql($node, qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id $type, v int);
		CHECKPOINT;
		SELECT pg_current_wal_insert_lsn() AS start \\gset
		SELECT ms('INSERT INTO t ($columns) SELECT $select FROM generate_series(1, $insert_rows) n') AS ms \\gset
		SELECT :ms, pg_current_wal_insert_lsn() - :'start', pg_relation_size('t_pkey')});
});
my @tps;
foreach my $round (1 .. ($quick ? 1 : 3))
{
	foreach my $n (0 .. $#tables)
	{
		my ($name, $type, $value) = @{ $tables[$n] };
		my $insert = $node->basedir . "/insert_${n}_$round.sql";
		progress("pgbench, $name");
		sql($node, "DROP TABLE IF EXISTS t; CREATE TABLE t (id $type, v int); CHECKPOINT");

		# Each client gives keys of its own, without asking anybody.
		append_to_file($insert, $value eq 'n'
			? "\\set n :n + 1\n\\set key :client_id * 1000000000 + :n\nINSERT INTO t VALUES (:key, 1);\n"
			: "INSERT INTO t (v) VALUES (1);\n");
		my ($out, $err) = run_command([
			'pgbench', '-n', '-M', 'prepared', '-c', '8', '-j', '2', '-T', $quick ? 3 : 6,
			'-D', 'n=0', '-f', $insert, '-d', $node->connstr('postgres') ]);
		push @{ $tps[$n] }, $out =~ /^tps = ([\d.]+)/m ? $1 : die $err;
	}
}
section('Rows');
say_to("INSERT of $insert_rows rows (key, integer) with a primary key in one statement, and pgbench with single-row INSERTs of 8 clients; fsync is off, so that the disk does not hide the difference. The floor has its keys given, rising, by the statement.");
table_head('| key | INSERT, ms | against the floor | WAL bytes | index bytes | pgbench, rows/s |');
foreach my $n (0 .. $#tables)
{
	my $ratio = $n == 0 ? '1.000'
	  : ratio_text(3, map { $ms->[$n][$_] / $ms->[0][$_] } 0 .. $insert_rounds - 1);
	say_to(sprintf('| %s | %s | %s | %d (%+.3f %%) | %d | %.0f |',
			$tables[$n][0], spread('%.0f', @{ $ms->[$n] }), $ratio, median(@{ $wal->[$n] }),
			100 * (median(@{ $wal->[$n] }) / median(@{ $wal->[0] }) - 1),
			median(@{ $index->[$n] }), median(@{ $tps[$n] })));
}

# Plots
plot(
	'backends', q{
set title 'IDs of all backends together, C loop'
set xlabel 'backends'
set ylabel 'million IDs per second'
set logscale x 2
set yrange [0:*]
set key right center
plot $data using 1:2 with linespoints lw 2 pt 7 lc rgb '#2a7d4f' title 'snowflake, 20-bit sequence', \
     $data using 1:3 with linespoints lw 2 pt 7 lc rgb '#2f74c0' title 'snowflake, default scheme (limit 4.096)', \
     $data using 1:4 with linespoints lw 2 pt 7 lc rgb '#b3592a' title 'nextval()'
},
	join("\n", map {
			join(' ', $_,
				median(@{ $rate{'20-bit sequence'}{$_} }) / 1e6,
				median(@{ $rate{'default scheme'}{$_} }) / 1e6,
				median(@{ $rate{'nextval()'}{$_} }) / 1e6)
	} @backends));
my @bars = (
	[ 'floor', 'floor: clock + fetch-add' ],
	[ 'snowflake', $ours ],
	[ 'uuid_v4()', 'uuid_v4()' ],
	[ 'nextval()', 'nextval(), cache 1' ],
	[ 'gen_random_uuid()', 'gen_random_uuid()' ],
	[ 'PL/pgSQL', 'PL/pgSQL recipe' ]);
plot(
	'call', q{
set title 'One call, base cost taken off'
set ylabel 'ns (logarithmic)'
set logscale y
set yrange [5:4000]
set boxwidth 0.6
set style fill solid 0.9 noborder
unset key
plot $data using 0:2:xtic(1) with boxes lc rgb '#2f74c0', \
     $data using 0:2:(sprintf('%.0f', $2)) with labels offset 0,0.7 textcolor rgb '#808080'
},
	join("\n", map { sprintf('"%s" %.2f', $_->[0], $measured->cost($_->[1])) } @bars));

is(1, 1, 'measured');
done_testing();
