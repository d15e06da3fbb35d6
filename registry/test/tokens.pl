# What a server keeps of calls of the registry that failed: it keeps its worker ID,
# however many they were.

use Proxy;
use SnowflakeTest;

my $role = 'regress_server';
my $registry = new_registry('registry',
	"1, 100, grant_time => '10 min', new => true");
sql($registry, qq{
	CREATE ROLE $role LOGIN;
	GRANT EXECUTE ON FUNCTION snowflake_registry.get_grant, snowflake_registry.extend_grant, snowflake_registry.return_grant TO $role});
my $proxy = Proxy->new($registry);
my $server = new_server_with_clock('server',
	"snowflake.registry = 'host=$proxy->{host} port=$proxy->{port} dbname=postgres user=$role'");
my $worker_id = sql($server, 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())');
my $worker = server_process($server, 'snowflake grant');

# Have the worker call so often.
sub call { return call_registry($server, $worker, $proxy, @_); }

# Wait for a state of the server, because the worker takes note of a call after its end.
sub has_state ($condition, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	becomes_true($server, "SELECT $condition FROM snowflake_stat", $name);
	return;
}

# The worker calls, and the grant is extended.
sub keeps_worker_id ($name)
{
	my $until = sql($server, 'SELECT granted_until FROM snowflake_stat');

	call(1);
	has_state("registry_error IS NULL AND granted_until > '$until'", "the grant is extended, and $name");
	is(sql($server, 'SELECT worker_id FROM snowflake_stat'), $worker_id, $name);
	return;
}

# A warning that is not about the commit
sql($registry, q{
	CREATE OR REPLACE FUNCTION snowflake_registry.check_tokens(tokens uuid[], new_token uuid) RETURNS void LANGUAGE plpgsql AS
	$$BEGIN RAISE WARNING 'of something else'; END$$});
keeps_worker_id('a warning that is not about the commit is no error');

# Calls that are refused or not even sent have no token.
sql($registry, "REVOKE EXECUTE ON FUNCTION snowflake_registry.extend_grant FROM $role");
call(9);
has_state("registry_error ~ 'permission denied'", '9 calls are refused');
$registry->stop('immediate');
call(9);
has_state("registry_error ~ 'server closed the connection'", '9 calls are not sent');
$registry->start;
sql($registry, "GRANT EXECUTE ON FUNCTION snowflake_registry.extend_grant TO $role");
keeps_worker_id('the server keeps its worker ID after calls without a token');

# The answer to a call that was committed is lost, and some calls after it.
my $renewed = sql($registry, 'SELECT renewed_at FROM snowflake_registry.workers');
$proxy->set('cut');
call(1);
has_state('registry_error IS NOT NULL', 'the answer to a call is lost');
is(sql($registry, "SELECT renewed_at > '$renewed' FROM snowflake_registry.workers"),
	't', 'the call was committed');
$proxy->set('lose');
call(14);
$proxy->set('pass');
keeps_worker_id('the server keeps its worker ID if one of 15 calls was committed');

# No call is committed, for longer than there is room for tokens.
$proxy->set('lose');
call(18);
has_state('registry_error IS NOT NULL', '18 calls are lost');
$proxy->set('pass');
keeps_worker_id('the server keeps its worker ID if no call was committed');

done_testing();
