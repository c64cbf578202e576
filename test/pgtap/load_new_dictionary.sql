-- Loading into a dictionary that has nothing in it when the document begins.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
BEGIN;
SELECT plan(8);
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

-- The document comes first, and holds its ids back to the end.
SET LOCAL maintenance_work_mem = '1GB';
SELECT lives_ok($$INSERT INTO quad.load_stdin
  SELECT '<http://x/t' || n || '> <http://x/after> <http://x/'
         || CASE WHEN n < 80000 THEN 'first' ELSE 'second' END || '> .'
         || CASE WHEN n = 70000 AND quad.decode(quad.encode('<http://x/t1>')) IS NULL THEN 'never' ELSE '' END
         || CASE WHEN n = 70001 AND quad.load_text('<http://x/t2> <http://x/after> <http://x/second> .' || E'\n'
              || (SELECT string_agg('<http://x/u' || m || '> <http://x/after> <http://x/t' || m || '> .', E'\n')
                  FROM generate_series(1, 20000) m), 'nt') < 0
            THEN 'never' ELSE '' END
  FROM generate_series(1, 100000) n$$, 'a function asks for terms of the document, and loads another one');
SELECT is_empty($$SELECT s, p FROM quad.term_ids GROUP BY s, p HAVING count(*) > 1$$, 'each term has one id');
SELECT is((SELECT count(*) FROM quad_stores.main a JOIN quad_stores.main b ON b.s = a.o
           WHERE a.p = quad.find('<http://x/after>') AND b.p = a.p AND b.o = quad.find('<http://x/first>')), 20000::bigint,
          'terms of both documents are the same');
SELECT is((SELECT count(*) FROM quad_stores.main WHERE o = quad.find('<http://x/second>')), 20002::bigint,
          'also those that only the inner one had then');
SELECT * FROM finish();
ROLLBACK;
