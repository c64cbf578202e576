-- The roles ($1) whose requests the caller may see, by PostgreSQL's own rule. Also loads and other sessions, as
-- PostgreSQL shows them. Sessions that nodes open to each other work on a request that is shown already.
SELECT json_build_object(
    'visible', (
        SELECT coalesce(json_agg(coalesce(pg_has_role(r.oid, 'USAGE'), false)
            OR pg_has_role('pg_read_all_stats', 'USAGE') ORDER BY n), '[]')
        FROM unnest($1::text[]) WITH ORDINALITY AS asked(role, n)
        LEFT JOIN pg_roles r ON r.rolname = asked.role),
    'loads', (
        SELECT coalesce(json_agg(l), '[]')
        FROM quad.load_progress l
        WHERE l.datname = current_database()),
    'sessions', (
        SELECT coalesce(json_agg(json_build_object(
            'pid', a.pid,
            'role', a.usename,
            'client', a.application_name,
            'seconds', extract(epoch FROM clock_timestamp() - a.query_start),
            'text', left(a.query, 4096),
            'waits', a.wait_event) ORDER BY a.query_start), '[]')
        FROM pg_stat_activity a
        WHERE a.state = 'active' AND a.backend_type = 'client backend' AND a.datname = current_database()
            AND a.pid <> pg_backend_pid() AND a.application_name <> 'pgquad-server'
            AND NOT a.application_name ~ '^citus_(internal|run_command) '
            AND NOT (a.application_name = 'pgquad' AND a.query ~ '^(SELECT|CALL) quad\.cluster_')))::text
