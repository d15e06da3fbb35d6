# The registry loses commits, as its files of the morning are put back: a server proves it when
# it connects, whether it has used anything since its start or not, and nothing is granted
# until servers have reported what they were granted, so that no number is given out twice.  A
# database that is put into another group is no loss.

use SnowflakeTest;
use List::Util 'max';

my $registry = new_registry('registry', '1, 100, new => true', 'wal_level = replica', 'max_wal_senders = 2');
sql($registry, "SELECT snowflake_registry.add_database(d) FROM unnest('{postgres,first,second}'::text[]) d");
my %servers = map {
	$_ => new_server($_, registry_conf($registry), "snowflake.server_name = '$_'", "snowflake.grant_timeout = '30s'")
} 'a', 'b', 'away';
foreach my $server (@servers{qw(a b away)})
{
	sql($server, q{
		CREATE TABLE t (id serial PRIMARY KEY);
		SELECT snowflake_set_sequence_kind('t_id_seq', 'range')});
}

# Rows on servers in turn; returns how many of the numbers were there before, on any server.
my %seen;

sub insert_rows ($count, @names)
{
	my $twice = 0;

	foreach my $name (@names)
	{
		$twice += grep { $seen{$_}++ }
		  split /\n/, sql($servers{$name}, "INSERT INTO t SELECT FROM generate_series(1, $count) RETURNING id");
	}
	return $twice;
}

sub resume_error { return sql_error($registry, "SELECT snowflake_registry.resume_ranges($_[0])"); }

# A refusal of the registry is believed for a second.
sub wait_for_numbers
{
	wait_until_true($servers{$_}, "SELECT nextval('t_id_seq') > 0") foreach @_;
	return;
}

# Wait until so many servers have reported all that they were granted.
sub wait_for_reports ($count)
{
	wait_until_true($registry, qq{
		SELECT count(DISTINCT c.directory) = $count
		FROM snowflake_registry.range_clients c JOIN snowflake_registry.range_state s ON c.reported = s.incarnation});
	return;
}

# Put the files of the registry back as they were; servers are to reach it at the same port.
sub restore
{
	my ($name) = @_;
	my $port = $registry->port;

	$registry->stop;
	$registry = PostgreSQL::Test::Cluster->new($name);
	$registry->init_from_backup($_[1], 'morning');
	$registry->append_conf('postgresql.conf', "port = $port");
	$registry->{_port} = $port;
	$registry->start;
	return;
}

is(insert_rows(250, 'a', 'b', 'away', 'a'), 0, 'numbers are given out once');
my $original = $registry;
sql($registry, q{CREATE TABLE before AS SELECT client, receipts FROM snowflake_registry.range_clients WHERE server_name <> 'away'});
$registry->backup('morning');
$servers{away}->stop;

# b gives the last number, and is started again: then it knows only its keys.  Both have a
# receipt that the backup does not know.
is(insert_rows(300, 'a', 'b', 'a', 'b'), 0, 'numbers that the backup does not have');
wait_until_true($registry, 'SELECT bool_and(c.receipts > b.receipts) FROM before b JOIN snowflake_registry.range_clients c USING (client)');
$servers{b}->restart;
my $greatest = max(keys %seen);

restore('restored', $original);
wait_until_true($registry, 'SELECT stopped IS NOT NULL FROM snowflake_registry.range_state');
like(sql($registry, 'SELECT stopped FROM snowflake_registry.range_state'),
	qr/^it lost commits: server ".*" has a receipt of a call that it does not know$/, 'a server proves that commits were lost');
wait_for_reports(2);
is(sql($registry, "SELECT max(granted) >= $greatest, count(*) FILTER (WHERE server_name = 'b') FROM snowflake_registry.range_evidence WHERE name = 'public.t_id_seq' AND server_name IN ('a', 'b')"),
	't|1', 'servers report what they were granted, used since their start or not');
like(resume_error('0, 2'), qr/ERROR:  55000: .*\nDETAIL:  Servers that have reported all that they know: a, b\. Servers that have not: away \(last call 20.*\)\./,
	'none are to be skipped: a server is away');
$servers{away}->start;
wait_for_reports(3);
like(resume_error('0'), qr/ERROR:  55000: /, '... the administrator does not say how many servers there are');
like(resume_error('0, 4'), qr/ERROR:  55000: /, '... there are more');
sql($registry, 'SELECT snowflake_registry.resume_ranges(0, 3)');
wait_for_numbers('a', 'b', 'away');
is(insert_rows(250, 'a', 'b', 'away', 'b', 'a'), 0, 'after all have reported, no number is given out twice');
is(sql($registry, "SELECT next - granted < 20000 FROM snowflake_registry.range_sequences WHERE name = 'public.t_id_seq'"),
	't', '... and none are skipped');

# A sequence that no column uses: a server that was started again does not know what it was
# granted.
sql($_, "CREATE SEQUENCE alone AS integer; SELECT snowflake_set_sequence_kind('alone', 'range')") foreach @servers{qw(a b)};
sql($servers{$_}, 'CREATE SEQUENCE lost AS integer; SELECT setval(\'lost\', ' . ($_ eq 'b' ? 3000 : 1) . ')') foreach qw(a b);
$registry->backup('morning');
$original = $registry;
my @numbers = split /\n/, sql($servers{b}, "SELECT nextval('alone') FROM generate_series(1, 250)");
sql($_, "SELECT snowflake_set_sequence_kind('lost', 'range')") foreach @servers{qw(a b)};
my $lost = sql($servers{b}, "SELECT max(nextval('lost')) FROM generate_series(1, 250)");
$_->stop foreach @servers{qw(b away)};
restore('again', $original);
$servers{b}->start;
wait_until_true($registry, 'SELECT stopped IS NOT NULL FROM snowflake_registry.range_state');
wait_for_reports(2);
like(resume_error('0, 2'), qr/ERROR:  55000: .*\nDETAIL:  .* It is not known what these sequences were granted, .*: .*public\.alone \(postgres\) of server b\b/,
	'a sequence that no column uses has to be skipped');
my ($skip) = resume_error('0, 2') =~ /HINT:  .*: snowflake_registry\.resume_ranges\((\d+)\)/;
cmp_ok($skip, '>=', 1000, '... by as many numbers as the registry proposes');
sql($registry, "SELECT snowflake_registry.resume_ranges($skip)");
wait_for_numbers('a', 'b');
my %before = map { $_ => 1 } @numbers;
is(scalar(grep { $before{$_} } split /\n/, sql($servers{a}, "SELECT nextval('alone') FROM generate_series(1, 350)")),
	0, 'then none of its numbers is given out twice');
cmp_ok(sql($servers{a}, "SELECT nextval('lost')"), '>', $lost,
	'... nor of one that the registry does not have, whichever server is the first to need some');

# A database that was added after the backup
$registry->backup('morning');
$original = $registry;
sql($registry, "SELECT snowflake_registry.add_database('later')");
my %numbers;
foreach my $name (qw(a b))
{
	sql($servers{$name}, 'CREATE DATABASE later');
	$servers{$name}->safe_psql('later', q{CREATE EXTENSION snowflake; CREATE TABLE t (id serial PRIMARY KEY); SELECT snowflake_set_sequence_kind('t_id_seq', 'range')});
	$numbers{$_}++ foreach split /\n/, $servers{$name}->safe_psql('later', 'INSERT INTO t SELECT FROM generate_series(1, 250) RETURNING id');
}
$_->stop foreach @servers{qw(a b)};
restore('later', $original);
$_->start foreach @servers{qw(a b)};
wait_until_true($registry, 'SELECT stopped IS NOT NULL FROM snowflake_registry.range_state');
wait_for_reports(2);
sql($registry, "SELECT snowflake_registry.resume_ranges($skip); SELECT snowflake_registry.add_database('later')");
wait_for_numbers('a', 'b');
foreach my $server (@servers{qw(a b)})
{
	$server->poll_query_until('later', q{SELECT nextval('t_id_seq') > 0}) or die 'no numbers';
	$numbers{$_}++ foreach split /\n/, $server->safe_psql('later', 'INSERT INTO t SELECT FROM generate_series(1, 250) RETURNING id');
}
is(scalar(grep { $_ > 1 } values %numbers), 0, 'a database that was added after the backup, and is added again, continues above the numbers of all servers');

# One that was away reports by itself, and the others go on.
is(insert_rows(250, 'a'), 0, 'servers go on');
$servers{away}->start;
wait_for_numbers('away');
is(insert_rows(250, 'away', 'a', 'b'), 0, 'a server that was away does, too, after it has reported');
is(sql($registry, 'SELECT stopped IS NULL FROM snowflake_registry.range_state'), 't', '... and nothing stops');

# A database is put into another group.
foreach my $database ('first', 'second')
{
	sql($servers{a}, "CREATE DATABASE $database");
	$servers{a}->safe_psql($database, q{
		CREATE EXTENSION snowflake;
		CREATE TABLE t (id serial PRIMARY KEY);
		SELECT snowflake_set_sequence_kind('t_id_seq', 'range')});
}
my $insert = 'INSERT INTO t DEFAULT VALUES RETURNING id';
my $greatest = $servers{a}->safe_psql('first', 'INSERT INTO t SELECT FROM generate_series(1, 500); SELECT max(id) FROM t');
$servers{a}->safe_psql('second', $insert);
is(sql($registry, "SELECT snowflake_registry.remove_database('first'); SELECT snowflake_registry.add_database('first', shared_as => 'second')"),
	"t\na", 'a database is put into another group: the server that holds lower numbers is named');
wait_until_true($registry, q{SELECT count(*) = 0 FROM snowflake_registry.range_holders WHERE waiting_floor IS NOT NULL});
cmp_ok($servers{a}->safe_psql($_, $insert), '>', $greatest, "... numbers of $_ continue above its own") foreach 'first', 'second';
$servers{a}->restart;
cmp_ok($servers{a}->safe_psql($_, $insert), '>', $greatest, '... also after a restart') foreach 'first', 'second';
is(sql($registry, 'SELECT stopped IS NULL FROM snowflake_registry.range_state'), 't', '... and nothing stops');

done_testing();
