-- The solutions of a SPARQL query.
create function pg_temp.answer(query text) returns setof jsonb language sql as $f$
    select jsonb_array_elements(quad.sparql_json('PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ' || query)::jsonb -> 'results' -> 'bindings')
$f$;
-- The same solutions, as a bag, without a node; the variable `setting` is what turns it off.
create function pg_temp.same_answer(query text, name text, setting text default :'setting') returns text language plpgsql as $f$
declare expected jsonb[];
begin
    perform set_config(setting, 'off', true);
    expected := (select array_agg(row order by row) from pg_temp.answer(query) row);
    perform set_config(setting, 'on', true);
    return is((select array_agg(row order by row) from pg_temp.answer(query) row), expected, name);
end $f$;
