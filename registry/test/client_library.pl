# A server with a registry needs the library that calls it, of its own version: without it,
# the server does not start, and says what to do.

use File::Copy;
use SnowflakeTest;

my $server = new_server('server', "snowflake.registry = 'host=/nowhere dbname=none connect_timeout=2'");
my $installed = $server->config_data('--pkglibdir');
my $folder = PostgreSQL::Test::Utils::tempdir();
my $client = 'snowflake_registry_client.so';

# What the log says when the server is started with the libraries of the folder.
sub start_log
{
	my $offset = -s $server->logfile;

	$server->start(fail_ok => 1);
	return slurp_file($server->logfile, $offset);
}

$server->stop;
copy("$installed/snowflake.so", $folder) or die $!;
$server->append_conf('postgresql.conf', "dynamic_library_path = '$folder'");
like(start_log(), qr/FATAL:  could not access file "snowflake_registry_client": No such file or directory/,
	'the library is missing');

my $content = slurp_file("$installed/$client");
ok($content =~ s/(snowflake_registry_client )\d/${1}9/, 'the library has a version');
append_to_file("$folder/$client", $content);
like(start_log(), qr/FATAL:  library "snowflake_registry_client" is of version 9\S*, and "snowflake" of version \S+/,
	'the library is of another version');

copy("$installed/$client", $folder) or die $!;
unlike(start_log(), qr/FATAL/, 'the server starts with the right one');
done_testing();
