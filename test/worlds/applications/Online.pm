# The conversion of an application's whole database by snowflake_convert_online(), key by
# key, while clients of the program write.  (script/tests/torture --conversion interrupts it.)
#
# The clients are processes of a script that uses the program's own code:
#
#	SCRIPT work CLIENT LEDGER STOP [COUNT]	write until the file STOP exists, or so often
#	SCRIPT check LEDGER...			print what differs, and how much was compared
#
# Each has a ledger, a file with a line before each change, and one behind it that says
# whether it was done, or the error.  So what was committed is known apart from the database.

package Online;

use JSON::PP;
use List::Util qw(max);
use POSIX ':sys_wait_h';
use SnowflakeTest;
use SnowflakeTest::Online;

use constant CLIENTS => 3;

# A client that does nothing for so many seconds has stopped for good.
use constant LONGEST => 180;

# Options:
#
#	app			the application, whose tables are there
#	script		the command of its clients
#	written		a pattern of the tables that they change
#	new_keys	columns that get new keys from them
#	widen		that of snowflake_convert_schema()
sub new ($class, %options)
{
	my $self = bless { clients => [], calls => 0, stop => "$options{app}{dir}/stop", %options }, $class;

	$self->{ledgers} = [ map { "$options{app}{dir}/ledger.$_" } 1 .. CLIENTS ];
	# more than lock_wait: who waits for so long is logged
	restart_with($options{app}{node}, 'log_statement = none', 'log_lock_waits = on', "deadlock_timeout = '200 ms'");
	return $self;
}

#
# Clients
#

# Start all of them, which end after so many changes, or when they are told to.
sub start_writers ($self, $count = undef)
{
	unlink $self->{stop};
	foreach my $n (1 .. CLIENTS)
	{
		my $ledger = $self->{ledgers}[ $n - 1 ];
		my $pid = fork // die "fork: $!";

		if (!$pid)
		{
			%ENV = (%ENV, %{ $self->{app}{env} });
			open STDIN, '<', '/dev/null' and open STDOUT, '>>', "$ledger.log" and open STDERR, '>&', \*STDOUT
			  and exec @{ $self->{script} }, 'work', $n, $ledger, $self->{stop}, $count // ();
			POSIX::_exit(1);
		}
		push @{ $self->{clients} }, { pid => $pid, ledger => $ledger };
	}
	return;
}

# Wait until each has written, from now on.
sub clients_write ($self)
{
	foreach my $client (@{ $self->{clients} })
	{
		my $size = -s $client->{ledger} // 0;

		wait_until('a client that writes', sub { (-s $client->{ledger} // 0) > $size || waitpid($client->{pid}, WNOHANG) != 0 },
			sub { slurp_file("$client->{ledger}.log") });
	}
	return;
}

# Wait for their end; without a count, have them end.
sub finish_writers ($self, $label, $count = undef)
{
	append_to_file($self->{stop}, '') unless $count;
	foreach my $client (splice @{ $self->{clients} })
	{
		my ($deadline, $ended) = time + ($count ? 4 : 1) * LONGEST;

		until (($ended = waitpid($client->{pid}, WNOHANG)) != 0)
		{
			if (time > $deadline)
			{
				kill 'KILL', $client->{pid};
				waitpid $client->{pid}, 0;
				last;
			}
			usleep(20_000);
		}
		is($ended && $?, 0, "$label: a client ends when it should") or diag(slurp_file("$client->{ledger}.log"));
	}
	return;
}

# So many changes of each client
sub use_by_clients ($self, $label, $count)
{
	$self->start_writers($count);
	$self->finish_writers($label, $count);
	return;
}

# What the ledgers say of changes since a time, and until another: how many, which errors, the longest one.
sub read_ledgers ($self, $since, $until = undef)
{
	my %result = (done => 0, errors => {}, longest => 0);

	foreach my $entry (map { decode_json($_) } map { split /\n/, slurp_file($_) } @{ $self->{ledgers} })
	{
		next if !exists $entry->{done} || $entry->{at} < $since || (defined $until && $entry->{at} > $until);
		$result{done}++ if $entry->{done};
		$result{longest} = max($result{longest}, $entry->{seconds});
		$result{errors}{ $entry->{error} =~ s/\d+/N/gr }++ unless $entry->{done};
	}
	return \%result;
}

#
# The conversion
#

# The columns that are converted: those that hold keys of others without a foreign key,
# first, and then the keys, which change what references them, too.  All is
# converted at once before, and what that leads to is what is expected.
sub find_columns ($self)
{
	my $app = $self->{app};
	my $widen = $self->{widen} ? ", widen => '$self->{widen}'" : '';
	my (%wide, %followed);

	$app->save;
	my $statements = $app->as_owner("SELECT snowflake_convert_schema('public', kind => 'snowflake'$widen)");
	$self->{expected} = [ $self->definitions ];
	$self->drop_saved;

	while ($statements =~ /^ALTER TABLE (\S+) (ALTER COLUMN .*)$/gm)
	{
		my ($table, $columns) = ($1, $2);

		$wide{"$table.$_"} = 1 foreach $columns =~ /ALTER COLUMN (\S+) TYPE bigint/g;
	}
	my @keys = split /\n/, $app->sql(q{
		SELECT format('%s.%I.%I', c.relnamespace::regnamespace, c.relname, attname)
		FROM pg_attribute JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
		WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
		AND (pg_get_expr(adbin, adrelid) LIKE 'nextval(%' OR attidentity <> '') ORDER BY c.oid});
	foreach (split /\n/, $app->sql(q{
		SELECT format('%s.%I.%I', c.relnamespace::regnamespace, c.relname, attname)
		FROM pg_constraint JOIN pg_class c ON c.oid = conrelid JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
		WHERE contype = 'f'}))
	{
		$followed{$_} = 1;
	}
	my %is_key = map { $_ => 1 } @keys;
	return ((map { [ $_, "until => 'swap', " ] } grep { !$is_key{$_} && !$followed{$_} } sort keys %wide), map { [ $_, '' ] } @keys);
}

# Convert a column by one call.
sub convert_column ($self, $column, $options)
{
	my ($table, $name) = $column =~ /^(.*)\.(.*)$/;
	my $kind = $options ? '' : ", kind => 'snowflake'";
	my $messages = convert_online($self->{app}{node}, 'app', "'$table', '$name', ${options}batch_time => '5 ms'$kind", connection => 'user=regress_app');

	$self->{calls}++;
	unlike($messages, qr/^(?:psql: error|ERROR|FATAL|PANIC):/m, "$column: the call has no error") or diag($messages);
	is($self->{app}->as_owner(qq{
			SET client_min_messages = error;
			SELECT count(*) FROM snowflake_convert_plan('$table', '$name'$kind) WHERE state <> 'done' AND (@{[ $options ? 'false' : 'true' ]} OR phase <> 'default')}),
		0, "$column is converted");
	return;
}

# A column without a default has the trigger of the conversion left, which says so.
sub drop_trigger ($self, $column)
{
	my ($table) = $column =~ /^(.*)\./;

	$self->{app}->as_owner(qq{SET client_min_messages = warning; DROP TRIGGER IF EXISTS "~snowflake_swapped" ON $table});
	return;
}

# Convert all columns while clients write.
sub convert ($self)
{
	my @columns = $self->find_columns;
	my $begin = time;

	note(scalar(@columns), " columns, of which ", scalar(grep { $_->[1] } @columns), " have no foreign key");
	push @{ $self->{expected} }, $self->rows;
	$self->{log} = -s $self->{app}{node}->logfile;
	$self->start_writers;
	$self->clients_write;
	foreach (@columns)
	{
		my ($column, $options) = @$_;

		$self->convert_column($column, $options);
		$self->drop_trigger($column) if $options;
	}
	$self->clients_write;
	$self->finish_writers('while all is converted');
	$self->report($begin);
	return;
}

sub report ($self, $begin)
{
	my $written = $self->read_ledgers($begin);
	my %errors = %{ $written->{errors} };

	is(join("\n", map { "$errors{$_} times $_" } sort keys %errors), '', 'clients had no error');
	my @waits = slurp_file($self->{app}{node}->logfile, $self->{log}) =~ / acquired \w+ on relation .* after ([\d.]+) ms$/mg;
	diag(sprintf '%d calls in %.1f min; %d changes by clients; the longest took %.2f s (%.2f s before); '
		  . '%d waited for more than 0.2 s for a lock on a table, at most %.2f s',
		$self->{calls}, (time - $begin) / 60, $written->{done}, $written->{longest},
		$self->read_ledgers(0, $begin)->{longest}, scalar @waits, max(0, @waits) / 1000);
	return;
}

#
# What has to be true
#

# The definitions, as lines, in whatever order a table has its columns
sub definitions ($self)
{
	my $table = '';
	my @lines;

	foreach (split /\n/, $self->{app}->dump_of('--schema-only'))
	{
		$table = /^CREATE TABLE (\S+)/ ? "$1: " : /^\)/ ? '' : $table;
		push @lines, $table . s/,$//r;
	}
	return @lines;
}

# The rows of tables that no client changes
sub rows ($self)
{
	my $rows = $self->{app}->sql($self->{app}->sql(q{
		SELECT string_agg(format('SELECT %L, count(*), md5(string_agg(to_jsonb(t)::text, '' '' ORDER BY to_jsonb(t)::text)) FROM %s t', c.oid::regclass, c.oid::regclass),
			' UNION ALL ') || ' ORDER BY 1' FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace}));

	return grep { !/^(?:$self->{written})\|/ } split /\n/, $rows;
}

# What is there only once
sub differences ($before, $after)
{
	my %count;

	$count{$_}-- foreach @$before;
	$count{$_}++ foreach @$after;
	return join "\n", map { $count{$_} < 0 ? "- $_" : "+ $_" } grep { $count{$_} } sort keys %count;
}

# Rows that reference none, by foreign keys that are said to be valid or not
sub orphans ($self)
{
	my $queries = $self->{app}->sql(q{
		SELECT string_agg(format('SELECT %L, count(*) FROM ONLY %s c WHERE (c.%I) IS NOT NULL AND NOT EXISTS (SELECT FROM %s p WHERE p.%I = c.%I) HAVING count(*) > 0',
			conname, conrelid::regclass, c.attname, confrelid::regclass, p.attname, c.attname), ' UNION ALL ')
		FROM pg_constraint JOIN pg_attribute c ON (c.attrelid, c.attnum) = (conrelid, conkey[1])
			JOIN pg_attribute p ON (p.attrelid, p.attnum) = (confrelid, confkey[1])
		WHERE contype = 'f' AND cardinality(conkey) = 1});

	return $queries eq '' ? '' : $self->{app}->sql($queries);
}

# All that is wrong, as lines, of which there should be none
sub wrong ($self)
{
	my $out = $self->{app}->run_ok('the clients compare', @{ $self->{script} }, 'check', @{ $self->{ledgers} });
	my @wrong = $out =~ /^(wrong: .*)$/mg;

	($self->{checked}) = $out =~ /^checked: (\d+)$/m or push @wrong, 'nothing was compared';
	push @wrong, map { "left: $_" } split /\n/, nothing_is_left($self->{app}{node}, 'app');
	push @wrong, map { "orphan: $_" } split /\n/, $self->orphans;
	push @wrong, map { "changed: $_" } split /\n/, differences($self->{expected}, [ $self->definitions, $self->rows ]);
	push @wrong, map { "not validated: $_" } split /\n/, $self->{app}->sql('SELECT conname FROM pg_constraint WHERE NOT convalidated');
	return @wrong;
}

# After the conversion, and again after clients have used what it left
sub check ($self)
{
	is(join("\n", $self->wrong), '', 'nothing is lost, changed or left');
	diag("$self->{checked} comparisons of the ledgers with the database");
	$self->use_by_clients('afterwards', $self->changes + 40);
	is(join("\n", $self->wrong), '', 'nothing is wrong after new rows');
	$self->{app}->kinds_are('snowflake');
	$self->{app}->keys_are('snowflake', @{ $self->{new_keys} });
	return;
}

# The greatest number of a change
sub changes ($self)
{
	return max(map { $_->{number} // 0 } map { decode_json($_) } map { split /\n/, slurp_file($_) } @{ $self->{ledgers} });
}

# Have the database as it was at Application::save(), which is over then.
sub drop_saved ($self)
{
	$self->{app}->restore;
	sql($self->{app}{node}, 'DROP DATABASE saved');
	return;
}

# Each of these statements is seen by the check.
sub faults_are_seen ($self, @statements)
{
	foreach my $statement (@statements)
	{
		$self->{app}->save;
		$self->{app}->sql("SET session_replication_role = replica; $statement");
		my @wrong = $self->wrong;
		cmp_ok(scalar(@wrong), '>', 0, "it is seen: $statement");
		note(join "\n", @wrong[ 0 .. ($#wrong > 4 ? 4 : $#wrong) ]);
		$self->drop_saved;
	}
	return;
}

1;
