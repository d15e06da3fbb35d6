# The Django site of django_site, in a directory of the test's own, on the server of an
# application.

package DjangoSite;

use v5.36;

use FindBin;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;

sub new ($class, $app)
{
	my $dir = "$app->{dir}/site";

	PostgreSQL::Test::RecursiveCopy::copypath("$FindBin::RealBin/django_site", $dir);
	$app->{env}{PYTHONPATH} = $dir;
	$app->{env}{DJANGO_SETTINGS_MODULE} = 'django_settings';
	my $self = bless { app => $app, dir => $dir }, $class;
	$self->run_ok('its models have migrations', 'makemigrations', 'shop');
	return $self;
}

# Run a command of manage.py.
sub run_ok ($self, $label, @command)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $self->{app}->run_ok($label, 'python3', '-m', 'django', @command);
}

# The same site on another server
sub elsewhere ($self, $app)
{
	$app->{env}{$_} = $self->{app}{env}{$_} foreach 'PYTHONPATH', 'DJANGO_SETTINGS_MODULE';
	return bless { app => $app, dir => $self->{dir} }, ref $self;
}

sub program { return ('python3', '-B', "$FindBin::RealBin/use_django.py", $_[0]); }

# Use the site.  Returns what it answers.
sub use ($self, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $self->{app}->run_ok("it works: $name", program($name));
}

# Begin to use it, until Application::finish_ok().
sub start_use ($self, $name) { return $self->{app}->start("it works: $name", program($name)); }

# Have the site's next version, whose models have two tables and a column more, and a
# migration that fills them.
sub upgrade ($self)
{
	append_to_file("$self->{dir}/shop/models.py", slurp_file("$FindBin::RealBin/django_site/later.py"));
	$self->run_ok('its next version has migrations', 'makemigrations', 'shop', '-n', 'later');
	rename "$self->{dir}/fill.py", "$self->{dir}/shop/migrations/0003_fill.py" or die "$self->{dir}/fill.py: $!";
	return;
}

1;
