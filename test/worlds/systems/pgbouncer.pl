# Clients behind pgbouncer in transaction mode, as docs/clients.md has it.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/clients.md', 'pgbouncer');
my $node = new_server('main', 'snowflake.worker_id = 1');
my $dir = PostgreSQL::Test::Utils::tempdir_short;
my $bouncer;

END
{
	my $status = $?;
	$bouncer->kill_kill if defined $bouncer;
	$? = $status;
}

sql($node, q{
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer int);
	CREATE TABLE order_lines (order_id bigint REFERENCES orders, product text)});

# The page's configuration, with a pool of one or two sessions
my $user = sql($node, 'SELECT current_user');
my $port = PostgreSQL::Test::Cluster::get_free_port();

sub start_bouncer ($size)
{
	my $conf = $page->example(
		'pool_mode',
		'host=10.0.0.1 port=5432' => $node->connstr('postgres') =~ tr/'//dr . " user=$user",
		'10.0.0.8' => '127.0.0.1',
		6432 => $port,
		'/etc/pgbouncer/userlist.txt' => "$dir/userlist.txt",
		'default_pool_size = 20' => "default_pool_size = $size");

	unlink "$dir/userlist.txt", "$dir/pgbouncer.ini";
	append_to_file("$dir/userlist.txt", "\"$user\" \"secret\"\n");
	append_to_file("$dir/pgbouncer.ini", "$conf\nunix_socket_dir = $dir\n");
	$bouncer->kill_kill if defined $bouncer;
	$bouncer = IPC::Run::start([ 'pgbouncer', "$dir/pgbouncer.ini" ],
		'>' => "$dir/log", '2>&1');
	foreach my $i (1 .. 600)
	{
		return if defined query('SELECT 1');
		usleep(100_000);
	}
	die 'pgbouncer does not answer: ' . slurp_file("$dir/log");
}

my $conninfo = "host=127.0.0.1 port=$port dbname=shop user=$user password=secret";

sub query ($sql)
{
	my ($out, $err);

	return IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $conninfo ],
		'<' => \$sql, '>' => \$out, '2>' => \$err)
	  ? $out =~ s/\n\z//r
	  : undef;
}

# A client that stays connected
sub client
{
	my %client = (in => '', out => '');
	$client{run} = IPC::Run::start([ 'psql', '-XAt', '-v', 'VERBOSITY=sqlstate', '-d', $conninfo ],
		'<' => \$client{in}, '>' => \$client{out}, '2>&1',
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return \%client;
}

sub ask ($client, $sql)
{
	$client->{out} = '';
	$client->{in} .= "$sql\n\\echo .\n";
	$client->{run}->pump until $client->{out} =~ /^\.$/m;
	return $client->{out} =~ s/^\.\n//mr =~ s/\n\z//r;
}

# One session for two clients: what currval() returns is another client's.
start_bouncer(1);
my $returning = $page->example('RETURNING id');
my ($first, $second) = (client(), client());
like(ask($first, 'SELECT snowflake_currval();'), qr/ERROR:  55000/, 'currval() fails in a session without an ID');
my ($of_first) = ask($first, $returning) =~ /^(\d+)$/m;
my ($of_second) = ask($second, $returning) =~ /^(\d+)$/m;
cmp_ok($of_second, '>', $of_first, 'RETURNING has the ID of each client');
is(ask($first, 'SELECT snowflake_currval();'), $of_second,
	'currval() in a transaction of its own returns the ID of another client');
$_->{run}->finish foreach $first, $second;

# Two sessions for eight clients: RETURNING and currval() in the transaction are
# right.
start_bouncer(2);
my $order = $page->example('order_lines');
my @runs;
foreach my $client (1 .. 8)
{
	my $sql = join '', map {
		my $customer = $client * 1000 + $_;
		my $line = $order =~ s/\(7\)/($customer)/r =~ s/'tea'/'$customer'/r;
		my $row = $returning =~ s/\(7\)/(-$customer)/r;
		"$line$row\\echo -$customer\n";
	} 1 .. 200;
	my %run = (out => '');
	$run{run} = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $conninfo ],
		'<' => \$sql, '>' => \$run{out});
	push @runs, \%run;
}
is(scalar(grep { $_->{run}->finish } @runs), 8, 'eight clients insert');
is(sql($node, q{
		SELECT count(*), count(*) FILTER (WHERE product = customer::text)
		FROM order_lines JOIN orders ON id = order_id}),
	'1600|1600', 'currval() in the same transaction returns its ID');
my %stored = map { split /\|/ } split /\n/,
  sql($node, 'SELECT customer, id FROM orders WHERE customer < 0');
my ($right, $wrong) = (0, 0);
foreach my $run (@runs)
{
	while ($run->{out} =~ /^(\d+)\n(-\d+)$/mg)
	{
		$stored{$2} == $1 ? $right++ : $wrong++;
	}
}
is("$right|$wrong", '1600|0', 'RETURNING returns the ID of its row');
is(sql($node, 'SELECT count(*) <= 3 FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid() AND backend_type = \'client backend\''),
	't', 'eight clients share two sessions');

$bouncer->kill_kill;
undef $bouncer;
Page::all_taken();
