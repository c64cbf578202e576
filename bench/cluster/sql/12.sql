WITH star AS MATERIALIZED (
       SELECT product.o AS product, vendor.o AS vendor, url.o AS url, price.o AS price, days.o AS days, ends.o AS ends
       FROM plain.by_s product
       JOIN plain.by_s vendor ON vendor.s = product.s AND vendor.p = {bsbm:vendor}
       JOIN plain.by_s url ON url.s = product.s AND url.p = {bsbm:offerWebpage}
       JOIN plain.by_s price ON price.s = product.s AND price.p = {bsbm:price}
       JOIN plain.by_s days ON days.s = product.s AND days.p = {bsbm:deliveryDays}
       JOIN plain.by_s ends ON ends.s = product.s AND ends.p = {bsbm:validTo}
       WHERE product.s = {i1} AND product.p = {bsbm:product}),
     product AS MATERIALIZED (
       SELECT DISTINCT q.s, q.o FROM plain.by_s q JOIN star ON star.product = q.s WHERE q.p = {rdfs:label}),
     vendor AS MATERIALIZED (
       SELECT DISTINCT label.s, label.o AS name, home.o AS home
       FROM plain.by_s label
       JOIN plain.by_s home ON home.s = label.s AND home.p = {foaf:homepage}
       JOIN star ON star.vendor = label.s
       WHERE label.p = {rdfs:label})
SELECT star.*, product.o, vendor.name, vendor.home
FROM star JOIN product ON product.s = star.product JOIN vendor ON vendor.s = star.vendor
