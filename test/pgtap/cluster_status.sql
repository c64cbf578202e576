-- What a server that is in no cluster tells of itself, and whom.
begin;
select plan(22);

create temp table lines as select n, line from quad.cluster_status(0.3) with ordinality x (line, n);
select is((select count(*) from lines), 2::bigint, 'a line for all nodes and one for this one');
select matches((select line from lines where n = 1),
    '^Cluster 1 node, \d+(\.\d)? s\.  0 m/s  0 KB/s  \d+% cpu  \d+% read  \d+% clw  sessions \d+r \d+w \d+i  buffers [\d,]+  [\d,]+ d  [\d,]+ w$', 'the sum');
select matches((select line from lines where n = 2), '^node 1 localhost:' || current_setting('port') || ': 0 m/s  ', 'the node');
select is((select substr(line, position('m/s' in line)) from lines where n = 1), (select substr(line, position('m/s' in line)) from lines where n = 2), 'the sum is that of the node');

-- This session is not one of those that it counts; another one is.
create extension if not exists dblink;
-- What other sessions do once they have come to it: on a busy machine one that ends or begins takes a while.
create function pg_temp.until(expected text) returns text language plpgsql as $f$
declare found text;
begin
    for turn in 1 .. 300 loop
        select format('%s running, %s blocked', running, blocked) into found from quad.node_status(0.2);
        exit when found = expected;
    end loop;
    return found;
end $f$;
select is(pg_temp.until('0 running, 0 blocked'), '0 running, 0 blocked', 'nobody is at work');
create function pg_temp.connect(name text) returns text language sql as
$$select dblink_connect(name, format('dbname=%L port=%s host=%L user=%L', current_database(), current_setting('port'),
    split_part(current_setting('unix_socket_directories'), ',', 1), current_user))$$;
select pg_temp.connect('busy');
create temp table idle as select idle from quad.node_status(0.01);
select cmp_ok((select idle from idle), '>=', 1::bigint, 'an idle session');
select is(dblink_send_query('busy', 'select count(*) from generate_series(1, 40000) a, generate_series(1, 40000) b'), 1, 'a session that counts');
select pg_temp.until('1 running, 0 blocked');
create temp table watched as select * from quad.node_status(1);
select is((select running from watched), 1::bigint, 'is running');
select cmp_ok((select active from watched), '>=', 0.5::float8, 'is at work');
-- Other suites may use the processors as well.
select cmp_ok((select processors from watched), '>', 0.02::float8, 'uses a processor');
select is((select idle from watched), (select idle - 1 from idle), 'one less is idle');
select dblink_cancel_query('busy');
select dblink_disconnect('busy');
select pg_temp.connect('sleeper');
select dblink_send_query('sleeper', 'select pg_sleep(60)');
select is(pg_temp.until('0 running, 1 blocked'), '0 running, 1 blocked', 'a session that sleeps waits');
select dblink_cancel_query('sleeper');
select dblink_disconnect('sleeper');
select ok((select buffers between 1 and pg_size_bytes(current_setting('shared_buffers')) / 8192 and dirty between 0 and buffers and writing between 0 and dirty
    from quad.node_status(0.01)), 'buffers');

-- Counters
select results_eq('select kind from quad.cluster_stats order by kind', $$values ('dictionary'), ('pull'), ('push')$$, 'a row for each kind');
select is((select count(*) from quad.cluster_stats where node <> 1 or messages_sent <> 0 or average_message_bytes is not null or waited_ms <> 0), 0::bigint, 'with zeros');
create temp table before as select max(since) as since from quad.cluster_stats;
select is((select count(*) from quad.cluster_stats_reset()), 3::bigint, 'a reset gives what there was');
select cmp_ok((select max(since) from quad.cluster_stats), '>', (select since from before), 'and begins anew');

-- Mistakes
select throws_ok('select quad.cluster_status(0)', '22023', 'cannot watch the cluster for 0 seconds', 'no time');
select throws_ok($$select quad.cluster_status('NaN')$$, '22023', null, 'not a number');
select throws_ok($$select quad.cluster_status(1e9)$$, '22023', null, 'for ever');

-- Rights
create role quad_watcher; grant pg_monitor to quad_watcher; create role quad_nobody;
grant usage on schema quad to quad_watcher, quad_nobody;
set local role quad_watcher;
select is((select count(*) from quad.cluster_status(0.01)) + (select count(*) from quad.cluster_stats) + (select count(*) from quad.cluster_stats_reset()),
    8::bigint, 'pg_monitor may look');
set local role quad_nobody;
create function pg_temp.refused() returns setof text language plpgsql as $$
declare call text;
begin
    foreach call in array array['quad.cluster_status(1)', 'quad.node_status(1)', 'quad.cluster_stats', 'quad.cluster_stats_reset()', 'quad.node_stats(true)', 'quad.all_node_stats(false)'] loop
        begin
            execute 'select * from ' || call;
            return next call;
        exception when insufficient_privilege then null;
        end;
    end loop;
end $$;
select is_empty('select pg_temp.refused()', 'others may not');
reset role;
select * from finish();
rollback;
