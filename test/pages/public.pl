# docs/develop/public.md has each name that users type, since when there is one, and the page that
# says what it is.  It is made here of the catalog and the pages; only the versions of names that
# it has are its own.  What is internal says so by its comment, and by its name outside of the
# registry's schema.

use Page;
use SnowflakeTest;

my $list = 'docs/develop/public.md';
my $node = new_server('main');
sql($node, "CREATE EXTENSION $_") foreach qw(snowflake_registry snowflake_convert snowflake_keys);
my $version = sql($node, q{SELECT default_version FROM pg_available_extensions WHERE name = 'snowflake'});

sub rows ($query) { return map { [ split /\|/, $_, -1 ] } split /\n/, sql($node, $query); }

# What is public: its members, and what it is called on its page.
my (%members, %kind);

# Functions, with the names of arguments and results of all forms; those that servers call have
# what their library knows.
foreach (rows(q{
	SELECT CASE extname WHEN 'snowflake_registry' THEN extname || '.' ELSE '' END || proname || '()',
	    CASE WHEN obj_description(p.oid, 'pg_proc') ~ '^for servers:' THEN '' ELSE array_to_string(proargnames, ' ') END
	FROM pg_proc p JOIN pg_depend d ON (d.classid, d.objid, d.deptype) = ('pg_proc'::regclass, p.oid, 'e')
	    JOIN pg_extension e ON d.refobjid = e.oid
	WHERE extname ~ '^snowflake' AND obj_description(p.oid, 'pg_proc') !~ '^internal:'
	ORDER BY pronargs, p.oid}))
{
	my ($name, $arguments) = @$_;

	$kind{$name} = 'function';
	push @{ $members{$name} }, split ' ', $arguments;
}

# Views, with their columns.
foreach (rows(q{
	SELECT attrelid::regclass, attname
	FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid AND relkind = 'v' AND attnum > 0
	    JOIN pg_depend d ON (d.classid, d.objid, d.deptype) = ('pg_class'::regclass, c.oid, 'e')
	WHERE obj_description(c.oid, 'pg_class') !~ '^internal:'
	ORDER BY attnum}))
{
	my ($name, $column) = @$_;

	$kind{$name} = 'view';
	push @{ $members{$name} }, $column;
}

# Settings, and the C interface.
foreach (rows(q{SELECT name FROM pg_settings WHERE name LIKE 'snowflake.%'}))
{
	$kind{ $_->[0] } = 'setting';
	$members{ $_->[0] } = [];
}
my $api = Page::slurp('src/snowflake_api.h');
foreach my $struct ($api =~ /^typedef struct \w+\n\{\n(.*?^\} \w+;)/msg)
{
	my ($name) = $struct =~ /^\} (\w+);/m;

	$kind{$name} = 'C';
	$members{$name} = [ map { /\(\*(\w+)\)/ || /(\w+);/ ? $1 : () } grep { /^\t\S/ && !/^\t\/?\*/ } split /\n/, $struct ];
}
foreach (['function', 60], ['view', 5], ['setting', 15], ['C', 4])
{
	my ($what, $least) = @$_;

	cmp_ok(scalar(grep { $_ eq $what } values %kind), '>=', $least, "names are found: $what");
}

# The page of each: where a table has the function or the setting, where an example reads the view,
# and the one of the C interface.
my %page = map { $_ => 'docs/develop/api.md' } grep { $kind{$_} eq 'C' } keys %kind;
foreach my $page (map { Page->look($_) } map { s/^\Q$Page::top\E\///r } sort glob("$Page::top/docs/{,develop/}*.md"))
{
	my $text = $page->{text};

	foreach my $cell (map { /^\| (.*?) \|/mg } $text =~ /^(\| (?:function|setting) \|.*?)\n\n/msg)
	{
		$page{$_} = $page->{file} foreach map { s/\(.*/()/sr } $cell =~ /`([^`]+)`/g;
	}
	$page{ $_ =~ s/\W+\z//r } = $page->{file} foreach $text =~ /FROM ([\w.]+)(?:(?!FROM ).)*?\n\| column /sg;
}

# What the list says of versions: of a name, and of a member that is younger.
my %since;
foreach my $row (-e "$Page::top/$list" ? Page::slurp($list) =~ /^\| (`.*) \|$/mg : ())
{
	my ($name, $names, $since) = $row =~ /^`(.*?)` \| (.*?) \| (\S+) \|/;

	$since{$name} = $since;
	$since{"$name $1"} = $2 // $since while $names =~ /`(\w+)`(?: \((\S+)\))?/g;
}

my $made = <<'HEAD';
# Public names

What users type, since when it is there, and its page. A test makes this list
(`test/pages/public.pl`, which says where the new one is). No name in it changes or goes without
a [deprecation](../../CONTRIBUTING.md#what-must-always-hold). What is not in it is internal.

| name | arguments and columns | since | page |
|---|---|---|---|
HEAD
my %order = (setting => 0, function => 1, view => 2, C => 3);
my %there;
foreach my $name (sort { $order{ $kind{$a} } <=> $order{ $kind{$b} } || $a cmp $b } keys %kind)
{
	my $first = $since{$name} // $version;
	my (%seen, @names);

	$there{$name} = 1;
	foreach my $member (grep { !$seen{$_}++ } @{ $members{$name} })
	{
		my $version_of = $since{"$name $member"} // (defined $since{$name} ? $version : $first);

		$there{"$name $member"} = 1;
		push @names, "`$member`" . ($version_of eq $first ? '' : " ($version_of)");
	}
	my $page = $page{$name} // '';
	my ($title) = $page =~ /(\w[\w-]*)\.md$/;
	my $link = $page =~ s/^docs\///r =~ s/^(?!develop\/)/..\//r =~ s/^develop\///r;
	$made .= "| `$name` | " . join(', ', @names) . " | $first | " . ($page eq '' ? '' : "[$title]($link)") . " |\n";
}
is(join(' ', grep { !defined $page{$_} } sort keys %kind), '', 'each public name has a page');
is(join(', ', grep { !$there{$_} } sort keys %since), '', 'no public name is gone (CONTRIBUTING says how one goes)');
my $new = $PostgreSQL::Test::Utils::log_path . '/public.md';
append_to_file($new, $made);
ok(-e "$Page::top/$list" && Page::slurp($list) eq $made, "$list is up to date")
  or diag("Copy public.md, which is where the logs are, to $list.");

# What is internal.
is( sql($node, q{
		SELECT string_agg(pg_describe_object(d.classid, d.objid, 0), ', ')
		FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid AND d.refclassid = 'pg_extension'::regclass
		    LEFT JOIN pg_proc p ON (d.classid, d.objid) = ('pg_proc'::regclass, p.oid)
		    LEFT JOIN pg_class c ON (d.classid, d.objid) = ('pg_class'::regclass, c.oid)
		WHERE d.deptype = 'e' AND extname IN ('snowflake', 'snowflake_convert', 'snowflake_keys')
		AND (coalesce(proname, relname) ~ '^_')
		    <> (obj_description(d.objid, d.classid::regclass::name) ~ '^internal:')}),
	'', 'what is internal says so by its name and its comment, and nothing else does');

# Nobody calls a support function: the planner does, without asking for the right.
is( sql($node, q{
		SELECT string_agg(oid::regprocedure::text, ', ') FROM pg_proc
		WHERE proname ~ '^_snowflake.*_support$' AND has_function_privilege('pg_monitor', oid, 'EXECUTE')}),
	'', 'nobody may execute the support functions');

done_testing();
