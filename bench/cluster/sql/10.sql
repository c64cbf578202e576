WITH offer_of AS MATERIALIZED (SELECT s FROM plain.by_o WHERE p = {bsbm:product} AND o = {i1}),
     offer AS MATERIALIZED (
       SELECT price.s, price.o AS price, vendor.o AS vendor
       FROM plain.by_s price
       JOIN plain.by_s vendor ON vendor.s = price.s AND vendor.p = {bsbm:vendor}
       JOIN plain.by_s publisher ON publisher.s = price.s AND publisher.p = {dc:publisher} AND publisher.o = vendor.o
       JOIN plain.by_s days ON days.s = price.s AND days.p = {bsbm:deliveryDays} AND days.o <= {n1}
       JOIN plain.by_s ends ON ends.s = price.s AND ends.p = {bsbm:validTo} AND ends.o > {d1}
       JOIN offer_of ON offer_of.s = price.s
       WHERE price.p = {bsbm:price}),
     country AS MATERIALIZED (
       SELECT DISTINCT q.s FROM plain.by_s q JOIN offer ON offer.vendor = q.s WHERE q.p = {bsbm:country} AND q.o = {c1})
SELECT DISTINCT offer.s, offer.price FROM offer JOIN country ON country.s = offer.vendor ORDER BY 2 LIMIT 10
