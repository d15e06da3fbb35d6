# Servers that get numbers of sequences from a registry, and all that can happen to
# both, at random; see script/tests/torture.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin", "$FindBin::RealBin/../../perl";
use Torture qw(
  $figures begin_torture
  any_of describe happens nothing_happened problem_in_world fault count_faults faults_by_kind
  client_ended start_node template_node new_node asks_registries all_processes
  pause_node continue_node have_away end_nodes some_process kill_process nap);
use History;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX ();
use Proxy;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my ($seed, $bug, $begin, $end) = begin_torture(@ARGV);
$bug //= '';

# A server that gives out no numbers for as long, although nothing keeps it from that, has
# stopped for good.
use constant LONGEST_WAIT => 120;

use constant DAY => 86400;
use constant ROUNDS => 8;

# The servers that can be the registry of a world, one after the other
use constant REGISTRIES => 10;

# How many of them can be created one after the other, and the worker IDs that each has
use constant { MOST_CREATED => 4, WORKERS => 250 };

# The tables, and whether their sequences are ranges; the others are snowflake sequences.
# "up" has INCREMENT BY 10, and a client that counts by itself; "turn" is local on a server for
# a while.
my %tables = (small => 'range', big => 'range', up => 'range', turn => 'range', wide => 'snowflake');
my @range_tables = ('big', 'small');

#
# The plan.  A world is a registry, its servers, and what happens to them, round by
# round.  It is all drawn before it begins, from the world's own seed.
#
# A registry is apart from its servers, or one of them; or it has a synchronous standby,
# and then it loses nothing.
#
srand($seed);
my @world_seeds = map { int rand(2**31) } 1 .. 10_000;

my @server_faults = (
	'nothing', 'nothing', 'restart', 'immediate', 'kill postmaster', 'kill postmaster',
	'kill backend', 'kill worker', 'kill worker', 'end worker', 'pause', 'pause backend',
	'pause worker', 'promotion', 'promotion', 'promotion instead', 'two promotions', 'backup copy',
	'file copy', 'file copy', 'clock', 'clock', 'floor', 'floor', 'rows', 'rows', 'rows',
	'kind', 'kind', 'kind', 'alter', 'alter', 'dump', 'dump');
my @registry_faults = (
	'nothing', 'nothing', 'outage', 'outage', 'long outage', 'restart', 'kill backend', 'clock',
	'standby away', 'bad host', 'bad host', 'failover', 'failover', 'two failovers', 'split brain',
	'split brain', 'yesterday', 'yesterday', 'another', 'another');

# What finds the bugs that script/tests/torture --break puts into the sources: a place of
# the registry, and faults of servers and of the registry.
my %found_by = (
	'range-kept' => [ 'apart', 'kill postmaster', 'nothing' ],
	'range-floor' => [ 'apart', 'rows', 'nothing' ],
	'range-early' => [ 'synchronous', 'nothing', 'failover' ],
	'range-repeated' => [ 'apart', 'nothing', 'nothing' ],
	'range-stale' => [ 'apart', 'kill worker', 'nothing' ],
	'range-loss' => [ 'apart', 'nothing', 'yesterday' ],
	'range-increment' => [ 'apart', 'nothing', 'nothing' ]);

# What any fault may need, of the registry or of a server.
sub plan_fault
{
	my ($place) = @_;
	my %plan = (
		who => rand(),
		other => rand(),
		step => rand(),
		way => any_of('kill', 'immediate', 'pause'),
		told => any_of(0, 1),
		seconds => rand());

	# Only what servers report shows that files were put back.
	$plan{told} = 0 if $bug;

	# The server that is the registry cannot be without knowing it for a moment.
	$plan{told} = 1 if $place eq 'own';
	return %plan;
}

# Up to four faults of servers, each once.  Floors need a registry, and ALTER waits for clients that
# wait for one.
sub plan_server_faults
{
	my ($registry_fault) = @_;
	my $needs_registry = qr/^(?:floor|rows|kind|dump|alter)$/;

	# A server that crashes may lose what it would report, so then nobody resumes by
	# what servers reported.
	return any_of('nothing', 'clock') if $registry_fault =~ /^(?:yesterday|another)$/;

	# Both registries stop.
	return 'other registry' if $registry_fault =~ /^(?:nothing|kill backend|clock)$/ && rand() < 0.3;
	my $is_there = $registry_fault =~ /^(?:nothing|kill backend|clock|failover|two failovers)$/;
	my @possible = grep { $is_there || $_ !~ $needs_registry } @server_faults;
	my %drawn;
	return grep { !$drawn{$_}++ } map { any_of(@possible) } 1 .. any_of(1, 2, 3, 4);
}

sub plan_round
{
	my ($place) = @_;
	my (undef, $server_fault, $registry_fault) = @{ $found_by{$bug} // [] };

	$registry_fault //= any_of(@registry_faults);
	my @faults = $server_fault // plan_server_faults($registry_fault);
	return {
		plan_fault($place),
		registry_fault => $registry_fault,
		server_faults => [ map { { plan_fault($place), fault => $_ } } @faults ],
		pause => 0.5 + rand(1.5)
	};
}

sub plan_world
{
	my ($n) = @_;

	srand($world_seeds[$n]);
	my $place = ($found_by{$bug} // [])->[0] // any_of('apart', 'apart', 'own', 'synchronous', 'synchronous');
	my %plan = (
		place => $place,
		window => any_of(1, 2, 5),
		grant_timeout => any_of('2s', '4s', '90s'),
		commit => any_of('on', 'on', 'local', 'off'),
		proxies => any_of(0, 1),
		one_name => any_of(0, 0, 1));
	$plan{one_name} = 0 if $bug;
	# Servers have numbers for longer than it takes them to hear of a floor.
	@plan{'grant_timeout', 'window'} = ('90s', 20) if $bug eq 'range-floor';
	$plan{commit} = 'off' if $bug eq 'range-early';
	$plan{rounds} = [ map { plan_round($place) } 1 .. ROUNDS ];
	return \%plan;
}

# What is counted.
my %total = map { $_ => 0 }
  qw(worlds rounds servers numbers ids failed wrong refused floors refused_floors resumes
  failovers split_brains put_back created moved replicated longest_wait);
my ($world_plan, $round_plan, %world);

# Something that must not be: tell of it at once, with what led to it.
my $found_at;

sub wrong
{
	my ($what) = @_;

	$found_at //= time;
	problem_in_world($what, \%total, $world_plan, $round_plan);
	return;
}

sub fail_call
{
	$total{failed}++;
	wrong($_[0]);
	return;
}

#
# Servers
#
my $template = template_node(undef,
	'wal_level = logical', 'max_connections = 60', 'max_wal_senders = 12', 'max_replication_slots = 12',
	'fsync = off', 'snowflake.max_range_sequences = 50', 'wal_retrieve_retry_interval = 200ms');

sub node_of_backup
{
	my ($node, $origin, $backup, %params) = @_;

	$node->init_from_backup($origin, $backup, %params);
	push @{ $world{nodes} }, $node;
	return $node;
}

sub configure
{
	my ($node, @conf) = @_;

	$node->append_conf('postgresql.conf', join "\n", asks_registries($node, @world{ 'registries', 'proxies' }),
		"snowflake.server_name = '" . $node->name . "'",
		"snowflake.grant_timeout = $world_plan->{grant_timeout}", @conf, '');
	return;
}

# The sequences of tables that are there from the beginning
sub create_tables
{
	my ($node) = @_;
	my $name = $node->name;
	foreach my $table (sort keys %tables)
	{
		my $type = $table eq 'small' ? 'serial' : 'bigserial';
		$node->safe_psql('postgres', qq{
			CREATE TABLE $table (id $type PRIMARY KEY,
				server text NOT NULL DEFAULT current_setting('snowflake.server_name'));
			ALTER TABLE $table REPLICA IDENTITY FULL;
			ALTER SEQUENCE ${table}_id_seq INCREMENT BY } . ($table eq 'up' ? 10 : 1) . qq{;
			SELECT snowflake_set_sequence_kind('${table}_id_seq', '$tables{$table}');
			CREATE PUBLICATION of_$table FOR TABLE $table WHERE (server = '$name')});
	}
	return;
}

sub greatest_stored
{
	my ($node, $table) = @_;
	return $node->safe_psql('postgres', "SELECT coalesce(max(id), 0) FROM $table");
}

# A server, or one that has become another one, begins: it is a line in histories, whose
# numbers are all above what it has stored.  IDs of rows that others replicated follow other clocks.
sub begin_line
{
	my ($server) = @_;

	$server->{line} = $server->{name} . '.' . ++$world{lines};
	foreach my $table (sort keys %tables)
	{
		fact($world{histories}{$table}, 'server', $server->{line}, $server->{name},
			$tables{$table} eq 'range' ? greatest_stored($server->{node}, $table) : 0);
	}
	return;
}

sub add_server
{
	my ($node, $what) = @_;
	my $server = { node => $node, name => $node->name, named => $node->name, clients => [] };

	$total{servers}++;
	push @{ $world{servers} }, $server;
	begin_line($server);
	happens("$server->{name} is $what");
	return $server;
}

# A copy asks in its own name, or that of its origin, and takes no rows that others
# replicate to its origin.
sub start_copy
{
	my ($node, $what, $origin) = @_;

	configure($node, 'max_logical_replication_workers = 0',
		$world_plan->{one_name} && defined $origin ? "snowflake.server_name = '$origin->{named}'" : ());
	set_clock($node, 0);
	start_node($node);
	return unless defined $what;
	my $server = add_server($node, $what);
	$server->{named} = $origin->{named} if $world_plan->{one_name};
	renew_clients($server);
	return $server;
}

sub add_standby
{
	my ($origin, $node, $server) = @_;
	my $backup = 'standby' . ++$world{backups};

	$origin->backup($backup);
	node_of_backup($node, $origin, $backup, has_streaming => 1);
	system_or_bail('rm', '-rf', $origin->backup_dir . "/$backup");
	$node->append_conf('postgresql.conf', "synchronous_standby_names = ''\n")
	  unless $origin == registry();
	start_copy($node, undef, $server);
	return $node;
}

#
# Clients
#
# Their program, by the libpq that the extension is built with: a private installation has none
my ($include, $lib) = map { `$ENV{PG_CONFIG} $_` =~ s/\n//r } '--includedir', '--libdir';
my $numbers =
  compile("$FindBin::RealBin/numbers.c", "-I$include", "-L$lib", '-Wl,--no-as-needed', '-lpq');

# Errors of clients: that there is no number just now is none.
sub judge_errors
{
	my ($server, @errors) = @_;
	my %others;

	foreach my $error (@errors)
	{
		if ($error =~ /no number of sequence|no worker ID is granted|the grant of worker ID \d+ ended/
			|| $error =~ /refuses numbers of sequence .* has granted no ranges since/
			|| $error =~ /refuses numbers of sequence .* was promoted to timeline/)
		{
			$total{refused}++;
		}
		elsif ($error !~ /terminating connection|canceling statement|transaction is aborted/)
		{
			$others{$error}++;
		}
	}
	fail_call("$others{$_} times a client of $server->{name}: $_") foreach sort keys %others;
	return;
}

sub start_client
{
	my ($server, $kind, $table) = @_;
	my $n = ++$world{clients};
	my $errors = "$PostgreSQL::Test::Utils::tmp_check/client$n.err";
	my $history = $world{histories}{$table};

	# It may be ended before it has begun.
	append_to_file($errors, '');
	local $SIG{TERM} = 'DEFAULT';
	my $pid = fork() // die $!;

	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null') or POSIX::_exit(1);
		open(STDERR, '>', $errors) or POSIX::_exit(1);
		exec($numbers,
			$server->{node}->connstr('postgres') . ' application_name=client',
			$kind, $table, $server->{line}, $n, "$history->{directory}/$n.calls")
		  or POSIX::_exit(1);
	}
	push @{ $server->{clients} },
	  { pid => $pid, errors => $errors, kind => "$kind $table" };
	return "$history->{directory}/$n.calls";
}

# Wait until clients have received something, but not where nothing is granted.
sub wait_for_calls
{
	my (@files) = @_;
	my $start = time;

	nap(0.02) while grep({ !-s $_ } @files) && time - $start < 20;
	return;
}

# Take leave of clients that have ended; of all, if they are ended.
sub reap_clients
{
	my ($server, $all) = @_;
	my @left;
	my $deadline = $all ? time + LONGEST_WAIT : undef;

	foreach my $client (@{ $server->{clients} })
	{
		if (!client_ended($client, $deadline, sub { fail_call("a client of $server->{name} hangs") }))
		{
			push @left, $client;
			next;
		}
		judge_errors($server, client_errors($client));
		unlink $client->{errors};
	}
	$server->{clients} = \@left;
	return;
}

# A sequence is local on this server after a change that was refused, or on its origin.
sub is_range
{
	my ($server, $table) = @_;
	my $stdout = '';

	$server->{node}->psql('postgres',
		"SELECT count(*) FROM snowflake_sequences WHERE sequence = '${table}_id_seq' AND kind = 'range'",
		stdout => \$stdout, stderr => \my $stderr);
	return $stdout eq '1';
}

sub renew_clients
{
	my ($server, @more) = @_;
	my @kinds = (
		'greedy small', 'usual small', 'greedy big', 'usual big', 'counting up', 'usual turn', 'usual wide', @more);

	reap_clients($server, 0);
	my %there = map { $_->{kind} => 1 } @{ $server->{clients} };
	my @missing = grep { !$there{$_} } @kinds;
	@missing = grep { $_ ne 'usual turn' } @missing
	  if grep({ $_ eq 'usual turn' } @missing) && !is_range($server, 'turn');
	start_client($server, split / /) foreach @missing;
	return;
}

# A server that cannot be asked has clients that cannot end by themselves.
sub end_clients_of
{
	my ($server, $signal, $table) = @_;

	foreach my $client (@{ $server->{clients} })
	{
		kill $signal, $client->{pid} if !defined $table || $client->{kind} =~ / $table$/;
	}
	return;
}

# One number of each range sequence, as soon as there is one.
sub probe
{
	my ($server) = @_;
	my $start = time;

	for (;;)
	{
		my ($stdout, $stderr) = ('', '');
		my $rc = $server->{node}->psql(
			'postgres', "SELECT nextval('small_id_seq'), nextval('big_id_seq')",
			stdout => \$stdout,
			stderr => \$stderr,
			timeout => 60,
			timed_out => \my $timed_out);
		my $wait = time - $start;

		if (!$timed_out && $rc == 0)
		{
			$total{longest_wait} = $wait if $wait > $total{longest_wait};
			happens(sprintf '%s gives out %s after %.3f s', $server->{name}, $stdout, $wait);
			return 1;
		}
		if ($wait > LONGEST_WAIT)
		{
			fail_call("$server->{name} gives out no numbers: " . ($timed_out ? 'no answer' : $stderr));
			return 0;
		}
		usleep(100_000);
	}
}

sub stop_server
{
	my ($server, $way) = @_;

	$way eq 'kill'
	  ? kill_postmaster($server->{node})
	  : $server->{node}->stop($way);
	end_clients_of($server, 'TERM');
	reap_clients($server, 1);
	return;
}

sub start_server
{
	my ($server) = @_;

	start_node($server->{node});
	renew_clients($server);
	return;
}

# It has gone for good.
sub remove_server
{
	my ($server, $way) = @_;

	stop_server($server, $way);
	$world{has_gone} = 1;
	@{ $world{servers} } = grep { $_ != $server } @{ $world{servers} };
	$world{replicates} = 0 if $server->{base};
	happens("$server->{name} has gone");
	return;
}

#
# What happens to a server
#
sub is_registry
{
	my ($server) = @_;
	return $server->{node} == registry();
}

sub promoted
{
	my ($server) = @_;
	my $node = add_standby($server->{node}, new_node('standby'), $server);

	$node->promote;
	my $new = add_server($node, "promoted from a standby of $server->{name}");
	$new->{named} = $server->{named} if $world_plan->{one_name};
	renew_clients($new);
	return $new;
}

# Longer than a server has numbers for.
sub long
{
	return $world_plan->{window} * (1.5 + $round_plan->{seconds});
}

# Numbers up to one that is above all that were granted are not to be given out anymore.
sub set_floor
{
	my ($server, $table, $query) = @_;
	my $floor = $query->{floor};
	my ($stdout, $stderr) = ('', '');
	my $rc = $server->{node}->psql('postgres', $query->{sql}, stdout => \$stdout, stderr => \$stderr);

	if ($rc != 0)
	{
		fail_call("$query->{sql}: $stderr")
		  unless $stderr =~ /other servers can still return|no number of sequence|terminating|server closed|connection to server/
		  || $stderr =~ /refuses to continue sequence/;
		$total{refused_floors}++;
		return 0;
	}
	fact($world{histories}{$table}, 'floor', steady_us(), $floor);
	$total{floors}++;
	happens("$server->{name} has set the floor $floor of $table");
	return 1;
}

# Servers have rows of their own, and begin one after the other to take numbers from the
# registry.
sub join_with_rows
{
	my $table = 'rows' . ++$world{rows};
	my @servers = @{ $world{servers} };
	my $history = $world{histories}{$table} = new_history();
	my $n = 0;

	foreach my $server (@servers)
	{
		fact($history, 'server', $server->{line}, $server->{name}, 0);

		# More than those before it take meanwhile.
		$server->{rows} = 1 + int(300_000 * $round_plan->{other} * ++$n);
		$server->{node}->safe_psql('postgres', qq{
			CREATE TABLE $table (id serial, server text);
			INSERT INTO $table SELECT FROM generate_series(1, 100);
			INSERT INTO $table VALUES ($server->{rows} + 100)});
	}
	foreach my $server (@servers)
	{
		set_floor($server, $table, {
			floor => $server->{rows} + 100,
			sql => "SELECT snowflake_set_sequence_kind('${table}_id_seq', 'range')" }) or next;
		wait_for_calls(map { start_client($server, $_, $table) } 'greedy', 'usual');
	}
	nap(1);
	foreach my $server (@servers)
	{
		end_clients_of($server, 'TERM', $table);
	}
	return;
}

# Some return what is done after the end of the registry's fault.
my %server_fault = (
	nothing => sub { nap($round_plan->{pause}) },
	restart => sub {
		my ($server) = @_;
		stop_server($server, 'fast');
		start_server($server);
	},
	immediate => sub {
		my ($server) = @_;
		stop_server($server, 'immediate');
		start_server($server);
	},
	'kill postmaster' => sub {
		my ($server) = @_;
		foreach (1 .. 3)
		{
			stop_server($server, 'kill');
			start_server($server);
			nap(0.3);
		}
	},
	'kill backend' => sub { kill_process($_[0]{node}, 'client backend') },
	'kill worker' => sub { kill_process($_[0]{node}, 'snowflake ranges') },
	'end worker' => sub {
		my ($server) = @_;
		my $pid = some_process($server->{node}, 'snowflake ranges') or return;
		kill 'TERM', $pid;
	},
	pause => sub {
		my ($server) = @_;
		pause_node($server->{node});
		nap(long());
		continue_node($server->{node});
	},
	'pause backend' => sub { pause_process($_[0], 'client backend') },
	'pause worker' => sub { pause_process($_[0], 'snowflake ranges') },

	# The old primary keeps running.
	promotion => sub { promoted($_[0]) },
	'two promotions' => sub { promoted(promoted($_[0])) },
	'promotion instead' => sub {
		my ($server) = @_;
		my $new = promoted($server);
		remove_server($server, 'immediate');
		return $new;
	},
	'backup copy' => sub {
		my ($server) = @_;
		my $backup = 'copy' . ++$world{backups};
		$server->{node}->backup($backup);
		start_copy(node_of_backup(new_node('copy'), $server->{node}, $backup),
			"a copy of a base backup of $server->{name}", $server);
	},
	'file copy' => sub {
		my ($server) = @_;
		start_copy(copy_files($server->{node}), "a copy of the files of $server->{name}", $server);
	},
	clock => sub {
		my ($server) = @_;
		my $step = clock_step();
		set_clock($server->{node}, $step);
		happens("clock of $server->{name} $step s");
		nap($round_plan->{pause});
		return sub { set_clock($server->{node}, 0) };
	},
	floor => sub {
		my ($server) = @_;
		my $table = $range_tables[ 2 * $round_plan->{other} ];
		my $next = next_number($table) // return;
		my $floor = $next + int 20000 * $round_plan->{step};
		set_floor($server, $table, { floor => $floor, sql => "SELECT setval('${table}_id_seq', $floor)" });
	},
	rows => sub { join_with_rows() },
	kind => sub {
		my ($server) = @_;
		become_local($server, 'turn');
		return sub { become_range($server, 'turn') };
	},

	# What changes nothing but files, and has servers lose their ranges
	alter => sub {
		my ($server) = @_;
		foreach my $table ('big', 'up', 'turn', 'wide')
		{
			$server->{node}->safe_psql('postgres', $_)
			  foreach "ALTER SEQUENCE ${table}_id_seq RESTART", "ALTER SEQUENCE ${table}_id_seq CACHE 7",
			  "ALTER SEQUENCE ${table}_id_seq RESTART WITH 5";
		}
		nap($round_plan->{pause});
	},
	dump => sub { start_dump($_[0]) },
	'other registry' => sub { call_other_registry($_[0]) });

# A sequence of this server is local, and continues above all that it gave out, while others
# continue with ranges.
sub become_local
{
	my ($server, $table) = @_;
	my $next = "SELECT nextval('${table}_id_seq')";

	end_clients_of($server, 'TERM', $table);
	nap(0.02) while grep { $_->{kind} =~ / $table$/ && !client_ended($_) } @{ $server->{clients} };
	reap_clients($server, 0);
	return unless is_range($server, $table);
	my $before = ask_for_number($server, $next);
	$server->{node}->safe_psql('postgres', "SELECT snowflake_set_sequence_kind('${table}_id_seq', 'local')");
	my $after = $server->{node}->safe_psql('postgres', $next);
	fail_call("local number $after of $table after $before") if defined $before && $after <= $before;
	$server->{node}->safe_psql('postgres', "$next FROM generate_series(1, 5000 * $round_plan->{step})");
	happens("$table of $server->{name} is local");
	return;
}

sub ask_for_number
{
	my ($server, $query) = @_;
	my ($stdout, $stderr) = ('', '');
	my $number = $server->{node}->psql('postgres', $query, stdout => \$stdout, stderr => \$stderr) == 0 ? $stdout : undef;

	return wantarray ? ($number, $stderr) : $number;
}

# No server gives out a number of it anymore that this one had when it was local.
sub become_range
{
	my ($server, $table) = @_;
	my $last = $server->{node}->safe_psql('postgres', "SELECT nextval('${table}_id_seq')");

	foreach my $try (1 .. 3)
	{
		last if set_floor($server, $table,
			{ floor => $last, sql => "SELECT snowflake_set_sequence_kind('${table}_id_seq', 'range')" });
		nap(1);
	}
	return;
}

# A dump of a server is restored in a new one.
sub start_dump
{
	my ($origin) = @_;
	my $node = node_of_backup(new_node('dumped'), $template, 'backup');
	my $file = $node->basedir . '/dump.sql';

	configure($node);
	set_clock($node, 0);
	start_node($node);
	$node->safe_psql('postgres', 'DROP TABLE t');
	system_or_bail('sh', '-c',
		'pg_dump --no-subscriptions --no-publications -d "$1" -f "$2" && psql -XAtq -v ON_ERROR_STOP=1 -d "$3" -f "$2" >/dev/null',
		'sh', $origin->{node}->connstr('postgres'), $file, $node->connstr('postgres'));
	renew_clients(add_server($node, "a dump of $origin->{name}"));
	return;
}

# A server calls another registry for a while, which is beside its own and knows nothing of its
# numbers: it grants none until the kind of the sequence is set again, or somebody resumes by what
# the server reports.  When it is back, its own registry has to notice numbers that it did not grant.
sub call_other_registry
{
	my ($server) = @_;
	return 'not done' if !@{ $world{spares} } || $world{created} == MOST_CREATED || $world_plan->{place} eq 'own';
	my $node = $server->{node};
	my $other = start_registry(shift @{ $world{spares} });
	my $before = greatest_given($server);

	create_registry($other, $round_plan->{told});
	end_clients_of($_, 'TERM', 'big') foreach @{ $world{servers} };
	change_registry($server, asks_registries($node, [$other]));
	ask_until($server, $before, sub { $_[1] =~ /refuses numbers of sequence/ });
	if ($round_plan->{told})
	{
		$other->poll_query_until('postgres',
			q{SELECT count(*) > 0 FROM snowflake_registry.range_evidence WHERE name = 'public.big_id_seq'}) or die 'no report';
		$other->safe_psql('postgres', 'SELECT FROM snowflake_registry.resume_ranges(1)');
	}
	else
	{
		$node->safe_psql('postgres', "SELECT snowflake_set_sequence_kind('${_}_id_seq', 'range')") foreach @range_tables, 'up';
	}
	ask_until($server, $before, sub { defined $_[0] && defined ask_for_number($server, "SELECT nextval('wide_id_seq')") });
	my $is_beyond = go_beyond($server);
	change_registry($server, asks_registries($node, @world{ 'registries', 'proxies' }));
	$other->stop('immediate');
	$total{moved}++;
	return sub {
		my $start = time;

		# What the other one granted may be beyond in any case.
		nap(0.1)
		  while stopped() eq '' && time - $start < LONGEST_WAIT
		  && grep { !defined ask_for_number($server, "SELECT nextval('${_}_id_seq')") } @range_tables, 'up';
		wait_until_stopped() if $is_beyond;
		resume({}) if stopped() ne '';
		renew_clients($server);
	};
}

# Have the server be granted numbers of which its own registry does not know, nor will soon.
sub go_beyond
{
	my ($server) = @_;
	my $next = next_number('big');
	my $start = time;

	return 0 if $round_plan->{step} < 0.5;
	while (time - $start < LONGEST_WAIT)
	{
		my $number = ask_for_number($server, q{SELECT max(nextval('big_id_seq')) FROM generate_series(1, 50000)}) // next;
		return 1 if $number > $next + 1_000_000;
	}
	return 0;
}

# A server that clients leave gets another line with registries.
sub change_registry
{
	my ($server, $line) = @_;

	stop_server($server, 'fast');
	$server->{node}->append_conf('postgresql.conf', $line);
	start_node($server->{node});
	return;
}

sub greatest_given
{
	my ($server) = @_;
	my $last = ask_for_number($server, "SELECT nextval('big_id_seq')") // 0;
	my $stored = $server->{node}->safe_psql('postgres', "SELECT coalesce(max(id), 0) FROM big WHERE server = '$server->{name}'");

	return $last > $stored ? $last : $stored;
}

# Ask a server for numbers until something is so, which gets the number, and the error.  No number
# is one from before.
sub ask_until
{
	my ($server, $before, $ends) = @_;
	my $start = time;
	my $error;

	while (time - $start < LONGEST_WAIT)
	{
		(my $next, $error) = ask_for_number($server, "SELECT nextval('big_id_seq')");
		fail_call("$server->{name} gives out $next after $before, by another registry")
		  if defined $next && $next <= $before;
		return if $ends->($next, $error);
		nap(0.1);
	}
	die "$server->{name} does not continue with the other registry: $error";
}

# Further ahead of its mark than snowflake.max_clock_forward, a year, a server generates no IDs.
sub clock_step
{
	return any_step(-0.5, 0.5, -3, 3, -70, 70, -3600, 3600, -DAY, DAY, -10 * 365 * DAY, 360 * DAY);
}

sub any_step
{
	return $_[ $round_plan->{step} * @_ ];
}

sub pause_process
{
	my ($server, $type) = @_;
	my $pid = some_process($server->{node}, $type) or return;

	kill 'STOP', $pid;
	nap(long());
	kill 'CONT', $pid;
	return;
}

# All files of a server as they are at a moment, with a socket and a port of their own.
sub copy_files
{
	my ($origin) = @_;
	my $node = new_node('files');

	pause_node($origin);
	system_or_bail('cp', '-a', $origin->data_dir, $node->data_dir);
	continue_node($origin);
	unlink $node->data_dir . '/postmaster.pid';
	$node->append_conf('postgresql.conf', join "\n", 'port = ' . $node->port,
		"unix_socket_directories = '" . $node->host . "'", '');
	push @{ $world{nodes} }, $node;
	return $node;
}


#
# The registry
#
sub registry
{
	return $world{registry};
}

sub ask_registry
{
	my ($query, $registry) = @_;
	my ($stdout, $stderr) = ('', '');

	return ($registry // registry())->psql('postgres', $query, stdout => \$stdout, stderr => \$stderr) == 0 ? $stdout : undef;
}

sub next_number
{
	my ($table) = @_;
	return ask_registry("SELECT next FROM snowflake_registry.range_sequences WHERE name = 'public.${table}_id_seq'");
}

# Statements in a registry that no server reaches; returns what they print.
sub single_user
{
	my ($node, @queries) = @_;
	my $input = join '', map { "$_\n" } @queries;
	my $output = '';

	IPC::Run::run(
		[ 'postgres', '--single', '-c', 'synchronous_standby_names=', '-D', $node->data_dir, 'postgres' ],
		'<' => \$input, '>&' => \$output)
	  or die 'single-user mode of ' . $node->name . ": $output";
	die $output if $output =~ /ERROR|FATAL|PANIC/;
	return $output;
}

# The next numbers of all sequences of a registry that is down
sub all_next
{
	my ($node) = @_;
	my $output = single_user($node,
		q{SELECT 'next=' || name || '=' || next || '.' AS n FROM snowflake_registry.range_sequences});
	my %next = $output =~ /next=([^="]+)=(\d+)\./g;

	die "no sequences: $output" unless %next;
	return \%next;
}

# Why the registry grants no ranges
sub stopped
{
	return ask_registry('SELECT stopped FROM snowflake_registry.range_state', @_) // '';
}

sub wait_until_stopped
{
	my $start = time;

	while (stopped() eq '')
	{
		return fail_call('the registry does not notice that it lost ranges')
		  if time - $start > LONGEST_WAIT;
		renew_clients($_) foreach @{ $world{servers} };
		nap(0.05);
	}
	happens('the registry has stopped: ' . stopped());
	return;
}

# Have servers report what they were granted.  Where a sequence is local, it is not reported.
sub wait_for_reports
{
	my $start = time;
	my @reported = grep { $tables{$_} eq 'range' } sort keys %tables;
	my @missing;

	return 0 if grep { !is_range($_, 'turn') } @{ $world{servers} };

	do
	{
		my %there = map { $_ => 1 } split /\n/,
		  ask_registry("SELECT server_name || ' ' || name FROM snowflake_registry.range_evidence") // '';
		@missing = ();
		foreach my $server (@{ $world{servers} })
		{
			renew_clients($server);
			push @missing, grep { !$there{$_} } map { "$server->{named} public.${_}_id_seq" } @reported;
		}
		return 1 if @missing == 0;
		nap(0.1);
	} while (time - $start < 60);
	happens('no reports of ' . join ', ', @missing);
	return 0;
}

# An administrator has the registry continue, above what servers reported; where a server
# may not know what it was granted, above what the registry had granted before.  The server that is
# the registry has lost what it would report, too.
sub resume
{
	my ($before) = @_;
	my $skip = 0;

	if (!wait_for_reports() || grep({ $_->{fault} !~ /^(?:nothing|clock|floor)$/ } @{ $round_plan->{server_faults} })
		|| $world{has_gone} || $world_plan->{one_name} || $world_plan->{place} eq 'own')
	{
		$skip = 1;
		my %now = map { split /\|/ } split /\n/, ask_registry('SELECT name, next FROM snowflake_registry.range_sequences');
		foreach my $name (keys %$before)
		{
			my $lost = $before->{$name} - ($now{$name} // 1);
			$skip = $lost if $lost > $skip;
		}
	}
	# 0 is refused where a server has not reported a sequence that was renamed or dropped.
	$skip = 1 if $skip == 0 && registry()->psql('postgres', 'SELECT snowflake_registry.resume_ranges(0)') != 0;
	registry()->safe_psql('postgres', "SELECT snowflake_registry.resume_ranges($skip)") if $skip > 0;
	$total{resumes}++;
	happens("the registry continues, and skips $skip");
	return;
}

# Let nothing reach the standby of the registry anymore.
sub cut_off_standby
{
	my $query = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walsender' AND application_name !~ '^of_'};

	registry()->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($query) p") or die 'no standby';
	my $pid = registry()->safe_psql('postgres', $query);
	stop_walsender(registry(), $pid);
	return $pid;
}

# It is not there anymore, nor is the server with clients of its own that it may be.
sub kill_registry
{
	my ($node, $walsender) = @_;
	my ($server) = grep { $_->{node} == $node } @{ $world{servers} };

	kill 'KILL', (all_processes($node))[0], grep { defined } $walsender;
	kill_postmaster($node);
	return unless $server;
	end_clients_of($server, 'TERM');
	reap_clients($server, 1);
	@{ $world{servers} } = grep { $_ != $server } @{ $world{servers} };
	return;
}

# The registry's server has clients, too.
sub own_server
{
	return unless $world_plan->{place} eq 'own';
	renew_clients(add_server(registry(), 'its own registry'));
	return;
}

sub new_registry_standby
{
	$world{registry_standby} = add_standby(registry(), shift @{ $world{spares} });
	return if $world_plan->{place} ne 'synchronous';
	registry()->poll_query_until('postgres',
		q{SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'})
	  or die 'no synchronous standby';
	return;
}

sub promote_registry
{
	registry_is(delete $world{registry_standby});
	registry()->promote;
	$total{failovers}++;

	# Worker IDs are another matter: see torture_registry.pl.
	registry()->safe_psql('postgres', 'SELECT snowflake_registry.confirm_promotion()')
	  if $world_plan->{place} ne 'synchronous';
	own_server();
	return;
}

sub registry_is
{
	my ($node) = @_;

	$world{registry} = $node;
	happens($node->name . ' is the registry');
	return;
}

# With a synchronous standby the registry continues, and otherwise it has stopped, until
# somebody has looked.
sub after_failover
{
	my ($before) = @_;

	new_registry_standby() unless $world{registry_standby};
	if ($world_plan->{place} ne 'synchronous')
	{
		wait_until_stopped();
		resume($before);
		return;
	}
	nap(1);
	my $stopped = stopped();
	return fail_call("a registry with a synchronous standby has stopped: $stopped") if $stopped ne '';
	probe($_) foreach @{ $world{servers} };
	return;
}

sub fail_over
{
	my $old = registry();
	my $walsender = cut_off_standby();

	nap($round_plan->{pause});
	kill_registry($old, $walsender);
	my $before = all_next($old);
	promote_registry();
	after_failover($before);
	return;
}

# A registry that was cut off keeps granting, and then its clients find it gone.
sub split_brain
{
	my $old = registry();
	my $walsender = cut_off_standby();

	promote_registry();
	new_registry_standby() if $world_plan->{place} eq 'synchronous';
	nap(2 * $round_plan->{pause});
	kill_registry($old, $walsender);
	my $before = all_next($old);
	$total{split_brains}++;
	return $before;
}

# The files of the registry, as they were before servers were granted other ranges, are
# put back.  An administrator tells the registry before servers reach it, or it has to
# notice that.
sub put_back_yesterday
{
	my $node = registry();
	my $backup = 'yesterday' . ++$world{backups};

	$node->backup($backup);
	wait_for_grants();
	kill_registry($node);
	my $before = all_next($node);
	system_or_bail('rm', '-rf', $node->data_dir);
	system_or_bail('cp', '-a', $node->backup_dir . "/$backup", $node->data_dir);
	system_or_bail('rm', '-rf', $node->backup_dir . "/$backup");
	chmod 0700, $node->data_dir;
	single_user($node, 'SELECT snowflake_registry.report_loss()',
		$round_plan->{told} || $world_plan->{one_name} ? q{SELECT snowflake_registry.stop_ranges('files of yesterday')} : ());
	(delete $world{registry_standby})->stop('immediate');
	start_node($node);
	$total{put_back}++;
	happens('files of ' . $node->name . ' were put back');
	own_server();
	new_registry_standby();
	wait_until_stopped();
	resume($before);
	return;
}

# Every server has been granted a range since then of each sequence.
sub wait_for_grants
{
	my $start = time;

	foreach my $table (@range_tables, 'up')
	{
		my $next = next_number($table);
		foreach my $server (@{ $world{servers} })
		{
			my $query = "SELECT coalesce(max(highest), 0) >= $next FROM snowflake_registry.range_holders "
			  . "WHERE server_name = '$server->{named}' AND name = 'public.${table}_id_seq'";
			while ((ask_registry($query) // '') ne 't')
			{
				die "$server->{name} is granted no range of $table" if time - $start > LONGEST_WAIT;
				renew_clients($server);
				nap(0.1);
			}
		}
	}
	return;
}

sub outage
{
	my ($seconds) = @_;

	return have_away(registry(), $round_plan->{way}, $seconds);
}

# Each begins and returns how it ends; the server's fault is between.
my %registry_fault = (
	nothing => sub { return sub { } },
	outage => sub { return outage($world_plan->{window} * 0.4) },
	'long outage' => sub { return outage(2 * long()) },
	restart => sub {
		my $node = registry();
		$node->stop;
		return sub { start_node($node) };
	},
	'kill backend' => sub {
		kill_process(registry(), 'background writer');
		return sub { };
	},
	clock => sub {
		my $node = registry();
		my $step = clock_step();
		set_clock($node, $step);
		happens("clock of the registry $step s");
		return sub {
			nap(1);
			set_clock($node, 0);
		};
	},

	# It grants something, of which its standby knows nothing.
	'standby away' => sub {
		my $pid = cut_off_standby();
		return sub {
			nap(long());
			kill 'CONT', $pid;
		};
	},

	# Its host takes connections, and calls or answers are lost, or late.
	'bad host' => sub {
		my ($proxy) = grep { $_->{is_of} == registry() } @{ $world{proxies} // [] };
		return sub { }
		  unless $proxy;
		my $mode = any_step('silent', 'mute', 'lose', 'cut', 'late');
		$proxy->set($mode);
		happens("the host of the registry is $mode");
		return sub {
			nap(long());
			$proxy->set('pass');
		};
	},
	failover => sub {
		return sub { fail_over() };
	},
	'two failovers' => sub {
		return sub {
			fail_over();
			fail_over();
		};
	},
	'split brain' => sub {
		my $before = split_brain();
		return sub { after_failover($before) };
	},
	yesterday => sub {
		return sub { put_back_yesterday() };
	},
	another => sub {
		return sub { another_registry() };
	});

# Can this happen now?
sub possible
{
	my ($fault) = @_;
	my %needs = (failover => 1, 'two failovers' => 2, 'split brain' => 1, yesterday => 1, another => 2);

	return 0 if $fault eq 'another' && ($world_plan->{place} ne 'apart' || $world{created} == MOST_CREATED);
	return @{ $world{spares} } >= ($needs{$fault} // 0);
}

#
# Worlds
#
# Each of the servers gets the others' rows.
sub replicate
{
	my @servers = @_;

	foreach my $to (@servers)
	{
		foreach my $from (grep { $_ != $to } @servers)
		{
			my $connection = $from->{node}->connstr('postgres') . " application_name=of_$to->{name}";
			$to->{node}->safe_psql('postgres', qq{
				CREATE SUBSCRIPTION of_$from->{name} CONNECTION '}
				  . ($connection =~ s/'/''/gr)
				  . qq{' PUBLICATION } . join(', ', map { "of_$_" } sort keys %tables)
				  . " WITH (copy_data = false, slot_name = '$from->{name}_to_$to->{name}')");
		}
	}
	$world{replicates} = 1;
	return;
}

# Start the workers of subscriptions.  PostgreSQL remembers until it is restarted when it started one
# last, and if the clock was ahead then, it starts it again at that time, and not before.
sub start_subscriptions
{
	foreach my $server (@_)
	{
		next if $server->{node}->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_subscription WHERE pid IS NULL') eq '0';
		$server->{node}->stop;
		start_node($server->{node});
	}
	return;
}

# In the end each of these servers has the rows of all of them.
sub check_replication
{
	my @servers = grep { $_->{base} } @{ $world{servers} };

	start_subscriptions(@servers);
	foreach my $from (@servers)
	{
		foreach my $table (sort keys %tables)
		{
			my $query = "SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM $table WHERE server = '$from->{name}'";
			my $rows = $from->{node}->safe_psql('postgres', $query);
			foreach my $to (grep { $_ != $from } @servers)
			{
				$to->{node}->poll_query_until('postgres', $query, $rows)
				  or fail_call("$to->{name} has not all rows of $from->{name} in $table: $rows");
			}
			$total{replicated} += (split / /, $rows)[0];
		}
	}
	return;
}

# Of a number that was given out twice, the row of another server cannot be inserted.
sub check_logs
{
	foreach my $node (@{ $world{nodes} })
	{
		my @conflicts = slurp_file($node->logfile) =~ /(ERROR:  duplicate key .*)/g;
		fail_call($node->name . ": $conflicts[0], and others, together " . @conflicts) if @conflicts;
	}
	return;
}

sub start_registry
{
	my ($node) = @_;

	node_of_backup($node, $template, 'backup');
	configure($node, "synchronous_commit = $world_plan->{commit}",
		$world_plan->{place} eq 'own' ? () : "snowflake.registry = ''");
	set_clock($node, 0);
	start_node($node);
	return $node;
}

# It has worker IDs that no other one of this world has granted, and may grant no ranges for now.
sub create_registry
{
	my ($node, $stopped) = @_;
	my $last = WORKERS * ++$world{created};
	my $first = $last - WORKERS + 1;

	$node->safe_psql('postgres', qq{
		BEGIN;
		CREATE EXTENSION snowflake_registry;
		SELECT snowflake_registry.create($first, $last, grant_time => '4 s', reach => '10 s',
			failovers => 9, new => true);
		SELECT snowflake_registry.add_database('postgres');
		SELECT snowflake_registry.alter_ranges(grant_time => '$world_plan->{window} s');
	} . ($stopped ? q{SELECT snowflake_registry.stop_ranges('it does not know the sequences');} : '') . 'COMMIT');
	return;
}

# The registry is lost, and servers call another one, which learns the sequences from them.
sub another_registry
{
	my $old = registry();

	kill_registry($old);
	my $before = all_next($old);
	(delete $world{registry_standby})->stop('immediate');
	my $node = start_registry(shift @{ $world{spares} });
	registry_is($node);
	create_registry($node, 1);
	happens($node->name . ' is another registry');
	$total{created}++;
	new_registry_standby();
	resume($before);
	return;
}

sub begin_world
{
	%world = (
		created => 0,
		servers => [],
		nodes => [],
		lines => 0,
		clients => 0,
		backups => 0,
		rows => 0,
		histories => { map { $_ => new_history() } keys %tables });
	my @registries = map { new_node('registry') } 1 .. REGISTRIES;
	my @proxies = $world_plan->{proxies} ? map { Proxy->new($_) } @registries : ();
	$proxies[$_]->{is_of} = $registries[$_] foreach 0 .. $#proxies;
	$world{registries} = [@registries];
	$world{proxies} = \@proxies if @proxies;
	$world{spares} = [ @registries[ 1 .. $#registries ] ];

	my $registry = start_registry($registries[0]);
	registry_is($registry);
	create_registry($registry);
	if ($world_plan->{place} eq 'synchronous')
	{
		$registry->safe_psql('postgres', 'SELECT snowflake_registry.alter_ranges(lossless_failover => true)');
		$registry->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
		$registry->reload;
	}
	create_tables($registry) if $world_plan->{place} eq 'own';
	own_server();
	new_registry_standby();

	while (@{ $world{servers} } < 3)
	{
		my $node = node_of_backup(new_node('server'), $template, 'backup');
		configure($node);
		set_clock($node, 0);
		start_node($node);
		create_tables($node);
		add_server($node, 'new')->{base} = 1;
	}
	replicate(grep { $_->{base} } @{ $world{servers} });
	renew_clients($_) foreach @{ $world{servers} };
	return;
}

# Of too many servers, those go that are no base of the others.
sub retire_servers
{
	my @more = grep { !$_->{base} && $_->{node} != registry() } @{ $world{servers} };

	while (@{ $world{servers} } > 4 && @more)
	{
		remove_server(shift @more, $round_plan->{way} eq 'kill' ? 'immediate' : 'fast');
	}
	return;
}

# One of the faults of servers of a round.  Returns what is done after that of the registry,
# unless the server has gone.
sub server_fault
{
	my ($fault) = @_;
	my @servers = grep { $_->{node} != registry() } @{ $world{servers} };
	my $server = $servers[ $round_plan->{who} * @servers ];

	happens("$server->{name}: $fault");
	my $later = $server_fault{$fault}->($server);
	fault($fault) unless $fault eq 'nothing' || ($later // '') eq 'not done';
	retire_servers();
	return ref $later ne 'CODE' ? () : sub { $later->() if grep { $_ == $server } @{ $world{servers} } };
}

sub round
{
	my $round = $round_plan;
	my $registry_fault = $round->{registry_fault};
	my @later;

	$registry_fault = 'restart' unless possible($registry_fault);
	happens("registry: $registry_fault");
	my $ends = $registry_fault{$registry_fault}->();
	foreach my $its (@{ $round->{server_faults} })
	{
		$round_plan = { %$round, %$its };
		push @later, server_fault($its->{fault});
	}
	$round_plan = $round;
	$ends->();
	$_->() foreach @later;
	happens("end of the registry's $registry_fault");
	fault("$registry_fault of the registry") if $registry_fault ne 'nothing';
	return if $total{failed} > 0;
	nap($round_plan->{pause});
	probe($_) foreach @{ $world{servers} };
	renew_clients($_) foreach @{ $world{servers} };
	return;
}

# Have the checker read what clients received.
sub check_histories
{
	foreach my $table (sort keys %{ $world{histories} })
	{
		my $before = (history_figures())[3];
		my (undef, @found) = check_history($world{histories}{$table});
		$total{ ($tables{$table} // 'range') eq 'range' ? 'numbers' : 'ids' } += (history_figures())[3] - $before;
		next unless @found;
		$total{wrong}++;
		wrong(join "\n  ", "the checker of histories, of $table", @found);
	}
	return;
}

sub end_world
{
	my ($lived) = @_;

	foreach my $server (@{ $world{servers} })
	{
		end_clients_of($server, $lived ? 'TERM' : 'KILL');
		reap_clients($server, 1);
	}
	check_replication() if $lived && $world{replicates} && !$bug;
	$_->stop foreach @{ delete $world{proxies} // [] };
	end_nodes(@{ $world{nodes} });
	check_logs() if $lived;
	check_histories() if $lived;
	return if $total{wrong} + $total{failed} > 0;
	system_or_bail('rm', '-rf', $_->basedir) foreach @{ $world{nodes} };
	return;
}

while (time < $end)
{
	$world_plan = plan_world($total{worlds}++);
	$round_plan = undef;
	nothing_happened();
	print '# plan: ', describe($world_plan), "\n";
	happens("world $total{worlds} begins");
	my $lived = eval {
		begin_world();
		foreach my $plan (@{ $world_plan->{rounds} })
		{
			last if time > $end;
			$round_plan = $plan;
			$total{rounds}++;
			happens("round $total{rounds}: " . describe($plan));
			round();
			last if $total{failed} > 0 || $bug && $total{rounds} % 2 == 0;
		}
		1;
	};
	my $undone = $lived || $@ =~ /^interrupted/ ? undef : $@;
	fail_call("what was planned could not be done: $undone") if defined $undone;
	end_world($lived);
	printf $figures "world %d (%s): %d rounds so far, %d numbers, %d IDs\n",
	  $total{worlds}, $world_plan->{place}, @total{qw(rounds numbers ids)};

	# What led to it is in the logs and the data directories.
	last if $total{wrong} + $total{failed} > 0 || !$lived;
}

my ($histories, $wrong_in_histories, $calls) = history_figures();
my $wrong = $total{failed} + $wrong_in_histories;
if ($bug)
{
	ok($wrong > 0, "the bug \"$bug\" is found");
	done_testing();
	print $figures "$histories\n";
	printf $figures "bug \"$bug\": %d rounds, %d numbers, %d wrong in histories, %d failed, %s, seed %d\n",
	  @total{qw(rounds numbers)}, $wrong_in_histories, $total{failed},
	  $wrong > 0 ? sprintf('found after %.0f s', $found_at - $begin) : 'not found', $seed;
	exit($wrong == 0);
}
is($wrong, 0, 'no number twice, nor below one before, and no call that failed');
cmp_ok($calls, '>', 0, 'histories were checked');
done_testing();
print $figures "$histories\n";
print $figures 'faults by kind: ', faults_by_kind(), "\n";
printf $figures
  '%d rounds, %d faults in %d worlds (%d failovers of the registry, %d of them with the old one alive, %d times its files of before, %d others), %d calls of another registry, '
  . '%d servers, %d numbers of ranges, %d IDs, %d rows replicated, %d floors, %d more refused, resumed %d times, '
  . "%d wrong, %d failed, %d refused, longest wait %.1f s, seed %d\n",
  $total{rounds}, count_faults(),
  @total{
	qw(worlds failovers split_brains put_back created moved servers numbers ids replicated floors refused_floors resumes
	  wrong failed refused longest_wait)
  }, $seed;
exit($wrong > 0 || $calls == 0);
