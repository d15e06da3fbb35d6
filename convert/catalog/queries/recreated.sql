-- What a direct conversion drops, and creates again, because it depends on a column that
-- changes its type: views, those that are made of them, rules, policies, and triggers with
-- columns or a condition.
--
-- A view depends on others by its query alone, so there are no circles: rules are dropped
-- before all views, and created after them.
-- cte: in_the_way(classid, objid)
SELECT DISTINCT d.classid, d.objid FROM widened t JOIN pg_depend d ON {on_column(d, t)}

-- cte: view_walk(oid, depth)
SELECT w.ev_class, 1 FROM in_the_way d JOIN pg_rewrite w ON {is_object(d, pg_rewrite, w.oid)}
WHERE w.rulename = '_RETURN'
UNION
SELECT w.ev_class, v.depth + 1
FROM view_walk v JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass
    AND {on_object(d, pg_class, v.oid)}
  JOIN pg_rewrite w ON w.oid = d.objid
WHERE w.rulename = '_RETURN' AND w.ev_class <> v.oid
  AND v.depth < (SELECT count(*) FROM pg_class WHERE relkind IN ('v', 'm'))

-- cte: vw
SELECT c.*, {qualified(c)} AS name, w.depth
FROM (SELECT oid, max(depth) AS depth FROM view_walk GROUP BY oid) w
  JOIN pg_class c ON c.oid = w.oid

-- Those of tables, of these views, and of others, with what is used.
-- cte: rul(oid)
SELECT w.oid FROM pg_rewrite w
WHERE w.rulename <> '_RETURN'
AND (w.ev_class IN (SELECT oid FROM vw)
     OR ('pg_rewrite'::regclass, w.oid) IN (SELECT classid, objid FROM in_the_way)
     OR EXISTS (SELECT FROM pg_depend d JOIN vw ON vw.oid = d.refobjid
                WHERE (d.classid, d.objid, d.refclassid)
                  = ('pg_rewrite'::regclass, w.oid, 'pg_class'::regclass)))

-- Those of partitions go, and come, with that of their table.
-- cte: trg(oid, depth)
SELECT g.oid, 0 FROM in_the_way d JOIN pg_trigger g ON {is_object(d, pg_trigger, g.oid)}
  AND NOT g.tgisinternal AND g.tgparentid = 0
UNION
SELECT g.oid, t.depth + 1 FROM trg t JOIN pg_trigger g ON g.tgparentid = t.oid

-- cte: pol(oid)
SELECT p.oid FROM in_the_way d JOIN pg_policy p ON {is_object(d, pg_policy, p.oid)}

-- All of it, with what belongs to it, and the relation that it belongs to.
-- cte: gone(classid, objid, relid)
SELECT 'pg_class'::regclass::oid, oid, oid FROM vw
UNION SELECT 'pg_rewrite'::regclass, w.oid, vw.oid FROM pg_rewrite w JOIN vw ON vw.oid = w.ev_class
UNION SELECT 'pg_rewrite'::regclass, oid, w.ev_class FROM rul JOIN pg_rewrite w USING (oid)
UNION SELECT 'pg_trigger'::regclass, oid, g.tgrelid FROM trg JOIN pg_trigger g USING (oid)
UNION SELECT 'pg_constraint'::regclass, g.tgconstraint, g.tgrelid
  FROM trg JOIN pg_trigger g USING (oid) WHERE g.tgconstraint <> 0
UNION SELECT 'pg_policy'::regclass, oid, p.polrelid FROM pol JOIN pg_policy p USING (oid)
UNION SELECT 'pg_type'::regclass, unnest(ARRAY[y.oid, y.typarray]), vw.oid
  FROM vw JOIN pg_type y ON y.oid = vw.reltype
UNION SELECT 'pg_attrdef'::regclass, f.oid, vw.oid FROM vw JOIN pg_attrdef f ON f.adrelid = vw.oid
UNION SELECT 'pg_trigger'::regclass, g.oid, vw.oid FROM vw JOIN pg_trigger g ON g.tgrelid = vw.oid
UNION SELECT 'pg_class'::regclass, i.indexrelid, vw.oid
  FROM vw JOIN pg_index i ON i.indrelid = vw.oid
UNION SELECT 'pg_statistic_ext'::regclass, s.oid, vw.oid
  FROM vw JOIN pg_statistic_ext s ON s.stxrelid = vw.oid

-- The owner of the tables.
-- cte: owner(oid, rolname)
SELECT o.oid, o.rolname FROM pg_class k JOIN pg_roles o ON o.oid = k.relowner
WHERE k.oid = $tables[1]

-- Relations whose rules or policies are dropped, and that are no such views.
-- cte: ruled
SELECT c.* FROM pg_class c
WHERE c.oid NOT IN (SELECT oid FROM vw)
AND c.oid IN (SELECT w.ev_class FROM rul JOIN pg_rewrite w USING (oid)
              UNION SELECT p.polrelid FROM pol JOIN pg_policy p USING (oid))

-- What prevents that all of it comes back as it was, with the relation that it belongs to.
-- cte: lost(line, relid) union
SELECT format('view %s is temporary', name), oid FROM vw WHERE relpersistence = 't'
SELECT format('the row type of view %s has privileges or a comment', name), vw.oid
FROM vw JOIN pg_type y ON y.oid = vw.reltype
WHERE NOT (y.typacl @> acldefault('T', y.typowner) AND y.typacl <@ acldefault('T', y.typowner))
OR {has_comment(y.oid, pg_type)}
SELECT format('%s privilege on view %s was granted by role %s, not by the owner',
    e.privilege_type, vw.name, pg_get_userbyid(e.grantor)), vw.oid
FROM vw CROSS JOIN LATERAL (
  SELECT * FROM aclexplode(vw.relacl)
  UNION ALL SELECT e.* FROM pg_attribute a, aclexplode(a.attacl) e WHERE a.attrelid = vw.oid) e
WHERE e.grantor <> vw.relowner
SELECT format('role %I, the owner of view %s, lacks %s', o.rolname, vw.name, p.what), vw.oid
FROM vw JOIN owner o ON o.oid = vw.relowner CROSS JOIN LATERAL (
  SELECT {needs_schema(o.oid, n.oid, CREATE)} FROM (
    SELECT vw.relnamespace
    UNION SELECT stxnamespace FROM pg_statistic_ext WHERE stxrelid = vw.oid) n(oid)
  UNION ALL
  SELECT format('CREATE on tablespace %I', s.spcname),
    has_tablespace_privilege(o.oid, s.oid, 'CREATE')
  FROM pg_tablespace s JOIN pg_class c ON c.reltablespace = s.oid
  WHERE c.oid = vw.oid OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = vw.oid)
  UNION ALL
  SELECT format('USAGE on type %s', a.atttypid::regtype),
    has_type_privilege(o.oid, a.atttypid, 'USAGE')
  FROM pg_attribute a WHERE a.attrelid = vw.oid AND a.attnum > 0
  UNION ALL
  SELECT {needs_function(o.oid, g.tgfoid)}
  FROM pg_trigger g WHERE g.tgrelid = vw.oid AND NOT g.tgisinternal) p(what, has)
WHERE NOT p.has
SELECT format('%s is owned by role %I, but table %s by role %I',
    {describe_oid(pg_class, r.oid)}, pg_get_userbyid(r.relowner),
    $tables[1]::regclass, o.rolname), r.oid
FROM (SELECT oid, relowner FROM vw UNION SELECT oid, relowner FROM ruled) r
  JOIN owner o ON o.oid <> r.relowner
SELECT format('statistics object %I.%I belongs to another role', n.nspname, s.stxname), vw.oid
FROM vw JOIN pg_statistic_ext s ON s.stxrelid = vw.oid AND s.stxowner <> vw.relowner
  JOIN pg_namespace n ON n.oid = s.stxnamespace
SELECT format('%s depends on %s', {describe(d)}, {describe_object(g)}), g.relid
FROM gone g JOIN pg_depend d ON (d.refclassid, d.refobjid) = (g.classid, g.objid)
WHERE d.deptype <> 'i' AND (d.classid, d.objid) NOT IN (SELECT classid, objid FROM gone)
SELECT line, relid FROM gone JOIN in_extension USING (classid, objid)
SELECT format('%s has a security label',
    pg_describe_object(l.classoid, l.objoid, l.objsubid)), g.relid
FROM gone g JOIN pg_seclabel l ON (l.classoid, l.objoid) = (g.classid, g.objid)
SELECT format('materialized view %s has a replica identity', name), oid
FROM vw WHERE relkind = 'm' AND relreplident <> 'd'
SELECT format('role %I, the owner of table %s, lacks EXECUTE on function %s', o.rolname,
    g.tgrelid::regclass, g.tgfoid::regprocedure), g.tgrelid
FROM trg JOIN pg_trigger g USING (oid) JOIN owner o
  ON NOT has_function_privilege(o.oid, g.tgfoid, 'EXECUTE')

-- Functions and operators, with the arguments that they need; and types, whose names can be called
-- like functions with one argument, which they are then cast to.
-- cte: callable(classid, oid, name, schema, owner, needed) union
SELECT 'pg_proc'::regclass::oid, p.oid, p.proname, p.pronamespace, p.proowner,
  p.pronargs - p.pronargdefaults - (p.provariadic <> 0)::int
FROM pg_proc p
SELECT 'pg_operator'::regclass, o.oid, o.oprname, o.oprnamespace, o.oprowner, 2 FROM pg_operator o
SELECT 'pg_type'::regclass, y.oid, y.typname, y.typnamespace, y.typowner, 1
FROM pg_type y LEFT JOIN pg_class k ON k.oid = y.typrelid
WHERE coalesce(k.relkind, 'c') = 'c'

-- May a role become another one?  A membership may have neither right since 16, but who may grant
-- it has it if he wants to.  Before, that was anybody with CREATEROLE, but to superusers.
-- snippet: can_become(role, other)
CASE WHEN current_setting('server_version_num')::int < 160000
  THEN pg_has_role({role}, {other}, 'MEMBER')
    OR EXISTS (SELECT FROM pg_roles grantor, pg_roles granted
               WHERE (grantor.oid, granted.oid) = ({role}, {other})
               AND grantor.rolcreaterole AND NOT granted.rolsuper)
  ELSE pg_has_role({role}, {other}, 'USAGE, SET, MEMBER WITH ADMIN OPTION') END

-- Roles that cannot become the owner of the tables, whose code must not get its rights; and PUBLIC,
-- if there are any.  pg_database_owner is the owner of the database.
-- cte: untrusted(oid, who, name)
SELECT r.oid, format('role %I', e.rolname), quote_ident(r.rolname)
FROM owner CROSS JOIN pg_database b CROSS JOIN pg_roles r
  JOIN pg_roles e ON e.oid = CASE r.rolname WHEN 'pg_database_owner' THEN b.datdba ELSE r.oid END
WHERE b.datname = current_database() AND NOT {can_become(e.oid, owner.oid)}
UNION ALL
SELECT 0, 'PUBLIC', 'PUBLIC' FROM owner
WHERE EXISTS (SELECT FROM pg_roles r WHERE r.oid >= 16384 AND NOT {can_become(r.oid, owner.oid)})

-- cte: own_target
SELECT t.* FROM target t JOIN pg_class r ON r.oid = t.relid JOIN owner ON owner.oid = r.relowner

-- What is created again from its text, or evaluated: with new IDs; or with rows, as CHECK
-- constraints that are not valid are before a backfill.  Of tables of other owners, nothing is.
-- cte: looked_up(classid, objid)
SELECT * FROM rebuilt UNION SELECT classid, objid FROM gone
UNION
SELECT d.classid, d.objid
FROM own_target t JOIN pg_depend d ON {on_object(d, pg_class, t.relid)}
  LEFT JOIN pg_constraint k ON {is_object(d, pg_constraint, k.oid)}
WHERE d.classid = ANY ('{pg_constraint,pg_statistic_ext}'::regclass[])
AND (t.gets_ids
     AND (d.refobjsubid = t.attnum
          OR d.refobjsubid IN (
            SELECT f.adnum FROM pg_depend g JOIN pg_attrdef f ON f.oid = g.objid
            WHERE g.classid = 'pg_attrdef'::regclass AND {on_column(g, t)}))
     OR k.contype = 'c' AND NOT k.convalidated)
UNION
-- all indexes, as the expressions of a constraint's do not depend on its columns
SELECT 'pg_class'::regclass, i.indexrelid
FROM own_target t JOIN pg_index i ON i.indrelid = t.relid WHERE t.gets_ids
UNION
-- the partition key
SELECT 'pg_class'::regclass, relid FROM own_target WHERE gets_ids

-- ... and the functions and operators that it calls.
-- cte: looking_up(classid, objid, called_class, called)
SELECT o.classid, o.objid, d.refclassid, d.refobjid
FROM looked_up o JOIN pg_depend d ON (d.classid, d.objid) = (o.classid, o.objid)
WHERE d.refclassid = ANY ('{pg_proc,pg_operator}'::regclass[])

-- The types that it has values of, also in its columns and the results of what it calls.
-- cte: type_used(classid, objid, typid)
SELECT o.classid, o.objid, t.typid
FROM looked_up o JOIN pg_depend d ON (d.classid, d.objid, d.objsubid) = (o.classid, o.objid, 0)
  LEFT JOIN pg_attribute a ON d.refclassid = 'pg_class'::regclass
    AND (a.attrelid, a.attnum) = (d.refobjid, d.refobjsubid)
  LEFT JOIN pg_class c ON d.refclassid = 'pg_class'::regclass AND d.refobjsubid = 0
    AND c.oid = d.refobjid
  LEFT JOIN pg_proc p ON {on_object(d, pg_proc, p.oid)}
  LEFT JOIN pg_operator q ON {on_object(d, pg_operator, q.oid)}
  CROSS JOIN LATERAL (SELECT CASE d.refclassid WHEN 'pg_type'::regclass THEN d.refobjid
    ELSE coalesce(a.atttypid, c.reltype, p.prorettype, q.oprresult) END) t(typid)
WHERE t.typid <> 0
UNION
SELECT u.classid, u.objid, e.typid
FROM type_used u JOIN pg_type y ON y.oid = u.typid
  CROSS JOIN LATERAL (VALUES (y.typelem), (y.typbasetype)) e(typid)
WHERE e.typid <> 0

-- Roles that could have their code called with the rights of the owner of the tables, for what, and
-- the statement that prevents that.  What is created again, or evaluated, is read from its text,
-- in which a function is a name.  Who may create in its schema, or owns what could be called, is
-- trusted with that, as anywhere in PostgreSQL.  So nothing has to be locked, or looked at again.
--
-- A call may find another function or operator of the name, whatever the types are: those of arrays
-- and of polymorphic parameters follow the column.  Who owns a type can create casts of it.
--
-- Who owns a schema can have a name in it find something else: a relation that a view, rule or
-- policy names, a type, or a table, which only a superuser may alter whoever owns it.
-- cte: exposed(who, classid, objid, cure) union
SELECT u.who, o.classid, o.objid, format('ALTER SCHEMA %I OWNER TO %I', n.nspname, owner.rolname)
FROM owner CROSS JOIN (
  SELECT 'pg_class'::regclass::oid, t.relid, t.relid
  FROM target t JOIN pg_class k ON k.oid = t.relid
    JOIN pg_roles o ON o.oid = k.relowner AND o.rolsuper
  UNION
  SELECT g.classid, g.objid, d.refobjid FROM gone g JOIN pg_depend d
    ON (d.classid, d.objid, d.refclassid) = (g.classid, g.objid, 'pg_class'::regclass)
  WHERE d.refobjid <> g.relid) o(classid, objid, relid)
  JOIN pg_class k ON k.oid = o.relid
  JOIN pg_namespace n ON n.oid = k.relnamespace JOIN untrusted u ON u.oid = n.nspowner
SELECT u.who, c.classid, c.objid, CASE WHEN u.oid = n.nspowner
  THEN format('ALTER SCHEMA %I OWNER TO %I', n.nspname, owner.rolname)
  ELSE format('REVOKE CREATE ON SCHEMA %I FROM %s', n.nspname, u.name) END
FROM owner CROSS JOIN looking_up c
  JOIN callable f ON (f.classid, f.oid) = (c.called_class, c.called)
  JOIN pg_namespace n ON n.oid = f.schema
  CROSS JOIN LATERAL (SELECT n.nspowner
    UNION SELECT grantee FROM aclexplode(n.nspacl) WHERE privilege_type = 'CREATE') e(role)
  JOIN untrusted u ON u.oid = e.role
SELECT u.who, c.classid, c.objid, format('ALTER %s OWNER TO %I', CASE g.classid
    WHEN 'pg_proc'::regclass THEN format('ROUTINE %s', g.oid::regprocedure)
    WHEN 'pg_operator'::regclass THEN format('OPERATOR %s', g.oid::regoperator)
    ELSE format('TYPE %s', g.oid::regtype) END, owner.rolname)
FROM owner CROSS JOIN looking_up c
  JOIN callable f ON (f.classid, f.oid) = (c.called_class, c.called)
  JOIN callable g ON (g.name, g.schema) = (f.name, f.schema) AND g.owner <> f.owner
    AND (g.classid = f.classid OR f.needed <= 1
         AND (f.classid, g.classid) = ('pg_proc'::regclass, 'pg_type'::regclass))
  JOIN untrusted u ON u.oid = g.owner
SELECT u.who, t.classid, t.objid, format('ALTER %s OWNER TO %I', CASE WHEN u.oid = y.typowner
  THEN format('TYPE %s', y.oid::regtype) ELSE format('SCHEMA %I', n.nspname) END, owner.rolname)
FROM owner CROSS JOIN type_used t JOIN pg_type y ON y.oid = t.typid
  JOIN pg_namespace n ON n.oid = y.typnamespace
  LEFT JOIN pg_class k ON k.oid = y.typrelid JOIN untrusted u ON u.oid IN (y.typowner, n.nspowner)
WHERE coalesce(k.relkind, 'c') = 'c' AND y.typcategory <> 'A'
SELECT u.who, t.classid, t.objid,
  format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, owner.rolname)
FROM owner CROSS JOIN type_used t JOIN pg_cast x ON t.typid IN (x.castsource, x.casttarget)
  JOIN pg_proc p ON p.oid = x.castfunc JOIN untrusted u ON u.oid = p.proowner
WHERE (t.classid, t.objid, p.oid) NOT IN (
  SELECT classid, objid, called FROM looking_up WHERE called_class = 'pg_proc'::regclass)
