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
