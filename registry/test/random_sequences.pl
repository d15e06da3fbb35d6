# Random statements with sequences of each kind, by two sessions in turn: nextval() of a
# snowflake sequence returns IDs, of which each is greater than all before, that of a range
# sequence numbers of its name, of which none was returned before, and a local one
# does what it does in a database without the extension, also after it was of another kind
# and after ROLLBACK.
# SnowflakeTest::Random says how many rounds.

use List::Util qw(max);
use SnowflakeTest::Session;
use SnowflakeTest;

my $seed = first_seed();
my $trace = $ENV{SNOWFLAKE_TRACE};

my $node = new_own_registry('main', 'here', 'fsync = off', 'autovacuum = off', 'restart_after_crash = off',
	"snowflake.grant_timeout = '1 min'", 'snowflake.max_range_sequences = 1000');
sql($node, "CREATE DATABASE $_") foreach qw(here plain);
$node->safe_psql('here', 'CREATE EXTENSION snowflake');

# Sets a position as a new file, so that ROLLBACK takes it back, and other sessions drop
# what they have cached: what a change of kind does.
$node->safe_psql('plain', q{
	CREATE FUNCTION new_file(s regclass) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		p record;
	BEGIN
		EXECUTE format('SELECT last_value, is_called FROM %s', s) INTO p;
		EXECUTE format('ALTER SEQUENCE %s RESTART', s);
		PERFORM setval(s, p.last_value, p.is_called);
	END $$});

my %counts = (statements => 0, ids => 0, numbers => 0, local => 0, errors => 0, rollbacks => 0, kinds => 0);
my (%here, %plain, %current, %last, %used, %number_of);
my ($greatest_id, $round, @sequences, %synced, %resynced, %name_of, @history, @wrong);

sub wrong
{
	push @wrong, "$_[0]\n-- seed $seed:\n" . join("\n", @history[ max(0, $#history - 40) .. $#history ]);
	return;
}

# Executes a statement here; returns its result and error.
sub run_here ($who, $sql)
{
	push @history, "$who: $sql";
	print STDERR "$who: $sql\n" if $trace;
	$counts{statements}++;
	my ($said, $error) = $here{$who}->run($sql);
	push @history, "   $said" if $said ne '';
	print STDERR "   $said\n" if $trace && $said ne '';
	if ($error ne '')
	{
		$counts{errors}++;
		$counts{codes}{$1}++ if $error =~ /ERROR:  (\w{5})/;
		wrong("no usual error: $error") if $error =~ /ERROR:  XX|FATAL|PANIC|server closed/ && $error !~ /tuple concurrently/;
	}
	return ($said, $error);
}

sub run_plain ($who, $sql)
{
	my ($said, $error) = $plain{$who}->run($sql);

	print STDERR "   plain: $sql\n      $said\n" if $trace;
	return ($said, $error);
}

sub comparable { return $_[0] =~ s/(?<=OID )\d+|(?<=oid )\d+//gr; }

# What the kind of a sequence is now, for a session.
sub kind_of ($who, $s)
{
	my ($said) = $here{$who}->run("SELECT label FROM pg_seclabel WHERE objoid = '$s'::regclass");

	$name_of{$s} = $1 if $said =~ / name=(.*)/;
	return $said =~ /^(snowflake|range)/ ? $1 : 'local';
}

# The values that calls of nextval() of a sequence returned.
sub check_values ($s, $kind, @values)
{
	foreach my $value (@values)
	{
		if ($value !~ /^-?\d+$/)
		{
			wrong("nextval of $s returned $value");
		}
		elsif ($kind eq 'snowflake')
		{
			$counts{ids}++;
			wrong("$s returned $value after $greatest_id") if $value <= $greatest_id || $value < 1e17;
			$greatest_id = $value;
		}
		else
		{
			my $name = $name_of{$s};

			$counts{numbers}++;
			wrong("$s returned $value of $name for the second time") if $number_of{$name}{$value}++;
			wrong("$s returned $value of $name after " . $used{$name}) if $value <= ($used{$name} // 0);
			$used{$name} = $value;
		}
	}
	return;
}

# A statement in a transaction has failed.
my (%in_transaction, %savepoints);

sub end_transaction ($who, $sql)
{
	run_here($who, $sql);
	run_plain($who, $sql);
	$counts{rollbacks}++ if $sql =~ /ROLLBACK/;
	# They were set in this transaction.
	@synced{ keys %resynced } = (0) x keys %resynced if $sql =~ /ROLLBACK/;
	return if $sql =~ /ROLLBACK TO/;
	%resynced = ();
	$in_transaction{$who} = 0;
	$savepoints{$who} = 0;
	return;
}

sub after_error ($who)
{
	return if !$in_transaction{$who};
	if ($savepoints{$who} && rand() < 0.7) { end_transaction($who, 'ROLLBACK TO x'); }
	else { end_transaction($who, 'ROLLBACK'); }
	return;
}

# Calls of nextval() in all ways.
sub nextval_of ($who, $s)
{
	my $kind = kind_of($who, $s);
	my $n = $1 if $s =~ /(\d)$/;
	my $marker = int rand 1e9;
	my $sql = one(
		("SELECT nextval('$s')") x 2, "SELECT nextval('$s'::text::regclass)", "SELECT nextval('$s') FROM generate_series(1, 3)",
		"EXECUTE p$n", "EXECUTE p$n", "SELECT f$round($n)", "SELECT f$round($n)", "SELECT g$round('$s')", "SELECT h$round($n)",
		"SELECT nextval(oid) FROM pg_class WHERE oid = '$s'::regclass", "SELECT (SELECT nextval('$s') OFFSET 0)",
		"WITH c AS (SELECT nextval('$s') AS v) SELECT v FROM c, generate_series(1, 1)",
		$n == 1 ? ("INSERT INTO t$round DEFAULT VALUES RETURNING id",
			"INSERT INTO t$round (v) SELECT generate_series(1, 3) RETURNING id",
			"COPY t$round (v) FROM PROGRAM 'echo $marker'; SELECT id FROM t$round WHERE v = $marker",
			"COPY t$round (v) FROM PROGRAM 'echo $marker'; SELECT id FROM t$round WHERE v = $marker") : (),
		"SELECT n FROM v$round\_$n");
	my ($said, $error) = run_here($who, $sql);

	if ($kind eq 'local')
	{
		my ($plain_said, $plain_error) = run_plain($who, $sql);

		wrong("local: $sql returned\n$said\nand without the extension\n$plain_said")
		  if $synced{$s} && comparable($said) ne comparable($plain_said);
		after_values($who, $s, $said, $error);
		resync($who, $s) if !$synced{$s};
		return;
	}
	my @values = grep { !/^[A-Z]+:  / } split /\n/, $said;
	check_values($s, $kind, @values) if $error eq '' || @values;
	after_values($who, $s, $said, $error);
	return;
}

# What currval() and lastval() return afterwards.  If there was an error, calls before it may
# have had values.
sub after_values ($who, $s, $said, $error)
{
	$counts{local}++;
	$current{$who}{$s} = $error ne '' ? '?' : (split /\n/, $said)[-1];
	$last{$who} = $error ne '' ? '?' : $s;
	after_error($who) if $error ne '';
	return;
}

# It is not known where a local sequence is: set it.
sub resync ($who, $s)
{
	my $value = 1 + int rand 50;
	my ($said, $error) = run_here($who, "ALTER SEQUENCE $s RESTART WITH $value");
	my (undef, $plain_error) = run_plain($who, "ALTER SEQUENCE $s RESTART WITH $value");

	if ($error ne '' || $plain_error ne '')
	{
		wrong("RESTART: $error\n$plain_error") if ($error ne '') != ($plain_error ne '');
		if ($in_transaction{$who}) { end_transaction($who, 'ROLLBACK'); }
		return;
	}
	$synced{$s} = 1;
	$resynced{$s} = 1 if $in_transaction{$who};
	return;
}

sub currval_of ($who, $s)
{
	my $expected = $current{$who}{$s};
	return if ($expected // '') eq '?';
	my ($said, $error) = run_here($who, one("SELECT currval('$s')", "EXECUTE c" . substr($s, -1)));

	return after_error($who) if $in_transaction{$who} && $error ne '' && !defined $expected;
	wrong("currval('$s') is $said and not " . ($expected // 'undefined'))
	  if defined $expected ? $said ne $expected : $error !~ /55000: currval of sequence "\w+" is not yet defined/ && $synced{$s};
	after_error($who) if $error ne '';
	return;
}

sub lastval_of ($who, @)
{
	my $expected = defined $last{$who} ? $current{$who}{ $last{$who} } // '?' : undef;
	my ($said, $error) = run_here($who, 'SELECT lastval()');

	wrong("lastval() is $said and not " . $expected) if defined $expected && $expected ne '?' && $said ne $expected;
	after_error($who) if $error ne '';
	return;
}

my @values = (
	'NULL', 0, 1, -1, 2, 5, 7, 99, 100, 101, 32767, 32768, 2147483646, 2147483647, 2147483648,
	'9223372036854775806', '9223372036854775807', '(-9223372036854775808)', '1400000000000000000');

sub setval_of ($who, $s)
{
	my $kind = kind_of($who, $s);
	my $value = one(@values, (map { 1 + int rand 1000 } 1 .. 10));
	my $called = one('', '', '', 'true', 'true', 'false', 'NULL');
	my $sql = "SELECT setval('$s', $value" . ($called ne '' ? ", $called)" : ')');
	my ($said, $error) = run_here($who, $sql);
	my $current = $current{$who}{$s} // '';

	if ($kind ne 'local' && $error =~ /cannot reserve values/)
	{
		wrong("currval() is $current, and $sql returned $said") if $current eq '' || $current ne '?' && $value <= $current;
	}
	elsif ($kind eq 'local')
	{
		my ($plain_said) = run_plain($who, $sql);

		# That it is exhausted now is a WARNING of the extension.
		$said =~ s/^WARNING: .*? is exhausted\nDETAIL: .*\nHINT: .*\n//;
		wrong("local: $sql returned\n$said\nand without the extension\n$plain_said") if $synced{$s} && $said ne $plain_said;
	}
	elsif ($kind eq 'snowflake')
	{
		wrong("$sql returned $said") if $error ne '' || $said ne ($value eq 'NULL' || $called eq 'NULL' ? '' : $value =~ s/[()]//gr);
		return;
	}
	return after_error($who) if $error ne '';
	return if $said eq '';
	my $is_end = $kind eq 'range' && ($here{$who}->run("SELECT seqmax FROM pg_sequence WHERE seqrelid = '$s'::regclass"))[0] eq $said;
	$current{$who}{$s} = $said if $called ne 'false' && !$is_end;
	$used{ $name_of{$s} } = max($used{ $name_of{$s} } // 0, $called eq 'false' ? $said - 1 : $said) if $kind eq 'range' && !$is_end;
	return;
}

# ALTER SEQUENCE in all forms: with one that is not local, RESTART changes nothing.
sub alter ($who, $s)
{
	my $kind = kind_of($who, $s);
	my @options = (
		[ 'AS smallint', 'AS integer', 'AS bigint', 'AS bigint' ], [ 'INCREMENT 1', 'INCREMENT BY 2', 'INCREMENT 10', 'INCREMENT -1', 'INCREMENT 5000' ],
		[ 'MINVALUE 1', 'MINVALUE 5', 'MINVALUE -10', 'NO MINVALUE' ], [ 'MAXVALUE 100', 'MAXVALUE 1000', 'NO MAXVALUE', 'MAXVALUE 9223372036854775807', 'MAXVALUE 2000000000' ],
		[ 'START 1', 'START 7', 'START 100' ], [ 'CACHE 1', 'CACHE 5', 'CACHE 20' ], [ 'CYCLE', 'NO CYCLE' ]);
	my @chosen = map { one(@$_) } grep { rand() < 0.25 } @options;
	my $restart = one('', '', 'RESTART', 'RESTART WITH ' . one(1, 3, 50, 500, 0, -5));
	my $sql = "ALTER SEQUENCE $s " . join(' ', @chosen);

	return if !@chosen && $restart eq '';
	my ($said, $error) = run_here($who, "$sql $restart");
	if ($kind eq 'local')
	{
		my ($plain_said) = run_plain($who, "$sql $restart");

		wrong("local: $sql $restart said\n$said\nand without the extension\n$plain_said") if $synced{$s} && $said ne $plain_said;
	}
	elsif ($error eq '' && @chosen)
	{
		my (undef, $plain_error) = run_plain($who, $sql);

		# One that was not used before begins at START when it is local.
		$synced{$s} = 0 if grep { /^START/ } @chosen;
		if ($plain_error ne '')
		{
			# Its position here would not be possible there.
			$synced{$s} = 0;
			return end_transaction($who, 'ROLLBACK') if $in_transaction{$who};
			run_plain($who, "$sql RESTART");
		}
	}
	after_error($who) if $error ne '';
	return;
}

# What does not change the position.
sub alter_others ($who, $s)
{
	my $sql = one(
		"ALTER SEQUENCE $s RENAME TO renamed; ALTER SEQUENCE renamed RENAME TO $s", "ALTER SEQUENCE $s OWNED BY " . one("t$round.id", 'NONE'),
		"ALTER SEQUENCE $s SET SCHEMA other; ALTER SEQUENCE other.$s SET SCHEMA public", "ALTER SEQUENCE $s SET " . one('LOGGED', 'UNLOGGED'),
		"ALTER TABLE t$round SET " . one('LOGGED', 'UNLOGGED'),
		"ALTER SEQUENCE $s OWNER TO CURRENT_USER", "COMMENT ON SEQUENCE $s IS 'x'", "GRANT USAGE ON $s TO PUBLIC", "ALTER SEQUENCE IF EXISTS no$s RESTART");
	my ($said, $error) = run_here($who, $sql);
	my ($plain_said, $plain_error) = run_plain($who, $sql);

	if ($error ne $plain_error)
	{
		# A column that is too narrow may not own it.
		wrong("$sql said $said\nand without the extension\n$plain_said");
		return end_transaction($who, 'ROLLBACK') if $in_transaction{$who};
	}
	after_error($who) if $error ne '';
	return;
}

sub truncate_table ($who, @)
{
	my $s = "s$round\_1";
	my @of_table = map { (split /\./)[-1] } split /\n/, ($here{$who}->run("SELECT d.objid::regclass FROM pg_depend d WHERE d.refobjid = 't$round'::regclass AND deptype = 'a' AND classid = 'pg_class'::regclass AND d.objid::regclass::text LIKE 's%'"))[0];
	my @local = grep { kind_of($who, $_) eq 'local' } @of_table;
	my (undef, $error) = run_here($who, "TRUNCATE t$round RESTART IDENTITY");
	run_plain($who, "TRUNCATE t$round");
	run_plain($who, "ALTER SEQUENCE $_ RESTART") foreach @local;
	wrong($error) if $error ne '';
	return;
}

sub set_kind ($who, $s)
{
	my $before = kind_of($who, $s);
	my $kind = one(qw(snowflake snowflake local local range));
	my $sql =
	    $kind eq 'local' && rand() < 0.3 ? "SECURITY LABEL FOR snowflake ON SEQUENCE $s IS NULL"
	  : "SELECT snowflake_set_sequence_kind('$s', '$kind')";
	my ($said, $error) = run_here($who, $sql);

	$counts{kinds}++ if $error eq '';
	if ($error ne '')
	{
		wrong("$s cannot be local: $error") if $kind eq 'local' && $error !~ /canceling/;
		# It may have lost the numbers of CACHE, as by an ALTER SEQUENCE that is rolled back.
		$synced{$s} = 0 if $before eq 'local';
		return after_error($who);
	}
	kind_of($who, $s) if $kind eq 'range';
	if ($before eq 'range' && $kind eq 'local')
	{
		my ($position) = $here{$who}->run("SELECT last_value FROM $s");
		my ($max) = $here{$who}->run("SELECT seqmax FROM pg_sequence WHERE seqrelid = '$s'::regclass");
		my $number = ($current{$who}{$s} // 0) =~ s/\?/0/r;

		wrong("local below $number: $position of $max") if $number < 1e17 && $position < $number && $number <= $max && ($used{ $name_of{$s} } // 0) >= $number && $number_of{ $name_of{$s} }{$number};
		$synced{$s} = 0;
	}
	$synced{$s} = 0 if $before eq 'range';
	return if $before eq $kind;
	my (undef, $plain_error) = run_plain($who, "SELECT new_file('$s')");
	return if $before eq 'local';
	resync($who, $s) if $kind eq 'local' && !$synced{$s};
	return;
}

sub begin ($who, @)
{
	return end_transaction($who, one('COMMIT', 'ROLLBACK', 'COMMIT', 'ROLLBACK AND CHAIN; ROLLBACK')) if $in_transaction{$who};
	my $sql = one('BEGIN', 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'BEGIN ISOLATION LEVEL SERIALIZABLE');
	run_here($who, $sql);
	run_plain($who, $sql);
	$in_transaction{$who} = 1;
	return;
}

sub savepoint ($who, @)
{
	return if !$in_transaction{$who};
	if ($savepoints{$who} && rand() < 0.6)
	{
		return end_transaction($who, 'ROLLBACK TO x') if rand() < 0.7;
		run_here($who, 'RELEASE x');
		run_plain($who, 'RELEASE x');
		$savepoints{$who}--;
		return;
	}
	run_here($who, 'SAVEPOINT x');
	run_plain($who, 'SAVEPOINT x');
	$savepoints{$who}++;
	return;
}

# What is rolled back in the same statement has no effect.
sub rolled_back ($who, $s)
{
	my $kind = kind_of($who, $s);
	my (@here, @plain);

	return if $kind eq 'range';
	foreach (1 .. one(1, 2, 3))
	{
		my $new = one('snowflake', 'local', 'local');
		my $alter = one("ALTER SEQUENCE $s RESTART", "ALTER SEQUENCE $s INCREMENT 3 RESTART WITH 9", "DROP SEQUENCE $s CASCADE; RAISE division_by_zero", "TRUNCATE t$round RESTART IDENTITY");

		if (rand() < 0.6)
		{
			push @here, "PERFORM snowflake_set_sequence_kind('$s', '$new')";
			push @plain, "PERFORM new_file('$s')" if $new ne $kind;
			$kind = $new;
		}
		else
		{
			push @here, $alter;
			push @plain, $alter;
		}
	}
	my $state = "SELECT (SELECT label FROM pg_seclabel WHERE objoid = '$s'::regclass), q, p.last_value, p.is_called, s.relfilenode FROM $s p, pg_class s, pg_sequence q WHERE s.oid = '$s'::regclass AND q.seqrelid = s.oid";
	my ($before) = $here{$who}->run($state);
	my $block = sub { 'DO $$ BEGIN ' . join('; ', @_, 'RAISE division_by_zero') . '; EXCEPTION WHEN OTHERS THEN END $$' };
	run_here($who, $block->(@here));
	my ($after) = $here{$who}->run($state);
	wrong("before\n$before\nafter\n$after") if $before ne $after;
	run_plain($who, $block->(@plain));
	# A session drops the numbers of CACHE when it changes a sequence, and a change of
	# kind can have been refused before that.
	$synced{$s} = 0 if grep { /set_sequence_kind/ } @here;
	return;
}

sub discard ($who, @)
{
	my $sql = one('DISCARD SEQUENCES', 'DISCARD PLANS', 'DISCARD TEMP', 'SET plan_cache_mode = force_generic_plan', 'SET plan_cache_mode = force_custom_plan');

	run_here($who, $sql);
	run_plain($who, $sql);
	$current{$who} = {}, delete $last{$who} if $sql eq 'DISCARD SEQUENCES';
	return;
}

sub position ($who, $s)
{
	return if !$synced{$s} || kind_of($who, $s) ne 'local';
	my ($said) = run_here($who, "SELECT last_value, is_called FROM $s");
	my ($plain) = run_plain($who, "SELECT last_value, is_called FROM $s");
	wrong("position of $s: $said, and without the extension $plain") if $said ne $plain;
	return;
}

sub connect_both ($who)
{
	$here{$who} = SnowflakeTest::Session->new($node, 'here');
	$plain{$who} = SnowflakeTest::Session->new($node, 'plain');
	$current{$who} = {};
	delete $last{$who};
	$in_transaction{$who} = $savepoints{$who} = 0;
	return;
}

sub prepare_session ($who)
{
	foreach my $session ($here{$who}, $plain{$who})
	{
		$session->run('DEALLOCATE ALL');
		$session->run("PREPARE p$_ AS SELECT nextval('s$round\_$_'); PREPARE c$_ AS SELECT currval('s$round\_$_')") foreach 1 .. 5;
	}
	return;
}

sub begin_round
{
	srand($seed);
	$round = $seed;
	@sequences = map { "s$round\_$_" } 1 .. 5;
	%synced = map { $_ => 1 } @sequences;
	@history = ();
	my $cases = sub { my ($call) = @_; join(' ', map { "WHEN $_ THEN $call('s$round\_$_')" } 1 .. 5) };
	my $setup = "CREATE SCHEMA IF NOT EXISTS other; "
	  . join('; ', map { 'CREATE ' . one('', '', 'UNLOGGED') . " SEQUENCE $_ " . one('', '', 'START 7', 'INCREMENT 3', 'AS integer', 'MINVALUE -5', 'CACHE 10', 'CYCLE MAXVALUE 50') } @sequences)
	  . "; CREATE TABLE t$round (id bigint DEFAULT nextval('s$round\_1'), v int)"
	  . (rand() < 0.5 ? "; ALTER SEQUENCE s$round\_1 OWNED BY t$round.id" : '')
	  . join('', map { "; CREATE VIEW v$round\_$_ AS SELECT nextval('s$round\_$_') AS n" } 1 .. 5)
	  . "; CREATE FUNCTION f$round(i int) RETURNS bigint LANGUAGE plpgsql AS \$\$ BEGIN RETURN CASE i " . $cases->('nextval') . " END; END \$\$"
	  . "; CREATE FUNCTION h$round(i int) RETURNS bigint LANGUAGE sql AS \$\$ SELECT CASE i " . $cases->('nextval') . " END \$\$"
	  . "; CREATE FUNCTION g$round(s text) RETURNS bigint LANGUAGE plpgsql AS \$\$ DECLARE r bigint; BEGIN EXECUTE format('SELECT nextval(%L)', s) INTO r; RETURN r; EXCEPTION WHEN division_by_zero THEN RETURN NULL; END \$\$";
	# As unlogged tables with sequences of another kind of persistence can be.
	foreach my $session ($here{A}, $plain{A})
	{
		my ($said, $error) = $session->run($setup);

		die $error if $error ne '';
	}
	prepare_session($_) foreach qw(A B);
	$greatest_id //= 0;
	return;
}

my @actions = (
	(\&nextval_of) x 10, (\&currval_of) x 2, (\&lastval_of) x 2, (\&setval_of) x 4, (\&alter) x 4, (\&alter_others) x 2,
	(\&set_kind) x 3, (\&begin) x 3, (\&savepoint) x 3, \&rolled_back, \&discard, \&position, (\&truncate_table));

sub end_round
{
	foreach my $who (qw(A B))
	{
		end_transaction($who, 'ROLLBACK') if $in_transaction{$who};
	}
	if (rand() < 0.05)
	{
		# A crash, and no sequence has lost what it is.  What was rolled back is durable: otherwise, the
		# server itself may be unable to recover files of unlogged relations.
		run_here('A', "SELECT pg_logical_emit_message(true, '', '')");
		$_->close foreach values %here, values %plain;
		crash_and_start($node);
		connect_both($_) foreach qw(A B);
		$greatest_id //= 0;
	}
	foreach my $s (@sequences)
	{
		my $kind = kind_of('A', $s);
		my ($said, $error) = run_here('A', "SELECT nextval('$s')");

		check_values($s, $kind, $said) if $kind ne 'local' && $error eq '';
	}
	foreach my $session ($here{A}, $plain{A})
	{
		$session->run("DROP TABLE t$round CASCADE");
		$session->run("DROP SEQUENCE IF EXISTS " . join(', ', @sequences) . ' CASCADE');
		$session->run("DROP FUNCTION f$round, g$round, h$round");
	}
	%current = %last = ();
	return;
}

my $rounds = 0;

diag("SNOWFLAKE_SEED=$seed");
connect_both($_) foreach qw(A B);

# On a slow machine for longer, until all kinds were used.
while ((more_rounds($rounds, 15) || $counts{ids} == 0 || $counts{numbers} == 0 || $counts{local} == 0) && @wrong == 0)
{
	begin_round();
	my $who = 'A';
	foreach (1 .. 200)
	{
		# The other session waits for no transaction.
		$who = one(qw(A B)) if !$in_transaction{$who};
		one(@actions)->($who, one(@sequences));
		last if @wrong;
	}
	end_round() if !@wrong;
	$rounds++;
	$seed++;
}
diag(join ', ', "$rounds rounds", map({ "$counts{$_} $_" } grep { $_ ne 'codes' } sort keys %counts), "the next seed is $seed");
diag('errors: ' . join ', ', map { "$_ $counts{codes}{$_}" } sort keys %{ $counts{codes} });
ok($counts{ids} > 0 && $counts{numbers} > 0 && $counts{local} > 0, 'all kinds were used');
is(join("\n", @wrong), '', 'each statement does what its kind promises');
$_->close foreach values %here, values %plain;
unlike(slurp_file($node->logfile), qr/terminated by signal|runtime error:|ERROR: \w+Sanitizer|TRAP:/, 'no process has crashed');
done_testing();
