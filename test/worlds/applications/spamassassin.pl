# SpamAssassin, which has what it learned of each user in the database: messages are learned,
# forgotten and rated.  The function that stores words has a user's ID as an integer.

use Application;
use SnowflakeTest;

my $app = Application->new;
my $dir = $app->{dir};
my $tables = '/usr/share/doc/spamassassin/sql';

mkdir "$dir/site";
append_to_file("$dir/site/all.pre", join '', map { slurp_file($_) } glob '/etc/spamassassin/*.pre');
append_to_file("$dir/site/local.cf", "
bayes_store_module Mail::SpamAssassin::BayesStore::PgSQL
bayes_sql_dsn DBI:Pg:dbname=app;host=$app->{env}{PGHOST};port=$app->{env}{PGPORT}
bayes_sql_username regress_app
bayes_min_ham_num 3
bayes_min_spam_num 3
bayes_auto_learn 0
use_txrep 1
txrep_factory Mail::SpamAssassin::SQLBasedAddrList
user_awl_dsn DBI:Pg:dbname=app;host=$app->{env}{PGHOST};port=$app->{env}{PGPORT}
user_awl_sql_username regress_app
user_awl_sql_table txrep
loadplugin Mail::SpamAssassin::Plugin::TxRep
");
my @options = ("--siteconfigpath=$dir/site", '--prefspath=/dev/null');

sub message ($name, $text)
{
	unlink "$dir/$name";
	append_to_file("$dir/$name", "From: $name\@example.org
To: me\@example.org
Subject: $name
Date: Sat, 01 Nov 2025 12:00:00 +0000
Message-ID: <$name\@example.org>

$text
");
	return "$dir/$name";
}

my @spam = map { message("spam$_", "Buy cheap lottery pills number$_, win a millionaire inheritance casino jackpot today") } 1 .. 4;
my @ham = map { message("ham$_", "The meeting minutes of project$_ are attached, please review the agenda before Tuesday") } 1 .. 4;
my $asked = message('asked', 'Win the lottery jackpot: cheap casino pills for a millionaire');

$app->run_ok("its tables are created: $_", 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$tables/${_}_pg.sql")
  foreach 'bayes', 'txrep', 'userpref';

# Returns what does not depend on the IDs.  There are new users each time.
sub use_spamassassin ($label, $user)
{
	my @answers;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $who ("${user}1", "${user}2")
	{
		my @user = (@options, "--cf=bayes_sql_override_username $who");
		my @learn = ('sa-learn', @user);

		push @answers, $app->run_ok("$label: it learns spam", @learn, '--spam', @spam);
		push @answers, $app->run_ok("$label: and what is none", @learn, '--ham', @ham);
		push @answers, $app->run_ok("$label: and forgets", @learn, '--forget', $ham[3]);
		push @answers, join ' ', $app->run_ok("$label: it tells what it knows", @learn, '--dump', 'magic') =~ /(\d+) +\d+ +non-token data: n(\w+)$/mg;
		push @answers, $app->run_ok("$label: it rates a message", 'spamassassin', @user, '-L', '-t', $asked) =~ /(BAYES_\d+)/;
	}
	return join "\n", @answers, $app->sql(qq{
		SELECT username, v.spam_count, v.ham_count, v.token_count, count(t.*), sum(t.spam_count), sum(t.ham_count)
		FROM bayes_vars v LEFT JOIN bayes_token t USING (id) WHERE username LIKE '$user%' GROUP BY v.id ORDER BY username}) =~ s/^$user//gmr;
}

$app->works_before(\&use_spamassassin, qr/^BAYES_\d+$/m);
$app->works_converted('range', [ 'bayes_vars.id', 'bayes_token.id' ]);

# The report names its function.
$app->restore;
my $report = $app->as_owner(q{SELECT object, finding FROM snowflake_convert_report('public', kind => 'snowflake', details => true)});
like($report, qr/^function public\.put_tokens\(.*has integers/m, 'the report names its function');
like($report, qr/^column id of table public\.bayes_expire\|it might hold a key/m, 'it names a column without values');
my ($function) = slurp_file("$tables/bayes_pg.sql") =~ /^(CREATE OR REPLACE FUNCTION put_tokens.*)/ms;
$app->as_owner('DROP FUNCTION put_tokens' . '; ' . $function =~ s/INTEGER/BIGINT/r);
$app->convert_to('snowflake', q{, widen => 'keys, bayes_expire.id'});
$app->works('snowflake: it works afterwards', 'after');
$app->keys_are('snowflake', 'bayes_vars.id', 'bayes_token.id');
$app->kinds_are('snowflake');

done_testing();
