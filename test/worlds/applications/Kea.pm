# Kea, a DHCP server that has its leases, reservations and configuration in an
# application's database.

package Kea;

use v5.36;

use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our $schema = '/usr/share/kea/scripts/pgsql/dhcpdb_create.pgsql';
our $dir = PostgreSQL::Test::Utils::tempdir_short;
my ($server_port, $client_port);

sub admin ($app, $command)
{
	return $app->run_ok("kea-admin $command", 'kea-admin', $command, 'pgsql', '-h', $app->{env}{PGHOST}, '-P', $app->{env}{PGPORT},
		'-u', 'regress_app', '-p', 'none', '-n', 'app');
}

# Have its functions that hold keys in integers hold them in bigint, as the report says.
sub widen_functions ($app)
{
	foreach my $function ('createoptionauditdhcp4', 'createoptionauditdhcp6')
	{
		my $changed = $app->sql("SELECT pg_get_functiondef('$function'::regproc)") =~ s/\b(option_id|host_id) integer\b/$1 bigint/gr;
		$app->as_owner("BEGIN; DROP FUNCTION $function; $changed; COMMIT");
	}
	return;
}

# Start the server of an application's database; it has ended when it is killed.
sub start_kea ($app, $label)
{
	my %database = (type => 'postgresql', name => 'app', host => '127.0.0.1', port => $app->{env}{PGPORT} + 0, user => 'regress_app', password => 'none');

	($server_port, $client_port) = map { PostgreSQL::Test::Cluster::get_free_port() } 1, 2 unless $server_port;
	unlink "$dir/kea.json";
	append_to_file("$dir/kea.json", encode_json({ Dhcp4 => {
		'interfaces-config' => { interfaces => ['lo'], 'dhcp-socket-type' => 'udp' },
		'control-socket' => { 'socket-type' => 'unix', 'socket-name' => "$dir/socket" },
		'lease-database' => \%database, 'hosts-database' => \%database,
		'config-control' => { 'config-databases' => [ \%database ] },
		'hooks-libraries' => [ map { { library => glob "/usr/lib/*/kea/hooks/libdhcp_$_.so" } } 'pgsql_cb', 'lease_cmds' ],
		loggers => [ { name => 'kea-dhcp4', severity => 'WARN', output_options => [ { output => 'stdout' } ] } ] } }));
	local @ENV{ 'KEA_PIDFILE_DIR', 'KEA_LOCKFILE_DIR' } = ($dir, 'none');
	unlink "$dir/socket";
	my $service = { run => IPC::Run::start([ 'kea-dhcp4', '-c', "$dir/kea.json", '-p', $server_port, '-P', $client_port ], '>&' => "$dir/log") };
	foreach (1 .. 600)
	{
		last if -S "$dir/socket";
		select undef, undef, undef, 0.1;
	}
	# It answers when it has read the database.
	ok(-S "$dir/socket" && control('status-get'), $label) or diag(slurp_file("$dir/log"));
	return $service;
}

# A command of its control socket, which is another one after a reload: then who waits is not answered
sub control ($command, %arguments)
{
	local $SIG{PIPE} = 'IGNORE';
	foreach (1 .. 300)
	{
		if (my $socket = IO::Socket::UNIX->new(Peer => "$dir/socket"))
		{
			print $socket encode_json({ command => $command, arguments => \%arguments });
			local $/;
			my $answer = <$socket>;
			return decode_json($answer) if length($answer // '');
		}
		select undef, undef, undef, 0.1;
	}
	die "no answer to $command: " . slurp_file("$dir/log");
}

# What a client behind the relay 127.0.0.N gets: its address, its server, its domain names' servers
sub asks ($n, $mac)
{
	my $socket = IO::Socket::INET->new(Proto => 'udp', LocalAddr => "127.0.0.$n", LocalPort => $client_port) or die "no socket: $!";
	my $packet = pack 'CCCCNnnNNNNH32x64x128N', 1, 1, 6, 1, 42, 0, 0, 0, 0, 0, unpack('N', pack 'C4', 127, 0, 0, $n), $mac, 0x63825363;
	my $server = sockaddr_in($server_port, INADDR_LOOPBACK);
	my @seen;

	foreach my $type (1, 3)
	{
		my $options = pack 'CCC CCCCC', 53, 1, $type, 55, 3, 6, 12, 222;
		$options .= pack 'CCN CCN', 50, 4, $seen[0], 54, 4, $seen[1] if $type == 3;
		send $socket, $packet . $options . pack('C', 255), 0, $server;
		return 'no answer' unless IO::Select->new($socket)->can_read(10);
		recv $socket, my $answer, 1500, 0;
		my ($address, $rest) = (unpack('x16 N', $answer), substr $answer, 240);
		my %option;
		while ($rest =~ s/^([^\xff])(.)//s)
		{
			my ($code, $length) = (ord $1, ord $2);
			$option{$code} = substr $rest, 0, $length, '';
		}
		@seen = ($address, unpack('N', $option{54} // "\0" x 4), map { $option{$_} // '-' } 6, 12, 222);
	}
	return sprintf '%s, %s, %s, %s', join('.', unpack 'C4', pack 'N', $seen[0]), join('.', unpack 'C*', $seen[2]), @seen[ 3, 4 ];
}

# Store a subnet with all that belongs to it, as Kea's interface for programs does.
sub store ($app, $n)
{
	my $for_all = sub { my ($table, $column, $key) = @_; "INSERT INTO ${table}_server ($column, server_id) VALUES (currval(pg_get_serial_sequence('$table', '$key')), 1);" };
	my $option = sub {
		my ($code, $value, $scope, $column, $of) = @_;
		"INSERT INTO dhcp4_options (code, formatted_value, space, persistent, scope_id, $column) VALUES ($code, '$value', 'dhcp4', true, $scope, $of);"
		  . ($column eq 'host_id' ? '' : $for_all->('dhcp4_options', 'option_id', 'option_id'));
	};

	return $app->run_ok("subnet $n is stored", 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', qq{
		BEGIN;
		SELECT createAuditRevisionDHCP4(CURRENT_TIMESTAMP, 'all', 'subnet $n', false);
		INSERT INTO dhcp4_subnet (subnet_id, subnet_prefix, relay, user_context, require_client_classes) VALUES ($n, '10.$n.0.0/16', '["127.0.0.$n"]', '{}', '["class$n"]');
		INSERT INTO dhcp4_subnet_server (subnet_id, server_id) VALUES ($n, 1);
		INSERT INTO dhcp4_pool (start_address, end_address, subnet_id) VALUES ('10.$n.1.0', '10.$n.1.9', $n);
		INSERT INTO dhcp4_option_def (code, name, space, type, is_array, encapsulate) SELECT 222, 'more', 'dhcp4', 14, false, '' WHERE $n = 1;
		INSERT INTO dhcp4_option_def_server (option_def_id, server_id) SELECT currval(pg_get_serial_sequence('dhcp4_option_def', 'id')), 1 WHERE $n = 1;
		INSERT INTO dhcp4_client_class (name, test, only_if_required) VALUES ('class$n', 'member(''ALL'')', true);
		} . $for_all->('dhcp4_client_class', 'class_id', 'id')
		  . $option->(6, "10.$n.0.1", 1, 'dhcp4_subnet_id', $n)
		  . $option->(222, "of the pool", 5, 'pool_id', "currval(pg_get_serial_sequence('dhcp4_pool', 'id'))")
		  . qq{
		INSERT INTO dhcp4_global_parameter (name, value, parameter_type) SELECT 'renew-timer', '900', 0 WHERE $n = 1;
		INSERT INTO dhcp4_global_parameter_server (parameter_id, server_id) SELECT currval(pg_get_serial_sequence('dhcp4_global_parameter', 'id')), 1 WHERE $n = 1;
		INSERT INTO dhcp4_shared_network (name) VALUES ('network$n');
		} . $for_all->('dhcp4_shared_network', 'shared_network_id', 'id')
		  . qq{
		INSERT INTO hosts (dhcp_identifier, dhcp_identifier_type, dhcp4_subnet_id, ipv4_address, hostname)
			VALUES ('\\x0a00000000$n$n', 0, $n, '10.$n.2.1'::inet - '0.0.0.0'::inet, 'host$n');
		} . $option->(6, "10.$n.0.2", 3, 'host_id', "currval(pg_get_serial_sequence('hosts', 'host_id'))")
		  . qq{
		INSERT INTO ipv6_reservations (address, host_id) VALUES ('2001:db8::$n', currval(pg_get_serial_sequence('hosts', 'host_id')));
		COMMIT;
		SELECT object_type, modification_type, count(*) FROM dhcp4_audit JOIN dhcp4_audit_revision r ON r.id = revision_id
		WHERE log_message = 'subnet $n' AND object_type NOT IN ('dhcp4_global_parameter', 'dhcp4_option_def') GROUP BY 1, 2 ORDER BY 1, 2;
		SELECT count(*) FROM dhcp4_client_class_order o JOIN dhcp4_client_class c ON c.id = o.class_id WHERE c.name = 'class$n'});
}

# Use it with a subnet.  Returns what does not depend on its number and on the IDs.
sub use ($app, $label, $n)
{
	my $service = start_kea($app, "$label: it starts");
	# It rounds the time of the last change to a second, and pulls later ones only.
	sleep 1;
	my @lines = (store($app, $n));

	push @lines, "pull: " . control('config-backend-pull')->{text};
	my $config = control('config-get')->{arguments}{Dhcp4};
	my ($subnet) = grep { $_->{id} == $n } @{ $config->{subnet4} };
	push @lines, 'pools: ' . join ' ', map { $_->{pool} . ' ' . join ',', map { $_->{data} } @{ $_->{'option-data'} } } @{ $subnet->{pools} };
	push @lines, 'options: ' . join ' ', map { $_->{data} } @{ $subnet->{'option-data'} };
	push @lines, 'classes: ' . scalar grep { $_->{name} eq "class$n" } @{ $config->{'client-classes'} };
	push @lines, 'has an address: ' . asks($n, "0a00000000$n$n");
	push @lines, 'gets an address: ' . asks($n, "0a00000001$n$n");
	push @lines, 'lease: ' . control('lease4-get', 'ip-address' => "10.$n.2.1")->{text};
	push @lines, 'lease of another: ' . control('lease4-add', 'ip-address' => "10.$n.1.9", 'subnet-id' => $n, 'hw-address' => "0a:00:00:00:02:$n$n")->{text};
	push @lines, 'all: ' . control('lease4-get-all', subnets => [$n])->{text};
	push @lines, 'deleted: ' . control('lease4-del', 'ip-address' => "10.$n.1.9")->{text};
	$app->run_ok("$label: an end", 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-c', qq{
		BEGIN;
		SELECT createAuditRevisionDHCP4(CURRENT_TIMESTAMP, 'all', 'end of $n', false);
		DELETE FROM dhcp4_pool WHERE subnet_id = $n;
		DELETE FROM dhcp4_options WHERE dhcp4_subnet_id = $n;
		COMMIT});
	push @lines, 'reload: ' . control('config-reload')->{text};
	($subnet) = grep { $_->{id} == $n } @{ control('config-get')->{arguments}{Dhcp4}{subnet4} };
	push @lines, 'pools: ' . scalar @{ $subnet->{pools} };
	$service->{run}->signal('TERM');
	$service->{run}->finish;
	return join("\n", @lines, '') =~ s/\b(?:10\.$n|00:$n$n)\b/X/gr =~ s/(?:class|subnet|host|subnet-id )\K$n\b/N/gr;
}

1;
