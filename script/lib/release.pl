#!/usr/bin/perl
# Check that all files of a checkout are those of one version: prints what is wrong, one a line.
#
#	script/lib/release.pl VERSION		such as 1.0.0, in the folder of the checkout
#
# META.json follows PGXN's rules (https://pgxn.org/spec/, 1.0.0), whose validator is in no package
# of Debian.

use v5.36;

use JSON::PP;
use Time::Piece;

my $version = shift // '';
my ($short) = $version =~ /\A(\d+\.\d+)\.\d+\z/ or die "VERSION is not such as 1.0.0\n";
my @wrong;

sub slurp ($path)
{
	open(my $file, '<:raw', $path) or die "$path: $!\n";
	local $/;
	return <$file>;
}
my $meta = decode_json(slurp('META.json'));

# Rules of values: each is true of what is right.
my %is = (
	string => sub { !ref $_[0] && length $_[0] },
	term => sub { !ref $_[0] && $_[0] =~ m{\A[^\s[:cntrl:]/\\]{2,}\z} },
	tag => sub { !ref $_[0] && $_[0] =~ m{\A[^[:cntrl:]/\\]{1,256}\z} },
	version => sub { !ref $_[0] && $_[0] =~ /\A(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-[a-zA-Z][\w-]*)?\z/a },
	$version => sub { $_[0] eq $version },
	range => sub { !grep { !/\A\s*(?:[=!]=|[<>]=?)?\s*(?:0|\d+\.\d+\.\d+\S*)\s*\z/ } split /,/, $_[0] },
	license => sub { !ref $_[0] && $_[0] =~ /\A(?:agpl_3|apache_[12]_[01]|artistic_[12]|bsd|freebsd|gfdl_1_[23]|gpl_[123]|lgpl_[23]_[01]|mit|mozilla_1_[01]|postgresql|open_source|restricted|unrestricted|unknown)\z/ },
	status => sub { $_[0] =~ /\A(?:stable|testing|unstable)\z/ },
	url => sub { $_[0] =~ m{\A\w[\w+.-]*://[^/?#]+} },
	file => sub { !ref $_[0] && -f $_[0] });

# Check the member of a map by a rule, which may be a list of such.
sub check ($map, $key, $rule, $where, $optional = undef)
{
	my $value = ref $map eq 'HASH' ? $map->{$key} : undef;

	if (!defined $value)
	{
		push @wrong, "META.json: $where$key is missing" unless $optional;
		return;
	}
	push @wrong, "META.json: $where$key is not $rule: $_" foreach grep { !$is{$rule}->($_) } ref $value eq 'ARRAY' ? @$value : $value;
	push @wrong, "META.json: $where$key is empty" if ref $value eq 'ARRAY' && !@$value;
	return;
}

# Members that a map may have; others begin with x_.
sub only ($map, $where, @known)
{
	my %known = map { $_ => 1 } @known;

	push @wrong, map { "META.json: $where$_ is unknown" } grep { !$known{$_} && !/^x_/i } sort keys %$map;
	return;
}

only($meta, '', qw(name version abstract maintainer license provides meta-spec description generated_by tags no_index
	  prereqs release_status resources));
check($meta, @$_, '') foreach [qw(name term)], [ 'version', $version ], [qw(abstract string)], [qw(maintainer string)], [qw(license license)];
check($meta, @$_, '', 1) foreach [qw(description string)], [qw(generated_by string)], [qw(tags tag)], [qw(release_status status)];
check($meta->{'meta-spec'}, @$_) foreach [ 'version', 'version', 'meta-spec: ' ], [ 'url', 'url', 'meta-spec: ', 1 ];
push @wrong, 'META.json: provides is missing' unless ref $meta->{provides} eq 'HASH' && %{ $meta->{provides} };
foreach my $name (sort keys %{ $meta->{provides} // {} })
{
	my $provided = $meta->{provides}{$name};

	push @wrong, "META.json: provides: $name is not term" unless $is{term}->($name);
	only($provided, "provides: $name: ", qw(file version abstract docfile));
	check($provided, @$_[ 0, 1 ], "provides: $name: ", $_->[2])
	  foreach [qw(file file)], [ 'version', $version ], [ 'abstract', 'string', 1 ], [ 'docfile', 'file', 1 ];
}
my $prereqs = $meta->{prereqs} // {};
push @wrong, map { "META.json: prereqs: $_ is not phase" } grep { !/\A(?:configure|build|test|runtime|develop)\z/ } sort keys %$prereqs;
foreach my $phase (sort keys %$prereqs)
{
	only($prereqs->{$phase}, "prereqs: $phase: ", qw(requires recommends suggests conflicts));
	foreach my $map (map { $prereqs->{$phase}{$_} } sort keys %{ $prereqs->{$phase} })
	{
		check($map, $_, 'range', "prereqs: $phase: ") foreach sort keys %$map;
	}
}

# The other places: the versions of the SQL scripts, the dates on which it is published.
foreach my $control (glob('*.control */*.control'))
{
	my ($is) = slurp($control) =~ /^default_version = '(.*)'$/m;

	push @wrong, "$control: default_version is not $short" unless ($is // '') eq $short;
}
my ($title) = slurp('CHANGELOG.md') =~ /^## (.*)$/m;
my ($date) = ($title // '') =~ /\A\Q$short\E \((\d{4}-\d\d-\d\d)\)\z/;
push @wrong, "CHANGELOG.md does not begin with: ## $short (YEAR-MONTH-DAY)" unless $date && eval { Time::Piece->strptime($date, '%Y-%m-%d') };
my $package = slurp('debian/changelog');
push @wrong, "debian/changelog does not begin with version $version-1" unless $package =~ /\A\S+ \(\Q$version\E-1\) /;
push @wrong, 'debian/changelog: the distribution is still UNRELEASED' if $package =~ /\A.* UNRELEASED;/;
push @wrong, 'debian/changelog: the date is not that of CHANGELOG.md'
  unless $date && $package =~ /^ -- .*  \w+, (\d\d \w+ \d{4}) /m && Time::Piece->strptime($1, '%d %b %Y')->ymd eq $date;

# No public name is from a version that comes later.
my $names = 0;
foreach my $row (grep { /^\| `/ } split /\n/, slurp('docs/develop/public.md'))
{
	my (undef, $name, undef, $since) = split / *\| */, $row;

	$names++;
	push @wrong, "docs/develop/public.md: $name is from $since, after $short"
	  if sprintf('%04d%04d', split /\./, $since) > sprintf('%04d%04d', split /\./, $short);
}
push @wrong, 'docs/develop/public.md has no names' unless $names;
print map { "$_\n" } @wrong;
exit(@wrong ? 1 : 0);
