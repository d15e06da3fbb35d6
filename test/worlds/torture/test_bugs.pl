# The bugs of script/tests/torture --break can be put into the source as it is now, each is
# in the weekly workflow, and docs/develop/reliability.md says what finds it.

use SnowflakeTest;

my $top = "$FindBin::RealBin/../../..";
my @files = ('src', 'convert', 'registry', 'registry_client', 'script');

my ($list) = slurp_file("$top/script/tests/torture") =~ /^(#\tmark\t.*?)^# With --conversion/ms;
my @bugs = sort $list =~ /^#\t([a-z-]+)[\t ]/mg;
cmp_ok(scalar @bugs, '>', 10, 'script/tests/torture lists bugs');
my @weekly = slurp_file("$top/.github/workflows/weekly.yml") =~ /--break=([a-z-]+)$/mg;
is_deeply([ sort @weekly ], \@bugs, 'the weekly workflow has all of them');
my @documented = slurp_file("$top/docs/develop/reliability.md") =~ /^\| `([a-z-]+)`: /mg;
is_deeply([ sort @documented ], \@bugs, 'docs/develop/reliability.md, too');

foreach my $bug (@bugs)
{
	my $copy = PostgreSQL::Test::Utils::tempdir();

	system_or_bail('cp', '-r', (map { "$top/$_" } @files), $copy);
	is(system("cd '$copy' && bash script/lib/in_copy/torture Crashes 0 1 $bug"), 0, "$bug can be put there");

	# That of the quorum is in the test.
	isnt(system("for f in @files; do diff -rq '$top/'\$f '$copy/'\$f || exit 1; done >/dev/null"), 0, '... and is') if $bug ne 'quorum';
}

done_testing();
