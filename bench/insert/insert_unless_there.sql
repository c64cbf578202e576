\set s random(:low, :high)
\set p random(1, 40)
\set o random(:low, :high)
insert into TABLE (s, p, o, g) values (:s, :p, :o, 0) on conflict do nothing;
