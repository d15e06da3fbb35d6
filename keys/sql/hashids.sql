--
-- Hashids
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS snowflake;
CREATE EXTENSION IF NOT EXISTS snowflake_keys;
RESET client_min_messages;

-- the first examples of every library
SELECT hashids_encode(0), hashids_encode(1, 'this is my salt'), hashids_encode(12345, 'this is my salt'),
       hashids_encode(1, 'this is my salt', 8), hashids_encode_array('{1,2,3}', 'this is my salt');
SELECT hashids_decode('gY'), hashids_decode('NkK9', 'this is my salt'), hashids_decode('1Wc8cwcE', salt => 'this is my salt'),
       hashids_decode('b82b2', 'this is my salt', alphabet => '0123456789abcdef');

-- texts of npm's hashids 2.3.0; Python's 1.3.1 has the same
CREATE TEMP TABLE published (salt text, min_length int, alphabet text, numbers bigint[], hashid text);
COPY published FROM stdin;
	0	\N	{0}	gY
	0	\N	{2}	k5
	0	\N	{1,2,3}	o2fXhV
	0	\N	{1,2,3,4,5,6,7,8,9,10}	wpfLh9iwsqt0uyCEFjHM
	0	\N	{9007199254740991}	lEW77X7g527
	0	\N	{100,200,300}	GZgIW9I09
	0	\N	{1212092628029698048}	mZR9ADMQNqZ1A
this is my salt	0	\N	{1}	NV
this is my salt	0	\N	{12345}	NkK9
this is my salt	0	\N	{5,5,5,5}	1Wc8cwcE
this is my salt	0	\N	{683,94108,123,5}	aBMswoO2UB3Sj
this is my salt	0	\N	{4294967296}	D54yen6
this is my salt	0	\N	{9223372036854775807}	jvNx4BjM5KYjv
this is my salt	0	\N	{1330748464283259557}	xJVOn2WkYRJJ9
this is my salt	8	\N	{0}	zjd5xAvO
this is my salt	8	\N	{2}	yLA6m0oM
this is my salt	8	\N	{1,2,3}	GlaHquq0
this is my salt	8	\N	{1,2,3,4,5,6,7,8,9,10}	kRHnurhptKcjIDTWC3sx
this is my salt	8	\N	{9007199254740991}	yy5rrkrgDjr
this is my salt	8	\N	{100,200,300}	RO1TQ7C4w
this is my salt	8	\N	{1212092628029698048}	2bOKyvBJ67bpy
this is my salt	30	\N	{1}	jyQ3p9aJEDngB0NV05ev1WwPNxZq64
this is my salt	30	\N	{12345}	yQ3p9aJEDngB0NkK9A5ev1WwPNxZq6
this is my salt	30	\N	{5,5,5,5}	Z2aLyXp5qgd1Wc8cwcE0xPEB3MzVoQ
this is my salt	30	\N	{683,94108,123,5}	vP75qzBy0aBMswoO2UB3SjAaJ9Opgm
this is my salt	30	\N	{4294967296}	KVDNELlrga8AD54yen6dOWzmko96yB
this is my salt	30	\N	{9223372036854775807}	4v8w6LWMdjvNx4BjM5KYjvdrboJalP
this is my salt	30	\N	{1330748464283259557}	5Mpeq8jDdxJVOn2WkYRJJ90v2mBkVZ
this is my pepper	0	\N	{0}	KE
this is my pepper	0	\N	{2}	lK
this is my pepper	0	\N	{1,2,3}	6WHWuZ
this is my pepper	0	\N	{1,2,3,4,5,6,7,8,9,10}	R9HQubhQtzcOI1TKC3sK
this is my pepper	0	\N	{9007199254740991}	DRLPPgPxGKP
this is my pepper	0	\N	{100,200,300}	8eZuKoI6g
this is my pepper	0	\N	{1212092628029698048}	zkxXvO06omknv
this is my salt	0	0123456789abcdef	{1}	ba
this is my salt	0	0123456789abcdef	{12345}	b82b2
this is my salt	0	0123456789abcdef	{5,5,5,5}	7acdc6c4
this is my salt	0	0123456789abcdef	{683,94108,123,5}	3927fd8b72c96dc6
this is my salt	0	0123456789abcdef	{4294967296}	25ab444b774
this is my salt	0	0123456789abcdef	{9223372036854775807}	83286778da98359b7db2
this is my salt	0	0123456789abcdef	{1330748464283259557}	435a587b378a7777b24
	0	cfhistuCFHISTU01	{0}	01
	0	cfhistuCFHISTU01	{2}	001
	0	cfhistuCFHISTU01	{1,2,3}	00h10i00
	0	cfhistuCFHISTU01	{1,2,3,4,5,6,7,8,9,10}	10h10i00s100t010u110C000F1000H0110I1010
	0	cfhistuCFHISTU01	{9007199254740991}	100000000000000000000000000000000000000000000000000000
	0	cfhistuCFHISTU01	{100,200,300}	10011011t11001000f011010011
	0	cfhistuCFHISTU01	{1212092628029698048}	00111100101101110010000010110100111111011010111000111111111111
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	{1}	3joed16w
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	{12345}	zo9r9wok
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	{5,5,5,5}	mzcrcvc8
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	{683,94108,123,5}	ym3jigym4ikycg
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	{4294967296}	6e044692
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	{9223372036854775807}	n54wxxe2k4qjmjx
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	{1330748464283259557}	z2k6kzg4ygz3rkm
this salt is longer than the alphabet has letters, so that its end takes no part in any shuffle, as the libraries do it	0	\N	{5,5,5}	JOhkhP
this is my salt	94	\N	{1}	PODa269M4r5NZxnVYwjKRWbLRo7kYz8mjyQ3p9aJEDngB0NV05ev1WwPNxZq64KV2OrMXblog1LEQmPvq3z7eBkXlyp8JW
this is my salt	250	\N	{7,0}	VMkbjmqZ5LQKpJEl237b5wvrmqVQ1a4jYLX3LygVP6nB8JYb5ZM9jaNRjpeaKXZnBMzRLg8DlW597m9aJKLeMZk6oXzjp8nBP4graVEq7DZowBYQPyNljOKex9djvTldmv8rXWR562gpJ4b13knMzLv3ERx5DO1Yw7yQNV2qWlbmQYoE2OVyNkb1x6rw43vPqJ74molD1pKx2krWvQwqEezOXyzDKxWZPgeMk8RN9o6BOnxW286rwO1y37
this is my salt	251	0123456789abcdefgh	{7,0}	9696385e4e8d2g935ge258gbd494d2e62e8g54d465e293bdg6d6e4393d29582e5gbd36289b5e64dg8g452d28gd53d964be63825d2d638ed9g8b59g3be2358e6bgd369ea24c3a84b522d4g98456d4632egb9549g4be8532g6e49bb9e6382b39d54ge368946eg4bg8b522584eg3b899d3b65b8g32e3696bd845693bb4d2g3
this is my salt	3	\N	{1}	0NV
this is my salt	4	\N	{1}	0NV0
	0	abcdabcdefgh0123456789ZZZ	{123456789}	46217g800
q	20	cfhistuCFHISTUab	{9007199254740993,1}	bbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabia
q	0	cfhistuCFHISTUabx	{77,78}	axaaxxaxSaxxaaax
q	0	abdegjklmnopqrvw	{77,78}	jvvdpj
s	0	!#$%&()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz	{1,10,100,1000}	5qSnt*ZU*3
this is my salt	0	\N	{0,1,8,27,64,125,216,343,512,729,1000,1331,1728,2197,2744,3375,4096,4913,5832,6859,8000,9261,10648,12167,13824,15625,17576,19683,21952,24389,27000,29791,32768,35937,39304,42875,46656,50653,54872,59319}	4nUvHoCwS2EFj9UOlt3eiObTB2fp2F3kHLVUlo2cKVrtrz6TVLzu6Z4U3rVC56zcjQmIWeVienDUn8JCyBDTwDohWNVcO2jhp7nUv5aCvekCkJ1sZO2uP5yhjNVI4ZPHx3Rfox6s9JpH35w
\.
SELECT count(*) AS texts,
       count(*) FILTER (WHERE hashids_encode_array(numbers, salt, min_length, alphabet) <> hashid) AS encoded_wrong,
       count(*) FILTER (WHERE hashids_decode(hashid, salt, min_length, alphabet) <> numbers) AS decoded_wrong
FROM published;
-- a single number is the same as an array of one
SELECT count(*) > 20 AS single, count(*) FILTER (WHERE hashids_encode(numbers[1], salt, min_length, alphabet) <> hashid) AS encoded_wrong
FROM published WHERE cardinality(numbers) = 1;
-- cached state does not depend on the arguments of the previous call
SELECT count(*) FILTER (WHERE hashids_encode_array(numbers, salt, min_length, alphabet) <> hashid) AS encoded_wrong
FROM (SELECT p.* FROM published p, generate_series(1, 3) ORDER BY md5(hashid || generate_series)) p;

-- their encodeHex() encodes 12 digits at a time, with a 1 before them
CREATE TEMP TABLE published_hex (salt text, min_length int, alphabet text, digits text, hashid text);
COPY published_hex FROM stdin;
	0	\N	FA	o6k
	0	\N	FF1A	9rNvZ
	0	\N	ffffffffffffffffffffffff	BxLnqL8Z7AiQDM5DA2ox
this is my salt	0	\N	26dd	MemE
this is my salt	0	\N	507f1f77bcf86cd799439011	x56QL5Dr4Efom6oN6vWO
this is my salt	8	\N	FA	q4GlzYA8
this is my salt	8	\N	FF1A	x0eBMrbA
this is my salt	8	\N	ffffffffffffffffffffffff	nYQZ7QpDbOhy7Vr7KZER
this is my salt	30	\N	26dd	1bJLkWKr6ZzyGMemEG4Noqn8gRlxmY
this is my salt	30	\N	507f1f77bcf86cd799439011	Qrwpdx56QL5Dr4Efom6oN6vWOGOno6
this is my pepper	0	\N	FA	6o1
this is my pepper	0	\N	FF1A	eRQqz
this is my pepper	0	\N	ffffffffffffffffffffffff	k3rVbr2g1PHMnmPnDvY3
this is my salt	0	0123456789abcdef	26dd	2752a8
this is my salt	0	0123456789abcdef	507f1f77bcf86cd799439011	4a26499682a6337086b56666422974d
	0	cfhistuCFHISTU01	FA	0000000101
	0	cfhistuCFHISTU01	FF1A	000000000011100101
	0	cfhistuCFHISTU01	ffffffffffffffffffffffff	00000000000000000000000000000000000000000000000000u1111111111111111111111111111111111111111111111111
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	26dd	pok8y38o
this is my salt	8	abcdefghijklmnopqrstuvwxyz1234567890	507f1f77bcf86cd799439011	e64dkrkp88j0b96p6wnkmn40
\.
SELECT count(*) AS texts,
       count(*) FILTER (WHERE hashids_encode_array(numbers, salt, min_length, alphabet) <> hashid) AS encoded_wrong,
       count(*) FILTER (WHERE hashids_decode(hashid, salt, min_length, alphabet) <> numbers) AS decoded_wrong
FROM (SELECT *, ARRAY(SELECT ('x' || lpad('1' || substr(digits, n, 12), 16, '0'))::bit(64)::bigint
                      FROM generate_series(1, length(digits), 12) n) AS numbers
      FROM published_hex) t;

-- round trip
SELECT count(*) AS wrong
FROM (SELECT n, hashids_encode(n, 'pepper', 10) AS hashid FROM generate_series(0, 20000) n) t
WHERE hashids_decode(hashid, 'pepper', 10) <> ARRAY[n::bigint] OR length(hashid) <> 10;
SELECT count(DISTINCT hashids_encode(n)) FROM generate_series(0, 20000) n;
SELECT count(*) AS wrong
FROM generate_series(0, 62) n, LATERAL (SELECT ARRAY[1::bigint << n, (1::bigint << n) - 1]) v(numbers)
WHERE hashids_decode(hashids_encode_array(numbers)) <> numbers;
SELECT hashids_decode(hashids_encode_array(ARRAY(SELECT generate_series(1, 10000)::bigint), 's'), 's') = ARRAY(SELECT generate_series(1, 10000)::bigint) AS many;
SELECT length(hashids_encode(1, 's', 1000)), hashids_decode(hashids_encode(1, 's', 1000), 's', 1000);
-- no numbers, and NULL
SELECT hashids_encode_array('{}'), hashids_decode('');
SELECT hashids_encode(NULL) IS NULL, hashids_encode_array(NULL) IS NULL, hashids_encode(1, NULL) IS NULL, hashids_encode_array('{1}', NULL) IS NULL,
       hashids_encode(1, '', NULL) IS NULL, hashids_decode(NULL) IS NULL, hashids_decode('gY', NULL) IS NULL, hashids_decode('gY', '', NULL) IS NULL;
SELECT hashids_encode(0, '', 0, NULL);
-- a parameter whose type the client does not state
SELECT hashids_encode('1', 'this is my salt'), hashids_encode_array('{1}', 'this is my salt');
-- in a generated column and an index
CREATE TEMP TABLE links (
    id bigint PRIMARY KEY,
    public_id text GENERATED ALWAYS AS (hashids_encode(id, 'this is my salt', 8)) STORED UNIQUE);
INSERT INTO links VALUES (1);
SELECT * FROM links WHERE public_id = 'gB0NV05e' AND id = (hashids_decode('gB0NV05e', 'this is my salt', 8))[1];

-- invalid values
\set VERBOSITY sqlstate
SELECT hashids_decode('N!', 'this is my salt');
SELECT hashids_decode('NV1', 'this is my salt');
SELECT hashids_decode(repeat('l', 30));
SELECT hashids_encode(-1);
SELECT hashids_encode_array('{{1,2},{3,4}}');
SELECT hashids_encode_array('{1,NULL}');
SELECT hashids_encode_array(ARRAY(SELECT generate_series(1, 10001)::bigint));
SELECT hashids_encode(1, '', -1);
SELECT hashids_encode(1, '', 0, 'abc');
\set VERBOSITY default
SELECT hashids_decode('N!', 'this is my salt');
SELECT hashids_decode('NV NV', 'this is my salt');
-- another salt, length or alphabet, or a mistyped text
SELECT hashids_decode('NkK9', 'this is my pepper');
SELECT hashids_decode('NkK9', 'this is my salt', 8);
SELECT hashids_decode('nkK9', 'this is my salt');
SELECT hashids_decode('N', 'this is my salt');
SELECT hashids_decode('c', '');
SELECT hashids_decode('NkK9c', 'this is my salt');
SELECT hashids_decode('ccccc', 'this is my salt');
SELECT hashids_decode(repeat('NkK9', 100), 'this is my salt');
SELECT hashids_decode(repeat('c', 10000), 'this is my salt');
SELECT hashids_decode(repeat('l', 30));
-- only guards, and too many of them
SELECT left(hashids_encode(1, 's', 4), 1) AS guard \gset
SELECT length(hashids_encode(1, 's')), :'guard' || hashids_encode(1, 's') = hashids_encode(1, 's', 3) AS is_guard;
SELECT hashids_decode(:'guard', 's');
SELECT hashids_decode(repeat(:'guard', 3) || hashids_encode(1, 's'), 's');

SELECT hashids_encode(-1);
SELECT hashids_encode_array('{1,-9223372036854775808}');
SELECT hashids_encode_array('{{1,2},{3,4}}');
SELECT hashids_encode_array('{1,NULL}');
SELECT hashids_encode_array(ARRAY(SELECT generate_series(1, 10001)::bigint));
SELECT hashids_encode(1, '', -1);
SELECT hashids_encode(1, '', 1001);
SELECT hashids_decode('gY', '', 1001);
SELECT hashids_encode(1, '', 0, '');
SELECT hashids_encode(1, '', 0, 'aaaaaaaaaaaaaaaaaaaaaaa');
SELECT hashids_encode(1, '', 0, '0123456789abcde');
SELECT hashids_encode(1, '', 0, '0123456789abcdef 0123456789');
SELECT hashids_encode(1, '', 0, E'0123456789abcdef\t');
SELECT hashids_decode('gY', '', 0, '0123456789abcde');

-- The same in each encoding: the first was made by hashids 2.3.0 of npm, and the bytes of a salt are
-- those of UTF-8.
SELECT current_database() AS here \gset
\set VERBOSITY sqlstate
SET client_min_messages = warning;
CREATE DATABASE regression_utf8 TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C';
CREATE DATABASE regression_latin1 TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C';
CREATE DATABASE regression_ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C';
\c regression_latin1
CREATE EXTENSION snowflake_keys;
SELECT hashids_encode_array('{1,2,3}', U&'Schl\00FCssel zum S\00FCden'), hashids_decode('0zsrSB', U&'Schl\00FCssel zum S\00FCden');
\c regression_ascii
CREATE EXTENSION snowflake_keys;
SELECT hashids_encode_array('{1,2,3}', E'Schl\xc3\xbcssel zum S\xc3\xbcden'), hashids_decode('0zsrSB', E'Schl\xc3\xbcssel zum S\xc3\xbcden');
-- a salt that is not UTF-8
SELECT hashids_encode(1, E'\xff');
\c regression_utf8
CREATE EXTENSION snowflake_keys;
SELECT hashids_encode_array('{1,2,3}', U&'Schl\00FCssel zum S\00FCden'), hashids_decode('0zsrSB', U&'Schl\00FCssel zum S\00FCden');
-- salts of other scripts
SELECT hashids_encode(42, U&'\0441\043E\043B\044C'), hashids_encode_array('{0,9223372036854775807}', U&'\5869\+01F600', 8);
-- a Hashid that is not ASCII: its place is counted in characters
\set VERBOSITY default
SET client_encoding = 'UTF8';
SELECT hashids_decode(U&'NV\00FC');
\c :here
DROP DATABASE regression_utf8;
DROP DATABASE regression_latin1;
DROP DATABASE regression_ascii;
