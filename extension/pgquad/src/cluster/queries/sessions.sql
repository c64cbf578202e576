-- Sessions by what they do: running, waiting, idle, and reading from files; without those that only watch.
SELECT count(*) FILTER (WHERE state = 'active' AND wait_event IS NULL),
  count(*) FILTER (WHERE state = 'active' AND wait_event IS NOT NULL),
  count(*) FILTER (WHERE state <> 'active'),
  count(*) FILTER (WHERE state = 'active' AND wait_event_type = 'IO' AND wait_event LIKE '%Read')
FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend' AND pid <> ALL ('{{{watchers}}}')
