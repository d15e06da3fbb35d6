# A reader that asks for new rows again and again, as docs/guarantees.md has it, gets each row
# once, while transactions overlap; one that remembers the greatest ID misses some.

use Page;
use SnowflakeTest;

my $page = Page->claim('docs/guarantees.md', 'Read new rows');
my $node = new_server('main', 'max_prepared_transactions = 2');
my $query = $page->example('SELECT xid, id, event');
my ($xid, $id, $greatest) = (0, 0, 0);
my (@read, %naive);

sql($node, $page->example('CREATE TABLE outbox'));

# Ask once, by the page and by the greatest ID; returns the number of rows.
sub read_new
{
	my @rows = split /\n/, sql($node, $query =~ s/\('0', 0\)/('$xid', $id)/r =~ s/LIMIT 1000/LIMIT 200/r);
	my $line;

	foreach my $row (@rows)
	{
		($xid, $id, $line) = split /\|/, $row;
		push @read, $line;
	}
	foreach my $row (split /\n/, sql($node, "SELECT id, event FROM outbox WHERE id > $greatest ORDER BY id"))
	{
		($greatest, $line) = split /\|/, $row;
		$naive{$line} = 1;
	}
	return scalar(@rows);
}

# One transaction is open, another is prepared, and a later one commits.
my $open = $node->background_psql('postgres');
$open->query_safe(q{BEGIN; INSERT INTO outbox (event) VALUES ('open')});
sql($node, q{BEGIN; INSERT INTO outbox (event) VALUES ('prepared'); PREPARE TRANSACTION 'p'});
sql($node, q{INSERT INTO outbox (event) VALUES ('later')});
is(read_new(), 0, 'a row is not read while an older transaction is open');
$open->query_safe('COMMIT');
is(read_new(), 1, 'the row of that transaction is read when it has committed');
sql($node, q{COMMIT PREPARED 'p'});
is(read_new(), 2, 'rows after a prepared transaction are read when it has committed');
is(join(' ', @read), 'open prepared later', 'the reader has got each of them');
is(join(' ', sort keys %naive), 'later', 'a reader that remembers the greatest ID has missed rows that were committed later');
$open->quit;

# Clients whose transactions overlap: with savepoints, some of which are rolled back, with IDs
# from an earlier transaction, and with rollbacks.
sql($node, 'CREATE TABLE finished ()');
my @clients = start_queries($node, map { qq{
	DO \$\$
	DECLARE
		early bigint;
	BEGIN
		FOR i IN 1 .. 150 LOOP
			early := snowflake_nextval();
			COMMIT;
			INSERT INTO outbox (event) VALUES ('$_ ' || i || ' first');
			PERFORM pg_sleep(random() / 50);
			BEGIN
				INSERT INTO outbox (event) VALUES ('$_ ' || i || ' second');
				PERFORM 1 / (i % 3);
			EXCEPTION WHEN division_by_zero THEN
			END;
			INSERT INTO outbox (id, event) VALUES (early, '$_ ' || i || ' early');
			IF i % 5 = 0 THEN
				ROLLBACK;
			ELSE
				COMMIT;
			END IF;
		END LOOP;
		INSERT INTO finished DEFAULT VALUES;
	END
	\$\$} } 1 .. 4);
foreach (1 .. 2000)
{
	read_new();
	last if sql($node, 'SELECT count(*) FROM finished') == 4;
}
is(finish_queries(@clients), 4, 'clients insert');
while (read_new()) { }
my @all = split /\n/, sql($node, 'SELECT event FROM outbox');
cmp_ok(scalar(@all), '>', 1000, 'there are rows');
is(join("\n", sort @read), join("\n", sort @all), 'the reader gets each row once');
note(@all - keys(%naive) . ' rows missed by the greatest ID');

Page::all_taken();
