# docs/keys.md: its examples give what they say, and its recipe for two ticket
# servers works word for word.  A Sqid that takes long can be cancelled.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/keys.md');
my $first = new_server('first', "timezone = 'UTC'");

my ($create_odd, $create_even, $draw, $set_odd, $set_even, $look) =
  map { $_->{text} } Page->section('docs/keys.md', 'Ticket servers')->rest('sql');
like($look, qr/last_value % 2 AS odd/, 'the page has all steps of the ticket servers');
like(Page::run($first, $page->take('objectid_timestamp')),
	qr/^507f191e810c19729de860ea\|2012-10-17 20:46:22\+00\n[0-9a-f]{24}\|2/,
	'objectid_timestamp() returns what the page shows');
Page::run($first, $_) foreach $page->rest('sql');
is(sql($first, "SELECT hashids_encode_array(ARRAY[x'1ff1a'::bigint])"), '9rNvZ', 'encodeHex');

# Two ticket servers
my $second =
  new_server('second', 'wal_level = replica', 'max_wal_senders = 4');
my %seen;
my $twice = 0;
my $greatest = 0;

# Clients of servers draw tickets at the same time.
sub draw ($name, @nodes)
{
	my @clients;

	(my $query = $draw) =~ s/;$/ FROM generate_series(1, 2000)/m;
	push @clients, start_queries($_, ($query) x 4) foreach @nodes;
	is(finish_queries(@clients), 4 * @nodes, "clients draw tickets $name");
	foreach my $ticket (map { split /\n/, $_->{out} } @clients)
	{
		$twice++ if $seen{$ticket}++;
		$greatest = $ticket if $ticket > $greatest;
	}
	return;
}

# Set a server's next ticket above a number, and look at it.
sub set_above ($node, $block, $number, $odd)
{
	$block =~ s/72157623227190423/$number/ or die 'the recipe has no number';
	sql($node, $block);
	my ($next, $is_odd) = split /\|/, sql($node, $look);
	ok($next > $number && $next <= $number + 2 && $is_odd == $odd,
		"the next ticket above $number is $next");
	return;
}

sql($first, $create_odd);
sql($second, $create_even);
is(join(' ', map { sql($first, $draw) } 1 .. 3), '1 3 5', 'the first server has odd numbers');
is(join(' ', map { sql($second, $draw) } 1 .. 3), '2 4 6', 'the second server has even numbers');
$seen{$_}++ foreach 1 .. 6;
draw('of both', $first, $second);

# One is down, and comes back after a crash
$second->backup('backup');
draw('of both', $first, $second);
kill_postmaster($second);
draw('while one is down', $first);
$second->start;
draw('of both again', $first, $second);
set_above($second, $set_even, $greatest, 0);
draw('after it caught up', $first, $second);

# The numbers of MariaDB, which does the same by auto_increment_offset
my $number = '72157623227190423';
set_above($first, $set_odd, $number, 1);
set_above($second, $set_even, $number, 0);
is(sql($first, $draw) . ' ' . sql($second, $draw),
	'72157623227190425 72157623227190424', 'the next tickets are above a given number');
$seen{72157623227190424}++;
$seen{72157623227190425}++;
foreach my $number (72157623227195000, 72157623227195001)
{
	set_above($first, $set_odd, $number, 1);
	set_above($second, $set_even, $number, 0);
}
draw('above it', $first, $second);

# One is restored from a backup
$second->stop;
my $restored = server_of_backup('restored', $second, 'backup');
set_above($restored, $set_even, $greatest, 0);
draw('after one was restored', $first, $restored);
is($twice, 0, keys(%seen) . ' tickets of two servers have no duplicate');

# What the page warns of
sql($restored, "SELECT setval('tickets', $greatest)") if $greatest % 2;
sql($restored, "SELECT setval('tickets', $greatest + 1)") unless $greatest % 2;
is(sql($restored, $draw) % 2, 1, 'setval() alone makes tickets of the second server odd');

# A long blocklist, which each place of a long text is compared with
my $start = time;
sql_fails($first, q{
		SET statement_timeout = '1s';
		SELECT sqids_encode_array(array_agg(9223372036854775807 - i), 0, NULL,
			(SELECT array_agg('a' || lpad(to_hex(w), 7, '0')) FROM generate_series(1, 1000000) w))
		FROM generate_series(1, 10000) i},
	qr/ERROR:  57014/, 'a Sqid with a million words to avoid can be cancelled');
cmp_ok(time - $start, '<', 15, 'it ends soon after that');

Page::all_taken();
