# The worker that gets ranges of sequences from the registry: whatever happens to it, to
# its connection or to the registry, no number is given out twice, no range is exhausted by
# answers that are lost, and a shutdown is not held up.

use SnowflakeTest;

my @walsenders = ('wal_level = replica', 'max_wal_senders = 2');
my $registry = new_range_registry('registry', 'postgres', @walsenders, 'track_functions = all');

# A server with a sequence s of kind range
sub new_range_server ($name, @conf)
{
	my $server = new_server($name, registry_conf($registry, "application_name=$name"), "snowflake.server_name = '$name'",
		"snowflake.grant_timeout = '1 min'", @conf);

	sql($server, q{CREATE SEQUENCE s AS integer; SELECT snowflake_set_sequence_kind('s', 'range')});
	return $server;
}

my $a = new_range_server('a', 'restart_after_crash = on');
my $b = new_range_server('b');

# All numbers that any server has given out, and the last one of each.
my %given;
my %last;
my $doubles = 0;
my $falls = 0;

# Take so many numbers.
sub take ($server, $count)
{
	note_numbers($server, sql($server, "SELECT nextval('s') FROM generate_series(1, $count)"));
	return;
}

# Note the numbers that a session received, one a line.
sub note_numbers ($server, $numbers)
{
	my $name = $server->name;

	foreach my $n (split /\n/, $numbers)
	{
		$doubles++ if $given{$n}++;
		$falls++ if $n <= ($last{$name} // 0);
		$last{$name} = $n;
	}
	return;
}

sub asked { return sql($registry, $_[0]); }
sub next_number { return asked("SELECT next FROM snowflake_registry.sequences WHERE name = 'public.s'"); }
sub calls_of { return asked("SELECT count(*) FROM snowflake_registry.range_clients WHERE server_name = '$_[0]'"); }
sub messages { return scalar(() = $_[0] =~ /$_[1]/g); }

# The log of a server since a mark.
my %log_end;
sub mark_log { $log_end{ $_[0]->name } = -s $_[0]->logfile; return; }
sub new_log { return slurp_file($_[0]->logfile, $log_end{ $_[0]->name }); }

my $crash = qr/terminated by signal|all server processes terminated/;
my $failed = qr/WARNING:  could not call the registry of sequence ranges/;
my $back = qr/LOG:  the registry of sequence ranges is available again/;

# End the connection of the worker of server a.
sub disconnect
{
	wait_until('a connection that ends',
		sub { asked("SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE application_name = 'a'") > 0 });
	return;
}

take($_, 150) foreach $a, $b, $a, $b;
is($doubles, 0, 'two servers have different numbers');
is(calls_of('a'), 1, 'the server is one client, however often it calls');

# A floor of one server is one of the other.
take($b, 1);
my $floor = next_number() + 1000;
is(sql($a, "SELECT setval('s', $floor)"), $floor, 'setval() waits for the other server');
take($b, 10);
cmp_ok($last{b}, '>', $floor, 'the other server gives out no number that is not above the floor');
take($a, 10);
cmp_ok($last{a}, '>', $floor, 'nor does the one that set it');

# It hears of it within its timeout, but asks for floors only then.
sub asked_for_floors
{
	return asked(q{SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'get_floors'});
}
sub looked { return asked(q{SELECT count(*) FROM pg_stat_activity WHERE query ~ 'FROM snowflake_registry.floor_changes$' AND query_start > clock_timestamp() - interval '1.5 s'}); }
set_timeout($a, '10s');
my $times_asked = asked_for_floors();
foreach (1 .. 3)
{
	$floor = next_number() + 1000;
	is(sql($a, "SELECT setval('s', $floor)"), $floor, 'setval() waits for the other server, which hears of it');
	take($_, 10) foreach $a, $b;
}
set_timeout($a, '1min');
wait_until('servers have asked for floors', sub { asked_for_floors() > $times_asked });
my $begun;
wait_until('servers have looked for floors, after a while', sub { ($begun, $times_asked) = (time, asked_for_floors()); sleep 8; looked() == 2 });
cmp_ok(asked_for_floors() - $times_asked, '<=', 6 + (time - $begun) / 10, 'servers look each second whether there are floors, but rarely ask for them');

# The registry is down: what is held is used; then it is back.
sub set_timeout { return change_setting($_[0], 'snowflake.grant_timeout', $_[1]); }
mark_log($a);
$registry->stop;
ok($a->wait_for_log($failed, $log_end{a}), 'a registry that is down is logged');
take($a, 20);
set_timeout($a, '300ms');
sql_fails($a, "SELECT nextval('s') FROM generate_series(1, 100000)",
	qr/ERROR:  55000: /, 'without the registry, numbers end');
set_timeout($a, '1min');
$registry->start;
ok($a->wait_for_log($back, $log_end{a}), 'a registry that is available again is logged');
take($a, 200);
cmp_ok(messages(new_log($a), $failed), '<=', 3, 'each reason why the registry is not available is logged once');
is(calls_of('a'), 1, 'the server is the same client after that');

# The worker alone is terminated: the next one continues the chain.
my $worker = server_process($a, 'snowflake ranges');
sql($a, "SELECT pg_terminate_backend($worker, 60000)");
like(slurp_file($a->logfile), qr/FATAL:  terminating background worker "snowflake ranges" due to administrator command/,
	'the log says that the worker was terminated');
take($a, 250);
take($b, 250);
isnt(server_process($a, 'snowflake ranges'), $worker, 'a worker that was terminated is started again');
is(calls_of('a'), 1, 'the server is the same client with the next worker');

# Its connection is ended, idle.
disconnect();
take($a, 250);
is(calls_of('a'), 1, 'the server is the same client after its connection was ended');
unlike(slurp_file($a->logfile), $crash, 'the end of the connection is no crash');

# The answer to a call is lost: the commit hangs, as synchronous standbys are away.  The other
# server does not call meanwhile.
my $worker_of_b = server_process($b, 'snowflake ranges');
kill 'STOP', $worker_of_b;
wait_until('calls of the other server that end', sub { asked(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'b' AND state <> 'idle'}) == 0 });
my $before = next_number();
require_nobody($registry);
mark_log($a);
my ($waiting) = start_queries($a, "SELECT nextval('s') FROM generate_series(1, 10000)");
ok($a->wait_for_log(qr/$failed/, $log_end{a}), 'a call whose commit hangs is given up');
my $hung = "SELECT count(*) FROM pg_stat_activity WHERE query ~ 'get_ranges' AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND wait_event = 'SyncRep'";
my $most = 0;
ok(
	wait_until(
		'calls that are refused',
		sub {
			my $now = asked($hung);

			$most = $now if $now > $most;
			return slurp_file($registry->logfile) =~ /the previous call of this server is still in progress/;
		}),
	'a call is refused while the one before hangs');
cmp_ok($most, '<=', 1, 'calls that hang do not pile up at the registry');
require_nobody($registry, '');
is(finish_queries($waiting), 1, 'who waited for numbers gets them when commits are possible again');
note_numbers($a, $waiting->{out});
my $after = next_number();
take($a, 5000) while $last{a} < $after;
kill 'CONT', $worker_of_b;
is(join(' ', grep { !$given{$_} } $before .. $after - 1), '', 'calls that hang use up no numbers');

# All that is not durable is only in memory: nothing is left of it after a crash.
mark_log($a);
crash_process($a, server_process($a, 'snowflake ranges'));
take($a, 250);
is(calls_of('a'), 2, 'a server that crashed is another client');
take($b, 100);

# Somebody else called as this client: as if the machine was resumed twice from memory.
mark_log($a);
asked("UPDATE snowflake_registry.range_clients SET token_hash = '\\x00' WHERE server_name = 'a' AND token_hash IS NOT NULL");
# With the next connection, it says what it was granted.
disconnect();
$a->wait_for_log(qr/does not know this server/, $log_end{a}) or die 'no call';
like(new_log($a),
	qr/LOG:  the registry does not know this server as the holder of its sequence ranges\n.*DETAIL:  The server does not use the rest of them, and requests others\./,
	'a server that was superseded says so');
$before = asked("SELECT max(latest_last) FROM snowflake_registry.held_ranges JOIN snowflake_registry.range_clients USING (client) WHERE token_hash = '\\x00'");
take($a, 1);
cmp_ok($last{a}, '>', $before, 'it has dropped the ranges that it had');
is(calls_of('a'), 3, 'it is another client');

# A registry that has lost commits hears of it, although nobody needs numbers.
my $lost = $last{a} > $last{b} ? $last{a} : $last{b};
asked('UPDATE snowflake_registry.range_sequences SET next = 5; UPDATE snowflake_registry.range_clients SET receipts = 0');
$registry->restart;
ok( $registry->poll_query_until('postgres', 'SELECT stopped IS NOT NULL FROM snowflake_registry.range_state'),
	'after a reconnect, the registry hears that it lost commits');
set_timeout($b, '3s');
sql_fails($b, "SELECT nextval('s') FROM generate_series(1, 100000)",
	qr/ERROR:  55000: the registry refuses numbers of sequence "s"\nDETAIL:  The registry has granted no ranges since /, 'then nobody is granted numbers');
ok($b->wait_for_log(qr/WARNING:  the registry grants no numbers for sequence public\.s in database "postgres"\n.*DETAIL:  The registry has granted no ranges since /),
	'the problem of a sequence is logged');
set_timeout($b, '1min');
ok( $registry->poll_query_until('postgres', "SELECT count(DISTINCT server_name) = 2 FROM snowflake_registry.range_evidence WHERE granted > 0"),
	'both report what they were granted');
like($_->wait_for_log(qr/LOG:  reported to the registry which numbers of 1 sequences are in use/) ? slurp_file($_->logfile) : '', qr/reported to the registry/,
	'and say so: ' . $_->name) foreach $a, $b;
asked('SELECT snowflake_registry.resume_ranges(0, servers => 2)');
cmp_ok(next_number(), '>', $lost, 'the registry continues above what they were granted');
# An answer of before can arrive after that.
foreach my $server ($a, $b)
{
	wait_until(
		'numbers after the administrator had the registry continue',
		sub {
			my ($status, $numbers) = $server->psql('postgres', "SELECT nextval('s') FROM generate_series(1, 300)");

			note_numbers($server, $numbers) if $status == 0;
			return $status == 0;
		});
}
take($_, 300) foreach $a, $b;

# What a shutdown returns.
my $holders = "SELECT count(*) FROM snowflake_registry.range_holders WHERE server_name = 'b'";
isnt(asked($holders), 0, 'a server that has numbers is a holder');
$b->stop;
is(asked($holders), 0, 'a shutdown returns all ranges');
$b->start;
take($b, 50);

# A shutdown in each state.
sub stops_in_time ($server, $state)
{
	my $start = time;

	$server->stop('fast');
	cmp_ok(time - $start, '<', 10, "a fast shutdown is not held up: $state");
	return;
}

require_nobody($registry);
my ($blocked) = start_queries($b, "SELECT nextval('s') FROM generate_series(1, 100000)");
wait_until_true($registry, $hung =~ s/count\(\*\)/count(*) > 0/r);
stops_in_time($b, 'a call hangs');
finish_queries($blocked);
require_nobody($registry, '');
$b->start;
take($b, 50);

mark_log($b);
$registry->stop('immediate');
$b->wait_for_log($failed, $log_end{b}) or die 'no failure';
stops_in_time($b, 'the registry is down');
like(slurp_file($b->logfile), qr/LOG:  could not return sequence ranges to the registry\n.*DETAIL:  /, 'the log says that ranges were not returned');
$registry->start;
$b->start;
take($b, 50);

# The registry is in the server itself.
my $local = new_server('local', @walsenders);
$local->append_conf('postgresql.conf',
	setting('snowflake.registry', 'host=' . $local->host . ' port=' . $local->port . ' dbname=postgres ' . conninfo_user()) . "\nsnowflake.server_name = 'local'\n");
sql($local,
	"CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create(1, 100, new => true); SELECT snowflake_registry.add_database('postgres')");
$local->restart;
sql($local, q{CREATE SEQUENCE s AS integer; SELECT snowflake_set_sequence_kind('s', 'range')});
is( sql($local, "SELECT count(DISTINCT nextval('s')) FROM generate_series(1, 1000)"),
	1000, 'a registry in the server itself grants ranges');
is(sql($local, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'snowflake ranges' AND datname = 'postgres'"),
	1, 'the worker is connected to it as a background worker');
require_nobody($local);
my $next = 'SELECT next FROM snowflake_registry.sequences';
$before = sql($local, $next);
mark_log($local);
($waiting) = start_queries($local, "SET synchronous_commit = off; SELECT nextval('s') FROM generate_series(1, 100000)");
ok($local->wait_for_log(qr/$failed\n.*DETAIL:  the registry did not commit durably: /, $log_end{local}),
	'an answer that synchronous standbys do not have is none');
stops_in_time($local, 'a local call waits for synchronous standbys');
finish_queries($waiting);
$local->start;
cmp_ok(sql($local, 'SELECT count(*) FROM snowflake_registry.range_clients WHERE token_hash IS NOT NULL'),
	'<=', 1, 'a shutdown returns ranges to a registry in the server itself');

is($doubles, 0, 'no number was given out twice');
is($falls, 0, 'numbers increase on each server');
done_testing();

# Have commits of a server wait for a synchronous standby that there is not, or not.
sub require_nobody ($node, $names = 'nobody')
{
	return change_setting($node, 'synchronous_standby_names', $names);
}
