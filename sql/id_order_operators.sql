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
