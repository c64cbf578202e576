//! Page formats and B-link tree algorithms over a page-store trait. Knows nothing of PostgreSQL.
