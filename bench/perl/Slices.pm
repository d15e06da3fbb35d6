# What a call costs, on a noisy machine.
#
# What is compared is measured in short slices, in turn, again and again: what else the
# machine does then meets all of them alike.  It makes a slice slower only, so the least
# of the slices is nearest to the cost: with ten times as many processes as processors it
# is the same within a few ns, where the lower quartile doubles.  The resolution is how far
# the cost of an empty call differs between parts of the run: what is less than that
# cannot be told from noise, and is not printed as a number.

package Slices;

use v5.36;

use Exporter 'import';
our @EXPORT_OK = qw(median least ratio_text);

# The run is divided into this many parts.
my $parts = 5;

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return ($sorted[ $#sorted / 2 ] + $sorted[ ($#sorted + 1) / 2 ]) / 2;
}

sub least { return (sort { $a <=> $b } @_)[0]; }

# Slices: for each name a list with a value for each round.  base is what is taken off, or that of a
# name, if it has its own, "base of" the name; empty is the call that does nothing.
sub new ($class, $slices, $base, $empty)
{
	my $self = bless { slices => $slices, base => $base }, $class;
	my @costs = $self->cost_in_parts($empty);

	$self->{resolution} = (sort { $b <=> $a } @costs)[0] - (sort { $a <=> $b } @costs)[0];
	return $self;
}

sub base_of ($self, $name)
{
	return exists $self->{slices}{"base of $name"} ? "base of $name" : $self->{base};
}

sub resolution { return $_[0]{resolution}; }

# The cost of a call, by the least, or another measure.
sub cost ($self, $name, $measure = \&least)
{
	my ($case, $base) = @{ $self->{slices} }{ $name, $self->base_of($name) };

	return $measure->(@$case) - $measure->(@$base);
}

# The same in each part of the run.
sub cost_in_parts ($self, $name)
{
	my ($case, $base) = @{ $self->{slices} }{ $name, $self->base_of($name) };

	return map {
		my ($from, $to) = (int($_ * @$case / $parts), int(($_ + 1) * @$case / $parts) - 1);

		least(@$case[ $from .. $to ]) - least(@$base[ $from .. $to ]);
	} 0 .. $parts - 1;
}

sub is_resolved ($self, $name) { return $self->cost($name) > $self->{resolution}; }

# The cost as text: the least, and the median.
sub cost_text ($self, $name)
{
	return sprintf('below %.1f', $self->{resolution}) unless $self->is_resolved($name);
	return sprintf('%.1f (median %.1f)', $self->cost($name), $self->cost($name, \&median));
}

# How many times the cost of the second call the first one has, with the range over the
# parts of the run.
sub times ($self, $name, $against, $digits)
{
	return 'not resolved' unless $self->is_resolved($name) && $self->is_resolved($against);
	return sprintf("%.${digits}f", 1) if $name eq $against;
	my @costs = $self->cost_in_parts($name);
	my @others = $self->cost_in_parts($against);
	return 'not resolved' if grep { $_ <= 0 } @others;
	my @ratios = sort { $a <=> $b } map { $costs[$_] / $others[$_] } 0 .. $parts - 1;
	return sprintf("%.${digits}f (%.${digits}f to %.${digits}f)",
		$self->cost($name) / $self->cost($against), $ratios[0], $ratios[-1]);
}

# The median of ratios of rounds, with their range; or that it cannot be told from 1.
sub ratio_text ($digits, @ratios)
{
	my ($least, $most) = (sort { $a <=> $b } @ratios)[ 0, -1 ];
	my $text = sprintf("%.${digits}f (%.${digits}f to %.${digits}f)", median(@ratios), $least, $most);

	return $least <= 1 && $most >= 1 ? "$text: not resolved from 1" : $text;
}

1;
