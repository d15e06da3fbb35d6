# Ranges do not go by the server's clock: whatever it is set to while the registry grants
# nothing, the server asks again, and calls fail in time.

use SnowflakeTest;

use constant DAY => 86400;

my $registry = new_range_registry('registry', 'postgres');
my $server = new_server_with_clock('server', registry_conf($registry), "snowflake.grant_timeout = '2s'");
sql($server, q{
	CREATE SEQUENCE s;
	SELECT snowflake_set_sequence_kind('s', 'range')});

# More numbers than there are in any range
my $many = q{SELECT count(nextval('s')) FROM generate_series(1, 1000000)};

# The registry refuses when the clock is a day ahead, and then it is right.
set_clock($server, DAY);
sql($server, q{SELECT nextval('s')});
sql($registry, q{SELECT snowflake_registry.stop_ranges('a test')});
sql_fails($server, $many, qr/ERROR:  55000: the registry refuses numbers of sequence "s"/, 'the registry refuses');
set_clock($server, 0);
sql($registry, 'SELECT snowflake_registry.resume_ranges(1)');
becomes_true($server, q{SELECT count(nextval('s')) = 1000 FROM generate_series(1, 1000)},
	'after a refusal, and the clock set back by a day, the server asks again');

# The clock is set back while a call waits, for long enough to be seen.
change_setting($server, 'snowflake.grant_timeout', '10s');
$registry->stop;
my $offset = -s $server->logfile;
my $start = time;
my ($waiting) = start_queries($server, $many);
becomes_true($server, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND wait_event = } . wait_event($server, 'SnowflakeRange')
	  . q{ AND backend_type = 'client backend'}, 'a call waits for a range');
set_clock($server, -DAY);
ok(!$waiting->{run}->finish, 'the call fails');
like($waiting->{err}, qr/ERROR:  no number of sequence "s" is granted to this server/, 'and says that there is no number');
cmp_ok(time - $start, '<', 60, 'in time, although the clock was set back by a day');

done_testing();
