# Snowflake sequences beside other modules, and by ways that are no queries: JIT,
# auto_explain, pg_stat_statements, plpgsql_check, C code that calls nextval(), the
# fast-path protocol, single-user mode, and clients that use INCREMENT.

use IO::Socket::UNIX;
use SnowflakeTest;

my $ID = '> 1e17';
my $exhausted = qr/ERROR:  2200H: nextval: reached maximum value of sequence/;
my $all = 'pg_stat_statements, snowflake, auto_explain';
my $node = new_server('node', "shared_preload_libraries = '$all'",
	'auto_explain.log_min_duration = 0', 'auto_explain.log_verbose = on',
	'auto_explain.log_nested_statements = on');

sub query ($sql) { return sql($node, $sql); }

query(q{
	CREATE EXTENSION pg_stat_statements; CREATE EXTENSION autoinc;
	CREATE TABLE t (id bigserial PRIMARY KEY, n int);
	CREATE FUNCTION f() RETURNS bool LANGUAGE plpgsql AS
	$$ DECLARE i bigint; BEGIN INSERT INTO t (n) VALUES (1) RETURNING id INTO i; RETURN i = currval('t_id_seq'); END $$;
	SELECT snowflake_set_sequence_kind('t_id_seq')});

# Executed as machine code
my $jit = 'SET jit = on; SET jit_above_cost = 0; SET jit_inline_above_cost = 0; SET jit_optimize_above_cost = 0';
is(query("$jit; INSERT INTO t (n) SELECT generate_series(1, 1000); SELECT count(*), count(DISTINCT id) FROM t WHERE id $ID"),
	'1000|1000', 'JIT: each row gets an ID');
SKIP:
{
	skip 'the server has no JIT', 1 if query('SELECT pg_jit_available()') ne 't' && query("$jit; SELECT pg_jit_available()") ne 't';
	like(query("$jit; EXPLAIN ANALYZE SELECT nextval('t_id_seq') FROM t"), qr/JIT:/, '... which was used');
}

# What other modules see of it
my $offset = -s $node->logfile;
is(query(q{SELECT f()}), 't', 'a function, beside auto_explain and pg_stat_statements');
like(slurp_file($node->logfile, $offset), qr/Query Text: INSERT INTO t.*_snowflake_nextval\('t_id_seq'::regclass\)/s,
	'auto_explain shows the function that is called');
is(query(q{SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%snowflake_sequence_%'}),
	0, 'pg_stat_statements has the text of the client');
SKIP:
{
	skip 'plpgsql_check is not installed', 1
	  if query(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'plpgsql_check'}) == 0;
	is(query(q{CREATE EXTENSION plpgsql_check; SELECT * FROM plpgsql_check_function('f()')}),
		'', 'plpgsql_check finds nothing wrong in it');
}

# A session has room for ten callbacks of all modules.
my $include = `pg_config --includedir-server`;
chomp $include;

# A private installation has no headers.
$include =~ s/^.*\/tmp_check\/install// if !-e "$include/postgres.h";
my $module = compile("$FindBin::RealBin/callbacks.c", '-shared', '-fPIC', '-Wno-unused-parameter', '-isystem', $include);
is(query("LOAD '$module'; SELECT count(DISTINCT n) > 1 FROM t"), 't', 'a module has six of them, beside two of the server');

# C code that calls nextval() by itself
query(q{
	CREATE SEQUENCE by_c; CREATE TABLE inc (id int, n int);
	CREATE TRIGGER inc BEFORE INSERT ON inc FOR EACH ROW EXECUTE FUNCTION autoinc('id', 'by_c')});
is(query('INSERT INTO inc (n) VALUES (1) RETURNING id'), 1, 'autoinc() uses a local sequence');
query(q{SELECT snowflake_set_sequence_kind('by_c')});
sql_fails($node, 'INSERT INTO inc (n) VALUES (1)', $exhausted, '... and fails with a snowflake sequence');

# The fast-path protocol, which no driver's SQL uses
sub message ($socket)
{
	my ($head, $body) = ('', '');

	read($socket, $head, 5) == 5 or die 'the server has closed the connection';
	my ($type, $length) = unpack 'aN', $head;
	read($socket, $body, $length - 4) if $length > 4;
	return ($type, $body);
}

sub call_function ($function, $sequence, $value = undef)
{
	my $socket = IO::Socket::UNIX->new(Peer => $node->host . '/.s.PGSQL.' . $node->port) or die $!;
	my ($oid, $relid) = split /\|/, query("SELECT '$function'::regprocedure::oid, '$sequence'::regclass::oid");
	my $user = query('SELECT current_user');
	my $startup = pack 'N (Z*)4 x', 196608, 'user', $user, 'database', 'postgres';
	my @arguments = (pack('N', $relid), defined $value ? pack('q>', $value) : ());
	my $call = pack('N n n n (N/a*)*', $oid, 1, 1, scalar(@arguments), @arguments) . pack('n', 1);
	my ($type, $body, $result) = ('', '', '');

	$socket->autoflush(1);
	print $socket pack('N a*', length($startup) + 4, $startup);
	($type, $body) = message($socket) while $type ne 'Z';
	print $socket pack('a N a*', 'F', length($call) + 4, $call);
	do
	{
		($type, $body) = message($socket);
		$result .= unpack('x4 q>', $body) if $type eq 'V';
		$result .= join ' ', grep { /^[SCM]/ } split /\0/, $body if $type =~ /[EN]/;
	} while $type ne 'Z';
	return $result;
}
query('CREATE SEQUENCE local');
is(call_function('nextval(regclass)', 'local'), 1, 'the fast-path protocol: a local sequence');
like(call_function('nextval(regclass)', 't_id_seq'), qr/C2200H Mnextval: reached maximum value/,
	'... fails with a snowflake sequence');
like(call_function('setval(regclass, bigint)', 't_id_seq', 5), qr/C0A000 Msetval\(\) of PostgreSQL cannot be called while sequence "\w+" is not local/,
	'... setval() does not end that');
like(call_function('nextval(regclass)', 't_id_seq'), qr/C2200H Mnextval: reached maximum value/, '... and no small number is returned');

# Sixteen clients that count by themselves, up from a value and down to it
query(q{CREATE SEQUENCE pooled INCREMENT 50; SELECT snowflake_set_sequence_kind('pooled');
	CREATE UNLOGGED TABLE got (v bigint)});
my $clients = 16;
my $each = 250;
is( finish_queries(
		start_queries($node, ("INSERT INTO got SELECT nextval('pooled') FROM generate_series(1, $each)") x $clients)),
	$clients, "$clients clients use INCREMENT BY 50");
foreach my $direction ('+', '-')
{
	is(query("SELECT count(*), count(DISTINCT v $direction n) FROM got, generate_series(0, 49) n"),
		join('|', ($clients * $each * 50) x 2), "... and no number is used twice, counting by $direction");
}
is(query(q{SELECT count(*) FROM (SELECT v - lag(v) OVER (ORDER BY v) AS distance FROM got) d WHERE distance < 99}),
	0, '... in whichever direction each of them counts');

# Single-user mode
$node->stop;
my %without = (options => [ '-c', 'shared_preload_libraries=' ]);
like(single_user($node, 'INSERT INTO t (n) VALUES (5) RETURNING id > 1e17'), qr/= "t"/, 'single-user mode: nextval() returns an ID');
like(single_user($node, 'INSERT INTO t (n) VALUES (5)', %without), qr/ERROR:  snowflake must be loaded via/, '... and fails without the library');
my $detached = "UPDATE pg_proc SET prosupport = 0 WHERE oid = 'nextval(regclass)'::regprocedure\n";
like(single_user($node, $detached . 'INSERT INTO t (n) VALUES (5)', %without),
	qr/ERROR:  nextval: reached maximum value/, '... also if nextval() does not know of it');
done_testing();
