# CrowdSec, which keeps alerts and decisions in the database: decisions are made, asked for
# and deleted by its program, and by what blocks addresses.  Its keys are identity columns,
# and each start compares its tables with those that it wants.

use HTTP::Tiny;
use JSON::PP;
use Application;
use SnowflakeTest;

my $app = Application->new;
my $dir = $app->{dir};
my $port = PostgreSQL::Test::Cluster::get_free_port();
my @configuration = ('-c', "$dir/config.yaml");

append_to_file("$dir/credentials.yaml", "url: http://127.0.0.1:$port/\nlogin: tester\npassword: secret\n");
append_to_file("$dir/$_.yaml", '') foreach 'acquis', 'simulation', 'console';
append_to_file("$dir/profiles.yaml", slurp_file('/etc/crowdsec/profiles.yaml'));
mkdir "$dir/$_" foreach 'data', 'log', 'notifications';
append_to_file("$dir/config.yaml", "
common:
  daemonize: false
  log_media: stdout
  log_level: warning
  working_dir: $dir
config_paths:
  config_dir: $dir/
  data_dir: $dir/data/
  simulation_path: $dir/simulation.yaml
  hub_dir: /usr/share/crowdsec/hub/
  index_path: /usr/share/crowdsec/hub/.index.json
  notification_dir: $dir/notifications/
  plugin_dir: $dir/notifications/
crowdsec_service:
  acquisition_path: $dir/acquis.yaml
cscli:
  output: json
db_config:
  type: postgresql
  host: 127.0.0.1
  port: $app->{env}{PGPORT}
  user: regress_app
  password: none
  db_name: app
  sslmode: disable
  flush:
    max_items: 5000
    max_age: 7d
api:
  client:
    credentials_path: $dir/credentials.yaml
  server:
    listen_uri: 127.0.0.1:$port
    profiles_path: $dir/profiles.yaml
    console_path: $dir/console.yaml
prometheus:
  enabled: false
");

sub cscli ($label, @command)
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $app->run_ok("$label: @command", 'cscli', @configuration, @command);
}

# What is asked for by a program that blocks addresses
sub decisions ($key, $path)
{
	my $answer = HTTP::Tiny->new(default_headers => { 'X-Api-Key' => $key })->get("http://127.0.0.1:$port/v1/decisions$path");

	return "$answer->{status} $answer->{content}" unless $answer->{success};
	my $decoded = decode_json($answer->{content}) // [];
	my @all = ref $decoded eq 'HASH' ? map { @{ $_ // [] } } @$decoded{ 'new', 'deleted' } : @$decoded;
	return join(', ', sort map { "$_->{value} $_->{type} $_->{scenario}" } @all) || 'none';
}

# Returns what does not depend on the IDs.
my %nets = (before => 1, after => 2, upgraded => 3);

sub use_crowdsec ($label, $name)
{
	my $net = $nets{$name};
	my @answers;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	cscli($label, 'machines', 'add', 'tester', '--password', 'secret', '--force', '-f', '/dev/null');
	my ($key) = cscli($label, 'bouncers', 'add', "wall$net") =~ /"?([\w+\/=]{20,})"?/;
	my $service = $app->start_service($port, 'crowdsec', @configuration, '-no-cs')
	  or return 'it does not start';
	cscli($label, 'decisions', 'add', '--ip', "10.$net.0.$_", '--duration', '4h', '--reason', "test$_") foreach 1 .. 3;
	cscli($label, 'decisions', 'add', '--range', "10.$net.8.0/24", '--duration', '4h', '--type', 'captcha');
	push @answers, 'of one: ' . decisions($key, "?ip=10.$net.0.2"), 'in a range: ' . decisions($key, "?ip=10.$net.8.7");
	cscli($label, 'decisions', 'delete', '--ip', "10.$net.0.1");
	push @answers, 'deleted: ' . decisions($key, "?ip=10.$net.0.1");
	my $alerts = decode_json(cscli($label, 'alerts', 'list', '--ip', "10.$net.0.3"));
	push @answers, 'alerts: ' . join ', ', map { "$_->{scenario} of $_->{machine_id}, decisions " . @{ $_->{decisions} // [] } } @$alerts;
	my $alert = cscli($label, 'alerts', 'inspect', $alerts->[0]{id});
	push @answers, 'one of them: ' . join ' ', $alert =~ /"value": "([^"]+)"/g;
	push @answers, 'the stream: ' . join ', ', grep { /^10\.$net\./ } split /, /, decisions($key, '/stream?startup=true');
	Application::stop_service($service);
	return join "\n", map { s/10\.$net\./10.N./gr } @answers;
}

# Its first start makes the tables.
Application::stop_service($_)
  foreach $app->start_service($port, 'crowdsec', @configuration, '-no-cs');
$app->works_before(\&use_crowdsec, qr/^of one: 10\.N\.0\.2 ban test2$/m);
foreach my $kind ('range', 'snowflake')
{
	$app->convert_anew($kind);
	$app->works("$kind: it works afterwards", 'after');
	$app->works("$kind: it works after another start", 'upgraded');
	$app->keys_are('range', 'decisions.id', 'alerts.id', 'bouncers.id') if $kind eq 'range';
	$app->kinds_are($kind);
}

# It keeps what is among the last 5,000 IDs, as if these were consecutive.
my $service = $app->start_service($port, 'crowdsec', @configuration, '-no-cs');
ok($app->{node}->poll_query_until('app', q{SELECT count(*) = 0 FROM alerts WHERE scenario = 'test2'}),
	'snowflake: it deletes its alerts');
Application::stop_service($service);

done_testing();
