# Calls for ranges of sequences: how many there are, that none holds up others, and what else happens
# to a sequence while one is on its way.

use Proxy;
use SnowflakeTest;

my $registry = new_range_registry('registry', 'postgres');

sub asked { return sql($registry, $_[0]); }

# Sequences s1, s2 and so on of kind range.
sub create_sequences ($server, $n)
{
	sql($server, join('', map { "CREATE SEQUENCE s$_ AS integer; SELECT snowflake_set_sequence_kind('s$_', 'range');" } 1 .. $n));
	return;
}

# Many sequences whose ranges are exhausted about the same time: one call has all of them.
my $server = new_server_with_clock('server', registry_conf($registry), "snowflake.server_name = 'server'");
my $n = 20;
my $take = join(';', map { "SELECT count(nextval('s$_')) FROM generate_series(1, 100)" } 1 .. $n);
my $in_reserve = 'SELECT count(*) FROM snowflake_registry.held_ranges WHERE latest_last >= %d';
my $calls = "SELECT calls FROM snowflake_registry.range_clients WHERE server_name = 'server'";

sub has_reserves ($last)
{
	$registry->poll_query_until('postgres', sprintf($in_reserve, $last), $n) or die 'no reserves';
	return;
}

create_sequences($server, $n);
sql($server, $take);
has_reserves(200);
my $before = asked($calls);

# The first ranges have lasted for long.
pass_time($server, 50);
sql($server, join(';', map { "SELECT nextval('s$_')" } 1 .. $n));
pass_time($server, 6);
has_reserves(300);
is(asked($calls), $before + 1, 'one call asks for the reserves of all sequences');

# ... and one that is exhausted early does not wait for others; its call has them, too.
pass_time($server, 50);
sql($server, $take);
$before = asked($calls);
is(sql($server, "SELECT count(nextval('s7')) FROM generate_series(1, 150)"), 150, 'who needs numbers waits for no other sequence');
has_reserves(400);
cmp_ok(asked($calls), '<', $before + $n / 2, 'a call that is made for one has what others could wait for');

# A registry that was told of floors is not told them with each call, unless it forgot the name.
asked(q{DELETE FROM snowflake_registry.range_sequences WHERE name = 'public.s7'});
my ($status, $number);
wait_until('numbers of a sequence that the registry forgot',
	sub { ($status, $number) = $server->psql('postgres', "SELECT max(nextval('s7')) FROM generate_series(1, 400)"); return $status == 0 && $number > 1000; });
is(asked(q{SELECT next > 1000 FROM snowflake_registry.sequences WHERE name = 'public.s7'}), 't', 'a sequence that the registry forgot is added again, above its numbers');
$server->stop;

# A sequence that somebody has locked at the registry holds up no other.
$server = new_server('other', registry_conf($registry), "snowflake.server_name = 'other'", "snowflake.grant_timeout = '1 min'");
create_sequences($server, 3);
sql($server, "SELECT nextval('s1'), nextval('s2')");
my $admin = $registry->background_psql('postgres');
$admin->query_safe(q{BEGIN; SELECT FROM snowflake_registry.range_sequences WHERE name = 'public.s1' FOR UPDATE});
my ($waiting) = start_queries($server, "SELECT count(nextval('s1')) FROM generate_series(1, 500)");
$server->wait_for_log(qr/WARNING:  the registry grants no numbers for sequence public\.s1 in .*\n.*DETAIL:  Another transaction at the registry has locked /) or die 'not busy';
is(sql($server, "SELECT count(nextval('s2')) FROM generate_series(1, 5000)"), 5000, 'a sequence that is locked at the registry holds up no other');
sql_fails($server, "SET statement_timeout = '300 ms'; SELECT count(nextval('s1')) FROM generate_series(1, 500)", qr/57014/, 'who needs its numbers waits');
change_setting($server, 'snowflake.grant_timeout', '1500ms');
sql_fails($server, "SELECT count(nextval('s1')) FROM generate_series(1, 500)",
	qr/55000: no number of sequence "s1" is granted to this server\nDETAIL:  Another transaction at the registry has locked sequence public\.s1\./,
	'the error says what is locked');
sql_fails($server, "SELECT setval('s1', 100000)",
	qr/55000: no number of sequence "s1" is granted to this server\nDETAIL:  Another transaction at the registry has locked sequence public\.s1\./,
	'... that of setval(), too');
my $conninfo = sql($server, 'SHOW snowflake.registry') =~ s{'}{}gr;
change_setting($server, 'snowflake.registry', 'host=/nowhere');
$server->wait_for_log(qr/WARNING:  could not call the registry of sequence ranges/) or die 'it is called';
sql_fails($server, "SELECT count(nextval('s1')) FROM generate_series(1, 500)",
	qr/55000: no number of sequence "s1" is granted to this server\nDETAIL:  Calls to the registry have failed since /,
	'... until the registry does not answer anymore');
change_setting($server, 'snowflake.registry', $conninfo);
$admin->query_safe('COMMIT');
$admin->quit;
is(finish_queries($waiting), 1, '... and gets them when it is not locked anymore');
$server->stop;

# A call that gets no answer is given up.
my $proxy = Proxy->new($registry);
$server = new_server('hung', setting('snowflake.registry', "host=" . $proxy->host . " port=" . $proxy->port . " dbname=postgres " . conninfo_user()),
	"snowflake.server_name = 'hung'", "snowflake.grant_timeout = '1 min'");
create_sequences($server, 2);
my $began = time;
sql($server, "SELECT nextval('s1'), nextval('s2')");
# Where calls that are answered take long, the worker waits longer for those that are not.
my $usual = time - $began;
$calls =~ s/server'$/hung'/;
$before = asked($calls);
$proxy->set('mute');
($waiting) = start_queries($server, "SELECT count(nextval('s1')) FROM generate_series(1, 500)");
wait_until('a call', sub { return asked($calls) > $before; });
$proxy->set('pass');
$began = time;
is(sql($server, "SELECT count(nextval('s2')) FROM generate_series(1, 500)"), 500, 'a call that gets no answer holds up others not for long');
cmp_ok(time - $began, '<', 9 + 2 * $usual, '... about five seconds');
is(finish_queries($waiting), 1, '... and is made again');
$server->stop;
$proxy->stop;

# A server that needs ranges all the time hears of floors all the same: near their end, sequences get
# ranges of a hundred numbers.
$server = new_server('hot', registry_conf($registry), "snowflake.server_name = 'hot'");
my $patient = new_server('patient', registry_conf($registry), "snowflake.server_name = 'patient'", "snowflake.grant_timeout = '2 min'");
sql($_, q{CREATE SEQUENCE floor; SELECT snowflake_set_sequence_kind('floor', 'range'); SELECT nextval('floor')})
  foreach $server, $patient;
my @hot = map { "hot$_" } 1 .. 16;
sql($server, join('', map { "CREATE SEQUENCE $_ AS integer MAXVALUE 500000; SELECT snowflake_set_sequence_kind('$_', 'range');" } @hot));
my @busy = start_queries($server, map { "SELECT count(nextval('$_')) FROM generate_series(1, 490000)" } @hot);
my $needing = q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%nextval(''hot%' AND pid <> pg_backend_pid()};
wait_until_true($server, "SELECT ($needing) = 16");
is(sql($patient, q{SELECT setval('floor', 5000)}), 5000, 'a server that is busy with ranges hears of a floor');
cmp_ok(sql($server, $needing), '>', 8, '... while it is busy');
sql($server, q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%nextval(''hot%'});
finish_queries(@busy);
$_->stop foreach $server, $patient;

# A server that crashed does not wait for its former life, of which nothing is left.
$server = new_server('crashed', registry_conf($registry), "snowflake.server_name = 'crashed'", "snowflake.grant_timeout = '20s'");
create_sequences($server, 1);
sql($server, "SELECT nextval('s1')");
crash_and_start($server);
my $holds = "SELECT count(*) FROM snowflake_registry.range_holders WHERE server_name = 'crashed'";
cmp_ok(asked($holds), '>=', 1, 'the registry does not know that a server crashed');
my $floor = sql($server, "SELECT nextval('s1')") + 1000;
is(sql($server, "SELECT setval('s1', $floor)"), $floor, 'after a crash, setval() does not wait for a minute');

# A directory that is renamed while its server runs is still that of this server, whatever has its
# name then.  Processes that inherit nothing begin with that name.
if (inherits())
{
	rename $server->data_dir, $server->data_dir . '_renamed' or die "rename: $!";
	mkdir $server->data_dir or die "mkdir: $!";
	sql($server, sprintf('SELECT pg_terminate_backend(%d, 10000)', server_process($server, 'snowflake ranges')));
	sql($server, "SELECT count(nextval('s1')) FROM generate_series(1, 1000)");
	rmdir $server->data_dir or die "rmdir: $!";
	rename $server->data_dir . '_renamed', $server->data_dir or die "rename: $!";
	is(asked(q{SELECT count(DISTINCT directory) FROM snowflake_registry.range_clients WHERE server_name = 'crashed'}), 1, 'a directory that is renamed remains the same');
}

# A copy of it, with the same name and address, is another server, however silent that is.
$server->stop;
$server->backup_fs_cold('copy');
$server->start;
my $copy = server_of_backup('copy', $server, 'copy', "snowflake.grant_timeout = '3s'");
sql($server, "SELECT nextval('s1')");
my $worker = server_process($server, 'snowflake ranges');
kill 'STOP', $worker;
asked(q{UPDATE snowflake_registry.range_clients SET created_at = created_at - interval '3 min', called_at = called_at - interval '2 min' WHERE server_name = 'crashed'});
$floor = sql($copy, "SELECT nextval('s1')") + 1000;
sql_fails($copy, "SELECT setval('s1', $floor)",
	qr/55000: other servers can still return numbers up to $floor of sequence "s1"\nDETAIL:  .*: crashed\.\nHINT:  Start them\./,
	'a copy waits for the server that it is a copy of');
cmp_ok(sql($server, "SELECT nextval('s1')"), '<', $floor, '... which gives out what it has');
kill 'CONT', $worker;
is(sql($copy, "SELECT setval('s1', $floor)"), $floor, '... until that has heard of the floor');
cmp_ok(sql($server, "SELECT nextval('s1')"), '>', $floor, '... and gives out no lower number anymore');
$_->stop foreach $server, $copy;

# A database that is replaced by a copy of another one: its files have the numbers of that, which
# are no proof of a loss, but those that its rows have.  It continues above them, also if ALTER
# SEQUENCE writes the files again before.
asked(q{SELECT snowflake_registry.add_database('staging')});
$server = new_server('staging', registry_conf($registry), 'wal_level = replica');
sql($server, 'CREATE DATABASE staging TEMPLATE postgres');
foreach my $database (qw(staging postgres))
{
	$server->safe_psql($database, q{CREATE SEQUENCE copied; SELECT snowflake_set_sequence_kind('copied', 'range')});
}
$server->safe_psql('staging', q{SELECT nextval('copied')});
my $greatest = sql($server, q{SELECT max(nextval('copied')) FROM generate_series(1, 5000)});
sql($server, 'DROP DATABASE staging');
sql($server, 'CREATE DATABASE staging TEMPLATE postgres');
cmp_ok($server->safe_psql('staging', q{ALTER SEQUENCE copied MAXVALUE 9223372036854775807 RESTART; SELECT nextval('copied')}),
	'>', $greatest, 'a copied database continues above the numbers of the other one');
$greatest = sql($server, q{SELECT max(nextval('copied')) FROM generate_series(1, 20000)});
sql($server, q{CREATE TABLE copied_rows (id bigint PRIMARY KEY DEFAULT nextval('copied')); INSERT INTO copied_rows VALUES (} . ($greatest + 100000) . ')');
sql($server, 'DROP DATABASE staging');
sql($server, 'CREATE DATABASE staging TEMPLATE postgres');
my @copied = map { $server->safe_psql('staging', q{INSERT INTO copied_rows DEFAULT VALUES RETURNING id}) } 1 .. 2;
cmp_ok($copied[0], '>', $greatest + 100000, '... and above its rows');
is($copied[1], $copied[0] + 1, '... once');

# ... also above those that came from other servers, if this one has used no number.
sub unused_sequence
{
	return q{CREATE TABLE replicated (id bigserial PRIMARY KEY); SELECT snowflake_set_sequence_kind('replicated_id_seq', 'range')};
}
$server->safe_psql($_, unused_sequence()) foreach qw(staging postgres);
$server->safe_psql('staging', 'INSERT INTO replicated DEFAULT VALUES');
sql($server, 'INSERT INTO replicated SELECT generate_series(1, 5000)');
sql($server, 'DROP DATABASE staging');
sql($server, 'CREATE DATABASE staging TEMPLATE postgres');
is($server->safe_psql('staging', 'INSERT INTO replicated DEFAULT VALUES RETURNING id'), 5001, 'a copied database continues above rows of other servers');
asked(q{SELECT snowflake_registry.add_database('again')});
sql($server, 'CREATE DATABASE again TEMPLATE postgres');
is($server->safe_psql('again', 'INSERT INTO replicated DEFAULT VALUES RETURNING id'), 5001, '... also if the registry does not know the sequence');

# ... and after pg_upgrade, which loses what was noted, and sets the label again.  Here a server without
# the library loses it.
restart_with($server, "shared_preload_libraries = ''");
sql($server, 'INSERT INTO replicated SELECT generate_series(5001, 20000); ALTER SEQUENCE replicated_id_seq NO MINVALUE');
$server->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'");
$server->stop;
my @control = ('pg_ctl', '-D', $server->data_dir, '-w');
$server->command_ok([ @control, '-l', $server->logfile, '-o', '-b', 'start' ], 'a server is started as by pg_upgrade');
sql($server, sql($server, q{
	SELECT format('SECURITY LABEL FOR snowflake ON SEQUENCE %s IS %L', objname, label) FROM pg_seclabels WHERE objname = 'replicated_id_seq'}));
$server->command_ok([ @control, 'stop' ], '... and stopped');
$server->start;
sql($server, $_) foreach 'DROP DATABASE staging', 'CREATE DATABASE staging TEMPLATE postgres';
is($server->safe_psql('staging', 'INSERT INTO replicated DEFAULT VALUES RETURNING id'), 20001, '... and after pg_upgrade');

# ALTER SEQUENCE does not let one that cannot continue above its rows use numbers of its name.
sql($server, 'DROP DATABASE staging');
sql($server, 'CREATE DATABASE staging TEMPLATE postgres');
$server->safe_psql($_, q{CREATE TABLE far (id bigserial PRIMARY KEY); SELECT snowflake_set_sequence_kind('far_id_seq', 'range'); INSERT INTO far DEFAULT VALUES}) foreach qw(staging postgres);
sql($server, 'INSERT INTO far VALUES (2000000000000000000)');
sql($server, 'DROP DATABASE staging');
sql($server, 'CREATE DATABASE staging TEMPLATE postgres');
$server->safe_psql('staging', q{CREATE SEQUENCE near; SELECT snowflake_set_sequence_kind('near', 'range', 'public.far_id_seq'); SELECT nextval('near')});
foreach my $statement ('SELECT', 'ALTER SEQUENCE far_id_seq NO MINVALUE')
{
	like(sql_error($server, "$statement; SELECT nextval('far_id_seq')", dbname => 'staging'),
		qr/55000: the registry refuses to continue sequence "far_id_seq" above 2000000000000000000/, "a copied sequence whose floor is refused returns no number after $statement");
}

# ... nor does one that waits for who has locked the sequence, nor a crash of an unlogged one.
my @kept = qw(renamed_id_seq owned_id_seq twice_id_seq unlogged);
sql($server, join(';', map { "CREATE TABLE $_ (id bigserial)" } qw(renamed owned twice)) . '; CREATE UNLOGGED SEQUENCE unlogged');
sql($server, "SELECT snowflake_set_sequence_kind('$_', 'range')") foreach @kept;
sql($server, 'DROP DATABASE staging');
sql($server, 'CREATE DATABASE staging TEMPLATE postgres');
$server->safe_psql('staging', "SELECT nextval('$_')") foreach @kept;
sql($server, "SELECT count(nextval('$_')) FROM generate_series(1, 5000)") foreach @kept;
sql($server, 'DROP DATABASE staging');
sql($server, 'CREATE DATABASE staging TEMPLATE postgres');
foreach my $statements (
	[ 'ALTER SEQUENCE renamed_id_seq RENAME TO other_name', 'ALTER SEQUENCE renamed_id_seq NO MINVALUE', 'ROLLBACK' ],
	[ 'ALTER SEQUENCE owned_id_seq RENAME TO other_name', 'ALTER TABLE owned SET UNLOGGED', 'ROLLBACK' ],
	[ 'ALTER TABLE twice SET UNLOGGED', 'ALTER TABLE twice SET LOGGED', 'COMMIT' ])
{
	my ($locks, $alters, $ends) = @$statements;
	my ($locking, $waiting) = map { $server->background_psql('staging') } 1, 2;

	$locking->query_safe("BEGIN; $locks");
	$waiting->query_until(qr/begun/, "\\echo begun\n$alters;\n");
	$server->poll_query_until('staging', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE query LIKE '$alters%'") or die 'does not wait';
	$locking->query_safe($ends);
	$_->quit foreach $locking, $waiting;
}
# (With wal_level = minimal, PostgreSQL loses the unlogged sequences of a copy here.)
crash_and_start($server);
foreach my $sequence (@kept)
{
	cmp_ok($server->safe_psql('staging', "SELECT nextval('$sequence')"), '>', 5000, "copied sequence $sequence continues above the numbers of the other one");
}

# ALTER SEQUENCE of another one, which has waited since, does not bring back what was noted before.
my $altering = $server->background_psql('again');
$altering->query_safe('BEGIN; ALTER SEQUENCE replicated_id_seq NO MINVALUE');
my $waits = $server->background_psql('again');
$waits->query_until(qr/begun/, "\\echo begun\nALTER SEQUENCE replicated_id_seq NO MINVALUE;\n");
$server->poll_query_until('again', q{SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE query LIKE 'ALTER %' AND state = 'active'}) or die 'does not wait';
$greatest = $server->safe_psql('again', q{SELECT max(nextval('copied')) FROM generate_series(1, 500)});
$altering->query_safe('ROLLBACK');
$_->quit foreach $altering, $waits;
$server->restart;
$server->safe_psql('again', q{DROP TABLE copied_rows; SELECT snowflake_set_sequence_kind('copied', 'local')});
cmp_ok($server->safe_psql('again', q{SELECT nextval('copied')}), '>', $greatest, 'ALTER SEQUENCE of another sequence keeps what was noted');
is(asked('SELECT stopped IS NULL FROM snowflake_registry.range_state'), 't', 'the registry takes neither for a loss');
$server->stop;

# What a server was granted is in the file of the sequence, and remains if a statement makes another
# file, also before the sequence is used again, or is rolled back: a sequence that becomes local continues
# above it.
$server = new_server('files', registry_conf($registry));
my %new_file = (
	r1 => 'ALTER SEQUENCE r1 RESTART', r2 => 'ALTER SEQUENCE r2 INCREMENT 2',
	r3 => 'ALTER SEQUENCE r3 MAXVALUE 5000 RESTART', r4 => 'TRUNCATE owner RESTART IDENTITY',
	r5 => 'ALTER SEQUENCE r5 SET UNLOGGED', r6 => 'ALTER TABLE owner SET UNLOGGED', r7 => 'SELECT',
	r8 => 'BEGIN; ALTER SEQUENCE r8 SET UNLOGGED; ROLLBACK', r9 => 'BEGIN; ALTER TABLE owner SET LOGGED; ROLLBACK');
sql($server, 'CREATE TABLE owner (id integer);'
	  . join('', map { "CREATE SEQUENCE $_ AS integer; SELECT snowflake_set_sequence_kind('$_', 'range'); SELECT count(nextval('$_')) FROM generate_series(1, 150);" } sort keys %new_file)
	  . 'ALTER SEQUENCE r4 OWNED BY owner.id; ALTER SEQUENCE r6 OWNED BY owner.id; ALTER SEQUENCE r9 OWNED BY owner.id');

# ... with a floor that was set while the statement waited.
$altering = $server->background_psql('postgres');
$altering->query_safe(q{BEGIN; SELECT nextval('r7')});
# Otherwise, a range that is asked for with the floor is above it, and is noted.
my $reserve = q{SELECT latest_last - latest_first + 1 FROM snowflake_registry.held_ranges WHERE name = 'public.r7' AND latest_first > 151};
wait_until_true($registry, "SELECT EXISTS ($reserve)");
wait_until_true($server, sprintf(q{SELECT held > %s FROM _snowflake_range_statistics('r7')}, asked($reserve)));
($waits) = start_queries($server, 'ALTER SEQUENCE r7 NO MINVALUE');
wait_until_true($server, q{SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE query LIKE 'ALTER %' AND state = 'active'});
$altering->query_safe(q{DISCARD SEQUENCES; SELECT setval('r7', 5000); COMMIT});
$altering->quit;
finish_queries($waits);
$server->restart;
sql($server, q{SELECT snowflake_set_sequence_kind('r7', 'local')});
cmp_ok(sql($server, q{SELECT nextval('r7')}), '>', 5000, 'a floor remains in the file, too');
delete $new_file{r7};
foreach my $sequence (sort keys %new_file)
{
	sql($server, "$new_file{$sequence}; SELECT snowflake_set_sequence_kind('$sequence', 'local')");
	cmp_ok(sql($server, "SELECT nextval('$sequence')"), '>', 150, "$new_file{$sequence}: numbers continue");
}

# ALTER SEQUENCE reads no files of other sequences, which other transactions can remove meanwhile.
sql($server, q{CREATE SEQUENCE removed; CREATE SEQUENCE altered; SELECT snowflake_set_sequence_kind(s, 'range') FROM unnest('{removed,altered}'::regclass[]) s});
my $file = $server->data_dir . '/' . sql($server, q{SELECT pg_relation_filepath('removed')});
$server->stop;
truncate $file, 0 or die "truncate: $!";
$server->start;
is($server->psql('postgres', 'ALTER SEQUENCE altered NO MINVALUE'), 0, 'ALTER SEQUENCE reads no file of another sequence');
$server->stop;

# A floor that waited for a server is asked for again after the registry had a problem.
my $gone = new_server('gone', registry_conf($registry), "snowflake.server_name = 'gone'");
$server = new_server('again', registry_conf($registry), "snowflake.server_name = 'again'", "snowflake.grant_timeout = '3s'");
sql($_, q{CREATE SEQUENCE again; SELECT snowflake_set_sequence_kind('again', 'range'); SELECT nextval('again')})
  foreach $gone, $server;
$gone->stop('immediate');
sql_fails($server, q{SELECT setval('again', 5000)}, qr/other servers can still return numbers/, 'a floor waits for a server');
asked(q{SELECT snowflake_registry.stop_ranges('test')});
sql_fails($server, q{SELECT nextval('again')}, qr/the registry refuses numbers of sequence "again"/, '... and the registry grants nothing');
$calls = "SELECT calls FROM snowflake_registry.range_clients WHERE server_name = 'again'";
$before = asked($calls);
wait_until('the call after that', sub { return asked($calls) > $before; });
asked(q{UPDATE snowflake_registry.range_clients SET called_at = called_at - interval '2 min' WHERE server_name = 'gone';
	SELECT snowflake_registry.free_ranges('gone'); SELECT snowflake_registry.resume_ranges(1)});
is(sql($server, q{SELECT setval('again', 5000)}), 5000, '... and is asked for again');
# Two sequences of one name, of which the one that was renamed has a lower MAXVALUE, and waits for
# numbers while those of the other one are asked for: a floor between these is heard.
my ($a, $b) = map { new_server($_, registry_conf($registry), "snowflake.server_name = '$_'", 'snowflake.default_sequence_kind = range') } 'a', 'b';
sql($b, q{CREATE SEQUENCE wide; SELECT nextval('wide')});
asked(q{SELECT snowflake_registry.raise_sequence('postgres', 'public.wide', 32700)});
sql($a, q{CREATE SEQUENCE wide AS smallint; ALTER SEQUENCE wide RENAME TO narrow; CREATE SEQUENCE wide});
my $locking = $registry->background_psql('postgres');
$locking->query_safe('BEGIN; LOCK TABLE snowflake_registry.range_clients IN SHARE MODE');
my ($wide) = start_queries($a, q{SELECT nextval('wide')});
wait_until_true($registry, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'get_ranges'});
my ($narrow) = start_queries($a, q{SELECT nextval('narrow')});
wait_until_true($a, q{SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND query ~ '^SELECT nextval'});
$locking->query_safe('COMMIT');
$locking->quit;
finish_queries($wide, $narrow);
my ($highest) = asked(q{SELECT highest FROM snowflake_registry.range_holders WHERE server_name = 'a' AND name = 'public.wide'});
cmp_ok($highest, '>', 32767, 'two sequences of one name, one of them narrow, are granted numbers for the wide one');
sql($b, qq{SELECT setval('wide', $highest - 1)});
cmp_ok(sql($a, q{SELECT min(n) FROM (SELECT nextval('wide') n FROM generate_series(1, 10)) n}), '>=', $highest,
	'... and none up to a floor that was set since');

# Where a new sequence begins is looked up in an index of its owner, whose code has what is known of
# the sequence forgotten.
is( sql($a, q{
	CREATE TABLE t (id serial);
	CREATE FUNCTION g() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
		GRANT USAGE ON SEQUENCE public.t_id_seq TO PUBLIC;
		BEGIN PERFORM currval('public.t_id_seq'); EXCEPTION WHEN object_not_in_prerequisite_state THEN END;
		RETURN 1; END $$;
	CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN public.g(); END';
	CREATE INDEX ON t ((f(1) + id));
	INSERT INTO t DEFAULT VALUES RETURNING id}), '1', 'code of an index is executed while a sequence begins');

done_testing();
