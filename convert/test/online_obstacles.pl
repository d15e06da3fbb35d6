# What snowflake_convert_online() refuses: where it is called, with which arguments,
# and what tables have that it does not carry over.
#
# The plan is looked at for some of the obstacles: SNOWFLAKE_SEED repeats a run, and with
# SNOWFLAKE_CASES=all these are all (script/tests/conversions).

use SnowflakeTest::Online;
use SnowflakeTest;

my $seed = $ENV{SNOWFLAKE_SEED} // int(rand(1e6));
my $share = ($ENV{SNOWFLAKE_CASES} // '') eq 'all' ? 1 : 0.2;
srand($seed);
note "seed $seed";
my $node = new_server('main', 'fsync = off', 'wal_level = logical', 'max_prepared_transactions = 5');
sql($node, q{
	CREATE ROLE regress_reader;
	CREATE ROLE regress_shop;
	CREATE ROLE regress_other;
	CREATE TABLE log (n int);
	CREATE TYPE word AS ENUM ('one');
	CREATE FUNCTION number(word) RETURNS int IMMUTABLE LANGUAGE sql RETURN 1;
	CREATE CAST (word AS int) WITH FUNCTION number(word) AS ASSIGNMENT;
	CREATE FUNCTION narrow(int) RETURNS int IMMUTABLE LANGUAGE sql RETURN $1;
	CREATE FUNCTION pair(anyelement, anyelement) RETURNS bool LANGUAGE sql AS $$ SELECT $1 = $2 $$;
	CREATE TABLE t (id serial PRIMARY KEY, v int);
	INSERT INTO t (v) SELECT generate_series(1, 10)});

# Where it is called
my $outside = qr/ERROR:  a table in use must be converted outside of a transaction block, function, or DO/;
sql($node, q{
	CREATE PROCEDURE in_plpgsql() LANGUAGE plpgsql AS $$ BEGIN CALL snowflake_convert_online('t'); END $$;
	CREATE PROCEDURE in_sql() LANGUAGE sql AS $$ CALL snowflake_convert_online('t') $$;
	CREATE FUNCTION in_function() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL snowflake_convert_online('t'); END $$;
	CREATE PROCEDURE after_commit() LANGUAGE plpgsql AS $$ BEGIN COMMIT; CALL snowflake_convert_online('t'); END $$});
like(run_in($node, 'postgres', q{DO $$ BEGIN CALL snowflake_convert_online('t'); END $$}), $outside, 'in DO');
like(run_in($node, 'postgres', 'BEGIN', "CALL snowflake_convert_online('t')"), $outside, 'in a transaction block');
like(run_in($node, 'postgres', 'CALL in_plpgsql()'), $outside, 'in a procedure of PL/pgSQL');
like(run_in($node, 'postgres', 'CALL in_sql()'), $outside, 'in a procedure in SQL');
like(run_in($node, 'postgres', 'CALL after_commit()'), $outside, 'in a procedure that has committed');
like(run_in($node, 'postgres', 'SELECT in_function()'), $outside, 'in a function');
like(run_in($node, 'postgres', "INSERT INTO log VALUES (1); CALL snowflake_convert_online('t')"), qr/ERROR:  /, 'with other statements in one string');
my $file = $node->basedir . '/pipeline.sql';
append_to_file($file, "\\startpipeline\nINSERT INTO log VALUES (2);\nCALL snowflake_convert_online('t');\n\\endpipeline\n");
my ($out, $err);
IPC::Run::run([ 'pgbench', '-n', '-t', '1', '-M', 'extended', '-f', $file, $node->connstr('postgres') ],
	'>' => \$out, '2>' => \$err);
like($err, qr/cannot be executed within a pipeline|cannot run inside a transaction block|must be converted outside/, 'in a pipeline');
is(sql($node, 'SELECT count(*) FROM log'), '0', 'what stands before it is not committed');
like(run_in($node, 'postgres', "SET default_transaction_isolation = 'repeatable read'", "CALL snowflake_convert_online('t')"),
	qr/ERROR:  cannot convert a table in a transaction with isolation level REPEATABLE READ\nDETAIL:  .*\nHINT:  .*, or set default_transaction_isolation to/, 'with an old snapshot');

# Arguments
my %wrong = (
	"'t', until => 'never'" => 'unknown phase "never"',
	"'t', batch_time => '1 hour'" => 'batch_time must be between 1 ms and 10 s',
	"'t', batch_time => '1 us'" => 'batch_time must be at least 1 ms',
	"'t', work_share => 2" => 'work_share must be between 0.01 and 1',
	"'t', work_share => 'NaN'" => 'work_share must be between 0.01 and 1',
	"'t', lock_wait => '1 s'" => 'lock_wait must be at least 1 ms and less than deadlock_timeout',
	"'t', max_lag => '-1 s'" => 'max_lag must be at least 1 ms',
	"'t', give_up_after => '0'" => 'give_up_after must be at least 1 ms',
	"NULL" => 'the table must not be null',
	"'t', 'no'" => 'column "no" of table public.t does not exist',
	"'pg_class'" => 'pg_catalog.pg_class is a system catalog',
	"'t', generator => 'now()'" => 'function now\(\) cannot be used as a generator of IDs');
foreach my $arguments (sort keys %wrong)
{
	like(run_in($node, 'postgres', "CALL snowflake_convert_online($arguments)"), qr/ERROR:  .*(?:$wrong{$arguments})/, "arguments $arguments");
}
like(run_in($node, 'postgres', 'SELECT snowflake_convert_undo(NULL)'), qr/ERROR:  the table must not be null/, 'undo of null');
like(run_in($node, 'postgres', 'SET ROLE regress_other', "CALL snowflake_convert_online('t')"), qr/ERROR:  must be owner of table public\.t/, 'a table of another owner');
like(run_in($node, 'postgres', 'SET ROLE regress_other', "SELECT * FROM snowflake_convert_plan('t')"), qr/ERROR:  must be owner of table public\.t/, 'the plan of a table of another owner');
like(run_in($node, 'postgres', 'SET ROLE regress_other', "SELECT snowflake_convert_undo('t')"), qr/ERROR:  must be owner of table public\.t/, 'undo for a table of another owner');
is(nothing_is_left($node, 'postgres'), '', 'errors change nothing');

# Obstacles: what is created before, and what the error says
my @obstacles = (
	[ 'CREATE MATERIALIZED VIEW o AS SELECT id FROM t', 'materialized view o cannot be carried over' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; CREATE MATERIALIZED VIEW o AS SELECT id FROM ov', 'materialized view o cannot be carried over' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; CREATE RULE r AS ON INSERT TO ov DO INSTEAD NOTHING', 'rule r on view ov cannot be carried over' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; CREATE FUNCTION f(ov) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$', 'function f\(ov\) depends on type ov' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; ALTER VIEW ov OWNER TO regress_other', 'view ov is owned by role regress_other, but table t by role .+' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; REVOKE USAGE ON TYPE ov FROM PUBLIC', 'the row type of view public\.ov has privileges or a comment' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; REVOKE USAGE ON TYPE ov FROM PUBLIC, CURRENT_USER', 'the row type of view public\.ov has privileges or a comment' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; COMMENT ON TYPE ov IS $$$$; COMMENT ON TYPE ov IS $$a$$', 'the row type of view public\.ov has privileges or a comment' ],
	[ 'SET allow_system_table_mods = on; INSERT INTO pg_seclabel VALUES ($$t$$::regclass, $$pg_class$$::regclass, 1, $$a$$, $$b$$)',
	  'column id of table t has a security label', 'SET allow_system_table_mods = on; DELETE FROM pg_seclabel' ],
	[ 'CREATE TABLE a (id int, t int REFERENCES t) PARTITION BY RANGE (id); CREATE TABLE a1 PARTITION OF a FOR VALUES FROM (1) TO (9); ALTER TABLE a1 ADD FOREIGN KEY (t) REFERENCES t',
	  'foreign key a1_t_fkey1? of table a1 is the same as one of its parent' ],
	[ 'CREATE TABLE a (t int DEFAULT 1 REFERENCES t ON DELETE SET DEFAULT)', 'foreign key a_t_fkey of table a has SET DEFAULT' ],
	[ 'CREATE UNIQUE INDEX i ON t (id); CREATE UNIQUE INDEX snowflake_new_i ON t (id)', 'index snowflake_new_i is in the way' ],
	[ 'CREATE STATISTICS s ON id, v FROM t; CREATE STATISTICS snowflake_new_s ON id, v FROM t', 'statistics object snowflake_new_s is in the way' ],
	[ 'CREATE TABLE a (t int CONSTRAINT snowflake_new_t REFERENCES t)', 'constraint snowflake_new_t on table a is in the way' ],
	[ 'CREATE FUNCTION f() RETURNS bigint BEGIN ATOMIC SELECT max(id) FROM t; END', 'function f\(\) depends on column id of table t' ],
	[ 'ALTER TABLE t ADD g int GENERATED ALWAYS AS (id + 1) STORED', '(?:column g of table t|default value for column g of table t) depends on column id of table t' ],
	[ 'CREATE RULE r AS ON DELETE TO t DO ALSO NOTHING', 'rule r on table t cannot be carried over' ],
	[ 'ALTER TABLE t ADD EXCLUDE (id WITH =)', 'constraint t_id_excl on table t cannot be carried over' ],
	[ 'ALTER TABLE t ADD UNIQUE (id) DEFERRABLE', 'constraint t_id_key on table t cannot be carried over' ],
	[ 'CREATE PUBLICATION p FOR TABLE t', 'publication p has all columns of table public\.t' ],
	[ 'CREATE PUBLICATION p FOR ALL TABLES', 'publication p has all columns of table public\.t' ],
	[ 'CREATE PUBLICATION p FOR TABLES IN SCHEMA public', 'publication p has all columns of table public\.t' ],
	[ 'CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$; CREATE TRIGGER "~z" BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g()',
	  'trigger "~z" of table public\.t would be fired after trigger ~snowflake_new' ],
	[ 'ALTER TABLE t ADD snowflake_new_id int', 'column snowflake_new_id of table public\.t is in the way' ],
	[ 'CREATE TABLE snowflake_new_t_pkey (i int)', 'table snowflake_new_t_pkey is in the way' ],
	[ 'CREATE TABLE snowflake_new_definitions (i int)', 'table snowflake_new_definitions is in the way' ],
	[ 'ALTER TABLE t ADD CONSTRAINT snowflake_new_check CHECK (v > 0)', 'constraint snowflake_new_check on table t is in the way' ],
	[ 'CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$; CREATE TRIGGER "~snowflake_new" BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION g()',
	  'trigger ~snowflake_new on table t is in the way' ],
	[ 'CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$; CREATE TRIGGER "~snowflake_swapped" BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION g()',
	  'trigger ~snowflake_swapped on table t is in the way' ],
	[ 'DO $$ BEGIN EXECUTE (SELECT $a$ALTER TABLE t $a$ || string_agg(format($a$ADD c%s bigint NOT NULL DEFAULT 0$a$, i), $a$, $a$) FROM generate_series(1, 1010) i); END $$',
	  'rows of table public\.t would not fit into a block' ],
	[ 'DO $$ BEGIN EXECUTE (SELECT $a$ALTER TABLE t $a$ || string_agg(format($a$ADD b%s bool NOT NULL, ADD c%1$s bigint NOT NULL$a$, i), $a$, $a$) FROM generate_series(1, 503) i); END $$',
	  'rows of table public\.t would not fit into a block' ],
	[ 'CREATE TABLE child () INHERITS (t)', 'table public\.t has a parent or child table' ],
	[ 'CREATE TABLE a (id int PRIMARY KEY REFERENCES t); ALTER TABLE t ADD a int REFERENCES a; UPDATE t SET a = NULL', 'tables that reference each other in a circle: public\.a' ],
	[ 'CREATE TABLE a (t int REFERENCES t); ALTER TABLE a DISABLE TRIGGER ALL', 'triggers of constraint a_t_fkey of table a are not enabled as usual' ],
	[ 'CREATE TABLE a (t int REFERENCES t); ALTER TABLE a OWNER TO regress_other', 'table public\.a|table a is owned by role regress_other, but table t by role' ],
	[ 'CREATE TABLE a (t int REFERENCES t) PARTITION BY LIST (t)', 'column t of table a is part of the partition key' ],
	[ 'CREATE STATISTICS s ON id, v FROM t; ALTER STATISTICS s OWNER TO regress_other', 'statistics object public\.s of table t belongs to another role' ],
	[ 'GRANT UPDATE (id) ON t TO regress_other WITH GRANT OPTION; SET ROLE regress_other; GRANT UPDATE (id) ON t TO regress_reader; RESET ROLE',
	  'UPDATE privilege on column id of table t was granted by role regress_other, not by the owner' ],
	[ 'CREATE INDEX i ON t (id, v); UPDATE pg_index SET indisvalid = false WHERE indexrelid = $$i$$::regclass', 'index i of table t is invalid' ],
	[ 'CREATE INDEX i ON t (hash_record(t))', 'index i uses whole rows of its table' ],
	[ 'CREATE INDEX i ON t (v) WHERE t IS NOT NULL', 'index i uses whole rows of its table' ],
	[ 'ALTER TABLE t ADD CONSTRAINT x EXCLUDE ((id % 100) WITH =)', 'constraint x on table t cannot be carried over' ],
	[ 'ALTER TABLE t ADD CONSTRAINT x EXCLUDE (v WITH =) WHERE (id > 100)', 'constraint x on table t cannot be carried over' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; ALTER EXTENSION snowflake ADD VIEW ov', 'view ov is a member of, or depends on, extension snowflake', 'ALTER EXTENSION snowflake DROP VIEW ov' ],
	[ 'ALTER TABLE t OWNER TO regress_shop', 'role regress_shop, the owner of table public\.t, lacks CREATE on schema public' ],
	[ 'CREATE TABLE a (v int); CREATE POLICY p ON a USING (v IN (SELECT id FROM t))', 'policy p on table a depends on column id of table t' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; CREATE FUNCTION f(ov[]) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$', 'function f\(ov\[\]\) depends on type ov\[\]' ],
	[ 'CREATE TABLE a (v int); CREATE VIEW ov AS SELECT id, a.v FROM t, a; CREATE RULE r AS ON INSERT TO a WHERE NEW.v IN (SELECT id FROM ov) DO INSTEAD NOTHING',
	  'rule r on table a cannot be carried over' ],
	[ 'CREATE TABLE a (t int PRIMARY KEY REFERENCES t, v int NOT NULL CONSTRAINT u UNIQUE); ALTER TABLE a REPLICA IDENTITY USING INDEX u; ALTER TABLE a DROP CONSTRAINT u; CREATE PUBLICATION p FOR TABLE a (v)',
	  'publication p has table a, which has no primary key or replica identity' ],
	[ 'CREATE TABLE a (t int REFERENCES t, v int); CREATE PUBLICATION p FOR TABLE a (v)', 'publication p has table a, which has no primary key or replica identity' ],
	# what is created again, but does not accept a bigint
	[ 'CREATE VIEW ov AS SELECT narrow(id) FROM t', 'view public\.ov cannot be created again: function public\.narrow\(bigint\) does not exist' ],
	[ 'CREATE VIEW ov AS SELECT id AS i FROM t; CREATE VIEW ow AS SELECT i FROM ov WHERE narrow(i) > 0', 'view public\.ow cannot be created again: function public\.narrow\(bigint\) does not exist' ],
	[ 'CREATE TABLE a (t int REFERENCES t); CREATE VIEW ov AS SELECT v FROM t JOIN a ON pair(id, a.t)', 'view public\.ov cannot be created again: function public\.pair\(integer, bigint\) does not exist' ],
	[ 'CREATE VIEW ov AS SELECT date $$2020-01-01$$ + id AS d FROM t', 'view public\.ov cannot be created again: operator does not exist: date \+ bigint' ],
	[ 'CREATE POLICY p ON t USING (narrow(id) > 0)', 'policy p of table public\.t cannot be created again: function public\.narrow\(bigint\) does not exist' ],
	[ 'CREATE POLICY p ON t FOR INSERT WITH CHECK (narrow(id) > 0)', 'policy p of table public\.t cannot be created again: function public\.narrow\(bigint\) does not exist' ],
	[ 'CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$; CREATE TRIGGER a BEFORE UPDATE ON t FOR EACH ROW WHEN (narrow(NEW.id) > OLD.v) EXECUTE FUNCTION g()',
	  'trigger a of table public\.t cannot be created again: function public\.narrow\(bigint\) does not exist' ],
	[ 'ALTER TABLE t ALTER id SET DEFAULT $$one$$::word', 'default of column id of table public\.t cannot be created again: column "id" is of type bigint but default expression is of type public\.word' ],
	[ 'CREATE VIEW ov AS SELECT id FROM t; ALTER VIEW ov ALTER id SET DEFAULT $$one$$::word',
	  'default of column id of view public\.ov cannot be created again: column "id" is of type bigint but default expression is of type public\.word' ],
	[ 'CREATE PUBLICATION p FOR TABLE t (id) WHERE (chr(id) <> $$a$$)', 'row filter of table public\.t in publication p cannot be created again: function chr\(bigint\) does not exist' ],
	# what depends on the order of columns
	[ 'CREATE VIEW ov AS SELECT x.a FROM t x (a, b)', 'view public\.ov cannot be created again: it has a list of column names for table public\.t' ],
	[ 'CREATE POLICY p ON t USING (id IN (SELECT x.a FROM t x (a, b)))', 'policy p of table public\.t cannot be created again: it has a list of column names for table public\.t' ],
	[ 'CREATE TABLE a (t int REFERENCES t); CREATE VIEW ov AS SELECT j.a FROM (t JOIN a ON id = a.t) j (a, b)', 'view public\.ov cannot be created again: it has a name for join j' ],
	[ 'CREATE TABLE a (id int REFERENCES t); CREATE VIEW ov AS SELECT j.id FROM (t JOIN a USING (id)) j', 'view public\.ov cannot be created again: it has a name for join j' ],
	[ 'CREATE TABLE a (t int REFERENCES t); CREATE VIEW ov AS SELECT j.id FROM (t JOIN a ON id = a.t) j', 'view public\.ov cannot be created again: it has a name for join j' ],
	[ 'CREATE FUNCTION f() RETURNS SETOF t LANGUAGE sql AS $$ SELECT * FROM t $$; CREATE VIEW ov AS SELECT r.id FROM f() r', 'view public\.ov cannot be created again: it calls a function in FROM that returns rows of table public\.t' ],
	[ 'ALTER TABLE t ADD CHECK (id < 1000)', 'check constraint t_id_check of table t rejects IDs generated now' ],
	[ 'CREATE TABLE a (t bigint REFERENCES t, copy int GENERATED ALWAYS AS (t) STORED)', 'generated column copy of table a does not accept IDs generated now: integer out of range' ],
	[ 'CREATE UNIQUE INDEX i ON t (lpad(id::text, 6, $$0$$))', 'index i of table t has the same value for different IDs generated now' ],
);
my $clean = q{
	SET client_min_messages = warning;
	DROP TABLE IF EXISTS t, child, a, snowflake_new_t_pkey, snowflake_new_sequence, snowflake_new_definitions CASCADE;
	DROP PUBLICATION IF EXISTS p;
	DROP FUNCTION IF EXISTS g, f() CASCADE;
	CREATE TABLE t (id serial PRIMARY KEY, v int)};
sql($node, $clean);
foreach my $obstacle (@obstacles)
{
	my ($create, $line, $drop) = @$obstacle;

	sql($node, "$create;\n");
	$line =~ s/public\\\.//g;
	my $said = run_in($node, 'postgres', "CALL snowflake_convert_online('t')") =~ s/public\.//gr;
	like($said, qr/^ERROR:  cannot convert column "id" of table t\nDETAIL:  (?:.*\n)*?(?:$line)/m, "obstacle: $create")
	  or diag($said);
	like(run_in($node, 'postgres', "SELECT * FROM snowflake_convert_plan('t')") =~ s/public\.//gr, qr/$line/, 'the plan has it, too')
	  if rand() < $share;
	is(sql($node, "SELECT count(*) FROM pg_trigger WHERE tgfoid = '_snowflake_convert_copy'::regproc;" . ($drop // '') . ";$clean"),
		'0', 'nothing was changed');
}

# What is none: views that name columns and joins, or use rows of the table
sql($node, q{
	SET client_min_messages = warning;
	DROP TABLE t CASCADE;
	CREATE TABLE t (id serial PRIMARY KEY, v int);
	CREATE TABLE a (v int, t int REFERENCES t);
	INSERT INTO t (v) VALUES (7), (8);
	INSERT INTO a VALUES (9, 2);
	CREATE FUNCTION row_of(t) RETURNS int LANGUAGE sql AS 'SELECT ($1).v';
	CREATE VIEW w1 AS SELECT * FROM t;
	CREATE VIEW w2 AS SELECT id, row_of(t.*), (SELECT count(*) FROM jsonb_object_keys(to_jsonb(t.*))) FROM t;
	CREATE VIEW w3 AS SELECT id, v, count(*) FROM t GROUP BY id;
	CREATE VIEW w4 AS SELECT id, tableoid FROM t FOR UPDATE;
	CREATE VIEW w5 AS SELECT x.id FROM t x (id, v);
	CREATE VIEW w6 AS WITH RECURSIVE t AS (SELECT 1::bigint AS id UNION ALL SELECT x.id + 100 FROM public.t x, t WHERE t.id < 50) SELECT id FROM t;
	CREATE VIEW w7 AS SELECT * FROM w1 UNION SELECT t, 0 FROM a;
	CREATE VIEW w8 AS SELECT array_agg(x.one ORDER BY x.one) AS ids FROM w7 x (one, two);
	CREATE VIEW w9 AS SELECT unnest(ids) AS id FROM w8;
	CREATE VIEW w10 AS SELECT id FROM t JOIN (SELECT t FROM a) s ON true;
	CREATE VIEW w11 AS SELECT r.t, r.v FROM a r;
	CREATE VIEW w12 WITH (check_option = local) AS SELECT id, v FROM t WHERE id > 0;
	CREATE VIEW w13 AS SELECT x.b FROM t x (a, b);
	CREATE MATERIALIZED VIEW w14 AS SELECT v FROM t;
	CREATE POLICY mine ON t USING (id IN (SELECT id FROM w1));
	CREATE INDEX snowflake_new_i ON t (id, v);
	CREATE STATISTICS snowflake_new_s ON id, v FROM t});
my $views = join ' UNION ALL ', map { "SELECT $_, to_jsonb(w$_)::text FROM w$_" } 1 .. 14;
my $shown = sql($node, "SELECT * FROM ($views) w ORDER BY 1, 2");
is(sql($node, "BEGIN; DECLARE c CURSOR FOR SELECT * FROM t, a ORDER BY t.ctid; FETCH c; SELECT count(*) > 5 FROM snowflake_convert_plan('t'); FETCH c"),
	"1|7|9|2\nt\n2|8|9|2", 'the plan while a query of the tables is open');
unlike(run_in($node, 'postgres', "CALL snowflake_convert_online('t')"), qr/ERROR/, 'views without a list of changed columns are no obstacle');
is(sql($node, "SELECT * FROM ($views) w ORDER BY 1, 2"), $shown, 'they show the same rows');
sql($node, 'SET client_min_messages = warning; DROP TABLE t, a CASCADE; CREATE TABLE t (id int)');

like(run_in($node, 'postgres', 'CREATE TEMP TABLE temporary (id int PRIMARY KEY)', "CALL snowflake_convert_online('temporary')"), qr/table pg_temp\S*\.temporary is temporary/, 'a temporary table');

# What subscribers are prepared for
sql($node, 'DROP TABLE t CASCADE; CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 10); CREATE PUBLICATION p FOR TABLE t');
unlike(run_in($node, 'postgres', "CALL snowflake_convert_online('t', subscribers_ready => true)"), qr/ERROR/, 'subscribers that are ready');
is(sql($node, q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 't'::regclass}), 'snowflake_nextval()', 'a published table is converted');

# For each statement, create a function with a text like this, of its number and the statement.
# The plan names those that are an obstacle (1), or, if there is no obstacle, those of which it
# gives notice.
sub are_obstacles ($create, $obstacle, $notice, @cases)
{
	foreach my $is_one (1, 0)
	{
		my @numbers = grep { ($cases[$_][1] eq '1' ? 1 : 0) == $is_one } 0 .. $#cases;

		sql($node, join ";\n", map { sprintf $create, $_, $cases[$_][0] } @numbers);
		my $said = run_in($node, 'postgres', "SELECT * FROM snowflake_convert_plan('t')");
		my %obstacle = map { $_ => 1 } $said =~ /$obstacle/g;
		my %named = map { $_ => 1 } $said =~ /$notice/g;

		is($obstacle{$_} ? 1 : $named{$_} ? 'notice' : 0, $cases[$_][1], "$cases[$_][0]: is it an obstacle?")
		  or diag($said)
		  foreach @numbers;
		sql($node, 'SET client_min_messages = warning;' . join ';', map { "DROP FUNCTION f$_() CASCADE" } @numbers);
	}
	return;
}

# Trigger functions that depend on the order of the columns
sql($node, q{
	DROP TABLE t CASCADE;
	CREATE TABLE t (id serial PRIMARY KEY, v int);
	CREATE TABLE ordered (op text, id int, v int)});
are_obstacles('CREATE FUNCTION f%1$s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %2$s; RETURN NULL; END $$;
		CREATE TRIGGER g%1$s AFTER INSERT ON t REFERENCING NEW TABLE AS "New rows" FOR EACH ROW EXECUTE FUNCTION f%1$s()',
	qr/trigger function public\.f(\d+)\(\) inserts all columns of a row of table public\.t in their order/, qr/(?!)/,
	[ q{INSERT INTO ordered SELECT 'I', NEW.*}, 1 ],
	[ q{insert into ordered select distinct new . *}, 1 ],
	[ q{INSERT INTO ordered VALUES ('I', (NEW).*)}, 1 ],
	[ q{INSERT INTO ordered VALUES (NEW.*)}, 1 ],
	[ q{/* * first */ INSERT INTO ordered SELECT NEW.*; /** last **/ NULL}, 1 ],
	[ q{INSERT INTO ordered (op, id, v) (SELECT upper(lower('i')), OLD.*)}, 1 ],
	[ q{EXECUTE format('INSERT INTO %I SELECT ($1).*', 'ordered') USING NEW}, 1 ],
	[ q{EXECUTE format('INSERT INTO %I SELECT $1.*', 'ordered') USING NEW}, 1 ],
	[ q{INSERT INTO ordered SELECT 'I', n.* FROM "New rows" n}, 1 ],
	[ q{INSERT INTO ordered SELECT * FROM "New rows"}, 1 ],
	[ q{INSERT INTO ordered TABLE "New rows"}, 1 ],
	[ q{INSERT INTO ordered (op, id, v) (SELECT nextval('t_id_seq'), n.* FROM "New rows" n)}, 1 ],
	[ q{DECLARE r record; BEGIN IF TG_OP = 'DELETE' THEN r := OLD; ELSE r = NEW; END IF; INSERT INTO ordered SELECT TG_OP, r.*; END}, 1 ],
	[ q{DECLARE n ALIAS FOR NEW; BEGIN INSERT INTO ordered SELECT 'I', n.*; END}, 1 ],
	[ q{EXECUTE 'INSERT INTO ordered SELECT ''I'', (t ' || quote_literal(NEW) || ').*'}, 1 ],
	[ q{EXECUTE 'INSERT INTO ordered SELECT ($1).*' USING NEW}, 1 ],
	[ q{EXECUTE format('INSERT INTO ordered SELECT ''I'', (%L::t).*', NEW)}, 1 ],
	[ q{INSERT INTO ordered SELECT 'I', (CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END).*}, 1 ],
	[ q{INSERT INTO ordered SELECT 'I', (coalesce(NEW, OLD)).*}, 1 ],
	[ q{INSERT INTO ordered SELECT 'I', count(*) FROM "New rows"}, 0 ],
	[ q{INSERT INTO ordered SELECT 'I', count(*) * 2 FROM "New rows"}, 0 ],
	[ q{INSERT INTO ordered SELECT 'I', 1 WHERE NOT EXISTS (SELECT * FROM "New rows")}, 0 ],
	[ q{INSERT INTO ordered (op) SELECT to_jsonb(x) FROM (SELECT * FROM "New rows" LIMIT 100) x}, 0 ],
	[ q{INSERT INTO ordered VALUES ('I', NEW.*::text)}, 0 ],
	[ q{INSERT INTO ordered VALUES ('I', NEW.* IS DISTINCT FROM OLD.*)}, 0 ],
	[ q{INSERT INTO ordered VALUES ('I', to_jsonb((NEW).*))}, 0 ],
	[ q{INSERT INTO ordered SELECT 'I', n.id, 2 * n.v FROM "New rows" n}, 0 ],
	[ q{INSERT INTO ordered SELECT o.* FROM others o}, 0 ],
	[ q{INSERT INTO ordered VALUES ('I', jsonb_build_object('op', upper(tg_op), 'row', NEW.*) ->> 'v')}, 0 ],
	[ q{INSERT INTO ordered SELECT 'I', NEW.id WHERE ROW(NEW.*) IS DISTINCT FROM ROW(OLD.*)}, 0 ],
	[ q{INSERT INTO ordered VALUES ('I', NEW.id, NEW.v)}, 0 ],
	[ q{INSERT INTO ordered SELECT to_jsonb(NEW.*) ->> 'v'}, 0 ],
	[ q{IF NEW.* IS DISTINCT FROM OLD.* THEN INSERT INTO ordered VALUES ('U', NEW.id); END IF}, 0 ],
	[ qq{NULL; -- INSERT INTO ordered SELECT NEW.*\n NULL}, 0 ],
	[ q{INSERT INTO ordered VALUES ('I'); IF 1 = ALL (ARRAY[1]) AND NEW.* = OLD.* THEN NULL; END IF}, 0 ]);
sql($node, q{
	CREATE TABLE parts (id serial, at int, PRIMARY KEY (id, at)) PARTITION BY LIST (at);
	CREATE TABLE part PARTITION OF parts DEFAULT;
	CREATE FUNCTION ordered() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO ordered SELECT NEW.*; RETURN NULL; END';
	CREATE TRIGGER ordered AFTER INSERT ON part FOR EACH ROW EXECUTE FUNCTION ordered()});
like(run_in($node, 'postgres', "SELECT * FROM snowflake_convert_plan('parts', 'id')"), qr/DETAIL:  trigger function public\.ordered\(\) inserts all columns of a row of table public\.part in their order/,
	'a trigger of a partition alone');
sql($node, 'DROP TABLE parts; DROP FUNCTION ordered() CASCADE');

# Functions that insert by the order of the columns
sql($node, 'CREATE VIEW over AS SELECT id, v FROM t');
are_obstacles('CREATE FUNCTION f%1$s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %2$s; RETURN NULL; END $$;
		CREATE TRIGGER g%1$s INSTEAD OF INSERT ON over FOR EACH ROW EXECUTE FUNCTION f%1$s()',
	qr/function public\.f(\d+)\(\) inserts into table public\.t without the names of columns/, qr/(?!)/,
	[ q{INSERT INTO t VALUES (NEW.*)}, 1 ],
	[ q{INSERT INTO T SELECT * FROM others}, 1 ],
	[ q{insert into public . "t" as x values (1, 2)}, 1 ],
	[ q{INSERT INTO t(SELECT 1, 2)}, 1 ],
	[ q{INSERT INTO t /* (id, v) */ OVERRIDING USER VALUE VALUES (1, 2)}, 1 ],
	[ q{WITH x AS (SELECT 1) INSERT INTO t TABLE x}, 1 ],
	[ q{INSERT INTO t (v) VALUES (1)}, 0 ],
	[ q{INSERT INTO t AS x (v) SELECT 1}, 0 ],
	[ q{INSERT INTO t DEFAULT VALUES}, 0 ],
	[ q{INSERT INTO other.t VALUES (1)}, 0 ],
	[ q{INSERT INTO t_t VALUES (1)}, 0 ],
	[ qq{NULL; -- INSERT INTO t VALUES (1)\n NULL}, 0 ]);
sql($node, 'DROP VIEW over');

# Functions that use the columns by their positions otherwise: what inserts them is an
# obstacle, what might be one is named
are_obstacles('CREATE FUNCTION f%s() RETURNS void LANGUAGE plpgsql AS $$ DECLARE r record; a bigint; b bigint; BEGIN %s; END $$',
	qr/function public\.f(\d+)\(\) inserts all columns of table public\.t in their order$/m,
	qr/^(?:DETAIL:  )?public\.f(\d+)\(\)$/m,
	[ q{WITH d AS (DELETE FROM t RETURNING *) INSERT INTO archive SELECT * FROM d}, 1 ],
	[ q{INSERT INTO archive SELECT * FROM public.t WHERE id = 1}, 1 ],
	[ q{INSERT INTO archive (a, b) SELECT "x".* FROM T x}, 1 ],
	[ q{INSERT INTO archive TABLE ONLY t}, 1 ],
	[ q{EXECUTE 'INSERT INTO archive SELECT * FROM t'}, 1 ],
	[ q{INSERT INTO archive (a, b) SELECT x.* FROM (SELECT * FROM T) x}, 'notice' ],
	[ q{INSERT INTO archive SELECT 0, x.* FROM others CROSS JOIN t x}, 'notice' ],
	[ q{UPDATE archive SET (a, b) = (SELECT y.* FROM t y WHERE id = 1)}, 'notice' ],
	[ q{FOR a, b IN SELECT * FROM t LOOP NULL; END LOOP}, 'notice' ],
	[ q{EXECUTE 'SELECT * FROM t' INTO a, b}, 'notice' ],
	[ q{SELECT * INTO a, b FROM t}, 'notice' ],
	[ q{DELETE FROM t RETURNING * INTO STRICT a, b}, 'notice' ],
	[ q{INSERT INTO archive SELECT (r).* FROM t r}, 'notice' ],
	[ q{r := (SELECT t FROM t LIMIT 1); INSERT INTO archive VALUES (1, r.*)}, 'notice' ],
	[ q{INSERT INTO archive SELECT * FROM queue WHERE kind = 't'}, 'notice' ],
	[ q{WITH d AS (DELETE FROM t RETURNING *) INSERT INTO archive (a) SELECT d.id FROM d}, 'notice' ],
	[ q{INSERT INTO archive (a) SELECT count(*) FROM (SELECT * FROM t) x}, 'notice' ],
	[ q{INSERT INTO archive SELECT * FROM other.t}, 'notice' ],
	[ q{SELECT * INTO r FROM t}, 0 ],
	[ q{INSERT INTO t (v) VALUES (1)}, 0 ],
	[ q{WITH d AS (DELETE FROM t RETURNING id, v) INSERT INTO archive SELECT id, v FROM d}, 0 ],
	[ q{INSERT INTO archive (a) SELECT 1 WHERE NOT EXISTS (SELECT * FROM t)}, 0 ],
	[ q{INSERT INTO archive (a) SELECT count(*) FROM t}, 0 ],
	[ q{INSERT INTO archive (a) SELECT id * 2 FROM t}, 0 ],
	[ q{INSERT INTO archive SELECT * FROM t_t}, 0 ]);

# Others cannot stop a conversion by a function of their own.
my $other = $node->background_psql('postgres');
$other->query_safe('CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE sql AS $$ INSERT INTO pg_class SELECT * FROM pg_class WHERE false $$');
$other->query_safe('CREATE FUNCTION pg_temp.g() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO archive SELECT * FROM t; END $$');
unlike(run_in($node, 'postgres', "SELECT * FROM snowflake_convert_plan('t')"), qr/ERROR|pg_temp/, 'a temporary function of another session is no obstacle');
$other->quit;

# What happens with the default is said before, by the plan and by each call.
sql($node, q{
	CREATE FUNCTION narrow() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE n int := NEW.id; BEGIN RETURN NULL; END';
	CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS 'DECLARE n int := 5; BEGIN RETURN NULL; END';
	CREATE TRIGGER narrow AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION narrow();
	CREATE TRIGGER counts AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION counts()});
foreach ("SELECT * FROM snowflake_convert_plan('t')", "CALL snowflake_convert_online('t', until => 'prepare')")
{
	my $said = run_in($node, 'postgres', $_);

	like($said, qr/NOTICE:  functions of these tables have integers\nDETAIL:  (?:.*\n)*public\.narrow\(\)\n/, "$_: functions with integers are named");
}
sql($node, "SELECT snowflake_convert_undo('t'); DROP FUNCTION narrow() CASCADE; DROP FUNCTION counts() CASCADE");

# What else is said: casts, logical slots
sql($node, q{
	CREATE POLICY mine ON t USING (id = current_setting('app.id')::int);
	CREATE TABLE tenants (t int DEFAULT current_setting('app.id')::int REFERENCES t, v int DEFAULT 1);
	CREATE VIEW casts AS SELECT id FROM t WHERE id = current_setting('app.id')::int;
	CREATE VIEW none AS SELECT id FROM t;
	CREATE POLICY constant ON t USING (id > -1)});
my $said = run_in($node, 'postgres', "SELECT * FROM snowflake_convert_plan('t')");
like($said, qr/NOTICE:  expressions with integers are kept\nDETAIL:  default of column t of table public\.tenants\npolicy mine on table public\.t\nrule _RETURN on view public\.casts\nHINT:  New IDs do not fit/,
	'what has a cast to integer is named');
sql($node, 'DROP POLICY mine ON t; DROP POLICY constant ON t; DROP TABLE tenants; DROP VIEW casts, none');

# The owner has to create the triggers again.
sql($node, q{
	CREATE ROLE regress_keeper;
	CREATE TABLE kept (id serial PRIMARY KEY, v int);
	CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER nothing AFTER UPDATE OF id ON kept FOR EACH ROW EXECUTE FUNCTION nothing();
	REVOKE EXECUTE ON FUNCTION nothing() FROM PUBLIC;
	GRANT CREATE ON SCHEMA public TO regress_keeper;
	ALTER TABLE kept OWNER TO regress_keeper});
like(run_in($node, 'postgres', "CALL snowflake_convert_online('kept')"), qr/DETAIL:  role regress_keeper, the owner of table public\.kept, lacks EXECUTE on function public\.nothing\(\)\n/,
	'an owner who cannot create a trigger again');
sql($node, 'DROP TRIGGER nothing ON kept');

# ... and views with their triggers.
sql($node, q{
	CREATE DOMAIN cents AS int;
	CREATE VIEW shown AS SELECT id, v::cents, NULL::cents[] AS more FROM kept;
	CREATE TRIGGER nothing INSTEAD OF INSERT ON shown FOR EACH ROW EXECUTE FUNCTION nothing();
	REVOKE USAGE ON TYPE cents FROM PUBLIC;
	ALTER VIEW shown OWNER TO regress_keeper});
my $lacks = 'role regress_keeper, the owner of view public\.shown, lacks';
like(run_in($node, 'postgres', "CALL snowflake_convert_online('kept')"),
	qr/DETAIL:  $lacks EXECUTE on function public\.nothing\(\)\n$lacks USAGE on type public\.cents\n$lacks USAGE on type public\.cents\[\]\n/,
	'an owner who cannot create a view again, or its trigger');
sql($node, 'GRANT EXECUTE ON FUNCTION nothing() TO regress_keeper; GRANT USAGE ON TYPE cents TO regress_keeper');
unlike(run_in($node, 'postgres', "CALL snowflake_convert_online('kept')"), qr/ERROR/, 'one who can create them');
sql($node, 'DROP TABLE kept CASCADE; DROP FUNCTION nothing(); DROP DOMAIN cents; DROP OWNED BY regress_keeper; DROP ROLE regress_keeper');

# Room for the new columns
sql($node, q{
	DO $$ BEGIN EXECUTE 'CREATE TABLE wide (t int REFERENCES t, ' || (SELECT string_agg('c' || n || ' bool', ', ') FROM generate_series(1, 1599) n) || ')'; END $$});
like(run_in($node, 'postgres', "CALL snowflake_convert_online('t')"), qr/ERROR:  tables can have at most 1600 columns\nCONTEXT:  SQL statement "ALTER TABLE public\.wide ADD COLUMN/, 'a table without room for a column');
sql($node, "SELECT snowflake_convert_undo('t')");
sql($node, 'DROP TABLE wide');

# Rows that could not be updated
sql($node, 'INSERT INTO t (v) VALUES (-7); ALTER TABLE t ADD CONSTRAINT later CHECK (v > 0) NOT VALID');
my $not_valid = qr/DETAIL:  a row of table public\.t does not satisfy constraint later\n/;
like(run_in($node, 'postgres', "CALL snowflake_convert_online('t')"), $not_valid, 'a constraint that is not valid');
like(run_in($node, 'postgres', "SELECT * FROM snowflake_convert_plan('t')"), $not_valid, 'the plan has it, too');
sql($node, 'DELETE FROM t WHERE v = -7');
unlike(run_in($node, 'postgres', "CALL snowflake_convert_online('t', until => 'backfill')"), qr/ERROR/, 'one that all rows satisfy');
sql($node, "SELECT snowflake_convert_undo('t'); ALTER TABLE t DROP CONSTRAINT later");

# The trigger
like(run_in($node, 'postgres', 'CREATE TABLE w (a int, b bigint, c text)', "CREATE TRIGGER w AFTER INSERT ON w FOR EACH ROW EXECUTE FUNCTION _snowflake_convert_copy('a', 'b')", 'INSERT INTO w VALUES (1)'),
	qr/ERROR:  trigger that copies columns must be fired BEFORE INSERT OR UPDATE FOR EACH ROW/, 'the trigger must be BEFORE');
foreach (
	[ "'c', 'b'", 'column "c" is not of an integer type' ],
	[ "'b', 'a'", 'column "a" is not of type bigint' ])
{
	my ($arguments, $message) = @$_;

	like(run_in($node, 'postgres', "CREATE OR REPLACE TRIGGER w BEFORE INSERT ON w FOR EACH ROW EXECUTE FUNCTION _snowflake_convert_copy($arguments)", "INSERT INTO w VALUES (1, 2, 'x')"),
		qr/ERROR:  $message/, "arguments of the trigger: $arguments");
}

# A key that is renamed meanwhile cannot be written
sql($node, 'DROP TABLE t CASCADE; CREATE TABLE t (id serial PRIMARY KEY, v int)');
run_in($node, 'postgres', "CALL snowflake_convert_online('t', until => 'prepare')", 'ALTER TABLE t RENAME id TO key');
like(run_in($node, 'postgres', 'INSERT INTO t (v) VALUES (1)'), qr/ERROR:  column "id" of table t, which is being converted, does not exist/, 'a column that was renamed');
run_in($node, 'postgres', 'ALTER TABLE t RENAME key TO id');

# Another conversion at the same time, and one for other columns
sql($node, 'CREATE TABLE k (id int PRIMARY KEY); ALTER TABLE t ADD k int REFERENCES k');
like(run_in($node, 'postgres', "CALL snowflake_convert_online('k')"), qr/trigger "~snowflake_new" of table public\.t is for other columns/, 'a conversion that was begun for other columns');
like(run_in($node, 'postgres', "CALL snowflake_convert_online('t', until => 'prepare')"), qr/the next phase is/, 'that conversion itself continues');
my $client = $node->background_psql('postgres');
$client->query_safe('SET ROLE regress_other; SELECT pg_advisory_lock(0), pg_advisory_lock(1936617335, 1); RESET ROLE; BEGIN; SELECT FROM t');
my $call = start_converting($node, 'postgres', "'t'");
wait_until_said($call, qr/waiting to lock table public\.t/);
my $converting = qr/ERROR:  another session converts a table of this database\nDETAIL:  .*has the advisory lock of conversions\./;
like(run_in($node, 'postgres', "CALL snowflake_convert_online('t')"), $converting, 'another session converts, which advisory locks of roles do not prevent');
like(run_in($node, 'postgres', "SELECT snowflake_convert_undo('t')"), $converting, 'another session converts, and undo');
sql($node, q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'conversion'});
finish_converting($call);
$client->quit;

# What is in use no longer: not while it is converted online
my $converts = qr/DETAIL:  table (public\.)?t is being converted online\nHINT:  Nothing was changed\. Complete the conversion with snowflake_convert_online\(\)/;
my $may_undo = qr/, or take it back with snowflake_convert_undo\(\), which is possible before the first swap\./;
like(run_in($node, 'postgres', "SELECT snowflake_convert('t')"), qr/$converts$may_undo/, 'snowflake_convert() in the middle of an online conversion');
like(run_in($node, 'postgres', "SELECT snowflake_convert('t', dry_run => true)"), qr/$converts/, 'snowflake_convert(), dry run');
like(run_in($node, 'postgres', "SELECT snowflake_convert_schema('public')"), qr/table (public\.)?t is being converted online/, 'snowflake_convert_schema()');
is(sql($node, "SELECT severity FROM snowflake_convert_report('public', details => true) WHERE finding LIKE 'table %t is being converted online'"),
	'obstacle', 'snowflake_convert_report()');
like(run_in($node, 'postgres', "CALL snowflake_convert_online('t', until => 'swap')"), qr/the next phase is "default"/, 'the conversion continues');
my $error = run_in($node, 'postgres', "SELECT snowflake_convert('t')");
like($error, qr/$converts\. If the column needs no default, and no other one waits for its own, drop trigger "~snowflake_swapped" instead\./, 'snowflake_convert() after the swap');
unlike($error, qr/snowflake_convert_undo/, 'after a swap, undo is not offered');
run_in($node, 'postgres', "CALL snowflake_convert_online('t')");
is(sql($node, "SELECT * FROM snowflake_convert('t')"), '', 'after the conversion, there is nothing to do');

# An event trigger, and settings of the session
sql($node, q{
	DROP TABLE t, k CASCADE; CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 10); CREATE INDEX ON t (id, v);
	CREATE TABLE ddl (tag text);
	CREATE FUNCTION on_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN INSERT INTO public.ddl SELECT tg_tag FROM pg_event_trigger_ddl_commands(); PERFORM count(*) FROM public.ddl; END $$;
	CREATE EVENT TRIGGER on_ddl ON ddl_command_end EXECUTE FUNCTION on_ddl()});
$err = run_in($node, 'postgres', "SET statement_timeout = '300ms'", "SET lock_timeout = '1s'", 'SET search_path = pg_temp, public', "CALL snowflake_convert_online('public.t', batch_time => '1 ms')",
	"SELECT 'wrong' WHERE current_setting('search_path') <> 'pg_temp, public' OR current_setting('lock_timeout') <> '1s'", 'SELECT pg_sleep(1)');
is(scalar(() = $err =~ /ERROR/g), 1, 'a conversion succeeds with an event trigger') or diag($err);
like($err, qr/ERROR:  canceling statement due to statement timeout\s*\z/, 'statement_timeout does not apply to a conversion, but after it') or diag($err);
like(sql($node, 'SELECT string_agg(DISTINCT tag, $$,$$) FROM ddl'), qr/ALTER TABLE.*CREATE INDEX.*CREATE TRIGGER/, 'event triggers are fired');
is(sql($node, q{SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 't'::regclass}), 'snowflake_nextval()', 'a table is converted with an event trigger');
sql($node, 'DROP EVENT TRIGGER on_ddl');

# Something that depends on the old column at the last moment
sql($node, q{
	DROP TABLE t CASCADE; CREATE TABLE t (id serial PRIMARY KEY, v int); INSERT INTO t (v) SELECT generate_series(1, 10);
	CREATE FUNCTION late() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN CREATE VIEW public.late AS SELECT id FROM public.t; END $$;
	CREATE EVENT TRIGGER late ON ddl_command_end WHEN TAG IN ('DROP TRIGGER') EXECUTE FUNCTION late()});
like(run_in($node, 'postgres', "CALL snowflake_convert_online('t')"),
	qr/ERROR:  table public\.t was changed during the conversion\nDETAIL:  The old column would be dropped with rule _RETURN on view public\.late\.\nHINT:  Its columns were not swapped\./,
	'what would be dropped with the old column is found in the swap');
sql($node, 'DROP EVENT TRIGGER late; CREATE VIEW late AS SELECT id FROM t');
unlike(run_in($node, 'postgres', "CALL snowflake_convert_online('t')"), qr/ERROR/, 'the conversion continues');
is(sql($node, 'SELECT count(*), pg_typeof(max(id)) FROM late'), '10|bigint', 'the view is carried over');

# A table of an owner without rights
sql($node, q{
	CREATE SCHEMA shop AUTHORIZATION regress_shop;
	SET ROLE regress_shop;
	CREATE FUNCTION shop.own(i bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		IF current_user <> 'regress_shop' THEN RAISE 'executed by %', current_user; END IF;
		RETURN i;
	END $$;
	CREATE FUNCTION shop.evil(i bigint) RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		BEGIN ALTER ROLE regress_shop SUPERUSER; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
		IF current_user <> 'regress_shop' THEN RAISE 'executed by %', current_user; END IF;
		RETURN i;
	END $$;
	CREATE TABLE shop.t (id serial PRIMARY KEY, v int, CHECK (shop.evil(id) > 0));
	CREATE TABLE shop.l (t int NOT NULL REFERENCES shop.t, v int);
	CREATE VIEW shop.w AS SELECT id, v FROM shop.t;
	INSERT INTO shop.t (v) SELECT generate_series(1, 10);
	CREATE INDEX ON shop.t (shop.own(id));
	CREATE STATISTICS shop.s ON shop.own(id), v FROM shop.t});
$err = run_in($node, 'postgres', "CALL snowflake_convert_online('shop.t')");
unlike($err, qr/ERROR/, 'a superuser converts the table of another role') or diag($err);
is(sql($node, "SELECT rolsuper FROM pg_roles WHERE rolname = 'regress_shop'"), 'f', 'the owner gains no rights');
is(sql($node, "SELECT string_agg(DISTINCT relowner::regrole::text, ',') FROM pg_class WHERE relnamespace = 'shop'::regnamespace"), 'regress_shop', 'all belongs to the owner');
sql($node, 'SET ROLE regress_shop; DROP TABLE shop.t, shop.l CASCADE; CREATE TABLE shop.t (id serial PRIMARY KEY, v int); INSERT INTO shop.t (v) SELECT generate_series(1, 10); CREATE VIEW shop.w AS SELECT id FROM shop.t');
$err = run_in($node, 'postgres', 'SET SESSION AUTHORIZATION regress_shop', "CALL snowflake_convert_online('shop.t')");
unlike($err, qr/ERROR/, 'the owner converts a table without further rights') or diag($err);
is(nothing_is_left($node, 'postgres'), '', 'nothing is left');

done_testing();
