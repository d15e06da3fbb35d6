# Snowflake sequences (bench/run sequences): calls, and INSERTs into tables whose keys
# have them, against local sequences, in a database that is attached and in one that is
# not, and against snowflake_nextval().

use Report;
use Slices qw(median ratio_text);
use SnowflakeTest;
use SnowflakeTest::Session;

my $slices = $quick ? 100 : 400;
my $rows = $quick ? 100_000 : 500_000;
my $rounds = $quick ? 3 : 9;
begin_report('sequences', 'bench/run sequences');

# A scheme in which no call waits for the next tick
my $node = new_primary('bench', 'snowflake.worker_id = 1',
	"snowflake.scheme = 'timestamp=41,worker=2,sequence=20'", quiet_conf());
my %session;
foreach my $database ('unattached', 'attached')
{
	sql($node, "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE SEQUENCE local;' . create_ms());
	$session{$database} = SnowflakeTest::Session->new($node, $database);
}
$node->safe_psql('attached', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE ours;
	SELECT snowflake_set_sequence_kind('ours')});

say_to(machine_text($node) . ". Absolute figures are this machine's; the ratios were taken in one run.");
my @cases = (
	[ 'local sequence, unattached', $session{unattached}, "nextval('local')" ],
	[ 'local sequence, attached', $session{attached}, "nextval('local')" ],
	[ 'snowflake sequence', $session{attached}, "nextval('ours')" ],
	[ 'snowflake_nextval()', $session{attached}, 'snowflake_nextval()' ]);
my $measured = call_costs($slices, @cases);
table_head('| | ns per call | against a local sequence, unattached | against snowflake_nextval() |');
foreach my $case (@cases)
{
	my $name = $case->[0];

	say_to(sprintf('| %s | %s | %s | %s |', $name, $measured->cost_text($name),
			map { $measured->times($name, $_, 2) } 'local sequence, unattached', 'snowflake_nextval()'));
}

# INSERTs into empty tables, in turn
my @keys = (
	[ 'bigserial, unattached', 'unattached', 'bigserial' ],
	[ 'bigserial, attached', 'attached', 'bigserial' ],
	[ 'snowflake sequence', 'attached', 'bigserial' ],
	[ 'snowflake_nextval()', 'attached', 'bigint DEFAULT snowflake_nextval()' ]);
$node->safe_psql($keys[$_][1], "CREATE TABLE t$_ (id $keys[$_][2] PRIMARY KEY, v int)") foreach 0 .. $#keys;
$node->safe_psql('attached', q{SELECT snowflake_set_sequence_kind('t2_id_seq')});
my ($ms) = in_turn('INSERT', $rounds, \@keys, sub ($key, $n, $) {
	$node->safe_psql($key->[1], "TRUNCATE t$n; CHECKPOINT");
	return ms($session{ $key->[1] }, "INSERT INTO t$n (v) SELECT generate_series(1, $rows)");
});
section('INSERT');
say_to("$rows rows with a key and an integer, by one statement into an empty table with a primary key, $rounds rounds, in each of which all keys were measured in turn: medians, and the ratios of each round.");
table_head('| key | ms | against bigserial, unattached |');
foreach my $key (0 .. $#keys)
{
	my $ratio = $key == 0 ? '' : ratio_text(2, map { $ms->[$key][$_] / $ms->[0][$_] } 0 .. $rounds - 1);

	say_to(sprintf('| %s | %.0f | %s |', $keys[$key][0], median(@{ $ms->[$key] }), $ratio));
}

foreach my $key (0 .. $#keys)
{
	is($node->safe_psql($keys[$key][1], "SELECT count(DISTINCT id) FROM t$key"), $rows, "$keys[$key][0]: each row has a key of its own");
}
$_->close foreach values %session;
done_testing();
