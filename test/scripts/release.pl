# script/lib/release.pl, by which script/release sees that a file is of another version, or
# that META.json is not as PGXN wants it.

use JSON::PP;
use SnowflakeTest;

my $top = "$FindBin::RealBin/../..";
my $dir = PostgreSQL::Test::Utils::tempdir();
my $meta = decode_json(slurp_file("$top/META.json"));
my $version = $meta->{version};

sub edit ($file, $change)
{
	my $path = "$dir/checkout/$file";
	my $text = $change->(slurp_file($path));

	unlink $path;
	append_to_file($path, $text);
	return;
}

# What it says of a copy in which a file is other, and whether it fails.  Dates are as on the day of a
# release.
sub said ($file = undef, $change = undef)
{
	my ($out, $err);

	system_or_bail('sh', '-c', 'rm -rf "$2" && mkdir "$2" && cd "$1" && cp -R --parents META.json CHANGELOG.md README.md *.control */*.control debian docs src/sql registry/script convert/*--*.sql keys/*--*.sql "$2"',
		'sh', $top, "$dir/checkout");
	edit('CHANGELOG.md', sub { $_[0] =~ s/^(## \d+\.\d+).*/$1 (2026-01-02)/mr });
	edit('debian/changelog', sub { $_[0] =~ s/UNRELEASED/unstable/r =~ s/^( -- .*>  ).*/$1Fri, 02 Jan 2026 00:00:00 +0000/mr });
	edit($file, $change) if $file;
	IPC::Run::run([ 'sh', '-c', 'cd "$1" && exec "$2" "$3"', 'sh', "$dir/checkout", "$top/script/lib/release.pl", $version ],
		'>' => \$out, '2>' => \$err);
	return ($? ? 'fails: ' : '') . $out . $err;
}

# The same with another META.json
sub said_of_meta ($change)
{
	return said('META.json', sub { my $copy = decode_json($_[0]); $change->($copy); return encode_json($copy) });
}

is(said(), '', 'the files of this checkout are of one version');
is(said('keys/snowflake_keys.control', sub { $_[0] =~ s/default_version = '/${&}9/r }),
	"fails: keys/snowflake_keys.control: default_version is not " . $version =~ s/\.\d+$//r . "\n", 'a control file');
like(said('CHANGELOG.md', sub { $_[0] =~ s/ \(\d{4}-.*\)$//mr }), qr/^fails: CHANGELOG\.md does not begin with: /, 'CHANGELOG.md without a date');
like(said('CHANGELOG.md', sub { $_[0] =~ s/ \(\d{4}-/ (1999-/r }),
	qr/^fails: debian\/changelog: the date is not that of CHANGELOG\.md$/, 'the date of debian/changelog');
like(said('debian/changelog', sub { $_[0] =~ s/\Q$version\E/9.9.9/r }), qr/^fails: debian\/changelog does not begin with version/, 'its version');
like(said('debian/changelog', sub { $_[0] =~ s/unstable/UNRELEASED/r }), qr/^fails: debian\/changelog: the distribution is still UNRELEASED$/, 'its distribution');
like(said('docs/develop/public.md', sub { $_[0] =~ s/\| 1\.0 \|/| 99.0 |/r }), qr/^fails: docs\/develop\/public\.md: \S+ is from 99\.0, after/, 'a public name of later');
like(said('docs/develop/public.md', sub { '' }), qr/^fails: docs\/develop\/public\.md has no names$/, 'no public names');
foreach (
	[ sub { delete $_[0]{abstract} }, 'abstract is missing' ],
	[ sub { $_[0]{version} = '9.0.0' }, "version is not $version: 9.0.0" ],
	[ sub { $_[0]{name} = 'snow flake' }, 'name is not term: snow flake' ],
	[ sub { $_[0]{license} = 'postgres' }, 'license is not license: postgres' ],
	[ sub { $_[0]{release_status} = 'final' }, 'release_status is not status: final' ],
	[ sub { $_[0]{tags} = [] }, 'tags is empty' ],
	[ sub { push @{ $_[0]{tags} }, 'a/b' }, 'tags is not tag: a/b' ],
	[ sub { $_[0]{author} = 1 }, 'author is unknown' ],
	[ sub { $_[0]{'meta-spec'}{url} = 'here' }, 'meta-spec: url is not url: here' ],
	[ sub { $_[0]{'meta-spec'}{version} = '1.0' }, 'meta-spec: version is not version: 1.0' ],
	[ sub { $_[0]{provides} = {} }, 'provides is missing' ],
	[ sub { $_[0]{provides}{snowflake}{file} = 'none.sql' }, 'provides: snowflake: file is not file: none.sql' ],
	[ sub { $_[0]{provides}{snowflake}{version} = '1.0' }, "provides: snowflake: version is not $version: 1.0" ],
	[ sub { $_[0]{provides}{'a b'} = $_[0]{provides}{snowflake} }, 'provides: a b is not term' ],
	[ sub { $_[0]{prereqs}{later} = {} }, 'prereqs: later is not phase' ],
	[ sub { $_[0]{prereqs}{test}{wants} = {} }, 'prereqs: test: wants is unknown' ],
	[ sub { $_[0]{prereqs}{test}{requires}{PostgreSQL} = '15' }, 'prereqs: test: PostgreSQL is not range: 15' ])
{
	my ($change, $wrong) = @$_;

	is(said_of_meta($change), "fails: META.json: $wrong\n", "META.json: $wrong");
}
done_testing();
