-- Whether the caller may signal sessions of role $1, by the rule of pg_cancel_backend.
SELECT coalesce((
    SELECT (pg_has_role(r.oid, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE'))
        AND (NOT r.rolsuper OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user))
    FROM pg_roles r WHERE r.rolname = $1), false)
