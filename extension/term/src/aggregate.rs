//! The aggregates of SPARQL 1.1 section 18.5.1, row by row. An error in a row (an unbound value
//! too, `None`) makes the whole aggregate an error. COUNT and SAMPLE need nothing from here.

use crate::error::{Error, Result};
use crate::func::numeric::number;
use crate::func::strings::text_of;
use crate::number::Number;
use crate::order::order;
use crate::{Term, TermBuf};
use std::cmp::Ordering;

/// SUM and AVG.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// `None` after an error.
    total: Option<Number>,
    count: i128,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            total: Some(Number::Integer(0)),
            count: 0,
        }
    }
}

impl Sum {
    /// Takes a row.
    pub fn step(&mut self, term: Option<&Term<'_>>) {
        self.step_number(term.and_then(|term| number(term).ok()));
    }

    /// Takes the number of a row; `None` is an error.
    #[inline]
    pub fn step_number(&mut self, number: Option<Number>) {
        self.count += 1;
        let Some(total) = self.total else { return };
        self.total = number.and_then(|number| total.checked_add(number).ok());
    }

    /// SUM: 0 for an empty group.
    ///
    /// # Errors
    /// A row that is no number, or overflow.
    pub fn sum(&self) -> Result<Number> {
        self.total.ok_or(Error::Type)
    }

    /// AVG: 0 for an empty group.
    ///
    /// # Errors
    /// A row that is no number, or overflow.
    pub fn average(&self) -> Result<Number> {
        if self.count == 0 {
            return Ok(Number::Integer(0));
        }
        let total = self.total.ok_or(Error::Type)?;
        total.checked_div(Number::Integer(self.count))
    }
}

/// MIN and MAX, by the order of ORDER BY.
#[derive(Clone, Debug, Default)]
pub struct Extreme {
    best: Option<TermBuf>,
    failed: bool,
}

impl Extreme {
    /// Takes a row: it becomes the result if it stands in this order to the result so far, `Less`
    /// for MIN and `Greater` for MAX.
    pub fn step(&mut self, term: Option<&Term<'_>>, wanted: Ordering) {
        let Some(term) = term.filter(|_| !self.failed) else {
            self.failed = true;
            self.best = None;
            return;
        };
        let better = match &self.best {
            None => true,
            Some(best) => order(term, &best.as_term()) == wanted,
        };
        if better {
            self.best = Some(term.to_buf());
        }
    }

    /// The result.
    ///
    /// # Errors
    /// An empty group or an unbound row.
    pub fn result(&self) -> Result<&TermBuf> {
        self.best.as_ref().ok_or(Error::Type)
    }
}

/// GROUP_CONCAT of the lexical forms and IRIs.
#[derive(Clone, Debug, Default)]
pub struct GroupConcat {
    text: String,
    rows: u64,
    failed: bool,
}

impl GroupConcat {
    /// Takes a row.
    pub fn step(&mut self, term: Option<&Term<'_>>, separator: &str) {
        match term.map(text_of) {
            Some(Ok(part)) if !self.failed => {
                if self.rows > 0 {
                    self.text.push_str(separator);
                }
                self.text.push_str(part);
                self.rows += 1;
            }
            _ => {
                self.failed = true;
                self.text = String::new();
            }
        }
    }

    /// The result, a simple literal; `""` for an empty group.
    ///
    /// # Errors
    /// A row that is unbound or a blank node.
    pub fn result(&self) -> Result<TermBuf> {
        if self.failed {
            Err(Error::Type)
        } else {
            Ok(TermBuf::string(&self.text))
        }
    }
}
