// Comunica against an endpoint: bindings, boolean, quads, and a source whose kind it finds out. Prints a line for each.
import { createRequire } from 'node:module';
const [, , url, directory] = process.argv;
const { QueryEngine } = createRequire(directory + '/')('@comunica/query-sparql');
const engine = new QueryEngine();
const sources = [{ type: 'sparql', value: url + '/sparql' }];
const bindings = await (await engine.queryBindings('SELECT ?o { <http://x/a> <http://x/p> ?o FILTER(?o > 0) }', { sources })).toArray();
console.log('select ' + bindings.map(b => b.get('o').value).join());
console.log('ask ' + (await engine.queryBoolean('ASK { <http://x/a> ?p ?o }', { sources })));
const quads = await (await engine.queryQuads('CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }', { sources })).toArray();
console.log('construct ' + quads.length);
const described = await (await engine.queryBindings('SELECT ?o { <http://x/a> <http://x/p> ?o }', { sources: [url + '/sparql'] })).toArray();
console.log('discovered ' + described.length);
