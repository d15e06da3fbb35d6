# Use MediaWiki by its pages and its interface for programs.  Prints what does not depend
# on the IDs.

use v5.36;

use HTTP::Tiny;
use JSON::PP;

my ($port, $name, $step) = @ARGV;
my %cookies;

sub request ($method, $path, $form = undef)
{
	my $http = HTTP::Tiny->new(timeout => 300, max_redirect => 0);
	my %options = (headers => { Cookie => join '; ', map { "$_=$cookies{$_}" } keys %cookies });

	@options{ 'content', 'headers' } = ($http->www_form_urlencode($form), { %{ $options{headers} }, 'Content-Type' => 'application/x-www-form-urlencoded' })
	  if $form;
	my $answer = $http->request($method, "http://127.0.0.1:$port/$path", \%options);
	foreach my $cookie (map { ref ? @$_ : $_ // () } $answer->{headers}{'set-cookie'})
	{
		$cookies{$1} = $2 if $cookie =~ /^([^=]+)=([^;]*)/;
	}
	return $answer;
}

# One call of its interface.  Prints its error.
sub call ($action, %parameters)
{
	my $answer = request('POST', 'api.php', { format => 'json', formatversion => 2, action => $action, %parameters });
	my $result = eval { decode_json($answer->{content}) };

	print "$action: ", $result ? join(' ', @{ $result->{error} }{ 'code', 'info' }) : "$answer->{status} $answer->{content}", "\n"
	  if !$result || $result->{error};
	return $result // {};
}

sub token ($type)
{
	return call('query', meta => 'tokens', type => $type)->{query}{tokens}{"${type}token"};
}

# A call that changes something
sub change ($action, %parameters)
{
	my $result = call($action, %parameters, token => token($parameters{type} // 'csrf'));

	print "$action: done\n" unless $result->{error};
	return $result->{$action};
}

sub edit { return change('edit', title => $_[0], text => $_[1], summary => "edit of $_[0]"); }

sub query ($label, $list, $show, %parameters)
{
	my $query = call('query', list => $list, %parameters)->{query};

	print "$label: ", join(', ', map { $show->($_) } @{ $query->{$list} // [] }), "\n";
	return;
}

sub login ($user)
{
	%cookies = ();
	my $result = call('login', lgname => $user, lgpassword => 'correct horse', lgtoken => token('login'));
	print "login: $result->{login}{result}\n";
	return;
}

sub title { return $_[0]{title} }

if ($step eq 'write')
{
	my $created = call('createaccount', username => "$name user", password => 'correct horse', retype => 'correct horse',
		createreturnurl => "http://127.0.0.1:$port/", createtoken => token('createaccount'));
	print "account: $created->{createaccount}{status}\n";
	login("$name user");
	edit("$name page", "text of the page [[$name other]] {{$name template}} [[Category:$name]] [https://example.org/ link]");
	edit("$name page", "elephants of the page [[$name other]] {{$name template}} [[Category:$name]]");
	edit("$name other", "text of the other one");
	edit("Template:$name template", "of a template [[Category:$name too]]");
	edit("Talk:$name page", "== $name ==\na message");
	change('options', optionname => 'nickname', optionvalue => $name);
	change('watch', titles => "$name other", type => 'watch');

	login('Admin');
	edit("$name page", 'vandals were here');
	my $page = call('query', titles => "$name page", prop => 'revisions', rvlimit => 10, rvprop => 'ids|user|comment')->{query}{pages}[0];
	print 'revisions: ', scalar @{ $page->{revisions} // [] }, "\n";
	change('edit', title => "$name page", undo => $page->{revisions}[0]{revid});
	change('move', from => "$name other", to => "$name moved", reason => 'a better name', movetalk => 1);
	change('protect', title => "$name page", protections => 'edit=sysop|move=sysop', expiry => 'infinite');
	edit("$name deleted", 'will be deleted');
	change('delete', title => "$name deleted");
	edit("$name again", 'will be deleted and come back');
	change('delete', title => "$name again");
	change('undelete', title => "$name again");
	change('block', user => "$name user", expiry => '1 day', reason => 'vandals');
	change('userrights', user => "$name user", add => 'bot', type => 'userrights');
	change('tag', revid => $page->{revisions}[1]{revid}, add => "$name-tag")
	  if change('managetags', operation => 'create', tag => "$name-tag");
	exit;
}
login('Admin');
query('found', 'search', sub { $_[0]{title} =~ /^$name/ ? title($_[0]) =~ s/$name/NAME/r : () }, srsearch => 'elephants', srwhat => 'text', srlimit => 50);
query('titles', 'search', sub { title($_[0]) =~ /^$name/ ? title($_[0]) =~ s/$name/NAME/r : () }, srsearch => "$name moved", srwhat => 'title');
query('category', 'categorymembers', sub { title($_[0]) =~ s/$name/NAME/r }, cmtitle => "Category:$name");
query('by template', 'categorymembers', sub { title($_[0]) =~ s/$name/NAME/r }, cmtitle => "Category:$name too");
query('links', 'backlinks', sub { title($_[0]) =~ s/$name/NAME/r }, bltitle => "$name other");
query('embedded', 'embeddedin', sub { title($_[0]) =~ s/$name/NAME/r }, eititle => "Template:$name template");
query('contributions', 'usercontribs', sub { title($_[0]) =~ s/$name/NAME/r }, ucuser => "$name user");
query('log', 'logevents', sub { "$_[0]{action} " . (title($_[0]) // '') =~ s/$name/NAME/r }, lelimit => 12);
query('changes', 'recentchanges', sub { "$_[0]{type} " . title($_[0]) =~ s/$name/NAME/r }, rclimit => 8, rcnamespace => 0);
query('blocked', 'blocks', sub { $_[0]{user} eq "$name user" ? 'yes' : () });
query('users', 'users', sub { join ' ', @{ $_[0]{groups} } }, ususers => "$name user", usprop => 'groups|editcount');
my $page = call('query', titles => "$name page", prop => 'revisions|info|links|templates|extlinks', inprop => 'protection', rvlimit => 10, rvprop => 'ids|user|content|tags')->{query}{pages}[0];
print 'page: ', join('; ', map { join(' ', $_->{user}, length($_->{content} // ''), @{ $_->{tags} }) =~ s/$name/NAME/gr } @{ $page->{revisions} // [] }) =~ s/\d+/N/gr, "\n";
print 'protected: ', join(' ', map { $_->{type} } @{ $page->{protection} // [] }), "\n";
foreach my $path ("index.php?title=$name page", "index.php?title=$name page&action=history", "index.php?title=Special:RecentChanges",
	"index.php?title=Special:Search&search=$name&fulltext=1", "index.php?title=Special:Log", "index.php?title=Special:Contributions/$name user",
	"index.php?title=Special:Watchlist", "index.php?title=$name page&diff=prev&oldid=" . ($page->{revisions}[0]{revid} // 0))
{
	my $answer = request('GET', $path =~ s/ /_/gr);
	print 'GET ', $path =~ s/$name/NAME/gr =~ s/\d+$/N/r, ": $answer->{status} ", $answer->{content} =~ /\Q$name\E/ ? 'yes' : 'no', "\n";
}
