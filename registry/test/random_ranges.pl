# Random statements on range sequences of two servers, in databases of two groups: whatever is done
# to a sequence, its table, its database or its server, also in the middle of a statement, no
# number of a name is returned twice, and the registry stops only if it lost commits.
# SnowflakeTest::Random says how many rounds.

use List::Util qw(max);
use SnowflakeTest;
use SnowflakeTest::Session;

my $seed = first_seed();
my $trace = $ENV{SNOWFLAKE_TRACE};
my @databases = qw(d1 d2);
my $registry = new_registry('registry', '1, 100, new => true', 'fsync = off');
my %node = map {
	$_ => new_primary($_, registry_conf($registry), "snowflake.server_name = '$_'", 'fsync = off', 'wal_level = logical',
		'max_prepared_transactions = 5', 'restart_after_crash = on', "snowflake.grant_timeout = '30s'", 'autovacuum = off')
} qw(a b);
my %group_of = map { $_ => $_ } @databases;
my %counts = map { $_ => 0 } qw(statements numbers errors rollbacks crashes losses copies regrouped);
my (%session, %seen, @history, @wrong, $round, $may_stop);

sub asked { return $registry->safe_psql('postgres', $_[0]); }

sub wrong
{
	push @wrong, @wrong ? () : "$_[0]\n-- seed $seed:\n" . join("\n", @history[ max(0, $#history - 60) .. $#history ]);
	return;
}

sub note_event { push @history, "-- $_[0]"; print STDERR "-- $_[0]\n" if $trace; return; }

# Sessions: two of each server in each database
sub session
{
	my ($server, $database, $number) = @_;
	return $session{"$server $database $number"} //= SnowflakeTest::Session->new($node{$server}, $database);
}

my %in_transaction;

sub run
{
	my ($who, $sql) = @_;
	my ($said, $error) = session(@$who)->run($sql);

	push @history, "@$who: $sql", $said ne '' ? '   ' . substr($said =~ s/(?<=\d)\n/,/gr, 0, 300) : ();
	print STDERR "@$who: $sql\n   $said\n" if $trace;
	$counts{statements}++;
	if ($error ne '')
	{
		$counts{errors}++;
		wrong("no usual error: $error") if $error =~ /ERROR:  XX|PANIC|server closed|ERROR:  55000: the registry refuses numbers.*stopped/ && $error !~ /tuple concurrently/;
		finish($who, 'ROLLBACK') if $in_transaction{"@$who"};
	}
	return ($said, $error);
}

sub finish
{
	my ($who, $sql) = @_;
	$in_transaction{"@$who"} = 0;
	$counts{rollbacks}++ if $sql =~ /ROLLBACK/;
	return run($who, $sql);
}

# What the registry knows a range sequence by, or nothing
sub name_of
{
	my ($who, $s) = @_;
	my ($label) = session(@$who)->run("SELECT label FROM pg_seclabel WHERE objoid = to_regclass('$s')");

	return $label =~ /^range\b.* name=(.*)/ ? "$group_of{ $who->[1] } $1" : undef;
}

sub check_numbers
{
	my ($name, $said) = @_;

	foreach my $number (grep { /^\d+$/ } split /\n/, $said)
	{
		$counts{numbers}++;
		wrong("$number of $name was returned for the second time") if $seen{$name}{$number}++;
	}
	return;
}

sub sequence { return one("public.s$round\_1", "public.s$round\_2", "public.t$round\_id_seq"); }

sub take
{
	my ($who) = @_;
	my $s = sequence();
	my $name = name_of($who, $s) // return;
	my $n = one(1, 3, 30, 150);
	my ($said) = run($who, one("SELECT nextval('$s') FROM generate_series(1, $n)",
		$s =~ /id_seq/ ? "INSERT INTO t$round (n) SELECT generate_series(1, $n) RETURNING id" : "SELECT nextval('$s')"));

	check_numbers($name, $said);
	return;
}

# A statement on a sequence or its table; also one for the middle of another.
sub statement
{
	my $s = sequence();
	my $short = $s =~ s/.*\.//r;
	my $range = "SELECT snowflake_set_sequence_kind('$s', 'range')";

	return one(
		("ALTER SEQUENCE $s " . one('RESTART', 'RESTART 7', 'INCREMENT 1', 'INCREMENT 1', 'INCREMENT 3', 'CACHE 5', 'MINVALUE -5', 'NO MINVALUE', 'MAXVALUE 2000000', 'NO MAXVALUE',
			'START 2', 'AS bigint', 'AS int', 'NO CYCLE', 'CYCLE', 'INCREMENT 3 RESTART 9 NO MAXVALUE')) x 4,
		("TRUNCATE t$round RESTART IDENTITY") x 2,
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
		"ALTER TABLE t$round ADD c int DEFAULT in_default(), SET " . one('LOGGED', 'UNLOGGED') . "; ALTER TABLE t$round DROP c",
		"DELETE FROM t$round WHERE id % 2 = 0", "SELECT count(nextval('$s')) FROM generate_series(1, 3)");
}

# Numbers that are not returned here can be returned nowhere else, so they need not be seen.
sub change { my ($who) = @_; run($who, statement()); return; }

# What triggers and defaults do in the middle
sub in_the_middle
{
	my ($who) = @_;
	my @todo = grep { !/in_default|DELETE/ } map { statement() } 1 .. one(1, 2);

	return if !@todo;
	run($who, 'DELETE FROM todo; INSERT INTO todo VALUES (' . join('), (', map { '$todo$' . $_ . '$todo$' } @todo) . ')');
	run($who, one("TRUNCATE t$round RESTART IDENTITY", "ALTER TABLE t$round ADD c int DEFAULT in_default(), SET " . one('LOGGED', 'UNLOGGED') . "; ALTER TABLE t$round DROP c"));
	run($who, 'DELETE FROM todo');
	return;
}

sub set_position
{
	my ($who) = @_;
	my $s = sequence();
	my $name = name_of($who, $s) // return;
	my $greatest = max(0, keys %{ $seen{$name} // {} });
	my $value = one(1, $greatest, $greatest + 1000);
	my ($said, $error) = run($who, "SELECT setval('$s', @{[ $value || 1 ]})");

	return;
}

sub transaction
{
	my ($who) = @_;

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
	run($who, one('COMMIT', 'ROLLBACK') . " PREPARED 'x'") if $error eq '';
	return;
}

sub savepoint { my ($who) = @_; run($who, one('SAVEPOINT x', 'SAVEPOINT x; SELECT 1', 'SAVEPOINT x; ' . statement() . '; ROLLBACK TO x')); return; }

sub forget_sessions
{
	my ($server) = @_;
	my @of_server = grep { /^$server / } keys %session;

	$_->close foreach map { delete $session{$_} } @of_server;
	delete @in_transaction{@of_server};
	return;
}

sub crash
{
	my $server = one(keys %node);

	$counts{crashes}++;
	note_event("kill -9 of $server");
	forget_sessions($server);
	$node{$server}->stop(one('immediate', 'immediate', 'fast'));
	$node{$server}->start;
	return;
}

# A copy of a database continues above the numbers of that.  The other one has a subscription.
sub copy
{
	my ($who) = @_;
	my ($server, $database) = ($who->[0], 'd2');
	my $copy = "copy_$round";

	return if $group_of{$copy};
	$counts{copies}++;
	note_event("$copy of $database on $server");
	forget_sessions($server);
	$node{$server}->safe_psql('postgres', "CREATE DATABASE $copy TEMPLATE $database");
	asked("SELECT snowflake_registry.add_database('$copy')");
	my $was = $group_of{$database};
	foreach my $name (grep { /^\Q$was\E / } keys %seen)
	{
		my $other = $name =~ s/^\S+/$copy/r;
		$seen{$other}{$_}++ foreach keys %{ $seen{$name} };
	}
	$group_of{$copy} = $copy;
	take([ $server, $copy, 1 ]) foreach 1 .. 10;
	change([ $server, $copy, 1 ]), take([ $server, $copy, 1 ]) foreach 1 .. 10;
	return;
}

# d2 shares its sequences with d1, or no longer.
sub regroup
{
	my $shared = $group_of{d2} eq 'd2';

	$counts{regrouped}++;
	note_event('d2 gets another group');
	asked("SELECT snowflake_registry.remove_database('d2')");
	asked("SELECT snowflake_registry.add_database('d2'" . ($shared ? ", shared_as => 'd1')" : ')'));
	foreach my $name (grep { $shared ? /^d2 / : /^d1 / } keys %seen)
	{
		my $other = $name =~ s/^\S+/$shared ? 'd1' : 'd2'/er;
		$seen{$other}{$_}++ foreach keys %{ $seen{$name} };
	}
	$group_of{d2} = $shared ? 'd1' : 'd2';
	# add_database() says who may still give out numbers of before.
	$registry->poll_query_until('postgres', q{SELECT count(*) = 0 FROM snowflake_registry.held_ranges h JOIN snowflake_registry.range_clients c USING (client)
		WHERE h.floor_pending AND c.token_hash IS NOT NULL AND c.called_at > now() - interval '1 minute'}) or wrong('the servers do not hear the floor');
	return;
}

# The registry's files are put back, after numbers were granted: it stops.
my $backup = $registry->basedir . '/put_back';

sub put_back
{
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
	my ($name, $said) = (name_of([ 'b', 'd1', 1 ], 'public.p_id_seq'), session('b', 'd1', 1)->run(q{SELECT nextval('p_id_seq') FROM generate_series(1, 30)}));
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
			$node{$server}->safe_psql('postgres', "CREATE DATABASE $database");
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

sub begin_round
{
	srand($seed);
	$round = $seed;
	@history = ();
	foreach my $server (sort keys %node)
	{
		run([ $server, $_, 1 ], qq{
			CREATE SEQUENCE s$round\_1 AS int; CREATE SEQUENCE s$round\_2; CREATE TABLE t$round (id serial, n int);
			CREATE TRIGGER b BEFORE TRUNCATE ON t$round EXECUTE FUNCTION on_truncate();
			CREATE TRIGGER a AFTER TRUNCATE ON t$round EXECUTE FUNCTION on_truncate();
			SELECT snowflake_set_sequence_kind(s::regclass, 'range') FROM unnest('{s$round\_1,s$round\_2,t$round\_id_seq}'::text[]) s}) foreach @databases;
	}
	return;
}

sub end_round
{
	foreach my $who (map { [ split / / ] } grep { $in_transaction{$_} } keys %in_transaction) { finish($who, 'ROLLBACK'); }
	foreach my $server (sort keys %node)
	{
		run([ $server, $_, 1 ], "DROP TABLE IF EXISTS t$round CASCADE; DROP SEQUENCE IF EXISTS s$round\_1, s$round\_2, t$round\_id_seq, renamed CASCADE") foreach @databases;
		if ($node{$server}->safe_psql('postgres', "SELECT count(*) FROM pg_database WHERE datname = 'copy_$round'"))
		{
			forget_sessions($server);
			$node{$server}->safe_psql('postgres', "DROP DATABASE copy_$round");
		}
	}
	return;
}

asked("SELECT snowflake_registry.add_database('$_')") foreach @databases;
set_up();
my @actions = ((\&take) x 24, (\&change) x 16, (\&in_the_middle) x 6, (\&transaction) x 6, (\&set_position) x 3,
	\&crash, \&copy, \&regroup, \&replicate, \&put_back);
my $rounds = 0;

diag("SNOWFLAKE_SEED=$seed");
while (more_rounds($rounds, 4) && @wrong == 0)
{
	begin_round();
	foreach (1 .. 120)
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
cmp_ok($counts{numbers}, '>', 1000, 'numbers were taken');
is(join("\n", @wrong), '', 'no number is returned twice, and the registry stops only with a loss');
$_->close foreach values %session;
unlike(slurp_file($_->logfile), qr/terminated by signal 11|runtime error:|ERROR: \w+Sanitizer|TRAP:/, 'no process has crashed') foreach values %node;
$_->stop foreach values %node, $registry;
done_testing();
