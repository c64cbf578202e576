-- The installed script of pgquad 0.1.0. Made by `make sql`, never by hand.

CREATE SCHEMA quad_stores;
GRANT USAGE, CREATE ON SCHEMA quad_stores TO PUBLIC;
GRANT USAGE ON SCHEMA quad TO PUBLIC;
COMMENT ON SCHEMA quad_stores IS 'quad stores: one table for each, made by quad.create_store';

CREATE FUNCTION quad.quad_am_handler(internal) RETURNS pg_catalog.table_am_handler
LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'quad_am_handler';
CREATE ACCESS METHOD quad TYPE TABLE HANDLER quad.quad_am_handler;
COMMENT ON ACCESS METHOD quad IS 'index-organised RDF quads: one B-link tree per order';

CREATE VIEW quad.load_progress AS
SELECT i.pid,
       d.datname,
       c.relname AS store,
       pg_catalog.rtrim(pg_catalog.convert_from(
           pg_catalog.int8send(i.param11) || pg_catalog.int8send(i.param12) || pg_catalog.int8send(i.param13) ||
           pg_catalog.int8send(i.param14) || pg_catalog.int8send(i.param15) || pg_catalog.int8send(i.param16) ||
           pg_catalog.int8send(i.param17) || pg_catalog.int8send(i.param18) || pg_catalog.int8send(i.param19) ||
           pg_catalog.int8send(i.param20), 'UTF8')) AS path,
       CASE i.param8 WHEN 0 THEN 'reading' WHEN 1 THEN 'writing terms' WHEN 2 THEN 'writing quads' END AS phase,
       i.param1 AS bytes_done,
       NULLIF(i.param2, 0) AS bytes_total,
       i.param9 AS quads
FROM pg_catalog.pg_stat_get_progress_info('COPY') i
LEFT JOIN pg_catalog.pg_database d ON d.oid = i.datid
LEFT JOIN pg_catalog.pg_class c
    ON i.datid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
    AND c.oid = i.param10::pg_catalog.oid
WHERE i.param7 IN (5498867, 5498868);
COMMENT ON VIEW quad.load_progress IS 'loads under way: bytes read (as they are in the file) and quads so far';
GRANT SELECT ON quad.load_progress TO PUBLIC;

CREATE TABLE quad.cluster_secret (
    id integer PRIMARY KEY CHECK (id = 1),
    secret bytea NOT NULL
) USING heap;
REVOKE ALL ON quad.cluster_secret FROM PUBLIC;
COMMENT ON TABLE quad.cluster_secret IS 'cluster: by which the nodes know each other';

-- Blocks of terms with consecutive numbers; `first_id` is the number of the first, `extent` its upper bits, which all
-- numbers of the block share. One block fills a page at most: only terms that are too long for that are stored out of
-- line. The text is compressed already.
CREATE TABLE quad.terms (
    extent bigint NOT NULL,
    first_id bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (first_id, extent)
) USING heap WITH (toast_tuple_target = 8160);
ALTER TABLE quad.terms ALTER data SET STORAGE EXTERNAL;
COMMENT ON TABLE quad.terms IS 'dictionary: blocks of compressed terms by the number of the first';

-- Only the shards of a distributed dictionary take their numbers from here; a local one takes them from
-- quad.term_numbers.
CREATE TABLE quad.term_extents (
    extent bigint PRIMARY KEY,
    next bigint NOT NULL
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE quad.term_extents IS
    'dictionary: extents of numbers that were begun, with the next number of each that is free';

CREATE TABLE quad.symbol_tables (
    id bigint PRIMARY KEY,
    data bytea NOT NULL
) USING heap;
COMMENT ON TABLE quad.symbol_tables IS 'dictionary: symbol tables by which the terms are compressed';

CREATE TABLE quad.languages (
    id integer PRIMARY KEY,
    tag text NOT NULL UNIQUE
) USING heap;
COMMENT ON TABLE quad.languages IS 'dictionary: numbers of language tags';

CREATE SEQUENCE quad.term_numbers INCREMENT 64 MINVALUE 1 MAXVALUE 140737488355327;
COMMENT ON SEQUENCE quad.term_numbers IS 'dictionary: numbers of terms and blank nodes, 64 at a time';

SELECT pg_catalog.pg_extension_config_dump('quad.terms', '');
SELECT pg_catalog.pg_extension_config_dump('quad.term_extents', '');
SELECT pg_catalog.pg_extension_config_dump('quad.symbol_tables', '');
SELECT pg_catalog.pg_extension_config_dump('quad.languages', '');
SELECT pg_catalog.pg_extension_config_dump('quad.term_numbers', '');

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

-- Ids by the 128-bit hash of the term: s and p are its halves, o is the id, g is 0.
SET LOCAL quad.orders = 'spog';
SET LOCAL quad.inner_fanout = '0';
SET LOCAL quad.leaf_quads = '0';
CREATE TABLE quad.term_ids (
    s bigint NOT NULL,
    p bigint NOT NULL,
    o bigint NOT NULL,
    g bigint NOT NULL
) USING quad;
RESET quad.orders;
RESET quad.inner_fanout;
RESET quad.leaf_quads;
COMMENT ON TABLE quad.term_ids IS 'dictionary: ids by the hash of the term';
SELECT pg_catalog.pg_extension_config_dump('quad.term_ids', '');

CREATE SCHEMA quad_shards;
GRANT USAGE, CREATE ON SCHEMA quad_shards TO PUBLIC;
COMMENT ON SCHEMA quad_shards IS 'Citus tables of distributed quad stores, two for each, made by quad.create_store and quad.distribute_store';

CREATE FUNCTION "add"(
	"a" quad.term,
	"b" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_add_wrapper';

CREATE FUNCTION "add_float"(
	"a" bigint,
	"b" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'add_float_wrapper';

CREATE FUNCTION "agg_avg_final"(
	"sum" internal
) RETURNS quad.term
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_avg_final_wrapper';

CREATE FUNCTION "agg_avg_id_final"(
	"sum" internal
) RETURNS bigint
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_avg_id_final_wrapper';

CREATE FUNCTION "agg_extreme_final"(
	"extreme" internal
) RETURNS quad.term
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_extreme_final_wrapper';

CREATE FUNCTION "agg_extreme_id_final"(
	"extreme" internal
) RETURNS bigint
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_extreme_id_final_wrapper';

CREATE FUNCTION "agg_group_concat_final"(
	"concat" internal
) RETURNS quad.term
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_group_concat_final_wrapper';

CREATE FUNCTION "agg_group_concat_step"(
	"concat" internal,
	"term" quad.term,
	"separator" TEXT
) RETURNS internal
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_group_concat_step_wrapper';

CREATE FUNCTION "agg_max_id_step"(
	"extreme" internal,
	"id" bigint
) RETURNS internal
STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_max_id_step_wrapper';

CREATE FUNCTION "agg_max_step"(
	"extreme" internal,
	"term" quad.term
) RETURNS internal
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_max_step_wrapper';

CREATE FUNCTION "agg_min_id_step"(
	"extreme" internal,
	"id" bigint
) RETURNS internal
STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_min_id_step_wrapper';

CREATE FUNCTION "agg_min_step"(
	"extreme" internal,
	"term" quad.term
) RETURNS internal
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_min_step_wrapper';

CREATE FUNCTION "agg_sample_step"(
	"first" quad.term,
	"_next" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_sample_step_wrapper';

CREATE FUNCTION "agg_sum_final"(
	"sum" internal
) RETURNS quad.term
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_sum_final_wrapper';

CREATE FUNCTION "agg_sum_id_final"(
	"sum" internal
) RETURNS bigint
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_sum_id_final_wrapper';

CREATE FUNCTION "agg_sum_id_step"(
	"sum" internal,
	"id" bigint
) RETURNS internal
STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_sum_id_step_wrapper';

CREATE FUNCTION "agg_sum_step"(
	"sum" internal,
	"term" quad.term
) RETURNS internal
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'agg_sum_step_wrapper';

CREATE AGGREGATE quad.agg_sum(quad.term) (
    SFUNC = quad.agg_sum_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_sum_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_avg(quad.term) (
    SFUNC = quad.agg_sum_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_avg_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_min(quad.term) (
    SFUNC = quad.agg_min_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_extreme_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_max(quad.term) (
    SFUNC = quad.agg_max_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_extreme_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_sum(bigint) (
    SFUNC = quad.agg_sum_id_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_sum_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_avg(bigint) (
    SFUNC = quad.agg_sum_id_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_avg_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_sum_float(bigint) (
    SFUNC = quad.agg_sum_id_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_sum_id_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_avg_float(bigint) (
    SFUNC = quad.agg_sum_id_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_avg_id_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_min(bigint) (
    SFUNC = quad.agg_min_id_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_extreme_id_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_max(bigint) (
    SFUNC = quad.agg_max_id_step, STYPE = internal, SSPACE = 64, FINALFUNC = quad.agg_extreme_id_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_sample(quad.term) (
    SFUNC = quad.agg_sample_step, STYPE = quad.term, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_group_concat(quad.term, text) (
    SFUNC = quad.agg_group_concat_step, STYPE = internal, FINALFUNC = quad.agg_group_concat_final, PARALLEL = SAFE
);

CREATE FUNCTION "all_node_stats"(
	"reset" bool
) RETURNS TABLE (
	"node" INT, 
	"address" TEXT, 
	"stats" TEXT 
)
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'all_node_stats_wrapper';

CREATE FUNCTION "answer_stream"(
	"query" TEXT,
	"results" TEXT DEFAULT 'json',
	"graph" TEXT DEFAULT 'turtle',
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"default_graphs" TEXT[] DEFAULT NULL,
	"named_graphs" TEXT[] DEFAULT NULL,
	"max_rows" bigint DEFAULT NULL
) RETURNS SETOF TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'answer_stream_wrapper';

CREATE FUNCTION "ask"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS bool
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'ask_wrapper';

CREATE FUNCTION "by_id"(
	"condition" bool
) RETURNS bool
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'by_id_wrapper';

CREATE FUNCTION "by_id_support"(
	"request" internal
) RETURNS internal
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'by_id_support_wrapper';

CREATE FUNCTION "cast_boolean"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_boolean_wrapper';

CREATE FUNCTION "cast_byte"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_byte_wrapper';

CREATE FUNCTION "cast_date"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_date_wrapper';

CREATE FUNCTION "cast_datetime"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_datetime_wrapper';

CREATE FUNCTION "cast_datetimestamp"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_datetimestamp_wrapper';

CREATE FUNCTION "cast_daytimeduration"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_daytimeduration_wrapper';

CREATE FUNCTION "cast_decimal"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_decimal_wrapper';

CREATE FUNCTION "cast_double"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_double_wrapper';

CREATE FUNCTION "cast_duration"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_duration_wrapper';

CREATE FUNCTION "cast_float"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_float_wrapper';

CREATE FUNCTION "cast_float"(
	"id" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE  COST 20
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_cast_float_wrapper';

CREATE FUNCTION "cast_float_of_str"(
	"id" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE COST 50
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_float_of_str_wrapper';

CREATE FUNCTION "cast_gday"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_gday_wrapper';

CREATE FUNCTION "cast_gmonth"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_gmonth_wrapper';

CREATE FUNCTION "cast_gmonthday"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_gmonthday_wrapper';

CREATE FUNCTION "cast_gyear"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_gyear_wrapper';

CREATE FUNCTION "cast_gyearmonth"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_gyearmonth_wrapper';

CREATE FUNCTION "cast_int"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_int_wrapper';

CREATE FUNCTION "cast_integer"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_integer_wrapper';

CREATE FUNCTION "cast_long"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_long_wrapper';

CREATE FUNCTION "cast_negativeinteger"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_negativeinteger_wrapper';

CREATE FUNCTION "cast_nonnegativeinteger"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_nonnegativeinteger_wrapper';

CREATE FUNCTION "cast_nonpositiveinteger"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_nonpositiveinteger_wrapper';

CREATE FUNCTION "cast_positiveinteger"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_positiveinteger_wrapper';

CREATE FUNCTION "cast_short"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_short_wrapper';

CREATE FUNCTION "cast_string"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_string_wrapper';

CREATE FUNCTION "cast_time"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_time_wrapper';

CREATE FUNCTION "cast_unsignedbyte"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_unsignedbyte_wrapper';

CREATE FUNCTION "cast_unsignedint"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_unsignedint_wrapper';

CREATE FUNCTION "cast_unsignedlong"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_unsignedlong_wrapper';

CREATE FUNCTION "cast_unsignedshort"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_unsignedshort_wrapper';

CREATE FUNCTION "cast_yearmonthduration"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cast_yearmonthduration_wrapper';

CREATE FUNCTION "cluster_answer"(
	"request" bytea
) RETURNS bytea
STRICT
LANGUAGE c
AS 'MODULE_PATHNAME', 'cluster_answer_wrapper';

CREATE FUNCTION "cluster_definitions"(
	"bases" TEXT[]
) RETURNS SETOF TEXT
STRICT 
LANGUAGE c
AS 'MODULE_PATHNAME', 'definitions_wrapper';

CREATE FUNCTION "cluster_drop"(
	"bases" TEXT[],
	"shards" TEXT[]
) RETURNS void
STRICT 
LANGUAGE c
AS 'MODULE_PATHNAME', 'drop_mirrored_wrapper';

CREATE FUNCTION "cluster_hello"(
	"version" INT,
	"token" bytea
) RETURNS TEXT
STRICT
LANGUAGE c
AS 'MODULE_PATHNAME', 'cluster_hello_wrapper';

CREATE FUNCTION "cluster_marked"(
	"_quad" bigint
) RETURNS bigint
IMMUTABLE STRICT PARALLEL UNSAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'marked_here_wrapper';

CREATE FUNCTION "cluster_mirror"(
	"base" TEXT,
	"store" TEXT,
	"owner" TEXT,
	"roles" TEXT[],
	"commands" TEXT[]
) RETURNS void
STRICT 
LANGUAGE c
AS 'MODULE_PATHNAME', 'mirror_wrapper';

CREATE FUNCTION "cluster_node_state"() RETURNS TEXT
STRICT 
LANGUAGE c
AS 'MODULE_PATHNAME', 'state_of_node_wrapper';

CREATE FUNCTION "cluster_participant"() RETURNS bytea
STRICT
LANGUAGE c
AS 'MODULE_PATHNAME', 'cluster_participant_wrapper';

CREATE FUNCTION "cluster_push"(
	"request" bytea
) RETURNS SETOF bytea
STRICT
LANGUAGE c
AS 'MODULE_PATHNAME', 'cluster_push_wrapper';

CREATE PROCEDURE "cluster_serve"("version" INT, "token" bytea)
LANGUAGE c
AS 'MODULE_PATHNAME', 'cluster_serve_wrapper';

CREATE FUNCTION "cluster_source"() RETURNS TABLE (
	"key" bigint, 
	"quads" bytea 
)
STRICT VOLATILE PARALLEL UNSAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'source_wrapper';

CREATE FUNCTION "cluster_status"(
	"seconds" double precision DEFAULT 5.0
) RETURNS SETOF TEXT
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'cluster_status_wrapper';

CREATE FUNCTION "cluster_taken"(
	"shard" oid
) RETURNS TEXT
STRICT VOLATILE PARALLEL UNSAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'taken_here_wrapper';

CREATE FUNCTION "construct"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TABLE (
	"subject" quad.term, 
	"predicate" quad.term, 
	"object" quad.term 
)
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'construct_wrapper';

CREATE FUNCTION "construct_stream"(
	"query" TEXT,
	"format" TEXT DEFAULT 'turtle',
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"default_graphs" TEXT[] DEFAULT NULL,
	"named_graphs" TEXT[] DEFAULT NULL,
	"max_rows" bigint DEFAULT NULL
) RETURNS SETOF TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'construct_stream_wrapper';

CREATE FUNCTION "construct_text"(
	"query" TEXT,
	"format" TEXT DEFAULT 'turtle',
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'construct_text_wrapper';

CREATE FUNCTION quad.copy_shard_to_node(shard regclass, node integer) RETURNS void VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'copy_shard_to_node_wrapper';

CREATE FUNCTION "create_store"(
	"store" TEXT,
	"orders" TEXT DEFAULT NULL,
	"inner_fanout" TEXT DEFAULT NULL,
	"leaf_quads" TEXT DEFAULT NULL,
	"distributed" bool DEFAULT false,
	"shards" INT DEFAULT NULL
) RETURNS void
LANGUAGE c
AS 'MODULE_PATHNAME', 'create_store_wrapper';

CREATE FUNCTION "create_view"(
	"name" TEXT,
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"types" jsonb DEFAULT NULL
) RETURNS void
VOLATILE
LANGUAGE c
AS 'MODULE_PATHNAME', 'create_view_wrapper';

CREATE FUNCTION "decode"(
	"id" bigint
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'decode_wrapper';

CREATE FUNCTION "describe"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TABLE (
	"subject" quad.term, 
	"predicate" quad.term, 
	"object" quad.term 
)
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'describe_wrapper';

CREATE FUNCTION "describe_stream"(
	"query" TEXT,
	"format" TEXT DEFAULT 'turtle',
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"default_graphs" TEXT[] DEFAULT NULL,
	"named_graphs" TEXT[] DEFAULT NULL,
	"max_rows" bigint DEFAULT NULL
) RETURNS SETOF TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'describe_stream_wrapper';

CREATE FUNCTION "describe_text"(
	"query" TEXT,
	"format" TEXT DEFAULT 'turtle',
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'describe_text_wrapper';

CREATE FUNCTION "dictionary_stats"() RETURNS TABLE (
	"decoded" bigint, 
	"blocks" bigint 
)
STRICT VOLATILE PARALLEL RESTRICTED
LANGUAGE c
AS 'MODULE_PATHNAME', 'dictionary_stats_wrapper';

CREATE FUNCTION "distribute_dictionary"(
	"shards" INT DEFAULT 32
) RETURNS void
STRICT
LANGUAGE c
AS 'MODULE_PATHNAME', 'distribute_dictionary_wrapper';

REVOKE ALL ON FUNCTION quad.distribute_dictionary(integer) FROM PUBLIC;

CREATE FUNCTION "distribute_store"(
	"store" TEXT,
	"shards" INT DEFAULT NULL
) RETURNS void
LANGUAGE c
AS 'MODULE_PATHNAME', 'distribute_store_wrapper';

CREATE FUNCTION "div"(
	"a" quad.term,
	"b" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_div_wrapper';

CREATE FUNCTION "div_float"(
	"a" bigint,
	"b" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'div_float_wrapper';

CREATE FUNCTION "drop_store"(
	"store" TEXT
) RETURNS void
STRICT
LANGUAGE c
AS 'MODULE_PATHNAME', 'drop_store_wrapper';

CREATE FUNCTION "ebv"(
	"term" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'ebv_wrapper';

CREATE FUNCTION "encode"(
	"term" quad.term
) RETURNS bigint
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'encode_wrapper';

CREATE FUNCTION "eq"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_eq_wrapper';

CREATE FUNCTION "eq"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_eq_wrapper';

CREATE FUNCTION "explain"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"analyze" bool DEFAULT false
) RETURNS SETOF TEXT
VOLATILE
LANGUAGE c
AS 'MODULE_PATHNAME', 'explain_wrapper';

CREATE FUNCTION "explain_json"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"analyze" bool DEFAULT false
) RETURNS TEXT
VOLATILE
LANGUAGE c
AS 'MODULE_PATHNAME', 'explain_json_wrapper';

CREATE FUNCTION quad.export(store text DEFAULT NULL, graph text DEFAULT NULL) RETURNS SETOF text
VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'export_wrapper';

CREATE FUNCTION "find"(
	"term" quad.term
) RETURNS bigint
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'find_wrapper';

CREATE FUNCTION "fn_abs"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_abs_wrapper';

CREATE FUNCTION "fn_bnode"(
	"label" quad.term,
	"row" bigint
) RETURNS quad.term
STRICT VOLATILE PARALLEL RESTRICTED
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_bnode_wrapper';

CREATE FUNCTION "fn_bnode"() RETURNS quad.term
STRICT VOLATILE PARALLEL SAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_bnode_fresh_wrapper';

CREATE FUNCTION "fn_ceil"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_ceil_wrapper';

CREATE FUNCTION "fn_concat"(
	"terms" VARIADIC quad.term[]
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_concat_wrapper';

CREATE FUNCTION "fn_concat"() RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_concat_empty_wrapper';

CREATE FUNCTION "fn_contains"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_contains_wrapper';

CREATE FUNCTION "fn_datatype"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_datatype_wrapper';

CREATE FUNCTION "fn_day"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_day_wrapper';

CREATE FUNCTION "fn_encode_for_uri"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_encode_for_uri_wrapper';

CREATE FUNCTION "fn_floor"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_floor_wrapper';

CREATE FUNCTION "fn_hours"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_hours_wrapper';

CREATE FUNCTION "fn_iri"(
	"term" quad.term,
	"base" TEXT
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_iri_wrapper';

CREATE FUNCTION "fn_isblank"(
	"term" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_isblank_wrapper';

CREATE FUNCTION "fn_isiri"(
	"term" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_isiri_wrapper';

CREATE FUNCTION "fn_isliteral"(
	"term" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_isliteral_wrapper';

CREATE FUNCTION "fn_isnumeric"(
	"term" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_isnumeric_wrapper';

CREATE FUNCTION "fn_lang"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_lang_wrapper';

CREATE FUNCTION "fn_langmatches"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_langmatches_wrapper';

CREATE FUNCTION "fn_lcase"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_lcase_wrapper';

CREATE FUNCTION "fn_md5"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_md5_wrapper';

CREATE FUNCTION "fn_minutes"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_minutes_wrapper';

CREATE FUNCTION "fn_month"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_month_wrapper';

CREATE FUNCTION "fn_now"() RETURNS quad.term
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_now_wrapper';

CREATE FUNCTION "fn_rand"() RETURNS quad.term
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_rand_wrapper';

CREATE FUNCTION "fn_regex"(
	"text" quad.term,
	"pattern" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_regex_wrapper';

CREATE FUNCTION "fn_regex"(
	"text" quad.term,
	"pattern" quad.term,
	"flags" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_regex_flags_wrapper';

CREATE FUNCTION "fn_replace"(
	"text" quad.term,
	"pattern" quad.term,
	"replacement" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_replace_wrapper';

CREATE FUNCTION "fn_replace"(
	"text" quad.term,
	"pattern" quad.term,
	"replacement" quad.term,
	"flags" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_replace_flags_wrapper';

CREATE FUNCTION "fn_round"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_round_wrapper';

CREATE FUNCTION "fn_seconds"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_seconds_wrapper';

CREATE FUNCTION "fn_sha1"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_sha1_wrapper';

CREATE FUNCTION "fn_sha256"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_sha256_wrapper';

CREATE FUNCTION "fn_sha384"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_sha384_wrapper';

CREATE FUNCTION "fn_sha512"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_sha512_wrapper';

CREATE FUNCTION "fn_str"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_str_wrapper';

CREATE FUNCTION "fn_strafter"(
	"a" quad.term,
	"b" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_strafter_wrapper';

CREATE FUNCTION "fn_strbefore"(
	"a" quad.term,
	"b" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_strbefore_wrapper';

CREATE FUNCTION "fn_strdt"(
	"lexical" quad.term,
	"datatype" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_strdt_wrapper';

CREATE FUNCTION "fn_strends"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_strends_wrapper';

CREATE FUNCTION "fn_strlang"(
	"lexical" quad.term,
	"tag" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_strlang_wrapper';

CREATE FUNCTION "fn_strlen"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_strlen_wrapper';

CREATE FUNCTION "fn_strstarts"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_strstarts_wrapper';

CREATE FUNCTION "fn_struuid"() RETURNS quad.term
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_struuid_wrapper';

CREATE FUNCTION "fn_substr"(
	"text" quad.term,
	"start" quad.term,
	"length" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_substr_wrapper';

CREATE FUNCTION "fn_substr"(
	"text" quad.term,
	"start" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE 
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_substr_from_wrapper';

CREATE FUNCTION "fn_timezone"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_timezone_wrapper';

CREATE FUNCTION "fn_tz"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_tz_wrapper';

CREATE FUNCTION "fn_ucase"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_ucase_wrapper';

CREATE FUNCTION "fn_uuid"() RETURNS quad.term
STRICT VOLATILE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_uuid_wrapper';

CREATE FUNCTION "fn_year"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'fn_year_wrapper';

CREATE FUNCTION "from_bool"(
	"value" bool
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'from_bool_wrapper';

CREATE FUNCTION "from_int"(
	"value" bigint
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'from_int_wrapper';

CREATE FUNCTION "ge"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_ge_wrapper';

CREATE FUNCTION "ge"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_ge_wrapper';

CREATE FUNCTION "graph_stream"(
	"graph" TEXT,
	"format" TEXT DEFAULT 'turtle',
	"store" TEXT DEFAULT NULL
) RETURNS SETOF TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'graph_stream_wrapper';

CREATE FUNCTION "gt"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_gt_wrapper';

CREATE FUNCTION "gt"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_gt_wrapper';

CREATE FUNCTION "id_after"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_after_wrapper';

CREATE FUNCTION "id_before"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_before_wrapper';

CREATE FUNCTION "id_contains"(
	"id" bigint,
	"part" quad.term
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_contains_wrapper';

CREATE FUNCTION "id_datatype"(
	"id" bigint
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_datatype_wrapper';

CREATE FUNCTION "id_day"(
	"id" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_day_wrapper';

CREATE FUNCTION "id_encode_for_uri"(
	"id" bigint
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_encode_for_uri_wrapper';

CREATE FUNCTION "id_hours"(
	"id" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_hours_wrapper';

CREATE FUNCTION "id_isnumeric"(
	"id" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_isnumeric_wrapper';

CREATE FUNCTION "id_kind"(
	"id" bigint
) RETURNS smallint
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_kind_wrapper';

CREATE FUNCTION "id_lang"(
	"id" bigint
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_lang_wrapper';

CREATE FUNCTION "id_lcase"(
	"id" bigint
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_lcase_wrapper';

CREATE FUNCTION "id_minutes"(
	"id" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_minutes_wrapper';

CREATE FUNCTION "id_month"(
	"id" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_month_wrapper';

CREATE FUNCTION "id_not_after"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_not_after_wrapper';

CREATE FUNCTION "id_not_before"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_not_before_wrapper';

CREATE FUNCTION "id_of"(
	"term" quad.term
) RETURNS bigint
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_of_wrapper';

CREATE FUNCTION "id_of_resource"(
	"text" TEXT
) RETURNS bigint
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_of_resource_wrapper';

ALTER FUNCTION quad.by_id(boolean) SUPPORT quad.by_id_support;

CREATE FUNCTION "id_order_cmp"(
	"a" bigint,
	"b" bigint
) RETURNS INT
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_order_cmp_wrapper';

CREATE FUNCTION "id_order_sortsupport"(
	"support" internal
) RETURNS void
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_order_sortsupport_wrapper';

CREATE FUNCTION "id_regex"(
	"id" bigint,
	"pattern" quad.term
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_regex_wrapper';

CREATE FUNCTION "id_regex"(
	"id" bigint,
	"pattern" quad.term,
	"flags" quad.term
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_regex_flags_wrapper';

CREATE FUNCTION "id_replace"(
	"id" bigint,
	"pattern" quad.term,
	"replacement" quad.term
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_replace_wrapper';

CREATE FUNCTION "id_replace"(
	"id" bigint,
	"pattern" quad.term,
	"replacement" quad.term,
	"flags" quad.term
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_replace_flags_wrapper';

CREATE FUNCTION "id_same"(
	"a" bigint,
	"b" bigint
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_same_wrapper';

CREATE OPERATOR quad.=# (
    LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = quad.id_same,
    COMMUTATOR = OPERATOR(quad.=#), RESTRICT = eqsel, JOIN = eqjoinsel
);
CREATE OPERATOR quad.<# (
    LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = quad.id_before,
    COMMUTATOR = OPERATOR(quad.>#), NEGATOR = OPERATOR(quad.>=#)
);
CREATE OPERATOR quad.<=# (
    LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = quad.id_not_after,
    COMMUTATOR = OPERATOR(quad.>=#), NEGATOR = OPERATOR(quad.>#)
);
CREATE OPERATOR quad.># (
    LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = quad.id_after,
    COMMUTATOR = OPERATOR(quad.<#), NEGATOR = OPERATOR(quad.<=#)
);
CREATE OPERATOR quad.>=# (
    LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = quad.id_not_before,
    COMMUTATOR = OPERATOR(quad.<=#), NEGATOR = OPERATOR(quad.<#)
);
CREATE OPERATOR CLASS quad.id_term_ops FOR TYPE bigint USING btree AS
    OPERATOR 1 quad.<#, OPERATOR 2 quad.<=#, OPERATOR 3 quad.=#, OPERATOR 4 quad.>=#, OPERATOR 5 quad.>#,
    FUNCTION 1 quad.id_order_cmp(bigint, bigint),
    FUNCTION 2 quad.id_order_sortsupport(internal);

CREATE FUNCTION "id_str"(
	"id" bigint
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_str_wrapper';

CREATE FUNCTION "id_strafter"(
	"id" bigint,
	"part" quad.term
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_strafter_wrapper';

CREATE FUNCTION "id_strbefore"(
	"id" bigint,
	"part" quad.term
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_strbefore_wrapper';

CREATE FUNCTION "id_strends"(
	"id" bigint,
	"part" quad.term
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_strends_wrapper';

CREATE FUNCTION "id_strlen"(
	"id" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_strlen_wrapper';

CREATE FUNCTION "id_strstarts"(
	"id" bigint,
	"part" quad.term
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_strstarts_wrapper';

CREATE FUNCTION "id_substr"(
	"id" bigint,
	"start" quad.term,
	"length" quad.term
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_substr_wrapper';

CREATE FUNCTION "id_substr"(
	"id" bigint,
	"start" quad.term
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_substr_from_wrapper';

CREATE FUNCTION "id_ucase"(
	"id" bigint
) RETURNS quad.term
STRICT STABLE PARALLEL SAFE  COST 40
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_ucase_wrapper';

CREATE FUNCTION "id_year"(
	"id" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_year_wrapper';

CREATE FUNCTION "int_id"(
	"value" bigint
) RETURNS bigint
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'int_id_wrapper';

CREATE FUNCTION "iri"(
	"text" TEXT
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'iri_wrapper';

CREATE FUNCTION "le"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_le_wrapper';

CREATE FUNCTION "le"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_le_wrapper';

CREATE FUNCTION "list_stores"() RETURNS TABLE (
	"store" TEXT, 
	"distributed" bool, 
	"shards" INT, 
	"quads" bigint, 
	"bytes" bigint, 
	"orders" TEXT 
)
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'list_stores_wrapper';

CREATE VIEW quad.stores AS SELECT store, distributed, shards, quads, bytes, orders FROM quad.list_stores();
GRANT SELECT ON quad.stores TO PUBLIC;
COMMENT ON VIEW quad.stores IS 'all stores: whether and into how many shards they are distributed, quads (NULL where the caller may not read all), bytes on all nodes (NULL for a distributed store in a transaction that has written), orders';

CREATE FUNCTION "load"(
	"path" TEXT,
	"format" TEXT DEFAULT NULL,
	"graph" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"store" TEXT DEFAULT NULL
) RETURNS bigint
LANGUAGE c
AS 'MODULE_PATHNAME', 'load_wrapper';

CREATE FUNCTION "load_text"(
	"document" TEXT,
	"format" TEXT DEFAULT NULL,
	"graph" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"store" TEXT DEFAULT NULL
) RETURNS bigint
LANGUAGE c
AS 'MODULE_PATHNAME', 'load_text_wrapper';

CREATE FUNCTION "lt"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_lt_wrapper';

CREATE FUNCTION "lt"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_lt_wrapper';

CREATE FUNCTION "mul"(
	"a" quad.term,
	"b" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_mul_wrapper';

CREATE FUNCTION "mul_float"(
	"a" bigint,
	"b" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'mul_float_wrapper';

CREATE FUNCTION "ne"(
	"a" bigint,
	"b" bigint
) RETURNS bool
STRICT STABLE PARALLEL SAFE  COST 5
LANGUAGE c
AS 'MODULE_PATHNAME', 'id_ne_wrapper';

CREATE FUNCTION "ne"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_ne_wrapper';

CREATE FUNCTION "neg"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_neg_wrapper';

CREATE FUNCTION "node_stats"(
	"reset" bool
) RETURNS TABLE (
	"kind" TEXT, 
	"messages_sent" bigint, 
	"bytes_sent" bigint, 
	"messages_received" bigint, 
	"bytes_received" bigint, 
	"batches" bigint, 
	"blocked_writes" bigint, 
	"blocked_ms" double precision, 
	"waited_ms" double precision, 
	"since" timestamp with time zone 
)
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'node_stats_wrapper';

CREATE FUNCTION "node_status"(
	"seconds" double precision
) RETURNS TABLE (
	"seconds" double precision, 
	"messages" double precision, 
	"bytes" double precision, 
	"processors" double precision, 
	"active" double precision, 
	"reading" double precision, 
	"waiting" double precision, 
	"running" bigint, 
	"blocked" bigint, 
	"idle" bigint, 
	"buffers" bigint, 
	"dirty" bigint, 
	"writing" bigint 
)
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'node_status_wrapper';

CREATE VIEW quad.cluster_stats AS
SELECT n.node, n.address, s.kind, s.messages_sent, s.bytes_sent, s.messages_received, s.bytes_received,
       s.bytes_sent / NULLIF(s.messages_sent, 0) AS average_message_bytes,
       s.batches, s.blocked_writes, s.blocked_ms, s.waited_ms, s.since
FROM quad.all_node_stats(false) AS n,
     pg_catalog.json_to_recordset(n.stats::json) AS s (
       kind text, messages_sent bigint, bytes_sent bigint, messages_received bigint, bytes_received bigint,
       batches bigint, blocked_writes bigint, blocked_ms double precision, waited_ms double precision,
       since timestamptz);
COMMENT ON VIEW quad.cluster_stats IS
    'messages between nodes by node and kind, since the server started or quad.cluster_stats_reset() was called';

CREATE FUNCTION quad.cluster_stats_reset() RETURNS SETOF quad.cluster_stats
LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
SELECT n.node, n.address, s.kind, s.messages_sent, s.bytes_sent, s.messages_received, s.bytes_received,
       s.bytes_sent / NULLIF(s.messages_sent, 0) AS average_message_bytes,
       s.batches, s.blocked_writes, s.blocked_ms, s.waited_ms, s.since
FROM quad.all_node_stats(true) AS n,
     json_to_recordset(n.stats::json) AS s (
       kind text, messages_sent bigint, bytes_sent bigint, messages_received bigint, bytes_received bigint,
       batches bigint, blocked_writes bigint, blocked_ms double precision, waited_ms double precision,
       since timestamptz)
$$;
COMMENT ON FUNCTION quad.cluster_stats_reset() IS 'sets the counters of all nodes to zero and returns what they were';

REVOKE ALL ON quad.cluster_stats FROM PUBLIC;
GRANT SELECT ON quad.cluster_stats TO pg_read_all_stats;
REVOKE EXECUTE ON FUNCTION quad.cluster_status(double precision), quad.node_status(double precision),
    quad.all_node_stats(boolean), quad.node_stats(boolean), quad.cluster_stats_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION quad.cluster_status(double precision), quad.node_status(double precision),
    quad.all_node_stats(boolean), quad.node_stats(boolean), quad.cluster_stats_reset() TO pg_read_all_stats;

CREATE FUNCTION "pos"(
	"term" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_pos_wrapper';

CREATE FUNCTION quad.query(query text, store text DEFAULT NULL, base text DEFAULT NULL, default_graphs text[] DEFAULT NULL,
    named_graphs text[] DEFAULT NULL) RETURNS SETOF record STABLE COST 100000 LANGUAGE c AS 'MODULE_PATHNAME', 'query_wrapper';

CREATE FUNCTION quad.range_count(relation regclass, s bigint, p bigint, o bigint, g bigint) RETURNS bigint
    VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'range_count_wrapper';

CREATE FUNCTION quad.rebuild(relation regclass, orders text DEFAULT NULL, inner_fanout text DEFAULT NULL, leaf_quads text DEFAULT NULL)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'rebuild_wrapper';

CREATE FUNCTION "resource_to_text"(
	"term" quad.term
) RETURNS TEXT
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'resource_to_text_wrapper';

CREATE FUNCTION "service"(
	"endpoint" quad.term,
	"query" TEXT,
	"variables" TEXT[],
	"silent" bool,
	"keep" bool
) RETURNS SETOF quad.term[]
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'service_wrapper';

CREATE FUNCTION "sparql"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS SETOF jsonb
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_wrapper';

CREATE FUNCTION "sparql_csv"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_csv_wrapper';

CREATE FUNCTION "sparql_csv_stream"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"default_graphs" TEXT[] DEFAULT NULL,
	"named_graphs" TEXT[] DEFAULT NULL,
	"max_rows" bigint DEFAULT NULL
) RETURNS SETOF TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_csv_stream_wrapper';

CREATE FUNCTION "sparql_json"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_json_wrapper';

CREATE FUNCTION "sparql_json_stream"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"default_graphs" TEXT[] DEFAULT NULL,
	"named_graphs" TEXT[] DEFAULT NULL,
	"max_rows" bigint DEFAULT NULL
) RETURNS SETOF TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_json_stream_wrapper';

CREATE FUNCTION "sparql_to_sql"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_to_sql_wrapper';

CREATE FUNCTION "sparql_tsv"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_tsv_wrapper';

CREATE FUNCTION "sparql_tsv_stream"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"default_graphs" TEXT[] DEFAULT NULL,
	"named_graphs" TEXT[] DEFAULT NULL,
	"max_rows" bigint DEFAULT NULL
) RETURNS SETOF TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_tsv_stream_wrapper';

CREATE FUNCTION "sparql_xml"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL
) RETURNS TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_xml_wrapper';

CREATE FUNCTION "sparql_xml_stream"(
	"query" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"default_graphs" TEXT[] DEFAULT NULL,
	"named_graphs" TEXT[] DEFAULT NULL,
	"max_rows" bigint DEFAULT NULL
) RETURNS SETOF TEXT
STABLE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_xml_stream_wrapper';

CREATE FUNCTION quad.store_info(relation regclass) RETURNS TABLE (order_name text, inner_fanout integer, leaf_quads integer,
    height integer, inner_pages bigint, leaf_pages bigint, quads bigint, delta_entries bigint, bytes_per_quad double precision,
    fill double precision) VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', 'store_info_wrapper';

CREATE FUNCTION "sub"(
	"a" quad.term,
	"b" quad.term
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE  COST 10
LANGUAGE c
AS 'MODULE_PATHNAME', 'sparql_sub_wrapper';

CREATE FUNCTION "sub_float"(
	"a" bigint,
	"b" bigint
) RETURNS bigint
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sub_float_wrapper';

CREATE FUNCTION "template_cache"() RETURNS TABLE (
	"kind" TEXT, 
	"store" TEXT, 
	"template" TEXT, 
	"hits" bigint, 
	"generic_plans" bigint, 
	"custom_plans" bigint 
)
STRICT VOLATILE
LANGUAGE c
AS 'MODULE_PATHNAME', 'template_cache_wrapper';

CREATE FUNCTION "template_cache_reset"() RETURNS void
STRICT VOLATILE
LANGUAGE c
AS 'MODULE_PATHNAME', 'template_cache_reset_wrapper';

CREATE FUNCTION "template_cache_stats"() RETURNS TABLE (
	"templates" bigint, 
	"hits" bigint, 
	"misses" bigint, 
	"evictions" bigint, 
	"update_plans" bigint, 
	"update_hits" bigint 
)
STRICT VOLATILE
LANGUAGE c
AS 'MODULE_PATHNAME', 'template_cache_stats_wrapper';

CREATE FUNCTION "term_cmp"(
	"a" quad.term,
	"b" quad.term
) RETURNS INT
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_cmp_wrapper';

CREATE FUNCTION "term_eq"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_eq_wrapper';

CREATE FUNCTION "term_eq_support"(
	"request" internal
) RETURNS internal
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_eq_support_wrapper';

CREATE FUNCTION "term_from_bigint"(
	"number" bigint
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_from_bigint_wrapper';

CREATE FUNCTION "term_from_boolean"(
	"value" bool
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_from_boolean_wrapper';

CREATE FUNCTION "term_from_date"(
	"date" date
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_from_date_wrapper';

CREATE FUNCTION "term_from_double"(
	"number" double precision
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_from_double_wrapper';

CREATE FUNCTION "term_from_integer"(
	"number" INT
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_from_integer_wrapper';

CREATE FUNCTION "term_from_numeric"(
	"number" NUMERIC
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_from_numeric_wrapper';

CREATE FUNCTION "term_from_text"(
	"text" TEXT
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_from_text_wrapper';

CREATE FUNCTION "term_from_timestamptz"(
	"timestamp" timestamp with time zone
) RETURNS quad.term
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_from_timestamptz_wrapper';

CREATE FUNCTION "term_ge"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_ge_wrapper';

CREATE FUNCTION "term_gt"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_gt_wrapper';

CREATE FUNCTION "term_hash"(
	"term" quad.term
) RETURNS INT
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_hash_wrapper';

CREATE FUNCTION "term_hash_extended"(
	"term" quad.term,
	"seed" bigint
) RETURNS bigint
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_hash_extended_wrapper';

CREATE FUNCTION "term_le"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_le_wrapper';

CREATE FUNCTION "term_lt"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_lt_wrapper';

CREATE FUNCTION "term_ne"(
	"a" quad.term,
	"b" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_ne_wrapper';

CREATE FUNCTION "term_sortsupport"(
	"support" internal
) RETURNS void
IMMUTABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_sortsupport_wrapper';

CREATE OPERATOR quad.= (
    LEFTARG = quad.term, RIGHTARG = quad.term, FUNCTION = quad.term_eq,
    COMMUTATOR = OPERATOR(quad.=), NEGATOR = OPERATOR(quad.<>), RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR quad.<> (
    LEFTARG = quad.term, RIGHTARG = quad.term, FUNCTION = quad.term_ne,
    COMMUTATOR = OPERATOR(quad.<>), NEGATOR = OPERATOR(quad.=), RESTRICT = neqsel, JOIN = neqjoinsel
);
CREATE OPERATOR quad.< (
    LEFTARG = quad.term, RIGHTARG = quad.term, FUNCTION = quad.term_lt,
    COMMUTATOR = OPERATOR(quad.>), NEGATOR = OPERATOR(quad.>=), RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
CREATE OPERATOR quad.<= (
    LEFTARG = quad.term, RIGHTARG = quad.term, FUNCTION = quad.term_le,
    COMMUTATOR = OPERATOR(quad.>=), NEGATOR = OPERATOR(quad.>), RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
CREATE OPERATOR quad.> (
    LEFTARG = quad.term, RIGHTARG = quad.term, FUNCTION = quad.term_gt,
    COMMUTATOR = OPERATOR(quad.<), NEGATOR = OPERATOR(quad.<=), RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
CREATE OPERATOR quad.>= (
    LEFTARG = quad.term, RIGHTARG = quad.term, FUNCTION = quad.term_ge,
    COMMUTATOR = OPERATOR(quad.<=), NEGATOR = OPERATOR(quad.<), RESTRICT = scalargesel, JOIN = scalargejoinsel
);
CREATE OPERATOR CLASS quad.term_ops DEFAULT FOR TYPE quad.term USING btree AS
    OPERATOR 1 quad.<, OPERATOR 2 quad.<=, OPERATOR 3 quad.=, OPERATOR 4 quad.>=, OPERATOR 5 quad.>,
    FUNCTION 1 quad.term_cmp(quad.term, quad.term),
    FUNCTION 2 quad.term_sortsupport(internal);
CREATE OPERATOR CLASS quad.term_ops DEFAULT FOR TYPE quad.term USING hash AS
    OPERATOR 1 quad.=,
    FUNCTION 1 quad.term_hash(quad.term),
    FUNCTION 2 quad.term_hash_extended(quad.term, int8);

ALTER FUNCTION quad.term_eq(quad.term, quad.term) SUPPORT quad.term_eq_support;

CREATE FUNCTION "term_to_bigint"(
	"term" quad.term
) RETURNS bigint
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_to_bigint_wrapper';

CREATE FUNCTION "term_to_boolean"(
	"term" quad.term
) RETURNS bool
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_to_boolean_wrapper';

CREATE FUNCTION "term_to_date"(
	"term" quad.term
) RETURNS date
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_to_date_wrapper';

CREATE FUNCTION "term_to_double"(
	"term" quad.term
) RETURNS double precision
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_to_double_wrapper';

CREATE FUNCTION "term_to_numeric"(
	"term" quad.term
) RETURNS NUMERIC
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_to_numeric_wrapper';

CREATE FUNCTION "term_to_text"(
	"term" quad.term
) RETURNS TEXT
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_to_text_wrapper';

CREATE FUNCTION "term_to_timestamptz"(
	"term" quad.term
) RETURNS timestamp with time zone
STRICT STABLE PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'term_to_timestamptz_wrapper';

CREATE CAST (quad.term AS text) WITH FUNCTION quad.term_to_text(quad.term) AS ASSIGNMENT;
CREATE CAST (quad.term AS varchar) WITH FUNCTION quad.term_to_text(quad.term) AS ASSIGNMENT;
CREATE CAST (quad.term AS numeric) WITH FUNCTION quad.term_to_numeric(quad.term);
CREATE CAST (quad.term AS double precision) WITH FUNCTION quad.term_to_double(quad.term);
CREATE CAST (quad.term AS bigint) WITH FUNCTION quad.term_to_bigint(quad.term);
CREATE CAST (quad.term AS boolean) WITH FUNCTION quad.term_to_boolean(quad.term);
CREATE CAST (quad.term AS timestamptz) WITH FUNCTION quad.term_to_timestamptz(quad.term);
CREATE CAST (quad.term AS date) WITH FUNCTION quad.term_to_date(quad.term);
CREATE CAST (text AS quad.term) WITH FUNCTION quad.term_from_text(text);
CREATE CAST (varchar AS quad.term) WITH FUNCTION quad.term_from_text(text);
CREATE CAST (numeric AS quad.term) WITH FUNCTION quad.term_from_numeric(numeric);
CREATE CAST (bigint AS quad.term) WITH FUNCTION quad.term_from_bigint(bigint);
CREATE CAST (integer AS quad.term) WITH FUNCTION quad.term_from_integer(integer);
CREATE CAST (boolean AS quad.term) WITH FUNCTION quad.term_from_boolean(boolean);
CREATE CAST (double precision AS quad.term) WITH FUNCTION quad.term_from_double(double precision);
CREATE CAST (timestamptz AS quad.term) WITH FUNCTION quad.term_from_timestamptz(timestamptz);
CREATE CAST (date AS quad.term) WITH FUNCTION quad.term_from_date(date);

CREATE FUNCTION quad.term_value(term quad.term, type_array anyarray, type_modifier integer, "column" text)
    RETURNS anyelement STABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'term_value_wrapper';

CREATE FUNCTION "undistribute_store"(
	"store" TEXT
) RETURNS void
STRICT
LANGUAGE c
AS 'MODULE_PATHNAME', 'undistribute_store_wrapper';

CREATE FUNCTION "update"(
	"request" TEXT,
	"store" TEXT DEFAULT NULL,
	"base" TEXT DEFAULT NULL,
	"using_graphs" TEXT[] DEFAULT NULL,
	"using_named_graphs" TEXT[] DEFAULT NULL
) RETURNS bigint
VOLATILE
LANGUAGE c
AS 'MODULE_PATHNAME', 'update_wrapper';

CREATE FUNCTION quad.verify(relation regclass) RETURNS SETOF text VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c
    AS 'MODULE_PATHNAME', 'verify_wrapper';

CREATE FUNCTION "version"() RETURNS TEXT
IMMUTABLE STRICT PARALLEL SAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'version_wrapper';

CREATE FUNCTION quad.load_stdin_begin() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'load_stdin_begin_called';

CREATE FUNCTION quad.load_stdin_end() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'load_stdin_end_called';

CREATE FUNCTION quad.load_stdin_line() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'load_stdin_line_called';

CREATE FUNCTION quad.load_stdin_piece() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'load_stdin_piece_called';

CREATE VIEW quad.load_stdin AS SELECT NULL::pg_catalog.text AS line WHERE false;
COMMENT ON VIEW quad.load_stdin IS 'takes the lines of an RDF document by COPY ... FROM STDIN '
    '(FORMAT csv, DELIMITER E''\x01'', QUOTE E''\x02''), or pieces of it by (FORMAT binary)';
CREATE TRIGGER load_begin BEFORE INSERT ON quad.load_stdin FOR EACH STATEMENT EXECUTE FUNCTION quad.load_stdin_begin();
CREATE TRIGGER load_line INSTEAD OF INSERT ON quad.load_stdin FOR EACH ROW EXECUTE FUNCTION quad.load_stdin_line();
CREATE TRIGGER load_end AFTER INSERT ON quad.load_stdin FOR EACH STATEMENT EXECUTE FUNCTION quad.load_stdin_end();
GRANT INSERT ON quad.load_stdin TO PUBLIC;
CREATE VIEW quad.load_stdin_bytes AS SELECT NULL::pg_catalog.bytea AS piece WHERE false;
COMMENT ON VIEW quad.load_stdin_bytes IS
    'takes an RDF document in pieces of bytes, cut anywhere, compressed as the setting quad.stdin_compression says';
CREATE TRIGGER load_begin BEFORE INSERT ON quad.load_stdin_bytes FOR EACH STATEMENT
    EXECUTE FUNCTION quad.load_stdin_begin();
CREATE TRIGGER load_piece INSTEAD OF INSERT ON quad.load_stdin_bytes FOR EACH ROW
    EXECUTE FUNCTION quad.load_stdin_piece();
CREATE TRIGGER load_end AFTER INSERT ON quad.load_stdin_bytes FOR EACH STATEMENT EXECUTE FUNCTION quad.load_stdin_end();
GRANT INSERT ON quad.load_stdin_bytes TO PUBLIC;

