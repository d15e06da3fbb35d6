# Versions: updating the extension has the same result as installing it.  That all places
# have the same version is in test/scripts/release.pl.

use JSON::PP;
use SnowflakeTest;

my $top = "$FindBin::RealBin/../..";
my $node = new_server('main');
my $newest = sql($node, "SELECT default_version FROM pg_available_extensions WHERE name = 'snowflake'");

# All that belongs to an extension in a database: definitions, privileges,
# comments.
sub objects ($database, $extension)
{
	return $node->safe_psql(
		$database, qq{
		SELECT pg_describe_object(d.classid, d.objid, 0),
		       pg_get_functiondef(p.oid), p.proacl, p.proowner::regrole,
		       pg_get_viewdef(c.oid), c.relacl, c.relowner::regrole,
		       (SELECT string_agg(format('%s %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
		        FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0),
		       i.initprivs,
		       obj_description(d.objid, d.classid::regclass::name)
		FROM pg_depend d
		    LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
		    LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
		    LEFT JOIN pg_init_privs i ON i.classoid = d.classid AND i.objoid = d.objid
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = '$extension')
		ORDER BY 1});
}

# The extensions, and the scripts that META.json names
my %scripts = (
	snowflake => 'src/sql/01_start.sql',
	snowflake_registry => 'registry/script/01_start.sql',
	snowflake_convert => 'convert/snowflake_convert--1.0.sql',
	snowflake_keys => 'keys/snowflake_keys--1.0.sql');
sql($node, "CREATE EXTENSION IF NOT EXISTS $_") foreach sort keys %scripts;
my %installed = map { $_ => objects('postgres', $_) } keys %scripts;
like($installed{snowflake}, qr/^function snowflake_nextval\(\)/m, 'the objects of the extension are found');
like($installed{snowflake_registry}, qr/^function snowflake_registry\.get_grant\(/m, 'the objects of the registry are found');

# From each version that can be installed, the first one on.
foreach my $extension (sort keys %installed)
{
	my @versions = split /\n/,
	  sql($node, "SELECT version FROM pg_available_extension_versions WHERE name = '$extension' ORDER BY version");
	ok((grep { $_ eq '1.0' } @versions), "$extension: the first version can be installed");
	foreach my $version (@versions)
	{
		my $database = "$extension $version";

		sql($node, "CREATE DATABASE \"$database\"");
		$node->safe_psql($database, "CREATE EXTENSION $extension VERSION '$version' CASCADE");
		is($node->safe_psql($database, 'SELECT count(*), bool_and(ids >= 0 AND stats_reset < now()) FROM snowflake_stat'),
			'1|t',
			"the library works with the objects of $version: snowflake_stat") if $extension eq 'snowflake';
		$node->safe_psql($database, "ALTER EXTENSION $extension UPDATE");
		is($node->safe_psql($database, "SELECT extversion FROM pg_extension WHERE extname = '$extension'"),
			$newest,
			"$extension: $version is updated to $newest");
		is(objects($database, $extension),
			$installed{$extension}, "$extension: updating $version gives what installing $newest gives");
	}
}

# That would be seen.
foreach my $change (
	'ALTER EXTENSION snowflake DROP FUNCTION uuid_v4()',
	q{COMMENT ON FUNCTION uuid_v4() IS 'another'},
	'GRANT EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass[], boolean) TO PUBLIC',
	'ALTER FUNCTION snowflake_nextval() PARALLEL RESTRICTED',
	'ALTER VIEW snowflake_stat RENAME COLUMN reserves TO writes'
  )
{
	sql($node, 'CREATE DATABASE other');
	$node->safe_psql('other', "CREATE EXTENSION snowflake; $change");
	isnt(objects('other', 'snowflake'), $installed{snowflake}, "the comparison of objects sees: $change");
	sql($node, 'DROP DATABASE other');
}

my $meta = decode_json(slurp_file("$top/META.json"));
foreach my $extension (sort keys %scripts)
{
	is($meta->{provides}{$extension}{file}, $scripts{$extension} =~ s/--1\.0\./--$newest./r,
		"$extension: META.json has the name of the SQL script");
	is(sql($node, "SELECT default_version FROM pg_available_extensions WHERE name = '$extension'"),
		$newest, "$extension: the control file has the version");
}

SKIP:
{
	skip 'before PostgreSQL 18 a module tells no version', 1
	  if $node->pg_version < 18;
	is(sql($node, q{SELECT module_name, version FROM pg_get_loaded_modules() WHERE file_name ~ '^snowflake'}
		), "snowflake|$newest", 'the module has its name and version');
}

# The script that is put together in the folder of its extension is the one that is installed.
my $registry = PostgreSQL::Test::Utils::tempdir() . '/registry';
{
	local @ENV{ 'MAKEFLAGS', 'MAKELEVEL', 'VPATH' };
	delete @ENV{ 'MAKEFLAGS', 'MAKELEVEL', 'VPATH' };
	system_or_bail('cp', '-R', "$top/registry", $registry);
	unlink "$registry/snowflake_registry--$newest.sql";
	system_or_bail('make', '-s', '-C', $registry, 'PG_CONFIG=' . ($ENV{PG_CONFIG} // 'pg_config'));
}
chomp(my $sharedir = `pg_config --sharedir`);
is( slurp_file("$registry/snowflake_registry--$newest.sql"),
	slurp_file("$sharedir/extension/snowflake_registry--$newest.sql"),
	'snowflake_registry is the same if it is built alone');

# Each extension alone in a database, on a server that does not preload the library, and gone.
restart_with($node, "shared_preload_libraries = ''");
my %alone = (
	snowflake => q{SELECT worker_id - 5 FROM snowflake_parse(20480, 'twitter')},
	snowflake_keys => 'SELECT length(objectid()) - 12',
	snowflake_registry => q{
		SELECT snowflake_registry.create(1, 9, 'twitter', new => true);
		SELECT worker_id - 1 FROM snowflake_registry.get_grant('twitter', 0, NULL,
			snowflake_registry.lower_bound(now(), 'twitter'), '{}', gen_random_uuid(), 'server')});
foreach my $extension (sort keys %alone)
{
	sql($node, 'CREATE DATABASE alone');
	like($node->safe_psql('alone', "CREATE EXTENSION $extension; $alone{$extension}"), qr/^0\z/m, "$extension works alone");
	is( $node->safe_psql(
			'alone', qq{
			DROP EXTENSION $extension;
			SELECT string_agg(name, ' ') FROM (
				SELECT proname AS name FROM pg_proc WHERE oid >= 16384 UNION ALL SELECT relname FROM pg_class WHERE oid >= 16384
				UNION ALL SELECT nspname FROM pg_namespace WHERE oid >= 16384) AS objects}),
		$extension eq 'snowflake_registry' ? 'snowflake_registry' : '', "DROP EXTENSION $extension leaves nothing but a schema");
	sql($node, 'DROP DATABASE alone');
}

done_testing();
