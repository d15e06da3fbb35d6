# Random statements of roles with random rights on sequences: labels, kinds, names of other
# sequences, defaults, temporary objects and functions with the names of ours.  No role
# changes what it could not ALTER, takes a value that it may not take, or gains a right.
# SnowflakeTest::Random says how many rounds.

use SnowflakeTest::Session;
use SnowflakeTest;

my $seed = first_seed();
my $trace = $ENV{SNOWFLAKE_TRACE};
my @roles = map { "regress_r$_" } 1 .. 4;

my $node = new_own_registry('main', 'here', 'fsync = off', 'autovacuum = off',
	"snowflake.grant_timeout = '1 min'", 'snowflake.max_range_sequences = 10000');
sql($node, 'CREATE DATABASE here; ' . join '; ', map { "CREATE ROLE $_" } @roles);
$node->safe_psql('here', q{
	CREATE SCHEMA ext; CREATE EXTENSION snowflake SCHEMA ext;
	GRANT USAGE ON SCHEMA ext TO PUBLIC; GRANT CREATE ON SCHEMA public TO PUBLIC});

my %counts = (rounds => 0, statements => 0, denied => 0, errors => 0, changes => 0);
my $admin = SnowflakeTest::Session->new($node, 'here');
my $registry = SnowflakeTest::Session->new($node, 'postgres');
my (@history, @wrong);

sub maybe { return rand() < $_[0] ? $_[1] : ''; }

sub query ($sql)
{
	my ($said, $error) = $admin->run($sql);

	die "$sql: $error" if $error ne '';
	return $said;
}

my @sequences = map { "app.s$_" } 1 .. 6;

# What a sequence is, and its position.
my $definitions = q{
	SELECT format('%s|%s %s %s', c.oid, (SELECT label FROM pg_seclabel l WHERE (l.classoid, l.objoid, l.provider) = ('pg_class'::regclass, c.oid, 'snowflake')), q, c.relfilenode)
	FROM pg_class c JOIN pg_sequence q ON seqrelid = c.oid WHERE c.oid <= NEWEST ORDER BY c.oid};
my $positions = join ' UNION ALL ', map { "SELECT '$_'::regclass::oid || '|' || last_value || ' ' || is_called FROM $_" } @sequences;

# All rights, of what was there before.
my $rights = q{
	SELECT format('%s %s %s', c.oid::regclass, relacl, relowner::regrole) FROM pg_class c WHERE oid <= NEWEST AND (oid > 16383 OR relname IN ('pg_seclabel', 'pg_proc', 'pg_authid'))
	UNION ALL SELECT format('%s %s %s %s', p.oid::regprocedure, proacl, proowner::regrole, prosupport) FROM pg_proc p WHERE oid <= NEWEST AND (oid > 16383 OR proname ~ 'nextval|setval|lastval|currval')
	UNION ALL SELECT format('%s %s %s', nspname, nspacl, nspowner::regrole) FROM pg_namespace WHERE oid <= NEWEST
	UNION ALL SELECT format('%s %s', roleid::regrole, member::regrole) FROM pg_auth_members
	UNION ALL SELECT format('%s %s %s', rolname, rolsuper, rolcreaterole) FROM pg_authid WHERE rolname !~ '^pg_'
	UNION ALL SELECT format('%s %s', datname, datacl) FROM pg_database
	UNION ALL SELECT format('label %s %s %s', classoid, objoid, provider) FROM pg_seclabel WHERE classoid <> 'pg_class'::regclass
	ORDER BY 1};

sub labels
{
	my $number = one(0, 1, 5, -1, '9223372036854775807', '9223372036854775808', '1e3', '');

	return one(
		'NULL', 'NULL', map { "'$_'" } 'snowflake', 'snowflake', "snowflake last_value=$number", "snowflake next_value=$number", 'snowflake default', "snowflake last_value=$number default",
		'range', "range database=x name=" . one(@sequences, 'x', '', 'a b', '"q".s'), "range last_value=$number database=x name=" . one(@sequences), 'range default database=x name=public.own', 'local', 'local last_value=1', '', ' ', ' snowflake', 'Snowflake',
		'snowflake x', 'snowflake name=app.s1', 'snowflake  last_value=1', 'range name=' . 'n' x one(10, 300, 400, 5000), "snowflake\tdefault", 'snowflake ' . 'default ' x 500, join '', map { chr 33 + int rand 90 } 1 .. 10) =~ s/(?<=.)'(?=.)/''/gr;
}

sub kinds { return one(qw('snowflake' 'snowflake' 'snowflake' 'local' 'local' 'local' 'range' 'range' 'RANGE' '' NULL)); }

# What roles try.
sub attack ($role)
{
	my @owned = split /\n/, query("SELECT oid::regclass FROM pg_class WHERE relkind = 'S' AND relnamespace = 'app'::regnamespace AND relowner = '$role'::regrole");
	my $s = one(@sequences, @owned, @owned, @owned);
	my $own = one('own', "own_$role", 'pg_temp.q', 's1');
	my $in = one(("'$s'") x 10, "'$s'::regclass::oid::regclass", one(0, 1, 999999, 1259) . '::oid::regclass', "'app.t'", "'ext._snowflake_lastval_marker'", "'pg_class'", 'NULL', "'app.v'", "'app.t_pkey'");

	return one(
		("SECURITY LABEL FOR snowflake ON SEQUENCE $s IS " . labels()) x 12, ("SELECT ext.snowflake_set_sequence_kind($in, " . kinds() . maybe(0.2, ", '" . one(@sequences, 'public.own', '') . "'") . ')') x 14,
		'SECURITY LABEL FOR snowflake ON ' . one('TABLE app.t', 'COLUMN app.t.id', 'VIEW app.v', 'SCHEMA app', 'SCHEMA public', 'DATABASE here', "ROLE $role", 'FUNCTION app.definer(text)', 'TABLE app.s1', 'SEQUENCE app.t', 'SEQUENCE ext._snowflake_lastval_marker', 'EXTENSION snowflake', 'LANGUAGE plpgsql', 'TYPE app.d') . ' IS ' . labels(),
		"SELECT nextval($in)", "SELECT ext._snowflake_nextval($in)", "SELECT setval($in, 3)", "SELECT ext._snowflake_setval($in, 7)", "SELECT ext._snowflake_setval($in, 7, false)", "SELECT currval($in), lastval()", "SELECT ext._snowflake_currval($in)", 'SELECT ext._snowflake_lastval()',
		"SELECT ext._snowflake_range_statistics($in)", 'SELECT * FROM ext.snowflake_sequences',
		"ALTER SEQUENCE $s " . one('RESTART', 'RESTART 3', 'INCREMENT 2', 'CYCLE', 'OWNED BY app.t.id', "OWNED BY public.mine.id", 'SET SCHEMA public', "OWNER TO $role", 'AS int', 'MAXVALUE 100 RESTART'), "DROP SEQUENCE $s",
		"SET snowflake.default_sequence_kind = " . one(qw(snowflake range distributed)) . "; CREATE TABLE IF NOT EXISTS public.mine (id bigint DEFAULT nextval('$s'), b serial)", "CREATE TEMP TABLE mine (id bigint DEFAULT nextval('$s'::regclass)); INSERT INTO mine VALUES (1000000)",
		"SET snowflake.default_sequence_kind = " . one(qw(snowflake range distributed)) . "; ALTER TABLE public.mine ALTER id SET DEFAULT nextval('$s')", "SET snowflake.default_sequence_kind = snowflake; ALTER TABLE app.t ADD x serial",
		"SET snowflake.default_sequence_kind = " . one(qw(snowflake range distributed)) . "; CREATE TABLE public.child (id int REFERENCES app.t)", "SET snowflake.default_sequence_kind = snowflake; ALTER TABLE app.t ADD GENERATED ALWAYS AS IDENTITY",
		"SET snowflake.default_sequence_kind = snowflake; CREATE TABLE public.copy (LIKE app.t INCLUDING ALL)", "CREATE TABLE public.kid () INHERITS (app.t)",
		"DROP TABLE IF EXISTS public.mine, public.child, public.copy", 'INSERT INTO app.t DEFAULT VALUES', 'INSERT INTO mine DEFAULT VALUES', "TRUNCATE app.t RESTART IDENTITY", "TRUNCATE mine RESTART IDENTITY", "CREATE SEQUENCE $own", "CREATE SEQUENCE public.own", "ALTER SEQUENCE public.own RENAME TO s1", 'DROP SEQUENCE public.own', "SELECT ext.snowflake_set_sequence_kind('public.own', 'range', '$s')", "SECURITY LABEL FOR snowflake ON SEQUENCE public.own IS 'range database=x name=$s'",
		"SET search_path = pg_temp, public, app, ext; SELECT nextval('s1')", 'CREATE FUNCTION pg_temp.nextval(regclass) RETURNS bigint LANGUAGE sql AS $$SELECT 1::bigint$$; SELECT pg_temp.nextval(NULL)',
		"CREATE OR REPLACE FUNCTION public._snowflake_nextval(regclass) RETURNS bigint LANGUAGE plpgsql AS \$\$BEGIN EXECUTE 'GRANT ' || current_user || ' TO $role'; RETURN 1; END\$\$; SELECT nextval('$s')",
		"CREATE OR REPLACE FUNCTION ext._snowflake_nextval(regclass) RETURNS bigint LANGUAGE sql AS \$\$SELECT 1::bigint\$\$", "SELECT app.definer('$s')", "SET search_path = public, pg_temp; SELECT app.definer('s1')", "SELECT app.kind('$s', " . kinds() . ')',
		"UPDATE pg_seclabel SET label = 'snowflake'", 'ALTER FUNCTION nextval(regclass) SUPPORT ext._snowflake_sequence_support', "DO \$\$ BEGIN PERFORM ext.snowflake_set_sequence_kind('$s', " . kinds() . "); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END \$\$",
		"CREATE INDEX ON mine (id)", "CREATE TABLE public.trap (id bigint DEFAULT nextval('$s'), CHECK (id IS NOT NULL)); INSERT INTO public.trap VALUES (5000)", 'DROP TABLE public.trap');
}

# What an administrator changes meanwhile.
sub change
{
	my $s = one(@sequences);
	my ($r, $q) = (one(@roles), one(@roles));

	return one(
		"GRANT $r TO $q", "REVOKE $r FROM $q", "ALTER SEQUENCE $s OWNER TO $r", 'GRANT ' . one('USAGE', 'UPDATE', 'SELECT', 'ALL') . " ON $s TO $r", "REVOKE ALL ON $s FROM $r", "GRANT USAGE ON SCHEMA app TO $r", "REVOKE USAGE ON SCHEMA app FROM $r",
		"ALTER TABLE app.t OWNER TO $r", "GRANT INSERT, TRUNCATE ON app.t TO $r", "ALTER DEFAULT PRIVILEGES FOR ROLE $r GRANT ALL ON SEQUENCES TO $q", "ALTER FUNCTION app.definer OWNER TO $r", "SELECT ext.snowflake_set_sequence_kind('$s', " . one(qw('snowflake' 'local' 'range')) . ')', "GRANT CREATE ON SCHEMA app TO $r", "SELECT nextval('$s')");
}

# What may change by a statement of a role, by its rights before.
sub may ($role)
{
	my %may = map { /^(\d+) (.) (.)$/ ? ($1 => { alter => $2 eq 't', take => $3 eq 't' }) : () }
	  split /\n/, query("SELECT c.oid, pg_has_role('$role', relowner, 'USAGE'), has_sequence_privilege('$role', c.oid, 'USAGE, UPDATE') FROM pg_class c WHERE relkind = 'S'" =~ s/SELECT (.*?) FROM/SELECT concat_ws(' ', $1) FROM/r);

	return \%may;
}

sub by_oid { return { map { /^(\d+)\|(.*)/s ? ($1 => $2) : () } split /\n(?=\d+\|)/, $_[0] }; }

# A statement of a role.
sub try ($role)
{
	my $sql = attack($role);
	my $newest = query('SELECT max(oid) FROM pg_class') + 100000;
	my $may = may($role);
	my @before = map { query(s/NEWEST/$newest/gr) } $definitions, $rights;
	my $position = by_oid(query($positions));
	my ($granted) = $registry->run('SELECT name, floor, last FROM snowflake_registry.range_sequences ORDER BY 1');

	# What a definer may do, whoever calls it.
	my $definer = query("SELECT proowner::regrole FROM pg_proc WHERE proname = 'definer'");
	my $definer_may = may($definer);

	$counts{statements}++;
	push @history, "$role: $sql";
	$admin->run("SET SESSION AUTHORIZATION $role");
	my ($said, $error) = $admin->run(join ";\n", 'BEGIN', $sql);
	$admin->run(one('COMMIT', 'COMMIT', 'COMMIT', 'ROLLBACK'));
	$admin->run('RESET SESSION AUTHORIZATION; RESET ALL');
	print STDERR "$role: $sql\n   $said\n" if $trace;
	push @history, "   $error" if $error ne '';
	$counts{errors}++ if $error ne '';
	$counts{denied}++ if $error =~ /ERROR:  42501/;
	push @wrong, "$error of $sql" if $error =~ /ERROR:  XX(?!.*(?:support function|unrecognized object|cache lookup failed for (?:relation|type)|could not open relation with OID))|FATAL|PANIC|server closed/;

	my $after = query($definitions =~ s/NEWEST/$newest/gr);
	my ($old, $new) = (by_oid($before[0]), by_oid($after));

	foreach my $oid (sort keys %$old)
	{
		next if ($new->{$oid} // '') eq $old->{$oid};
		$counts{changes}++;
		next if $may->{$oid}{alter} || $sql =~ /app\.kind|definer/ && $definer_may->{$oid}{alter};
		# A temporary table or sequence of the session.
		push @wrong, "sequence $oid is\n$old->{$oid}\nand then\n" . ($new->{$oid} // 'gone');
	}
	my ($positions_after) = $admin->run($positions);
	my $positions_new = by_oid($positions_after);
	foreach my $oid (sort keys %$position)
	{
		next if !defined $positions_new->{$oid} || $positions_new->{$oid} eq $position->{$oid};
		next if $may->{$oid}{take} || $may->{$oid}{alter} || $sql =~ /definer/ && ($definer_may->{$oid}{take} || $definer_may->{$oid}{alter});
		push @wrong, "position of $oid is\n$position->{$oid}\nand then\n$positions_new->{$oid}";
	}
	if ($sql !~ /^(?:ALTER SEQUENCE|DROP|CREATE|SET snowflake)/)
	{
		my $rights_after = query($rights =~ s/NEWEST/$newest/gr);

		push @wrong, "rights changed from\n" . difference($before[1], $rights_after) if $before[1] ne $rights_after;
	}

	# A value of one that it may not use
	push @wrong, "$role got $said of $1"
	  if $error eq '' && $sql =~ /^SELECT (?:ext\.snowflake_sequence_)?(?:nextval|setval)\('(app\.s\d)'/ && $said ne ''
	  && !grep { $_->{take} || $_->{alter} } $may->{ query("SELECT '$1'::regclass::oid") };
	return;
}

sub difference
{
	my %lines;

	$lines{$_}-- foreach split /\n/, $_[0];
	$lines{$_}++ foreach split /\n/, $_[1];
	return join "\n", map { ($lines{$_} > 0 ? '+' : '-') . $_ } grep { $lines{$_} } sort keys %lines;
}

sub begin_round
{
	srand($seed);
	@history = ();
	my ($said, $error) = $admin->run(q{
		DROP SCHEMA IF EXISTS app CASCADE; DROP OWNED BY regress_r1; DROP OWNED BY regress_r2; DROP OWNED BY regress_r3; DROP OWNED BY regress_r4;
		REVOKE regress_r1 FROM regress_r2; REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT ALL ON SCHEMA public TO PUBLIC;
		CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO regress_r1, regress_r2, regress_r3;
		CREATE SEQUENCE app.s1; CREATE SEQUENCE app.s2; CREATE SEQUENCE app.s3 AS integer; CREATE SEQUENCE app.s4 CYCLE; CREATE SEQUENCE app.s5; CREATE SEQUENCE app.s6;
		CREATE TABLE app.t (id bigint PRIMARY KEY DEFAULT nextval('app.s1')); ALTER SEQUENCE app.s1 OWNED BY app.t.id; CREATE VIEW app.v AS SELECT * FROM app.t; CREATE DOMAIN app.d AS int;
		ALTER TABLE app.t OWNER TO regress_r1; ALTER SEQUENCE app.s2 OWNER TO regress_r1; ALTER SEQUENCE app.s3 OWNER TO regress_r2; ALTER SEQUENCE app.s4 OWNER TO regress_r3;
		CREATE FUNCTION app.definer(text) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$SELECT nextval($1::regclass)$$;
		CREATE FUNCTION app.kind(text, text) RETURNS void LANGUAGE sql SECURITY INVOKER AS $$SELECT ext.snowflake_set_sequence_kind($1::regclass, $2)$$;
		ALTER FUNCTION app.definer OWNER TO regress_r2;
		SELECT ext.snowflake_set_sequence_kind('app.s5'); SELECT ext.snowflake_set_sequence_kind('app.s2')});

	die $said if $said =~ /ERROR/ && $said !~ /does not exist/;
	$admin->run("REVOKE $_->[0] FROM $_->[1]") foreach map { my $r = $_; map { [ $r, $_ ] } @roles } @roles;
	return;
}

diag("SNOWFLAKE_SEED=$seed");

# On a slow machine for longer, until it has seen both.
while ((more_rounds($counts{rounds} // 0, 20) || $counts{denied} == 0 || $counts{changes} == 0) && !@wrong)
{
	begin_round();
	$counts{rounds}++;
	foreach (1 .. 30)
	{
		if (rand() < 0.3)
		{
			my $sql = change();
			my ($said, $error) = $admin->run($sql);

			push @history, "administrator: $sql" . ($error ne '' ? "\n   $error" : '');
		}
		last if query('SELECT ' . join ' AND ', map { "to_regclass('$_') IS NOT NULL" } @sequences) ne 't';
		try(one(@roles));
		last if @wrong;
	}
	$seed++;
}
diag(join ', ', map({ "$counts{$_} $_" } sort keys %counts), "the next seed is $seed");
ok($counts{denied} > 0 && $counts{changes} > 0, 'statements were denied, and others changed something');
is(join("\n", @wrong, @wrong ? ('-- seed ' . ($seed - 1), @history) : ()), '', 'no role does more than it may');
$_->close foreach $admin, $registry;
unlike(slurp_file($node->logfile), qr/terminated by signal|runtime error:|ERROR: \w+Sanitizer|TRAP:/, 'no process has crashed');
done_testing();
