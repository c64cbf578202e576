WITH typed AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {rdf:type} AND o = {i1}),
     f1 AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:productFeature} AND o = {i2}),
     f2 AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:productFeature} AND o = {i3}),
     f3 AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:productFeature} AND o = {i6}),
     one AS MATERIALIZED (
       SELECT label.s, label.o AS label, t1.o AS textual
       FROM plain.by_s label
       JOIN plain.by_s t1 ON t1.s = label.s AND t1.p = {bsbm:productPropertyTextual1}
       JOIN plain.by_s n ON n.s = label.s AND n.p = {bsbm:productPropertyNumeric1} AND n.o > {n1}
       JOIN typed ON typed.s = label.s JOIN f1 ON f1.s = label.s JOIN f2 ON f2.s = label.s
       WHERE label.p = {rdfs:label}),
     two AS MATERIALIZED (
       SELECT label.s, label.o AS label, t1.o AS textual
       FROM plain.by_s label
       JOIN plain.by_s t1 ON t1.s = label.s AND t1.p = {bsbm:productPropertyTextual1}
       JOIN plain.by_s n ON n.s = label.s AND n.p = {bsbm:productPropertyNumeric2} AND n.o > {n2}
       JOIN typed ON typed.s = label.s JOIN f1 ON f1.s = label.s JOIN f3 ON f3.s = label.s
       WHERE label.p = {rdfs:label})
SELECT * FROM one UNION SELECT * FROM two ORDER BY 2 OFFSET 5 LIMIT 10
