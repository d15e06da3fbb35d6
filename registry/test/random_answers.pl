# A server whose registry answers at random: it keeps running, keeps its grant, does not
# fill the log, and stops in time.  With more time, script/tests/answers runs this.

use FakeRegistry;
use List::Util qw(max);
use SnowflakeTest;

my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1_000_000_000));
my $wanted = $ENV{SNOWFLAKE_ANSWERS} // 1000;
my $limit_s = $ENV{SNOWFLAKE_SECONDS} // 40;

# One of these, by chance.

# Random texts are parts of this one.
srand($seed);
my $noise = join '', map { chr(one(0, 10, 37, 65, 200, int rand 256)) } 1 .. 20_000;

sub random_text
{
	my $length = one(0, 1, 5, 20, 300, 5000);

	return substr $noise, int rand(length($noise) - $length), $length;
}

# The same for what ends at a zero byte
sub random_string { return random_text() =~ tr/\0//dr; }

# A value that is no number that a registry returns.
sub wrong_value ($column, @call)
{
	my $good = good_value($column, @call);

	return one(
		undef, '', '-', '+', " $good", "$good ", "+$good", "$good.0", "${good}e0", "0x1", "${good}x",
		'9223372036854775808', '-9223372036854775809', '99999999999999999999999', '-1', '0', random_text(),
		$column == 0 ? 1024 : $column == 1 ? $call[3] : 999);
}

# The answer to a call that is wrong in one thing or more.
sub wrong_answer (@call)
{
	my @good = map { good_value($_, @call) } 0 .. 2;
	my $wrong = int rand 3;
	my @values = map { $_ == $wrong || rand() < 0.2 ? wrong_value($_, @call) : $good[$_] } 0 .. 2;

	# With nothing else in it, a row of NULL is an answer, too.
	return one(
		rows(3, \@values), rows(3, \@values), rows(3, \@values),
		rows(3), rows(2, [ @good[ 0, 1 ] ]), rows(4, [ @good, 1 ]), rows(3, \@good, \@good),
		unfinished(3, \@good) . error_message(S => one('ERROR', 'FATAL'), C => 'XX000', M => random_string()) . ready(),
		unfinished(3, \@good) . notice(S => 'WARNING', V => 'WARNING', M => 'not durable') . ready(),
		unfinished(3, \@good) . rows(3, \@good));
}

# Messages, each of which may be complete.
my @messages = (
	sub { row_description(one(0, 1, 2, 3, 4, 100)) },
	sub { row((one(random_text(), undef, '1')) x one(0, 1, 2, 3, 4, 100)) },
	sub { complete(one(0, 1)) },
	sub { ready() },
	sub { message('T', pack('n', one(65535, 5, 3)) . random_text()) },
	sub { message('D', pack('n', one(65535, 3)) . pack('N', one(0x7fffffff, 0xfffffffe, 1)) . random_text()) },
	sub { error_message(map { $_ => random_string() } one([ 'S', 'M' ], [ 'S', 'V', 'C', 'M', 'D', 'H' ], ['M'])->@*) },
	sub { notice(S => 'WARNING', V => 'WARNING', M => random_string()) x one(1, 1, 50) },
	sub { notice(S => 'WARNING', V => 'WARNING', R => 'x', C => '42710', M => 'm', D => random_string()) },
	sub { message('S', one('server_version', 'in_hot_standby', 'default_transaction_read_only', 'client_encoding', 'x') . "\0" . one('on', 'off', '99', random_text()) . "\0") },
	sub { message('A', pack('N', 1) . "channel\0payload\0") },
	sub { message(one('G', 'H', 'W'), "\0\0\0") },
	sub { message('R', pack('N', one(0 .. 13, 99)) . random_text()) },
	sub { message(random_type(), random_text()) },
	sub { random_type() . pack('N', one(0, 3, 4, 30_001, 0xffffffff)) . random_text() },
	sub { random_text() },
	sub { '' });

sub random_type { return one(split //, 'RSKZTDCEINAGHWdcnst123vVfF'); }
sub random_message { return one(@messages)->(); }

sub random_answer ($state)
{
	srand($seed + $state->{number}) if $state->{stage} eq 'start';

	# Hold the client's time up, but seldom.
	return one(sub { $state->{ask}->(); undef }, forever(random_message()))->($state) if rand() < 0.001;
	return undef if rand() < 0.02;
	if ($state->{stage} eq 'start')
	{
		return good_start() if rand() < 0.8;
	}
	elsif ($state->{stage} eq 'query')
	{
		return good_query() if rand() < 0.8;
		return row_description(3) . row(one(undef, 'schema', random_text()), one(undef, random_text()), '1') . complete(1) . ready() if rand() < 0.3;
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

my $fake = FakeRegistry->new(random => \&random_answer);
my $registry = new_registry('registry', "1, 100, grant_time => '1 day', reach => '3 days', new => true");
my @options = ('password=p', 'connect_timeout=5');
my $server = new_server_with_clock('server', registry_conf($registry, @options), "snowflake.grant_timeout = '0'");

# Wait until so many more connections were made, or for so long.
sub wait_for_connections ($more, $seconds)
{
	my $last = $fake->connections + $more;
	my $end = time + $seconds;

	usleep(20_000) while $fake->connections < $last && time < $end;
	return;
}

# What no answer may cause
my $crash = qr/terminated by signal|all server processes terminated|ERROR: \w+Sanitizer|runtime error:/;

# While the server has a grant, it generates IDs.
wait_until_true($server, 'SELECT granted_until IS NOT NULL FROM snowflake_stat');
my $grant_of = 'SELECT worker_id, granted_until FROM snowflake_stat';
my $grant = sql($server, $grant_of);
diag("SNOWFLAKE_SEED=$seed");
$fake->set('random');
$server->append_conf('postgresql.conf', registry_conf(($fake) x 100, @options));
my $begin = $fake->connections;
my $end = time + $limit_s;
my $pass_s = 6;
my $ids = 0;
my $failed = 0;
while ($fake->connections - $begin < $wanted && time < $end)
{
	my ($out, $err);

	# A round ends with a reload, and another one begins; and so does the wait for an answer
	# that does not come.
	pass_time($server, $pass_s);
	$server->reload;
	foreach (1 .. 2)
	{
		$failed++ if $server->psql('postgres', 'SELECT count(snowflake_nextval()) FROM generate_series(1, 100)', stdout => \$out, stderr => \$err) != 0;
		diag($err) if $err;
		$ids += $out if $out;
	}
	wait_for_connections(100, 2);
}
my $answers = $fake->connections - $begin;
cmp_ok($answers, '>', 100, 'hosts answered at random');
is(sql($server, $grant_of), $grant, 'the server keeps its grant');
ok($failed == 0 && $ids > 100, 'IDs are generated meanwhile');
my $log = slurp_file($server->logfile);
cmp_ok(max(map { length } $log =~ /(DETAIL:.*)/g), '<', 1100, 'no line of the log is long');
unlike($log, $crash, 'no process has crashed');
note("$answers random answers");

# Stopped at any moment of that.
foreach my $n (1 .. max(3, $limit_s / 60))
{
	wait_for_connections(1 + int rand 40, 10);
	my $start = time;
	$server->stop('fast');
	cmp_ok(time - $start, '<', 10, "a fast shutdown amid random answers ($n)");
	start_with_clock($server);
}
unlike(slurp_file($server->logfile), $crash, 'no process has crashed until the end');

done_testing();
