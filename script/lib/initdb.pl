#!/usr/bin/perl
# initdb of the tests' private installation.  Of the options that the tests' servers and
# pg_regress have, none makes a difference to what is made, so with these alone this copies
# a data directory that exists (PG_TEMPLATE), which takes a tenth of the time: as
# INITDB_TEMPLATE from PostgreSQL 17 on, but for all versions.  The copy gets a system
# identifier of its own.  With other options, the program itself does it.

use v5.36;

# Replace bytes of a file.
sub write_at ($path, $offset, $bytes)
{
	open(my $file, '+<:raw', $path) or die "$path: $!\n";
	sysseek($file, $offset, 0) or die "$path: $!\n";
	syswrite($file, $bytes) == length $bytes or die "$path: $!\n";
	close $file or die "$path: $!\n";
	return;
}

# CRC-32C, of which pg_control has one at its end.
sub crc32c ($bytes)
{
	my $crc = 0xffffffff;

	foreach my $byte (unpack 'C*', $bytes)
	{
		$crc ^= $byte;
		$crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 foreach 1 .. 8;
	}
	return $crc ^ 0xffffffff;
}

# Give a data directory another system identifier: in pg_control, which begins with it, and
# in the first page of the only file of WAL.
sub set_system_identifier ($data, $identifier)
{
	my $path = "$data/global/pg_control";

	open(my $file, '<:raw', $path) or die "$path: $!\n";
	sysread($file, my $control, 1024);
	close $file;

	# The CRC is at another place in each version.
	my ($end) = grep { unpack('L', substr($control, $_, 4)) == crc32c(substr($control, 0, $_)) }
	  map { 200 + 4 * $_ } 0 .. 100;
	die "$path has no CRC\n" unless $end;
	my $old = substr($control, 0, 8, $identifier);
	write_at($path, 0, substr($control, 0, $end) . pack('L', crc32c(substr($control, 0, $end))));
	my ($wal) = grep { /\/[0-9A-F]{24}$/ } glob("'$data/pg_wal/*'");

	# Where it is in that page depends on how the processor aligns 64 bits.
	open($file, '<:raw', $wal) or die "$wal: $!\n";
	sysread($file, my $page, 64);
	close $file;
	write_at($wal, index($page, $old), $identifier);
	return;
}

my ($data, @others);
my @arguments = @ARGV;
while (defined(my $argument = shift @arguments))
{
	if ($argument =~ /^(?:-D|--pgdata)$/)
	{
		$data = shift @arguments;
	}
	elsif ($argument =~ /^(?:-A|--auth)$/ && @arguments && $arguments[0] eq 'trust')
	{
		shift @arguments;
	}
	elsif ($argument !~ /^(?:-N|--no-sync|--no-clean)$/)
	{
		push @others, $argument;
	}
}
my $template = $ENV{PG_TEMPLATE} // '';
if (defined $data && !@others && -d $template && !-e $data)
{
	system('cp', '-a', $template, $data) == 0 or exit 1;

	# Its first half is the time, as initdb has it.
	set_system_identifier($data, pack('Q', time << 32 | ($$ << 12 ^ int(rand(1 << 12))) & 0xffffffff));
	exit;
}
exec "$0-program", @ARGV;
die "$0-program: $!\n";
