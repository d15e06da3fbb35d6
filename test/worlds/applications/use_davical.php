<?php
// Create two users and a group of DAViCal, by its own classes.

chdir('/usr/share/davical/htdocs');
$_SERVER += ['REQUEST_URI' => '/', 'SERVER_PORT' => 80, 'REQUEST_METHOD' => 'GET', 'REMOTE_ADDR' => '127.0.0.1'];
$_SERVER['SCRIPT_NAME'] = '/admin.php';
require_once './always.php';
require_once 'Principal.php';
require_once 'auth-functions.php';

foreach ([['a', 1], ['b', 1], ['g', 3]] as [$suffix, $type]) {
    $name = $argv[1] . $suffix;
    $principal = new Principal('username', $name);
    $principal->Create(['username' => $name, 'password' => '**secret', 'fullname' => "The $name", 'email' => "$name@example.org",
        'type_id' => $type, 'user_active' => true, 'displayname' => "The $name"]);
    CreateHomeCollections($name);
}
$query = new AwlQuery('INSERT INTO group_member (group_id, member_id) SELECT g.principal_id, m.principal_id
    FROM dav_principal g, dav_principal m WHERE g.username = :group AND m.username = :member',
    [':group' => $argv[1] . 'g', ':member' => $argv[1] . 'b']);
if (!$query->Exec('use_davical'))
    exit(1);
// As its page for grants does
$query = new AwlQuery('INSERT INTO grants (by_principal, to_principal, privileges) SELECT a.principal_id, g.principal_id, 1::INT::BIT(24)
    FROM dav_principal a, dav_principal g WHERE a.username = :by AND g.username = :to',
    [':by' => $argv[1] . 'a', ':to' => $argv[1] . 'g']);
if (!$query->Exec('use_davical'))
    exit(1);
