WITH review_of AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:reviewFor} AND o = {i1}),
     review AS MATERIALIZED (
       SELECT title.s, title.o AS title, body.o AS body, dated.o AS dated, reviewer.o AS reviewer,
              r1.o AS r1, r2.o AS r2, r3.o AS r3, r4.o AS r4
       FROM plain.by_s title
       JOIN plain.by_s body ON body.s = title.s AND body.p = {rev:text}
       JOIN plain.by_s dated ON dated.s = title.s AND dated.p = {bsbm:reviewDate}
       JOIN plain.by_s reviewer ON reviewer.s = title.s AND reviewer.p = {rev:reviewer}
       LEFT JOIN plain.by_s r1 ON r1.s = title.s AND r1.p = {bsbm:rating1}
       LEFT JOIN plain.by_s r2 ON r2.s = title.s AND r2.p = {bsbm:rating2}
       LEFT JOIN plain.by_s r3 ON r3.s = title.s AND r3.p = {bsbm:rating3}
       LEFT JOIN plain.by_s r4 ON r4.s = title.s AND r4.p = {bsbm:rating4}
       JOIN review_of ON review_of.s = title.s
       WHERE title.p = {dc:title}),
     reviewer AS MATERIALIZED (
       SELECT DISTINCT q.s, q.o AS name FROM plain.by_s q JOIN review ON review.reviewer = q.s WHERE q.p = {foaf:name})
SELECT review.*, reviewer.name FROM review JOIN reviewer ON reviewer.s = review.reviewer
ORDER BY dated DESC LIMIT 20
