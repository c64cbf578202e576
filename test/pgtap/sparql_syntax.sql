-- Syntax errors of SPARQL: which token cannot stand where it does, what could, and the line with a caret.
begin;
select plan(12);

create function pg_temp.said(call text) returns table (code text, message text, detail text, hint text) language plpgsql as $f$
begin
    execute call;
exception when others then
    get stacked diagnostics code = returned_sqlstate, message = message_text, detail = pg_exception_detail,
        hint = pg_exception_hint;
    return next;
end $f$;
create temporary table said as select * from pg_temp.said($$ select quad.sparql(E'SELECT ?name\nWHERE { ?p ?name } ORDER BY ?p') $$);
select is((select code from said), '42601', 'a syntax error');
select is((select message from said), 'SPARQL syntax error at line 2, column 18: unexpected "}", expected one of a blank node, a number, a string, '
    'a variable, an IRI, "(", "[", "false", "true"', 'that names the token and all that could stand there');
select is((select detail from said), E'Line 2:\n  WHERE { ?p ?name } ORDER BY ?p\n                   ^', 'and shows the place');
select matches((select message from pg_temp.said($$ select quad.ask('ASK { ?s ?p ?o OPTINAL { ?s ?p ?q } }') $$)),
    'column 16: unexpected "OPTINAL", expected one of .*OPTIONAL', 'a keyword');
select matches((select message from pg_temp.said($$ select quad.ask('ASK { ?s ?p ?o ') $$)), 'column 15: unexpected end of the text, expected one of .*"}"', 'the end of the text');
select is((select message from pg_temp.said($$ select quad.ask('ASK { ?s ?p "x }') $$)), 'SPARQL syntax error at line 1, column 13: a string that does not end', 'a string');
select matches((select message from pg_temp.said($$ select quad.update('INSERT DATA { <a:a> <a:b> } ') $$)), 'column 27: unexpected "}"', 'updates, too');
select matches((select message from pg_temp.said($$ select * from quad.query('SELECT ?s { ?s ?p }') as t(s text) $$)), 'column 19: unexpected "}"', 'a query that the planner reads');
select is((select detail from pg_temp.said($$ select quad.sparql('SELECT ?x ?x { ?x ?y ?z }') $$)), '', 'no place where none is certain');

-- A name that stands for no IRI.
create temporary table relative as select * from pg_temp.said($$ select quad.ask('ASK { ?s <p> 1 }') $$);
select is((select code || ' ' || message from relative), '42601 IRI <p> at line 1, column 10 is relative, and there is no base IRI', 'a relative IRI');
select matches((select hint from relative), 'BASE <http://example.org/>', 'and what to do');
select is((select count(*) from pg_temp.said($$ select quad.ask('ASK { ?s <p> 1 }', base => 'http://example.org/') $$)), 0::bigint, 'not with a base');

select * from finish();
rollback;
