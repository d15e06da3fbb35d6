# Ranges of sequences: sessions speak the protocol of servers, at the same time, and no two
# are granted the same number, whatever happens to calls, answers, and the registry's server.

use SnowflakeTest;

#
# Servers: the token of the last answer, those of calls since then, the receipt, and the
# greatest number that each was granted.  The ledger has all ranges that arrived.
#
my %ledger;
my $overlaps = 0;
my $ranges = 0;
my $uuids = 0;

sub new_uuid { return sprintf('00000000-0000-4000-8000-%012d', ++$uuids); }

sub new_client ($name)
{
	return { name => $name, client => new_uuid(), unconfirmed => [], receipt => 0, granted => {} };
}

# The query of a call; names => [count, floor]
sub query_of ($server, %wanted)
{
	my @names = sort keys %wanted;
	my $array = sub { sprintf(q('{%s}'), join(',', @_)) };

	$server->{token} = new_uuid();
	return sprintf(
		q{SELECT (ARRAY[%s])["position"], first_number, last_number, floor, waits_for, problem_kind || ': ' || problem, new_receipt
		FROM snowflake_registry.get_ranges('%s', %s, %s, '%s', %s, '%s', %s, %s, %s, %s, %s, %s, %s, directory => md5('%s')::uuid)},
		join(',', map { "'$_'" } @names), $server->{client},
		$server->{confirmed} ? "'$server->{confirmed}'" : 'NULL', $array->(@{ $server->{unconfirmed} }),
		$server->{token}, $server->{receipt}, $server->{name},
		(map { $array->(@$_) } [ ('shop') x @names ], \@names, [ (2147483647) x @names ],
		[ map { $wanted{$_}[0] } @names ], [ (1) x @names ], [ map { $wanted{$_}[1] // 'NULL' } @names ],
		[ ('NULL') x @names ]), $server->{name});
}

# A report of all that it was granted
sub report ($node, $server)
{
	my @names = sort keys %{ $server->{granted} };

	return sql($node, sprintf(q{SELECT snowflake_registry.report_ranges('%s', %s, '{%s}', '%s', '{%s}', '{%s}', '{%s}', '{%s}', '{%s}', true, md5('%s')::uuid)},
			$server->{client}, $server->{confirmed} ? "'$server->{confirmed}'" : 'NULL', join(',', @{ $server->{unconfirmed} }),
			$server->{name}, join(',', ('shop') x @names), join(',', @names), join(',', (2147483647) x @names), join(',', @{ $server->{granted} }{@names}), join(',', ('true') x @names), $server->{name}),
		extra_params => [ '-U', 'regress_server' ]);
}

# Take an answer, and its receipt out of it; returns how many rows it has.
sub take
{
	my ($server, undef) = @_;

	$server->{receipt} = $1 if $_[1] =~ s/\|(\d+)$//mg;
	my @rows = split /\n/, $_[1];

	foreach my $row (@rows)
	{
		my ($name, $first, $last) = split /\|/, $row;

		next unless $first;
		$ranges++;
		foreach my $other (@{ $ledger{$name} })
		{
			next if $first > $other->{last} || $last < $other->{first};
			$overlaps++;
			diag("$name: $server->{name} [$first, $last], $other->{server} [$other->{first}, $other->{last}]");
		}
		push @{ $ledger{$name} }, { first => $first, last => $last, server => $server->{name} };
		$server->{granted}{$name} = $last;
	}
	$server->{confirmed} = $server->{token} if @rows;
	$server->{unconfirmed} = [] if @rows;
	return scalar @rows;
}

# Call as the role of servers, and take the answer; returns it.
sub call ($node, $server, %wanted)
{
	my $out = sql($node, query_of($server, %wanted), extra_params => [ '-U', 'regress_server' ]);

	take($server, $out);
	return $out;
}

# The error that a call gets, whose token is that of an answer that may yet arrive.
sub failed_call ($node, $server, %wanted)
{
	my $error = sql_error($node, query_of($server, %wanted));

	push @{ $server->{unconfirmed} }, $server->{token};
	return $error;
}

sub next_of { return sql($_[0], "SELECT next FROM snowflake_registry.sequences WHERE name = '$_[1]'"); }

my $first = plain_server('first', { allows_streaming => 1 },
	'max_connections = 60', 'wal_keep_size = 128MB', "deadlock_timeout = '100ms'");
sql($first, q{
	CREATE EXTENSION snowflake_registry;
	SELECT snowflake_registry.add_database('shop');
	CREATE ROLE regress_server LOGIN;
	ALTER ROLE regress_server SET synchronous_commit = off;
	GRANT EXECUTE ON FUNCTION snowflake_registry.get_ranges, snowflake_registry.get_range_names, snowflake_registry.get_floors,
		snowflake_registry.report_ranges, snowflake_registry.return_ranges TO regress_server;
	CREATE TABLE ranges (name text, first_number bigint, last_number bigint, problem text)});

# 12 servers call for half of 40 names, in any order, and the first of them add these.  As servers
# do, they call again if they waited for a lock for a second.
sql($first, q{
CREATE FUNCTION call(client_id text, n integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ranges
	SELECT w.names[r."position"], first_number, last_number, problem_kind
	FROM (SELECT array_agg('public.t' || i ORDER BY random()) AS names
	      FROM (SELECT i FROM generate_series(1, 40) i ORDER BY random() LIMIT 20) i) w,
		snowflake_registry.get_ranges(md5(client_id)::uuid,
			CASE WHEN n > 1 THEN md5(client_id || '-' || (n - 1))::uuid END, '{}', md5(client_id || '-' || n)::uuid,
			0, 'server' || client_id, array_fill('shop'::text, '{20}'), w.names, array_fill(2147483647::bigint, '{20}'),
			array_fill(1::bigint, '{20}'), array_fill(1::bigint, '{20}'), array_fill(0::bigint, '{20}'), array_fill(NULL::text, '{20}')) r;
EXCEPTION WHEN lock_not_available THEN
	PERFORM call(client_id, n);
END $$});
my $file = $first->basedir . '/calls.sql';
append_to_file($file, q{
\set n :n + 1
SELECT call(:client_id::text, :n)
});
my ($out, $err);
IPC::Run::run([ 'pgbench', '-n', '-c', 12, '-j', 2, '-t', 60, '-D', 'n=0', '-f', $file, '-d', $first->connstr('postgres') ],
	'>' => \$out, '2>' => \$err);
like($out, qr{transactions actually processed: 720/720}, '12 servers call at the same time: nobody waits in vain') or diag($err);
# On a slow machine, some wait for longer than they should, and get no number.
is(sql($first, q{SELECT count(*), count(DISTINCT (name, first_number)) FILTER (WHERE first_number IS NOT NULL) = count(first_number), count(DISTINCT name),
		bool_and(first_number = last_number), bool_and(problem IS NULL OR problem = 'busy')
	FROM ranges WHERE first_number IS NOT NULL OR problem IS NOT NULL}),
	'14400|t|40|t|t', 'they are granted all numbers once');
is(sql($first, q{SELECT count(*) FROM (SELECT name, max(last_number) - count(last_number) AS gaps FROM ranges GROUP BY name) g WHERE gaps <> 0}),
	0, '... and none is left out');
unlike(slurp_file($first->logfile), qr/deadlock/, 'there is no deadlock');

# A commit that hangs, because the synchronous standby does not answer
my $standby = new_standby($first, 'standby');
require_standbys($first, 'standby');
my ($a, $b, $c) = map { new_client($_) } 'a', 'b', 'c';
like(call($first, $a, t => [ 100, 0 ], u => [ 100, 0 ]), qr/^t\|1\|100\|.*\nu\|1\|100\|/, 'a sequence begins above its first floor');
call($first, $b, t => [100]);
my $next = next_of($first, 't');
my $receiver = server_process($standby, 'walreceiver');
kill 'STOP', $receiver;
my ($hung) = start_queries($first, query_of($a, t => [100]));
push @{ $a->{unconfirmed} }, $a->{token};
wait_until_true($first, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
like(failed_call($first, $a, t => [100]), qr/ERROR:  55P03: the previous call of this server is still in progress$/m,
	'a call that was given up hangs in its commit: the next one of the server fails at once');
is($hung->{out}, '', 'nothing is answered before the synchronous standby has it');
my ($busy) = start_queries($first, query_of($b, t => [ 100, 150 ], u => [ 100, 0 ], unknown => [100]));
my ($other) = start_queries($first, query_of($c, v => [ 100, 0 ]));
wait_until_true($first, "SELECT count(*) = 3 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
pass('calls for other sequences are not held up');
kill 'CONT', $receiver;
finish_queries($hung, $busy, $other);
take($b, $busy->{out});
like($busy->{out}, qr/^t\|\|\|\|\|busy: .*\nu\|\d+\|\d+\|0\|\|\nunknown\|\|\|\|\|unknown: .*$/,
	'another server is granted no numbers of the same sequence, but of others, and is told which is not known');
take($c, $other->{out});
my ($lost) = $hung->{out} =~ /^(t\|\d+\|\d+)/;
like(call($first, $a, t => [100]), qr/^\Q$lost\E\|/, 'what was granted to a call that was given up is granted again');
is(next_of($first, 't'), $next + 100, '... and no more numbers are granted');

# A call of B is about to commit when A sets a floor: B is waited for, and hears of it.
kill 'STOP', $receiver;
($hung) = start_queries($first, query_of($b, t => [100]));
push @{ $b->{unconfirmed} }, $b->{token};
wait_until_true($first, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
($busy) = start_queries($first, query_of($a, t => [ 0, 5000 ]));
wait_until_true($first, "SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
kill 'CONT', $receiver;
finish_queries($hung, $busy);
like($busy->{out}, qr/^t\|\|\|\|\|busy: /, 'a floor is not set during a call that is about to commit');
take($a, $busy->{out});
like(call($first, $a, t => [ 0, 5000 ]), qr/^t\|\|\|5000\|b\|$/, 'then it waits for the server that has been granted lower numbers');
my $floors = "SELECT * FROM snowflake_registry.get_floors('$b->{client}', 0)";
is(sql($first, $floors, extra_params => [ '-U', 'regress_server' ]), 'shop|t|5000', 'that server hears of the floor');
like(call($first, $b, t => [ 100, 5000 ]), qr/^t\|5001\|5100\|5000\|\|$/, 'what had not arrived is not granted again below the floor');
is(sql($first, $floors), '', 'a floor that was acknowledged is not reported again');
like(call($first, $a, t => [ 0, 5000 ]), qr/^t\|\|\|5000\|\|$/, 'then nobody is waited for');

# Two continue with the same memory, and call at once.
my %copy = (%$c, unconfirmed => []);
my @twins = start_queries($first, map { query_of($_, v => [100]) } $c, \%copy);
finish_queries(@twins);
my @rows = map { scalar(() = $_->{out} =~ /^v\|\d/mg) } @twins;
is($rows[0] + $rows[1], 1, 'of two that continue with the same memory, one is granted a range');
my ($winner, $loser) = $rows[0] ? ($c, \%copy) : (\%copy, $c);
take($winner, $twins[ $rows[0] ? 0 : 1 ]{out});
is(call($first, $loser, v => [100]), '', 'the other one is superseded');
like(call($first, $winner, v => [100]), qr/^v\|\d/, 'the first one continues');

# The registry crashes.  It continues, and has what it answered.
crash_and_start($first);
call($first, $_, t => [100]) foreach $a, $b;
is($overlaps, 0, 'after a crash, no range is granted twice');
sql_fails($standby, query_of(new_client('d'), t => [100]), qr/ERROR:  25006: /m, 'a standby grants nothing');

# The synchronous standby is promoted.  It has all, but cannot know that.
my $old = standby_without($first, 'old', "synchronous_standby_names = ''");
call($first, $_, t => [100], u => [100]) foreach $a, $b;
$first->stop('immediate');
$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$standby->promote;
my $stopped = qr/\|stopped: The registry has granted no ranges since .*, because its server was promoted to timeline 2\.$/m;
like(call($standby, $a, t => [100]), $stopped, 'a registry that was promoted grants nothing');
crash_and_start($standby);
like(call($standby, $b, t => [100]), $stopped, '... also after a crash');
report($standby, $_) foreach $a, $b;
is(sql($standby, "SELECT name, server_name, granted < next FROM snowflake_registry.range_evidence e JOIN snowflake_registry.sequences USING (database_group, name) WHERE name = 't' ORDER BY server_name"),
	"t|a|t\nt|b|t", 'servers report what they were granted');
sql_fails($standby, 'SELECT snowflake_registry.resume_ranges(0, 2)',
	qr/ERROR:  55000: numbers might be granted twice if none are skipped\nDETAIL:  Servers that have reported all that they know: a, b\. Servers that have not: (?=.*\bc \(last call 20).*\bserver0 .*\.\nHINT:  /,
	'it does not continue right there while others are silent');
sql($standby, 'SELECT snowflake_registry.resume_ranges(1)');
like(call($standby, $_, t => [100], u => [100]), qr/^t\|\d+\|\d+\|5000\|\|\nu\|\d/, 'an administrator resumes it, and the servers continue') foreach $a, $b;
is($overlaps, 0, 'no number is granted twice after the promotion');

# Only such standbys are promoted, an administrator says.
sql($standby, 'SELECT snowflake_registry.alter_ranges(lossless_failover => true)');
my $next_one = new_standby($standby, 'next_one');
require_standbys($standby, 'next_one');
call($standby, $_, t => [100], u => [100]) foreach $a, $b;
$standby->stop('immediate');
$next_one->append_conf('postgresql.conf', "synchronous_standby_names = ''");
$next_one->promote;
like(call($next_one, $a, t => [100]), qr/stopped: The server of the registry was promoted to timeline 3, and another standby might have been, too\.$/m,
	'without an archive and standbys, nothing excludes that another standby was promoted');
my $third = new_standby($next_one, 'third');
require_standbys($next_one, 'third');
like(call($next_one, $_, t => [100], u => [100]), qr/^t\|\d+\|\d+\|5000\|\|\nu\|\d/, 'with a synchronous standby it continues by itself') foreach $a, $b;
is($overlaps, 0, 'no number is granted twice after the second promotion');
require_standbys($next_one, '');
$third->stop;

# An asynchronous standby, which lacks what was granted since, is promoted.
$old->promote;
like(call($old, $a, t => [100]), $stopped, 'a registry that has lost ranges grants nothing');
like(call($old, $b, t => [ 100, 4000 ]), $stopped, 'who is superseded only because of the loss keeps its ranges');
report($old, $_) foreach $a, $b;
is(sql($old, q{SELECT server_name, granted >= next FROM snowflake_registry.range_evidence JOIN snowflake_registry.sequences USING (database_group, name) WHERE name = 't' ORDER BY 1}),
	"a|t\nb|t", 'servers report numbers that it does not know of');
is(sql($old, q{SELECT name, next > greatest_granted + 1000, granted_to FROM snowflake_registry.resume_ranges(1000) WHERE name = 't'}),
	't|t|a, b', 'the administrator sees who reported what');
is(call($old, $a, t => [100]), '', 'then such a server is superseded');
my ($a2, $b2) = map { { %{ new_client($_->{name}) }, receipt => $_->{receipt}, granted => $_->{granted} } } $a, $b;
like(call($old, $_, t => [100]), qr/^t\|\|\|5000\|\|report: /, '... is asked again when it begins anew') foreach $a2, $b2;
report($old, $_) foreach $a2, $b2;
like(call($old, $_, t => [100]), qr/^t\|\d/, '... and is granted ranges') foreach $a2, $b2;
is($overlaps, 0, 'no number is granted twice after ranges were lost');
$_->stop foreach $old, $next_one;

# Files of yesterday are put back: they have the same identifier and timeline.
$first->start;
require_standbys($first, '');
my ($e, $f) = map { new_client($_) } 'e', 'f';
%ledger = ();
call($first, $_, w => [ 100, 0 ]) foreach $e, $f;
$first->backup('yesterday');
call($first, $_, w => [100]) foreach $f, $e;
$first->stop;
my $copy = server_of_backup('copy', $first, 'yesterday');
is(sql($copy, "SELECT database IS NULL FROM snowflake_registry.get_floors(gen_random_uuid(), $e->{receipt})"),
	't', 'files that were put back: the first server that connects proves it, also if it was started again');
is(sql($copy, 'SELECT stopped FROM snowflake_registry.range_state'),
	'it lost commits: server "?" has a receipt of a call that it does not know', '... so that nothing is granted anymore');
crash_and_start($copy);
like(call($copy, $f, w => [ 100, 0 ], x => [ 100, 0 ]), qr/^w\|\|\|0\|\|stopped: .*\nx\|\|\|\|\|stopped: /, 'nothing is granted of any sequence, also after a crash');
my $g = new_client('g');
like(call($copy, $g, t => [100]), qr/^t\|\|\|5000\|\|stopped: /, '... to no server');
sql($copy, 'SELECT snowflake_registry.resume_ranges(400)');
call($copy, $g, w => [100]);
like(call($copy, $f, w => [100]), qr/^$/, 'a server that was away then is another one');
$f = { %{ new_client('f') }, receipt => $f->{receipt}, granted => $f->{granted} };
like(call($copy, $f, w => [100]), qr/^w\|\|\|0\|\|report: /, '... and is granted nothing before it has reported');
call($copy, $g, w => [100]);
report($copy, $f);
call($copy, $f, w => [100]);
is(call($copy, $e, w => [100]), '', 'so is one that was to report when it was resumed');
is($overlaps, 0, 'no number is granted twice after files were put back');

# What it holds, the registry has lost, but floors wait for it.
my $floor = next_of($copy, 'w') + 10;
like(call($copy, $g, w => [ 0, $floor ]), qr/\bf\|$/, 'a floor waits for a server whose ranges were lost');

# A dump has the sequences, and the registry that is made of it stops.
call($copy, $g, w => [100]);
my $dump = $copy->basedir . '/dump.sql';
$copy->command_ok([ 'pg_dump', '-d', $copy->connstr('postgres'), '-f', $dump ], 'pg_dump');
call($copy, $g, w => [100]);
sql($copy, 'CREATE DATABASE restored');
$copy->command_ok([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $copy->connstr('restored'), '-f', $dump ], 'the dump is restored');
my $result = $copy->safe_psql('restored', query_of($g, w => [100]));
take($g, $result);
like($result, qr/^w\|\|\|$floor\|\|stopped: .*, because its database was copied, upgraded, or restored from a dump\.$/m, 'a registry restored from a dump grants nothing');
like(sql_error($copy, 'SELECT snowflake_registry.resume_ranges(0)', dbname => 'restored'), qr/Servers that have reported all that they know: none\./, 'it asks how many servers there are');
is($copy->safe_psql('restored', "SELECT next - was_next FROM snowflake_registry.resume_ranges(200) WHERE name = 'w'"), 200,
	'it is resumed above what it can have granted since');
my $i = new_client('i');
$result = $copy->safe_psql('restored', query_of($i, w => [100]));
take($i, $result);
is($overlaps, 0, 'no number is granted twice by the restored one');

cmp_ok($ranges, '>', 25, 'ranges were recorded');
done_testing();
