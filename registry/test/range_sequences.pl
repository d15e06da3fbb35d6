# Sequences of kind range, as applications see them: two servers give out the numbers of a
# type, none of them twice, through everything that happens to a sequence.

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

#
# Transactions
#
create_table('t', 'serial');
is(query($a, 'INSERT INTO t DEFAULT VALUES RETURNING id'), 1, 'the first number is 1');
is(query($a, q{SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname = 'id'}),
	'integer', 'the column stays as it is');
is(query($a, 'BEGIN; INSERT INTO t DEFAULT VALUES; ROLLBACK; INSERT INTO t DEFAULT VALUES RETURNING id'),
	3, 'ROLLBACK does not give a number back');
is(query($a, 'BEGIN; SAVEPOINT s; INSERT INTO t DEFAULT VALUES RETURNING id; ROLLBACK TO s; INSERT INTO t DEFAULT VALUES RETURNING id; COMMIT'),
	"4\n5", 'ROLLBACK TO does not give a number back');
is(query($a, q{SELECT nextval('t_id_seq'); SELECT currval('t_id_seq'), lastval()}), "6\n6|6", 'currval() and lastval()');
is(query($a, q{BEGIN; INSERT INTO t DEFAULT VALUES; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'; SELECT max(id) FROM t}),
	7, 'PREPARE TRANSACTION');
sql_fails($a, q{SELECT nextval('t_id_seq'); DISCARD SEQUENCES; SELECT currval('t_id_seq')},
	qr/55000: .*currval of sequence "t_id_seq" is not yet defined/, 'DISCARD SEQUENCES forgets the last number');
sql_fails($a, q{BEGIN READ ONLY; SELECT nextval('t_id_seq')}, qr/25006: .*nextval\(\)/, 'READ ONLY');
like(query($a, q{SELECT pg_get_serial_sequence('t', 'id')}), qr/t_id_seq/, 'the sequence is that of the column');
$seen{t_id_seq}{$_} = 1 foreach 1 .. 8;
take($_, 't_id_seq', 1000) foreach $a, $b, $a, $b;

#
# A change of kind
#
query($_, 'CREATE TABLE used (id serial PRIMARY KEY)') foreach $a, $b;
query($a, 'INSERT INTO used SELECT FROM generate_series(1, 50)');
query($b, 'INSERT INTO used VALUES (800); INSERT INTO used DEFAULT VALUES');
is(query($a, q{BEGIN; SELECT snowflake_set_sequence_kind('used_id_seq', 'range'); ROLLBACK; INSERT INTO used DEFAULT VALUES RETURNING id}),
	"\n51", 'after ROLLBACK of a change of kind the sequence is local');
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

# What cannot be of kind range
query($a, q{
	CREATE SEQUENCE down INCREMENT -1;
	CREATE SEQUENCE big;
	CREATE TABLE narrow (id int DEFAULT nextval('big'));
	CREATE SEQUENCE turns CYCLE;
	CREATE SEQUENCE owned OWNED BY NONE});
foreach my $case (
	[ q{SELECT snowflake_set_sequence_kind('down', 'range')}, qr/22023: .*INCREMENT -1 of sequence "down".*range sequence/, 'INCREMENT -1' ],
	[ q{SELECT snowflake_set_sequence_kind('turns', 'range')}, qr/22023: .*range sequence "turns" must not have CYCLE.*NO CYCLE/s, 'CYCLE' ],
	[ q{SELECT snowflake_set_sequence_kind('big', 'range')}, qr/42804: .*MAXVALUE of sequence "big" does not fit in column "id" of table "narrow"/, 'MAXVALUE beyond the column' ],
	[ q{CREATE TEMP SEQUENCE temporary; SELECT snowflake_set_sequence_kind('temporary', 'range')}, qr/55000: .*temporary sequence "temporary"/, 'temporary' ],
	[ q{SELECT snowflake_set_sequence_kind('down', 'ranges')}, qr/22023: .*invalid kind.*HINT:  Kinds are "snowflake", "range" and "local"/s, 'another word' ],
	[ q{SELECT snowflake_set_sequence_kind('turns', 'snowflake', 'x.y')}, qr/22023: .*only range sequences have a name/, 'a name for a snowflake sequence' ],
	[ qq{SELECT snowflake_set_sequence_kind('turns', 'range', '@{[ 'x' x 300 ]}')}, qr/42622: .*name of a range sequence is too long/, 'a long name' ],
	[ q{SECURITY LABEL FOR snowflake ON SEQUENCE turns IS 'range'}, qr/22023: .*invalid label/, 'a label without a name' ],
	[ q{SECURITY LABEL FOR snowflake ON SEQUENCE t_id_seq IS 'range database=postgres name=public.u'}, qr/55000: .*is of kind "range" already/, 'another name by the label' ])
{
	sql_fails($a, $case->[0], $case->[1], "refused: $case->[2]");
}

# R8: whoever owns a sequence cannot take the numbers of another name.
query($a, 'ALTER SEQUENCE owned OWNER TO owner; GRANT CREATE ON SCHEMA public TO owner');
sql_fails($a, q{SET ROLE owner; SELECT snowflake_set_sequence_kind('owned', 'range', 'public.t_id_seq')},
	qr/42501: .*permission denied to use numbers of "public.t_id_seq"/, 'an owner cannot take the numbers of another name');
sql_fails($a, q{SET ROLE owner; SECURITY LABEL FOR snowflake ON SEQUENCE owned IS 'range database=postgres name=public.t_id_seq'},
	qr/42501: .*permission denied to use numbers of "public.t_id_seq"/, 'nor with a label');
sql($a, q{CREATE DATABASE other});
sql_fails($a, q{SET ROLE owner; SECURITY LABEL FOR snowflake ON SEQUENCE owned IS 'range database=other name=public.owned'},
	qr/42501: .*permission denied to use numbers of "public.owned" of database "other"/, 'nor continue above those of another database');
query($a, q{SET ROLE owner; SELECT snowflake_set_sequence_kind('owned', 'range')});
is(registered('public.owned', 'count(*)'), 1, 'an owner can have its own name');
sql_fails($a, q{SET ROLE owner; SECURITY LABEL FOR snowflake ON SEQUENCE owned IS 'range database=other name=public.owned'},
	qr/42501: .*permission denied to use numbers of "public.owned" of database "other"/, '... and cannot say later that it is of another database');

# A copy of the table that another session has, with its defaults.
create_table('copied', 'serial');
my $other = $a->background_psql('postgres', on_error_die => 1);
$other->query_safe('CREATE TEMP TABLE copied (LIKE copied INCLUDING DEFAULTS); INSERT INTO copied VALUES (1000)');
is(query($a, q{SELECT snowflake_set_sequence_kind('copied_id_seq', 'local'); SELECT snowflake_set_sequence_kind('copied_id_seq', 'range'); SELECT nextval('copied_id_seq')}),
	"\n\n1", "another session's temporary table with the sequence in a default does not count");
$other->quit;

#
# ALTER SEQUENCE and TRUNCATE
#
create_table('w', 'serial');
my @w = take($a, 'w_id_seq', 3);
query($a, 'ALTER SEQUENCE w_id_seq RESTART; TRUNCATE w RESTART IDENTITY');
push @w, take($a, 'w_id_seq', 1);
query($a, 'ALTER SEQUENCE w_id_seq RENAME TO w_seq; CREATE SCHEMA other; ALTER SEQUENCE w_seq OWNED BY NONE; ALTER SEQUENCE w_seq SET SCHEMA other');
push @w, query($a, q{SELECT nextval('other.w_seq')});
$seen{w_id_seq}{ $w[-1] } = 1;
rises('numbers rise after RESTART, RENAME and SET SCHEMA', @w);
take($b, 'w_id_seq', 10);
is(registered('public.w_id_seq', 'count(*)'), 1, 'the name in the registry stays as it was');

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
query($a, q{BEGIN; DROP SEQUENCE d; ROLLBACK});
push @d, take($a, 'd', 2);
my $cached = $a->background_psql('postgres', on_error_die => 1);
push @d, $cached->query_safe(q{SELECT nextval('d')});
query($a, q{BEGIN; DROP SEQUENCE d; ROLLBACK; CREATE SEQUENCE d_other AS int; SELECT snowflake_set_sequence_kind('d_other', 'range'); SELECT nextval('d_other')});
push @d, $cached->query_safe(q{SELECT nextval('d')});
$cached->quit;
rises('numbers rise after DROP was rolled back', @d);
query($a, q{DROP SEQUENCE d; CREATE SEQUENCE d AS int; SELECT snowflake_set_sequence_kind('d', 'range')});
push @d, query($a, q{SELECT nextval('d')});
rises('a sequence of the same name continues above', @d);
query($a, q{CREATE SEQUENCE e AS int; SELECT snowflake_set_sequence_kind('e', 'range', 'public.d')});
$seen{d}{$_} = 1 foreach @d;
query($a, q{SELECT nextval('e')}) =~ /(\d+)/;
ok(!$seen{d}{$1}++, 'two sequences with one name have numbers of their own');
take($a, 'd', 10);

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

# What copies a schema, such as clone_schema(), copies the end of an exhausted sequence.
query($a, q{
	CREATE TABLE tenant (id serial PRIMARY KEY);
	INSERT INTO tenant SELECT generate_series(1, 50);
	SET client_min_messages = error;
	SELECT setval('tenant_id_seq', 2147483647);
	SELECT snowflake_set_sequence_kinds('{tenant_id_seq}', 'range')});
is(query($a, 'INSERT INTO tenant DEFAULT VALUES RETURNING id'), 51, 'a copy of an exhausted sequence continues above its keys');

foreach my $server ($a, $b)
{
	query($server, q{
		SET snowflake.default_sequence_kind = range;
		CREATE SCHEMA tenant;
		CREATE SEQUENCE tenant.t_id_seq;
		ALTER SEQUENCE tenant.t_id_seq AS integer INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 RESTART 1 CACHE 1 NO CYCLE;
		SELECT setval('tenant.t_id_seq', last_value, is_called) FROM t_id_seq;
		CREATE TABLE tenant.t (id integer PRIMARY KEY DEFAULT nextval('tenant.t_id_seq'), x int);
		ALTER SEQUENCE tenant.t_id_seq OWNED BY tenant.t.id;
		INSERT INTO tenant.t SELECT generate_series(1, 500)});
}
cmp_ok(min(map { query($_, 'INSERT INTO tenant.t DEFAULT VALUES RETURNING id') } $a, $b), '>', 500, 'so does one that gets its kind by the setting');

# Two sequences of a name with different ends use one slot.
query($a, q{
	CREATE SEQUENCE twin AS int MAXVALUE 1000000;
	SELECT snowflake_set_sequence_kind('twin', 'range'), nextval('twin');
	ALTER SEQUENCE twin RENAME TO twin_old;
	CREATE SEQUENCE twin AS int MAXVALUE 2000000;
	SECURITY LABEL FOR snowflake ON SEQUENCE twin IS 'range database=postgres name=public.twin'});
my $lost = sub { return registered('public.twin', 'next') };
my %turns = map { $_ => $a->background_psql('postgres', on_error_die => 1) } qw(twin twin_old);
my $before = $lost->();
my @turns = map { my $name = $_ % 2 ? 'twin' : 'twin_old'; $turns{$name}->query_safe("SELECT nextval('$name')") } 1 .. 40;
rises('numbers of two sequences of a name increase', @turns);
cmp_ok($lost->() - $before, '<=', 400, '... and neither loses those of the other one');
$_->quit foreach values %turns;

# ... also while the registry answers for one of them, and when one has no number left.
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
is(query($a, q{SELECT setval('im_id_seq', 5000); SELECT currval('im_id_seq')}), "5000\n5000", 'setval()');
cmp_ok(min(take($_, 'im_id_seq', 1)), '>', 5000, 'after setval() numbers of ' . $_->name . ' are above it') foreach $b, $a;
is(query($a, q{SELECT setval('im_id_seq', 5)}), 5, 'setval() below changes nothing');
is(query($a, q{SELECT setval('im_id_seq', 6001, false)}), 6001, 'setval() of the next value');
cmp_ok(min(take($b, 'im_id_seq', 1)), '>', 6000, 'numbers are not below the next value');
# A reserve may be granted meanwhile.
my $floor = registered('public.im_id_seq', 'floor');
is(query($a, q{SELECT setval('im_id_seq', 2147483647)}), 2147483647, 'setval() to the end of the type, as in a dump');
is(registered('public.im_id_seq', q{floor || ' ' || (next < 10000)}), "$floor true", 'setval() to the end of the type changes nothing in the registry');
sql_fails($a, q{SELECT setval('im_id_seq', 2147483648)}, qr/22003: .*out of bounds for sequence "im_id_seq" \(1..2147483647\)/, 'setval() beyond the type');
sql_fails($a, q{SELECT setval('im_id_seq', 2000000000)},
	qr/55000: .*the registry refuses to continue sequence "im_id_seq" above 2000000000/, 'setval() far ahead is refused');
take($_, 'im_id_seq', 10) foreach $a, $b;

# setval() reserves nothing: other servers have the numbers between.
create_table('block', 'serial');
take($_, 'block_id_seq', 20) foreach $a, $b;
foreach my $setval (q{setval('block_id_seq', nextval('block_id_seq') + 299)}, q{setval('block_id_seq', nextval('block_id_seq') + 300, false)})
{
	sql_fails($a, "SELECT $setval",
		qr/0A000: .*setval\(\) cannot reserve values of sequence "block_id_seq".*HINT:  [^\n]*nextval\('block_id_seq'::regclass\) FROM generate_series/s, "$setval is refused");
}
cmp_ok(registered('public.block_id_seq', 'floor'), '<', 100, '... and sets no floor');
is(query($a, q{INSERT INTO block DEFAULT VALUES; INSERT INTO block SELECT g FROM generate_series(1000, 1500) g;
	SELECT setval('block_id_seq', max(id)), setval('block_id_seq', max(id) + 1, false) FROM block}), '1500|1501', 'setval() above keys of an import');
cmp_ok(min(take($b, 'block_id_seq', 1)), '>', 1500, 'numbers of the other server are above it');
is(query($a, q{SELECT setval('block_id_seq', 2000)}), 2000, 'setval() before the first number of a session');

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
# Views, dump, another database
#
is(query($a, q{SELECT kind, numbers_left > 2000000000, problem FROM snowflake_sequences WHERE sequence = 't_id_seq'}),
	'range|t|', 'snowflake_sequences has what is left');
query($a, 'CREATE DATABASE restored');
$floor = registered('public.t_id_seq', 'floor');
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
		s smallint GENERATED BY DEFAULT AS IDENTITY (START WITH 10), b bigint GENERATED ALWAYS AS IDENTITY, n int);
	CREATE TABLE nt_refers (id int REFERENCES nt)}) foreach $a, $b;
is(query($a, $distributed . sprintf($columns, 'nt')), join("\n",
	'b|bigint|snowflake|bigint|', 'big|bigint|snowflake|bigint|', 'i|integer|range|integer|',
	'id|integer|range|integer|', 's|smallint|range|smallint|', 'small|smallint|range|smallint|'),
	'distributed: bigint columns have snowflake sequences, and smaller ones range sequences');
is(query($a, q{SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'nt_refers'::regclass AND attnum = 1}),
	'integer', 'what references a key stays integer');
is(query($a, q{SELECT label FROM pg_seclabel WHERE objoid = 'nt_id_seq'::regclass}),
	'range default database=postgres name=public.nt_id_seq', 'the label says that it was the default');
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
foreach my $kind (qw(distributed range))
{
	query($a, "CREATE TABLE identity_$kind AS SELECT generate_series(1, 50) AS x");
	my $add = "SET snowflake.default_sequence_kind = $kind; ALTER TABLE identity_$kind ADD c int GENERATED ALWAYS AS IDENTITY";
	sql_fails($a, $add, qr/2200H: .*HINT:  If the table has rows, add a serial column instead/s, "$kind: an identity for rows that exist");
	query($a, $add =~ s/int GENERATED.*/serial/r);
	is( query($a, "SELECT count(DISTINCT c), min(c), nextval(pg_get_serial_sequence('identity_$kind', 'c')) > max(c) FROM identity_$kind; SELECT kind FROM snowflake_sequences WHERE table_name = 'identity_$kind'"),
		"50|1|t\nrange", "$kind: ... and a serial column in place of it");
}

# A sequence begins at START, or above the keys.
query($a, qq{$distributed
	CREATE TABLE keyed AS SELECT g AS id, g AS i FROM generate_series(1, 700) g;
	ALTER TABLE keyed ALTER i SET NOT NULL;
	CREATE SEQUENCE keyed_seq;
	ALTER TABLE keyed ALTER id SET DEFAULT nextval('keyed_seq'), ALTER i ADD GENERATED ALWAYS AS IDENTITY (START 1000)});
is(query($a, q{SELECT nextval('keyed_seq'), nextval('keyed_i_seq')}), '701|1000', 'for a column that exists, a sequence begins above its keys');
is(query($a, q{SELECT setval('keyed_seq', max(id)) FROM keyed; SELECT nextval('keyed_seq') > 700}), "700\nt", '... and above the keys after setval()');
is(query($a, $distributed . sprintf($columns, 'keyed')), "i|integer|range|integer|\nid|integer|range|integer|", 'its sequence gets its type');

# Columns that are not bigint
is( query($a, qq{$distributed
		CREATE SEQUENCE no_seq; CREATE SEQUENCE small_no; CREATE SEQUENCE late_no;
		CREATE TABLE texts (n int, no text DEFAULT 'INV-' || lpad(nextval('no_seq')::text, 6, '0'), s smallint DEFAULT nextval('small_no'));
		ALTER TABLE texts ADD l int DEFAULT nextval('late_no'::text) + 1;
		INSERT INTO texts DEFAULT VALUES RETURNING no, s, l;
		SELECT seqtypid::regtype, seqmax, kind FROM pg_sequence JOIN snowflake_sequences ON seqrelid = sequence::regclass WHERE sequence ~ '_no\$|no_seq' ORDER BY sequence COLLATE "C"}),
	"INV-000001|1|2\ninteger|2147483647|range\nbigint|9223372036854775807|range\nsmallint|32767|range",
	'distributed: a default of a column that is not bigint has a range sequence, which ends where the column does');
query($a, q{SET snowflake.default_sequence_kind = range; CREATE SEQUENCE order_no; CREATE SEQUENCE used_no});
query($a, q{SELECT nextval('used_no')});
is( query($a, q{SET snowflake.default_sequence_kind = range; CREATE TABLE orders (no int DEFAULT nextval('order_no'), u int DEFAULT nextval('used_no'));
		SELECT seqtypid::regtype, regexp_replace(label, 'last_value=[0-9]+ ', '') FROM pg_sequence JOIN pg_seclabel ON seqrelid = objoid WHERE seqrelid IN ('order_no'::regclass, 'used_no'::regclass) ORDER BY 2;
		INSERT INTO orders DEFAULT VALUES RETURNING u}),
	"integer|range default database=postgres name=public.order_no\ninteger|range default database=postgres name=public.used_no\n2", 'range: also one that was used, and continues');

# What resets a sequence before its first number
query($a, q{SET snowflake.default_sequence_kind = range; CREATE TABLE reset (id serial, n int)});
query($a, 'TRUNCATE reset RESTART IDENTITY');
query($a, 'ALTER SEQUENCE reset_id_seq RESTART');
query($a, 'ALTER TABLE reset SET UNLOGGED');
is(query($a, 'INSERT INTO reset DEFAULT VALUES RETURNING id'), '1', 'a new sequence that was reset begins with 1');
query($a, q{SET snowflake.default_sequence_kind = range; CREATE TABLE restarted (id serial, n int)});
$a->restart;
is(query($a, 'INSERT INTO restarted DEFAULT VALUES RETURNING id'), '1', '... and one whose server was restarted before');
take($a, 't_id_seq', 1);

# The least integer has no number before it.
is( query($a, q{CREATE SEQUENCE lowest MINVALUE -9223372036854775808;
	SELECT snowflake_set_sequence_kind('lowest', 'range'); SELECT nextval('lowest')}) =~ s/\s//gr,
	'1', 'a sequence that begins at the least integer continues at 1');
is(query($a, q{SELECT setval('lowest', -9223372036854775808, false), nextval('lowest')}),
	'-9223372036854775808|2', 'setval() to it sets no floor');
is( query($a, q{CREATE TABLE high (id int PRIMARY KEY); INSERT INTO high VALUES (5);
	CREATE SEQUENCE high_seq AS int MINVALUE 1000 OWNED BY high.id;
	SELECT snowflake_set_sequence_kind('high_seq', 'range'); SELECT snowflake_set_sequence_kind('high_seq', 'local');
	SELECT nextval('high_seq')}) =~ s/\s//gr,
	'1000', 'a local sequence does not continue below its MINVALUE');

my $gone = "$distributed BEGIN; CREATE TABLE gone (id serial PRIMARY KEY); INSERT INTO gone DEFAULT VALUES RETURNING id;";
my $first_gone = query($a, "$gone ROLLBACK");
is(query($a, q{SELECT to_regclass('gone_id_seq') IS NULL}), 't', 'ROLLBACK removes the sequence');
cmp_ok(query($a, "$gone COMMIT"), '>', $first_gone, 'after ROLLBACK the numbers of that name continue');
is(query($a, q{SELECT numbers_held > 0 FROM snowflake_sequences WHERE sequence = 'gone_id_seq'}),
	't', 'the view knows the ranges of the new sequence of that name');
is(query($b, "$gone COMMIT; SELECT kind FROM snowflake_sequences WHERE table_name = 'gone'") =~ /^(\d+)\nrange$/ && $1 > $first_gone,
	1, 'also on the other server');

query($a, q{SET snowflake.default_sequence_kind = range; CREATE TABLE all_range (id serial, b bigserial, i bigint GENERATED ALWAYS AS IDENTITY)});
is(query($a, 'SET snowflake.default_sequence_kind = range;' . sprintf($columns, 'all_range')),
	"b|bigint|range|bigint|\ni|bigint|range|bigint|\nid|integer|range|integer|", 'range: all columns have range sequences');
is(query($a, q{SET snowflake.default_sequence_kind = snowflake; CREATE TABLE shares (id int DEFAULT nextval('all_range_id_seq'));} . sprintf($columns, 'shares')),
	'id|integer|range|integer|', 'a column can share a range sequence');

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
