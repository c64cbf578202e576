//! Plans of joins as integers: PostgreSQL keeps them so in the plan node, and messages carry them to other nodes.

use crate::plan::condition::Bound;
use crate::plan::words::{DecodeError, Reader, Words};
use crate::plan::{
    Child, Comparison, Filter, Group, Kind, Link, Pattern, Plan, SameValue, Test, MOST_PATTERNS,
    MOST_SLOTS,
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
        list(out, &self.output, |out, s| out.push(i32::from(*s)));
        group(out, &self.root);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let slots = reader.slot()?;
        let (distinct, whole) = (bool::read(reader)?, bool::read(reader)?);
        let output = reader.list(Reader::slot)?;
        let root = reader.group()?;
        if usize::from(slots) > MOST_SLOTS {
            return Err(DecodeError);
        }
        Ok(Self {
            root,
            slots,
            output,
            distinct,
            whole,
        })
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
        out.push(i32::from(p.table) | if p.triples { TRIPLES } else { 0 });
        out.extend(p.cells.iter().map(|c| c.map_or(-1, i32::from)));
        list(out, &p.links, |out, l| {
            out.extend([i32::from(l.column), i32::from(l.slot)])
        });
        list(out, &p.values, |out, v| {
            let (low, high) = v.between;
            out.extend([i32::from(v.column), i32::from(v.slot)]);
            out.extend([i32::from(low), i32::from(high)]);
        });
        list(out, &p.conditions, |out, c| {
            out.extend([i32::from(c.column), c.bound as i32, i32::from(c.param)])
        });
    });
    list(out, &g.filters, |out, f| {
        match f.test {
            Test::Equal(a, b) => out.extend([0, i32::from(a), i32::from(b)]),
            Test::Expr(n) => out.extend([1, i32::from(n), 0]),
        }
        list(out, &f.needs, |out, s| out.push(i32::from(*s)));
    });
    list(out, &g.children, |out, c| {
        out.push(c.kind as i32);
        out.push(i32::from(c.row));
        list(out, &c.exports, |out, (a, b)| {
            out.extend([i32::from(*a), i32::from(*b)])
        });
        list(out, &c.needs, |out, s| out.push(i32::from(*s)));
        group(out, &c.group);
    });
}

/// Set beside the number of a table of which triples are read.
const TRIPLES: i32 = 1 << 16;

/// Deeper nesting than any planner makes is damage.
const MOST_DEPTH: usize = 200;

impl Reader<'_> {
    fn slot(&mut self) -> Result<u16, DecodeError> {
        u16::try_from(self.word()?).map_err(|_| DecodeError)
    }

    fn column(&mut self) -> Result<u8, DecodeError> {
        u8::try_from(self.word()?)
            .ok()
            .filter(|c| *c < 4)
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
                s => Some(u16::try_from(s).map_err(|_| DecodeError)?),
            };
        }
        Ok(Pattern {
            table,
            cells,
            links: self.list(|r| {
                Ok(Link {
                    column: r.column()?,
                    slot: r.slot()?,
                })
            })?,
            values: self.list(|r| {
                Ok(SameValue {
                    column: r.column()?,
                    slot: r.slot()?,
                    between: (r.slot()?, r.slot()?),
                })
            })?,
            conditions: self.list(|r| {
                let column = r.column()?;
                let bound = Bound::from_number(r.word()?).ok_or(DecodeError)?;
                Ok(Comparison::new(column, bound, r.slot()?))
            })?,
            triples: word & TRIPLES != 0,
            lists_first: false,
        })
    }

    fn filter(&mut self) -> Result<Filter, DecodeError> {
        let (kind, a, b) = (self.word()?, self.slot()?, self.slot()?);
        let test = match kind {
            0 => Test::Equal(a, b),
            1 => Test::Expr(a),
            _ => return Err(DecodeError),
        };
        Ok(Filter {
            test,
            needs: self.list(Self::slot)?,
        })
    }

    fn child(&mut self) -> Result<Child, DecodeError> {
        let kind = match self.word()? {
            0 => Kind::Left,
            1 => Kind::Semi,
            2 => Kind::Anti,
            _ => return Err(DecodeError),
        };
        let row = self.slot()?;
        Ok(Child {
            kind,
            row,
            exports: self.list(|r| Ok((r.slot()?, r.slot()?)))?,
            needs: self.list(Self::slot)?,
            group: self.group()?,
        })
    }

    fn group(&mut self) -> Result<Group, DecodeError> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(DecodeError);
        }
        let group = Group {
            patterns: self.list(Self::pattern)?,
            filters: self.list(Self::filter)?,
            children: self.list(Self::child)?,
        };
        self.depth -= 1;
        let most = MOST_PATTERNS;
        if group.patterns.len() > most || group.filters.len() > most || group.children.len() > most
        {
            return Err(DecodeError);
        }
        Ok(group)
    }
}
