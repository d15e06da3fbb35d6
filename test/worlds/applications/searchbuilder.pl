# DBIx::SearchBuilder, which RT uses: it reads the name of a sequence from the default of
# the key.

use Application;
use SnowflakeTest;

my $app = Application->new;
my @use = ('perl', "$FindBin::RealBin/use_searchbuilder.pl");

$app->run_ok('a table is created', 'psql', '-Xqc', 'CREATE TABLE tickets (id serial PRIMARY KEY, subject text)');
my $before = $app->run_ok('it works before', @use, 'before');
is($before, "found: yes\nchanged: yes\n", 'its answers are those of tickets');
$app->save;

foreach my $kind ('range', 'snowflake')
{
	$app->restore;
	$app->convert_to($kind);
	is($app->run_ok("$kind: it works afterwards", @use, 'after'), $before, "$kind: its answers are the same");
	$app->kinds_are($kind);
	$app->keys_are($kind, 'tickets.id');
}

done_testing();
