-- The commands that take policies, triggers, rules, defaults and rights from a relation, by its oid and its name.
SELECT format('DROP POLICY %I ON %s', polname, {name}) FROM pg_policy WHERE polrelid = {oid}
UNION ALL SELECT format('DROP TRIGGER %I ON %s', tgname, {name}) FROM pg_trigger
WHERE tgrelid = {oid} AND NOT tgisinternal
UNION ALL SELECT format('DROP RULE %I ON %s', rulename, {name}) FROM pg_rewrite WHERE ev_class = {oid}
UNION ALL SELECT format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', {name}, attname)
FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum WHERE adrelid = {oid}
UNION ALL SELECT DISTINCT format('REVOKE ALL ON TABLE %s FROM %s CASCADE', {name},
  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
FROM (SELECT grantee FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner))) WHERE oid = {oid}
  UNION ALL SELECT grantee FROM pg_attribute, aclexplode(attacl) WHERE attrelid = {oid}) AS rights
