# What a server keeps of calls of the registry that failed: it keeps its worker ID,
# however many they were.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../test/perl";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Proxy;
use SnowflakeTest;
use Test::More;
use Time::HiRes qw(usleep);

my $role = 'regress_server';
my $registry = new_registry('registry',
	"1, 100, grant_time => '10 min', new => true");
$registry->safe_psql('postgres', qq{
	CREATE ROLE $role LOGIN;
	GRANT EXECUTE ON FUNCTION snowflake_registry.get_grant, snowflake_registry.extend_grant, snowflake_registry.return_grant TO $role});
my $proxy = Proxy->new($registry);
my $server = new_server('server',
	"snowflake.registry = 'host=$proxy->{host} port=$proxy->{port} dbname=postgres user=$role'");
my $worker_id = $server->safe_psql('postgres',
	'SELECT worker_id FROM snowflake_parse(snowflake_nextval())');
my $worker = server_process($server, 'snowflake grant');

# Have the worker call so often: if it is woken, it calls when a second has
# passed since the last call.  Returns the error of the last call.
sub call
{
	my ($n) = @_;

	foreach my $i (1 .. $n)
	{
		kill 'HUP', $worker;
		usleep(1_200_000);
	}
	return $server->safe_psql('postgres',
		'SELECT registry_error FROM snowflake_stat');
}

# The worker calls, and the grant is extended.
sub keeps_worker_id
{
	my ($name) = @_;

	call(1);
	$server->poll_query_until('postgres',
		'SELECT registry_error IS NULL FROM snowflake_stat')
	  or die 'the registry does not answer';
	is( $server->safe_psql('postgres', 'SELECT worker_id FROM snowflake_stat'),
		$worker_id, $name);
	return;
}

# A warning that is not about the commit
$registry->safe_psql('postgres', q{
	CREATE OR REPLACE FUNCTION snowflake_registry.check_tokens(tokens uuid[], new_token uuid) RETURNS void LANGUAGE plpgsql AS
	$$BEGIN RAISE WARNING 'of something else'; END$$});
my $renewed = $registry->safe_psql('postgres', 'SELECT renewed_at FROM snowflake_registry.workers');
is(call(2), '', 'a warning that is not about the commit is no error');
is($registry->safe_psql('postgres', "SELECT renewed_at > '$renewed' FROM snowflake_registry.workers"),
	't', 'the grant is extended');

# Calls that are refused or not even sent have no token.
$registry->safe_psql('postgres',
	"REVOKE EXECUTE ON FUNCTION snowflake_registry.extend_grant FROM $role");
like(call(9), qr/permission denied/, '9 calls are refused');
$registry->stop('immediate');
like(call(9), qr/server closed the connection/, '9 calls are not sent');
$registry->start;
$registry->safe_psql('postgres',
	"GRANT EXECUTE ON FUNCTION snowflake_registry.extend_grant TO $role");
keeps_worker_id('the server keeps its worker ID after calls without a token');

# The answer to a call that was committed is lost, and some calls after it.
$proxy->set('cut');
isnt(call(1), '', 'the answer to a call is lost');
$proxy->set('lose');
isnt(call(14), '', '14 calls are lost');
$proxy->set('pass');
keeps_worker_id('the server keeps its worker ID if one of 15 calls was committed');

# No call is committed, for longer than there is room for tokens.
$proxy->set('lose');
isnt(call(18), '', '18 calls are lost');
$proxy->set('pass');
keeps_worker_id('the server keeps its worker ID if no call was committed');

$_->stop foreach $server, $registry;
done_testing();
