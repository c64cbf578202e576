WITH x AS MATERIALIZED (SELECT o FROM plain.by_s WHERE s = {i1} AND p = {rev:reviewer})
SELECT q.s, q.p, q.o FROM plain.by_s q JOIN x ON x.o = q.s
