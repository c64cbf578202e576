\set i random(1, :keys)
select s, p from keys where i = :i \gset
select o, g from TABLE where s = :s and p = :p;
