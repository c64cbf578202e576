//! Symbol tables by number, from table `quad.symbol_tables`. Number 0 is the built-in one.

use std::collections::HashMap;
use std::sync::Arc;

use pgquad_term::block::Symbols;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::relation::{IndexScan, Inserter, Relation};
use super::tables::Tables;
use crate::pg::error::raise;

/// Symbol tables that this backend has read.
#[derive(Default)]
pub struct SymbolTables {
    read: HashMap<u32, Arc<Symbols>>,
}

/// Symbols with their number.
#[derive(Clone)]
pub struct Numbered {
    /// Number of the table.
    pub number: u32,
    /// The table.
    pub symbols: Arc<Symbols>,
}

impl SymbolTables {
    /// The table with this number.
    pub fn get(&mut self, tables: &Tables, number: u32) -> Arc<Symbols> {
        self.find(tables, number).unwrap_or_else(|| {
            raise(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                format!("symbol table {number} of the dictionary does not exist"),
            )
        })
    }

    /// The table with this number, if there is one.
    pub fn find(&mut self, tables: &Tables, number: u32) -> Option<Arc<Symbols>> {
        if let Some(symbols) = self.read.get(&number) {
            return Some(symbols.clone());
        }
        if number > 0 {
            let found = self.last_up_to(tables, i64::from(number))?;
            return (found.number == number).then_some(found.symbols);
        }
        let symbols = Arc::new(Symbols::built_in());
        self.read.insert(number, symbols.clone());
        Some(symbols)
    }

    /// The newest table.
    pub fn newest(&mut self, tables: &Tables) -> Numbered {
        self.last_up_to(tables, i64::MAX)
            .unwrap_or_else(|| Numbered {
                number: 0,
                symbols: self.get(tables, 0),
            })
    }

    /// Stores a new table. The caller holds the lock that keeps other transactions from doing so.
    pub fn add(&mut self, tables: &Tables, symbols: Symbols) -> Numbered {
        let number = self.newest(tables).number + 1;
        let table = Relation::open(tables.symbol_tables, pg_sys::RowExclusiveLock);
        Inserter::new(table).insert_bytes(
            &[pg_sys::Datum::from(i64::from(number))],
            &symbols.to_bytes(),
        );
        let symbols = Arc::new(symbols);
        self.read.insert(number, symbols.clone());
        Numbered { number, symbols }
    }

    fn last_up_to(&mut self, tables: &Tables, limit: i64) -> Option<Numbered> {
        if tables.symbol_tables == pg_sys::InvalidOid {
            return None;
        }
        let table = Relation::open(tables.symbol_tables, pg_sys::AccessShareLock);
        let mut scan = IndexScan::new(&table);
        let row = scan.last_within(1, limit)?;
        let number = row.bigint(1) as u32;
        if let Some(symbols) = self.read.get(&number) {
            return Some(Numbered {
                number,
                symbols: symbols.clone(),
            });
        }
        let symbols = row
            .with_bytes(2, Symbols::from_bytes)
            .unwrap_or_else(|error| {
                raise(
                    PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                    format!("symbol table {number}: {error}"),
                )
            });
        let symbols = Arc::new(symbols);
        self.read.insert(number, symbols.clone());
        Some(Numbered { number, symbols })
    }
}
