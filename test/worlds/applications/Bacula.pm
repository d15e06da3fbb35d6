# A Bacula that has its catalog in an application's database: a director, a storage daemon
# and a file daemon.

package Bacula;

use v5.36;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

our $scripts = '/usr/share/bacula-director';

# "files" is where the files that it saves and its volumes are; its own, if not given.
sub new ($class, $app, $files = undef)
{
	my $self = bless {
		app => $app, dir => PostgreSQL::Test::Utils::tempdir_short,
		port => { map { $_ => PostgreSQL::Test::Cluster::get_free_port() } 'dir', 'sd', 'fd' }
	}, $class;

	$self->{files} = $files // $self->{dir};
	# The scripts' own way to name the database, and to call psql
	$app->{env}{db_name} = 'app';
	return $self;
}

# The three programs, with a client, files, a pool and jobs of a name
sub configure ($self, $name)
{
	my ($dir, $port, $env) = ($self->{dir}, $self->{port}, $self->{app}{env});
	my $common = "WorkingDirectory = $dir/work\nPid Directory = $dir/work\n";
	my $messages = "Messages {\n Name = Standard\n append = $dir/messages = all\n catalog = all\n}\n";
	my %text = (
		dir => qq{Director {\n Name = dir\n DIRport = $port->{dir}\n QueryFile = "/etc/bacula/scripts/query.sql"\n $common Password = secret\n Messages = Standard\n DirAddress = 127.0.0.1\n}
Catalog { Name = Catalog; dbname = app; dbuser = regress_app; dbpassword = ""; DB Address = "$env->{PGHOST}"; DB Port = $env->{PGPORT} }
Storage {\n Name = files\n Address = 127.0.0.1\n SDPort = $port->{sd}\n Password = secret\n Device = files\n Media Type = files\n}
Client {\n Name = $name-fd\n Address = 127.0.0.1\n FDPort = $port->{fd}\n Catalog = Catalog\n Password = secret\n}
FileSet {\n Name = $name\n Include {\n Options { signature = MD5 }\n File = $self->{files}/$name\n }\n}
Pool {\n Name = $name\n Pool Type = Backup\n Label Format = "$name-"\n Maximum Volume Jobs = 1\n Recycle = yes\n}
JobDefs {\n Name = all\n Client = $name-fd\n FileSet = $name\n Storage = files\n Pool = $name\n Messages = Standard\n}
Job {\n Name = backup-$name\n JobDefs = all\n Type = Backup\n Level = Full\n Accurate = yes\n}
Job {\n Name = restore-$name\n JobDefs = all\n Type = Restore\n Where = "$dir/restored"\n}
$messages},
		sd => qq{Storage {\n Name = sd\n SDPort = $port->{sd}\n SDAddress = 127.0.0.1\n $common}
Director {\n Name = dir\n Password = secret\n}
Device {\n Name = files\n Media Type = files\n Archive Device = $self->{files}/volumes\n LabelMedia = yes\n Random Access = yes\n AutomaticMount = yes\n RemovableMedia = no\n AlwaysOpen = no\n}
Messages {\n Name = Standard\n director = dir = all\n}\n},
		fd => qq{FileDaemon {\n Name = fd\n FDport = $port->{fd}\n FDAddress = 127.0.0.1\n $common}
Director {\n Name = dir\n Password = secret\n}
Messages {\n Name = Standard\n director = dir = all\n}\n},
		console => qq{Director {\n Name = dir\n DIRport = $port->{dir}\n address = 127.0.0.1\n Password = secret\n}\n});

	foreach (keys %text)
	{
		unlink "$dir/$_.conf";
		append_to_file("$dir/$_.conf", $text{$_});
	}
	return;
}

# Start them for what has a name.  Returns how many started.
sub start ($self, $name = undef)
{
	my $dir = $self->{dir};

	mkdir $_ foreach "$dir/work", "$self->{files}/volumes", "$self->{files}/$name";
	$self->configure($name);
	$self->{services} = [ map { $self->{app}->start_service($self->{port}{ $_->[1] }, $_->[0], '-f', '-c', "$dir/$_->[1].conf") } [ 'bacula-sd', 'sd' ], [ 'bacula-fd', 'fd' ], [ 'bacula-dir', 'dir' ] ];
	return scalar @{ $self->{services} };
}

sub stop ($self)
{
	Application::stop_service($_) foreach reverse @{ delete $self->{services} };
	return;
}

sub console ($self, @commands)
{
	my ($in, $out) = (join("\n", @commands, 'quit', ''), '');

	local %ENV = (%ENV, %{ $self->{app}{env} });
	IPC::Run::run([ 'bconsole', '-n', '-c', "$self->{dir}/console.conf" ], '<' => \$in, '>&' => \$out, IPC::Run::timeout(300));
	return $out;
}

# The columns of a list, without those that have IDs and times
sub rows ($list, @columns)
{
	my ($head, @rows) = map { [ map { s/^\s+|\s+$//gr } split /\|/, s/^\||\|\s*$//gr ] } grep { /^\|/ } split /\n/, $list;
	my %at = map { $head->[$_] => $_ } 0 .. $#{ $head // [] };

	return join '; ', map { my $row = $_; join ' ', map { defined $at{$_} ? $row->[ $at{$_} ] : "no $_" } @columns } @rows;
}

# Back up, restore.  Returns what does not depend on the IDs.
sub use ($self, $name)
{
	my $files = "$self->{files}/$name";
	my @lines;

	append_to_file("$files/$_", "text of $_\n" x 100) foreach 'a', 'b', 'c';
	$self->console("run job=backup-$name level=Full yes", 'wait');
	append_to_file("$files/$_", "more\n") foreach 'b', 'd';
	unlink "$files/c";
	$self->console("run job=backup-$name level=Incremental yes", 'wait');
	push @lines, 'jobs: ' . rows($self->console("list job=backup-$name"), 'name', 'type', 'level', 'jobfiles', 'jobstatus');
	push @lines, 'volumes: ' . rows($self->console("list media pool=$name"), 'volumename', 'volstatus', 'enabled') =~ s/$name-\d+/VOLUME/gr;
	push @lines, 'pools: ' . join ' ', grep { $_ eq $name } split /; /, rows($self->console('list pools'), 'name');
	my ($first) = $self->console("list job=backup-$name") =~ /^\|\s*([\d,]+)\s*\|/m;
	$first =~ tr/,//d if defined $first;
	push @lines, "files: " . join ' ', sort map { s/.*\///r =~ s/[\s|]+$//r } grep { /^\|.*$name\// } split /\n/, $self->console("list files jobid=" . ($first // 0));
	push @lines, $self->restore($name);
	$self->console("run job=backup-$name level=Full yes", 'wait');
	$self->console('delete yes jobid=' . ($first // 0));
	push @lines, 'jobs: ' . rows($self->console("list job=backup-$name"), 'level', 'jobfiles', 'jobstatus');
	return $self->report($name, @lines);
}

# Restore what another server has saved under the name, and continue to save it.
sub take_over ($self, $name)
{
	my @lines = $self->restore($name);

	append_to_file("$self->{files}/$name/e", "new\n");
	$self->console("run job=backup-$name level=Incremental yes", 'wait');
	push @lines, 'jobs: ' . rows($self->console("list job=backup-$name"), 'level', 'jobfiles', 'jobstatus');
	return $self->report($name, @lines);
}

sub restore ($self, $name = undef)
{
	my $to = "$self->{dir}/restored-$name";

	$self->console("restore client=$name-fd fileset=$name where=$to select current all done yes", 'wait');
	return 'restored: ' . rows($self->console("list job=restore-$name"), 'type', 'jobfiles', 'jobstatus'),
	  'files restored: ' . join ' ', map { s/.*\///r . ' ' . -s $_ } sort glob "$to$self->{files}/$name/*";
}

# The lines, and the errors among the messages
sub report ($self, $name, @lines)
{
	my $log = -e "$self->{dir}/messages" ? slurp_file("$self->{dir}/messages") : '';

	push @lines, 'errors: ' . join ' ', map { s/.*(?:Error|Warning): //r } grep { /(?:Error|Fatal)/i && !/error[s]?:\s+0|Non-fatal FD errors|Encoding error for database/i } split /\n/, $log;
	unlink "$self->{dir}/messages";
	return join("\n", @lines, '') =~ s/\Q$self->{dir}\E|\Q$self->{files}\E/DIR/gr =~ s/\Q$name\E/NAME/gr;
}

1;
