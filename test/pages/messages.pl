# docs/troubleshooting.md: it has each error and warning of the sources, and no
# other.  On the page a message is a heading, or the first cell of a row in a
# table that begins with "message".  A heading is what a server logs, with values,
# so that a search for the message finds it; in a table, "..." stands for each value.

use Page;
use SnowflakeTest;

# A format with "..." for each value.
sub normal ($format) { return $format =~ s/%%/%/gr =~ s/\.{4,}/.../gr; }

#
# The sources.  Values in C are %s and the like, in PL/pgSQL %.
#
my %there;
my $string = qr/"(?:[^"\\]|\\.)*"/;
my $arguments = qr/(\((?:[^()"']++|$string|'(?:[^'\\]|\\.)*'|(?-1))*\))/;
foreach my $source (Page::sources())
{
	my $code = Page::slurp($source) =~ s/\/\*.*?\*\///gsr;

	# INT64_FORMAT and the like stand between two parts of a string, or after one.
	$code =~ s/"\s*[A-Z0-9_]+_FORMAT\s*"/%d/g;
	$code =~ s/"\s*[A-Z0-9_]+_FORMAT\b/%d"/g;
	while ($code =~ /\bere(?:port|turn)$arguments|\b(GUC_check_errmsg)$arguments/g)
	{
		my ($call, $check) = ($1, $3);
		my ($level) = defined $call ? $call =~ /^\(\s*([^,]*),/ : 'ERROR';

		next if $level =~ /^(?:LOG|NOTICE|INFO|DEBUG\d)$/;
		my @calls = defined $check ? $check : ();
		push @calls, $1 while !defined $check && $call =~ /\berrmsg$arguments/g;
		foreach my $message (@calls)
		{
			# Those of errmsg() itself, not of functions that are called in it; a string may
			# name a function.
			my $own = $message =~ s/($string)|(?<=.)\b\w+$arguments/$1 \/\/ ''/ger;

			while ($own =~ /((?:$string\s*)+)/g)
			{
				my $format = join '', $1 =~ /"((?:[^"\\]|\\.)*)"/g;
				$there{ normal($format =~ s/\\"/"/gr =~ s/%[-+0-9.*]*l*[a-zA-Z]/.../gr) } = $source
				  if $format =~ /[a-z]{3} |[a-z] [a-z]/;
			}
		}
	}
}
foreach my $source (Page::scripts())
{
	my $code = Page::slurp($source);

	while ($code =~ /\bRAISE (?:EXCEPTION|WARNING) +'((?:[^']|'')*)'/g)
	{
		$there{ normal($1 =~ s/''/'/gr =~ s/%/.../gr) } = $source;
	}
}

# PostgreSQL's own, and those that say all that there is to say
delete @there{ 'out of memory', 'function returning record called in context that cannot accept type record' };
delete @there{ grep { / must (?:not (?:be null|contain nulls)$|not be null because |be (?:at least|between) )/ } keys %there };
cmp_ok(scalar(keys %there), '>', 60, 'messages are found in the sources');

#
# The page
#
my $page = Page->look('docs/troubleshooting.md');
my %documented;
my (%seen, @twice, @no_message, @cut);

# The message of the sources that a text is, or that with "..." for values: of
# several, the one that has the most words of its own.
sub message_of ($text)
{
	my @found = grep {
		my $regex = join '.+', map { quotemeta } split /\.\.\./, $_, -1;
		$text =~ /^$regex\z/
	} keys %there;

	return (sort { length($b) <=> length($a) || $a cmp $b } @found)[0];
}

sub document ($text)
{
	my $message = message_of($text);

	push @twice, $text if $seen{$text}++;
	push @no_message, $text unless defined $message;
	$documented{ $message // '' } = 1;
	return;
}

my $in_table = 0;
foreach my $line (split /\n/, $page->{prose})
{
	if ($line =~ /^#+ `(.*)`$/)
	{
		document($1);
		push @cut, $line if $line =~ /\.\.\./;
	}
	elsif ($line =~ /^\| *([^|]*?) *\|/)
	{
		my $cell = $1;

		$in_table = $cell =~ /^message/ if $in_table eq '0';
		document($_) foreach $in_table eq '1' ? $cell =~ /`([^`]+)`/g : ();
	}
	$in_table = '0' if $line !~ /^\|/;
}
cmp_ok(scalar(keys %seen), '>', 60, 'messages are found on the page');

is(join("\n", map { "$there{$_}: $_" } grep { !$documented{$_} } sort keys %there),
	'', 'each error and warning of the sources is in docs/troubleshooting.md');
is(join("\n", sort @no_message), '', 'each message of docs/troubleshooting.md is in the sources');
is(join("\n", @cut), '', 'a heading of docs/troubleshooting.md has the whole message, without "..."');
# Of the symptoms, those that are not PostgreSQL's own, nor put together, are in the sources, too.
my $sources = join "\n", map { Page::slurp($_) =~ s/\\"/"/gr } Page::sources(), Page::scripts();
my ($symptoms) = $page->{text} =~ /^\| symptom \|.*?\n(.*?)\n\n/ms;
my $of_postgres = qr/^(?:duplicate key|conflict=|integer out of|value |lastval |currval |out of shared|function "?snowflake_nextval|could not |security label|cannot drop function|permission denied for function |extension "snowflake" is not |invalid configuration|too many background|nextval: |rejects )/;
my @symptoms = grep { / .* / && !/$of_postgres/ } map { /`([^`]+)`/g } $symptoms =~ /^\| (.*?) \| /mg;
cmp_ok(scalar(@symptoms), '>', 4, 'symptoms are found on the page');
is(join("\n", grep { my $s = $_; grep { index($sources, $_) < 0 } split /\.\.\./, $s } @symptoms), '', 'each message among the symptoms is in the sources');
is(join("\n", @twice), '', 'docs/troubleshooting.md has no message twice');

done_testing();
