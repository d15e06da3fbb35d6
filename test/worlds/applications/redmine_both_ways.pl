# Redmine on two servers that replicate to each other, both of them in use.

use Application;
use Redmine;
use SnowflakeTest;

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

work('a first time', 'one');
work('a second time', 'two');

Application::end_replication($app, $second);
done_testing();

# Use it on each server, and see that both have the same afterwards.  Not at once: Redmine
# numbers the tree of all projects anew with each one, and what both number is wrong.
sub work ($label, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my %on = (first => $redmine, second => $copy);
	foreach (sort keys %on)
	{
		is($on{$_}->use("$name-$_"), $before, "$label, on the $_ server: the answers are the same");
		Application::replicated("$label, on the $_ server", $app, $second);
	}
	return;
}
