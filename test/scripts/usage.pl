# How scripts are called: each prints its head comment when asked for help, and refuses what it does
# not know, before it does anything; and what they say is missing on a machine is what is missing.

use SnowflakeTest;

chdir "$FindBin::RealBin/../.." or die $!;

# Run a command, which would do its work otherwise: its status, output and errors.
sub call
{
	my ($out, $err);

	IPC::Run::run([ 'timeout', 60, @_ ], '<' => \undef, '>' => \$out, '2>' => \$err);
	return [ $? >> 8, $out, $err ];
}

foreach my $script (grep { -f && -x } glob('script/* script/tests/* bench/run .ci/run'))
{
	my ($head) = slurp_file($script) =~ /\A#!.*\n((?:#.*\n)+)/;
	$head =~ s/^# ?//mg;
	my ($usage) = $head =~ /^((?:\t.*\n)+)/m;

	like($usage, qr/\Q$script\E/, "$script says how to call it");
	is_deeply(call($script, $_), [ 0, $head, '' ], "$script $_") foreach '-h', '--help';
	foreach my $unknown ('--no-such-option', 'no-such-argument')
	{
		my ($status, $out, $err) = @{ call($script, $unknown) };

		is("$status $out", '1 ', "$script $unknown fails");
		like($err, qr/^[a-z]+: .*\nusage:\n\Q$usage\E\z/, '... and says how to call it');
	}
}

# What an ordinary user is told who has no sudo, and not these commands
sub told
{
	return call('sh', '-c', q{
		top=$PWD
		. script/lib/common.sh
		absent=" sudo $* "
		have_commands() { for command; do case $absent in *" $command "*) return 1 ;; esac; done; }
		id() { echo 1000; }
		install_missing tests}, 'sh', @_)->[2];
}
is(told(), '', 'nothing is missing');
is(told('pgrep'), "sh: please have an administrator install: pgrep\n", 'one thing is missing');
is(told('cc', 'make', 'prove'), "sh: please have an administrator install: a C compiler, make, Perl with IPC::Run and Test::More\n", 'some are missing');
delete $ENV{PG_CONFIG};
like(told('apt-get', 'pg_config'), qr/^sh: please install: PostgreSQL 15 or later[^,]*\n\z/, 'PostgreSQL is missing on another system');
done_testing();
