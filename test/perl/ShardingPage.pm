# The examples of docs/sharding.md, section by section, for the tests that run
# them.

package ShardingPage;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use PostgreSQL::Test::Utils;
use Test::More;

my $file = abs_path(dirname(__FILE__) . '/../../docs/sharding.md');

# The section with a heading.
sub new
{
	my ($class, $heading) = @_;
	my ($text) =
	  slurp_file($file) =~ /^(## \Q$heading\E\n.*?)(?=^## |\z)/ms;

	die "$file has no section \"$heading\"" unless defined $text;
	my @examples = $text =~ /^```(\w+\n.*?)^```$/msg;
	return bless {
		heading => $heading,
		text => $text,
		examples => [ map { { text => s/^(\w+)\n//r, language => $1 } } @examples ]
	}, $class;
}

# The example that has a text in it: one, or several that are the same.
sub example
{
	my ($self, $text) = @_;
	my @found = grep { index($_->{text}, $text) >= 0 } @{ $self->{examples} };
	my %texts = map { $_->{text} => 1 } @found;

	die "$self->{heading}: not one example, but " . keys(%texts) . ", with: $text"
	  if keys(%texts) != 1;
	$_->{used} = 1 foreach @found;
	return $found[0]->{text};
}

# A test that each example was taken, by example().
sub all_used
{
	my ($self) = @_;

	is( join("\n", map { $_->{text} } grep { !$_->{used} } @{ $self->{examples} }),
		'',
		"each example of \"$self->{heading}\" was run");
}

1;
