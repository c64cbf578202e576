SET quad.store = 'demo';
SET search_path = public, quad;   -- operators on quad.term are in schema quad

-- what is said of Jupiter
SELECT * FROM quad.query('
  PREFIX : <http://example.org/solar/>
  SELECT ?property ?value WHERE { :Jupiter ?property ?value }') AS t(property quad.term, value quad.term);

-- the moons of each planet, counted
SELECT * FROM quad.query('
  PREFIX : <http://example.org/solar/>
  SELECT ?planet (COUNT(?m) AS ?moons) WHERE { ?m a :Moon ; :orbits ?planet }
  GROUP BY ?planet ORDER BY DESC(?moons)') AS t(planet quad.term, moons bigint);

-- how a query runs
SELECT quad.explain('PREFIX : <http://example.org/solar/> SELECT ?m { ?m :orbits :Jupiter }', "analyze" => true);
