# Read what pg_regress or "prove -v --timer" writes, and show while it runs what a
# person waits for: each test of pg_regress, and each file of prove in a line; but
# all that belongs to a file that failed, and whatever is something else.
#
#	progress.pl N RUNNING PROCESSOR
#
# There are N tests of pg_regress or files of prove.  The folder RUNNING has a file for each one
# that runs now, with commas for the slashes of its name, and PROCESSOR one for each that ended,
# with the seconds of processor time that it and its servers took.  After 15 seconds without a
# line, one shows what runs and how many are left.

use v5.36;

use POSIX qw(strftime);

my ($total, $folder, $times) = @ARGV;
my $done = 0;
my $file;
my $failed = 0;
my $tests = 0;
my $lines = '';
my $input = '';
$| = 1;

sub left { return $total - $done . ' left'; }

# The files that run now, and for how long.
sub running
{
	opendir(my $handle, $folder) or return '';
	my %since = map { $_ => (stat "$folder/$_")[9] // time } grep { !/^\./ } readdir $handle;
	closedir $handle;
	my @names = sort { $since{$a} <=> $since{$b} || $a cmp $b } keys %since;
	return join '', map { sprintf ' %s (%d s)', s/,/\//gr, time - $since{$_} } @names;
}

# What a file took of the processors.
sub processor ($name)
{
	open(my $handle, '<', "$times/" . $name =~ s/\//,/gr) or return '';
	my $seconds = readline($handle) // '';
	close $handle;
	return $seconds =~ /^([\d.]+)/ ? ", $1 s of processor" : '';
}

sub read_line ($line)
{
	# prove has the time first, then the file.  It reports one in one piece.
	if ($line =~ /^(\[[\d:]+\] \S+) \.+ *$/)
	{
		($file, $failed, $tests, $lines) = ($1, 0, 0, $line);
		$done++;
	}
	elsif (defined $file && !$failed && $line =~ /^ok +(\d+) ms /)
	{
		printf "%s: ok, %d tests, %.1f s%s; %s\n", $file, $tests, $1 / 1000,
		  processor($file =~ s/^\S+ //r), left();
		undef $file;
	}
	elsif (defined $file && !$failed && $line =~ /^skipped: /)
	{
		print "$file: $line";
		undef $file;
	}
	elsif (defined $file && !$failed)
	{
		$failed = $line =~ /^(?:Dubious|Failed|No subtests run|All .* subtests passed)/;
		$tests++ if $line =~ /^ok \d/;
		$lines .= $line;
		print $lines if $failed;
	}
	elsif (defined $file)
	{
		print $line;
	}
	elsif ($line !~ /^(?:\[[\d:]+\]$|# |    |=====|(?:CREATE|ALTER) DATABASE$|running on port |$)/
		&& $line !~ /^ok \d+ - (?!.* ms$)/)
	{
		$done++ if $line =~ /^(?:test|ok|not ok) .* ms$/;
		print $line;
	}
	return;
}

for (;;)
{
	my $ready = '';

	vec($ready, fileno(STDIN), 1) = 1;
	if (select($ready, undef, undef, 15))
	{
		sysread(STDIN, $input, 65536, length $input) or last;
		read_line($1) while $input =~ s/\A([^\n]*\n)//;
	}
	else
	{
		print strftime('[%H:%M:%S]', localtime), running(), ' ', left(), "\n";
	}
}
read_line($input) if $input ne '';
print $lines if defined $file && !$failed;
