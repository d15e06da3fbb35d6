# An instance of Redmine in a directory of the test's own, on the server of an application.

package Redmine;

use v5.36;

use FindBin;
use PostgreSQL::Test::Utils;

my $program = '/usr/share/redmine';

sub new ($class, $app)
{
	my $self = bless { app => $app }, $class;
	my $dir = $app->{dir};

	mkdir "$dir/$_" foreach 'config', 'files', 'log', 'tmp', 'tmp/imports';
	append_to_file("$dir/config/database.yml", "production:
  adapter: postgresql
  host: $app->{env}{PGHOST}
  port: $app->{env}{PGPORT}
  username: regress_app
  database: app
  encoding: utf8
");
	# The package's own list of libraries has no adapter until a database is configured.
	append_to_file("$dir/Gemfile", "eval_gemfile '$program/Gemfile'\ngem 'pg', '~> 1.2'\n");
	append_to_file("$dir/config/secret_key.txt", '0123456789abcdef' x 4);
	$app->{env}{REDMINE_INSTANCE} = "../../../..$dir";
	$app->{env}{BUNDLE_GEMFILE} = "$dir/Gemfile";
	$app->{env}{RAILS_ENV} = 'production';
	$app->{env}{REDMINE_LANG} = 'en';
	$app->{env}{SCHEMA} = '/dev/null';
	chdir $program or die "no Redmine: $!";
	return $self;
}

# Have its tables, and its default data.
sub create_tables ($self)
{
	$self->{app}->run_ok('its tables are created', 'bin/rake', 'db:migrate');
	$self->{app}->run_ok('it has its default data', 'bin/rake', 'redmine:load_default_data');
	return;
}

# What uses it
sub program { return ('bin/rails', 'runner', "$FindBin::RealBin/use_redmine.rb", $_[1]); }

# Use it.  Returns what it answers.
sub use ($self, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $self->{app}->run_ok("it works: $name", $self->program($name));
}

1;
