/*-------------------------------------------------------------------------
 *
 * steps.c
 *	  The steps of a conversion of tables in use, and which of them are done.
 *
 * What is done is read from the catalogs each time, by names that are derived
 * from those of the old objects.  So the conversion can be interrupted at any
 * moment, and even continue in a database that was restored from a dump.
 *
 * The definition of a new index, constraint or statistics object is that of
 * the old one, with the new columns in the place of the old ones.  The server
 * itself writes it: an empty table is created like this one, with the old
 * object; then its columns become bigint and get the new names; then the
 * definition is read; and then all of this is rolled back.
 *
 * Copyright (c) 2026, the snowflake developers
 *
 * convert/online/steps.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_statistic_ext.h"
#include "executor/spi.h"
#include "utils/builtins.h"

#include "convert/online/names.h"
#include "convert/online/steps.h"
#include "convert/online/transaction.h"
#include "convert/rows.h"

static const char *const phase_names[] = {
	[SNOWFLAKE_PHASE_PREPARE] = "prepare",
	[SNOWFLAKE_PHASE_BACKFILL] = "backfill",
	[SNOWFLAKE_PHASE_INDEXES] = "indexes",
	[SNOWFLAKE_PHASE_FOREIGN_KEYS] = "foreign keys",
	[SNOWFLAKE_PHASE_SWAP] = "swap",
	[SNOWFLAKE_PHASE_DEFAULT] = "default",
};

/* Does an object depend on an old column? */
#define DEPENDS(classid, objid) \
"EXISTS (SELECT FROM pg_depend d JOIN col ON d.refclassid = 'pg_class'::regclass" \
"          AND (d.refobjid, d.refobjsubid) = (col.relid, col.attnum)" \
"        WHERE (d.classid, d.objid) = (" classid "::regclass, " objid "))"

#define WITH_NEW_NAME(name) \
" CROSS JOIN LATERAL (SELECT (" SNOWFLAKE_NEW_NAME(name) ")::name AS newname) x"

/* Are the columns of an old object not those of the new one? */
#define OTHER_COLUMNS(relid, old, new) \
"EXISTS (SELECT FROM unnest(" old ", " new ") k(o, n)" \
"          LEFT JOIN col ON (col.relid, col.attnum) = (" relid ", k.o)" \
"        WHERE coalesce(col.newnum, k.o) IS DISTINCT FROM k.n)"

/*
 * Further CTEs: the columns that get a new one beside them; their tables, with
 * the root of a tree of partitions; and the foreign keys, indexes, CHECK
 * constraints and statistics objects with such a column, each with the new one,
 * if there is one yet; and new ones without an old one.
 *
 * A table that is no partition is the root of its tree.  What a partition has
 * from its parent is a row of these CTEs, too: an index with a parent, a
 * constraint with conparentid or coninhcount.
 */
const char	snowflake_online_tables[] =
", col AS ("
"  SELECT t.relid, t.attnum, t.attname, x.newname, n.attnum AS newnum, a.attnotnull, a.attacl"
"  FROM target t JOIN pg_attribute a ON (a.attrelid, a.attnum) = (t.relid, t.attnum)"
WITH_NEW_NAME("t.attname")
"    LEFT JOIN pg_attribute n ON n.attrelid = t.relid AND n.attname = x.newname AND NOT n.attisdropped"
"  WHERE t.change = 'widen'),"
" up(relid, ancestor, depth) AS ("
"  SELECT DISTINCT relid, relid, 0 FROM target"
"  UNION ALL"
"  SELECT u.relid, i.inhparent, u.depth + 1"
"  FROM up u JOIN pg_class c ON c.oid = u.ancestor AND c.relispartition"
"    JOIN pg_inherits i ON i.inhrelid = u.ancestor),"
" top(relid, root, depth) AS ("
"  SELECT DISTINCT ON (relid) relid, ancestor, depth FROM up ORDER BY relid, depth DESC),"
" copier(oid, name) AS ("
"  SELECT p.oid, format('%I.%I', n.nspname, p.proname)"
"  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
"    JOIN pg_language l ON l.oid = p.prolang"
"    JOIN pg_depend d ON (d.classid, d.objid, d.deptype) = ('pg_proc'::regclass, p.oid, 'e')"
"    JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid"
"  WHERE p.proname = 'snowflake_convert_copy' AND l.lanname = 'c' AND e.extname = 'snowflake_convert'),"
" tab AS ("
"  SELECT r.oid AS relid, format('%I.%I', n.nspname, r.relname) AS name, n.nspname, r.relname,"
"    r.relowner, r.reltuples, r.relkind, top.root, top.depth, parent.ancestor AS parent,"
"    g.oid IS NOT NULL AND g.tgfoid = (SELECT oid FROM copier) AS prepared, g.tgenabled,"
"    coalesce(k.valid, false) AS copied, coalesce(k.validate, 'VALIDATE CONSTRAINT " SNOWFLAKE_COPY_CHECK "') AS validate"
"  FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace"
"    JOIN top ON top.relid = r.oid"
"    LEFT JOIN up parent ON parent.relid = r.oid AND parent.depth = 1"
"    LEFT JOIN pg_trigger g ON g.tgrelid = r.oid AND g.tgname = '" SNOWFLAKE_COPY_TRIGGER "'"
"    CROSS JOIN LATERAL (SELECT every(k.convalidated), string_agg(format('VALIDATE CONSTRAINT %I', k.conname), ', ' ORDER BY k.conname)"
"      FROM pg_constraint k WHERE k.conrelid = r.oid AND k.contype = 'c'"
"      AND k.conname IN (" SNOWFLAKE_COPY_CHECKS ")) k(valid, validate)),"
/* A new foreign key of a partition is named like the old one until it has a parent. */
/* Foreign keys act in the order of the names of triggers, which contain OIDs as text. */
" fkey_pair(oid, newoid, top, acts) AS ("
"  SELECT c.oid, f.oid, c.oid, (SELECT min(g.tgname::text COLLATE \"C\") FROM pg_trigger g"
"    WHERE g.tgconstraint = c.oid AND starts_with(g.tgname::text, 'RI_ConstraintTrigger_a_'))"
"  FROM pg_constraint c"
WITH_NEW_NAME("c.conname")
"    LEFT JOIN pg_constraint f ON f.conrelid = c.conrelid AND f.conname = x.newname AND f.contype = 'f'"
"  WHERE c.contype = 'f' AND c.conparentid = 0"
"  AND EXISTS (SELECT FROM col WHERE col.relid = c.conrelid AND col.attnum = ANY (c.conkey)"
"              OR col.relid = c.confrelid AND col.attnum = ANY (c.confkey))"
"  UNION ALL"
"  SELECT c.oid, f.oid, p.top, p.acts"
"  FROM fkey_pair p JOIN pg_constraint c ON c.conparentid = p.oid AND c.contype = 'f'"
"    LEFT JOIN pg_constraint f ON f.conparentid = p.newoid AND f.contype = 'f'"
"      AND (f.conrelid, f.confrelid) = (c.conrelid, c.confrelid)),"
" fkey AS ("
"  SELECT c.*, x.newname, f.oid AS newoid, f.conname AS newconname, f.convalidated AS newvalid, p.top, p.acts,"
/* Rows for the partitions of a referenced table are not foreign keys by themselves. */
"    coalesce(u.conrelid = c.conrelid, false) AS internal, r.relkind,"
/* A partitioned table has the key for a new one after its swap only. */
"    c.conparentid = 0 AND o.relkind = 'p'"
"      AND EXISTS (SELECT FROM col WHERE col.relid = c.confrelid AND col.attnum = ANY (c.confkey)) AS late"
"  FROM fkey_pair p JOIN pg_constraint c ON c.oid = p.oid JOIN pg_class r ON r.oid = c.conrelid"
"    JOIN pg_class o ON o.oid = c.confrelid"
"    LEFT JOIN pg_constraint u ON u.oid = c.conparentid"
WITH_NEW_NAME("c.conname")
"    LEFT JOIN pg_constraint b ON b.conrelid = c.conrelid AND b.conname = x.newname AND b.contype = 'f'"
"    LEFT JOIN pg_constraint f ON f.oid = coalesce(p.newoid, b.oid)),"
" idx AS ("
"  SELECT i.*, c.relname, c.relkind, c.reloptions, h.inhparent AS parent, n.nspname, s.spcname,"
"    k.oid AS con, k.contype, k.condeferrable, x.newname, f.indexrelid AS newoid, f.indisvalid AND f.indisready AS newvalid"
"  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
"    JOIN pg_namespace n ON n.oid = c.relnamespace"
"    LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace"
"    LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid"
"    LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = i.indrelid"
"      AND k.contype IN ('p', 'u', 'x')"
WITH_NEW_NAME("c.relname")
"    LEFT JOIN (pg_class fc JOIN pg_index f ON f.indexrelid = fc.oid)"
"      ON fc.relname = x.newname AND fc.relnamespace = c.relnamespace AND f.indrelid = i.indrelid"
"  WHERE i.indrelid IN (SELECT relid FROM col)"
"  AND (" DEPENDS("'pg_class'", "i.indexrelid") " OR " DEPENDS("'pg_constraint'", "k.oid") ")),"
" chk AS ("
"  SELECT k.*, x.newname, f.oid AS newoid, f.convalidated AS newvalid"
"  FROM pg_constraint k"
WITH_NEW_NAME("k.conname")
"    LEFT JOIN pg_constraint f ON f.conrelid = k.conrelid AND f.conname = x.newname AND f.contype = 'c'"
"  WHERE k.contype = 'c' AND k.conname NOT IN (" SNOWFLAKE_COPY_CHECKS ")"
"  AND EXISTS (SELECT FROM col WHERE col.relid = k.conrelid AND col.attnum = ANY (k.conkey))),"
" stat AS ("
"  SELECT s.*, n.nspname, x.newname, f.oid AS newoid"
"  FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace"
WITH_NEW_NAME("s.stxname")
"    LEFT JOIN pg_statistic_ext f ON f.stxname = x.newname AND f.stxnamespace = s.stxnamespace"
"      AND f.stxrelid = s.stxrelid"
"  WHERE s.stxrelid IN (SELECT relid FROM col)"
"  AND " DEPENDS("'pg_statistic_ext'", "s.oid") "),"
/* Those of partitions do not always depend on a column themselves. */
" triggered(oid) AS ("
"  SELECT d.objid FROM col JOIN pg_depend d ON d.classid = 'pg_trigger'::regclass"
"    AND (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, col.relid, col.attnum)"
"  UNION"
"  SELECT g.oid FROM triggered t JOIN pg_trigger g ON g.tgparentid = t.oid),"
/*
 * What is not as it was when the new object was created, beside definitions, which
 * snowflake_online_changed_objects() compares.
 */
" changed_since(relid, what) AS ("
"  SELECT indrelid, pg_describe_object('pg_class'::regclass, indexrelid, 0)"
"  FROM idx JOIN pg_class o ON o.oid = indexrelid JOIN pg_class n ON n.oid = newoid"
"  WHERE o.reltablespace <> n.reltablespace"
"  UNION ALL"
"  SELECT conrelid, pg_describe_object('pg_constraint'::regclass, fkey.oid, 0)"
"  FROM fkey JOIN pg_constraint f USING (conrelid)"
"  WHERE f.oid = newoid AND NOT internal"
"  AND ((fkey.confrelid, fkey.confupdtype, fkey.confdeltype, fkey.confmatchtype, fkey.condeferrable)"
"    IS DISTINCT FROM (f.confrelid, f.confupdtype, f.confdeltype, f.confmatchtype, f.condeferrable)"
"    OR " OTHER_COLUMNS("conrelid", "fkey.conkey", "f.conkey")
"    OR " OTHER_COLUMNS("f.confrelid", "fkey.confkey", "f.confkey")
"    OR " OTHER_COLUMNS("conrelid", "fkey.confdelsetcols", "f.confdelsetcols") ")),"
/* New objects whose old one was dropped or renamed. */
" single(relid, what) AS ("
"  SELECT DISTINCT col.relid, pg_describe_object(d.classid, d.objid, 0)"
"  FROM col JOIN pg_depend d"
"    ON (d.refclassid, d.refobjid, d.refobjsubid) = ('pg_class'::regclass, col.relid, col.newnum)"
"    LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid"
"    LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid"
"    LEFT JOIN pg_statistic_ext s ON d.classid = 'pg_statistic_ext'::regclass AND s.oid = d.objid"
"  WHERE starts_with(coalesce(c.relname, k.conname, s.stxname)::text, 'snowflake_new_')"
"  AND (k.conname IN (" SNOWFLAKE_COPY_CHECKS ")) IS NOT TRUE AND k.contype IS DISTINCT FROM 'n'"
"  AND NOT EXISTS (SELECT FROM idx WHERE idx.newoid = c.oid)"
"  AND NOT EXISTS (SELECT FROM fkey WHERE fkey.newoid = k.oid)"
"  AND NOT EXISTS (SELECT FROM chk WHERE chk.newoid = k.oid)"
"  AND NOT EXISTS (SELECT FROM stat WHERE stat.newoid = s.oid)),"
/*
 * The trees that are swapped together, because there is a foreign key between
 * them that is created in the swap; and the trees to swap, those that are
 * referenced after the others.
 */
" edge(referencing, referenced, late) AS ("
"  SELECT DISTINCT a.root, coalesce(b.root, confrelid), late"
"  FROM fkey JOIN top a ON a.relid = conrelid LEFT JOIN top b ON b.relid = confrelid),"
" mate(relid, other) AS ("
"  SELECT root, root FROM top"
"  UNION"
"  SELECT m.relid, CASE m.other WHEN e.referencing THEN e.referenced ELSE e.referencing END"
"  FROM mate m JOIN edge e ON e.late AND m.other IN (e.referencing, e.referenced)),"
" team(relid, team) AS ("
"  SELECT relid, coalesce(min(other) FILTER (WHERE other IN (SELECT referenced FROM edge WHERE late)), relid)"
"  FROM mate GROUP BY relid),"
" swap(relid, level) AS ("
"  SELECT team, 0 FROM team JOIN top ON top.root = team.relid"
"  WHERE top.relid IN (SELECT relid FROM col UNION SELECT conrelid FROM fkey)"
"  UNION"
"  SELECT coalesce(o.team, e.referenced), s.level + 1"
"  FROM swap s JOIN team t ON t.team = s.relid JOIN edge e ON e.referencing = t.relid"
"    LEFT JOIN team o ON o.relid = e.referenced"
"  WHERE coalesce(o.team, e.referenced) <> s.relid AND s.level < 99),"
" swapping(relid) AS ("
"  SELECT coalesce(t.relid, s.relid) FROM swap s LEFT JOIN team t ON t.team = s.relid),"
/* Foreign keys that were created in a swap, and not validated yet. */
" unvalidated(relid, oid, conname, convalidated) AS ("
"  SELECT k.conrelid, k.oid, k.conname, k.convalidated"
"  FROM tab JOIN pg_trigger g ON g.tgrelid = tab.relid AND g.tgname = '" SNOWFLAKE_VALIDATE_TRIGGER "'"
"      AND g.tgfoid = (SELECT oid FROM copier)"
"    CROSS JOIN LATERAL string_to_table(encode(g.tgargs, 'escape'), E'\\\\000') arg(name)"
"    JOIN pg_constraint k ON k.conrelid = tab.relid AND k.contype = 'f'"
"      AND encode(convert_to(k.conname::text, getdatabaseencoding()), 'escape') = arg.name),"
" swapped(relid, sessions) AS ("
"  SELECT g.tgrelid, split_part(encode(g.tgargs, 'escape'), E'\\\\000', 1)"
"  FROM pg_trigger g"
"  WHERE g.tgrelid = $1[1] AND g.tgname = '" SNOWFLAKE_SWAP_TRIGGER "'"
"  AND g.tgfoid = (SELECT oid FROM copier)) ";


/*
 * Further CTEs: the views that depend on the old columns of tables in scope, or
 * on their keys, and views that depend on these.
 */
const char	snowflake_online_views[] =
", view_walk(oid, depth) AS ("
"  SELECT r.ev_class, 1"
"  FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid"
"  WHERE r.ev_class NOT IN (SELECT relid FROM scope) AND r.rulename = '_RETURN'"
"  AND (d.refclassid = 'pg_class'::regclass AND (d.refobjid, d.refobjsubid) IN ("
"         SELECT relid, attnum FROM col JOIN scope USING (relid))"
"       OR d.refclassid = 'pg_constraint'::regclass AND d.refobjid IN ("
"         SELECT con FROM idx WHERE indrelid IN (SELECT relid FROM scope)))"
"  UNION"
"  SELECT r.ev_class, v.depth + 1"
"  FROM view_walk v JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = v.oid"
"    AND d.classid = 'pg_rewrite'::regclass"
"    JOIN pg_rewrite r ON r.oid = d.objid"
"  WHERE r.ev_class <> v.oid AND r.rulename = '_RETURN' AND v.depth < 999),"
" vw AS ("
"  SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name, v.depth"
"  FROM (SELECT oid, max(depth) AS depth FROM view_walk GROUP BY oid) v"
"    JOIN pg_class c ON c.oid = v.oid JOIN pg_namespace n ON n.oid = c.relnamespace) ";

/*
 * The steps: kind, phase, done, table, another table to lock, object, name of
 * the table, name and schema of the new object, tablespace, statement.
 */
static const char steps_query[] =
"SELECT kind, phase, done::int, relid, other, object, (SELECT name FROM tab WHERE tab.relid = s.relid),"
"  newname, nspname, spcname, statement"
" FROM ("
"  SELECT 0, 0, NOT EXISTS (SELECT FROM tab m JOIN col USING (relid)"
"                          WHERE m.root = tab.relid AND NOT (m.prepared AND col.newnum IS NOT NULL)),"
"    tab.relid, 0, 0, NULL::name, NULL::name, NULL::name,"
"    format('ALTER TABLE %1$s %2$s, ADD CONSTRAINT " SNOWFLAKE_COPY_CHECK " CHECK (%3$s) NOT VALID;\n"
"CREATE TRIGGER \"" SNOWFLAKE_COPY_TRIGGER "\" BEFORE INSERT OR UPDATE ON %1$s FOR EACH ROW EXECUTE FUNCTION %4$s(%5$s);\n"
"ALTER TABLE %1$s ENABLE ALWAYS TRIGGER \"" SNOWFLAKE_COPY_TRIGGER "\"%6$s%7$s',"
"      tab.name,"
"      string_agg(format('ADD COLUMN %I bigint', newname), ', ' ORDER BY attnum),"
"      string_agg(format(CASE WHEN attnotnull THEN '%I IS NOT NULL AND %1$I = %I'"
"                        ELSE '%I IS NOT DISTINCT FROM %I' END, newname, attname), ' AND ' ORDER BY attnum),"
"      (SELECT name FROM copier),"
"      string_agg(format('%L, %L', attname, newname), ', ' ORDER BY attnum),"
/* partitions whose column is NOT NULL although that of the parent is not */
"      (SELECT string_agg(format(E';\nALTER TABLE %s ADD CONSTRAINT " SNOWFLAKE_NULL_CHECK " CHECK (%s) NOT VALID', name, condition),"
"                         '' ORDER BY depth, relid)"
"       FROM (SELECT m.relid, m.name, m.depth, string_agg(format('%I IS NOT NULL', c.newname), ' AND ' ORDER BY c.attnum)"
"             FROM tab m JOIN col c USING (relid) JOIN col p ON (p.relid, p.attname) = (m.parent, c.attname)"
"             WHERE m.root = tab.relid AND c.attnotnull AND NOT p.attnotnull"
"             GROUP BY m.relid, m.name, m.depth) n(relid, name, depth, condition)),"
"      (SELECT string_agg(E';\n' || " SNOWFLAKE_GRANT_COLUMN("c.newname", "m.name") ", ''"
"                         ORDER BY m.depth, m.relid, c.attnum, ordinality)"
"       FROM tab m JOIN col c USING (relid), aclexplode(c.attacl) WITH ORDINALITY e WHERE m.root = tab.relid)),"
"    0, tab.name"
"  FROM tab JOIN col ON col.relid = tab.relid WHERE tab.relid = tab.root GROUP BY tab.relid, tab.name"
"  UNION ALL"
"  SELECT 1, 1, copied, tab.relid, 0, 0, NULL, NULL, NULL,"
"    format(E'UPDATE ONLY %s SET %s WHERE %s;\nALTER TABLE %1$s %4$s', tab.name,"
"      string_agg(format('%I = %I', newname, attname), ', ' ORDER BY attnum),"
"      string_agg(format('%I IS DISTINCT FROM %I', newname, attname), ' OR ' ORDER BY attnum), validate),"
"    0, tab.name"
"  FROM tab JOIN col ON col.relid = tab.relid WHERE relkind <> 'p' GROUP BY tab.relid, tab.name, copied, validate"
"  UNION ALL"
/* which reads no rows again */
"  SELECT 7, 1, copied, relid, 0, 0, NULL, NULL, NULL,"
"    format('ALTER TABLE %s %s', name, validate), 1, name"
"  FROM tab WHERE relkind = 'p' AND (relid = root OR strpos(validate, '" SNOWFLAKE_NULL_CHECK "') > 0)"
"  AND relid IN (SELECT relid FROM col)"
"  UNION ALL"
"  SELECT 2, 2, coalesce(newvalid, false), indrelid, 0, indexrelid, newname, nspname, spcname,"
"    CASE WHEN NOT newvalid THEN format('DROP INDEX CONCURRENTLY %I.%I', nspname, newname) END,"
"    CASE WHEN indisunique THEN 4 ELSE 0 END, relname"
"  FROM idx WHERE relkind = 'i'"
"  UNION ALL"
"  SELECT 3, 2, newoid IS NOT NULL, conrelid, 0, oid, newname, NULL, NULL, NULL, 1, conname"
"  FROM chk WHERE coninhcount = 0"
"  UNION ALL"
/* What is NOT VALID stays so. */
"  SELECT 7, 2, coalesce(newvalid, false), conrelid, 0, oid, newname, NULL, NULL,"
"    format('ALTER TABLE %s VALIDATE CONSTRAINT %I', tab.name, newname), 2, conname"
"  FROM chk JOIN tab ON tab.relid = chk.conrelid WHERE convalidated AND (coninhcount = 0 OR relkind <> 'p')"
"  UNION ALL"
"  SELECT 4, 2, newoid IS NOT NULL, stxrelid, 0, oid, newname, nspname, NULL, NULL, 3, stxname"
"  FROM stat"
"  UNION ALL"
/* Of a partitioned table, only ANALYZE by hand has had statistics. */
"  SELECT 5, 2, reltuples = 0 OR NOT EXISTS ("
"      SELECT FROM col LEFT JOIN pg_stats o ON (o.schemaname, o.tablename, o.attname) = (tab.nspname, tab.relname, col.attname)"
"        LEFT JOIN pg_stats n ON (n.schemaname, n.tablename, n.attname) = (tab.nspname, tab.relname, col.newname)"
"      WHERE col.relid = tab.relid AND (relkind <> 'p' OR o.null_frac IS NOT NULL)"
"      AND (n.null_frac IS NULL OR abs(n.null_frac - o.null_frac) > 0.01))"
"    AND NOT EXISTS (SELECT FROM idx WHERE idx.indrelid = tab.relid AND idx.indexprs IS NOT NULL"
"      AND EXISTS (SELECT FROM pg_stats s WHERE (s.schemaname, s.tablename) = (idx.nspname, idx.relname))"
"      AND NOT EXISTS (SELECT FROM pg_stats s WHERE (s.schemaname, s.tablename) = (idx.nspname, idx.newname))),"
"    relid, 0, 0, NULL, NULL, NULL, format('ANALYZE %s', name), 5, name"
"  FROM tab WHERE relid IN (SELECT relid FROM col)"
"  UNION ALL"
"  SELECT 6, 3, newoid IS NOT NULL, conrelid, confrelid, oid, newname, NULL, NULL,"
"    format('ALTER TABLE %s ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES %s (%s)%s%s%s%s%s%s%s',"
"      tab.name, newname,"
"      (SELECT string_agg(quote_ident(coalesce(col.newname, a.attname)), ', ' ORDER BY k.i)"
"       FROM unnest(conkey) WITH ORDINALITY k(n, i) JOIN pg_attribute a ON (a.attrelid, a.attnum) = (conrelid, k.n)"
"         LEFT JOIN col ON (col.relid, col.attnum) = (conrelid, k.n)),"
"      (SELECT format('%s.%I', r.relnamespace::regnamespace, r.relname) FROM pg_class r WHERE r.oid = confrelid),"
"      (SELECT string_agg(quote_ident(coalesce(col.newname, a.attname)), ', ' ORDER BY k.i)"
"       FROM unnest(confkey) WITH ORDINALITY k(n, i) JOIN pg_attribute a ON (a.attrelid, a.attnum) = (confrelid, k.n)"
"         LEFT JOIN col ON (col.relid, col.attnum) = (confrelid, k.n)),"
"      CASE confmatchtype WHEN 'f' THEN ' MATCH FULL' ELSE '' END,"
"      CASE confupdtype WHEN 'r' THEN ' ON UPDATE RESTRICT' WHEN 'c' THEN ' ON UPDATE CASCADE'"
"        WHEN 'n' THEN ' ON UPDATE SET NULL' WHEN 'd' THEN ' ON UPDATE SET DEFAULT' ELSE '' END,"
"      CASE confdeltype WHEN 'r' THEN ' ON DELETE RESTRICT' WHEN 'c' THEN ' ON DELETE CASCADE'"
"        WHEN 'n' THEN ' ON DELETE SET NULL' WHEN 'd' THEN ' ON DELETE SET DEFAULT' ELSE '' END,"
"      (SELECT format(' (%s)', string_agg(quote_ident(coalesce(col.newname, a.attname)), ', ' ORDER BY k.i))"
"       FROM unnest(confdelsetcols) WITH ORDINALITY k(n, i) JOIN pg_attribute a ON (a.attrelid, a.attnum) = (conrelid, k.n)"
"         LEFT JOIN col ON (col.relid, col.attnum) = (conrelid, k.n) HAVING count(*) > 0),"
"      CASE WHEN condeferrable THEN ' DEFERRABLE' ELSE '' END,"
/* SET CONSTRAINTS of the application has the name of the old one only. */
"      CASE WHEN condeferrable THEN ' INITIALLY DEFERRED' ELSE '' END,"
/* That of a partitioned table takes over those of the partitions, without looking at rows. */
"      CASE WHEN fkey.relkind = 'p' AND convalidated THEN '' ELSE ' NOT VALID' END),"
"    CASE WHEN fkey.relkind = 'p' THEN 2 ELSE 0 END, acts"
"  FROM fkey JOIN tab ON tab.relid = fkey.conrelid"
"  WHERE NOT internal AND NOT late AND (conparentid = 0 OR fkey.relkind <> 'p')"
"  UNION ALL"
"  SELECT 7, 3, coalesce(newvalid, false), conrelid, 0, oid, newname, NULL, NULL,"
"    format('ALTER TABLE %s VALIDATE CONSTRAINT %I', tab.name, newname), 1, acts"
"  FROM fkey JOIN tab ON tab.relid = fkey.conrelid"
"  WHERE convalidated AND NOT internal AND NOT late AND fkey.relkind <> 'p'"
"  UNION ALL"
/* before the next swap */
"  SELECT 7, 4, convalidated, relid, 0, oid, conname, NULL, NULL,"
"    format('ALTER TABLE %s VALIDATE CONSTRAINT %I', tab.name, conname), -2, conname"
"  FROM unvalidated JOIN tab USING (relid)"
"  UNION ALL"
"  SELECT DISTINCT 3, 4, false, relid, 0, 0::oid, NULL::name, NULL::name, NULL::name,"
"    format('DROP TRIGGER \"" SNOWFLAKE_VALIDATE_TRIGGER "\" ON %s', tab.name), -1, tab.name"
"  FROM unvalidated JOIN tab USING (relid)"
"  UNION ALL"
"  SELECT 8, 4, false, tab.relid, 0, 0, NULL, NULL, NULL, NULL, max(swap.level), tab.name"
"  FROM swap JOIN tab ON tab.relid = swap.relid"
"  WHERE swap.relid IN (SELECT team FROM team JOIN top ON top.root = team.relid"
"    WHERE top.relid IN (SELECT relid FROM col UNION SELECT conrelid FROM fkey))"
"  GROUP BY tab.relid, tab.name"
" ) s(kind, phase, done, relid, other, object, newname, nspname, spcname, statement, rank, name)"
"  LEFT JOIN top USING (relid)"
/*
 * Foreign keys are created in the order in which they act, and indexes in that of
 * the old ones, because a foreign key depends on the first one that is possible.
 */
" ORDER BY phase, CASE phase WHEN 2 THEN rank / 4 WHEN 3 THEN 0 ELSE rank END,"
"   CASE WHEN phase <> 3 THEN root END, CASE phase WHEN 3 THEN name COLLATE \"C\" END,"
"   rank, depth DESC, relid, CASE kind WHEN 2 THEN object END, name COLLATE \"C\", kind";

/*
 * Statements that create an object, $12, on an empty copy of its table, the
 * only one in target, and then rename its columns.
 *
 * If there is a new one, their definitions are compared.  The server has read
 * that of the new one once more, and might write it in other words since then,
 * so this is repeated here.
 */
static const char copy_query[] =
", copy AS ("
"  SELECT tab.*, format('%I." SNOWFLAKE_COPY_TABLE "', nspname) AS copy"
"  FROM tab),"
" pair(oid, newoid) AS ("
"  SELECT indexrelid, newoid FROM idx UNION ALL SELECT oid, newoid FROM chk UNION ALL SELECT oid, newoid FROM stat) "
"SELECT command FROM ("
"  SELECT 1, 0, format('CREATE TABLE %s (LIKE %s)', copy, name) FROM copy"
"  UNION ALL"
"  SELECT 2, col.attnum, format('ALTER TABLE %s DROP COLUMN %I', copy, newname)"
"  FROM copy JOIN col USING (relid) WHERE newnum IS NOT NULL"
"  UNION ALL"
"  SELECT 3, 0, format('CREATE %sINDEX " SNOWFLAKE_COPY_TABLE "_object ON %s ', p.u, copy)"
"    || substr(pg_get_indexdef(idx.indexrelid), length(p.p) + 1)"
"  FROM copy JOIN idx ON idx.indrelid = copy.relid AND idx.indexrelid = $12"
"    CROSS JOIN LATERAL (SELECT u, format('CREATE %sINDEX %I ON %s ', u, idx.relname, copy.name)"
"                        FROM (SELECT CASE WHEN idx.indisunique THEN 'UNIQUE ' ELSE '' END) u(u)) p(u, p)"
"  WHERE starts_with(pg_get_indexdef(idx.indexrelid), p.p)"
"  UNION ALL"
"  SELECT 3, 0, format('ALTER TABLE %s ADD CONSTRAINT " SNOWFLAKE_COPY_TABLE "_object %s%s', copy,"
"    pg_get_constraintdef(chk.oid), CASE WHEN chk.convalidated THEN ' NOT VALID' ELSE '' END)"
"  FROM copy JOIN chk ON chk.conrelid = copy.relid AND chk.oid = $12"
"  UNION ALL"
"  SELECT 3, 0, format('CREATE STATISTICS %I." SNOWFLAKE_COPY_TABLE "_object%s FROM %s', copy.nspname,"
"    substr(left(d.d, -length(d.s)), length(d.p) + 1), copy)"
"  FROM copy JOIN stat ON stat.stxrelid = copy.relid AND stat.oid = $12"
"    CROSS JOIN LATERAL (SELECT pg_get_statisticsobjdef(stat.oid),"
"      format('CREATE STATISTICS %I.%I', stat.nspname, stat.stxname), format(' FROM %s', copy.name)) d(d, p, s)"
"  WHERE starts_with(d.d, d.p) AND right(d.d, length(d.s)) = d.s"
"  UNION ALL"
"  SELECT 4, n, format('ALTER TABLE %s %s', copy,"
"    string_agg(format('ALTER COLUMN %I TYPE bigint', attname), ', ' ORDER BY col.attnum))"
"  FROM copy JOIN col USING (relid), generate_series(1, 1 + (SELECT count(newoid) FROM pair WHERE oid = $12)) n"
"  GROUP BY copy, n"
"  UNION ALL"
"  SELECT 5, col.attnum, format('ALTER TABLE %s RENAME COLUMN %I TO %I', copy, attname, newname)"
"  FROM copy JOIN col USING (relid)"
" ) s(step, number, command) ORDER BY step, number";

/* A definition without the words before it, which name the object. */
#define AFTER(prefix, definition) \
"CASE WHEN starts_with(" definition ", " prefix ") THEN substr(" definition ", length(" prefix ") + 1) END"

/* The columns of a statistics object. */
#define STATISTICS_COLUMNS(object) \
"(SELECT array_agg(a.attname ORDER BY a.attname) FROM pg_attribute a" \
"  WHERE a.attrelid = " object ".stxrelid AND a.attnum = ANY (" object ".stxkeys::int2[]))"

/*
 * The definition of the object on the copy, as a statement for the table, and
 * whether the new object has another one.
 */
static const char definition_query[] =
", copy AS ("
"  SELECT tab.*, format('%I." SNOWFLAKE_COPY_TABLE "', nspname) AS copy"
"  FROM tab) "
"SELECT format('CREATE %sINDEX CONCURRENTLY %I ON %s ', u.u, idx.newname, copy.name) || d.d AS statement,"
"  (" AFTER("format('CREATE %sINDEX %I ON %s ', u.u, idx.newname, copy.name)", "pg_get_indexdef(idx.newoid)") " IS DISTINCT FROM d.d)::int AS differs"
" FROM copy JOIN idx ON idx.indrelid = copy.relid AND idx.indexrelid = $12"
"  JOIN pg_index i ON i.indrelid = copy.copy::regclass"
"  CROSS JOIN LATERAL (SELECT CASE WHEN idx.indisunique THEN 'UNIQUE ' ELSE '' END) u(u)"
"  CROSS JOIN LATERAL (SELECT "
AFTER("format('CREATE %sINDEX " SNOWFLAKE_COPY_TABLE "_object ON %s ', u.u, copy.copy)", "pg_get_indexdef(i.indexrelid)") ") d(d)"
" WHERE d.d IS NOT NULL"
" UNION ALL "
"SELECT format('ALTER TABLE %s ADD CONSTRAINT %I %s', copy.name, chk.newname, d.d),"
/* The new one may have been validated. */
"  (regexp_replace(pg_get_constraintdef(chk.newoid), ' NOT VALID$', '') IS DISTINCT FROM regexp_replace(d.d, ' NOT VALID$', ''))::int"
" FROM copy JOIN chk ON chk.conrelid = copy.relid AND chk.oid = $12"
"  JOIN pg_constraint c ON c.conrelid = copy.copy::regclass AND c.contype = 'c'"
"  CROSS JOIN LATERAL (SELECT pg_get_constraintdef(c.oid)) d(d)"
" UNION ALL "
"SELECT format('CREATE STATISTICS %I.%I%s FROM %s', stat.nspname, stat.newname, d.d, copy.name),"
/* A definition has the columns in their order in the table. */
"  (NOT EXISTS (SELECT FROM pg_statistic_ext f WHERE f.oid = stat.newoid"
"     AND (f.stxkind, " STATISTICS_COLUMNS("f") ", pg_get_statisticsobjdef_expressions(f.oid))"
"       IS NOT DISTINCT FROM (s.stxkind, " STATISTICS_COLUMNS("s") ", pg_get_statisticsobjdef_expressions(s.oid))))::int"
" FROM copy JOIN stat ON stat.stxrelid = copy.relid AND stat.oid = $12"
"  JOIN pg_statistic_ext s ON s.stxrelid = copy.copy::regclass"
"  CROSS JOIN LATERAL (SELECT pg_get_statisticsobjdef(s.oid), format(' FROM %s', copy.copy)) x(d, s)"
"  CROSS JOIN LATERAL (SELECT left("
AFTER("format('CREATE STATISTICS %I." SNOWFLAKE_COPY_TABLE "_object', copy.nspname)", "x.d") ", -length(x.s))) d(d)"
" WHERE d.d IS NOT NULL AND right(x.d, length(x.s)) = x.s";

/*
 * What takes everything back: first the tables to lock, with NULL for a
 * statement, then the statements.
 */
static const char undo_query[] =
/*
 * Tables with the trigger: those that are converted, and those that were, until
 * their foreign key or its column was dropped.
 */
", mine(relid) AS ("
"  SELECT relid FROM tab"
"  UNION"
"  SELECT c.conrelid FROM mine JOIN pg_constraint c ON c.confrelid = mine.relid"
"  WHERE c.contype = 'f' AND c.conparentid = 0 AND starts_with(c.conname::text, 'snowflake_new_')"
"  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = mine.relid AND a.attnum = ANY (c.confkey)"
"              AND starts_with(a.attname::text, 'snowflake_new_'))),"
" own AS ("
"  SELECT relid, format('%s.%I', r.relnamespace::regnamespace, r.relname) AS name, g.tgargs, g.tgparentid"
"  FROM mine JOIN pg_trigger g ON g.tgrelid = relid"
"    AND g.tgname = '" SNOWFLAKE_COPY_TRIGGER "' AND g.tgfoid = (SELECT oid FROM copier)"
"    JOIN pg_class r ON r.oid = relid),"
/*
 * As the trigger has them: the old column may have another name now.  Whoever has
 * the TRIGGER privilege could have created one with other names.
 */
" own_column AS ("
"  SELECT own.relid, n.attnum, n.attname"
"  FROM own CROSS JOIN LATERAL string_to_table(encode(own.tgargs, 'escape'), E'\\\\000') WITH ORDINALITY arg(name, number)"
"    JOIN pg_attribute n ON n.attrelid = own.relid AND NOT n.attisdropped"
"      AND encode(convert_to(n.attname::text, getdatabaseencoding()), 'escape') = arg.name"
"  WHERE arg.number % 2 = 0 AND starts_with(n.attname::text, 'snowflake_new_') AND n.atttypid = 'int8'::regtype),"
" made AS ("
"  SELECT c.* FROM pg_constraint c"
"  WHERE c.conparentid = 0 AND (c.oid IN (SELECT newoid FROM fkey)"
"    OR c.contype = 'f' AND starts_with(c.conname::text, 'snowflake_new_')"
"      AND EXISTS (SELECT FROM own_column n WHERE n.relid = c.conrelid AND n.attnum = ANY (c.conkey)"
"                  OR n.relid = c.confrelid AND n.attnum = ANY (c.confkey)))) "
"SELECT relid, command FROM ("
"  SELECT 0, relid, NULL FROM own"
"  UNION"
"  SELECT 0, unnest(ARRAY[conrelid, confrelid]), NULL FROM made"
"  UNION ALL"
"  SELECT 1, conrelid, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM made"
"  UNION ALL"
"  SELECT 2, stxrelid, format('DROP STATISTICS %I.%I', nspname, newname) FROM stat WHERE newoid IS NOT NULL"
"  UNION ALL"
"  SELECT 3, relid, format('DROP TRIGGER \"" SNOWFLAKE_COPY_TRIGGER "\" ON %s', name) FROM own WHERE tgparentid = 0"
"  UNION ALL"
"  SELECT 4, own.relid, format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS " SNOWFLAKE_COPY_CHECK "%s', own.name,"
"    string_agg(format(', DROP COLUMN %I', n.attname), '' ORDER BY n.attnum))"
"  FROM own LEFT JOIN own_column n USING (relid) WHERE tgparentid = 0"
"  GROUP BY own.relid, own.name"
" ) s(step, relid, command) ORDER BY step, relid, command COLLATE \"C\"";

const char *
snowflake_online_phase_name(SnowflakeOnlinePhase phase)
{
	return phase_names[phase];
}

/*
 * Run a query, about an object or none, that begins after the CTEs.
 */
static List *
ask(const SnowflakeConversion *conversion, Oid object, const char *query)
{
	return snowflake_ask_often(conversion, object,
							   psprintf("%s%s", snowflake_online_tables, query));
}

/*
 * All steps that are not behind a swap, in their order.
 */
List *
snowflake_online_list_steps(const SnowflakeConversion *conversion)
{
	const SnowflakeKey *key = linitial(conversion->keys);
	List	   *steps = NIL;
	SnowflakeOnlineStep *last;
	ListCell   *cell;

	foreach(cell, ask(conversion, InvalidOid, steps_query))
	{
		char	  **row = lfirst(cell);
		SnowflakeOnlineStep *step = palloc0_object(SnowflakeOnlineStep);

		step->kind = snowflake_convert_number(row, "kind");
		step->phase = snowflake_convert_number(row, "phase");
		step->done = snowflake_convert_flag(row, "done");
		step->relid = snowflake_convert_oid(row, "relid");
		step->other = snowflake_convert_oid(row, "other");
		step->object = snowflake_convert_oid(row, "object");
		step->table = snowflake_convert_text(row, "name");
		step->new_name = snowflake_convert_text(row, "newname");
		step->schema = snowflake_convert_text(row, "nspname");
		step->tablespace = snowflake_convert_text(row, "spcname");
		step->statement = snowflake_convert_text(row, "statement");
		steps = lappend(steps, step);
	}

	last = palloc0_object(SnowflakeOnlineStep);
	last->kind = SNOWFLAKE_STEP_DEFAULT;
	last->phase = SNOWFLAKE_PHASE_DEFAULT;
	last->relid = key->relid;
	last->table = key->table;
	last->done = steps == NIL && !key->set_default &&
		ask(conversion, InvalidOid, "SELECT FROM swapped") == NIL;
	return lappend(steps, last);
}

/* A step whose statement is to be found. */
typedef struct StepDefinition
{
	const SnowflakeConversion *conversion;
	const SnowflakeOnlineStep *step;
	char	   *statement;
	bool		differs;		/* does the new object have another one? */
} StepDefinition;

/*
 * Create an object on a copy of its table, and read its definition.
 */
static void
define_on_copy(void *argument)
{
	StepDefinition *definition = argument;
	const SnowflakeOnlineStep *step = definition->step;
	SnowflakeConversion part = snowflake_convert_part(definition->conversion, step->relid);
	List	   *rows;

	rows = ask(&part, step->object, copy_query);
	snowflake_online_run_statements(snowflake_convert_texts(rows));
	rows = ask(&part, step->object, definition_query);
	if (list_length(rows) != 1)
		elog(ERROR, "could not find the definition of %s", step->new_name);
	definition->statement = snowflake_convert_text(linitial(rows), "statement");
	definition->differs = snowflake_convert_flag(linitial(rows), "differs");
}

/*
 * The same, and nothing is left of the copy.
 */
static void
find_definition(StepDefinition *definition)
{
	ErrorData  *error = snowflake_convert_do(define_on_copy, definition, false);

	if (error != NULL)
		ReThrowError(error);
}

/*
 * The statement of a step that creates an index, a CHECK constraint, or a
 * statistics object.
 */
char *
snowflake_online_step_statement(const SnowflakeConversion *conversion,
								const SnowflakeOnlineStep *step)
{
	StepDefinition definition = {.conversion = conversion,.step = step};

	if (step->statement != NULL)
		return step->statement;
	find_definition(&definition);
	return definition.statement;
}

/*
 * Has the old object another definition than when its new one was created?  A step
 * that creates no object has none.
 */
static bool
is_changed(const SnowflakeConversion *conversion,
		   const SnowflakeOnlineStep *step)
{
	StepDefinition definition = {.conversion = conversion,.step = step};

	if (!step->done || !OidIsValid(step->object))
		return false;
	if (step->kind != SNOWFLAKE_STEP_INDEX && step->kind != SNOWFLAKE_STEP_CHECK &&
		step->kind != SNOWFLAKE_STEP_STATISTICS)
		return false;
	find_definition(&definition);
	return definition.differs;
}

/*
 * The old object of a step, for a message.
 */
static char *
describe(const SnowflakeOnlineStep *step)
{
	ObjectAddress object = {.objectId = step->object};

	object.classId = step->kind == SNOWFLAKE_STEP_INDEX ? RelationRelationId :
		step->kind == SNOWFLAKE_STEP_CHECK ? ConstraintRelationId :
		StatisticExtRelationId;
	return getObjectDescription(&object, false);
}

/*
 * The objects of tables, or of all if there is no list, that were changed after
 * their new ones were created.  A swap would take that back.
 */
List *
snowflake_online_changed_objects(const SnowflakeConversion *conversion,
								 const List *relids)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, ask(conversion, InvalidOid, "SELECT relid, what FROM changed_since"))
	{
		char	  **row = lfirst(cell);

		if (relids == NIL || list_member_oid(relids, snowflake_convert_oid(row, "relid")))
			result = lappend(result, snowflake_convert_text(row, "what"));
	}
	foreach(cell, snowflake_online_list_steps(conversion))
	{
		const SnowflakeOnlineStep *step = lfirst(cell);

		if ((relids == NIL || list_member_oid(relids, step->relid)) &&
			is_changed(conversion, step))
			result = lappend(result, describe(step));
	}
	return result;
}

/*
 * The statements that take everything back, and the tables to lock.  Fails if
 * columns have been swapped.
 */
List *
snowflake_online_undo_statements(const SnowflakeConversion *conversion, List **tables)
{
	List	   *statements = NIL;
	ListCell   *cell;

	/*
	 * A table that still has the trigger that copies is not swapped, but
	 * another column of it may have been.  A foreign key without a pair, but
	 * with a new column, was swapped.
	 */
	if (ask(conversion, InvalidOid,
			"SELECT FROM swapped WHERE relid NOT IN (SELECT relid FROM tab WHERE prepared) UNION ALL "
			"SELECT FROM pg_constraint c JOIN col ON col.relid = c.confrelid AND col.newnum = ANY (c.confkey)"
			" WHERE c.contype = 'f' AND NOT starts_with(c.conname::text, 'snowflake_new_')") != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot undo the conversion of table %s, because columns have been swapped",
						((SnowflakeKey *) linitial(conversion->keys))->table),
				 errhint("Call snowflake_convert_online() to complete it. The way back from there is snowflake_undo.sql.")));

	*tables = NIL;
	foreach(cell, ask(conversion, InvalidOid, undo_query))
	{
		char	  **row = lfirst(cell);

		char	   *command = snowflake_convert_text(row, "command");

		if (command == NULL)
			*tables = lappend_oid(*tables, snowflake_convert_oid(row, "relid"));
		else
			statements = lappend(statements, command);
	}
	return statements;
}
