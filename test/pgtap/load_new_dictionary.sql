-- Loading into a dictionary that has nothing in it when the document begins.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
BEGIN;
SELECT plan(4);
DROP EXTENSION pgquad CASCADE;
CREATE EXTENSION pgquad;
-- Its share holds few terms, so that they are merged into the table several times.
SET LOCAL maintenance_work_mem = '4MB';

-- A function that makes the lines adds a term while the document is under way.
SELECT lives_ok($$INSERT INTO quad.load_stdin
  SELECT '<http://x/s' || n || '> <http://x/while> <http://x/' || CASE WHEN n < 80000 THEN 'before' ELSE 'meanwhile' END || '> .'
         || CASE WHEN n = 70000 AND quad.encode('<http://x/meanwhile>') < 0 THEN 'never' ELSE '' END
  FROM generate_series(1, 100000) n$$, 'a function adds a term while a document is loaded');
SELECT is((SELECT count(*) FROM quad_stores.main WHERE o = quad.find('<http://x/meanwhile>')), 20001::bigint, 'the term has one id');
SELECT is((SELECT count(DISTINCT quad.decode(s)::text) FROM quad_stores.main), 100000::bigint, 'and so have all others');
SELECT is_empty($$SELECT quad.verify('quad_stores.main')$$, 'the store is sound');
SELECT * FROM finish();
ROLLBACK;
