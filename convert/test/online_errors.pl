# Errors of functions of users, with codes that the server raises if somebody else was first: they
# end a conversion, and are not waited for.

use SnowflakeTest::Online;
use SnowflakeTest;

my $node = new_server('main', 'fsync = off');
sql($node, q{
	CREATE TABLE refusing (code text);
	CREATE FUNCTION refuse() RETURNS boolean LANGUAGE plpgsql AS $$
		DECLARE c text := (SELECT code FROM public.refusing);
		BEGIN
			IF c <> '' THEN RAISE EXCEPTION USING MESSAGE = 'tuple concurrently updated', ERRCODE = c; END IF;
			RETURN true;
		END $$;
	CREATE FUNCTION refuse(bigint) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT public.refuse()';
	CREATE FUNCTION refuse(int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT public.refuse()';
	CREATE FUNCTION refuse_command() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM public.refuse(); END'});

# What calls the function, and the step that is done before it refuses
my %callers = (
	'a CHECK constraint of the key' => [ 'ALTER TABLE t ADD CHECK (refuse(id))', undef ],
	'a CHECK constraint, by the backfill' => [ 'ALTER TABLE t ADD CHECK (refuse(v))', 'prepare' ],
	'an index' => [ 'CREATE INDEX ON t (id) WHERE refuse(v)', 'backfill' ],
	'an event trigger' => [ 'CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION refuse_command()', undef ]);

foreach my $caller (sort keys %callers)
{
	my ($statement, $until) = @{ $callers{$caller} };

	foreach my $code ('55P03', '40P01', '40001', 'XX000')
	{
		sql($node, qq{
			SET client_min_messages = warning;
			DROP EVENT TRIGGER IF EXISTS refuse;
			TRUNCATE refusing;
			DROP TABLE IF EXISTS t;
			CREATE TABLE t (id serial, v int, part int DEFAULT 1, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
			CREATE TABLE t1 PARTITION OF t DEFAULT;
			INSERT INTO t (v) VALUES (1), (2);
			$statement});
		convert_online($node, 'postgres', "'t', 'id', until => '$until'") if defined $until;
		sql($node, "INSERT INTO refusing VALUES ('$code')");
		my $said = convert_online($node, 'postgres', q{'t', 'id', give_up_after => '2 s'});
		like($said, qr/^(?:ERROR|DETAIL): .*tuple concurrently updated/m, "$caller raises $code: its message is shown");
		unlike($said, qr/waiting to/, '... and nothing is waited for');
	}
}

done_testing();
