# The rules of the house: who calls whom, who includes whom, and how big things are.
#
#	house.pl BUILD		in the checkout; BUILD has its objects
#
# A page of each library has its floors: the first block of code in the section "The
# source" has a line for each floor, with the names of its files; a line that begins
# with a blank continues the description of the one before.
#
#	Calls	Each file calls only files on lines further down, by the symbols of objects.
#			So there is no circle.  A folder's lines stand together, so there is none of
#			folders, either.
#	Includes	Each file includes only its own header, and those of files further down.
#			A header without a source may be included by all files.
#	Libraries	The others know of the core only the C interface, and its own part, the
#			client of a registry, its headers; all may use shared/.  Each exports only
#			what the server, SQL, or another of them calls.
#	Sizes	Files, lines, scripts of extensions and the core's library have limits.
#	Readmes	Each folder says what it is for.
#
# It fails, and says why, if something is not so; also if a file is not on its page, or
# the page names one that does not exist.

use v5.36;

my ($build) = @ARGV;
my @wrong;

use constant {
	FILE_LINES => 800,
	COLUMNS => 100,
	SCRIPT_LINES => 600,
	README_LINES => 60,
	TEXT_BYTES => 200_500,
};

# The libraries: the page with their floors, where their objects are below BUILD, their
# sources, and which headers of the core they know, other than the C interface.
my @libraries = (
	{ page => 'CONTRIBUTING.md', objects => '.', sources => [ 'src', 'src/*', 'shared' ], library => 'snowflake' },
	{ page => 'registry_client/README.md', objects => 'registry_client', sources => [ 'registry_client', 'registry_client/*' ], library => 'snowflake_registry_client', knows => qr/^src\// },
	{ page => 'convert/README.md', objects => 'convert', sources => [ 'convert', 'convert/*' ], library => 'snowflake_convert' },
	{ page => 'keys/README.md', objects => 'keys', sources => ['keys'], library => 'snowflake_keys' });

sub slurp ($file)
{
	open(my $handle, '<', $file) or die "$file: $!";
	local $/;
	return <$handle>;
}

sub wrong { push @wrong, @_; return; }

# The floor of each file of a page, by its name without an ending.
sub read_floors ($page, @sources)
{
	my ($section) = slurp($page) =~ /^## The source\n(.*?)(?:^## |\z)/ms
	  or die "$page has no section \"The source\"";
	my ($block) = $section =~ /^```\w*\n(.*?)^```$/ms
	  or die "$page has no block in \"The source\"";
	my (%floor, %there, %left);
	my ($n, $last) = (0, '');

	foreach my $line (grep { /^\S/ } split /\n/, $block)
	{
		$n++;
		my ($names) = $line =~ /^((?:\S+\.c +)*\S+\.c)(?: |$)/
		  or die "$page: no file in the line \"$line\"";
		foreach my $unit (map { s/\.c$//r } split ' ', $names)
		{
			my $folder = $unit =~ s/[^\/]*$//r;

			wrong("$page returns to $folder with $unit.c") if $left{$folder};
			$left{$last} = 1 if $folder ne $last;
			$last = $folder;
			wrong("$page names $unit.c twice") if $floor{$unit};
			$floor{$unit} = $n;
		}
	}
	$there{ s/\.c$//r } = 1 foreach @sources;
	wrong(map { "$page does not name $_.c" } grep { !$floor{$_} } sort keys %there);
	wrong(map { "$page names $_.c, which does not exist" } grep { !$there{$_} } sort keys %floor);
	return %floor;
}

# What objects call of each other: [from, to, symbols]
sub calls (%objects)
{
	my (%defined_by, %undefined, @calls);

	foreach my $unit (sort keys %objects)
	{
		$undefined{$unit} = [];
		foreach my $line (split /\n/, qx(nm '$objects{$unit}'))
		{
			$defined_by{$1} = $unit if $line =~ / [A-TV-Z] (\w+)$/;
			push @{ $undefined{$unit} }, $1 if $line =~ / U (\w+)$/;
		}
	}
	foreach my $from (sort keys %undefined)
	{
		my %symbols;

		foreach my $symbol (@{ $undefined{$from} })
		{
			my $to = $defined_by{$symbol};

			push @{ $symbols{$to} }, $symbol if defined $to && $to ne $from;
		}
		push @calls, map { [ $from, $_, "@{ $symbols{$_} }" ] } sort keys %symbols;
	}
	return @calls;
}

# The file of a library.
sub library_file ($library) { return "$build/$library->{objects}/$library->{library}.so"; }

# The symbols of a library that others see, or that it takes from others.
sub dynamic_symbols ($library, $which)
{
	return map { / (\w+)$/ } split /\n/, qx(nm -D '$which' '@{[library_file($library)]}');
}

# The headers of the checkout that a file includes, as files.
sub includes ($file)
{
	return map { -e "src/$_" ? "src/$_" : $_ }
	  grep { -e $_ || -e "src/$_" } slurp($file) =~ /^#include "(.*?)"/mg;
}

foreach my $library (@libraries)
{
	my @folders = grep { my @c = glob("$_/*.c"); @c > 0 } map { glob } @{ $library->{sources} };
	my @sources = map { glob("$_/*.c") } @folders;
	my @headers = map { glob("$_/*.h") } @folders;
	my %floor = read_floors($library->{page}, @sources);
	my $prefix = $library->{objects} eq '.' ? '' : "$library->{objects}/";
	my $own = $prefix || 'src/';

	my %objects = map { s/\.c$//r => "$build/$prefix" . s/^\Q$prefix\E//r =~ s/\.c$/.o/r } @sources;
	foreach my $call (calls(%objects))
	{
		my ($from, $to, $symbols) = @$call;

		wrong("$from.c calls $to.c, which is not below it: $symbols")
		  if $floor{$from} && $floor{$to} && $floor{$to} <= $floor{$from};
	}

	foreach my $file (@sources, @headers)
	{
		my $from = $file =~ s/\.[ch]$//r;

		foreach my $header (includes($file))
		{
			my $to = $header =~ s/\.h$//r;

			wrong("$file includes $header, which is of another library")
			  if $header !~ /^(?:\Q$own\E|shared\/)/ && $header !~ ($library->{knows} // qr/^src\/snowflake_api\.h$/);
			wrong("$file includes $header, which is not below it")
			  if $to ne $from && $floor{$from} && $floor{$to} && $floor{$to} <= $floor{$from};
			# A header alone is below all sources, so it includes none of theirs.
			wrong("$file includes $header, but is not the header of a source")
			  if $file =~ /\.h$/ && !$floor{$from} && $floor{$to};
		}
	}

	foreach my $file (@sources, @headers, map { glob("$_/queries/*.sql") } @folders)
	{
		my @lines = split /\n/, slurp($file);
		my $n = 0;

		wrong("$file has " . @lines . ' lines, more than ' . FILE_LINES) if @lines > FILE_LINES;
		foreach my $line (@lines)
		{
			$n++;
			# A tab goes to the next multiple of 4.
			1 while $line =~ s/\t/' ' x (4 - length($`) % 4)/e;
			# Texts are not divided, so that a search finds them.
			$line =~ s/"(?:[^"\\]|\\.)*"/""/g;
			$line =~ s/'(?:[^']|'')*'/''/g if $file =~ /\.sql$/;
			wrong("$file:$n is longer than " . COLUMNS . ' columns') if length($line) > COLUMNS;
		}
	}

	# The core's own page is CONTRIBUTING.md.
	foreach my $folder (grep { $_ ne 'src' } @folders, $prefix ? () : 'registry')
	{
		if (!-e "$folder/README.md")
		{
			wrong("$folder has no README.md");
			next;
		}
		my $lines = () = slurp("$folder/README.md") =~ /\n/g;
		wrong("$folder/README.md has $lines lines, more than " . README_LINES) if $lines > README_LINES;
	}
}

my %called = map { $_ => 1 } map { dynamic_symbols($_, '--undefined-only') } @libraries;
my %exported = map { $_->{library} => [ dynamic_symbols($_, '--defined-only') ] } @libraries;
my %defined = map { $_ => 1 } map { @$_ } values %exported;
foreach my $library (sort keys %exported)
{
	my %sql = map { s/^pg_finfo_//r => 1 } grep { /^pg_finfo_/ } @{ $exported{$library} };

	# The magic block, and the main functions of background workers.
	wrong(map { "$library exports $_, which nothing calls" }
		  grep { !$called{$_} && !$sql{s/^pg_finfo_//r} && !/^(?:Pg_magic_func|_PG_init|snowflake_\w+_main)$/ } @{ $exported{$library} });
}
wrong(map { "no library exports $_, which one calls" } grep { /^snowflake_/ && !$defined{$_} } sort keys %called);

# heap_getattr() is inline, and a minor version has added what it calls: a library that was
# built with its headers could not be loaded by the one before.
wrong('a library calls heap_getattr(), which binds it to a minor version') if $called{heap_datum_check};

foreach my $script (glob('src/sql/*.sql registry/script/*.sql'), map { glob("$_/snowflake*--*.sql") } 'convert', 'keys')
{
	my $lines = () = slurp($script) =~ /\n/g;
	wrong("$script has $lines lines, more than " . SCRIPT_LINES) if $lines > SCRIPT_LINES;
}
my ($text) = qx(size '@{[library_file($libraries[0])]}') =~ /^\s*(\d+)/m or die "no size of $build/snowflake.so";
wrong("snowflake.so has $text bytes of text, more than " . TEXT_BYTES) if $text > TEXT_BYTES;

print map { "$_\n" } @wrong;
exit(@wrong != 0);
