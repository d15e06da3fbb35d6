# What stands at the registry's address answers anything: the server keeps running,
# keeps its grant, says what is wrong and does not fill the log, and stops in time.
#
# The last part answers at random.  With more time, script/tests/answers runs it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use FakeRegistry
  qw(message row_description row complete ready error_message notice good_start good_query);
use List::Util qw(max);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1_000_000_000));
my $wanted = $ENV{SNOWFLAKE_ANSWERS} // 1000;
my $limit_s = $ENV{SNOWFLAKE_SECONDS} // 40;
my $user = getpwuid($>);

# The result of one call: rows of this many columns.
sub rows
{
	my ($columns, @rows) = @_;

	return
	    message('1', '')
	  . message('2', '')
	  . row_description($columns)
	  . join('', map { row(@$_) } @rows)
	  . complete(scalar @rows)
	  . ready();
}

# The same, but for the message that ends it.
sub unfinished { return substr rows(@_), 0, -length ready(); }

# Connects and sets up as a registry does, and then answers a call by this.
sub answer_call
{
	my ($answer) = @_;

	return sub {
		my ($state) = @_;

		return good_start() if $state->{stage} eq 'start';
		return good_query() if $state->{stage} eq 'query';
		return $answer->($state);
	};
}

# Answers a call by a row, but with these values instead of the good ones.
sub with_values
{
	my (%wrong) = @_;

	return answer_call(
		sub {
			my (@call) = @{ $_[0]->{parameters} };

			return rows(3, [ map { exists $wrong{$_} ? $wrong{$_} : good_value($_, @call) } 0 .. 2 ]);
		});
}

# What a registry would answer: for 10 minutes.
sub good_value
{
	my ($column, @call) = @_;

	return (max(1, $call[2]), $call[3] + (600_000 << 22), 600_000)[$column];
}

# Sends something without an end.
sub forever
{
	my ($data) = @_;

	return sub {
		my ($state) = @_;

		while ($state->{sent}->($data)) { }
		return undef;
	};
}

# Answers that have a name: what they are, and what the server says then.
my %cases = (
	'no row' => [ sub { $_[0]{stage} eq 'start' ? good_start() : row_description(1) . complete(0) . ready() },
		qr/^unexpected answer of no row with 1 column$/ ],
	'no column' => [ sub { $_[0]{stage} eq 'start' ? good_start() : row_description(0) . row() . complete(1) . ready() },
		qr/^unexpected answer of one row with 0 columns$/ ],
	'a problem that there is not' => [ sub { $_[0]{stage} eq 'start' ? good_start() : row_description(4) . row(1, 'x', 'a', 1) . complete(1) . ready() },
		qr/^unexpected answer of one row with 4 columns: 1, x, a, 1$/ ],
	'no rows at all' => [ sub { $_[0]{stage} eq 'start' ? good_start() : message('C', "SET\0") . ready() },
		qr/^unexpected answer$/ ],
	'a start that is no number' => [ sub { $_[0]{stage} eq 'start' ? good_start() : row_description(4) . row('', undef, 'a', 1) . complete(1) . ready() },
		qr/^unexpected answer of one row with 4 columns: , NULL, a, 1$/ ],
	'no grant' => [ answer_call(sub { rows(3) }), qr/^unexpected answer of no row with 3 columns$/ ],
	'a row of no columns' => [ answer_call(sub { rows(0, []) }), qr/^unexpected answer of one row with 0 columns$/ ],
	'a column too few' => [ answer_call(sub { rows(2, [ 7, 8 ]) }), qr/^unexpected answer of one row with 2 columns: 7, 8$/ ],
	'a column too many' => [ answer_call(sub { rows(4, [ 7, 8, 9, 10 ]) }), qr/^unexpected answer of one row with 4 columns: 7, 8, 9, 10$/ ],
	'two rows' => [ answer_call(sub { rows(3, [ 7, 8, 9 ], [ 7, 8, 9 ]) }), qr/^unexpected answer$|several rows with 3 columns$/ ],
	'rows without end' => [ answer_call(sub { my ($s) = @_; $s->{sent}->(message('1', '') . message('2', '') . row_description(3)); forever(row(1, 2, 3) x 1000)->($s) }),
		qr/^unexpected answer$|several rows with 3 columns$/ ],
	'NULL in a grant' => [ with_values(1 => undef), qr/^unexpected answer of one row with 3 columns: 1, NULL, 600000$/ ],
	'lost grants, again and again' => [ with_values(0 => undef, 1 => undef, 2 => undef),
		qr/^the registry detected that it may have lost grants, and is called again$/ ],
	'a number that is too large' => [ with_values(1 => '9223372036854775808'), qr/: 1, 9223372036854775808, 600000$/ ],
	'garbage after a number' => [ with_values(2 => '600000x'), qr/, 600000x$/ ],
	'a blank before a number' => [ with_values(0 => ' 1'), qr/columns:  1, / ],
	'a zero byte' => [ with_values(0 => "1\0"), qr/columns: \?, / ],
	'an empty value' => [ with_values(2 => ''), qr/, $/ ],
	'worker ID 0' => [ with_values(0 => 0), qr/^the registry granted an invalid range: worker ID 0, until \d+$/ ],
	'worker ID 1024' => [ with_values(0 => 1024), qr/^the registry granted an invalid range: worker ID 1024, / ],
	'an end in the past' => [ with_values(1 => 1), qr/^the registry granted an invalid range: worker ID 1, until 1$/ ],
	'a short grant_time' => [ with_values(2 => 5), qr/^grant_time of the registry \(5 ms\) is less than "snowflake.reserve_time" \(1000 ms\)$/ ],
	'a huge grant_time' => [ with_values(2 => '9223372036854775807'), qr/^grant_time of the registry \(9223372036854775807 ms\) is longer than a year$/ ],
	'an error after the row' => [ answer_call(sub { unfinished(3, [ 7, 8, 9 ]) . error_message(S => 'ERROR', V => 'ERROR', C => 'XX000', M => 'no') . ready() }), qr/^no$/ ],
	'a long error' => [ answer_call(sub { message('1', '') . error_message(S => 'ERROR', V => 'ERROR', C => 'XX000', M => 'long' x 1000, D => 'detail' x 1000, H => 'hint' x 1000) . ready() }),
		qr/^(?:long){127}lon; (?:detail){85}d\.\.\.$|^(?:long){127}lon; (?:detail)+[a-z]*\.\.\.$/ ],
	'an error without a text' => [ answer_call(sub { error_message() . ready() }), qr/./ ],
	'a COPY' => [ answer_call(sub { message('G', "\0\0\0") }), qr/^unexpected answer$/ ],
	'a message longer than memory' => [ answer_call(sub { my ($s) = @_; $s->{sent}->(row_description(3) . 'D' . pack('N', 2_000_000_000)); forever("\0" x 1_000_000)->($s) }),
		qr/memory|row description|^unexpected answer$/ ],
	'an old message longer than memory' => [ sub { my ($s) = @_; $s->{sent}->('E' . pack('N', 2_000_000_000)); forever("x" x 1_000_000)->($s) }, qr/./ ],
	'the end' => [ sub { undef }, qr/server closed the connection unexpectedly/ ],
	'something else' => [ sub { "HTTP/1.1 400 Bad Request\r\n\r\n" }, qr/./ ]);

my %answers = map { $_ => $cases{$_}[0] } keys %cases;

# As many notices as the client takes.
$answers{'notices without end'} =
  answer_call(forever(notice(S => 'WARNING', V => 'WARNING', C => '01000', M => 'a' x 10_000) x 100));

# A password's hash that takes an hour.
$answers{'iterations'} = sub {
	my ($state) = @_;

	$state->{sent}->(message('R', pack('N', 10) . "SCRAM-SHA-256\0\0")) or return undef;
	my ($type, $text) = $state->{ask}->();
	my ($nonce) = ($text // '') =~ /r=(.*)$/s or return undef;
	$state->{sent}->(message('R', pack('N', 11) . "r=${nonce}x,s=c2FsdHNhbHQ=,i=2147483647"));
	$state->{ask}->();
	return undef;
};

# Errors with a number or with words that change.
$answers{'numbers'} = answer_call(sub { error_message(S => 'ERROR', V => 'ERROR', C => 'XX000', M => "error $_[0]{number} of $$") . ready() });
$answers{'words'} =
  answer_call(sub { error_message(S => 'ERROR', V => 'ERROR', C => 'XX000', M => join ' ', map { chr(97 + rand 26) x 5 } 1 .. 5) . ready() });

# Answers at random.

# One of these, by chance.
sub one { return $_[ int rand @_ ]; }

sub random_text
{
	my $length = one(0, 1, 5, 20, 300, 5000);

	return join '', map { chr(one(0, 10, 37, 65, 200, int rand 256)) } 1 .. $length;
}

# A value that is no number that a registry returns.
sub wrong_value
{
	my ($column, @call) = @_;
	my $good = good_value($column, @call);

	return one(
		undef, '', '-', '+', " $good", "$good ", "+$good", "$good.0", "${good}e0", "0x1", "${good}x", "$good\0",
		'9223372036854775808', '-9223372036854775809', '99999999999999999999999', '-1', '0', random_text(),
		$column == 0 ? 1024 : $column == 1 ? $call[3] : 999);
}

# The answer to a call that is wrong in one thing or more.
sub wrong_answer
{
	my (@call) = @_;
	my @good = map { good_value($_, @call) } 0 .. 2;
	my $wrong = int rand 3;
	my @values = map { $_ == $wrong || rand() < 0.2 ? wrong_value($_, @call) : $good[$_] } 0 .. 2;

	# With nothing else in it, a row of NULL is an answer, too.
	return one(
		rows(3, \@values), rows(3, \@values), rows(3, \@values),
		rows(3), rows(2, [ @good[ 0, 1 ] ]), rows(4, [ @good, 1 ]), rows(3, \@good, \@good),
		unfinished(3, \@good) . error_message(S => one('ERROR', 'FATAL'), C => 'XX000', M => random_text() =~ tr/\0//dr) . ready(),
		unfinished(3, \@good) . notice(S => 'WARNING', V => 'WARNING', M => 'not durable') . ready(),
		unfinished(3, \@good) . rows(3, \@good));
}

# Some message, which may be complete.
sub random_message
{
	my $columns = one(0, 1, 2, 3, 4, 100);
	my $type = one(split //, 'RSKZTDCEINAGHWdcnst123vVfF');

	return one(
		row_description($columns), row((one(random_text(), undef, '1')) x $columns), complete(one(0, 1)), ready(),
		message('T', pack('n', one(65535, 5, 3)) . random_text()), message('D', pack('n', one(65535, 3)) . pack('N', one(0x7fffffff, 0xfffffffe, 1)) . random_text()),
		error_message(map { $_ => random_text() =~ tr/\0//dr } one([ 'S', 'M' ], [ 'S', 'V', 'C', 'M', 'D', 'H' ], ['M'])->@*),
		notice(S => 'WARNING', V => 'WARNING', M => random_text() =~ tr/\0//dr) x one(1, 1, 50),
		message('S', one('server_version', 'in_hot_standby', 'default_transaction_read_only', 'client_encoding', 'x') . "\0" . one('on', 'off', '99', random_text()) . "\0"),
		message('A', pack('N', 1) . "channel\0payload\0"), message(one('G', 'H', 'W'), "\0\0\0"), message('R', pack('N', one(0 .. 13, 99)) . random_text()),
		message($type, random_text()), $type . pack('N', one(0, 3, 4, 30_001, 0x7fffffff, 0xffffffff)) . random_text(), random_text(), '');
}

sub random_answer
{
	my ($state) = @_;

	srand($seed + $state->{number}) if $state->{stage} eq 'start';

	# Hold the client's time up, but seldom.
	return one(sub { $state->{ask}->(); undef }, forever(random_message()))->($state) if rand() < 0.001;
	return undef if rand() < 0.02;
	if ($state->{stage} eq 'start')
	{
		return good_start() if rand() < 0.8;
		return $answers{iterations}->($state) if rand() < 0.005;
	}
	elsif ($state->{stage} eq 'query')
	{
		return good_query() if rand() < 0.8;
		return row_description(4) . row(one('1', 'x', undef), one(undef, 'schema', random_text()), one(undef, random_text()), '1') . complete(1) . ready() if rand() < 0.3;
	}
	elsif (rand() < 0.7)
	{
		return wrong_answer(@{ $state->{parameters} // [ 1 .. 7 ] });
	}
	my $answer = join('', map { random_message() } 1 .. one(1, 1, 2, 5, 20)) . one('', '', ready());

	# The client would wait for what is missing.
	return $answer if rand() < 0.01;
	$state->{sent}->($answer);
	return undef;
}
$answers{random} = \&random_answer;

my $fake = FakeRegistry->new(%answers);
my $registry = new_registry('registry', "1, 100, grant_time => '1 hour', reach => '3 hours', new => true");
my $server = new_server('server', "snowflake.registry = '" . connection($fake) . "'", "snowflake.grant_timeout = '0'");

# A connection string for hosts, each a server or what is in its place.
sub connection
{
	my (@nodes) = @_;
	my @hosts = map { ref $_ eq 'FakeRegistry' ? $_->{host} : $_->host } @nodes;
	my @ports = map { ref $_ eq 'FakeRegistry' ? $_->{port} : $_->port } @nodes;

	local $" = ',';
	return "host=@hosts port=@ports dbname=postgres user=$user password=p connect_timeout=5";
}

# The end of the log, from here on.
my $log_end = 0;

sub new_log
{
	my $log = slurp_file($server->logfile, $log_end);

	$log_end = -s $server->logfile;
	return $log;
}

sub use_registry
{
	my (@nodes) = @_;

	$server->append_conf('postgresql.conf', "snowflake.registry = '" . connection(@nodes) . "'");
	$server->reload;
	return;
}

sub query { return $server->safe_psql('postgres', $_[0]); }

# Wait until so many more connections were made; returns whether they were.
sub wait_for_connections
{
	my ($more, $seconds) = @_;
	my $last = $fake->connections + $more;
	my $end = time + ($seconds // 180);

	while ($fake->connections < $last)
	{
		return 0 if time > $end;
		usleep(20_000);
	}
	return 1;
}

my $crash = qr/terminated by signal|all server processes terminated/;
my $restarts = 0;

# Each kind by itself.
foreach my $name (sort keys %cases)
{
	my $error = '';

	$fake->set($name);
	$server->reload;
	foreach (1 .. 900)
	{
		$error = query('SELECT registry_error FROM snowflake_stat');
		last if $error =~ $cases{$name}[1] && $error !~ /^$/;
		usleep(200_000);
	}
	like($error, $cases{$name}[1], "answer: $name");
}
my $log = new_log();
unlike($log, $crash, 'no process has crashed');
cmp_ok(max(map { length } split /\n/, $log), '<', 1100, 'no line of the log is long');

# The grant of a host that answers, behind those that do not.
foreach my $name ('no row', 'no grant', 'an end in the past', 'a short grant_time', 'a message longer than memory')
{
	$fake->set($name);
	use_registry($fake, $registry);
	ok($server->poll_query_until('postgres', 'SELECT granted_until IS NOT NULL FROM snowflake_stat'),
		"a good host is asked after one with this answer: $name");
	$server->restart;
}
$server->poll_query_until('postgres', 'SELECT granted_until IS NOT NULL FROM snowflake_stat') or die 'no grant';
is(query('SELECT count(snowflake_nextval()) FROM generate_series(1, 10)'), 10, 'IDs are generated with its grant');
my $grant = query('SELECT worker_id, granted_until FROM snowflake_stat');

# What a server that holds a grant is told by another host.
$fake->set('no grant');
use_registry($fake, $registry);
ok($server->poll_query_until('postgres', "SELECT granted_until > '" . (split /\|/, $grant)[1] . "' FROM snowflake_stat"),
	'a host that does not know the server hides none that does');
is(query('SELECT worker_id FROM snowflake_stat'), (split /\|/, $grant)[0], 'the server keeps its worker ID');

# What changes in an error does not fill the log.
sub messages { return scalar(() = $_[0] =~ /could not (?:get|extend)/g); }
$server->stop;
$fake->set('numbers');
$server->append_conf('postgresql.conf', "snowflake.registry = '" . connection($fake) . "'");
new_log();
$server->start;
ok(wait_for_connections(4), 'the registry is called again after an error');
is(messages(new_log()), 1, 'an error with a number that changes is logged once');
$fake->set('words');
ok(wait_for_connections(24), 'the registry is called again after an error with other words');
cmp_ok(messages(new_log()), '<=', 20, 'errors that differ are logged up to a limit');
$fake->set('numbers');
ok($server->wait_for_log(qr/error \d+ of/, $log_end), 'an error that lasts is logged when the limit allows it again');
$log_end = -s $server->logfile;

# A fast shutdown while the client is busy.
foreach my $name ('iterations', 'notices without end', 'a message longer than memory')
{
	$fake->set($name);
	ok(wait_for_connections(2), "the client has this answer: $name");
	my $start = time;
	$server->stop('fast');
	cmp_ok(time - $start, '<', 10, "a fast shutdown does not wait for the client with this answer: $name");
	$server->start;
}

# At random, while the server has a grant and generates IDs.
use_registry($registry);
$server->poll_query_until('postgres', 'SELECT granted_until IS NOT NULL FROM snowflake_stat') or die 'no grant';
$grant = query('SELECT worker_id, granted_until FROM snowflake_stat');
diag("SNOWFLAKE_SEED=$seed");
$fake->set('random');
use_registry(($fake) x 100);
my $begin = $fake->connections;
my $end = time + $limit_s;
my $ids = 0;
my $failed = 0;
while ($fake->connections - $begin < $wanted && time < $end)
{
	my ($out, $err);

	# A round ends with a reload, and another one begins.
	$server->reload;
	foreach (1 .. 2)
	{
		$failed++ if $server->psql('postgres', 'SELECT count(snowflake_nextval()) FROM generate_series(1, 100)', stdout => \$out, stderr => \$err) != 0;
		diag($err) if $err;
		$ids += $out if $out;
	}
	wait_for_connections(100, 10);
}
my $answers = $fake->connections - $begin;
cmp_ok($answers, '>', 100, 'hosts answered at random');
is(query('SELECT worker_id, granted_until FROM snowflake_stat'), $grant, 'the server keeps its grant');
ok($failed == 0 && $ids > 100, 'IDs are generated meanwhile');
cmp_ok(messages(new_log()), '<=', 21 + $limit_s / 60, 'random errors do not fill the log');
unlike(slurp_file($server->logfile), $crash, 'no process has crashed');
note("$answers random answers");

# Stopped at any moment of that.
foreach my $n (1 .. max(3, $limit_s / 20))
{
	wait_for_connections(1 + int rand 40, 10);
	my $start = time;
	$server->stop('fast');
	cmp_ok(time - $start, '<', 10, "a fast shutdown amid random answers ($n)");
	$server->start;
}
unlike(slurp_file($server->logfile), $crash, 'no process has crashed until the end');

$_->stop foreach $server, $registry;
done_testing();
