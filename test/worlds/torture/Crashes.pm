# The world "Crashes" of script/tests/torture: crashes, failovers, wrong clocks, bad disks and
# changes of settings.

package Crashes;

use Torture;
use History;
use Sequences;
use SnowflakeTest;

# A call that takes this long hangs; so does a client that makes no progress.
use constant LONGEST_WAIT => 60;

# Clocks that no server should follow: 54 years ahead, and 90, when the
# timestamp field has ended.  And one that lost its battery.  A step of a year is
# one that is followed, just.
use constant YEAR => 365.25 * 86400;
use constant NEARLY_A_YEAR => 360 * 86400;
use constant DECADES => (54 * YEAR, 90 * YEAR);
use constant THE_1970S => -1_700_000_000;

# A server is replaced by a new one after so many lives, or when its IDs are so
# far ahead that few steps of its clock would still lead them on.
use constant LIVES => 12;
use constant FAR_AHEAD => 20 * 86400;

my @steps = (
	0.001, 0.01, 0.1, 1, 3, 60, 3600, 4 * 3600, 86400,
	-0.001, -0.01, -0.1, -1, -3, -60, -3600, -4 * 3600, -86400);

# Schemes that a server may be given one after the other.  At the same time they make
# IDs of the same size, but for a day between the epochs.  The one whose IDs do not
# follow each other makes few of them, because each is a run of its own in the ledger.
my @schemes = (
	scheme('epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12'),
	scheme('epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12'),
	scheme('epoch=2016-11-01,tick=1ms,timestamp=41,worker=8,sequence=14'),
	scheme('epoch=2016-11-01,tick=2ms,timestamp=40,worker=10,sequence=13'),
	scheme('epoch=2016-10-31,tick=1ms,timestamp=41,worker=12,sequence=10'),
	scheme('epoch=2016-11-01,tick=64ms,timestamp=35,sequence=10,worker=18'),
	scheme('epoch=2016-11-01,tick=1ms,timestamp=41,sequence=22'));

sub scheme ($text)
{
	my %epochs = ('2016-11-01' => 1_477_958_400, '2016-10-31' => 1_477_872_000);
	my ($epoch) = $text =~ /epoch=([-\d]+)/;
	my ($tick) = $text =~ /tick=(\d+)ms/;
	my ($bits) = $text =~ /timestamp=\d+,(.*)/;
	my %scheme = (
		text => $text,
		epoch => $epochs{$epoch},
		tick => $tick / 1000,
		worker_bits => 0,
		worker_shift => 0);
	my $shift = 0;

	foreach my $field (reverse split /,/, $bits)
	{
		my ($name, $width) = split /=/, $field;
		@scheme{ 'worker_bits', 'worker_shift' } = ($width, $shift)
		  if $name eq 'worker';
		$shift += $width;
	}
	$scheme{shift} = $shift;
	return \%scheme;
}

#
# The plan
#
# What the clock does: a step, or a time that is far from all others.
sub plan_step
{
	my ($how, $seconds) =
	  rand() < 0.8
	  ? ('by', any_of(@steps))
	  : ('to', any_of(DECADES, THE_1970S, NEARLY_A_YEAR, -NEARLY_A_YEAR, -NEARLY_A_YEAR));

	return { $how => $seconds };
}

sub plan_settings
{
	return {
		max_lead => any_of('0ms', '0ms', '100ms', '2s', '60s'),
		reserve_time => any_of('10ms', '100ms', '1s', '1s', '5s')
	};
}

my @processes = (
	'checkpointer', 'walwriter', 'background writer', 'autovacuum launcher',
	'logical replication launcher');

# What happens to a server while clients generate IDs.
sub plan_event
{
	my $event = any_of(
		sub { return { step => plan_step() } },
		sub { return { step => plan_step() } },
		sub { return { step => plan_step() } },
		sub { return { settings => plan_settings() } },
		sub { return { settings => plan_settings() } },
		sub {
			return {
				oscillation => any_of(0.001, 0.01, 0.5, 3, 60, 3600, 86400),
				times => 10 + int rand(90),
				ends => any_of('up', 'down')
			};
		},
		sub {
			return {
				stopped => any_of('backend', 'backend', 'server', @processes),
				seconds => rand(1.5),
				step => any_of(undef, plan_step())
			};
		},
		sub {
			return { slow => any_of(0.02, 0.1, 0.4, 1), seconds => rand(3) };
		},
		sub { return { raises => 1 + int rand(50) } },
		sub { return { sequences => plan_sequences() } },
		sub { return { sequences => plan_sequences() } })->();

	$event->{pause} = int rand(300);
	return $event;
}

# A life of the server that goes through all crashes.
sub plan_life
{
	return {
		kind => 'life',
		policy => any_of('continue', 'continue', 'wait'),
		settings => rand() < 0.5 ? plan_settings() : undef,
		greedy => any_of(1, 2, 3),
		events => [ map { plan_event() } 1 .. 2 + rand(9) ],
		end => any_of(
			'client backend', @processes, 'postmaster', 'postmaster', 'immediate',
			'immediate', 'fast', 'fast', 'disk full'),
		scheme => rand() < 0.4 ? int rand(@schemes) : undef,
		worker => rand() < 0.5 ? int rand(1024) : undef,
		step => rand() < 0.7 ? plan_step() : undef,
		quick_stop => rand() < 0.3 ? [ any_of(0.2, 1), rand(0.5) ] : undef
	};
}

# What happens to the replication before a failover: up to three things that may follow each
# other, or a change of which standby is synchronous.
sub plan_before
{
	return any_of('change names', 'next standby', 'more standbys') if rand() < 0.4;
	return grep { defined } map {
		any_of(undef, 'kill walsender', 'kill walreceiver', 'stop walsender',
			'stop walreceiver', 'stop standby', 'slow standby')
	} 1 .. 3;
}

# Steps of the clocks of an old primary and a new one.
sub plan_steps_of_two { return { map { $_ => any_of(3600, -3600, -3, 3, DECADES) } 'old', 'new' }; }

# A standby takes over whose clock is behind its primary's: by nothing, as it
# is behind the real time, or as the primary is ahead.
sub plan_failover ($kind)
{
	my ($ahead, $back) =
	  @{ any_of([ 0, 0 ], [ 0, 0.5 ], [ 0, 3 ], [ 0, 3600 ], [ 600, 0 ],
			[ 600, 0 ], [ NEARLY_A_YEAR, 0 ]) };
	my $apart = $ahead + $back;
	return {
		kind => $kind,
		ahead => $ahead,
		back => $back,
		policy => $apart > 3 ? 'continue' : any_of('continue', 'wait'),
		max_lead => any_of('0ms', '0ms', '0ms', '2s'),
		greedy => any_of(1, 2, 3),
		synchronous => $kind eq 'cut_off' ? 1 : any_of(0, 0, 1),
		before => [ plan_before() ],
		seconds => rand(2),
		way => any_of('postmaster', 'immediate'),
		steps => [ map { plan_steps_of_two() } 1 .. 2 + rand(4) ],
		quorum => $kind eq 'cut_off' && rand() < 0.3 ? 1 : 0
	};
}

# A backup and the WAL of a server that is gone are restored to a point in time.
sub plan_recovery
{
	my $target = any_of('time', 'lsn', 'name', 'immediate', 'end', 'end');

	return {
		kind => 'recovery',
		target => $target,
		ahead => any_of(0, 0, 60, 3600),
		back => any_of(0, 0, 1, 3600),
		max_lead => any_of('0ms', '0ms', '2s'),
		greedy => any_of(1, 2, 3),

		# Times of transactions have to increase for a target that is one.
		step => $target ne 'time' && rand() < 0.5 ? any_of(@steps) : undef,
		seconds => rand(1),
		way => any_of('postmaster', 'immediate')
	};
}

# Sessions insert rows while the mark is lowered to what is stored.
sub plan_reset
{
	return {
		kind => 'reset',
		ahead => any_of(0, 60, 3600, 86400),
		max_lead => any_of('0ms', '0ms', '2s'),
		ways => [ map { any_of('locked', 'older snapshot', 'unlocked') } 1 .. 3 + rand(6) ]
	};
}

# What nothing but the mark can stand: a start with a clock that is behind.
sub plan_for_mark
{
	return {
		%{ plan_life() },
		policy => 'continue',
		greedy => 2,
		events => [ { slow => 0.02, seconds => 1, pause => 0 } ],
		end => any_of('postmaster', 'immediate', 'fast'),
		scheme => undef,
		worker => undef,
		step => { by => any_of(-2, -3, -4, -6) },
		quick_stop => undef
	};
}

# A synchronous standby that gets no WAL for a while, and then takes over beside its
# primary.
sub plan_for_standby
{
	return {
		%{ plan_failover('cut_off') },
		before => ['stop walsender'],
		seconds => 2,
		ahead => 0,
		back => 0,
		max_lead => '0ms',
		policy => 'continue'
	};
}

# Something happens to sequences.
sub plan_for_sequences ($change)
{
	my @plans = map { { %{ plan_sequences() }, change => $change, seconds => 0.4 } } 1 .. 3;

	return { %{ plan_for_mark() }, step => undef, events => [ map { { sequences => $_, pause => 200 } } @plans ] };
}

# What finds the bugs that script/tests/torture --break puts into the sources.
my %plan_for_bug = (
	mark => \&plan_for_mark,
	standby => \&plan_for_standby,

	# A standby becomes synchronous that lacks the mark of what is reserved.
	unconfirmed => sub { return { %{ plan_for_standby() }, before => [ any_of('change names', 'next standby') ] } },

	# A query runs through the change that requires another standby.
	running => sub { return { %{ plan_for_standby() }, before => ['more standbys'], quorum => 0 } },

	# A standby of a quorum that lags, and is promoted although it should not be.  Its clock is
	# behind, so that its IDs continue at its mark, however long that takes.
	quorum => sub { return { %{ plan_for_standby() }, before => [], quorum => 1, ahead => 600 } },

	# The clock is behind, so that IDs continue right at the mark.
	reset => sub { return { %{ plan_reset() }, ahead => 3600, ways => [ ('older snapshot') x 4 ] } },

	# The mark is raised to numbers below the durable one.
	raise => sub {
		return {
			%{ plan_for_mark() },
			settings => { max_lead => '0ms', reserve_time => '5s' },
			events => [ { raises => 20, pause => 0 } ]
		};
	},
	'sequence-increment' => \&plan_for_mark,
	'sequence-exhausted' => sub { plan_for_sequences('restart') },
	'sequence-plans' => sub { plan_for_sequences('drop') },

	# A fast stop right after each start.
	'startup-signal' => sub { return { %{ plan_for_mark() }, step => undef, quick_stop => [ 1, rand(0.5) ] } });

sub plan_round
{
	return $plan_for_bug{$bug}->() if $bug;
	my $its = any_of(
		\&plan_life, \&plan_life, \&plan_life, \&plan_life, \&plan_life,
		sub { plan_failover('failover') },
		sub { plan_failover('cut_off') },
		\&plan_recovery, \&plan_reset)->();

	# Clients rest, and leave the processors to runs beside this one, or take all they get.
	$its->{rest} = any_of(0, 1, 1);
	return $its;
}

# The server that goes through all crashes has a book that forgets after each life all but
# the greatest IDs, which those of the next life have to be above.  The servers of each other
# round have a book of their own.
my $waits = new_ledger();
my $main_book;

# A history from now on, with a server whose IDs are above a number.
sub begin_history ($line, $last)
{
	end_history();
	$book->{history} = new_history();
	history_of($line, $last);
	return;
}

# In histories a server has the number of its line.
sub history_of ($line, $last) { fact($book->{history}, 'server', $line, $line, $last); return; }

# Server 2 continues above all that server 1 generated.
sub continue_history ($last)
{
	history_of(2, $last);
	fact($book->{history}, 'after', 2, 1);
	return;
}

# A line of another server, from the beginning.
sub begin_book ($line, $last)
{
	begin_history($line, $last);

	begin_ledger(12, 10, 0, 0);
	book("line $line $last");
	return;
}

#
# Clients.  Some do what applications do, and greedy ones take all that they can
# get, in large blocks and in single calls, by COPY.  Each ID is sent to the client
# over its connection; a filter behind it writes those of greedy ones as runs.
# Witnesses write histories, too.
#
my %script = map { $_ => "$PostgreSQL::Test::Utils::tmp_check/$_.sql" }
  ('usual', 'asking', 'greedy', 'resting usual', 'resting asking', 'resting greedy', 'long', 'inserting');

sub write_scripts
{
	my $greedy = q{
COPY (SELECT snowflake_nextval(200000)) TO STDOUT;
COPY (SELECT snowflake_nextval() FROM generate_series(1, 20000)) TO STDOUT;
COPY (SELECT snowflake_nextval(300) FROM generate_series(1, 100)) TO STDOUT;
} . greedy_sequence_queries(20_000);
	my $rest = "\\! sleep 0.1\n";
	foreach my $kind ('usual', 'asking')
	{
		my $queries = client_queries($kind) =~ s/(?=SELECT snowflake_nextval\(5000\))/sequence_queries() x 20/egr;
		my $n = 0;
		append_to_file($script{$kind}, $queries x 2);
		append_to_file($script{"resting $kind"},
			$queries =~ s/^(?=SELECT snowflake_nextval\(\) FROM)/$n++ % 10 == 0 ? $rest : ''/egmr);
	}
	append_to_file($script{greedy}, $greedy x 10000);
	my $resting = $rest x 5 . $greedy;
	append_to_file($script{'resting greedy'}, $resting x 10000);

	# One query that is still running whatever changes.
	append_to_file($script{long},
		'COPY (SELECT snowflake_nextval() FROM (SELECT pg_sleep(0.001) FROM generate_series(1, 1000000)) t WHERE t IS NOT NULL) TO STDOUT;');

	# All that it receives is committed, unless the server dies.
	# It needs more than one tick: a mark is above all IDs of its tick.
	append_to_file($script{inserting}, q{
INSERT INTO t SELECT FROM generate_series(1, 2000) RETURNING id;
BEGIN;
INSERT INTO t SELECT FROM generate_series(1, 3) RETURNING id;
DO $$ BEGIN PERFORM count(*) FROM generate_series(1, 20000); END $$;
COMMIT;
} x 20000);
	return;
}

# Start clients that ask for IDs until they lose their connection.
sub start_all ($node, $line, %numbers)
{
	my @clients;

	foreach my $kind (sort keys %numbers)
	{
		my $script = ($plan->{rest} ? $script{"resting $kind"} : undef) // $script{$kind};
		push @clients, start_client($node, $line, $kind eq 'witness' ? 'calls' : $kind, $script) for 1 .. $numbers{$kind};
	}
	all_go_on(@clients);
	return @clients;
}

# Take up the rest of the IDs of clients that have lost their server, and return the
# errors that they got.
sub finish_all (@clients) { return part_with(\@clients, 2 * LONGEST_WAIT, 'the server'); }

sub judge ($allowed = undef, @errors)
{
	judge_errors('a client', defined $allowed ? qr/$sequence_refusal|$allowed/ : $sequence_refusal, @errors);
	return;
}

# The last ID that is written in the file of a client that continues.
sub last_received ($client)
{
	open(my $handle, '<', $client->{file}) or return 0;
	my $size = -s $handle;
	seek($handle, $size > 100 ? $size - 100 : 0, 0);
	read($handle, my $tail, 100);
	my ($id, $count) = $tail =~ /(?:^|\n)(\d+)(?: (\d+))?\n[\d ]*$/;
	return defined $id ? $id + ($count // 1) - 1 : 0;
}

# Each of the clients has to receive more IDs.  A block of 200,000 takes 100 s if eight of
# them share a scheme's 16,000 a second.
sub all_go_on (@clients) { note_wait(go_on(3 * LONGEST_WAIT, @clients)); return; }

#
# Servers
#
my $template;

sub create
{
	$template = template_node(\&create_sequences, 'max_connections = 60', 'max_wal_senders = 6',
		'shared_buffers = 16MB', 'autovacuum_naptime = 10min', 'max_wal_size = 512MB');
	write_scripts();
	$book = $main_book = new_book();
	return;
}

# A server, with the data of a backup
sub server
{
	$total{servers}++;
	return node_of_backup(@_);
}

# Kill a server's processes, or stop it.
sub end_server ($node, $way)
{
	fault($way eq 'postmaster' ? 'kill -9 of the server' : "$way stop");
	$way eq 'postmaster' ? kill_postmaster($node) : $node->stop($way);
	return;
}

# The server that goes through all crashes.
my ($node, $lives);
my $clock;				# its distance from the real time
my $before_far;			# the same before it was set far from that
my $last_id;
my $scheme;
my $worker;
my $greatest_clock;		# the greatest that should be followed
my $just_started;		# no ID since the start
my $greatest_max_lead;	# while the server ran
my %setting;

sub new_main
{
	my $old = $node;

	$node = server('main', $template, 'backup');
	@nodes = ();
	start_node($node);
	$lives = $clock = $before_far = $greatest_clock = $greatest_max_lead = 0;
	$just_started = 1;
	$scheme = $schemes[0];
	$worker = 0;
	%setting = (
		clock_backward => 'continue',
		max_lead => '0ms',
		reserve_time => '1s');
	$last_id = 0;
	begin_book(1, 0);
	remove_node($old) if defined $old;
	return;
}

# How far the last ID is ahead of the real time, by the present scheme.
sub lead
{
	return 0 if $last_id == 0;
	return ($last_id >> $scheme->{shift}) * $scheme->{tick} +
	  $scheme->{epoch} - time;
}

sub put_clock
{
	($clock) = @_;
	$greatest_clock = $clock if $clock > $greatest_clock && $clock < YEAR;
	set_clock($node, $clock);
	happens(sprintf 'clock %+.3f s', $clock);
	return;
}

sub a { return ($_[0] =~ /^[aeiou]/ ? 'an ' : 'a ') . $_[0]; }

sub seconds
{
	my ($number, $unit) = $_[0] =~ /^(\d+)(ms|s)$/;
	return $unit eq 'ms' ? $number / 1000 : $number;
}

sub is_far { return abs($_[0]) >= YEAR - 86400; }

# Where steps begin.  With the policy to wait it is where IDs are, so that it is
# known whether they may continue.  After a start they are where the mark is: ahead by
# what max_lead was when it was written, if it was lowered since.
sub step_from
{
	$before_far = $clock unless is_far($clock);
	my $from = $before_far;
	if ($setting{clock_backward} eq 'wait')
	{
		$from = lead() if lead() > $from;
		$from += $greatest_max_lead if $just_started;
	}
	return $from;
}

sub size_of_step
{
	my ($seconds) = map { abs } @_;

	return
	    $seconds < 1 ? 'below 1 s'
	  : $seconds < 3600 ? '1 s to 1 h'
	  : $seconds < 300 * 86400 ? '1 h to days'
	  : $seconds < YEAR ? 'a year'
	  : 'decades';
}

sub step ($step)
{
	my $from = step_from();
	my $to = $step->{to} // $from + $step->{by};

	# Not so far that it is not known whether it is followed.
	$to = $from - $step->{by} if !defined $step->{to} && is_far($to);

	# With the policy to wait, clocks behind by this much are refused only if they
	# are a minute behind what was reserved; so they are not that.
	$to = $from if $setting{clock_backward} eq 'wait' && ($step->{by} // 0) == -60;
	fault(($to > $clock ? 'clock ahead, ' : 'clock back, ')
		. size_of_step($to - $clock))
	  if abs($to - $clock) > 0.0005;
	put_clock($to);
	return;
}

sub oscillate ($event)
{
	my $from = step_from();
	my $amplitude = $event->{oscillation};

	happens("clock to and fro by $amplitude s, $event->{times} times");
	for (1 .. $event->{times})
	{
		set_clock($node, $from + $amplitude);
		usleep(rand(10_000));
		set_clock($node, $from);
		usleep(rand(10_000));
	}

	# It was there, so IDs may be.
	$greatest_clock = $from + $amplitude
	  if $greatest_clock < $from + $amplitude;
	put_clock( $setting{clock_backward} eq 'wait' || $event->{ends} eq 'up'
		? $from + $amplitude
		: $from);
	fault('oscillation of the clock');
	return;
}

sub set (%values)
{
	sql($node, join('', map { "ALTER SYSTEM SET snowflake.$_ = '$values{$_}';" } keys %values));
	$node->reload;
	foreach my $name (keys %values)
	{
		wait_until_true($node, "SELECT current_setting('snowflake.$name')::text = '"
			  . ($values{$name} =~ s/^0ms$/0/r =~ s/^60s$/1min/r) . "'");
		$setting{$name} = $values{$name};
	}
	my $max_lead = seconds($setting{max_lead});
	$greatest_max_lead = $max_lead if $max_lead > $greatest_max_lead;
	happens(describe(\%values));
	return;
}

# Wait until all statements have ended that run now: a session has a setting from its next
# statement on.  One with a lower max_lead gets no ID while others stay further ahead, so what
# runs for longer is cancelled.
sub wait_for_statements
{
	my $statements = "SELECT pid || ' ' || query_start FROM pg_stat_activity "
	  . "WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
	my $running = join ', ',
	  map { "'$_'" } split /\n/, sql($node, $statements);

	return if $running eq '';
	my $are = "pid || ' ' || query_start IN ($running)";
	within(LONGEST_WAIT, sub { sql($node, "$statements AND $are") eq '' }, 0.2);
	sql($node, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE $are");
	wait_until_true($node,
		"SELECT NOT EXISTS ($statements AND pid || ' ' || query_start IN ($running))");
	return;
}

# Change settings.  With the policy to wait, IDs that have a lead by the old
# ones should not be too far ahead by the new ones.  The clock moves after these are
# in force in all sessions, as otherwise clients take as much of a lead again; until then
# they may be refused.
sub change_settings ($settings)
{
	my $max_lead = seconds($setting{max_lead});

	set(%$settings);
	if ($setting{clock_backward} eq 'wait' && !is_far($clock))
	{
		wait_for_statements();
		put_clock($clock + $max_lead);
	}
	fault('change of max_lead and reserve_time');
	return;
}

# Another scheme, or another worker ID, from the next start on.
sub change_identity
{
	my $to = defined $plan->{scheme} ? $schemes[ $plan->{scheme} ] : $scheme;
	my $of = $plan->{worker} // $worker;

	$of %= 1 << $to->{worker_bits};
	return if $to == $scheme && $of == $worker;
	sql($node, "ALTER SYSTEM SET snowflake.scheme = '$to->{text}';\n"
		  . "ALTER SYSTEM SET snowflake.worker_id = $of;");
	fault('change of the scheme') if $to->{text} ne $scheme->{text};
	fault('change of the worker ID') if $of != $worker;

	# By a later epoch the IDs that are there are of a later time.
	$greatest_clock += $to->{epoch} - $scheme->{epoch}
	  if $to->{epoch} > $scheme->{epoch};
	happens("worker ID $of of $to->{text}");
	($scheme, $worker) = ($to, $of);
	return;
}

# Stop a process, or all of them, for a while, in which the clock may step.
sub stop_and_continue ($event)
{
	my $what = $event->{stopped};
	my $pid;

	if ($what eq 'server')
	{
		pause_node($node);
	}
	else
	{
		$pid = some_process($node,
			$what eq 'backend' ? 'client backend' : $what)
		  or return;
		kill 'STOP', $pid;
	}
	happens("$what stopped");
	step($event->{step}) if defined $event->{step};
	nap($event->{seconds});
	defined $pid ? kill('CONT', $pid) : continue_node($node);
	happens("$what continues");
	fault("SIGSTOP and SIGCONT of "
		  . ($what eq 'server' ? 'the server' : a($what)));
	return;
}

# Flushes of WAL take long for a while.
sub slow_flushes ($event)
{
	set_disk($node, 0, $event->{slow});
	happens("each flush takes $event->{slow} s");
	nap($event->{seconds});
	set_disk($node, 0, 0);
	happens('flushes are quick again');
	fault('slow flushes of WAL');
	return;
}

# Sessions raise the mark while the clients reserve ticks, so that what was a higher
# mark when it was read may be a lower one when it is written.  Another session raises it
# to numbers inside of what is reserved, and no later ID may be below one.  IDs are then
# ahead by what was reserved, so this is for the policy to continue.
sub raise_mark ($event)
{
	return if $setting{clock_backward} eq 'wait' || is_far($clock);
	my $offset = -s $node->logfile;
	my @sessions = start_queries(
		$node,
		map {
			qq{DO \$\$ BEGIN
				FOR i IN 1 .. $event->{raises} LOOP
					BEGIN
						PERFORM $_((SELECT mark FROM snowflake_stat) + 1);
					EXCEPTION WHEN object_not_in_prerequisite_state THEN
					END;
				END LOOP;
			END \$\$};
		} 'snowflake_raise_mark', 'snowflake_set_mark', 'snowflake_set_mark');
	push @sessions, start_queries(
		$node, qq{DO \$\$
		DECLARE
			id bigint := snowflake_nextval();
			raised bigint;
		BEGIN
			FOR i IN 1 .. $event->{raises} LOOP
				raised := id + random() * ((SELECT mark FROM snowflake_stat) - id);
				PERFORM snowflake_raise_mark(raised);
				id := snowflake_nextval();
				IF id < raised THEN
					RAISE 'ID % is below the raised mark %', id, raised;
				END IF;
			END LOOP;
		END \$\$});
	happens("the mark is raised $event->{raises} times by " . @sessions . ' sessions');
	fail_call("the mark was not raised: $_->{err}")
	  foreach grep { !finish_queries($_) } @sessions;
	my $log = slurp_file($node->logfile, $offset);
	while ($log =~ /mark of snowflake IDs was set from (\d+) to (\d+)/g)
	{
		fail_call("a call that raises the mark lowered it from $1 to $2") if $2 < $1;
	}
	fault('raising of the mark');
	return;
}

# What happens to sequences, and the IDs of a copy of theirs.
sub sequences ($change)
{
	book("id 1 $_") foreach change_sequences($node, $change, $book->{history}, 1);
	return;
}

# The error that a call has to get with this clock, if it has to.
sub expected_error
{
	return qr/55000: clock is too far ahead of the mark|2200H: timestamp field/
	  if $clock > YEAR && $just_started;
	return qr/55000: clock is too far behind/
	  if $setting{clock_backward} eq 'wait' && lead() - $clock > 600;
	return undef;
}

# Ask for an ID, which is greater than all that clients have received already, and
# not further ahead than the clock ever was.  Or it has to be refused, and the
# clock is set where it need not be.
sub ask (@clients)
{
	my @received = map { last_received($_) } @clients;
	my $expected = expected_error();
	my $start = time;
	my ($id, $error) = first_id($waits, $node);

	happens(sprintf '%s after %.3f s', $id // $error =~ s/\n.*//sr, time - $start);
	note_wait($waits->{longest_wait});
	if (defined $expected)
	{
		if ($error =~ $expected)
		{
			$total{refused}++;
		}
		else
		{
			fail_call('a call was not refused');
			$last_id = $id if defined $id;
		}
		$before_far = lead() if lead() > $before_far;
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
		next if $before < $id;
		wrong("ID $id after $before of a client", 'falls');
	}
	book("id 1 $id");
	$last_id = $id;
	fail_call('IDs are ' . lead() . ' s ahead')
	  if lead() > $greatest_clock + 3600;
	my $its = $id >> $scheme->{worker_shift} & (1 << $scheme->{worker_bits}) - 1;
	fail_call("an ID of worker ID $its") if $its != $worker;
	return $id;
}

# No space is left on the disk of pg_wal: the server goes down, or if it has nothing
# to write, keeps running.
sub fill_disk
{
	my $log = -s $node->logfile;
	my $start = time;

	set_disk($node, 1, 0);
	within(5, sub { slurp_file($node->logfile, $log) =~ /PANIC: .*No space left/ });
	nap(1);
	set_disk($node, 0, 0);
	fault('full disk of pg_wal');

	# It may be down, as recovery had no space either, or about to be.
	until (is_up($node))
	{
		if (!-e $node->data_dir . '/postmaster.pid')
		{
			happens('it went down');
			$node->_update_pid(0);
			start_node($node);
			return;
		}
		if (time - $start > 3 * LONGEST_WAIT)
		{
			die 'the server does not come back after its disk was full';
		}
		usleep(20_000);
	}
	happens('it is back');
	return;
}

# A fast stop right after the start, while flushes of WAL are slow.
sub quick_stop
{
	my ($flush, $pause) = @{ $plan->{quick_stop} };
	my $offset = -s $node->logfile;

	happens("start and fast stop, while a flush takes $flush s");
	start_node($node, flush => $flush);
	nap($pause);
	my $stopped = $node->stop('fast', fail_ok => 1);
	my ($panic) = slurp_file($node->logfile, $offset) =~ /(PANIC: .*)/;
	fail_call('a fast stop right after the start: ' . ($panic // 'it failed'))
	  if defined $panic || !$stopped;
	fault('fast stop right after the start');
	return;
}

sub life
{
	new_main() if !defined $node || $lives >= LIVES || lead() > FAR_AHEAD;
	$lives++;

	# Settings, which with the policy to wait are for a clock that is right
	put_clock(lead()) if $plan->{policy} eq 'wait' && lead() > $clock;
	set(clock_backward => $plan->{policy}, %{ $plan->{settings} // {} });
	ask();

	# Rows of earlier lives
	sql($node, 'TRUNCATE t') if $lives % 4 == 0;
	my @clients =
	  start_all($node, 1, usual => 4, witness => 2, sequences => 1, greedy => $plan->{greedy});
	are_snowflake($book->{history}, $node, 1);
	foreach my $event (@{ $plan->{events} })
	{
		  $event->{step} && !$event->{stopped} ? step($event->{step})
		  : $event->{settings} ? change_settings($event->{settings})
		  : $event->{oscillation} ? oscillate($event)
		  : $event->{stopped} ? stop_and_continue($event)
		  : $event->{raises} ? raise_mark($event)
		  : $event->{sequences} ? sequences($event->{sequences})
		  : slow_flushes($event);
		ask(@clients);
		all_go_on(@clients);
		usleep(1000 * $event->{pause});
		book('take');
	}

	my $way = $plan->{end};
	my $starts = $way =~ /^(?:postmaster|immediate|fast)$/;
	change_identity() if $starts;
	happens("end: $way");
	if ($starts)
	{
		end_server($node, $way);
	}
	elsif ($way eq 'disk full')
	{
		fill_disk();
		end_clients($node);
	}
	else
	{
		my $killed = kill_process($node, $way);
		fault('kill -9 of ' . a($way =~ s/client //r)) if $killed;
		end_clients($node);
	}
	judge(
		  $way eq 'disk full' ? qr/No space left on device|clock is too far behind/
		: $plan->{policy} eq 'wait' ? qr/clock is too far behind/
		: undef,
		finish_all(@clients));

	$just_started = 1;
	if ($starts)
	{
		if (defined $plan->{step})
		{
			step($plan->{step});
		}
		elsif ($plan->{policy} eq 'wait' && !is_far($clock))
		{
			put_clock(step_from());
		}
		quick_stop() if defined $plan->{quick_stop};
		start_node($node);
	}
	elsif ($plan->{policy} eq 'wait' && $clock < YEAR)
	{
		put_clock(step_from());
	}
	ask();
	add_up('forget');

	# All IDs to come are above these.
	my $greatest = end_history();
	begin_history(1, $greatest > $last_id ? $greatest : $last_id);
	return;
}

#
# Rounds with servers of their own, which have a ledger of their own, too.
#
sub max_stored ($server) { return sql($server, 'SELECT coalesce(max(id), 0) FROM t'); }

# The first ID of a server that took over or was restored, and how long it took.
sub first_of_new ($line, $server, $start)
{
	my $id = first_id($waits, $server);

	book("id $line $id");
	happens(sprintf 'the first ID is %s after %.3f s', $id, time - $start);
	return $id;
}

sub conf_of_plan
{
	return (
		"snowflake.clock_backward = " . ($plan->{policy} // 'continue'),
		"snowflake.max_lead = $plan->{max_lead}", '');
}

sub set_names ($primary, $names)
{
	change_setting($primary, 'synchronous_standby_names', $names);
	happens("synchronous_standby_names = '$names'");
	return;
}

# The standby is synchronous no longer, gets no WAL for a while, and is synchronous again
# before it gets some.  No ID is received then that is above its mark.
sub change_names ($primary, $standby)
{
	end_marks($book->{history});
	for (1 .. 2)
	{
		set_names($primary, '');
		my $sender = walsender_of($primary, $standby);
		stop_walsender($primary, $sender);
		nap(0.7);
		set_names($primary, '*');
		start_marks($book->{history}, 1, $standby);
		nap(0.5);
		kill 'CONT', $sender;
		nap(0.2);
		end_marks($book->{history});
	}
	start_marks($book->{history}, 1, $standby);
	fault('synchronous_standby_names cleared and set');
	return;
}

# The standby is the next one, and lacks WAL, when the synchronous one leaves.
sub leave_to_next ($primary, $standby, $other)
{
	my $sender = walsender_of($primary, $standby);

	stop_walsender($primary, $sender);
	nap(0.7);
	end_marks($book->{history});
	$other->stop($plan->{way} eq 'immediate' ? 'immediate' : 'fast');
	wait_until_true($primary,
		"SELECT count(*) = 1 AND bool_and(sync_state = 'sync') FROM pg_stat_replication");
	happens($other->name . ' has left');
	start_marks($book->{history}, 1, $standby);
	nap(0.5);
	kill 'CONT', $sender;
	fault('the next standby becomes synchronous');
	return;
}

# Another standby is required, which lacks WAL, while queries run.  It gets some again
# for a while.
sub require_more ($primary, $standby, $other, $clients)
{
	my @long = start_all($primary, 1, long => 1);
	my $sender = walsender_of($primary, $standby);

	push @$clients, @long;
	stop_walsender($primary, $sender);
	nap(0.7);
	end_marks($book->{history});
	set_names($primary, 'FIRST 2 (' . $other->name . ', ' . $standby->name . ')');
	start_marks($book->{history}, 1, $standby);
	nap(0.5);
	kill 'CONT', $sender;
	fault('another synchronous standby is required');
	return;
}

sub walsender_of ($primary, $standby)
{
	my $name = $standby->name;

	return sql($primary, "SELECT pid FROM pg_stat_replication WHERE application_name = '$name'")
	  || die "$name is not there";
}

# Something happens to the replication before the failover.
sub before_failover ($before, $primary, $standby, $other, $clients)
{
	my ($how, $what) = split ' ', $before;

	if ($how eq 'next')
	{
		leave_to_next($primary, $standby, $other) if $plan->{synchronous};
		return;
	}
	if ($how eq 'more')
	{
		require_more($primary, $standby, $other, $clients) if $plan->{synchronous};
		return;
	}
	if ($how eq 'change')
	{
		change_names($primary, $standby) if $plan->{synchronous};
		return;
	}
	happens($before);
	if ($how eq 'slow')
	{
		set_disk($standby, 0, 0.2);
		nap($plan->{seconds});
		set_disk($standby, 0, 0);
		fault('slow flushes on the standby');
		return;
	}
	if ($what eq 'standby')
	{
		pause_node($standby);
		nap($plan->{seconds});
		continue_node($standby);
		fault('SIGSTOP and SIGCONT of the standby');
		return;
	}
	my $on = $what eq 'walsender' ? $primary : $standby;
	if ($how eq 'stop')
	{
		my $pid = some_process($on, $what) or return;
		$what eq 'walsender' ? stop_walsender($on, $pid) : kill('STOP', $pid);
		nap($plan->{seconds});
		kill 'CONT', $pid;
		fault("SIGSTOP and SIGCONT of a $what");
		return;
	}
	kill_process($on, $what) or return;
	fault("kill -9 of a $what");
	wait_until_true($primary,
		"SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'");
	if ($what eq 'walsender')
	{
		judge(undef, finish_all(@$clients));
		@$clients = start_clients_of_primary($primary);
	}
	return;
}

# Clients that commit will soon wait for a synchronous standby that is cut off.
sub start_clients_of_primary ($primary)
{
	return start_all(
		$primary, 1,
		asking => $plan->{synchronous} ? 2 : 0,
		usual => $plan->{synchronous} ? 3 : 4,
		witness => 2,
		greedy => $plan->{greedy});
}

# Both servers live, with wrong clocks.
sub split_brain ($old, $new)
{
	foreach my $step (@{ $plan->{steps} })
	{
		set_clock($old, $step->{old});
		fault('clock of a cut-off primary');
		if ($plan->{policy} eq 'continue')
		{
			set_clock($new, $step->{new});
			fault('clock of the primary beside it');
		}
		usleep(600_000);
		my $answer = $new->psql(
			'postgres', 'SELECT snowflake_nextval()',
			timeout => LONGEST_WAIT);
		fail_call('the new primary refuses') if $answer != 0;
	}
	return;
}

sub sizes { return join ' ', map { -s $_->{file} // 0 } @_; }

sub wait_until_synchronous ($primary, $standby, $other)
{
	my ($names, $states) =
	    $plan->{quorum} ? ('ANY 1 (*)', 'quorum quorum')
	  : defined $other ? ('FIRST 1 (' . $other->name . ', ' . $standby->name . ')', 'potential sync')
	  : ('*', 'sync');

	reload_with($primary, "synchronous_standby_names = '$names'");
	wait_until_true($primary,
		"SELECT string_agg(sync_state, ' ' ORDER BY sync_state) = '$states' FROM pg_stat_replication");

	# Of a quorum, any one may have the mark.
	start_marks($book->{history}, 1, $other // $standby) unless $plan->{quorum};
	return;
}

# The member of a quorum that has received most, as docs/guarantees.md has it: first none
# of them may receive more, or another one would confirm what the old primary does.
sub which_to_promote (@standbys)
{
	foreach my $standby (@standbys)
	{
		reload_with($standby, "primary_conninfo = ''");
		wait_until_true($standby, 'SELECT count(*) = 0 FROM pg_stat_wal_receiver');
	}
	my @lsns = map { sql($_, q{SELECT pg_last_wal_receive_lsn() - '0/0'}) }
	  @standbys;
	my $first = $lsns[0] > $lsns[1] ? 1 : 0;

	$first = !$first if $bug eq 'quorum';
	happens("received: @lsns");
	return $standbys[ $first ? 0 : 1 ];
}

sub standby_of ($primary, $name)
{
	$total{servers}++;
	return copy_of($name, $primary, 1, -$plan->{back});
}

sub failover_round
{
	my $cut_off = $plan->{kind} eq 'cut_off';
	my $primary = server('primary', $template, 'backup');

	begin_book(1, 0);
	$total{failovers}++;
	$primary->append_conf('postgresql.conf', join "\n", conf_of_plan());
	set_clock($primary, $plan->{ahead});
	start_node($primary);
	my $standby = standby_of($primary, 'standby');
	my $other;
	my $has_other = $plan->{synchronous} && grep { /^(?:next standby|more standbys)$/ } @{ $plan->{before} };
	$other = standby_of($primary, 'other') if $plan->{quorum} || $has_other;
	wait_until_synchronous($primary, $standby, $other) if $plan->{synchronous};

	my @of_primary = start_clients_of_primary($primary);
	if ($plan->{quorum})
	{
		my $lags = any_of($standby, $other);
		stop_walsender($primary, walsender_of($primary, $lags));
		happens($lags->name . ' lags');
		all_go_on(@of_primary);
	}
	else
	{
		foreach my $before (@{ $plan->{before} })
		{
			before_failover($before, $primary, $standby, $other, \@of_primary);
			all_go_on(@of_primary);
		}
	}
	nap(0.3 + $plan->{seconds} / 2);
	my @errors;
	my @senders;
	if ($cut_off)
	{
		$total{cut_off}++;
		@senders = map { walsender_of($primary, $_) } $standby, $plan->{quorum} ? $other : ();
		stop_walsender($primary, $_) foreach @senders;
		nap(0.2);
		$standby = which_to_promote($standby, $other) if $plan->{quorum};
	}
	else
	{
		end_server($primary, $plan->{way});
		push @errors, finish_all(@of_primary);
	}
	end_marks($book->{history});
	my $start = time;
	$standby->promote;
	fault(  $plan->{quorum} ? 'promotion of a member of a quorum'
		  : $cut_off ? 'promotion beside the primary'
		  : $plan->{synchronous} ? 'promotion of a synchronous standby'
		  : 'promotion of an asynchronous standby');
	my $stored = max_stored($standby);

	# What did not reach an asynchronous standby is not known there.
	add_up('take');
	$plan->{synchronous} ? continue_history($stored) : begin_book(2, $stored);
	book("line 2 $stored");
	first_of_new(2, $standby, $start);
	my $outage = time - $start;
	fail_call('the new primary generates no IDs') if $outage > LONGEST_WAIT;
	note_wait($outage, 'longest_outage');

	my @of_standby =
	  start_all($standby, 2, usual => 4, witness => 2, greedy => $plan->{greedy});
	if ($cut_off)
	{
		my @asking = grep { $_->{file} =~ /asking/ } @of_primary;
		my $ends = 0;
		split_brain($primary, $standby);
		for (my $i = 0; $i < 30 && !$ends; $i++)
		{
			my $before = sizes(@asking);
			usleep(1_000_000);
			$ends = $before eq sizes(@asking);
		}
		fail_call('the old primary continues') unless $ends;
		kill 'CONT', @senders;
		end_clients($primary);

		# Its clock was set back by more than it may wait.
		judge($plan->{policy} eq 'wait' ? qr/clock is too far behind/ : undef, finish_all(@of_primary));
	}
	else
	{
		usleep(500_000);
	}
	$standby->stop('immediate');
	push @errors, finish_all(@of_standby);
	judge(undef, @errors);
	add_up('take');
	if ($plan->{synchronous})
	{
		my $last = book('last 1');
		my $first = book('first 2');
		wrong("ID $first of the new primary after $last of the old one", 'falls') if $first <= $last;
	}
	return;
}

# A backup is taken under load, and restored, with the WAL up to a target, after
# the server has died.  IDs are above all that is stored in what was restored;
# and above all that any client received if that is all WAL.
sub recovery_round
{
	my $origin = server('origin', $template, 'backup');
	my $target = $plan->{target};
	my $all = $origin->basedir . '/all_wal';

	begin_book(1, 0);
	$total{recoveries}++;
	$origin->append_conf('postgresql.conf', join "\n", conf_of_plan());
	$origin->enable_archiving;
	set_clock($origin, $plan->{ahead});
	start_node($origin);
	my @clients =
	  start_all($origin, 1, usual => 4, witness => 2, greedy => $plan->{greedy});
	$origin->backup('running');
	nap($plan->{seconds});

	my $value = sql($origin,
		  $target eq 'lsn' ? 'SELECT pg_current_wal_insert_lsn()'
		: $target eq 'time' ? 'SELECT clock_timestamp()'
		: "SELECT 'here' FROM pg_create_restore_point('here')");
	if (defined $plan->{step})
	{
		set_clock($origin, $plan->{ahead} + $plan->{step});
		fault('clock before a point-in-time recovery');
	}
	all_go_on(@clients);
	nap(0.3);
	end_server($origin, $plan->{way});
	judge(undef, finish_all(@clients));
	add_up('take');
	my $received = book('last 1');

	# What is still to be archived is in pg_wal.  Whatever is in both is whole
	# there.
	mkdir $all or die $!;
	system_or_bail('sh', '-c',
		'cp "$1"/* "$3"; cp "$2"/0* "$3"', 'sh', $origin->archive_dir,
		$origin->data_dir . '/pg_wal', $all);

	my $restored = server('restored', $origin, 'running');
	$restored->append_conf(
		'postgresql.conf', join "\n",
		'archive_mode = off',
		"restore_command = 'cp \"$all/%f\" \"%p\"'",
		$target eq 'end' ? ''
		: $target eq 'immediate' ? "recovery_target = 'immediate'"
		: "recovery_target_$target = '$value'",
		"recovery_target_action = 'promote'", '');
	$restored->set_recovery_mode;
	set_clock($restored, -$plan->{back});
	my $start = time;
	start_node($restored);
	wait_until_true($restored, 'SELECT NOT pg_is_in_recovery()');
	fault($target eq 'end' ? 'restore of all WAL' : 'point-in-time recovery');
	my $stored = max_stored($restored);
	my $last = $target eq 'end' ? $received : $stored;
	happens("recovery to $target $value: stored $stored, received $received");
	fail_call("stored is $stored, but received $received")
	  if $target eq 'end' && $stored == 0;

	# What came after the target may be made again, so it is not in the ledger.
	my $known = $last > $stored ? $last : $stored;
	$target eq 'end' ? continue_history($known) : begin_book(2, $known);
	book("line 2 $known");
	first_of_new(2, $restored, $start);
	@clients =
	  start_all($restored, 2, usual => 4, witness => 2, greedy => $plan->{greedy});
	nap(0.5);
	end_server($restored, 'immediate');
	judge(undef, finish_all(@clients));
	add_up('take');
	return;
}

# Rows are inserted while snowflake_set_mark() lowers the mark to what is stored in their
# table.  All that clients receive is committed, so nothing of it is generated again.
my %reset_in = (
	'locked' => 'BEGIN; LOCK TABLE t IN SHARE MODE;',
	'older snapshot' => 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_sleep(0.05) FROM (SELECT count(*) FROM t) c;',
	'unlocked' => 'BEGIN;');

sub reset_round
{
	my $server = server('reset', $template, 'backup');

	begin_book(1, 0);
	$server->append_conf('postgresql.conf', join "\n", conf_of_plan());
	set_clock($server, $plan->{ahead});
	start_node($server);
	my @clients = start_all($server, 1, inserting => 4);

	# IDs are ahead of the clock from now on: they continue right at the mark.
	set_clock($server, 0);
	foreach my $way (@{ $plan->{ways} })
	{
		my ($error) = sql_error($server,
			"$reset_in{$way} SELECT snowflake_set_mark((SELECT max(id) + 1 FROM t), '{t}'); COMMIT")
		  =~ /(ERROR:.*)/;
		happens("snowflake_set_mark(), $way: " . ($error // 'done'));
		if (($error // '') =~ /55000: column id of table public.t has IDs at or above/
			&& $way ne 'locked')
		{
			$total{refused}++;
		}
		elsif (defined $error)
		{
			fail_call("snowflake_set_mark(): $error");
		}
		fault('snowflake_set_mark() beside INSERTs');

		# After a start they wait as long as reserve_time.
		nap(1.3);
	}

	# With a bug, none of them may get further.
	all_go_on(@clients) unless $bug;
	end_server($server, 'immediate');
	judge(undef, finish_all(@clients));
	add_up('take');
	return;
}

my %round = (
	failover => \&failover_round,
	cut_off => \&failover_round,
	recovery => \&recovery_round,
	reset => \&reset_round);

sub round
{
	if ($plan->{kind} eq 'life')
	{
		$book = $main_book;
		life();
	}
	else
	{
		$book = new_book();
		$round{ $plan->{kind} }->();
	}
	return;
}

# What could not be done leaves a server that may be in any state.
sub end_round ($lived)
{
	drop_history() unless $lived;
	if ($plan->{kind} ne 'life')
	{
		end_history();
		close_book($book);
	}
	elsif (!$lived)
	{
		remove_node($node) if defined $node;
		undef $node;
		close_book($main_book);
		$main_book = new_book();
	}
	remove_node(@nodes);
	@nodes = ();
	return;
}

sub world
{
	return {
		create => \&create,
		plan => \&plan_round,
		round => \&round,
		end => \&end_round,
		leave => sub { remove_node($node) if defined $node },
		wrong => [qw(duplicates falls failed)],
		promise => 'neither a duplicate nor a fall, and no call failed',
		so_far => '{rounds} rounds, {faults} faults, {ids} IDs',
		bug_figures => '{rounds} rounds, {ids} IDs, {duplicates} duplicates, {falls} falls, {failed} failed',
		figures => '{rounds} rounds, {faults} faults ({failovers} failovers, {cut_off} with the old primary alive, '
		  . '{recoveries} restores) of {servers} servers, {ids} IDs, {duplicates} duplicates, {falls} falls, '
		  . '{failed} failed, {refused} refused, longest wait {longest_wait} s, longest failover {longest_outage} s, '
		  . 'at most {most_runs} runs in the ledger' };
}

1;
