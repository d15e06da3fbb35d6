# COPY FROM with defaults that generate keys, beyond what one session sees
# (sql/copy.sql): the options of its formats, batches for another server, foreign tables
# of file_fdw, the initial copy of a subscription; how much WAL it writes; and that a
# session can be terminated meanwhile.

use SnowflakeTest;

my $rows = 5000;
my $node = new_server('main', { allows_streaming => 'logical' },
	'snowflake.worker_id = 1', 'autovacuum = off', 'log_disconnections = on');
sql($node, q{
	CREATE TABLE plain (id bigserial PRIMARY KEY, v int);
	CREATE TABLE given (v int);
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)});
my $has_default = sql($node, q{SELECT current_setting('server_version_num')::int >= 160000}) eq 't';
my $file = $node->basedir . '/rows';

sub write_file (@lines)
{
	open(my $handle, '>', $file) or die "$file: $!";
	print $handle map { "$_\n" } @lines;
	close $handle;
	return;
}

# The number of distinct keys of a table
sub keys_of ($table, $server = undef)
{
	return ($server // $node)->safe_psql('postgres', "SELECT count(DISTINCT id) FROM $table");
}

# Bytes of WAL of a COPY of all rows
sub wal_of ($table)
{
	return sql($node, qq{
		CHECKPOINT;
		SELECT pg_current_wal_insert_lsn() AS lsn \\gset
		COPY $table (v) FROM '$file';
		SELECT pg_current_wal_insert_lsn() - :'lsn'});
}

#
# WAL
#
write_file(1 .. $rows);
my $plain = wal_of('plain');
my $own = wal_of('t');
# Each writes a few records besides.
cmp_ok($own, '<', 1.05 * $plain, "COPY of $rows rows writes no more WAL than with bigserial");
is(keys_of('t'), $rows, 'each row has an ID of its own');

#
# Formats and options
#
sql($node, qq{
	COPY given FROM '$file';
	COPY given TO '$file.binary' (FORMAT binary);
	TRUNCATE t;
	COPY t (v) FROM '$file.binary' (FORMAT binary)});
is(keys_of('t'), $rows, 'binary format: each row has an ID of its own');
sql($node, qq{
	BEGIN;
	TRUNCATE t;
	COPY t (v) FROM '$file' (FREEZE);
	COMMIT});
is(keys_of('t'), $rows, 'FREEZE: each row has an ID of its own');

SKIP:
{
	skip 'COPY has no DEFAULT before PostgreSQL 16', 2 unless $has_default;

	write_file(map { $_ % 2 ? "$_\t$_" : "\\D\t$_" } 1 .. $rows);
	sql($node, "TRUNCATE t; COPY t FROM '$file' (DEFAULT '\\D')");
	is(keys_of('t'), $rows, 'DEFAULT: each row has an ID of its own');
	is(sql($node, 'SELECT count(*) FROM t WHERE id = v'), $rows / 2, 'DEFAULT: or that of the file');
}

#
# Foreign tables
#
my $wrappers = sql($node, q{SELECT count(*) FROM pg_available_extensions WHERE name IN ('file_fdw', 'postgres_fdw')});
SKIP:
{
	skip 'file_fdw and postgres_fdw are not installed', 4 if $wrappers != 2;

	# Each line has the key and a number; the key may be the default.
	my $default = $has_default ? q{, "default" '\D'} : '';
	my $user = sql($node, 'SELECT current_user');
	my ($host, $port) = ($node->host, $node->port);

	write_file(map { ($has_default ? '\D' : $_) . "\t$_" } 1 .. 100);
	sql($node, qq{
		CREATE EXTENSION file_fdw;
		CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
		CREATE FOREIGN TABLE from_file (id bigint DEFAULT snowflake_nextval(), v int)
			SERVER files OPTIONS (filename '$file'$default);
		CREATE TABLE seen (id bigint, v int);
		CREATE FUNCTION see() RETURNS bigint LANGUAGE plpgsql AS \$\$
		BEGIN
			INSERT INTO seen SELECT id, v FROM from_file;
			RETURN count(DISTINCT id) FROM seen;
		END \$\$;
		CREATE FUNCTION see_constant(int) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN see(); END';
		CREATE FUNCTION see_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM see(); RETURN NEW; END';
		CREATE TABLE sees (seen bigint DEFAULT see_constant(1), id bigint DEFAULT snowflake_nextval(), v int);
		CREATE TRIGGER see BEFORE INSERT ON sees EXECUTE FUNCTION see_trigger()});
	is(keys_of('from_file'), 100, 'file_fdw: each row has a key of its own');
	write_file(map { ($has_default ? '\D' : $_ + $rows) . "\t$_" } 1 .. 100);
	sql($node, "COPY sees (v) FROM PROGRAM 'seq 3'");
	is(keys_of('seen'), $has_default ? 200 : 100, 'file_fdw that COPY reads: each row has a key of its own');
	is(keys_of('sees'), 3, '... and each row of that COPY');

	sql($node, qq{
		CREATE EXTENSION postgres_fdw;
		CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '$host', port '$port', dbname 'postgres', batch_size '30');
		CREATE USER MAPPING FOR "$user" SERVER remote;
		CREATE TABLE there (id bigint PRIMARY KEY, v int);
		CREATE FOREIGN TABLE here (id bigint DEFAULT snowflake_nextval(), v int)
			SERVER remote OPTIONS (table_name 'there');
		COPY here (v) FROM PROGRAM 'seq 100'});
	is(keys_of('there'), 100, 'postgres_fdw with batches: each row has an ID of its own');
}

#
# The session ends in the middle, and with it the table, which a savepoint created; it then removes
# its temporary tables in another transaction
#
sql($node, q{SELECT snowflake_set_sequence_kind('plain_id_seq')});
my $log_end = -s $node->logfile;
$node->psql(
	'postgres', q{
	DO $$ BEGIN FOR i IN 1 .. 20 LOOP EXECUTE format('CREATE TEMP TABLE t%s (id int, v text)', i); END LOOP; END $$;
	BEGIN;
	SAVEPOINT a;
	CREATE TABLE gone (id bigint GENERATED ALWAYS AS IDENTITY, v int);
	SAVEPOINT b;
	COPY gone (v) FROM PROGRAM 'seq 3' WHERE pg_terminate_backend(pg_backend_pid())});
$node->wait_for_log(qr/disconnection: |terminated by signal/, $log_end);
unlike(slurp_file($node->logfile, $log_end), qr/terminated by signal/,
	'COPY into an identity column: the session can be terminated');

#
# A subscription: its initial copy is no statement, and what follows is INSERT.  The
# subscriber has a column with a default that the publisher does not have.
#
my $subscriber = new_server('subscriber', 'snowflake.worker_id = 2', 'wal_level = logical');
my $publisher = $node->connstr . ' dbname=postgres';
sql($node, 'CREATE TABLE published (v int PRIMARY KEY);
	INSERT INTO published SELECT generate_series(1, 100);
	CREATE PUBLICATION p FOR TABLE published');
sql($subscriber, qq{
	CREATE TABLE published (v int PRIMARY KEY, id bigint DEFAULT snowflake_nextval(), u uuid DEFAULT uuid_v7());
	CREATE SUBSCRIPTION s CONNECTION '$publisher' PUBLICATION p});
$subscriber->wait_for_subscription_sync($node, 's');
is(keys_of('published', $subscriber), 100, 'initial copy of a subscription: each row has an ID of its own');
sql($node, 'INSERT INTO published SELECT generate_series(101, 200)');
$node->wait_for_catchup('s');
is(sql($subscriber, 'SELECT count(DISTINCT id), count(DISTINCT u) FROM published'),
	'200|200', '... and each row that follows');
sql($subscriber, 'DROP SUBSCRIPTION s');

done_testing();
