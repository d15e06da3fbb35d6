# LedgerSMB, whose functions do what its pages show: persons, customers, accounts, journals
# and reports.  They have integers for keys everywhere.

use Application;
use SnowflakeTest;

my $app = Application->new;
sql($app->{node}, 'ALTER ROLE regress_app CREATEROLE');

$app->run_ok('its tables and functions are created', 'perl', '-I', '/usr/share/ledgersmb/lib', '-e', q{
	use LedgerSMB::Database;
	chdir '/usr/share/ledgersmb';
	my $database = LedgerSMB::Database->new(dbname => 'app', username => 'regress_app', password => '', source_dir => './sql');
	$database->load_base_schema;
	$database->load_modules('LOADORDER');
	$database->load_coa({ country => 'us', chart => 'General.sql' });
});

# Returns what does not depend on the IDs.
sub use_ledgersmb ($, $name)
{
	my $out = $app->as_owner(<<~END);
		SELECT person__save(NULL, NULL, '$name', NULL, 'Smith', (SELECT id FROM country WHERE short_name = 'US'), NULL, NULL) AS person \\gset
		SELECT entity_class, name FROM entity WHERE id = :person;
		SELECT FROM employee__save(:person, '2026-01-01', NULL, '1990-01-01', 'clerk', NULL, false, NULL, 'E-$name', false);
		SELECT first_name, last_name, employeenumber FROM employee__get(:person);
		SELECT entity_id AS company, legal_name FROM company__save('C-$name', 2, '$name Ltd', NULL, NULL, NULL, (SELECT id FROM country WHERE short_name = 'US'), NULL, NULL) \\gset
		SELECT eca__save(NULL, 2, :company, 'a customer', 0, false, 1000, 0, 30, 'M-$name', NULL, 'en', NULL, 'USD', NULL, NULL, 0,
			(SELECT id FROM account WHERE accno = '1200'), NULL, NULL, NULL, NULL) AS credit \\gset
		SELECT meta_number, description FROM entity__list_credit(:company, 2);
		SELECT eca__location_save(:credit, NULL, 1, 'Street 1', NULL, NULL, 'Town', 'CA', '99999', (SELECT id FROM country WHERE short_name = 'US'), NULL) AS location \\gset
		SELECT line_one, city, country FROM eca__list_locations(:credit);
		SELECT note, subject FROM eca__save_notes(:credit, 'text of $name', 'subject');
		SELECT contact FROM entity__save_contact(:company, 12, 'mail', '$name\@example.org', NULL, NULL);
		SELECT control_code, description FROM business_unit__save(NULL, 1, 'B-$name', 'unit', NULL, NULL, NULL, NULL);
		INSERT INTO gl (reference, description, transdate, approved) VALUES ('G-$name', 'of $name', '2026-03-01', true) RETURNING id AS gl \\gset
		INSERT INTO acc_trans (trans_id, chart_id, amount, transdate, approved)
		SELECT :gl, id, amount, '2026-03-01', true
		FROM account JOIN (VALUES ('1060', -100), ('3350', 100)) v(accno, amount) USING (accno);
		SELECT reference, accno, amount FROM report__gl('G-$name', NULL, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL, NULL, NULL) ORDER BY accno;
		SELECT table_name, approved FROM transactions WHERE id = :gl;
		SELECT account__save(NULL, '9$name', 'account of $name', 'E', NULL, (SELECT min(id) FROM account_heading), false, false, '{}', false, false) AS account \\gset
		SELECT accno, description FROM account_get(:account::int);
		END
	return $out =~ s/$name/NAME/gr;
}

$app->works_before(\&use_ledgersmb, qr/^G-NAME\|1060\|/m);
$app->works_converted('range', [ 'entity.id', 'acc_trans.entry_id', 'account.id', 'location.id' ]);
$app->works('range: it works a second time', 'again');

$app->restore;
like($app->as_owner(q{SELECT object, finding FROM snowflake_convert_report('public', kind => 'snowflake') WHERE severity = 'obstacle'}),
	qr/^function public\.employee__list_managers\(integer\) depends on type public\.employees\n.*^[^|]*\|they prevent the conversion$/ms,
	'snowflake: views that are types of functions are an obstacle');

done_testing();
