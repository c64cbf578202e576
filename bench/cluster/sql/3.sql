WITH typed AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {rdf:type} AND o = {i1}),
     f1 AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:productFeature} AND o = {i2}),
     f2 AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:productFeature} AND o = {i3})
SELECT label.s, label.o
FROM plain.by_s label
JOIN plain.by_s p1 ON p1.s = label.s
JOIN plain.by_s p3 ON p3.s = label.s
JOIN typed ON typed.s = label.s
JOIN f1 ON f1.s = label.s
LEFT JOIN f2 ON f2.s = label.s
WHERE label.p = {rdfs:label} AND p1.p = {bsbm:productPropertyNumeric1} AND p1.o > {n1}
  AND p3.p = {bsbm:productPropertyNumeric3} AND p3.o < {n2} AND f2.s IS NULL
ORDER BY label.o LIMIT 10
