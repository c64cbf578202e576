//! RDF terms and their 64-bit ids, the order of values, XPath arithmetic and functions. Knows nothing of PostgreSQL.
