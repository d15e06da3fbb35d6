# Whether a server gets its worker IDs from a registry is determined at its start.
# A reload that sets or empties snowflake.registry, and a crash of a backend after
# it, which initializes shared memory again, change neither that nor the value.

use SnowflakeTest;

sub crash ($node) { crash_process($node, server_process($node, 'walwriter')); return; }

my $worker_id = 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())';
my $registry =
  new_registry('registry', "101, 900, grant_time => '1 min', new => true");
my $conf = registry_conf($registry);

# From no registry to one.
my $alone = new_server('alone', 'snowflake.worker_id = 7',
	"snowflake.grant_timeout = '2 s'", 'restart_after_crash = on');
my $show = 'SHOW snowflake.registry';
my $log_end = -s $alone->logfile;
reload_with($alone, $conf);
$alone->wait_for_log(
	qr/LOG:  "snowflake\.registry" cannot be set without restarting the server\n.*DETAIL:  The server continues to generate IDs with its own worker ID\./,
	$log_end);
pass('snowflake.registry is set by a reload: the log says that this is not possible');
is(sql($alone, $show), '', 'its value remains empty');
is(sql($alone, $worker_id), 7, 'snowflake.registry is set by a reload: the worker ID is the same');
crash($alone);
my ($rc, $stdout, $stderr) = $alone->psql('postgres', $worker_id);
is($stderr, '', 'after a crash, a server that started without a registry generates IDs');
is($stdout, 7, 'after a crash, a server without a registry has its worker ID');
is(sql($alone, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'snowflake grant'"),
	0, 'after a crash, a server without a registry has no worker for it');
$alone->restart;
cmp_ok(sql($alone, $worker_id), '>', 100, 'after a restart, the worker ID is one of the registry');

# So a registry on the server itself does not grant the server's own worker ID.
my $own = new_server('own', 'snowflake.worker_id = 7');
sql($own, 'CREATE EXTENSION snowflake_registry');
$own->append_conf('postgresql.conf', registry_conf($own));
$log_end = -s $own->logfile;
$own->reload;
$own->wait_for_log(qr/"snowflake\.registry" cannot be set without/, $log_end);
sql_fails($own, 'SELECT snowflake_registry.create(1, 900)',
	qr/DETAIL:  This server generates IDs with worker ID 7 .*"snowflake\.registry" on this server, too, and restart it/,
	'a registry on a server knows the worker ID that this generates IDs with');

# From a registry to none.
my $granted = new_server('granted', $conf, 'snowflake.worker_id = 7',
	"snowflake.grant_timeout = '2 s'", 'restart_after_crash = on');
my $before = sql($granted, $worker_id);
cmp_ok($before, '>', 100, 'a server with a registry has a worker ID of the registry');
my $conninfo = sql($granted, $show);
$log_end = -s $granted->logfile;
reload_with($granted, "snowflake.registry = ''");
$granted->wait_for_log(
	qr/LOG:  "snowflake\.registry" cannot be emptied without restarting the server\n.*DETAIL:  The server continues to use the registry that it has\./,
	$log_end);
pass('snowflake.registry is emptied by a reload: the log says that this is not possible');
is(sql($granted, $show), $conninfo, 'its value remains');
is(sql($granted, $worker_id), $before, 'the worker ID is the same');
my $contact = sql($granted, 'SELECT registry_contact FROM snowflake_stat');
sql($granted, q{
	SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
	WHERE backend_type = 'snowflake grant'});
becomes_true($granted, "SELECT registry_contact > '$contact' FROM snowflake_stat",
	'a worker that is started again calls the registry');
sql($granted, q{ALTER SYSTEM SET snowflake.registry = ''});
like(slurp_file($granted->data_dir . '/postgresql.auto.conf'),
	qr/^snowflake\.registry = ''$/m, 'ALTER SYSTEM can empty it for the next start');
crash($granted);
($rc, $stdout, $stderr) = $granted->psql('postgres', $worker_id);
isnt($stdout, 7, 'after a crash, snowflake.worker_id is not used instead of a grant');
$granted->restart;
is(sql($granted, $worker_id), 7, 'after a restart, there is no registry');

done_testing();
