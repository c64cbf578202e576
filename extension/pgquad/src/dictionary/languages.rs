//! Numbers of language tags, from table `quad.languages`.
//!
//! In a distributed dictionary every node has a copy of the table, and the node of the first shard gives new numbers.

use std::collections::HashMap;

use pgquad_term::id::MAX_LANGUAGE_NUMBER;
use pgquad_term::TermBuf;
use pgrx::pg_sys;

use super::relation::{for_each_row, Inserter, Relation};
use super::tables::Tables;

/// The language tags this backend knows of.
#[derive(Default)]
pub struct Languages {
    numbers: HashMap<String, u16>,
    /// The tags as strings, by number, as far as they have been asked for.
    terms: Vec<Option<TermBuf>>,
}

impl Languages {
    /// The number of `tag`, as far as it was read or noted.
    pub fn known_number(&self, tag: &str) -> Option<u16> {
        self.numbers.get(tag).copied()
    }

    /// The number of `tag`, or `None` when it has none.
    pub fn find(&mut self, tables: &Tables, tag: &str) -> Option<u16> {
        if let Some(number) = self.numbers.get(tag) {
            return Some(*number);
        }
        if self.is_full() {
            return None;
        }
        self.read_copy(tables);
        self.numbers.get(tag).copied()
    }

    /// Reads the table, where this node has it.
    fn read_copy(&mut self, tables: &Tables) {
        if tables.languages != pg_sys::InvalidOid {
            self.read(&Relation::open(tables.languages, pg_sys::AccessShareLock));
        }
    }

    /// Gives numbers to the tags that have none, while there are numbers left.
    pub fn number_new<'a>(&mut self, tags: &[&'a str]) -> Vec<(u16, &'a str)> {
        let mut last = self.numbers.values().max().copied().unwrap_or(0);
        let mut new = Vec::new();
        for &tag in tags {
            if last < MAX_LANGUAGE_NUMBER && !self.numbers.contains_key(tag) {
                last += 1;
                self.numbers.insert(tag.to_owned(), last);
                new.push((last, tag));
            }
        }
        new
    }

    /// Takes in languages that another node knows.
    pub fn note(&mut self, languages: Vec<(u16, String)>) {
        let tags = languages.into_iter().map(|(number, tag)| (tag, number));
        self.numbers.extend(tags);
    }

    /// The number of `tag`, which gets one if there is one left.
    pub fn find_or_add(&mut self, tables: &Tables, tag: &str) -> Option<u16> {
        if let Some(number) = self.find(tables, tag) {
            return Some(number);
        }
        if self.is_full() {
            return None;
        }
        // Held until the transaction ends, so that no two of them give out the same number.
        let table = Relation::open(tables.languages, pg_sys::ShareRowExclusiveLock);
        self.read(&table);
        if let Some(number) = self.numbers.get(tag) {
            return Some(*number);
        }
        let last = self.numbers.values().max().copied().unwrap_or(0);
        if last == MAX_LANGUAGE_NUMBER {
            return None;
        }
        let number = last + 1;
        Inserter::new(table)
            .insert_bytes(&[pg_sys::Datum::from(i32::from(number))], tag.as_bytes());
        self.numbers.insert(tag.to_owned(), number);
        Some(number)
    }

    /// Whether all numbers are given out.
    pub fn is_full(&self) -> bool {
        self.numbers.len() >= usize::from(MAX_LANGUAGE_NUMBER)
    }

    /// The tag with this number.
    pub fn tag(&mut self, tables: &Tables, number: u16) -> Option<String> {
        let known = |numbers: &HashMap<String, u16>| {
            numbers
                .iter()
                .find(|(_, known)| **known == number)
                .map(|(tag, _)| tag.clone())
        };
        known(&self.numbers).or_else(|| {
            self.read_copy(tables);
            known(&self.numbers)
        })
    }

    /// The tag with this number, as a string.
    pub fn term(&mut self, tables: &Tables, number: u16) -> Option<&TermBuf> {
        let place = usize::from(number);
        if self.terms.get(place).is_none_or(Option::is_none) {
            let tag = self.tag(tables, number)?;
            let length = self.terms.len().max(place + 1);
            self.terms.resize(length, None);
            self.terms[place] = Some(TermBuf::string(&tag));
        }
        self.terms[place].as_ref()
    }

    /// The numbers that are known here, with their tags.
    pub fn all(&mut self, tables: &Tables) -> Vec<(u16, String)> {
        if self.numbers.is_empty() {
            self.read_copy(tables);
        }
        self.known()
    }

    /// The numbers that were read or noted lately, with their tags.
    pub fn known(&self) -> Vec<(u16, String)> {
        let all = self.numbers.iter();
        all.map(|(tag, number)| (*number, tag.clone())).collect()
    }

    /// Reads the numbers anew.
    pub fn read(&mut self, table: &Relation) {
        self.numbers.clear();
        for_each_row(table, |row| {
            if let Ok(number) = u16::try_from(row.integer(1)) {
                self.numbers.insert(row.text(2), number);
            }
            true
        });
    }
}
