DO $$
BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'pgquad needs a database with encoding UTF8, this one has %', current_setting('server_encoding')
            USING ERRCODE = 'feature_not_supported',
                HINT = 'Create one: CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0.';
    END IF;
END
$$;

CREATE TYPE quad.term;
CREATE FUNCTION quad.term_in(cstring) RETURNS quad.term
    AS 'MODULE_PATHNAME', 'term_in_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION quad.term_out(quad.term) RETURNS cstring
    AS 'MODULE_PATHNAME', 'term_out_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION quad.term_recv(internal) RETURNS quad.term
    AS 'MODULE_PATHNAME', 'term_recv_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION quad.term_send(quad.term) RETURNS bytea
    AS 'MODULE_PATHNAME', 'term_send_wrapper' LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE;
CREATE TYPE quad.term (
    INPUT = quad.term_in,
    OUTPUT = quad.term_out,
    RECEIVE = quad.term_recv,
    SEND = quad.term_send,
    INTERNALLENGTH = VARIABLE,
    ALIGNMENT = int4,
    STORAGE = extended
);
COMMENT ON TYPE quad.term IS 'RDF term in N-Triples form: IRI, blank node or literal';
