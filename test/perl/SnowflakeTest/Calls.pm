# Calls of a registry, when a test wants them.

package SnowflakeTest::Calls;

use v5.36;

use Exporter 'import';
use SnowflakeTest::Clock;
use SnowflakeTest::Limits;

our @EXPORT = qw(call_registry);

# More than what has to pass between two calls, in seconds
my $pause = 1.1;

# Have a server call what stands at the address of its registry (a Proxy or a
# FakeRegistry), so many times, and wait until each call has ended.  It calls once a
# second at most, so more than that passes before, for the server alone: it has the
# clock of set_clock.  Its worker is named by its process ID.
sub call_registry ($node, $worker, $there, $times = undef)
{
	foreach (1 .. $times // 1)
	{
		my $before = $there->connections;

		pass_time($node, $pause);
		kill('HUP', $worker) or die "there is no worker $worker";
		wait_until('a call of the registry', sub { $there->connections > $before });
		wait_until('its end', sub { !grep { (readlink // '') =~ /^socket:/ } glob "/proc/$worker/fd/*" });
	}
	return;
}

1;
