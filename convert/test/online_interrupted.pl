# snowflake_convert_online() by the owner of the tables, who is no superuser, interrupted
# in each phase while it waits: by a cancel, by the end of its session, and by SIGKILL of
# it and of the postmaster.  The same call continues, and undo takes everything back.
#
# Each run has one of these ways for each phase; SNOWFLAKE_WAYS in the environment is how
# many (1 to 4), SNOWFLAKE_SEED repeats a run.

use SnowflakeTest::Online;
use SnowflakeTest;

my $norders = 300;
my $nways = $ENV{SNOWFLAKE_WAYS} // 1;
my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1e6));

note "seed $seed";
my $node = new_server('main', 'fsync = off', 'wal_level = logical', 'restart_after_crash = on');

# Everything in this database is done by its owner.
sub own_database ($name, $template)
{
	sql($node, "CREATE DATABASE $name OWNER regress_owner TEMPLATE $template");
	sql($node, "ALTER DATABASE $name SET role = regress_owner");
	return;
}

sql($node, 'CREATE ROLE regress_reader; CREATE ROLE regress_owner LOGIN');
own_database('shop', 'template0');
$node->safe_psql('shop', 'RESET role; CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_convert');
create_shop($node, 'shop', $norders);
$node->safe_psql('shop', q{
	ALTER TABLE orders ALTER id DROP DEFAULT;
	DROP SEQUENCE orders_id_seq;
	ALTER TABLE orders ALTER id ADD GENERATED ALWAYS AS IDENTITY;
	SELECT setval('orders_id_seq', max(id)) FROM orders});
my $query = q{
	SELECT attidentity, c.oid, pg_get_serial_sequence('orders', 'id')
	FROM pg_attribute, pg_class c WHERE attrelid = 'orders'::regclass AND attname = 'id' AND c.oid = 'orders_id_seq'::regclass};
my $identity = $node->safe_psql('shop', $query);
my $before = describe_shop($node, 'shop');

# The server takes a cancel that comes together with the end of lock_wait for the latter, after
# which the call tries again.  On a busy machine that happens, so the cancel is repeated.
sub cancel_call ($pid)
{
	my $call = "FROM pg_stat_activity WHERE pid = $pid AND state = 'active' AND query LIKE 'CALL%'";

	foreach (1 .. 30)
	{
		return if sql($node, "SELECT pg_cancel_backend(pid) $call") eq '';
		for (my $end = time + 5; time < $end; sleep 0.1)
		{
			return if sql($node, "SELECT count(*) $call") eq '0';
		}
	}
	return;
}

# How a call is interrupted, and what to do when it has ended.
my @ways = ([ 'pg_cancel_backend()', \&cancel_call ],
	[ 'pg_terminate_backend()', sub { sql($node, "SELECT pg_terminate_backend($_[0])") } ],
	[ 'SIGKILL of the session',
	  sub { crash_process($node, $_[0]) } ],
	# The call ends by itself.  The other session is stopped: if it ended, too, and first,
	# the call could go on for a moment, and get as far as the swap.
	[ 'SIGKILL of the postmaster',
	  sub {
		  my @others = split /\n/, sql($node, qq{
			SELECT pid FROM pg_stat_activity WHERE datname = 'shop' AND backend_type = 'client backend' AND pid <> $_[0]});
		  kill STOP => @others;
		  $node->kill9;
		  return sub { kill KILL => @others; kill_postmaster($node); $node->start };
	  } ]);

# Where: the phase that is complete, what another session does, and how the conversion
# waits for it: what it says, or an event.
my @points = (
	{ name => 'prepare', session => 'BEGIN; SELECT FROM orders', says => qr/waiting to lock table/ },
	{ name => 'backfill', until => 'prepare', session => 'BEGIN; SELECT FROM orders WHERE id = 7 FOR UPDATE', says => qr/waiting to copy locked rows/ },
	{ name => 'indexes', until => 'backfill', session => 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM audit', event => 'virtualxid', invalid => 1 },
	{ name => 'an index that is invalid', session => 'BEGIN; SELECT FROM orders, lines, events', event => 'virtualxid', invalid => 1 },
	{ name => 'foreign keys', until => 'indexes', session => 'BEGIN; UPDATE events SET kind = kind; UPDATE orders SET note = note WHERE id = 1', says => qr/waiting to lock table/ },
	{ name => 'a foreign key that is not valid', by_hand => 1, session => 'BEGIN; LOCK TABLE orders, lines IN SHARE UPDATE EXCLUSIVE MODE', event => 'relation' },
	{ name => 'swap', until => 'foreign keys', session => 'BEGIN; SELECT FROM orders', says => qr/waiting to lock table/ },
	{ name => 'the second swap', by_hand => 1, session => 'BEGIN; SELECT FROM orders', says => qr/waiting to lock table/, swapped => 1 },
	{ name => 'default', session => 'SELECT 1', until_inside => 'swap', says => qr/waiting to set the default/, swapped => 1 });

# What the session of the call is like after an error.
my $state = q{SELECT format('%s, %s, %s, %s locks', current_user, current_setting('search_path'), current_setting('lock_timeout'),
	(SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype IN ('advisory', 'relation') AND relation IS DISTINCT FROM 'pg_locks'::regclass))};

# A session that does something and stays.
sub start_session ($statements)
{
	my $session = $node->background_psql('shop', on_error_stop => 0);

	$session->query_safe($_) foreach split /; /, $statements;
	return $session;
}

# Interrupt a call at a point.
sub interrupt ($point, $way)
{
	my $name = "$point->{name}, $way->[0]";
	my $session = start_session($point->{session});

	convert_online($node, 'shop', "'orders', until => '$point->{until_inside}'") if defined $point->{until_inside};
	my $call = start_converting($node, 'shop', "'orders'", $point->{says}, connection => 'user=regress_owner',
		before => [q{SET lock_timeout = '12s'}], after => [$state]);
	my $pid = converting_pid($node);
	!defined $point->{event}
	  || $node->poll_query_until('postgres', "SELECT wait_event = '$point->{event}' FROM pg_stat_activity WHERE pid = $pid")
	  or die "the conversion does not wait for $point->{event}";
	note $name;
	my $then = $way->[1]->($pid);
	my $err = finish_converting($call);
	$then->() if ref $then eq 'CODE';
	like($err, qr/ERROR:  canceling statement due to user request|terminating connection|server closed the connection/, "$name: the call ends");
	is(scalar(() = $err =~ /ERROR/g), $err =~ /canceling/ ? 1 : 0, "$name: there is no other error") or diag($err);
	is($call->{out}, qq{regress_owner, "\$user", public, 12s, 0 locks\n}, "$name: the session is as before") if $way->[0] =~ /cancel/;
	eval { $session->quit };
	is($node->safe_psql('shop', 'SELECT count(*) FROM pg_index WHERE NOT indisvalid'), $point->{invalid} // '0', "$name: indexes that are invalid");
	is(shop_is_whole($node, 'shop', $norders), '', "$name: no row is lost or changed");
	return;
}

# Undo, in a copy of the database.
sub undo_copy ($name)
{
	own_database('copy', 'shop');
	unlike(sql_error($node, "SELECT snowflake_convert_undo('orders')", dbname => 'copy'), qr/ERROR/, "$name: undo");
	is(describe_shop($node, 'copy'), $before, "$name: after undo, all is as before");
	is(nothing_is_left($node, 'copy'), '', "$name: after undo, nothing is left");
	sql($node, 'DROP DATABASE copy');
	return;
}

foreach my $i (0 .. $#points)
{
	my $point = $points[$i];

	if (defined $point->{until})
	{
		my $err = convert_online($node, 'shop', "'orders', until => '$point->{until}'", connection => 'user=regress_owner');
		unlike($err, qr/ERROR/, "the same call completes phase $point->{until}") or diag($err);
	}
	$node->safe_psql('shop', $node->safe_psql('shop', q{SELECT statement FROM snowflake_convert_plan('orders') WHERE state LIKE 'next%'})) if $point->{by_hand};

	# A session that is older than the swap is there once.
	interrupt($point, $ways[ ($seed + $i + $_) % @ways ]) foreach 0 .. (defined $point->{until_inside} ? 1 : $nways) - 1;
	undo_copy($point->{name}) unless $point->{swapped};
}
my $err = convert_online($node, 'shop', "'orders'", connection => 'user=regress_owner');
unlike($err, qr/ERROR/, 'the same call completes the conversion') or diag($err);
is(shop_is_whole($node, 'shop', $norders), '', 'no row is lost or changed');
is(nothing_is_left($node, 'shop'), '', 'nothing is left');
is($node->safe_psql('shop', $query), $identity, 'the identity and its sequence are those that they were');
is($node->safe_psql('shop', q{SELECT kind FROM snowflake_sequences WHERE sequence = 'orders_id_seq'}), 'snowflake', 'the sequence has its kind');

done_testing();
