# Store Kea's configuration and reservations as its interface for programs does, by its
# functions and triggers, and compare what is there with what was stored:
#
#	load_kea.pl work CLIENT LEDGER STOP [COUNT]
#	load_kea.pl check LEDGER...
#
# Online.pm says what these are.

use v5.36;

use File::Basename;
use IPC::Run;
use JSON::PP;
use List::Util qw(max);
use Time::HiRes qw(time usleep);

my $json = JSON::PP->new->canonical;

# Statements, as one transaction.  Returns the error, if any, and what it printed.
sub sql ($sql)
{
	my ($out, $err);

	return (undef, $out)
	  if IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', $sql ], '<' => \undef, '>' => \$out, '2>' => \$err);
	return ($err =~ s/\s+/ /gr, '');
}

#
# What a client has stored, by its ledger
#
# Subnets by their numbers, each with options by their codes, "pool" among them; hosts of a
# subnet by "subnet/host"; classes and definitions of options by their names.
#
sub empty { return { subnets => {}, hosts => {}, classes => {}, definitions => {}, done => {}, number => 0 }; }

sub apply ($stored, $what, $name, $code = undef, $value = undef)
{
	if ($what eq 'subnet') { $stored->{subnets}{$name} = { pool => $value }; }
	elsif ($what eq 'option' || $what eq 'set option') { $stored->{subnets}{$name}{$code} = $value; }
	elsif ($what eq 'drop option') { delete $stored->{subnets}{$name}{$code}; }
	elsif ($what eq 'drop subnet') { delete $stored->{subnets}{$name}; }
	elsif ($what eq 'host' || $what eq 'set host') { $stored->{hosts}{$name} = $value; }
	elsif ($what eq 'drop host') { delete $stored->{hosts}{$name}; }
	elsif ($what eq 'class' || $what eq 'set class') { $stored->{classes}{$name} = $value; }
	elsif ($what eq 'drop class') { delete $stored->{classes}{$name}; }
	elsif ($what eq 'definition' || $what eq 'set definition') { $stored->{definitions}{$name} = $value; }
	elsif ($what eq 'drop definition') { delete $stored->{definitions}{$name}; }
	return;
}

sub read_ledger ($file)
{
	my $stored = empty();
	my $begun;

	open my $handle, '<', $file or return $stored;
	while (my $line = <$handle>)
	{
		my $entry = decode_json($line);

		if ($entry->{begin})
		{
			$begun = $entry;
			$stored->{number} = max($stored->{number}, $entry->{number});
			next;
		}
		next unless $entry->{done};
		apply($stored, @{ $begun->{begin} });
		$stored->{done}{ $begun->{number} } = $begun->{begin}[0];
	}
	return $stored;
}

#
# Clients
#
sub any_of { return $_[ rand @_ ]; }

# Options that are texts
my @texts = (14, 17, 18, 40, 64, 66, 67, 100, 101);

# Something to do
sub choose ($stored, $client)
{
	my $number = $stored->{number};
	my $value = "v$client-$number";
	my @subnets = sort keys %{ $stored->{subnets} };
	my @hosts = sort keys %{ $stored->{hosts} };
	my @classes = sort keys %{ $stored->{classes} };
	my @definitions = sort keys %{ $stored->{definitions} };
	my $what = any_of(('subnet') x 3, ('option') x 5, ('set option') x 5, ('drop option') x 2, 'drop subnet', ('host') x 5, ('set host') x 3,
		('drop host') x 2, ('class') x 2, ('set class') x 2, 'drop class', ('definition') x 2, ('set definition') x 2, 'drop definition');

	return [ 'subnet', $client * 100000 + $number, 0, $value ] if $what eq 'subnet' || !@subnets;
	my $subnet = any_of(@subnets);
	my @codes = grep { $_ ne 'pool' } keys %{ $stored->{subnets}{$subnet} };
	my $code = any_of(@texts);
	return [ $what, $subnet, $code, $value ] if $what eq 'option' && !$stored->{subnets}{$subnet}{$code};
	return [ $what, $subnet, any_of(@codes, 'pool'), $value ] if $what eq 'set option';
	return [ $what, $subnet, any_of(@codes) ] if $what eq 'drop option' && @codes;
	return [ $what, $subnet ] if $what eq 'drop subnet' && !grep { /^$subnet\// } keys %{ $stored->{hosts} };
	return [ $what, "$subnet/$number", 0, $value ] if $what eq 'host';
	return [ $what, any_of(@hosts), 0, $value ] if $what eq 'set host' && @hosts;
	return [ $what, any_of(@hosts) ] if $what eq 'drop host' && @hosts;
	return [ $what, "class$client-$number", 0, $value ] if $what eq 'class';
	return [ $what, any_of(@classes), 0, $value ] if $what eq 'set class' && @classes;
	return [ $what, any_of(@classes) ] if $what eq 'drop class' && @classes;
	return [ $what, "definition$client-$number", 0, $value ] if $what eq 'definition';
	return [ $what, any_of(@definitions), 0, $value ] if $what eq 'set definition' && @definitions;
	return [ $what, any_of(@definitions) ] if $what eq 'drop definition' && @definitions;
	return;
}

# A row for all servers, of what was stored just before
sub for_all ($table, $column, $key)
{
	return "INSERT INTO ${table}_server ($column, server_id) VALUES (currval(pg_get_serial_sequence('$table', '$key')), 1);";
}

sub option ($code, $value, $scope, $column, $of)
{
	return "INSERT INTO dhcp4_options (code, formatted_value, space, persistent, scope_id, $column) VALUES ($code, '$value', 'dhcp4', true, $scope, $of);"
	  . ($column eq 'host_id' ? '' : for_all('dhcp4_options', 'option_id', 'option_id'));
}

sub statements ($number, $client, $what, $name, $code = undef, $value = undef)
{
	my $begin = "SELECT createAuditRevisionDHCP4(CURRENT_TIMESTAMP, 'all', 'change $client.$number', false);";
	my $net = $client . '.' . int(($name =~ /(\d+)/)[0] % 100000 / 250) . '.' . (($name =~ /(\d+)/)[0] % 250);
	my $is_option = defined $code && $code eq 'pool'
	  ? "code = 222 AND pool_id = (SELECT id FROM dhcp4_pool WHERE subnet_id = $name)"
	  : "code = " . ($code // 0) . " AND dhcp4_subnet_id = $name";
	my $set_option = "UPDATE dhcp4_options SET formatted_value = '" . ($value // '') . "', modification_ts = clock_timestamp() WHERE";
	my ($subnet, $host) = $name =~ /^(\d+)\/(\d+)$/;
	my $is_host = defined $host ? "hostname = 'host$name'" : '';

	if ($what eq 'subnet')
	{
		return $begin . qq{
			INSERT INTO dhcp4_subnet (subnet_id, subnet_prefix, relay, user_context, require_client_classes) VALUES ($name, '$net.0/24', '["127.0.0.1"]', '{}', '[]');
			INSERT INTO dhcp4_subnet_server (subnet_id, server_id) VALUES ($name, 1);
			INSERT INTO dhcp4_pool (start_address, end_address, subnet_id) VALUES ('$net.10', '$net.99', $name);}
		  . option(222, $value, 5, 'pool_id', "currval(pg_get_serial_sequence('dhcp4_pool', 'id'))");
	}
	return $begin . option($code, $value, 1, 'dhcp4_subnet_id', $name) if $what eq 'option';
	return $begin . "$set_option $is_option" if $what eq 'set option';
	return $begin . "DELETE FROM dhcp4_options WHERE $is_option" if $what eq 'drop option';
	return $begin . "DELETE FROM dhcp4_pool WHERE subnet_id = $name; DELETE FROM dhcp4_options WHERE dhcp4_subnet_id = $name; DELETE FROM dhcp4_subnet WHERE subnet_id = $name"
	  if $what eq 'drop subnet';
	if ($what eq 'host')
	{
		return $begin . sprintf(q{
			INSERT INTO hosts (dhcp_identifier, dhcp_identifier_type, dhcp4_subnet_id, hostname) VALUES ('\x%02x%010x', 0, %d, 'host%s');
			INSERT INTO ipv6_reservations (address, host_id) VALUES ('2001:db8:%d:%x::1', currval(pg_get_serial_sequence('hosts', 'host_id')));},
			$client, $host, $subnet, $name, $client, $host)
		  . option(17, $value, 3, 'host_id', "currval(pg_get_serial_sequence('hosts', 'host_id'))");
	}
	return $begin . "$set_option host_id = (SELECT host_id FROM hosts WHERE $is_host)" if $what eq 'set host';
	return $begin . "DELETE FROM hosts WHERE $is_host" if $what eq 'drop host';
	return $begin . "INSERT INTO dhcp4_client_class (name, test, only_if_required) VALUES ('$name', '''$value'' == ''$value''', true);" . for_all('dhcp4_client_class', 'class_id', 'id')
	  if $what eq 'class';
	return $begin . "UPDATE dhcp4_client_class SET test = '''$value'' == ''$value''' WHERE name = '$name'" if $what eq 'set class';
	return $begin . "DELETE FROM dhcp4_client_class WHERE name = '$name'" if $what eq 'drop class';
	my $context = '{"text": "' . ($value // '') . '"}';
	return $begin . "INSERT INTO dhcp4_option_def (code, name, space, type, is_array, encapsulate, user_context) VALUES (1, '$name', '$name', 14, false, '', '$context');"
	  . for_all('dhcp4_option_def', 'option_def_id', 'id')
	  if $what eq 'definition';
	return $begin . "UPDATE dhcp4_option_def SET user_context = '$context' WHERE name = '$name'" if $what eq 'set definition';
	return $begin . "DELETE FROM dhcp4_option_def WHERE name = '$name'";
}

sub work ($client, $file, $stop, $count = undef)
{
	my $stored = read_ledger($file);

	open my $ledger, '>>', $file or die "$file: $!";
	$ledger->autoflush(1);
	until (-e $stop || (defined $count && $stored->{number} >= $count))
	{
		$stored->{number}++;
		my $chosen = choose($stored, $client) or next;
		print $ledger $json->encode({ number => $stored->{number}, begin => $chosen }), "\n";
		my $begun = time;
		my ($error) = sql(statements($stored->{number}, $client, @$chosen));
		apply($stored, @$chosen) unless $error;
		print $ledger $json->encode({ done => $error ? JSON::PP::false : JSON::PP::true, error => $error, at => $begun, seconds => time - $begun }), "\n";
		usleep(30_000);
	}
	return;
}

#
# The comparison
#
my @wrong;
my $checked = 0;

# Rows of a query by their names, and what they should be.
sub compare ($sort, $query, $expected)
{
	my ($error, $out) = sql($query);
	my %found = map { split /\|/, $_, 2 } split /\n/, $out;

	push @wrong, "$sort: $error" if $error;
	foreach my $name (sort keys %{ { %found, %$expected } })
	{
		my ($is, $should) = map { $_ // 'not there' } $found{$name}, $expected->{$name};

		$checked++;
		push @wrong, "$sort $name: $is instead of $should" if $is ne $should;
	}
	return;
}

sub check ($client, $stored)
{
	my %subnets = map {
		my %options = %{ $stored->{subnets}{$_} };
		my $net = "$client." . int($_ % 100000 / 250) . '.' . ($_ % 250);
		my $pool = delete $options{pool};
		($_ => join '|', "$net.0/24", "$net.10", $pool, join(",", map { "$_=$options{$_}" } sort { $a <=> $b } keys %options), 1)
	} keys %{ $stored->{subnets} };
	my %hosts = map { my ($host) = /\/(\d+)$/; ($_ => sprintf '%s|2001:db8:%d:%x::1', $stored->{hosts}{$_}, $client, $host) } keys %{ $stored->{hosts} };

	# what a change of each sort has written to the audit, which is the same each time
	my ($error, $out) = sql("SELECT split_part(log_message, '.', 2), count(DISTINCT r.id), count(a.id), count(*) FILTER (WHERE a.object_id IS NULL) > 0
		FROM dhcp4_audit_revision r LEFT JOIN dhcp4_audit a ON a.revision_id = r.id WHERE log_message LIKE 'change $client.%' GROUP BY 1");
	my %audit = map { split /\|/, $_, 2 } split /\n/, $out;
	my (%of_sort, %common);
	push @wrong, "audit: $error" if $error;
	foreach (keys %{ $stored->{done} })
	{
		my $sort = $stored->{done}{$_};

		$checked++;
		# It has one for each option.
		next if $sort eq 'drop subnet' && $audit{$_};
		$of_sort{$sort}{ $audit{$_} // 'none' }++;
	}
	foreach my $sort (sort keys %of_sort)
	{
		my @entries = %{ $of_sort{$sort} };
		push @wrong, "audit of \"$sort\": @entries" if @entries != 2 || $entries[0] !~ /^1\|/;
	}

	compare('subnet', "SELECT s.subnet_id, subnet_prefix, host(p.start_address), (SELECT formatted_value FROM dhcp4_options o JOIN dhcp4_options_server USING (option_id) WHERE o.pool_id = p.id),
		(SELECT string_agg(code || '=' || formatted_value, ',' ORDER BY code) FROM dhcp4_options o JOIN dhcp4_options_server USING (option_id) WHERE o.dhcp4_subnet_id = s.subnet_id),
		(SELECT count(*) FROM dhcp4_subnet_server v WHERE v.subnet_id = s.subnet_id)
		FROM dhcp4_subnet s LEFT JOIN dhcp4_pool p USING (subnet_id) WHERE subnet_id / 100000 = $client", \%subnets);
	compare('host', "SELECT substr(hostname, 5), formatted_value, address FROM hosts h LEFT JOIN dhcp4_options USING (host_id) LEFT JOIN ipv6_reservations USING (host_id)
		WHERE h.dhcp4_subnet_id / 100000 = $client", \%hosts);
	compare('class', "SELECT name, test, (SELECT count(*) FROM dhcp4_client_class_order o WHERE o.class_id = c.id), (SELECT count(*) FROM dhcp4_client_class_server s WHERE s.class_id = c.id)
		FROM dhcp4_client_class c WHERE name LIKE 'class$client-%'", { map { ($_ => "'$stored->{classes}{$_}' == '$stored->{classes}{$_}'|1|1") } keys %{ $stored->{classes} } });
	compare('definition', "SELECT name, user_context->>'text', (SELECT count(*) FROM dhcp4_option_def_server s WHERE s.option_def_id = d.id) FROM dhcp4_option_def d
		WHERE name LIKE 'definition$client-%'", { map { ($_ => "$stored->{definitions}{$_}|1") } keys %{ $stored->{definitions} } });
	return;
}

my $step = shift @ARGV;
if ($step eq 'work')
{
	work(@ARGV);
}
else
{
	check(basename($_) =~ /(\d+)$/, read_ledger($_)) foreach @ARGV;
	print "wrong: $_\n" foreach @wrong > 50 ? @wrong[ 0 .. 49 ] : @wrong;
	print "checked: $checked\n";
}
