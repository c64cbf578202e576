//! The messages about the dictionary: ids of terms, terms of ids, numbers.
//!
//! Requests are divided by shard, so that a node can say which shard it no longer holds. A term is its encoded form
//! (`pgquad_term::encoded`), which is never empty.

use std::ops::Range;

use crate::message::{request, Kind, VERSION};
use crate::wire::{Damaged, Reader, Result, Writer};

/// Most terms that one message may be about; a reader believes no more.
pub const MAX_TERMS: usize = 1 << 22;

/// The number of [`Request::Find`].
const FIND: u8 = 1;
/// The number of [`Request::Decode`].
const DECODE: u8 = 3;
/// The number of [`Request::Languages`].
const LANGUAGES: u8 = 5;

/// Whether an encoded request only looks terms up.
#[must_use]
pub fn is_look_up(request: &[u8]) -> bool {
    // Behind version and kind.
    matches!(request.get(2), Some(&(FIND | DECODE | LANGUAGES)))
}

/// What is asked for in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<T> {
    /// Citus' number of the shard of `quad.term_ids`.
    pub shard: u64,
    /// What is asked for.
    pub items: Vec<T>,
}

/// A term that is to have an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term<'a> {
    /// Its encoded form.
    pub text: &'a str,
    /// The number of its language; 0 where it has none.
    pub language: u16,
}

/// Terms of one shard that are to have ids, packed as they lie on disk (`pgquad_term::block`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<'a> {
    /// Citus' number of the shard of `quad.term_ids`.
    pub shard: u64,
    /// The hash of each term.
    pub hashes: Vec<u128>,
    /// The number of the language of each term; 0 where it has none.
    pub languages: Vec<u16>,
    /// The blocks that have the terms, one after the other.
    pub blocks: Vec<&'a [u8]>,
}

impl Packed<'_> {
    /// About how many bytes it takes in a message.
    fn bytes(&self) -> usize {
        let beside = size_of::<u128>() + size_of::<u16>();
        let blocks = self.blocks.iter().map(|block| block.len() + 4);
        self.hashes.len() * beside + blocks.sum::<usize>() + 64
    }
}

/// What a node is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The ids of the terms with these hashes.
    Find(Vec<Part<u128>>),
    /// The ids of these terms, which get some where they have none.
    Encode(Vec<Part<Term<'a>>>),
    /// The same for many terms, which the asker has compressed.
    EncodePacked(Vec<Packed<'a>>),
    /// The terms with these numbers, in ascending order within a part.
    Decode(Vec<Part<u64>>),
    /// So many numbers that nobody else gets.
    Take {
        /// The shard from whose extents they are taken.
        shard: u64,
        /// How many.
        count: u64,
    },
    /// All languages.
    Languages,
    /// Numbers for these languages; the shard is the first one, whose node gives them.
    AddLanguages {
        /// Citus' number of the first shard.
        shard: u64,
        /// The tags.
        tags: Vec<&'a str>,
    },
    /// A number for this symbol table, which comes after the newest one; the shard is the first one, whose node gives
    /// it.
    AddSymbols {
        /// Citus' number of the first shard.
        shard: u64,
        /// The table.
        table: &'a [u8],
    },
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// One of the shards is not on the node, as it sees it. Nothing has been done.
    Moved,
    /// Ids, one for each hash or term; 0 for a term that is not there.
    Ids(Vec<u64>),
    /// Terms, one for each number; of many, perhaps the first ones only.
    Terms(Vec<Option<&'a str>>),
    /// Numbers.
    Numbers(Vec<Range<u64>>),
    /// Languages.
    Languages(Vec<(u16, &'a str)>),
    /// The number of a symbol table.
    Symbols(u32),
}

fn write_texts<'a>(writer: &mut Writer, texts: impl Iterator<Item = &'a str> + Clone) {
    let lengths: Vec<u64> = texts.clone().map(|text| text.len() as u64).collect();
    writer.column(&lengths);
    writer.pieces(texts.map(str::as_bytes));
}

fn read_texts<'a>(reader: &mut Reader<'a>) -> Result<Vec<&'a str>> {
    let mut lengths = Vec::new();
    reader.column(&mut lengths, MAX_TERMS)?;
    let mut rest = std::str::from_utf8(reader.bytes()?).map_err(|_| Damaged)?;
    let mut texts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let length = usize::try_from(length).map_err(|_| Damaged)?;
        let (text, after) = rest.split_at_checked(length).ok_or(Damaged)?;
        texts.push(text);
        rest = after;
    }
    if rest.is_empty() {
        Ok(texts)
    } else {
        Err(Damaged)
    }
}

fn read_column(reader: &mut Reader<'_>) -> Result<Vec<u64>> {
    let mut values = Vec::new();
    reader.column(&mut values, MAX_TERMS)?;
    Ok(values)
}

fn write_parts<T>(writer: &mut Writer, parts: &[Part<T>], items: impl Fn(&mut Writer, &[T])) {
    writer.u32(parts.len() as u32);
    for part in parts {
        writer.u64(part.shard);
        items(writer, &part.items);
    }
}

fn read_parts<'a, T>(
    reader: &mut Reader<'a>,
    items: impl Fn(&mut Reader<'a>) -> Result<Vec<T>>,
) -> Result<Vec<Part<T>>> {
    // A part has at least its shard and a number of items.
    let count = reader.count(12)?;
    let mut parts = Vec::with_capacity(count);
    for _ in 0..count {
        let shard = reader.u64()?;
        let items = items(reader)?;
        parts.push(Part { shard, items });
    }
    Ok(parts)
}

fn read_terms<'a>(reader: &mut Reader<'a>) -> Result<Vec<Term<'a>>> {
    let languages = read_languages_of_terms(reader)?;
    let texts = read_texts(reader)?;
    if languages.len() != texts.len() {
        return Err(Damaged);
    }
    let term = |(text, language)| Term { text, language };
    Ok(texts.into_iter().zip(languages).map(term).collect())
}

fn write_languages_of_terms(writer: &mut Writer, languages: impl Iterator<Item = u16>) {
    let languages: Vec<u64> = languages.map(u64::from).collect();
    writer.column(&languages);
}

fn read_languages_of_terms(reader: &mut Reader<'_>) -> Result<Vec<u16>> {
    let number = |number| u16::try_from(number).map_err(|_| Damaged);
    read_column(reader)?.into_iter().map(number).collect()
}

fn write_hashes(writer: &mut Writer, hashes: &[u128]) {
    writer.u32(hashes.len() as u32);
    hashes.iter().for_each(|&hash| writer.u128(hash));
}

fn read_hashes(reader: &mut Reader<'_>) -> Result<Vec<u128>> {
    let count = reader.count(16)?;
    (0..count).map(|_| reader.u128()).collect()
}

fn read_packed<'a>(reader: &mut Reader<'a>) -> Result<Packed<'a>> {
    let shard = reader.u64()?;
    let hashes = read_hashes(reader)?;
    let languages = read_languages_of_terms(reader)?;
    // A block has at least its length.
    let count = reader.count(4)?;
    let blocks = (0..count).map(|_| reader.bytes());
    Ok(Packed {
        shard,
        hashes,
        languages,
        blocks: blocks.collect::<Result<_>>()?,
    })
}

fn write_languages(writer: &mut Writer, languages: &[(u16, &str)]) {
    let numbers: Vec<u64> = languages.iter().map(|(n, _)| u64::from(*n)).collect();
    writer.column(&numbers);
    write_texts(writer, languages.iter().map(|(_, tag)| *tag));
}

impl<'a> Request<'a> {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = request(Kind::Dictionary);
        match self {
            Self::Find(parts) => {
                writer.u8(FIND);
                write_parts(&mut writer, parts, write_hashes);
            }
            Self::Encode(parts) => {
                writer.u8(2);
                write_parts(&mut writer, parts, |writer, terms| {
                    write_languages_of_terms(writer, terms.iter().map(|term| term.language));
                    write_texts(writer, terms.iter().map(|term| term.text));
                });
            }
            Self::EncodePacked(packed) => {
                writer.reserve(packed.iter().map(Packed::bytes).sum());
                writer.u8(8);
                writer.u32(packed.len() as u32);
                for packed in packed {
                    writer.u64(packed.shard);
                    write_hashes(&mut writer, &packed.hashes);
                    write_languages_of_terms(&mut writer, packed.languages.iter().copied());
                    writer.u32(packed.blocks.len() as u32);
                    packed.blocks.iter().for_each(|block| writer.bytes(block));
                }
            }
            Self::Decode(parts) => {
                writer.u8(DECODE);
                write_parts(&mut writer, parts, |writer, numbers| writer.column(numbers));
            }
            Self::Take { shard, count } => {
                writer.u8(4);
                writer.u64(*shard);
                writer.u64(*count);
            }
            Self::Languages => writer.u8(LANGUAGES),
            Self::AddLanguages { shard, tags } => {
                writer.u8(6);
                writer.u64(*shard);
                write_texts(&mut writer, tags.iter().copied());
            }
            Self::AddSymbols { shard, table } => {
                writer.u8(7);
                writer.u64(*shard);
                writer.bytes(table);
            }
        }
        writer.finish()
    }

    /// The request behind version and kind.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self> {
        let request = match reader.u8()? {
            FIND => Self::Find(read_parts(reader, read_hashes)?),
            2 => Self::Encode(read_parts(reader, read_terms)?),
            DECODE => Self::Decode(read_parts(reader, read_column)?),
            4 => Self::Take {
                shard: reader.u64()?,
                count: reader.u64()?,
            },
            LANGUAGES => Self::Languages,
            6 => Self::AddLanguages {
                shard: reader.u64()?,
                tags: read_texts(reader)?,
            },
            7 => Self::AddSymbols {
                shard: reader.u64()?,
                table: reader.bytes()?,
            },
            8 => {
                // A part has at least its shard and the numbers of its hashes, languages and blocks.
                let count = reader.count(20)?;
                let packed = (0..count).map(|_| read_packed(reader));
                Self::EncodePacked(packed.collect::<Result<_>>()?)
            }
            _ => return Err(Damaged),
        };
        reader.end()?;
        Ok(request)
    }
}

impl<'a> Answer<'a> {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(VERSION);
        match self {
            Self::Moved => writer.u8(0),
            Self::Ids(ids) => {
                writer.u8(1);
                writer.column(ids);
            }
            Self::Terms(terms) => {
                writer.u8(2);
                write_texts(&mut writer, terms.iter().map(|term| term.unwrap_or("")));
            }
            Self::Numbers(ranges) => {
                writer.u8(3);
                writer.u32(ranges.len() as u32);
                for range in ranges {
                    writer.u64(range.start);
                    writer.u64(range.end);
                }
            }
            Self::Languages(languages) => {
                writer.u8(4);
                write_languages(&mut writer, languages);
            }
            Self::Symbols(number) => {
                writer.u8(5);
                writer.u32(*number);
            }
        }
        writer.finish()
    }

    /// Takes the message apart.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(Damaged);
        }
        let answer = match reader.u8()? {
            0 => Self::Moved,
            1 => Self::Ids(read_column(&mut reader)?),
            2 => Self::Terms(
                read_texts(&mut reader)?
                    .into_iter()
                    .map(|text| (!text.is_empty()).then_some(text))
                    .collect(),
            ),
            3 => {
                let count = reader.count(16)?;
                let mut ranges = Vec::with_capacity(count);
                for _ in 0..count {
                    ranges.push(reader.u64()?..reader.u64()?);
                }
                Self::Numbers(ranges)
            }
            4 => {
                let numbers = read_column(&mut reader)?;
                let tags = read_texts(&mut reader)?;
                if numbers.len() != tags.len() {
                    return Err(Damaged);
                }
                let language = |(number, tag)| {
                    let number = u16::try_from(number).map_err(|_| Damaged)?;
                    Ok((number, tag))
                };
                Self::Languages(
                    numbers
                        .into_iter()
                        .zip(tags)
                        .map(language)
                        .collect::<Result<_>>()?,
                )
            }
            5 => Self::Symbols(reader.u32()?),
            _ => return Err(Damaged),
        };
        reader.end()?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The request in a message, past version and kind.
    fn behind_kind(message: &[u8]) -> Result<Request<'_>> {
        let mut reader = Reader::new(message);
        assert_eq!(reader.u8()?, VERSION);
        assert_eq!(Kind::from_number(reader.u8()?), Some(Kind::Dictionary));
        Request::decode(&mut reader)
    }

    fn parts<T: Clone>(items: &[T]) -> Vec<Part<T>> {
        let part = |(shard, items): (u64, &[T])| Part {
            shard,
            items: items.to_vec(),
        };
        (102_008u64..).zip(items.chunks(3)).map(part).collect()
    }

    fn requests<'a>(texts: &'a [String], numbers: &[u64]) -> Vec<Request<'a>> {
        let term = |(text, number): (&'a String, &u64)| Term {
            text,
            language: *number as u16,
        };
        let terms: Vec<Term<'_>> = texts.iter().zip(numbers).map(term).collect();
        let hashes: Vec<u128> = numbers.iter().map(|&n| u128::from(n) << 64 | 7).collect();
        let packed = |(shard, texts): (u64, &'a [String])| Packed {
            shard,
            hashes: texts.iter().map(|text| text.len() as u128).collect(),
            languages: texts.iter().map(|text| text.len() as u16).collect(),
            blocks: texts.iter().map(String::as_bytes).collect(),
        };
        vec![
            Request::Find(parts(&hashes)),
            Request::Encode(parts(&terms)),
            Request::EncodePacked((7..).zip(texts.chunks(3)).map(packed).collect()),
            Request::Decode(parts(numbers)),
            Request::Take {
                shard: 1,
                count: 64,
            },
            Request::Languages,
            Request::AddLanguages {
                shard: 2,
                tags: texts.iter().map(String::as_str).collect(),
            },
            Request::AddSymbols {
                shard: 3,
                table: b"table",
            },
        ]
    }

    fn answers<'a>(texts: &'a [String], numbers: &[u64]) -> Vec<Answer<'a>> {
        let text = |text: &'a String| (!text.is_empty()).then_some(text.as_str());
        let language = |(text, number): (&'a String, &u64)| (*number as u16, text.as_str());
        vec![
            Answer::Moved,
            Answer::Ids(numbers.to_vec()),
            Answer::Terms(texts.iter().map(text).collect()),
            Answer::Numbers(numbers.iter().map(|&n| n..n.saturating_add(64)).collect()),
            Answer::Languages(texts.iter().zip(numbers).map(language).collect()),
            Answer::Symbols(9),
        ]
    }

    proptest! {
        #[test]
        fn messages_come_back(texts in prop::collection::vec(".{0,9}", 0..20), numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            for request in requests(&texts, &numbers) {
                let message = request.encode();
                prop_assert_eq!(behind_kind(&message), Ok(request));
            }
            for answer in answers(&texts, &numbers) {
                let message = answer.encode();
                prop_assert_eq!(Answer::decode(&message), Ok(answer));
            }
        }

        /// What is cut off is refused; what is damaged is refused or is another message.
        #[test]
        fn damage_does_no_harm(
            texts in prop::collection::vec(".{0,9}", 0..20),
            numbers in prop::collection::vec(any::<u64>(), 0..20),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            for request in requests(&texts, &numbers) {
                let mut message = request.encode();
                let place = 2 + at.index(message.len() - 2);
                prop_assert_eq!(behind_kind(&message[..place]), Err(Damaged));
                message[place] = byte;
                let _ = behind_kind(&message);
            }
            for answer in answers(&texts, &numbers) {
                let mut message = answer.encode();
                let place = at.index(message.len());
                prop_assert_eq!(Answer::decode(&message[..place]), Err(Damaged));
                message[place] = byte;
                let _ = Answer::decode(&message);
            }
        }
    }
}
