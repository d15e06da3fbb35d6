# The clock jumps ahead: IDs follow it by up to snowflake.max_clock_forward, and no
# further.

use SnowflakeTest;

my $day = 86400;
my $node = new_server_with_clock('main');
sql($node, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');

# How far an ID is ahead of the real time, in days
sub days_ahead ($id)
{
	return (sql($node, "SELECT extract(epoch FROM snowflake_timestamp($id))") - time) / $day;
}

# Stop and start the server; a restart by pg_ctl would lose the clock.
sub restart
{
	$node->stop;
	start_with_clock($node);
	return;
}

sub next_id { return sql($node, 'INSERT INTO t DEFAULT VALUES RETURNING id'); }

# What the server says to a statement
sub sql_notice ($statement)
{
	my (undef, undef, $notice) = $node->psql('postgres', $statement);

	return $notice;
}

my $id = next_id();
my $follows = 'SELECT follows_clock FROM snowflake_stat';
is(sql($node, $follows), 't', 'IDs follow the clock');

# 54 years
my $offset = -s $node->logfile;
set_clock($node, 54 * 365 * $day);
my $next = next_id();
cmp_ok($next, '>', $id, 'IDs continue with a clock that is decades ahead');
cmp_ok(abs(days_ahead($next)), '<', 0.01, 'IDs do not follow a clock that is decades ahead');
is(sql($node, $follows), 'f', 'snowflake_stat says so');
$node->wait_for_log(
	qr/WARNING:  clock jumped ahead by 170[12]\d{9} ms, but snowflake IDs do not follow it/,
	$offset);
my $log = slurp_file($node->logfile, $offset);
like($log,
	qr/DETAIL:  The clock reads 20\d\d-.*, but .* indicate 20\d\d-.*"snowflake.max_clock_forward" is 31536000 s/,
	'the warning of a clock that is decades ahead has both times');
like($log, qr/HINT:  Correct the server's clock.*snowflake_accept_clock\(\)/,
	'the hint of a clock that is decades ahead has both ways out');
next_id() foreach 1 .. 5;
my @warnings = slurp_file($node->logfile, $offset) =~ /but snowflake IDs do not follow it/g;
is(scalar(@warnings), 1, 'the warning of a clock that is decades ahead is logged once');

# They keep the pace: neither more than the scheme has, nor stuck.
my @clients = start_clients($node, 4);
wait_for_clients(@clients);
usleep(1_500_000);
$id = $next;
$next = next_id();
cmp_ok(abs(days_ahead($next)), '<', 0.01, 'IDs keep the pace of a clock');
end_clients($node);
my $ledger = new_ledger();
note_ids($ledger, finish_clients(@clients));
is(verdict($ledger), '0 duplicates, 0 falls', "no duplicates among $ledger->{ids} IDs under load");

# A start with that clock
restart();
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: clock is too far ahead of the mark of snowflake IDs.*DETAIL:  The mark is \d+ \(20\d\d-.* in this scheme\), and the clock reads 20\d\d-.*\. "snowflake.max_clock_forward" is 31536000 s.*HINT:  Correct the server's clock. If it is correct .* call snowflake_accept_clock\(\)/s,
	'calls fail after a start with a clock that is decades ahead');
# A checkpoint of that time makes it no better.
sql($node, 'CHECKPOINT');
restart();
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: clock is too far ahead/, 'calls fail after the next start, too');
# Nor does a mark from another server.
my $other = mark_of($node) + (1 << 22);
sql($node, "SELECT snowflake_raise_mark($other)");
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: clock is too far ahead/, 'raising the mark does not accept the clock');
set_clock($node, 0);
$next = next_id();
cmp_ok($next, '>', $id, 'calls succeed when the clock is correct, without a restart');
cmp_ok(abs(days_ahead($next)), '<', 0.01, 'a start with a wrong clock does not raise the mark to it');

# Less than a year is followed; when it is taken back, IDs continue from there.
$offset = -s $node->logfile;
set_clock($node, 200 * $day);
$id = next_id();
cmp_ok(abs(days_ahead($id) - 200), '<', 0.01, 'IDs follow a clock that is 200 days ahead');
$node->wait_for_log(qr/WARNING:  clock jumped ahead by 172[78]\d{7} ms$/m, $offset);
set_clock($node, 0);
$next = next_id();
cmp_ok($next, '>', $id, 'IDs continue when the clock goes back by 200 days');
restart();
cmp_ok(next_id(), '>', $next, 'IDs continue after a restart with a lead of 200 days');

# snowflake_accept_clock
set_clock($node, 3 * 365 * $day);
$id = next_id();
cmp_ok(days_ahead($id), '<', 201, 'IDs do not follow a clock that is three years ahead');
is(sql($node, $follows), 'f', 'snowflake_stat says so');
$id += 1 << 22;
sql($node, "SELECT snowflake_raise_mark($id)");
my $raised = next_id();
cmp_ok($raised, '>=', $id, 'the mark is raised meanwhile');
cmp_ok(days_ahead($raised), '<', 201, 'IDs do not follow such a clock when the mark is raised');
$id = $raised;
is(sql($node, 'SELECT snowflake_accept_clock() = clock_timestamp() OR clock_timestamp() - snowflake_accept_clock() < interval \'10 s\''),
	't', 'snowflake_accept_clock() returns the accepted time');
$next = next_id();
cmp_ok(abs(days_ahead($next) - 3 * 365), '<', 0.01, 'IDs follow an accepted clock');
is(sql($node, $follows), 't', 'snowflake_stat says that they follow it again');
like(slurp_file($node->logfile), qr/LOG:  clock was accepted by snowflake_accept_clock\(\)\n.*DETAIL:  The clock reads \d{4}-.*, and the mark of snowflake IDs was \d+\./, 'the log says who accepted the clock');

# It was wrong after all: IDs continue, but the next start would refuse them.
my $accepted = -s $node->logfile;
set_clock($node, 200 * $day);
cmp_ok(next_id(), '>', $next, 'IDs continue after a wrong clock was accepted');
like(sql_notice('SELECT snowflake_accept_clock()'),
	qr/NOTICE:  clock is not too far ahead of snowflake IDs\nDETAIL:  The clock reads \d{4}-/,
	'there is nothing to accept in a clock that is behind');
cmp_ok(next_id(), '>', $next, 'IDs continue as before');
$node->wait_for_log(qr/WARNING:  snowflake IDs are \d+ ms ahead of the clock\n.*\n.*HINT:  IDs continue at the pace of real time, but after a restart no ID can be generated/, $accepted);
restart();
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: mark of snowflake IDs is too far ahead of the clock.*HINT:.* If it was wrong while IDs were generated, replace them, and lower the mark with snowflake_set_mark/s,
	'the error after a restart says what to do');
set_clock($node, 6 * 365 * $day);
restart();
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/too far ahead/, 'calls fail after a start with three more years');
sql($node, 'SELECT snowflake_accept_clock()');
cmp_ok(abs(days_ahead(next_id()) - 6 * 365), '<', 0.01, 'a clock can be accepted after a start');
$node->stop('immediate');
start_with_clock($node);
cmp_ok(abs(days_ahead(next_id()) - 6 * 365), '<', 0.01, 'an accepted clock survives a crash');

# Two years behind: IDs continue, also after a crash, although a checkpoint has that
# time.
$node->stop;
set_clock($node, 4 * 365 * $day);
start_with_clock($node);
cmp_ok(abs(days_ahead(next_id()) - 6 * 365), '<', 1, 'IDs continue with a clock that is two years behind');
reload_with($node, 'restart_after_crash = on');
sql($node, 'CHECKPOINT');
crash_process($node, server_process($node, 'walwriter'));
cmp_ok(abs(days_ahead(next_id()) - 6 * 365), '<', 1, '... and after a crash');
set_clock($node, 70 * 365 * $day);
sql_fails($node, 'SELECT snowflake_accept_clock()',
	qr/ERROR:  22008: clock is out of range for the snowflake scheme/,
	'a clock past the end of the timestamp field cannot be accepted');
$node->stop;

# A server that ran last months ago knows what time it was then, even if it
# generated no ID: 300 days, and again.
$node = new_server_with_clock('idle');
sql($node, 'CREATE TABLE t (id bigint DEFAULT snowflake_nextval())');
next_id();
foreach my $days (300, 600)
{
	my $from = -s $node->logfile;
	set_clock($node, $days * $day);
	restart();
	$node->wait_for_log(qr/snowflake IDs continue above the mark/, $from);
}
cmp_ok(abs(days_ahead(next_id()) - 600), '<', 0.01,
	'a start without an ID raises the mark');

# The time that it has been idle since the start does not count, if the clock was right.
$node->append_conf('postgresql.conf', "snowflake.max_clock_forward = '60s'");
$node->stop;
start_with_clock($node);
set_clock($node, 600 * $day + 3600);
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: clock is too far ahead of the mark/, 'a clock that jumps after a start, before the first ID, is refused');
set_clock($node, 600 * $day + 3600, 3600);
cmp_ok(abs(days_ahead(next_id()) - 600 - 3600 / $day), '<', 0.001,
	'IDs follow the clock of a server that was idle for an hour since its start');
done_testing();
