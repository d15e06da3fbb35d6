# Odoo with its module of sales: customers, orders, invoices and payments, messages, users.

use Application;
use SnowflakeTest;

my $app = Application->new;
my @odoo = ('-c', '/dev/null', '-d', 'app', '--db_host', $app->{env}{PGHOST}, '--db_port', $app->{env}{PGPORT}, '--db_user', 'regress_app',
	'--data-dir', "$app->{dir}/data", '--log-level', 'warn', '--no-http', '--stop-after-init');

# What is run by its shell, for some name
sub used ($name)
{
	return ('bash', '-c', 'USE_NAME=$0 odoo shell "${@:2}" <"$1"', $name, "$FindBin::RealBin/use_odoo.py", @odoo);
}

$app->run_ok('its modules are installed', 'odoo', @odoo, '--without-demo', 'all', '-i', 'sale');
$app->works_before(sub ($label, $name) { $app->run_ok($label, used($name)) }, qr/^order: sale 50\.0/m);
$app->works_converted('range', [ 'res_partner.id', 'sale_order.id', 'account_move_line.id', 'mail_message.id' ],
	sub ($label) { $app->run_ok("$label: another module", 'odoo', @odoo, '--without-demo', 'all', '-i', 'crm') });

# It has 272 tables with such keys, and more foreign keys.
restart_with($app->{node}, 'max_locks_per_transaction = 256');
$app->restore;
$app->convert_to('snowflake');
like($app->run_fails('snowflake: a customer is not created', used('after')),
	qr/"commercial_partner_id"::int4.*integer out of range/s, 'snowflake: it casts the ID to int4');
like($app->run_fails('snowflake: another module is not installed', 'odoo', @odoo, '--without-demo', 'all', '-i', 'crm'),
	qr/cannot alter inherited column "binding_model_id"/, 'snowflake: it makes columns integers again, which are inherited');

done_testing();
