# Use DAViCal as calendar programs do.  Prints what does not depend on the IDs.

use v5.36;

use HTTP::Tiny;
use MIME::Base64;

my ($port, $name) = @ARGV;
my $user = "${name}a";
my $home = "/caldav.php/$user";

# A request of a user.  Prints its status, and what the answer has of a pattern.
sub request ($label, $method, $path, $content = undef, %options)
{
	my $pattern = delete $options{show};
	my $answer = HTTP::Tiny->new(timeout => 120)->request($method, "http://127.0.0.1:$port$path", {
		headers => { Authorization => 'Basic ' . encode_base64(($options{user} // $user) . ':secret', ''),
			'Content-Type' => $options{type} // 'text/xml; charset=utf-8', Depth => $options{depth} // 0, %{ $options{headers} // {} } },
		content => $content // '' });
	my @seen = $pattern ? $answer->{content} =~ /$pattern/g : ();

	print "$label: ", join(' ', $answer->{status}, map { s/\Q$name\E/NAME/gr } @seen), "\n";
	print $answer->{content} =~ s/^/# /gmr, "\n" if $answer->{status} >= 400 && !$options{fails};
	return $answer;
}

sub event ($uid, $summary, $day, $more = undef)
{
	return join "\r\n", 'BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test//EN', 'BEGIN:VEVENT', "UID:$name-$uid", "SUMMARY:$summary",
	  'DTSTAMP:20250101T000000Z', "DTSTART:202501${day}T100000Z", "DTEND:202501${day}T110000Z", $more // (),
	  'BEGIN:VALARM', 'ACTION:DISPLAY', 'TRIGGER:-PT15M', 'DESCRIPTION:soon', 'END:VALARM', 'END:VEVENT', 'END:VCALENDAR', '';
}

my $dav = 'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" xmlns:A="http://apple.com/ns/ical/"';
my $query = sub {
	my ($from, $to) = @_;
	return qq{<C:calendar-query $dav><prop><getetag/><C:calendar-data/></prop><C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT">}
	  . qq{<C:time-range start="$from" end="$to"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>};
};
my @summaries = (show => qr/^SUMMARY:(\S+)/m);

request('home', 'PROPFIND', "$home/", "<propfind $dav><prop><displayname/><C:calendar-home-set/></prop></propfind>", show => qr/displayname>([^<]+?)\s*</);
request('calendar', 'MKCALENDAR', "$home/work/", "<C:mkcalendar $dav><set><prop><displayname>Work of $name</displayname></prop></set></C:mkcalendar>");
request('collection', 'MKCOL', "$home/more/");
my %event = (one => '10', two => '20', three => '25');
request("event $_", 'PUT', "$home/work/$_.ics", event($_, $_, $event{$_}, $_ eq 'three' ? 'RRULE:FREQ=WEEKLY;COUNT=3' : undef), type => 'text/calendar')
  foreach sort keys %event;
request('event changed', 'PUT', "$home/work/two.ics", event('two', 'second', '21'), type => 'text/calendar');
request('event read', 'GET', "$home/work/two.ics", undef, @summaries);
request('found', 'REPORT', "$home/work/", $query->('20250110T000000Z', '20250111T000000Z'), @summaries);
request('repeated', 'REPORT', "$home/work/", $query->('20250201T000000Z', '20250202T000000Z'), @summaries);
request('named', 'REPORT', "$home/work/", "<C:calendar-multiget $dav><prop><C:calendar-data/></prop><href>$home/work/one.ics</href><href>$home/work/none.ics</href></C:calendar-multiget>", @summaries);
request('all', 'PROPFIND', "$home/work/", "<propfind $dav><prop><getetag/><resourcetype/></prop></propfind>", depth => 1, show => qr/href>[^<]*\/([^<\/]+\.ics)</);

my $proppatch = sub { "<propertyupdate $dav><set><prop>$_[0]</prop></set></propertyupdate>" };
request('name', 'PROPPATCH', "$home/work/", $proppatch->('<displayname>Renamed</displayname>'), show => qr/HTTP\/1.1 (\d+)/);
request('color', 'PROPPATCH', "$home/work/", $proppatch->('<A:calendar-color>#ff0000</A:calendar-color>'), show => qr/HTTP\/1.1 (\d+)/);
request('properties', 'PROPFIND', "$home/work/", "<propfind $dav><prop><displayname/><A:calendar-color/></prop></propfind>", show => qr/(?:displayname|calendar-color)[^>]*>([^<]+?)\s*</);

my $answer = request('changes', 'REPORT', "$home/work/", "<sync-collection $dav><sync-token/><sync-level>1</sync-level><prop><getetag/></prop></sync-collection>", show => qr/href>[^<]*\/([^<\/]+\.ics)</);
my ($token) = $answer->{content} =~ /sync-token>([^<]*)</;
request('deleted', 'DELETE', "$home/work/one.ics");
request('moved', 'MOVE', "$home/work/two.ics", undef, headers => { Destination => "http://127.0.0.1:$port$home/more/two.ics" });
request('changes since', 'REPORT', "$home/work/", "<sync-collection $dav><sync-token>$token</sync-token><sync-level>1</sync-level><prop><getetag/></prop></sync-collection>", show => qr/href>[^<]*\/([^<\/]+\.ics)</);

request('addresses', 'MKCOL', "$home/friends/", "<mkcol $dav xmlns:V='urn:ietf:params:xml:ns:carddav'><set><prop><resourcetype><collection/><V:addressbook/></resourcetype></prop></set></mkcol>");
request('address', 'PUT', "$home/friends/a.vcf", join("\r\n", 'BEGIN:VCARD', 'VERSION:3.0', "UID:$name-card", 'FN:A Friend', 'N:Friend;A;;;', 'EMAIL;TYPE=work:friend@example.org',
	'TEL:123', 'ADR;TYPE=home:;;Street 1;Town;;12345;Land', 'ORG:Company', 'END:VCARD', ''), type => 'text/vcard');
request('address found', 'REPORT', "$home/friends/", "<V:addressbook-query xmlns='DAV:' xmlns:V='urn:ietf:params:xml:ns:carddav'><prop><V:address-data/></prop><V:filter><V:prop-filter name='FN'><V:text-match>friend</V:text-match></V:prop-filter></V:filter></V:addressbook-query>", show => qr/^FN:(.*?)\r?$/m);

request('as a member', 'GET', "$home/more/two.ics", undef, user => "${name}b", @summaries);
request('as nobody', 'GET', "$home/more/two.ics", undef, user => 'nobody', fails => 1);
request('as a member, changed', 'PUT', "$home/more/two.ics", event('two', 'no', '21'), type => 'text/calendar', user => "${name}b", fails => 1);
request('principals', 'REPORT', '/caldav.php/', "<principal-property-search $dav><property-search><prop><displayname/></prop><match>The $name</match></property-search><prop><displayname/></prop></principal-property-search>", show => qr/displayname>([^<]+?)\s*</);
request('groups', 'PROPFIND', "/caldav.php/${name}b/", "<propfind $dav><prop><group-membership/></prop></propfind>", user => "${name}b", show => qr/caldav\.php\/(\w+g)\//);
request('lock', 'LOCK', "$home/more/two.ics", "<lockinfo $dav><lockscope><exclusive/></lockscope><locktype><write/></locktype><owner>me</owner></lockinfo>");
request('busy', 'GET', "/freebusy.php/$user/more/", undef, show => qr/^FREEBUSY\S*?:(\S+)/m);
request('calendar deleted', 'DELETE', "$home/work/");
request('it is gone', 'PROPFIND', "$home/work/", undef, fails => 1);
