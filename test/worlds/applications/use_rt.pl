# Use RT by its classes, its pages and its mail gateway.  Prints what does not depend on
# the IDs.

use v5.36;

use lib '/usr/share/request-tracker5/lib';
use HTTP::Request::Common;
use MIME::Entity;
use Plack::Test;
use RT;

my ($name) = @ARGV;
RT::LoadConfig();
RT::Init();
RT->Config->Set(LogToSTDERR => 'critical');
my $root = RT::CurrentUser->new(RT->SystemUser);
$root->Load('root');

sub create ($class, %values)
{
	my $object = "RT::$class"->new($root);
	my ($id, @rest) = $object->Create(%values);
	# A ticket returns its transaction, too.
	die "$class: " . join(' ', map { $_ // '' } @rest) . "\n" unless $id;
	print "$class: ", $object->id == $id ? 'created' : 'another', "\n";
	return $object;
}

sub ok ($label, $ok, $message = undef, @)
{
	print "$label: ", $ok ? 'yes' : 'no ' . ($message // ''), "\n";
	return;
}

# people, queues, rights, custom fields
my @users = map { create('User', Name => "$name$_", EmailAddress => "$name$_\@example.org", Privileged => 1, Password => 'correct horse') } 'a', 'b';
my $group = RT::Group->new($root);
ok('group', $group->CreateUserDefinedGroup(Name => $name));
ok('member', $group->AddMember($users[1]->PrincipalId));
ok('is a member', $group->HasMember($users[1]->PrincipalObj));
my $queue = create('Queue', Name => $name, CorrespondAddress => "$name\@example.org");
ok('right', $group->PrincipalObj->GrantRight(Object => $queue, Right => $_)) foreach qw(ShowTicket OwnTicket ModifyTicket SeeQueue CreateTicket ReplyToTicket);
ok('has it', $users[1]->HasRight(Object => $queue, Right => 'ModifyTicket'));
ok('has it not', !$users[0]->HasRight(Object => $queue, Right => 'ModifyTicket'));
ok('watcher of the queue', $queue->AddWatcher(Type => 'AdminCc', PrincipalId => $users[0]->PrincipalId));
my $field = create('CustomField', Name => "$name color", Type => 'SelectSingle', LookupType => 'RT::Queue-RT::Ticket');
ok('value', $field->AddValue(Name => $_)) foreach 'red', 'blue';
ok('applied', $field->AddToObject($queue));
create('Scrip', Queue => $queue->id, ScripCondition => 'On Create', ScripAction => 'Notify AdminCcs', Template => 'Transaction');

# tickets, with all that belongs to them
my @tickets = map {
	create('Ticket', Queue => $queue->id, Subject => "$name $_", Requestor => "$name\@elsewhere.example.org", Owner => $users[1]->id,
		'CustomField-' . $field->id => $_ eq 'one' ? 'red' : 'blue',
		MIMEObj => MIME::Entity->build(Type => 'text/plain', Data => ["text of $_\n"]))
} 'one', 'two', 'three';
my $ticket = $tickets[0];
ok('comment', $ticket->Comment(Content => 'a comment', TimeTaken => 5));
my $mail = MIME::Entity->build(Type => 'multipart/mixed');
$mail->attach(Type => 'text/plain', Data => "with a file\n");
$mail->attach(Type => 'text/x-test', Filename => 'file.txt', Data => "text of the file\n");
ok('correspondence', $ticket->Correspond(MIMEObj => $mail));
ok('cc', $ticket->AddWatcher(Type => 'Cc', PrincipalId => $group->PrincipalId));
ok('link', $ticket->AddLink(Type => 'DependsOn', Target => $tickets[1]->id));
ok('link', $ticket->AddLink(Type => 'MemberOf', Target => $tickets[2]->id));
ok('status', $tickets[1]->SetStatus('resolved'));
ok('priority', $ticket->SetPriority(50));
ok('changed', $ticket->AddCustomFieldValue(Field => $field->id, Value => 'blue'));
ok('reminder', $ticket->Reminders->Add(Subject => 'remember', Owner => $users[1]->id));
$ticket->Load($ticket->id);
print 'transactions: ', join(' ', map { join '/', $_->Type, ($_->Field // '') =~ s/^\d+$/N/r } @{ $ticket->Transactions->ItemsArrayRef }), "\n";
print 'attachments: ', join(' ', sort map { $_->Filename // () } @{ $ticket->Attachments->ItemsArrayRef }), "\n";
print 'owner: ', $ticket->OwnerObj->Name =~ s/\Q$name\E//r, ', worked: ', $ticket->TimeWorked, ', color: ', $ticket->FirstCustomFieldValue($field), "\n";
print 'depends on: ', join(' ', map { $_->TargetObj->Subject =~ s/.* //r } @{ $ticket->DependsOn->ItemsArrayRef }), "\n";
print 'members: ', join(' ', map { $_->BaseObj->Subject =~ s/.* //r } @{ $tickets[2]->Members->ItemsArrayRef }), "\n";

sub found ($query)
{
	my $found = RT::Tickets->new($root);

	$found->FromSQL($query);
	$found->OrderBy(FIELD => 'Subject');
	print $query =~ s/\Q$name\E/NAME/gr =~ s/\d+/N/gr, ': ', join(' ', map { $_->Subject =~ s/.* //r } @{ $found->ItemsArrayRef }), "\n";
	return;
}
my @ids = map { $_->id } @tickets;
found($_) foreach "Queue = '$name'", "Queue = '$name' AND Owner = '${name}b'", "id = $ids[1]", "id = $ids[0] OR id = $ids[2]",
  "Queue = '$name' AND CF.{$name color} = 'blue'", "DependsOn = $ids[1]", "MemberOf = $ids[2]", "Watcher.Name = '${name}b'",
  "Requestor.EmailAddress = '$name\@elsewhere.example.org'", "Queue = '$name' AND Status = 'resolved'",
  "Creator = 'root' AND Queue = '$name'", "AdminCcGroup = '$name' OR CcGroup = '$name'", "Linked = $ids[0]";
ok('merged', $tickets[2]->MergeInto($tickets[1]->id));
$tickets[2]->Load($ids[2]);
ok('is the other', $tickets[2]->id == $ids[1]);

# a saved search, an article, an asset
require RT::SavedSearch;
my $search = RT::SavedSearch->new($root);
ok('search', $search->Save(Privacy => 'RT::User-' . $root->id, Name => $name, Type => 'Ticket', SearchParams => { Query => "id = $ids[0]" }));
my $again = RT::SavedSearch->new($root);
ok('found', $again->Load('RT::User-' . $root->id, $search->Id));
my $class = create('Class', Name => $name);
my $article = create('Article', Name => $name, Class => $class->id);
ok('refers', $article->AddLink(Type => 'RefersTo', Target => $ticket->URI));
my $catalog = create('Catalog', Name => $name);
my $asset = create('Asset', Name => $name, Catalog => $catalog->id, Owner => $users[0]->id);
print 'assets: ', scalar @{ $ticket->ReferredToBy->ItemsArrayRef }, ' ', $asset->Owner->Name =~ s/\Q$name\E//r, "\n";

# mail for a ticket, and pages
require RT::Interface::Email;
my ($status, $error, $answered) = RT::Interface::Email::Gateway({
	action => 'correspond', queue => $name,
	message => "From: ${name}b\@example.org\nTo: $name\@example.org\nSubject: [" . RT->Config->Get('rtname') . " #$ids[0]] Re\nMessage-ID: <$name\@elsewhere>\n\nby mail\n" });
ok('mail', $status && $answered && $answered->id == $ids[0], $error);

require RT::Interface::Web::Handler;
RT->InstallMode(0);
my $web = Plack::Test->create(RT::Interface::Web::Handler->PSGIApp);
my $cookie;

sub page ($request, @texts)
{
	$request->header(Cookie => $cookie, Referer => 'http://localhost/') if $cookie;
	my $answer = $web->request($request);
	($cookie) = $answer->header('Set-Cookie') =~ /^([^;]+)/ if $answer->header('Set-Cookie');
	print $request->method, ' ', $request->uri->path, ' ', $answer->code, join(' ', '', map { index($answer->decoded_content, $_) >= 0 ? 'yes' : 'no' } @texts), "\n";
	return;
}
page(POST 'http://localhost/NoAuth/Login.html', [ user => 'root', pass => 'password' ]);
page(GET("http://localhost/Ticket/Display.html?id=$ids[0]"), "$name one", 'by mail', 'file.txt', "${name}b");
page(GET("http://localhost/Search/Results.html?Query=" . "Queue='$name'"), "$name one");
page(GET("http://localhost/Ticket/Display.html?id=$ids[2]"));
page(GET("http://localhost/User/Summary.html?id=" . $users[1]->id), "${name}b");
page(GET("http://localhost/Admin/Queues/Modify.html?id=" . $queue->id), $name);
page(GET("http://localhost/Articles/Article/Display.html?id=" . $article->id), $name);
page(GET("http://localhost/Asset/Display.html?id=" . $asset->id), $name);

# an end
ok('no right', $group->PrincipalObj->RevokeRight(Object => $queue, Right => 'ModifyTicket'));
ok('no member', $group->DeleteMember($users[1]->PrincipalId));
ok('has it no longer', !$users[1]->HasRight(Object => $queue, Right => 'ModifyTicket'));
ok('deleted', $tickets[1]->SetStatus('deleted'));
