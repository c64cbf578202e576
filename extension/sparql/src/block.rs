//! A SELECT ... FROM ... WHERE in the making: the node of the plan.

use spargebra::term::Variable;

use crate::column::{compatible_sql, looked_up, merged, Vars};
use crate::params::{quote_identifier, Params};

/// An entry of the FROM list.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    sql: String,
    /// Whether it is a join without parentheses around it.
    join: bool,
}

impl Item {
    /// The alias of an entry that is a single table.
    fn name(&self) -> Option<&str> {
        let (_, alias) = self.sql.rsplit_once(" AS ")?;
        let name = alias.split('(').next().unwrap_or(alias);
        let is_name = !name.is_empty() && name.chars().all(is_of_name);
        (is_name && !self.join).then_some(name)
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether an SQL text may read a column of an alias.
fn mentions(text: &str, alias: &str) -> bool {
    let column = format!("{alias}.");
    text.match_indices(&column)
        .any(|(at, _)| !text[..at].ends_with(is_of_name))
}

/// A FROM list, a conjunction, and the variables that the columns of the list give. An empty list stands for one empty
/// solution.
///
/// Invariant: an entry refers only to entries before it (LATERAL) and to outer queries; a condition and a variable to
/// any entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    items: Vec<Item>,
    conditions: Vec<String>,
    pub vars: Vars,
    /// Number of the solution, where BNODE has asked for it.
    pub row: Option<String>,
    /// Whether an entry may refer to entries of the FROM list that this block will be put into.
    pub lateral: bool,
}

impl Block {
    /// A block of one FROM entry that is not a join.
    pub fn of_item(sql: String) -> Self {
        Self {
            items: vec![Item { sql, join: false }],
            ..Self::default()
        }
    }

    /// Adds a conjunct: an SQL boolean that needs no parentheses under AND.
    pub fn add_condition(&mut self, condition: String) {
        if condition != "TRUE" {
            self.conditions.push(condition);
        }
    }

    /// Whether every variable becomes NULL when an outer join null-extends the FROM entries.
    pub fn is_strict(&self) -> bool {
        !self.items.is_empty() && self.vars.iter().all(|(_, c)| c.strict)
    }

    /// Join (SPARQL 1.1 section 18.5).
    pub fn join(mut self, other: Self, params: &mut Params) -> Self {
        let mut implied: Vec<String> = Vec::new();
        for (variable, col) in other.vars {
            let Some(mine) = self.vars.get_mut(&variable) else {
                self.vars.set(variable, col);
                continue;
            };
            let condition = compatible_sql(mine, &col, params);
            // A term that is looked up is bound: to test that before would be to compute it twice.
            if let (false, false, Some((_, term))) =
                (mine.nullable, col.nullable, looked_up(mine, &col))
            {
                implied.push(format!("{term} IS NOT NULL"));
            }
            *mine = merged(mine, &col, params);
            self.conditions.push(condition);
        }
        // A number of one side's solutions is that of several where the other side has more than one.
        self.row = match (self.items.is_empty(), other.items.is_empty()) {
            (_, true) => self.row,
            (true, false) => other.row,
            (false, false) => None,
        };
        self.items.extend(other.items);
        self.conditions.extend(other.conditions);
        self.conditions.retain(|c| !implied.contains(c));
        self.lateral |= other.lateral;
        self
    }

    /// LEFT JOIN with `right`, which must be strict; `on` are conditions beside those of `right`. `vars` are the
    /// variables of the result.
    pub fn left_join(self, right: Self, on: Vec<String>, vars: Vars, unit: String) -> Self {
        debug_assert!(right.is_strict());
        let left = if self.items.is_empty() {
            unit
        } else {
            nested(&self.items, true)
        };
        let mut conditions = on;
        conditions.extend(right.conditions);
        conditions.retain(|c| c != "TRUE");
        let on = if conditions.is_empty() {
            "TRUE".to_owned()
        } else {
            conditions.join(" AND ")
        };
        let sql = format!(
            "{left}\n  LEFT JOIN {} ON {on}",
            nested(&right.items, false)
        );
        Self {
            items: vec![Item { sql, join: true }],
            conditions: self.conditions,
            vars,
            row: None,
            lateral: self.lateral || right.lateral,
        }
    }

    /// The entries that conditions connect with the one of a column, and their conditions: all values of the column,
    /// and more where an entry left out has no rows.
    pub fn connected_with(&self, column: &str) -> Self {
        let names: Option<Vec<&str>> = self.items.iter().map(Item::name).collect();
        let Some(names) = names else {
            return self.clone();
        };
        let mut connected: Vec<bool> = names.iter().map(|name| mentions(column, name)).collect();
        let texts = || {
            let items = self.items.iter().map(|item| item.sql.as_str());
            items.chain(self.conditions.iter().map(String::as_str))
        };
        // What an entry mentions besides itself connects as a condition does.
        loop {
            let before = connected.clone();
            for text in texts() {
                let of_text: Vec<usize> = (0..names.len())
                    .filter(|&n| mentions(text, names[n]) || self.items[n].sql == text)
                    .collect();
                if of_text.iter().any(|&n| connected[n]) {
                    of_text.iter().for_each(|&n| connected[n] = true);
                }
            }
            if connected == before {
                break;
            }
        }
        let is_out =
            |text: &str| (0..names.len()).any(|n| !connected[n] && mentions(text, names[n]));
        let mut block = self.clone();
        let mut place = connected.iter();
        block.items.retain(|_| place.next() == Some(&true));
        block.conditions.retain(|condition| !is_out(condition));
        block
    }

    /// `FROM ... WHERE ...`, each on a line of its own; empty for the one empty solution.
    pub fn body(&self) -> String {
        self.body_and(&[])
    }

    /// As [`Self::body`], with further conditions.
    pub fn body_and(&self, more: &[String]) -> String {
        let mut sql = String::new();
        if !self.items.is_empty() {
            let items: Vec<&str> = self.items.iter().map(|i| i.sql.as_str()).collect();
            sql.push_str("\nFROM ");
            sql.push_str(&items.join(", "));
        }
        let conditions: Vec<&str> = self
            .conditions
            .iter()
            .chain(more)
            .map(String::as_str)
            .filter(|c| *c != "TRUE")
            .collect();
        if !conditions.is_empty() {
            sql.push_str("\nWHERE ");
            sql.push_str(&conditions.join("\n  AND "));
        }
        sql
    }

    /// `SELECT` of all variables, ids rather than terms.
    pub fn select(&self, distinct: bool) -> String {
        let mut outputs: Vec<String> = self
            .vars
            .iter()
            .enumerate()
            .map(|(i, (v, c))| format!("{} AS {}", c.any(), column_name(v, i)))
            .collect();
        if let Some(row) = &self.row {
            if !distinct {
                outputs.push(format!("{row} AS \"#row\""));
            }
        }
        if outputs.is_empty() {
            outputs.push("0 AS \"#unit\"".to_owned());
        }
        format!(
            "SELECT {}{}{}",
            if distinct { "DISTINCT " } else { "" },
            outputs.join(", "),
            self.body()
        )
    }

    /// The block whose only FROM entry is this one as a derived table; `tail` (ORDER BY, LIMIT) ends its text.
    pub fn derived(self, alias: &str, distinct: bool, tail: &str) -> Self {
        let select = format!("{}{tail}", self.select(distinct));
        let keyword = if self.lateral { "LATERAL " } else { "" };
        let mut block = Self::of_item(format!("{keyword}{} AS {alias}", parenthesised(&select)));
        block.lateral = self.lateral;
        for (i, (variable, col)) in self.vars.into_iter().enumerate() {
            let name = format!("{alias}.{}", column_name(&variable, i));
            block.vars.set(variable, col.renamed(name));
        }
        if !distinct && self.row.is_some() {
            block.row = Some(format!("{alias}.\"#row\""));
        }
        block
    }
}

/// Items as one operand of a join: the left one needs no parentheses around a single join.
fn nested(items: &[Item], left: bool) -> String {
    match items {
        [one] if left || !one.join => one.sql.clone(),
        _ => {
            let parts: Vec<String> = items
                .iter()
                .enumerate()
                .map(|(i, item)| {
                    if item.join && i > 0 {
                        format!("({})", item.sql)
                    } else {
                        item.sql.clone()
                    }
                })
                .collect();
            format!("({})", parts.join(" CROSS JOIN "))
        }
    }
}

/// The query as a parenthesised operand, indented.
pub(crate) fn parenthesised(query: &str) -> String {
    format!("(\n  {}\n)", query.replace('\n', "\n  "))
}

/// Longest variable name that becomes a column name. The parser gives aggregates and blank nodes without a name random
/// hexadecimal numbers, which are longer. The SQL of a query must not depend on these.
const LONGEST_NAME: usize = 24;

/// Quoted column name of the variable at `place` of a list: its own where it is a plain short name.
pub(crate) fn column_name(variable: &Variable, place: usize) -> String {
    let name = variable.as_str();
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain && name.len() <= LONGEST_NAME {
        quote_identifier(name)
    } else {
        quote_identifier(&format!("#{place}"))
    }
}
