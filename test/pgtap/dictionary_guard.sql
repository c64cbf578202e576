-- The tables of the dictionary stay where they are, with what is in them: every id of every quad table is read by them.
begin;
select plan(24);
select quad.encode('<http://example.org/kept-and-guarded>') as kept \gset

select throws_ok(sql, '0A000', null, sql) from unnest(array[
    'truncate quad.terms', 'truncate quad.term_ids', 'truncate quad.symbol_tables', 'truncate quad.languages',
    'truncate quad.terms cascade', 'alter table quad.terms rename to words', 'alter table quad.term_ids rename to hashes',
    'alter table quad.terms rename column data to bytes', 'alter table quad.terms rename constraint terms_pkey to terms_key',
    'alter index quad.terms_pkey rename to terms_key', 'alter sequence quad.term_numbers rename to numbers',
    'alter table quad.terms set schema public', 'alter sequence quad.term_numbers set schema public',
    'alter table quad.terms set unlogged', 'alter table quad.terms drop constraint terms_pkey', 'alter table quad.terms set access method quad',
    'alter table quad.terms add column more int', 'alter table quad.languages alter tag type varchar(3)']) sql;

-- What an administrator does to any table.
select lives_ok(sql, sql) from unnest(array['alter table quad.terms set (autovacuum_vacuum_scale_factor = 0.1)', 'alter table quad.terms set tablespace pg_default',
    'alter table quad.terms owner to current_user', 'alter table quad.terms alter first_id set statistics 10', 'alter table quad.terms disable trigger all']) sql;
select is(quad.decode(:kept)::text, 'http://example.org/kept-and-guarded', 'and all terms are there');
select * from finish();
rollback;
