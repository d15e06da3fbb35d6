# Partitions by time (bench/run partitions): by snowflake ID, by created_at beside a
# bigserial, and by UUID of version 7.

use Report;
use Slices qw(median least);
use SnowflakeTest;

my $days = $quick ? 90 : 730;
my $rows_a_day = 500;
my $rows = $quick ? 20_000 : 100_000;
my $rounds = $quick ? 3 : 7;
my $queries = $quick ? 20 : 100;
begin_report('partitions', 'bench/run partitions');

my $node = new_server('bench', 'snowflake.worker_id = 1', "timezone = 'UTC'", 'max_locks_per_transaction = 256', quiet_conf());

# For each kind: columns, the key, the bound of a time in partitions and queries, and
# what gives old rows their key.  The days end with that of today.
my @kinds = (
	{
		name => 'snowflake_nextval()', table => 'by_snowflake',
		columns => 'id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int', key => 'id',
		bound => 'snowflake_lower_bound(%s)', insert => 'INSERT INTO %s (id, v)',
		value => 'snowflake_make(t, 1, n %% 4096)'
	},
	{
		name => 'bigserial, created_at', table => 'by_created_at',
		columns => 'id bigserial, v int, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, created_at)',
		key => 'created_at', index => 'created_at',
		bound => '%s', insert => 'INSERT INTO %s (created_at, v)', value => 't'
	},
	{
		name => 'uuid_v7()', table => 'by_uuid',
		columns => 'id uuid PRIMARY KEY DEFAULT uuid_v7(), v int', key => 'id',
		bound => 'uuid_lower_bound(%s)', insert => 'INSERT INTO %s (id, v)',
		value => "encode(set_byte(uuid_send(uuid_lower_bound(t)), 15, n %% 256), 'hex')::uuid"
	});

my $created = "date_trunc('day', now()) - ($days - 1 - d) * interval '1 day'";
sql($node, create_ms());
foreach my $kind (@kinds)
{
	my $table = $kind->{table};
	my $from = sprintf $kind->{bound}, $created;
	my $to = sprintf $kind->{bound}, "$created + interval '1 day'";
	my $insert = sprintf $kind->{insert}, $table;
	my $value = sprintf $kind->{value};
	my $index = $kind->{index} ? "CREATE INDEX ON $table ($kind->{index});" : '';

	progress("partitions, $kind->{name}");
	sql($node, qq{
		CREATE TABLE $table ($kind->{columns}) PARTITION BY RANGE ($kind->{key});
		$index
		SELECT format('CREATE TABLE ${table}_%s PARTITION OF $table FOR VALUES FROM (%L) TO (%L)', d, $from, $to)
		FROM generate_series(0, $days - 1) d \\gexec
		$insert SELECT $value, n
		FROM (SELECT n, $created + (n % $rows_a_day) * interval '1 min' AS t
			  FROM (SELECT n, n / $rows_a_day AS d FROM generate_series(0, $days * $rows_a_day - 1) n) a) b;
		VACUUM ANALYZE $table;
		CHECKPOINT});
}

# Sizes, with old rows alone
my %size = map {
	$_->{table} => sql($node, "SELECT sum(pg_indexes_size(relid)) FROM pg_partition_tree('$_->{table}')")
} @kinds;

# New rows, into the partition of today
my (%insert, %took, %locks, %drop);
my ($insert_ms) = in_turn('new rows', $rounds, \@kinds, sub ($kind, @) {
	return sql($node, "CHECKPOINT; SELECT ms('INSERT INTO $kind->{table} (v) SELECT n FROM generate_series(1, $rows) n')");
});
@insert{ map { $_->{table} } @kinds } = @$insert_ms;

# Queries, each in turn: a day, and one row by its ID.  Each session plans for the first
# time with cold caches, so it has one query before.
my $middle = "date_trunc('day', now()) - $days / 2 * interval '1 day'";
my ($from_day, $to_day) = split /\|/, sql($node, "SELECT $middle, $middle + interval '1 day'");
my %query = map {
	$_->{table} => {
		day => sprintf("SELECT count(*), sum(v) FROM $_->{table} WHERE $_->{key} >= $_->{bound} AND $_->{key} < $_->{bound}",
			"'$from_day'", "'$to_day'"),
		one => "SELECT v FROM $_->{table} WHERE id = '"
		  . sql($node, sprintf("SELECT id FROM $_->{table} WHERE $_->{key} >= $_->{bound} LIMIT 1", "'$from_day'")) . "'"
	}
} @kinds;
my $session = join ";\n", map {
	my $n = $_;
	map {
		my $table = $_->{table};
		map {
			my $what = $_;
			my $quoted = $query{$table}{$what} =~ s/'/''/gr;
			"SELECT '$table', '$what', $n, ms('$quoted')"
		} qw(day one)
	} @kinds
} 0 .. $queries;
foreach (split /\n/, sql($node, $session))
{
	my ($table, $what, $n, $ms) = split /\|/;
	push @{ $took{$what}{$table} }, $ms if $n > 0;
}
foreach my $table (map { $_->{table} } @kinds)
{
	foreach my $what (qw(day one))
	{
		my @lines = split /\n/, sql($node, "BEGIN; $query{$table}{$what}; SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation <> 'pg_locks'::regclass; COMMIT");
		$locks{$table}{$what} = $lines[-1];
	}
}

# The oldest month
foreach my $month (0 .. 2)
{
	foreach my $table (map { $_->{table} } @kinds)
	{
		my $tables = join ', ', map { "${table}_$_" } 30 * $month .. 30 * $month + 29;
		push @{ $drop{$table} }, sql($node, "SELECT ms('DROP TABLE $tables')");
	}
}

say_to(machine_text($node) . ". $days daily partitions with $rows_a_day rows each. What is compared was measured in turn, in one run. Absolute figures are this machine's.");
say_to('');
say_to("Each time is the least, with the median in brackets. INSERT is one of $rows rows into the partition of today, in $rounds rounds. Queries are planned each time, $queries times. DROP is that of the 30 oldest partitions, 3 times. Index bytes are those of the old rows. fsync is off.");
table_head('| key | INSERT, ms | rows of a day, ms | its locks | one row by its ID, ms | its locks | DROP of a month, ms | index bytes |');
foreach my $kind (@kinds)
{
	my $table = $kind->{table};

	say_to(sprintf('| %s | %.0f (%.0f) | %.2f (%.2f) | %d | %.2f (%.2f) | %d | %.0f (%.0f) | %d |',
			$kind->{name}, least(@{ $insert{$table} }), median(@{ $insert{$table} }),
			least(@{ $took{day}{$table} }), median(@{ $took{day}{$table} }), $locks{$table}{day},
			least(@{ $took{one}{$table} }), median(@{ $took{one}{$table} }), $locks{$table}{one},
			least(@{ $drop{$table} }), median(@{ $drop{$table} }), $size{$table}));
}

is(1, 1, 'measured');
done_testing();
