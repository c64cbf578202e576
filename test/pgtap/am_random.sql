-- Random statements on quad tables of several page limits and orders, and on a heap table that stands for the set.
-- After every few statements both hold the same and quad.verify finds nothing. Commits in between, so that vacuum and
-- old versions have their turn.
\set ON_ERROR_STOP 1
select plan(5);
create table if not exists model (s bigint not null, p bigint not null, o bigint not null, g bigint not null, primary key (s, p, o, g));
create table steps (n serial, statement text);

-- A random statement on table %1$I; the same text works on both tables, apart from inserts into the model, which skip what is there.
create function random_statement(max_subject int) returns text[] language plpgsql as $$
declare
    kind float8 := random();
    subject bigint := (random() * max_subject)::bigint - max_subject / 2;
    predicate bigint := (random() * 5)::bigint;
    object bigint := (random() * 50)::bigint - 25;
    rows int := (array[1, 1, 2, 10, 300])[1 + floor(random() * 5)::int];
    seed text := md5(random()::text);
    source text;
    condition text;
begin
    condition := (array[
        format('s = %s', subject), format('p = %s and o = %s', predicate, object), format('o = %s', object),
        format('s between %s and %s', subject, subject + 5), format('p = %s and s > %s', predicate, subject),
        format('s = %s and p = %s', subject, predicate)])[1 + floor(random() * 6)::int];
    if kind < 0.5 then
        source := format($q$select distinct %s + (i * 7) %% %s, ('x' || substr(md5(%L || i), 1, 2))::bit(8)::int %% 6,
            ('x' || substr(md5(%L || i), 3, 2))::bit(8)::int %% 50 - 25, i %% 2 from generate_series(1, %s) i$q$, subject, max_subject, seed, seed, rows);
        return array[format('insert into %%1$I %s', replace(source, '%', '%%')), format('insert into model %s on conflict do nothing', source)];
    elsif kind < 0.8 then
        return array[format('delete from %%1$I where %s', condition), format('delete from model where %s', condition)];
    elsif kind < 0.9 then
        -- An update can make quads equal: the set keeps one.
        return array[format('update %%1$I set o = 0, g = 1 where %s', condition),
            format('with gone as (delete from model where %s returning *) insert into model select distinct s, p, 0, 1 from gone on conflict do nothing', condition)];
    else
        return array[format('update %%1$I set g = 1 - g where %s', condition), format($q$with gone as (delete from model where %1$s returning *)
            insert into model select distinct s, p, o, 1 - g from gone on conflict do nothing$q$, condition)];
    end if;
end $$;

create procedure play(target text, rounds int, max_subject int, inout complaint text default null) language plpgsql as $$
declare
    statements text[];
    differences text;
    undo boolean;
begin
    truncate model;
    for round in 1..rounds loop
        truncate steps;
        for i in 1..8 loop
            statements := random_statement(max_subject);
            undo := random() < 0.2;
            insert into steps (statement) values (case when undo then 'undone: ' else '' end || format(statements[1], target));
            begin
                execute format(statements[1], target);
                if undo then raise exception 'undo'; end if;
                -- The update form of the model deletes first and inserts afterwards, in one statement that sees the old rows.
                execute statements[2];
            exception when raise_exception then null;
            end;
        end loop;
        execute format($q$select string_agg(d, ' ') from (select '+' || x::text as d from (table %1$I except all table model) x
            union all select '-' || x::text from (table model except all table %1$I) x) y$q$, target) into differences;
        if differences is not null then
            complaint := format('round %s: %s after %s', round, left(differences, 500), (select string_agg(statement, '; ' order by n) from steps));
            return;
        end if;
        execute format('select string_agg(v::text, ''; '') from quad.verify(%L) v', target) into complaint;
        if complaint is not null then
            complaint := format('round %s: %s after %s', round, complaint, (select string_agg(statement, '; ' order by n) from steps));
            return;
        end if;
        commit;
    end loop;
    complaint := '';
end $$;

create function make(target text, orders text, leaf_quads text, inner_fanout text) returns void language plpgsql as $$
begin
    perform set_config('quad.orders', orders, true), set_config('quad.leaf_quads', leaf_quads, true), set_config('quad.inner_fanout', inner_fanout, true);
    execute format('create table %I (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad', target);
end $$;

select setseed(coalesce(nullif(current_setting('pgquad.seed', true), '')::float8, 0.5));
select make('r_default', 'spog,posg,ospg', '0', '0');
select make('r_tiny', 'spog,posg,ospg', '4', '4');
select make('r_one', 'gops', '16', '0');
select make('r_six', 'spog,sopg,posg,psog,ospg,opsg', '64,8,0,4,16,32', '0,4,8,16,32,64');

call play('r_default', 40, 400) \gset a_
select is(:'a_complaint'::text, '', 'default page limits');
call play('r_tiny', 40, 400) \gset b_
select is(:'b_complaint'::text, '', 'four quads a leaf, four children a page');
call play('r_one', 40, 60) \gset c_
select is(:'c_complaint'::text, '', 'one order');
call play('r_six', 25, 2000) \gset d_
select is(:'d_complaint'::text, '', 'six orders with page limits of their own');
vacuum r_default, r_tiny, r_one, r_six;
select is_empty($$select quad.verify('r_default') union all select quad.verify('r_tiny') union all select quad.verify('r_one') union all select quad.verify('r_six')$$,
    'verify after vacuum');
drop table r_default, r_tiny, r_one, r_six, model, steps;
drop function random_statement, make;
drop procedure play;
select * from finish();
