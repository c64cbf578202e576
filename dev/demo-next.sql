SET quad.store = 'demo';
SET search_path = public, quad;   -- operators on quad.term are in schema quad

-- what is said of Jupiter
SELECT x.* FROM quad.sparql('
  PREFIX : <http://example.org/solar/>
  SELECT ?property ?value WHERE { :Jupiter ?property ?value }') answer,
  jsonb_to_record(answer) AS x(property quad.term, value quad.term);

-- the moons of each planet, counted
SELECT x.planet, x.moons::int8 AS moons FROM quad.sparql('
  PREFIX : <http://example.org/solar/>
  SELECT ?planet (COUNT(?m) AS ?moons) WHERE { ?m a :Moon ; :orbits ?planet }
  GROUP BY ?planet ORDER BY DESC(?moons)') answer,
  jsonb_to_record(answer) AS x(planet quad.term, moons quad.term);

-- how a query runs
SELECT quad.explain('PREFIX : <http://example.org/solar/> SELECT ?m { ?m :orbits :Jupiter }', "analyze" => true);
