-- The same answer without a node; the variable `setting` is what turns it off.
create function pg_temp.same(query text, name text, setting text default :'setting') returns setof text language plpgsql as $f$
begin
    execute 'create temp table with_node as ' || query;
    perform set_config(setting, 'off', true);
    execute 'create temp table without_node as ' || query;
    perform set_config(setting, 'on', true);
    return next bag_eq('select * from with_node', 'select * from without_node', name);
    drop table with_node, without_node;
end $f$;
