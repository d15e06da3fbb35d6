# The clock jumps ahead: IDs follow it by up to snowflake.max_clock_forward, and no
# further.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $day = 86400;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
start_with_clock($node);
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION snowflake;
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE ROLE alice});

# How far an ID is ahead of the real time, in days
sub days_ahead
{
	my ($id) = @_;

	return ($node->safe_psql('postgres',
			"SELECT extract(epoch FROM snowflake_timestamp($id))") - time) / $day;
}

# Stop and start the server; a restart by pg_ctl would lose the clock.
sub restart
{
	$node->stop;
	start_with_clock($node);
	return;
}

sub next_id
{
	return $node->safe_psql('postgres', 'INSERT INTO t DEFAULT VALUES RETURNING id');
}

my $id = next_id();

# 54 years
my $offset = -s $node->logfile;
set_clock($node, 54 * 365 * $day);
my $next = next_id();
cmp_ok($next, '>', $id, 'a clock that is decades ahead: IDs go on');
cmp_ok(abs(days_ahead($next)), '<', 0.01, 'with the time that it should be');
$node->wait_for_log(
	qr/WARNING:  clock jumped ahead by 170[12]\d{9} ms, but snowflake IDs do not follow it/,
	$offset);
my $log = slurp_file($node->logfile, $offset);
like($log,
	qr/DETAIL:  The clock reads 20(79|80)-.*, but .* indicate 20\d\d-.*"snowflake.max_clock_forward" is 31536000 s/,
	'a warning has both times');
like($log, qr/HINT:  Correct the server's clock.*snowflake_accept_clock\(\)/,
	'and both ways out');
next_id() foreach 1 .. 5;
my @warnings = slurp_file($node->logfile, $offset) =~ /but snowflake IDs do not follow it/g;
is(scalar(@warnings), 1, 'once');

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
is(verdict($ledger), '0 duplicates, 0 falls', "$ledger->{ids} IDs under load");

# A start with that clock
restart();
my $error = sql_error($node, 'SELECT snowflake_nextval()');
like($error, qr/ERROR:  55000: clock is too far ahead of the mark of snowflake IDs/,
	'a start with such a clock makes no ID');
like($error,
	qr/DETAIL:  The mark is \d+ \(20\d\d-.* in this scheme\), and the clock reads 20(79|80)-.*\. "snowflake.max_clock_forward" is 31536000 s/,
	'the detail has both times');
like($error, qr/HINT:  Correct the server's clock. If it is correct .* call snowflake_accept_clock\(\)/,
	'the hint what to do');
# A checkpoint of that time makes it no better.
$node->safe_psql('postgres', 'CHECKPOINT');
restart();
like(sql_error($node, 'SELECT snowflake_nextval()'),
	qr/ERROR:  55000: clock is too far ahead/, 'nor does the next one');
set_clock($node, 0);
$next = next_id();
cmp_ok($next, '>', $id, 'with the clock set right it does, without a restart');
cmp_ok(abs(days_ahead($next)), '<', 0.01, 'and the mark was not driven ahead');

# Less than a year is followed; when it is taken back, IDs go on from there.
$offset = -s $node->logfile;
set_clock($node, 200 * $day);
$id = next_id();
cmp_ok(abs(days_ahead($id) - 200), '<', 0.01, '200 days are followed');
$node->wait_for_log(qr/WARNING:  clock jumped ahead by 172[78]\d{7} ms$/m, $offset);
set_clock($node, 0);
$next = next_id();
cmp_ok($next, '>', $id, 'and taking them back stops nothing');
restart();
cmp_ok(next_id(), '>', $next, 'nor does a restart');

# snowflake_accept_clock
like(sql_error($node, 'SET ROLE alice; SELECT snowflake_accept_clock()'),
	qr/ERROR:  42501: permission denied for function snowflake_accept_clock/,
	'accepting a clock is not for everyone');
set_clock($node, 3 * 365 * $day);
$id = next_id();
cmp_ok(days_ahead($id), '<', 201, 'three years are not followed');
is($node->safe_psql('postgres',
		'SELECT snowflake_accept_clock() = clock_timestamp() OR clock_timestamp() - snowflake_accept_clock() < interval \'10 s\''),
	't',
	'but if they are accepted');
$next = next_id();
cmp_ok(abs(days_ahead($next) - 3 * 365), '<', 0.01, 'they are');
set_clock($node, 6 * 365 * $day);
restart();
like(sql_error($node, 'SELECT snowflake_nextval()'),
	qr/too far ahead/, 'three more at a start');
$node->safe_psql('postgres', 'SELECT snowflake_accept_clock()');
cmp_ok(abs(days_ahead(next_id()) - 6 * 365), '<', 0.01, 'can be accepted, too');
$node->stop('immediate');
start_with_clock($node);
cmp_ok(abs(days_ahead(next_id()) - 6 * 365), '<', 0.01, 'durably');
set_clock($node, 70 * 365 * $day);
like(sql_error($node, 'SELECT snowflake_accept_clock()'),
	qr/ERROR:  22008: clock is out of range for the snowflake scheme/,
	'a clock past the end of the field cannot');
$node->stop;

SKIP:
{
	# Before 16 the postmaster starts workers in a signal handler, where
	# libfaketime leaves them the real time.
	skip 'the startup worker has no fake clock', 1 if $node->pg_version < 16;

	# A server that ran last months ago knows what time it was then, even if it
	# made no ID: 300 days, and again.
	$node = PostgreSQL::Test::Cluster->new('idle');
	$node->init;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
	start_with_clock($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE TABLE t (id bigint DEFAULT snowflake_nextval())');
	next_id();
	foreach my $days (300, 600)
	{
		my $from = -s $node->logfile;
		set_clock($node, $days * $day);
		restart();
		$node->wait_for_log(qr/snowflake IDs continue above the mark/, $from);
	}
	cmp_ok(abs(days_ahead(next_id()) - 600), '<', 0.01,
		'starts without an ID are remembered');
	$node->stop;
}

done_testing();
