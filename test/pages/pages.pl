# README.md and docs/: each example is run, here or by a test that claims it;
# quoted messages are in the sources; settings, functions and columns are
# documented if and only if they exist; links are valid.

use Page;
use SnowflakeTest;

my @files = ('README.md', map { s/^\Q$Page::top\E\///r } sort glob("$Page::top/docs/{,develop/}*.md"));
my @pages = map { Page->look($_) } @files;
my @blocks = map { @{ $_->{blocks} } } @pages;

cmp_ok(scalar(@files), '>', 10, 'pages are found');

# A test that nothing was found wrong.
sub none ($what, @wrong)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join("\n", @wrong), '', $what);
	return;
}

#
# Which test runs an example
#
my ($claims, @wrong) = Page::claims();
none('claims are valid', @wrong);

# The same example may be on several pages.  Blank lines are ignored.
sub what ($block) { return $block->{language} . $block->{text} =~ s/^\n//mgr; }

my %claimed = map { what($_) => 1 } grep { $claims->{ Page::where($_) } } @blocks;
my (@mine, @unknown, @of_clients);
foreach my $block (grep { !$_->{of} } @blocks)
{
	my ($client, $file) = Page::client_file($block);

	if (Page::is_script($block))
	{
		push @mine, $block;
	}
	elsif (!Page::is_example($block) || $claimed{ what($block) })
	{
		next;
	}
	elsif (defined $client)
	{
		push @of_clients, Page::where($block) unless Page::client_runs($client, $file);
	}
	elsif ($block->{language} =~ /^(?:sql|ini|sh)$/)
	{
		push @mine, $block;
	}
	else
	{
		push @unknown, Page::where($block);
	}
}
none('each block is run by a test', @unknown);
none('the tests of clients use theirs', @of_clients);

# A picture is not an example in disguise.
my @pictures = grep { $_->{language} eq 'text' } @blocks;
none('pictures are not examples',
	map { Page::where($_) } grep { $_->{text} =~ /;\s*(?:--.*)?$|^\w[\w.]* = |^\$ /m } @pictures);
cmp_ok(scalar(@pictures), '<=', 12, 'there are few pictures');
my @untested = grep { $_->{comment} eq 'not tested' } @blocks;
cmp_ok(scalar(@untested), '<=', 3, 'few examples are not tested');

#
# Run the examples that no other test claims, page by page.
#
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
my $postgresql_conf = $node->data_dir . '/postgresql.conf';
my $conf = slurp_file($postgresql_conf) . "shared_preload_libraries = 'snowflake'\ntimezone = 'UTC'\n";

# Start the server without the configuration from pages.
sub start_anew
{
	$node->stop if $node->{_pid};
	unlink $postgresql_conf;
	append_to_file($postgresql_conf, $conf);
	$node->start;
	return;
}

# A mark of another scheme could be far ahead of the clock.
sub forget { sql($node, 'SELECT snowflake_set_mark(0, force => true)'); return; }

start_anew();
sql($node, 'CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_registry;
	CREATE EXTENSION snowflake_convert; CREATE EXTENSION snowflake_keys');
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;

# Tables that examples use and do not create, for pages that name them.
my @fixtures = (
	[ customers => qr/\b(?:customers|orders)\b/,
		'CREATE TABLE customers (id serial PRIMARY KEY, name text, referred_by int REFERENCES customers);
		INSERT INTO customers DEFAULT VALUES' ],
	[ orders => qr/\borders\b/,
		'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer int REFERENCES customers);
		INSERT INTO orders (customer) SELECT 1 FROM generate_series(1, 100)' ],
	[ t => qr/\bt\b/,
		'CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), x bigint);
		INSERT INTO t SELECT FROM generate_series(1, 10)' ]);

my $databases = 0;

# The database for an example.  The extension is in it, unless the example creates
# the extension.  The others are in it if the page creates them in an example that
# another test runs.
sub database ($code, $now, $all, $page)
{
	my $creates = $code =~ /^CREATE EXTENSION snowflake\b/m;
	my $exists = sub {
		$node->safe_psql($now, q{SELECT 1 FROM pg_extension WHERE extname = 'snowflake'});
	};

	if (!defined $now || ($creates && $exists->()))
	{
		$now = 'page' . ++$databases;
		sql($node, "CREATE DATABASE $now");
		$node->safe_psql($now, 'CREATE EXTENSION snowflake') unless $creates;
	}
	if ($exists->())
	{
		foreach my $other ($page->{text} =~ /^CREATE EXTENSION (snowflake_(?:convert|keys))\b/mg)
		{
			$node->safe_psql($now, "CREATE EXTENSION IF NOT EXISTS $other")
			  if $all !~ /^CREATE EXTENSION $other\b/m;
		}
		foreach (@fixtures)
		{
			my ($name, $mentioned, $make) = @$_;

			$node->safe_psql($now, $make)
			  if $all =~ $mentioned && $all !~ /^CREATE TABLE $name\b/m
			  && !$node->safe_psql($now, "SELECT to_regclass('$name')");
		}
	}
	return $now;
}

# The files and options in a call of one of the checkout's scripts that do not
# exist.
sub wrong_in_call ($script, @arguments)
{
	return $script unless -x "$Page::top/$script";
	my $code = Page::slurp($script);
	return grep { /^--\w/ && index($code, $_) < 0 || /^\w+\/./ && !grep { -e } glob "$Page::top/$_" } @arguments;
}

# Commands that other scripts run; docker is in no test.
my %run_by = (
	'make -j4 && sudo make install' => [ 'script/lib/common.sh', 'make -s install' ],
	'make check' => [ 'Makefile', "\ncheck:\n" ],
	'make installcheck' => [ 'debian/tests/installcheck', 'installcheck' ],
	'pg_buildext updatecontrol && dpkg-buildpackage -b' => [ 'script/tests/package', 'dpkg-buildpackage' ],
	'docker build -t postgres-snowflake .' => [ 'Dockerfile', 'docker build -t postgres-snowflake .' ]);

# Test a command that is not run here, or return false.
sub check_command ($where, $command)
{
	my ($program, @arguments) = grep { !/^\w+=/ } split ' ', $command;

	if ($program =~ /^(?:script|bench|\.ci)\//)
	{
		none("$where: $command", wrong_in_call($program, @arguments));
	}
	elsif (my $by = $run_by{$command})
	{
		my ($file, $text) = @$by;

		ok(index(Page::slurp($file), $text) >= 0, "$where: $file has $command");
	}
	else
	{
		return 0;
	}
	return 1;
}

sub run_commands ($block, $database)
{
	my $where = Page::where($block);
	my $id;

	local $ENV{PGDATABASE} = $database;
	foreach my $command (Page::commands($block->{text}))
	{
		next if check_command($where, $command);
		if ($command =~ /^psql /)
		{
			my ($out, $err);

			# An ID on the page stands for the result of an earlier command.
			$command =~ s/\b\d{16,}\b/$id/ if defined $id;
			ok( IPC::Run::run(
					[ 'sh', '-c', $command ],
					'<' => \undef,
					'>' => \$out,
					'2>' => \$err),
				"$where: $command")
			  or diag($err);
			$id //= $1 if $out =~ /^(\d{16,})$/m;
		}
		else
		{
			fail("$where: nobody runs $command");
		}
	}
	return;
}

foreach my $page (@pages)
{
	my @own = grep { $_->{file} eq $page->{file} } @mine;

	# The README shows what it is for before it says how to install it.
	@own = ((grep { $_->{language} eq 'ini' } @own), (grep { $_->{language} ne 'ini' } @own))
	  if $page->{file} eq 'README.md';
	my $all = join "\n", map { $_->{text}, $_->{output} ? $_->{output}{text} : () }
	  grep { $_->{language} eq 'sql' } @own;
	my ($database, $configured);

	foreach my $block (@own)
	{
		if ($block->{text} eq "CREATE EXTENSION snowflake;\n" && defined $database)
		{
			# The page used it before it says how to create it.
			Page::run($node, $block, dbname => database($block->{text}, $database, $all, $page));
			next;
		}
		$database = database($block->{text}, $database, $all, $page) unless $block->{language} eq 'ini';
		if ($block->{language} eq 'sql')
		{
			Page::run($node, $block, dbname => $database);
		}
		elsif ($block->{language} eq 'sh')
		{
			run_commands($block, $database);
		}
		else
		{
			$configured = 1;
			start_anew() unless Page::configure($node, $block);
			forget();
		}
	}

	# ALTER SYSTEM takes effect at the next start.  Then it is taken back.
	if ($all =~ /^ALTER SYSTEM /m)
	{
		$node->restart;
		my %values = $all =~ /^ALTER SYSTEM SET (\S+) = '?(.*?)'?;/mg;
		is(sql($node, "SHOW $_"), $values{$_}, "$page->{file}: a server starts with $_")
		  foreach sort keys %values;
		sql($node, 'ALTER SYSTEM RESET ALL');
		$configured = 1;
	}
	if ($configured)
	{
		start_anew();
		forget();
	}
}

# Code that cannot be run is tested for its syntax: only a function, table or
# column may be missing.
foreach my $block (@untested)
{
	my %errors = map { $_ => 1 } sql_error($node, $block->{text}) =~ /ERROR:  (\w{5}):/g;
	is(join(' ', grep { !/^(?:42P01|42883|42703)$/ } sort keys %errors), '', Page::where($block) . ': its syntax is right');
}

#
# Quoted messages
#
my @formats;
foreach my $source (Page::sources())
{
	my $code = Page::slurp($source);
	while ($code =~ /\b(?:err(?:msg|detail|hint)\w*|psprintf)(\((?:[^()"']++|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?1))*\))/g)
	{
		# INT64_FORMAT and the like stand between two parts of a string.
		my $call = $1 =~ s/" *[A-Z0-9_]+_FORMAT *(?=")/"%d/gr =~ s/_FORMAT\b/_FORMAT""/gr;
		while ($call =~ /((?:"(?:[^"\\]|\\.)*"\s*)+)/g)
		{
			push @formats, join '', $1 =~ /"((?:[^"\\]|\\.)*)"/g;
		}
	}
}
foreach my $source (Page::scripts())
{
	my $code = Page::slurp($source);
	while ($code =~ /(?:\bRAISE (?:EXCEPTION|WARNING|NOTICE|LOG)|\b(?:detail|hint) :=)((?:[^;']++|'(?:[^']|'')*')*);/g)
	{
		push @formats, map { s/''/'/gr } $1 =~ /'((?:[^']|'')*)'/g;
	}
}
@formats = grep { /[a-z]{3}/i } map { s/\\(.)/$1 eq 'n' ? "\n" : $1/ger } @formats;
cmp_ok(scalar(@formats), '>', 100, 'messages are found in the sources');

# The constant parts of formats and messages, between values and sentences.
my $hole = qr/%(?:[a-z]|(?![%a-z]))/;
my %parts;
sub parts ($text, $value) { return map { s/^\W+|\W+$//gr } split /$value|(?<=\.) /, $text; }
$parts{$_} = 1 foreach map { parts($_, $hole) } @formats;

# Does a line match a format, or consist of parts of several formats?
sub is_message ($line)
{
	foreach my $format (grep { /[a-z]{3}.*[a-z]{3}/ } @formats)
	{
		my $regex = join '.+', map { quotemeta } split $hole, $format, -1;
		return 1 if $line =~ /^$regex\z/;
	}
	return !grep { !$parts{$_} } parts($line, qr/"[^"]*"|\b\d{4}-\d\d-\d\d[ \d:.+]*\d|-?\b\d+\b/);
}

my ($lines, @unknown_messages) = (0);
foreach my $block (grep { $_->{language} eq 'log' } @blocks)
{
	my $n = $block->{line};
	foreach my $line (split /\n/, $block->{text})
	{
		$n++;
		$lines++;
		push @unknown_messages, "$block->{file}:$n: $line"
		  unless $line =~ /^(?:LOG|NOTICE|WARNING|ERROR|DETAIL|HINT):  (.*)$/ && is_message($1);
	}
}
cmp_ok($lines, '>', 5, 'pages quote messages');
none('quoted messages are in the sources', @unknown_messages);
ok(!is_message($_), "not a message: $_")
  foreach 'snowflake IDs are generated with worker 17', 'clock leapt by 5 ms', 'no worker ID is free for you';

#
# Names
#

# The tables of a page: line, header cells, and rows of cells.
sub tables ($page)
{
	my @tables;

	while ($page->{prose} =~ /((?:^\|.*\|\n)+)/mg)
	{
		my ($line, @rows) = (1 + ($` =~ tr/\n//));
		foreach my $row (split /\n/, $1)
		{
			push @rows, [ map { s/^\s+|\s+$//gr } $row =~ /\|((?:`[^`]*`|[^|`])*)(?=\|)/g ];
		}
		push @tables, { file => $page->{file}, line => $line, head => $rows[0], rows => [ @rows[ 2 .. $#rows ] ] };
	}
	return @tables;
}
my @tables = map { tables($_) } @pages;

sub code ($cell) { return map { s/^\s+|\s+$//gr } $cell =~ /`([^`]+)`/g; }

# Test that two lists have the same names.
sub same_names ($what, $documented, $there)
{
	my ($shown, $real) = map { my %seen = map { $_ => 1 } @$_; \%seen } $documented, $there;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	none(
		$what,
		map({ "does not exist: $_" } grep { !$real->{$_} } sort keys %$shown),
		map({ "is not documented: $_" } grep { !$shown->{$_} } sort keys %$real));
	return;
}

# Settings: the table, and all other places that name one
my %settings = map { my ($name, @rest) = split /\|/, $_, -1; $name => \@rest } split /\n/,
  sql($node, q{
	SELECT name, context, vartype, coalesce(unit, ''), boot_val FROM pg_settings WHERE name LIKE 'snowflake.%'});
my ($table, @more) = grep { $_->{head}[0] =~ /^setting/i } @tables;
ok($table && !@more, 'there is one table of settings');
same_names('the table of settings has all settings, and no others',
	[ map { code($_->[0]) } @{ $table->{rows} } ],
	[ keys %settings ]);
my ($default) = grep { $table->{head}[$_] =~ /^default/i } 0 .. $#{ $table->{head} };
my ($effect) = grep { $table->{head}[$_] =~ /effect|change/i } 0 .. $#{ $table->{head} };
my %units = (ms => 1, s => 1000, min => 60_000, h => 3_600_000, d => 86_400_000);
foreach my $row (@{ $table->{rows} })
{
	my ($name) = code($row->[0]);
	my ($context, $type, $unit, $value) = @{ $settings{$name} // next };
	my $shown = $row->[$default] =~ s/` `//gr =~ tr/`//dr;

	if ($type eq 'integer' && $unit && $shown =~ /^(\d+) ?(ms|s|min|h|d)\b/)
	{
		is($1 * $units{$2}, $value * $units{$unit}, "$name: its default");
	}
	elsif ($value eq '')
	{
		like($shown, qr/^empty/, "$name: its default");
	}
	else
	{
		like($shown, qr/^\Q$value\E(?![\w.])/, "$name: its default");
	}
	my %effects = (postmaster => qr/^restart/, sighup => qr/^reload/, user => qr/^at once/);
	like($row->[$effect], $effects{$context}, "$name: takes effect");
}
my @misnamed;
foreach my $page (@pages)
{
	while ($page->{text} =~ /(?<![\/\w.])snowflake\.([a-z]\w*)\b(?!\()/g)
	{
		my $name = $1;

		# The setting of pgEdge's extension, and files of this one.
		next if $name =~ /^(?:node|so|control|conf|sql|[ch])$/ || $settings{"snowflake.$name"};
		push @misnamed, "$page->{file}:" . (1 + ($` =~ tr/\n//)) . ": snowflake.$name";
	}
}
none('settings that are named exist', @misnamed);

# Functions: the tables, and all other places that call one
my %functions;
foreach (split /\n/, sql($node, q{
	SELECT CASE extname WHEN 'snowflake_registry' THEN extname || '.' ELSE '' END || proname, n, coalesce(proargnames[n], ''), t::regtype, coalesce(pg_get_function_arg_default(p.oid, n::int), ''),
		   p.oid
	FROM pg_proc p
	JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND deptype = 'e'
	JOIN pg_extension e ON d.refobjid = e.oid AND extname ~ '^snowflake'
	LEFT JOIN unnest(proargtypes) WITH ORDINALITY a(t, n) ON true
	WHERE obj_description(p.oid, 'pg_proc') !~ '^internal:'
	ORDER BY p.oid, n}))
{
	my ($function, $n, $argument, $type, $value, $oid) = split /\|/, $_, -1;
	push @{ $functions{$function}{$oid} }, $n eq '' ? () : { name => $argument, type => $type, default => $value };
	$functions{$function}{$oid} //= [];
}

# Is this the signature of a function?  It may omit types, defaults and arguments.
my %types = (int => 'integer', timestamptz => 'timestamp with time zone', '...' => '');
sub is_signature ($name, $arguments)
{
	foreach my $overload (values %{ $functions{$name} // {} })
	{
		my @left = @$overload;
		my $wrong = 0;
		foreach my $argument (split /,\s*(?![^{]*\})/, $arguments)
		{
			my ($called, $type, $value) = $argument =~ /^(\w+)(?: (?!DEFAULT)(.+?))?(?: DEFAULT (.+))?$/;
			last if $argument eq '...';
			my $found = shift @left;
			$wrong = 1
			  if !$found || !defined $called
			  || $found->{name} ne $called && $found->{type} ne ($types{$called} // $called)
			  || defined $type && $found->{type} ne ($types{$type} // $type)
			  || defined $value && $found->{default} =~ s/::[\w \[\]]+$//r ne $value;
		}
		return 1 if !$wrong;
	}
	return 0;
}

@wrong = ();
foreach my $table (grep { $_->{head}[0] =~ /^function/i } @tables)
{
	foreach my $signature (map { code($_->[0]) } @{ $table->{rows} })
	{
		my ($name, $arguments) = $signature =~ /^([\w.]+)\((.*)\)$/s;
		push @wrong, "$table->{file}: $signature" unless defined $name && is_signature($name, $arguments);
	}
}
none('signatures are those of functions', @wrong);
my $prefix = qr/(?:snowflake|uuid|objectid|hashids|sqids|daily)_?/;
my @uncalled;
foreach my $page (@pages)
{
	my %own = map { $_ => 1 } $page->{text} =~ /CREATE (?:FUNCTION|TABLE) (\w+)/g;
	while ($page->{text} =~ /(?<![\w.])($prefix\w*|snowflake_registry\.\w+)\(/g)
	{
		my $name = $1;
		my $line = 1 + ($` =~ tr/\n//);
		next if $own{$name} || $name =~ /^uuid_generate_v\d|^uuid_extract|^uuid_send$/;

		# uuidv7() is PostgreSQL's, snowflake_get_api() is in C.
		next if $name =~ /^uuidv\d$/ || $name eq 'snowflake_get_api';
		push @uncalled, "$page->{file}:$line: $name()" unless $functions{$name};
	}
	while ($page->{text} =~ /\bON FUNCTION ([\w., \n]+) TO\b/g)
	{
		foreach my $name (split /,\s*/, $1)
		{
			push @uncalled, "$page->{file}: $name" unless $functions{$name};
		}
	}
}
none('functions that are called exist', @uncalled);

# Arguments of the function that is named last before the table
foreach my $table (grep { $_->{head}[0] =~ /^argument/i } @tables)
{
	my $before = join '', (split /^/, Page->look($table->{file})->{text})[ 0 .. $table->{line} - 2 ];
	my ($name) = $before =~ /.*`([\w.]+)\(/s;
	my ($overload) = values %{ $functions{$name} // {} };
	my @rows = map { [ [ code($_->[0]) ], $_->[1] ] } @{ $table->{rows} };

	same_names("arguments of $name()", [ map { @{ $_->[0] } } @rows ], [ map { $_->{name} } @$overload ]);
	my %defaults = map { $_->{name} => $_->{default} =~ s/::.*//r =~ tr/'//dr } @$overload;
	foreach my $row (grep { $_->[1] =~ /^(?:\d|true|false)/ } @rows)
	{
		is(sql($node, "SELECT '$row->[1]' = '$defaults{$row->[0][0]}'" =~ s/'(\d+ \w+|\d\d:[\d:]+)'/interval '$1'/gr),
			't', "default of $row->[0][0]");
	}
}

# Columns of the view that the last example before the table reads
foreach my $table (grep { $_->{head}[0] =~ /^column/i } @tables)
{
	my ($example) = reverse grep { $_->{file} eq $table->{file} && $_->{line} < $table->{line} } @blocks;
	my ($view) = $example->{text} =~ /FROM ([\w.]+)/;
	same_names("columns of $view", [ map { code($_->[0]) } @{ $table->{rows} } ],
		[ split /\n/, sql($node, "SELECT attname FROM pg_attribute WHERE attrelid = '$view'::regclass AND attnum > 0") ]);
}
$node->stop;

# Commands in tables
foreach my $table (@tables, tables(Page->look('CONTRIBUTING.md')))
{
	foreach my $i (grep { $table->{head}[$_] =~ /^command/i } 0 .. $#{ $table->{head} })
	{
		check_command("$table->{file}:$table->{line}", $_) or fail("$table->{file}: what runs $_?")
		  foreach map { code($_->[$i]) } @{ $table->{rows} };
	}
}

#
# Links and file names
#
my @others = map { s/^\Q$Page::top\E\///r } glob("$Page::top/*.md $Page::top/{bench,test,src}/*/*.md $Page::top/{registry,registry_client,convert,keys,shared}/{,*/}*.md");
my %all = map { $_ => 1 } @files, @others;
my ($links, @lost, @files_lost) = (0);
foreach my $page (map { Page->look($_) } sort keys %all)
{
	my ($folder) = $page->{file} =~ /^(.*\/)?/;
	$folder //= '';
	while ($page->{prose} =~ /\]\(([^)\s]+)\)|\b(?:src|href)="([^"]+)"/g)
	{
		my $target = $1 // $2;
		my $line = 1 + ($` =~ tr/\n//);
		next if $target =~ /^https?:/;
		my ($path, $anchor) = $target =~ /^([^#]*)(?:#(.*))?$/;
		my $file = $path eq '' ? $page->{file} : $folder . $path;

		$links++;
		1 while $file =~ s/(?:^|(?<=\/))[^\/.][^\/]*\/\.\.\///;
		if (!-e "$Page::top/$file")
		{
			push @lost, "$page->{file}:$line: $target";
		}
		elsif (defined $anchor && !grep { $_->{anchor} eq $anchor } @{ Page->look($file)->{headings} })
		{
			push @lost, "$page->{file}:$line: $target";
		}
	}
	while ($page->{prose} =~ /`((?:src|test|script|docs|bench|monitoring|\.github|\.ci)\/[\w.\/-]+)([^`]*)/g)
	{
		my ($file, @arguments) = ($1, split ' ', $2);
		my $line = 1 + ($` =~ tr/\n//);

		push @files_lost, map { "$page->{file}:$line: $_" }
		  $file =~ /^(?:script|bench)\/\w+$/ && -f "$Page::top/$file" ? wrong_in_call($file, @arguments)
		  : -e "$Page::top/$file" ? ()
		  : $file;
	}
}
cmp_ok($links, '>', 50, "$links links");
none('files and headings that are linked exist', @lost);
none('files and options that are named exist', @files_lost);

done_testing();
