-- Locks the relation with a mark against everybody.
DO $lock$ DECLARE r pg_catalog.regclass; BEGIN
  SELECT oid INTO r FROM pg_catalog.pg_class
  WHERE relnamespace = 'quad_stores'::pg_catalog.regnamespace AND reloptions @> ARRAY[{mark}];
  IF FOUND THEN EXECUTE pg_catalog.format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', r); END IF;
END $lock$
