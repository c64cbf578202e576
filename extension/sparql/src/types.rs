//! What is known of the types of a query's columns without looking at the data.

use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern,
};
use spargebra::term::Variable;
use spargebra::Query;

/// SQL type that holds all values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `quad.term`: any term.
    Term,
    /// `text`: strings, with or without language.
    Text,
    /// `boolean`.
    Boolean,
    /// `bigint`: counts, lengths, parts of dates.
    Bigint,
    /// `numeric`: integers of any length and decimals.
    Numeric,
    /// `double precision`: doubles and floats.
    Double,
    /// `timestamp with time zone`.
    Timestamp,
    /// `date`.
    Date,
}

impl ColumnType {
    /// Name of the type in SQL.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Self::Term => "quad.term",
            Self::Text => "pg_catalog.text",
            Self::Boolean => "pg_catalog.bool",
            Self::Bigint => "pg_catalog.int8",
            Self::Numeric => "pg_catalog.numeric",
            Self::Double => "pg_catalog.float8",
            Self::Timestamp => "pg_catalog.timestamptz",
            Self::Date => "pg_catalog.date",
        }
    }
}

/// The types of the columns of a query's answer, in their order.
#[must_use]
pub fn column_types(query: &Query) -> Vec<ColumnType> {
    match query {
        Query::Select { pattern, .. } => projected(pattern)
            .iter()
            .map(|variable| of_variable(variable, pattern))
            .collect(),
        Query::Ask { .. } => vec![ColumnType::Boolean],
        Query::Construct { .. } | Query::Describe { .. } => vec![ColumnType::Term; 3],
    }
}

fn projected(pattern: &GraphPattern) -> &[Variable] {
    match pattern {
        GraphPattern::Project { variables, .. } => variables,
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::OrderBy { inner, .. } => projected(inner),
        _ => &[],
    }
}

/// The type of what an expression or an aggregate gives the variable; a variable that patterns bind can be any term.
fn of_variable(variable: &Variable, pattern: &GraphPattern) -> ColumnType {
    match pattern {
        GraphPattern::Extend {
            inner,
            variable: defined,
            expression,
        } => {
            if defined == variable {
                of_expression(expression, inner)
            } else {
                of_variable(variable, inner)
            }
        }
        GraphPattern::Group { aggregates, .. } => aggregates
            .iter()
            .find(|(defined, _)| defined == variable)
            .map_or(ColumnType::Term, |(_, aggregate)| of_aggregate(aggregate)),
        GraphPattern::Project { inner, variables } if variables.contains(variable) => {
            of_variable(variable, inner)
        }
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Filter { inner, .. } => of_variable(variable, inner),
        _ => ColumnType::Term,
    }
}

fn of_aggregate(aggregate: &AggregateExpression) -> ColumnType {
    match aggregate {
        AggregateExpression::CountSolutions { .. }
        | AggregateExpression::FunctionCall {
            name: AggregateFunction::Count,
            ..
        } => ColumnType::Bigint,
        AggregateExpression::FunctionCall {
            name: AggregateFunction::GroupConcat { .. },
            ..
        } => ColumnType::Text,
        AggregateExpression::FunctionCall { .. } => ColumnType::Term,
    }
}

fn of_expression(expression: &Expression, inner: &GraphPattern) -> ColumnType {
    match expression {
        Expression::Variable(variable) => of_variable(variable, inner),
        Expression::Or(..)
        | Expression::And(..)
        | Expression::Not(..)
        | Expression::Equal(..)
        | Expression::SameTerm(..)
        | Expression::Greater(..)
        | Expression::GreaterOrEqual(..)
        | Expression::Less(..)
        | Expression::LessOrEqual(..)
        | Expression::In(..)
        | Expression::Exists(_)
        | Expression::Bound(_) => ColumnType::Boolean,
        Expression::If(_, a, b) => common(&[of_expression(a, inner), of_expression(b, inner)]),
        Expression::Coalesce(all) => {
            let types: Vec<ColumnType> = all.iter().map(|e| of_expression(e, inner)).collect();
            common(&types)
        }
        Expression::FunctionCall(function, _) => of_function(function),
        Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Add(..)
        | Expression::Subtract(..)
        | Expression::Multiply(..)
        | Expression::Divide(..)
        | Expression::UnaryPlus(_)
        | Expression::UnaryMinus(_) => ColumnType::Term,
    }
}

fn common(types: &[ColumnType]) -> ColumnType {
    match types {
        [first, rest @ ..] if rest.iter().all(|t| t == first) => *first,
        _ => ColumnType::Term,
    }
}

fn of_function(function: &Function) -> ColumnType {
    match function {
        Function::LangMatches
        | Function::Contains
        | Function::StrStarts
        | Function::StrEnds
        | Function::IsIri
        | Function::IsBlank
        | Function::IsLiteral
        | Function::IsNumeric
        | Function::Regex => ColumnType::Boolean,
        Function::StrLen
        | Function::Year
        | Function::Month
        | Function::Day
        | Function::Hours
        | Function::Minutes => ColumnType::Bigint,
        Function::Seconds => ColumnType::Numeric,
        Function::Rand => ColumnType::Double,
        Function::Str
        | Function::Lang
        | Function::Concat
        | Function::SubStr
        | Function::Replace
        | Function::UCase
        | Function::LCase
        | Function::EncodeForUri
        | Function::StrBefore
        | Function::StrAfter
        | Function::Tz
        | Function::StrUuid
        | Function::Md5
        | Function::Sha1
        | Function::Sha256
        | Function::Sha384
        | Function::Sha512 => ColumnType::Text,
        Function::Now => ColumnType::Timestamp,
        Function::Custom(iri) => of_cast(iri.as_str()),
        _ => ColumnType::Term,
    }
}

/// The type of the casts of XML Schema.
fn of_cast(iri: &str) -> ColumnType {
    match iri.strip_prefix("http://www.w3.org/2001/XMLSchema#") {
        Some("string") => ColumnType::Text,
        Some("boolean") => ColumnType::Boolean,
        Some("integer" | "decimal") => ColumnType::Numeric,
        Some("double" | "float") => ColumnType::Double,
        Some("dateTime") => ColumnType::Timestamp,
        Some("date") => ColumnType::Date,
        _ => ColumnType::Term,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_query;

    fn types(query: &str) -> Vec<ColumnType> {
        let text = format!("PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> {query}");
        column_types(&parse_query(&text, None).unwrap())
    }

    #[test]
    fn what_patterns_bind_is_a_term_and_what_functions_give_has_their_type() {
        use ColumnType::{Bigint, Boolean, Date, Double, Numeric, Term, Text, Timestamp};
        assert_eq!(types("SELECT * { ?s ?p ?o }"), [Term; 3]);
        assert_eq!(
            types(
                "SELECT ?s (STR(?o) AS ?a) (xsd:integer(?o) AS ?b) (?o > 1 AS ?c) (?o + 1 AS ?d) (YEAR(?o) AS ?e) \
                 (xsd:date(?o) AS ?f) (xsd:float(?o) AS ?g) (NOW() AS ?h) { ?s ?p ?o }"
            ),
            [Term, Text, Numeric, Boolean, Term, Bigint, Date, Double, Timestamp]
        );
        assert_eq!(
            types(
                "SELECT DISTINCT ?s (COUNT(*) AS ?n) (SUM(?o) AS ?m) (GROUP_CONCAT(?o) AS ?t) { ?s ?p ?o } \
                 GROUP BY ?s HAVING(COUNT(*) > 1) ORDER BY ?n LIMIT 2"
            ),
            [Term, Bigint, Term, Text]
        );
        assert_eq!(
            types("SELECT ?a ?b ?c { ?s ?p ?o BIND(STR(?o) AS ?a) BIND(?a AS ?b) BIND(IF(?o, ?a, STR(?s)) AS ?c) FILTER(?a) }"),
            [Text; 3]
        );
        // Something else can bind it where it has had an error.
        assert_eq!(
            types("SELECT ?a { { ?s ?p ?o BIND(STR(?o) AS ?a) } { ?a ?q ?r } }"),
            [Term]
        );
        assert_eq!(types("ASK {}"), [Boolean]);
    }
}
