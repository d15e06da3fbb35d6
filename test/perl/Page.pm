# The examples in README.md and docs/: how a page is parsed, which test runs an
# example, how it is run, and how its result is compared.
#
# The fence of each block of code names its language:
#
#	sql		statements, run by psql
#	ini		lines of postgresql.conf, or of another program's configuration
#	sh		commands
#	log		messages of the server, which must be in the sources
#	text	a picture
#	(none)	the result of the block directly before it
#
# or another language, for a test that claims the block.  An HTML comment on the
# line before a block may say more: "example: CLIENT FILE" for the tests of a
# client (script/tests/clients), "not tested" for code that cannot be run.
#
# A test that runs the examples of a page or section claims them with
# Page->claim(), takes each of them, and ends with Page::all_taken().
# test/pages/pages.pl finds these claims, and runs all other examples.

package Page;

use v5.36;

use Cwd qw(abs_path);
use File::Basename;
use Test::More;

our $top = abs_path(dirname(__FILE__) . '/../..');
my %pages;
my @claimed;

# The text of a file of the checkout.
sub slurp ($file)
{
	open my $fh, '<', "$top/$file" or die "$file: $!";
	local $/;
	return <$fh>;
}

# The files of the checkout that messages are in: C, and scripts of the extensions.
sub sources
{
	return map { s/^\Q$top\E\///r } glob("$top/{src,src/*,shared,registry_client,registry_client/*,convert,convert/*,keys}/*.[ch]");
}

sub scripts
{
	return map { s/^\Q$top\E\///r } glob("$top/{convert,keys}/snowflake*--*.sql $top/{src/sql,registry/script}/*.sql");
}

# A page: its blocks and headings in order, its text, and the text with empty
# lines in place of blocks ("prose").
sub look ($class, $file)
{
	my ($block, $fence, $before, $comment, %anchors);
	my $n = 0;

	return $pages{$file} if $pages{$file};
	my $self = bless {
		file => $file, text => slurp($file), prose => '', blocks => [], headings => []
	}, $class;
	foreach my $line (split /^/, $self->{text})
	{
		$n++;
		if ($block)
		{
			if ($line =~ /^ *$fence *$/)
			{
				push @{ $self->{blocks} }, $block;
				($before, $block) = ($block, undef);
			}
			else
			{
				$block->{text} .= $line =~ s/^ {0,$block->{indent}}//r;
			}
			$line = "\n";
		}
		elsif ($line =~ /^( *)(```+|~~~+) *(\S*)/)
		{
			$fence = $2;
			$block = {
				file => $file, line => $n, indent => length($1), language => $3,
				text => '', comment => $comment // ''
			};
			if ($3 eq '' && $before && !$before->{of} && !defined $comment)
			{
				$block->{of} = $before;
				$before->{output} = $block;
			}
			($comment, $line) = (undef, "\n");
		}
		elsif ($line =~ /\S/)
		{
			($comment) = $line =~ /^ *<!-- (.*) -->$/;
			$before = undef;
			if (my ($marks, $title) = $line =~ /^(#+) +(.*?) *#*$/)
			{
				# The anchor that GitHub generates.
				my $anchor = lc($title =~ s/\]\([^)]*\)//gr) =~ s/[^\w\- ]//gr =~ tr/ /-/r;

				push @{ $self->{headings} },
				  {
					line => $n, level => length($marks), title => $title,
					anchor => $anchor . ($anchors{$anchor}++ ? '-' . ($anchors{$anchor} - 1) : '')
				  };
			}
		}
		$self->{prose} .= $line;
	}
	die "$file:$block->{line}: this block has no end" if $block;
	return $pages{$file} = $self;
}

# A page, or one section of it.
sub section ($class, $file, $title = undef)
{
	my $page = $class->look($file);
	my $self = bless { %$page, title => $title // '' }, $class;

	if (defined $title)
	{
		my ($from) = grep { $_->{title} eq $title } @{ $page->{headings} };
		die "$file has no section \"$title\"" unless $from;
		my ($to) = grep { $_->{line} > $from->{line} && $_->{level} <= $from->{level} }
		  @{ $page->{headings} };
		my @lines = split /^/, $page->{text};
		my $last = $to ? $to->{line} - 1 : @lines;

		$self->{text} = join '', @lines[ $from->{line} - 1 .. $last - 1 ];
		$self->{blocks} = [ grep { $_->{line} > $from->{line} && $_->{line} <= $last }
			  @{ $page->{blocks} } ];
	}
	return $self;
}

# The same for a test that takes all blocks of it.
sub claim ($class, @place)
{
	push @claimed, $class->section(@place);
	return $claimed[-1];
}

# Which test claims a block, by the position of the block; and a list of invalid
# claims.
sub claims
{
	my (%claims, @wrong);

	foreach my $test (map { s/^\Q$top\E\///r } sort glob("$top/test/{*,worlds/*}/*.pl $top/{registry,convert,keys}/test/*.pl"))
	{
		my $code = slurp($test) =~ s/^\s*#.*//mgr;

		while ($code =~ /\bPage->claim\(\s*'([^']+)'(?:,\s*(['"])(.+?)\2)?\s*\)/g)
		{
			my ($file, $title) = ($1, $3);
			my $section = eval { Page->section($file, $title) };

			push @wrong, "$test: $@" unless $section;
			push @wrong, "$test does not end with Page::all_taken()"
			  unless $code =~ /\bPage::all_taken\(\);\s*\z/;
			$claims{ where($_) } = $test foreach @{ $section->{blocks} };
		}
	}
	return (\%claims, @wrong);
}

sub where ($block) { return "$block->{file}:$block->{line}"; }

# Is this block an example or its result?  test/pages/pages.pl checks all other
# blocks, and calls of the checkout's own scripts.
sub is_example ($block)
{
	return $block->{language} !~ /^(?:log|text)$/ && $block->{comment} ne 'not tested'
	  && !is_script($block);
}

sub is_script ($block)
{
	return $block->{language} eq 'sh' && !grep { !/^(?:\w+=\S+ )?(?:script|bench)\// } commands($block->{text});
}

# The client and file that the comment before a block names.
sub client_file ($block) { return $block->{comment} =~ /^example: (\S+) (\S+)$/; }

# Do the tests of a client use the file?
sub client_runs ($client, $file)
{
	return scalar grep { index(slurp(s/^\Q$top\E\///r), $file) >= 0 }
	  grep { -f } glob("$top/test/worlds/clients/$client/*");
}

# Take the example that contains a text.  It may be repeated on the page.
sub take ($self, $text)
{
	my @found = grep { is_example($_) && !$_->{of} && index($_->{text}, $text) >= 0 } @{ $self->{blocks} };
	my %texts = map { $_->{text} => 1 } @found;

	die "$self->{file} $self->{title}: not one example, but " . keys(%texts) . ", with: $text"
	  if keys(%texts) != 1;
	$_->{taken} = 1 foreach @found;
	return $found[0];
}

# The code of that example, with replacements.
sub example ($self, $text, %replace) { return replace($self->take($text)->{text}, %replace); }

sub replace ($code, %replace)
{
	my @missing = grep { index($code, $_) < 0 } sort keys %replace;
	die "not in the example: @missing\n$code" if @missing;

	# In one pass, so that nothing is replaced in a replacement.
	my $any = join '|', map { quotemeta } reverse sort keys %replace;
	return %replace ? $code =~ s/($any)/$replace{$1}/gr : $code;
}

# Take all examples in a language that were not taken yet.
sub rest ($self, $language)
{
	my @found = grep { $_->{language} eq $language && !$_->{of} && !$_->{taken} } @{ $self->{blocks} };

	$_->{taken} = 1 foreach @found;
	return @found;
}

# The end of a test: each claimed example was taken, and its result was compared.
sub all_taken
{
	foreach my $page (@claimed)
	{
		is( join(', ', map { where($_) } grep { is_example($_) && !$_->{taken} } @{ $page->{blocks} }),
			'',
			"each example of $page->{file} was run" . ($page->{title} && ": $page->{title}"));
	}
	done_testing();
	return;
}

# The form in which results are compared: without psql's lines and spaces.  If the
# example is volatile, only the shape of IDs, times and the like is compared.
sub normal ($text, $volatile)
{
	my ($sequence, @lines);

	foreach (split /\n/, $text)
	{
		s/^psql:[^:]*:\d+: //;
		next if /^[-+ ]+$/ || /^\(\d+ rows?\)$/;
		my @cells = map { s/^\s+|\s+$//gr } split /\|/, $_, -1;
		if ($volatile)
		{
			($sequence) = grep { $cells[$_] eq 'sequence' } 0 .. $#cells
			  if grep { $_ eq 'sequence' } @cells;
			foreach my $i (0 .. $#cells)
			{
				for ($cells[$i])
				{
					s/\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d\b/TIME/g;
					s/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/UUID/g;
					s/\b[0-9a-f]{24}\b/OBJECTID/g;
					s/\d{12,}/ID/g;
					s/^\d+$/NUMBER/ if defined $sequence && $i == $sequence;
				}
			}
		}
		push @lines, join '|', @cells;
	}
	return join "\n", @lines;
}

# Does a statement use anything volatile?
sub is_volatile ($node, $database, $code)
{
	my $names = $node->safe_psql(
		$database, q{
		SELECT string_agg(name, '|')
		FROM (SELECT proname FROM pg_proc WHERE provolatile = 'v' AND oid >= 16384
			  UNION SELECT relname FROM pg_class WHERE relkind <> 'i' AND oid >= 16384
			  UNION VALUES ('now'), ('clock_timestamp'), ('current_timestamp')) n(name)});

	return $code =~ /\b(?:$names)\b/;
}

# Run an example in SQL, and test that its result is the one that the page shows,
# in the next block or in comments after statements.  Returns the result.
sub run ($node, $block, %params)
{
	my $database = $params{dbname} // 'postgres';
	my $code = replace($block->{text}, %{ $params{replace} // {} });
	my $shown = $block->{output} && $block->{output}{text};
	my $where = where($block);
	my @results = $code =~ /; *-- (.+)$/mg;
	my ($out, $err);

	require IPC::Run;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$block->{taken} = 1;
	$block->{output}{taken} = 1 if $block->{output};
	my $volatile = is_volatile($node, $database, $code);
	local $ENV{PGTZ} = 'UTC';
	my $ok = IPC::Run::run(
		[ 'psql', '-Xq', ($shown ? () : '-At'), '-v', 'ON_ERROR_STOP=1',
			'-d', $node->connstr($database), '-f', '-' ],
		'<' => \$code,
		'>' => \$out,
		'2>' => \$err);
	if ($shown && ($ok || $shown =~ /^ERROR: /m))
	{
		is( normal("$err$out", $volatile),
			normal($shown, $volatile),
			"$where returns what it shows");
	}
	elsif (@results && $ok)
	{
		is( normal($out, $volatile),
			normal(join("\n", @results), $volatile),
			"$where returns @results");
	}
	else
	{
		ok($ok, "$where runs") or diag("$code\n$err");
	}
	chomp $out;
	return $out;
}

# Append an example to a server's postgresql.conf, restart the server, and test
# that each line is in effect.
sub configure ($node, $block, %params)
{
	my $code = replace($block->{text}, %{ $params{replace} // {} });
	my @names = $code =~ /^\s*([\w.]+)\s*=/mg;
	my $where = where($block);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$block->{taken} = 1;
	$node->append_conf('postgresql.conf', $code);
	$node->stop;
	my $offset = -s $node->logfile;
	if (!$node->start(fail_ok => 1))
	{
		fail("$where: a server starts with it");
		diag(substr(PostgreSQL::Test::Utils::slurp_file($node->logfile), $offset));
		return 0;
	}
	is( $node->safe_psql(
			'postgres', q{
			SELECT count(DISTINCT name) FROM pg_file_settings f JOIN pg_settings s USING (name)
			WHERE applied AND error IS NULL AND name IN ('} . join("', '", @names) . q{')}),
		scalar(@names),
		"$where: a server takes each line");
	return 1;
}

# The commands of an example, without comments and continuation lines.
sub commands ($code)
{
	return grep { /\S/ } map { s/^\s*#.*//r =~ s/\s+# .*//r =~ s/\s+\z//r } split /\n/,
	  $code =~ s/\\\n\s*//gr;
}

1;
