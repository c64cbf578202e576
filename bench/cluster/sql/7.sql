WITH product AS MATERIALIZED (SELECT o AS label FROM plain.by_s WHERE s = {i1} AND p = {rdfs:label}),
     offer_of AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:product} AND o = {i1}),
     offer AS MATERIALIZED (
       SELECT price.s, price.o AS price, vendor.o AS vendor
       FROM plain.by_s price
       JOIN plain.by_s vendor ON vendor.s = price.s AND vendor.p = {bsbm:vendor}
       JOIN plain.by_s publisher ON publisher.s = price.s AND publisher.p = {dc:publisher} AND publisher.o = vendor.o
       JOIN plain.by_s ends ON ends.s = price.s AND ends.p = {bsbm:validTo} AND ends.o > {d1}
       JOIN offer_of ON offer_of.s = price.s
       WHERE price.p = {bsbm:price}),
     vendor AS MATERIALIZED (
       SELECT DISTINCT label.s, label.o AS title
       FROM plain.by_s label
       JOIN plain.by_s country ON country.s = label.s AND country.p = {bsbm:country} AND country.o = {c1}
       JOIN offer ON offer.vendor = label.s
       WHERE label.p = {rdfs:label}),
     review_of AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:reviewFor} AND o = {i1}),
     review AS MATERIALIZED (
       SELECT reviewer.s, reviewer.o AS reviewer, title.o AS title, r1.o AS r1, r2.o AS r2
       FROM plain.by_s reviewer
       JOIN plain.by_s title ON title.s = reviewer.s AND title.p = {dc:title}
       LEFT JOIN plain.by_s r1 ON r1.s = reviewer.s AND r1.p = {bsbm:rating1}
       LEFT JOIN plain.by_s r2 ON r2.s = reviewer.s AND r2.p = {bsbm:rating2}
       JOIN review_of ON review_of.s = reviewer.s
       WHERE reviewer.p = {rev:reviewer}),
     reviewer AS MATERIALIZED (
       SELECT DISTINCT q.s, q.o AS name FROM plain.by_s q JOIN review ON review.reviewer = q.s WHERE q.p = {foaf:name})
SELECT product.label, o.*, r.*
FROM product
LEFT JOIN (SELECT offer.s, offer.price, offer.vendor, vendor.title
           FROM offer JOIN vendor ON vendor.s = offer.vendor) o ON true
LEFT JOIN (SELECT review.*, reviewer.name FROM review JOIN reviewer ON reviewer.s = review.reviewer) r ON true
