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
$app->works_before(sub ($label, $name) { $redmine->use($name) }, qr/^found: 1$/m);
foreach my $kind ('range', 'snowflake')
{
	$app->works_converted($kind, [ 'issues.id', 'journals.id' ], sub ($label) {
		$app->run_ok("$label finds its tables", 'bin/rake', 'db:migrate');
		$app->run_ok("$label: a plugin gets its table", 'bin/rails', 'runner', $plugin);
	}, $kind eq 'snowflake' && q{, widen => 'all'});
	$app->run_ok("$kind: it has rows", 'bin/rails', 'runner', $use_plugin);
}

done_testing();
