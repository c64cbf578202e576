#!/usr/bin/env bash
# Loads the small data set of the repository (and the Berlin benchmark's, where ../shared is there) into stores of their
# own and asks questions in SPARQL.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$PGQUAD_ROOT"
find_state_dir
use_private_server pgquad

# Removes a store that an earlier demo left.
fresh_store() {
    run_psql -c "select quad.drop_store('$1')" >/dev/null 2>&1 || true
    run_psql -c "select quad.create_store('$1')" >/dev/null
}

# ask STORE TITLE QUERY VARIABLE...: prints the query and its answer as a table, one column for each variable.
ask() {
    local store=$1 title=$2 query=$3 columns="" types="" name
    shift 3
    for name in "$@"; do
        columns+="${columns:+, }x.\"$name\"::text"
        types+="${types:+, }\"$name\" quad.term"
    done
    printf '\n--- %s\n%s\n\n' "$title" "$query"
    run_psql -P footer=off -v store="$store" -v query="$query" <<SQL
select $columns from quad.sparql(:'query', :'store') answer, jsonb_to_record(answer) as x($types);
SQL
}

step "loading test/data/solar.ttl into store demo"
fresh_store demo
# The document goes over the connection: no file on the server, no special rights.
run_psql -At -v document="$(cat test/data/solar.ttl)" <<'SQL'
select quad.load_text(:'document', 'turtle', store => 'demo') || ' triples';
SQL

ask demo "The planets, from the largest" \
    'PREFIX : <http://example.org/solar/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?planet ?german ?radius WHERE {
  ?p a :Planet ; :radius ?radius ; rdfs:label ?planet , ?german
  FILTER(langMatches(lang(?planet), "en") && langMatches(lang(?german), "de"))
} ORDER BY DESC(?radius)' planet german radius

ask demo "Moons larger than the planet Mercury" \
    'PREFIX : <http://example.org/solar/>
SELECT ?moon ?planet ?ratio WHERE {
  ?moon a :Moon ; :orbits ?planet ; :radius ?r .
  :Mercury :radius ?mercury
  FILTER(?r > ?mercury)
  BIND(?r / ?mercury AS ?ratio)
} ORDER BY ?moon' moon planet ratio

ask demo "Bodies found by people born in Italy, and the age of the finder, in years" \
    'PREFIX : <http://example.org/solar/>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
SELECT ?name ?body ?when (year(?when) - year(?born) AS ?age) WHERE {
  ?person foaf:name ?name ; :country "Italy" ; :born ?born .
  ?body :discoverer ?person ; :discovered ?when
} ORDER BY ?when ?body LIMIT 8' name body when age

ask demo "Planets nobody is known to have discovered (OPTIONAL and !bound)" \
    'PREFIX : <http://example.org/solar/>
SELECT ?planet ?distance WHERE {
  ?planet a :Planet ; :distance ?distance
  OPTIONAL { ?planet :discoverer ?who }
  FILTER(!bound(?who))
} ORDER BY ?distance' planet distance

printf '\n--- Is there a moon with an orbit shorter than a day?\n'
run_psql -P footer=off <<'SQL'
select case when quad.ask('PREFIX : <http://example.org/solar/> ASK { ?m a :Moon ; :period ?d FILTER(?d < 1) }', 'demo')
       then 'yes' else 'no' end as answer;
SQL

bsbm=$PGQUAD_SHARED/bsbm/bsbm-100k.nt.gz
if [ -r "$bsbm" ]; then
    printf '\n'
    step "loading the Berlin benchmark's 110,301 triples into store demo_bsbm"
    fresh_store demo_bsbm
    file=$(server_readable "$bsbm")
    run_psql -At -v file="$file" <<'SQL'
\timing on
select quad.load(:'file', store => 'demo_bsbm') || ' triples';
SQL
    ask demo_bsbm "Products with a rating of ten, and who makes them" \
        'PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX rev: <http://purl.org/stuff/rev#>
SELECT DISTINCT ?label ?product ?rating WHERE {
  ?review bsbm:reviewFor ?p ; bsbm:rating1 ?rating .
  ?p bsbm:producer ?producer ; rdfs:label ?product .
  ?producer rdfs:label ?label
  FILTER(?rating >= 10)
} ORDER BY ?label ?product LIMIT 5' label product rating
else
    printf '\nSKIPPED the Berlin benchmark: there is no %s\n' "$bsbm"
fi

# link TITLE QUERY: prints the address at which a browser asks the query of store demo.
link() {
    local query
    query=$("$PYTHON" -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1]))' "$2")
    printf '  %s\n  %s?store=demo&query=%s\n' "$1" "$endpoint" "$query"
}

printf '\n'
endpoint=$(dev/http.sh up | tail -n 1)
printf '\nThe same over HTTP: %s (queries: %sdemo/sparql). Three queries to click:\n' "$endpoint" "$endpoint"
link "Planets and their radius" 'PREFIX : <http://example.org/solar/>
SELECT ?planet ?radius { ?planet a :Planet ; :radius ?radius } ORDER BY DESC(?radius)'
link "Moons of each planet" 'PREFIX : <http://example.org/solar/>
SELECT ?planet (COUNT(?moon) AS ?moons) { ?moon a :Moon ; :orbits ?planet } GROUP BY ?planet ORDER BY DESC(?moons)'
link "Everything about Io" 'DESCRIBE <http://example.org/solar/Io>'

printf '\n--- Your turn, on the data just loaded. Type in psql (the line that starts it comes last):\n\n'
cat dev/demo-next.sql
printf '\n'
dev/server.sh status
