# What scripts leave that run in a copy of the checkout: nothing when they are interrupted, or
# when nobody reads their output any more; the copy when they fail, and script/check the last
# one only.

use SnowflakeTest;

my $top = "$FindBin::RealBin/../..";
my $dir = PostgreSQL::Test::Utils::tempdir();
my $checkout = "$dir/checkout";
my $pid_file = "$dir/server.pid";
my $commands = q{
set -euo pipefail
top=$1
. script/lib/common.sh
. script/lib/build.sh

# Nothing is compiled.
keep_build() { kept=$top/.build/check; }
install_compiled() { mkdir -p "$3"; }
run_in_copy script/lib/in_copy/check "$2" "$3"
};

# A checkout, whose tests are a process that stays, as servers do, and a line after the other
mkdir $_ or die "$_: $!" foreach $checkout, "$dir/tmp";
system_or_bail('cp', '-r', "$top/script", $checkout);
unlink "$checkout/script/lib/in_copy/check";
append_to_file("$checkout/script/lib/in_copy/check", q{#!/bin/bash
cp /bin/sleep tmp_check/server
setsid tmp_check/server 600 </dev/null >/dev/null 2>&1 &
echo $! >"$1"
while [ -z "$2" ]; do
	echo 'ok 1'
	sleep 0.1
done
exit "$2"
});
chmod 0755, "$checkout/script/lib/in_copy/check";
append_to_file("$dir/run", $commands);
$ENV{TMPDIR} = "$dir/tmp";

# Start a shell command in a process group of its own, in the checkout.
sub start ($command)
{
	unlink $pid_file;
	my $pid = fork() // die "fork: $!";
	return $pid if $pid;
	setpgrp;
	local $SIG{PIPE} = 'DEFAULT';
	chdir $checkout or die $!;
	open(STDOUT, '>>', "$dir/output") or die $!;
	open(STDERR, '>&', \*STDOUT) or die $!;
	exec 'bash', '-c', $command, 'bash', "$dir/run", $checkout, $pid_file or die $!;
}

sub wait_for_server
{
	wait_until('the start of a server', sub { -s $pid_file });
	return slurp_file($pid_file) =~ s/\n//r;
}

# The server ends, and these copies are there.
sub leaves ($server, $copies, $label)
{
	wait_until('the end of the server', sub { !kill 0, $server });
	is(scalar(() = glob "$dir/tmp/snowflake.*"), $copies, $label);
	return;
}

my $pid = start(q{exec bash "$1" "$2" "$3" ''});
my $server = wait_for_server();
kill 'INT', -$pid;
waitpid $pid, 0;
leaves($server, 0, 'interrupted, nothing is left');

$pid = start(q{bash "$1" "$2" "$3" '' | head -n 3});
$server = wait_for_server();
waitpid $pid, 0;
leaves($server, 0, 'with its output closed, nothing is left');

foreach my $copies (1, 1)
{
	$pid = start(q{exec bash "$1" "$2" "$3" 1});
	waitpid $pid, 0;
	is($? >> 8, 1, 'a run fails');
	leaves(wait_for_server(), $copies, 'what failed leaves one copy');
}

$pid = start(q{exec bash "$1" "$2" "$3" 0});
waitpid $pid, 0;
is($?, 0, 'a run succeeds');
leaves(wait_for_server(), 0, 'then there is no copy any more');

done_testing();
