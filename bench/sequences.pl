# Snowflake sequences (bench/run sequences): calls, and INSERTs into tables whose keys
# have them, against local sequences, in a database that is attached and in one that is
# not, and against snowflake_nextval().

use Report;
use Slices qw(median ratio_text);
use SnowflakeTest;

my $slices = $quick ? 100 : 400;
my $calls = 4_000;
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
	$session{$database} = $node->background_psql($database);
}
$node->safe_psql('attached', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE ours;
	SELECT snowflake_set_sequence_kind('ours')});

# Milliseconds that a statement takes in a database
sub ms ($database, $statement)
{
	return $session{$database}->query_safe("SELECT ms('" . ($statement =~ s/'/''/gr) . "')") =~ s/\s+\z//r;
}

# Calls, in slices, in turn.  An aggregate of a volatile argument calls it for each row.
my @cases = (
	[ 'base', 'attached', 'n' ],
	[ 'empty call', 'attached', 'pg_backend_pid()' ],
	[ 'local sequence, unattached', 'unattached', "nextval('local')" ],
	[ 'local sequence, attached', 'attached', "nextval('local')" ],
	[ 'snowflake sequence', 'attached', "nextval('ours')" ],
	[ 'snowflake_nextval()', 'attached', 'snowflake_nextval()' ]);
my ($ns) = in_turn('calls', $slices, \@cases, sub ($case, @) {
	return ms($case->[1], "SELECT count($case->[2]) FROM generate_series(1, $calls) n") * 1e6 / $calls;
});
my $measured =
  Slices->new({ map { $cases[$_][0] => $ns->[$_] } 0 .. $#cases }, 'base', 'empty call');

say_to(machine_text($node) . ". Absolute figures are this machine's; the ratios were taken in one run.");
section("One call in one backend");
say_to(sprintf("`SELECT count(f()) FROM generate_series(...)`, less the same without `f()`, in %d slices of %d calls each, in turn: the least, and the median. The resolution is %.1f ns. Ratios have the range of five parts of the run in brackets.",
		$slices, $calls, $measured->resolution));
table_head('| | ns per call | against a local sequence, unattached | against snowflake_nextval() |');
foreach my $case (@cases[ 2 .. $#cases ])
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
	$session{ $key->[1] }->query_safe("TRUNCATE t$n; CHECKPOINT");
	return ms($key->[1], "INSERT INTO t$n (v) SELECT generate_series(1, $rows)");
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
$_->quit foreach values %session;
done_testing();
