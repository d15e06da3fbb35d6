# The report of a benchmark: lines on the terminal and in a file of bench/results, or
# bench/results/quick with --quick.
#
# This comes before PostgreSQL::Test::Utils, which takes standard output for its log.

package Report;

use v5.36;

my $terminal;
BEGIN { open($terminal, '>&', \*STDOUT) or die $!; $terminal->autoflush(1); }

use Exporter 'import';
use Slices qw(least);
use SnowflakeTest::Servers;

our @EXPORT = qw(
  $quick begin_report say_to section table_head progress in_turn ms call_costs rates tps quiet_conf machine_text plot);

our $quick = @ARGV && $ARGV[0] eq '--quick';
my $directory = 'bench/results' . ($quick ? '/quick' : '');
my $report;

# Begin the report of a command in the file of this name.
sub begin_report ($file, $command)
{
	mkdir 'bench/results';
	mkdir $directory;
	open($report, '>', "$directory/$file.md") or die $!;
	say_to("# Results of $command" . ($quick ? ' --quick' : ''));
	say_to('');
	return;
}

sub say_to ($line)
{
	print $terminal "$line\n";
	print $report "$line\n";
	return;
}

# The title of a section
sub section ($title) { say_to($_) foreach '', "## $title", ''; return; }

# The first row of a table, and the line below it
sub table_head ($row) { say_to($_) foreach '', $row, '|' . '---|' x ($row =~ tr/|// - 1); return; }

# On the terminal alone.
sub progress { print $terminal "... @_\n"; return; }

# Measure cases in rounds, all in turn, by a function, which gets a case, its number and that of
# the round; the first round does not count.  For each value that it returns there is a list, by
# case, of lists.
sub in_turn ($what, $rounds, $cases, $measure)
{
	my @measured;

	foreach my $round (0 .. $rounds)
	{
		progress("$what, round $round of $rounds") if $rounds < 50 || $round % 50 == 0;
		foreach my $n (0 .. $#$cases)
		{
			my @values = $measure->($cases->[$n], $n, $round);
			push @{ $measured[$_][$n] }, $values[$_] foreach $round == 0 ? () : 0 .. $#values;
		}
	}
	return @measured;
}

# Milliseconds that a statement takes in a session of a database with create_ms()
sub ms ($session, $statement)
{
	my ($ms, $error) = $session->run("SELECT ms(\$ms\$$statement\$ms\$)");

	die $error if $error ne '';
	return $ms;
}

# Calls in one statement.  An aggregate of a volatile argument calls it for each row.
my $calls = 4_000;
sub statement ($expression) { return "SELECT count($expression) FROM generate_series(1, $calls) n"; }

# What calls cost: a Slices of cases, which have a name, a session, and the expression.  Sessions
# other than the first have a base of their own.  The second of two statements is quicker if another
# session had the processor.
sub call_costs ($slices, @cases)
{
	my $first = $cases[0][1];

	@cases = (
		[ 'base', $first, 'n' ], [ 'empty call', $first, 'pg_backend_pid()' ],
		map { $_->[1] == $first ? $_ : ([ "base of $_->[0]", $_->[1], 'n' ], $_) } @cases);
	my ($ns) = in_turn('calls', $slices, \@cases, sub ($case, @) {
		return least(map { ms($case->[1], statement($case->[2])) * 1e6 / $calls } 1, 2);
	});
	my $costs = Slices->new({ map { $cases[$_][0] => $ns->[$_] } 0 .. $#cases }, 'base', 'empty call');

	section('One call in one session');
	say_to(sprintf('`SELECT count(f()) FROM generate_series(...)`, less the same without `f()`, in %d slices of %d calls each, in turn: the least, and the median. The resolution is %.1f ns. Ratios have the range of five parts of the run in brackets.',
			$slices, $calls, $costs->resolution));
	return $costs;
}

# How often sessions of pgbench execute a script in a second
sub tps ($node, $script, $sessions, $seconds)
{
	my ($out, $err);

	IPC::Run::run([ 'pgbench', '-n', '-c', $sessions, '-j', 2, '-M', 'prepared', '-T', $seconds, '-D', 'n=0', '-f', '-', $node->connstr('postgres') ],
		'<' => \$script, '>' => \$out, '2>' => \$err) or die $err;
	return ($out =~ /tps = ([\d.]+)/)[0];
}

# Millions of calls a second that numbers of sessions reach together: for each number a list, by
# case, of lists.  A case has a server, and the expression.
sub rates ($rounds, $cases, $seconds, @sessions)
{
	my @rates = in_turn('sessions', $rounds, $cases, sub ($case, @) {
		return map { tps($case->[0], statement($case->[1]), $_, $seconds) * $calls / 1e6 } @sessions;
	});

	section('Calls of several sessions');
	say_to("The same statement by pgbench, with what it takes beside the calls, in $rounds rounds of $seconds s, in turn: medians of millions of calls a second, all sessions together.");
	return @rates;
}

# Lines of configuration of a server which does nothing that is not measured.
sub quiet_conf
{
	return ('log_statement = none', 'shared_buffers = 1GB', 'max_wal_size = 16GB',
		'checkpoint_timeout = 1h', 'autovacuum = off', 'jit = off', 'max_parallel_workers_per_gather = 0');
}

# The server and the machine.
sub machine_text ($node)
{
	my $machine = `sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1`;
	my $cpus = `nproc`;

	chomp($machine, $cpus);
	return 'PostgreSQL ' . sql($node, 'SHOW server_version') . ", $cpus cores ($machine)";
}

# Draw a plot, in colours that can be read on light and on dark, as NAME.svg.
sub plot ($name, $commands, $data)
{
	my $file = "$directory/$name.svg";

	open(my $handle, '|-', 'gnuplot') or die $!;
	print $handle qq{
set terminal svg noenhanced size 760,380 font 'sans-serif,13' background rgb '#00ffffff'
set output '$file'
set border lc rgb '#808080'
set tics textcolor rgb '#808080'
set key textcolor rgb '#808080'
set xlabel textcolor rgb '#808080'
set ylabel textcolor rgb '#808080'
set title textcolor rgb '#808080'
set grid ytics lc rgb '#808080' lw 0.3
\$data << END
$data
END
$commands
};
	close $handle or die 'gnuplot failed';

	# The plot has no background of its own.
	open(my $in, '<', $file) or die $!;
	my $svg = join '', <$in>;
	close $in;
	$svg =~ s/<rect[^>]*fill="#(?:00)?ffffff"[^>]*\/>//;
	open(my $out, '>', $file) or die $!;
	print $out $svg;
	close $out;
	return;
}

1;
