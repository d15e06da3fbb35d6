#!/usr/bin/perl
# Run a file of TAP tests, the last argument, which hangs if it takes as long as seven of its
# longest waits, beside SNOWFLAKE_SECONDS.  While it runs, the folder RUNNING has a file of its
# name; then the folder PROCESSOR has one, with the seconds of processor time that it and its
# servers took.

use strict;
use warnings;

use POSIX qw(WNOHANG);
use Time::HiRes qw(usleep);

my $name = $ARGV[-1] =~ s/\//,/gr;
my $limit = 7 * ($ENV{PG_TEST_TIMEOUT_DEFAULT} || 180) + ($ENV{SNOWFLAKE_SECONDS} || 0);
my $status;

# A server loses its parent when pg_ctl ends, and gets this process as its parent, which so
# knows what it took: PR_SET_CHILD_SUBREAPER.
my $counts = eval { require 'syscall.ph'; syscall(SYS_prctl(), 36, 1, 0, 0, 0) == 0 };

open(my $file, '>', "$ENV{RUNNING}/$name") or die "$name: $!\n";
close $file;
my $child = fork // die "fork: $!\n";
if ($child == 0)
{
	exec 'timeout', '-k', '60', $limit, @ARGV;
	die "timeout: $!\n";
}

# It has a process group of its own, which a terminal does not interrupt.
$SIG{$_} = sub { kill $_[0], $child } foreach qw(INT TERM HUP);
while ((my $pid = waitpid(-1, 0)) > 0)
{
	next if $pid != $child;
	$status = $?;
	last;
}
unlink "$ENV{RUNNING}/$name";

# The last server may not have ended yet.
foreach (1 .. 100)
{
	my $pid = waitpid(-1, WNOHANG);
	last if $pid < 0;
	usleep(10_000) if $pid == 0;
}
if ($counts && open($file, '>', "$ENV{PROCESSOR}/$name"))
{
	my (undef, undef, $user, $system) = times;
	printf $file "%.1f\n", $user + $system;
	close $file;
}
exit($status & 127 ? 128 + ($status & 127) : $status >> 8);
