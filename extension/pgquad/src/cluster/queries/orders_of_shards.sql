-- Orders of a store from what each of its shards says of its own, as JSON: sums and means.
SELECT o->>'order_name', max(o->>'inner_fanout'), max(o->>'leaf_quads'), max((o->>'height')::int)::text,
  sum((o->>'inner_pages')::bigint)::text, sum((o->>'leaf_pages')::bigint)::text, sum((o->>'quads')::bigint)::text,
  sum((o->>'delta_entries')::bigint)::text,
  (sum((o->>'bytes_per_quad')::float8 * (o->>'quads')::bigint) / nullif(sum((o->>'quads')::bigint), 0))::text,
  (sum((o->>'fill')::float8 * (o->>'leaf_pages')::bigint)
    / nullif(sum((o->>'leaf_pages')::bigint) FILTER (WHERE o->>'fill' IS NOT NULL), 0))::text
FROM unnest({}) AS r(answer), json_array_elements(r.answer::json) WITH ORDINALITY AS e(o, place)
GROUP BY o->>'order_name' ORDER BY min(place)
