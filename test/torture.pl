# Crashes, failovers, wrong clocks and changes of settings at random; see
# script/torture.

use strict;
use warnings;

# The lines of script/torture go to standard output, which
# PostgreSQL::Test::Utils takes for its log.
my $figures;
BEGIN { open($figures, '>&', \*STDOUT) or die $!; }

use FindBin;
use lib "$FindBin::RealBin/perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my ($minutes, $seed) = @ARGV;
my $end = time + 60 * $minutes;
$figures->autoflush(1);
print $figures "seed $seed\n";

# A call that takes this long hangs.
use constant LONGEST_WAIT => 30;

# Clocks that no server should follow: 54 years ahead, and 90, when the
# timestamp field has ended.  And one that lost its battery.
use constant YEAR => 365.25 * 86400;
use constant DECADES => (54 * YEAR, 90 * YEAR);
use constant THE_1970S => -1_700_000_000;

my @steps = (
	0.001, 0.1, 1, 3, 60, 3600, 4 * 3600,
	-0.001, -0.1, -1, -3, -3600, -4 * 3600);

#
# The plan.  All that happens in a round is drawn before it begins, from the
# round's own seed, so that the seed and the round's number are enough to know
# it.  How long a server takes, and which backend comes first, is not.
#
srand($seed);
my @round_seeds = map { int rand(2**31) } 1 .. 100_000;

sub any_of
{
	return $_[ rand @_ ];
}

# What the clock does: a step, or a time that is far from all others.
sub plan_step
{
	my ($how, $seconds) =
	  rand() < 0.8
	  ? ('by', any_of(@steps))
	  : ('to', any_of(DECADES, DECADES, THE_1970S));

	return { $how => $seconds };
}

sub plan_settings
{
	return {
		max_lead => any_of('0ms', '0ms', '100ms', '2s', '60s'),
		reserve_time => any_of('10ms', '100ms', '1s', '1s', '5s')
	};
}

# A life of the server that goes through all crashes.
sub plan_life
{
	my @events = map {
		rand() < 0.7
		  ? { step => plan_step() }
		  : { settings => plan_settings() }
	} 1 .. 1 + rand(4);
	$_->{pause} = int rand(300) foreach @events;
	return {
		kind => 'life',
		policy => any_of('continue', 'continue', 'wait'),
		settings => rand() < 0.5 ? plan_settings() : undef,
		greedy => any_of(0, 0, 1),
		events => \@events,
		end =>
		  any_of('backend', 'postmaster', 'postmaster', 'immediate', 'fast'),
		step => rand() < 0.7 ? plan_step() : { by => 0 }
	};
}

# A standby takes over whose clock is behind its primary's: by nothing, as it
# is behind the real time, or as the primary is ahead.
sub plan_failover
{
	my ($kind) = @_;
	my ($ahead, $back) =
	  @{ any_of([ 0, 0 ], [ 0, 0.5 ], [ 0, 3 ], [ 0, 3600 ], [ 600, 0 ],
			[ 600, 0 ]) };
	my $apart = $ahead + $back;
	return {
		kind => $kind,
		ahead => $ahead,
		back => $back,
		policy => $apart > 3 ? 'continue' : any_of('continue', 'wait'),
		max_lead => any_of('0ms', '0ms', '0ms', '2s'),
		greedy => any_of(0, 0, 1),
		synchronous => $kind eq 'cut_off' ? 1 : any_of(0, 0, 1),
		old_steps => [ map { any_of(3600, -3600, -3, 3, DECADES) } 1, 2 ],
		new_steps => [ map { any_of(3600, -3600, -3, 3, DECADES) } 1, 2 ]
	};
}

sub plan_round
{
	my ($round) = @_;

	srand($round_seeds[$round]);
	return any_of(
		\&plan_life, \&plan_life, \&plan_life,
		sub { plan_failover('failover') },
		sub { plan_failover('cut_off') })->();
}

sub describe
{
	my ($what) = @_;

	return 'nothing' unless defined $what;
	return '[' . join(' ', map { describe($_) } @$what) . ']'
	  if ref $what eq 'ARRAY';
	return
	  '{' . join(', ', map { "$_ " . describe($what->{$_}) } sort keys %$what) . '}'
	  if ref $what eq 'HASH';
	return $what;
}

#
# What is counted.  The server that goes through all crashes has one ledger,
# which is a program (test/ledger.c), as it may be a billion IDs: after each life
# it forgets all but the greatest, which those of the next life have to be above.
# Each failover has a pair of servers and a ledger of its own.
#
my %total = (
	rounds => 0,
	failovers => 0,
	cut_off => 0,
	ids => 0,
	duplicates => 0,
	falls => 0,
	failed => 0,
	refused => 0,
	longest_wait => 0,
	longest_outage => 0);
my $ledger = new_ledger();
my $book = start_ledger();
my %booked = (ids => 0, duplicates => 0, falls => 0);
my $plan;
my @happened;

sub happens
{
	push @happened, $_[0];
	print '# ', time, " $_[0]\n";
	return;
}

# Something that must not be: tell of it at once, with what led to it.
sub problem
{
	my ($what) = @_;
	my $first = @happened > 12 ? @happened - 12 : 0;

	print $figures "round $total{rounds}: $what\n",
	  '  plan: ', describe($plan), "\n",
	  map { "  $_\n" } @happened[ $first .. $#happened ];
	@happened = ();
	return;
}

sub fail_call
{
	my ($what) = @_;

	$total{failed}++;
	problem($what);
	return;
}

# Errors of clients.  What hides a duplicate is one.
sub judge_errors
{
	my ($allowed, @errors) = @_;
	my %others;

	foreach my $error (@errors)
	{
		if (defined $allowed && $error =~ $allowed)
		{
			$total{refused}++;
		}
		elsif ($error =~ /duplicate key/)
		{
			$total{duplicates}++;
			$others{$error}++;
		}
		else
		{
			$total{failed}++;
			$others{$error}++;
		}
	}
	problem("$others{$_} times a client's $_") foreach sort keys %others;
	return;
}

sub add_up
{
	my ($its) = @_;

	$total{$_} += $its->{$_} foreach ('ids', 'duplicates', 'falls');
	$total{longest_wait} = $its->{longest_wait}
	  if $its->{longest_wait} > $total{longest_wait};
	problem(verdict($its)) if $its->{duplicates} + $its->{falls} > 0;
	$its->{$_} = 0 foreach ('ids', 'duplicates', 'falls', 'longest_wait');
	return;
}

# Have the program do something, and tell of what it finds wrong.
sub book
{
	my ($answer, @found) = ask_ledger($book, @_);

	problem(join "\n", @found) if @found;
	return $answer;
}

sub add_up_book
{
	my %now;

	@now{qw(ids duplicates falls)} = split ' ', book('forget');
	$total{$_} += $now{$_} - $booked{$_} foreach keys %booked;
	%booked = %now;
	return;
}

#
# The server that goes through all crashes.
#
book('begin 12 10 0 0');
book('line 1 0');
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'snowflake'\nrestart_after_crash = on");
start_with_clock($node);
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION snowflake;
	CREATE UNLOGGED TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())});

my $clock = 0;			# its distance from the real time
my $before_far = 0;		# the same before it was set far from that
my $lead = 0;			# that of the last ID
my $greatest_clock = 0;		# the greatest that should be followed
my $just_started = 0;		# no ID since the start
my $greatest_max_lead = 0;	# while the server ran
my %setting = (
	clock_backward => 'continue',
	max_lead => '0ms',
	reserve_time => '1s');

sub put_clock
{
	($clock) = @_;
	$greatest_clock = $clock if $clock > $greatest_clock && $clock < YEAR;
	set_clock($node, $clock);
	happens(sprintf 'clock %+.3f s', $clock);
	return;
}

sub seconds
{
	my ($number, $unit) = $_[0] =~ /^(\d+)(ms|s)$/;
	return $unit eq 'ms' ? $number / 1000 : $number;
}

# A step of the clock.  With the policy to wait it is one from where IDs are, so
# that it is known whether they may go on.  After a start they are where the mark
# is: ahead by what max_lead was when it was written, if it was lowered since.
sub step
{
	my ($step) = @_;

	$before_far = $clock if abs($clock) < YEAR;
	if (defined $step->{to})
	{
		put_clock($step->{to});
	}
	else
	{
		my $from = $before_far;
		if ($setting{clock_backward} eq 'wait')
		{
			$from = $lead if $lead > $from;
			$from += $greatest_max_lead if $just_started;
		}
		put_clock($from + $step->{by});
	}
	return;
}

sub set
{
	my (%values) = @_;

	$node->safe_psql('postgres',
		join('', map { "ALTER SYSTEM SET snowflake.$_ = '$values{$_}';" }
			  keys %values));
	$node->reload;
	foreach my $name (keys %values)
	{
		$node->poll_query_until('postgres',
			"SELECT current_setting('snowflake.$name')::text = '"
			  . ($values{$name} =~ s/^0ms$/0/r =~ s/^60s$/1min/r) . "'")
		  or die "$name was not set";
		$setting{$name} = $values{$name};
	}
	my $max_lead = seconds($setting{max_lead});
	$greatest_max_lead = $max_lead if $max_lead > $greatest_max_lead;
	happens(describe(\%values));
	return;
}

# Change settings.  With the policy to wait, IDs that have a lead by the old
# ones should not be too far ahead by the new ones.
sub change_settings
{
	my ($settings) = @_;

	put_clock($clock + seconds($setting{max_lead}))
	  if $setting{clock_backward} eq 'wait' && abs($clock) < YEAR;
	set(%$settings);
	return;
}

# The error that a call has to get with this clock, if it has to.
sub expected_error
{
	return qr/55000: clock is too far ahead of the mark|2200H: timestamp field/
	  if $clock > YEAR && $just_started;
	return qr/55000: clock is too far behind/
	  if $setting{clock_backward} eq 'wait' && $lead - $clock > 600;
	return undef;
}

# Ask for an ID, which is greater than all that clients have received already, and
# not further ahead than the clock ever was.  Or it has to be refused, and the
# clock is set where it need not be.
sub ask
{
	my (@clients) = @_;
	my @received = map { last_received($_) } @clients;
	my $expected = expected_error();
	my $start = time;
	my ($id, $error) = first_id($ledger, $node);

	happens(sprintf '%s after %.3f s', $id // $error =~ s/\n.*//sr, time - $start);
	if (defined $expected)
	{
		if ($error =~ $expected)
		{
			$total{refused}++;
		}
		else
		{
			fail_call('a call was not refused');
		}
		$before_far = $lead if $lead > $before_far;
		$before_far += $greatest_max_lead
		  if $just_started && $setting{clock_backward} eq 'wait';
		put_clock($before_far);
		return ask(@clients);
	}
	if (!defined $id)
	{
		fail_call("a call failed: $error");
		return;
	}
	if ($just_started)
	{
		$just_started = 0;
		$greatest_max_lead = seconds($setting{max_lead});
	}
	fail_call('a call took long') if time - $start > LONGEST_WAIT;
	foreach my $before (@received)
	{
		$ledger->{falls}++ if $before >= $id;
	}

	# The default scheme: ms since 2016-11-01, above 22 other bits.
	$lead = ($id >> 22) / 1000 + 1_477_958_400 - time;
	fail_call("IDs are $lead s ahead")
	  if $lead > $greatest_clock + 3600;
	return $id;
}

# The last ID that is written in the file of a client that goes on.
sub last_received
{
	my ($client) = @_;

	open(my $handle, '<', $client->{file}) or die $!;
	my $size = -s $handle;
	seek($handle, $size > 60 ? $size - 60 : 0, 0);
	read($handle, my $tail, 60);
	my ($id) = $tail =~ /(?:^|\n)(\d+)\n\d*$/;
	return $id // 0;
}

# Each of the clients has to receive more IDs.
sub all_go_on
{
	my (@clients) = @_;
	my $start = time;
	my %size = map { $_->{file} => -s $_->{file} } @clients;

	foreach my $client (@clients)
	{
		until (-s $client->{file} > $size{ $client->{file} })
		{
			if (time - $start > LONGEST_WAIT)
			{
				fail_call('a client does not go on');
				return;
			}
			usleep(10_000);
		}
	}
	my $wait = time - $start;
	$ledger->{longest_wait} = $wait if $wait > $ledger->{longest_wait};
	return;
}

sub end_life
{
	my ($way) = @_;

	happens("end: $way");
	if ($way eq 'backend')
	{
		kill_backend($node);
	}
	elsif ($way eq 'postmaster')
	{
		kill_postmaster($node);
	}
	else
	{
		$node->stop($way);
	}
	return;
}

# An ID that was asked for, while clients go on.
sub book_id
{
	my ($id) = @_;

	book("id 1 $id") if defined $id;
	return;
}

sub life
{
	# Settings, which with the policy to wait are for a clock that is right
	put_clock($lead) if $plan->{policy} eq 'wait' && $lead > $clock;
	set(clock_backward => $plan->{policy}, %{ $plan->{settings} // {} });
	book_id(ask());

	my @clients = (
		start_clients($node, 8),
		start_clients($node, $plan->{greedy}, 'greedy'));
	book("client $_ 1 $clients[$_]{file}") foreach keys @clients;
	wait_for_clients(@clients);
	foreach my $event (@{ $plan->{events} })
	{
		$event->{step}
		  ? step($event->{step})
		  : change_settings($event->{settings});
		book_id(ask(@clients));
		all_go_on(@clients);
		usleep(1000 * $event->{pause});
	}
	end_life($plan->{end});
	$_->{run}->finish foreach @clients;
	book("close $_") foreach keys @clients;
	judge_errors(
		$plan->{policy} eq 'wait'
		? qr/clock is too far behind/
		: undef,
		client_errors(@clients));

	$just_started = 1;
	if ($plan->{end} ne 'backend')
	{
		step($plan->{step});
		start_with_clock($node);
	}
	elsif ($plan->{policy} eq 'wait' && $clock < YEAR)
	{
		step({ by => 0 });
	}
	book_id(ask());
	add_up($ledger);
	add_up_book();
	return;
}

#
# Failovers
#

# Both servers live, with wrong clocks.
sub split_brain
{
	my ($old, $new) = @_;

	foreach my $i (0, 1)
	{
		set_clock($old, $plan->{old_steps}->[$i]);
		set_clock($new, $plan->{new_steps}->[$i])
		  if $plan->{policy} eq 'continue';
		usleep(1_000_000);
		my $answer = $new->psql(
			'postgres', 'SELECT snowflake_nextval()',
			timeout => LONGEST_WAIT);
		fail_call('the new primary refuses') if $answer != 0;
	}
	return;
}

sub failover_round
{
	my $its = new_ledger();
	my $number = ++$total{failovers};
	my $cut_off = $plan->{kind} eq 'cut_off';

	# Duplicates are looked for over both servers.
	$its->{seen} = {} if $plan->{synchronous};
	my %result = failover(
		$its, $number,
		ahead => $plan->{ahead},
		back => $plan->{back},
		synchronous => $plan->{synchronous},
		greedy => $plan->{greedy},
		cut_off => $cut_off ? \&split_brain : undef,
		conf => [
			"snowflake.clock_backward = $plan->{policy}",
			"snowflake.max_lead = $plan->{max_lead}",
			'wal_sender_timeout = 0', 'wal_receiver_timeout = 0'
		]);
	happens("outage $result{outage} s");
	if ($cut_off)
	{
		$total{cut_off}++;
		fail_call('the old primary goes on') unless $result{cut_off_ends};
	}
	judge_errors(undef, @{ $result{errors} });
	fail_call('the new primary makes no IDs')
	  if $result{outage} > LONGEST_WAIT;
	$total{longest_outage} = $result{outage}
	  if $result{outage} > $total{longest_outage};
	add_up($its);
	foreach my $name ("primary_$number", "standby_$number")
	{
		PostgreSQL::Test::Utils::system_or_bail('rm', '-rf',
			glob("$ENV{TESTDIR}/tmp_check/t_torture_${name}_data"));
	}
	return;
}

while (time < $end)
{
	$plan = plan_round($total{rounds}++);
	@happened = ();
	happens("round $total{rounds}: " . describe($plan));
	$plan->{kind} eq 'life' ? life() : failover_round();
}
$node->stop;

my $failed = $total{duplicates} + $total{falls} + $total{failed};
is($failed, 0, 'neither a duplicate nor a fall, and no call failed');
done_testing();
printf $figures '%d rounds (%d failovers, %d with the old primary alive), '
  . '%d IDs, %d duplicates, %d falls, %d failed, %d refused, '
  . "longest wait %.1f s, longest failover %.1f s, seed %d\n",
  @total{
	qw(rounds failovers cut_off ids duplicates falls failed refused
	  longest_wait longest_outage)
  }, $seed;
exit($failed > 0);
