# Use Directus by its interface: collections with fields and relations, items, users, files,
# what was done.  Prints what does not depend on the IDs.

use v5.36;

use HTTP::Tiny;
use JSON::PP;

my ($port, $name) = @ARGV;
my $token;

# A call.  Prints its status and the error.
sub call ($label, $method, $path, $content = undef, %headers)
{
	my $answer = HTTP::Tiny->new(timeout => 120)->request($method, "http://127.0.0.1:$port$path", {
		headers => { ($token ? (Authorization => "Bearer $token") : ()), 'Content-Type' => 'application/json', %headers },
		content => ref $content ? encode_json($content) : $content // '' });
	my $read = eval { decode_json($answer->{content}) };

	print "$label: $answer->{status}", $answer->{status} >= 400 ? ' ' . $answer->{content} =~ s/$name/NAME/gr : '', "\n" if $label;
	return $read && ref $read eq 'HASH' ? $read->{data} : undef;
}

sub show ($label, $path, $shown)
{
	my $list = call('', 'GET', $path);

	print "$label: ", $list ? 200 : 'failed', ' ', join(' ', map { $shown->($_) } ref $list eq 'ARRAY' ? @$list : $list // ()), "\n";
	return $list;
}

$token = call('login', 'POST', '/auth/login', { email => 'admin@example.org', password => 'correct horse' })->{access_token};
my $key = { field => 'id', type => 'integer', meta => { hidden => JSON::PP::true }, schema => { is_primary_key => JSON::PP::true, has_auto_increment => JSON::PP::true } };
my ($articles, $authors) = map { "${name}_$_" } 'articles', 'authors';
call('collection', 'POST', '/collections', { collection => $authors, schema => {}, meta => {}, fields => [ $key, { field => 'name', type => 'string', meta => {}, schema => {} } ] });
call('collection', 'POST', '/collections', { collection => $articles, schema => {}, meta => {}, fields => [ $key,
	{ field => 'title', type => 'string', meta => {}, schema => {} }, { field => 'author', type => 'integer', meta => { interface => 'select-dropdown-m2o' }, schema => {} } ] });
call('relation', 'POST', '/relations', { collection => $articles, field => 'author', related_collection => $authors, schema => { on_delete => 'SET NULL' }, meta => {} });
call('field', 'POST', "/fields/$articles", { field => 'text', type => 'text', meta => { note => 'a field' }, schema => {} });

my $author = call('author', 'POST', "/items/$authors", { name => 'an author' });
my @items = map { call("article $_", 'POST', "/items/$articles", { title => $_, author => $author->{id}, text => "text of $_" }) } 'one', 'two', 'three';
call('nested', 'POST', "/items/$articles", { title => 'four', author => { name => 'another' } });
call('changed', 'PATCH', "/items/$articles/$items[0]{id}", { text => 'changed' });
call('deleted', 'DELETE', "/items/$articles/$items[2]{id}");
show('articles', "/items/$articles?fields=title&filter[author][name][_eq]=an%20author&sort=title", sub { $_[0]{title} });
show('author of one', "/items/$articles/$items[0]{id}?fields=title,author.name", sub { "$_[0]{title} $_[0]{author}{name}" });
show('by key', "/items/$articles?filter[id][_in]=$items[0]{id},$items[1]{id}&fields=title&sort=-title", sub { $_[0]{title} });
show('search', "/items/$articles?search=changed&fields=title", sub { $_[0]{title} });
show('number', "/items/$articles?aggregate[count]=*", sub { $_[0]{count} });
my $revisions = show('revisions', "/revisions?filter[collection][_eq]=$articles&filter[item][_eq]=$items[0]{id}&sort=id&fields=id,data,activity.action", sub { $_[0]{activity}{action} });
call('reverted', 'POST', "/utils/revert/$revisions->[0]{id}");
show('text', "/items/$articles/$items[0]{id}", sub { $_[0]{text} });
show('activity', "/activity?filter[collection][_eq]=$articles&sort=id&fields=action", sub { $_[0]{action} });

my $role = call('role', 'POST', '/roles', { name => "$name editors", app_access => JSON::PP::true });
call('permission', 'POST', '/permissions', { role => $role->{id}, collection => $articles, action => 'read', fields => ['*'], permissions => {} });
call('user', 'POST', '/users', { email => "$name\@example.org", password => 'correct horse', role => $role->{id} });
my $preset = call('preset', 'POST', '/presets', { collection => $articles, bookmark => "$name bookmark", layout => 'tabular' });
show('preset', "/presets/$preset->{id}", sub { $_[0]{bookmark} =~ s/$name/NAME/r });
my $flow = call('flow', 'POST', '/flows', { name => $name, trigger => 'manual', status => 'inactive' });
call('dashboard', 'POST', '/dashboards', { name => $name });
my $file = call('file', 'POST', '/files', "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\ntext\r\n--b--\r\n", 'Content-Type' => 'multipart/form-data; boundary=b');
show('file', "/files/$file->{id}", sub { "$_[0]{filename_download} $_[0]{filesize}" });
call('settings', 'PATCH', '/settings', { project_name => $name });

my $admin = $token;
$token = call('login of the user', 'POST', '/auth/login', { email => "$name\@example.org", password => 'correct horse' })->{access_token};
show('articles for the user', "/items/$articles?fields=title&sort=title", sub { $_[0]{title} });
call('', 'DELETE', "/items/$articles/$items[0]{id}");
show('still there', "/items/$articles/$items[0]{id}", sub { $_[0]{title} });
$token = $admin;
call('relation deleted', 'DELETE', "/relations/$articles/author");
call('collection deleted', 'DELETE', "/collections/$authors");
show('without author', "/items/$articles?fields=title,author&sort=title", sub { "$_[0]{title}" });
