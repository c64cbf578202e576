CREATE TABLE quad.cluster_secret (
    id integer PRIMARY KEY CHECK (id = 1),
    secret bytea NOT NULL
) USING heap;
REVOKE ALL ON quad.cluster_secret FROM PUBLIC;
COMMENT ON TABLE quad.cluster_secret IS 'cluster: by which the nodes know each other';
