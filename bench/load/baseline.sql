-- The same data the way one would write it in plain SQL: a dictionary of N-Triples terms, a heap table of ids, three
-- covering B-trees. One transaction. `:file` is replaced by the path.
begin;
create table raw (line text not null);
-- Neither byte occurs in N-Triples: every line is one value.
copy raw from ':file' with (format csv, delimiter E'\x01', quote E'\x02');
create temporary table split as
    select s, p, substr(line, length(s) + length(p) + 3, length(line) - length(s) - length(p) - 4) as o
    from (select line, split_part(line, ' ', 1) as s, split_part(line, ' ', 2) as p from raw) parts;
drop table raw;
create table terms (id bigint generated always as identity primary key, term text collate "C" not null);
insert into terms (term) select s from split union select p from split union select o from split;
create unique index terms_term on terms ((md5(term)::uuid)) include (id);
analyze terms;
create table quads (s bigint not null, p bigint not null, o bigint not null, g bigint not null);
insert into quads
    select distinct s.id, p.id, o.id, 0
    from split
    join terms s on s.term = split.s
    join terms p on p.term = split.p
    join terms o on o.term = split.o;
create unique index on quads (s, p, o, g);
create unique index on quads (p, o, s, g);
create unique index on quads (o, s, p, g);
drop table split;
commit;
