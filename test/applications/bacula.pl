# Bacula, whose catalog is in the database: backups, lists, a restore, an end of volumes.
# It holds IDs in 32 bits.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../perl";
use Application;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $app = Application->new;
my $dir = PostgreSQL::Test::Utils::tempdir_short;
my %port = map { $_ => PostgreSQL::Test::Cluster::get_free_port() } 'dir', 'sd', 'fd';
my $scripts = '/usr/share/bacula-director';

# The script's own way to name the database, and to call psql
$app->{env}{db_name} = 'app';

# The three programs, with a client, files, a pool and jobs of a name
sub configure
{
	my ($name) = @_;
	my $common = "WorkingDirectory = $dir/work\nPid Directory = $dir/work\n";
	my $messages = "Messages {\n Name = Standard\n append = $dir/messages = all\n catalog = all\n}\n";
	my %text = (
		dir => qq{Director {\n Name = dir\n DIRport = $port{dir}\n QueryFile = "/etc/bacula/scripts/query.sql"\n $common Password = secret\n Messages = Standard\n DirAddress = 127.0.0.1\n}
Catalog { Name = Catalog; dbname = app; dbuser = regress_app; dbpassword = ""; DB Address = "$app->{env}{PGHOST}"; DB Port = $app->{env}{PGPORT} }
Storage {\n Name = files\n Address = 127.0.0.1\n SDPort = $port{sd}\n Password = secret\n Device = files\n Media Type = files\n}
Client {\n Name = $name-fd\n Address = 127.0.0.1\n FDPort = $port{fd}\n Catalog = Catalog\n Password = secret\n}
FileSet {\n Name = $name\n Include {\n Options { signature = MD5 }\n File = $dir/$name\n }\n}
Pool {\n Name = $name\n Pool Type = Backup\n Label Format = "$name-"\n Maximum Volume Jobs = 1\n Recycle = yes\n}
JobDefs {\n Name = all\n Client = $name-fd\n FileSet = $name\n Storage = files\n Pool = $name\n Messages = Standard\n}
Job {\n Name = backup-$name\n JobDefs = all\n Type = Backup\n Level = Full\n Accurate = yes\n}
Job {\n Name = restore-$name\n JobDefs = all\n Type = Restore\n Where = "$dir/restored"\n}
$messages},
		sd => qq{Storage {\n Name = sd\n SDPort = $port{sd}\n SDAddress = 127.0.0.1\n $common}
Director {\n Name = dir\n Password = secret\n}
Device {\n Name = files\n Media Type = files\n Archive Device = $dir/volumes\n LabelMedia = yes\n Random Access = yes\n AutomaticMount = yes\n RemovableMedia = no\n AlwaysOpen = no\n}
Messages {\n Name = Standard\n director = dir = all\n}\n},
		fd => qq{FileDaemon {\n Name = fd\n FDport = $port{fd}\n FDAddress = 127.0.0.1\n $common}
Director {\n Name = dir\n Password = secret\n}
Messages {\n Name = Standard\n director = dir = all\n}\n},
		console => qq{Director {\n Name = dir\n DIRport = $port{dir}\n address = 127.0.0.1\n Password = secret\n}\n});

	foreach (keys %text)
	{
		unlink "$dir/$_.conf";
		append_to_file("$dir/$_.conf", $text{$_});
	}
	return;
}

sub console
{
	my (@commands) = @_;
	my ($in, $out) = (join("\n", @commands, 'quit', ''), '');

	local %ENV = (%ENV, %{ $app->{env} });
	IPC::Run::run([ 'bconsole', '-n', '-c', "$dir/console.conf" ], '<' => \$in, '>&' => \$out, IPC::Run::timeout(300));
	return $out;
}

# The columns of a list, without those that have IDs and times
sub rows
{
	my ($list, @columns) = @_;
	my ($head, @rows) = map { [ map { s/^\s+|\s+$//gr } split /\|/, s/^\||\|\s*$//gr ] } grep { /^\|/ } split /\n/, $list;
	my %at = map { $head->[$_] => $_ } 0 .. $#{ $head // [] };

	return join '; ', map { my $row = $_; join ' ', map { defined $at{$_} ? $row->[ $at{$_} ] : "no $_" } @columns } @rows;
}

# Back up, restore.  Returns what does not depend on the IDs.
sub use_bacula
{
	my ($label, $name) = @_;
	my @lines;

	mkdir $_ foreach "$dir/work", "$dir/volumes", "$dir/$name";
	configure($name);
	append_to_file("$dir/$name/$_", "text of $_\n" x 100) foreach 'a', 'b', 'c';
	my @services = map { $app->start_service($port{ $_->[1] }, $_->[0], '-f', '-c', "$dir/$_->[1].conf") } [ 'bacula-sd', 'sd' ], [ 'bacula-fd', 'fd' ], [ 'bacula-dir', 'dir' ];
	is(scalar(@services), 3, "$label: it starts");
	console("run job=backup-$name level=Full yes", 'wait');
	append_to_file("$dir/$name/$_", "more\n") foreach 'b', 'd';
	unlink "$dir/$name/c";
	console("run job=backup-$name level=Incremental yes", 'wait');
	push @lines, 'jobs: ' . rows(console("list job=backup-$name"), 'name', 'type', 'level', 'jobfiles', 'jobstatus');
	push @lines, 'volumes: ' . rows(console("list media pool=$name"), 'volumename', 'volstatus', 'enabled') =~ s/$name-\d+/VOLUME/gr;
	push @lines, 'pools: ' . join ' ', grep { $_ eq $name } split /; /, rows(console('list pools'), 'name');
	my ($first, $second) = console("list job=backup-$name") =~ /^\|\s*([\d,]+)\s*\|/mg;
	tr/,//d foreach grep { defined } $first, $second;
	push @lines, "files: " . join ' ', sort map { s/.*\///r =~ s/[\s|]+$//r } grep { /^\|.*$name\// } split /\n/, console("list files jobid=" . ($first // 0));
	console("restore client=$name-fd fileset=$name where=$dir/restored-$name select current all done yes", 'wait');
	push @lines, 'restored: ' . rows(console("list job=restore-$name"), 'type', 'jobfiles', 'jobstatus');
	push @lines, 'files restored: ' . join ' ', map { s/.*\///r . ' ' . -s $_ } sort glob "$dir/restored-$name$dir/$name/*";
	console("run job=backup-$name level=Full yes", 'wait');
	console('delete yes jobid=' . ($first // 0));
	push @lines, 'jobs: ' . rows(console("list job=backup-$name"), 'level', 'jobfiles', 'jobstatus');
	my $log = -e "$dir/messages" ? slurp_file("$dir/messages") : '';
	push @lines, 'errors: ' . join ' ', map { s/.*(?:Error|Warning): //r } grep { /(?:Error|Fatal)/i && !/error[s]?:\s+0|Non-fatal FD errors/i } split /\n/, $log;
	unlink "$dir/messages";
	Application::stop_service($_) foreach reverse @services;
	return join("\n", @lines, '') =~ s/\Q$dir\E/DIR/gr =~ s/\Q$name\E/NAME/gr;
}

$app->run_ok('its tables are created', 'sh', "$scripts/make_postgresql_tables");
my $before = use_bacula('before', 'before');
note($before);
like($before, qr/^files restored: a 1000 b 1005 d 5$/m, 'its answers are those of backups');
$app->save;

$app->convert_to('range');
is(use_bacula('range', 'after'), $before, 'range: its answers are the same');
# Its latest upgrade
$app->sql('ALTER TABLE media DROP volparts, DROP volcloudparts, DROP lastpartbytes, DROP cacheretention; ALTER TABLE media RENAME voltype TO volparts;
	ALTER TABLE pool DROP cacheretention; ALTER TABLE basefiles ALTER baseid TYPE integer; DROP INDEX job_jobtdate_idx; UPDATE version SET versionid = 15');
$app->new_tables('range');
like($app->run_ok('range: an upgrade', 'sh', "$scripts/update_postgresql_tables", '-d', 'app'), qr/15 to 16 succeeded/, 'range: it was upgraded');
is(use_bacula('range, upgraded', 'upgraded'), $before, 'range: its answers are the same after the upgrade');
$app->kinds_are('range');
$app->keys_are('range', 'job.jobid', 'file.fileid', 'path.pathid', 'media.mediaid');

$app->restore;
$app->convert_to('snowflake');
my $after = use_bacula('snowflake', 'after');
note($after);
unlike($after, qr/^jobs: .* T/m, 'snowflake: no backup is made');
like($after, qr/^errors: .* affected_rows=0 for UPDATE Job .* WHERE JobId=\d{1,10}\b/m, 'snowflake: the number of a job has lost its upper 32 bits');

$app->stop;
done_testing();
