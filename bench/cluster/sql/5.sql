WITH origin AS MATERIALIZED (
       SELECT feature.o AS feature, n1.o AS n1, n2.o AS n2
       FROM plain.by_s feature
       JOIN plain.by_s n1 ON n1.s = feature.s AND n1.p = {bsbm:productPropertyNumeric1}
       JOIN plain.by_s n2 ON n2.s = feature.s AND n2.p = {bsbm:productPropertyNumeric2}
       WHERE feature.s = {i1} AND feature.p = {bsbm:productFeature}),
     similar_product AS MATERIALIZED (
       SELECT DISTINCT q.s, origin.n1, origin.n2
       FROM plain.by_o q JOIN origin ON origin.feature = q.o WHERE q.p = {bsbm:productFeature} AND q.s <> {i1})
SELECT DISTINCT label.s, label.o
FROM plain.by_s label
JOIN plain.by_s n1 ON n1.s = label.s AND n1.p = {bsbm:productPropertyNumeric1}
JOIN plain.by_s n2 ON n2.s = label.s AND n2.p = {bsbm:productPropertyNumeric2}
JOIN similar_product t ON t.s = label.s AND n1.o < t.n1 + 120 AND n1.o > t.n1 - 120
  AND n2.o < t.n2 + 170 AND n2.o > t.n2 - 170
WHERE label.p = {rdfs:label}
ORDER BY label.o LIMIT 5
