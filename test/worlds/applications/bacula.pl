# Bacula, whose catalog is in the database: backups, lists, a restore, an end of volumes.
# It holds IDs in 32 bits.

use Application;
use Bacula;
use SnowflakeTest;

my $app = Application->new;
my $bacula = Bacula->new($app);

# Start it, use it for what has a name, stop it.
sub use_bacula ($label, $name)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($bacula->start($name), 3, "$label: it starts");
	my $answers = $bacula->use($name);
	$bacula->stop;
	return $answers;
}

$app->run_ok('its tables are created', 'sh', "$Bacula::scripts/make_postgresql_tables");
$app->works_before(\&use_bacula, qr/^files restored: a 1000 b 1005 d 5$/m);
# Its latest upgrade
my @keys = ('job.jobid', 'file.fileid', 'path.pathid', 'media.mediaid');
$app->works_converted('range', \@keys, sub ($label) {
	$app->sql('ALTER TABLE media DROP volparts, DROP volcloudparts, DROP lastpartbytes, DROP cacheretention; ALTER TABLE media RENAME voltype TO volparts;
		ALTER TABLE pool DROP cacheretention; ALTER TABLE basefiles ALTER baseid TYPE integer; DROP INDEX job_jobtdate_idx; UPDATE version SET versionid = 15');
	like($app->run_ok($label, 'sh', "$Bacula::scripts/update_postgresql_tables", '-d', 'app'), qr/15 to 16 succeeded/, 'range: it was upgraded');
});

$app->restore;
$app->convert_to('snowflake');
my $after = use_bacula('snowflake', 'after');
note($after);
unlike($after, qr/^jobs: .* T/m, 'snowflake: no backup is made');
like($after, qr/^errors: .* affected_rows=0 for UPDATE Job .* WHERE JobId=\d{1,10}\b/m, 'snowflake: the number of a job has lost its upper 32 bits');

done_testing();
