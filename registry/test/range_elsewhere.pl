# A sequence that is local on one server, and of kind range on another one.

use SnowflakeTest;

my $registry = new_range_registry('registry', 'postgres');
my ($a, $b) = map { new_server($_, registry_conf($registry), "snowflake.server_name = '$_'") } 'a', 'b';

sub query { return sql($_[0], $_[1]); }

my $problem = q{SELECT string_agg(sequence, ' ' ORDER BY sequence) FROM snowflake_sequences WHERE problem = 'local, but other servers are granted its numbers: call snowflake_set_sequence_kind()'};

query($_, q{CREATE TABLE t (id serial); CREATE TABLE "T's" (id serial); CREATE TABLE own (id serial); CREATE TABLE ids (id bigserial); CREATE ROLE reader}) foreach $a, $b;
query($a, q{SELECT snowflake_set_sequence_kinds(ARRAY['t_id_seq', '"T''s_id_seq"', 'own_id_seq']::regclass[], 'range');
	INSERT INTO t DEFAULT VALUES; INSERT INTO "T's" DEFAULT VALUES; INSERT INTO own DEFAULT VALUES});
query($a, q{SELECT snowflake_set_sequence_kind('own_id_seq', 'local')});
query($b, q{SELECT snowflake_set_sequence_kind('ids_id_seq')});

# The servers ask for the names soon after they were started, also one that has none.
$_->restart foreach $a, $b;
ok($b->poll_query_until('postgres', $problem, q{"T's_id_seq" own_id_seq t_id_seq}), 'the view names sequences that are local, and of kind range elsewhere')
  or diag(query($b, 'SELECT * FROM snowflake_sequences'));
is(query($b, "SET ROLE reader; $problem"), '', '... to who may use them');
is(query($a, $problem), '', '... not those that this server itself was granted numbers of');
my $log = -s $b->logfile;
query($b, q{INSERT INTO t DEFAULT VALUES}) foreach 1 .. 2;
is(scalar(() = slurp_file($b->logfile, $log) =~ /WARNING:  sequence "t_id_seq" is local, but other servers are granted its numbers/g), 1, 'its use is logged once');

is(query($registry, qq{SELECT count(*) FROM snowflake_registry.get_range_names(NULL, '$_', gen_random_uuid(), 0, 100)}), $_ eq 'a' ? 0 : 3,
	"with another directory, as after a failover, server $_ is told only of others") foreach 'a', 'b';

# The next process asks for the names again.
sub end_worker { query($b, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'snowflake ranges'}); }
query($registry, q{UPDATE snowflake_registry.held_ranges SET used_at = used_at - interval '8 days' WHERE name ~ 'own'});
end_worker();
ok($b->poll_query_until('postgres', $problem, q{"T's_id_seq" t_id_seq}), 'what nobody else was granted numbers of for a week is no problem');
query($b, q{INSERT INTO t DEFAULT VALUES});
is(scalar(() = slurp_file($b->logfile, $log) =~ /WARNING:  sequence "t_id_seq" is local/g), 1, 'what was logged is not logged again with the next names');

# If the answer is none, ranges do not suffer.
query($registry, 'ALTER TABLE snowflake_registry.range_sequences DROP CONSTRAINT range_sequences_last_check');
sub set_last { query($registry, "UPDATE snowflake_registry.$_ SET last = $_[0] WHERE name ~ 'T'") foreach 'range_sequences', 'held_ranges'; }
my $called = -s $registry->logfile;
set_last(0);
end_worker();
$registry->wait_for_log(qr/get_range_names.*\n.*[Pp]arameters: \$1 = '\{\}'/, $called);
query($b, q{SELECT snowflake_set_sequence_kind('t_id_seq', 'range')});
unlike(slurp_file($b->logfile, $log), qr/could not call the registry/, 'names of others that cannot be learned are no failure of ranges');
set_last(2147483647);
is(query($b, $problem), q{"T's_id_seq"}, 'with the kind, the problem ends');

# Names that the registry cannot know, as they are not UTF8.  In WIN1252, \x81 is no character.
query($b, "CREATE DATABASE $_ TEMPLATE template0 ENCODING '$_' LOCALE 'C'") foreach 'sql_ascii', 'win1252';
foreach my $database ('sql_ascii', 'win1252')
{
	my $encoding = "SET client_encoding = '$database';";

	$b->safe_psql($database, qq{$encoding CREATE EXTENSION snowflake; CREATE SEQUENCE "local\x81";
		SET snowflake.default_sequence_kind = 'range'; CREATE SEQUENCE "range\x81"; CREATE SEQUENCE dropped});
	my ($rc, $numbers, $failed) = $b->psql($database, qq{$encoding SELECT nextval('"local\x81"')});
	is("$numbers $failed", '1 ', "$database: a local sequence has numbers");
	($rc, $numbers, $failed) = $b->psql($database, 'SELECT count(*) FROM snowflake_sequences');
	is("$numbers $failed", '3 ', '... the view can be read');

	# As a process sees it that has read its label before.
	$b->safe_psql($database, q{DELETE FROM pg_sequence WHERE seqrelid = 'dropped'::regclass});
}
query($registry, q{SELECT snowflake_registry.stop_ranges('a test')});
becomes_true($registry, q{SELECT count(*) = 1 FROM snowflake_registry.range_clients c, snowflake_registry.range_state s WHERE c.server_name = 'b' AND c.reported = s.incarnation},
	'neither names that are not UTF8 nor a sequence that is dropped meanwhile keep the report from being complete');

done_testing();
