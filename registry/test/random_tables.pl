# Random definitions of tables, with each value of snowflake.default_sequence_kind: a
# statement succeeds if it does without the extension, and what is in the catalogs is the
# same, but for the kinds of sequences, and the type of one that fits a default.
# SnowflakeTest::Random says how many rounds.

use List::Util qw(max);
use SnowflakeTest::Session;
use SnowflakeTest;

my $seed = first_seed();
my $trace = $ENV{SNOWFLAKE_TRACE};

my $node = new_own_registry('main', 'here', 'fsync = off', 'autovacuum = off', 'max_locks_per_transaction = 500',
	"snowflake.grant_timeout = '1 min'", 'snowflake.max_range_sequences = 10000');
sql($node, 'CREATE ROLE regress_other; CREATE ROLE regress_app');
sql($node, "CREATE DATABASE $_ OWNER regress_app") foreach qw(here plain);
$node->safe_psql('here', 'CREATE SCHEMA ext; CREATE EXTENSION snowflake SCHEMA ext');

# What is there, a line for each object.
my $describe = q{
	WITH rel AS (
		SELECT c.*, c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE (nspname IN ('public', 's1', 's2', 'app') OR relnamespace = pg_my_temp_schema()) AND relname NOT LIKE 'pg\_toast%'),
	owned AS (
		SELECT objid, format('%s.%I', refobjid::regclass, (SELECT attname FROM pg_attribute WHERE (attrelid, attnum) = (refobjid, refobjsubid))) AS owner,
			refobjid, refobjsubid
		FROM pg_depend WHERE classid = 'pg_class'::regclass AND refclassid = classid AND deptype IN ('a', 'i') AND objid IN (SELECT oid FROM rel WHERE relkind = 'S'))
	SELECT format('relation %s %s %s %s %s bound=%s %s type=%s comment=%s parents=%s', name, relkind, relpersistence, relowner::regrole, relacl, pg_get_expr(relpartbound, oid), reloptions, nullif(reloftype, 0)::regtype, obj_description(oid, 'pg_class'),
		(SELECT string_agg(inhparent::regclass::text, ',' ORDER BY inhseqno) FROM pg_inherits WHERE inhrelid = oid)) FROM rel WHERE relkind IN ('r', 'p', 'f', 'v', 'm', 'c')
	UNION ALL
	SELECT format('column %s.%I %s %s notnull=%s default=%s identity=%s generated=%s local=%s,%s storage=%s acl=%s comment=%s', name, attname, attnum, format_type(atttypid, atttypmod), attnotnull,
		pg_get_expr(adbin, adrelid), attidentity, attgenerated, attislocal, attinhcount, attstorage, attacl, col_description(r.oid, attnum))
	FROM rel r JOIN pg_attribute a ON attrelid = r.oid LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
	WHERE relkind IN ('r', 'p', 'f', 'v', 'm', 'c') AND attnum > 0 AND NOT attisdropped
	UNION ALL
	SELECT format('constraint %s.%I %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid), conislocal, convalidated)
	FROM pg_constraint WHERE conrelid IN (SELECT oid FROM rel) AND contype <> 'n'
	UNION ALL
	SELECT format('index %s', pg_get_indexdef(oid)) FROM rel WHERE relkind IN ('i', 'I')
	UNION ALL
	SELECT format('sequence %s %s %s acl=%s type=%s start=%s increment=%s min=%s max=%s cache=%s owner=%s comment=%s', name, relpersistence, relowner::regrole, relacl, seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache,
		(SELECT string_agg(owner, ',') FROM owned WHERE objid = rel.oid), obj_description(rel.oid, 'pg_class'))
	FROM rel JOIN pg_sequence ON seqrelid = rel.oid
	UNION ALL
	SELECT format('trigger %s %s', tgrelid::regclass, tgname) FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM rel) AND NOT tgisinternal
	ORDER BY 1};

my %counts = (rounds => 0, statements => 0, errors => 0, tables => 0, labels => 0, refused => 0, rows => 0, others => 0);
my ($here, $plain) = map { SnowflakeTest::Session->new($node, $_) } qw(here plain);
my ($kind, @history, @wrong, %warned);

sub maybe { return rand() < $_[0] ? $_[1] : ''; }

sub wrong { push @wrong, "$_[0]\n-- seed $seed, $kind:\n" . join(";\n", @history) . ';'; return; }

# Without what the setting changes.
sub normal ($text)
{
	# One for a column that is not bigint ends where that does.
	$text =~ s/ (?:type=\w+|max=(?:32767|2147483647|9223372036854775807))(?= )//g if $text =~ /^sequence/;
	$text =~ s/pg_temp_\d+/pg_temp/g;
	return $text;
}

my @tables = ('t1', 't2', 't3', '"T 4"', 's1.t1', 's1.t5', 'b3', 'b4');
my @columns = ('id', 'a', 'b', '"C d"', 'e');
my @types = ('serial', 'serial', 'bigserial', 'serial4', 'serial8', 'int', 'int', 'int', 'bigint', 'bigint', 'text', 'numeric', 'di', 'db', 'pg_catalog.int4', 'smallserial', 'smallint', 'date');
my @sequences = ('q1', 'q2', 's1.q3', 't1_id_seq', '"T 4_id_seq"', 't2_a_seq', 'q_small');

sub sequence_options { return join ' ', grep { $_ } maybe(0.2, 'START 5'), maybe(0.2, 'INCREMENT ' . one(1, 2, 10, -1)), maybe(0.2, 'MINVALUE 1'), maybe(0.2, 'CACHE 5'), maybe(0.1, 'CYCLE'), maybe(0.1, 'MAXVALUE 1000'); }

sub nextval
{
	my $s = one(@sequences);

	return one("nextval('$s')", "nextval('$s'::regclass)", "nextval('$s'::text)", "nextval('$s')::int", "(nextval('$s'))", "pg_catalog.nextval('$s'::text::regclass)", "nextval('$s') + 1", "abs(nextval('$s'))");
}

sub identity
{
	my $options = sequence_options();

	return 'GENERATED ' . one('ALWAYS', 'BY DEFAULT') . ' AS IDENTITY' . maybe(0.3, " ($options" . maybe(0.2, ' SEQUENCE NAME ' . one('sn1', 's1.sn2')) . ')');
}

sub constraints ($type)
{
	return join ' ', grep { $_ } (
		$type =~ /serial/ ? maybe(0.02, 'DEFAULT 1') : $type !~ /^(?:text|date|numeric|d\w)$/ && rand() < 0.2 ? identity() : maybe(0.25, 'DEFAULT ' . one(nextval(), nextval(), 'NULL')),
		maybe(0.1, 'PRIMARY KEY'), maybe(0.1, 'NOT NULL'), maybe(0.02, 'NULL'), maybe(0.1, 'UNIQUE'), maybe(0.1, 'CHECK (true)'),
		maybe($type =~ /^(?:text|date|numeric)$/ ? 0.02 : 0.15, 'REFERENCES ' . one(qw(b1 b2 b3 b1 b2 b3), @tables) . maybe(0.2, ' (id)') . maybe(0.2, ' ON DELETE CASCADE') . maybe(0.1, ' DEFERRABLE')),
		maybe(0.03, 'GENERATED ALWAYS AS (1) STORED'), maybe(0.03, 'STORAGE plain'));
}

sub column ($name)
{
	my $type = one(@types);

	return "$name $type" . maybe(0.01, '[]') . ' ' . constraints($type);
}

sub template { return 'LIKE ' . one(qw(b1 b2 b3 b4), @tables) . join '', map { maybe(0.6, one(' INCLUDING', ' INCLUDING', ' EXCLUDING') . " $_") } one([qw(ALL)], [qw(ALL)], [qw(DEFAULTS IDENTITY INDEXES)], [qw(IDENTITY COMMENTS)], [qw(DEFAULTS)])->@*; }

sub elements
{
	my @of = @columns;
	my @elements = map { column(splice @of, int rand @of, 1) } 1 .. one(1, 1, 2, 3);

	push @elements, template() if rand() < 0.15;
	push @elements, 'PRIMARY KEY (' . one(map { /^("C d"|\w+) / } @elements) . ')' if rand() < 0.1;
	push @elements, maybe(0.5, 'CONSTRAINT k ') . 'FOREIGN KEY (' . one(@columns) . ') REFERENCES ' . one(@tables) . maybe(0.5, ' (' . one(@columns) . ')') if rand() < 0.15;
	return join ', ', @elements;
}

sub create_table ($table = undef)
{
	my $name = $table // one(@tables);
	my $head = 'CREATE ' . one('', '', '', '', 'UNLOGGED ', 'TEMP ', 'TEMPORARY ') . 'TABLE ' . maybe(0.2, 'IF NOT EXISTS ');

	return $head =~ /TEMP/ && $name =~ /\./ ? 'SELECT 1' : one(
		($head . "$name (" . elements() . ')') x 6,
		$head . "$name (" . elements() . ') INHERITS (' . one(@tables) . ')',
		$head . "$name (" . elements() . ') PARTITION BY ' . one('RANGE', 'LIST') . ' (' . one(@columns) . ')',
		$head . "$name (" . template() . ')', $head . "$name (" . template() . ", " . column('f') . ')',
		$head . "$name PARTITION OF " . one(@tables) . maybe(0.4, ' (' . one(@columns) . ' WITH OPTIONS ' . constraints('int') . ')') . ' ' . one('DEFAULT', 'FOR VALUES FROM (1) TO (10)', 'FOR VALUES IN (1, 2)') . maybe(0.1, ' PARTITION BY RANGE (a)'),
		$head . "$name OF typed" . maybe(0.5, ' (' . one('id', 'a') . ' WITH OPTIONS ' . constraints('int') . ')'),
		'CREATE FOREIGN TABLE ' . maybe(0.1, 'IF NOT EXISTS ') . "$name (" . elements() . ') SERVER dummy',
		"CREATE TABLE $name AS SELECT * FROM " . one(@tables), "SELECT * INTO $name FROM " . one(@tables));
}

sub alter_command
{
	my $column = one(@columns);

	return one(
		'ADD COLUMN ' . maybe(0.3, 'IF NOT EXISTS ') . column($column), 'ADD ' . column(one(@columns, 'g', 'h')), 'ADD ' . column(one(@columns, 'g', 'h')), "DROP COLUMN " . maybe(0.3, 'IF EXISTS ') . $column . maybe(0.3, ' CASCADE'),
		"ALTER $column TYPE " . one('int', 'bigint', 'text', 'smallint', 'numeric', 'di') . maybe(0.2, " USING $column\::int"), "ALTER COLUMN $column SET DEFAULT " . one(nextval(), nextval(), '3'),
		"ALTER $column ADD " . identity(), "ALTER $column ADD " . identity(), "ALTER $column DROP DEFAULT", "ALTER $column SET NOT NULL", "ALTER $column DROP NOT NULL", "ADD PRIMARY KEY ($column)",
		'ADD ' . maybe(0.5, 'CONSTRAINT c' . int(rand 3) . ' ') . "FOREIGN KEY ($column) REFERENCES " . one(@tables) . maybe(0.5, ' (' . one(@columns) . ')') . maybe(0.3, ' NOT VALID'),
		'INHERIT ' . one(@tables), 'NO INHERIT ' . one(@tables), "ADD UNIQUE ($column)", 'DROP CONSTRAINT IF EXISTS c1', 'ENABLE ROW LEVEL SECURITY', 'SET (fillfactor = 50)', 'OF typed', 'NOT OF', 'SET UNLOGGED', 'SET LOGGED', "ALTER $column SET STATISTICS 5");
}

sub alter_table
{
	my $head = 'ALTER TABLE ' . maybe(0.1, 'IF EXISTS ') . maybe(0.1, 'ONLY ') . one(@tables) . ' ';

	return one(
		($head . join ', ', map { alter_command() } 1 .. one(1, 1, 1, 2, 3)) x 5,
		$head . 'ATTACH PARTITION ' . one(@tables) . one(' DEFAULT', ' FOR VALUES FROM (10) TO (20)', ' FOR VALUES IN (3)'),
		$head . 'DETACH PARTITION ' . one(@tables), $head . 'RENAME ' . one(@columns) . ' TO ' . one(@columns), $head . 'OWNER TO ' . one('regress_other', 'regress_app'),
		$head . 'SET SCHEMA s1');
}

sub other_statement
{
	my $s = one(@sequences);

	return one(
		"CREATE " . maybe(0.1, 'TEMP ') . "SEQUENCE " . maybe(0.3, 'IF NOT EXISTS ') . "$s " . maybe(0.4, 'AS ' . one('int', 'bigint', 'smallint')) . ' ' . sequence_options(),
		"ALTER SEQUENCE $s OWNED BY " . one(@tables) . '.' . one(@columns), "DROP SEQUENCE $s" . maybe(0.3, ' CASCADE'), "SELECT setval('$s', 3) > 0", "GRANT USAGE ON $s TO regress_other",
		'DROP TABLE IF EXISTS ' . one(@tables) . maybe(0.7, ' CASCADE'), 'COMMENT ON COLUMN ' . one(@tables) . '.' . one(@columns) . " IS 'c'",
		'CREATE SCHEMA s2 ' . create_table('t9') . ' ' . maybe(0.5, 'CREATE SEQUENCE q9 ') . maybe(0.5, 'CREATE VIEW v9 AS SELECT 1 AS x'),
		'CREATE VIEW v' . int(rand 3) . ' AS SELECT * FROM ' . one(@tables), 'CREATE INDEX ON ' . one(@tables) . ' (' . one(@columns) . ')', 'GRANT SELECT ON ' . one(@tables) . ' TO regress_other',
		"CREATE DOMAIN d" . int(rand 3) . ' AS ' . one('int', 'bigint') . ' DEFAULT ' . nextval(), 'SET LOCAL search_path = ' . one('s1, public', 'public', 's1', 'public, s1'), 'SET LOCAL ROLE ' . one('regress_app', 'regress_app', 'regress_other', 'NONE'), 'RESET ROLE',
		'ALTER DEFAULT PRIVILEGES GRANT ' . one('USAGE ON SEQUENCES', 'SELECT ON TABLES') . ' TO regress_other');
}

# Other ways to execute the same.
sub wrapped ($sql)
{
	my $quoted = $sql =~ s/'/''/gr;

	return $sql if rand() < 0.6;
	return one("DO \$do\$ BEGIN $sql; END \$do\$", "DO \$do\$ BEGIN EXECUTE '$quoted'; END \$do\$", "SELECT run('$quoted')", "SELECT run_safely('$quoted')");
}

sub statement { return wrapped(rand() < 0.4 ? create_table() : rand() < 0.6 ? alter_table() : other_statement()); }

# What the page of the setting says, and what depends on the value of a key.
my $documented = qr/violates foreign key constraint|no partition of relation|violates partition constraint|MAXVALUE of (?:range|snowflake) sequence|the registry refuses|integer out of range|smallint out of range|reached maximum value of sequence|value for domain \w+ violates|is not possible for a (?:snowflake|range) sequence|must not have CYCLE|RESTART value \(\d+\) cannot be greater than MAXVALUE/;

sub both ($sql)
{
	$counts{statements}++;
	push @history, $sql;
	$_->run('SAVEPOINT x') foreach $here, $plain;
	my ($said, $error) = $here->run($sql);
	my ($plain_said, $plain_error) = $plain->run($sql);
	print STDERR "$sql\n   $said\n   $plain_said\n" if $trace;
	$warned{$_} = 1 foreach $said =~ /sequence "(.*?)" remains local/g;
	if ($error =~ /ERROR:  XX|FATAL|PANIC/ && $error ne $plain_error)
	{
		wrong("$sql: $error");
	}
	elsif (($error eq '') != ($plain_error eq ''))
	{
		$counts{refused}++;
		$counts{why}{ $error =~ s/"[^"]*"/x/gr =~ s/\d{2,}/n/gr }++ if $error =~ $documented;
		wrong("$sql\nsaid\n$said\nand without the extension\n$plain_said") if $error !~ $documented;
	}
	elsif (normal($error) ne normal($plain_error))
	{
		# Of several errors of a statement, another one can come first.
		$counts{others}++;
	}
	$counts{errors}++ if $error ne '';
	if ($error ne '' || $plain_error ne '')
	{
		pop @history;
		$_->run('ROLLBACK TO x') foreach $here, $plain;
		return 0;
	}
	return 1;
}

sub compare ($when)
{
	my %lines;

	foreach ([ $here, 1 ], [ $plain, -1 ])
	{
		my ($session, $n) = @$_;
		my ($said, $error) = $session->run($describe);

		die "$error" if $error ne '';
		$lines{ normal($_) } += $n foreach split /\n/, $said;
		$counts{tables} += () = $said =~ /^relation/gm if $n == 1;
	}
	my @differences = map { ($lines{$_} > 0 ? '+ ' : '- ') . $_ } grep { $lines{$_} } sort keys %lines;

	wrong("catalogs $when:\n" . join "\n", @differences) if @differences;
	return;
}

diag("SNOWFLAKE_SEED=$seed");

# On a slow machine for longer, until there was a table.
while ((more_rounds($counts{rounds} // 0, 100) || $counts{labels} == 0 || $counts{rows} == 0) && @wrong < ($ENV{SNOWFLAKE_WRONG} // 1))
{
	srand($seed);
	$kind = one(qw(snowflake snowflake distributed range));
	@history = %warned = ();
	my $before = @wrong;
	$counts{rounds}++;
	foreach my $session ($here, $plain)
	{
		my ($said) = $session->run(q{
			BEGIN; SET LOCAL client_min_messages = warning;
			CREATE SCHEMA s1 AUTHORIZATION regress_app; GRANT ALL ON SCHEMA s1, public TO regress_app; GRANT USAGE, CREATE ON SCHEMA s1, public TO regress_other;
			CREATE FOREIGN DATA WRAPPER dummy; CREATE SERVER dummy FOREIGN DATA WRAPPER dummy; GRANT USAGE ON FOREIGN SERVER dummy TO PUBLIC;
			SET LOCAL ROLE regress_app;
			CREATE DOMAIN di AS int; CREATE DOMAIN db AS bigint CHECK (value > 0); CREATE TYPE typed AS (id int, a bigint, b text);
			CREATE SEQUENCE q1; CREATE SEQUENCE q2 AS int; CREATE SEQUENCE s1.q3; CREATE SEQUENCE q_small AS smallint;
			CREATE TABLE b1 (id bigint PRIMARY KEY, a int, b int); CREATE TABLE b2 (id int PRIMARY KEY, a int); CREATE TABLE b3 (id serial PRIMARY KEY, a int, b bigint);
			CREATE TABLE b4 (id int GENERATED BY DEFAULT AS IDENTITY, a int NOT NULL, b int REFERENCES b3, "C d" bigint DEFAULT nextval('b3_id_seq'), e text);
			CREATE FUNCTION run(text) RETURNS int LANGUAGE plpgsql AS 'BEGIN EXECUTE $1; RETURN 1; END';
			CREATE FUNCTION run_safely(text) RETURNS int LANGUAGE plpgsql SET search_path = public AS 'BEGIN EXECUTE $1; RETURN 1; EXCEPTION WHEN division_by_zero THEN RETURN 2; END';});
		die $said if $said =~ /ERROR/;
	}
	$here->run("SET LOCAL snowflake.default_sequence_kind = $kind; SET LOCAL client_min_messages = warning");
	foreach (1 .. one(5, 10, 20))
	{
		both(statement());
		last if @wrong > $before;
	}
	compare('in the end') if @wrong == $before;
	foreach my $table (@wrong > $before ? () : @tables)
	{
		$counts{rows}++ if both("INSERT INTO $table DEFAULT VALUES");
	}
	# What the setting is for: sequences that the server has made for columns, of tables that are there.
	my ($local) = $here->run(q{
		SELECT d.objid::regclass FROM pg_depend d JOIN pg_class t ON t.oid = d.refobjid AND t.relpersistence <> 't'
		JOIN pg_sequence q ON q.seqrelid = d.objid AND seqincrement > 0 AND NOT seqcycle
			AND (seqmax = 9223372036854775807 OR current_setting('snowflake.default_sequence_kind') <> 'snowflake' AND seqmax IN (32767, 2147483647))
		JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' AND s.relname ~ '^(t\d|T 4|b3|b4|child|mine)_.*_seq|^sn\d'
		WHERE d.classid = 'pg_class'::regclass AND d.refclassid = d.classid AND d.deptype IN ('a', 'i') AND s.oid > (SELECT oid FROM pg_proc WHERE proname = 'run_safely')
		AND NOT EXISTS (SELECT FROM pg_seclabel l WHERE l.objoid = d.objid AND l.provider = 'snowflake')});
	wrong("local sequences: $local") if $local ne '' && @wrong == $before && !grep { /ALTER SEQUENCE|CREATE (?:TEMP )?SEQUENCE| TYPE / } @history;
	my ($labels) = $here->run(q{SELECT count(*) FROM pg_seclabel WHERE provider = 'snowflake'});
	$counts{labels} += $labels if $labels =~ /^\d+$/;
	$_->run('ROLLBACK') foreach $here, $plain;
	$seed++;
}
diag(join ', ', map({ "$counts{$_} $_" } grep { $_ ne 'why' } sort keys %counts), "the next seed is $seed");
diag("$counts{why}{$_} times: $_") foreach sort keys %{ $counts{why} };
ok($counts{labels} > 0 && $counts{rows} > 0, 'tables with sequences of a kind were created');
is(join("\n", @wrong), '', 'each statement does what it does without the extension');
$_->close foreach $here, $plain;
unlike(slurp_file($node->logfile), qr/terminated by signal|runtime error:|ERROR: \w+Sanitizer|TRAP:/, 'no process has crashed');
done_testing();
