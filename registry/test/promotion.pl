# Two standbys of a registry are promoted to the same timeline.  No two of them
# grant the same worker IDs: without a common archive and synchronous standbys,
# neither grants any until an administrator confirms the promotion.

use SnowflakeTest;

my $grant = q{SELECT worker_id FROM snowflake_registry.get_grant('twitter', 0, NULL,
	snowflake_registry.lower_bound(clock_timestamp(), 'twitter'), '{}', gen_random_uuid(), 'test')};
my $create = q{SELECT snowflake_registry.create(1, 31, 'twitter', new => true)};
my $warning = qr/WARNING:  01000: if a standby of this server is promoted, the registry will not grant worker IDs until snowflake_registry\.confirm_promotion\(\) is called/;

# The worker ID that a registry grants; waits for it, because the archiver may need
# a moment.
sub granted ($node)
{
	my $start = time;

	while (time - $start < $PostgreSQL::Test::Utils::timeout_default)
	{
		my ($out, $err);
		$node->psql('postgres', $grant, stdout => \$out, stderr => \$err, on_error_stop => 0);
		return $out if $out =~ /^\d+$/;
		die $err if $err !~ /has not been archived yet|have no WAL of this timeline yet|^$/;
		usleep(100_000);
	}
	die 'no worker ID is granted';
}

sub timeline ($node)
{
	return sql($node, 'SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)') + 0;
}

# A primary that is a registry, and two standbys that have the same WAL.  Then the
# primary is stopped.  If it archives, it switches its segment then, and would remove
# the old one before a slow walsender has sent its end.
sub orphans ($name, @conf)
{
	my $primary = plain_server("${name}_a", { allows_streaming => 1 }, @conf);

	sql($primary, 'CREATE EXTENSION snowflake_registry');
	my $error = sql_error($primary, $create);
	$primary->backup('backup');
	reload_with($primary, 'wal_keep_size = 1GB');
	my @standbys =
	  map { server_of_backup("${name}_$_", $primary, 'backup', { has_streaming => 1 }) } 'b', 'c';
	like(granted($primary), qr/^\d+$/, "$name: the primary grants worker IDs");
	$primary->wait_for_catchup($_) foreach @standbys;
	$primary->stop;
	return ($error, @standbys);
}

#
# Neither an archive nor synchronous standbys
#
my ($error, $b, $c) = orphans('alone');
like($error, $warning, 'create() warns that a promotion must be confirmed');
$_->promote foreach $b, $c;
is(timeline($b) . timeline($c), '22', 'both standbys are promoted to timeline 2');
foreach my $node ($b, $c)
{
	sql_fails($node, $grant,
		qr/ERROR:  55000: the registry does not grant worker IDs since its server was promoted to timeline 2\n.*DETAIL:  Another standby might have been promoted to this timeline, too, .* Neither a common archive .*"restore_command", "archive_mode", and "archive_command".* nor "synchronous_standby_names" .*\n.*HINT:  If no other standby was promoted, call snowflake_registry\.confirm_promotion\(\), before you change "archive_command"/,
		$node->name . ' grants nothing');
}
is(sql($b, q{SELECT snowflake_registry.confirm_promotion('twitter')}),
	't', 'the promotion of one is confirmed');
like(granted($b), qr/^\d+$/, 'a standby whose promotion is confirmed grants worker IDs');
sql_fails($c, $grant, qr/ERROR:  55000: /, 'the other one still grants nothing');

# Archiving is switched on as the hint says, but after the promotion, too late for the
# history of the timeline.
my $late = PostgreSQL::Test::Utils::tempdir;
restart_with($c, "archive_mode = on\narchive_command = 'cp %p $late/%f'\nrestore_command = 'cp $late/%f %p'");
my $segment = 'SELECT pg_walfile_name(pg_current_wal_insert_lsn())';
my $begun = sql($c, $segment);
foreach (1 .. 3)
{
	sql($c, 'CREATE TABLE IF NOT EXISTS wal (); DROP TABLE wal');
	sql_fails($c, $grant,
		qr/ERROR:  55000: the registry does not grant worker IDs since its server was promoted to timeline 2\n.*DETAIL:  .* This timeline cannot be archived anymore, because archiving was off when the server was promoted\.\n.*HINT:  If no other standby was promoted, call snowflake_registry\.confirm_promotion\(\)/,
		'an archive set up after the promotion does not help, and the error says so');
}
is(sql($c, $segment), $begun, 'calls that cannot succeed begin no segments');
is(sql($c, 'SELECT snowflake_registry.confirm_promotion()'), 't', 'a promotion that cannot be archived is confirmed');
like(granted($c), qr/^\d+$/, 'it grants worker IDs when that is confirmed');
$c->stop;

# A synchronous standby confirms the next grant.
my $d = new_standby($b, 'alone_d');
$b->wait_for_catchup($d);
my $e = PostgreSQL::Test::Cluster->new('alone_e');
$e->init_from_backup($b, 'alone_d');
$e->enable_streaming($d);
$e->start;
$b->stop;
reload_with($d, "synchronous_standby_names = 'alone_e'");
$d->promote;
is(timeline($d), 3, 'its standby is promoted to timeline 3');

# It confirms WAL of the new timeline, but when the registry is called, none is named
# any more.
sub name_standby { return change_setting($_[0], 'synchronous_standby_names', $_[1]); }
sql($d, 'CREATE TABLE t ()');
becomes_true($d, 'SELECT snowflake_registry.timeline_is_confirmed()',
	'a synchronous standby has WAL of the new timeline');
name_standby($d, '');
sql_fails($d, $grant, qr/ERROR:  55000: .* Neither a common archive /s,
	'it grants nothing when that standby is not named any more');
name_standby($d, 'alone_e');
like(granted($d), qr/^\d+$/, 'with a synchronous standby, it grants worker IDs');
unlike(sql_error($d, "SELECT snowflake_registry.drop('twitter'); $create"),
	qr/WARNING/, 'create() does not warn with synchronous standbys');
$_->stop foreach $e, $b, $d;

# A standby is named that is not there, on two that are promoted to one timeline; then
# none is named.  A call that waited for its commit would be answered by both.
($error, $b, $c) = orphans('cleared');
foreach my $node ($b, $c)
{
	reload_with($node, "synchronous_standby_names = 'nobody'");
	$node->promote;
	sql_fails($node, "SET statement_timeout = '10 s'; $grant",
		qr/ERROR:  55000: the registry does not grant worker IDs since its server was promoted to timeline 2\n.*DETAIL:  .* Its synchronous standbys have no WAL of this timeline yet\. The registry continues when they have\.\n/,
		$node->name . ' grants nothing before a synchronous standby has its WAL');
	name_standby($node, '');
	sql_fails($node, $grant, qr/ERROR:  55000: .* Neither a common archive /s,
		$node->name . ' grants nothing when no standby is named any more');
}
$_->stop foreach $b, $c;

#
# A synchronous standby that is ahead on the previous timeline cannot follow the new
# one.  It tries again and again, and each time reports a position above its start.
#
my $old = plain_server('ahead_a', { allows_streaming => 'logical' });
sql($old, "CREATE EXTENSION snowflake_registry; $create");
$old->backup('backup');
my ($ahead, $behind) =
  map { server_of_backup($_, $old, 'backup', { has_streaming => 1 }) } 'ahead', 'behind';
$old->wait_for_catchup($_) foreach $ahead, $behind;
$behind->stop;
sql($old, 'CREATE TABLE t AS SELECT * FROM generate_series(1, 100000)');
$old->wait_for_catchup($ahead);
$old->stop('immediate');
$behind->append_conf('postgresql.conf', "synchronous_standby_names = 'ahead'");
$behind->start;
$behind->promote;
$ahead->append_conf('postgresql.conf', "wal_retrieve_retry_interval = '100 ms'\nwal_receiver_status_interval = '1 s'");
$ahead->enable_streaming($behind);
$ahead->reload;

# Whether the position counts depends on the moment at which it arrives.
wait_until(
	'50 attempts to follow the new timeline',
	sub {
		my $attempts = () = slurp_file($ahead->logfile) =~ /new timeline 2 forked off/g;

		return $attempts >= 50;
	});
sql_fails($behind, $grant, qr/ERROR:  55000: .* have no WAL of this timeline yet/s,
	'a standby that is ahead on another timeline does not confirm a promotion');

# Nor does a subscription, which could follow another server that is promoted.
$ahead->stop;
my $subscriber = plain_server('subscriber');
sql($behind, q{SET synchronous_commit = local; CREATE PUBLICATION p;
	SELECT pg_create_logical_replication_slot('ahead', 'pgoutput')});
my $address = 'host=' . $behind->host . ' port=' . $behind->port . ' application_name=ahead';
sql($subscriber, qq{CREATE SUBSCRIPTION s CONNECTION '$address dbname=postgres'
	PUBLICATION p WITH (create_slot = false, slot_name = ahead)});
sql($behind, 'CREATE TABLE confirmed ()');
sql_fails($behind, $grant, qr/ERROR:  55000: .* have no WAL of this timeline yet/s,
	'a subscription does not confirm a promotion');
$_->stop('immediate') foreach $subscriber, $behind;

# Nor does pg_receivewal: it begins its last segment anew, and so follows one server and
# then another one, promoted to the same timeline.
($error, $b, $c) = orphans('received');
my $received = PostgreSQL::Test::Utils::tempdir;
foreach my $node ($b, $c)
{
	my $output;

	reload_with($node, "synchronous_standby_names = 'barman'");
	$node->promote;
	my $receiver = IPC::Run::start(
		[ 'pg_receivewal', '--synchronous', '-D', $received, '-d', $node->connstr . ' application_name=barman' ],
		'>', \$output, '2>', \$output);
	sql($node, 'SET synchronous_commit = local; CREATE TABLE wal ()');
	my $lsn = sql($node, 'SELECT pg_current_wal_flush_lsn()');
	becomes_true($node, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND flush_lsn >= '$lsn'",
		$node->name . ': pg_receivewal is synchronous, and has WAL of the new timeline');
	sql($node, 'CREATE TABLE committed ()');
	is(timeline($node), 2, $node->name . ' is on timeline 2');
	sql_fails($node, "SET statement_timeout = '10 s'; $grant", qr/ERROR:  55000: .* have no WAL of this timeline yet/s,
		$node->name . ': pg_receivewal does not confirm a promotion');
	$receiver->signal('TERM');
	$receiver->finish;
}
$_->stop('immediate') foreach $b, $c;

#
# A common archive, of a command that accepts a file with the same contents, as
# PostgreSQL demands
#
sub archiving
{
	my $archive = PostgreSQL::Test::Utils::tempdir;

	return ('archive_mode = on',
		"archive_command = 'test ! -f $archive/%f && cp %p $archive/%f || cmp -s %p $archive/%f'",
		"restore_command = 'cp $archive/%f %p'");
}
($error, $b, $c) = orphans('archive', archiving());
unlike($error, $warning, 'create() does not warn with an archive');
$b->promote;
my $first = granted($b);
is(timeline($b), 2, 'a standby is promoted to timeline 2, and grants worker IDs');
$c->promote;
my $second = granted($c);
is(timeline($c), 3, 'another one is promoted to timeline 3, and grants worker IDs');
is(($second - $first) % 4, 1, 'the two promoted standbys grant different slices');
$_->stop foreach $b, $c;

# Two are promoted at the same time, and neither finds the other's timeline in the
# archive.  Their history files have the same contents, because both have the same
# WAL.
($error, $b, $c) = orphans('race', archiving());
reload_with($c, "restore_command = 'false'");
$b->promote;
$c->promote;
is(timeline($b) . timeline($c), '22', 'both standbys are promoted to timeline 2');
like(granted($b), qr/^\d+$/, 'one of them archives its timeline, and grants worker IDs');
my $history = 'pg_wal/00000002.history';
is(slurp_file($c->data_dir . "/$history"), slurp_file($b->data_dir . "/$history"),
	'the history of both timelines is the same');
becomes_true($c, q{SELECT count(*) = 1 FROM pg_ls_archive_statusdir() WHERE name = '00000002.history.done'},
	'the other standby archives its history, too');
my $refused = qr/ERROR:  55000: the registry does not grant worker IDs since its server was promoted to timeline 2\n.*DETAIL:  .* This timeline has not been archived yet\. The registry continues when it is\.\n/;
sql_fails($c, $grant, $refused, 'a standby whose first segment is not archived grants nothing');
becomes_true($c, 'SELECT failed_count > 0 FROM pg_stat_archiver',
	'the WAL of the other standby cannot be archived');
sql_fails($c, $grant, $refused, 'a standby whose WAL cannot be archived never grants anything');

# A standby of it cannot take the place of the archive.
my $of_c = new_standby($c, 'archive_e');
reload_with($c, "synchronous_standby_names = 'archive_e'");
sql($c, 'SET synchronous_commit = local; CREATE TABLE wal ()');
becomes_true($c, 'SELECT snowflake_registry.timeline_is_confirmed()',
	'a synchronous standby has its WAL');
sql_fails($c, $grant, $refused, 'it grants nothing nevertheless');
$of_c->stop;
reload_with($c, "synchronous_standby_names = ''");
my $ready = q{SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name ~ '^00000002[0-9A-F]{16}[.]ready$'};
my $before = sql($c, $ready);
sql_error($c, $grant) foreach 1 .. 3;
is(sql($c, $ready), $before, 'calls that are refused write no more WAL');
$_->stop foreach $b, $c;

# What tells that WAL of the timeline was archived is removed with it, but that of a base
# backup stays, before a server asks for a worker ID.
($error, $b, $c) = orphans('forgotten', archiving());
$b->promote;
$b->backup('new');
$b->restart;
my $status = q{SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name ~ '^00000002[0-9A-F]{16}};
wait_until(
	'the end of all marks of archived segments',
	sub {
		sql($b, 'CHECKPOINT');
		return sql($b, "$status\[.](ready|done)\$'") == 0;
	});
is(sql($b, "$status'") . sql($b, "$status\[.](ready|done)\$'"),
	'10', 'a base backup is all that is known to be archived');
like(granted($b), qr/^\d+$/, 'the registry has WAL archived once more, and grants worker IDs');
$_->stop foreach $b, $c;

# Archiving was switched off by a command that does nothing, as the manual of PostgreSQL
# suggests, and what it did not archive is marked as archived.
($error, $b, $c) = orphans('switched_off', archiving());
foreach my $node ($b, $c)
{
	reload_with($node, "archive_command = '/bin/true'");
	$node->promote;
	sql($node, 'CREATE TABLE wal (); SELECT pg_switch_wal()');
	becomes_true($node, q{SELECT count(*) = 2 FROM pg_ls_archive_statusdir() WHERE name ~ '^00000002([.]history|0{14}[0-9A-F]{2})[.]done$'},
		$node->name . ': the timeline is marked as archived');
	is(timeline($node), 2, $node->name . ' is promoted to timeline 2');
	sql_fails($node, $grant,
		qr/ERROR:  55000: .*DETAIL:  .* The "archive_command" of this server does not archive\.\n.*HINT:  If no other standby was promoted, call snowflake_registry\.confirm_promotion\(\), before you change "archive_command"/s,
		$node->name . ' grants nothing, because it does not archive');
}
sql_fails($b, "SELECT snowflake_registry.drop('twitter'); $create", $warning,
	'create() warns if archive_command does not archive');
foreach my $case (
	[ 'true', '', 'f' ], [ ' /bin/true ', '', 'f' ], [ '/usr/bin/true', '', 'f' ], [ ':', '', 'f' ], [ 'exit 0;', '', 'f' ],
	[ '/bin/true %p', '', 'f' ], [ '"/bin/true" "%p" "%f" # off', '', 'f' ],
	[ '', '', 't' ], [ 'true && cp %p /archive/%f', '', 't' ], [ 'true', 'basic_archive', 't' ])
{
	my ($command, $library, $is) = @$case;

	reload_with($b, "archive_command = '$command'\narchive_library = '$library'");
	$b->poll_query_until('postgres',
		"SELECT current_setting('archive_command') = '$command' AND current_setting('archive_library') = '$library'");
	is(sql($b, 'SELECT archives FROM snowflake_registry.safeguards()'),
		$is, "archive_command '$command', archive_library '$library': is there an archive?");
}
$_->stop('immediate') foreach $b, $c;

# A server that cannot have standbys
my $single = plain_server('single');
sql($single, 'CREATE EXTENSION snowflake_registry');
is(sql_error($single, $create), '', 'create() does not warn where there are no standbys');

# One whose standbys get WAL only from files, so none can be synchronous
restart_with($single, "wal_level = replica\nmax_wal_senders = 0\nsynchronous_standby_names = 'nobody'");
sql_fails($single, "SELECT snowflake_registry.drop('twitter'); $create", $warning,
	'create() warns if a synchronous standby is named that cannot connect');
done_testing();
