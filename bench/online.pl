# A conversion of tables in use (bench/run online): how long statements of clients take
# in each phase, and the conversion itself, beside snowflake_convert().

use Report;
use List::Util qw(max);
use SnowflakeTest;
use SnowflakeTest::Online;

my $norders = $quick ? 100_000 : 400_000;
my $nclients = 4;
my $rate = 30 * $nclients;
begin_report('online', 'bench/run online');

my $node = new_server('bench', 'wal_level = logical', 'shared_buffers = 1GB', 'max_wal_size = 16GB',
	'log_statement = none', 'fsync = on');
sql($node, 'CREATE ROLE regress_reader');
foreach my $database ('used', 'plain')
{
	sql($node, "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert');
	create_shop($node, $database, $norders);
}
sql($node, 'CHECKPOINT');

#
# The clients: what each transaction does, and how often
#
my @work = (
	[ 30, "INSERT INTO orders (region, customer, total, note) VALUES (7, 'new', 5, 'new') RETURNING id AS new \\gset
INSERT INTO lines (order_id, no, amount) VALUES (:new, 1, 7), (:new, 2, 7);
INSERT INTO events (order_id, kind) VALUES (:new, 3);" ],
	[ 15, "UPDATE lines SET amount = amount + 1 WHERE order_id = :order AND no = 1;
UPDATE orders SET total = total + 1 WHERE id = :order;" ],
	[ 10, "UPDATE orders SET total = total + 1 WHERE id = :order;
UPDATE lines SET amount = amount + 1 WHERE order_id = :other AND no = 1;" ],
	[ 10, 'SELECT o.customer, l.no FROM orders o JOIN lines l ON l.order_id = o.id WHERE o.id = :order;' ],
	[ 10, 'SELECT id, amount FROM order_totals WHERE id = :order;' ],
	[ 10, 'SELECT id FROM orders WHERE region = 5 ORDER BY id DESC LIMIT 10;' ],
	[ 15, 'UPDATE lines SET amount = amount + 1 WHERE order_id = :order;' ]);
my @files;
foreach my $n (0 .. $#work)
{
	my ($weight, $statements) = @{ $work[$n] };
	my $file = $node->basedir . "/work$n.sql";
	my $several = () = $statements =~ /;|gset/g;

	append_to_file($file, "\\set order random(1, $norders)\n\\set other random(1, $norders)\n"
		. ($several > 1 ? "BEGIN;\n$statements\nCOMMIT;\n" : "$statements\n"));
	push @files, '-f', "$file\@$weight";
}

my @times;    # [ end, milliseconds ]
my @errors;
sub start_load ($prefix)
{
	my %clients = (prefix => $node->basedir . "/$prefix");

	$clients{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', $nclients, '-j', 2, '-T', 100000, '--rate', $rate, '-l', '--log-prefix', $clients{prefix}, @files, $node->connstr('used') ],
		'<' => \undef, '>' => '/dev/null', '2>' => "$clients{prefix}.err");
	return \%clients;
}

sub stop_load ($clients)
{
	$clients->{run}->signal('INT');
	eval { $clients->{run}->finish };
	push @errors, grep { /ERROR|aborted/ } split /\n/, slurp_file("$clients->{prefix}.err");
	foreach my $log (glob "$clients->{prefix}.*")
	{
		next if $log =~ /err$/;
		foreach (split /\n/, slurp_file($log))
		{
			# With --rate, the time includes the delay behind the schedule, which is last.
			my (undef, undef, $us, undef, $seconds, $end, $lag) = split ' ';
			push @times, [ "$seconds." . sprintf('%06d', $end), ($us - ($lag // 0)) / 1000 ] if defined $end;
		}
	}
	return;
}

# Call it, and note when each step ended: [ end, phase ]
my @steps;
my @locked;
my $failed = '';
sub call ($arguments)
{
	my $err = '';
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('used'), '-c', "CALL snowflake_convert_online($arguments)" ],
		'<' => \undef, '>' => '/dev/null', '2>' => \$err);
	my $seen = 0;

	while ($run->pumpable)
	{
		eval { $run->pump };
		while (substr($err, $seen) =~ /^NOTICE:  public\.(\w+): phase "([^"]+)"(?:, \w+)?: [\d.]+ s(?:, ([\d.]+) s with the lock)?\n/m)
		{
			push @steps, [ time, $2 ];
			push @locked, [ $2, $1, $3 ] if defined $3;
			$seen += $+[0];
		}
	}
	eval { $run->finish };
	$failed .= $err if $err =~ /ERROR/;
	return;
}

my $clients = start_load('before');
sleep($quick ? 5 : 10);
my $start = time;
my $size = $node->safe_psql('used', "SELECT pg_relation_size('orders')");
call("'orders', until => 'swap'");
my $swapped = time;
stop_load($clients);
$clients = start_load('after');
sleep 2;
call("'orders'");
sleep 3;
stop_load($clients);
my $ratio = $node->safe_psql('used', "SELECT pg_relation_size('orders')") / $size;
my $whole = shop_is_whole($node, 'used', $norders);
my $deadlocks = sql($node, "SELECT deadlocks FROM pg_stat_database WHERE datname = 'used'");

# A small table, with nobody else.
$node->safe_psql('used', 'CREATE TABLE small (id serial PRIMARY KEY, v int); INSERT INTO small (v) SELECT generate_series(1, 100)');
my $small = time;
$node->safe_psql('used', "CALL snowflake_convert_online('small')");
$small = time - $small;

# The plain conversion, which needs these dropped.
$node->safe_psql('plain', 'SET client_min_messages = warning; DROP VIEW order_totals CASCADE; DROP POLICY readers ON orders;
	DROP POLICY writers ON orders; DROP TRIGGER audit ON orders; DROP TRIGGER disabled ON orders; DROP PUBLICATION partly');
my $plain = time;
$node->safe_psql('plain', "SET client_min_messages = warning; SELECT count(*) FROM snowflake_convert('orders')");
$plain = time - $plain;

#
# The report
#
my @phases = ('before', 'prepare', 'backfill', 'indexes', 'foreign keys', 'swap', 'default');
my %stat;
foreach (@times)
{
	my ($end, $ms) = @$_;
	my ($step) = grep { $_->[0] >= $end } @steps;
	my $phase = $end < $start ? 'before' : defined $step ? $step->[1] : 'default';

	push @{ $stat{$phase} }, $ms;
}
my $load = (split ' ', slurp_file('/proc/loadavg'))[1];
say_to(machine_text($node) . ", load average $load at the end. $norders orders, " . 2 * $norders
	  . ' lines, ' . $norders / 2 . " events; $nclients clients, $rate transactions per second together, of one to five statements.");
say_to('');
say_to(sprintf('%d transactions, %d errors, %d deadlocks. The conversion took %.1f s until the swap, snowflake_convert() %.1f s without other clients (%.1f times). The heap of orders is %.2f times as large. %s',
		scalar @times, scalar @errors, $deadlocks, $swapped - $start, $plain, ($swapped - $start) / $plain, $ratio,
		$whole eq '' && $failed eq '' ? 'No row is lost or changed.' : "WRONG: $whole $failed"));
say_to('');
say_to(sprintf('A table of 100 rows took %.1f s.', $small));
table_head('| phase | transactions | median, ms | 99 %, ms | longest, ms |');
foreach my $phase (grep { $stat{$_} } @phases)
{
	my @sorted = sort { $a <=> $b } @{ $stat{$phase} };

	say_to(sprintf('| %s | %d | %.1f | %.1f | %.0f |', $phase, scalar @sorted, $sorted[ $#sorted / 2 ], $sorted[ 0.99 * $#sorted ], $sorted[-1]));
}
table_head('| phase | table | time with the lock, ms |');
say_to(sprintf('| %s | %s | %.0f |', $_->[0], $_->[1], 1000 * $_->[2])) foreach @locked;
say_to('');
say_to("Errors: $errors[0]") if @errors;

# The plot: the longest transaction of each half second
my %longest;
foreach (@times)
{
	my $second = int(2 * ($_->[0] - $start)) / 2;
	$longest{$second} = $_->[1] if $_->[1] > ($longest{$second} // 0);
}
my %end;
$end{ $_->[1] } = $_->[0] - $start foreach @steps;

# A name is on the right of its line, and of the name before it
my ($arrows, $place) = ('', -1000);
foreach my $phase (sort { $end{$a} <=> $end{$b} } keys %end)
{
	$place = max($end{$phase} + 0.5, $place + 0.9);
	$arrows .= "set arrow from $end{$phase}, graph 0 to $end{$phase}, graph 1 nohead lc rgb '#808080' lw 0.3\n"
	  . "set label '$phase' at $place, graph 0.97 right rotate by 90 tc rgb '#808080' font ',9'\n";
}
plot(
	'online', qq{
set title 'A conversion of tables in use; a line is the end of a phase'
set xlabel 'seconds since CALL'
set ylabel 'longest transaction of each half second, ms'
set yrange [0:*]
$arrows
plot \$data using 1:2 with impulses lw 2 lc rgb '#2f74c0' notitle
},
	join("\n", map { "$_ $longest{$_}" } sort { $a <=> $b } keys %longest));

is($whole . $failed, '', 'measured');
done_testing();
