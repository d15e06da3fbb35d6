# A conversion that needs more locks than the server has room for says so before it begins, and
# how many are needed.

use SnowflakeTest;

my $node = new_server('main', 'fsync = off', 'autovacuum = off', 'max_connections = 30', 'max_locks_per_transaction = 10');
my %schemas = (
	referencing => q{
		SELECT format('CREATE TABLE referencing.t%s (id serial PRIMARY KEY, note text, a int, b int, c int)', g) FROM generate_series(1, 50) g \gexec
		SELECT format('ALTER TABLE referencing.t%s ADD FOREIGN KEY (a) REFERENCES referencing.t1, ADD FOREIGN KEY (b) REFERENCES referencing.t2, ADD FOREIGN KEY (c) REFERENCES referencing.t%s',
			g, 1 + g * 7 % 50) FROM generate_series(1, 50) g \gexec},
	plain => q{
		SELECT format('CREATE TABLE plain.t%s (id %s PRIMARY KEY, note text, code int UNIQUE DEFERRABLE, n int CHECK (n > 0))', g,
			CASE g % 2 WHEN 0 THEN 'serial' ELSE 'int GENERATED ALWAYS AS IDENTITY' END) FROM generate_series(1, 50) g \gexec
		SELECT format('CREATE INDEX ON plain.t%s (id, code); CREATE INDEX ON plain.t%1$s (note)', g) FROM generate_series(1, 50) g \gexec},
	numbers => q{
		SELECT format('CREATE TABLE numbers.t%s (id serial PRIMARY KEY, n int)', g) FROM generate_series(1, 80) g \gexec},
	partitioned => q{
		CREATE TABLE partitioned.one (id serial PRIMARY KEY, note text);
		CREATE TABLE partitioned.many (id serial, day int, one int REFERENCES partitioned.one, note text, PRIMARY KEY (day, id)) PARTITION BY LIST (day);
		SELECT format('CREATE TABLE partitioned.many%s PARTITION OF partitioned.many FOR VALUES IN (%1$s)', g) FROM generate_series(1, 50) g \gexec
		CREATE INDEX ON partitioned.many (id);
		SELECT format('CREATE VIEW partitioned.v%s AS SELECT id, one FROM partitioned.many', g) FROM generate_series(1, 30) g \gexec});
my %needs;

sql($node, "CREATE SCHEMA $_; $schemas{$_}") foreach sort keys %schemas;

foreach my $schema (sort keys %schemas)
{
	foreach my $call ("snowflake_convert_schema('$schema', dry_run => true)", "snowflake_convert_schema('$schema')")
	{
		my ($rc, $out, $err) = $node->psql('postgres', "SELECT $call");

		like($err, qr/ERROR:  cannot convert .*\nDETAIL:  the conversion needs about \d+ locks, for which max_locks_per_transaction must be \d+, and it is 10\nHINT:  Nothing was changed\. Increase max_locks_per_transaction, and restart the server\.$/m,
			"$call is refused");
		(@{ $needs{$schema} }) = $err =~ /about (\d+) locks.* must be (\d+)/;
	}
}
like(sql($node, q{SELECT finding FROM snowflake_convert_report('numbers', rehearse => true) WHERE finding ~ 'locks|rehearse'}),
	qr/\Athe conversion needs about \d+ locks.*\nit is not rehearsed, because there are obstacles\z/, 'the report says so, too');

# With what was named, it succeeds, and takes no more.
foreach my $schema (sort keys %schemas)
{
	my ($locks, $setting) = @{ $needs{$schema} };

	restart_with($node, "max_locks_per_transaction = $setting");
	my ($rc, $out, $err) = $node->psql('postgres', qq{
		BEGIN;
		SELECT count(*) > 0 FROM snowflake_convert_schema('$schema');
		SELECT count(*) FROM (SELECT DISTINCT locktype, relation, classid, objid FROM pg_locks WHERE pid = pg_backend_pid() AND NOT fastpath) l;
		COMMIT;});
	unlike($err, qr/ERROR/, "$schema: with the setting that was named it is converted");
	my ($used) = $out =~ /^(\d+)$/m;
	note "$schema: $locks locks were announced, and $used taken";
	cmp_ok($used, '<=', $locks, "$schema: no more locks are taken than were announced");
	cmp_ok($used * 1.5, '>=', $locks, "$schema: not many less are taken");
}

done_testing();
