//! Which column of an answer an SQL caller asks for who has named columns of his own.

use std::fmt;

/// Why the columns that were asked for are not those of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnMismatch {
    /// Other names are names of the query; this one is not.
    Unknown(String),
    /// The name differs from several names of the query in upper and lower case only.
    Ambiguous {
        /// The name that was asked for.
        name: String,
        /// Those that it could be.
        variables: Vec<String>,
    },
    /// No name is one of the query, and there are not as many as the query has.
    Count {
        /// Columns that were asked for.
        asked: usize,
        /// Columns of the query.
        has: usize,
    },
}

impl fmt::Display for ColumnMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "the query has no column ?{name}"),
            Self::Ambiguous { name, variables } => {
                let variables = listed(variables);
                write!(f, "column \"{name}\" could be each of {variables}")
            }
            Self::Count { asked, has } => write!(
                f,
                "{asked} columns are asked for that are not named as those of the query, which has {has}"
            ),
        }
    }
}

impl std::error::Error for ColumnMismatch {}

/// The names as SPARQL writes them: `?name, ?born`.
#[must_use]
pub fn listed(variables: &[String]) -> String {
    let names: Vec<String> = variables.iter().map(|name| format!("?{name}")).collect();
    names.join(", ")
}

/// For each name of `asked` the place of its column among `variables`. Columns are matched by name where some of them
/// are names of the query, and then all have to be. They are matched by position where none is, and then there have to
/// be as many. A name that is not there as it is written may differ in upper and lower case, since SQL folds names that
/// are not quoted.
///
/// # Errors
/// [`ColumnMismatch`].
pub fn match_columns(asked: &[String], variables: &[String]) -> Result<Vec<usize>, ColumnMismatch> {
    let places: Vec<Vec<usize>> = asked.iter().map(|name| places(name, variables)).collect();
    if places.iter().all(Vec::is_empty) {
        return if asked.len() == variables.len() {
            Ok((0..asked.len()).collect())
        } else {
            Err(ColumnMismatch::Count {
                asked: asked.len(),
                has: variables.len(),
            })
        };
    }
    let one = |(name, places): (&String, &Vec<usize>)| match places[..] {
        [place] => Ok(place),
        [] => Err(ColumnMismatch::Unknown(name.clone())),
        _ => Err(ColumnMismatch::Ambiguous {
            name: name.clone(),
            variables: places.iter().map(|&at| variables[at].clone()).collect(),
        }),
    };
    asked.iter().zip(&places).map(one).collect()
}

/// Where a name is: as it is written, or else but for case.
fn places(name: &str, variables: &[String]) -> Vec<usize> {
    if let Some(place) = variables.iter().position(|variable| variable == name) {
        return vec![place];
    }
    let folded = name.to_lowercase();
    let found = variables.iter().enumerate();
    let found = found.filter(|(_, variable)| variable.to_lowercase() == folded);
    found.map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn matched(asked: &[&str], variables: &[&str]) -> Result<Vec<usize>, ColumnMismatch> {
        match_columns(&names(asked), &names(variables))
    }

    #[test]
    fn by_name_in_any_order_and_not_all() {
        assert_eq!(
            matched(&["born", "name"], &["name", "born"]),
            Ok(vec![1, 0])
        );
        assert_eq!(matched(&["born"], &["name", "born"]), Ok(vec![1]));
        assert_eq!(
            matched(&["nmae", "born"], &["name", "born"]),
            Err(ColumnMismatch::Unknown("nmae".to_owned()))
        );
    }

    #[test]
    fn by_position_where_no_name_is_one_of_the_query() {
        assert_eq!(matched(&["a", "b"], &["name", "born"]), Ok(vec![0, 1]));
        let wrong = ColumnMismatch::Count { asked: 1, has: 2 };
        assert_eq!(matched(&["a"], &["name", "born"]), Err(wrong));
        let none = ColumnMismatch::Count { asked: 1, has: 0 };
        assert_eq!(matched(&["a"], &[]), Err(none));
    }

    #[test]
    fn case_counts_where_it_tells_names_apart() {
        assert_eq!(matched(&["birthyear"], &["x", "birthYear"]), Ok(vec![1]));
        assert_eq!(matched(&["n", "N"], &["N", "n"]), Ok(vec![1, 0]));
        let error = matched(&["ab"], &["aB", "Ab"]).unwrap_err();
        assert_eq!(error.to_string(), "column \"ab\" could be each of ?aB, ?Ab");
    }
}
