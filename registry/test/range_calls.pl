# Calls for ranges of sequences: how many there are.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $registry = new_registry('registry', '1, 100, new => true');
$registry->safe_psql('postgres', "SELECT snowflake_registry.add_database('postgres')");

sub asked { return $registry->safe_psql('postgres', $_[0]); }

# Sequences s1, s2 and so on of kind range.
sub create_sequences
{
	my ($server, $n) = @_;

	$server->safe_psql('postgres', 'SELECT snowflake_attach_sequences();'
		  . join('', map { "CREATE SEQUENCE s$_ AS integer; SELECT snowflake_set_sequence_kind('s$_', 'range');" } 1 .. $n));
	return;
}

# Many sequences whose ranges are exhausted about the same time: one call has all of them.
my $server = new_server_with_clock('server', registry_conf($registry), "snowflake.server_name = 'server'");
my $n = 20;
my $take = join(';', map { "SELECT count(nextval('s$_')) FROM generate_series(1, 100)" } 1 .. $n);
my $in_reserve = 'SELECT count(*) FROM snowflake_registry.held_ranges WHERE latest_last >= %d';
my $calls = "SELECT calls FROM snowflake_registry.range_clients WHERE server_name = 'server'";

sub has_reserves
{
	my ($last) = @_;

	$registry->poll_query_until('postgres', sprintf($in_reserve, $last), $n) or die 'no reserves';
	return;
}

create_sequences($server, $n);
$server->safe_psql('postgres', $take);
has_reserves(200);
my $before = asked($calls);

# The first ranges have lasted for long.
set_clock($server, 2000);
$server->safe_psql('postgres', join(';', map { "SELECT nextval('s$_')" } 1 .. $n));
set_clock($server, 2011);
has_reserves(300);
is(asked($calls), $before + 1, 'one call asks for the reserves of all sequences');

# ... and one that is exhausted early does not wait for others; its call has them, too.
set_clock($server, 4000);
$server->safe_psql('postgres', $take);
$before = asked($calls);
is($server->safe_psql('postgres', "SELECT count(nextval('s7')) FROM generate_series(1, 150)"), 150, 'who needs numbers waits for no other sequence');
has_reserves(400);
cmp_ok(asked($calls), '<=', $before + 3, 'a call that is made for one has what others could wait for');

# A registry that was told of floors is not told them with each call, unless it forgot the name.
asked(q{DELETE FROM snowflake_registry.range_sequences WHERE name = 'public.s7'});
my ($status, $number);
wait_until('numbers of a sequence that the registry forgot',
	sub { ($status, $number) = $server->psql('postgres', "SELECT max(nextval('s7')) FROM generate_series(1, 400)"); return $status == 0 && $number > 1000; });
is(asked(q{SELECT next > 1000 FROM snowflake_registry.sequences WHERE name = 'public.s7'}), 't', 'a sequence that the registry forgot is added again, above its numbers');
$server->stop;

$registry->stop;
done_testing();
