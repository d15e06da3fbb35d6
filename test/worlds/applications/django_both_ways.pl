# A Django site on two servers that replicate to each other, both of them in use, as
# docs/applications.md has it.

use Application;
use DjangoSite;
use Page;
use SnowflakeTest;

my $page = Page->claim('docs/applications.md', 'Two servers with Django');
my $registry = Application::registry_of_application();
my ($on_a, $on_b) = map { Application->new(name => $_, registry => $registry) } 'a', 'b';
my ($a, $b) = map { $_->{node} } $on_a, $on_b;
my %address = (
	'host=10.0.0.1 dbname=site user=replicator' => quoted($a->connstr('site') . ' ' . conninfo_user()),
	'host=10.0.0.2 dbname=site user=replicator' => quoted($b->connstr('site') . ' ' . conninfo_user()));

sql($registry, "SELECT snowflake_registry.add_database('site')");
sql($a, 'CREATE DATABASE site OWNER regress_app');
$a->safe_psql('site', 'GRANT CREATE ON SCHEMA public TO regress_app');
$_->{env}{PGDATABASE} = 'site' foreach $on_a, $on_b;

my $site_a = DjangoSite->new($on_a);
my $site_b;
$site_a->run_ok('its tables are created', 'migrate');
my $before = $site_a->use('before');

# Use the site on both servers at once, and see that both have the same afterwards.
sub both_work ($label, $name)
{
	my @uses = map { $_->start_use("$name-" . $_->{app}{node}->name) } $site_a, $site_b;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(Application::finish_ok($_), $before, "$label: the answers are the same") foreach @uses;
	$a->wait_for_catchup('b_from_a');
	$b->wait_for_catchup('a_from_b');
	is(rows($on_b), rows($on_a), "$label: both have the same rows");
	unlike(slurp_file($_->logfile), qr/duplicate key|conflict detected|integer out of range/, "$label: no conflict on " . $_->name) foreach $a, $b;
	return;
}

# What the replicated tables have
sub rows ($app)
{
	return $app->sql($app->sql(q{
		SELECT string_agg(format('SELECT %L, count(*), sum(hashtextextended(t::text, 0)) FROM %I t', tablename, tablename), ' UNION ALL ') || ' ORDER BY 1'
		FROM pg_publication_tables}));
}

sub quoted { return $_[0] =~ s/'/''/gr; }

# The page's steps
my $tables = $page->example('ALTER PUBLICATION');
Page::run($a, $page->take('CREATE PUBLICATION'), dbname => 'site');
$a->safe_psql('site', $tables);
my $copy = Page::replace($page->take('pg_dump')->{text},
	'-h 10.0.0.1 site' => "-d '" . $a->connstr('site') . "'",
	'host=10.0.0.1 dbname=site user=replicator' => $address{'host=10.0.0.1 dbname=site user=replicator'});
foreach (Page::commands($copy))
{
	local %ENV = (%ENV, PGHOST => $b->host, PGPORT => $b->port, PGOPTIONS => '-c client_min_messages=error');

	command_ok([ 'sh', '-c', "set -e; $_" ], 'the page has a copy made: ' . (split)[0]);
}
$a->safe_psql('site', Page::replace($page->take('a_from_b CONNECTION')->{text},
		'host=10.0.0.2 dbname=site user=replicator' => $address{'host=10.0.0.2 dbname=site user=replicator'}));
$site_b = $site_a->elsewhere($on_b);

# Both in use
both_work('a first time', 'one');
both_work('a second time', 'two');

# Migrations, and one that changes rows
my $refresh = $page->example('REFRESH') =~ s/ *--.*//r;
$site_a->upgrade;
$site_a->run_ok('a is migrated', 'migrate', 'shop', '0002');
$a->wait_for_catchup('b_from_a');
$site_b->run_ok('b is migrated', 'migrate', 'shop', '0002');
$_->safe_psql('site', $tables) foreach $a, $b;
$a->safe_psql('site', $refresh);
$b->safe_psql('site', $refresh =~ s/a_from_b/b_from_a/r);
$site_a->run_ok('rows are changed on a', 'migrate');
$site_b->run_ok('b knows', 'migrate', '--fake');
both_work('after a migration', 'three');

foreach my $node ($a, $b)
{
	$node->restart;
	both_work('after a restart of ' . $node->name, 'after-' . $node->name);
}

$a->safe_psql('site', 'DROP SUBSCRIPTION a_from_b');
$b->safe_psql('site', 'DROP SUBSCRIPTION b_from_a');
Page::all_taken();
