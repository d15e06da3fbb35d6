# Faults at random in one of the worlds, Crashes, Registry, Ranges or Conversion: see
# script/tests/torture.
#
#	torture.pl WORLD MINUTES SEED [BUG]

use Torture;
use SnowflakeTest;

exit torture(@ARGV);
