# A subscriber is restored from a backup, as docs/backups.md has it, while clients insert on it
# and on its publisher: beside itself, without rows missing on it; and in its place, where rows
# are missing until it is copied again.

use Page;
use SnowflakeTest;

my $page = Page->section('docs/backups.md', 'Backups');
my $a = new_server('a', 'wal_level = logical', 'max_wal_senders = 4', 'snowflake.worker_id = 3');
my $b = new_primary('b', 'wal_retrieve_retry_interval = 100ms');
sql($b, 'ALTER SYSTEM SET snowflake.worker_id = 1');
$b->restart;
sql($_, q{
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
	CREATE TABLE own (id bigint PRIMARY KEY DEFAULT snowflake_nextval())}) foreach $a, $b;
sql($a, 'CREATE PUBLICATION p FOR TABLE t');
my $subscribe = "CREATE SUBSCRIPTION s CONNECTION '" . $a->connstr . " dbname=postgres' PUBLICATION p";
sql($b, $subscribe);
$b->wait_for_subscription_sync($a, 's');

# Wait until more rows have been inserted.
sub more_rows ($node, $table)
{
	my $now = rows($node, $table);

	wait_until_true($node, "SELECT count(*) >= $now + 100 FROM $table");
	return;
}

sub rows { return sql($_[0], "SELECT count(*) FROM $_[1]"); }

# Beside the server, by the page's commands after that of pgBackRest
my $of_a = start_writing($a, 't');
my $of_b = start_writing($b, 'own');
more_rows($a, 't');
$b->backup('backup');
my $then = rows($b, 't');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($b, 'backup');
my (undef, @commands) = Page::commands($page->example('--archive-mode=off', '/var/lib/postgresql/15/copy' => $copy->data_dir));
is(system_log('sh', '-c', $_), 0, $_) foreach @commands;

# The server is not connected at this moment, so a copy could take its place.
sql($b, 'ALTER SUBSCRIPTION s DISABLE');
wait_until_true($a, 'SELECT NOT active FROM pg_replication_slots');
$copy->start;
more_rows($a, 't');
my @drop = $page->{text} =~ /`((?:ALTER|DROP) SUBSCRIPTION s\b[^`]*)`/g;
is(scalar(@drop), 3, 'the page has the statements that drop a subscription of a copy');
sql($copy, $_) foreach @drop;
sql($b, 'ALTER SUBSCRIPTION s ENABLE');
my $conf = $copy->data_dir . '/postgresql.conf';
is(system_log('sed', '-i', '/^max_logical_replication_workers = 0$/d', $conf), 0, 'the line is removed');
$copy->restart;
is(sql($copy, 'SELECT worker_id FROM snowflake_stat'), 2, 'a copy has its own worker ID');
my $last = sql($copy, 'SELECT max(id) FROM own');
my $of_copy = start_writing($copy, 'own');
more_rows($_, 'own') foreach $b, $copy;
more_rows($a, 't');
stop_writing($of_a);
stop_writing($of_copy);
$a->wait_for_catchup('s');
cmp_ok(rows($a, 't'), '>', $then + 200, 'clients have inserted');
is(rows($b, 't'), rows($a, 't'), 'a copy takes no rows from the server');
cmp_ok(rows($copy, 't'), '<=', rows($a, 't') - 100, 'a copy receives no rows');
my %seen;
my @equal = grep { $seen{$_}++ } map { split /\n/, sql($_, "SELECT id FROM own WHERE id > $last") } $b, $copy;
is(scalar(@equal), 0, 'a server and its copy generate no equal IDs');
$copy->stop;

# In place, at the time of the backup.  a is in use again.
stop_writing($of_b);
$b->stop;
my $restored = server_of_backup('restored', $b, 'backup');
$of_a = start_writing($a, 't');
more_rows($a, 't');
$a->wait_for_catchup('s');
cmp_ok(rows($restored, 't'), '<=', rows($a, 't') - 200, 'a subscriber that is restored lacks rows, as the page says');
sql($restored, 'DROP SUBSCRIPTION s; TRUNCATE t');
sql($restored, $subscribe);
$restored->wait_for_subscription_sync($a, 's');
more_rows($a, 't');
stop_writing($of_a);
$a->wait_for_catchup('s');
is(rows($restored, 't'), rows($a, 't'), 'when it has been copied again, it has all rows');

sql($restored, 'DROP SUBSCRIPTION s');
done_testing();
