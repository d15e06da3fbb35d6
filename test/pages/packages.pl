# How the README's commands install packages: they wait for another apt, and not for other errors.

use Page;
use SnowflakeTest;

plan skip_all => 'packages are not those of Debian' unless -d '/var/lib/dpkg';

# Programs that stand for those of the system; apt-get fails as often as there are lines in a
# file.
my $folder = PostgreSQL::Test::Utils::tempdir();
my %programs = (
	sudo => 'exec "$@"',
	sleep => 'echo pause >>"$FOLDER/pauses"',
	'apt-get' => q{echo "$*" >>"$FOLDER/calls"
		[ -s "$FOLDER/errors" ] || exit 0
		head -n 1 "$FOLDER/errors" >&2
		sed -i 1d "$FOLDER/errors"
		exit 100});
foreach my $name (keys %programs)
{
	append_to_file("$folder/$name", "#!/bin/sh\n$programs{$name}\n");
	chmod 0755, "$folder/$name" or die "$folder/$name: $!";
}

# Update the list of packages; returns whether that succeeded, what was said, and how many
# calls and pauses there were.
sub update_with (@errors)
{
	my ($out, $err);

	unlink map { "$folder/$_" } 'calls', 'pauses', 'errors';
	append_to_file("$folder/errors", join('', map { "$_\n" } @errors));
	local %ENV = (%ENV, PATH => "$folder:$ENV{PATH}", FOLDER => $folder);
	my $ok = IPC::Run::run(
		[ 'sh', '-c', 'top=$1; . "$top/script/lib/common.sh"; update_packages a b', 'sh', $Page::top ],
		'<' => \undef, '>' => \$out, '2>' => \$err);
	my ($calls, $pauses) = map { -e "$folder/$_" ? scalar(my @lines = split /^/, slurp_file("$folder/$_")) : 0 } 'calls', 'pauses';
	return ($ok ? 'succeeds' : 'fails', $err, "$calls calls, $pauses pauses");
}

my $lock = 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4711 (apt-get)';
my ($how, $said, $did) = update_with($lock, $lock, $lock);
is("$how: $did", 'succeeds: 4 calls, 3 pauses', 'an update waits for another apt');
like($said, qr/^waiting up to 10 minutes for another apt: \Q$lock\E$/m, 'it says what it waits for');
is(scalar(() = $said =~ /waiting/g), 1, '... once');
($how, $said, $did) = update_with('E: The repository is not signed.');
is("$how: $did", 'fails: 1 calls, 0 pauses', 'another error is not waited for');
like($said, qr/^E: The repository is not signed\.\n.*could not update the list of packages; an administrator can install: a b$/ms, 'it is shown');
($how, $said, $did) = update_with(($lock) x 200);
is("$how: $did", 'fails: 121 calls, 120 pauses', 'the wait ends');

# A pg_config that was named and is none
unlink "$folder/calls";
local %ENV = (%ENV, PATH => "$folder:$ENV{PATH}", FOLDER => $folder, PG_CONFIG => '/nonexistent');
my ($out, $err) = run_command([ "$Page::top/script/quickstart" ]);
is($err, 'quickstart: PG_CONFIG=/nonexistent is not that of a server with its headers and pgbench', 'script/quickstart says that pg_config is wrong');
ok(!-e "$folder/calls", '... before it installs anything');

done_testing();
