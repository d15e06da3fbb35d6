# Daily numbers: concurrent calls at midnight, clocks that are set over it and back,
# crashes, a standby, dump and restore.

use SnowflakeTest;

my $day = 86400;

# The clock: so many seconds after the midnight that comes next.
my $midnight = $day * int(time / $day + 2);
my $node = new_server('main', { allows_streaming => 1, clock => $midnight - 600 - time },
	'restart_after_crash = on', "timezone = 'UTC'");

sub set_time ($after) { set_clock($node, $midnight + $after - time); return; }

# What a row has of the sequence "ticks" was drawn before and after its number.
# So if a row's "after" is below another one's "before", its call had returned
# when the other one was made.
sql($node, q{
	CREATE SEQUENCE order_numbers;
	CREATE SEQUENCE ticks;
	CREATE TABLE orders (
		before bigint DEFAULT nextval('ticks'),
		number bigint DEFAULT daily_nextval('order_numbers', 9) PRIMARY KEY,
		after bigint DEFAULT nextval('ticks'));
	CREATE VIEW days AS
		SELECT number / 1000000000 AS day, count(*), max(number % 1000000000) AS last FROM orders GROUP BY 1});
my $script = $node->basedir . '/order.sql';
append_to_file($script, "INSERT INTO orders DEFAULT VALUES;\n");
my $rollback = $node->basedir . '/rollback.sql';
append_to_file($rollback,
	"BEGIN;\nINSERT INTO orders DEFAULT VALUES;\nROLLBACK;\n");

# Clients that draw so many numbers each, a thousand a second together unless the machine is
# busy, or until they lose their connection.
sub start_orders ($times, @options)
{
	my %run = (err => '');
	$run{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', '8', '-j', '2', '-t', $times, '-R', 1000, @options,
			$node->connstr('postgres') ],
		'<' => \undef,
		'>' => \$run{out},
		'2>' => \$run{err});
	return \%run;
}

# How many rows there are whose number is not above that of each call which had
# returned before.
sub falls
{
	return sql($node, q{
		WITH returned AS (
			SELECT after AS tick, max(number) OVER (ORDER BY after) AS greatest FROM orders)
		SELECT count(*)
		FROM (SELECT number, max(greatest) OVER (ORDER BY tick) AS greatest
			  FROM (SELECT tick, greatest, NULL AS number FROM returned
					UNION ALL SELECT before, NULL, number FROM orders) t) t
		WHERE number <= greatest});
}

sub gmdate
{
	my (undef, undef, undef, $mday, $month, $year) = gmtime($midnight + shift);
	return sprintf('%04d%02d%02d', 1900 + $year, $month + 1, $mday);
}

# Wait until there are so many numbers, of a day if that is given.
sub wait_for_numbers ($n, $of = undef)
{
	my $where = defined $of ? "WHERE number / 1000000000 = $of" : '';

	wait_until_true($node, "SELECT count(*) >= $n FROM orders $where");
	return;
}

# One midnight, as it comes
my $run = start_orders(300, '-f', $script);
wait_for_numbers(20);
set_time(-0.1);
ok($run->{run}->finish, 'clients draw numbers over midnight')
  or diag($run->{err});
is(sql($node, 'SELECT day FROM days ORDER BY day'),
	gmdate(-1) . "\n" . gmdate(0), 'there are numbers of the days before and after midnight');
is(sql($node, 'SELECT count = last FROM days ORDER BY day DESC LIMIT 1'),
	't', 'numbers of the new day start at 1 and have no gap');
cmp_ok(sql($node, 'SELECT min(count) FROM days'),
	'>', 10, 'there are more than 10 numbers on each side of midnight');
is(falls(), '0', 'each number is above those that were committed before');

# Many midnights under load, with transactions that are rolled back, and steps
# back over some of them
sql($node, 'TRUNCATE orders');
$run = start_orders(700, '-f', $script, '-f', $rollback);
my $after = 10;
for (my $n = 1; $run->{run}->pumpable; $n++)
{
	$after += $n % 5 == 0 ? -1.5 * $day : $day;
	set_time($after);
	usleep(150_000);
	$run->{run}->pump_nb;
}
ok($run->{run}->finish, 'no call fails over many midnights')
  or diag($run->{err});
my ($days, $numbers) = split /\|/,
  sql($node, 'SELECT count(*), sum(count) FROM days');
cmp_ok($days, '>', 10, "$numbers numbers of $days days are drawn");
is(falls(), '0', 'each number is above those that were committed before');
is(sql($node, q{SELECT bool_and(to_char(to_date(day::text, 'YYYYMMDD'), 'YYYYMMDD') = day::text) FROM days}),
	't', 'each number begins with a date');

# A midnight each few milliseconds, with no client in between, so that calls meet at
# each of them
sql($node, 'CREATE TABLE draws (LIKE orders)');
my @sessions = start_queries(
	$node, (
		q{INSERT INTO draws
		  SELECT nextval('ticks'), daily_nextval('order_numbers', 9), nextval('ticks')
		  FROM generate_series(1, 150000)}
	) x 4);
while (grep { $_->{run}->pumpable } @sessions)
{
	$after += $day;
	set_time($after);
	usleep(5_000);
	$_->{run}->pump_nb foreach grep { $_->{run}->pumpable } @sessions;
}
is(finish_queries(@sessions), 4, 'four backends draw while days change');
$days = sql($node, 'SELECT count(DISTINCT number / 1000000000) FROM draws');
cmp_ok($days, '>', 50, "four backends draw on $days days");
is(sql($node, 'SELECT count(DISTINCT number), count(*) FROM draws'),
	'600000|600000', 'no number of four backends is a duplicate');
sql($node, 'TRUNCATE orders; INSERT INTO orders SELECT * FROM draws; DROP TABLE draws');
is(falls(), '0', 'each number is above those that were committed before');

# A transaction that made the first number of a day keeps nobody waiting.
$after += 10 * $day;
set_time($after);
my $first = $node->background_psql('postgres');
$first->query_safe("BEGIN; SELECT daily_nextval('order_numbers')");
is(sql($node, "SET lock_timeout = '10s'; SELECT daily_nextval('order_numbers')"),
	gmdate($after) . '000002',
	'the second number of a day does not wait for the first to be committed');
$first->query_safe('ROLLBACK');
$first->quit;
is(sql($node, "SELECT daily_nextval('order_numbers')"),
	gmdate($after) . '000003', 'a rollback does not take a number back');

# Nor does a command that locks the sequence until it is committed.
my $holder = $node->background_psql('postgres');
$holder->query_safe(
	q{BEGIN; COMMENT ON SEQUENCE order_numbers IS 'numbers of orders'});
$after += $day;
set_time($after);
is(sql($node, "SET lock_timeout = '10s'; SELECT daily_nextval('order_numbers')"),
	gmdate($after) . '000001', 'the first number of a day does not wait for a locked sequence');
$holder->quit;

# Crashes right after midnight
sql($node, 'TRUNCATE orders');
foreach my $round (1 .. 4)
{
	$after += $day;
	set_time($after - 0.5);
	my $clients = start_orders(100_000, '-f', $script);
	wait_for_numbers(1, gmdate($after));
	usleep(rand(200_000));
	$round % 2 ? kill_postmaster($node) : $node->stop('immediate');
	$clients->{run}->finish;
	start_with_clock($node);
	my $stored =
	  sql($node, 'SELECT max(number) FROM orders');
	cmp_ok(sql($node, "SELECT daily_nextval('order_numbers', 9)"),
		'>', $stored, 'numbers continue above the stored ones after a crash');
}
is(falls(), '0', 'each number is above those that were committed before');

# A standby
$node->backup('backup');
my $standby = server_of_backup('standby', $node, 'backup',
	{ has_streaming => 1, clock => $midnight + $after - time });
sql_fails($standby, "SELECT daily_nextval('order_numbers')",
	qr/25006: /, 'a standby draws no numbers');
sql($node, 'TRUNCATE orders');
my $clients = start_orders(100_000, '-f', $script);
wait_for_numbers(100);
$node->wait_for_catchup($standby);
kill_postmaster($node);
$clients->{run}->finish;
$standby->promote;
my $greatest =
  sql($standby, 'SELECT max(number) FROM orders');
cmp_ok(sql($standby, "SELECT daily_nextval('order_numbers', 9)"),
	'>', $greatest, 'numbers continue above all rows after a promotion');

# Dump and restore
my $dump = $node->basedir . '/dump.sql';
$standby->command_ok([ 'pg_dump', '-f', $dump, '-d', $standby->connstr('postgres') ],
	'dump');
sql($standby, 'CREATE DATABASE restored');
$standby->command_ok(
	[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $standby->connstr('restored') ],
	'restore');
is($standby->safe_psql('restored', "SELECT daily_nextval('order_numbers', 9)"),
	sql($standby, "SELECT daily_nextval('order_numbers', 9)"),
	'numbers continue after dump and restore');
$standby->stop;

# Dates that are not eight digits
start_with_clock($node);
set_clock($node, 8000 * 366 * $day);
sql_fails($node, "SELECT daily_nextval('order_numbers')",
	qr/22008: current date is out of range for daily numbers/,
	'a date after the year 9999 is refused');
done_testing();
