# Bacula on two servers that replicate its catalog to each other: two directors save files at
# the same time, and each restores what the other has saved, and continues to save it.

use Application;
use Bacula;
use SnowflakeTest;

my @names = ('first', 'second');
my %app = (first => Application->new);
my %bacula = (first => Bacula->new($app{first}));

# What both have by the same name is created on one: its storage and its media type.
$app{first}->run_ok('its tables are created', 'sh', "$Bacula::scripts/make_postgresql_tables");
is($bacula{first}->start('before'), 3, 'it starts');
my $before = $bacula{first}->use('before');
note($before);
like($before, qr/^files restored: a 1000 b 1005 d 5$/m, 'its answers are those of backups');
$bacula{first}->stop;

$app{second} = $app{first}->second;
$bacula{second} = Bacula->new($app{second}, $bacula{first}{files});
$app{$_}->convert_to('range') foreach @names;
# Its directors create tables, such as btemp301, to drop them soon.
$_->{published} = $_->sql(q{SELECT 'TABLE ' || string_agg(relid::regclass::text, ', ') FROM pg_stat_user_tables WHERE schemaname = 'public'}) foreach values %app;
Application::replicate(@app{@names});

# Each has a client, files, a pool and volumes of its own.
my %answers = both('range', 'use', map { $_ => $_ } @names);
is($answers{$_}, $before, "range: its answers on the $_ are the same") foreach @names;
Application::replicated('range', @app{@names});

%answers = both('range, exchanged', 'take_over', first => 'second', second => 'first');
note($answers{first});
foreach (@names)
{
	like($answers{$_}, qr/^restored: .*; R 4 T\nfiles restored: a 1000 b 1005 d 5\n/, "range: the $_ restores what the other has saved");
	like($answers{$_}, qr/^jobs: I 4 T; F 4 T; I 2 T\nerrors: $/m, "range: the $_ continues to save it");
}
Application::replicated('range, exchanged', @app{@names});
foreach (@names)
{
	unlike(slurp_file($app{$_}{node}->logfile), qr/conflict detected/, "range: no conflict in the log of the $_");
	$app{$_}->kinds_are('range');
	$app{$_}->keys_are('range', 'job.jobid', 'file.fileid', 'path.pathid', 'media.mediaid', 'client.clientid', 'log.logid');
}

Application::end_replication(@app{@names});
done_testing();

# Have both do something at the same time, each for what has a name.  Returns their answers.
sub both ($label, $does, %for)
{
	my %out = map { $_ => '' } @names;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($bacula{$_}->start($for{$_}), 3, "$label: it starts on the $_") foreach @names;
	my @runs = map { my $name = $_; IPC::Run::start(sub { print $bacula{$name}->$does($for{$name}); }, '>' => \$out{$name}) } @names;
	$_->finish foreach @runs;
	$bacula{$_}->stop foreach @names;
	return %out;
}
