-- Settings of the COPY that follows; gives the process that runs it.
SELECT pg_backend_pid() FROM (
    SELECT set_config('quad.stdin_format', $1, true) || set_config('quad.stdin_graph', $2, true)
        || set_config('quad.stdin_base', $3, true)
        || set_config('quad.store', COALESCE($4, current_setting('quad.store')), true)
        || set_config('quad.stdin_compression', $5, true) || set_config('quad.stdin_max_bytes', $6, true)
        || set_config('quad.stdin_one_graph', $7, true)
    OFFSET 0) AS settings
