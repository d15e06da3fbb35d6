# The checker of histories (test/worlds/torture/check_history) finds each error that is planted,
# and nothing in histories that are right.

use SnowflakeTest;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $histories = 0;

# What the checker says of files with these contents: the exit status, the kinds that
# were found, and the whole output.
sub check (%files)
{
	my $its = "$dir/" . ++$histories;

	mkdir $its or die $!;
	append_to_file("$its/$_", $files{$_}) foreach keys %files;
	my $output = qx('$^X' '$FindBin::RealBin/check_history' '$its' 2>&1);
	my $status = $? >> 8;
	my ($found) = $output =~ /wrong \((.*)\)$/m;
	my @kinds = grep { !/ 0$/ } split /, /, $found // '';
	return ($status, join(', ', @kinds), $output);
}

sub is_found ($kinds, $label, %files)
{
	my ($status, $found, $output) = check(%files);

	is("$status $found", ($kinds eq '' ? 0 : 1) . " $kinds", $label) or diag($output);
	return;
}

sub is_refused ($why, $label, %files)
{
	my ($status, undef, $output) = check(%files);

	is($status, 2, $label) or diag($output);
	like($output, $why, "$label, and says why");
	return;
}

# A line of a session on server "a", or another one.
sub call ($session, $began, $received, $first, $last = $first, $server = 'a')
{
	return "call $server $session $began $received $first $last .\n";
}

my $a = "server a a 0\n";
my $ab = "${a}server b b 0\n";

#
# What is right
#
my %right = (
	facts => $ab,
	'1.calls' => call(1, 10, 20, 100, 139) . call(1, 30, 40, 200) . call(1, 30, 40, 300),
	'2.calls' => call(2, 15, 35, 150) . call(2, 41, 50, 301, 340),
	'3.calls' => call(3, 10, 90, 5, 9, 'b'));
is_found('', 'the checker accepts IDs that increase', %right);
like((check(%right))[2], qr/^5 calls, 88 IDs, 3 sessions, 0 grants, 0 marks, greatest ID 340: 0 wrong/m,
	'the checker counts what it read');
is_found('', 'calls at the same time may return IDs in any order',
	facts => $a, '1.calls' => call(1, 10, 30, 200), '2.calls' => call(2, 20, 40, 100));
is_found('', 'a call that begins when another one returns may be at the same time',
	facts => $a, '1.calls' => call(1, 10, 20, 200), '2.calls' => call(2, 20, 40, 100));
is_found('', 'other servers generate IDs in another order',
	facts => $ab, '1.calls' => call(1, 10, 20, 200), '2.calls' => call(2, 30, 40, 100, 100, 'b'));
is_found('', 'a line that is cut off at the end is left out',
	facts => $a, '1.calls' => call(1, 10, 20, 200) . 'call a 1 30 40 20');
is_found('', 'IDs of 63 bits are compared exactly',
	facts => "server a a 9223372036854775803\n",
	'1.calls' => call(1, 10, 20, '9223372036854775804') . call(1, 30, 40, '9223372036854775805'));

#
# An ID twice
#
is_found('duplicate 1', 'the checker finds an ID that two servers generated',
	%right, '4.calls' => call(4, 10, 20, 120, 120, 'b'));
is_found('duplicate 1', 'the checker finds runs of two sessions that overlap',
	facts => $a, '1.calls' => call(1, 10, 30, 100, 139), '2.calls' => call(2, 10, 30, 139, 150));
is_found('duplicate 1', 'the checker finds a run inside of one long before it',
	facts => $a,
	'1.calls' => call(1, 10, 90, 100, 900) . call(1, 95, 96, 901),
	'2.calls' => call(2, 10, 90, 99) . call(2, 91, 96, 902),
	'3.calls' => call(3, 10, 90, 800));
is_found('duplicate 2', 'the checker finds two runs inside of another one',
	facts => $a,
	'1.calls' => call(1, 10, 90, 100, 900),
	'2.calls' => call(2, 10, 90, 200, 210),
	'3.calls' => call(3, 10, 90, 800));
is_found('duplicate 1', 'the checker finds two IDs of 63 bits that are the same',
	facts => $a,
	'1.calls' => call(1, 10, 30, '9223372036854775804'),
	'2.calls' => call(2, 10, 30, '9223372036854775804'));

#
# Sequences that are local for a while
#
my $snowflake = $ab . "ids a 100 200\n";
is_found('', 'small numbers are right while sequences are local',
	facts => $snowflake, '1.small' => call(1, 80, 101, 7) . call(1, 199, 201, 7) . "exhausted a 1 99 150 .\n");
is_found('small 1', 'the checker finds a small number of a snowflake sequence',
	facts => $snowflake, '1.small' => call(1, 110, 120, 7) . call(1, 110, 120, 7, 7, 'b'));
is_found('exhausted 1', 'the checker finds that a snowflake sequence was exhausted for a call',
	facts => $snowflake, '1.small' => "exhausted a 1 110 120 .\nexhausted a 1 110 1");

#
# Order
#
is_found('session 1, order 1', 'the checker finds an ID that is below the one before it in its session',
	facts => $a, '1.calls' => call(1, 10, 20, 200) . call(1, 30, 40, 100));
is_found('session 1', 'the checker finds IDs of one call in the wrong order',
	facts => $a, '1.calls' => call(1, 10, 20, 200) . call(1, 10, 20, 100));
is_found('order 1', 'the checker finds an ID that is below one received before the call',
	facts => $a, '1.calls' => call(1, 10, 20, 200), '2.calls' => call(2, 21, 40, 100));
is_found('order 1', 'the checker finds that also where others were received later',
	facts => $a,
	'1.calls' => call(1, 10, 20, 200),
	'2.calls' => call(2, 10, 25, 50) . call(2, 26, 40, 300),
	'3.calls' => call(3, 27, 50, 150));

#
# What a server had to know
#
is_found('above 1', 'the checker finds an ID that is not above those before',
	facts => "server a a 100\n", '1.calls' => call(1, 10, 20, 100));
is_found('', 'a new primary continues above the old one',
	facts => "${ab}after b a\n",
	'1.calls' => call(1, 10, 90, 100),
	'2.calls' => call(2, 10, 20, 101, 101, 'b'));
is_found('above 1', 'the checker finds an ID of a new primary that is below one of the old one',
	facts => "${ab}after b a\n",
	'1.calls' => call(1, 10, 90, 100),
	'2.calls' => call(2, 10, 20, 99, 99, 'b') . call(2, 30, 40, 101, 101, 'b'));

#
# Grants: IDs have 4 bits of worker ID above 4 others.
#
sub id ($tick, $worker, $number) { return $tick << 8 | $worker << 4 | $number; }

sub grant ($node, $worker, $from, $until, $held = undef)
{
	return join(' ', 'grant', $node, $worker, id($from, 0, 0), id($until, 0, 0), $held // 't') . "\n";
}

my $registry = "${ab}registry 4 4\n";
my $grants = grant('a', 3, 10, 20) . grant('a', 3, 10, 30) . grant('b', 5, 10, 20)
  . grant('psql', 5, 10, 20, 'f') . grant('b', 3, 40, 50);
sub with_id ($id, $server = undef)
{
	return (facts => $registry, 'r.grants' => $grants, '1.calls' => call(1, 10, 20, $id, $id, $server // 'a'));
}
is_found('', 'IDs from the first one of a grant on are granted', with_id(id(10, 3, 0)));
is_found('', 'IDs up to the last one of a grant that was extended are granted',
	with_id(id(29, 3, 15)));
is_found('', 'a server keeps the rest of a grant that was lost', with_id(id(19, 5, 0), 'b'));
is_found('grant 1', 'the checker finds an ID before the grant', with_id(id(9, 3, 15)));
is_found('grant 1', 'the checker finds an ID after the grant', with_id(id(30, 3, 0)));
is_found('grant 1', 'the checker finds the first ID after the grant of worker ID 0',
	facts => $registry,
	'r.grants' => grant('a', 0, 10, 20),
	'1.calls' => call(1, 10, 20, id(20, 0, 0)));
is_found('grant 1', 'the checker finds an ID of a worker ID that another server has',
	with_id(id(15, 5, 0)));
is_found('grant 1', 'the checker finds an ID of a grant to a later server', with_id(id(45, 3, 0)));
is_found('grant 1', 'the checker finds an ID of a worker ID that nobody has', with_id(id(15, 7, 0)));
is_found('grant 1', 'the checker finds a run that leaves the grant',
	facts => $registry, 'r.grants' => $grants,
	'1.calls' => call(1, 10, 20, id(15, 3, 15), id(15, 4, 0)));
my $returned = grant('a', 3, 10, 30) . grant('a', 3, 10, 15, 'f');
is_found('grant 1', 'the checker finds an ID after the worker ID was returned',
	facts => $registry, 'r.grants' => $returned, '1.calls' => call(1, 10, 20, id(15, 3, 0)));
is_found('', 'what a registry granted that lost it is granted',
	facts => $registry,
	'r1.grants' => grant('a', 3, 10, 20) . grant('a', 3, 10, 30),
	'r2.grants' => grant('a', 3, 10, 20),
	'1.calls' => call(1, 10, 20, id(25, 3, 0)));

#
# Marks: standby "s" of server "a" is synchronous from 50 to 100.
#
my $synchronous = "${a}synchronous a s 50 100\n";
sub with_marks ($began, $received, @marks)
{
	return (
		facts => $synchronous,
		'1.calls' => call(1, $began, $received, 200),
		's.marks' => join '', map { "mark s $_->[0] $_->[1] .\n" } @marks);
}
is_found('', 'an ID is below the mark of the standby', with_marks(60, 70, [ 65, 100 ], [ 71, 201 ]));
is_found('mark 1', 'the checker finds an ID that is not below the mark of the standby',
	with_marks(60, 70, [ 65, 200 ], [ 71, 200 ], [ 72, 300 ]));
is_found('', 'before the first ID there need be no mark', with_marks(60, 70, [ 65, 0 ], [ 71, 201 ]));
is_found('', 'before a standby is synchronous its mark may be any', with_marks(40, 70, [ 71, 200 ]));
is_found('', 'after a standby was synchronous its mark may be any', with_marks(60, 101, [ 102, 200 ]));
like((check(with_marks(60, 70, [ 65, 200 ], [ 71, 201 ])))[2], qr/ 2 marks,/, 'the checker counts marks');

#
# Floors: 100 is set at 50.
#
sub with_floor ($began, $first, $server = undef)
{
	return (
		facts => "${ab}floor 50 100\n",
		'1.calls' => call(1, $began, 90, $first, $first, $server // 'a'));
}
is_found('', 'a call that began before a floor was set may get a number below it', with_floor(49, 100));
is_found('', 'a call that begins after it gets a number above it', with_floor(51, 101));
is_found('floor 1', 'the checker finds a number that is not above a floor', with_floor(51, 100));
is_found('floor 1', 'the checker finds it on another server, too', with_floor(51, 100, 'b'));
is_found('floor 1', 'a floor below it does not replace another one',
	facts => "${a}floor 50 100\nfloor 60 80\n", '1.calls' => call(1, 70, 90, 90));

#
# All of them at once, and more of a kind than are reported
#
my ($status, $found, $output) = check(
	facts => $a,
	'1.calls' => join('', map { call(1, 10 * $_, 10 * $_ + 1, 1000 - $_) } 1 .. 20));
is($found, 'session 19, order 19', 'the checker counts all that is wrong');
is(scalar(() = $output =~ /^session: /mg), 5, 'the checker reports five of each kind');

#
# What cannot be read is no proof.
#
is_refused(qr/facts/, 'the checker refuses a history without facts', '1.calls' => call(1, 10, 20, 200));
is_refused(qr/no fact/, 'the checker refuses a fact that it does not know', facts => "serve a\n");
is_refused(qr/nothing is known/, 'the checker refuses a server that it does not know',
	facts => $a, '1.calls' => call(1, 10, 20, 200, 200, 'c'));
is_refused(qr/no call/, 'the checker refuses a line that is no call',
	facts => $a, '1.calls' => "call a 1 10\n" . call(1, 10, 20, 200));
is_refused(qr/cannot be/, 'the checker refuses an answer before its call',
	facts => $a, '1.calls' => call(1, 20, 10, 200));
is_refused(qr/not of one session/, 'the checker refuses a file of two sessions',
	facts => $a, '1.calls' => call(1, 10, 20, 200) . call(2, 30, 40, 300));
is_refused(qr/no grant/, 'the checker refuses a grant that it cannot read',
	facts => $registry, 'r.grants' => "grant a 3 10 20\n");
is_refused(qr/no mark/, 'the checker refuses a mark that it cannot read',
	facts => $synchronous, 's.marks' => "mark s x 10 .\n");

done_testing();
