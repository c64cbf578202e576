//! Answering other nodes about the shards of the dictionary that are on this node.

use pgquad_cluster::dictionary::{Answer, Packed, Part, Request, Term};
use pgquad_cluster::wire;
use pgquad_cluster::Damaged;
use pgquad_term::block::Symbols;
use pgquad_term::TermId;
use pgrx::{pg_sys, PgSqlErrorCode, Spi};

use super::layout::{Layout, Shards};
use super::relation::Relation;
use super::state::{self, with_state};
use super::tables::Tables;
use super::wanted::Wanted;
use super::{extents, horizon, lock, run, shard, term_ids};
use crate::cluster::{as_superuser, damaged};
use crate::pg::error::raise;
use crate::pg::guc::set_in_transaction;

/// A shard that is not on this node, as it sees it.
struct Moved;

/// Answers a request. The transaction is its own where terms are added or numbers taken; it may be that of a query
/// where terms are looked up.
pub fn answer(reader: &mut wire::Reader<'_>) -> Vec<u8> {
    let request = Request::decode(reader).unwrap_or_else(|error| damaged(error));
    let answer = match request {
        Request::Find(parts) => find(&parts).map(Answer::Ids),
        Request::Encode(parts) => encode_texts(&parts).map(Answer::Ids),
        Request::EncodePacked(packed) => encode_packed(packed).map(Answer::Ids),
        Request::Decode(parts) => return decode(&parts),
        Request::Take { shard, count } => take(shard, count),
        Request::Languages => return languages(None),
        Request::AddLanguages { shard, tags } => return add_languages(shard, &tags),
        Request::AddSymbols { shard, table } => add_symbols(shard, table),
    };
    answer.unwrap_or(Answer::Moved).encode()
}

/// The tables of a shard by its number.
fn tables(shards: &Shards, id: u64) -> Result<(usize, Tables), Moved> {
    let place = shards.place_of_id(id).ok_or(Moved)?;
    let tables = shards.here(place).ok_or(Moved)?;
    Ok((place, *tables))
}

/// Calls `body` with the shards of the dictionary.
fn with_shards<T>(
    layout: &Layout,
    body: impl FnOnce(&Shards) -> Result<T, Moved>,
) -> Result<T, Moved> {
    body(layout.shards.as_ref().ok_or(Moved)?)
}

fn find(parts: &[Part<u128>]) -> Result<Vec<u64>, Moved> {
    // The transaction may be that of a long query.
    let layout = Layout::newest();
    with_shards(&layout, |shards| {
        let mut ids = Vec::new();
        for part in parts {
            let (_, tables) = tables(shards, part.shard)?;
            let order = term_ids::probe_order(&part.items);
            ids.extend(
                probe(&tables, &part.items, &order)
                    .into_iter()
                    .map(number_of),
            );
        }
        Ok(ids)
    })
}

/// The number that stands for an id in answers.
fn number_of(id: Option<TermId>) -> u64 {
    id.map_or(0, |id| id.0)
}

/// Ids by hash, in the order of the hashes. `order`: their order for probes.
fn probe(tables: &Tables, hashes: &[u128], order: &[usize]) -> Vec<Option<TermId>> {
    let sorted: Vec<u128> = order.iter().map(|&n| hashes[n]).collect();
    let mut ids = vec![None; hashes.len()];
    for (&n, id) in order.iter().zip(term_ids::probe(tables, &sorted)) {
        ids[n] = id;
    }
    ids
}

/// Makes sure that shards stay on this node, and that nobody else adds to them, until this transaction ends.
fn lock_shards(layout: &Layout, ids: &[u64]) -> Result<(), Moved> {
    let mut ids = ids.to_vec();
    // One order for all transactions keeps them from waiting for each other in a circle.
    ids.sort_unstable();
    lock::against_moves(&ids);
    ids.iter().for_each(|&id| lock::shard(id));
    // A move that has ended meanwhile has changed the layout.
    let newest = Layout::newest();
    let of = |layout: &Layout, id| with_shards(layout, |shards| tables(shards, id)).ok();
    let same = |&id: &u64| of(&newest, id) == of(layout, id);
    ids.iter().all(same).then_some(()).ok_or(Moved)
}

fn encode_texts(parts: &[Part<Term<'_>>]) -> Result<Vec<u64>, Moved> {
    let wanted: Vec<Wanted<'_>> = parts.iter().map(Wanted::of_texts).collect();
    encode(&wanted, Expected::Known)
}

/// As [`encode_texts`] for terms in blocks. Symbol tables that this node does not have (yet) count as a shard that it
/// does not have: the asker sends the terms as text then.
fn encode_packed(packed: Vec<Packed<'_>>) -> Result<Vec<u64>, Moved> {
    let layout = Layout::current();
    let wanted = with_shards(&layout, |shards| {
        let wanted = packed.into_iter().map(|packed| {
            let (_, tables) = tables(shards, packed.shard)?;
            Wanted::in_blocks(&tables, packed).ok_or(Moved)
        });
        wanted.collect::<Result<Vec<_>, _>>()
    })?;
    encode(&wanted, Expected::New)
}

/// What most of the terms of a request are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// In the dictionary. The shards are locked only where terms are missing, which are then looked for once more.
    Known,
    /// Not in the dictionary, as those of a load that has not met them yet. The shards are locked first, and the terms
    /// looked up once.
    New,
}

/// Finds or adds terms.
fn encode(parts: &[Wanted<'_>], expected: Expected) -> Result<Vec<u64>, Moved> {
    let layout = Layout::current();
    with_shards(&layout, |shards| {
        let prepared: Result<Vec<Answered>, Moved> = parts
            .iter()
            .map(|part| Answered::prepare(shards, part))
            .collect();
        let mut answered = prepared?;
        if expected == Expected::New {
            let all: Vec<u64> = parts.iter().map(|part| part.shard).collect();
            lock_shards(&layout, &all)?;
        }
        let mut incomplete = Vec::new();
        for (part, answered) in parts.iter().zip(&mut answered) {
            answered.ids = probe(&answered.tables, &part.hashes, &answered.order);
            if answered.ids.contains(&None) {
                incomplete.push(part.shard);
            }
        }
        if !incomplete.is_empty() {
            if expected == Expected::Known {
                lock_shards(&layout, &incomplete)?;
                let parts = parts.iter().zip(&mut answered);
                parts.for_each(|(part, answered)| answered.look_again(part));
            }
            let horizon = horizon::without_loads();
            for (part, answered) in parts.iter().zip(&mut answered) {
                answered.add(shards, part, horizon);
            }
            force_durable_commit();
        }
        let ids = answered.into_iter().flat_map(|answered| answered.ids);
        Ok(ids.map(number_of).collect())
    })
}

/// What is known of the terms of one shard.
struct Answered {
    tables: Tables,
    place: usize,
    /// The order of the hashes for probes.
    order: Vec<usize>,
    ids: Vec<Option<TermId>>,
}

impl Answered {
    /// What can be told of the terms before they are looked up, or the shards locked.
    fn prepare(shards: &Shards, part: &Wanted<'_>) -> Result<Self, Moved> {
        let (place, tables) = tables(shards, part.shard)?;
        // The asker knows the shards as they are now, or it is wrong about where its terms belong.
        let is_elsewhere = |&hash: &u128| shards.of_hash(hash) != place;
        if part.hashes.iter().any(is_elsewhere) {
            return Err(Moved);
        }
        let order = term_ids::probe_order(&part.hashes);
        Ok(Self {
            tables,
            place,
            order,
            ids: Vec::new(),
        })
    }

    /// Looks once more for terms that have no ids: whoever added one since the first look has finished when the shard
    /// is locked.
    fn look_again(&mut self, part: &Wanted<'_>) {
        let ids = &self.ids;
        let missing = self.order.iter().copied().filter(|&n| ids[n].is_none());
        let missing: Vec<usize> = missing.collect();
        let sorted: Vec<u128> = missing.iter().map(|&n| part.hashes[n]).collect();
        for (n, id) in missing
            .into_iter()
            .zip(term_ids::probe(&self.tables, &sorted))
        {
            self.ids[n] = id;
        }
    }

    /// Adds those that have no ids. The shard is locked.
    fn add(&mut self, shards: &Shards, part: &Wanted<'_>, horizon: pg_sys::TransactionId) {
        if self.ids.contains(&None) {
            let own = |extent| shards.of_extent(extent) == self.place;
            let order = &self.order[..];
            shard::add(&self.tables, part, order, &mut self.ids, own, horizon);
        }
    }
}

/// Terms that are read together. Each has a megabyte at most.
const TERMS_AT_ONCE: usize = 512;
/// Bytes of terms that are enough for one answer: the asker asks for the others once more.
const ENOUGH_BYTES: usize = 16 << 20;

fn decode(parts: &[Part<u64>]) -> Vec<u8> {
    // The transaction may be that of a long query.
    let layout = Layout::newest();
    let checked = with_shards(&layout, |shards| {
        for part in parts {
            let (place, _) = tables(shards, part.shard)?;
            if part
                .items
                .iter()
                .any(|&number| shards.of_number(number) != place)
            {
                return Err(Moved);
            }
        }
        Ok(())
    });
    if checked.is_err() {
        return Answer::Moved.encode();
    }
    let numbers: Vec<u64> = parts.iter().flat_map(|part| &part.items).copied().collect();
    let (mut texts, mut bytes) = (Vec::with_capacity(numbers.len()), 0);
    for some in numbers.chunks(TERMS_AT_ONCE) {
        let (found, _) = with_state(|state| run::texts_here(state, some));
        bytes += found.iter().flatten().map(String::len).sum::<usize>();
        texts.extend(found);
        if bytes >= ENOUGH_BYTES {
            break;
        }
    }
    Answer::Terms(texts.iter().map(Option::as_deref).collect()).encode()
}

fn take(shard: u64, count: u64) -> Result<Answer<'static>, Moved> {
    /// Numbers: more than any load takes at once.
    const MAX_NUMBERS: u64 = 1 << 24;
    if count > MAX_NUMBERS {
        damaged(Damaged);
    }
    let layout = Layout::current();
    with_shards(&layout, |shards| {
        let (place, tables) = tables(shards, shard)?;
        lock_shards(&layout, &[shard])?;
        let own = |extent| shards.of_extent(extent) == place;
        let ranges = extents::take(&tables, count, own);
        force_durable_commit();
        Ok(Answer::Numbers(ranges))
    })
}

/// The running transaction is durable when it has committed, also on synchronous standbys, whatever
/// `synchronous_commit` of the asking role says: quads with its terms and numbers may be durable at once, and so are
/// the copies of its languages and symbols on other nodes, which Citus prepares.
fn force_durable_commit() {
    // SAFETY: within a transaction, whose end takes the setting back.
    unsafe {
        let least = pg_sys::SyncCommitLevel::SYNCHRONOUS_COMMIT_REMOTE_FLUSH as i32;
        if pg_sys::synchronous_commit < least {
            set_in_transaction(c"synchronous_commit", c"on");
        }
        pg_sys::ForceSyncCommit();
    }
}

/// The languages, or those with these tags.
fn languages(tags: Option<&[&str]>) -> Vec<u8> {
    let layout = Layout::current();
    let all = with_state(|state| {
        if layout.tables.languages != pg_sys::InvalidOid {
            let table = Relation::open(layout.tables.languages, pg_sys::AccessShareLock);
            state.languages.read(&table);
        }
        state.languages.known()
    });
    let wanted = all
        .iter()
        .filter(|(_, tag)| tags.is_none_or(|tags| tags.contains(&tag.as_str())))
        .map(|(number, tag)| (*number, tag.as_str()));
    Answer::Languages(wanted.collect()).encode()
}

/// Checks that this node holds the first shard, whose node numbers languages and symbol tables, and that it does so
/// until the transaction ends.
fn lock_first_shard(shard: u64) -> Result<Tables, Moved> {
    let layout = Layout::current();
    with_shards(&layout, |shards| {
        let (place, tables) = tables(shards, shard)?;
        if place != 0 || tables.languages == pg_sys::InvalidOid {
            return Err(Moved);
        }
        lock_shards(&layout, &[shard])?;
        Ok(tables)
    })
}

fn add_languages(shard: u64, tags: &[&str]) -> Vec<u8> {
    let Ok(tables) = lock_first_shard(shard) else {
        return Answer::Moved.encode();
    };
    state::will_write();
    let new = with_state(|state| {
        state
            .languages
            .read(&Relation::open(tables.languages, pg_sys::AccessShareLock));
        state.languages.number_new(tags)
    });
    if !new.is_empty() {
        force_durable_commit();
    }
    for (number, tag) in new {
        insert_everywhere(
            "INSERT INTO quad.languages VALUES ($1, $2)",
            &[i32::from(number).into(), tag.into()],
        );
    }
    languages(Some(tags))
}

fn add_symbols(shard: u64, table: &[u8]) -> Result<Answer<'static>, Moved> {
    if Symbols::from_bytes(table).is_err() {
        damaged(Damaged);
    }
    let tables = lock_first_shard(shard)?;
    let number = with_state(|state| state.symbols.newest(&tables).number) + 1;
    insert_everywhere(
        "INSERT INTO quad.symbol_tables VALUES ($1, $2)",
        &[i64::from(number).into(), table.to_vec().into()],
    );
    force_durable_commit();
    Ok(Answer::Symbols(number))
}

/// Adds a row to a table that every node has a copy of. Citus writes to all of them, or none.
fn insert_everywhere(sql: &str, arguments: &[pgrx::datum::DatumWithOid<'_>]) {
    as_superuser(|| {
        if let Err(error) = Spi::run_with_args(sql, arguments) {
            raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, error.to_string());
        }
    });
}
