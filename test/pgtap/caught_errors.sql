-- Errors that functions catch within a statement: its rows are written when it ends, and with what it is part of.
begin;
select plan(7);

create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
create temp table taken (n bigint primary key);
create function pg_temp.caught(n bigint) returns bigint language plpgsql as $f$
begin
    insert into taken values (n % 3);
    return n;
exception when unique_violation then
    return n;
end $f$;
-- Functions that catch errors of functions that do.
create function pg_temp.caught_outside(n bigint) returns bigint language plpgsql as $f$
declare known bigint;
begin
    select pg_temp.caught(m) / 0 into known from generate_series(n, n + 5) m;
    return known;
exception when division_by_zero then
    return n;
end $f$;
create function pg_temp.looked(n bigint) returns bigint language plpgsql as $f$
begin
    perform count(*) from q where n / 0 = s;
    return n;
exception when division_by_zero then
    return n;
end $f$;

insert into q select n, 1, pg_temp.caught(n), 0 from generate_series(1, 10) n;
savepoint later;
select is(count(*), 10::bigint, 'all rows are there') from q;
rollback to later;
select is(count(*), 10::bigint, 'and stay when what comes after them is rolled back') from q;

insert into q select n, 2, pg_temp.caught_outside(n), 0 from generate_series(1, 10) n;
savepoint later;
select is(count(*), 20::bigint, 'all rows of nested functions') from q;
rollback to later;
select is(count(*), 20::bigint, 'stay, too') from q;

savepoint outer_one;
savepoint inner_one;
insert into q select n, 3, pg_temp.caught(n), 0 from generate_series(1, 10) n;
release inner_one;
rollback to outer_one;
select is(count(*), 20::bigint, 'rows of a part that is rolled back are gone') from q;

insert into q select n, 4, pg_temp.looked(n), 0 from generate_series(1, 10) n;
savepoint later;
select is(count(*), 30::bigint, 'rows that a function reads while it catches errors') from q;
rollback to later;
select is(count(*), 30::bigint, 'are not undone with them') from q;

select finish();
rollback;
