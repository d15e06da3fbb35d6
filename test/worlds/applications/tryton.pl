# Tryton, by its models: what its clients do.  It casts the IDs inside of references, which
# are texts such as 'party.party,12', to integer, and its updates set defaults and types.

use Application;
use SnowflakeTest;

my $app = Application->new;
my $conf = "$app->{dir}/trytond.conf";
my @use = ('python3', '-B', "$FindBin::RealBin/use_tryton.py", $conf);

append_to_file($conf, "[database]\nuri = postgresql://regress_app:none\@127.0.0.1:$app->{env}{PGPORT}/\npath = $app->{dir}\n");
append_to_file("$app->{dir}/password", "correct horse\n");
$app->{env}{TRYTONPASSFILE} = "$app->{dir}/password";
# Its own tests, whose functions the use is made with, read this.
$app->{env}{DB_NAME} = 'app';

# Create or update the tables of all its modules, or of those that are named.
sub admin ($label, @arguments)
{
	return $app->run_ok($label, 'trytond-admin', '-c', $conf, '-d', 'app', '--email', 'admin@example.org', @arguments);
}

admin('its tables are created', '-u', 'ir', 'res', 'sale', '--activate-dependencies');
$app->works_before(\@use, qr/^state: processing$/m);
$app->works_converted('range', [ 'party_party.id', 'sale_line.id', 'stock_move.id', 'ir_attachment.id' ], sub ($label) {
	admin("$label of all modules", '--all');
	$app->kinds_are('range');
	admin("$label: another module", '-u', 'account_invoice_stock', '--activate-dependencies');
});

$app->restore;
$app->convert_to('snowflake');
like($app->run_fails('snowflake: a search by what a reference leads to fails', @use, 'after'),
	qr/search\(\[\('resource\.name'.*value "\d+" is out of range for type integer/s, 'snowflake: it casts the ID to integer');

done_testing();
