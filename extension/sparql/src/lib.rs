//! SPARQL algebra (spargebra) to a typed plan to SQL text. Knows nothing of PostgreSQL.
