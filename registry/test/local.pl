# A server that is its own registry: the worker connects to the database itself if
# snowflake.registry names a socket directory of the server.

use SnowflakeTest;

my $server = PostgreSQL::Test::Cluster->new('server');
$server->init(allows_streaming => 1);
my ($host, $port) = ($server->host, $server->port);

sub set_registry ($conninfo)
{
	$server->append_conf('postgresql.conf', setting('snowflake.registry', $conninfo));
	return;
}

# An expression over snowflake_stat becomes true.
sub stat_becomes ($expression, $label)
{
	return becomes_true($server, "SELECT $expression FROM snowflake_stat", $label);
}

# The database and the role do not exist yet.
my $include = `pg_config --includedir-server`;
chomp $include;

# A private installation has no headers.
$include =~ s/^.*\/tmp_check\/install// if !-e "$include/postgres.h";
my $hook = compile("$FindBin::RealBin/log_hook.c", '-shared', '-fPIC', '-Wno-unused-parameter', '-isystem', $include);
$server->append_conf('postgresql.conf', <<"EOF");
shared_preload_libraries = 'snowflake, $hook'
snowflake.grant_timeout = '1 min'
max_connections = 20
max_prepared_transactions = 2
superuser_reserved_connections = 3
EOF
set_registry("host=$host port=$port dbname=regress_ids user=regress_server");
$server->start;
sql($server, 'CREATE EXTENSION snowflake');
stat_becomes(q{registry_error = 'role "regress_server" does not exist'},
	'snowflake_stat says that the role does not exist');
like(slurp_file($server->data_dir . '/log_hook'), qr/^role "regress_server" does not exist$/m,
	'modules that hook into the log get the error');
sql($server, 'CREATE ROLE regress_server LOGIN');
stat_becomes(q{registry_error = 'database "regress_ids" does not exist'},
	'snowflake_stat says that the database does not exist');
sql($server, 'CREATE DATABASE regress_ids');
stat_becomes(q{registry_error ~ 'extension snowflake_registry is not installed in database "regress_ids": schema "snowflake_registry" does not exist'},
	'snowflake_stat says that there is no registry');
my $worker = server_process($server, 'snowflake grant');
$server->safe_psql(
	'regress_ids', q{
	CREATE EXTENSION snowflake_registry;
	SELECT snowflake_registry.create(1, 1, grant_time => '4 s', reach => '1 hour', failovers => 0, new => true);
	ALTER ROLE regress_server SET default_transaction_read_only = on;
	ALTER ROLE regress_server SET default_transaction_isolation = serializable;
	ALTER ROLE regress_server SET lock_timeout = 1;
	GRANT EXECUTE ON FUNCTION snowflake_registry.get_grant, snowflake_registry.extend_grant, snowflake_registry.return_grant TO regress_server});
is(sql($server, 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())'),
	1, 'a worker ID from the local registry, whatever the defaults of the role are');
is(sql($server, "SELECT datname, usename FROM pg_stat_activity WHERE pid = $worker"),
	'regress_ids|regress_server', 'the worker is connected to the database');
is( $server->safe_psql('regress_ids',
		'SELECT worker_id, client_addr IS NULL, state FROM snowflake_registry.workers'),
	'1|t|held',
	'the registry knows the server');

# Clients cannot connect: not by pg_hba.conf, and all connections are in use, for longer
# than a grant lasts.
my $hba = $server->data_dir . '/pg_hba.conf';
my $before = slurp_file($hba);
unlink $hba;
append_to_file($hba, "local regress_ids regress_server reject\n$before");
$server->reload;
my $log_end = -s $server->logfile;
my @sessions = start_queries($server, ('SELECT pg_sleep(600)') x 25);
wait_until(
	'all connections in use',
	sub {
		# psql() would write to one that has been refused already.
		my ($stdout, $stderr) = run_command([ 'psql', '-XAtq', '-d', $server->connstr('postgres'), '-c', 'SELECT 1' ]);

		return $stderr =~ /FATAL:  sorry, too many clients already/;
	});
usleep(5_000_000);
$_->{run}->signal('INT') foreach @sessions;
finish_queries(@sessions);
unlike(slurp_file($server->logfile, $log_end),
	qr/could not (?:extend|get)/,
	'the grant was extended nevertheless');

# A restart returns the only worker ID, and gets it again.
my $start = time;
$server->restart;
sql($server, 'SELECT snowflake_nextval()');
cmp_ok(time - $start, '<', 20, 'a restart returns the only worker ID, and gets it again');

# A synchronous standby that is down.
change_setting($server, 'synchronous_commit', 'local');
change_setting($server, 'synchronous_standby_names', 'nobody');
stat_becomes(q{registry_error = 'the registry did not commit durably: synchronous standbys: no answer in time'},
	'a grant that synchronous standbys do not have does not count');
$start = time;
$server->stop;
cmp_ok(time - $start, '<', 9,
	'a synchronous standby that is down does not hold up a fast shutdown');
$server->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$server->start;
is(sql($server, 'SELECT worker_id FROM snowflake_parse(snowflake_nextval())'),
	1, 'the worker ID was returned');

# A prepared transaction locks the registry.
$server->safe_psql('regress_ids',
	q{BEGIN; SELECT FROM snowflake_registry.registries FOR UPDATE; PREPARE TRANSACTION 'lock'});
wait_until_true($server, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'snowflake grant' AND wait_event_type = 'Lock'});
$start = time;
$server->stop;
cmp_ok(time - $start, '<', 9, 'a lock does not hold up a fast shutdown');
$server->start;
$server->safe_psql('regress_ids', q{ROLLBACK PREPARED 'lock'});

# The library of the workers is not read again when one starts: an upgrade of the package
# may have replaced it.
like(slurp_file("/proc/$server->{_pid}/maps"), qr/\bsnowflake_registry_client\.so\b/,
	'the server has loaded the library that calls the registry');

# The same, but the shutdown begins right before the call.  A debugger holds the
# worker up there until then.
SKIP:
{
	sql($server, 'SELECT snowflake_nextval()');
	my $pidfile = $server->data_dir . '/postmaster.pid';
	my $gdb = debug_process($server, server_process($server, 'snowflake grant'),
		qr/^Breakpoint 1, /m,
		'break snowflake_begin_call', 'continue',
		"shell while ! grep -q stopping $pidfile; do sleep 0.05; done");

	skip 'no debugger', 1 if !$gdb;
	$server->safe_psql('regress_ids',
		q{BEGIN; SELECT FROM snowflake_registry.registries FOR UPDATE; PREPARE TRANSACTION 'lock'});
	$start = time;
	$server->stop;
	cmp_ok(time - $start, '<', 9.5, 'a call that begins during a fast shutdown does not hold it up');
	finish_debugger($gdb);
	$server->start;
	$server->safe_psql('regress_ids', q{ROLLBACK PREPARED 'lock'});
}

# The setting changes: the worker of the local registry makes room for another one.
my $user = conninfo_user();
unlink $hba;
append_to_file($hba, $before);
restart_with($server, "listen_addresses = '127.0.0.1'");
sql($server, 'SELECT snowflake_nextval()');
$log_end = -s $server->logfile;
set_registry("host=127.0.0.1 port=$port dbname=regress_ids $user");
$server->reload;
$server->wait_for_log(
	qr/LOG:  background worker "snowflake grant" restarts because "snowflake\.registry" was changed/,
	$log_end);
pass('the log says that the worker was started again');
stat_becomes('worker_id = 1', 'the worker ID is the same');

# A reload while the worker starts, before it has a handler for that.
set_registry("host=$host port=$port dbname=regress_ids user=regress_server");
restart_with($server, 'post_auth_delay = 2');
$log_end = -s $server->logfile;
$server->append_conf('postgresql.conf', 'post_auth_delay = 0');
set_registry("host=$host port=$port dbname=regress_ids $user");
$server->reload;
$server->wait_for_log(qr/LOG:  background worker "snowflake grant" restarts because/, $log_end);
pass('a reload right after the start of the worker is not lost');

# Other ways to name the socket directory.
$server->append_conf('postgresql.conf', "listen_addresses = ''");
my $link = $server->basedir . '/link';
symlink($host, $link) or die "$link: $!";
my $service = $server->basedir . '/pg_service.conf';
append_to_file($service, "[regress]\nhost=$link\nport=$port\ndbname=regress_ids\nuser=regress_server\n");
set_registry('service=regress');
{
	local $ENV{PGSERVICEFILE} = $service;
	$server->restart;
}
is( sql($server, q{
		SELECT snowflake_nextval() > 0, datname
		FROM pg_stat_activity WHERE backend_type = 'snowflake grant'}),
	't|regress_ids', 'a link in a service leads to the local registry');

$server->stop;

# The worker waits until a standby has a grant that this had before it was synchronous.
# There is no WAL, or time, that makes it report that.
my $primary = new_primary('primary', 'synchronous_commit = local', 'wal_sender_timeout = 0', 'wal_receiver_timeout = 0',
	'wal_receiver_status_interval = 0', 'autovacuum = off', 'wal_log_hints = off');
sql($primary, q{
	CREATE EXTENSION snowflake_registry;
	SELECT snowflake_registry.create(1, 100, grant_time => '100 d', reach => '300 d', new => true)});
$primary->backup('backup');
restart_with($primary, registry_conf($primary), "snowflake.grant_timeout = '60 s'",
	"synchronous_standby_names = 'nobody'");
my $standby = server_of_backup('standby', $primary, 'backup', { has_streaming => 1 });
wait_until_true($primary, q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE backend_type = 'snowflake grant' AND wait_event = } . wait_event($server, 'SnowflakeStandby'));
my $writer = sql($primary, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'");
kill 'STOP', $writer;
$primary->wait_for_catchup($standby, 'flush', $primary->lsn('flush'));
reload_with($primary, "synchronous_standby_names = 'standby'");
$start = time;
is($primary->psql('postgres', 'SELECT snowflake_nextval()'),
	0, 'IDs continue when a standby that has the grant becomes synchronous');
cmp_ok(time - $start, '<', 60, 'the worker does not wait until the standby reports again');
kill 'CONT', $writer;
done_testing();
