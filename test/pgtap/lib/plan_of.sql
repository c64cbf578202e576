-- The plan of a query as text.
create function pg_temp.plan_of(query text, options text default 'costs off') returns text language plpgsql as $f$
declare line text; result text := '';
begin
    for line in execute format('explain (%s) %s', options, query) loop result := result || line || E'\n'; end loop;
    return result;
end $f$;
