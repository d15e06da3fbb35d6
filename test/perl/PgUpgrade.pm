# Servers of two major versions, for the tests of pg_upgrade.
#
# script/tests/upgrade runs these, with the programs of the old version, which has the
# extension, in OLD_BINDIR; those of the new one come first in the path.

package PgUpgrade;

use v5.36;

use Exporter 'import';
use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(new_old_server new_new_server pg_upgrade upgrade);

my $old_bindir = $ENV{OLD_BINDIR} or die 'OLD_BINDIR is not set';
my $new_bindir = dirname(qx(which postgres));

# A server of the old version that preloads the extension, with lines of its configuration.
sub new_old_server ($name, @conf)
{
	my $node = PostgreSQL::Test::Cluster->new("old_$name", install_path => dirname($old_bindir));

	$node->init;
	$node->append_conf('postgresql.conf', join("\n", @conf, ''));
	$node->start;
	return $node;
}

# A server of the new version without anything, which does not run.
sub new_new_server ($name, @conf)
{
	my $node = PostgreSQL::Test::Cluster->new("new_$name");

	$node->init(extra => $node->pg_version < 18 ? [] : ['--no-data-checksums']);
	$node->append_conf('postgresql.conf', join("\n", @conf, ''));
	return $node;
}

# The command, with more options.  Its sockets are where no client looks for a server.
sub pg_upgrade ($old, $new, @options)
{
	return (
		'pg_upgrade', '--no-sync',
		'--old-datadir' => $old->data_dir,
		'--new-datadir' => $new->data_dir,
		'--old-bindir' => $old_bindir,
		'--new-bindir' => $new_bindir,
		'--socketdir' => PostgreSQL::Test::Utils::tempdir_short(),
		'--old-port' => $old->port,
		'--new-port' => $new->port,
		@options);
}

# Upgrade a server that was stopped, and start the new one.
sub upgrade ($old, $new, @options)
{
	my @command = pg_upgrade($old, $new, @options);

	chdir($new->basedir) or die;
	command_ok([ @command, '--check' ], 'pg_upgrade --check');
	command_ok(\@command, "pg_upgrade @options");
	chdir($ENV{TESTDIR}) or die;
	$new->start;
	return;
}

1;
