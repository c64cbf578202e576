WITH forward AS MATERIALIZED (SELECT p, o FROM plain.by_s WHERE s = {i1}),
     backward AS MATERIALIZED (SELECT p, s FROM plain.by_o WHERE o = {i1})
SELECT p, o, NULL AS s FROM forward UNION ALL SELECT p, NULL, s FROM backward
