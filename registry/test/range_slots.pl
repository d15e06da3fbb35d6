# Slots of range sequences are limited, and shared: the one that was unused for longest goes to
# another sequence, and one role cannot keep others out.

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

done_testing();
