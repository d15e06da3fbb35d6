# Use DBIx::SearchBuilder as RT does: objects of a table of its own.  Prints what does not
# depend on the IDs.

use strict;
use warnings;

package Ticket;
use parent 'DBIx::SearchBuilder::Record';

sub Table { return 'tickets'; }

sub _ClassAccessible
{
	return { id => { read => 1, type => 'int(11)' }, subject => { read => 1, write => 1, type => 'varchar(255)' } };
}

package main;
use DBIx::SearchBuilder::Handle::Pg;

my $handle = DBIx::SearchBuilder::Handle::Pg->new;
$handle->Connect(Driver => 'Pg', Database => $ENV{PGDATABASE}, User => $ENV{PGUSER});
my $ticket = Ticket->new($handle);
my ($id, $message) = $ticket->Create(subject => $ARGV[0]);
die 'no ID: ' . ($message // '') . "\n" unless $id;
my $again = Ticket->new($handle);
$again->Load($id);
print 'found: ', $again->subject eq $ARGV[0] ? 'yes' : 'no', "\n";
$again->Setsubject("$ARGV[0] closed");
my $changed = Ticket->new($handle);
$changed->LoadByCols(subject => "$ARGV[0] closed");
print 'changed: ', $changed->id eq $id ? 'yes' : 'no', "\n";
