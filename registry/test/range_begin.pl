# Where the numbers of a range sequence begin, and continue when it is local: nothing of it is
# remembered by a server, so no statement can take it away, or make of it what it is not.

use List::Util qw(max min);
use SnowflakeTest;

my $registry = new_registry('registry', '1, 100, new => true');
my @databases = qw(postgres copy labelled renamed first grouped shared restored);
sql($registry, "SELECT snowflake_registry.add_database('$_')") foreach @databases;
my ($a, $b) = map {
	new_server($_, registry_conf($registry), "snowflake.server_name = '$_'", "snowflake.grant_timeout = '1 min'")
} 'a', 'b';
my $by_default = 'SET snowflake.default_sequence_kind = range;';

sub query { my ($node, $sql, $database) = @_; return $node->safe_psql($database // 'postgres', $sql); }
sub asked { return query($registry, $_[0]); }
sub next_of { my ($name, $group) = @_; return asked(sprintf q{SELECT next FROM snowflake_registry.range_sequences WHERE name = '%s' AND database_group = '%s'}, $name, $group // 'postgres'); }
sub not_stopped { return is(asked('SELECT stopped FROM snowflake_registry.range_state'), '', "$_[0]: the registry grants numbers"); }

#
# A name that the registry does not know begins above the keys.
#
query($a, qq{$by_default
	CREATE TABLE keyed AS SELECT g AS id FROM generate_series(1, 700) g;
	CREATE SEQUENCE keyed_seq START 50;
	ALTER TABLE keyed ALTER id SET DEFAULT nextval('keyed_seq')});
is(query($a, q{INSERT INTO keyed DEFAULT VALUES RETURNING id}), 701, 'a new sequence begins above the keys');
query($b, qq{$by_default CREATE TABLE keyed (id int); CREATE SEQUENCE keyed_seq START 50; ALTER TABLE keyed ALTER id SET DEFAULT nextval('keyed_seq')});
cmp_ok(query($b, 'INSERT INTO keyed DEFAULT VALUES RETURNING id'), '>', 701, '... and one of its name on another server above all that was granted');
query($a, qq{$by_default CREATE TABLE started (id serial, n int GENERATED ALWAYS AS IDENTITY (START 1000))});
is(query($a, 'INSERT INTO started DEFAULT VALUES RETURNING id, n'), '1|1000', 'without keys, it begins at START');

# A table that is altered meanwhile has new indexes that are not built.
foreach my $column ('id serial PRIMARY KEY', q{id int DEFAULT nextval('unused') PRIMARY KEY})
{
	query($a, qq{$by_default CREATE SEQUENCE IF NOT EXISTS unused AS int; DROP TABLE IF EXISTS filled; CREATE TABLE filled AS SELECT g AS n FROM generate_series(1, 3000) g});
	is(query($a, qq{$by_default ALTER TABLE filled ADD $column; SELECT count(DISTINCT id), min(id) FROM filled}), '3000|1', "ADD $column in a table with rows");
}
# Nor can it be read, if it has keys.
query($a, qq{$by_default CREATE TABLE altered (id serial PRIMARY KEY, n smallint); INSERT INTO altered SELECT generate_series(1, 300), 1});
foreach my $change (q{ADD x int DEFAULT nextval('altered_id_seq')}, q{ALTER id TYPE bigint USING nextval('altered_id_seq')},
	q{ALTER n TYPE bigint, ADD y int DEFAULT nextval('altered_id_seq')})
{
	sql_fails($a, "ALTER TABLE altered $change", qr/ERROR:  55006: keys of table "altered" cannot be read while it is altered/, "$change: no number is taken that could be below the keys");
}
is(query($a, q{SELECT nextval('altered_id_seq')}), 301, '... but before, it is');
is(query($a, q{ALTER TABLE altered ADD x int DEFAULT nextval('altered_id_seq'), ALTER n TYPE bigint; SELECT count(DISTINCT x), min(x) > 301 FROM altered}), '300|t', '... and then it can be altered');
# What inherits from a table is read with it.
query($a, qq{$by_default CREATE SEQUENCE inherited AS int; CREATE TABLE parent (id int DEFAULT nextval('inherited'));
	CREATE TABLE child (n int) INHERITS (parent); ALTER TABLE child ALTER id DROP DEFAULT; INSERT INTO child SELECT g + 600, g FROM generate_series(1, 300) g;
	CREATE TABLE partitioned (id serial, n int) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF partitioned FOR VALUES FROM (0) TO (1000000);
	INSERT INTO partitioned SELECT g, g FROM generate_series(1, 300) g});
foreach my $change (q{child ALTER n TYPE text USING nextval('inherited')::text || repeat('x', 3)}, q{child ADD x int DEFAULT nextval('inherited'), ADD PRIMARY KEY (id)},
	q{partitioned ALTER n TYPE text USING nextval('partitioned_id_seq')::text}, q{part ADD CHECK (nextval('partitioned_id_seq') > n), ADD PRIMARY KEY (id)})
{
	sql_fails($a, "ALTER TABLE $change", qr/ERROR:  55006: keys of table "(child|part|partitioned)" cannot be read while it is altered/, "$change: nor can a table that it is read with");
}
is(query($a, q{ALTER TABLE partitioned ADD x serial; SELECT count(DISTINCT x), min(x) FROM partitioned}), '300|1', 'a new column of all partitions has no keys');
is(query($a, q{SELECT nextval('inherited')}), 901, 'otherwise, its keys count');
# Row security hides no key.
query($a, q{
	CREATE ROLE owner; GRANT CREATE, USAGE ON SCHEMA public TO owner; SET ROLE owner; SET snowflake.default_sequence_kind = range;
	CREATE TABLE secured (id serial PRIMARY KEY); INSERT INTO secured VALUES (500);
	ALTER TABLE secured ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY});
is(query($a, q{SET ROLE owner; SELECT nextval('secured_id_seq')}), 501, 'keys that row security hides count');

# Who may only use the sequence says nothing of it, and delays nobody.
query($a, q{
	CREATE ROLE user_of_it; GRANT USAGE ON SEQUENCE secured_id_seq TO user_of_it;
	CREATE SCHEMA user_of_it AUTHORIZATION user_of_it; SET ROLE user_of_it;
	CREATE TABLE user_of_it.t (id int DEFAULT nextval('public.secured_id_seq')); INSERT INTO user_of_it.t VALUES (900000);
	CREATE TABLE user_of_it.narrow (id smallint DEFAULT nextval('public.secured_id_seq'));
	CREATE FUNCTION user_of_it.slow(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3); RETURN $1; END $$;
	CREATE INDEX ON user_of_it.t (id) WHERE user_of_it.slow(1) = 1});
my $begun = time;
sql_fails($a, q{SET ROLE owner; SELECT snowflake_set_sequence_kind('secured_id_seq', 'range')},
	qr/^(?!.*ERROR).*WARNING:  01000: keys of table "(t|narrow)" do not count for sequence "secured_id_seq"/s, 'a table of who may only use the sequence does not count, with a WARNING');
cmp_ok(time - $begun, '<', 3, '... and none of its code is executed');
sql_fails($a, q{SET ROLE owner; SELECT snowflake_set_sequence_kind('secured_id_seq', kind) FROM unnest('{local,range}'::text[]) kind}, qr/^(?!.*ERROR)/s, 'nor prevents it a change of kind');
cmp_ok(query($a, q{SELECT nextval('secured_id_seq')}), '<', 10000, '... nor says where it continues');

#
# local: above all that the registry granted
#
query($_, q{CREATE TABLE l (id serial PRIMARY KEY); SELECT snowflake_set_sequence_kind('l_id_seq', 'range')}) foreach $a, $b;
my @granted = map { query($_, q{SELECT max(nextval('l_id_seq')) FROM generate_series(1, 500)}) } $a, $b;
$a->restart;
# Without the registry, it is not known.
$registry->stop('fast');
sql_fails($a, q{SELECT snowflake_set_sequence_kind('l_id_seq', 'local')},
	qr/ERROR:  55000: it is not known which numbers of sequence "l_id_seq" were granted\nDETAIL: .*\nHINT:  If the registry is gone for good.*without_registry => true/, 'without the registry, a sequence does not become local');
cmp_ok(query($a, q{BEGIN; INSERT INTO l VALUES (3000); SELECT snowflake_set_sequence_kind('l_id_seq', 'local', without_registry => true); SELECT nextval('l_id_seq'); ROLLBACK}) =~ s/\s//r,
	'>', 3000, '... but above its keys if the caller says so');
cmp_ok(query($a, q{BEGIN; INSERT INTO l VALUES (3000); SELECT snowflake_set_sequence_kinds(ARRAY['l_id_seq'::regclass], 'local', without_registry => true); SELECT nextval('l_id_seq'); ROLLBACK}) =~ s/\s//r,
	'>', 3000, '... also of many sequences');
$registry->start;
# What waits for a statement that is rolled back
my $altering = $a->background_psql('postgres', on_error_die => 1);
$altering->query_safe('BEGIN; ALTER SEQUENCE l_id_seq CACHE 1');
my @truncate = start_queries($a, 'TRUNCATE l RESTART IDENTITY');
wait_until_true($a, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted});
$altering->query_safe('ROLLBACK');
$altering->quit;
finish_queries(@truncate);
query($a, q{SELECT snowflake_set_sequence_kind('l_id_seq', 'local')});
cmp_ok(query($a, q{SELECT nextval('l_id_seq')}), '>', max(@granted), 'a local sequence continues above what all servers were granted, whatever was done to it');

query($a, q{DO $$ BEGIN FOR i IN 1 .. 150 LOOP EXECUTE format('CREATE SEQUENCE many%s', i); END LOOP; END $$;
	SELECT snowflake_set_sequence_kinds(array_agg(oid::regclass), 'range') FROM pg_class WHERE relname ~ '^many'});
my $calls = q{SELECT sum(calls) FROM snowflake_registry.range_clients};
my $before = asked($calls);
query($a, q{SELECT snowflake_set_sequence_kinds(array_agg(oid::regclass), 'local') FROM pg_class WHERE relname ~ '^many'});
cmp_ok(asked($calls) - $before, '<', 75, '150 sequences become local with a few calls of the registry');

#
# A label that an owner writes
#
sql_fails($a, q{CREATE SEQUENCE nowhere; SECURITY LABEL FOR snowflake ON SEQUENCE nowhere IS 'range name=public.nowhere'},
	qr/22023: .*invalid label of a sequence/, 'without a database, a copy could not be told from it');
my $label = q{SECURITY LABEL FOR snowflake ON SEQUENCE %1$s IS 'range%2$s database=postgres name=public.%1$s'; SELECT nextval('%1$s')};
foreach my $case ([ 'written', ' last_value=1' ], [ 'ended', '', q{SELECT setval('ended_id_seq', 2147483647)} ],
	[ 'restarted', '', 'ALTER SEQUENCE restarted_id_seq RESTART' ])
{
	my ($name, $position, $then) = @$case;
	query($a, qq{CREATE TABLE $name (id serial); SELECT snowflake_set_sequence_kind('${name}_id_seq', 'range'); INSERT INTO $name DEFAULT VALUES;
		SELECT snowflake_set_sequence_kind('${name}_id_seq', 'local'); INSERT INTO $name SELECT FROM generate_series(1, 5000); } . ($then // ''));
	my $greatest = query($a, "SELECT max(id) FROM $name");
	cmp_ok(query($a, sprintf($label, "${name}_id_seq", $position)), '>', $greatest, "a used sequence ($name) whose owner writes its label continues above its numbers");
}
query($a, 'CREATE SEQUENCE unheard');
query($a, q{SECURITY LABEL FOR snowflake ON SEQUENCE unheard IS 'range database=postgres name=public.unheard'});
is(next_of('public.unheard'), '', 'the registry is not asked for the label of an unused one');

#
# A database that is copied, renamed, restored under another name, or put into another group
#
sub fill ($database)
{
	query($a, "CREATE DATABASE $database");
	query($a, q{CREATE EXTENSION snowflake; CREATE TABLE t (id serial PRIMARY KEY, n int); CREATE TABLE other (id int);
		SELECT snowflake_set_sequence_kind('t_id_seq', 'range'); INSERT INTO t (n) SELECT generate_series(1, 5000);
		INSERT INTO other SELECT id FROM t; DELETE FROM t WHERE id > 4000}, $database);
	return;
}

sub continues ($label, $database)
{
	my $greatest = query($a, 'SELECT max(id) FROM other', $database);

	foreach my $times ('', ', after a restart')
	{
		my $number = query($a, 'INSERT INTO t (n) VALUES (1) RETURNING id', $database);
		cmp_ok($number, '>', $greatest, "$label$times: it continues above its numbers");
		$greatest = $number;
		$a->restart if $times eq '';
	}
	not_stopped($label);
	return;
}
fill('first');
is(query($a, q{SELECT label FROM pg_seclabel}, 'first'), 'range database=first name=public.t_id_seq', 'the label has the database');
query($a, 'CREATE DATABASE copy TEMPLATE first');
continues('a template', 'copy');
my $at = next_of('public.t_id_seq', 'copy');
query($a, 'INSERT INTO t (n) VALUES (1)', 'copy');
cmp_ok(next_of('public.t_id_seq', 'copy') - $at, '<=', 200, 'a copy skips what the other database was granted only once');
query($a, 'INSERT INTO t (n) SELECT generate_series(1, 3000)', 'first');
query($a, $_) foreach 'DROP DATABASE copy', 'CREATE DATABASE copy TEMPLATE first';
continues('a template for the second time', 'copy');
# One whose owner writes that it is no copy, while others have numbers of its name
query($_, 'CREATE DATABASE labelled' . ($_ == $a ? ' TEMPLATE first' : '')) foreach $a, $b;
query($b, q{CREATE EXTENSION snowflake; CREATE SEQUENCE t_id_seq AS int; SELECT snowflake_set_sequence_kind('t_id_seq', 'range'); SELECT nextval('t_id_seq')}, 'labelled');
query($a, q{SECURITY LABEL FOR snowflake ON SEQUENCE t_id_seq IS 'range database=labelled name=public.t_id_seq'}, 'labelled');
continues('a template whose owner writes the label', 'labelled');
my $dump = $a->basedir . '/dump.sql';
command_ok([ 'pg_dump', '-f', $dump, '-d', $a->connstr('first') ], 'pg_dump');
query($a, 'CREATE DATABASE restored');
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $a->connstr('restored') ], 'psql');
continues('a dump under another name', 'restored');
query($a, q{SELECT snowflake_set_sequence_kind('t_id_seq', 'range')}, 'restored');
is(query($a, q{SELECT label FROM pg_seclabel}, 'restored'), 'range database=restored name=public.t_id_seq', 'when the kind is set again, the label has the name of this database');
query($a, 'ALTER DATABASE first RENAME TO renamed');
continues('another name', 'renamed');

# Another database gets the name of one that was used.
query($a, 'INSERT INTO t (n) VALUES (1)', 'copy');
query($a, 'INSERT INTO t (n) SELECT generate_series(1, 20000); INSERT INTO other SELECT max(id) FROM t', 'restored');
query($a, $_) foreach 'DROP DATABASE copy', 'ALTER DATABASE restored RENAME TO copy';
continues('the name of another database', 'copy');

fill($_) foreach qw(grouped shared);
asked("SELECT snowflake_registry.remove_database('grouped')");
asked("SELECT snowflake_registry.add_database('grouped', shared_as => 'shared')");
$a->restart;
continues('another group', 'grouped');

# A trigger in the middle of TRUNCATE that gives the sequence another name
query($a, q{
	CREATE SEQUENCE b AS int; SELECT snowflake_set_sequence_kind('b', 'range'); SELECT nextval('b'); DROP SEQUENCE b;
	CREATE TABLE switched (id serial, x int); ALTER SEQUENCE switched_id_seq RENAME TO a; SELECT snowflake_set_sequence_kind('a', 'range');
	SELECT max(nextval('a')) FROM generate_series(1, 5000);
	CREATE FUNCTION switch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		EXECUTE 'SECURITY LABEL FOR snowflake ON SEQUENCE a IS NULL';
		EXECUTE 'ALTER SEQUENCE a RENAME TO b';
		EXECUTE 'SECURITY LABEL FOR snowflake ON SEQUENCE b IS ''range last_value=1 database=postgres name=public.b''';
		RETURN NULL; END $$;
	CREATE TRIGGER switch BEFORE TRUNCATE ON switched EXECUTE FUNCTION switch();
	TRUNCATE switched RESTART IDENTITY});
cmp_ok(query($a, q{SELECT nextval('b')}), '>', 5000, 'a sequence that gets another name in a trigger continues above its numbers');
not_stopped('a trigger that gives a sequence another name');

# A name that has other bytes in the registry than in its database
asked("SELECT snowflake_registry.add_database('latin')");
query($a, "CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'");
is(query($a, q{CREATE EXTENSION snowflake; CREATE SEQUENCE U&"\00FC" AS int;
	CREATE VIEW s AS SELECT oid::regclass FROM pg_class WHERE relkind = 'S' AND relname = U&'\00FC';
	SELECT snowflake_set_sequence_kind(oid, 'range') FROM s; SELECT count(nextval(oid)) FROM s, generate_series(1, 50);
	SELECT snowflake_set_sequence_kind(oid, 'local', without_registry => true) FROM s; SELECT nextval(oid) > 50 FROM s}, 'latin'),
	"\n50\n\nt", 'without the registry, what this server was granted counts, whatever the encoding is');

done_testing();
