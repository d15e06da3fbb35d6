# Kamailio, a SIP server, by the requests of telephones: accounts, who is where, messages
# for those who are away, and what is written about each.

use Digest::MD5 'md5_hex';
use Application;
use SnowflakeTest;

my $app = Application->new;
my $dir = $app->{dir};
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $database = "postgres://regress_app\@127.0.0.1:$app->{env}{PGPORT}/app";
my $tables = '/usr/share/kamailio/postgres';

append_to_file("$dir/kamailio.cfg", qq(#!KAMAILIO
children=2
log_stderror=yes
auto_aliases=no
alias="example.org"
listen=udp:127.0.0.1:$port
listen=tcp:127.0.0.1:$port
loadmodule "db_postgres.so"
loadmodule "tm.so"
loadmodule "sl.so"
loadmodule "pv.so"
loadmodule "maxfwd.so"
loadmodule "textops.so"
loadmodule "siputils.so"
loadmodule "usrloc.so"
loadmodule "registrar.so"
loadmodule "auth.so"
loadmodule "auth_db.so"
loadmodule "permissions.so"
loadmodule "domain.so"
loadmodule "dispatcher.so"
loadmodule "msilo.so"
loadmodule "acc.so"
modparam("usrloc|auth_db|permissions|domain|dispatcher|msilo|acc", "db_url", "$database")
modparam("usrloc", "db_mode", 1)
modparam("auth_db", "calculate_ha1", 0)
modparam("auth_db", "password_column", "ha1")
modparam("msilo", "from_address", "sip:messages\@example.org")
modparam("msilo", "outbound_proxy", "sip:127.0.0.1:$port")
modparam("acc", "db_flag", 1)
modparam("acc", "log_flag", 2)
request_route {
	if (!allow_source_address("1") || !is_domain_local("\$td")) {
		sl_send_reply("403", "Forbidden");
		exit;
	}
	if (is_method("REGISTER")) {
		if (!auth_check("example.org", "subscriber", "1")) {
			auth_challenge("example.org", "0");
			exit;
		}
		if (save("location")) m_dump();
		exit;
	}
	setflag(1);
	if (!lookup("location")) {
		if (m_store("\$ru")) sl_send_reply("202", "Accepted");
		else sl_send_reply("503", "not stored");
		acc_db_request("202 stored", "acc");
		exit;
	}
	t_relay();
}
));

$app->run_ok("its tables are created: $_", 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $_)
  foreach "$tables/standard-create.sql", grep { !/standard-create/ } glob "$tables/*-create.sql";
$app->as_owner(q{
	INSERT INTO address (grp, ip_addr) VALUES (1, '127.0.0.1');
	INSERT INTO domain (domain, did) VALUES ('example.org', 'example');
	INSERT INTO dispatcher (setid, destination) VALUES (1, 'sip:127.0.0.1:5070')});

# Accounts, as kamctl adds them, and what they do.  Returns what does not depend on the IDs.
sub use_kamailio ($label, $name)
{
	my $accounted = $app->sql('SELECT count(*) FROM acc');

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$app->as_owner(sprintf q{INSERT INTO subscriber (username, domain, password, ha1, ha1b) VALUES ('%s', 'example.org', '', '%s', '')},
		$_, md5_hex("$_:example.org:secret"))
	  foreach "${name}1", "${name}2";
	my $service = $app->start_service($port, 'kamailio', '-DD', '-E', '-f', "$dir/kamailio.cfg", '-Y', $dir, '-w', $dir, '-P', "$dir/pid")
	  or return 'it does not start';
	my $out = $app->run_ok($label, 'perl', "$FindBin::RealBin/use_kamailio.pl", $port, "${name}1", "${name}2");
	Application::stop_service($service);
	return $out . $app->sql(qq{
		SELECT 'where they are: ' || string_agg(username, ', ' ORDER BY username) FROM location WHERE username LIKE '$name%'
		UNION ALL SELECT 'messages kept: ' || count(*) FROM silo WHERE username LIKE '$name%'
		UNION ALL SELECT 'accounted: ' || count(*) - $accounted FROM acc}) =~ s/$name//gr;
}

$app->works_before(\&use_kamailio, qr/^it gets: first, second$/m);
$app->works_converted($_, [ 'subscriber.id', 'location.id', 'acc.id' ]) foreach 'range', 'snowflake';

done_testing();
