# What calls cost in one session and in many, and rows with keys (bench/run), beside what a
# user would pick instead.

use Report;
use Slices qw(median ratio_text);
use SnowflakeTest;
use SnowflakeTest::Session;

my $rounds = $quick ? 2 : 5;
my @sessions = $quick ? (1, 4, 16) : (1, 2, 4, 8, 16, 32, 64);
my $seconds = 1;
my $slices = $quick ? 100 : 400;
my $rows = $quick ? 200_000 : 1_000_000;
begin_report('results', 'bench/run');

# Servers with a scheme in which no call waits for the next tick: one that sets its worker ID, one
# with a synchronous standby, and one that the first grants its worker ID.  The last server has the
# default scheme.
my $scheme = "snowflake.scheme = 'timestamp=41,worker=2,sequence=20'";
my $node = new_server('bench', $scheme, 'snowflake.worker_id = 1', quiet_conf());
my $pair = new_primary('pair', $scheme, 'snowflake.worker_id = 1', quiet_conf());
my $standby = new_standby($pair, 'standby');
require_standbys($pair, '*');
sql($node, "CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create(2, 3, failovers => 0, new => true)");
my $granted = new_server('granted', $scheme, registry_conf($node), quiet_conf());
my $default = new_server('default', 'snowflake.worker_id = 1', quiet_conf());
sql($_, create_ms()) foreach $node, $pair, $granted, $default;
sql($node, q{
	CREATE EXTENSION snowflake_keys;
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
	END $$});
say_to(machine_text($node) . ". With the default scheme a call waits for the next tick (4096 IDs per ms are 244 ns for each), with a 20-bit sequence, which the first table has, it does not. Absolute figures are this machine's; the ratios were taken in one run.");

my ($session, @others) = map { SnowflakeTest::Session->new($_, 'postgres') } $node, $pair, $granted;
my $ours = 'snowflake_nextval()';
my $salt = "'this is my salt'";
my $costs = call_costs($slices, [ $ours, $session, $ours ],
	[ 'with a synchronous standby', $others[0], $ours ],
	[ 'with a registry', $others[1], $ours ],
	[ 'PL/pgSQL recipe', $session, 'plpgsql_id()' ],
	[ 'nextval(), cache 1', $session, "nextval('cache_1')" ],
	[ 'nextval(), cache 100', $session, "nextval('cache_100')" ],
	[ 'uuid_generate_v4() (uuid-ossp)', $session, 'uuid_generate_v4()' ],
	[ 'daily_nextval()', $session, "daily_nextval('daily', 9)" ],
	[ 'hashids_encode()', $session, "hashids_encode(n, $salt)" ],
	[ 'hashids_encode() and hashids_decode()', $session, "hashids_decode(hashids_encode(n, $salt), $salt)" ],
	[ 'snowflake_encode()', $session, 'snowflake_encode(n)' ],
	[ 'snowflake_encode() and snowflake_decode()', $session, 'snowflake_decode(snowflake_encode(n))' ],
	map { [ $_, $session, $_ ] } 'clock_timestamp()', 'uuid_v4()', 'uuid_v7()', 'gen_random_uuid()', 'objectid()');
cost_table($ours, 2, 'clock_timestamp()', $ours, 'with a synchronous standby', 'with a registry',
	'nextval(), cache 1', 'nextval(), cache 100', 'PL/pgSQL recipe');
cost_table('uuid_v4()', 1,
	'uuid_v4()', 'uuid_v7()', 'gen_random_uuid()', 'uuid_generate_v4() (uuid-ossp)');
cost_table('gen_random_uuid()', 3, 'objectid()', 'daily_nextval()',
	'hashids_encode()', 'hashids_encode() and hashids_decode()', 'snowflake_encode()',
	'snowflake_encode() and snowflake_decode()');
$_->close foreach $session, @others;

# Costs of calls, and how many times that of another one they are
sub cost_table ($other, $digits, @names)
{
	table_head("| | ns per call | against $other |");
	say_to("| $_ | " . $costs->cost_text($_) . ' | ' . $costs->times($_, $other, $digits) . ' |') foreach @names;
	return;
}

# Many sessions
my @rates = rates($rounds,
	[ [ $default, $ours ], [ $node, $ours ], [ $node, 'clock_timestamp()' ], [ $node, "nextval('cache_1')" ] ],
	$seconds, @sessions);
my @medians = map { [ $sessions[$_], map { sprintf '%.3f', median(@$_) } @{ $rates[$_] } ] } 0 .. $#sessions;
table_head('| sessions | default scheme (limit 4.096) | 20-bit sequence | clock_timestamp() | nextval(), cache 1 |');
say_to('| ' . join(' | ', @$_) . ' |') foreach @medians;

# Rows
my @tables = (
	[ 'bigint given (floor)', 'bigint', 'n' ],
	[ 'bigserial', 'bigserial' ],
	map { [ $_, (/uuid/ ? 'uuid' : 'bigint') . " DEFAULT $_" ] } $ours, 'gen_random_uuid()', 'uuid_v4()', 'uuid_v7()');
my ($ms, $wal, $index) = in_turn('rows', $rounds, \@tables, sub ($case, @) {
	my (undef, $key, @given) = @$case;
	my $columns = join ', ', ('id') x @given, 'v';
	my $values = join ', ', @given, 'n';

	return split /\|/, sql($default, qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (id $key PRIMARY KEY, v int);
		CHECKPOINT;
		SELECT pg_current_wal_insert_lsn() AS start \\gset
		SELECT ms('INSERT INTO t ($columns) SELECT $values FROM generate_series(1, $rows) n') AS ms \\gset
		SELECT :ms, pg_current_wal_insert_lsn() - :'start', pg_relation_size('t_pkey')});
});
my ($single) = in_turn('single rows', $rounds, \@tables, sub ($case, @) {
	my (undef, $key, @given) = @$case;

	sql($default, "DROP TABLE t; CREATE TABLE t (id $key PRIMARY KEY, v int); CHECKPOINT");
	return tps($default, @given
		? "\\set n :n + 1\n\\set key :client_id * 1000000000 + :n\nINSERT INTO t VALUES (:key, 1);"
		: 'INSERT INTO t (v) VALUES (1);', 8, 2 * $seconds);
});
section('Rows');
say_to("INSERT of $rows rows (key, integer) with a primary key in one statement, and of one row by each of 8 clients of pgbench, in $rounds rounds, in turn: medians, and the ratios of each round; fsync is off, so that the disk does not hide the difference. The floor has its keys given, rising, by the statement.");
table_head('| key | INSERT, ms | against the floor | WAL bytes | index bytes | pgbench, rows/s |');
foreach my $n (0 .. $#tables)
{
	my ($time, $bytes, $size, $tps) = map { median(@{ $_->[$n] }) } $ms, $wal, $index, $single;
	my $ratio = $n == 0 ? '1.000' : ratio_text(3, map { $ms->[$n][$_] / $ms->[0][$_] } 0 .. $rounds - 1);

	say_to(sprintf('| %s | %.0f | %s | %d (%+.3f %%) | %d | %.0f |', $tables[$n][0], $time, $ratio, $bytes, 100 * ($bytes / median(@{ $wal->[0] }) - 1), $size, $tps));
}

# Plots
plot(
	'backends', q{
set title 'IDs of all sessions together, by count() of them'
set xlabel 'sessions'
set ylabel 'million IDs per second'
set logscale x 2
set yrange [0:*]
set key right center
plot $data using 1:3 with linespoints lw 2 pt 7 lc rgb '#2a7d4f' title 'snowflake, 20-bit sequence', \
     $data using 1:2 with linespoints lw 2 pt 7 lc rgb '#2f74c0' title 'snowflake, default scheme (limit 4.096)', \
     $data using 1:5 with linespoints lw 2 pt 7 lc rgb '#b3592a' title 'nextval()'
}, join("\n", map { "@$_" } @medians));
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
	join("\n", map { sprintf('"%s" %.2f', /^([^,]*)/, $costs->cost($_)) }
		  'clock_timestamp()', $ours, 'uuid_v4()', 'nextval(), cache 1', 'gen_random_uuid()', 'PL/pgSQL recipe'));

is(1, 1, 'measured');
done_testing();
