# The tests of pg_regress that take longer: script/check --all runs them here, beside other tests.

use SnowflakeTest;

my $convert = "$FindBin::RealBin/..";
my $node = new_server('main', 'fsync = off');
my ($names) = slurp_file("$convert/Makefile") =~ /^REGRESS_LONG = ((?:.*\\\n)*.*)/m;
my $output = PostgreSQL::Test::Utils::tempdir();

foreach my $name ($names =~ /\w+/g)
{
	ok(run_log([ $ENV{PG_REGRESS}, "--inputdir=$convert", "--outputdir=$output", '--bindir=', '--use-existing',
			'--host=' . $node->host, '--port=' . $node->port, '--dbname=postgres', $name ]), "$name.sql prints what is expected")
	  or diag(slurp_file("$output/regression.diffs"));
}

done_testing();
