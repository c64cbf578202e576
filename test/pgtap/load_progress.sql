-- A load as other sessions see it, and its cancellation. Uses a second connection; the load is rolled back there.
BEGIN;
SELECT plan(13);
CREATE EXTENSION IF NOT EXISTS dblink;
SELECT dblink_connect('loader', format('dbname=%L port=%s host=%L user=%L', current_database(), current_setting('port'),
                                       split_part(current_setting('unix_socket_directories'), ',', 1), current_user));
CREATE TEMP TABLE loader AS SELECT pid FROM dblink('loader', 'SELECT pg_backend_pid()') t (pid int);
CREATE FUNCTION pg_temp.document(lines int) RETURNS text LANGUAGE sql AS
$$SELECT format($q$SELECT quad.load_text((SELECT string_agg(format('<http://progress/%%s> <http://progress/p> "value %%s" .', i, i * 7), E'\n')
                  FROM generate_series(1, %s) i), 'nt', store => 'progress')$q$, lines)$$;
SELECT is(dblink_exec('loader', 'BEGIN'), 'BEGIN', 'a second session');
SELECT is((SELECT count(*) FROM dblink('loader', $$SELECT quad.create_store('progress')$$) t (x text)), 1::bigint, 'makes a store');
SELECT is(dblink_send_query('loader', pg_temp.document(400000)), 1, 'and loads a document');

-- Looks at the progress until `enough` says so, for at most a minute.
CREATE TEMP TABLE seen (LIKE quad.load_progress, cancelled timestamptz);
CREATE FUNCTION pg_temp.watch() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 6000 LOOP
        PERFORM pg_stat_clear_snapshot();
        INSERT INTO seen SELECT p.* FROM quad.load_progress p JOIN loader USING (pid) WHERE p.quads > 0;
        EXIT WHEN FOUND OR dblink_is_busy('loader') = 0;
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
SELECT pg_temp.watch();
SELECT is((SELECT count(*) FROM seen), 1::bigint, 'its progress is seen');
SELECT is(path, '(text)', 'path') FROM seen;
SELECT is(datname, current_database(), 'database') FROM seen;
SELECT ok(phase IN ('reading', 'writing terms', 'writing quads'), 'phase ' || phase) FROM seen;
SELECT cmp_ok(bytes_total, '>', 20000000::bigint, 'size of the document') FROM seen;
SELECT ok(bytes_done BETWEEN 1 AND bytes_total, 'bytes read') FROM seen;

-- Cancellation
SELECT pg_cancel_backend(pid) FROM loader;
UPDATE seen SET cancelled = clock_timestamp();
SELECT is_empty($$SELECT * FROM dblink_get_result('loader', false) t (x bigint)$$, 'the load gives no result');
SELECT alike(dblink_error_message('loader'), '%canceling statement due to user request%', 'it is cancelled');
SELECT cmp_ok(clock_timestamp() - cancelled, '<', interval '30 seconds', 'at once') FROM seen;
SELECT * FROM dblink_get_result('loader') t (x bigint);
SELECT dblink_exec('loader', 'ROLLBACK');
SELECT pg_stat_clear_snapshot();
SELECT is_empty('SELECT p.* FROM quad.load_progress p JOIN loader USING (pid)', 'and its progress is gone');
SELECT dblink_disconnect('loader');

SELECT finish();
ROLLBACK;
