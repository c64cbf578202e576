-- What a quad table refuses, each with its SQLSTATE and message.
begin;
select plan(24);
create table q (s bigint not null, p bigint not null, o bigint not null, g bigint not null) using quad;
insert into q select i, i, i, 0 from generate_series(1, 10) i;

select throws_ok('create index on q (s)', '0A000', null::text, 'secondary index');
select throws_ok('create unique index on q (s, p, o, g)', '0A000', null::text, 'unique index');
select throws_ok('create index on q using hash (s)', '0A000', null::text, 'hash index');
select throws_ok('create index on q using brin (s)', '0A000', null::text, 'brin index');
select throws_ok('create index on q ((s + 1)) where g = 0', '0A000', null::text, 'partial index on an expression');
select throws_ok('alter table q add primary key (s)', '0A000', null::text, 'primary key');
select throws_ok('alter table q add unique (s)', '0A000', null::text, 'unique constraint');
select throws_ok('alter table q add exclude using btree (s with =)', '0A000', null::text, 'exclusion constraint');
select throws_ok('insert into q values (1, 1, 1, 0) on conflict (s) do nothing', null::char(5), null::text, 'on conflict with an arbiter');
select throws_ok('insert into q values (1, 1, 1, 0) on conflict (s, p, o, g) do update set g = 1', null::char(5), null::text, 'on conflict do update');
select throws_ok('cluster q using nothing', null::char(5), null::text, 'cluster');
select throws_ok('select * from q tablesample system (10)', '0A000', null::text, 'tablesample system');
select throws_ok('select * from q tablesample bernoulli (10)', '0A000', null::text, 'tablesample bernoulli');
select throws_ok($$select * from q where ctid = '(0,1)'$$, '0A000', null::text, 'ctid from another statement');
select throws_ok($$delete from q where ctid = '(0,1)'$$, '0A000', null::text, 'delete by ctid');
select throws_ok($$select * from q where ctid > '(0,1)'$$, '0A000', null::text, 'ctid range');
select throws_ok('create publication pub for table q', '0A000', null::text, 'publication');
select throws_ok('alter table q add column x int', '0A000', null::text, 'add column');
select throws_ok('alter table q drop column g', '0A000', null::text, 'drop column');
select throws_ok('alter table q rename column g to graph', '0A000', null::text, 'rename column');
select throws_ok('alter table q alter column g type int', '0A000', null::text, 'change of type');
select throws_ok('alter table q alter column g drop not null', '0A000', null::text, 'drop not null');
select throws_ok($$select quad.verify('pg_class')$$, '42809', null::text, 'verify of another kind of table');
select set_eq('select s from q', 'select generate_series(1::bigint, 10)', 'nothing has changed');

select * from finish();
rollback;
