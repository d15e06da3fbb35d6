# Sequences of kind range, as applications see them: two servers give out the numbers of a
# type, none of them twice, through everything that happens to a sequence.
# (registry_client/sql has what one session sees.)

use List::Util qw(max min);
use SnowflakeTest;

my $registry = new_registry('registry', '1, 100, new => true');
sql($registry, qq{
	SELECT snowflake_registry.add_database('postgres');
	SELECT snowflake_registry.add_database('restored')});

my %servers = map { $_ => range_server($_) } qw(a b);
my ($a, $b) = @servers{qw(a b)};

sub range_server ($name, @conf)
{
	my $node = new_primary($name, registry_conf($registry), "snowflake.server_name = '$name'",
		'restart_after_crash = on', 'max_prepared_transactions = 1', @conf);

	sql($node, 'CREATE ROLE owner');
	return $node;
}

sub query { return sql($_[0], $_[1]); }

# A table with a serial key of a type, whose sequence is of kind range, on both servers.
sub create_table ($name, $type)
{
	query($_, qq{
		CREATE TABLE $name (id $type PRIMARY KEY, x int);
		SELECT snowflake_set_sequence_kind('${name}_id_seq', 'range')}) foreach $a, $b;
	return;
}

# Numbers of a sequence; each is new to all servers.
my %seen;

sub take ($node, $sequence, $n)
{
	my @numbers = split /\n/, query($node, "SELECT nextval('$sequence') FROM generate_series(1, $n)");
	my $distinct = grep { !$seen{$sequence}{$_}++ } @numbers;

	is($distinct, $n, "$n numbers of $sequence on " . $node->name . ' are new');
	return @numbers;
}

sub rises ($label, @numbers)
{
	is(scalar(grep { $numbers[$_] <= $numbers[ $_ - 1 ] } 1 .. $#numbers), 0, $label);
	return;
}

sub registered ($name, $column)
{
	return query($registry, "SELECT $column FROM snowflake_registry.sequences WHERE name = '$name'");
}

create_table('t', 'serial');
$seen{t_id_seq}{$_}++ foreach split /\n/, query($a, 'INSERT INTO t SELECT FROM generate_series(1, 8) RETURNING id');
take($_, 't_id_seq', 1000) foreach $a, $b, $a, $b;

#
# A change of kind
#
query($_, 'CREATE TABLE used (id serial PRIMARY KEY)') foreach $a, $b;
query($a, 'INSERT INTO used SELECT FROM generate_series(1, 50)');
query($b, 'INSERT INTO used VALUES (800); INSERT INTO used DEFAULT VALUES');
query($_, q{SELECT snowflake_set_sequence_kind('used_id_seq', 'range')}) foreach $a, $b;
cmp_ok(min(take($a, 'used_id_seq', 10), take($b, 'used_id_seq', 10)),
	'>', 800, 'numbers are above the keys of all servers');
# Numbers of b are granted, which a has heard of if this took long enough.
sql_fails($a, q{SELECT snowflake_set_sequence_kind('used_id_seq', 'local'); SELECT nextval('used_id_seq') > 800},
	qr/^(?:[^\n]*WARNING:  01000: sequence "used_id_seq" is local, but other servers are granted its numbers\n(?!.*(?:WARNING|ERROR)).*)?$/s,
	'a range sequence becomes local');
my $local = query($a, q{SELECT nextval('used_id_seq')});
ok(!$seen{used_id_seq}{$local} && $local > 800, 'a sequence that becomes local continues above its numbers');
is(query($a, q{SELECT label FROM pg_seclabels WHERE objname LIKE '%used_id_seq'}), '', 'the label is gone');

# Identity columns: no type and no privilege changes
query($_, 'CREATE TABLE identity (id int GENERATED ALWAYS AS IDENTITY, n int)') foreach $a, $b;
query($a, 'GRANT INSERT, SELECT ON identity TO owner; INSERT INTO identity (n) SELECT generate_series(1, 50)');
query($_, q{SELECT snowflake_set_sequence_kind('identity_id_seq', 'range')}) foreach $a, $b;
my $insert = "INSERT INTO identity (n) SELECT generate_series(1, 100);\nCOPY identity (n) FROM stdin;\n" . "1\n" x 100 . "\\.\n";
query($a, "SET ROLE owner; $insert") foreach 1 .. 2;
query($b, $insert);
my @ids = map { split /\n/, query($_, 'SELECT id FROM identity') } $a, $b;
is(scalar(keys %{ { map { $_ => 1 } @ids } }), 650, 'INSERT and COPY into identity columns on two servers give no number twice');
cmp_ok(max(@ids), '<', 2**31, 'numbers of an identity column fit in its type');

# A copy of the table that another session has, with its defaults.
create_table('copied', 'serial');
my $other = $a->background_psql('postgres', on_error_die => 1);
$other->query_safe('CREATE TEMP TABLE copied (LIKE copied INCLUDING DEFAULTS); INSERT INTO copied VALUES (1000)');
is(query($a, q{SELECT snowflake_set_sequence_kind('copied_id_seq', 'local'); SELECT snowflake_set_sequence_kind('copied_id_seq', 'range'); SELECT nextval('copied_id_seq')}),
	"\n\n1", "another session's temporary table with the sequence in a default does not count");
$other->quit;

#
# ALTER SEQUENCE
#
create_table('w', 'serial');
query($a, 'CREATE SCHEMA other; ALTER SEQUENCE w_id_seq OWNED BY NONE; ALTER SEQUENCE w_id_seq SET SCHEMA other; ALTER SEQUENCE other.w_id_seq RENAME TO w_seq');
is(scalar(keys %{ { map { $_ => 1 } take($b, 'w_id_seq', 10), split /\n/, query($a, q{SELECT nextval('other.w_seq') FROM generate_series(1, 10)}) } }),
	20, 'a sequence that is renamed shares the numbers of its former name with another server');

# Another INCREMENT that is rolled back, while another session takes numbers
my $altering = $a->background_psql('postgres', on_error_die => 1);
$altering->query_safe(q{BEGIN; ALTER SEQUENCE other.w_seq INCREMENT 7});
my ($seventh) = $altering->query_safe(q{SELECT nextval('other.w_seq')}) =~ /(\d+)/;
my $waiting = $a->background_psql('postgres', on_error_die => 1);
$waiting->query_until(qr/begun/, "\\echo begun\nSELECT 'next', nextval('other.w_seq'), nextval('other.w_seq');\n");
becomes_true($a, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'relation'},
	'another session waits for the end of ALTER SEQUENCE');
$altering->query_safe('ROLLBACK');
my ($one, $two) = $waiting->query(q{SELECT 'done'}) =~ /next\|(\d+)\|(\d+)/;
is($two, $one + 1, 'an INCREMENT that was rolled back reaches no other session');
cmp_ok($one, '>', $seventh, 'numbers rise after an INCREMENT that was rolled back');
$_->quit foreach $altering, $waiting;

#
# DROP, and slots
#
query($a, q{CREATE SEQUENCE d AS int; SELECT snowflake_set_sequence_kind('d', 'range')});
my @d = take($a, 'd', 2);
my $cached = $a->background_psql('postgres', on_error_die => 1);
push @d, $cached->query_safe(q{SELECT nextval('d')});
query($a, q{BEGIN; DROP SEQUENCE d; ROLLBACK; CREATE SEQUENCE d_other AS int; SELECT snowflake_set_sequence_kind('d_other', 'range'); SELECT nextval('d_other')});
push @d, $cached->query_safe(q{SELECT nextval('d')});
$cached->quit;
rises('numbers rise after DROP was rolled back', @d);
#
# INCREMENT 50: clients that count down from the value, and others that count up to the next
#
query($_, q{CREATE SEQUENCE pooled AS int INCREMENT 50; SELECT snowflake_set_sequence_kind('pooled', 'range')}) foreach $a, $b;
my @values = map { split /\n/, query($_, q{SELECT nextval('pooled') FROM generate_series(1, 100)}) } $a, $b, $a, $b;
my (%down, %up);
foreach my $value (@values)
{
	$down{$_}++ foreach $value - 49 .. $value;
	$up{$_}++ foreach $value .. $value + 49;
}
is(keys %down, 50 * @values, 'INCREMENT 50: clients that count down own what they use');
is(keys %up, 50 * @values, 'INCREMENT 50: clients that count up own what they use');
is(min(keys %down), 1, 'INCREMENT 50: the first value is 50');

#
# The end of a type
#
create_table('sm', 'smallserial');
my ($last_sm, $n_sm) = (0, 0);
foreach my $i (1 .. 4)
{
	foreach my $node ($a, $b)
	{
		my $ids = query($node, q{INSERT INTO sm SELECT nextval('sm_id_seq'), 1 FROM generate_series(1, 3000) RETURNING id});
		$seen{sm_id_seq}{$_}++ foreach split /\n/, $ids;
	}
}
is(keys %{ $seen{sm_id_seq} }, 24000, 'smallint: no number is given out twice');
my $end = sql_error($a, q{DO $$ BEGIN FOR i IN 1 .. 32767 LOOP PERFORM nextval('sm_id_seq'); END LOOP; END $$});
like($end, qr/2200H: .*nextval: reached maximum value of sequence "sm_id_seq" \(32767\)/, 'the end of the type is the error of the server');
sql_fails($a, q{SELECT nextval('sm_id_seq')}, qr/2200H/, 'also for the next call');

# ... which can come earlier
query($_, q{CREATE SEQUENCE lower; SELECT snowflake_set_sequence_kind('lower', 'range')}) foreach $a, $b;
take($b, 'lower', 1);
take($a, 'lower', 300);
is(sql_error($a, 'BEGIN; ALTER SEQUENCE lower MAXVALUE 5000; ROLLBACK'), '', 'a lower MAXVALUE that is rolled back');
take($a, 'lower', 100);
query($a, 'ALTER SEQUENCE lower MAXVALUE 5000');
query($b, 'ALTER SEQUENCE lower MAXVALUE 5000 RESTART');
becomes_true($a, q{SELECT nextval('lower') > 300}, 'numbers continue below the new MAXVALUE');
take($b, 'lower', 100);
sql_fails($a, q{DO $$ BEGIN FOR i IN 1 .. 5000 LOOP PERFORM nextval('lower'); END LOOP; END $$},
	qr/2200H: .*nextval: reached maximum value of sequence "lower" \(5000\)/, '... until it');

# A migration widens the column and its sequence, or makes the table again with another width.
create_table('wider', 'smallserial');
take($_, 'wider_id_seq', 2) foreach $a, $b;
query($a, q{ALTER TABLE wider ALTER id TYPE bigint; ALTER SEQUENCE wider_id_seq AS bigint});
take($_, 'wider_id_seq', 100) foreach $a, $b;
query($a, 'DROP TABLE wider');
query($a, q{CREATE TABLE wider (id serial PRIMARY KEY, x int); SELECT snowflake_set_sequence_kind('wider_id_seq', 'range')});
take($_, 'wider_id_seq', 100) foreach $a, $b;
is(registered('public.wider_id_seq', 'last'), 32767, 'the registry has the MAXVALUE of the first table');
is(query($a, q{SELECT setval('wider_id_seq', 3000)}), 3000, 'setval() of it');
my $enough = q{DO $$ BEGIN FOR i IN 1 .. 32767 LOOP PERFORM nextval('wider_id_seq'); END LOOP; END $$};
sql_fails($a, $enough,
	qr/55000: .*the registry refuses numbers of sequence "wider_id_seq".*\nDETAIL:  The registry has 32767 as the last number of sequence public\.wider_id_seq, not 2147483647\. Its administrator can call/,
	'numbers of the registry are exhausted');
sql_fails($b, $enough, qr/2200H: .*nextval: reached maximum value of sequence "wider_id_seq" \(32767\)/, '... and those of a narrow sequence');
is(query($a, q{SELECT setval('wider_id_seq', 2000)}), 2000, '... as far as setval() is concerned, too');
query($registry, q{SELECT snowflake_registry.raise_sequence('postgres', 'public.wider_id_seq', last => 2147483647)});
becomes_true($a, q{SELECT nextval('wider_id_seq') > 32767}, 'numbers continue above them');
take($a, 'wider_id_seq', 200);
sql_fails($b, q{SELECT nextval('wider_id_seq')}, qr/2200H/, '... where they fit');
create_table('narrower', 'bigserial');
take($_, 'narrower_id_seq', 2) foreach $a, $b;
query($b, q{DROP TABLE narrower; CREATE TABLE narrower (id serial PRIMARY KEY); SELECT snowflake_set_sequence_kind('narrower_id_seq', 'range')});
take($_, 'narrower_id_seq', 200) foreach $b, $a;

# Two sequences of a name with different ends use one slot (registry_client/sql/range_sequences.sql),
# also while the registry answers for one of them, and when one has no number left.
query($a, q{
	CREATE SEQUENCE long AS int MAXVALUE 2000000;
	SELECT snowflake_set_sequence_kind('long', 'range');
	CREATE SEQUENCE short AS int MAXVALUE 100000;
	SECURITY LABEL FOR snowflake ON SEQUENCE short IS 'range database=postgres name=public.long';
	SELECT nextval('short'), nextval('long'), nextval('short')});
query($a, q{SELECT setval('long', 99800), nextval('long')});
wait_until_true($registry, q{SELECT next = 100001 FROM snowflake_registry.sequences WHERE name = 'public.long'});
my $holder = $registry->background_psql('postgres', on_error_die => 1);
$holder->query_safe('BEGIN; LOCK TABLE snowflake_registry.range_sequences');
query($a, q{SELECT max(nextval('long')) FROM generate_series(1, 100)});
wait_until_true($registry, 'SELECT count(*) > 0 FROM pg_locks WHERE NOT granted');
cmp_ok(query($a, q{SELECT nextval('short')}), '<=', 100000, 'another sequence of the name uses the range');
$holder->query_safe('COMMIT');
$holder->quit;
sql_fails($a, q{DO $$ BEGIN FOR i IN 1 .. 120 LOOP PERFORM nextval('short'); END LOOP; END $$},
	qr/2200H: .*nextval: reached maximum value of sequence "short" \(100000\)/, '... and not what was on its way for the first one');
cmp_ok(query($a, q{SELECT nextval('long')}), '>', 100000, '... which has numbers at once');

#
# setval()
#
create_table('im', 'serial');
take($_, 'im_id_seq', 2) foreach $a, $b;
query($a, 'INSERT INTO im SELECT g FROM generate_series(1000, 5000) g');
query($a, q{SELECT setval('im_id_seq', 5000)});
cmp_ok(min(take($_, 'im_id_seq', 1)), '>', 5000, 'after setval() numbers of ' . $_->name . ' are above it') foreach $b, $a;
query($a, q{SELECT setval('im_id_seq', 6001, false)});
cmp_ok(min(take($b, 'im_id_seq', 1)), '>', 6000, 'numbers are not below the next value');
take($_, 'im_id_seq', 10) foreach $a, $b;
query($a, 'INSERT INTO im SELECT g FROM generate_series(10000, 10500) g');
query($a, q{SELECT nextval('im_id_seq'), setval('im_id_seq', max(id)) FROM im GROUP BY 1});
cmp_ok(min(take($b, 'im_id_seq', 1)), '>', 10500, 'numbers of the other server are above keys of an import');

# A server that does not hear of the floor: setval() fails, and names it.
query($b, q{SELECT nextval('t_id_seq')});
my ($worker) = query($b, q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'snowflake ranges'});
kill STOP => $worker;
change_setting($a, 'snowflake.grant_timeout', '2s');
sql_fails($a, q{SELECT setval('t_id_seq', 100000)},
	qr/55000: .*other servers can still return numbers up to 100000 of sequence "t_id_seq".*DETAIL:  [^\n]*\bb\b/s, 'setval() names servers that do not answer');
sql_fails($a, q{SET statement_timeout = '500 ms'; SELECT setval('t_id_seq', 100000)},
	qr/57014: .*while waiting for the registry to grant a range of numbers/s, 'setval() can be cancelled');
kill CONT => $worker;
change_setting($a, 'snowflake.grant_timeout', '20s');
is(query($a, q{SELECT setval('t_id_seq', 100000)}), 100000, 'setval() succeeds when all servers answer');
cmp_ok(min(take($b, 't_id_seq', 1)), '>', 100000, 'numbers of the other server are above setval()');

#
# Dump, another database
#
query($a, 'CREATE DATABASE restored');
my $floor = registered('public.t_id_seq', 'floor');
my $dump = $a->basedir . '/dump.sql';
command_ok([ 'pg_dump', '-f', $dump, '-d', $a->connstr('postgres') ], 'pg_dump');
like(slurp_file($dump), qr/SECURITY LABEL FOR snowflake ON SEQUENCE public.t_id_seq IS 'range .*name=public.t_id_seq'/, 'the dump has the kind');
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $a->connstr('restored') ], 'a dump is restored');
is(registered('public.t_id_seq', 'floor'), $floor, 'a restored dump changes nothing in the registry');
cmp_ok($a->safe_psql('restored', 'INSERT INTO t DEFAULT VALUES RETURNING id'), '>', 7, '... whose sequences continue above the keys');
query($a, 'ALTER DATABASE restored RENAME TO nowhere');
like(sql_error($a, q{INSERT INTO t DEFAULT VALUES}, dbname => 'nowhere'),
	qr/55000: .*the registry refuses to continue sequence "t_id_seq" above \d+\nDETAIL: .*add_database/, 'a database that the registry does not know has no numbers');
query($a, 'DROP DATABASE nowhere');

#
# Starts
#
sub continues ($event)
{
	my ($before) = take($a, 't_id_seq', 1);

	return sub { rises("numbers rise after $event", $before, take($a, 't_id_seq', 1)) };
}

my $rises = continues('a restart');
$a->restart;
$rises->();
$rises = continues('kill -9');
crash_and_start($a);
$rises->();
$rises = continues('kill -9 of a backend');
my $victim = $a->background_psql('postgres', on_error_stop => 0);
kill KILL => $victim->query_safe('SELECT pg_backend_pid()');
becomes_true($a, 'SELECT true', 'the server starts again');
$rises->();

my $standby = new_standby($a, 'standby', "snowflake.server_name = 'standby'");
$rises = continues('a promotion of a standby');
sql_fails($standby, q{SELECT nextval('t_id_seq')}, qr/25006/, 'a standby gives out no number');
query($a, q{CREATE UNLOGGED SEQUENCE unlogged; SELECT snowflake_set_sequence_kind('unlogged', 'range')});
$a->wait_for_catchup($standby, 'replay', $a->lsn('insert'));
is(query($standby, q{SELECT kind, problem FROM snowflake_sequences WHERE sequence = 'unlogged'}), 'range|', 'an unlogged sequence is no problem of a standby');
sql_fails($standby, 'ALTER SEQUENCE t_id_seq NO MINVALUE', qr/25006: cannot execute ALTER SEQUENCE in a read-only transaction/, '... nor of what is not possible there');
$standby->promote;
take($standby, 't_id_seq', 10);
take($a, 't_id_seq', 10);
$rises->();

#
# New tables
#
my $distributed = 'SET snowflake.default_sequence_kind = distributed;';
my $columns = q{
	SELECT v.column_name, v.column_type, v.kind, seqtypid::regtype, v.problem FROM snowflake_sequences v
		JOIN pg_sequence ON seqrelid = v.sequence::regclass WHERE v.table_name = '%s' ORDER BY v.column_name COLLATE "C"};

query($_, qq{$distributed
	CREATE TABLE nt (id serial PRIMARY KEY, small smallserial, big bigserial, i int GENERATED ALWAYS AS IDENTITY,
		s smallint GENERATED BY DEFAULT AS IDENTITY (START WITH 10), b bigint GENERATED ALWAYS AS IDENTITY, n int)}) foreach $a, $b;
my %rows;
foreach my $row (map { split /\n/, query($_, 'INSERT INTO nt (n) SELECT generate_series(1, 300) RETURNING id, small, i, s') } $a, $b, $a, $b)
{
	my @values = split /\|/, $row;
	$rows{$_}{ $values[$_] }++ foreach 0 .. $#values;
}
is(join(' ', map { scalar keys %{ $rows{$_} } } 0 .. 3), '1200 1200 1200 1200', 'rows of two servers have numbers of their own');
is(join(' ', map { min(keys %{ $rows{$_} }) } 0 .. 3), '1 1 1 10', 'they begin where the column says');

query($_, 'CREATE TABLE filled AS SELECT generate_series(1, 5000) AS x') foreach $a, $b;
query($_, "$distributed ALTER TABLE filled ADD id serial PRIMARY KEY") foreach $a, $b;
my %filled = map { $_ => 1 } map { split /\n/, query($_, 'SELECT id FROM filled') } $a, $b;
is(keys %filled, 10000, 'rows that exist get numbers of their own with ADD COLUMN');

# A sequence that is started again before its first number
query($a, q{SET snowflake.default_sequence_kind = range; CREATE TABLE restarted (id serial, n int)});
$a->restart;
is(query($a, 'INSERT INTO restarted DEFAULT VALUES RETURNING id'), '1', 'a new sequence whose server was restarted before begins with 1');
take($a, 't_id_seq', 1);

my $gone = "$distributed BEGIN; CREATE TABLE gone (id serial PRIMARY KEY); INSERT INTO gone DEFAULT VALUES RETURNING id;";
my $first_gone = query($a, "$gone ROLLBACK");
query($a, "$gone COMMIT");
is(query($b, "$gone COMMIT; SELECT kind FROM snowflake_sequences WHERE table_name = 'gone'") =~ /^(\d+)\nrange$/ && $1 > $first_gone,
	1, 'a table that is rolled back, and created on another server: the numbers of that name continue');

#
# The registry does not answer
#
becomes_true($b, q{SELECT numbers_held > 100 FROM snowflake_sequences WHERE sequence = 'gone_id_seq'}, 'a sequence has a reserve');
query($b, q{SELECT setval('gone_id_seq', 100000)});
$registry->stop('immediate');
change_setting($a, 'snowflake.grant_timeout', '2s');
ok(query($a, q{SELECT count(nextval('t_id_seq')) FROM generate_series(1, 50)}), 'numbers continue from the range without the registry');
$a->restart;
sql_fails($a, q{SET statement_timeout = '500 ms'; SELECT nextval('t_id_seq')},
	qr/57014: .*while waiting for the registry to grant a range of numbers/s, 'a call that waits can be cancelled');
sql_fails($a, q{SELECT nextval('t_id_seq')},
	qr/55000: .*no number of sequence "t_id_seq" is granted to this server.*DETAIL:  Calls to the registry have failed since/s, 'a call fails after grant_timeout');
my $failing = q{SELECT count(*) FROM snowflake_sequences WHERE problem = 'no number is left here, and calls of the registry fail: see the server log'};
is(query($a, "$failing AND sequence = 't_id_seq'"), 1, '... and the view says why');
query($a, "$distributed CREATE TABLE meanwhile (id serial, i int GENERATED ALWAYS AS IDENTITY (START 500))");
is(query($a, $distributed . sprintf($columns, 'meanwhile')), "i|integer|range|integer|\nid|integer|range|integer|", 'a table with range sequences can be created');
sql_fails($a, q{SELECT nextval('meanwhile_i_seq')}, qr/55000: .*no number of sequence "meanwhile_i_seq" is granted/s, '... whose numbers wait for the registry');
becomes_true($b, "SELECT ($failing) > 0", 'so it is of a sequence that nobody uses');
$registry->start;
becomes_true($a, q{SELECT nextval('meanwhile_i_seq') >= 500}, '... and begin at START when it is back');
becomes_true($a, q{SELECT nextval('t_id_seq') > 0}, 'numbers continue when the registry is back');
is(query($a, $failing), 0, '... and the view has no problem');
change_setting($a, 'snowflake.grant_timeout', '20s');
becomes_true($b, "SELECT ($failing) = 0", '... nor where nothing is needed');
take($a, 't_id_seq', 10);

#
# Too many sequences
#
restart_with($a, 'snowflake.max_range_sequences = 2');
query($a, qq{SELECT nextval('t_id_seq')});
query($a, qq{SELECT nextval('other.w_seq')});
sql_fails($a, q{SELECT nextval('d')}, qr/53400: .*too many range sequences are used.*HINT:  Increase "snowflake.max_range_sequences", which is 2/s, 'too many range sequences');
# Without a registry
restart_with($a, "snowflake.registry = ''");
sql_fails($a, q{SELECT nextval('t_id_seq')}, qr/55000: .*range sequences require a registry/, 'without a registry there are no numbers');
sql_fails($a, q{SELECT snowflake_set_sequence_kind('t_id_seq', 'local')},
	qr/55000: .*it is not known which numbers of sequence "t_id_seq" were granted\nDETAIL:  This server has no registry/, '... and a sequence becomes local');
is(query($a, q{SELECT snowflake_set_sequence_kind('t_id_seq', 'local', without_registry => true); SELECT nextval('t_id_seq') - max(id) FROM t}), "\n1", '... only if the caller says so, above its keys');
unlike(slurp_file($a->logfile), qr/WARNING:  the registry grants no numbers .*\n.*does not know sequence/, 'nobody is warned of a new sequence');

done_testing();
