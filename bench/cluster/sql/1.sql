WITH typed AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {rdf:type} AND o = {i1}),
     f1 AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:productFeature} AND o = {i2}),
     f2 AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:productFeature} AND o = {i3})
SELECT DISTINCT label.s, label.o
FROM plain.by_s label
JOIN plain.by_s n ON n.s = label.s
JOIN typed ON typed.s = label.s
JOIN f1 ON f1.s = label.s
JOIN f2 ON f2.s = label.s
WHERE label.p = {rdfs:label} AND n.p = {bsbm:productPropertyNumeric1} AND n.o > {n1}
ORDER BY label.o LIMIT 10
