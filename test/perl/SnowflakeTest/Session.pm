# A session of psql that stays, whose statements are executed one by one.

package SnowflakeTest::Session;

use v5.36;

use IPC::Open3;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

my $END = 'the-end-of-a-statement';

# With the rest of the arguments, psql has more options.
sub new ($class, $node, $database, @options)
{
	my $self = bless { node => $node, database => $database, options => \@options }, $class;

	$self->connect;
	return $self;
}

sub connect ($self)
{
	my ($in, $out);

	local %ENV = $self->{node}->_get_env();
	$self->{pid} = open3($in, $out, undef, $self->{node}->installed_command('psql'), '-XAtq',
		'-v', 'VERBOSITY=verbose', '-v', 'SHOW_CONTEXT=never', @{ $self->{options} }, '-d', $self->{node}->connstr($self->{database}));
	@$self{qw(in out)} = ($in, $out);
	$in->autoflush(1);
	return;
}

# Executes statements; returns what they print, without where that stands in the server's
# source, and the first error of it, or an empty string.
sub run ($self, $sql)
{
	$self->send($sql);
	return $self->receive;
}

# The same in two parts, between which others can do something
sub send ($self, $sql) { print { $self->{in} } "$sql\n;\n\\echo $END\n"; return; }

sub receive ($self)
{
	my $said = '';

	alarm($PostgreSQL::Test::Utils::timeout_default);
	while (defined(my $line = readline $self->{out}))
	{
		last if $line eq "$END\n";
		$said .= $line if $line !~ /^LOCATION: |^LINE \d+:|^ +\^$/;
	}
	alarm(0);
	chomp $said;
	my ($error) = $said =~ /^((?:ERROR|FATAL|PANIC): .*)/m;
	return ($said, $error // '');
}

sub close ($self)
{
	close $self->{in};
	close $self->{out};
	waitpid $self->{pid}, 0;
	return;
}

1;
