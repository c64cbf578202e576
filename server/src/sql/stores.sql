-- The stores, and what the caller may do with each.
SELECT coalesce(json_agg(json_build_object(
    'store', store,
    'distributed', distributed,
    'shards', shards,
    'quads', quads,
    'bytes', bytes,
    'orders', orders,
    'readable', has_table_privilege(format('quad_stores.%I', store), 'SELECT'),
    'writable', has_table_privilege(format('quad_stores.%I', store), 'INSERT')) ORDER BY store), '[]')::text
FROM quad.stores
