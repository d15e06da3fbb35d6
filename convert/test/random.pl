# The dry run promises: of random schemas, snowflake_convert(dry_run => true) and
# snowflake_convert_plan() say what the conversions then do, or that they do nothing.
# Afterwards, each definition and each row is what it was, but for the types and the
# defaults of the keys, and each statement that worked still does.  In every second database,
# keys keep their sequences.
#
#	SNOWFLAKE_SECONDS	how long to try schemas
#	SNOWFLAKE_SEED		the seed of the first one; the next has the next number

use SnowflakeTest::RandomSchema;
use SnowflakeTest;

my $seconds = $ENV{SNOWFLAKE_SECONDS} // 15;
my $attached = 0;
my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1e6));
my $node = new_server('main', 'fsync = off', 'autovacuum = off', 'jit = off');

# Statements, each by itself, errors or not; returns what they print, and say.
sub run_sql ($database, @statements)
{
	my ($out, $err) = ('', '');

	IPC::Run::run([ 'psql', '-XAtq', '-v', 'VERBOSITY=default', '-v', 'SHOW_CONTEXT=never', '-d', $node->connstr($database) ],
		'<' => \join('', map { "$_;\n" } @statements), '>' => \$out, '2>' => \$err);
	return ($out, $err);
}

# The same of statements without errors.
sub run_query
{
	my ($out, $err) = run_sql(@_);

	BAIL_OUT($err) if $err ne '';
	return $out;
}

sql($node, 'CREATE DATABASE base');
sql($node, 'CREATE ROLE regress_reader');
$node->safe_psql('base', SnowflakeTest::RandomSchema::tools());

# The error of a conversion: its lines in their order, without where they stand.
sub error_of ($said)
{
	return '' if $said !~ /^ERROR:  (.*?)(?=^(?:HINT|NOTICE|WARNING):|\z)/ms;
	return join("\n", sort split /\n/, $1 =~ s/^(?:DETAIL:  )//gmr);
}

# The lines of a description that are different, but for what a conversion changes: of
# the keys that got a generator, the default and the sequence.  Of a sequence that stays,
# that is its position.
sub differences ($before, $after, $online)
{
	my %keys = map { $_ => 1 } $after =~ /^column (\S.*?) \| .*default=snowflake_nextval/gm;

	if ($attached)
	{
		s/^(sequence .*? )last=\S* /$1/gm foreach $before, $after;
	}
	my $lines = sub {
		my %lines;

		foreach my $line (split /\n/, $_[0])
		{
			my ($name) = $line =~ /^column (\S.*?) \| /;

			next if !$attached && $line =~ /^sequence .* \| (?:a|i) (.*?) \|/ && $keys{$1};
			$line =~ s/ default=.*? \| / | / if defined $name && $keys{$name};
			$line =~ s/ identity=.*? \| / | / if defined $name && $keys{$name};
			$line =~ s/ number=\d+// if $online;

			# Since 18, ADD PRIMARY KEY USING INDEX makes the NOT NULL constraints of a
			# partition local.
			$line =~ s/( \| NOT NULL .* local)=\w,1/$1/ if $online;
			$lines{$line}++;
		}
		return \%lines;
	};
	my ($old, $new) = ($lines->($before), $lines->($after));

	return join("\n",
		(map { "- $_" } grep { ($old->{$_} // 0) > ($new->{$_} // 0) } sort keys %$old),
		(map { "+ $_" } grep { ($new->{$_} // 0) > ($old->{$_} // 0) } sort keys %$new));
}

# What worked before works afterwards.
sub broken ($before, $after)
{
	my %before = $before =~ /^(\S+ .*?): (.*)$/gm;
	my %after = $after =~ /^(\S+ .*?): (.*)$/gm;

	return join("\n", map { "$_: $after{$_}" }
		grep { $before{$_} eq 'ok' && $after{$_} ne 'ok' } sort keys %before);
}

my %counts = (schemas => 0, direct => 0, online => 0, refused => 0, sequences => 0);
my $describe = 'SELECT line FROM tools.description ORDER BY line COLLATE "C"';
my $dml = 'BEGIN; SELECT tools.dml(); ROLLBACK';
my $end = time + $seconds;

# Convert what was made in a database, for which a dry run promised an error, or none;
# returns what is wrong.
sub try_conversion ($database, $convert, $promised, $statements = undef, $before = undef, $online = undef)
{
	my ($out, $said) = run_sql($database, $convert);
	my $error = error_of($said);
	my $after = run_query($database, $describe);

	return "the dry run says\n$promised\nand the conversion\n$error" if $error ne $promised;
	if ($error ne '')
	{
		$counts{refused}++;
		return $after eq $before->{description} ? '' : "refused, but changed:\n" . differences($before->{description}, $after, 0);
	}
	$counts{$online ? 'online' : 'direct'}++;
	return "other statements than those of the dry run:\n$out" if defined $statements && $out ne $statements;
	my $differences = differences($before->{description}, $after, $online);
	return "changed:\n$differences" if $differences ne '';
	my $marked = $attached ? run_query($database, q{SELECT count(*) FROM snowflake_sequences WHERE kind = 'snowflake'}) : 0;
	$counts{sequences} += $marked;
	return 'no default' if $marked == 0 && $after !~ /^column \S.*? \| .*default=snowflake_nextval/m;
	my $does = run_query($database, $dml);
	my $broken = broken($before->{dml}, $does);

	return "no longer works:\n$broken" if $broken ne '' && $said !~ /some partitions or children do not accept new IDs/;
	return '';
}

while (time < $end)
{
	my $schema = SnowflakeTest::RandomSchema::make($seed);
	my $call = "$schema->{table}, $schema->{column}";

	my %before;
	my %wrong;

	$counts{schemas}++;
	sql($node, 'CREATE DATABASE made TEMPLATE base');
	run_sql('made', @{ $schema->{statements} });
	$attached = $seed % 2;
	run_query('made', q{UPDATE pg_proc SET prosupport = 0 WHERE oid = 'nextval(regclass)'::regprocedure}) if $attached;
	$before{dml} = run_query('made', $dml);
	$before{description} = run_query('made', $describe);
	my ($statements, $dry) = run_sql('made', "SELECT snowflake_convert($call, dry_run => true)");
	my (undef, $plan) = run_sql('made', "SELECT * FROM snowflake_convert_plan($call)");

	sql($node, 'CREATE DATABASE copy TEMPLATE made');
	$wrong{direct} = try_conversion('copy', "SELECT snowflake_convert($call)", error_of($dry), $statements, \%before, 0);
	sql($node, 'DROP DATABASE copy');
	$wrong{online} = try_conversion('made', "CALL snowflake_convert_online($call)", error_of($plan), undef, \%before, 1);
	sql($node, 'DROP DATABASE made');
	foreach my $kind (sort keys %wrong)
	{
		ok($wrong{$kind} eq '', "seed $seed: $kind conversion")
		  or diag("$wrong{$kind}\n-- seed $seed:\n" . join('', map { "$_;\n" } @{ $schema->{statements} }));
	}
	$seed++;
}
diag("$counts{schemas} schemas, $counts{direct} converted directly, $counts{online} online, $counts{refused} refusals, $counts{sequences} sequences that stayed; the next seed is $seed");
ok($counts{schemas} > 0, 'schemas were tried');

done_testing();
