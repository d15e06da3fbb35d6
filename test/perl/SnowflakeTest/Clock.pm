# A wall clock for each server, which tests set while it runs.

package SnowflakeTest::Clock;

use v5.36;

use Config;
use Exporter 'import';
use File::Basename;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  compile fake_clock set_clock stop_clock pass_time start_with_clock write_integers
);

# Compile a C file, unless that was done, into the directory of the tests' data;
# returns what it is there.
sub compile ($source, @flags)
{
	my $target = "$PostgreSQL::Test::Utils::tmp_check/" . basename($source, '.c');

	if (!-e $target || -M $target > -M $source)
	{
		# Tests that run side by side may all do so.
		system_log('cc', '-O2', '-Wall', '-Wextra', @flags, '-o', "$target.$$", $source, '-ldl') == 0
		  or die "could not compile $source";
		rename("$target.$$", $target) or die "$target: $!";
	}
	return $target;
}

# Write integers of 64 bits to a file, in place, because it may be mapped.
sub write_integers ($path, @values)
{
	my $data = pack('q*', @values);

	open(my $file, '>>', $path) or die "$path: $!";
	close $file;
	open($file, '+<', $path) or die "$path: $!";
	syswrite($file, $data, length $data) == length $data or die "$path: $!";
	close $file;
	return;
}

sub clock_file ($node) { return $node->basedir . '/wall_clock'; }

# The environment of a server that has a clock of its own.
sub fake_clock ($node)
{
	set_clock($node, 0) unless -e clock_file($node);
	return (
		LD_PRELOAD => compile(dirname(__FILE__) . '/wall_clock.c', '-shared', '-fPIC'),
		SNOWFLAKE_WALL_CLOCK => clock_file($node));
}

# Set the clock of a server to so many seconds from the real time, also while the
# server runs; and have it see so many seconds pass more than there were.  The rest of a test
# is skipped where a time has 32 bits and cannot be that.
sub set_clock ($node, @seconds)
{
	if ($Config{longsize} < 8 && abs(time + $seconds[0]) >= 2**31)
	{
		Test::More->builder->skip('times have 32 bits');
		done_testing();
		exit;
	}
	write_integers(clock_file($node), map { sprintf('%.0f', 1_000_000 * $_) } @seconds);
	return;
}

# Have the clock of a server stand still at a time, in seconds since 1970; with 0 it goes on.
# Timeouts of its sessions do not end while it stands still.
sub stop_clock ($node, $seconds)
{
	write_integers(clock_file($node), 0, 0, sprintf('%.0f', 1_000_000 * $seconds));
	return;
}

# Have so many seconds more pass for a server, by all of its clocks, at once.
sub pass_time ($node, $seconds)
{
	my $us = sprintf('%.0f', 1_000_000 * $seconds);
	my ($wall, $steady) = unpack('q*', slurp_file(clock_file($node)));

	write_integers(clock_file($node), $wall + $us, ($steady // 0) + $us);
	return;
}

# Start a server that has the clock of set_clock.
sub start_with_clock ($node, %params)
{
	local %ENV = (%ENV, fake_clock($node));
	return $node->start(%params);
}

1;
