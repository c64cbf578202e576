-- DELETE, UPDATE and MERGE of what a Quad Join finds: its rows have the identity that the change needs.
begin;
select plan(56);

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, 1, i + 1, 0 from generate_series(1, 3000) i;
insert into q select i, 2, i % 10, i % 2 from generate_series(1, 3000) i;
insert into q select i, 3, i % 7, 0 from generate_series(1, 3000, 3) i;
insert into q select i, 4, quad.int_id(i % 50), 0 from generate_series(1, 3000, 3) i;
analyze q;
create table names (id bigint, n integer);
insert into names select case when i % 10 = 0 then null else i * 7 end, i from generate_series(1, 300) i;
-- Each of these meets quads a second time.
insert into names select id, n + 1000 from names where n % 3 = 0;
analyze names;

\ir lib/plan_of.sql

-- What a change leaves, and what it returns, with the node and without.
create function pg_temp.changes(change text, name text) returns setof text language plpgsql as $f$
declare setting text; state jsonb; states jsonb := '{}';
begin
    foreach setting in array '{on,off}'::text[] loop
        begin
            perform set_config('quad.enable_quad_join', setting, true);
            execute 'create temp table returned as with c as (' || change || ' returning q.s, q.p, q.o, q.g) select * from c';
            execute 'create temp table left_ as select * from q';
            state := jsonb_build_array(
                (select jsonb_agg(r order by r.*::text) from returned r), (select jsonb_agg(l order by l.*::text) from left_ l));
            raise exception using errcode = 'P0099';
        exception when sqlstate 'P0099' then
            -- Variables keep what the savepoint has undone.
            states := states || jsonb_build_object(setting, state);
        end;
    end loop;
    perform set_config('quad.enable_quad_join', 'on', true);
    return next ok(jsonb_array_length(states -> 'off' -> 0) > 0, name || ': changes something');
    return next is(md5((states -> 'on')::text), md5((states -> 'off')::text), name || ': the same changes');
end $f$;

create table shapes (name text, change text, pattern text default 'Quad Join.*Pattern: ');
insert into shapes values
    ('rows of a table', 'delete from q using names n where q.s = n.id'),
    ('rows of a subquery', 'delete from q using (select distinct id from names) n where q.s = n.id and q.p = 1'),
    ('all columns', 'delete from q using (select s, p, o, g from q where p = 3 offset 0) r where q.s = r.s and q.p = r.p and q.o = r.o and q.g = r.g'),
    ('patterns', 'delete from q using q a, q b where q.s = a.o and a.p = 1 and b.s = a.s and b.p = 3'),
    ('patterns and a table', 'delete from q using q a, names n where q.s = a.o and a.p = 1 and a.s = n.id'),
    ('optional', 'delete from q using q a left join q b on b.s = a.o and b.p = 3 where q.s = a.o and a.p = 1 and q.p = 1 and (b.o is null or b.o > 2)'),
    ('exists', 'delete from q where p = 1 and exists (select from q b where b.s = q.o and b.p = 3)'),
    ('not exists', 'delete from q where p = 1 and not exists (select from q b where b.s = q.o and b.p = 3)'),
    ('exists, of patterns', 'delete from q using q a where q.s = a.o and a.p = 1 and exists (select from q b, q c where b.s = a.s and b.p = 3 and c.s = b.o)'),
    ('in', 'delete from q where s in (select o from q where p = 1) and p = 3'),
    ('an update', 'update q set o = q.o + 5 from names n where q.s = n.id and q.p = 3'),
    ('an update by patterns', 'update q set g = a.o from q a where q.s = a.o and a.p = 1 and q.p = 3'),
    ('an update that leaves the quad', 'update q set g = q.g from names n where q.s = n.id and q.p = 3'),
    ('a condition across', 'delete from q using names n where q.s = n.id and q.o + n.n > 100'),
    ('a filter on ids', 'delete from q where quad.lt(o, quad.int_id(2))'),
    ('an update by a filter on ids', 'update q set g = 7 where quad.lt(o, quad.int_id(2))'),
    ('conditions of both', 'delete from q using names n where q.s = n.id and (q.g = 0 or n.n < 50)');
select matches(pg_temp.plan_of(change), pattern, 'a Quad Join: ' || name) from shapes;
select pg_temp.changes(change, name) from shapes;

-- MERGE returns nothing.
create function pg_temp.merges(change text, setting text) returns jsonb language plpgsql as $f$
declare state jsonb;
begin
    perform set_config('quad.enable_quad_join', setting, true);
    execute change;
    state := (select jsonb_agg(q order by q.*::text) from q);
    raise exception using errcode = 'P0099';
exception when sqlstate 'P0099' then return state;
end $f$;
create temp table merges (name text, change text);
insert into merges values
    ('MERGE', 'merge into q using (select distinct id, n % 3 as k from names where n <= 300) n on q.s = n.id and q.p = 3
        when matched and k = 0 then delete when matched and k = 1 then update set g = 9 when not matched and id is not null then insert values (id, 5, 5, 5)'),
    ('MERGE by patterns', 'merge into q using (select a.s, b.o from q a join q b on b.s = a.o and b.p = 3 where a.p = 1) n on q.s = n.s and q.o = n.o when matched then delete when not matched then insert values (n.s, 7, n.o, 0)');
select matches(pg_temp.plan_of(change), 'Quad Join.*Pattern: ', 'a Quad Join: ' || name) from merges;
select is(md5(pg_temp.merges(change, 'on')::text), md5(pg_temp.merges(change, 'off')::text), name || ': the same changes') from merges;

-- The identity of a row is what a row-level trigger is given.
create table log (s bigint, o bigint);
create function note() returns trigger language plpgsql as $f$ begin insert into log values (old.s, old.o); return old; end $f$;
create trigger note before delete on q for each row execute function note();
delete from q using q a where q.s = a.o and a.p = 1 and q.p = 3;
select results_eq('select count(*), min(s), max(s), sum(o) from log', $$select count(*), min(s), max(s), sum(o) from (select i::bigint as s, i::bigint % 7 as o from generate_series(4, 3000, 3) i) x$$, 'row triggers');

select * from finish();
rollback;
