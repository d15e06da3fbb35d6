# What stands at the registry's address answers calls for ranges by anything: no number is
# given out that a registry could not have granted, the server says what is wrong, and it
# stops in time.  With more time, script/tests/answers runs this.

use FakeRegistry;
use SnowflakeTest;

my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1_000_000_000));
my $wanted = $ENV{SNOWFLAKE_ANSWERS} // 60;
my $maximum = 1_000_000_000;
my $last = 0;

# Columns of an answer with ranges
my $columns = 11;

# Each connection has a process: what they answered at random, a line for each.
my $answered = PostgreSQL::Test::Utils::tempdir() . '/answered';

# Connects and sets up as a registry does, and then answers a call for ranges by this; a call
# for anything else by nothing.
sub answer_ranges ($answer)
{
	return answer_call(sub ($state) {
		return $answer->($state) if $state->{statement} =~ /get_ranges/;
		return rows(1, [1]) if $state->{statement} =~ /floor_changes/;
		return rows(1, [1]) if $state->{statement} =~ /report_ranges/;
		return $state->{statement} =~ /get_floors/ ? rows(3) : $state->{statement} =~ /get_range_names/ ? rows(5) : undef;
	});
}

# The greatest number that was granted: this one from now on, unless it is less
sub granted ($number)
{
	my $file = "$answered.granted";
	my $before = -e $file ? slurp_file($file) : 0;

	return $before if $number <= $before;
	open my $out, '>', $file or die $!;
	print $out $number;
	close $out;
	return $number;
}

# What a call asks, of the first of its sequences, or another one.
sub asks ($state, $i = undef)
{
	my @values = map { /^\{(.*)\}$/ ? scalar((split /,/, $1)[ $i // 0 ]) : $_ } @{ $state->{parameters} };

	return { count => $values[9], floor => $values[11] eq 'NULL' ? undef : $values[11] };
}

# How many sequences it asks for
sub sequences_asked { return scalar(split /,/, $_[0]{parameters}[9]); }

# The row of a registry that has ranges, above all that it granted before
sub good_row ($state, $i = undef)
{
	my $asks = asks($state, $i);
	my $first = granted(0) + 1;

	$first = $asks->{floor} + 1 if ($asks->{floor} // 0) >= $first;
	granted($first + $asks->{count} - 1) if $asks->{count} > 0;
	return (1 + ($i // 0), $asks->{count} > 0 ? ($first, $first + $asks->{count} - 1) : (undef, undef), $asks->{floor}, undef, 600_000, undef, undef, undef, 1, 0);
}

# A row with other values in some columns; those that are code get the good row.
sub with_values (%wrong)
{
	return answer_ranges(
		sub {
			my @row = good_row($_[0]);

			# Otherwise, there is no range that could be wrong.
			return rows($columns, \@row) if !defined $row[1];
			my @changed = @row;
			$changed[$_] = ref $wrong{$_} ? $wrong{$_}->(@row) : $wrong{$_} foreach keys %wrong;
			return rows($columns, \@changed);
		});
}

my $invalid = qr/DETAIL:  The registry granted an invalid range: from /;
my $form = qr/: unexpected answer in row 1\n/;

# Answers that have a name: what they are, and what nextval() says then.
my %cases = (
	'a column too few' => [ answer_ranges(sub { rows(10, [ 1 .. 10 ]) }), qr/: unexpected answer of one row with 10 columns: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10\n/ ],
	'a column too many' => [ answer_ranges(sub { rows(12, [ 1 .. 12 ]) }), qr/: unexpected answer of one row with 12 columns: / ],
	'two rows' => [ answer_ranges(sub { my @row = good_row($_[0]); rows($columns, \@row, \@row) }), qr/: unexpected answer of several rows with 11 columns\n/ ],
	'rows without end' =>
	  [ answer_ranges(sub { my ($s) = @_; $s->{sent}->(message('1', '') . message('2', '') . row_description($columns)); forever(row(1 .. 11) x 1000)->($s) }), qr/: unexpected answer/ ],
	'no position' => [ with_values(0 => undef), $form ],
	'another position' => [ with_values(0 => 2), $form ],
	'a number that is none' => [ with_values(1 => '1e3'), $form ],
	'a number with a blank' => [ with_values(2 => ' 100'), $form ],
	'a number that is too large' => [ with_values(2 => '9223372036854775808'), $form ],
	'no first number' => [ with_values(1 => undef), $form ],
	'no last number' => [ with_values(2 => undef), $form ],
	'number 0' => [ with_values(1 => 0), $form ],
	'a negative number' => [ with_values(1 => -5), $form ],
	'a negative floor' => [ with_values(3 => -1), $form ],
	'a next number of 0' => [ with_values(4 => 0), $form ],
	'a negative grant_time' => [ with_values(5 => -1), $form ],
	'a huge grant_time' => [ with_values(5 => '9223372036854775807'), $form ],
	'no grant_time' => [ with_values(5 => undef), $invalid ],
	'a range that ends before it begins' => [ with_values(2 => sub { $_[1] - 1 }), $invalid ],
	'a range beyond MAXVALUE' => [ with_values(2 => $maximum + 1), $invalid ],
	'a range below the floor' => [ with_values(1 => 1), $invalid ],
	'a range at the floor' => [ with_values(3 => sub { $_[1] }), $invalid ],
	'a range with a problem' => [ with_values(7 => 'stopped', 8 => 'Something is wrong.'), $invalid ],
	'a problem that is none' => [ with_values(7 => 'nothing', 8 => 'Something is wrong.'), $form ],
	'a problem without a reason' => [ with_values(7 => 'stopped'), $form ],
	'a reason without a problem' => [ with_values(8 => 'Something is wrong.'), $form ],
	'no receipt' => [ with_values(9 => undef), $form ],
	'a negative receipt' => [ with_values(9 => -1), $form ],
	'no word about reports' => [ with_values(10 => undef), $form ],
	'another word about reports' => [ with_values(10 => 2), $form ],
	'a floor below that of this server' => [ with_values(1 => undef, 2 => undef, 3 => 5), qr/DETAIL:  The registry answered with an invalid floor: 5\./ ],
	'a floor above MAXVALUE' => [ with_values(1 => undef, 2 => undef, 3 => $maximum + 1), qr/DETAIL:  The registry answered with an invalid floor: 1000000001\./ ],
	'no range and no reason' => [ with_values(1 => undef, 2 => undef), qr/DETAIL:  The registry granted no numbers, and gave no reason\./ ],
	'a problem in several lines' => [ with_values(1 => undef, 2 => undef, 7 => 'stopped', 8 => "One\nTwo\t\303\251\001"), qr/DETAIL:  One; Two \?\?\?/ ],
	'a long problem' => [ with_values(1 => undef, 2 => undef, 7 => 'stopped', 8 => 'long' x 1000), qr/DETAIL:  (?:long){120,128}l?o?n?\n/ ],
	'a warning that the commit is not durable' => [
		answer_ranges(sub { unfinished($columns, [ good_row($_[0]) ]) . notice(S => 'WARNING', V => 'WARNING', C => '01000', M => 'not durable') . ready() }),
		qr/: the registry did not commit durably: not durable\n/
	],
	'an error after the row' =>
	  [ answer_ranges(sub { unfinished($columns, [ good_row($_[0]) ]) . error_message(S => 'ERROR', V => 'ERROR', C => 'XX000', M => 'no') . ready() }), qr/: no\n/ ],
	'an error of a value' =>
	  [ answer_ranges(sub { message('1', '') . error_message(S => 'ERROR', V => 'ERROR', C => '22021', M => 'invalid byte') . ready() }), qr/DETAIL:  invalid byte\n/ ],
	'a COPY' => [ answer_ranges(sub { message('G', "\0\0\0") }), qr/: unexpected answer\n/ ],
	'the end' => [ answer_ranges(sub { undef }), qr/: server closed the connection unexpectedly/ ]);

my %answers = map { $_ => $cases{$_}[0] } keys %cases;
$answers{'good'} = answer_ranges(sub { my ($state) = @_; rows($columns, map { [ good_row($state, $_) ] } 0 .. sequences_asked($state) - 1) });
$answers{'floors only'} = answer_ranges(sub { my @row = good_row($_[0]); rows($columns, [ 1, undef, undef, @row[ 3 .. 6 ], defined $row[1] ? ('stopped', 'None.') : (undef, undef), 1, 0 ]) });
$answers{'granted before'} = with_values(1 => 101);
$answers{'no row'} = answer_ranges(sub { rows($columns) });
my $refusals_file = PostgreSQL::Test::Utils::tempdir() . '/refusals';
$answers{'floor refused'} = answer_ranges(
	sub {
		my $asks = asks($_[0]);
		my $before = granted(5000);

		return rows($columns, [ 1, $asks->{count} > 0 ? ($before + 1, granted($before + 100)) : (undef, undef), 5000, undef, 600_000, undef, undef, undef, 1, 0 ])
		  if ($asks->{floor} // 0) < 5000;
		append_to_file($refusals_file, 'x');
		return rows($columns, [ 1, undef, undef, undef, undef, 600_000, undef, 'floor', 'It is refused.', 1, 0 ]);
	});
$answers{'nothing'} = answer_ranges(sub { $_[0]{ask}->(); undef });
$answers{'notices'} = answer_ranges(forever(notice(S => 'WARNING', V => 'WARNING', C => '01000', M => 'a' x 10_000) x 100));

# Answers at random: good rows, with some values that are wrong
my $random = 0;
my $noise = sub { return join '', map { chr int rand 256 } 1 .. one(1, 10, 600); };

sub random_ranges ($state)
{
	my @wrong = (
		undef, '', '-', '+', '0', '1', '-1', '2', '99', '1000000001', '4294967297', '9223372036854775807',
		'9223372036854775808', '0x1', 'x', "1\0", ' 1', '1 ', 'NaN', 'stopped', 'report', 'maximum', 'floor', 'busy', 'unknown', $noise->());
	my @rows = map { [ good_row($state, $_) ] } 0 .. sequences_asked($state) - 1;

	foreach my $row (@rows)
	{
		$row->[$_] = one(@wrong) foreach grep { rand() < 0.08 } 0 .. 10;
	}
	return one(
		(rows($columns, @rows)) x 5,
		rows($columns, @rows, $rows[0]), rows($columns, @rows[ 1 .. $#rows ]), rows(3, map { [ @$_[ 0 .. 2 ] ] } @rows),
		unfinished($columns, @rows) . rows($columns, @rows),
		substr(rows($columns, @rows), 0, int rand 100));
}

# Floors: of the sequence s, none that leave it without numbers.
sub random_floors
{
	my @floors = map {
		one([ 'postgres', 'public.s', one(0, 1, 100, $last) ], [ 'postgres', 'public.u', one(0, 5000, '9223372036854775807') ], [ undef, undef, undef ],
			[ one('postgres', 'x', undef, $noise->()), one('public.s', 'x', '', undef, $noise->()), one('x', '', '-1', '1e3', undef, '9223372036854775808', $noise->()) ],
			[ 'x' x 1000, 'y' x one(100, 1000), one(1, 100) ])
	} 1 .. one(0, 0, 1, 2, 100, 101, 300);

	return one((rows(3, @floors)) x 5, rows(2, [ 1, 2 ]), rows(4, [ 1, 2, 3, 4 ]), unfinished(3, @floors), substr(rows(3, @floors), 0, int rand 100), undef);
}

$answers{'random'} = sub ($state) {
	return good_start() if $state->{stage} eq 'start';
	return good_query() if $state->{stage} eq 'query';
	srand($seed + $random++);
	append_to_file($answered, $state->{statement} =~ /(get_ranges|get_floors)/ ? "$1\n" : "others\n");
	return
	    $state->{statement} =~ /get_ranges/ ? random_ranges($state)
	  : $state->{statement} =~ /get_floors/ ? random_floors()
	  :                                       rows(1, [ one(0, 1, undef, 'x', $noise->()) ]);
};

my $fake = FakeRegistry->new(%answers);
$fake->set('floors only');
my $server = new_server('server',
	"snowflake.registry = 'host=$fake->{host} port=$fake->{port} dbname=postgres user=" . getpwuid($>) . " password=p connect_timeout=5'",
	"snowflake.grant_timeout = '1 min'");
sql($server, "CREATE SEQUENCE s MAXVALUE $maximum START 100; SELECT snowflake_set_sequence_kind('s', 'range')");
reload_with($server, "snowflake.grant_timeout = '200ms'");
my $crash = qr/terminated by signal|all server processes terminated|runtime error:|ERROR: \w+Sanitizer/;

# Have it answer so.  The server makes another connection after a reload.
sub answer_by
{
	$fake->set($_[0]);
	$server->reload;
	return;
}

# Each kind by itself.
foreach my $name (sort keys %cases)
{
	my $error;

	answer_by($name);
	wait_until(
		"an error because of $name",
		sub { $error = sql_error($server, "SELECT nextval('s')"); return $error =~ $cases{$name}[1]; },
		sub { $error });
	like($error, $cases{$name}[1], "answer: $name");
}
unlike(slurp_file($server->logfile), $crash, 'no process has crashed');

# A registry that knows this client as another one
my $offset = -s $server->logfile;
$fake->set('no row');
$server->restart;
$server->psql('postgres', "SELECT nextval('s')");
ok($server->wait_for_log(qr/LOG:  the registry does not know this server as the holder of its sequence ranges/, $offset),
	'answer: no row');
answer_by('good');
wait_until(
	'numbers',
	sub { my ($status, $number) = $server->psql('postgres', "SELECT nextval('s')"); $last = $number if $status == 0; return $status == 0; });
cmp_ok($last, '>', 0, 'numbers come from a registry that grants them');

# Numbers that it granted before
answer_by('granted before');
my $granted_error;
wait_until(
	'an error because of numbers that were granted before',
	sub { $granted_error = sql_error($server, "SELECT max(nextval('s')) FROM generate_series(1, 10000)"); return $granted_error =~ /granted numbers/; },
	sub { $granted_error });
like($granted_error, qr/DETAIL:  The registry granted numbers that this server had before\./, 'answer: numbers that it granted before');
answer_by('good');

# A floor that the registry told, and then refuses
answer_by('floor refused');
wait_until('a refusal of a floor', sub { $server->psql('postgres', "SELECT nextval('s') FROM generate_series(1, 10000)"); -s $refusals_file });
my $refused = -s $refusals_file;
sleep 3;
cmp_ok(-s $refusals_file, '<=', $refused + 5, 'a floor that is refused is sent again after a pause');
answer_by('good');
wait_until('numbers again', sub { my ($status, $number) = $server->psql('postgres', "SELECT nextval('s')"); $last = $number if $status == 0; return $status == 0; });

# At random: any number is one that can have been granted.
diag("SNOWFLAKE_SEED=$seed");
my $bad = 0;
my $numbers = 0;
sql($server, 'CREATE SEQUENCE u MAXVALUE 1000000');
answer_by('good');
wait_until('another sequence', sub { return $server->psql('postgres', "SELECT snowflake_set_sequence_kind('u', 'range')") == 0; });
answer_by('random');
for (my $round = 0; $round < $wanted || ($numbers == 0 && $round < 20 * $wanted); $round++)
{
	$server->psql('postgres', "SELECT nextval('u')");

	# Those before the first error are there.
	my (undef, $out) = $server->psql('postgres', "SELECT nextval('s');\n" x 100);

	foreach my $number (split /\n/, $out)
	{
		$bad++ if $number !~ /^\d+$/ || $number <= $last || $number > $maximum;
		$last = $number;
		$numbers++;
	}
	$server->reload;
}
ok($bad == 0 && $numbers > 0, "after random answers, each number is above the ones before, and at most MAXVALUE ($numbers numbers)");
my %answers_of;
$answers_of{$_}++ foreach split /\n/, slurp_file($answered);
cmp_ok(scalar(keys %answers_of), '>', 1, 'some of these answers are to other calls than for ranges');
unlike(slurp_file($server->logfile), $crash, 'no process has crashed');
diag(join ', ', map { "$answers_of{$_} $_" } sort keys %answers_of);

# A fast shutdown meanwhile.
foreach my $name ('nothing', 'notices', 'rows without end', 'random')
{
	answer_by($name);
	my ($waiting) = start_queries($server, "SELECT nextval('s') FROM generate_series(1, 100000)");
	my $before = $fake->connections;

	wait_until("a connection that gets this answer: $name", sub { return $fake->connections > $before; });
	my $start = time;
	$server->stop('fast');
	cmp_ok(time - $start, '<', 10, "a fast shutdown does not wait for a registry with this answer: $name");
	finish_queries($waiting);
	$server->start;
}
unlike(slurp_file($server->logfile), $crash, 'no process has crashed until the end');

done_testing();
