# COPY of rows whose keys are defaults (bench/run copy): its time, and the WAL that it
# writes, against bigserial and gen_random_uuid().

use Report;
use Slices qw(median ratio_text);
use SnowflakeTest;

my $rows = $quick ? 100_000 : 500_000;
my $rounds = $quick ? 5 : 15;
begin_report('copy', 'bench/run copy');

my $node = new_primary('bench', 'snowflake.worker_id = 1', quiet_conf());

# The key, and that with which it is compared
my @kinds = (
	[ 'bigserial', 'bigserial', 0 ],
	[ 'snowflake_nextval()', 'bigint DEFAULT snowflake_nextval()', 0 ],
	[ 'snowflake_id()', 'bigint DEFAULT snowflake_id()', 0 ],
	[ 'gen_random_uuid()', 'uuid DEFAULT gen_random_uuid()', 3 ],
	[ 'uuid_v4()', 'uuid DEFAULT uuid_v4()', 3 ],
	[ 'uuid_v7()', 'uuid DEFAULT uuid_v7()', 3 ],
	[ 'snowflake sequence', 'bigserial', 0 ]);

my $file = $node->basedir . '/rows';
append_to_file($file, join("\n", 1 .. $rows, ''));
sql($node, "CREATE TABLE t$_ (id $kinds[$_][1] PRIMARY KEY, v int)") foreach 0 .. $#kinds;
sql($node, "SELECT snowflake_set_sequence_kind('t$#{kinds}_id_seq')");

# Milliseconds and bytes of WAL of a COPY into an empty table
my ($ms, $wal) = in_turn('COPY', $rounds, \@kinds, sub ($, $n, $) {
	return split /\|/, sql($node, qq{
		TRUNCATE t$n;
		CHECKPOINT;
		SELECT clock_timestamp() AS begun, pg_current_wal_insert_lsn() AS lsn \\gset
		COPY t$n (v) FROM '$file';
		SELECT extract(epoch FROM clock_timestamp() - :'begun') * 1000, pg_current_wal_insert_lsn() - :'lsn'});
});

say_to(machine_text($node) . ". COPY of $rows rows with a key and an integer into an empty table with a primary key, $rounds rounds, in each of which all keys were measured in turn. Figures are medians; ratios are those of each round, with their range. Absolute figures are this machine's.");
table_head('| key | ms | WAL, MB | against | time | WAL |');
foreach my $kind (0 .. $#kinds)
{
	my $other = $kinds[$kind][2];
	my @ratios = ('') x 3;

	@ratios = (
		$kinds[$other][0],
		map { my $f = $_; ratio_text(2, map { $f->[$kind][$_] / $f->[$other][$_] } 0 .. $rounds - 1) } $ms, $wal)
	  if $other != $kind;
	say_to(sprintf('| %s | %.0f | %.1f | %s |',
			$kinds[$kind][0], median(@{ $ms->[$kind] }), median(@{ $wal->[$kind] }) / 1e6, join ' | ', @ratios));
}

foreach my $kind (0 .. $#kinds)
{
	is(sql($node, "SELECT count(DISTINCT id) FROM t$kind"), $rows, "$kinds[$kind][0]: each row has a key of its own");
}
done_testing();
