# A server with range sequences is started again: it holds numbers of all of them at once, as
# many as it used in the time for which servers can do without the registry, and does so.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(time sleep);

my $grant_time = 12;
my $names = 1000;
my $registry = new_registry('registry', '1, 100, new => true');
$registry->safe_psql('postgres', "SELECT snowflake_registry.add_database('postgres'); SELECT snowflake_registry.alter_ranges(grant_time => '$grant_time s')");
my $server = new_server('server', registry_conf($registry), "snowflake.server_name = 'server'", 'snowflake.max_range_sequences = ' . ($names + 100));

sub calls { return $registry->safe_psql('postgres', 'SELECT sum(calls) FROM snowflake_registry.range_clients'); }

# How many sequences have so many numbers, and the numbers of one that is busy
sub ready { return $server->safe_psql('postgres', "SELECT count(*) FROM pg_class c, _snowflake_range_statistics(c.oid) s WHERE relname ~ '^s[0-9]' AND s.held >= $_[0]"); }
sub held { return $server->safe_psql('postgres', "SELECT held FROM _snowflake_range_statistics('busy')"); }

$server->safe_psql('postgres', qq{
	SET snowflake.default_sequence_kind = 'range';
	DO \$\$ BEGIN FOR i IN 1 .. $names LOOP EXECUTE format('CREATE SEQUENCE s%s AS integer', i); END LOOP; END \$\$;
	CREATE SEQUENCE busy AS integer; CREATE SEQUENCE wide AS integer INCREMENT 20; CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE l (id int);});
# Those used last are the ones with the highest numbers.
$server->safe_psql('postgres', "SELECT nextval(format('s%s', i)::regclass) FROM generate_series(1, $names) i; SELECT nextval('wide')");
$server->safe_psql('postgres', 'INSERT INTO t DEFAULT VALUES');

# Numbers at a rate, for as long as the registry's servers do without it
my $rate = 300;
my $begin = time;
my $used = 0;
sub use_numbers
{
	my ($seconds) = @_;
	my $end = time + $seconds;
	my $failed = 0;

	my $first = time;
	my $count = 0;
	while (time < $end)
	{
		my $due = int((time - $first) * $rate) - $count;

		$failed++ if $due > 0 && sql_error($server, "SELECT nextval('busy') FROM generate_series(1, $due)");
		$count += $due;
		sleep 0.2;
	}
	$used += $count;
	return $failed;
}
is(use_numbers(2 * $grant_time), 0, 'a sequence is used at a steady rate');

sub starts_with_numbers
{
	my ($how, $least) = @_;
	my $calls = calls();
	my $start = time;

	wait_until("numbers of all sequences after $how", sub { ready(100) == $names });
	note(sprintf('%.2f s, %s numbers', time - $start, held()));
	cmp_ok(time - $start, '<', 5, "all $names sequences have numbers soon after $how");
	cmp_ok(calls() - $calls, '<=', $names / 100 + 15, 'each call has 100 of them');
	cmp_ok(held(), '>=', $least, 'as many as were used before in the time without the registry');
	cmp_ok($server->safe_psql('postgres', "SELECT held FROM _snowflake_range_statistics('wide')"), '>=', 2000, 'more with an INCREMENT');
	return;
}
$server->restart;
starts_with_numbers('a restart', $rate * $grant_time);
my $timing = q{DO $$ DECLARE began timestamptz := clock_timestamp(); BEGIN INSERT INTO TABLE VALUES (DEFAULT);
	RAISE NOTICE 'took % ms', extract(epoch FROM clock_timestamp() - began) * 1000; END $$};
$server->safe_psql('postgres', $timing =~ s/TABLE/l/r);
my (undef, undef, $notice) = $server->psql('postgres', $timing =~ s/TABLE/t/r);
like($notice, qr/took \d+\.\d+ ms/, 'the first row of a table comes after a restart');
note($notice);
my ($ms) = $notice =~ /took (\d+)/;
cmp_ok($ms, '<', 500, 'without waiting for the registry');

# The registry is down, for as long as it may be.
$registry->stop('immediate');
is(use_numbers($grant_time), 0, 'the busy sequence goes on at its rate without the registry');
is($server->safe_psql('postgres', "SELECT count(nextval(format('s%s', i)::regclass)) FROM generate_series(1, $names) i, generate_series(1, 50)"), $names * 50, 'and all others');
$registry->start;
wait_until('numbers again', sub { held() >= $rate * $grant_time * 0.8 });
pass('it is ready for that again');

# A crash, with which nothing is returned.
$server->stop('immediate');
$server->start;
# It used less since then.
starts_with_numbers('a crash', 500);

# The last numbers of a type come as fast as others.
my $calls = calls();
$server->safe_psql('postgres', q{CREATE SEQUENCE e AS smallint START 20001; SELECT snowflake_set_sequence_kind('e', 'range')});
$begin = time;
is($server->safe_psql('postgres', "SELECT count(DISTINCT nextval('e')) FROM generate_series(1, 12767)"), 12767, 'all numbers up to the last one of a type are given out');
note(sprintf('%.3f ms each', (time - $begin) * 1000 / 12767));
cmp_ok((time - $begin) * 1000 / 12767, '<', 0.5, 'as fast as others');
cmp_ok(calls() - $calls, '<', 200, 'with a call for each hundred');
like(sql_error($server, "SELECT nextval('e')"), qr/2200H: nextval: reached maximum value of sequence "e" \(32767\)/, 'then the sequence has reached its end');

$_->stop foreach $server, $registry;
done_testing();
