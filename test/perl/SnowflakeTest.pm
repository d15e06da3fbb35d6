# What the TAP tests share, in parts:
#
#	Servers		servers with the extension, their queries and errors
#	Clock		a wall clock for each server, which tests set while it runs
#	Calls		calls of a registry, when a test wants them
#	Clients		clients that ask for IDs under load
#	Ledger		what clients received: duplicates, falls, waits
#	Faults		crashes and failovers
#	Limits		no wait without an end
#	Random		rounds of what is drawn at random
#
# "use SnowflakeTest;" is all that most tests begin with: it brings strict, warnings and signatures,
# Test::More, PostgreSQL's modules for tests, time(), sleep() and usleep() of Time::HiRes, IPC::Run and
# FindBin.

package SnowflakeTest;

use strict;
use warnings;

use Carp;
use experimental ();
use parent 'Exporter';
use SnowflakeTest::Calls;
use SnowflakeTest::Clients;
use SnowflakeTest::Clock;
use SnowflakeTest::Faults;
use SnowflakeTest::Ledger;
use SnowflakeTest::Limits;
use SnowflakeTest::Random;
use SnowflakeTest::Servers;

our @EXPORT = (
	@SnowflakeTest::Calls::EXPORT, @SnowflakeTest::Clients::EXPORT,
	@SnowflakeTest::Clock::EXPORT, @SnowflakeTest::Faults::EXPORT,
	@SnowflakeTest::Ledger::EXPORT, @SnowflakeTest::Limits::EXPORT,
	@SnowflakeTest::Random::EXPORT, @SnowflakeTest::Servers::EXPORT);

sub import
{
	my $test = caller;

	strict->import;
	warnings->import;
	experimental->import('signatures');
	eval qq{
		package $test;
		use PostgreSQL::Test::Cluster;
		use PostgreSQL::Test::Utils;
		use Test::More;
		use Time::HiRes qw(time sleep usleep);
		1} or die $@;
	__PACKAGE__->export_to_level(1, @_);
	return;
}

# So that servers are stopped, too, when a test is.
$SIG{TERM} = $SIG{INT} = sub { confess('interrupted') };

1;
