# The registry lost numbers, and is to go on right above those that servers have reported: it does
# if the reports have all, and otherwise refuses.  No number is given out twice.

use SnowflakeTest;

my $registry = new_range_registry('registry', 'postgres', 'wal_level = replica', 'max_wal_senders = 2', 'wal_keep_size = 128MB');
sql($registry, "SELECT snowflake_registry.alter_ranges(grant_time => '1 s')");
my $a = new_server('a', registry_conf($registry), "snowflake.server_name = 'a'");
my $b = new_server('b', registry_conf($registry), "snowflake.server_name = 'b'");
my $insert = 'INSERT INTO t SELECT FROM generate_series(1, 10000) RETURNING id';
my $alone = "SELECT 'alone ' || nextval('alone') FROM generate_series(1, 10000)";
my %seen;

# Numbers are noted; returns how many were there before.
sub note_numbers { return scalar grep { $seen{$_}++ } split /\n/, $_[0]; }

# The same of numbers that a server gets, soon: a refusal of the registry is believed for a second,
# and a sequence in use makes room for another one a second after it was used.
sub take ($node, $sql)
{
	my $out;

	wait_until('numbers', sub { return $node->psql('postgres', $sql, stdout => \$out, on_error_stop => 1) == 0; });
	return note_numbers($out);
}

sub asked { return sql($registry, $_[0]); }
sub resume { return sql_error($registry, "SELECT FROM snowflake_registry.resume_ranges($_[0])"); }

sub wait_for_reports ($names)
{
	$registry->poll_query_until('postgres', q{
		SELECT string_agg(DISTINCT c.server_name, ',' ORDER BY c.server_name)
		FROM snowflake_registry.range_clients c JOIN snowflake_registry.range_state s ON c.reported = s.incarnation}, $names)
	  or die "no reports of $names alone";
	return;
}

# Stop the registry: servers hear of it as soon as they need numbers.
sub stop ($sql)
{
	asked("SELECT snowflake_registry.stop_ranges('a test')");
	$_->psql('postgres', $sql) foreach $a, $b;
	wait_for_reports('a,b');
	return;
}

# Servers reach another node as the registry, at the port of the former one.
sub replace_registry ($node)
{
	$node->{_port} = $registry->port;
	$node->append_conf('postgresql.conf', 'port = ' . $registry->port);
	$registry->stop('immediate');
	$registry = $node;
	$registry->start;
	return;
}

# Put a backup of it back, and stop the registry before a server reaches it, as users are told to.
sub put_back ($backup)
{
	my $node = server_of_backup("restored_$backup", $registry, $backup);

	sql($node, "SELECT snowflake_registry.stop_ranges('files were put back')");
	$node->stop;
	replace_registry($node);
	return;
}

# A standby that has nothing of what follows.
sub stopped_standby ($name)
{
	my $standby = new_standby($registry, $name);

	$registry->wait_for_catchup($standby);
	$standby->stop;
	return $standby;
}

foreach my $node ($a, $b)
{
	sql($node, q{CREATE TABLE t (id serial PRIMARY KEY); CREATE SEQUENCE alone AS integer;
		CREATE TABLE u (id serial PRIMARY KEY)});
	is(take($node, "SELECT snowflake_set_sequence_kind('$_', 'range') \\g /dev/null\nSELECT '$_ ' || nextval('$_')"), 0, $node->name . " gets a number of $_")
	  foreach 't_id_seq', 'alone';
}

# The files have reports, also of a sequence that no column uses, from before the registry was
# resumed: all of then.  What b is granted later, it does not know anymore.
stop($alone);
$registry->backup('reported');
is(resume('0, 2'), '', 'with reports of all servers, the registry goes on');
is(take($b, $alone), 0, 'b gets numbers of a sequence without a column');

# Nor what it was granted for rows that nobody sees yet, after another sequence took the room.
restart_with($b, 'snowflake.max_range_sequences = 1');
take($b, 'INSERT INTO t DEFAULT VALUES RETURNING id');
my $session = $b->background_psql('postgres');
$session->query_safe('BEGIN');
is(note_numbers($session->query_safe($insert)), 0, '... and for rows that it does not commit');
take($b, q{SELECT snowflake_set_sequence_kind('u_id_seq', 'range') \g /dev/null
	INSERT INTO u DEFAULT VALUES});
put_back('reported');
wait_for_reports('a,b');
my $error = resume('0, 2');
my $unknown = qr/ERROR:  55000: numbers might be granted twice if none are skipped\nDETAIL:  .*It is not known what these sequences were granted, /;
like($error, qr/$unknown.*\bpublic\.alone \(postgres\) of server b\b/, 'what was reported before the registry was resumed is not all');
like($error, qr/$unknown.*\bpublic\.t_id_seq \(postgres\) of server b\b/, '... nor are rows, while a transaction is open');
$session->query_safe('COMMIT');
$session->quit;
is(resume(100000), '', 'numbers are skipped');
is(take($a, $_), 0, '... and none is given out twice') foreach $alone, $insert;

# The registry loses the first of two pages of a report.
restart_with($b, 'snowflake.max_range_sequences = 1000');
sql($_, q{
	DROP SEQUENCE alone;
	DO $$ BEGIN FOR i IN 1 .. 110 LOOP EXECUTE format('CREATE SEQUENCE m%s AS integer', i); END LOOP; END $$;
	SELECT snowflake_set_sequence_kinds(array_agg(oid::regclass), 'range') FROM pg_class WHERE relname ~ '^m[0-9]'}) foreach $a, $b;
my $many = "SELECT relname || ' ' || nextval(oid) FROM pg_class, generate_series(1, 300) WHERE relname ~ '^m[0-9]'";
is(take($_, $many), 0, $_->name . ' gets numbers of many sequences') foreach $a, $b;
$registry->backup('many');
is(take($b, $many), 0, 'b gets more');
asked(q{
	ALTER FUNCTION snowflake_registry.note_evidence RENAME TO note_page;
	CREATE FUNCTION snowflake_registry.note_evidence(uuid, text, text[], text[], bigint[], bigint[], boolean[])
	RETURNS void LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM snowflake_registry.range_evidence e WHERE e.server_name = 'b') AND $2 = 'b' THEN
			RAISE 'a test';
		END IF;
		PERFORM snowflake_registry.note_page($1, $2, $3, $4, $5, $6, $7);
	END $$;
	SELECT snowflake_registry.stop_ranges('a test')});
wait_until_true($registry, "SELECT count(*) = 100 FROM snowflake_registry.range_evidence WHERE server_name = 'b'");
put_back('many');
wait_for_reports('a,b');
is(asked("SELECT count(*) >= 110 FROM snowflake_registry.range_evidence WHERE server_name = 'b'"), 't', 'a report of which the registry lost a page is made again');
is(resume('0, 2'), '', '... and with it, the registry goes on');
is(take(@$_), 0, '... no number is given out twice') foreach [ $a, $many ], [ $a, $insert ], [ $b, $insert ];

# The registry is promoted while it is stopped: the standby has reports, and lacks what was granted
# when it had been resumed.
stop($insert);
my $standby = stopped_standby('standby_with_reports');
is(resume('0, 2'), '', 'the registry is resumed');
is(take($b, $insert), 0, 'b gets numbers that the standby does not have');
$b->stop('immediate');
replace_registry($standby);
$registry->promote;
wait_for_reports('a');
like(resume('0, 2'), qr/ERROR:  55000: numbers might be granted twice .*\nDETAIL:  Servers that have reported all that they know: a\. Servers that have not: b /, 'a registry that was promoted while it was stopped wants new reports');

# Another standby is promoted, and no server has called since then.
$b->start;
wait_for_reports('a,b');
is(resume('1'), '', 'the registry is resumed');
take($a, $insert);
$standby = stopped_standby('standby');
is(take($b, $insert), 0, 'b gets numbers that the next standby does not have');
$_->stop foreach $a, $b;
replace_registry($standby);
$registry->promote;
like(resume('0, 2'), qr/ERROR:  55000: numbers might be granted twice .*\nDETAIL:  Servers that have reported all that they know: none\. Servers that have not: /, 'a registry that was promoted wants reports before a server has called');
$_->start foreach $a, $b;
wait_for_reports('a,b');
is(resume('1'), '', '... goes on with them');
is(take($a, $insert), 0, '... and no number is given out twice');

done_testing();
