# Redmine, a Rails application, by its web interface, and by its models.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../perl";
use Application;
use Page;
use PostgreSQL::Test::Utils;
use Test::More;

my $app = Application->new;
my $dir = $app->{dir};
my @use = ('bin/rails', 'runner', "$FindBin::RealBin/use_redmine.rb");

# An instance in a directory of the test's own.
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
append_to_file("$dir/Gemfile", "eval_gemfile '/usr/share/redmine/Gemfile'\ngem 'pg', '~> 1.2'\n");
append_to_file("$dir/config/secret_key.txt", '0123456789abcdef' x 4);
$app->{env}{REDMINE_INSTANCE} = "../../../..$dir";
$app->{env}{BUNDLE_GEMFILE} = "$dir/Gemfile";
$app->{env}{RAILS_ENV} = 'production';
$app->{env}{REDMINE_LANG} = 'en';
$app->{env}{SCHEMA} = '/dev/null';
chdir '/usr/share/redmine' or die "no Redmine: $!";
$app->run_ok('its tables are created', 'bin/rake', 'db:migrate');
$app->run_ok('it has its default data', 'bin/rake', 'redmine:load_default_data');
my $before = $app->run_ok('it works before', @use, 'before');
like($before, qr/^found: 1$/m, 'its answers are those of issues');

# As docs/clients.md says of Rails, and docs/applications.md of Redmine.
my $page = Page->claim('docs/applications.md', 'Redmine');
my ($convert, $by_hand) = split /\n/, $page->take('inherited_from')->{text};
my $dry = $app->sql("SELECT snowflake_convert_schema('public', widen => 'names', dry_run => true)");
my $keys = () = $dry =~ / SET DEFAULT /g;
my $columns = () = $dry =~ / TYPE bigint/g;
like($page->{text}, qr/^It has $keys keys, and ${\ ($columns - $keys)} columns/m, 'the page has the numbers of what is converted');
$app->convert(", widen => 'names', generator => 'snowflake_id()'");
is(index($convert, q{SELECT snowflake_convert_schema('public', widen => 'names', generator => 'snowflake_id()')}), 0,
	'this is what the page says');
like($app->run_fails('columns that the report finds are not all', @use, 'unchanged'), qr/"status":500/, 'it says so');
like(slurp_file("$dir/log/production.log"), qr/\(\d+ is out of range for ActiveModel::Type::Integer with limit 4 bytes/,
	'its log says why');
my $report = Page->section('docs/converting-applications.md', 'The report');
my @stay = split /\n/, $app->sql($report->take("'smallint', 'integer'")->{text});
ok(scalar(grep { $_ eq 'member_roles|inherited_from' } @stay), 'the column is in the list of those that stay');
like($report->{text}, qr/^Of ${\ scalar @stay} such columns of Redmine/m, 'the page has their number');
$app->sql($by_hand);

is($app->run_ok('it works afterwards', @use, 'after'), $before, 'its answers are the same');
is($app->sql('SELECT min(id) < 1000, max(id) > 1000000000000 FROM issues'), 't|t', 'new IDs are snowflake IDs');
is($app->sql("SELECT * FROM snowflake_convert_report('public')"), '', 'the report is empty');
$app->run_ok('an upgrade finds its tables', 'bin/rake', 'db:migrate');
is($app->sql("SELECT * FROM snowflake_convert_report('public')"), '', 'the report is still empty');

$app->{node}->stop;
Page::all_taken();
done_testing();
