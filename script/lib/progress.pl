# Read what pg_regress or "prove -v --timer" writes, and show while it runs what a
# person waits for: each test of pg_regress, and each file of prove in a line; but
# all that belongs to a file that failed, and whatever is something else.

use strict;
use warnings;

my $file;
my $failed = 0;
my $tests = 0;
my $lines = '';
$| = 1;

while (my $line = <STDIN>)
{
	# prove has the time first, then the file.  It reports one in one piece.
	if ($line =~ /^(\[[\d:]+\] \S+) \.+ *$/)
	{
		($file, $failed, $tests, $lines) = ($1, 0, 0, $line);
	}
	elsif (defined $file && !$failed && $line =~ /^ok +(\d+) ms /)
	{
		printf "%s: ok, %d tests, %.1f s\n", $file, $tests, $1 / 1000;
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
		print $line;
	}
}
print $lines if defined $file && !$failed;
