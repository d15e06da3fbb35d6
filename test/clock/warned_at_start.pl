# A server whose calls would fail says so when it starts.

use SnowflakeTest;

my $node = new_server('main', 'snowflake.worker_id = 1', 'log_line_prefix = \'\'');
my $offset = 0;

# What the worker that runs at the start logs after a restart with a scheme.
sub start_with ($scheme)
{
	$node->append_conf('postgresql.conf', "snowflake.scheme = '$scheme'");
	$node->stop;
	$offset = -s $node->logfile;
	$node->start;
	$node->wait_for_log(qr/snowflake IDs (continue above|start without) .*\n/, $offset);
	wait_until_true($node, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'snowflake startup'");
	return slurp_file($node->logfile, $offset);
}

# Of the messages, the one that says why no ID can be generated
sub reports ($scheme, $message, $name)
{
	my $log = start_with($scheme);
	like($log, qr/^LOG:  snowflake IDs have scheme "\Q$scheme\E"/m,
		"$name: the scheme is logged");
	like($log,
		qr/^WARNING:  $message\nDETAIL:  .*\nHINT:  .*\nCONTEXT:  while checking at server start whether snowflake IDs can be generated$/m,
		"$name: a warning at server start");
	sql_fails($node, 'SELECT snowflake_nextval()',
		qr/ERROR:  .*: $message/, "$name: calls fail with the same message");
}

my $good = 'epoch=2016-11-01,tick=1ms,timestamp=41,worker=10,sequence=12';
unlike(start_with($good), qr/WARNING/, 'no warning if IDs can be generated');
reports('baidu', 'timestamp field of the snowflake scheme is exhausted',
	'a scheme that has ended');
reports('epoch=2097-01-01,timestamp=41,worker=10,sequence=12',
	'clock is before the epoch of the snowflake scheme',
	'an epoch in the future');

# The default was tried first, and then a scheme with fewer bits.
start_with($good);
sql($node, 'SELECT snowflake_nextval()');
reports('epoch=2016-11-01,tick=1ms,timestamp=41,worker=2,sequence=12',
	'mark of snowflake IDs is too far ahead of the clock',
	'a scheme by which the mark is in the future');
sql_fails($node, 'SELECT snowflake_nextval()',
	qr/HINT:  .* call snowflake_set_mark\(0, force => true\) if no ID of the former scheme is kept anywhere/,
	'the hint names the way out for a scheme that was only tried');
is(sql($node, q{
		SELECT snowflake_set_mark(0, force => true);
		SELECT snowflake_timestamp(snowflake_nextval()) > now() - interval '1 min'}),
	"\nt", 'IDs are generated after the way out of the hint');
is(sql($node, 'SELECT clock_errors FROM snowflake_stat'),
	2, 'a warning at server start counts as no failed call');

done_testing();
