# Histories of script/tests/torture: a directory for each set of servers that may not
# have an ID in common, with what their witnesses (test/worlds/torture/witness) write and what
# is noted here, which test/worlds/torture/check_history checks.

package History;

use v5.36;

use Exporter 'import';
use File::Basename;
use File::Path qw(rmtree);
use POSIX qw(WNOHANG);
use PostgreSQL::Test::Utils;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC usleep);

our @EXPORT = qw(
  new_history fact steady_us witness_command start_marks end_marks ids_only not_only_ids check_history
  history_figures
);

my $here = dirname(__FILE__);
my $histories = 0;
my %total = map { $_ => 0 } qw(histories calls ids sessions grants marks wrong);

sub new_history
{
	my $history = {
		directory => "$PostgreSQL::Test::Utils::tmp_check/history" . ++$histories,
		marks => []
	};

	mkdir $history->{directory} or die "$history->{directory}: $!";
	return $history;
}

# Something that the checker has to know.
sub fact ($history, @words) { append_to_file("$history->{directory}/facts", "@words\n"); return; }

# The clock of witnesses.
sub steady_us { return int(1_000_000 * clock_gettime(CLOCK_MONOTONIC)); }

# The command of a client of this server, or in histories, of another name that it has
# there.  It makes "calls", or those of "sequences".
sub witness_command ($history, $node, $server, $session, $what)
{
	return (
		$^X, "$here/witness", $what, $node->host, $node->port, scalar getpwuid($>),
		$server, $session, "$history->{directory}/$session.calls");
}

# From now on write down the marks that a standby has, which is synchronous for this
# server.
sub start_marks ($history, $server, $standby)
{
	my $name = $standby->name;
	my $pid = fork() // die "fork: $!";

	if ($pid == 0)
	{
		open(STDERR, '>', '/dev/null') or POSIX::_exit(1);
		exec($^X, "$here/witness", 'marks', $standby->host, $standby->port,
			scalar getpwuid($>), $name, '.', "$history->{directory}/$name.marks")
		  or POSIX::_exit(1);
	}
	push @{ $history->{marks} },
	  { pid => $pid, server => $server, standby => $name, from => steady_us() };
	return;
}

# The standby is no longer synchronous, or is about to be promoted.
sub end_marks ($history)
{
	while (my $marks = pop @{ $history->{marks} })
	{
		fact($history, 'synchronous', @$marks{ 'server', 'standby', 'from' }, steady_us());
		kill 'TERM', $marks->{pid};
		waitpid $marks->{pid}, 0;
	}
	return;
}

# From now on sequences of a server give out IDs alone.
sub ids_only ($history, $server) { $history->{ids_only}{$server} //= steady_us(); return; }

# They are about to become local.
sub not_only_ids ($history, $server)
{
	my $from = delete $history->{ids_only}{$server} // return;

	fact($history, 'ids', $server, $from, steady_us());
	return;
}

# Check a history, whose witnesses have ended, and remove it unless something is
# wrong.  Returns the greatest ID and what is wrong.
sub check_history ($history)
{
	end_marks($history);
	not_only_ids($history, $_) foreach sort keys %{ $history->{ids_only} // {} };
	my $output = qx('$^X' '$here/check_history' '$history->{directory}' 2>&1);
	my $status = $?;
	my @wrong = split /\n/, $output;
	my $verdict = pop @wrong // '';
	my ($calls, $ids, $n_sessions, $grants, $marks, $greatest, $n) = $verdict =~
	  /^(\d+) calls, (\d+) IDs, (\d+) sessions, (\d+) grants, (\d+) marks, greatest ID (\d+): (\d+) wrong/;

	if (!defined $n)
	{
		$total{wrong}++;
		return (0, "the history cannot be read: $output");
	}
	my %its = (
		histories => 1,
		calls => $calls,
		ids => $ids,
		sessions => $n_sessions,
		grants => $grants,
		marks => $marks,
		wrong => $n);
	$total{$_} += $its{$_} foreach keys %its;
	if ($status != 0)
	{
		print "# the history is in $history->{directory}\n";
		return ($greatest, @wrong, $verdict);
	}
	rmtree($history->{directory});
	return ($greatest);
}

# What was checked so far, and how much of it was wrong.
sub history_figures
{
	my $line = sprintf
	  '%d histories of %d sessions checked: %d calls, %d IDs, %d grants, %d marks of standbys, %d wrong',
	  @total{qw(histories sessions calls ids grants marks wrong)};

	return wantarray ? ($line, @total{qw(wrong calls ids)}) : $line;
}

1;
