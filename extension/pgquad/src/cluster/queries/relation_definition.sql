-- The commands that a bare relation needs to become like another one, by its oid, each with the role that gives it
-- (empty: the owner). Rights come in the order in which they are kept: who grants on has been granted before.
WITH this AS (SELECT c.*, format('quad_stores.%I', relname) AS name FROM pg_class AS c WHERE oid = {oid}),
rights AS (
  SELECT a.*, '' AS columns
  FROM this, aclexplode(coalesce(relacl, acldefault('r', relowner)))
    WITH ORDINALITY AS a(grantor, grantee, privilege_type, is_grantable, place)
  UNION ALL SELECT a.*, format(' (%I)', attname)
  FROM pg_attribute, aclexplode(attacl) WITH ORDINALITY AS a(grantor, grantee, privilege_type, is_grantable, place)
  WHERE attrelid = {oid} AND NOT attisdropped)
SELECT role, command FROM (
  SELECT CASE WHEN grantor = relowner THEN '' ELSE pg_get_userbyid(grantor)::text END AS role,
    format('GRANT %s%s ON TABLE %s TO %s%s', privilege_type, columns, name,
      CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
      CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS command,
    CASE WHEN grantor = relowner THEN 1 ELSE 2 END AS step, place
  FROM this, rights
  UNION ALL SELECT '', format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s', polname, name,
    CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
    CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
      ELSE 'ALL' END,
    (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END, ', ')
      FROM unnest(polroles) AS r),
    coalesce(' USING (' || pg_get_expr(polqual, polrelid) || ')', ''),
    coalesce(' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')', '')), 3, 0
  FROM this, pg_policy WHERE polrelid = {oid}
  UNION ALL SELECT '', pg_get_triggerdef(t.oid), 4, 0 FROM pg_trigger AS t WHERE tgrelid = {oid} AND NOT tgisinternal
  UNION ALL SELECT '', format('ALTER TABLE %s %s ROW LEVEL SECURITY, %s ROW LEVEL SECURITY', name,
    CASE WHEN relrowsecurity THEN 'ENABLE' ELSE 'DISABLE' END,
    CASE WHEN relforcerowsecurity THEN 'FORCE' ELSE 'NO FORCE' END), 5, 0
  FROM this
  UNION ALL SELECT '', format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', name, attname,
    pg_get_expr(adbin, adrelid)), 6, 0
  FROM this, pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE adrelid = {oid}
  UNION ALL SELECT '', pg_get_ruledef(oid), 7, 0 FROM pg_rewrite WHERE ev_class = {oid}
  UNION ALL SELECT '', format('ALTER TABLE %s %s %s %I', name,
    CASE enabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, kind, which), 8, 0
  FROM this, (
    SELECT 'TRIGGER' AS kind, tgname AS which, tgenabled AS enabled FROM pg_trigger
    WHERE tgrelid = {oid} AND NOT tgisinternal
    UNION ALL SELECT 'RULE', rulename, ev_enabled FROM pg_rewrite WHERE ev_class = {oid}) AS switched
  WHERE enabled <> 'O'
  UNION ALL SELECT '', format('COMMENT ON TABLE %s IS %L', name, obj_description({oid}, 'pg_class')), 9, 0 FROM this
) AS all_of_it ORDER BY step, place, command
