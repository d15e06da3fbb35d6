# Every promise of docs/guarantees.md has a test that script/check runs: test/quick says which.

use Page;
use SnowflakeTest;

# What the page promises: events of the table, numbered sentences, and that waits can be
# cancelled and are shown.
my $page = Page->look('docs/guarantees.md');
my ($table) = Page->section('docs/guarantees.md', 'What happens when')->{text} =~ /((?:^\|.*\n)+)/m;
my @rows = map { [ split /(?<!\\)\|/ ] } split /\n/, $table;
my @promises = (
	(map { $_->[1] =~ s/^\s+|\s+$//gr } @rows[ 2 .. $#rows ]),
	Page->section('docs/guarantees.md', 'What is promised')->{text} =~ /^(\d+)\. /mg, 'waits');
cmp_ok(scalar(@promises), '>', 25, 'the page has promises');
like($page->{text}, qr/^Every wait can be cancelled /m, 'waits can be cancelled');

# What test/quick has for them
my ($file, %nothing, %tests, @wrong);
foreach my $line (split /\n/, Page::slurp('test/quick'))
{
	if ($line =~ /^# What promises nothing/)
	{
		undef $file;
	}
	elsif ($line =~ /^(\S+\.pl)$/)
	{
		$file = $1;
		push @wrong, "there is no $file" unless -e "$Page::top/$file";
	}
	elsif ($line =~ /^\t(.*) => (.*)$/)
	{
		my ($promise, $label) = ($1, $2);

		push @wrong, "$file has no test \"$label\""
		  unless defined $file && -e "$Page::top/$file" && index(Page::slurp($file), $label) >= 0;
		$tests{$promise} = $file;
	}
	elsif ($line =~ /^\t(.+)$/)
	{
		$nothing{$1} = 1;
	}
	elsif ($line =~ /^[^#]/)
	{
		push @wrong, "what is \"$line\"?";
	}
}

# Each promise begins as one of those that are named, and each of these begins one.
sub named ($promise, @names)
{
	return grep { $promise eq $_ || ($_ !~ /^\d+$/ && index($promise, $_) == 0) } @names;
}

foreach my $promise (@promises)
{
	push @wrong, "no test for: $promise" unless named($promise, keys %tests, keys %nothing);
}
foreach my $name (sort keys %tests, keys %nothing)
{
	push @wrong, "nothing on the page begins with: $name" unless grep { named($_, $name) } @promises;
}
foreach my $row (@rows[ 2 .. $#rows ])
{
	my $nothing = named($row->[1] =~ s/^\s+|\s+$//gr, keys %nothing);

	push @wrong, "that promises something: $row->[1]"
	  if $nothing && $row->[2] !~ /\*\*duplicates\*\*|may be generated again/;
}
is(join("\n", @wrong), '', 'each promise has a test that script/check runs');
done_testing();
