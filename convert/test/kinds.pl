# Sequences that get another kind, on two servers with a registry: what clients may do meanwhile, and
# what a dump has afterwards.

use Page;
use SnowflakeTest;

my $registry = new_registry('registry', '1, 100, new => true');
sql($registry, q{SELECT snowflake_registry.add_database('app')});

my %servers = map { $_ => app_server($_) } qw(a b);
my ($a, $b) = @servers{qw(a b)};

# A server with an application: a column of each sort that a sequence feeds, and rows.
sub app_server ($name)
{
	my $node = new_primary($name, registry_conf($registry), "snowflake.server_name = '$name'",
		"snowflake.grant_timeout = '3s'", 'max_prepared_transactions = 1');

	sql($node, 'CREATE ROLE app; CREATE ROLE writer; CREATE DATABASE app OWNER app');
	$node->safe_psql('app', q{
		UPDATE pg_proc SET prosupport = 0 WHERE oid = 'nextval(regclass)'::regprocedure;
		CREATE EXTENSION snowflake;
		CREATE EXTENSION snowflake_convert;
		SET ROLE app;
		CREATE SCHEMA app;
		GRANT USAGE ON SCHEMA app TO writer;
		SET search_path = app;
		CREATE TABLE serials (id serial PRIMARY KEY, n smallserial);
		CREATE TABLE identities (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text);
		CREATE SEQUENCE named;
		CREATE SEQUENCE owned_by_nobody;
		CREATE TABLE names (id int PRIMARY KEY DEFAULT nextval('app.named'::text));
		CREATE TABLE others (id int PRIMARY KEY DEFAULT nextval('owned_by_nobody'));
		CREATE VIEW seen AS SELECT id FROM identities;
		CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql RETURN 2 * $1;
		CREATE SEQUENCE documents;
		GRANT INSERT, SELECT ON identities TO writer;
		INSERT INTO serials SELECT FROM generate_series(1, 20);
		INSERT INTO identities (v) SELECT 'x' FROM generate_series(1, 20);
		INSERT INTO names SELECT FROM generate_series(1, 20);
		INSERT INTO others SELECT FROM generate_series(1, 20);
	});
	return $node;
}

sub query { return $_[0]->safe_psql('app', "SET client_min_messages = warning; $_[1]"); }

# All that a program can see of tables, functions, views and sequences.
sub shape
{
	return query($_[0], q{
		SELECT string_agg(format('%s.%s %s %s %s', attrelid::regclass, attname, atttypid::regtype, attnotnull, attidentity), ', ' ORDER BY attrelid::regclass::text, attnum)
		FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
		WHERE relnamespace = 'app'::regnamespace AND attnum > 0 AND relkind IN ('r', 'v', 'S');
		SELECT string_agg(oid::regprocedure::text, ', ') FROM pg_proc WHERE pronamespace = 'app'::regnamespace;
		SELECT string_agg(format('%s %s %s %s %s', c.oid::regclass, relowner::regrole, d.refobjid::regclass, d.deptype, relacl), ', ' ORDER BY c.oid::regclass::text)
		FROM pg_class c LEFT JOIN pg_depend d ON d.objid = c.oid AND d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass
		WHERE relnamespace = 'app'::regnamespace AND relkind = 'S'});
}

# What pg_dump says of tables, but for the kinds of their sequences.
sub dumped ($node)
{
	my ($out) = run_command([ 'pg_dump', '--schema-only', '-t', 'app.identities*', '-t', 'app.serials*', '-d', $node->connstr('app') ]);

	return join("\n", grep { !/^(?:--|$|SECURITY LABEL FOR snowflake ON SEQUENCE|\\(?:un)?restrict )/ } split /\n/, $out);
}

# Convert in the background, in a session whose errors are returned in the end.
sub start_converting ($node, $call)
{
	my ($out, $err) = ('', '');
	my $handle = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('app'), '-c', 'SET client_min_messages = warning', '-c', "SELECT FROM $call" ],
		'>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

	return { handle => $handle, err => \$err };
}

sub end_converting ($converting)
{
	$converting->{handle}->finish;
	return ${ $converting->{err} };
}

sub wait_for_locks ($node, $count)
{
	return $node->poll_query_until('app', qq{
		SELECT count(*) = $count FROM pg_stat_activity WHERE query ~ 'SELECT FROM snowflake_convert' AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()});
}

sub kinds ($node, $database = undef)
{
	return $node->safe_psql($database // 'app', q{
		SELECT string_agg(DISTINCT format('%s %s', sequence, kind), ', ' ORDER BY format('%s %s', sequence, kind)) FROM snowflake_sequences});
}

# How many rows each table has
sub counts
{
	return query($_[0], q{
		SELECT (SELECT count(*) FROM app.serials), (SELECT count(*) FROM app.identities), (SELECT count(*) FROM app.names),
			   (SELECT count(*) FROM app.others)});
}

# Rows of all tables from a server, as a role that has INSERT on one of them alone, and as the owner.
sub insert ($node)
{
	return query($node, q{
		SET ROLE writer;
		INSERT INTO app.identities (v) SELECT 'y' FROM generate_series(1, 50) RETURNING 'identities ' || id;
		SET ROLE app;
		INSERT INTO app.serials SELECT FROM generate_series(1, 50) RETURNING 'serials ' || id;
		INSERT INTO app.names SELECT FROM generate_series(1, 50) RETURNING 'names ' || id;
		INSERT INTO app.others SELECT FROM generate_series(1, 50) RETURNING 'others ' || id});
}

#
# What cannot be done changes nothing
#
my $local = kinds($a);
$registry->stop;
my $converting = start_converting($a, "snowflake_convert_schema('app', kind => 'range')");
ok($a->poll_query_until('app', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ 'snowflake_convert' AND wait_event_type = 'Extension'}),
	'a conversion waits for the registry');
is(query($a, q{SET lock_timeout = '1s'; SET ROLE app; INSERT INTO app.serials DEFAULT VALUES; INSERT INTO app.identities DEFAULT VALUES}), '',
	'clients do not wait for it meanwhile');
like(end_converting($converting), qr/no number of sequence .* is granted to this server/, 'no range without an answer of the registry');
query($a, 'DELETE FROM app.serials WHERE id > 20; DELETE FROM app.identities WHERE id > 20');
is(query($a, q{SELECT count(*) FROM pg_attribute WHERE attidentity = 'a'}), '1', 'the identity is still there');
is(kinds($a), $local, 'and all sequences are local');
$registry->start;
# It would ask again after a while that may be longer than grant_timeout.
$a->restart;

#
# range
#
my $example = Page->claim('docs/converting-applications.md', 'Small numbers')->take('range');
foreach my $node ($a, $b)
{
	my $before = shape($node);
	my $dump = dumped($node);

	is(counts($node), '20|20|20|20', $node->name . ': it has rows before');
	Page::run($node, $example, dbname => 'app', replace => { "'public'" => "'app'" });
	is(shape($node), $before, $node->name . ': columns, identities, functions, owners and privileges are as before');
	is(dumped($node), $dump, $node->name . ': a dump is as before, but for labels');
	is(counts($node), '20|20|20|20', $node->name . ': no row is lost');
	is(kinds($node), 'app.documents local, app.identities_id_seq range, app.named range, app.owned_by_nobody range, '
		. 'app.serials_id_seq range, app.serials_n_seq range', $node->name . ': what feeds a column has the kind');
}
my %seen;
$seen{$_}++ foreach map { split /\n/, insert($_) } $a, $b, $a;
is(scalar(keys %seen), 3 * 4 * 50, 'no number is given out by both servers');
is(counts($a), '120|120|120|120', 'a has the rows of two calls');
is(counts($b), '70|70|70|70', 'b has the rows of one');
is(scalar(grep { /(\d+)$/ && $1 <= 20 } keys %seen), 0, 'nor one that was stored');
is(query($a, q{SELECT string_agg(problem, ', ') FROM snowflake_sequences}), '', 'the view reports no problem');
my (undef, undef, $again) = $a->psql('app', q{SELECT snowflake_convert_schema('app', kind => 'range')});
like($again, qr/NOTICE:  sequences of schema "app" are already of kind range\n.*HINT:  To have them continue above the rows of this server again, call snowflake_set_sequence_kinds\(\)/,
	'a second call changes nothing, and names the one that does');
is(query($a, q{SELECT string_agg(object, ', ') FROM snowflake_convert_report('app', kind => 'range') WHERE severity <> 'info'}), '',
	'nor does the report');

#
# What others do meanwhile
#
query($a, q{
	SET ROLE app;
	CREATE SCHEMA more;
	CREATE TABLE more.t (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v int);
	INSERT INTO more.t (v) SELECT 1 FROM generate_series(1, 20)});
my $other = $a->background_psql('app');
$other->query_safe(q{
	BEGIN;
	ALTER SEQUENCE more.t_id_seq INCREMENT 5 CACHE 7;
	COMMENT ON SEQUENCE more.t_id_seq IS 'changed meanwhile';
	GRANT SELECT ON SEQUENCE more.t_id_seq TO writer});
$converting = start_converting($a, "snowflake_convert('more.t', kind => 'range')");
ok(wait_for_locks($a, 1), 'a conversion waits for a session that alters the sequence of an identity');
$other->query_safe('COMMIT');
is(end_converting($converting), '', '... and ends');
is(query($a, q{
	SELECT seqincrement, seqcache, obj_description(seqrelid, 'pg_class'), has_sequence_privilege('writer', seqrelid, 'SELECT'), kind
	FROM pg_sequence JOIN snowflake_sequences ON sequence::regclass = seqrelid WHERE seqrelid = 'more.t_id_seq'::regclass}), '5|7|changed meanwhile|t|range',
	'what that has changed stays');

query($a, q{SET ROLE app; CREATE TABLE more.u (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, n serial)});
$other->query_safe("BEGIN; SELECT snowflake_set_sequence_kind('more.u_id_seq', 'range')");
$converting = start_converting($a, "snowflake_convert('more.u', kind => 'range')");
ok(wait_for_locks($a, 1), 'a conversion waits for a session that sets the kind of a sequence');
$other->query_safe('COMMIT');
is(end_converting($converting), '', '... and gives the others the kind');
query($a, q{SELECT FROM snowflake_convert('more.u', kind => 'local')});
$other->query_safe('BEGIN; INSERT INTO more.u DEFAULT VALUES');
my @two = map { start_converting($a, $_) } "snowflake_convert('more.u', kind => 'range')", "snowflake_convert_schema('more', kind => 'range')",
	"snowflake_convert('more.u', 'id', kind => 'range')";
ok(wait_for_locks($a, 3), 'three conversions of a table wait for a session that has used its sequences');
$other->query_safe('COMMIT');
is(join('', map { end_converting($_) } @two), '', 'none of them ends another one by a deadlock');

$other->query_safe('BEGIN; LOCK TABLE more.t IN SHARE ROW EXCLUSIVE MODE');
is(query($a, q{SET lock_timeout = '5s'; SELECT FROM snowflake_convert('more.t', kind => 'local'); SELECT FROM snowflake_convert('more.t', kind => 'range')}),
	'', 'a table with an identity is only locked against changes of its definition');
$other->query_safe('ROLLBACK');

# Since 17, partitions share the identity of their table.
query($a, q{
	SET ROLE app;
	CREATE TABLE more.p (id int GENERATED ALWAYS AS IDENTITY, v int) PARTITION BY LIST (v);
	CREATE TABLE more.p_1 PARTITION OF more.p FOR VALUES IN (1)});
my $identities = q{SELECT string_agg(attrelid::regclass || attidentity::text, ', ' ORDER BY attrelid) FROM pg_attribute WHERE attname = 'id' AND attrelid::regclass::text LIKE 'more.p%'};
my $had = query($a, $identities);
query($a, q{SELECT FROM snowflake_convert('more.p', kind => 'range')});
is(query($a, $identities), $had, 'a partitioned table and its partitions have the identities that they had');
like(query($a, $had =~ /p_1a/ ? 'INSERT INTO more.p_1 (v) VALUES (1) RETURNING id' : 'INSERT INTO more.p (v) VALUES (1) RETURNING id'), qr/^[1-9]\d*$/,
	'and numbers of the kind');
$other->quit;

# Many sequences
query($a, q{
	SET ROLE app;
	CREATE SCHEMA many;
	DO $$ BEGIN FOR i IN 1..150 LOOP EXECUTE format('CREATE TABLE many.t%s (id serial)', i); END LOOP; END $$});
my $calls = q{SELECT sum(calls) FROM snowflake_registry.range_clients c WHERE c.server_name = 'a'};
my $called = sql($registry, $calls);
query($a, q{SELECT FROM snowflake_convert_schema('many', kind => 'range')});
cmp_ok(sql($registry, $calls) - $called, '<', 50, 'the registry is asked about many sequences at once');
query($a, 'DROP SCHEMA many, more CASCADE');

# A dump has the kinds; the function and the labels need the extension.
my $dump = $a->backup_dir . '/app.sql';
$a->run_log([ 'pg_dump', '-f', $dump, '-d', $a->connstr('app') ]);
sql($a, 'CREATE DATABASE restored TEMPLATE template0');
$a->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $a->connstr('restored'), '-f', $dump ], 'a dump is restored');
is(kinds($a, 'restored'), kinds($a), 'with the kinds');
sql($a, 'DROP DATABASE restored');

#
# local: above what is stored
#
query($a, q{SELECT FROM snowflake_convert_schema('app', kind => 'local')});
is(kinds($a), $local, 'all sequences are local again');
is(query($a, q{
	SELECT count(*) FROM (VALUES ('serials_id_seq', (SELECT max(id) FROM app.serials)), ('identities_id_seq', (SELECT max(id) FROM app.identities)),
		('named', (SELECT max(id) FROM app.names)), ('owned_by_nobody', (SELECT max(id) FROM app.others))) s(name, greatest)
	WHERE nextval('app.' || name) <= greatest}), '0', 'and continue above what is stored');

#
# snowflake: if all is bigint, no table is locked more strongly than by reads and writes
#
query($a, q{
	SET ROLE app;
	CREATE TABLE app.big (id bigserial PRIMARY KEY);
	CREATE TABLE app.refs (id bigserial PRIMARY KEY, big bigint REFERENCES app.big);
	INSERT INTO app.big VALUES (DEFAULT)});
query($a, q{BEGIN; INSERT INTO app.refs (big) VALUES (1); PREPARE TRANSACTION 'writer'});
is(query($a, q{SET lock_timeout = '5s'; SELECT FROM snowflake_convert('app.big', kind => 'snowflake')}), '',
	'a key that is bigint is converted beside a transaction that has written its table');
is(query($a, q{
	BEGIN;
	SELECT FROM snowflake_set_sequence_kind('app.big_id_seq', 'local');
	SELECT FROM snowflake_convert('app.big', kind => 'snowflake');
	SELECT string_agg(DISTINCT mode, ', ') FROM pg_locks WHERE pid = pg_backend_pid() AND relation = ANY ('{app.big, app.refs}'::regclass[]);
	ROLLBACK}), '', 'and leaves no lock on the tables');
query($a, q{COMMIT PREPARED 'writer'});
like(query($a, 'INSERT INTO app.big VALUES (DEFAULT) RETURNING id'), qr/^\d{17,}$/, 'new rows have IDs');

# from range sequences, whose limit is that of the type: directly,
query($a, q{
	SET ROLE app;
	CREATE TABLE app.small (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v int);
	SELECT FROM snowflake_convert('app.small', kind => 'range');
	INSERT INTO app.small (v) VALUES (1);
	SELECT FROM snowflake_convert('app.small', kind => 'snowflake')});
like(query($a, 'INSERT INTO app.small (v) VALUES (1) RETURNING id'), qr/^\d{17,}$/, 'an identity with a range sequence gets a snowflake sequence');
query($a, q{SELECT FROM snowflake_convert('app.identities', kind => 'range')});
# and online, with the kind at the end
my $of_identity = q{
	SELECT attidentity, pg_get_serial_sequence('app.identities', 'id'), c.oid, relacl
	FROM pg_attribute, pg_class c WHERE attrelid = 'app.identities'::regclass AND attname = 'id' AND c.oid = 'app.identities_id_seq'::regclass};
$had = query($a, $of_identity);
query($a, q{CALL snowflake_convert_online('app.identities', kind => 'snowflake')});
is(query($a, $of_identity), $had, 'an online conversion keeps the identity and its sequence');
is(query($a, q{SELECT kind, column_type FROM snowflake_sequences WHERE column_name = 'id' AND table_name = 'app.identities'}),
	'snowflake|bigint', '... which gets the kind');
like(query($a, q{SET ROLE writer; INSERT INTO app.identities (v) VALUES ('z') RETURNING id}), qr/^\d{17,}$/,
	'who had INSERT needs no other right');

#
# A client uses the sequence of a table before those of tables that reference it, and so are they
# locked, whatever their names and ages are.
#
query($a, q{
	SET ROLE app;
	CREATE SCHEMA deals;
	CREATE TABLE deals.lines (id bigserial PRIMARY KEY, purchase bigint);
	CREATE TABLE deals.purchases (id bigserial PRIMARY KEY);
	ALTER TABLE deals.lines ADD FOREIGN KEY (purchase) REFERENCES deals.purchases});
foreach my $kind (qw(snowflake local range local))
{
	my $buyer = $a->background_psql('app', on_error_stop => 0);
	$buyer->query_safe(q{BEGIN; SELECT nextval('deals.purchases_id_seq')});
	my $converter = $a->background_psql('app', on_error_stop => 0);
	$converter->query_until(qr/begun/, "\\echo begun\nSET client_min_messages = warning;\nSELECT FROM snowflake_convert_schema('deals', kind => '$kind');\n");
	wait_until_true($a, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'relation' AND query LIKE '%_convert_schema%' AND pid <> pg_backend_pid()},
		'the conversion does not wait');
	is($buyer->query(q{SELECT count(nextval('deals.lines_id_seq'))}), '1', "$kind: a transaction that uses both sequences is in no deadlock");
	$buyer->query('COMMIT');
	$buyer->quit;
	$converter->query_safe('SELECT 1');
	$converter->quit;
	is(query($a, qq{SELECT count(*) FROM snowflake_sequences WHERE sequence::text ~ 'deals' AND kind = '$kind'}), '2', '... and then they get the kind');
}

Page::all_taken();
