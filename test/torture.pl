# Crashes, failovers and clock steps at random; see script/torture.

use strict;
use warnings;

# The line of figures goes to standard output, which PostgreSQL::Test::Utils
# takes for its log.
my $figures;
BEGIN { open($figures, '>&', \*STDOUT) or die $!; }

use FindBin;
use lib "$FindBin::RealBin/perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $end = time + 60 * $ARGV[0];
my $rounds = 0;
my $failovers = 0;
my $clock = 0;

# One server lives through all crashes and steps of its clock, so its IDs have
# one ledger; each failover has a pair of servers and a ledger of its own.
my $ledger = new_ledger();
my %total = (ids => 0, duplicates => 0, falls => 0, longest_wait => 0);
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'snowflake'\nrestart_after_crash = on");
start_with_clock($node);
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION snowflake;
	CREATE UNLOGGED TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())
});

sub any_of
{
	return $_[ rand @_ ];
}

sub step
{
	$clock += $_[0];
	set_clock($node, $clock);
	return;
}

# The server ends in one of the ways and starts again, with its clock set back.
sub crash
{
	any_of(
		sub {
			live($ledger, $node, sub { kill_backend($node) });
		},
		map {
			my $stop = $_;
			sub {
				live($ledger, $node, $stop);
				step(-any_of(0, 0, 0.001, 0.1, 0.5, 3));
				start_with_clock($node);
			}
		  } (
			sub { kill_postmaster($node) },
			sub { kill_postmaster($node) },
			sub { $node->stop('immediate') },
			sub { $node->stop('fast') }))->();
	return;
}

# The clock of the running server steps.  After an hour back no ID may be had
# until it is there again.
sub clock_steps
{
	live(
		$ledger, $node,
		sub {
			foreach my $i (1 .. 3)
			{
				my $seconds = any_of(-0.001, -0.1, -3, -3600, 3600);
				step($seconds);
				if ($seconds == -3600)
				{
					my $error =
					  sql_error($node, 'SELECT snowflake_nextval()');
					die "not refused: $error"
					  unless $error =~ /ERROR:  55000: clock is too far/;
					step(3600);
				}
				first_id($ledger, $node);
				usleep(100_000);
			}
			$node->stop('fast');
		});
	start_with_clock($node);
	return;
}

# A standby, whose clock may be behind, takes over.
sub failover_round
{
	my $its = new_ledger();

	$failovers++;
	failover($its, $failovers, any_of(0, 0.5, 3), any_of(0, 1));
	add_up($its);
	foreach my $name ("primary_$failovers", "standby_$failovers")
	{
		PostgreSQL::Test::Utils::system_or_bail('rm', '-rf',
			glob("$ENV{TESTDIR}/tmp_check/t_torture_${name}_data"));
	}
	return;
}

sub add_up
{
	my ($its) = @_;

	$total{$_} += $its->{$_} foreach ('ids', 'duplicates', 'falls');
	$total{longest_wait} = $its->{longest_wait}
	  if $its->{longest_wait} > $total{longest_wait};
	return;
}

while (time < $end)
{
	any_of(\&crash, \&crash, \&clock_steps, \&failover_round)->();
	$rounds++;
}
$node->stop;
add_up($ledger);

my $failed = $total{duplicates} + $total{falls};
is($failed, 0, 'neither a duplicate nor a fall');
done_testing();
printf $figures
  "%d rounds (%d failovers), %d IDs, %d duplicates, %d falls, longest wait %.1f s\n",
  $rounds, $failovers, @total{qw(ids duplicates falls longest_wait)};
exit($failed > 0);
