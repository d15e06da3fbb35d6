# Random statements on range sequences of two servers, in databases of two groups: whatever is done
# to a sequence, its table, its database or its server, also in the middle of a statement, no
# number of a name is returned twice, the registry stops only if it lost commits, and all
# servers hear of floors.  Others take numbers meanwhile, some of them many.
# SnowflakeTest::Random says how many rounds.

use List::Util qw(max min);
use SnowflakeTest;
use SnowflakeTest::Session;

my $seed = first_seed();
my $trace = $ENV{SNOWFLAKE_TRACE};
my @databases = qw(d1 d2);
my $registry = new_registry('registry', '1, 100, new => true', 'fsync = off');
my %node = map {
	$_ => new_primary($_, registry_conf($registry), "snowflake.server_name = '$_'", 'fsync = off', 'wal_level = logical',
		'max_prepared_transactions = 5', 'restart_after_crash = on', "snowflake.grant_timeout = '30s'", 'autovacuum = off',
		'snowflake.max_range_sequences = 40', 'work_mem = 64MB')
} qw(a b);
my %group_of = map { $_ => $_ } @databases;
my %counts = map { $_ => 0 } qw(statements numbers errors rollbacks crashes losses copies regrouped resumed);
my (%session, %taken, %taking, @history, @wrong, $round, $may_stop, %errors);

sub asked { return sql($registry, $_[0]); }

sub wrong
{
	push @wrong, @wrong ? () : "$_[0]\n-- seed $seed:\n" . join("\n", @history[ max(0, $#history - 60) .. $#history ]);
	return;
}

sub note_event { push @history, "-- $_[0]"; print STDERR "-- $_[0]\n" if $trace; return; }

# Sessions: two of each server in each database, and one that takes numbers meanwhile
sub session ($server, $database, $number)
{
	return $session{"$server $database $number"} //= SnowflakeTest::Session->new($node{$server}, $database);
}

my %in_transaction;

sub run ($who, $sql)
{
	my ($said, $error) = session(@$who)->run($sql);

	push @history, "@$who: " . ($sql =~ s/WITH x AS \((.*?)\), y AS .* GROUP BY g, i/$1/sr), $said ne '' ? '   ' . substr($said =~ s/(?<=\d)\n/,/gr, 0, 300) : ();
	print STDERR "@$who: $sql\n   $said\n" if $trace;
	$counts{statements}++;
	if ($error ne '')
	{
		$counts{errors}++;
		$errors{ $error =~ s/"[^"]*"|\d+/?/gr }++;
		# TRUNCATE alone fails so if a trigger drops one of its sequences.
		wrong("no usual error: $error") if $error =~ /ERROR:  XX|PANIC|server closed|ERROR:  55000: the registry refuses numbers.*stopped/
			&& $error !~ /tuple concurrently/ && !($sql =~ /TRUNCATE/ && $error =~ /could not open relation with OID/);
		finish($who, 'ROLLBACK') if $in_transaction{"@$who"};
	}
	return ($said, $error);
}

sub finish ($who, $sql)
{
	$in_transaction{"@$who"} = 0;
	$counts{rollbacks}++ if $sql =~ /ROLLBACK/;
	return run($who, $sql);
}

# What the registry knows a range sequence by, or nothing
sub name_of ($who, $s)
{
	my ($label) = session(@$who)->run("SELECT label FROM pg_seclabel WHERE objoid = to_regclass('$s')");

	return $label =~ /^range\b.* name=(.*)/ ? "$group_of{ $who->[1] } $1" : undef;
}

# Adds a block of numbers to those of a name, which are in order.  Returns whether it was not
# in there.
sub add_block ($blocks, $first, $last)
{
	my ($low, $high) = (0, scalar @$blocks);
	my $is_new = 1;

	while ($low < $high)
	{
		my $middle = ($low + $high) >> 1;
		$blocks->[$middle][1] < $first - 1 ? ($low = $middle + 1) : ($high = $middle);
	}
	my ($from, $to) = ($first, $last);
	for (; $high < @$blocks && $blocks->[$high][0] <= $last + 1; $high++)
	{
		$is_new = 0 if $blocks->[$high][0] <= $last && $blocks->[$high][1] >= $first;
		($from, $to) = (min($from, $blocks->[$high][0]), max($to, $blocks->[$high][1]));
	}
	splice @$blocks, $low, $high - $low, [ $from, $to ];
	return $is_new;
}

# What one group has, another one has, too.
sub add_taken ($from, $to)
{
	foreach my $name (grep { /^\Q$from\E / } keys %taken)
	{
		add_block($taken{ $name =~ s/^\S+/$to/r } //= [], @$_) foreach @{ $taken{$name} };
	}
	return;
}

# The query that makes blocks of the numbers that another one returns as v; of an INCREMENT,
# those up to the next number are the caller's, too.
sub blocks_of ($s, $query)
{
	return "WITH x AS ($query), y AS (SELECT v, i, v - i * row_number() OVER (ORDER BY v) AS g
		FROM x, (SELECT seqincrement AS i FROM pg_sequence WHERE seqrelid = $s) q)
		SELECT format('%s..%s %s', min(v), max(v) + i - 1, count(*)) FROM y GROUP BY g, i";
}

sub check_numbers ($name, $said)
{
	while ($said =~ /^(\d+)\.\.(\d+) (\d+)$/mg)
	{
		$counts{numbers} += $3;
		wrong("$1 to $2 of $name, or some of them, were returned for the second time") if !add_block($taken{$name} //= [], $1, $2);
	}
	return;
}

sub sequence { return one("public.s$round\_1", "public.s$round\_2", "public.t$round\_id_seq", "public.u$round\_id_seq"); }
sub many { return one(1, 3, 30, 30, 150, 150, 3000, 100_000, 1_000_000); }

sub take ($who)
{
	my $s = sequence();
	my $name = name_of($who, $s) // return;
	my $n = many();
	my ($table) = $s =~ /([tu]\d+)_id_seq/;
	my @ways = ("SELECT nextval('$s') AS v FROM generate_series(1, $n)", "SELECT nextval('$s') AS v",
		$table && $n <= 3000 ? "INSERT INTO $table (n) SELECT generate_series(1, $n) RETURNING id AS v" : ());
	my $mark = 1_000_000 + $counts{statements};
	my ($said) = run($who, $table && $n <= 100_000 && rand() < 0.2
		? "COPY $table (n) FROM PROGRAM 'yes $mark | head -n $n'; " . blocks_of("'$s'::regclass", "SELECT id AS v FROM $table WHERE n = $mark")
		: blocks_of("'$s'::regclass", one(@ways)));

	check_numbers($name, $said);
	return;
}

# Numbers that are taken while others do something: their name is that of the sequence which
# the transaction has locked.
sub begin_take ($who)
{
	my $s = sequence();
	my $n = many();

	$who = [ @$who[ 0, 1 ], 'meanwhile' ];
	end_take("@$who");
	note_event("@$who: $n of $s");
	session(@$who)->send(qq{SELECT '$s'::regclass::oid AS s \\gset
		BEGIN; SELECT 'locked' FROM nextval(:s::regclass);
		SELECT label FROM pg_seclabel WHERE objoid = :s;
		@{[ blocks_of(':s', "SELECT nextval(:s::regclass) AS v FROM generate_series(1, $n)") ]}; COMMIT});
	$taking{"@$who"} = $group_of{ $who->[1] };
	return;
}

sub end_take ($who)
{
	my $group = delete $taking{$who} // return;
	my ($said, $error) = $session{$who}->receive;

	push @history, "$who: " . substr($said =~ s/\n/, /gr, 0, 300);
	$counts{statements}++;
	wrong("no usual error: $error") if $error =~ /ERROR:  XX|PANIC/;
	check_numbers("$group $1", $said) if $said =~ /^range\b.* name=(.*)$/m;
	return;
}

sub end_takes { end_take($_) foreach keys %taking; return; }

# A statement that calls a function for each row, of which there are few.
sub with_default
{
	return "DELETE FROM t$round WHERE ctid NOT IN (SELECT ctid FROM t$round LIMIT 20); ALTER TABLE t$round ADD c int DEFAULT in_default(), SET "
		. one('LOGGED', 'UNLOGGED') . "; ALTER TABLE t$round DROP c";
}

# A statement on a sequence or its table; also one for the middle of another.
sub statement
{
	my $s = sequence();
	my $short = $s =~ s/.*\.//r;
	my $range = "SELECT snowflake_set_sequence_kind('$s', 'range')";

	return one(
		("ALTER SEQUENCE $s " . one('RESTART', 'RESTART 7', 'INCREMENT 1', 'INCREMENT 1', 'INCREMENT 3', 'CACHE 5', 'MINVALUE -5', 'NO MINVALUE', 'MAXVALUE 2000000', 'NO MAXVALUE',
			'START 2', 'AS bigint', 'AS int', 'AS smallint', 'NO CYCLE', 'CYCLE', 'INCREMENT 3 RESTART 9 NO MAXVALUE', 'OWNER TO CURRENT_USER', 'INCREMENT -1')) x 4,
		('TRUNCATE ' . one("t$round", "u$round", "t$round, u$round") . ' RESTART IDENTITY') x 2,
		"ALTER TABLE u$round ALTER id " . one('RESTART', 'SET INCREMENT BY 2', 'SET INCREMENT BY 1', 'SET START 5', 'SET CACHE 3', 'SET GENERATED ALWAYS', 'SET GENERATED BY DEFAULT'),
		"ALTER TABLE u$round ALTER id DROP IDENTITY; ALTER TABLE u$round ALTER id ADD GENERATED BY DEFAULT AS IDENTITY; SELECT snowflake_set_sequence_kind('public.u$round\_id_seq', 'range')",
		"DROP TABLE t$round; " . create_table(), "SELECT snowflake_set_sequence_kind('t$round', 'id', 'range')",
		"ALTER TABLE t$round SET SCHEMA other; ALTER TABLE other.t$round SET SCHEMA public",
		"ALTER SCHEMA public RENAME TO away; ALTER SCHEMA away RENAME TO public",
		'ALTER TABLE t' . $round . ' SET ' . one('LOGGED', 'UNLOGGED'), "ALTER SEQUENCE $s SET " . one('LOGGED', 'UNLOGGED'),
		"ALTER SEQUENCE $s OWNED BY " . one("t$round.id", 'NONE'),
		"ALTER SEQUENCE $s SET SCHEMA other; ALTER SEQUENCE other.$short SET SCHEMA public",
		"ALTER SEQUENCE $s RENAME TO renamed; ALTER SEQUENCE renamed RENAME TO $short",
		"ALTER SEQUENCE s$round\_1 RENAME TO renamed; ALTER SEQUENCE s$round\_2 RENAME TO s$round\_1; ALTER SEQUENCE renamed RENAME TO s$round\_2",
		"DROP SEQUENCE IF EXISTS s$round\_1; CREATE SEQUENCE s$round\_1 AS int; SELECT snowflake_set_sequence_kind('s$round\_1', 'range')",
		"DROP SEQUENCE IF EXISTS s$round\_2; SET snowflake.default_sequence_kind = range; CREATE SEQUENCE s$round\_2 AS int; RESET snowflake.default_sequence_kind",
		$range, "SELECT snowflake_set_sequence_kind('$s', 'local'); $range",
		"SECURITY LABEL FOR snowflake ON SEQUENCE $s IS NULL; SELECT count(nextval('$s')) FROM generate_series(1, 3); $range",
		"SELECT snowflake_set_sequence_kind('$s', 'snowflake'); $range",
		# Without the database, a copy is not known to be one.
		"SECURITY LABEL FOR snowflake ON SEQUENCE $s IS NULL; DO \$do\$ BEGIN EXECUTE format('SECURITY LABEL FOR snowflake ON SEQUENCE $s IS %L', format('range last_value=1 database=%s name=$s', current_database())); END \$do\$",
		with_default(),
		"DELETE FROM t$round WHERE id % 2 = 0", "SELECT count(nextval('$s')) FROM generate_series(1, 3)");
}

# Numbers that are not returned here can be returned nowhere else, so they need not be seen.
sub change ($who) { run($who, statement()); return; }

# One after which a sequence is still the same, of the same kind
sub change_same ($who)
{
	run($who, (grep { !/kind|LABEL|CREATE|IDENTITY; / } map { statement() } 1 .. 20)[0] // 'SELECT 1');
	return;
}

# What triggers and defaults do in the middle
sub in_the_middle ($who)
{
	my @todo = grep { !/in_default|DELETE/ } map { statement() } 1 .. one(1, 2);

	return if !@todo;
	run($who, 'DELETE FROM todo; INSERT INTO todo VALUES (' . join('), (', map { '$todo$' . $_ . '$todo$' } @todo) . ')');
	run($who, one("TRUNCATE t$round RESTART IDENTITY", with_default()));
	run($who, 'DELETE FROM todo');
	return;
}

sub set_position ($who)
{
	my $s = sequence();
	my $name = name_of($who, $s) // return;
	my $greatest = @{ $taken{$name} // [] } ? $taken{$name}[-1][1] : 0;

	run($who, "SELECT setval('$s', " . (one(1, $greatest, $greatest + 1000) || 1) . ')');
	return;
}

sub transaction ($who)
{
	if (!$in_transaction{"@$who"})
	{
		run($who, 'BEGIN');
		$in_transaction{"@$who"} = 1;
		# Others do not wait for it.
		foreach (1 .. one(2, 4, 6))
		{
			one(\&change, \&take, \&take, \&savepoint)->($who);
			return if !$in_transaction{"@$who"};
		}
	}
	my $end = one('COMMIT', 'COMMIT', 'ROLLBACK', 'PREPARE');
	return finish($who, $end) if $end ne 'PREPARE';
	my (undef, $error) = finish($who, "PREPARE TRANSACTION 'x'");
	return if $error ne '';
	crash_server($who->[0]) if rand() < 0.1;
	run($who, one('COMMIT', 'ROLLBACK') . " PREPARED 'x'");
	return;
}

sub savepoint ($who) { run($who, one('SAVEPOINT x', 'SAVEPOINT x; SELECT 1', 'SAVEPOINT x; ' . statement() . '; ROLLBACK TO x')); return; }

sub forget_sessions ($server)
{
	my @of_server = grep { /^$server / } keys %session;

	$_->close foreach map { delete $session{$_} } @of_server;
	delete @in_transaction{@of_server};
	return;
}

# Kills the server or one of its processes, or stops it.
sub crash_server ($server)
{
	my $node = $node{$server};
	my $how = one('postmaster', 'postmaster', 'process', 'immediate', 'fast');

	$counts{crashes}++;
	note_event("end of $server: $how");
	if ($how eq 'postmaster')
	{
		kill_postmaster($node);
	}
	elsif ($how eq 'process')
	{
		crash_process($node, sql($node, q{SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()
			AND backend_type IN ('client backend', 'snowflake ranges', 'checkpointer', 'logical replication worker') ORDER BY random() LIMIT 1}));
	}
	else
	{
		$node->stop($how);
	}
	end_take($_) foreach grep { /^$server / } keys %taking;
	forget_sessions($server);
	$node->start if $how ne 'process';
	return;
}

sub crash { crash_server(one(sort keys %node)); return; }

sub crash_registry
{
	$counts{crashes}++;
	note_event('kill -9 of the registry');
	kill_postmaster($registry);
	$registry->start;
	return;
}

# A copy of a database continues above the numbers of that, and so does one that gets another
# name.  d1 has a subscription.
sub copy ($who)
{
	my $server = $who->[0];
	my $copy = "copy_$round";

	return if $group_of{$copy};
	end_takes();
	forget_sessions($server);
	foreach my $sql ("CREATE DATABASE $copy TEMPLATE d2", "ALTER DATABASE $copy RENAME TO renamed_$round")
	{
		my ($source, $database) = $sql =~ /RENAME/ ? ($copy, "renamed_$round") : ('d2', $copy);
		$counts{copies}++;
		note_event($sql);
		# A label has one database from which the numbers are.
		run([ $server, $copy, 1 ], "SELECT snowflake_set_sequence_kind(objoid::regclass, 'range') FROM pg_seclabel WHERE label LIKE 'range %'") if $source ne 'd2';
		forget_sessions($server);
		sql($node{$server}, $sql);
		asked("SELECT snowflake_registry.add_database('$database')");
		add_taken($group_of{$source}, $database);
		$group_of{$database} = $database;
		# Another sequence under the name, of which the registry knows nothing here, may begin at 1.
		one(\&change_same, \&take, \&take)->([ $server, $database, 1 ]) foreach 1 .. 20;
		last if rand() < 0.5;
	}
	return;
}

# d2 shares its sequences with d1, or no longer.
sub regroup
{
	my ($from, $to) = $group_of{d2} eq 'd2' ? ('d2', 'd1') : ('d1', 'd2');

	end_takes();
	$counts{regrouped}++;
	note_event("d2 gets the group $to");
	asked(qq{SELECT snowflake_registry.remove_database('d2'); SELECT snowflake_registry.add_database('d2', shared_as => '$to')});
	add_taken($from, $to);
	$group_of{d2} = $to;
	# add_database() says who may still give out numbers of before.  Those who wait for it look for
	# servers that have ended: of one that is superseded that is known after a minute.
	$registry->poll_query_until('postgres', q{SELECT snowflake_registry.end_former_lives(); SELECT count(*) = 0 FROM snowflake_registry.range_holders WHERE waiting_floor IS NOT NULL}, "\nt")
		or wrong('the servers do not hear the floor: ' . asked('SELECT * FROM snowflake_registry.range_holders WHERE waiting_floor IS NOT NULL'));
	return;
}

# The registry's files are put back, after numbers were granted: it stops.
my $backup = $registry->basedir . '/put_back';

sub put_back
{
	end_takes();
	$registry->stop('fast');
	system('rm', '-rf', $backup) == 0 && system('cp', '-a', $registry->data_dir, $backup) == 0 or die;
	$registry->start;
	take([ one(sort keys %node), one(@databases), 1 ]) foreach 1 .. one(1, 30);
	note_event('the registry is put back');
	$registry->stop('immediate');
	system('rm', '-rf', $registry->data_dir) == 0 && system('cp', '-a', $backup, $registry->data_dir) == 0 or die;
	$registry->start;
	$counts{losses}++;
	$may_stop = 1;
	# Before both have called, the one whose receipt is known may be granted numbers twice.
	foreach (1 .. 20)
	{
		last if asked('SELECT stopped IS NOT NULL FROM snowflake_registry.range_state') eq 't';
		sleep 0.5;
	}
	return;
}

# Each server reports what it was granted, whether it is used or not.  What no column has is
# skipped.
sub resume
{
	my $error = '';

	foreach (1 .. 300)
	{
		$error = sql_error($registry, 'SELECT snowflake_registry.resume_ranges(0, servers => 2)');
		return if $error !~ /ERROR/;
		if ($error =~ /DETAIL:  Servers that have reported all that they know: a, b\. It is not known what.*HINT: .*resume_ranges\((\d+)\)/s)
		{
			asked("SELECT count(*) FROM snowflake_registry.resume_ranges($1)");
			$counts{skipped}++;
			return;
		}
		sleep 1;
	}
	return wrong("the registry does not resume: $error");
}

sub replicate
{
	return if $node{b}->safe_psql('d1', 'SELECT count(*) FROM pg_subscription') == 0;
	note_event('TRUNCATE of a subscription');
	$node{a}->safe_psql('d1', "TRUNCATE p RESTART IDENTITY; INSERT INTO p (n) VALUES ($seed)");
	$node{a}->wait_for_catchup('p');
	my ($name, $said) = (name_of([ 'b', 'd1', 1 ], 'public.p_id_seq'),
		session('b', 'd1', 1)->run(blocks_of("'p_id_seq'::regclass", q{SELECT nextval('p_id_seq') AS v FROM generate_series(1, 30)})));
	check_numbers($name, $said) if defined $name;
	my ($open) = session('b', 'd1', 1)->run(q{SELECT count(*) FROM snowflake_sequences WHERE problem ~ 'exhausted'});
	wrong("a subscription leaves $open sequences not exhausted") if $open ne '0';
	return;
}

sub set_up
{
	foreach my $server (sort keys %node)
	{
		foreach my $database (@databases)
		{
			sql($node{$server}, "CREATE DATABASE $database");
			$node{$server}->safe_psql($database, q{
				CREATE EXTENSION snowflake; CREATE SCHEMA other; CREATE TABLE todo (sql text);
				CREATE FUNCTION do_todo() RETURNS void LANGUAGE plpgsql AS $$
				DECLARE t text;
				BEGIN
					FOR t IN SELECT sql FROM todo LOOP
						BEGIN EXECUTE t; EXCEPTION WHEN OTHERS THEN END;
					END LOOP;
				END $$;
				CREATE FUNCTION on_truncate() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM do_todo(); RETURN NULL; END';
				CREATE FUNCTION in_default() RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM do_todo(); RETURN 1; END'});
		}
		$node{$server}->safe_psql('d1', q{CREATE TABLE p (id serial PRIMARY KEY, n int); SELECT snowflake_set_sequence_kind('p_id_seq', 'range')});
	}
	$node{a}->safe_psql('d1', 'CREATE PUBLICATION p FOR TABLE p');
	$node{b}->safe_psql('d1', sprintf q{CREATE SUBSCRIPTION p CONNECTION '%s dbname=d1' PUBLICATION p}, $node{a}->connstr);
	$node{b}->wait_for_subscription_sync($node{a}, 'p', 'd1');
	return;
}

sub create_table
{
	return qq{CREATE TABLE t$round (id serial, n int);
		CREATE TRIGGER b BEFORE TRUNCATE ON t$round EXECUTE FUNCTION on_truncate();
		CREATE TRIGGER a AFTER TRUNCATE ON t$round EXECUTE FUNCTION on_truncate()};
}

sub begin_round
{
	srand($seed);
	$round = $seed;
	@history = ();
	delete @taken{ grep { !/\.p_id_seq$/ } keys %taken };
	# What is in use keeps its slot for so long.
	asked("SELECT snowflake_registry.alter_ranges(grant_time => '" . one('1 s', '5 s', '10 min') . "')");
	foreach my $server (sort keys %node)
	{
		run([ $server, $_, 1 ], qq{
			CREATE SEQUENCE s$round\_1 AS int; CREATE SEQUENCE s$round\_2; @{[ create_table() ]};
			CREATE TABLE u$round (id bigint GENERATED BY DEFAULT AS IDENTITY, n int);
			SELECT snowflake_set_sequence_kind(s::regclass, 'range') FROM unnest('{s$round\_1,s$round\_2,t$round\_id_seq,u$round\_id_seq}'::text[]) s}) foreach @databases;
	}
	return;
}

sub end_round
{
	end_takes();
	foreach my $who (map { [ split / / ] } grep { $in_transaction{$_} } keys %in_transaction) { finish($who, 'ROLLBACK'); }
	foreach my $server (sort keys %node)
	{
		run([ $server, $_, 1 ], "DROP TABLE IF EXISTS t$round, u$round CASCADE; DROP SEQUENCE IF EXISTS s$round\_1, s$round\_2, t$round\_id_seq, renamed CASCADE") foreach @databases;
		forget_sessions($server);
		sql($node{$server}, "DROP DATABASE IF EXISTS $_") foreach "copy_$round", "renamed_$round";
	}
	note(join ', ', map { "$counts{$_} $_" } sort keys %counts);
	return;
}

asked("SELECT snowflake_registry.add_database('$_')") foreach @databases;
set_up();
my @actions = ((\&take) x 24, (\&begin_take) x 12, (\&change) x 16, (\&in_the_middle) x 6, (\&transaction) x 6, (\&set_position) x 3,
	\&crash, \&crash, \&crash_registry, \&copy, \&regroup, \&replicate, \&put_back);
my $rounds = 0;

diag("SNOWFLAKE_SEED=$seed");
while (more_rounds($rounds, 2) && @wrong == 0)
{
	begin_round();
	foreach (1 .. 140)
	{
		one(@actions)->([ one(sort keys %node), one(@databases), one(1, 2) ]);
		my $stopped = asked('SELECT stopped FROM snowflake_registry.range_state');
		if ($stopped ne '')
		{
			wrong("the registry stopped without a loss: $stopped") if !$may_stop;
			$counts{resumed}++;
			note_event("stopped: $stopped");
			resume();
			$may_stop = 0;
		}
		last if @wrong;
	}
	end_round() if !@wrong;
	$rounds++;
	$seed++;
}
diag(join ', ', "$rounds rounds", map({ "$counts{$_} $_" } sort keys %counts), "the next seed is $seed");
note("$errors{$_} times $_") foreach sort { $errors{$b} <=> $errors{$a} } keys %errors;
cmp_ok($counts{numbers}, '>', 100_000, 'numbers were taken');
is(join("\n", @wrong), '', 'no number is returned twice, and the registry stops only with a loss');
$_->close foreach values %session;
unlike(slurp_file($_->logfile), qr/terminated by signal 11|runtime error:|ERROR: \w+Sanitizer|TRAP:/, 'no process has crashed') foreach values %node;
done_testing();
