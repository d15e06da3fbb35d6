# The clock is behind the last ID, and IDs continue: at once, increasing, at the pace
# of real time, so that their lead does not grow, and decreases.

use SnowflakeTest;

my $node = new_server_with_clock('main', 'max_connections = 50');
sql($node, 'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
my $ledger = new_ledger();
my $warning = qr/WARNING:  snowflake IDs are \d+ ms ahead of the clock/;

# How far the last ID is ahead of the server's clock, in seconds
sub lead { return sql($node, 'SELECT lead_ms / 1000 FROM snowflake_stat'); }

# IDs for so many seconds, as many as there are; returns how many.
sub use_all_for ($seconds)
{
	my $before = sql($node, 'SELECT ids FROM snowflake_stat');

	sql($node, qq{
		DO \$\$
		DECLARE
			-- not of the wall clock, which the test sets
			till float8 := (SELECT sum(v::float8) FROM
				regexp_split_to_table(split_part(pg_read_file('/proc/uptime'), ' ', 1), 'x') v) + $seconds;
		BEGIN
			WHILE split_part(pg_read_file('/proc/uptime'), ' ', 1)::float8 < till LOOP
				PERFORM count(*) FROM snowflake_nextval(4096);
			END LOOP;
		END \$\$});
	return sql($node, 'SELECT ids FROM snowflake_stat') - $before;
}

# An hour back under load: nobody waits, nothing is repeated.
my @clients = start_clients($node, 8);
wait_for_clients(@clients);
my $id = first_id($ledger, $node);
my $offset = -s $node->logfile;
set_clock($node, -3600);
my $start = time;
my $next = first_id($ledger, $node);
cmp_ok(time - $start, '<', 20, 'IDs continue at once when the clock goes back by an hour');
cmp_ok($next, '>', $id, 'IDs increase when the clock goes back by an hour');
$node->wait_for_log($warning, $offset);
like(slurp_file($node->logfile, $offset),
	qr/DETAIL:  The timestamp of the last ID is \d{4}-.*, and the clock reads \d{4}-.*\n.*HINT:  IDs continue at the pace of real time/,
	'the warning of a step back has both times, and what happens');
my $lead = lead();
cmp_ok($lead, '>', 3590, "IDs are ahead of the clock by the hour ($lead s)");

# At full load they use every tick, but none before its time.
my $ids = use_all_for(2);
cmp_ok($ids, '<=', 2.2 * 4_096_000, "with a lead, no more IDs are generated than the scheme allows ($ids in 2 s)");
cmp_ok(lead(), '<=', $lead + 0.05, 'the lead does not grow under full load');
my @warnings = slurp_file($node->logfile, $offset) =~ /$warning/g;
is(scalar(@warnings), 1, 'the warning of a step back is logged once');

$offset = -s $node->logfile;
set_clock($node, -7200);
first_id($ledger, $node);
$node->wait_for_log($warning, $offset);
cmp_ok(lead(), '>', 7190, 'another step back by an hour is logged');
is(sql($node, 'SELECT clock_steps, clock_errors, clock_waits, max_backward_ms BETWEEN 7190000 AND 7210000 FROM snowflake_stat'),
	'2|0|0|t', 'both steps back are counted, and no call failed or waited');

end_clients($node);
note_ids($ledger, finish_clients(@clients));
is(verdict($ledger), '0 duplicates, 0 falls', "no duplicates among $ledger->{ids} IDs");

# Few IDs: the tick stays while the clock continues, so the lead melts.  It did so
# since the clients ended, too.
set_clock($node, 0);
first_id($ledger, $node);
set_clock($node, -5);
first_id($ledger, $node);
$lead = lead();
usleep(2_000_000);
first_id($ledger, $node);
cmp_ok(lead(), '<', $lead - 1.5, 'the lead decreases under light load');
set_clock($node, 0);
first_id($ledger, $node);
cmp_ok(lead(), '<', 0.1, 'the lead is gone when the clock is correct');

# A lead that max_lead allowed once is no reason to fail.  The sequence is one
# that any machine exhausts.
$node->append_conf('postgresql.conf',
	"snowflake.max_lead = 1h\nsnowflake.scheme = 'timestamp=41,worker=15,sequence=7'");
$node->stop;
start_with_clock($node);
my $reserves = sql($node, 'SELECT reserves FROM snowflake_stat');
$start = time;
my $tries = 0;
do
{
	use_all_for(2);
} until lead() > 0.5 || ++$tries == 10;
cmp_ok(lead(), '>', 0.5, 'under max_lead IDs run ahead, by ' . lead() . ' s');
$reserves = sql($node, 'SELECT reserves FROM snowflake_stat') - $reserves;
cmp_ok($reserves, '<=', 2 * (time - $start) + 3,
	"IDs that run ahead need at most two flushes per reserve_time ($reserves)");
change_setting($node, 'snowflake.max_lead', '0');
my $waits = sql($node, 'SELECT clock_waits FROM snowflake_stat');
$id = first_id($ledger, $node);
cmp_ok(first_id($ledger, $node), '>', $id, 'IDs increase after max_lead was lowered');
is(sql($node, 'SELECT clock_waits FROM snowflake_stat'),
	$waits, 'no call waits for the clock after max_lead was lowered');

# A restart with a lead: what was reserved is waited for, so that restarts do not
# add up: the times in the IDs continue no faster than time does.
set_clock($node, -600);
$id = first_id($ledger, $node);
my ($first_at, $first_made);
foreach my $i (1 .. 5)
{
	$node->stop('immediate');
	start_with_clock($node);
	$start = time;
	$next = first_id($ledger, $node);
	cmp_ok($next, '>', $id, "crash $i with a lead: IDs increase");
	cmp_ok(time - $start, '<', 20, 'the first ID after a crash with a lead waits for the reserve at most');
	$id = $next;
	my $made = sql($node, "SELECT extract(epoch FROM snowflake_timestamp($id))");
	($first_at, $first_made) = (time, $made) if $i == 1;
	my $passed = time - $first_at;
	cmp_ok($made - $first_made, '<=', $passed + 1,
		'and times in IDs went on by ' . ($made - $first_made) . " s in $passed s")
	  if $i == 5;
}

# A clock that lost its battery: long before the epoch.
set_clock($node, -1_700_000_000);
cmp_ok(sql($node, 'SELECT snowflake_nextval()'),
	'>', $id, 'IDs continue with a clock of the 1970s');
$node->stop;
start_with_clock($node);
cmp_ok(sql($node, 'SELECT snowflake_nextval()'),
	'>', $id, 'IDs continue after a start with a clock of the 1970s');
done_testing();
