# A client that writes down every ID that it receives, whatever happens to its
# servers.
#
#	record_ids.pl CONNINFO SQL FILE
#
# It sends the same SQL again and again, and connects again when a connection is
# lost or gives no answer for some seconds.  Each ID is a line of FILE with the
# time at which it was received; errors go to FILE.errors.  It ends with SIGTERM.

use v5.36;

use IO::Handle;
use IPC::Open3;
use POSIX ':sys_wait_h';
use Time::HiRes qw(time usleep);

my ($conninfo, $sql, $file) = @ARGV;
my $end = 0;
$SIG{TERM} = sub { $end = 1 };
$SIG{PIPE} = 'IGNORE';

open(my $ids, '>', $file) or die "$file: $!";
open(my $errors, '>>', "$file.errors") or die "$file.errors: $!";
$ids->autoflush(1);

# Lines of psql up to one with a dot; undef if it ended or does not answer.
sub answer ($from, $seconds)
{
	my ($received, $until) = ('', time + $seconds);

	while ($received !~ /^\.$/m)
	{
		my $bits = '';
		vec($bits, fileno($from), 1) = 1;
		my $left = $until - time;
		return if $left <= 0;
		next if select($bits, undef, undef, $left) <= 0;
		return if !sysread($from, $received, 65536, length $received);
	}
	return $received;
}

until ($end)
{
	my $psql = open3(my $to, my $from, '>&' . fileno($errors),
		'psql', '-XAtq', '-d', $conninfo);
	$to->autoflush(1);
	until ($end)
	{
		print $to "$sql\n\\echo .\n";
		my $received = answer($from, 5);
		last unless defined $received;
		my $time = time;
		my @received = $received =~ /^(\d+)$/mg;
		printf $ids "%.3f %s\n", $time, $_ foreach @received;

		# A server that has no ID for us is not asked all the time.
		usleep(@received ? 10_000 : 50_000);
	}
	kill 'KILL', $psql;
	waitpid $psql, 0;
	usleep(20_000) unless $end;
}
