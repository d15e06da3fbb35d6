# The ledger of script/tests/torture finds duplicates and falls that are planted, and
# nothing in IDs that are right.

use FindBin;
use lib $FindBin::RealBin;
use SnowflakeTest;
use Torture;

plan skip_all => 'there is no C compiler'
  if system('command -v cc >/dev/null') != 0;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $ledger = start_ledger();
my $files = 0;

# What the ledger answers: its figures, and how many lines tell of each kind.
sub figures_of
{
	my ($answer, @wrong) = ask_ledger($ledger, $_[0]);
	my %figures;

	@figures{qw(ids duplicates falls shared foreign workers runs most)} =
	  split ' ', $answer;
	$figures{told} = join ' ', sort map { /^(\w+):/ } @wrong;
	return \%figures;
}

# Clients that received these lists of IDs or of runs.
sub receive ($line, @lists)
{
	my @told;

	foreach my $list (@lists)
	{
		my $file = "$dir/" . ++$files;
		append_to_file($file, join '', map { "$_\n" } @$list);
		ask_ledger($ledger, "client $files $line $file");
	}
	my $figures = figures_of('take');
	ask_ledger($ledger, "close $_") foreach $files - @lists + 1 .. $files;
	return $figures;
}

sub begin
{
	ask_ledger($ledger, 'begin 12 10 0 0');
	ask_ledger($ledger, 'line 1 0');
	return;
}

sub is_clean ($figures, $ids, $name)
{
	is("@$figures{qw(ids duplicates falls shared foreign)} $figures->{told}",
		"$ids 0 0 0 0 ", $name);
	return;
}

sub id ($tick, $number, $worker = undef) { return $tick << 22 | ($worker // 5) << 12 | $number; }

# IDs that are right, by clients that take turns and in runs.
begin();
my @ids = map { my $tick = $_; map { id($tick, $_) } 0 .. 99 } 1000 .. 1099;
my $figures = receive(
	1,
	[ @ids[ grep { $_ % 3 == 0 } 0 .. $#ids ] ],
	[ @ids[ grep { $_ % 3 == 1 } 0 .. $#ids ] ],
	[ @ids[ grep { $_ % 3 == 2 } 0 .. $#ids ] ]);
is_clean($figures, 10_000, 'the ledger accepts IDs that increase');
is($figures->{runs}, 100, 'the ledger keeps one run per tick');
is_clean(
	receive(1, [ map { id($_, 0) . ' 4096' } 2000 .. 2999 ]),
	10_000 + 4_096_000, 'the ledger accepts runs that increase');
is_clean(figures_of('forget'), 4_106_000, 'the ledger counts the IDs of a life');
is_clean(
	receive(1, [ map { id($_, 0) . ' 4096' } 3000 .. 3999 ]),
	8_202_000, 'the ledger accepts runs of the next life');
is((ask_ledger($ledger, 'first 1'))[0], $ids[0], 'the ledger accepts the least ID');
is((ask_ledger($ledger, 'last 1'))[0], id(3999, 4095), 'the ledger accepts the greatest ID');

# One duplicate each: of a single ID and one of another client, or of a run
begin();
receive(1, \@ids);
ask_ledger($ledger, 'line 2 0');
$figures = receive(2, [ $ids[4711] ]);
is("$figures->{ids} $figures->{duplicates} $figures->{falls}",
	'10001 1 0', 'the ledger finds an ID that another client received, too');
like($figures->{told}, qr/duplicate/, 'the ledger reports a duplicate');
begin();
receive(1, [ id(1000, 0) . ' 4096' ], [ id(1000, 4095) . ' 1' ]);
$figures = figures_of('take');
is($figures->{duplicates}, 1, 'the ledger finds the last ID of a run again');
begin();
receive(1, [ id(1000, 100) . ' 200' ], [ id(1000, 50) . ' 100' ]);
is(figures_of('take')->{duplicates}, 50, 'the ledger finds runs that overlap');

# Falls
begin();
$figures = receive(1, [ id(1001, 1), id(1001, 0), id(1001, 2) ]);
is("$figures->{falls} $figures->{duplicates} $figures->{told}",
	'1 0 fall', 'the ledger finds an ID that is not above those of its client');
begin();
ask_ledger($ledger, 'line 1 ' . id(1000, 7));
is(receive(1, [ id(1000, 7) ])->{falls},
	1, 'the ledger finds an ID that is not above those before the life-line');
begin();
receive(1, [ id(1001, 5) ]);
is(receive(1, [ id(1001, 4) ])->{falls},
	1, 'the ledger finds an ID that is not above those of an earlier client');

# What was forgotten is a fall, and a duplicate if it is still known.
begin();
receive(1, [ map { id($_, 0) . ' 10' } 1000 .. 1099 ]);
figures_of('forget');
$figures = receive(1, [ id(1050, 3) ]);
is("$figures->{falls} $figures->{duplicates}",
	'1 1', 'the ledger finds an ID of an earlier life again');
begin();
receive(1, [ map { id($_, 0) . ' 10' } 1000 .. 1099 ]);
figures_of('forget');
is(receive(1, [ id(999, 3) ])->{falls},
	1, 'the ledger finds an ID that is not above those of an earlier life');

# Other worker IDs
ask_ledger($ledger, 'begin 12 10 1 9');
ask_ledger($ledger, 'line 1 0');
ask_ledger($ledger, 'line 2 0');
receive(1, [ id(1000, 0) ]);
receive(2, [ id(1000, 1), id(1000, 2, 10) ]);
$figures = figures_of('take');
is("$figures->{shared} $figures->{foreign}",
	'1 1', 'the ledger finds a tick that two life-lines used, and a foreign worker ID');

# The filter
my $in = "$dir/in";
append_to_file($in, join '', map { "$_\n" } @ids, id(5000, 0), 'the ledger refuses what is not an ID');
my $out = qx('$PostgreSQL::Test::Utils::tmp_check/ledger' pack <'$in');
my @runs = map { [ split ' ' ] } split /\n/, $out;
my @unpacked = map { my ($first, $n) = @$_; map { $first + $_ } 0 .. $n - 1 } @runs;
is("@unpacked", "@ids " . id(5000, 0), 'the filter loses nothing');
cmp_ok(scalar(@runs), '<', 120, 'the filter turns IDs into runs');

done_testing();
