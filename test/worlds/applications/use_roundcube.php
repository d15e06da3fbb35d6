<?php
// Use Roundcube's classes as its pages do.  Prints what does not depend on the IDs.

define('INSTALL_PATH', '/usr/share/roundcube/');
require INSTALL_PATH . 'program/include/clisetup.php';

$name = $argv[1];
$user = rcube_user::create($name, 'localhost') or exit(1);
$again = rcube_user::query($name, 'localhost');
echo 'user: ', $again && $again->ID == $user->ID ? 'found' : 'lost', "\n";
echo 'identities: ', count($again->list_identities()), "\n";
$id = $again->insert_identity(['name' => 'second', 'email' => "$name@example.org"]);
echo 'identity: ', $again->get_identity($id)['name'] ?? 'lost', "\n";
echo 'updated: ', $again->update_identity($id, ['name' => 'third']) ? 'yes' : 'no', "\n";
echo 'identities: ', str_replace($name, 'NAME', implode(' ', array_column($again->list_identities(), 'name'))), "\n";
echo 'preferences: ', $again->save_prefs(['x' => 1]) ? 'saved' : 'lost', "\n";

$contacts = new rcube_contacts($rcmail->get_dbh(), $again->ID);
$ids = [];
foreach (['a', 'b', 'c'] as $contact)
    $ids[] = $contacts->insert(['name' => $contact, 'email' => ["$contact@example.org"]]);
echo 'contact: ', $contacts->get_record($ids[1], true)['name'] ?? 'lost', "\n";
$group = $contacts->create_group('friends');
echo 'group: ', $contacts->get_group($group['id'])['name'] ?? 'lost', "\n";
echo 'members: ', $contacts->add_to_group($group['id'], [$ids[0], $ids[2]]), "\n";
$contacts->set_group($group['id']);
echo 'in group: ', implode(' ', array_column($contacts->list_records()->records, 'name')), "\n";
$contacts->reset();
$contacts->set_group(0);
echo 'deleted: ', $contacts->delete([$ids[0]]), "\n";
echo 'all: ', implode(' ', array_column($contacts->list_records()->records, 'name')), "\n";

$search = $again->insert_search(['type' => rcube_user::SEARCH_MAIL, 'name' => 'unread', 'data' => ['q' => 1]]);
echo 'search: ', $again->get_search($search)['name'] ?? 'lost', "\n";

// what an upgrade has brought
if ($argv[2] ?? false) {
    $response = $again->insert_response(['name' => 'thanks', 'data' => 'Thank you', 'is_html' => 0]);
    echo 'response: ', $again->get_response($response) ? 'found' : 'lost', "\n";
    $recipients = new rcube_addresses($rcmail->get_dbh(), $again->ID, rcube_addressbook::TYPE_RECIPIENT);
    $id = $recipients->insert(['name' => 'a', 'email' => 'a@example.org']);
    echo 'recipient: ', $recipients->get_record($id, true)['name'] ?? 'lost', "\n";
}
