# DBIx::SearchBuilder, which RT uses: it reads the name of a sequence from the default of
# the key.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin, "$FindBin::RealBin/../perl";
use Application;
use Test::More;

my $app = Application->new;
my @use = ('perl', "$FindBin::RealBin/use_searchbuilder.pl");

$app->run_ok('a table is created', 'psql', '-Xqc', 'CREATE TABLE tickets (id serial PRIMARY KEY, subject text)');
my $before = $app->run_ok('it works before', @use, 'before');
is($before, "found: yes\nchanged: yes\n", 'its answers are those of tickets');

$app->convert('');
like($app->run_fails('unchanged, it does not work', @use, 'unchanged'), qr/^no ID/m, 'it has no ID');

# docs/clients.md: programs that read the default
$app->{node}->command_ok(
	[
		'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$FindBin::RealBin/../../compat/snowflake_compat.sql",
		'-d', $app->{node}->connstr('app')
	],
	'the functions are created');
$app->sql(q{ALTER ROLE regress_app IN DATABASE app
	SET search_path = public, snowflake_default, snowflake_compat, pg_catalog});
$app->sql(q{ALTER TABLE tickets ALTER COLUMN id SET DEFAULT snowflake_default.nextval('snowflake'::text)});
is($app->run_ok('it works afterwards', @use, 'after'), $before, 'its answers are the same');
is($app->sql('SELECT min(id), max(id) > 1000000000000 FROM tickets'), '1|t', 'the new ID is a snowflake ID');

$app->{node}->stop;
done_testing();
