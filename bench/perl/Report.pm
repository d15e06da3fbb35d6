# The report of a benchmark: lines on the terminal and in a file of bench/results, or
# bench/results/quick with --quick.
#
# This comes before PostgreSQL::Test::Utils, which takes standard output for its log.

package Report;

use v5.36;

my $terminal;
BEGIN { open($terminal, '>&', \*STDOUT) or die $!; $terminal->autoflush(1); }

use Exporter 'import';
use SnowflakeTest::Servers;

our @EXPORT = qw(
  $quick begin_report say_to section table_head progress in_turn quiet_conf machine_text plot);

our $quick = @ARGV && $ARGV[0] eq '--quick';
my $directory = 'bench/results' . ($quick ? '/quick' : '');
my $report;

# Begin the report of a command in the file of this name.
sub begin_report ($file, $command)
{
	# A background session would show each of its queries among the results.
	no warnings 'redefine';
	*PostgreSQL::Test::BackgroundPsql::note = sub { };

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
