# DBIx::SearchBuilder, which RT uses: it reads the name of a sequence from the default of
# the key.

use Application;
use SnowflakeTest;

my $app = Application->new;
my @use = ('perl', "$FindBin::RealBin/use_searchbuilder.pl");

$app->run_ok('a table is created', 'psql', '-Xqc', 'CREATE TABLE tickets (id serial PRIMARY KEY, subject text)');
$app->works_before(\@use, qr/\Afound: yes\nchanged: yes\n\z/);
$app->works_converted($_, ['tickets.id']) foreach 'range', 'snowflake';

done_testing();
