# The IDs that clients received, and whether any is there twice or falls.

package SnowflakeTest::Ledger;

use v5.36;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT = qw(
  new_ledger note_ids first_id verdict
);

#
# The ledger: all IDs that any client received, committed or not.  It is kept
# in eras, as long as a server runs without a break; each ID of an era has to
# be greater than all of the eras before, and each that a client received
# greater than the ones that it received before.  A duplicate from another era
# counts as a fall only.
#
sub new_ledger
{
	return {
		ids => 0,
		duplicates => 0,
		falls => 0,
		last => 0,
		longest_wait => 0
	};
}

# Note the IDs of one era, a list for each client in the order of receipt.
sub note_ids ($ledger, @clients)
{
	my %seen;
	my $greatest = $ledger->{last};

	foreach my $ids (@clients)
	{
		my $last = $ledger->{last};
		foreach my $id (@$ids)
		{
			$ledger->{ids}++;
			$ledger->{duplicates}++ if $seen{$id}++;
			$ledger->{falls}++ if $id <= $last;
			$last = $id;
		}
		$greatest = $last if $last > $greatest;
	}
	$ledger->{last} = $greatest;
	return;
}

# One ID, and a note of how long it took: what it takes to connect does not
# count.  In a context of lists also the error that the call got instead, which
# is fatal otherwise.
sub first_id ($ledger, $node)
{
	my ($stdout, $stderr);

	$node->psql(
		'postgres', q{
		\set VERBOSITY verbose
		\timing on
		SELECT snowflake_nextval();},
		stdout => \$stdout,
		stderr => \$stderr,
		on_error_stop => 0,
		timeout => $PostgreSQL::Test::Utils::timeout_default,
		timed_out => \my $timed_out);
	$stderr = 'no answer' if $timed_out;
	my ($id, $ms) = $stdout =~ /^(\d+)\nTime: (\d+\.\d+) ms/;
	if (defined $id)
	{
		$ledger->{longest_wait} = $ms / 1000
		  if $ms / 1000 > $ledger->{longest_wait};
		return wantarray ? ($id, '') : $id;
	}
	die $stderr unless wantarray;
	return (undef, $stderr);
}

# What the ledger says, to be compared with '0 duplicates, 0 falls'.
sub verdict ($ledger) { return "$ledger->{duplicates} duplicates, $ledger->{falls} falls"; }

1;
