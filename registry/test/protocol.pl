# The registry: sessions speak the protocol of servers, and no two are granted
# IDs with the same worker ID in ranges that overlap, whatever happens to the
# registry's server.

use SnowflakeTest;

# Each scheme has worker IDs of its own: "long" has the usual times, "short" has
# such that a lift passes while the test waits, and "late" is added late.
my %schemes = (
	long => { name => 'leaf', epoch_ms => 1288834974657 },
	short => { name => 'pgedge', epoch_ms => 1672531200000 },
	late => { name => 'cosid', epoch_ms => 1577203200000 });

# The first ID of the tick so many seconds from now.
sub id_at ($scheme, $seconds)
{
	return (int((time + $seconds) * 1000) - $schemes{$scheme}{epoch_ms}) << 22;
}

# How many seconds an ID is ahead of the clock.
sub ahead ($scheme, $id) { return (($id >> 22) + $schemes{$scheme}{epoch_ms}) / 1000 - time; }

#
# Servers.  Each has the tokens that the registry may have of it, and what it
# was granted.  The ledger has all ranges that any server was ever granted, by
# any registry.
#
my %ledger;
my $ranges = 0;
my $overlaps = 0;
my $tokens = 0;

sub new_servers ($scheme, $n)
{
	return map {
		{
			scheme => $scheme,
			clock => 0,
			tokens => [],
			name => sprintf('server%d', ++$tokens)
		}
	} 1 .. $n;
}

sub new_token { return sprintf('00000000-0000-4000-8000-%012d', ++$tokens); }

sub token_array ($server) { return sprintf q('{%s}'), join ',', @{ $server->{tokens} }; }

# Note that a server may generate IDs from one on, up to another one.
sub note_range ($server, $from, $until)
{
	my $of_worker = $ledger{ $server->{scheme} }{ $server->{worker_id} } //= [];

	$ranges++;
	foreach my $other (@$of_worker)
	{
		next if $other->{server} == $server;
		next if $from >= $other->{until} || $until <= $other->{from};
		$overlaps++;
		diag(
			"worker ID $server->{worker_id}: $server->{name} [$from, $until) and $other->{server}{name} [$other->{from}, $other->{until})");
	}
	push @$of_worker, { server => $server, from => $from, until => $until };
}

# The query by which a server asks for a worker ID.
sub get_query ($server)
{
	$server->{next_id} = id_at($server->{scheme}, $server->{clock});
	$server->{token} = new_token();
	return sprintf(
		q{SELECT worker_id, until FROM snowflake_registry.get_grant('%s', 0, NULL, %d, %s, '%s', '%s')},
		$schemes{ $server->{scheme} }{name}, $server->{next_id}, token_array($server), $server->{token},
		$server->{name});
}

# Take its answer; returns the worker ID.
sub take_answer ($server, $answer)
{
	($server->{worker_id}, $server->{until}) = $answer =~ /^(\d+)\|(\d+)$/m
	  or return undef;
	$server->{tokens} = [ $server->{token} ];
	note_range($server, $server->{next_id}, $server->{until});
	return $server->{worker_id};
}

# Ask for a worker ID; returns it, or undef and the error.
sub get_grant ($node, $server, $database = undef)
{
	my ($out, $err);

	$node->psql(
		$database // 'postgres',
		"\\set VERBOSITY verbose\n" . get_query($server),
		extra_params => [ '-U', 'regress_server' ],
		stdout => \$out,
		stderr => \$err,
		on_error_stop => 0);
	my $worker_id = take_answer($server, $out);
	return wantarray ? ($worker_id, $err) : $worker_id;
}

# Have the grant extended; returns whether it was.
sub extend_grant ($node, $server)
{
	my $token = new_token();
	my $from = $server->{until};
	my $until = sql($node, sprintf(
			q{SELECT until FROM snowflake_registry.extend_grant('%s', 0, %d, %d, %s, '%s', '%s')},
			$schemes{ $server->{scheme} }{name}, $server->{worker_id},
			id_at($server->{scheme}, $server->{clock}),
			token_array($server), $token, $server->{name}),
		extra_params => [ '-U', 'regress_server' ]);

	return 0 if $until eq '';
	$server->{tokens} = [$token];
	$server->{until} = $until;
	note_range($server, $from, $until);
	return 1;
}

# What the registry has of a scheme.
sub settings ($node, $scheme, $columns, $database = undef)
{
	return $node->safe_psql($database // 'postgres',
		"SELECT $columns FROM snowflake_registry.registries WHERE scheme = (snowflake_registry.read_scheme('$schemes{$scheme}{name}')).canonical");
}

sub distinct
{
	my %seen;
	return scalar grep { !$seen{ $_->{worker_id} }++ } @_;
}

# An administrator knows that no other standby is promoted to the same timeline.
# (registry/test/promotion.pl has what the registry does without that.)
sub confirm_promotion ($node, @schemes)
{
	sql($node, "SELECT snowflake_registry.confirm_promotion('$_')") foreach @schemes;
	return;
}

sub promote ($node, @schemes)
{
	$node->promote;
	confirm_promotion($node, @schemes ? @schemes : ('leaf', 'pgedge'));
	return;
}

my $first = plain_server('first', { allows_streaming => 1, clock => 0 }, 'max_connections = 60');
sql($first, q{
	CREATE EXTENSION snowflake;
	CREATE EXTENSION snowflake_registry;
	SELECT snowflake_registry.create(1, 400, 'leaf', new => true);
	SELECT snowflake_registry.create(1, 40, 'pgedge', grant_time => '1 s', reach => '2 s', new => true);
	CREATE ROLE regress_server LOGIN;
	ALTER ROLE regress_server SET synchronous_commit = off;
	GRANT EXECUTE ON FUNCTION snowflake_registry.get_grant, snowflake_registry.extend_grant, snowflake_registry.return_grant TO regress_server});

# 40 servers start at once.
my ($blocker) = start_queries($first,
	'BEGIN; SELECT FROM snowflake_registry.registries FOR UPDATE; SELECT pg_sleep(3600)');
wait_until_true($first, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
my @servers = new_servers('long', 40);
my @sessions = start_queries($first, map { get_query($_) } @servers);
wait_until_true($first, q{SELECT count(*) = 40 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%snowflake_registry.get_grant%'});
sql($first, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
finish_queries($blocker);
is(finish_queries(@sessions), 40, '40 servers ask at the same time');
take_answer($servers[$_], $sessions[$_]{out}) foreach 0 .. 39;
is(distinct(@servers), 40, '40 servers get 40 different worker IDs');

# The registry stops, and starts again.
$first->stop('immediate');
start_with_clock($first);
is(scalar(grep { extend_grant($first, $_) } @servers[ 0 .. 4 ]),
	5, 'a restarted registry extends grants');
my ($late) = new_servers('long', 1);
get_grant($first, $late);
is(distinct(@servers, $late), 41, 'a restarted registry grants another worker ID');

# Grants wait for a synchronous standby, although the role would not.
my $standby = new_standby($first, 'standby');
require_standbys($first, 'standby');
my $receiver = server_process($standby, 'walreceiver');
kill 'STOP', $receiver;
my ($synchronous) = new_servers('long', 1);
my ($session) =
  start_queries($first,
	'SET synchronous_commit = off; ' . get_query($synchronous));
wait_until_true($first, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
kill 'CONT', $receiver;
is(finish_queries($session), 1, 'a grant waits for the synchronous standby');
take_answer($synchronous, $session->{out});
is(distinct(@servers, $late, $synchronous), 42, 'a worker ID is granted when the synchronous standby answers');
sql_fails($standby, get_query((new_servers('long', 1))[0]),
	qr/ERROR:  25006: /, 'a standby grants nothing');
sql_fails($standby, q{SELECT snowflake_registry.create(1, 10, 'baidu', new => true)},
	qr/ERROR:  25006: /, 'nor is a registry created there');
$standby->stop;
reload_with($first, "synchronous_standby_names = ''");

# An asynchronous standby is promoted, which has not got the last grants.  The
# clock of the old primary is ahead by nearly "reach", and it keeps running.
my @nodes = ($first, standby_without($first, 'second'));
push @servers, $late, $synchronous;
set_clock($first, 59 * 60);
my @lost = new_servers('long', 10);
get_grant($first, $_) foreach @lost;
is(distinct(@servers, @lost), 52, '10 worker IDs are granted that the standby does not get');
cmp_ok(ahead('long', $lost[0]{until}), '>', 68 * 60,
	'grants of a registry whose clock is ahead are longer');
promote($nodes[1]);
my @after = new_servers('long', 10);
is(scalar(grep { defined get_grant($nodes[1], $_) } @after),
	10, 'after the failover, worker IDs are granted at once');
is(distinct(@servers, @lost, @after), 62, 'after the failover, no worker ID is granted that is held');
is(scalar(grep { extend_grant($nodes[1], $_) } $servers[0], $lost[0], $after[0]),
	1, 'after the failover, grants of the old registry are not extended');
is(defined get_grant($nodes[1], $servers[0]), 1, 'a server whose grant is not extended gets another worker ID');
my ($lift, $others) = split /\|/,
  settings($nodes[1], 'long', 'not_before[2], not_before[1] + not_before[3] + not_before[4]');
is($others, 0, 'after the failover, one slice is not granted');
cmp_ok((sort { $b <=> $a } map { $_->{until} } @lost)[0],
	'<=', $lift, 'the slice is not granted until all lost grants have ended');

# Both continue.
my @of_old = new_servers('long', 5);
my @of_new = new_servers('long', 5);
is(scalar(grep { defined get_grant($first, $_) } @of_old),
	5, 'the old registry grants worker IDs');
is(scalar(grep { defined get_grant($nodes[1], $_) } @of_new),
	5, 'the new registry grants worker IDs');
is(extend_grant($first, $of_old[0]) + extend_grant($nodes[1], $of_new[0]),
	2, 'both registries extend grants');
is($overlaps, 0, 'no two grants of both registries overlap');

# The second is promoted to the third, which nobody calls, and that to the
# fourth: two slices were granted from, or may have been.
my ($gone) = new_servers('long', 1);
my $third = standby_without($nodes[1], 'third');
get_grant($nodes[1], $gone);
$nodes[1]->stop('immediate');
$third->promote;
my $fourth = standby_without($third, 'fourth');
$third->stop('immediate');
promote($fourth);
my @fourth = new_servers('long', 5);
is(scalar(grep { defined get_grant($fourth, $_) } @fourth),
	5, 'the second and third failover: worker IDs are granted at once');
is(settings($fourth, 'long',
		'timeline, not_before[1] = 0, not_before[3] = not_before[4], not_before[2] < not_before[3]'),
	'4|t|t|t',
	'after two failovers, two slices are not granted');
is($overlaps, 0, 'no two grants overlap');

# The fourth failover comes back to the first slice: not before the lift has
# passed.  Those of the short scheme have passed.
my $fifth = standby_without($fourth, 'fifth');
my @fifth = new_servers('short', 3);
get_grant($fourth, $_) foreach @fifth;
is(distinct(@fifth), 3, '3 worker IDs are granted that the next standby does not get');
$fourth->stop('immediate');
promote($fifth, 'pgedge');
my ($refused) = new_servers('long', 1);
my ($worker_id, $error) = get_grant($fifth, $refused);
like($error,
	qr/ERROR:  55000: the registry does not grant worker IDs since its server was promoted to timeline 5$/m,
	'nobody confirmed the promotion: no worker ID');
confirm_promotion($fifth, 'leaf');
($worker_id, $error) = get_grant($fifth, $refused);
like($error,
	qr/ERROR:  53400: no worker ID is free\nDETAIL:  Grants might have been lost, .* gives none until /,
	'after more failovers than planned, no worker ID is granted');
my ($detail) = $error =~ /gives none until (.*)\.$/m;
cmp_ok(sql($fifth, "SELECT extract(epoch FROM '$detail' - now())"),
	'>', 90 * 60, 'the error says when worker IDs are granted again');

# The worker IDs of all slices have been granted now, with "short" times.
sub wait_for_grant ($node, $server, $database = undef)
{
	my $tries = 0;

	until (defined get_grant($node, $server, $database))
	{
		die 'none is granted' if $tries++ > 600;
		usleep(100_000);
	}
	return;
}
wait_for_grant($fifth, $_) foreach new_servers('short', 3);
is($overlaps, 0, 'no two grants overlap after the pause');

# Restored from a dump: the settings are there, and the grants are not, which
# continued in the database that it is of.
sql($fifth, "SELECT snowflake_registry.create(1, 40, 'cosid', new => true)");
my @early = new_servers('late', 3);
get_grant($fifth, $_) foreach @early;
my $dump = $fifth->basedir . '/dump.sql';
$fifth->command_ok([ 'pg_dump', '-d', $fifth->connstr('postgres'), '-f', $dump ],
	'pg_dump');
wait_for_grant($fifth, $_) foreach @fifth;
sql($fifth, 'CREATE DATABASE restored');
$fifth->command_ok(
	[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d',
		$fifth->connstr('restored'), '-f', $dump ],
	'pg_restore of the registry');
is( settings($fifth, 'short', 'first_worker_id, last_worker_id, grant_time, slices', 'restored'),
	'1|40|00:00:01|4',
	'the restored registry has its settings');
is($fifth->safe_psql('restored', 'SELECT count(*) FROM snowflake_registry.grants'),
	0, 'the restored registry has no grants');
extend_grant($fifth, $_) foreach @fifth;
my @restored = new_servers('short', 3);
($refused) = new_servers('late', 1);
get_grant($fifth, $_, 'restored') foreach $restored[0], $refused;
like((get_grant($fifth, $refused, 'restored'))[1],
	qr/since its server was promoted to timeline/, 'a promotion of its server is to be confirmed for it, too');
$fifth->safe_psql('restored', 'SELECT snowflake_registry.confirm_promotion(scheme) FROM snowflake_registry.registries');
like((get_grant($fifth, $refused, 'restored'))[1],
	qr/gives none until/, 'the restored registry grants nothing yet');
extend_grant($fifth, $_) foreach @fifth;
wait_for_grant($fifth, $_, 'restored') foreach @restored;
is(distinct(@restored), 3, 'the restored registry grants different worker IDs after the pause');
is($overlaps, 0, 'no two grants overlap');

# Restored from an older backup of the server, to the end of it.
$fifth->backup('old');
my @late = new_servers('late', 3);
get_grant($fifth, $_) foreach @late;
is(distinct(@early, @late), 6, 'worker IDs are granted before and after a backup');
my $sixth = PostgreSQL::Test::Cluster->new('sixth');
$sixth->init_from_backup($fifth, 'old');
$sixth->append_conf('postgresql.conf', "restore_command = 'false'");
$sixth->set_recovery_mode;
$sixth->start;
$sixth->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
confirm_promotion($sixth, 'leaf', 'pgedge', 'cosid');
is(scalar(grep { extend_grant($sixth, $_) } @early),
	0, 'a registry restored from a backup does not extend grants');
my @new = new_servers('late', 3);
is(scalar(grep { defined get_grant($sixth, $_) } @early, @new),
	6, 'a registry restored from a backup grants other worker IDs at once');
is($overlaps, 0, 'no two grants overlap');


is($overlaps, 0, "no two of $ranges ranges overlap");
cmp_ok($ranges, '>', 100, 'ranges were recorded');
done_testing();
