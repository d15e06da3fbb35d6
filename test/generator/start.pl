# What works without shared_preload_libraries, and settings that stop the
# start of the server.

use SnowflakeTest;

my $node = plain_server('main');

# Not preloaded
sql_fails($node, 'CREATE EXTENSION snowflake',
	qr/psql:<stdin>:\d+: WARNING:  55000: snowflake cannot generate IDs until it is loaded via "shared_preload_libraries"\nHINT:  Append snowflake to "shared_preload_libraries" in postgresql\.conf and restart the server\.\n/s,
	'CREATE EXTENSION without preloading warns');
is(sql($node, "SELECT extname FROM pg_extension WHERE extname ~ 'snow'"),
	'snowflake', 'CREATE EXTENSION without preloading succeeds');

# Nor does the warning hinder a restore, or single-user mode.
sql($node, 'CREATE DATABASE restored; CREATE DATABASE single');
my $dump = $node->basedir . '/dump';
command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('postgres') ],
	'a database with the extension is dumped');
command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $dump ],
	'a database with the extension is restored without preloading');
$node->stop;
like(single_user($node, 'CREATE EXTENSION snowflake', dbname => 'single'),
	qr/WARNING:  snowflake cannot generate IDs/, 'CREATE EXTENSION in single-user mode warns');
$node->start;
is($node->safe_psql($_, "SELECT extname FROM pg_extension WHERE extname = 'snowflake'"),
	'snowflake', "the extension is in database $_") foreach 'restored', 'single';

sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: snowflake must be loaded via "shared_preload_libraries"\nHINT:  Append snowflake to "shared_preload_libraries" in/s,
	'snowflake_nextval() without preloading is refused');
my $may_give_scheme = qr/ERROR:  55000: snowflake must be loaded via "shared_preload_libraries"\nDETAIL:  A function that is given a scheme does not need that: snowflake_parse\(id, 'shardingsphere'\) uses the default scheme\./;
sql_fails($node, 'SELECT snowflake_parse(1)',
	$may_give_scheme, 'snowflake_parse() by the server\'s scheme needs preloading');
foreach my $call ('snowflake_nextval(1)', 'snowflake_timestamp(1)',
	'snowflake_lower_bound(now())', 'snowflake_make(now(), 0, 0)',
	'_snowflake_stat()', 'snowflake_stat_reset()', 'snowflake_set_mark(1, force => true)', 'snowflake_raise_mark(1)',
	'snowflake_accept_clock()')
{
	sql_fails($node, "SELECT $call",
		qr/ERROR:  55000: snowflake must be loaded/, "$call without preloading is refused");
}
is(sql($node, "SELECT sequence FROM snowflake_parse(3125927076831231, 'twitter')"),
	'4095', 'snowflake_parse() by a given scheme needs no preloading');

# A registry may be on a server that generates no IDs.
sql($node, q{
	CREATE EXTENSION snowflake_registry;
	SELECT snowflake_registry.create(1, 20, 'twitter', new => true)});
is(sql($node, 'SELECT snowflake_registry.report_loss() > now()'),
	't', 'functions of a registry without preloading take its only scheme');
sql($node, q{SELECT snowflake_registry.create(1, 20, 'javascript', new => true)});
sql_fails($node, 'SELECT snowflake_registry.report_loss()',
	$may_give_scheme, 'they must be given one of several schemes');
sql($node, 'DROP EXTENSION snowflake_registry');

is(sql($node, 'SELECT count(DISTINCT uuid_v4()) FROM generate_series(1, 1000)'),
	'1000', 'uuid_v4() needs no preloading');
reload_with($node, 'snowflake.worker_id = 5');
ok(sql($node, "SELECT snowflake_parse(1, 'leaf')"), 'settings do no harm without preloading');

restart_with($node, "shared_preload_libraries = 'snowflake'");
is(sql_error($node, 'DROP EXTENSION snowflake; CREATE EXTENSION snowflake'),
	'', 'CREATE EXTENSION with preloading raises no warning');
$node->stop;

# Settings that stop the start
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'snowflake'");
my $invalid = qr/FATAL:  invalid value for parameter/;
my %tried;
foreach my $case (
	[ 'snowflake.worker_id = 1024', qr/FATAL:  1024 is outside the valid range for parameter "snowflake.worker_id" \(0 \.\. 1023\)/ ],
	[ 'snowflake.worker_id = -2', qr/FATAL:  -2 is outside the valid range for parameter "snowflake.worker_id"/ ],
	[ "snowflake.worker_id = 1024\nsnowflake.scheme = 'leaf'", qr/FATAL:  1024 is outside .* "snowflake.worker_id" \(0 \.\. 1023\)/ ],
	[ 'snowflake.worker_id = one', qr/$invalid "snowflake.worker_id": "one"/ ],
	[ 'snowflake.worker_id = 99999999999', qr/$invalid "snowflake.worker_id": "99999999999"/ ],
	[ 'snowflake.datacenter_id = 1', qr/FATAL:  1 is outside the valid range for parameter "snowflake.datacenter_id" \(0 \.\. 0\)/ ],
	[ "snowflake.scheme = 'twitter'\nsnowflake.worker_id = 32", qr/FATAL:  32 is outside .* "snowflake.worker_id" \(0 \.\. 31\)/ ],
	[ "snowflake.scheme = 'twitter'\nsnowflake.datacenter_id = 32", qr/FATAL:  32 is outside .* "snowflake.datacenter_id" \(0 \.\. 31\)/ ],
	[ "snowflake.scheme = 'twiter'", qr/$invalid "snowflake.scheme": "twiter".*"twiter" at character 1 is neither/s ],
	[ "snowflake.scheme = ''", qr/$invalid "snowflake.scheme": "".*The text is empty/s ],
	[ "snowflake.scheme = 'timestamp=37,worker=20,sequence=16'", qr/$invalid.*The fields have 73 bits in total, but an ID has 64/s ],
	[ "snowflake.scheme = 'discord'", qr/$invalid.*The fields have 64 bits in total, but IDs can be generated with at most 63/s ],
	[ "snowflake.scheme = 'timestamp=41,worker=10'", qr/$invalid.*The scheme has no sequence field/s ],
	[ "snowflake.scheme = 'worker=10,timestamp=41,sequence=12'", qr/$invalid.*not sort by time/s ],
	[ "snowflake.scheme = 'unused=1,timestamp=41,worker=10,sequence=11'", qr/$invalid.*not sort by time/s ],
	[ "snowflake.scheme = 'tick=999us,timestamp=41,worker=10,sequence=12'", qr/$invalid.*The tick is shorter than 1 ms/s ],
	[ "snowflake.scheme = '" . ('twitter' x 40) . "'", qr/$invalid.*The text has 280 bytes, but a scheme can have at most 255/s ],
	[ 'snowflake.sequence_start = middle', qr/$invalid "snowflake.sequence_start": "middle"/ ],
	[ 'snowflake.max_range_sequences = 0', qr/FATAL:  0 is outside the valid range for parameter "snowflake.max_range_sequences"/ ],
	[ 'snowflake.default_sequence_kind = global', qr/$invalid "snowflake.default_sequence_kind": "global"/ ],
	[ 'snowflake.max_lead = -1', qr/FATAL:  -1 ms is outside the valid range for parameter "snowflake.max_lead"/ ],
	[ "snowflake.max_clock_backward = 'long'", qr/$invalid "snowflake.max_clock_backward": "long"/ ],
	[ 'snowflake.clock_backward = stop', qr/$invalid "snowflake.clock_backward": "stop"/ ],
	[ 'snowflake.max_clock_forward = 59s', qr/FATAL:  59 s is outside the valid range for parameter "snowflake.max_clock_forward"/ ],
	[ "snowflake.synchronous_mark = 'remote'", qr/FATAL:  parameter "snowflake.synchronous_mark" requires a Boolean value/ ],
	[ "snowflake.registry = 'nonsense'", qr/$invalid "snowflake.registry": "nonsense".*missing "=" after "nonsense".*A valid connection string is, for example, /s ],
	[ "snowflake.registry = 'dbname=x'\nsnowflake.worker_id = 0\nsnowflake.scheme = 'timestamp=41,sequence=22'", qr/FATAL:  "snowflake\.registry" requires a scheme with a worker field/ ],
	[ "snowflake.registry = 'dbname=x'\nmax_worker_processes = 0", qr/FATAL:  out of background worker slots for "snowflake\.registry".*HINT:  Increase "max_worker_processes", which is 0\./s ],
	[ "snowflake.server_name = 'd\xc3\xa9j\xc3\xa0'", qr/$invalid "snowflake.server_name".*up to 255 printable ASCII characters/s ],
	[ "snowflake.server_name = '" . ('x' x 256) . "'", qr/$invalid "snowflake.server_name"/ ],
	[ 'snowflake.grant_timeout = -1', qr/FATAL:  -1 ms is outside the valid range for parameter "snowflake.grant_timeout"/ ],
	[ 'snowflake.reserve_time = 61s', qr/FATAL:  61000 ms is outside the valid range for parameter "snowflake.reserve_time"/ ])
{
	my ($conf, $why) = @$case;
	$tried{$_} = 1 foreach $conf =~ /^(snowflake\.\w+)/mg;
	my $name = length($conf) > 70 ? substr($conf, 0, 70) . '...' : $conf;
	$name =~ s/\n/; /g;
	start_fails($node, $conf, $why, "the server does not start with $name");
}

# The same server, with settings that are right
$node->append_conf('postgresql.conf',
	"snowflake.scheme = 'twitter,epoch=2020-01-01'\n"
	  . "snowflake.worker_id = 31\nsnowflake.datacenter_id = 17\n"
	  . 'snowflake.wroker_id = 3');
my $offset = -s $node->logfile;
$node->start;
like(slurp_file($node->logfile, $offset),
	qr/invalid configuration parameter name "snowflake.wroker_id"/,
	'a mistyped setting is reported');
is( sql($node, q{SELECT datacenter_id, worker_id, abs(extract(epoch FROM "timestamp" - now())) < 5
		  FROM snowflake_parse(snowflake_nextval())}),
	'17|31|t', 'IDs have the configured scheme, datacenter ID and worker ID');

is( sql($node, q{SELECT string_agg(name, ' ' ORDER BY name COLLATE "C")
		  FROM pg_settings WHERE name LIKE 'snowflake.%'}), join(' ', sort keys %tried),
	'each setting was tested with a value with which the server does not start');

# Settings that a reload takes, or leaves
reload_with($node, "snowflake.max_lead = '1s'\nsnowflake.max_clock_backward = -1");
becomes_true($node, "SELECT current_setting('snowflake.max_lead') = '1s'",
	'a valid value is reloaded');
is(sql($node, 'SHOW snowflake.max_clock_backward'), '5s', 'an invalid value is not reloaded');
$node->stop;

# The clock and the scheme
$node->append_conf('postgresql.conf',
	"snowflake.max_clock_backward = 5s\nsnowflake.scheme = 'twitter,epoch=2200-01-01'");
$node->start;
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  55000: clock is before the epoch of the snowflake scheme.*DETAIL:  The clock reads .*, and the first ID can be generated at 2(199|200)-/s,
	'calls fail with a clock before the epoch');
$node->stop;
$node->append_conf('postgresql.conf',
	"snowflake.scheme = 'epoch=2020-01-01,timestamp=20,worker=5,datacenter=5,sequence=12'");
$node->start;
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/ERROR:  2200H: timestamp field of the snowflake scheme is exhausted.*DETAIL:  .* ends at 20(19|20)-/s,
	'calls fail with an exhausted timestamp field');
is(sql($node, 'SELECT worker_id FROM snowflake_parse(((1::bigint << 42) - 1))'),
	'31', 'a server with an exhausted timestamp field decodes IDs');
$node->stop;

# Epochs long ago, far from the end of a timestamptz, a sequence of one bit and
# the widest, unused bits, a tick that is no whole number of ms
foreach my $scheme ('epoch=0,timestamp=45,sequence=12', 'epoch=0001-01-01,timestamp=51,sequence=12',
	'epoch=0001-01-01,tick=10s,timestamp=62,sequence=1', 'epoch=1999-12-01,timestamp=32,sequence=31,tick=1s',
	'epoch=0,tick=1s,timestamp=31,sequence=32',
	'tick=1500us,timestamp=41,unused=2,worker=5,unused=3,sequence=10,unused=2')
{
	$node->append_conf('postgresql.conf', "snowflake.scheme = '$scheme'\nsnowflake.max_lead = 10s\nsnowflake.worker_id = 0\nsnowflake.datacenter_id = 0");
	$node->start;
	sql($node, 'SELECT snowflake_set_mark(0, force => true)');
	is( sql($node, q{SELECT abs(extract(epoch FROM "timestamp" - now())) < 11
			  FROM snowflake_parse(snowflake_nextval())}), 't', "IDs are generated by $scheme");
	$node->stop;
}

$node->start;
unlike(slurp_file("/proc/$node->{_pid}/maps"), qr/\bsnowflake_registry_client\.so\b/,
	'a server without a registry does not load the library that calls one');
done_testing();
