-- Who asks, and what the workbench shows of the server.
SELECT json_build_object(
    'role', current_user,
    'store', current_setting('quad.store'),
    'database', current_database(),
    'postgres', current_setting('server_version'),
    'statistics', pg_has_role('pg_read_all_stats', 'USAGE'))::text
