//! Plans of joins as integers: PostgreSQL keeps them so in the plan node, and messages carry them to other nodes.

use crate::plan::condition::Bound;
use crate::plan::words::{DecodeError, Reader, Words};
use crate::plan::{
    Child, ColumnNumber, Comparison, Expr, Filter, Group, Kind, Link, ParamRange, Pattern, Plan,
    SameValue, Slot, TableNumber, Test,
};

impl Plan {
    /// The plan as integers.
    pub fn encode(&self) -> Vec<i32> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// The plan that was encoded so.
    ///
    /// # Errors
    /// [`DecodeError`] when the list is damaged.
    pub fn decode(words: &[i32]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(words);
        let plan = Self::read(&mut reader)?;
        reader.end()?;
        Ok(plan)
    }
}

impl Words for Plan {
    fn write(&self, out: &mut Vec<i32>) {
        out.extend([
            i32::from(self.slots),
            i32::from(self.distinct),
            i32::from(self.whole),
        ]);
        self.output.write(out);
        group(out, &self.root);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let slots = u16::read(reader)?;
        let (distinct, whole) = (bool::read(reader)?, bool::read(reader)?);
        let output = Words::read(reader)?;
        let root = reader.group()?;
        let plan = Self {
            root,
            slots,
            output,
            distinct,
            whole,
        };
        plan.is_within_limits().then_some(plan).ok_or(DecodeError)
    }
}

fn list<T>(out: &mut Vec<i32>, items: &[T], mut item: impl FnMut(&mut Vec<i32>, &T)) {
    out.push(items.len() as i32);
    for i in items {
        item(out, i);
    }
}

fn group(out: &mut Vec<i32>, g: &Group) {
    list(out, &g.patterns, |out, p| {
        out.push(i32::from(p.table.number()) | if p.triples { TRIPLES } else { 0 });
        out.extend(
            p.cells
                .iter()
                .map(|c| c.map_or(-1, |slot| i32::from(slot.number()))),
        );
        list(out, &p.links, |out, l| {
            l.column.write(out);
            l.slot.write(out);
        });
        list(out, &p.values, |out, v| {
            v.column.write(out);
            v.slot.write(out);
            v.between.least.write(out);
            v.between.greatest.write(out);
        });
        list(out, &p.conditions, |out, c| {
            c.column.write(out);
            c.bound.write(out);
            c.param.write(out);
        });
    });
    list(out, &g.filters, |out, f| {
        match f.test {
            Test::Equal(a, b) => {
                out.push(0);
                (a, b).write(out);
            }
            Test::Expr(expr) => {
                out.push(1);
                expr.write(out);
                out.push(0);
            }
        }
        f.needs.write(out);
    });
    list(out, &g.children, |out, c| {
        out.push(c.kind as i32);
        c.row.write(out);
        c.exports.write(out);
        c.needs.write(out);
        group(out, &c.group);
    });
}

/// Set beside the number of a table of which triples are read.
const TRIPLES: i32 = 1 << 16;

/// Deeper nesting than any planner makes is damage.
const MAX_DEPTH: usize = 200;

impl Reader<'_> {
    fn column(&mut self) -> Result<ColumnNumber, DecodeError> {
        let column = ColumnNumber::read(self)?;
        (column <= ColumnNumber::GRAPH)
            .then_some(column)
            .ok_or(DecodeError)
    }

    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.count()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn pattern(&mut self) -> Result<Pattern, DecodeError> {
        let word = self.word()?;
        let table = u16::try_from(word & !TRIPLES).map_err(|_| DecodeError)?;
        let mut cells = [None; 4];
        for cell in &mut cells {
            *cell = match self.word()? {
                -1 => None,
                s => Some(Slot::new(u16::try_from(s).map_err(|_| DecodeError)?)),
            };
        }
        Ok(Pattern {
            table: TableNumber::new(table),
            cells,
            links: self.list(|r| {
                Ok(Link {
                    column: r.column()?,
                    slot: Words::read(r)?,
                })
            })?,
            values: self.list(|r| {
                Ok(SameValue {
                    column: r.column()?,
                    slot: Words::read(r)?,
                    between: ParamRange {
                        least: Words::read(r)?,
                        greatest: Words::read(r)?,
                    },
                })
            })?,
            conditions: self.list(|r| {
                let column = r.column()?;
                let bound = Bound::read(r)?;
                Ok(Comparison::new(column, bound, Words::read(r)?))
            })?,
            triples: word & TRIPLES != 0,
            lists_first: false,
        })
    }

    fn filter(&mut self) -> Result<Filter, DecodeError> {
        let (kind, a, b) = (self.word()?, u16::read(self)?, u16::read(self)?);
        let test = match kind {
            0 => Test::Equal(Slot::new(a), Slot::new(b)),
            1 => Test::Expr(Expr::new(a)),
            _ => return Err(DecodeError),
        };
        Ok(Filter {
            test,
            needs: Words::read(self)?,
        })
    }

    fn child(&mut self) -> Result<Child, DecodeError> {
        let kind = match self.word()? {
            0 => Kind::Left,
            1 => Kind::Semi,
            2 => Kind::Anti,
            _ => return Err(DecodeError),
        };
        Ok(Child {
            kind,
            row: Words::read(self)?,
            exports: Words::read(self)?,
            needs: Words::read(self)?,
            group: self.group()?,
        })
    }

    fn group(&mut self) -> Result<Group, DecodeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(DecodeError);
        }
        let group = Group {
            patterns: self.list(Self::pattern)?,
            filters: self.list(Self::filter)?,
            children: self.list(Self::child)?,
        };
        self.depth -= 1;
        Ok(group)
    }
}
