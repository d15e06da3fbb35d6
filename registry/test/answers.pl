# What stands at the registry's address answers anything: the server keeps running,
# keeps its grant, says what is wrong and does not fill the log, and stops in time.
#
# The server has a clock of its own, so that the next call need not be waited for.

use FakeRegistry;
use List::Util qw(max);
use SnowflakeTest;

# Answers a call by a row, but with these values instead of the good ones.
sub with_values (%wrong)
{
	return answer_call(
		sub {
			my (@call) = @{ $_[0]->{parameters} };

			return rows(3, [ map { exists $wrong{$_} ? $wrong{$_} : good_value($_, @call) } 0 .. 2 ]);
		});
}

# Answers that have a name: what they are, and what the server says then.
my %cases = (
	'no row' => [ sub { $_[0]{stage} eq 'start' ? good_start() : row_description(1) . complete(0) . ready() },
		qr/^unexpected answer of no row with 1 column$/ ],
	'no column' => [ sub { $_[0]{stage} eq 'start' ? good_start() : row_description(0) . row() . complete(1) . ready() },
		qr/^unexpected answer of one row with 0 columns$/ ],
	'a problem that there is not' => [ sub { $_[0]{stage} eq 'start' ? good_start() : row_description(3) . row('x', 'a', 1) . complete(1) . ready() },
		qr/^unexpected answer of one row with 3 columns: x, a, 1$/ ],
	'no rows at all' => [ sub { $_[0]{stage} eq 'start' ? good_start() : message('C', "SET\0") . ready() },
		qr/^unexpected answer$/ ],
	'a row after the end of the rows' =>
	  [ sub { $_[0]{stage} eq 'start' ? good_start() : row_description(3) . row_description(1) . row(7) . ready() }, qr/^unexpected answer$/ ],
	'no grant' => [ answer_call(sub { rows(3) }), qr/^unexpected answer of no row with 3 columns$/ ],
	'a row of no columns' => [ answer_call(sub { rows(0, []) }), qr/^unexpected answer of one row with 0 columns$/ ],
	'a column too few' => [ answer_call(sub { rows(2, [ 7, 8 ]) }), qr/^unexpected answer of one row with 2 columns: 7, 8$/ ],
	'a column too many' => [ answer_call(sub { rows(4, [ 7, 8, 9, 10 ]) }), qr/^unexpected answer of one row with 4 columns: 7, 8, 9, 10$/ ],
	'many columns' => [ answer_call(sub { rows(100, [ 1 .. 100 ]) }), qr/^unexpected answer of one row with 100 columns: 1, 2, 3, 4[, 0-9]*$/ ],
	'two rows' => [ answer_call(sub { rows(3, [ 7, 8, 9 ], [ 7, 8, 9 ]) }), qr/^unexpected answer$|several rows with 3 columns$/ ],
	'rows without end' => [ answer_call(sub { my ($s) = @_; $s->{sent}->(message('1', '') . message('2', '') . row_description(3)); forever(row(1, 2, 3) x 1000)->($s) }),
		qr/^unexpected answer$|several rows with 3 columns$/ ],
	'NULL in a grant' => [ with_values(1 => undef), qr/^unexpected answer of one row with 3 columns: 1, NULL, 600000$/ ],
	'lost grants, again and again' => [ with_values(0 => undef, 1 => undef, 2 => undef),
		qr/^the registry detected that it may have lost grants, and is called again$/ ],
	'a number that is too large' => [ with_values(1 => '9223372036854775808'), qr/: 1, 9223372036854775808, 600000$/ ],
	'garbage after a number' => [ with_values(2 => '600000x'), qr/, 600000x$/ ],
	'a blank before a number' => [ with_values(0 => ' 1'), qr/columns:  1, / ],
	'an empty value' => [ with_values(2 => ''), qr/, $/ ],
	'worker ID 0' => [ with_values(0 => 0), qr/^the registry granted an invalid range: worker ID 0, until \d+$/ ],
	'worker ID 1024' => [ with_values(0 => 1024), qr/^the registry granted an invalid range: worker ID 1024, / ],
	'an end in the past' => [ with_values(1 => 1), qr/^the registry granted an invalid range: worker ID 1, until 1$/ ],
	'a short grant_time' => [ with_values(2 => 5), qr/^grant_time of the registry \(5 ms\) is less than "snowflake.reserve_time" \(1000 ms\)$/ ],
	'a huge grant_time' => [ with_values(2 => '9223372036854775807'), qr/^grant_time of the registry \(9223372036854775807 ms\) is longer than a year$/ ],
	'an error after the row' => [ answer_call(sub { unfinished(3, [ 7, 8, 9 ]) . error_message(S => 'ERROR', V => 'ERROR', C => 'XX000', M => 'no') . ready() }), qr/^no$/ ],
	'a long error' => [ answer_call(sub { message('1', '') . error_message(S => 'ERROR', V => 'ERROR', C => 'XX000', M => 'long' x 1000, D => 'detail' x 1000, H => 'hint' x 1000) . ready() }),
		qr/^(?:long){127}lon; (?:detail){85}d\.\.\.$|^(?:long){127}lon; (?:detail)+[a-z]*\.\.\.$/ ],
	'an error without a text' => [ answer_call(sub { error_message() . ready() }), qr/^no error message available$/ ],
	'a COPY' => [ answer_call(sub { message('G', "\0\0\0") }), qr/^unexpected answer$/ ],
	'the end' => [ sub { undef }, qr/server closed the connection unexpectedly/ ],
	'something else' => [ sub { "HTTP/1.1 400 Bad Request\r\n\r\n" }, qr/expected authentication request from server, but received H$/ ]);

my %answers = (
	(map { $_ => $cases{$_}[0] } keys %cases),
	'nothing' => sub { $_[0]{ask}->(); undef },
	'notices without end' => notices_without_end());

$answers{'a namesake'} = answer_call(
	sub {
		my (@call) = @{ $_[0]->{parameters} };

		return unfinished(3, [ map { good_value($_, @call) } 0 .. 2 ])
		  . notice(S => 'WARNING', V => 'WARNING', R => 'x', C => '42710', M => 'm', D => "It has\na name\001\xff" . 'e' x 1000)
		  . ready();
	});

# An error with a number that changes.
$answers{'numbers'} = answer_call(sub { error_message(S => 'ERROR', V => 'ERROR', C => 'XX000', M => "error $_[0]{number} of $$") . ready() });

# The same as "no grant", but not before a file is there.
my $released = "$PostgreSQL::Test::Utils::tmp_check/released$$";
$answers{'no grant, held'} = answer_call(sub { usleep(10_000) until -e $released; rows(3) });

my $fake = FakeRegistry->new(%answers);
my $registry = new_registry('registry', "1, 100, grant_time => '1 hour', reach => '3 hours', new => true");
my @options = ('password=p', 'connect_timeout=5');
my $server = new_server_with_clock('server', registry_conf($fake, @options), "snowflake.grant_timeout = '0'");

sub ask_hosts { return $server->append_conf('postgresql.conf', registry_conf(@_, @options)); }

# The end of the log, from here on.
my $log_end = 0;

sub new_log
{
	my $log = slurp_file($server->logfile, $log_end);

	$log_end = -s $server->logfile;
	return $log;
}

sub query { return sql($server, $_[0]); }

# Its process that calls
my $worker = server_process($server, 'snowflake grant');

sub start
{
	start_with_clock($server);
	$worker = server_process($server, 'snowflake grant');
	return;
}

sub call { return call_registry($server, $worker, $fake); }

# Call it until an error like this is the last one.
sub call_until ($error)
{
	my $last;

	wait_until(
		"an error like $error",
		sub {
			call();
			return ($last = query('SELECT registry_error FROM snowflake_stat')) =~ $error;
		},
		sub { $last });
	return $last;
}

# What no answer may cause
my $crash = qr/terminated by signal|all server processes terminated|ERROR: \w+Sanitizer|runtime error:/;

# Each kind by itself.
foreach my $name (sort keys %cases)
{
	$fake->set($name);
	like(call_until($cases{$name}[1]), $cases{$name}[1], "answer: $name");
}
my $log = new_log();
unlike($log, $crash, 'no process has crashed');
cmp_ok(max(map { length } split /\n/, $log), '<', 1100, 'no line of the log is long');

# The grant of a host that answers, behind those that do not.
my $has_grant = 'SELECT granted_until IS NOT NULL FROM snowflake_stat';
foreach my $name ('no row', 'no grant', 'an end in the past', 'a short grant_time', 'a COPY')
{
	$server->stop;
	$fake->set($name);
	ask_hosts($fake, $registry);
	my $before = $fake->connections;
	start();
	becomes_true($server, $has_grant, "a good host is asked after one with this answer: $name");
	is($fake->connections, $before + 1, "the one with this answer was asked before: $name");
}
is(query('SELECT count(snowflake_nextval()) FROM generate_series(1, 10)'), 10, 'IDs are generated with its grant');
my ($worker_id, $until) = split /\|/, query('SELECT worker_id, granted_until FROM snowflake_stat');

# What a server that holds a grant is told by another host, where the one was that granted,
# and so asked first.  The new grant ends later, because time passes before the call.
$fake->set('no grant');
new_log();
ask_hosts($registry, $fake);
pass_time($server, 2);
$server->reload;
becomes_true($server, "SELECT granted_until > '$until' FROM snowflake_stat",
	'a host that does not know the server hides none that does');
is(query('SELECT worker_id FROM snowflake_stat'), $worker_id, 'the server keeps its worker ID');

# The same during a reload, which ends the round before the host is asked that does.
$until = query('SELECT granted_until FROM snowflake_stat');
$fake->set('no grant, held');
ask_hosts($fake, $registry);
pass_time($server, 2);
$server->reload;
$fake->busy('no grant, held', 'call');
kill 'HUP', $worker;
append_to_file($released, '');
becomes_true($server, "SELECT granted_until > '$until' FROM snowflake_stat",
	'during a reload, it hides none either');
is(query('SELECT worker_id FROM snowflake_stat'), $worker_id, 'the server keeps its worker ID during a reload');
unlike(new_log(), qr/does not extend/, 'the server did not give its grant up');

# What changes in an error does not fill the log.
sub messages { return scalar(() = new_log() =~ /could not (?:get|extend)/g); }

$server->stop;
$fake->set('numbers');
ask_hosts($fake);
new_log();
start();
call_until(qr/^error \d+ of/) foreach 1 .. 4;
is(messages(), 1, 'an error with a number that changes is logged once');
pass_time($server, 600);
call_until(qr/^error \d+ of/) foreach 1 .. 3;
is(messages(), 0, 'nor is it later');

# A fast shutdown while the client is busy.
$server->stop;
foreach my $case ([ 'nothing', 'start' ], [ 'notices without end', 'call' ])
{
	my ($name, $stage) = @$case;

	$fake->set($name);
	start_with_clock($server);
	$fake->busy($name, $stage);
	my $start = time;
	$server->stop('fast');
	cmp_ok(time - $start, '<', 10, "a fast shutdown does not wait for the client with this answer: $name");
}

# What it says of another server of this name is cut, is one line, and is logged once.
$fake->set('a namesake');
new_log();
start();
$server->wait_for_log(qr/WARNING:  another server calls itself "server"\n.*DETAIL:  It has; a name\?\?e{490,}\n/, $log_end);
call() foreach 1 .. 3;
is(scalar(() = new_log() =~ /another server calls itself/g), 1, 'a warning of another server of the same name is logged once');
$server->stop;
unlike(slurp_file($server->logfile), $crash, 'no process has crashed until the end');

done_testing();
