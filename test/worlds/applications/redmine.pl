# Redmine, a Rails application, by its web interface, and by its models.

use Application;
use Redmine;
use SnowflakeTest;

my $app = Application->new;
my $redmine = Redmine->new($app);

# A table of a plugin, as one of its migrations creates it
my $plugin = q{
	Class.new(ActiveRecord::Migration[4.2]) do
	  def up
	    create_table(:reviews) { |t| t.references :issue, type: :integer, foreign_key: true; t.string :note }
	  end
	end.migrate(:up)
};
my $use_plugin = q{
	class Review < ActiveRecord::Base
	  belongs_to :issue
	end
	reviews = %w[a b].map { |note| Review.create!(issue: Issue.last, note: note) }
	abort 'lost' unless Review.where(issue: Issue.last).order(:id).map(&:id) == reviews.map(&:id)
};

$redmine->create_tables;
my $before = $redmine->use('before');
like($before, qr/^found: 1$/m, 'its answers are those of issues');
note($before);
$app->save;

foreach my $kind ('range', 'snowflake')
{
	$app->convert_anew($kind, $kind eq 'snowflake' && q{, widen => 'all'});
	is($redmine->use("$kind"), $before, "$kind: its answers are the same");
	$app->run_ok("$kind: an upgrade finds its tables", 'bin/rake', 'db:migrate');
	$app->run_ok("$kind: a plugin gets its table", 'bin/rails', 'runner', $plugin);
	$app->convert_upgraded($kind);
	$app->run_ok("$kind: it has rows", 'bin/rails', 'runner', $use_plugin);
	is($redmine->use("$kind-again"), $before, "$kind: its answers are still the same");
	$app->kinds_are($kind);
	$app->keys_are($kind, 'issues.id', 'journals.id');
}

done_testing();
