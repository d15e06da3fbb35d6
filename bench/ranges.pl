# Range sequences (bench/run ranges): calls of one session and of 16, against local ones; COPY
# into new ones on two servers at once, with the registry near and 100 ms away; and the numbers
# that a restart loses.

use Report;
use Proxy;
use Slices qw(median ratio_text);
use SnowflakeTest;
use SnowflakeTest::Session;

my $slices = $quick ? 100 : 300;
my $rows = $quick ? 100_000 : 1_000_000;
my $rounds = $quick ? 3 : 5;
my $restarts = 3;
my $seconds = $quick ? 1 : 2;
my $rate = 1000;
begin_report('ranges', 'bench/run ranges');

my $registry = new_range_registry('registry', 'postgres', quiet_conf());

# Two servers, each with a proxy to the registry, which can be 100 ms away
my (@servers, @proxies);
foreach my $name ('a', 'b')
{
	my $proxy = Proxy->new($registry);

	push @proxies, $proxy;
	push @servers, new_server($name, quiet_conf(), "snowflake.server_name = '$name'",
		registry_conf($registry) =~ s/host=\S+ port=\d+/host=$proxy->{host} port=$proxy->{port}/r);
}
my ($node) = @servers;
sql($node, create_ms() . q{
	CREATE SEQUENCE local; CREATE SEQUENCE cached CACHE 100;
	CREATE SEQUENCE range; SELECT snowflake_set_sequence_kind('range', 'range')});

say_to(machine_text($node) . ', also of the registry and of what was called. The machine had other work. Absolute figures are this machine\'s; the ratios were taken in one run.');

# Calls of one session, and of several
my $session = SnowflakeTest::Session->new($node, 'postgres');
my @kinds = (
	[ 'local sequence', $session, "nextval('local')" ], [ 'local sequence, CACHE 100', $session, "nextval('cached')" ],
	[ 'range sequence', $session, "nextval('range')" ]);
my $measured = call_costs($slices, @kinds);
$session->close;
table_head('| | ns per call | against a local sequence | against CACHE 100 |');
say_to(sprintf('| %s | %s | %s | %s |', $_, $measured->cost_text($_),
		$measured->times($_, 'local sequence', 2), $measured->times($_, 'local sequence, CACHE 100', 2))) foreach map { $_->[0] } @kinds;
my @rates = rates($rounds, [ map { [ $node, $_->[2] ] } @kinds ], $seconds, 1, 16);
table_head('| | 1 session | 16 sessions | 16, against a local sequence | 16, against CACHE 100 |');
foreach my $kind (0 .. $#kinds)
{
	my @ratios = map { my $other = $_; $kind <= $other ? '' : ratio_text(2, map { $rates[1][$kind][$_] / $rates[1][$other][$_] } 0 .. $rounds - 1) } 0, 1;

	say_to(sprintf('| %s | %.2f | %.2f | %s |', $kinds[$kind][0], (map { median(@{ $_->[$kind] }) } @rates), join ' | ', @ratios));
}

# COPY on both servers at once, into a table whose sequence nobody has used, in turn; the slower of
# both counts
my $file = $node->basedir . '/rows';
append_to_file($file, join("\n", 1 .. $rows, ''));
my @copies = ([ 'bigserial', 'local', 'pass' ], [ 'range sequence', 'range', 'pass' ], [ 'range sequence, the registry 100 ms away', 'range', 'far' ]);
my ($ms) = in_turn('COPY', $rounds, \@copies, sub ($copy, $n, $round) {
	my ($name, $kind, $mode) = @$copy;
	my $table = "t${n}_$round";
	my (@times, @runs);

	$_->set('pass') foreach @proxies;
	sql($_, "CREATE TABLE $table (id bigserial PRIMARY KEY, v int);"
		  . ($kind eq 'range' ? "SELECT snowflake_set_sequence_kind('${table}_id_seq', 'range');" : '') . 'CHECKPOINT')
	  foreach @servers;
	$_->set($mode) foreach @proxies;
	foreach my $i (0 .. 1)
	{
		push @runs, IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $servers[$i]->connstr('postgres') ],
			'<' => \ qq{SELECT clock_timestamp() AS begun \\gset
				COPY $table (v) FROM '$file';
				SELECT extract(epoch FROM clock_timestamp() - :'begun') * 1000;},
			'>' => \$times[$i]);
	}
	$_->finish or die 'COPY failed' foreach @runs;

	# Of a range sequence, both have other keys.
	if ($kind eq 'range' && $round == $rounds)
	{
		system_or_bail('sh', '-c', 'psql -XAtq -d "$1" -c "COPY $3 TO STDOUT" | psql -XAtq -v ON_ERROR_STOP=1 -d "$2" -c "COPY $3 FROM STDIN"',
			'sh', (map { $_->connstr('postgres') } @servers), $table);
		is(sql($servers[1], "SELECT count(*) FROM $table"), 2 * $rows, "$name: no key is on both servers");
	}
	sql($_, "DROP TABLE $table") foreach @servers;
	return (sort { $b <=> $a } @times)[0];
});
$_->set('pass') foreach @proxies;

# Numbers between the last one before the end of a server and the first one after it
my %lost;
foreach my $way ('fast stop', 'kill -9')
{
	foreach my $load (0, $rate)
	{
		foreach my $round (1 .. $restarts)
		{
			progress("$way, $round of $restarts");
			my $sequence = ($way =~ s/\W//gr) . "_${load}_$round";
			sql($node, "CREATE SEQUENCE $sequence; SELECT snowflake_set_sequence_kind('$sequence', 'range')");
			my $call = $node->basedir . "/$sequence.sql";
			append_to_file($call, "SELECT nextval('$sequence');\n");
			run_command([ 'pgbench', '-n', '-c', 4, '-T', 2 * $seconds, '--rate', $load, '-f', $call, $node->connstr('postgres') ]) if $load;
			my $last = sql($node, "SELECT nextval('$sequence')");
			$way eq 'fast stop' ? $node->stop('fast') : kill_postmaster($node);
			$node->start;
			push @{ $lost{$way}{$load} }, sql($node, "SELECT nextval('$sequence')") - $last - 1;
		}
	}
}

section('COPY on two servers at once');
say_to("$rows rows with a key and an integer into an empty table with a primary key, on each of two servers at the same time. Nobody has used the sequence. The time is that of the slower server; medians of $rounds rounds, and the ratios of each round.");
table_head('| key | ms | against bigserial |');
foreach my $copy (0 .. $#copies)
{
	say_to(sprintf('| %s | %.0f | %s |', $copies[$copy][0], median(@{ $ms->[$copy] }),
			$copy == 0 ? '' : ratio_text(2, map { $ms->[$copy][$_] / $ms->[0][$_] } 0 .. $rounds - 1)));
}
section('Numbers lost by a restart');
say_to("Numbers between the last one before it, and the first one after it; medians of $restarts restarts, and the most. The sequence was used once, or $rate times a second for " . 2 * $seconds . ' s.');
table_head('| | used once | used ' . "$rate times a second |");
foreach my $way (sort keys %lost)
{
	say_to(sprintf('| %s | %s | %s |', $way, map { sprintf '%.0f (%d)', median(@{ $lost{$way}{$_} }), (sort { $b <=> $a } @{ $lost{$way}{$_} })[0] } 0, $rate));
}
$_->stop foreach @proxies;
done_testing();
