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
