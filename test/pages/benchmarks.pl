# How the benchmark tells what a call costs from what the machine does meanwhile.

use v5.36;

use FindBin;
use lib "$FindBin::RealBin/../../bench/perl";
use Slices qw(median least ratio_text);
use Test::More;

is(median(3, 1, 2), 2, 'the median of three');
is(median(4, 1, 2, 3), 2.5, 'the median of four');
is(least(3, 1, 2), 1, 'the least of three');

# Slices of calls with known costs; three of four are disturbed, and in one of the parts
# the empty call drifts.
sub measured ($drift)
{
	my %costs = (base => 60, empty => 62, tiny => 62.5, ours => 80, other => 240, 'base of far' => 90, far => 110);
	my %slices;

	srand(1);
	foreach my $round (0 .. 199)
	{
		foreach my $name (sort keys %costs)
		{
			my $ns = $costs{$name} + rand(0.4);
			$ns += $drift if $round >= 160 && $name eq 'empty';
			$ns *= 3 if rand() < 0.75;
			push @{ $slices{$name} }, $ns;
		}
	}
	return Slices->new(\%slices, 'base', 'empty');
}

my $quiet = measured(0);
cmp_ok(abs($quiet->cost('ours') - 20), '<', 0.5, 'disturbed slices do not count');
cmp_ok(abs($quiet->cost('far') - 20), '<', 0.5, 'a case may have a base of its own');
like($quiet->cost_text('ours'), qr/^(?:19|20)\.\d \(median /, 'a cost is a number');
like($quiet->times('other', 'ours', 1), qr/^9\.0 \((?:8\.9|9\.0) to 9\.\d\)$/, 'a ratio is a number with its range');
is($quiet->times('ours', 'ours', 2), '1.00', 'a ratio to itself is 1');

my $noisy = measured(30);
cmp_ok($noisy->resolution, '>', 25, 'the resolution is how far the empty call differs');
is($noisy->cost_text('ours'), sprintf('below %.1f', $noisy->resolution), 'a cost below the resolution is no number');
is($noisy->times('other', 'ours', 1), 'not resolved', 'a ratio to a cost below the resolution is none');
like($noisy->cost_text('other'), qr/^1[78]\d\.\d/, 'a cost above the resolution is a number');

is(ratio_text(2, 1.1, 1.3, 1.2), '1.20 (1.10 to 1.30)', 'a ratio of rounds that all say the same');
is(ratio_text(2, 0.9, 1.1, 1.02), '1.02 (0.90 to 1.10): not resolved from 1', 'a ratio of rounds that do not');

done_testing();
