# docs/public-ids.md: its recipes for prefixes, TypeIDs and hidden IDs work word for
# word.  TypeIDs are those of npm's typeid-js, hidden IDs those of OpenSSL's ciphers.

use Page;
use SnowflakeTest;

my $prefixes = Page->claim('docs/public-ids.md', 'A prefix');
my $typeids = Page->claim('docs/public-ids.md', 'TypeIDs');
my $hiding = Page->claim('docs/public-ids.md', 'Hiding an ID');
my $node = new_server('main', 'jit = off');

# Run a query as the superuser, and return its result.
sub query { return sql($node, @_); }

# Prefixes
Page::run($node, $_) foreach $prefixes->rest('sql');
query('INSERT INTO invoice SELECT snowflake_nextval(1000); INSERT INTO payment SELECT FROM generate_series(1, 1000)');
is( query('SELECT string_agg(id::text, \',\' ORDER BY id) = string_agg(id::text, \',\' ORDER BY code), count(DISTINCT code) FROM invoice'),
	't|1001', 'texts with a prefix are unique, and sort as the IDs do');
is( query(q{SELECT count(*) = count(DISTINCT id) AND count(*) = 1001
		AND bool_and(substr(id, 5) = snowflake_encode(snowflake_decode(substr(id, 5)))) FROM payment}),
	't',
	'the domain generates unique keys, which can be decoded');
foreach my $wrong ('inv_11MHQTB098W00', 'pay_11mhqtb098w00', 'pay_11MHQTB098W0', 'pay_81MHQTB098W00', 'pay_11MHQTB098W0U', '11MHQTB098W00')
{
	sql_fails($node, "INSERT INTO payment VALUES ('$wrong')",
		qr/23514: value for domain payment_id violates check constraint/,
		"the domain refuses $wrong");
}
is(query(q{SELECT pg_column_size(id) FROM payment LIMIT 1}), 18, 'a key that is a text has the size that the page says');

# TypeIDs
Page::run($node, $_) foreach $typeids->rest('sql');
my @vectors = split /\n/, Page::slurp('test/vectors/typeid.csv');
is(shift @vectors, 'prefix,uuid,typeid', 'columns of the vectors');
cmp_ok(scalar @vectors, '>=', 10, @vectors . ' TypeIDs of typeid-js');
foreach my $vector (@vectors)
{
	my ($prefix, $uuid, $typeid) = split /,/, $vector;

	is(query("SELECT typeid('$prefix', '$uuid'), typeid_uuid('$typeid')"), "$typeid|$uuid", "TypeID $typeid");
}

# typeid-js refuses each of these.
my $digits = '01h455vb4pex5vsknk084sn02q';
foreach my $wrong ("USER_$digits", "user1_$digits", "us.er_$digits", " user_$digits", "_$digits",
	"_user_$digits", "user__$digits", '_', '', 'user_', "user_${digits}q", "user-$digits",
	'user_' . substr($digits, 1), "user_\U$digits", 'user_01h455vb4pex5vsknk084sn02i',
	'user_01h455vb4pex5vsknk-084sn02', 'user_81h455vb4pex5vsknk084sn02q', 'user_01h455vb4pex5vsknk084sn02 ',
	'abcdefghijklmnopqrstuvwxyz' x 2 . "abcdefghijkl_$digits", "us\x{c3}\x{a9}r_$digits")
{
	is(query("SELECT typeid_uuid('$wrong') IS NULL"), 't', "'$wrong' is no TypeID");
}
query('INSERT INTO account SELECT uuid_v7() FROM generate_series(1, 1000)');
is( query(q{SELECT count(DISTINCT typeid), bool_and(typeid_uuid(typeid) = id),
		string_agg(id::text, ',' ORDER BY id) = string_agg(id::text, ',' ORDER BY typeid) FROM account}),
	'1001|t|t',
	'TypeIDs are unique, can be decoded, and sort as the UUIDs do');

# Hidden IDs
SKIP:
{
	if (!query(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pgcrypto'}))
	{
		$hiding->rest('sql');
		skip 'pgcrypto is not installed', 1;
	}
	my $short = $hiding->take('hide_id_short');

	Page::run($node, $_) foreach $hiding->rest('sql');

	# Node.js gives these for the same key.
	query(q{UPDATE id_key SET key = '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'});
	is(query('SELECT hide_id(1212092628029698048)'), 'aa8cf4cd-0ff4-ebea-486c-6f4fbe17e2a0', 'AES-256 of an ID');

	my @ids = "VALUES (0::bigint), (1), (-1), (9223372036854775807), (-9223372036854775808), (1212092628029698048)";
	is(query("SELECT count(DISTINCT hide_id(i)), bool_and(find_id(hide_id(i)) = i) FROM (@ids) t(i)"),
		'6|t', 'hidden IDs are found again');
	is( query(q{SELECT count(*) FILTER (WHERE find_id(u::uuid) IS NULL)
			FROM (SELECT overlay(h PLACING (CASE substr(h, 1, 1) WHEN '0' THEN '1' ELSE '0' END) FROM 1) AS u
				  FROM (SELECT hide_id(i)::text AS h FROM generate_series(1, 1000) i) t
				  UNION ALL SELECT gen_random_uuid()::text FROM generate_series(1, 1000)) t}),
		2000,
		'forged values are not found');
	like(
		query('SET enable_seqscan = off; EXPLAIN SELECT * FROM invoice WHERE id = find_id(hide_id(1))'),
		qr/Index Cond: \(id = find_id/,
		'the index on the ID is used');

	# The key is its owner's.
	query(q{CREATE ROLE regress_web LOGIN; CREATE ROLE regress_other LOGIN;
		GRANT EXECUTE ON FUNCTION hide_id(bigint), find_id(uuid) TO regress_web});
	is(query('SELECT find_id(hide_id(5))', extra_params => [ '-U', 'regress_web' ]),
		5, 'a role that may use the functions hides and finds IDs');
	sql_fails($node, 'SET ROLE regress_web; SELECT key FROM id_key',
		qr/42501: permission denied for table id_key/, '... and does not see the key');
	sql_fails($node,
			q{SET ROLE regress_web; CREATE TEMP TABLE id_key (key bytea); INSERT INTO id_key VALUES ('\x00'); SELECT 1/(find_id('aa8cf4cd-0ff4-ebea-486c-6f4fbe17e2a0') <> 1212092628029698048)::int},
		qr/22012: division by zero/, '... nor puts another in its place');
	sql_fails($node, 'SET ROLE regress_other; SELECT hide_id(1)',
		qr/42501: permission denied for function hide_id/, 'other roles do not');

	# OpenSSL in FIPS mode does not have 3DES.
	skip 'OpenSSL has no 3DES', 2
	  if sql_error($node, q{SELECT encrypt('\x0000000000000000', '\x00', '3des-ecb/pad:none')}) =~ /\w/;
	Page::run($node, $short);
	is(query('SELECT hide_id_short(1212092628029698048) = snowflake_encode(snowflake_decode(\'cf47a77d6e0594ac\', \'hex\'))'),
		't', '3DES of an ID');
	is(query("SELECT count(DISTINCT hide_id_short(i)), bool_and(find_id_short(hide_id_short(i)) = i), bool_and(length(hide_id_short(i)) = 13) FROM (@ids) t(i)"),
		'6|t|t', 'short hidden IDs are found again');
}

Page::all_taken();
