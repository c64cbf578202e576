//! Records for which memory has no room: written to a file in parts, by hash, each of which can then be looked at by
//! itself.

/// A file that grows at its end.
pub trait Spill {
    /// Writes `words` at the end.
    fn append(&mut self, words: &[u64]);

    /// Reads the words from number `at` on.
    fn read(&mut self, at: u64, words: &mut [u64]);

    /// Removes what has been written. Not called where an error ends everything.
    fn close(&mut self);
}

/// Parts that records are divided into.
const PARTS: usize = 1 << PART_BITS;
const PART_BITS: u32 = 4;
/// Words written at once.
const BLOCK_WORDS: usize = 1024;

/// A part that has been written.
#[derive(Default)]
pub(crate) struct Part {
    /// Where its blocks start, with their words.
    blocks: Vec<(u64, usize)>,
    /// How many times its records have been divided.
    depth: u32,
}

/// Records of some words each, being divided into parts.
pub(crate) struct Divider {
    record: usize,
    parts: Vec<Part>,
    /// What is not written yet, of each part.
    blocks: Vec<Vec<u64>>,
    depth: u32,
}

/// The file, and how many words it has.
pub(crate) struct File {
    file: Box<dyn Spill>,
    words: u64,
}

impl File {
    pub fn new(file: Box<dyn Spill>) -> Self {
        Self { file, words: 0 }
    }

    /// Removes it.
    pub fn close(&mut self) {
        self.file.close();
    }

    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.words * 8
    }

    fn append(&mut self, words: &[u64]) -> u64 {
        let at = self.words;
        self.file.append(words);
        self.words += words.len() as u64;
        at
    }

    /// The words of a part's next block, `None` at the end.
    pub fn next_block(&mut self, part: &mut Part, words: &mut Vec<u64>) -> bool {
        let Some((at, len)) = part.blocks.pop() else {
            return false;
        };
        words.resize(len, 0);
        self.file.read(at, words);
        true
    }
}

impl Part {
    /// Whether dividing it once more can be of use: there are bits of the hash left.
    pub fn is_divisible(&self) -> bool {
        (self.depth + 1) * PART_BITS <= u64::BITS
    }
}

impl Divider {
    /// For records of so many words, those of `part` or all.
    pub fn new(record: usize, part: &Part) -> Self {
        Self {
            record,
            parts: (0..PARTS).map(|_| Part::default()).collect(),
            blocks: vec![Vec::new(); PARTS],
            depth: part.depth + 1,
        }
    }

    /// Adds a record of this hash.
    pub fn add(&mut self, file: &mut File, hash: u64, record: impl Iterator<Item = u64>) {
        let part = (hash >> (u64::BITS - self.depth * PART_BITS)) as usize % PARTS;
        self.blocks[part].extend(record);
        if self.blocks[part].len() + self.record > BLOCK_WORDS {
            self.write(file, part);
        }
    }

    fn write(&mut self, file: &mut File, part: usize) {
        let at = file.append(&self.blocks[part]);
        self.parts[part].blocks.push((at, self.blocks[part].len()));
        self.blocks[part].clear();
    }

    /// The parts that have any records.
    pub fn finish(mut self, file: &mut File) -> impl Iterator<Item = Part> {
        for part in 0..PARTS {
            if !self.blocks[part].is_empty() {
                self.write(file, part);
            }
            self.parts[part].depth = self.depth;
        }
        self.parts
            .into_iter()
            .filter(|part| !part.blocks.is_empty())
    }
}
