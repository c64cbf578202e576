WITH star AS MATERIALIZED (
       SELECT label.o AS label, comment.o AS comment, producer.o AS producer, feature.o AS feature,
              t1.o AS t1, t2.o AS t2, t3.o AS t3, n1.o AS n1, n2.o AS n2, t4.o AS t4, t5.o AS t5, n4.o AS n4
       FROM plain.by_s label
       JOIN plain.by_s comment ON comment.s = label.s AND comment.p = {rdfs:comment}
       JOIN plain.by_s producer ON producer.s = label.s AND producer.p = {bsbm:producer}
       JOIN plain.by_s publisher ON publisher.s = label.s AND publisher.p = {dc:publisher} AND publisher.o = producer.o
       JOIN plain.by_s feature ON feature.s = label.s AND feature.p = {bsbm:productFeature}
       JOIN plain.by_s t1 ON t1.s = label.s AND t1.p = {bsbm:productPropertyTextual1}
       JOIN plain.by_s t2 ON t2.s = label.s AND t2.p = {bsbm:productPropertyTextual2}
       JOIN plain.by_s t3 ON t3.s = label.s AND t3.p = {bsbm:productPropertyTextual3}
       JOIN plain.by_s n1 ON n1.s = label.s AND n1.p = {bsbm:productPropertyNumeric1}
       JOIN plain.by_s n2 ON n2.s = label.s AND n2.p = {bsbm:productPropertyNumeric2}
       LEFT JOIN plain.by_s t4 ON t4.s = label.s AND t4.p = {bsbm:productPropertyTextual4}
       LEFT JOIN plain.by_s t5 ON t5.s = label.s AND t5.p = {bsbm:productPropertyTextual5}
       LEFT JOIN plain.by_s n4 ON n4.s = label.s AND n4.p = {bsbm:productPropertyNumeric4}
       WHERE label.s = {i1} AND label.p = {rdfs:label}),
     of_producer AS MATERIALIZED (
       SELECT DISTINCT q.s, q.o FROM plain.by_s q JOIN star ON star.producer = q.s WHERE q.p = {rdfs:label}),
     of_feature AS MATERIALIZED (
       SELECT DISTINCT q.s, q.o FROM plain.by_s q JOIN star ON star.feature = q.s WHERE q.p = {rdfs:label})
SELECT star.*, of_producer.o, of_feature.o
FROM star JOIN of_producer ON of_producer.s = star.producer JOIN of_feature ON of_feature.s = star.feature
