# The engine of script/tests/torture.  It draws plans and counts what comes of them, and has
# what all worlds need: the ledger, clients, servers with a clock and a disk of their own,
# and what is done to their processes.  What happens is in a module for each world:
# Crashes, Registry, Ranges and Conversion.

package Torture;

use v5.36;

# The lines of script/tests/torture go to standard output, which PostgreSQL::Test::Utils takes
# for its log: a torture uses this module before that one.
my $figures;
BEGIN { open($figures, '>&', \*STDOUT) or die $!; $figures->autoflush(1); }

use Exporter 'import';
use File::Basename;
use History;
use IPC::Open2;
use POSIX qw(WNOHANG);
use SnowflakeTest;

our @EXPORT = qw(
  torture say_figure $seed $bug $plan $round_plan %total found
  any_of describe happens fault wrong fail_call note_wait judge_errors
  start_ledger ask_ledger new_book close_book $book book begin_ledger add_up end_history drop_history
  start_client start_program part_with
  set_disk start_node template_node new_node node_of_backup copy_of @nodes remove_node asks_registries
  all_processes pause_node continue_node have_away end_nodes some_process kill_process
  nap within answer_of go_on
);

#
# The plan, and what is counted
#
# A world, or where it has none, a round, is drawn before it begins, from a seed of its own,
# so that the torture's seed and its number are enough to know it.  How long a server takes, and
# which backend comes first, is not.
#
our ($seed, $bug);
our ($plan, $round_plan);		# of the world, and of the round, which may be the same
our %total;
my ($begin, $found_at);
my @happened;
my %faults;

sub any_of { return $_[ rand @_ ]; }

sub describe ($what)
{
	return 'nothing' unless defined $what;
	return '[' . join(' ', map { describe($_) } @$what) . ']'
	  if ref $what eq 'ARRAY';
	return
	  '{' . join(', ', map { "$_ " . describe($what->{$_}) } sort keys %$what) . '}'
	  if ref $what eq 'HASH';
	return $what =~ /^\d+\.\d{4,}$/ ? sprintf('%.3f', $what) : $what;
}

sub say_figure { print $figures "$_[0]\n"; return; }

# What has happened, which is reported with a problem
sub happens
{
	push @happened, sprintf('%.3f %s', time, $_[0]);
	print '# ', time, " $_[0]\n";
	return;
}

# Something that must not be: tell of it at once, with what led to it.
sub wrong ($what, $kind = undef)
{
	my %of_world = %$plan;
	my $where = delete $of_world{rounds} ? "world $total{worlds}, " : '';
	my $plans = join ' ', map { describe($_) } $where ? \%of_world : (), $round_plan // ();
	my $first = @happened > 15 ? @happened - 15 : 0;

	$total{$kind}++ if defined $kind;
	$found_at //= time;
	say_figure(join "\n  ", "${where}round $total{rounds}: $what", "plan: $plans", @happened[ $first .. $#happened ]);
	@happened = ();
	return;
}

sub fail_call { wrong($_[0], 'failed'); return; }

sub fault
{
	$faults{ $_[0] }++;
	$total{faults}++;
	return;
}

sub note_wait ($seconds, $which = 'longest_wait')
{
	$total{$which} = $seconds if $seconds > $total{$which};
	return;
}

# Errors of clients.  Those that a client has to get match the pattern; what hides a duplicate is one.
sub judge_errors ($whose, $allowed = undef, @errors)
{
	my %others;

	foreach my $error (@errors)
	{
		if (defined $allowed && $error =~ $allowed)
		{
			$total{refused}++;
		}
		elsif ($error !~ /terminating connection|canceling statement|transaction is aborted/)
		{
			$total{duplicates}++ if $error =~ /duplicate key/;
			$others{$error}++;
		}
	}
	fail_call("$others{$_} times $whose: $_") foreach sort keys %others;
	return;
}

#
# The loop
#
# A world has these functions, of which some may be missing:
#
#	create		once, before anything else
#	plan		draws the plan of a world, whose "rounds" are plans; or of a round
#	begin		of a world
#	round		what happens in a round
#	stops		after a round: does the world end with it?
#	end			of a world, or round; gets whether all that was planned could be done
#	ends		after that: does the torture end?  It does when a bug was found.
#	leave		in the end
#
# and texts with {COUNT} for each thing that is counted: "figures" in the end, "bug_figures" if
# there is a bug, "so_far" meanwhile.  The counts in "wrong" are 0 if all is well, and so "promise"
# holds; the one in "done" is not.
#
my $world;

sub found
{
	my $n = (history_figures())[1];

	$n += $total{$_} foreach @{ $world->{wrong} };
	return $n;
}

sub live_through ($end)
{
	undef $round_plan;
	$world->{begin}->() if $world->{begin};
	foreach my $its (@{ $plan->{rounds} // [$plan] })
	{
		last if time > $end;
		$round_plan = $its;
		$total{rounds}++;
		happens("round $total{rounds}: " . describe($its));
		$world->{round}->();
		last if $world->{stops} && $world->{stops}->() || $bug && found() > 0;
	}
	return 1;
}

sub filled ($text)
{
	return $text =~ s/\{(longest\w+)\}/sprintf '%.1f', $total{$1}/egr =~ s/\{(\w+)\}/$total{$1}/gr;
}

# The numbers, the greatest first.
sub faults_by_kind
{
	return join ', ',
	  map { "$_ $faults{$_}" }
	  sort { $faults{$b} <=> $faults{$a} || $a cmp $b } keys %faults;
}

sub torture ($name, $minutes, @its)
{
	($seed, $bug) = ($its[0], $its[1] // '');
	$begin = time;
	my $end = $begin + 60 * $minutes;
	my $told = $begin;

	say_figure("seed $seed");
	require "$name.pm";
	$world = $name->world;
	%total = map { $_ => 0 } 'worlds', @{ $world->{wrong} },
	  map { /\{(\w+)\}/g } @$world{ 'figures', 'bug_figures', 'so_far' };
	srand($seed);
	my @seeds = map { int rand(2**31) } 1 .. 100_000;
	$world->{create}->();
	while (time < $end)
	{
		srand($seeds[ $total{worlds}++ ]);
		$plan = $world->{plan}->();
		@happened = ();
		print '# plan: ', describe($plan), "\n";
		happens("world $total{worlds} begins") if $plan->{rounds};
		my $lived = eval { live_through($end) };
		my $undone = $@;
		fail_call("what was planned could not be done: $undone")
		  unless $lived || $bug || $undone =~ /^interrupted/;
		$world->{end}->($lived) if $world->{end};

		# That is no finding of a bug.
		die $undone if !$lived && ($undone =~ /^interrupted/ || $bug && found() == 0);
		if (time - $told > 60)
		{
			say_figure(filled($world->{so_far}) . ' so far');
			$told = time;
		}
		last if $bug ? found() > 0 : $world->{ends} && $world->{ends}->($lived);
	}
	$world->{leave}->() if $world->{leave};
	return report();
}

# Returns the exit status.
sub report
{
	my ($histories, undef, $calls) = history_figures();
	my $wrong = found();
	my $done = $world->{done} ? $total{ $world->{done} } : $calls;

	if ($bug)
	{
		ok($wrong > 0, "the bug \"$bug\" is found");
		done_testing();
		say_figure($histories) if $calls > 0;
		say_figure("bug \"$bug\": " . filled($world->{bug_figures})
			  . ($wrong > 0 ? sprintf(', found after %.0f s', $found_at - $begin) : ', not found') . ", seed $seed");
		return $wrong == 0;
	}
	is($wrong, 0, $world->{promise});
	cmp_ok($done, '>', 0, 'something was done and checked');
	done_testing();
	say_figure($histories) if $calls > 0;
	say_figure('faults by kind: ' . faults_by_kind());
	say_figure(filled($world->{figures}) . ", seed $seed");
	return $wrong > 0 || $done == 0;
}

#
# The ledger: a program that is told what to do on its standard input.
#
sub ledger_program { return compile(dirname(__FILE__) . '/ledger.c'); }

sub start_ledger
{
	my $ledger = {};

	$ledger->{pid} = open2($ledger->{from}, $ledger->{to}, ledger_program());
	return $ledger;
}

# The answer to a command, and what it reported as wrong.
sub ask_ledger ($ledger, $command)
{
	my ($from, $to) = @$ledger{ 'from', 'to' };
	my @wrong;

	print $to "$command\n";
	$to->flush;
	while (defined(my $line = <$from>))
	{
		chomp $line;
		return ($line, @wrong) unless $line =~ s/^! //;
		push @wrong, $line;
	}
	die "the ledger has ended at \"$command\"";
}

#
# A book is a ledger, with what was counted already of what it has found, and the history of
# the same servers.
#
our $book;

sub new_book { return { program => start_ledger(), counted => {} }; }

sub close_book
{
	my $program = $_[0]->{program};

	close $program->{to};
	close $program->{from};
	waitpid $program->{pid}, 0;
	return;
}

# Have the program do something, and tell of what it finds wrong.
sub book
{
	my ($answer, @found) = ask_ledger($book->{program}, @_);

	wrong(join "\n  ", @found) if @found;
	return $answer;
}

# Everything is forgotten.  For the arguments see ledger.c.
sub begin_ledger
{
	book("begin @_");
	$book->{counted} = {};
	return;
}

# Add up what a ledger has found since the last time.
sub add_up ($command)
{
	my %now;

	@now{qw(ids duplicates falls shared foreign workers runs most)} = split ' ', book($command);
	$total{$_} += $now{$_} - ($book->{counted}{$_} // 0)
	  foreach grep { exists $total{$_} } qw(ids duplicates falls shared foreign workers);
	note_wait($now{most}, 'most_runs') if exists $total{most_runs};
	$book->{counted} = \%now;
	return;
}

# Check the history of this ledger's servers, whose witnesses have ended.  Returns its
# greatest ID.
sub end_history
{
	my $history = delete $book->{history} // return 0;
	my ($greatest, @found) = check_history($history);

	wrong(join "\n  ", 'the checker of histories', @found) if @found;
	return $greatest;
}

# What could not be done has clients that have not ended.
sub drop_history
{
	my $history = delete $book->{history} // return;

	end_marks($history);
	return;
}

#
# Clients
#
my $clients = 0;

# Start a program.  "$file.out" gets what it writes, and "$file.err" its errors.
sub start_program ($file, @command)
{
	my %client = (file => "$file.out", errors => "$file.err");

	# It may be ended before it has begun.
	append_to_file($_, '') foreach values %client;
	local $SIG{TERM} = 'DEFAULT';
	$client{pid} = fork() // die "fork: $!";
	if ($client{pid} == 0)
	{
		open(STDIN, '<', '/dev/null') or POSIX::_exit(1);
		open(STDOUT, '>', $client{file}) or POSIX::_exit(1);
		open(STDERR, '>', $client{errors}) or POSIX::_exit(1);
		exec(@command) or POSIX::_exit(1);
	}
	return \%client;
}

# Start a client of a server, which is a line of the ledger: a psql that runs a script, whose IDs
# are written as runs if it is greedy, or a witness of a kind, "calls" or "sequences".
sub start_client ($node, $line, $kind, $script)
{
	my $n = ++$clients;
	my $pack = $kind =~ /greedy|long/ ? " | '" . ledger_program() . "' pack" : '';
	my $client = start_program(
		"$PostgreSQL::Test::Utils::tmp_check/client$n",
		defined $script
		? ('sh', '-c', "psql -XAtq -d \"\$1\" -f '$script'$pack", 'sh', $node->connstr('postgres') . ' application_name=client')
		: witness_command($book->{history}, $node, $line, $n, $kind));

	@$client{ 'kind', 'n' } = ($kind, $n % 4096);
	book("client $client->{n} $line $client->{file}");
	return $client;
}

# Take leave of the clients of a list that have ended; of all, if they have to within some
# seconds, after which they are killed.  Returns the errors that they got.
sub part_with ($list, $seconds, $whose)
{
	my $deadline = time + ($seconds // 0);
	my (@left, @errors);

	foreach my $client (@$list)
	{
		my $ended = within($deadline - time, sub { waitpid($client->{pid}, WNOHANG) != 0 }, 0.01);
		if (!$ended && defined $seconds)
		{
			fail_call("a client of $whose hangs") if $seconds > 0;
			kill 'KILL', $client->{pid};
			waitpid($client->{pid}, 0);
		}
		elsif (!$ended)
		{
			push @left, $client;
			next;
		}
		book("close $client->{n}") if defined $client->{n};
		push @errors, client_errors($client);
		unlink @$client{ 'file', 'errors' };
	}
	@$list = @left;
	return @errors;
}

#
# Servers
#
our @nodes;						# of the world
my ($named, $backups) = (0, 0);

# Is the disk of pg_wal full, and how many seconds does a flush take?
sub set_disk ($node, $full, $seconds)
{
	write_integers($node->basedir . '/wal_disk', $full, 1_000_000 * $seconds);
	return;
}

# Each flush of its WAL takes so many seconds from the start on, if that is given.
sub start_node ($node, %params)
{
	my $flush = delete $params{flush} // 0;

	my %clock = fake_clock($node);
	my $disk = compile(dirname(__FILE__) . '/wal_disk.c', '-shared', '-fPIC');

	set_disk($node, 0, $flush);
	local %ENV = (
		%ENV, %clock,
		LD_PRELOAD => "$clock{LD_PRELOAD} $disk",
		SNOWFLAKE_WAL_DISK => $node->basedir . '/wal_disk');
	return $node->start(%params);
}

# A server that is stopped, and whose backup "backup" all others begin with.  The function
# creates what it has besides.
sub template_node ($create, @conf)
{
	my $node = PostgreSQL::Test::Cluster->new('template');

	# A standby that is away for a while finds the WAL that it needs.
	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf',
		join("\n", "shared_preload_libraries = 'snowflake'", 'wal_keep_size = 128MB',
			'restart_after_crash = on', 'log_statement = none',
			'fsync = on', 'wal_sender_timeout = 0',
			'wal_receiver_timeout = 0', @conf, ''));
	$node->start;
	sql($node,
		'CREATE EXTENSION snowflake; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
	$create->($node) if defined $create;
	$node->backup('backup');
	$node->stop;
	return $node;
}

sub new_node ($name) { return PostgreSQL::Test::Cluster->new("${name}_" . ++$named); }

# A node, or a new one of this name, with the data of a backup
sub node_of_backup ($node, $origin, $backup, %params)
{
	$node = new_node($node) unless ref $node;
	$node->init_from_backup($origin, $backup, %params);
	push @nodes, $node;
	return $node;
}

# The same of a backup of a server as it is now, started with a clock and lines of configuration,
# as a standby or not
sub copy_of ($node, $origin, $is_standby, $clock, @conf)
{
	my $backup = 'backup' . ++$backups;

	$origin->backup($backup);
	$node = node_of_backup($node, $origin, $backup, has_streaming => $is_standby);
	system_or_bail('rm', '-rf', $origin->backup_dir . "/$backup");
	$node->append_conf('postgresql.conf', join "\n", @conf, '');
	set_clock($node, $clock);
	start_node($node);
	return $node;
}

sub remove_node
{
	foreach my $node (@_)
	{
		eval { continue_node($node); };
		$node->stop('immediate', fail_ok => 1);
		system_or_bail('rm', '-rf', $node->basedir);
	}
	return;
}

# The line that has a node ask these registries, in this order, by the name of the node;
# through their proxies, if there are some.
sub asks_registries ($node, $registries, $proxies = undef)
{
	my $line = registry_conf(@$registries);
	my $name = $node->name;

	if ($proxies)
	{
		my $hosts = join ',', map { $_->{host} } @$proxies;
		my $ports = join ',', map { $_->{port} } @$proxies;
		$line =~ s/host=\S+ port=\S+/host=$hosts port=$ports/;
	}
	return $line =~ s/'$/ application_name=$name'/r . "\n";
}

#
# Processes
#
sub all_processes ($node)
{
	my ($postmaster) =
	  slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	return ($postmaster, split ' ', qx(ps -o pid= --ppid $postmaster));
}

# Stop a whole server, or let it continue.
sub pause_node ($node)
{
	my ($postmaster) = all_processes($node);

	kill 'STOP', $postmaster;
	kill 'STOP', all_processes($node);
	return;
}

sub continue_node ($node) { kill 'CONT', reverse all_processes($node); return; }

# Have a server be away: 'pause', 'kill' or 'immediate'.  Returns what ends that after some
# seconds.
sub have_away ($node, $way, $seconds)
{
	$way eq 'pause' ? pause_node($node)
	  : $way eq 'kill' ? kill_postmaster($node)
	  : $node->stop('immediate');
	return sub {
		nap($seconds);
		$way eq 'pause' ? continue_node($node) : start_node($node);
	};
}

# End servers, all at once, and those that stand still, too.
sub end_nodes (@all)
{
	foreach my $node (@all)
	{
		eval {
			continue_node($node);
			kill 'QUIT', (all_processes($node))[0];
		};
	}
	$_->stop('immediate', fail_ok => 1) foreach @all;
	return;
}

# A process of a server that pg_stat_activity has under a type; of the backends,
# one of a client, because the test's own are just about to end.
sub some_process ($node, $type)
{
	return sql($node,
		"SELECT pid FROM pg_stat_activity WHERE backend_type = '$type' AND ('$type' <> 'client backend' OR application_name = 'client') LIMIT 1");
}

# Kill a process with SIGKILL, and wait until the server is back from its
# recovery.  Returns whether there was one.
sub kill_process ($node, $type)
{
	my $pid = some_process($node, $type) or return 0;

	return crash_process($node, $pid);
}

sub nap { usleep(1_000_000 * $_[0]); return; }

# Wait for so many seconds until a function returns true, and return that.
sub within ($seconds, $condition, $pause = 0.02)
{
	my $end = time + $seconds;
	my $result;

	nap($pause) until ($result = $condition->()) || time > $end;
	return $result;
}

# What a query returns, or nothing; and its error.
sub answer_of ($node, $query)
{
	my ($stdout, $stderr) = ('', '');
	my $rc = $node->psql('postgres', $query, stdout => \$stdout, stderr => \$stderr, timeout => 300, timed_out => \my $timed_out);
	my $answer = $timed_out || $rc != 0 ? undef : $stdout;

	return wantarray ? ($answer, $timed_out ? 'no answer' : $stderr) : $answer;
}

# Each of some clients has to write more, within so many seconds.  Returns how long that took.
sub go_on ($seconds, @clients)
{
	my %size = map { $_->{file} => -s $_->{file} // 0 } @clients;
	my $start = time;

	within($seconds, sub { !grep { (-s $_->{file} // 0) <= $size{ $_->{file} } } @clients }, 0.005)
	  or fail_call('a client does not continue');
	return time - $start;
}

1;
