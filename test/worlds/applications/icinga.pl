# Icinga 2, which writes what it monitors into the database (IDO): its objects, states,
# comments and downtimes are found through its references.  It holds IDs as doubles, so
# snowflake IDs need a scheme whose IDs these can hold.

use Application;
use SnowflakeTest;

my $schema = '/usr/share/icinga2-ido-pgsql/schema';

# Columns that have IDs of other tables, as Icinga Web joins them
my @references = (
	(map { "icinga_$_ icinga_objects.object_id" } 'hosts.host_object_id', 'services.service_object_id', 'services.host_object_id',
		'services.check_command_object_id', 'hoststatus.host_object_id', 'servicestatus.service_object_id', 'comments.object_id', 'commenthistory.object_id',
		'scheduleddowntime.object_id', 'downtimehistory.object_id', 'statehistory.object_id', 'notifications.object_id', 'acknowledgements.object_id',
		'hostgroups.hostgroup_object_id', 'hostgroup_members.host_object_id', 'servicegroup_members.service_object_id', 'contacts.contact_object_id',
		'contactgroup_members.contact_object_id', 'customvariables.object_id', 'customvariablestatus.object_id', 'commands.object_id', 'timeperiods.timeperiod_object_id'),
	'icinga_hostgroup_members.hostgroup_id icinga_hostgroups.hostgroup_id', 'icinga_servicegroup_members.servicegroup_id icinga_servicegroups.servicegroup_id',
	'icinga_contactgroup_members.contactgroup_id icinga_contactgroups.contactgroup_id', 'icinga_host_contacts.host_id icinga_hosts.host_id',
	'icinga_service_contacts.service_id icinga_services.service_id', 'icinga_host_parenthosts.host_id icinga_hosts.host_id',
	'icinga_timeperiod_timeranges.timeperiod_id icinga_timeperiods.timeperiod_id');

# What a version of the configuration has
sub configuration ($app, $name)
{
	return qq{
include <itl>
const NodeName = "$name"
const ZoneName = "$name"
library "db_ido_pgsql"
object Zone ZoneName { endpoints = [ NodeName ] }
object Endpoint NodeName { }
object CheckerComponent "checker" { }
object NotificationComponent "notification" { }
object FileLogger "main" { severity = "warning"; path = "$app->{dir}/icinga.log" }
object ExternalCommandListener "command" { command_path = "$app->{dir}/command" }
object IdoPgsqlConnection "ido" {
  host = "$app->{env}{PGHOST}"
  port = $app->{env}{PGPORT}
  user = "regress_app"
  database = "app"
  categories = [ "DbCatConfig", "DbCatState", "DbCatAcknowledgement", "DbCatComment", "DbCatDowntime", "DbCatEventHandler", "DbCatExternalCommand",
    "DbCatFlapping", "DbCatLog", "DbCatNotification", "DbCatProgramStatus", "DbCatRetention", "DbCatStateHistory", "DbCatCheck" ]
}
object TimePeriod "$name always" { ranges = { monday = "00:00-24:00", sunday = "00:00-24:00" } }
object UserGroup "$name admins" { }
object User "$name admin" { groups = [ "$name admins" ], email = "$name\@example.org" }
object NotificationCommand "$name mail" { command = [ "/bin/true" ] }
object HostGroup "$name hosts" { }
object ServiceGroup "$name services" { }
for (i in range(10)) {
  object Host "$name" + i use (i) {
    check_command = "dummy"
    check_interval = 5s
    groups = [ "$name hosts" ]
    vars.number = i
    vars.name = "$name"
  }
}
apply Service "$name" for (j in range(3)) { check_command = "dummy", check_interval = 5s, max_check_attempts = 1, enable_active_checks = j != 0, groups = [ "$name services" ], vars.part = j, assign where match("$name*", host.name) }
apply Dependency "$name parent" to Host { parent_host_name = "${name}0", assign where host.name != "${name}0" }
apply Notification "$name" to Host { command = "$name mail", users = [ "$name admin" ], assign where true }
apply Notification "$name" to Service { command = "$name mail", users = [ "$name admin" ], assign where true }
};
}

my %asked = (
	hosts => q{SELECT count(*) FROM icinga_hosts h JOIN icinga_objects o ON o.object_id = h.host_object_id WHERE o.is_active = 1 AND name1 LIKE 'NAME%'},
	services => q{SELECT count(*), count(DISTINCT h.host_object_id) FROM icinga_services s JOIN icinga_hosts h USING (host_object_id) JOIN icinga_objects o ON o.object_id = s.service_object_id WHERE o.is_active = 1 AND o.name1 = h.display_name},
	states => q{SELECT current_state, count(*) FROM icinga_servicestatus s JOIN icinga_objects o ON o.object_id = s.service_object_id WHERE is_active = 1 AND name1 LIKE 'NAME%' GROUP BY 1 ORDER BY 1},
	group => q{SELECT g.alias, count(*) FROM icinga_hostgroups g JOIN icinga_hostgroup_members m USING (hostgroup_id) JOIN icinga_objects o ON o.object_id = m.host_object_id WHERE name1 LIKE 'NAME%' GROUP BY 1},
	parents => q{SELECT count(*) FROM icinga_host_parenthosts p JOIN icinga_hosts h USING (host_id) JOIN icinga_objects o ON o.object_id = p.parent_host_object_id WHERE name1 = 'NAME0'},
	contacts => q{SELECT c.email_address, count(*) FROM icinga_contacts c JOIN icinga_service_contacts s USING (contact_object_id) JOIN icinga_services USING (service_id) WHERE email_address LIKE 'NAME%' GROUP BY 1},
	variables => q{SELECT varname, count(*) FROM icinga_customvariables JOIN icinga_objects o USING (object_id) WHERE is_active = 1 AND name1 LIKE 'NAME%' GROUP BY 1 ORDER BY 1},
	comments => q{SELECT c.comment_data FROM icinga_comments c JOIN icinga_objects o USING (object_id) WHERE name1 LIKE 'NAME%' ORDER BY 1},
	downtimes => q{SELECT name1, d.comment_data FROM icinga_scheduleddowntime d JOIN icinga_objects o USING (object_id) WHERE name1 LIKE 'NAME%' ORDER BY 1},
	acknowledged => q{SELECT count(*) FROM icinga_servicestatus s JOIN icinga_objects o ON o.object_id = s.service_object_id WHERE problem_has_been_acknowledged = 1 AND name1 LIKE 'NAME%'},
	history => q{SELECT count(*) > 0 FROM icinga_statehistory h JOIN icinga_objects o USING (object_id) WHERE name1 = 'NAME1' AND name2 IS NOT NULL AND state = 2},
);

# Monitor for a while.  Returns what it is asked then, and how many references lead nowhere.
sub use_icinga ($app, $label, $name)
{
	my $dir = "$app->{dir}/$name";
	my $user = getpwuid($<);

	mkdir $_ foreach $dir, map { "$dir/$_" } 'data', 'cache', 'run', 'log', 'spool', 'data/api', 'spool/tmp', 'spool/perfdata';
	append_to_file("$dir/icinga2.conf", configuration($app, $name));
	my $service = { pid => fork // die "fork: $!" };
	if (!$service->{pid})
	{
		open STDOUT, '>>', "$dir/out" and open STDERR, '>&', \*STDOUT and exec glob('/usr/lib/*/icinga2/sbin/icinga2'), 'daemon', '-c', "$dir/icinga2.conf",
		  map { ('-D', $_) } "Configuration.RunAsUser=$user", "Configuration.RunAsGroup=$user", "Configuration.DataDir=$dir/data", "Configuration.CacheDir=$dir/cache",
		  "Configuration.LogDir=$dir/log", "Configuration.InitRunDir=$dir/run", "Configuration.SpoolDir=$dir/spool", "Configuration.PidPath=$dir/run/pid";
		POSIX::_exit(1);
	}
	my $wait = sub ($query) {
		foreach (1 .. 1200)
		{
			return 1 if $app->sql($query =~ s/NAME/$name/gr) eq 't';
			select undef, undef, undef, 0.1;
		}
		return 0;
	};
	# Two services have one status between them if their IDs are the same as doubles.
	my $ok = $wait->("SELECT count(*) = 20 AND count(DISTINCT object_id::float8) <= (SELECT count(*) FROM icinga_servicestatus
			WHERE output <> '' AND instance_id > 0 AND check_source = 'NAME')
		FROM icinga_objects WHERE objecttype_id = 2 AND name1 LIKE 'NAME%' AND name2 IN ('NAME1', 'NAME2')");
	ok($ok, "$label: services are checked") or diag(slurp_file("$dir/out"));
	append_to_file("$app->{dir}/command", join '', map { sprintf "[%d] %s\n", time, s/NAME/$name/gr } (
		'PROCESS_SERVICE_CHECK_RESULT;NAME1;NAME0;2;it is broken', 'ADD_HOST_COMMENT;NAME2;1;me;a comment', 'ADD_SVC_COMMENT;NAME2;NAME1;1;me;another comment',
		'SCHEDULE_HOST_DOWNTIME;NAME3;' . time . ';' . (time + 3600) . ';1;0;3600;me;for a while')) if $ok;
	$wait->("SELECT EXISTS (SELECT FROM icinga_statehistory WHERE output = 'it is broken' AND check_source = 'NAME')
		AND EXISTS (SELECT FROM icinga_scheduleddowntime d WHERE comment_data = 'for a while' AND name LIKE 'NAME%')") if $ok;
	my @lines = map { my $query = $asked{$_}; "$_: " . join ' ', split /\n/, $app->sql($query =~ s/NAME/$name/gr) } sort keys %asked;
	kill TERM => $service->{pid};
	waitpid $service->{pid}, 0;
	my $lost = $app->sql(join(' UNION ALL ', map { /(\w+)\.(\w+) (\w+)\.(\w+)/ && "SELECT '$1.$2' AS of, count(*) AS n, count(*) FILTER (WHERE $2 <> 0 AND NOT EXISTS (SELECT FROM $3 r WHERE r.$4 = t.$2)) AS lost FROM $1 t" } @references)
		=~ s/^(.*)$/SELECT sum(n) > 100, sum(lost) FROM ($1) x/sr);
	return (join("\n", @lines, '') =~ s/\Q$name\E/NAME/gr, $lost);
}

sub new_icinga ($app)
{
	$app->run_ok('its tables are created', 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$schema/pgsql.sql");
	my ($answers, $lost) = use_icinga($app, 'before', 'before');
	like($answers, qr/^services: 30\|10$/m, 'its answers are those of hosts and services');
	is($lost, 't|0', 'its references lead somewhere');
	note($answers);
	return $answers;
}

sub upgrade ($app, $label)
{
	$app->sql('DROP INDEX ' . join ', ', map { "idx_${_}_remove" } 'downtimehistory', 'scheduleddowntime', 'commenthistory', 'comments');
	$app->run_ok("$label: an upgrade", 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$schema/upgrade/2.8.0.sql", '-f', "$schema/upgrade/2.8.1.sql");
	return;
}

# Convert it, and use it before and after an upgrade.
sub works ($app, $kind, $before)
{
	$app->convert_to($kind);
	$app->new_tables($kind);
	foreach my $step ('after', 'upgraded')
	{
		upgrade($app, $kind) if $step eq 'upgraded';
		my ($answers, $lost) = use_icinga($app, "$kind, $step", $step);
		is($answers, $before, "$kind: its answers are the same, $step");
		is($lost, 't|0', "$kind: its references lead somewhere, $step");
	}
	$app->kinds_are($kind);
	$app->keys_are($kind, 'icinga_objects.object_id', 'icinga_hosts.host_id', 'icinga_statehistory.statehistory_id');
	return;
}

my $app = Application->new;
my $before = new_icinga($app);
$app->save;
works($app, 'range', $before);
$app->restore;
$app->convert_to('snowflake');
my ($answers, $lost) = use_icinga($app, 'snowflake, default scheme', 'doubles');
note($answers);
cmp_ok($lost =~ s/.*\|//r, '>', 100, 'snowflake: doubles lose references with the default scheme');
$app->stop;

$app = Application->new(name => 'javascript', scheme => 'javascript');
$before = new_icinga($app);
works($app, 'snowflake', $before);
done_testing();
