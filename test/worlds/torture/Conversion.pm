# The world "Conversion" of script/tests/torture: a table and its children are converted while
# servers crash, standbys are promoted, and clocks move.

package Conversion;

use List::Util qw(sum0);
use POSIX qw(WNOHANG);
use SnowflakeTest;
use SnowflakeTest::Online;
use Torture;

# A call that reports nothing for as long has stopped for good.
use constant LONGEST_WAIT => 120;
use constant CLIENTS => 3;
use constant ORDERS => 2000;

# After so many conversions there is a new server.
use constant CONVERSIONS => 6;

my @phases = ('prepare', 'backfill', 'indexes', 'foreign keys', 'swap', 'default');

# What a conversion in one transaction does, when it is interrupted: it waits for the registry, if
# sequences become ranges; for locks; is anywhere; and waits for its commit.
my @at_once_phases = ('registry', 'locks', 'anywhere', 'commit');

#
# The plan.  A round is a call, and what ends it.
#
my @ends = (
	'pg_terminate_backend()', 'pg_cancel_backend()',
	'kill -9 of the session', 'kill -9 of the session',
	'kill -9 of a client', 'kill -9 of the checkpointer',
	'immediate stop', 'immediate stop', 'fast stop',
	'kill -9 of the server', 'kill -9 of the server',
	'promotion of a synchronous standby', 'promotion of a synchronous standby',
	'promotion of an asynchronous standby');

sub plan_round
{
	my %its = (
		end => any_of(@ends),

		# Of the phases that are left, the one with the fewest hits, or rather the next one;
		# and of the time that it takes.
		rarest => rand() < 0.5 ? 1 : 0,
		phase => rand()**2,
		moment => rand(),

		# In the last phase, the call may be left alone.
		completes => rand() < 0.5 ? 1 : 0,

		# Phases of few milliseconds take longer with slow flushes.
		flush => any_of(0, 0.01, 0.03),
		step => rand() < 0.6 ? any_of(-86400, -3600, -3, -0.1, 0.1, 3, 3600, 86400) : undef,
		before_call => rand(0.5),
		undo => rand() < 0.15 ? 1 : 0,

		# Of the next server: can sequences become ranges?
		has_registry => rand() < 0.4 ? 1 : 0,
		patient => any_of(0, 1),

		# Of the next conversion: does it keep its sequence, and is it of the whole schema?
		conversion => rand(),
		schema => any_of(0, 1),

		options => any_of(
			"batch_time => '5 ms', work_share => 0.3",
			"batch_time => '1 ms', work_share => 1", 'work_share => 0.1'));

	# What a phase leaves half done is found at the next call.
	@its{ 'end', 'rarest', 'phase', 'flush', 'has_registry' } = ('kill -9 of the session', 0, 0.3, 0.01, 0) if $bug;
	@its{ 'phase', 'flush', 'completes' } = (0.99, 0, 1) if $bug eq 'conversion-privileges';
	$its{conversion} = $bug eq 'conversion-local' ? 0.99 : 0.5 * $its{conversion} if $bug;

	# One at once is anywhere then, and most likely at its end.
	@its{ 'phase', 'moment' } = (0.4, 5) if $bug eq 'conversion-local';
	return \%its;
}

#
# Conversions.  Online, the default of the key becomes a generator, or its sequence a snowflake
# sequence.  At once, all columns and the sequence do, or only the sequence becomes a range or a
# local one.  What becomes local was of another kind before, which a call had made of it that
# nothing interrupts.
#
my @without_registry = (
	{ name => 'generator', online => 1 },
	{ name => 'snowflake', online => 1, kind => 'snowflake' },
	{ name => 'snowflake at once', kind => 'snowflake' },
	{ name => 'local of snowflake', kind => 'local', from => 'snowflake' });
my @with_registry = (
	{ name => 'range', kind => 'range' },
	{ name => 'local of range', kind => 'local', from => 'range' });
my $conversion = $without_registry[0];

# The statement of a conversion to a kind.
sub at_once ($kind)
{
	return $conversion->{schema}
	  ? "SELECT FROM snowflake_convert_schema('public', kind => '$kind', widen => 'none')"
	  : "SELECT FROM snowflake_convert('orders', kind => '$kind')";
}

# Are columns rewritten, under locks that clients wait for?
sub rewrites { return !$conversion->{online} && $conversion->{kind} eq 'snowflake'; }

# The same for a conversion, or the one before it.
sub is_rewritten { return rewrites() || ($conversion->{from} // '') eq 'snowflake'; }

my %hit;				# kills that hit a call, by phase

sub hits_in ($phase) { return sum0(values %{ $hit{$phase} // {} }); }

#
# The tables.  To those of SnowflakeTest::Online come columns that say what belongs
# together without a key that is converted: each order has a token, which its lines and
# events have, too, and its children as parent_token.  The total of an order increases with the
# amount of one of its lines.  One has a key that no sequence has generated, which the numbers of
# other kinds are above.
#
my $tokens = q{
ALTER TABLE orders ADD token text, ADD parent_token text, ADD base numeric NOT NULL DEFAULT 0;
ALTER TABLE lines ADD token text;
ALTER TABLE events ADD token text;
SET session_replication_role = replica;
UPDATE orders SET token = 'old ' || id, parent_token = 'old ' || parent_id, base = total - 2 * (id % 100);
UPDATE lines SET token = 'old ' || order_id;
UPDATE events SET token = 'old ' || order_id;
RESET session_replication_role;
INSERT INTO orders (id, region, customer, total, note, token) VALUES (500000, 7, 'no sequence', 0, 'no sequence', 'no sequence');
INSERT INTO lines (order_id, no, amount, token) SELECT 500000, n, 0, 'no sequence' FROM generate_series(1, 2) n;
CREATE INDEX orders_token ON orders (token);
CREATE INDEX events_token ON events (token);
};
my $drop = q{
SET client_min_messages = warning;
DROP PUBLICATION IF EXISTS partly;
DROP TABLE orders, lines, events, audit CASCADE;
DROP FUNCTION touch, audit, instead};

# Each returns what is wrong.
my %checks = (
	'children of another order' => q{
		SELECT c.token, c.parent_id, c.parent_token, p.token FROM orders c JOIN orders p ON p.id = c.parent_id
		WHERE c.parent_token IS DISTINCT FROM p.token},
	'parents that are gone' => q{
		SELECT token, parent_id FROM orders c WHERE parent_id IS NOT NULL
		AND NOT EXISTS (SELECT FROM orders p WHERE p.id = c.parent_id)},
	'parents that were lost' => q{
		SELECT c.token, c.parent_token FROM orders c JOIN orders p ON p.token = c.parent_token
		WHERE c.parent_id IS NULL},
	'lines of another order' => q{
		SELECT l.id, l.order_id, l.token, o.token FROM lines l LEFT JOIN orders o ON o.id = l.order_id
		WHERE o.token IS DISTINCT FROM l.token},
	'events of another order' => q{
		SELECT e.order_id, e.token, o.token FROM events e LEFT JOIN orders o ON o.id = e.order_id
		WHERE o.token IS DISTINCT FROM e.token},
	'orders without an event' => q{
		SELECT token FROM orders o WHERE customer = 'new' AND NOT EXISTS (SELECT FROM events e WHERE e.token = o.token)},
	'orders with other lines' => q{
		SELECT o.token, count(l.no) FROM orders o LEFT JOIN lines l ON l.order_id = o.id AND l.no <= 2
		GROUP BY o.id HAVING count(l.no) <> 2},
	'other amounts' => q{
		SELECT o.token, o.total, o.base, sum(l.amount) FROM orders o JOIN lines l ON l.order_id = o.id
		GROUP BY o.id HAVING sum(l.amount) <> o.total - o.base},
	'orders twice' => q{
		SELECT token, count(*) FROM orders GROUP BY token HAVING count(*) > 1},
	'orders twice by ID' => q{
		SELECT id, count(*) FROM orders GROUP BY id HAVING count(*) > 1},
	'lines twice' => q{
		SELECT token, no, count(*) FROM lines GROUP BY token, no HAVING count(*) > 1},
	'events twice' => q{
		SELECT token, kind, count(*) FROM events GROUP BY token, kind HAVING count(*) > 1});

#
# Clients.  Each runs one session after the other, of a second or so, and writes down
# what it begins and what was committed.  The rows of a session are its own, but
# for the old orders, of which each client has some, so no two clients are in each other's
# way: what fails, fails because of the conversion.
#
my @clients;
my ($sessions, $starts) = (0, 0);
my $stop = "$PostgreSQL::Test::Utils::tmp_check/stop";

# What clients have committed: for each order how often its total was increased, how
# often that was tried, and whether it may be gone, or is.
my %committed;

# One of the clients, the last, grants and revokes privileges on what is converted.  For
# each, whether it may be there (1), may be missing (0), or both, as far as is known.
use constant ADMINISTRATOR => CLIENTS;
my @privileges = ('(id) ON orders', '(order_id) ON lines', '(id) ON order_totals');
my %granted;

# The expression that says whether it is there.
sub has_privilege
{
	my ($column, $table) = $privileges[ $_[0] ] =~ /^\((\w+)\) ON (\w+)$/;

	return "has_column_privilege('regress_admin', '$table', '$column', 'UPDATE')::int";
}

sub administrator_script
{
	my $statements = '';

	foreach my $n (1 .. 50)
	{
		my $number = int rand @privileges;
		my ($wanted, $statement) = rand() < 0.5 ? (1, 'GRANT UPDATE %s TO regress_admin') : (0, 'REVOKE UPDATE %s FROM regress_admin');
		my ($pause, $longer) = map { "SELECT count(*) FROM generate_series(1, $_) \\g /dev/null\n" } 20_000, 100_000;
		$statement = sprintf "$statement;\n\\set failed :ERROR\n", $privileges[$number];
		$statements .= 'SELECT ' . has_privilege($number) . " AS has \\gset\n\\echo has $number :has\n";
		$statements .= "\\echo want $number $wanted\n"
		  . (rand() < 0.3 ? "BEGIN;\n$statement${pause}COMMIT;\n" : $statement)
		  . "\\echo is $number $wanted :failed\n$longer";
	}
	return $statements;
}

sub check_privilege ($number, $has)
{
	wrong("UPDATE $privileges[$number] " . ($has ? 'was revoked, and is there' : 'was granted, and is not there'), 'lost')
	  unless $granted{$number}{$has};
	return;
}

# Read what it did.
sub read_privileges ($file)
{
	my $before;

	foreach my $line (split /\n/, slurp_file($file))
	{
		if ($line =~ /^has (\d) (\d)/)
		{
			check_privilege($1, $2);
			$granted{$1} = { $2 => 1 };
		}
		elsif ($line =~ /^want (\d) (\d)/)
		{
			$before = $granted{$1};
			$granted{$1} = { %$before, $2 => 1 };
		}
		elsif ($line =~ /^is (\d) (\d) (\w+)/)
		{
			$granted{$1} = $3 eq 'false' ? { $2 => 1 } : $before;
		}
	}
	return;
}

sub actual_privileges ($node)
{
	return split /\|/, sql($node, 'SELECT ' . join ', ', map { has_privilege($_) } 0 .. $#privileges);
}

sub check_privileges ($node)
{
	my @actual = actual_privileges($node);

	check_privilege($_, $actual[$_]) foreach 0 .. $#privileges;
	return;
}

# What is there is all that counts from now on.
sub forget_privileges ($node)
{
	my @actual = actual_privileges($node);

	%granted = map { $_ => { $actual[$_] => 1 } } 0 .. $#privileges;
	return;
}

sub session_script ($client)
{
	return administrator_script() if $client == ADMINISTRATOR;
	my $session = ++$sessions;
	my $statements = "PREPARE line AS INSERT INTO lines (order_id, no, amount, token) VALUES (\$1, \$2, 0, \$3);\n";
	my @mine;

	foreach my $n (1 .. 25)
	{
		my $token = "$client.$session.$n";
		my $parent = @mine && rand() < 0.5 ? any_of(@mine) : undef;
		my $old = 1 + $client + CLIENTS * int rand((ORDERS - CLIENTS) / CLIENTS);
		my $given = -1_000_000 - $session * 30 - $n;
		my $explicit = rand() < 0.3;
		my $values = join ', ',
		  (defined $parent ? "(SELECT id FROM orders WHERE token = '$parent')" : 'NULL'),
		  7, $explicit ? "'new, with a key'" : "'new'", 0, "'new'", "'$token'", defined $parent ? "'$parent'" : 'NULL';

		# A row in each table, with an ID of its own, below all others, or a generated one
		$statements .= "\\echo begin $token\nBEGIN;\n"
		  . 'INSERT INTO orders (' . ($explicit ? 'id, ' : '')
		  . 'parent_id, region, customer, total, note, token, parent_token) VALUES ('
		  . ($explicit ? "$given, " : '') . "$values) RETURNING id AS new \\gset\n"
		  . "INSERT INTO lines (order_id, no, amount, token) VALUES (:new, 1, 0, '$token');\n"
		  . "EXECUTE line(:new, 2, '$token');\n"
		  . ($explicit ? '' : "INSERT INTO events (order_id, kind, token) VALUES (:new, 3, '$token');\n")
		  . "COMMIT;\n\\echo done $token\n";

		# Another key, to which lines follow
		$statements .= "UPDATE orders SET id = $given - 1000000000 WHERE id = $given;\n"
		  if $explicit && rand() < 0.5;
		push @mine, $token unless $explicit;

		# Both tables, in either order
		foreach my $which ($token, "old $old")
		{
			my @both = (
				"UPDATE orders SET total = total + 1 WHERE token = '$which';\n",
				"UPDATE lines SET amount = amount + 1 WHERE no = 1 AND order_id = (SELECT id FROM orders WHERE token = '$which');\n");
			$statements .= "\\echo increase $which\nBEGIN;\n"
			  . join('', rand() < 0.5 ? @both : reverse @both)
			  . "COMMIT;\n\\echo increased $which\n";
		}

		# Together: a line that an interrupted session leaves is in the way of a later one.
		$statements .= "BEGIN;\nINSERT INTO lines (order_id, no, amount, token) SELECT id, $n + 100, 0, token FROM orders WHERE token = 'old $old';\n"
		  . "DELETE FROM lines WHERE no = $n + 100 AND order_id = $old;\nCOMMIT;\n"
		  . "SELECT count(*) FROM order_totals WHERE id = $old \\g /dev/null\n";

		# Lines are deleted with it, and its children have no parent then.
		if (rand() < 0.4)
		{
			my $victim = @mine && rand() < 0.7 ? splice(@mine, rand @mine, 1) : $token;
			@mine = grep { $_ ne $victim } @mine;
			$statements .= "\\echo delete $victim\nBEGIN;\nDELETE FROM events WHERE token = '$victim';\n"
			  . "DELETE FROM orders WHERE token = '$victim';\nCOMMIT;\n\\echo deleted $victim\n";
		}
		# Not pg_sleep(), which takes longer if the clock is set back, and CREATE INDEX
		# CONCURRENTLY would wait for that.
		$statements .= "SELECT count(*) FROM generate_series(1, 20000) \\g /dev/null\n";
	}
	return $statements;
}

# A client's process: sessions until one fails.
sub run_sessions ($node, $client, $file)
{
	my $connstr = $node->connstr('postgres') . ' application_name=client';

	srand($seed + $starts * CLIENTS + $client);
	$sessions = 1000 * ($starts * CLIENTS + $client);
	for (;;)
	{
		open(my $script, '>', "$file.sql") or POSIX::_exit(1);
		print $script session_script($client);
		close $script;
		my $on_error = $client == ADMINISTRATOR ? 0 : 1;
		system("psql -XAtq -v ON_ERROR_STOP=$on_error -d '$connstr' -f '$file.sql' </dev/null >>'$file.out' 2>>'$file.err'");
		POSIX::_exit(0) if $? != 0 || -e $stop;
	}
	return;
}

sub start_clients_of ($node, %options)
{
	$starts++;
	unlink $stop;
	foreach my $n (0 .. ($options{administrator} ? ADMINISTRATOR : CLIENTS - 1))
	{
		my $file = "$PostgreSQL::Test::Utils::tmp_check/shopper$n";
		unlink map { "$file.$_" } 'out', 'err', 'sql';
		my $pid = fork() // die $!;
		if ($pid == 0)
		{
			$SIG{TERM} = $SIG{INT} = 'DEFAULT';
			run_sessions($node, $n, $file);
		}
		push @clients, { pid => $pid, file => "$file.out", errors => "$file.err", administrator => $n == ADMINISTRATOR };
	}
	return;
}

# End the sessions of clients.  One that is between two of them ends after the next one.
sub end_clients_of ($node)
{
	append_to_file($stop, '');
	end_clients($node) if is_up($node);
	return;
}

# Wait for clients that have lost their server, and read what they wrote.
sub finish_clients_of
{
	my $start = time;

	while (my $client = shift @clients)
	{
		if (!within($start + LONGEST_WAIT - time, sub { waitpid($client->{pid}, WNOHANG) != 0 }, 0.01))
		{
			fail_call('a client hangs');
			kill 'KILL', $client->{pid};
			waitpid($client->{pid}, 0);
		}
		foreach my $line (split /\n/, slurp_file($client->{errors}))
		{
			next unless $line =~ /(?:ERROR|PANIC|FATAL):  (.*)/;
			fail_call("a client: $line")
			  unless $1 =~ /terminating connection|the database system is/
			  || (rewrites() && $1 =~ /deadlock detected|out of range|cached plan must not change/)
			  || ($client->{administrator} && $1 =~ /tuple concurrently|cache lookup failed|does not exist|transaction is aborted/);
		}
		read_privileges($client->{file}) if $client->{administrator};
		foreach my $line (split /\n/, slurp_file($client->{file}))
		{
			my ($what, $token) = $line =~ /^(\w+) (.+)$/ or next;
			next if $client->{administrator};
			my $order = $committed{$token} //= { tried => 0, done => 0 };
			$order->{new} = 1 if $what eq 'done';
			$order->{tried}++ if $what eq 'increase';
			$order->{done}++ if $what eq 'increased';
			$order->{deleting} = 1 if $what eq 'delete';
			$order->{deleted} = 1 if $what eq 'deleted';
			$total{written}++ if $what =~ /ed$|done/;
		}
	}
	return;
}

# They are at work: each writes something from now on.
sub clients_continue { go_on(LONGEST_WAIT, @clients); return; }

# Is what clients know to be committed there?
sub check_committed ($node)
{
	my %stored;

	foreach my $row (split /\n/, sql($node, 'SELECT token, total - base FROM orders'))
	{
		my ($token, $increased) = $row =~ /^(.*)\|(-?\d+)$/;
		$stored{$token} = $token =~ /^old (\d+)/ ? $increased - 2 * ($1 % 100) : $increased;
	}
	foreach my $token (sort keys %committed)
	{
		my $order = $committed{$token};
		my $increased = $stored{$token};

		wrong("order $token is gone", 'lost')
		  if !defined $increased && ($order->{new} || $token =~ /^old/) && !$order->{deleting};
		wrong("order $token is there, and was deleted", 'lost')
		  if defined $increased && $order->{deleted};
		wrong("order $token was increased $increased times, not $order->{done} to $order->{tried}", 'lost')
		  if defined $increased
		  && ($increased < $order->{done} || $increased > $order->{tried});
	}
	return;
}

# What is stored is all that counts from now on.
sub forget_committed ($node)
{
	%committed = ();
	foreach my $row (split /\n/, sql($node, 'SELECT token, total - base FROM orders'))
	{
		my ($token, $increased) = $row =~ /^(.*)\|(-?\d+)$/;
		$increased -= 2 * ($1 % 100) if $token =~ /^old (\d+)/;
		$committed{$token} = { tried => $increased, done => $increased, new => 1 };
	}
	return;
}

# No client is there: is every row there once, and right?
sub check_tables ($node, $when)
{
	$total{checks}++;
	my $found = shop_is_whole($node, 'postgres', ORDERS);
	wrong("$when: $found", 'wrong') if $found ne '';
	$found = sql($node, join ' UNION ALL ', map {
		"SELECT '$_', string_agg(c::text, ' ') FROM (SELECT * FROM ($checks{$_}) c LIMIT 5) c HAVING count(*) > 0"
	} sort keys %checks);
	wrong("$when: $found", 'wrong') if $found ne '';

	# Each row is in each index.
	$found = sql_error($node, q{
		SELECT bt_index_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE c.relam = (SELECT oid FROM pg_am WHERE amname = 'btree') AND i.indisvalid
		AND i.indrelid IN ('orders'::regclass, 'lines'::regclass, 'events'::regclass)});
	wrong("$when: $found", 'wrong') if $found ne '';
	return;
}

#
# Servers
#
my $template;

sub begin_torture
{
	$template = template_node(undef,
		'wal_level = logical', 'max_connections = 40', 'max_wal_senders = 6',
		'shared_buffers = 32MB', 'log_min_messages = warning');
	return;
}

my ($node, $standby, $registry, $conversions, $before);

sub begin_primary
{
	remove_nodes();
	$node = node_of_backup('primary', $template, 'backup');
	$total{servers}++;
	$conversions = 0;
	begin_registry() if $plan->{has_registry};
	start_node($node);
	# The first kind in a database would have INSERTs that wait for it fail.
	sql($node, q{
		CREATE ROLE regress_reader; CREATE ROLE regress_admin; CREATE EXTENSION snowflake_convert; CREATE EXTENSION amcheck;
		CREATE SEQUENCE s; SELECT snowflake_set_sequence_kind('s'); DROP SEQUENCE s});
	new_shop();
	return;
}

# A registry for this server alone.
sub begin_registry
{
	$registry = node_of_backup('registry', $template, 'backup');
	start_node($registry);
	sql($registry, q{
		CREATE EXTENSION snowflake_registry;
		SELECT snowflake_registry.create(1, 100, new => true);
		SELECT snowflake_registry.add_database('postgres')});
	$node->append_conf('postgresql.conf', asks_registries($node, [$registry]) . name_of_server($node));
	return;
}

# A server and its standby have names of their own at the registry.
sub name_of_server { return "snowflake.server_name = '" . $_[0]->name . "'"; }

sub new_shop
{
	my @possible = defined $registry ? @with_registry : @without_registry;

	$conversion = { %{ $possible[ $plan->{conversion} * @possible ] }, schema => $plan->{schema} };
	create_shop($node, 'postgres', ORDERS);
	sql($node, $tokens);

	# A column of it that is in a publication cannot be rewritten.
	sql($node, 'DROP PUBLICATION partly') if is_rewritten();
	sql($node, at_once($conversion->{from})) if defined $conversion->{from};
	sql($node, 'VACUUM ANALYZE');
	happens("the next conversion is $conversion->{name}");
	%committed = ();
	forget_privileges($node);

	# One at once cannot be undone.
	$before = describe_shop($node, 'postgres') if $conversion->{online};
	return;
}

sub remove_nodes
{
	remove_node(grep { defined } $node, $standby, $registry);
	($node, $standby, $registry) = ();
	return;
}

# A standby, for this round.
sub begin_standby ($synchronous)
{
	$standby = new_node('standby');
	copy_of($standby, $node, 1, 0, q{synchronous_standby_names = ''}, defined $registry ? name_of_server($standby) : ());
	$total{servers}++;
	if ($synchronous)
	{
		require_standbys($node, '*');
	}
	else
	{
		wait_until_true($node,
			"SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'");
	}
	return;
}

# The standby is the primary from now on.
sub promote
{
	my $old = $node;

	$standby->promote;
	($node, $standby) = ($standby, undef);

	$old->append_conf('postgresql.conf', "synchronous_standby_names = ''");
	remove_node($old);
	return;
}

#
# The call
#
my (%call, $call_ends);
my %duration = map { $_ => 0.3 } @phases, @at_once_phases;

# What the plan says: how many steps of each phase are not done, and the phase of the next.
sub look_at_plan
{
	my ($n, $next) = ({});

	foreach my $row (split /\n/, sql($node,
		q{SELECT phase, count(*) FILTER (WHERE state <> 'done'), bool_or(state LIKE 'next%')
			FROM snowflake_convert_plan('orders') GROUP BY phase}))
	{
		my ($phase, $left, $is_next) = split /\|/, $row;
		$n->{$phase} = $left;
		$next = $phase if $is_next eq 't';
	}
	return ($n, $next);
}

sub start_call
{
	my $statement = $conversion->{online}
	  ? "CALL snowflake_convert_online('orders', $plan->{options}"
	  . (defined $conversion->{kind} ? ')' : ", generator => 'snowflake_nextval()')")
	  : at_once($conversion->{kind});

	%call = (err => '', begun => time);
	my $connstr = $node->connstr('postgres') . ' application_name=conversion';
	$call{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $connstr, '-c', $statement ],
		'<' => \undef,
		'>' => '/dev/null',
		'2>' => \$call{err});
	return;
}

# Read what the call reports; false: it has ended.
sub call_runs
{
	usleep(2_000);
	my $length = length $call{err};
	$call{run}->pump_nb if $call{run}->pumpable;
	$call{told} = time if length $call{err} > $length || !defined $call{told};
	if (time - $call{told} > LONGEST_WAIT)
	{
		fail_call("the call has stopped: $call{err}") unless $call{stopped}++;
		return 0;
	}
	return $call{run}->pumpable;
}

sub done_in ($phase)
{
	my $n = () = $call{err} =~ /NOTICE:  .*: phase "$phase"/g;

	return $n;
}

# Wait until a phase begins; false: the call has ended.
sub wait_for_phase ($phase, $left)
{
	my $began = $call{begun};

	foreach my $earlier (@phases)
	{
		last if $earlier eq $phase;
		until (done_in($earlier) >= ($left->{$earlier} // 0))
		{
			return 0 unless call_runs();
		}
		$duration{$earlier} = 0.5 * $duration{$earlier} + 0.5 * (time - $began)
		  if $left->{$earlier};
		$began = time;
	}
	return 1;
}

sub session_of_call
{
	return sql($node,
		q{SELECT max(pid) FROM pg_stat_activity WHERE application_name = 'conversion'});
}

# End the call, by a fault of the plan.
sub end_call
{
	my $way = $plan->{end};
	my $pid;

	$pid = $call{pid} or return if $way =~ /session|^pg_/;
	if ($way =~ /^(pg_\w+)/)
	{
		sql($node, "SELECT $1($pid)");
	}
	elsif ($way eq 'kill -9 of the session')
	{
		crash_process($node, $pid) or return;
	}
	elsif ($way =~ /^kill -9 of (?:a|the) (client|checkpointer)/)
	{
		kill_process($node, $1 eq 'client' ? 'client backend' : $1) or return;
	}
	elsif ($way =~ /^(fast|immediate) stop/)
	{
		$node->stop($1);
	}
	else
	{
		kill_postmaster($node);
	}
	return;
}

# The server is there again, or its standby.
sub recover
{
	set_disk($node, 0, 0) if $plan->{flush};
	if ($plan->{end} =~ /^promotion/)
	{
		promote();
	}
	elsif (!-f $node->data_dir . '/postmaster.pid')
	{
		start_node($node);
	}
	wait_until_up($node);
	return;
}

# How the call has ended: by what was done to it, or with an error of its own.
sub judge_call
{
	eval { $call{run}->finish };
	note_wait(time - $call{begun}, 'longest_call');
	my $ok = ($call{run}->full_results)[0] == 0;
	my ($error) = $call{err} =~ /((?:ERROR|FATAL|PANIC):.*)/;

	return $ok unless defined $error;
	if (rewrites() && $error =~ /deadlock detected|tuple concurrently updated/
		|| ($conversion->{kind} // '') eq 'range' && $error =~ /other servers can still return/)
	{
		$call{refused} = 1;
		$total{refused}++;
		happens("the call was refused: $error");
	}
	elsif ($error !~ /terminating connection|canceling statement due to user request|the database system is/)
	{
		fail_call("the call: $error");
	}
	return $ok;
}

# What there is of a type, a default, and a kind.  To a promoted standby, its former primary is another
# server, and may hold numbers of a sequence that is local by now.
sub columns_and_kinds
{
	return map { sql($node, $_) } (
		q{SELECT string_agg(format('%s.%s', attrelid::regclass, attname), ' ' ORDER BY attrelid::regclass::text, attname) FROM pg_attribute
		WHERE attrelid IN ('orders'::regclass, 'lines'::regclass, 'events'::regclass) AND atttypid = 'int8'::regtype},
		q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute a ON (adrelid, adnum) = (attrelid, attnum)
		WHERE (attrelid, attname) = ('orders'::regclass, 'id')},
		q{SELECT string_agg(format('%s %s%s', sequence, kind,
				' ' || CASE WHEN problem NOT LIKE 'local, but other servers are granted its numbers:%' THEN problem END),
			', ' ORDER BY sequence::text) FROM snowflake_sequences
		WHERE sequence::text IN ('orders_id_seq', 'lines_id_seq')});
}

# Is the conversion complete?  Nothing of one at once is there without the rest.
sub is_complete ($next)
{
	return !defined $next if $conversion->{online};
	return sql($node,
		"SELECT count(*) FROM snowflake_sequences WHERE sequence = 'orders_id_seq' AND kind = '$conversion->{kind}'") eq '1';
}

sub check_complete ($last)
{
	my $found = nothing_is_left($node, 'postgres');
	my ($columns, $default, $kinds) = columns_and_kinds();
	my $kind = $conversion->{kind} // 'local';
	my $is_wide = $conversion->{online} || $kind eq 'snowflake' || ($conversion->{from} // '') eq 'snowflake';
	my $of_lines = $conversion->{schema} && !$conversion->{online} ? $kind : 'local';

	$total{conversions}++;
	wrong("left over: $found", 'left') if $found ne '';
	fail_call("bigint: $columns")
	  if $columns ne ($is_wide ? 'events.order_id lines.id lines.order_id orders.id orders.parent_id' : 'lines.id');
	fail_call("the default is $default")
	  if $default ne (defined $conversion->{kind} ? "nextval('orders_id_seq'::regclass)" : 'snowflake_nextval()');
	fail_call("kinds: $kinds")
	  if defined $conversion->{kind} && $kinds ne "lines_id_seq $of_lines, orders_id_seq $kind";
	my $next = sql($node, "SELECT $default");
	wrong("number $next after $last", 'wrong') if $next <= $last;
	$total{kept}++ if defined $conversion->{kind};
	return;
}

# The greatest key now, and all that are generated after the conversion are above it.
sub greatest_key { return sql($node, 'SELECT max(id) FROM orders'); }

# Take it all back, while clients use the tables.
sub undo
{
	my $error = sql_error($node, "SELECT snowflake_convert_undo('orders')");
	sql($node, join '; ', map { "REVOKE UPDATE $_ FROM regress_admin" } @privileges);
	forget_privileges($node);
	my $after = describe_shop($node, 'postgres');
	my $found = nothing_is_left($node, 'postgres');

	happens('undo');
	$total{undone}++;
	fault('snowflake_convert_undo()');
	fail_call("undo: $error") if $error =~ /ERROR:/;
	wrong("left over by undo: $found", 'left') if $found ne '';
	wrong('after undo the tables are others', 'left') if $after ne $before;
	return;
}

# The clock moves, while the call runs.
sub move_clock
{
	return unless defined $plan->{step};
	set_clock($node, $plan->{step});
	set_clock($standby, -$plan->{step}) if defined $standby;
	happens("clock $plan->{step} s");
	fault('clock');
	return;
}

#
# A conversion at once
#
# A session that holds locks which the call waits for, until it is told to end
sub start_holder
{
	my $file = "$PostgreSQL::Test::Utils::tmp_check/held";

	unlink $file;
	my $run = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'BEGIN', '-c', "COMMENT ON SEQUENCE orders_id_seq IS 'held'",
			'-c', 'LOCK TABLE lines IN ROW SHARE MODE', '-c', '\echo held', '-c', "\\! until [ -e '$file' ]; do sleep 0.05; done" ],
		'<' => \undef, '>' => \my $out, '2>' => '/dev/null');
	$run->pump while $run->pumpable && ($out // '') !~ /held/;
	return sub {
		append_to_file($file, '');
		eval { $run->finish };
	};
}

# What has the call wait in a phase, and by which it is known.  Returns what ends that.
my %wait_in = (
	registry => [ sub { pause_node($registry); return sub { continue_node($registry) } }, q{wait_event_type = 'Extension'} ],
	locks => [ \&start_holder, q{wait_event_type = 'Lock'} ],
	commit => [ sub { set_disk($node, 0, 0.3); return sub { set_disk($node, 0, $plan->{flush}) } },
		q{wait_event IN ('WALSync', 'WALWrite', 'SyncRep')} ]);

# Start a call, and wait until it is in a phase; false: it has ended.
sub start_call_at_once ($phase)
{
	my ($begin, $waits) = @{ $wait_in{$phase} // [] };

	$call_ends = $begin->() if defined $begin;
	start_call();
	$call{pid} = session_of_call();
	move_clock() if !defined $registry;
	happens("wait for $phase");
	if (!defined $begin)
	{
		nap($plan->{moment} * $duration{$phase});

		# That it has ended is known after the rest of its output was read.  Otherwise, it seems
		# to last longer and longer.
		call_runs() foreach 1 .. 3;
		my $runs = call_runs();
		$duration{$phase} = 0.5 * $duration{$phase} + 0.5 * (time - $call{begun}) unless $runs;
		$duration{$phase} *= 1.2 if $runs;
		return $runs;
	}
	my $start = time;
	while (call_runs())
	{
		return 1 if time - $start > 10
		  || sql($node, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'conversion' AND $waits") eq '1';
	}
	return 0;
}

# Start a call, and wait until it is in a phase of the plan; returns that, and whether it still runs.
sub begin_call ($left)
{
	my @possible = $conversion->{online} ? grep { $left->{$_} } @phases
	  : grep { $_ ne 'registry' || $conversion->{kind} eq 'range' } @at_once_phases;
	my ($phase) = $plan->{rarest} ? sort { hits_in(name_of($a)) <=> hits_in(name_of($b)) } @possible : $possible[ $plan->{phase} * @possible ];

	return ($phase, start_call_at_once($phase)) unless $conversion->{online};
	start_call();
	$call{pid} = session_of_call();
	nap($plan->{before_call} * $duration{$phase});
	move_clock();
	happens("wait for phase $phase");
	my $runs = wait_for_phase($phase, $left);
	my $until = time + $plan->{moment} * $duration{$phase};
	$until += LONGEST_WAIT if $phase eq 'default' && $plan->{completes} && !$bug;
	$runs = call_runs() while $runs && time < $until;
	return ($phase, $runs);
}

# A phase of a conversion at once has the name of its kind before it.
sub name_of ($phase) { return $conversion->{online} ? $phase : "$conversion->{name}: $phase"; }

# Other servers may have numbers of this sequence: the one that this one was a standby of.
sub wait_or_begin_again
{
	return unless defined $registry;
	if (!$plan->{patient})
	{
		$conversions = CONVERSIONS;
		return;
	}
	nap(62);
	sql($registry, q{
		SELECT snowflake_registry.free_ranges(server_name) FROM (SELECT DISTINCT server_name FROM snowflake_registry.range_holders) h
		WHERE server_name <> '} . $node->name . q{'});
	return;
}

sub round
{
	begin_primary() if !defined $node || $conversions >= CONVERSIONS;
	begin_standby(scalar($plan->{end} =~ /a synchronous/)) if $plan->{end} =~ /^promotion/;
	my ($left, $next) = $conversion->{online} ? look_at_plan() : ();
	my $last = greatest_key();

	start_clients_of($node, administrator => !rewrites());
	clients_continue();
	set_disk($node, 0, $plan->{flush}) if $plan->{flush};
	my ($phase, $runs) = begin_call($left);
	if ($runs)
	{
		happens("$plan->{end} $call{pid}");
		end_call();
	}

	# What has come to an end is judged with the server that it left.
	$call_ends->() if defined $call_ends;
	undef $call_ends;
	end_clients_of($node);
	$call{run}->kill_kill if $call{stopped};
	my $completed = judge_call();
	finish_clients_of();
	recover() if $runs;
	set_disk($node, 0, 0) if $plan->{flush};
	if ($runs && $plan->{end} =~ /asynchronous/)
	{
		forget_committed($node);
		forget_privileges($node);
	}
	(undef, $next) = look_at_plan() if $conversion->{online};
	my $is_complete = is_complete($next);
	$next //= 'commit' unless $is_complete;
	happens('the next phase is ' . ($next // 'none'));
	wrong('the conversion', 'lost')
	  if $completed && !$is_complete && !$conversion->{online} && $plan->{end} !~ /asynchronous/;

	# Sessions may work on for a moment without a postmaster, and so complete it.
	my $was_hit = $runs && !$call{refused} && (!$completed || defined $next);
	if ($was_hit)
	{
		my $where = $conversion->{online} ? $next // 'the end' : name_of($phase);
		$hit{$where}{ $plan->{end} }++;
		fault($plan->{end});
	}
	check_committed($node);
	check_privileges($node);
	forget_privileges($node);
	check_tables($node, $plan->{end} . ', next phase ' . ($next // 'none'));
	if ($is_complete)
	{
		check_complete($last);
		use_converted();
	}
	elsif ($call{refused})
	{
		wait_or_begin_again();
	}
	elsif ($conversion->{online} && $plan->{undo} && $next ne 'swap' && $next ne 'default')
	{
		clients_use(\&undo, 'undo');
	}

	# Nothing of this round is left in the next one.
	if (defined $standby)
	{
		reload_with($node, "synchronous_standby_names = ''");
		remove_node($standby);
		undef $standby;
	}
	return;
}

# Clients use the tables while something is done, after which they are checked.
sub clients_use ($meanwhile, $what)
{
	start_clients_of($node);
	clients_continue();
	$meanwhile->();
	end_clients_of($node);
	finish_clients_of();
	check_committed($node);
	check_tables($node, $what);
	return;
}

# Clients go on with snowflake IDs, and then there are new tables.
sub use_converted
{
	clients_use(sub { nap(0.5) }, 'after the conversion');
	$conversions++;
	sql($node, $drop);
	new_shop();
	return;
}

sub end_round ($lived)
{
	@nodes = ();
	return if $lived;
	kill 'KILL', map { $_->{pid} } @clients;
	waitpid $_->{pid}, 0 foreach @clients;
	return;
}

# What calls were hit by, phase by phase
sub leave
{
	remove_nodes() unless found();
	foreach my $phase (grep { $hit{$_} && !$bug } @phases, 'the end', sort grep { /:/ } keys %hit)
	{
		my $its = $hit{$phase};
		my $n = hits_in($phase);

		$total{hits} += $n;
		say_figure("hits in phase $phase: $n ("
			  . join(', ', map { "$_ $its->{$_}" } sort { $its->{$b} <=> $its->{$a} || $a cmp $b } keys %$its) . ')');
	}
	return;
}

sub world
{
	return {
		create => \&begin_torture,
		plan => \&plan_round,
		round => \&round,
		end => \&end_round,
		ends => sub { !$_[0] || found() > 20 },
		leave => \&leave,
		wrong => [qw(lost wrong left failed)],
		done => 'hits',
		promise => 'no row is lost, wrong or left over, and nothing failed',
		so_far => '{rounds} rounds, {conversions} conversions',
		bug_figures => '{rounds} rounds, {lost} lost, {wrong} wrong, {left} left over, {failed} failed',
		figures => '{rounds} rounds, {faults} faults, {hits} of {rounds} calls hit, {conversions} conversions completed '
		  . '({kept} with their sequence), {undone} undone, of {servers} servers, {written} transactions of clients, '
		  . '{checks} checks, {lost} lost, {wrong} wrong, {left} left over, {failed} failed, {refused} refused, '
		  . 'longest call {longest_call} s' };
}

1;
