-- Prefixes that are not declared: what is wrong, where, and what to write.
begin;
select plan(7);

create function pg_temp.said(call text) returns table (code text, message text, detail text, hint text) language plpgsql as $f$
begin
    execute call;
exception when others then
    get stacked diagnostics code = returned_sqlstate, message = message_text, detail = pg_exception_detail, hint = pg_exception_hint;
    return next;
end $f$;
create temporary table said as
    select * from pg_temp.said($$ select quad.sparql(E'SELECT ?name\nWHERE { ?p foaf:name ?name }') $$);
select is((select code from said), '42601', 'a syntax error');
select is((select message from said), 'prefix "foaf:" at line 2, column 12 is not declared', 'that names prefix and place');
select is((select detail from said), E'Line 2:\n  WHERE { ?p foaf:name ?name }\n             ^', 'and shows the place');
select is((select hint from said), 'Add the declaration at the beginning: PREFIX foaf: <http://xmlns.com/foaf/0.1/>', 'and gives the declaration');
select is((select hint from pg_temp.said($$ select quad.ask('ASK { ?s my:own 1 }') $$)), 'Declare it at the beginning: PREFIX my: <...>',
    'of a prefix that is not well known: how it is done');
select is((select message from pg_temp.said($$ select quad.update('INSERT DATA { <http://x/s> ex:p 1 }') $$)),
    'prefix "ex:" at line 1, column 28 is not declared', 'updates, too');
select is((select count(*) from quad.sparql('PREFIX foaf: <http://xmlns.com/foaf/0.1/> SELECT ?n { ?p foaf:name ?n } LIMIT 1')), 0::bigint, 'declared, it is right');

select * from finish();
rollback;
