//! Messages come back as they were; damaged ones are refused or read as other messages, and never do harm.

use pgquad_btree::{Batch, Filter, Key, Span, KEY_MAX, KEY_MIN};
use pgquad_cluster::message::Found;
use pgquad_cluster::message::{
    decode_numbers, encode_numbers, Count, Kind, Part, Read, Rows, Stop, VERSION,
};
use pgquad_cluster::Reader;
use proptest::prelude::*;

fn key() -> impl Strategy<Value = Key> {
    prop::array::uniform4(prop_oneof![0u64..9, any::<u64>(), Just(u64::MAX)])
}

/// Ranges as joins ask for: prefixes of one length, or any.
fn ranges() -> impl Strategy<Value = Vec<(Key, Key)>> {
    let prefixes = (0usize..5, prop::collection::vec(key(), 0..12)).prop_map(|(bound, keys)| {
        let range = |key: Key| {
            let (mut low, mut high) = (KEY_MIN, KEY_MAX);
            low[..bound].copy_from_slice(&key[..bound]);
            high[..bound].copy_from_slice(&key[..bound]);
            (low, high)
        };
        keys.into_iter().map(range).collect()
    });
    prop_oneof![prefixes, prop::collection::vec((key(), key()), 0..12)]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (any::<u64>(), ranges()).prop_map(|(shard, ranges)| Part { shard, ranges });
    prop::collection::vec(part, 0..5)
}

fn read() -> impl Strategy<Value = Read> {
    let numbers = (
        0u8..4,
        0u8..16,
        1u32..9,
        any::<u64>(),
        any::<u32>(),
        any::<u32>(),
    );
    (numbers, parts(), parts()).prop_map(
        |((order, mask, size, required, most, enough), parts, ahead)| Read {
            order,
            mask,
            size,
            required,
            most,
            enough,
            parts,
            ahead: ahead.into_iter().map(|part| (order, part)).collect(),
        },
    )
}

fn count() -> impl Strategy<Value = Count> {
    let filter = (0u8..4, any::<u64>(), any::<u64>(), any::<bool>());
    let filter = filter.prop_map(|(column, low, high, outside)| Filter {
        column,
        low,
        high,
        outside,
    });
    let filters = prop::collection::vec(filter, 0..3);
    (filters, parts(), 0u8..4).prop_map(|(filters, parts, order)| Count {
        filters,
        parts: parts.into_iter().map(|part| (order, part)).collect(),
    })
}

fn rows() -> impl Strategy<Value = Rows> {
    let stop = (
        any::<u32>(),
        any::<u32>(),
        prop::option::of(key()),
        any::<bool>(),
    );
    let stop = stop.prop_map(|(part, next, resume, begun)| Stop {
        part,
        next,
        resume,
        begun,
    });
    let quads = prop::collection::vec((key(), 0u32..3), 0..40);
    let counts = prop::collection::vec(0u64..70, 0..9);
    let ahead = (counts, prop::collection::vec(key(), 0..20));
    let ahead = ahead.prop_map(|(counts, keys)| Found { counts, keys });
    (0u8..32, quads, prop::option::of(stop), ahead).prop_map(|(mask, quads, stop, ahead)| {
        let mut columns: [Vec<u64>; 4] = Default::default();
        for (c, column) in columns.iter_mut().enumerate() {
            if mask >> c & 1 == 1 {
                column.extend(quads.iter().map(|(key, _)| key[c]));
            }
        }
        let mut spans: Vec<Span> = Vec::new();
        for (n, (_, range)) in (1..).zip(&quads) {
            match spans.last_mut().filter(|span| span.range == *range) {
                Some(span) => span.end = n,
                None => spans.push(Span {
                    range: *range,
                    end: n,
                }),
            }
        }
        let mut batch = Batch::from_columns(mask, columns, quads.len());
        for (count, (key, _)) in batch.counts.iter_mut().zip(&quads) {
            *count = key[0] | 1;
        }
        Rows {
            batch,
            spans,
            stop,
            ahead,
        }
    })
}

/// A reader behind version and kind.
fn behind(message: &[u8], kind: Kind) -> Reader<'_> {
    let mut reader = Reader::new(message);
    assert_eq!(reader.u8().unwrap(), VERSION);
    assert_eq!(Kind::from_number(reader.u8().unwrap()), Some(kind));
    reader
}

proptest! {
    #[test]
    fn requests_come_back(read in read(), count in count()) {
        let message = read.encode();
        prop_assert_eq!(Read::decode(&mut behind(&message, Kind::Read)).unwrap(), read);
        let message = count.encode(Kind::Estimate);
        prop_assert_eq!(Count::decode(&mut behind(&message, Kind::Estimate)).unwrap(), count);
    }

    #[test]
    fn answers_come_back(rows in rows(), numbers in prop::collection::vec(any::<u64>(), 0..20)) {
        let back = Rows::decode(&rows.encode()).unwrap();
        prop_assert_eq!(back.batch, rows.batch);
        prop_assert_eq!(back.spans, rows.spans);
        prop_assert_eq!(back.stop, rows.stop);
        prop_assert_eq!(back.ahead, rows.ahead);
        let message = encode_numbers(&numbers);
        prop_assert_eq!(decode_numbers(&message, numbers.len()).unwrap(), numbers);
    }

    /// A message that is cut off is refused; one with another byte in it is refused or another message.
    #[test]
    fn damage_does_no_harm(read in read(), count in count(), rows in rows(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for message in [read.encode(), count.encode(Kind::CountVisible)] {
            let place = 2 + at.index(message.len() - 2);
            prop_assert!(Read::decode(&mut Reader::new(&message[2..place])).is_err() || message[1] != Kind::Read as u8);
            let mut other = message.clone();
            other[place] = byte;
            let _ = Read::decode(&mut Reader::new(&other[2..]));
            let _ = Count::decode(&mut Reader::new(&other[2..]));
        }
        let message = rows.encode();
        let place = at.index(message.len());
        prop_assert!(Rows::decode(&message[..place]).is_err());
        let mut other = message;
        other[place] = byte;
        if let Ok(rows) = Rows::decode(&other) {
            let ends = rows.spans.last().map_or(0, |span| span.end as usize);
            prop_assert_eq!(ends, rows.batch.len());
        }
    }
}
