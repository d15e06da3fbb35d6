# Rounds of what is drawn at random.
#
#	SNOWFLAKE_SECONDS	how long to try, instead of a number of rounds
#	SNOWFLAKE_SEED		the seed of the first round; the next has the next number

package SnowflakeTest::Random;

use v5.36;

use Exporter 'import';
use Time::HiRes qw(time);

our @EXPORT = qw(one first_seed more_rounds);

my $seconds = $ENV{SNOWFLAKE_SECONDS};
my $end;

# One of the arguments.
sub one { return $_[ int rand @_ ]; }

# Without a number of seconds, rounds are always the same.
sub first_seed { return $ENV{SNOWFLAKE_SEED} // ($seconds ? int(rand(1e6)) : 1); }

# Is there another round, after so many of those that are usual?
sub more_rounds ($done, $usual)
{
	return $done < $usual if !$seconds;
	$end //= time + $seconds;
	return time < $end;
}

1;
