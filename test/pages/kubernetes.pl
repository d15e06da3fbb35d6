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
my @sources = Page::slurp('Dockerfile') =~ /^COPY ([\w.]+) \/snowflake\/[\w.]+$/mg;
is(join(' ', grep { !-d "$Page::top/$_" } @sources), '', 'the folders that it copies are there');
my %folder = map { $_ => 1 } @sources;
my ($extensions, $more) = Page::slurp('Makefile') =~ /^EXTENSIONS = (.*)\nFOLDERS = \$\(EXTENSIONS\) (.*)$/m;
is(join(' ', grep { !$folder{$_} } 'src', 'shared', split ' ', "$extensions $more"), '', 'it copies all folders that make needs');
my ($command) = $page->example('containers:') =~ /^  - (exec .*)$/m;
my @volume = Page::commands($page->example('DESTDIR=/installed'));
my $paths = $page->example('extension_control_path');
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

# The files in a volume, from PostgreSQL 18 on
SKIP:
{
	skip 'there is no extension_control_path before PostgreSQL 18', 7
	  if $node->pg_version->major < 18;

	my $dir = PostgreSQL::Test::Utils::tempdir . '/extensions';
	is(shift @volume, 'make && make install DESTDIR=/installed', 'the page builds the extension');
	foreach my $command (map { s{/installed\$}{\$}gr =~ s{/extensions/}{$dir/}gr } @volume)
	{
		is(system_log('sh', '-ec', $command), 0, $command =~ s{\Q$dir\E}{/extensions}gr);
	}

	# Whether the server takes these files, and not the installed ones, is seen in the
	# comment, and in the library that is mapped.
	my $control = "$dir/snowflake/share/extension/snowflake.control";
	my $text = slurp_file($control);
	$text =~ s/^comment = .*/comment = 'from the volume'/m or die 'no comment';
	unlink $control;
	append_to_file($control, $text);

	my $pod = PostgreSQL::Test::Cluster->new('pod');
	$pod->init;
	$pod->append_conf('postgresql.conf',
		Page::replace($paths, '$system:/extensions' => "$dir", '/share\'' => '/share:$system\'',
			'$libdir:/extensions' => $dir, '/lib\'' => '/lib:$libdir\''));
	$pod->start;
	$pod->safe_psql('postgres', 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_registry');
	is( $pod->safe_psql('postgres', q{
			SELECT obj_description(oid, 'pg_extension'), (SELECT count(DISTINCT id) FROM snowflake_nextval(10000) id)
			FROM pg_extension WHERE extname = 'snowflake'}),
		'from the volume|10000',
		'the extension of the volume is created, and generates IDs');
	my %mapped = map { /(\/\S*\bsnowflake\S*\.so)/ ? ($1 => 1) : () }
	  split /\n/, slurp_file('/proc/' . $pod->{_pid} . '/maps');
	is(join(' ', keys %mapped), "$dir/snowflake/lib/snowflake.so", 'the library of the volume is preloaded');
	my $greatest = $pod->safe_psql('postgres', 'SELECT snowflake_nextval()');
	kill_postmaster($pod);
	$pod->start;
	is($pod->safe_psql('postgres', "SELECT snowflake_nextval() > $greatest"), 't', 'IDs continue after a crash');
	$pod->stop;
}

Page::all_taken();
done_testing();
