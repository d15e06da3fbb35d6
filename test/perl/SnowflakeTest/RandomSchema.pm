# Random schemas with a key to convert, a description of all that they have, and
# statements that use them.

package SnowflakeTest::RandomSchema;

use v5.36;

use SnowflakeTest::Random qw(one);

# What a database needs before: the extensions, functions that the schemas use, a view
# that describes each object in a line, and a function that writes to the tables.
sub tools
{
	return <<'EOS';
CREATE EXTENSION snowflake;
CREATE EXTENSION snowflake_convert;
CREATE EXTENSION btree_gist;
CREATE SCHEMA "The shop";
CREATE SCHEMA tools;
CREATE TABLE tools.inserts (no int, statement text);

-- Definitions without the types of integers, and what they put around constants.
CREATE FUNCTION tools.plain(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT regexp_replace(regexp_replace($1, '::(bigint|integer|smallint)(\[\])?|\m(bigint|integer|smallint)\M|[()]|''(?=-?\d+'')|(?<=\d)''', '', 'g'), '\s+', ' ', 'g')
$$;
CREATE FUNCTION tools.type_name(oid, int) RETURNS text STABLE LANGUAGE sql AS $$
	SELECT regexp_replace(format_type($1, $2), '^(smallint|bigint|integer)', 'int')
$$;
CREATE FUNCTION tools.acl(aclitem[]) RETURNS text STABLE LANGUAGE sql AS $$
	SELECT string_agg(format('%s:%s:%s', grantee::regrole, privilege_type, is_grantable), ',' ORDER BY grantee::regrole::text, privilege_type) FROM aclexplode($1)
$$;
CREATE FUNCTION tools.sorted(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT string_agg(w, ' ' ORDER BY w COLLATE "C") FROM regexp_split_to_table($1, '[ ,]+') w
$$;
CREATE FUNCTION tools.rows_of(regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	EXECUTE format('SELECT string_agg(r, E''\n'' ORDER BY r COLLATE "C") FROM (SELECT to_jsonb(t)::text FROM %s t) r(r)', $1) INTO result;
	RETURN coalesce(result, '');
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END
$$;
CREATE VIEW tools.rel AS
	SELECT c.*, c.oid::regclass::text AS name FROM pg_class c WHERE relnamespace IN ('"The shop"'::regnamespace, 'public'::regnamespace)
	AND c.relname <> 'snowflake_nodes' AND NOT EXISTS (SELECT FROM pg_depend e WHERE (e.classid, e.objid, e.deptype) = ('pg_class'::regclass, c.oid, 'e'));
CREATE VIEW tools.description AS
SELECT format('relation %s | %s %s %s %s %s rls=%s,%s owner=%s acl=%s comment=%s hasrules=%s typecomment=%s', name, relkind, relpersistence, relreplident,
	reloptions, relam, relrowsecurity, relforcerowsecurity, relowner::regrole, tools.acl(relacl), obj_description(oid, 'pg_class'), relhasrules, obj_description(reltype, 'pg_type')) AS line
FROM tools.rel WHERE relkind IN ('r', 'p', 'v', 'm', 'c')
UNION ALL
SELECT format('column %s.%I |%s %s notnull=%s default=%s | identity=%s | generated=%s storage=%s compression=%s target=%s inherited=%s,%s options=%s acl=%s comment=%s', r.name, attname,
	CASE WHEN r.relkind IN ('r', 'p') THEN ' number=' || attnum END, tools.type_name(atttypid, atttypmod), attnotnull, tools.plain(pg_get_expr(adbin, adrelid)), attidentity, attgenerated, attstorage, attcompression,
	attstattarget, attislocal, attinhcount, ARRAY(SELECT o FROM unnest(attoptions) o WHERE NOT starts_with(o, 'pg_attver=')), tools.acl(attacl), col_description(r.oid, attnum))
FROM tools.rel r JOIN pg_attribute a ON attrelid = r.oid LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
WHERE r.relkind IN ('r', 'p', 'v', 'm', 'c') AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT format('constraint %s.%I | %s valid=%s local=%s,%s noinherit=%s index=%s parent=%s comment=%s triggers=%s', r.name, conname, regexp_replace(tools.plain(pg_get_constraintdef(k.oid)), CASE WHEN refers THEN ' NOT VALID' ELSE '^$' END, ''), convalidated OR refers,
	conislocal, k.coninhcount, connoinherit AND contype = 'c', nullif(conindid, 0)::regclass, (SELECT conname FROM pg_constraint p WHERE p.oid = k.conparentid), obj_description(k.oid, 'pg_constraint'),
	(SELECT string_agg(tgenabled::text, '' ORDER BY tgenabled, g.oid) FROM pg_trigger g WHERE g.tgconstraint = k.oid AND tgisinternal))
FROM tools.rel r JOIN pg_constraint k ON conrelid = r.oid
	-- The server never validates those to the partitions of a table, only the one to that.
	CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = k.conparentid AND p.conrelid = k.conrelid)) x(refers)
UNION ALL
SELECT format('index %s | %s clustered=%s identity=%s valid=%s,%s options=%s space=%s parent=%s targets=%s comment=%s extensions=%s', r.name, tools.plain(pg_get_indexdef(r.oid)), indisclustered,
	indisreplident, indisvalid, indisready, reloptions, reltablespace, (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = r.oid),
	(SELECT string_agg(attstattarget::text, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = r.oid),
	obj_description(r.oid, 'pg_class'),
	(SELECT count(*) FROM pg_depend WHERE (classid, objid, deptype) = ('pg_class'::regclass, r.oid, 'x')))
FROM tools.rel r JOIN pg_index ON indexrelid = r.oid
UNION ALL
SELECT format('statistics %s | %s target=%s owner=%s comment=%s', s.stxname, tools.sorted(tools.plain(pg_get_statisticsobjdef(s.oid))), stxstattarget, stxowner::regrole, obj_description(s.oid, 'pg_statistic_ext'))
FROM pg_statistic_ext s
UNION ALL
SELECT format('policy %s.%I | %s %s %s using=%s check=%s comment=%s', polrelid::regclass, polname, polcmd, polpermissive, polroles::regrole[],
	tools.plain(pg_get_expr(polqual, polrelid)), tools.plain(pg_get_expr(polwithcheck, polrelid)), obj_description(oid, 'pg_policy')) FROM pg_policy
UNION ALL
SELECT format('rule %s.%I | %s %s comment=%s', r.name, rulename, tools.plain(pg_get_ruledef(w.oid)), ev_enabled, obj_description(w.oid, 'pg_rewrite'))
FROM tools.rel r JOIN pg_rewrite w ON ev_class = r.oid WHERE r.relkind <> 'p'
UNION ALL
SELECT format('trigger %s.%I | %s %s parent=%s comment=%s', r.name, tgname, tools.sorted(tools.plain(pg_get_triggerdef(g.oid))), tgenabled,
	(SELECT tgrelid::regclass FROM pg_trigger p WHERE p.oid = g.tgparentid), obj_description(g.oid, 'pg_trigger'))
FROM tools.rel r JOIN pg_trigger g ON tgrelid = r.oid WHERE NOT tgisinternal
UNION ALL
SELECT format('publication %s | %s %s,%s,%s,%s', pubname, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate) FROM pg_publication
UNION ALL
SELECT format('published %s.%s | %s where=%s', pubname, prrelid::regclass,
	(SELECT string_agg(attname, ',' ORDER BY attname) FROM pg_attribute WHERE attrelid = prrelid AND attnum = ANY (prattrs)), tools.plain(pg_get_expr(prqual, prrelid)))
FROM pg_publication_rel p JOIN pg_publication b ON b.oid = prpubid
UNION ALL
SELECT format('inherits %s %s | %s', inhrelid::regclass, inhparent::regclass, inhseqno) FROM pg_inherits JOIN tools.rel r ON r.oid = inhrelid WHERE r.relkind IN ('r', 'p')
UNION ALL
SELECT format('partition %s | %s %s', name, pg_get_partkeydef(oid), tools.plain(pg_get_expr(relpartbound, oid))) FROM tools.rel WHERE relkind IN ('r', 'p')
UNION ALL
SELECT format('sequence %s | %s %s.%s | last=%s oid=%s %s owner=%s acl=%s comment=%s', r.name, d.deptype, d.refobjid::regclass, quote_ident(a.attname), pg_sequence_last_value(r.oid), r.oid,
	relpersistence, relowner::regrole, tools.acl(relacl), obj_description(r.oid, 'pg_class'))
FROM tools.rel r LEFT JOIN pg_depend d ON (d.classid, d.objid) = ('pg_class'::regclass, r.oid) AND d.deptype IN ('a', 'i') LEFT JOIN pg_attribute a ON (attrelid, attnum) = (d.refobjid, d.refobjsubid)
WHERE r.relkind = 'S'
UNION ALL
SELECT format('function %s | %s comment=%s acl=%s', p.oid::regprocedure, tools.plain(pg_get_functiondef(p.oid)), obj_description(p.oid, 'pg_proc'), tools.acl(proacl))
FROM pg_proc p WHERE pronamespace = '"The shop"'::regnamespace
UNION ALL
SELECT format('row of %s: %s', name, l) FROM tools.rel, LATERAL regexp_split_to_table(tools.rows_of(oid), E'\n') l WHERE relkind IN ('r', 'p', 'v', 'm');

-- INSERT, UPDATE and DELETE of each table, in one transaction.
CREATE FUNCTION tools.try(name text, statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	SET CONSTRAINTS ALL IMMEDIATE;
	SET CONSTRAINTS ALL DEFERRED;
	RETURN name || ': ok';
EXCEPTION WHEN OTHERS THEN
	RETURN format('%s: %s %s', name, SQLSTATE, SQLERRM);
END
$$;
CREATE FUNCTION tools.dml() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT * FROM tools.inserts ORDER BY no LOOP
		RETURN NEXT tools.try(format('INSERT %s', r.no), r.statement);
	END LOOP;
	FOR r IN SELECT name, attname FROM tools.rel JOIN pg_attribute ON attrelid = rel.oid
		WHERE relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity <> 'a' ORDER BY 1, 2 LOOP
		RETURN NEXT tools.try(format('UPDATE %s.%s', r.name, r.attname), format('UPDATE %s SET %2$I = %2$I', r.name, r.attname));
	END LOOP;
	FOR r IN SELECT name FROM tools.rel WHERE relkind IN ('r', 'p') ORDER BY 1 DESC LOOP
		RETURN NEXT tools.try(format('DELETE %s', r.name), format('DELETE FROM %s', r.name));
	END LOOP;
END
$$;

CREATE FUNCTION "The shop".passes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF TG_OP = ''DELETE'' THEN RETURN OLD; END IF; RETURN NEW; END';
CREATE DOMAIN "The shop".positive AS int CHECK (VALUE > 0);
CREATE DOMAIN "The shop".any_int AS int;
CREATE FUNCTION "The shop".twice(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 * 2';
CREATE FUNCTION "The shop".twice(bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT $1 * 2';
CREATE FUNCTION "The shop".narrow(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 % 10';
CREATE SEQUENCE "The shop".shared;
EOS
}

my %state;

# Whether something happens that has this probability.
sub maybe { return rand() < $_[0]; }

sub say_sql { push @{ $state{statements} }, @_; return; }
sub name { return $_[0] . ++$state{number}; }

# An expression, and a condition, with a column.
sub expression ($c)
{
	return one($c, $c, $c, $c, "($c + 1)", "($c % 7)", "(${c}::text)", "($c || code)", "(coalesce($c, n))", "($c + n)", "(${c}::bigint)", "(twice($c))",
		"($c / 2.5)", maybe(0.2) ? "(narrow($c))" : "($c * 2)", "(-$c)", "(ARRAY[$c, n])", "(int4range($c, NULL))", "(abs($c))", "(n - $c)", "(CASE WHEN $c > 5 THEN code END)", "(to_hex($c))", "(md5(${c}::text))");
}

sub condition ($c)
{
	return one("$c > 5", "$c IS NOT NULL", "n > $c", "$c % 2 = 0", "$c = ANY ('{1,2,3}')", "$c BETWEEN 1 AND 100", "$c IN (1, 2, 3)", "$c > 0 AND code <> ''",
		"$c > 0", maybe(0.2) ? "$c < 1000" : "$c > -1000", "$c <> n + 1000", "${c}::text <> ''", "($c, n) <> (0, 0)", "twice($c) > 0", maybe(0.2) ? "narrow($c) >= 0" : "abs($c) > 0", "$c > 2.5", "$c IS DISTINCT FROM n", "(n > 3 OR $c > 3)", "n > 0");
}

sub index_element ($c)
{
	my $element = expression($c);

	$element .= one(maybe(0.2) ? ' int4_ops' : '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') if $element eq $c && maybe(0.25);
	return maybe(0.5) ? $element : join(', ', maybe(0.5) ? ($element, one('n', 'code', 'code COLLATE "C"', 'code text_pattern_ops', 'n DESC', 'm')) : (one('n', 'code', 'lower(code)'), $element));
}

# Things that a table may have, each with a column; and which of them, by their
# numbers, a conversion might accept.
my @decorations = (
	sub ($t, $c) {
		my $i = name('i');

		say_sql(sprintf('CREATE %sINDEX %s ON %s (%s)%s%s%s%s', one('', '', '', 'UNIQUE '), $i, $t, index_element($c), one('', '', ' INCLUDE (n)', " INCLUDE ($c)", ' INCLUDE (code)'),
			one('', '', '', ' NULLS NOT DISTINCT'), one('', '', ' WITH (fillfactor = 70)', ' WITH (deduplicate_items = off)'), maybe(0.3) ? ' WHERE ' . condition(one($c, 'n')) : ''));
		say_sql("ALTER INDEX $i ALTER COLUMN 1 SET STATISTICS 77") if maybe(0.1);
		say_sql("COMMENT ON INDEX $i IS 'c $i'") if maybe(0.2);
		say_sql("ALTER TABLE $t CLUSTER ON $i") if maybe(0.15);
		say_sql("ALTER TABLE $t REPLICA IDENTITY USING INDEX $i") if maybe(0.15);
		say_sql("ALTER INDEX $i DEPENDS ON EXTENSION btree_gist") if maybe(0.07);
	},
	sub ($t, $c) {
		say_sql(sprintf('CREATE INDEX %s ON %s USING %s%s', name('i'), $t,
			one("hash ($c)", "brin ($c)", "brin ($c int4_minmax_multi_ops)", "brin ($c int4_bloom_ops) WITH (pages_per_range = 4)", "brin ($c, n)", "gist ($c)", "gist (span) INCLUDE ($c)",
				"gist (span, $c)", "spgist (code) INCLUDE ($c)", "gin (tags)", "gin ((ARRAY[$c]))", "gist ($c gist_int4_ops)", "hash ((($c + n)))", "gist (span)", "brin ((twice($c)))"),
			maybe(0.3) ? ' WHERE ' . condition($c) : ''));
	},
	sub ($t, $c) {
		my $k = name('k');

		say_sql(sprintf('ALTER TABLE %s ADD CONSTRAINT %s %s', $t, $k,
			one("UNIQUE ($c)", "UNIQUE ($c, n)", "UNIQUE ($c, n) INCLUDE (code)", "UNIQUE (code) INCLUDE ($c)", "UNIQUE ($c) DEFERRABLE", "UNIQUE ($c) DEFERRABLE INITIALLY DEFERRED", "UNIQUE NULLS NOT DISTINCT ($c)",
				"UNIQUE (code)", "UNIQUE ($c, code) WITH (fillfactor = 80)", "UNIQUE (code, $c)", "UNIQUE (n, $c)")));
		say_sql("COMMENT ON CONSTRAINT $k ON $t IS 'k'") if maybe(0.2);
	},
	sub ($t, $c) {
		my $k = name('x');

		say_sql(sprintf('ALTER TABLE %s ADD CONSTRAINT %s EXCLUDE %s%s', $t, $k,
			one("($c WITH =)", "USING gist (span WITH &&)", "USING gist ($c WITH =, span WITH &&)", "USING hash ($c WITH =)", "USING gist (int4range($c, $c, '[]') WITH &&)", "USING gist (code WITH =) INCLUDE ($c)",
				"(($c + 1) WITH =)", "USING gist ($c gist_int4_ops WITH =)"),
			one('', " WHERE (" . condition($c) . ')', ' DEFERRABLE INITIALLY DEFERRED')));
		say_sql("COMMENT ON CONSTRAINT $k ON $t IS 'x'") if maybe(0.2);
	},
	sub ($t, $c) {
		my $k = name('ch');

		say_sql(sprintf('ALTER TABLE %s ADD CONSTRAINT %s CHECK (%s)%s%s', $t, $k, condition($c), one('', '', '', ' NO INHERIT'), one('', '', '', ' NOT VALID')));
		say_sql("COMMENT ON CONSTRAINT $k ON $t IS 'ch'") if maybe(0.2);
	},
	sub ($t, $c) {
		my $s = name('s');

		say_sql(sprintf('CREATE STATISTICS %s%s ON %s FROM %s', $s, one('', '', ' (mcv)', ' (ndistinct, dependencies)'), one("$c, n", "n, $c", "($c % 3)", "($c % 3), n", "($c + n), code", "$c, n, code", "(twice($c)), (n + 1)", "n, code"), $t));
		say_sql("ALTER STATISTICS $s SET STATISTICS 55") if maybe(0.3);
		say_sql("COMMENT ON STATISTICS $s IS 's'") if maybe(0.2);
		say_sql("ANALYZE $t") if maybe(0.3);
	},
	sub ($t, $c) {
		my $p = name('p');
		my $for = one('ALL', 'SELECT', 'UPDATE');

		say_sql("ALTER TABLE $t ENABLE ROW LEVEL SECURITY") if maybe(0.5);
		say_sql(sprintf('CREATE POLICY %s ON %s AS %s FOR %s TO %s USING (%s)%s', $p, $t, one('PERMISSIVE', 'RESTRICTIVE'), $for, one('PUBLIC', 'regress_reader'), condition($c),
			$for ne 'SELECT' && maybe(0.5) ? ' WITH CHECK (' . condition($c) . ')' : ''));
		say_sql("COMMENT ON POLICY $p ON $t IS 'p'") if maybe(0.2);
	},
	sub ($t, $c) {
		my $g = name('g');

		say_sql(sprintf('CREATE TRIGGER %s %s EXECUTE FUNCTION passes()', $g,
			one("BEFORE INSERT ON $t FOR EACH ROW", "BEFORE UPDATE OF $c ON $t FOR EACH ROW", "BEFORE UPDATE OF n, $c, code ON $t FOR EACH ROW WHEN (OLD.$c IS DISTINCT FROM NEW.$c)",
				"AFTER INSERT OR UPDATE ON $t FOR EACH ROW WHEN (NEW.$c > 0)", "AFTER UPDATE ON $t REFERENCING OLD TABLE AS o NEW TABLE AS w FOR EACH STATEMENT", "AFTER DELETE ON $t FOR EACH STATEMENT",
				"AFTER UPDATE ON $t FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)", "BEFORE DELETE ON $t FOR EACH ROW WHEN (OLD.$c > 1000)")));
		say_sql("CREATE CONSTRAINT TRIGGER cg$g AFTER INSERT OR UPDATE OF $c ON $t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.$c > 2) EXECUTE FUNCTION passes()") if maybe(0.2);
		say_sql("ALTER TABLE $t " . one('DISABLE', 'ENABLE ALWAYS', 'ENABLE REPLICA') . " TRIGGER $g") if maybe(0.3);
		say_sql("COMMENT ON TRIGGER $g ON $t IS 'g'") if maybe(0.2);
	},
	sub ($t, $c) {
		my $v = name('v');
		my $from = one($t, $t, $t, "$t AS x", @{ $state{views} });

		say_sql(sprintf('CREATE VIEW %s%s AS SELECT %s FROM %s%s', $v, one('', '', ' WITH (security_barrier)', ' WITH (security_invoker = true)', ' WITH (check_option = local)'),
			one('*', "$c, n", "n, code", "$c + 1 AS next, n, code", "count(*), max($c) AS $c", "$c AS key, code", "twice($c), n", "DISTINCT $c, n", "${c}::int AS i, n"), $from, maybe(0.3) ? ' WHERE ' . condition($c) : ''));
		say_sql("COMMENT ON VIEW $v IS 'v'") if maybe(0.3);
		say_sql("GRANT SELECT ON $v TO regress_reader") if maybe(0.3);
		say_sql("COMMENT ON COLUMN $v.n IS 'n'") if maybe(0.2);
		say_sql("ALTER VIEW $v ALTER n SET DEFAULT 5") if maybe(0.2);
		say_sql("CREATE TRIGGER ${v}g INSTEAD OF INSERT ON $v FOR EACH ROW EXECUTE FUNCTION passes()") if maybe(0.15);
		say_sql("CREATE VIEW ${v}v AS SELECT * FROM $v") if maybe(0.3);
		push @{ $state{views} }, $v;
	},
	sub ($t, $c) {
		say_sql(one(sprintf('CREATE MATERIALIZED VIEW %s AS SELECT %s FROM %s', name('mv'), one("$c, n", 'n, code', "max($c)"), $t),
			"CREATE RULE r1 AS ON INSERT TO $t WHERE NEW.$c = -5 DO INSTEAD NOTHING", "CREATE RULE r2 AS ON UPDATE TO $t DO ALSO SELECT 1", "CREATE RULE r3 AS ON DELETE TO $t DO ALSO INSERT INTO log VALUES (OLD.n)",
			"CREATE RULE r4 AS ON INSERT TO log WHERE EXISTS (SELECT FROM $t WHERE $c = -1) DO INSTEAD NOTHING",
			"CREATE FUNCTION f1() RETURNS bigint BEGIN ATOMIC SELECT max($c) FROM $t; END", "CREATE FUNCTION f2() RETURNS SETOF $t LANGUAGE sql AS 'SELECT * FROM $t'",
			"CREATE FUNCTION f3($t) RETURNS int LANGUAGE sql AS 'SELECT \$1.n'", "CREATE TABLE of_rows (r $t)", "CREATE FUNCTION f4() RETURNS int LANGUAGE plpgsql AS 'DECLARE r $t; BEGIN SELECT * INTO r FROM $t LIMIT 1; RETURN r.n; END'",
			"CREATE TYPE composite AS (r $t, n int)", "CREATE DOMAIN over AS $t"));
	},
	sub ($t, $c) {
		my $b = name('pub');

		say_sql("CREATE PUBLICATION $b FOR " . one("TABLE $t ($c, n)", "TABLE $t (n, $c, code)", "TABLE $t ($c) WHERE ($c > 5)", "TABLE $t (n, $c) WHERE (n > 5)", "TABLE $t", 'ALL TABLES', 'TABLES IN SCHEMA "The shop"')
			. one('', " WITH (publish = 'insert')", " WITH (publish_via_partition_root = true, publish = 'insert,delete')"));
	},
	sub ($t, $c) {
		say_sql("ALTER TABLE $t ADD " . name('gen') . ' ' . one("int GENERATED ALWAYS AS ($c + 1) STORED", "bigint GENERATED ALWAYS AS ($c * 2) STORED", "int GENERATED ALWAYS AS (n * 2) STORED", "text GENERATED ALWAYS AS (${c}::text || code) STORED",
			"varchar(12) GENERATED ALWAYS AS (${c}::text) STORED", "text GENERATED ALWAYS AS (upper(code)) STORED", "boolean GENERATED ALWAYS AS ($c > 5) STORED"));
	},
	sub ($t, $c) {
		say_sql(one("ALTER TABLE $t ALTER $c SET STATISTICS 250", "ALTER TABLE $t ALTER big SET STORAGE EXTERNAL", "ALTER TABLE $t ALTER big SET COMPRESSION pglz", "COMMENT ON COLUMN $t.$c IS 'key'", "COMMENT ON TABLE $t IS 'table'",
			"GRANT SELECT ($c, n), UPDATE ($c) ON $t TO regress_reader", "GRANT INSERT ON $t TO regress_reader WITH GRANT OPTION", "ALTER TABLE $t ALTER $c SET (n_distinct = 100)", "ALTER TABLE $t SET (fillfactor = 50, autovacuum_enabled = off)",
			"ALTER TABLE $t SET (toast.autovacuum_enabled = off)", "ALTER TABLE $t REPLICA IDENTITY FULL", "ALTER TABLE $t REPLICA IDENTITY NOTHING", "ALTER TABLE $t DROP COLUMN m", "ALTER TABLE $t SET UNLOGGED",
			"ALTER TABLE $t ALTER $c SET DEFAULT 7", "ALTER TABLE $t ALTER $c DROP NOT NULL", "ALTER TABLE $t ALTER $c SET NOT NULL", "ALTER TABLE $t DISABLE TRIGGER ALL", "ALTER TABLE $t FORCE ROW LEVEL SECURITY",
			"ALTER TABLE $t ALTER $c TYPE smallint", "ALTER TABLE $t ALTER $c TYPE bigint", "CREATE SEQUENCE " . name('q') . " OWNED BY $t.$c", "ALTER TABLE $t ALTER $c SET DEFAULT nextval('shared')", "ALTER TABLE $t RENAME CONSTRAINT ${t}_pkey TO \"The key\"",
			"COMMENT ON COLUMN $t.code IS 'code'", "ALTER TABLE $t ALTER n TYPE positive", "ALTER TABLE $t ALTER $c TYPE any_int", "ALTER TABLE $t CLUSTER ON ${t}_pkey", "ALTER TABLE $t REPLICA IDENTITY USING INDEX ${t}_pkey",
			"ALTER TABLE $t ADD late int DEFAULT 7", "ALTER INDEX ${t}_pkey SET (fillfactor = 66)", "COMMENT ON INDEX ${t}_pkey IS 'pkey'", "COMMENT ON CONSTRAINT ${t}_pkey ON $t IS 'pkey'"));
	},
);

my %accepted = (
	direct => [ 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 12, 12 ],
	online => [ 0, 0, 0, 1, 1, 2, 2, 4, 4, 5, 5, 6, 7, 7, 8, 8, 8, 10, 12, 12 ],
	any => [ 0 .. $#decorations ]);

my $columns = 'code text, n int, m int, span int8range, tags int[], big text';

# The columns that an INSERT names, with values for row i.
sub values_for ($i)
{
	return "'c' || $i, $i % 50, $i, int8range($i, $i + 1), ARRAY[$i], repeat('x', $i % 9)";
}

sub key_column
{
	return one('id serial', 'id serial', 'id int GENERATED BY DEFAULT AS IDENTITY', 'id int GENERATED ALWAYS AS IDENTITY', 'id int NOT NULL', 'id smallserial', 'id bigserial', "id int DEFAULT nextval('shared')",
		'id int GENERATED BY DEFAULT AS IDENTITY (START 100 INCREMENT 5)');
}

# The table of the key: alone, partitioned, or with children.
sub make_root
{
	my $key = key_column();
	my $kind = one('plain', 'plain', 'plain', 'partitioned', $state{mode} eq 'online' ? 'plain' : 'inherited');
	my $always = $key =~ /ALWAYS/ ? ' OVERRIDING SYSTEM VALUE' : '';

	$state{kind} = $kind;
	if ($kind eq 'partitioned')
	{
		my $by = one('RANGE (n)', 'LIST (n)', 'HASH (n)');

		say_sql("CREATE TABLE root ($key, $columns" . one(', PRIMARY KEY (n, id)', ', PRIMARY KEY (id, n)', '', ', UNIQUE (n, id) INCLUDE (code)') . ") PARTITION BY $by");
		say_sql(
			  $by =~ /RANGE/ ? ('CREATE TABLE root_1 PARTITION OF root FOR VALUES FROM (MINVALUE) TO (25)', "CREATE TABLE root_2 ($columns, id int NOT NULL)", 'ALTER TABLE root ATTACH PARTITION root_2 FOR VALUES FROM (25) TO (MAXVALUE)')
			: $by =~ /LIST/ ? ('CREATE TABLE root_1 PARTITION OF root FOR VALUES IN (' . join(', ', 0 .. 24) . ')', 'CREATE TABLE root_2 PARTITION OF root DEFAULT')
			: map { "CREATE TABLE root_$_ PARTITION OF root FOR VALUES WITH (MODULUS 2, REMAINDER " . ($_ - 1) . ')' } 1, 2);
	}
	else
	{
		say_sql('CREATE TABLE root (' . join(', ', maybe(0.3) ? ($columns, $key) : ($key, $columns)) . one(', PRIMARY KEY (id)', ', PRIMARY KEY (id)', ', PRIMARY KEY (id) INCLUDE (n)', ', UNIQUE (id)', '', ', PRIMARY KEY (code), UNIQUE (id)') . ')');
		say_sql('CREATE TABLE root_1 (own int' . one('', ', PRIMARY KEY (id)') . ') INHERITS (root)') if $kind eq 'inherited';
	}
	say_sql("INSERT INTO root (id, code, n, m, span, tags, big)$always SELECT i, " . values_for('i') . ' FROM generate_series(1, 30) i');
	say_sql('SELECT setval(pg_get_serial_sequence(\'root\', \'id\'), 1000)', 'SELECT setval(\'shared\', 2000)');
	push @{ $state{inserts} }, 'INSERT INTO root (code, n, m, span, tags, big) VALUES (' . values_for(100) . ')', 'INSERT INTO root (code, n, m, span, tags, big) VALUES (' . values_for(145) . ')';
	return;
}

# A table that references another.
sub make_child ($no, $parent, $parent_column)
{
	my $t = "child$no";
	my $part = maybe(0.15);
	my $reference = one('root', 'root int', 'root int', 'root int NOT NULL', 'root int DEFAULT 1', 'root smallint', 'root bigint');
	my @more = (one('', '', ' ON DELETE CASCADE', ' ON DELETE SET NULL', ' ON UPDATE CASCADE', ' ON DELETE SET DEFAULT', ' ON UPDATE CASCADE ON DELETE RESTRICT'), one('', '', ' DEFERRABLE', ' DEFERRABLE INITIALLY DEFERRED', ' NOT VALID'));

	$reference = 'root int' if $reference eq 'root';
	say_sql("CREATE TABLE $t (" . one('no serial', 'no int GENERATED ALWAYS AS IDENTITY', 'no int DEFAULT 0') . ", $reference, $columns) " . ($part ? 'PARTITION BY HASH (n)' : ''));
	say_sql(map { "CREATE TABLE ${t}_$_ PARTITION OF $t FOR VALUES WITH (MODULUS 2, REMAINDER " . ($_ - 1) . ')' } 1, 2) if $part;
	say_sql("INSERT INTO $t (root, code, n, m, span, tags, big) SELECT i, " . values_for('i') . ' FROM generate_series(1, 20) i');
	say_sql(sprintf('ALTER TABLE %s ADD %s%s%s', $t, one('', 'CONSTRAINT "Refers to" '),
		one("FOREIGN KEY (root) REFERENCES $parent ($parent_column)", "FOREIGN KEY (root) REFERENCES $parent ($parent_column)", "FOREIGN KEY (root, n) REFERENCES $parent ($parent_column, n)",
			"FOREIGN KEY (code) REFERENCES $parent (code)", "FOREIGN KEY (n, root) REFERENCES $parent (n, $parent_column) MATCH FULL", "FOREIGN KEY (code, root) REFERENCES $parent (code, $parent_column)"),
		join('', @more)));
	say_sql("ALTER TABLE $t ADD FOREIGN KEY (root) REFERENCES $parent ($parent_column)") if maybe(0.5);
	say_sql("ALTER TABLE $t ADD " . one('PRIMARY KEY (root)', 'UNIQUE (root)', 'PRIMARY KEY (root, code)', 'UNIQUE (root, n)')) if maybe(0.5);
	push @{ $state{inserts} },
		"INSERT INTO $t (root, code, n, m, span, tags, big) SELECT CASE WHEN EXISTS (SELECT FROM pg_constraint k JOIN pg_attribute a ON attrelid = conrelid AND attname = 'root' WHERE contype = 'f' AND conrelid = '\"The shop\".$t'::regclass AND attnum = ANY (conkey)) THEN max(id) ELSE 1 END, max('c' || 100), 0, 100, '[700,701)', '{}', '' FROM root",
		"INSERT INTO $t (root, code, n, m, span, tags, big) VALUES (25, " . values_for(25) . ')';
	push @{ $state{tables} }, [ $t, 'root' ];
	return;
}

# A random schema: statements that create it, some of which may be errors, and the key.
sub make ($seed)
{
	srand($seed);
	%state = (statements => [ 'SET client_min_messages = warning', 'SET search_path = "The shop", public', 'CREATE TABLE log (n int)' ], inserts => [], tables => [ [ 'root', 'id' ] ], views => [], number => 0,
		mode => one('direct', 'direct', 'online', 'online', 'any'));
	make_root();
	my $few = int(rand(4));
	decorate() foreach 1 .. $few;
	my $children = one(0, 1, 1, 1, 2, 3);
	$_ > 1 && maybe(0.3) ? make_child($_, 'child' . ($_ - 1), 'root') : make_child($_, 'root', 'id')
	  foreach 1 .. $children;
	say_sql('ALTER TABLE root ADD self int REFERENCES root (id)', 'UPDATE root SET self = id') if maybe(0.15);
	decorate() foreach 1 .. one(0, 1, 2, 2, 3, 4, 6);
	my $no = 0;
	foreach my $insert (@{ $state{inserts} })
	{
		$no++;
		$insert =~ s/'/''/g;
		$insert =~ s/INTO (root|child)/INTO "The shop".$1/;
		$insert =~ s/FROM root/FROM "The shop".root/;
		say_sql("INSERT INTO tools.inserts VALUES ($no, '$insert')");
	}
	return { table => q{'"The shop".root'}, column => q{'id'}, statements => $state{statements} };
}

# Give some table something.
sub decorate
{
	my ($t, $c) = @{ one(@{ $state{tables} }) };

	$t .= '_1' if maybe(0.08);
	$decorations[ one(@{ $accepted{ $state{mode} } }) ]->($t, $c);
	return;
}

1;
