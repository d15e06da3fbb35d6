-- Functions that might hold keys: those in SQL and PL/pgSQL of the owner of the tables, in their
-- schemas, and their trigger functions elsewhere.  uses is true for those that use a table: they
-- have its name, or rows of it as arguments, are its triggers, or are called by a default, view,
-- rule, policy or constraint.
-- cte: holding
-- with: target
SELECT p.*, n.nspname, l.lanname,
  EXISTS (SELECT FROM target t JOIN pg_class r ON r.oid = t.relid
          WHERE NOT r.relispartition AND strpos(lower(p.prosrc), lower(r.relname)) > 0
          AND p.prosrc ~* {word(r.relname)})
  OR p.oid IN (SELECT g.tgfoid FROM target t JOIN pg_trigger g ON g.tgrelid = t.relid)
  OR p.oid IN (SELECT d.objid FROM target t JOIN pg_class r ON r.oid = t.relid
                 JOIN pg_type y ON y.oid = r.reltype
                 JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass
                   AND d.refobjid IN (y.oid, y.typarray)
               WHERE d.classid = 'pg_proc'::regclass)
  OR EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
             AND d.classid <> 'pg_trigger'::regclass AND d.deptype = 'n') AS uses
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  JOIN pg_language l ON l.oid = p.prolang
WHERE l.lanname IN ('sql', 'plpgsql') AND p.prokind IN ('f', 'p') AND p.prosqlbody IS NULL
AND p.proowner = (SELECT relowner FROM pg_class WHERE oid = $1[1])
AND (p.pronamespace IN (SELECT r.relnamespace FROM target t JOIN pg_class r ON r.oid = t.relid)
     OR p.oid IN (SELECT g.tgfoid FROM target t JOIN pg_trigger g ON g.tgrelid = t.relid))
AND NOT {of_extension(p.oid)} AND NOT {is_temporary(p)}

-- The type of what holds a number: 1 for a smallint or integer, 2 for a bigint, otherwise 0.
-- snippet: number_type(type)
CASE WHEN {type} IN ('int2'::regtype, 'int4'::regtype) THEN 1
  WHEN {type} = 'int8'::regtype THEN 2 ELSE 0 END

-- Each with what pg_get_functiondef() says of it: all before the body, and what is before and
-- behind the arguments and the result; and whether it may be replaced, or dropped and created
-- again.  What who creates a function must be a superuser for stays as it is.
-- name: functions
-- with: holding
SELECT h.oid, h.proname AS name, h.pronamespace AS schema, h.lanname AS language,
  h.prosrc AS source, h.uses::int AS uses,
  CASE h.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END AS kind,
  format('%I.%I', h.nspname, h.proname) AS qualified, h.oid::regprocedure AS signature,
  {number_type(h.prorettype)} AS result_type,
  CASE WHEN h.proretset THEN 'SETOF ' ELSE '' END AS set_of, pg_get_function_result(h.oid) AS result,
  d.tag, left(d.text, d.body) AS definition,
  substr(left(d.text, d.body), 1 + length(concat('CREATE OR REPLACE ',
    CASE h.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END,
    format(' %I.%I(%s)', h.nspname, h.proname, pg_get_function_arguments(h.oid)),
    E'\n RETURNS ' || pg_get_function_result(h.oid)))) AS options,
  (may.replaced AND o.may)::int AS may_replace,
  (may.replaced AND may.dropped AND o.may)::int AS may_drop
FROM holding h
  CROSS JOIN LATERAL (SELECT pg_get_functiondef(h.oid)) f(text)
  CROSS JOIN LATERAL (SELECT f.text, m.tag,
    length(f.text) - length(concat('AS ', m.tag, h.prosrc, m.tag, E'\n'))
    FROM (SELECT substring(f.text FROM E'([$](?:function|procedure)x*[$])\n$')) m(tag)) d(text, tag,
      body)
  CROSS JOIN LATERAL (SELECT
    has_schema_privilege(h.proowner, h.pronamespace, 'CREATE')
    AND has_language_privilege(h.proowner, h.prolang, 'USAGE'),
    NOT EXISTS (SELECT FROM pg_depend d
                WHERE (d.refclassid, d.refobjid) = ('pg_proc'::regclass, h.oid)
                AND NOT EXISTS (SELECT FROM pg_rewrite w JOIN pg_class v ON v.oid = w.ev_class
                                WHERE (d.classid, d.objid) = ('pg_rewrite'::regclass, w.oid)
                                AND w.rulename = '_RETURN' AND v.relowner = h.proowner))
    AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE (d.classid, d.objid, d.deptype) = ('pg_proc'::regclass, h.oid, 'x'))
    AND NOT EXISTS (SELECT FROM pg_seclabel l
                    WHERE (l.classoid, l.objoid) = ('pg_proc'::regclass, h.oid))
    AND NOT EXISTS (SELECT FROM aclexplode(h.proacl) e WHERE e.grantor <> h.proowner)
    ) may(replaced, dropped)
  CROSS JOIN LATERAL (SELECT (SELECT rolsuper FROM pg_roles WHERE oid = h.proowner)
    OR NOT h.proleakproof AND h.prosupport = 0
    AND NOT EXISTS (SELECT FROM unnest(h.proconfig) c
                      LEFT JOIN pg_settings s ON s.name = split_part(c, '=', 1)
                    WHERE s.context IS DISTINCT FROM 'user')) o(may)
ORDER BY h.oid

-- Their arguments, also those that are columns of a result.
-- name: function_arguments
-- with: holding
SELECT h.oid AS function, a.mode, a.name, quote_ident(a.name) AS quoted,
  format_type(a.type, NULL) AS type, a.type AS type_oid, {number_type(a.type)} AS number_type,
  pg_get_function_arg_default(h.oid, a.number::int) AS default
FROM holding h CROSS JOIN LATERAL (
  SELECT t.number, t.type, coalesce(h.proargmodes[t.number], 'i'),
    coalesce(h.proargnames[t.number], '')
  FROM unnest(coalesce(h.proallargtypes, h.proargtypes::oid[])) WITH ORDINALITY t(type, number)
  ) a(number, type, mode, name)
ORDER BY h.oid, a.number

-- The names of the columns that hold keys.
-- name: key_names
-- with: target
SELECT DISTINCT attname FROM target WHERE change <> 'cannot' AND typid <> 'uuid'::regtype

-- What function $12 has beside its definition: statements, with the place of its signature.
-- name: function_properties
WITH f AS (
  SELECT *, CASE prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END AS kind
  FROM pg_proc WHERE oid = $12),
 given(grantee) AS (
  SELECT e.grantee FROM f JOIN pg_default_acl a ON a.defaclobjtype = 'f'
    AND a.defaclrole = f.proowner AND a.defaclnamespace IN (0, f.pronamespace),
    aclexplode(a.defaclacl) e)
SELECT format('REVOKE ALL ON %s ', kind) AS before, format(' FROM %s', {grantee}) AS behind, 1 AS n
FROM f, (SELECT grantee FROM given
         UNION SELECT g FROM f, unnest(ARRAY[0, proowner]) g
         WHERE proacl IS NOT NULL OR EXISTS (SELECT FROM given)) e
UNION ALL
SELECT format('GRANT EXECUTE ON %s ', kind), format(' TO %s%s', {grantee}, {grant_option}), 2
FROM f, aclexplode(coalesce(proacl, acldefault('f', proowner))) e
WHERE proacl IS NOT NULL OR EXISTS (SELECT FROM given)
UNION ALL
SELECT format('COMMENT ON %s ', kind), format(' IS %L', obj_description(oid, 'pg_proc')), 3
FROM f WHERE {has_comment(oid, pg_proc)}
ORDER BY 3, 2
