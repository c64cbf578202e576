CREATE VIEW quad.load_progress AS
SELECT i.pid,
       d.datname,
       c.relname AS store,
       pg_catalog.rtrim(pg_catalog.convert_from(
           pg_catalog.int8send(i.param11) || pg_catalog.int8send(i.param12) || pg_catalog.int8send(i.param13) ||
           pg_catalog.int8send(i.param14) || pg_catalog.int8send(i.param15) || pg_catalog.int8send(i.param16) ||
           pg_catalog.int8send(i.param17) || pg_catalog.int8send(i.param18) || pg_catalog.int8send(i.param19) ||
           pg_catalog.int8send(i.param20), 'UTF8')) AS path,
       CASE i.param8 WHEN 0 THEN 'reading' WHEN 1 THEN 'writing terms' WHEN 2 THEN 'writing quads' END AS phase,
       i.param1 AS bytes_done,
       NULLIF(i.param2, 0) AS bytes_total,
       i.param9 AS quads
FROM pg_catalog.pg_stat_get_progress_info('COPY') i
LEFT JOIN pg_catalog.pg_database d ON d.oid = i.datid
LEFT JOIN pg_catalog.pg_class c
    ON i.datid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
    AND c.oid = i.param10::pg_catalog.oid
WHERE i.param7 IN (5498867, 5498868);
COMMENT ON VIEW quad.load_progress IS 'loads under way: bytes read (as they are in the file) and quads so far';
GRANT SELECT ON quad.load_progress TO PUBLIC;
