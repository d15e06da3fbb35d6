# The world "Ranges" of script/tests/torture: servers that get numbers of sequences from a
# registry, and all that can happen to both.

package Ranges;

use History;
use SnowflakeTest;
use Torture;
use WithRegistry;

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
# round.
#
# A registry is apart from its servers, or one of them; or it has a synchronous standby,
# and then it loses nothing.
#
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
	'range-floor' => [ 'apart', 'rows', 'nothing' ],
	'range-early' => [ 'synchronous', 'nothing', 'failover' ],
	'range-repeated' => [ 'apart', 'nothing', 'nothing' ],
	'range-stale' => [ 'apart', 'kill worker', 'nothing' ],
	'range-loss' => [ 'apart', 'nothing', 'yesterday' ],
	'range-unsent' => [ 'apart', 'nothing', 'yesterday' ],
	'range-count' => [ 'apart', 'nothing', 'yesterday' ],
	'range-incarnation' => [ 'apart', 'nothing', 'yesterday' ],
	'range-report' => [ 'apart', 'nothing', 'yesterday' ],
	'range-unconfirmed' => [ 'apart', 'nothing', 'nothing' ],
	'range-life' => [ 'apart', 'rows', 'nothing' ],
	'range-increment' => [ 'apart', 'nothing', 'nothing' ]);

sub plan_fault_at ($place)
{
	# Only what servers report shows that files were put back; and the server that is the registry
	# cannot be without knowing it for a moment.
	return (plan_fault(), told => $bug ? 0 : $place eq 'own' ? 1 : any_of(0, 1));
}

# Up to five faults of servers, each once; up to eight while servers are granted numbers.  Floors need
# a registry, and ALTER waits for clients that wait for one.
sub plan_server_faults ($registry_fault)
{
	my $needs_registry = qr/^(?:floor|rows|kind|dump|alter)$/;

	# A server that crashes may lose what it would report, and then nobody resumes by what servers
	# reported.
	return any_of('nothing', 'clock') if $registry_fault =~ /^(?:yesterday|another)$/ && rand() < 0.3;

	# Both registries have it report.
	return 'other registry' if $registry_fault =~ /^(?:nothing|kill backend|clock)$/ && rand() < 0.3;
	my $is_there = $registry_fault =~ /^(?:nothing|kill backend|clock|failover|two failovers|yesterday|another)$/;
	my @possible = grep { $is_there || $_ !~ $needs_registry } @server_faults;
	my $most = $is_there ? any_of(4, 6, 8) : any_of(2, 3, 4, 5);
	my %drawn;
	return grep { !$drawn{$_}++ } map { any_of(@possible) } 1 .. $most;
}

sub plan_round ($place)
{
	my (undef, $server_fault, $registry_fault) = @{ $found_by{$bug} // [] };

	$registry_fault //= any_of(@registry_faults);
	my @faults = $server_fault // plan_server_faults($registry_fault);
	return {
		plan_fault_at($place),
		registry_fault => $registry_fault,
		server_faults => [ map { { plan_fault_at($place), fault => $_ } } @faults ],
		pause => 0.5 + rand(1.5)
	};
}

sub plan_world
{
	my $place = ($found_by{$bug} // [])->[0] // any_of('apart', 'apart', 'own', 'synchronous', 'synchronous');
	my %its = (
		place => $place,
		window => any_of(1, 2, 3),
		grant_timeout => any_of('2s', '4s', '20s'),
		commit => any_of('on', 'on', 'local', 'off'),
		proxies => any_of(0, 1),
		one_name => any_of(0, 0, 1));
	$its{one_name} = 0 if $bug;
	# Servers have numbers for longer than it takes them to hear of a floor.
	@its{'grant_timeout', 'window'} = ('90s', 20) if $bug =~ /^range-(?:floor|life)$/;
	$its{commit} = 'off' if $bug eq 'range-early';
	$its{rounds} = [ map { plan_round($place) } 1 .. ROUNDS ];
	return \%its;
}

#
# Servers
#
my ($template, $numbers);

sub create
{
	# The program of clients, by the libpq that the extension is built with: a private installation
	# has none.
	my ($include, $lib) = map { `$ENV{PG_CONFIG} $_` =~ s/\n//r } '--includedir', '--libdir';

	$numbers = compile("$FindBin::RealBin/numbers.c", "-I$include", "-L$lib", '-Wl,--no-as-needed', '-lpq');
	$template = template_node(undef,
		'wal_level = logical', 'max_connections = 60', 'max_wal_senders = 12', 'max_replication_slots = 12',
		'fsync = off', 'snowflake.max_range_sequences = 50', 'wal_retrieve_retry_interval = 200ms');
	return;
}

sub conf_of ($node, @conf)
{
	return (
		asks_registries($node, @world{ 'registries', 'proxies' }),
		"snowflake.server_name = '" . $node->name . "'",
		"snowflake.grant_timeout = $plan->{grant_timeout}", @conf);
}

# The sequences of tables that are there from the beginning
sub create_tables ($node)
{
	my $name = $node->name;
	foreach my $table (sort keys %tables)
	{
		my $type = $table eq 'small' ? 'serial' : 'bigserial';
		sql($node, qq{
			CREATE TABLE $table (id $type PRIMARY KEY,
				server text NOT NULL DEFAULT current_setting('snowflake.server_name'));
			ALTER TABLE $table REPLICA IDENTITY FULL;
			ALTER SEQUENCE ${table}_id_seq INCREMENT BY } . ($table eq 'up' ? 10 : 1) . qq{;
			SELECT snowflake_set_sequence_kind('${table}_id_seq', '$tables{$table}');
			CREATE PUBLICATION of_$table FOR TABLE $table WHERE (server = '$name')});
	}
	return;
}

# It is a line in histories, whose numbers are all above what it has stored.  IDs of rows that others
# replicated follow other clocks.
sub add_line ($server)
{
	$server->{line} = $server->{name} . '.' . ++$world{lines};
	$server->{named} //= $server->{name};
	foreach my $table (sort keys %tables)
	{
		fact($world{histories}{$table}, 'server', $server->{line}, $server->{name},
			$tables{$table} eq 'range' ? greatest_stored($server->{node}, $table) : 0);
	}
	return;
}

# A copy asks in its own name, or that of its origin, and takes no rows that others
# replicate to its origin.  The registry's standby is synchronous for the next one.
sub copy_conf ($node, $origin = undef, @)
{
	return conf_of($node, 'max_logical_replication_workers = 0',
		defined $origin ? q{synchronous_standby_names = ''} : (),
		$plan->{one_name} && defined $origin ? "snowflake.server_name = '$origin->{named}'" : ());
}

sub named_after ($origin) { return $plan->{one_name} ? (named => $origin->{named}) : (); }

#
# Clients
#
# Errors of clients: that there is no number just now is none.
sub judge ($server, @errors)
{
	judge_errors("a client of $server->{name}",
		qr/no number of sequence|no worker ID is granted|the grant of worker ID \d+ ended|refuses numbers of sequence .* (?:has granted no ranges since|was promoted to timeline)/,
		@errors);
	return;
}

sub start_client_of ($server, $kind, $table)
{
	my $n = ++$world{clients};
	my $calls = "$world{histories}{$table}->{directory}/$n.calls";
	my $client = start_program("$PostgreSQL::Test::Utils::tmp_check/numbers$n", $numbers,
		$server->{node}->connstr('postgres') . ' application_name=client',
		$kind, $table, $server->{line}, $n, $calls);

	push @{ $server->{clients} }, { %$client, kind => "$kind $table", program => 1 };
	return $calls;
}

# Wait until clients have received something, but not where nothing is granted.
sub wait_for_calls (@files) { within(20, sub { !grep { !-s $_ } @files }); return; }

# A sequence is local on this server after a change that was refused, or on its origin.
sub is_range ($server, $table)
{
	return (ask_for_number($server,
		"SELECT count(*) FROM snowflake_sequences WHERE sequence = '${table}_id_seq' AND kind = 'range'") // '') eq '1';
}

sub renew_clients ($server, @more)
{
	my @kinds = (
		'greedy small', 'usual small', 'greedy big', 'usual big', 'counting up', 'usual turn', 'usual wide', @more);

	reap_clients($server);
	my %there = map { $_->{kind} => 1 } @{ $server->{clients} };
	my @missing = grep { !$there{$_} } @kinds;
	@missing = grep { $_ ne 'usual turn' } @missing
	  if grep({ $_ eq 'usual turn' } @missing) && !is_range($server, 'turn');
	start_client_of($server, split / /) foreach @missing;
	return;
}

# A server that cannot be asked has clients that cannot end by themselves.
sub end_clients_of ($server, $signal, $table = undef)
{
	foreach my $client (@{ $server->{clients} })
	{
		kill $signal, $client->{pid} if !defined $table || $client->{kind} =~ / $table$/;
	}
	return;
}

# It has gone for good.
sub remove_server ($server, $way)
{
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
sub promoted ($server)
{
	my $node = standby_for($server->{node}, new_node('standby'), 0, $server);

	$node->promote;
	return add_copy($node, "promoted from a standby of $server->{name}", named_after($server));
}

# Longer than a server has numbers for.
sub long { return $plan->{window} * (1.5 + $round_plan->{seconds}); }

# Numbers up to one that is above all that were granted are not to be given out anymore.
sub set_floor ($server, $table, $query)
{
	my $floor = $query->{floor};
	my ($stdout, $stderr) = ask_for_number($server, $query->{sql});

	if (!defined $stdout)
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
		sql($server->{node}, qq{
			CREATE TABLE $table (id serial, server text);
			INSERT INTO $table SELECT FROM generate_series(1, 100);
			INSERT INTO $table VALUES ($server->{rows} + 100)});
	}
	foreach my $server (@servers)
	{
		set_floor($server, $table, {
			floor => $server->{rows} + 100,
			sql => "SELECT snowflake_set_sequence_kind('${table}_id_seq', 'range')" }) or next;
		wait_for_calls(map { start_client_of($server, $_, $table) } 'greedy', 'usual');
	}
	nap(1);
	end_clients_of($_, 'TERM', $table) foreach @servers;
	return;
}

# Some return what is done after the end of the registry's fault.
my %server_fault = (
	'kill postmaster' => sub ($server, @) {
		foreach (1 .. 3)
		{
			stop_server($server, 'kill');
			start_server($server);
			nap(0.3);
		}
	},
	'kill worker' => sub { kill_process($_[0]{node}, 'snowflake ranges') },
	'end worker' => sub ($server, @) {
		my $pid = some_process($server->{node}, 'snowflake ranges') or return 'not done';
		kill 'TERM', $pid;
	},
	pause => sub ($server, @) {
		pause_node($server->{node});
		nap(long());
		continue_node($server->{node});
	},
	'pause backend' => sub { pause_process($_[0], 'client backend', sub { nap(long()) }) },
	'pause worker' => sub { pause_process($_[0], 'snowflake ranges', sub { nap(long()) }) },

	# The old primary keeps running.
	promotion => sub { promoted($_[0]) },
	'two promotions' => sub { promoted(promoted($_[0])) },
	'promotion instead' => sub ($server, @) {
		my $new = promoted($server);
		remove_server($server, 'immediate');
		return $new;
	},
	'backup copy' => sub ($server, @) {
		my $node = new_node('copy');
		copy_of($node, $server->{node}, 0, 0, copy_conf($node, $server));
		add_copy($node, "a copy of a base backup of $server->{name}", named_after($server));
	},
	'file copy' => sub ($server, @) {
		my $node = copy_files($server->{node});
		$node->append_conf('postgresql.conf', join "\n", copy_conf($node, $server), '');
		set_clock($node, 0);
		start_node($node);
		add_copy($node, "a copy of the files of $server->{name}", named_after($server));
	},
	clock => sub ($server, @) {
		my $step = clock_step();
		put_clock($server, $step);
		nap($round_plan->{pause});
		return sub { set_clock($server->{node}, 0) };
	},
	floor => sub ($server, @) {
		my $table = $range_tables[ 2 * $round_plan->{other} ];
		my $next = next_number($table) // return;
		my $floor = $next + int 20000 * $round_plan->{step};
		set_floor($server, $table, { floor => $floor, sql => "SELECT setval('${table}_id_seq', $floor)" });
	},
	rows => sub { join_with_rows() },
	kind => sub ($server, @) {
		become_local($server, 'turn') or return 'not done';
		return sub { become_range($server, 'turn') };
	},

	# What changes nothing but files, and has servers lose their ranges
	alter => sub ($server, @) {
		foreach my $table ('big', 'up', 'turn', 'wide')
		{
			sql($server->{node}, $_)
			  foreach "ALTER SEQUENCE ${table}_id_seq RESTART", "ALTER SEQUENCE ${table}_id_seq CACHE 7",
			  "ALTER SEQUENCE ${table}_id_seq RESTART WITH 5";
		}
		nap($round_plan->{pause});
	},
	dump => sub { start_dump($_[0]) },
	'other registry' => sub { call_other_registry($_[0]) });

# A sequence of this server is local, and continues above all that it gave out, while others
# continue with ranges.  Returns 0 if the registry is away and cannot say what it granted.
sub become_local ($server, $table)
{
	my $next = "SELECT nextval('${table}_id_seq')";

	end_clients_of($server, 'TERM', $table);
	for (;;)
	{
		reap_clients($server);
		last unless grep { $_->{kind} =~ / $table$/ } @{ $server->{clients} };
		nap(0.02);
	}
	return 1 unless is_range($server, $table);
	my $before = ask_for_number($server, $next);
	my ($local, $problem) = ask_for_number($server, "SELECT snowflake_set_sequence_kind('${table}_id_seq', 'local')");
	if (!defined $local)
	{
		fail_call("$table of $server->{name} is not local: $problem") unless $problem =~ /it is not known which numbers/;
		happens("$table of $server->{name} stays as it is without the registry");
		return 0;
	}
	my $after = sql($server->{node}, $next);
	fail_call("local number $after of $table after $before") if defined $before && $after <= $before;
	sql($server->{node}, "$next FROM generate_series(1, 5000 * $round_plan->{step})");
	happens("$table of $server->{name} is local");
	return 1;
}

sub ask_for_number ($server, $query) { return answer_of($server->{node}, $query); }

# No server gives out a number of it anymore that this one had when it was local.
sub become_range ($server, $table)
{
	my $last = sql($server->{node}, "SELECT nextval('${table}_id_seq')");

	# A server that has gone without a word is waited for each time, and in vain.
	foreach my $try (1 .. ($world{has_gone} ? 1 : 3))
	{
		last if set_floor($server, $table,
			{ floor => $last, sql => "SELECT snowflake_set_sequence_kind('${table}_id_seq', 'range')" });
		nap(1);
	}
	return;
}

# A dump of a server is restored in a new one.
sub start_dump ($origin)
{
	my $node = new_node('dumped');
	my $file = $node->basedir . '/dump.sql';

	new_server_of($node, $template, conf_of($node));
	sql($node, 'DROP TABLE t');
	system_or_bail('sh', '-c',
		'pg_dump --no-subscriptions --no-publications -d "$1" -f "$2" && psql -XAtq -v ON_ERROR_STOP=1 -d "$3" -f "$2" >/dev/null',
		'sh', $origin->{node}->connstr('postgres'), $file, $node->connstr('postgres'));
	add_copy($node, "a dump of $origin->{name}");
	return;
}

# A server calls another registry for a while, which is beside its own and knows nothing of its
# numbers: it grants none until the server has reported them, and if it stopped, somebody resumed it.
# Its own registry, when it is back, asks for a report, too, and goes on for all others.
sub call_other_registry ($server)
{
	return 'not done' if !@{ $world{spares} } || $world{created} == MOST_CREATED || $plan->{place} eq 'own';
	my $node = $server->{node};
	my $other = start_registry(shift @{ $world{spares} });
	my $before = greatest_given($server);

	create_registry($other, $round_plan->{told});
	end_clients_of($_, 'TERM', 'big') foreach @{ $world{servers} };
	change_registry($server, asks_registries($node, [$other]));
	if ($round_plan->{told})
	{
		ask_until($server, $before, sub { $_[1] =~ /refuses numbers of sequence/ });
		wait_until_true($other,
			q{SELECT count(*) > 0 FROM snowflake_registry.range_clients c, snowflake_registry.range_state s WHERE c.reported = s.incarnation});
		sql($other, 'SELECT FROM snowflake_registry.resume_ranges(1)');
	}
	ask_until($server, $before, sub { defined $_[0] && defined ask_for_number($server, "SELECT nextval('wide_id_seq')") });
	change_registry($server, asks_registries($node, @world{ 'registries', 'proxies' }));
	$other->stop('immediate');
	$total{moved}++;
	return sub {
		ask_until($server, $before, sub { defined $_[0] });
		fail_call('a server that was away has stopped its registry: ' . stopped()) if stopped() ne '';
		renew_clients($server);
	};
}

# A server that clients leave gets another line with registries.
sub change_registry ($server, $line)
{
	stop_server($server, 'fast');
	$server->{node}->append_conf('postgresql.conf', $line);
	start_node($server->{node});
	return;
}

# The greatest number that has a row, which a server can report after a restart.
sub greatest_given ($server)
{
	ask_for_number($server, 'INSERT INTO big DEFAULT VALUES RETURNING id');
	return sql($server->{node}, "SELECT coalesce(max(id), 0) FROM big WHERE server = '$server->{name}'");
}

# Ask a server for numbers until something is so, which gets the number, and the error.  No number
# is one from before.
sub ask_until ($server, $before, $ends)
{
	my $error;

	within(LONGEST_WAIT, sub {
			(my $next, $error) = ask_for_number($server, "SELECT nextval('big_id_seq')");
			fail_call("$server->{name} gives out $next after $before, by another registry")
			  if defined $next && $next <= $before;
			return $ends->($next, $error);
		}, 0.1) or die "$server->{name} does not continue with the other registry: $error";
	return;
}

# Further ahead of its mark than snowflake.max_clock_forward, a year, a server generates no IDs.
sub clock_step
{
	return any_step(-0.5, 0.5, -3, 3, -70, 70, -3600, 3600, -DAY, DAY, -10 * 365 * DAY, 360 * DAY);
}

# All files of a server as they are at a moment, with a socket and a port of their own.
sub copy_files ($origin)
{
	my $node = new_node('files');

	pause_node($origin);
	system_or_bail('cp', '-a', $origin->data_dir, $node->data_dir);
	continue_node($origin);
	unlink $node->data_dir . '/postmaster.pid';
	$node->append_conf('postgresql.conf', join "\n", 'port = ' . $node->port,
		"unix_socket_directories = '" . $node->host . "'", '');
	push @nodes, $node;
	return $node;
}

#
# The registry
#
sub ask_registry ($query, $registry = registry()) { return scalar answer_of($registry, $query); }

sub next_number ($table)
{
	return ask_registry("SELECT next FROM snowflake_registry.range_sequences WHERE name = 'public.${table}_id_seq'");
}

# Statements in a registry that no server reaches; returns what they print.
sub in_stopped ($node, @queries)
{
	my $output = single_user($node, join("\n", @queries),
		options => [ '-c', 'synchronous_standby_names=' ]);

	die 'single-user mode of ' . $node->name . ": $output" if $? || $output =~ /ERROR|FATAL|PANIC/;
	return $output;
}

# The next numbers of all sequences of a registry that is down
sub all_next ($node)
{
	my $output = in_stopped($node,
		q{SELECT 'next=' || name || '=' || next || '.' AS n FROM snowflake_registry.range_sequences});
	my %next = $output =~ /next=([^="]+)=(\d+)\./g;

	die "no sequences: $output" unless %next;
	return \%next;
}

# Why the registry grants no ranges
sub stopped { return ask_registry('SELECT stopped FROM snowflake_registry.range_state', @_) // ''; }

sub wait_until_stopped
{
	within(LONGEST_WAIT, sub { stopped() ne '' || renew_all(@{ $world{servers} }) }, 0.05)
	  or return fail_call('the registry does not notice that it lost ranges');
	happens('the registry has stopped: ' . stopped());
	return;
}

# Have servers report all that they were granted.  Others may have, and have gone since.
sub wait_for_reports
{
	my $n = @{ $world{servers} };
	my $reported = q{
		SELECT count(DISTINCT directory) FROM snowflake_registry.range_clients c, snowflake_registry.range_state s
		WHERE c.reported = s.incarnation};

	return 1 if within(60, sub { renew_all(@{ $world{servers} }); return (ask_registry($reported) // 0) >= $n }, 0.1);
	happens("not all of $n servers have reported");
	return 0;
}

# An administrator has the registry continue, above what servers reported; where a server
# may not know what its clients received (as it has crashed, or is the registry, or a sequence is
# local there), above what the registry had granted before.
sub resume ($before)
{
	my $n = @{ $world{servers} };

	if (wait_for_reports() && !$world{has_gone} && $plan->{place} ne 'own' && !grep({ !is_range($_, 'turn') } @{ $world{servers} })
		&& !grep({ $_->{fault} !~ /^(?:nothing|clock|floor)$/ } @{ $round_plan->{server_faults} }))
	{
		my ($resumed, $error) = answer_of(registry(), "SELECT snowflake_registry.resume_ranges(0, servers => $n)");
		if (defined $resumed)
		{
			$total{resumes}++;
			$total{by_reports}++;
			happens("the registry continues by reports of $n servers");
			return;
		}
		fail_call("reports of $n servers do not suffice: $error") unless $error =~ /Servers that have not|It is not known/;
	}
	my $skip = 1;
	my %now = map { split /\|/ } split /\n/, ask_registry('SELECT name, next FROM snowflake_registry.range_sequences');
	foreach my $name (keys %$before)
	{
		my $lost = $before->{$name} - ($now{$name} // 1);
		$skip = $lost if $lost > $skip;
	}
	registry()->safe_psql('postgres', "SELECT snowflake_registry.resume_ranges($skip)");
	$total{resumes}++;
	happens("the registry continues, and skips $skip");
	return;
}

# It is not there anymore, nor is the server with clients of its own that it may be.
sub end_registry ($node, @walsenders)
{
	my ($server) = grep { $_->{node} == $node } @{ $world{servers} };

	kill_postmaster($node, @walsenders);
	return unless $server;
	end_clients_of($server, 'TERM');
	reap_clients($server, LONGEST_WAIT);
	@{ $world{servers} } = grep { $_ != $server } @{ $world{servers} };
	return;
}

# The registry's server has clients, too.
sub own_server { add_copy(registry(), 'its own registry') if $plan->{place} eq 'own'; return; }

sub new_registry_standby
{
	$world{registry_standby} = standby_for(registry(), shift @{ $world{spares} }, 0);
	return if $plan->{place} ne 'synchronous';
	wait_until_true(registry(),
		q{SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'});
	return;
}

sub promote_registry
{
	registry_is(delete $world{registry_standby});
	registry()->promote;
	$total{failovers}++;

	# Worker IDs are another matter: see Registry.pm.
	registry()->safe_psql('postgres', 'SELECT snowflake_registry.confirm_promotion()')
	  if $plan->{place} ne 'synchronous';
	own_server();
	return;
}

# With a synchronous standby the registry continues, and otherwise it has stopped, until
# somebody has looked.
sub after_failover ($before)
{
	new_registry_standby() unless $world{registry_standby};
	if ($plan->{place} ne 'synchronous')
	{
		wait_until_stopped();
		resume($before);
		return;
	}
	nap(1);
	my $stopped = stopped();
	return fail_call("a registry with a synchronous standby has stopped: $stopped") if $stopped ne '';
	probe_all(@{ $world{servers} });
	return;
}

sub fail_over
{
	my $old = registry();
	my ($walsender) = cut_off_standbys(1);

	nap($round_plan->{pause});
	end_registry($old, $walsender);
	my $before = all_next($old);
	promote_registry();
	after_failover($before);
	return;
}

# A registry that was cut off keeps granting, and then its clients find it gone.
sub split_brain
{
	my $old = registry();
	my ($walsender) = cut_off_standbys(1);

	promote_registry();
	new_registry_standby() if $plan->{place} eq 'synchronous';
	nap(2 * $round_plan->{pause});
	end_registry($old, $walsender);
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
	end_registry($node);
	my $before = all_next($node);
	system_or_bail('rm', '-rf', $node->data_dir);
	system_or_bail('cp', '-a', $node->backup_dir . "/$backup", $node->data_dir);
	system_or_bail('rm', '-rf', $node->backup_dir . "/$backup");
	chmod 0700, $node->data_dir;
	in_stopped($node, 'SELECT snowflake_registry.report_loss()',
		$round_plan->{told} ? q{SELECT snowflake_registry.stop_ranges('files of yesterday')} : ());
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
	foreach my $table (@range_tables, 'up')
	{
		my $next = next_number($table);
		foreach my $server (@{ $world{servers} })
		{
			my $query = "SELECT coalesce(max(highest), 0) >= $next FROM snowflake_registry.range_holders "
			  . "WHERE server_name = '$server->{named}' AND name = 'public.${table}_id_seq'";
			within(LONGEST_WAIT, sub { (ask_registry($query) // '') eq 't' || renew_clients($server) }, 0.1)
			  or die "$server->{name} is granted no range of $table";
		}
	}
	return;
}

# Each begins and returns how it ends; the server's fault is between.
my %registry_fault = (
	outage => sub { return outage($plan->{window} * 0.4) },
	'long outage' => sub { return outage(2 * long()) },
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
		my ($pid) = cut_off_standbys(1);
		return sub {
			nap(long());
			kill 'CONT', $pid;
		};
	},

	'bad host' => sub { return bad_host(any_step('silent', 'mute', 'lose', 'cut', 'late'), long()) },
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
sub possible ($fault)
{
	my %needs = (failover => 1, 'two failovers' => 2, 'split brain' => 1, yesterday => 1, another => 2);

	return 0 if $fault eq 'another' && ($plan->{place} ne 'apart' || $world{created} == MOST_CREATED);
	return 0 if $fault eq 'bad host' && !$world{proxies};
	return @{ $world{spares} } >= ($needs{$fault} // 0);
}

#
# Worlds
#
# Each of the servers gets the others' rows.
sub replicate (@servers)
{
	foreach my $to (@servers)
	{
		foreach my $from (grep { $_ != $to } @servers)
		{
			my $connection = $from->{node}->connstr('postgres') . " application_name=of_$to->{name}";
			sql($to->{node}, qq{
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
		next if sql($server->{node}, 'SELECT count(*) FROM pg_stat_subscription WHERE pid IS NULL') eq '0';
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
			my $rows = sql($from->{node}, $query);
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
	foreach my $node (@nodes)
	{
		my @conflicts = slurp_file($node->logfile) =~ /(ERROR:  duplicate key .*)/g;
		fail_call($node->name . ": $conflicts[0], and others, together " . @conflicts) if @conflicts;
	}
	return;
}

sub start_registry ($node)
{
	return new_server_of($node, $template, conf_of($node, "synchronous_commit = $plan->{commit}",
			$plan->{place} eq 'own' ? () : "snowflake.registry = ''"));
}

# It has worker IDs that no other one of this world has granted, and may grant no ranges for now.
sub create_registry ($node, $stopped = undef)
{
	my $last = WORKERS * ++$world{created};
	my $first = $last - WORKERS + 1;

	sql($node, qq{
		BEGIN;
		CREATE EXTENSION snowflake_registry;
		SELECT snowflake_registry.create($first, $last, grant_time => '4 s', reach => '10 s',
			failovers => 9, new => true);
		SELECT snowflake_registry.add_database('postgres');
		SELECT snowflake_registry.alter_ranges(grant_time => '$plan->{window} s');
	} . ($stopped ? q{SELECT snowflake_registry.stop_ranges('it does not know the sequences');} : '') . 'COMMIT');
	return;
}

# The registry is lost, and servers call another one, which learns the sequences from them.
sub another_registry
{
	my $old = registry();

	end_registry($old);
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
		lines => 0,
		clients => 0,
		rows => 0,
		histories => { map { $_ => new_history() } keys %tables });
	my $registry = start_registry(begin_registries(REGISTRIES));

	registry_is($registry);
	create_registry($registry);
	if ($plan->{place} eq 'synchronous')
	{
		sql($registry, 'SELECT snowflake_registry.alter_ranges(lossless_failover => true)');
		reload_with($registry, "synchronous_standby_names = '*'");
	}
	create_tables($registry) if $plan->{place} eq 'own';
	own_server();
	new_registry_standby();

	while (@{ $world{servers} } < 3)
	{
		my $node = new_node('server');
		new_server_of($node, $template, conf_of($node));
		create_tables($node);
		add_server($node, 'new', base => 1);
	}
	replicate(grep { $_->{base} } @{ $world{servers} });
	renew_all(@{ $world{servers} });
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

sub range_round
{
	round();
	return if $total{failed} > 0;
	nap($round_plan->{pause});
	probe_all(@{ $world{servers} });
	renew_all(@{ $world{servers} });
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

sub end_world ($lived)
{
	foreach my $server (@{ $world{servers} })
	{
		end_clients_of($server, $lived ? 'TERM' : 'KILL');
		reap_clients($server, LONGEST_WAIT);
	}
	check_replication() if $lived && $world{replicates} && !$bug;
	end_registries();
	end_nodes(@nodes);
	check_logs() if $lived;
	check_histories() if $lived;
	system_or_bail('rm', '-rf', map { $_->basedir } @nodes) if found() == 0;
	@nodes = ();
	return;
}

with_registry(__PACKAGE__,
	probe => q{SELECT nextval('small_id_seq'), nextval('big_id_seq')},
	probed => sub { },
	server_faults => \%server_fault,
	registry_faults => \%registry_fault);

sub world
{
	return {
		create => \&create,
		plan => \&plan_world,
		begin => \&begin_world,
		round => \&range_round,

		# Only the checker of histories finds some bugs, after a world.
		stops => sub { $total{failed} > 0 || $bug && $total{rounds} % 2 == 0 },
		end => \&end_world,

		# What led to it is in the logs and the data directories.
		ends => sub { found() > 0 },
		wrong => ['failed'],
		promise => 'no number twice, nor below one before, and no call that failed',
		so_far => '{worlds} worlds, {rounds} rounds, {numbers} numbers, {ids} IDs',
		bug_figures => '{rounds} rounds, {numbers} numbers, {wrong} wrong, {failed} failed',
		figures => '{rounds} rounds, {faults} faults in {worlds} worlds ({failovers} failovers of the registry, '
		  . '{split_brains} of them with the old one alive, {put_back} times its files of before, {created} others), '
		  . '{moved} calls of another registry, {servers} servers, {numbers} numbers of ranges, {ids} IDs, '
		  . '{replicated} rows replicated, {floors} floors, {refused_floors} more refused, resumed {resumes} times, {by_reports} of them by reports alone, '
		  . '{wrong} wrong, {failed} failed, {refused} refused, longest wait {longest_wait} s' };
}

1;
