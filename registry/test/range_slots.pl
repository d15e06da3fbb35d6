# Slots of range sequences are limited, and shared: the one that was unused for longest goes to
# another sequence, one role cannot keep others out, and sequences of one name use the same
# numbers.

use SnowflakeTest;

my $slots = 20;
my $grant_time = 8;
my $registry = new_range_registry('registry', 'postgres');
sql($registry, "SELECT snowflake_registry.alter_ranges(grant_time => '$grant_time s')");
my $server = new_server('server', registry_conf($registry), "snowflake.server_name = 'server'", "snowflake.max_range_sequences = $slots");

sub calls { return sql($registry, 'SELECT sum(calls) FROM snowflake_registry.range_clients'); }

# What a role gets of its sequences, one statement each: how many of them have a number
sub take ($role, @sequences)
{
	my (undef, $numbers) = $server->psql('postgres', "SET ROLE $role;" . join('', map { "SELECT nextval('$role.$_');" } @sequences), on_error_stop => 0);

	return scalar split /\n/, $numbers;
}

foreach my $role ('app', 'mallory')
{
	sql($server, qq{CREATE ROLE $role; CREATE SCHEMA $role AUTHORIZATION $role;
		SET ROLE $role; SET snowflake.default_sequence_kind = 'range';
		DO \$\$ BEGIN FOR i IN 1 .. 3 * $slots LOOP EXECUTE format('CREATE SEQUENCE $role.s%s AS integer', i); END LOOP; END \$\$});
}
my @app = map { "s$_" } 1 .. 3;
my @all = map { "s$_" } 1 .. 3 * $slots;
is(take('app', @app), 3, 'a role uses some sequences');

# While others are in use, one who has most of the slots gets no more.
my $got = take('mallory', @all);
cmp_ok($got, '>=', $slots - 3, 'another one can use the rest of the slots');
cmp_ok($got, '<', @all, 'but no more than there are');
my ($error) = sql_error($server, "SET ROLE mallory; SELECT nextval('mallory.s" . 3 * $slots . "')");
like($error, qr/53400: too many range sequences are used on this server\nHINT:  Increase "snowflake.max_range_sequences", which is $slots\./, 'which the error says');
my $calls = calls();
is(take('app', @app), 3, 'the sequences of the first one go on');
cmp_ok(calls() - $calls, '<', 3, 'with the numbers that they have');
is(take('app', map { "s$_" } 4 .. 8), 5, 'and it gets more');
is(take('app', @app), 3, 'none of which takes one of its own that it uses');

# After a restart, the others come first.
$server->restart;
cmp_ok(take('mallory', reverse @all), '>=', $slots - 3, 'after a restart, the other role comes first');
is(take('app', @app), 3, 'and keeps nobody out');

# What is not used any more is given up, and continues above.
sleep $grant_time + 3;
is(take('app', map { "s$_" } 1 .. $slots), $slots, 'slots that are not used any more are given up');
sleep $grant_time + 3;
is(take('mallory', @all[ 0 .. $slots - 1 ]), $slots, 'and so are these');

# What was unused for longest goes first: these have the slots, from the one that was used first.
sleep $grant_time + 3;
is(take('app', 's30'), 1, 'a sequence takes the slot of the first one');
sleep $grant_time + 3;
is(take('mallory', @all[ 2 .. $slots - 1 ]), $slots - 2, 'the others but the second one are used again');
is(take('app', 's31'), 1, 'another one gets a slot');
is(sql($server, "SELECT string_agg(s, ' ' ORDER BY s) FROM unnest('{app.s30,mallory.s1,mallory.s2,mallory.s3}'::text[]) s WHERE (_snowflake_range_statistics(s::regclass)).held IS NULL"),
	'mallory.s1 mallory.s2', 'it is the one that was unused for longest');

# Two sequences of one name, with different last values
sql($server, q{
	CREATE SEQUENCE low AS integer; SELECT snowflake_set_sequence_kind('low', 'range');
	ALTER SEQUENCE low RENAME TO high;
	CREATE SEQUENCE low AS integer MAXVALUE 1500;
	SECURITY LABEL FOR snowflake ON SEQUENCE low IS 'range database=postgres name=public.low'});
my %seen;
my $twice = 0;
sub alternate ($n)
{
	my $out = sql($server, "SELECT nextval(s) FROM generate_series(1, $n), unnest('{high,low}'::regclass[]) s");

	$twice += grep { $seen{$_}++ } split /\n/, $out;
	return;
}
$calls = calls();
my $begin = time;
alternate(150);
alternate(1) foreach 1 .. 20;
is($twice, 0, 'two sequences of one name have different numbers');
cmp_ok(time - $begin, '<', 15, 'without waiting for each other');
cmp_ok(calls() - $calls, '<', 12, 'nor a call for each number');
cmp_ok((sort { $a <=> $b } keys %seen)[-1], '<=', 1500, 'none of them above the lower last one');
foreach (1 .. 10)
{
	my (undef, $out) = $server->psql('postgres', "SELECT nextval(s) FROM generate_series(1, 60), unnest('{high,low}'::regclass[]) s");
	$seen{$_}++ foreach split /\n/, $out;
}
is(scalar(grep { $_ > 1 } values %seen), 0, 'they share all numbers up to it');
cmp_ok(scalar(grep { $_ <= 1500 } keys %seen), '>', 1300, 'and lose none');
$server->psql('postgres', "SELECT nextval('low') FROM generate_series(1, 2000)");
sql_fails($server, "SELECT nextval('low')", qr/2200H: nextval: reached maximum value of sequence "low" \(1500\)/, 'the lower one is exhausted');
is(sql($server, "SELECT count(DISTINCT nextval('high')) FROM generate_series(1, 1000)"), 1000, 'the other one goes on');
$calls = calls();
foreach (1 .. 10)
{
	sql_error($server, "SELECT nextval('low')");
	sql($server, "SELECT nextval('high')");
}
cmp_ok(calls() - $calls, '<', 5, 'and neither disturbs the other');

done_testing();
