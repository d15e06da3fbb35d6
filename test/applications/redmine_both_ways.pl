# Redmine on two servers that replicate to each other, both of them in use.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../perl";
use Application;
use Redmine;
use Test::More;

my $app = Application->new;
my $redmine = Redmine->new($app);
$redmine->create_tables;
my $before = $redmine->use('before');
like($before, qr/^found: 1$/m, 'its answers are those of issues');

# A copy of it, before both are converted
my $second = $app->second;
my $copy = Redmine->new($second);
$_->convert_to('range') foreach $app, $second;
Application::replicate($app, $second);

# Redmine numbers the tree of all projects anew with each one, on both servers.
$_->{not_compared} = [ 'lft', 'rgt' ] foreach $app, $second;

both_work('a first time', 'one');
both_work('a second time', 'two');

$_->{not_compared} = [] foreach $app, $second;
$app->run_ok('the tree of projects is numbered by one', 'bin/rails', 'runner', 'Project.rebuild_tree!');
Application::replicated('with the tree of projects', $app, $second);

Application::end_replication($app, $second);
$_->{node}->stop foreach $app, $second;
$app->{registry}->stop;
done_testing();

# Use it on both servers at once, and see that both have the same afterwards.
sub both_work
{
	my ($label, $name) = @_;
	my @uses = ($redmine->start_use("$name-a"), $copy->start_use("$name-b"));

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(Application::finish_ok($_), $before, "$label: the answers are the same") foreach @uses;
	Application::replicated($label, $app, $second);
	return;
}
