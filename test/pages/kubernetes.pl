# docs/kubernetes.md: the worker ID of a pod by its ordinal, and settings of a server
# in a container.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";
use Page;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $page = Page->claim('docs/kubernetes.md');
my ($build) = Page::commands($page->example('docker build'));
like(Page::slurp('Dockerfile'), qr/^#\t\Q$build\E$/m, 'the Dockerfile has the same command');
my ($patterns) = Page::slurp('Dockerfile') =~ /^COPY Makefile (.*) \/snowflake\/$/m;
my %copied = map { $_ => 1 } map { glob("$Page::top/$_") } split ' ', $patterns // '';
is(join(' ', grep { !$copied{$_} } glob("$Page::top/*.control $Page::top/*.sql")),
	'', 'the Dockerfile copies all control files and SQL scripts');
my ($command) = $page->example('containers:') =~ /^  - (exec .*)$/m;
my $node = new_server('main');

# A worker ID from ALTER SYSTEM, as in a volume that was copied
$node->safe_psql('postgres', 'ALTER SYSTEM SET snowflake.worker_id = 98');
$node->stop;
foreach my $pod ([ 'postgres-0', 1 ], [ 'shop-db-12', 13 ])
{
	my ($host, $worker) = @$pod;
	my $start = Page::replace($command,
		'exec docker-entrypoint.sh postgres' => q{pg_ctl -w -D '} . $node->data_dir . q{' -l '} . $node->logfile
		  . q{' -o "},
		'+ 1))' => '+ 1))" start');

	local $ENV{HOSTNAME} = $host;
	is(system_log('sh', '-c', $start), 0, "a server starts in $host");
	$node->_update_pid(1);
	is($node->safe_psql('postgres', 'SELECT worker_id FROM snowflake_stat'),
		$worker, "its worker ID is $worker, whatever its volume says");
	$node->stop;
}

# A registry that does not answer
$node->start;
$node->safe_psql('postgres', 'ALTER SYSTEM RESET snowflake.worker_id');
Page::configure($node, $page->take('snowflake.registry'),
	replace => { 'host=registry.example' => 'host=' . $node->host . ' port=1' });
is($node->safe_psql('postgres', 'SELECT worker_id IS NULL FROM snowflake_stat'),
	't', 'a server that has no grant yet starts');
$node->stop;

Page::all_taken();
done_testing();
