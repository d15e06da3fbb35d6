# Compare how the output of PostgreSQL's own tests differs from what PostgreSQL expects with a
# file of differences that are known, each with its reason.
#
#	differences.pl [--update] FILE VERSION CONFIGURATION SUITE RESULTS
#
# RESULTS is the folder of pg_regress, with what it wrote in the file log.  For each test
# that ran there is a line "ok" or "not ok"; what differs in another way than FILE says is
# written to RESULTS/unexpected.  With --update, FILE is changed so that all is as it says.
#
# A difference is lines that are not the same, after the last line that looks like a
# statement.  Where only numbers differ, there is the statement alone, once for each test, and in
# other lines that were added each number is #.  So nothing depends on a minor release, on
# how large numbers are, or on how long the registry took.  Of a WARNING that a sequence
# remains local there is only the first line.  FILE has these differences by their tests, with
# the versions and configurations where they are:
#
#	# The reason, for all differences to the next one.
#	= regress/identity [15 17: distributed range; 19: range]
#	~ SELECT * FROM itest3;
#	@@ INSERT INTO itest4 DEFAULT VALUES;
#	+ERROR: permission denied for sequence itest4_a_seq
#
# Lines of comment up to the first blank line explain the file.  Where a difference is
# twice in a test, it is there twice.

use v5.36;

use File::Temp;

my $update = @ARGV && $ARGV[0] eq '--update' && shift;
my ($file, $version, $configuration, $suite, $results) = @ARGV;
my $here = "$version $configuration";
my @configurations = qw(preloaded local distributed range snowflake);
my $no_reason = '# No reason yet.';

sub slurp ($name)
{
	open(my $handle, '<:raw', $name) or die "$name: $!";
	local $/;
	return readline($handle) // '';
}

sub spew ($name, $text)
{
	open(my $handle, '>:raw', $name) or die "$name: $!";
	print $handle $text;
	close $handle or die "$name: $!";
	return;
}

# What identifies a difference of a test: its text, and how often it was there before.
sub new_difference ($seen, $test, $text)
{
	my $count = $seen->{"$test\n$text"}++;

	return { test => $test, text => $text, key => "$test\n$text$count" };
}

# The versions and configurations of a test's line.
sub read_places ($text)
{
	my %places;

	foreach my $group (split /; /, $text)
	{
		my ($versions, $names) = $group =~ /^([\d ]+): ([a-z ]+)$/
		  or die "$file: not versions and configurations: $group\n";
		foreach my $name ($names eq 'all' ? @configurations : split ' ', $names)
		{
			$places{"$_ $name"} = 1 foreach split ' ', $versions;
		}
	}
	return %places;
}

sub write_places ($places)
{
	my (%names, %versions);

	push @{ $names{ s/ .*//r } }, s/.* //r foreach keys %$places;
	foreach my $number (sort { $a <=> $b } keys %names)
	{
		my %there = map { $_ => 1 } @{ $names{$number} };
		my $text = join ' ', grep { $there{$_} } @configurations;

		$text = 'all' if keys %there == @configurations;
		push @{ $versions{$text} }, $number;
	}
	return join '; ', map { "@{ $versions{$_} }: $_" }
	  sort { $versions{$a}[0] <=> $versions{$b}[0] } keys %versions;
}

# The explanation of the file, and its differences.
sub read_file
{
	my ($explanation, $rest) = slurp($file) =~ /\A((?:#[^\n]*\n)+)\n(.*)\z/s
	  or die "$file has no explanation\n";
	my ($reason, $test, %places, %seen, @differences, $last);
	my $text = '';
	my $end = sub {
		push @differences, { %{ new_difference(\%seen, $test, $text) }, reason => $reason, places => {%places} }
		  if $text ne '';
		$text = '';
	};

	foreach my $line (split /\n/, $rest)
	{
		if ($line =~ /^#/)
		{
			$end->();
			$reason = ($last // '') =~ /^#/ ? "$reason\n$line" : $line;
		}
		elsif ($line =~ /^= (\S+) \[(.*)\]$/)
		{
			$end->();
			($test, %places) = ($1, read_places($2));
			die "$file: $test has no reason\n" unless defined $reason;
		}
		elsif ($line =~ /^(?:@@|~) /)
		{
			$end->();
			$text = "$line\n";
		}
		elsif ($line =~ /^[-+]/ && $text =~ /^@/)
		{
			$text .= "$line\n";
		}
		elsif ($line ne '')
		{
			die "$file: not a line of it: $line\n";
		}
		$last = $line;
	}
	$end->();
	return ($explanation, @differences);
}

# What is the same stands together: reasons in their order, then tests, then places, most of
# them first, so that what a test has twice where others have it once is second.
sub write_file ($explanation, @differences)
{
	my (%reasons, %tests);
	my $text = $explanation;

	foreach my $difference (@differences)
	{
		my ($reason, $test) = @$difference{qw(reason test)};

		$reasons{$reason} //= keys %reasons;
		$tests{$test} //= keys %tests;
	}
	my @order = sort {
		     $reasons{ $a->{reason} } <=> $reasons{ $b->{reason} }
		  || $tests{ $a->{test} } <=> $tests{ $b->{test} }
		  || keys %{ $b->{places} } <=> keys %{ $a->{places} }
		  || write_places($a->{places}) cmp write_places($b->{places})
	} @differences;
	my ($reason, $heading) = ('', '');
	foreach my $difference (@order)
	{
		my $line = "= $difference->{test} [" . write_places($difference->{places}) . ']';

		if ($difference->{reason} ne $reason)
		{
			($reason, $heading) = ($difference->{reason}, '');
			$text .= "\n$reason\n";
		}
		elsif ($line ne $heading)
		{
			$text .= "\n";
		}
		$text .= "$line\n" if $line ne $heading;
		$heading = $line;
		$text .= $difference->{text};
	}
	spew($file, $text);
	return;
}

# The tests that pg_regress ran, in their order, and whether their program failed.
sub read_log
{
	my $log = slurp("$results/log");
	my (@tests, %crashed);

	foreach my $line (split /\n/, $log)
	{
		# Before PostgreSQL 16, and since then.
		push @tests, $1
		  if $line =~ /^(?:test|    ) (\S+) +\.\.\. (?:ok|FAILED)/ || $line =~ /^(?:not )?ok \d+ +[-+] (\S+) +\d+ ms/;
		$crashed{ $tests[-1] } = 1 if @tests && $line =~ /\(test process (?:exited|was terminated)/;
	}
	die "$log\npg_regress ended before its tests did\n"
	  unless @tests && $log =~ /^(?: All \d+ tests passed| \d+ of \d+ tests failed|1\.\.\d+$)/m;
	return (\@tests, \%crashed);
}

# The lines of an output, with one blank for several, because they depend on the widest value
# of a column.  Those of isolation tests begin with one for the same reason.
sub read_lines ($name)
{
	my $text = slurp($name) =~ s/-{2,}/--/gr =~ s/[ \t]+/ /gr =~ s/ $//mgr;

	$text =~ s/^ //mg if $suite eq 'isolation';
	return split /\n/, $text;
}

# A line without its numbers, but for how many rows there are.
sub without_numbers ($line) { return $line =~ /^\(\d+ rows?\)$/ ? $line : $line =~ s/\b\d+\b/#/gr; }

# What differs between two outputs: for each hunk the number and the count of its lines in
# both.
sub hunks ($expected, $result)
{
	my $folder = File::Temp->newdir;
	my @hunks;

	spew("$folder/expected", join '', map { without_numbers($_) . "\n" } @$expected);
	spew("$folder/result", join '', map { without_numbers($_) . "\n" } @$result);
	open(my $diff, '-|:raw', 'diff', '-a', '-U0', "$folder/expected", "$folder/result")
	  or die "diff: $!";
	while (my $line = <$diff>)
	{
		my ($from, $count, $to, $added) = $line =~ /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/
		  or next;

		$count //= 1;
		$added //= 1;
		# Without lines it names the one before.
		push @hunks, [ $count ? $from - 1 : $from, $count, $added ? $to - 1 : $to, $added ];
	}
	return @hunks;
}

# The differences of two outputs.
sub compare ($test, $expected, $result)
{
	my $statement = $suite eq 'isolation' ? qr/^(?:step|starting) / : qr/^(?:[A-Za-z]\w*(?: \S|;|\()|\\)/;
	my ($here, $there, $last) = (0, 0, '');
	my (%seen, %numbers, @differences);

	foreach my $hunk (hunks($expected, $result), [ scalar(@$expected), 0, scalar(@$result), 0 ])
	{
		my ($from, $count, $to, $added) = @$hunk;

		for (; $here < $from; $here++, $there++)
		{
			my $line = $expected->[$here];

			$last = substr($line, 0, 60) if $line =~ $statement;
			next if $line eq $result->[$there] || $numbers{$last}++;
			push @differences, new_difference(\%seen, $test, "~ $last\n");
		}
		next unless $count || $added;
		my @added = map { '+' . without_numbers($_) . "\n" } @$result[ $to .. $to + $added - 1 ];
		my $text = join '', (map { "-$_\n" } @$expected[ $from .. $from + $count - 1 ]), @added;

		$text =~ s/^(\+WARNING: sequence .* remains local .*\n)(?:\+(?:DETAIL|HINT): .*\n)*/$1/mg;
		push @differences, new_difference(\%seen, $test, "@@ $last\n$text");
		foreach (@$expected[ $from .. $from + $count - 1 ])
		{
			$last = substr($_, 0, 60) if $_ =~ $statement;
		}
		($here, $there) = ($from + $count, $to + $added);
	}
	return @differences;
}

# The differences of each test that has any.
sub read_differences
{
	my %differences;

	return unless -e "$results/regression.diffs";
	foreach (slurp("$results/regression.diffs") =~ /^diff -U3 (\S+ \S+)$/mg)
	{
		my ($expected, $result) = split ' ';
		my $test = "$suite/" . $result =~ s/.*\/(.*)\.out/$1/r;

		$differences{$test} = [ compare($test, [ read_lines($expected) ], [ read_lines($result) ]) ];
	}
	return \%differences;
}

my ($explanation, @known) = read_file();
my ($tests, $crashed) = read_log();
my $differences = read_differences() // {};
my ($number, $unexpected, @new) = (0, '');

foreach my $name (@$tests)
{
	my $test = "$suite/$name";
	my @there = @{ $differences->{$test} // [] };
	my %there = map { $_->{key} => $_ } @there;
	my %missed = %there;
	my @wrong;

	foreach my $difference (grep { $_->{test} eq $test } @known)
	{
		my $is_known = delete $difference->{places}{$here};
		my $is_there = delete $missed{ $difference->{key} };

		$difference->{places}{$here} = 1 if $is_there;
		push @wrong, "is not there any more:\n$difference->{text}" if $is_known && !$is_there;
		push @wrong, "is known only from elsewhere:\n$difference->{text}" if $is_there && !$is_known;
		push @wrong, "has no reason:\n$difference->{text}"
		  if $is_there && $difference->{reason} eq $no_reason;
	}
	foreach my $difference (grep { $missed{ $_->{key} } } @there)
	{
		push @new, { %$difference, reason => $no_reason, places => { $here => 1 } };
		push @wrong, "is new:\n$difference->{text}";
	}
	@wrong = () if $update;
	push @wrong, "its program failed: see $results/log\n" if $crashed->{$name};
	$unexpected .= "$test $_\n" foreach @wrong;
	printf "%s %d - %s\n", @wrong ? 'not ok' : 'ok', ++$number, $name;
}
if ($update)
{
	my @given = grep { %{ $_->{places} } } @known, @new;
	my @without = grep { $_->{reason} eq $no_reason } @given;

	write_file($explanation, (grep { $_->{reason} ne $no_reason } @given), @without);
	print scalar(@without), " differences have no reason yet: write it to $file\n" if @without;
}
spew("$results/unexpected", $unexpected);
