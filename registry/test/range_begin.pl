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

# A name that the registry does not know begins above the keys.
# (registry_client/sql/range_tables.sql has what one session sees.)
query($a, qq{$by_default
	CREATE TABLE keyed AS SELECT g AS id FROM generate_series(1, 700) g;
	CREATE SEQUENCE keyed_seq START 50;
	ALTER TABLE keyed ALTER id SET DEFAULT nextval('keyed_seq')});
is(query($a, q{INSERT INTO keyed DEFAULT VALUES RETURNING id}), 701, 'a new sequence begins above the keys');
query($b, qq{$by_default CREATE TABLE keyed (id int); CREATE SEQUENCE keyed_seq START 50; ALTER TABLE keyed ALTER id SET DEFAULT nextval('keyed_seq')});
cmp_ok(query($b, 'INSERT INTO keyed DEFAULT VALUES RETURNING id'), '>', 701, '... and one of its name on another server above all that was granted');

#
# local: above all that the registry granted
#
query($_, q{CREATE TABLE l (id serial PRIMARY KEY); SELECT snowflake_set_sequence_kind('l_id_seq', 'range')}) foreach $a, $b;
my @granted = map { query($_, q{SELECT max(nextval('l_id_seq')) FROM generate_series(1, 500)}) } $a, $b;
$a->restart;
# Without the registry, it is not known.
$registry->stop('fast');
change_setting($a, 'snowflake.grant_timeout', '2s');
sql_fails($a, q{SELECT snowflake_set_sequence_kind('l_id_seq', 'local')},
	qr/ERROR:  55000: it is not known which numbers of sequence "l_id_seq" were granted\nDETAIL: .*\nHINT:  If the registry is gone for good.*without_registry => true/, 'without the registry, a sequence does not become local');
cmp_ok(query($a, q{BEGIN; INSERT INTO l VALUES (3000); SELECT snowflake_set_sequence_kind('l_id_seq', 'local', without_registry => true); SELECT nextval('l_id_seq'); ROLLBACK}) =~ s/\s//r,
	'>', 3000, '... but above its keys if the caller says so');
cmp_ok(query($a, q{BEGIN; INSERT INTO l VALUES (3000); SELECT snowflake_set_sequence_kinds(ARRAY['l_id_seq'::regclass], 'local', without_registry => true); SELECT nextval('l_id_seq'); ROLLBACK}) =~ s/\s//r,
	'>', 3000, '... also of many sequences');
$registry->start;
change_setting($a, 'snowflake.grant_timeout', '1min');
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

# What the registry cannot know of: rows of a database that gets back a name that it had, and those
# of another server that has other keys
query($a, 'INSERT INTO t (n) SELECT generate_series(1, 5000); INSERT INTO other SELECT max(id) FROM t', 'renamed');
query($a, 'ALTER DATABASE renamed RENAME TO first');
query($a, q{SELECT snowflake_set_sequence_kind('t_id_seq', 'range')}, 'first');
continues('the name from before, when the kind is set again', 'first');
query($b, q{INSERT INTO keyed VALUES (20000); SELECT snowflake_set_sequence_kind('keyed_seq', 'range')});
cmp_ok(query($b, 'INSERT INTO keyed DEFAULT VALUES RETURNING id'), '>', 20000, 'other keys of another server, likewise');

fill($_) foreach qw(grouped shared);
asked("SELECT snowflake_registry.remove_database('grouped')");
asked("SELECT snowflake_registry.add_database('grouped', shared_as => 'shared')");
$a->restart;
continues('another group', 'grouped');

# A name that has other bytes in the registry than in its database
asked("SELECT snowflake_registry.add_database('latin')");
query($a, "CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'");
is(query($a, q{CREATE EXTENSION snowflake; CREATE SEQUENCE U&"\00FC" AS int;
	CREATE VIEW s AS SELECT oid::regclass FROM pg_class WHERE relkind = 'S' AND relname = U&'\00FC';
	SELECT snowflake_set_sequence_kind(oid, 'range') FROM s; SELECT count(nextval(oid)) FROM s, generate_series(1, 50);
	SELECT snowflake_set_sequence_kind(oid, 'local', without_registry => true) FROM s; SELECT nextval(oid) > 50 FROM s}, 'latin'),
	"\n50\n\nt", 'without the registry, what this server was granted counts, whatever the encoding is');

done_testing();
