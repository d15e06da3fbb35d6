# A backend crashes, and the server keeps its grant: with its beginning, not only
# with its end.

use SnowflakeTest;

plan skip_all => 'a server whose processes inherit nothing keeps no grant'
  unless inherits();

# How far the second server's clock is behind, in seconds: far enough that the
# first server generated all its IDs at a later time.
use constant BEHIND => 60;

my $registry = new_registry('registry',
	"1, 1, grant_time => '2 min', reach => '10 min', failovers => 0, new => true");
my $conf = registry_conf($registry);

# One server generates IDs with the only worker ID, and returns it.
my $first = new_server('first', $conf);
my $last_id = sql($first, 'SELECT max(snowflake_nextval()) FROM generate_series(1, 20000)');
$first->stop;

# Another one is granted the worker ID, for later IDs.
my $second = new_server_with_clock('second', $conf, 'restart_after_crash = on');
wait_until_true($second, 'SELECT worker_id = 1 FROM snowflake_stat');

# Before it generates its first ID, its clock is set back and a process crashes.
is(sql($second, 'SELECT ids FROM snowflake_stat'), 0, 'the second server has generated no ID');
set_clock($second, -BEHIND());
crash_process($second, server_process($second, 'walwriter'));

my $next_id = sql($second, 'SELECT snowflake_nextval()');
is(sql($second, "SELECT worker_id FROM snowflake_parse($next_id)"),
	1, 'after the crash, the second server still has the worker ID');
cmp_ok($next_id, '>', $last_id,
	'the first ID after the crash is above those of the server that had the worker ID before');
is(sql($second, "SELECT bool_and(snowflake_nextval() > $last_id) FROM generate_series(1, 20000)"),
	't', 'later IDs are above those of the server that had the worker ID before');

done_testing();
