# Compare who calls whom, by the symbols of objects, with the order of the source that
# a page has:
#
#	order.pl PAGE DIRECTORY
#
# The first block of code in the page's section "The source" has a line for each
# floor, with the names of its files; a line that begins with a blank continues the
# description of the one before.  Each file calls only files on lines further down.
#
# It fails, and says why, if an object calls another that is not below it, which a
# circle does, too; and if an object is not on the page, or a file of the page not
# among the objects.

use strict;
use warnings;

my ($page, $directory) = @ARGV;
my (%floor, %defined_by, %undefined, @wrong);

# The page
open(my $handle, '<', $page) or die "$page: $!";
my $text = do { local $/; <$handle> };
my ($section) = $text =~ /^## The source\n(.*?)^## /ms
  or die "$page has no section \"The source\"";
my ($block) = $section =~ /^```\w*\n(.*?)^```$/ms
  or die "$page has no block in \"The source\"";
my $n = 0;
foreach my $line (split /\n/, $block)
{
	$n++;
	next unless $line =~ /^\S/;
	my ($names) = $line =~ /^((?:\S+\.[ch] +)*\S+\.[ch])(?: |$)/
	  or die "$page: no file in the line \"$line\"";
	foreach my $name (split ' ', $names)
	{
		push @wrong, "$page names $name twice" if $floor{$name};
		$floor{$name} = $n;
	}
}

# The objects: functions and variables that one has and others use
foreach my $object (glob("$directory/*.o $directory/*/*.o"))
{
	my $name = $object =~ s/^\Q$directory\E\///r =~ s/\.o$/.c/r;

	push @wrong, "$page does not name $name" unless $floor{$name};
	$undefined{$name} = [];
	foreach my $line (split /\n/, qx(nm '$object'))
	{
		$defined_by{$1} = $name if $line =~ / [A-TV-Z] (\w+)$/;
		push @{ $undefined{$name} }, $1 if $line =~ / U (\w+)$/;
	}
}
die "there are no objects in $directory" unless %undefined;
foreach my $name (sort grep { /\.c$/ && !$undefined{$_} } keys %floor)
{
	push @wrong, "$page names $name, which does not exist";
}
foreach my $from (sort keys %undefined)
{
	my %symbols;

	foreach my $symbol (@{ $undefined{$from} })
	{
		my $to = $defined_by{$symbol} // $from;

		push @{ $symbols{$to} }, $symbol if $to ne $from;
	}
	foreach my $to (sort grep { $floor{$from} && $floor{$_} && $floor{$_} <= $floor{$from} } keys %symbols)
	{
		push @wrong, "$from calls $to, which is not below it: @{ $symbols{$to} }";
	}
}
print map { "$_\n" } @wrong;
exit(@wrong != 0);
